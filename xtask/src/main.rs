//! `cargo xtask COMMAND`: everything a developer or CI runs, in one place.

fn main() {}
