//! Where a member stands in its group, each state with what it alone needs.

use super::leader::Led;
use crate::assign::{Assignor, Partitions};
use crate::message::classic::JoinedMember;
use alloc::vec::Vec;
use ottla_model::{Instant, TopicName};

/// The phases of a member; drawn here for the classic protocol. In the register protocol a
/// registration is a join whose answer is the assignment: `Joining` leads to `Stable` (or
/// `Confirming`) by itself.
///
/// ```text
///  Idle --subscribe--> Unjoined --coordinator known--> Joining --joined--> Syncing --> Stable
///   ^                    ^  ^                            (leader: Assigning first)      |  |
///   |                    |  +--- lost, lapsed, refused ---- from any ------------------+   |
///  Leaving <--given up-- Revoking <--- eager: before each join; cooperative: after a -------+
///   |                                  sync that takes partitions away; closing: always
///  Closed                              Failed: from any, on an error nothing can mend
/// ```
///
/// A member of the consumer protocol is `Following` in place of all between `Unjoined` and
/// `Stable`, and `Revoking` while the application gives up what the coordinator took away.
#[derive(Debug)]
#[cfg_attr(feature = "probe", derive(Clone))]
pub(super) enum Phase {
    /// Subscribes to nothing.
    Idle,
    /// Wants to join; waits for the coordinator or the end of a pause.
    Unjoined,
    /// The application is giving partitions up; then comes what `then` says.
    Revoking(Revoking),
    /// A join is under way.
    Joining {
        /// The topics it said it wants.
        topics: Vec<TopicName>,
        /// What it said it owns.
        claimed: Partitions,
    },
    /// Leader of a new generation, waiting to learn of topics it did not know.
    Assigning {
        /// The generation.
        round: Round,
        /// The assignor that was chosen.
        assignor: Assignor,
        /// Everyone in it.
        members: Vec<JoinedMember>,
        /// Whether the coordinator wants the old assignment kept (KIP-814).
        skips: bool,
    },
    /// A sync is under way, or to be sent again.
    Syncing {
        /// The generation.
        round: Round,
        /// The leader's assignment, kept to be sent again.
        request: super::Request,
        /// Not before this may it be sent (again).
        send_at: Instant,
    },
    /// The assignment came so late that the session may be over: a heartbeat has to be answered
    /// before anything is owned.
    Confirming {
        /// The generation.
        round: Round,
        /// What it was assigned.
        assigned: Partitions,
    },
    /// Has its part of the generation.
    Stable(Round),
    /// Consumer protocol: is a member, or about to be told so; heartbeats do it all.
    Following,
    /// A leave is under way, or nothing is left to do but to say so.
    Leaving {
        /// What comes after.
        then: Then,
        /// Gone at the latest then, answered or not.
        deadline: Instant,
        /// Whether the leave was sent.
        is_sent: bool,
    },
    /// Over, by an error.
    Failed,
    /// Over, by wish.
    Closed,
}

/// Partitions on their way out.
#[derive(Debug)]
#[cfg_attr(feature = "probe", derive(Clone))]
pub(super) struct Revoking {
    /// What the application gives up.
    pub(super) partitions: Partitions,
    /// Whether it is done.
    pub(super) is_done: bool,
    /// What comes next.
    pub(super) then: Then,
    /// How long the last commits may keep it waiting.
    pub(super) deadline: Instant,
}

/// What comes after giving up partitions or leaving; a later one is never taken back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Then {
    /// Join again.
    Join,
    /// Leave, and rest.
    Idle,
    /// Leave, and stop for good.
    Closed,
}

/// One generation as this member takes part in it.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// The topics this member said it wants.
    pub(super) topics: Vec<TopicName>,
    /// What this member said it owns: the leader keeps it from others until it is given up.
    pub(super) claimed: Partitions,
    /// The leader alone: what it made of this generation.
    pub(super) led: Option<Led>,
}

impl Phase {
    /// Whether the coordinator counts this member as alive by its heartbeats.
    pub(super) fn is_member(&self) -> bool {
        match self {
            Self::Assigning { .. } | Self::Syncing { .. } => true,
            Self::Confirming { .. } | Self::Stable(_) | Self::Following => true,
            Self::Revoking(_) => true,
            Self::Joining { .. } => false,
            Self::Idle | Self::Unjoined | Self::Leaving { .. } => false,
            Self::Failed | Self::Closed => false,
        }
    }
}
