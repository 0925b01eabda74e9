//! Reading records for consumers: what a fetch asks, one pass over its partitions, waiting for
//! more, and the sessions that spare a client from repeating its list (KIP-227).
//!
//! Knows partitions and watermarks; the wire's versions are [`crate::api`]'s business.

mod plan;
mod sessions;
mod wait;

pub(crate) use plan::{Found, Outcome, Plan, Want, read_once};
pub(crate) use sessions::{Opening, SessionError, Sessions, TopicKey, Wanted};
pub(crate) use wait::{Waiting, wait};
