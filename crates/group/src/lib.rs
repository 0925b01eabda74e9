//! The heart: both ends of every consumer group protocol, as values without IO.
//!
//! [`message`] holds requests and replies in the project's own version-free words;
//! [`coordinator`] answers them for the groups of one shard; [`assign`] says who should own what.
//! This crate opens no socket, reads no clock, draws no random number and never sees a wire
//! format; time, fresh ids and durability come in as arguments.

#![no_std]

extern crate alloc;

pub mod assign;
pub mod coordinator;
pub mod member;
pub mod message;
pub mod probe;
