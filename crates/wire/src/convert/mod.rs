//! Kafka's group messages, of whatever version, to and from the version-free words of
//! [`ottla_group::message`]; and the coordinator's records to and from Kafka's record bytes
//! ([`record`]).
//!
//! One file per API. Each knows every version's fields, defaults and quirks, so that nobody else
//! needs to; none knows a rule of the group protocol, a connection or a task. Their functions:
//!
//! - `ask`: a decoded request becomes what is asked of the coordinator (broker),
//! - `response`: the coordinator's reply becomes a response (broker),
//! - `request`: what a member asks becomes a request (client),
//! - `reply`: a decoded response becomes what the member is told (client).
//!
//! Responses borrow from the reply they are made of. Throttle times are left zero: quotas are the
//! broker's.

pub mod commit;
pub mod consumer_describe;
pub mod consumer_heartbeat;
pub mod consumer_metadata;
pub mod delete_groups;
pub mod delete_offsets;
pub mod describe;
mod error;
pub mod fetch_offsets;
pub mod heartbeat;
pub mod join;
pub mod journal;
pub mod leave;
pub mod list;
mod plan;
pub mod record;
pub mod register_consumer;
pub mod register_heartbeat;
pub mod sync;

pub use error::{Foreign, code, group_error};
pub use plan::{Plan, TopicRef, known_topics};

use std::time::Duration;

/// What a response says of a call: an answer or a refusal in our words, or a code that has none.
pub type Told<T> = Result<T, Foreign>;

/// A timeout in milliseconds as a duration; a negative one is none at all, which the
/// coordinator's lower bounds refuse.
fn duration(ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// A duration as the milliseconds of a request; the longest that fits if it is longer.
fn millis(span: Duration) -> i32 {
    i32::try_from(span.as_millis()).unwrap_or(i32::MAX)
}

/// The error field of a response.
fn code_of<T>(result: &Result<T, ottla_group::message::GroupError>) -> i16 {
    result.as_ref().err().map_or(0, |error| code(*error).number())
}

#[cfg(test)]
mod tests;
