//! The client against a real broker: one program, one module per subject. [`harness`] knows which
//! broker; tests speak to the harness.

// Helpers of tests fail the test they help.
#![allow(clippy::unwrap_used)]

mod admin;
mod consumer;
mod examples;
mod fallback;
mod groups;
mod harness;
mod kip848;
mod nonsense;
mod patterns;
mod producer;
mod proxy;
mod register;
mod sockets;
