//! The client against a real broker: one program, one module per subject. [`harness`] knows which
//! broker; tests speak to the harness.

mod admin;
mod harness;
mod producer;
