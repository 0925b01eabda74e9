//! The way to the coordinator: finding it, and requests under way.
//!
//! Knows nothing of what the requests mean.

use super::verdict::Kind;
use alloc::vec::Vec;
use ottla_model::{Generation, Instant, NodeId};

/// Names one request of one member; the shell hands it back with the answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

/// Which of the two connections to the coordinator a request takes.
///
/// A broker answers one connection's requests in order and keeps joins and syncs until the whole
/// group is there. Whatever must not wait for that long takes the side lane; the shell opens it
/// when it is first used and may close it when it is idle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// Everything, as long as no join or sync is under way.
    Main,
    /// What is sent while a join or sync is under way on the main lane.
    Side,
}

/// Whether the coordinator is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    /// Not known; asked for when something needs it, not before the pause is over.
    Unknown {
        /// No earlier than this.
        retry_at: Instant,
    },
    /// Asked for.
    Finding {
        /// The question.
        call: CallId,
        /// When it counts as lost.
        deadline: Instant,
    },
    /// Known, as far as anybody knows.
    Known(NodeId),
}

/// One request under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) kind: Kind,
    pub(super) lane: Lane,
    pub(super) sent_at: Instant,
    pub(super) deadline: Instant,
    /// The generation it was sent in, if any.
    pub(super) generation: Option<Generation>,
}

/// The requests under way; few at any time.
#[derive(Debug, Default)]
#[cfg_attr(feature = "probe", derive(Clone))]
pub(super) struct Calls {
    last: u64,
    open: Vec<Call>,
}

impl Calls {
    /// A number no request had before.
    pub(super) fn fresh_id(&mut self) -> CallId {
        self.last += 1;
        CallId(self.last)
    }

    pub(super) fn open(&mut self, call: Call) {
        self.open.push(call);
    }

    /// Takes out the request `id`; `None` where it was given up.
    pub(super) fn close(&mut self, id: CallId) -> Option<Call> {
        let at = self.open.iter().position(|call| call.id == id)?;
        Some(self.open.swap_remove(at))
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.open.iter().any(|call| call.kind == kind)
    }

    /// Gives up every request of `kind`: a late answer means nothing.
    pub(super) fn forget(&mut self, kind: Kind) {
        self.open.retain(|call| call.kind != kind);
    }

    pub(super) fn is_using(&self, lane: Lane) -> bool {
        self.open.iter().any(|call| call.lane == lane)
    }

    /// Takes out everything.
    pub(super) fn take_all(&mut self) -> Vec<Call> {
        core::mem::take(&mut self.open)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.iter().map(|call| call.deadline).min()
    }

    /// The lane a request of `kind` takes now.
    pub(super) fn lane(&self, kind: Kind) -> Lane {
        let parks = |kind| matches!(kind, Kind::Join | Kind::Sync);
        let is_parked = self.open.iter().any(|call| parks(call.kind));
        if is_parked && !parks(kind) { Lane::Side } else { Lane::Main }
    }
}

/// For the search through all states of a group.
#[cfg(feature = "probe")]
impl Calls {
    /// What is under way, and the generation each was sent in.
    pub(super) fn fingerprint(&self) -> Vec<(Kind, Option<Generation>)> {
        self.open.iter().map(|call| (call.kind, call.generation)).collect()
    }

    /// The generation each was sent in.
    pub(super) fn generations_mut(&mut self) -> impl Iterator<Item = &mut Option<Generation>> {
        self.open.iter_mut().map(|call| &mut call.generation)
    }
}
