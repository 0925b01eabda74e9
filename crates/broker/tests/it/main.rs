//! Tests of a whole broker over TCP: one program, one module per subject. [`harness`] starts the
//! broker and speaks the wire; tests speak to the harness.

mod admin;
mod connections;
mod consumers;
mod effects;
mod every_version;
mod groups;
mod harness;
mod holds;
mod http;
mod records;
mod settings;
mod topics;
mod versions;
