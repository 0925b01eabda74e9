//! One member: what it says of itself, what of it is parked, when it is taken for dead.

use super::super::holds::Hold;
use super::super::timers::Deadline;
use super::super::turn::cut;
use super::super::view::Who;
use crate::message::classic::Protocol;
use crate::message::register::Detection;
use crate::message::{Blob, Token};
use alloc::sync::Arc;
use core::time::Duration;
use ottla_model::{ConnectionId, Generation, InstanceId, Instant, MemberId};

/// An assignor a member supports, with its metadata for it.
pub(in super::super) type Supported = (Arc<str>, Blob);

/// One member.
#[derive(Debug)]
pub(in super::super) struct Member {
    /// Its place in the order of joining.
    pub(in super::super) serial: u32,
    pub(in super::super) instance: Option<InstanceId>,
    pub(in super::super) client_id: Arc<str>,
    pub(in super::super) client_host: Arc<str>,
    pub(in super::super) session_timeout: Duration,
    pub(in super::super) rebalance_timeout: Duration,
    /// Most wanted first, names distinct.
    pub(in super::super) protocols: Arc<[Supported]>,
    /// Whether `protocols` came from a record, which keeps only the chosen one.
    pub(in super::super) restored: bool,
    /// Whether it has not yet been told of a generation; such a member cannot heartbeat.
    pub(in super::super) is_new: bool,
    /// The epoch it was last told as a member of a group of the consumer protocol: the generation
    /// it names until it is told one.
    pub(in super::super) told: Option<Generation>,
    /// Its place in the last generation's record, if it is part of that generation.
    pub(in super::super) stored: Option<u32>,
    /// When it is taken for dead.
    pub(in super::super) session: Deadline,
    /// How often a register member beats and may fail to; `None` in other protocols, where the
    /// session timeout alone counts.
    pub(in super::super) detection: Option<Detection>,
    /// The connection its last valid request came on; `None` since a restart.
    pub(in super::super) connection: Option<ConnectionId>,
    /// When it last joined, for the journal.
    pub(in super::super) joined_at: Instant,
    /// When it last synced, for the journal.
    pub(in super::super) synced_at: Option<Instant>,
    /// A heartbeat whose answer is kept.
    pub(in super::super) hold: Hold,
    pub(super) parked: Parked,
    pub(super) owes_sync: bool,
}

/// The request of a member that waits for the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in super::super) enum Parked {
    /// None.
    #[default]
    No,
    /// A join. `stranger` names the connection of a member that was never told its id: should the
    /// connection close, nobody can speak for that member any more.
    Join {
        /// Answers it.
        token: Token,
        /// See above.
        stranger: Option<ConnectionId>,
    },
    /// A sync.
    Sync(Token),
}

/// An id given out (KIP-394) whose joiner has not come back yet.
#[derive(Debug)]
pub(in super::super) struct Pending {
    pub(in super::super) client_id: Arc<str>,
    pub(in super::super) client_host: Arc<str>,
    pub(in super::super) since: Instant,
    pub(in super::super) session: Deadline,
}

impl Member {
    /// A member that has joined nothing yet; its serial is set when it is added.
    pub(in super::super) fn new(
        instance: Option<InstanceId>,
        client_id: Arc<str>,
        client_host: Arc<str>,
        session_timeout: Duration,
        rebalance_timeout: Duration,
        protocols: Arc<[Supported]>,
    ) -> Self {
        Self {
            serial: 0,
            instance,
            client_id,
            client_host,
            session_timeout,
            rebalance_timeout,
            protocols,
            restored: false,
            is_new: false,
            told: None,
            stored: None,
            session: Deadline::unarmed(),
            detection: None,
            connection: None,
            joined_at: Instant::ZERO,
            synced_at: None,
            hold: Hold::default(),
            parked: Parked::No,
            owes_sync: false,
        }
    }

    /// The silence after which it is taken for dead.
    pub(in super::super) fn silence_max(&self) -> Duration {
        self.detection.map_or(self.session_timeout, |it| it.limit(self.session_timeout))
    }

    /// Whether its join is parked.
    pub(in super::super) fn is_joining(&self) -> bool {
        matches!(self.parked, Parked::Join { .. })
    }

    /// Whether its sync is parked.
    pub(in super::super) fn is_syncing(&self) -> bool {
        matches!(self.parked, Parked::Sync(_))
    }

    /// Whether a request of its is parked.
    pub(in super::super) fn is_parked(&self) -> bool {
        self.parked != Parked::No
    }

    /// Whether its join is parked on `connection` and it was never told its id.
    pub(in super::super) fn is_stranger_of(&self, connection: ConnectionId) -> bool {
        matches!(self.parked, Parked::Join { stranger: Some(c), .. } if c == connection)
    }

    /// Whether its join is parked and it was never told its id.
    pub(in super::super) fn is_stranger(&self) -> bool {
        matches!(self.parked, Parked::Join { stranger: Some(_), .. })
    }

    /// Whether it has not synced in this generation.
    pub(in super::super) fn owes_sync(&self) -> bool {
        self.owes_sync
    }

    /// Its metadata for one assignor; empty where it does not support it.
    pub(in super::super) fn metadata(&self, protocol: &str) -> Blob {
        let found = self.protocols.iter().find(|(name, _)| **name == *protocol);
        found.map_or_else(Blob::default, |(_, metadata)| metadata.clone())
    }

    /// Whether it supports exactly these, with the same metadata. Of a member restored from the
    /// log only one assignor is known, and only that one can differ.
    pub(in super::super) fn matches(&self, protocols: &[Protocol<'_>]) -> bool {
        let same = |(name, metadata): &Supported, other: &Protocol<'_>| {
            **name == *other.name && **metadata == *other.metadata
        };
        if self.restored {
            return self.protocols.iter().all(|own| protocols.iter().any(|p| same(own, p)));
        }
        self.protocols.len() == protocols.len()
            && self.protocols.iter().zip(protocols).all(|(own, other)| same(own, other))
    }

    /// The member as the journal remembers it.
    pub(in super::super) fn who(&self, id: &MemberId) -> Who {
        Who {
            member: id.clone(),
            instance: self.instance.clone(),
            client_id: short(&self.client_id),
            client_host: self.client_host.clone(),
        }
    }

    /// Bytes of what it sent about itself.
    pub(in super::super) fn bytes(&self, id: &MemberId) -> usize {
        let protocols: usize =
            self.protocols.iter().map(|(name, metadata)| name.len() + metadata.len()).sum();
        id.len()
            + self.instance.as_ref().map_or(0, |instance| instance.len())
            + self.client_id.len()
            + self.client_host.len()
            + protocols
    }
}

/// The same text, or the beginning of one so long that keeping it would cost.
fn short(text: &Arc<str>) -> Arc<str> {
    match text.len() {
        0..=SHORT_BYTES_MAX => text.clone(),
        _ => Arc::from(cut(text, SHORT_BYTES_MAX)),
    }
}

/// What the journal keeps of a client id.
const SHORT_BYTES_MAX: usize = 255;
