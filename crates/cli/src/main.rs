//! The `ottla` binary. Only this crate prints.

fn main() {}
