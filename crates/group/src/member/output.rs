//! What a member asks of its shell and tells its application.

use super::link::{CallId, Lane};
use super::offsets::{CommitFailed, OffsetsId};
use super::request::Request;
use crate::assign::Partitions;
use crate::message::GroupError;
use crate::message::offsets::{Committed, Fetched};
use alloc::vec::Vec;
use ottla_model::{NodeId, TopicName};

/// What a member wants done, in order.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// Keep the member informed of these topics: answer now and at each change with
    /// [`Member::handle_topics`](super::Member::handle_topics) and this round, which replaces
    /// earlier ones.
    Watch {
        /// Which question.
        round: u64,
        /// The topics that matter to it, ascending.
        topics: Vec<TopicName>,
    },
    /// Ask any broker for the group's coordinator; answer with
    /// [`Member::handle_coordinator`](super::Member::handle_coordinator).
    Find {
        /// Which question.
        call: CallId,
    },
    /// Send this to the coordinator.
    Send {
        /// Which question.
        call: CallId,
        /// The coordinator.
        node: NodeId,
        /// On which of the two connections to it.
        lane: Lane,
        /// What to send.
        request: Request,
    },
    /// Close both connections to the coordinator, at once and without sending what is still
    /// queued (a reset): a commit given up with them must not arrive after a later one.
    Disconnect,
    /// These partitions are the application's from now on, besides those it has. Ends every
    /// rebalance, so it may be empty.
    Assigned(Partitions),
    /// The application should finish with these partitions, commit, then call
    /// [`Member::revoked`](super::Member::revoked).
    Revoke(Partitions),
    /// These partitions are no longer the application's, without warning; others may own them
    /// already. An open [`Output::Revoke`] needs no answer any more.
    Lost(Partitions),
    /// What became of a commit.
    Committed {
        /// Which.
        id: OffsetsId,
        /// The outcome per partition, or why there is none.
        outcome: Result<Committed, CommitFailed>,
    },
    /// What became of an offset fetch.
    Fetched {
        /// Which.
        id: OffsetsId,
        /// The offsets, or why there are none.
        outcome: Result<Fetched, GroupError>,
    },
    /// Nothing the member could do helps: the application has to.
    Failed(GroupError),
    /// The member has left, after [`Member::unsubscribe`](super::Member::unsubscribe) or
    /// [`Member::close`](super::Member::close).
    Left,
}
