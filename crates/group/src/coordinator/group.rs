//! One group: its hard state, and the soft state every protocol front works on.

use super::barrier::Phase;
use super::journal::Journal;
use super::motion::Motion;
use super::output::Index;
use super::replay::Hard;
use super::roster::Roster;
use super::timers::Deadline;
use crate::message::admin::{GroupKind, GroupState};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use ottla_model::{Generation, GroupId, Offset, TopicName};

/// One group.
///
/// `hard` is what survives; everything else is soft: it is derived from `hard` when the shard
/// takes over (see [`restore`](super::front::classic::restore)) and lost with it. In
/// [`Phase::Stable`] and [`Phase::Empty`] the two agree; between generations the soft side runs
/// ahead, and a restart falls back to the last generation.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) id: GroupId,
    /// Which protocol its members speak.
    pub(super) kind: GroupKind,
    pub(super) hard: Hard,
    pub(super) roster: Roster,
    pub(super) phase: Phase,
    /// The end of the members' time to join (while preparing) or to sync (after).
    pub(super) barrier: Deadline,
    /// The generation in force, or the last one. Rises over the group's whole life.
    pub(super) generation: Generation,
    /// Whether no generation began since it was restored from the log: the coordinator before may
    /// have told members of one that is not in it.
    pub(super) is_restored: bool,
    /// Whether its leader may be another process than the one that assigned, so that it cannot
    /// tell whether topics changed since.
    pub(super) is_led_anew: bool,
    /// `consumer`, `connect`, ...; `None` until it has had a member.
    pub(super) protocol_type: Option<Arc<str>>,
    /// The assignor in force.
    pub(super) protocol: Option<Arc<str>>,
    /// Topics its members subscribe to, where that can be told.
    pub(super) subscribed: Option<BTreeSet<TopicName>>,
    /// What moves the members of a group of the consumer protocol.
    pub(super) motion: Option<Box<Motion>>,
    pub(super) marks: Marks,
    pub(super) journal: Journal,
    /// Where its last record lies that the load found.
    pub(super) recorded: Offset,
}

/// The last decisions about a group: what its answers wait for.
///
/// Commits raise `offsets` alone, so they delay no heartbeat. A decision that makes the group
/// exist or cease to exist raises both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Marks {
    pub(super) membership: Index,
    pub(super) offsets: Index,
}

impl Group {
    /// A group nobody has spoken of yet; `marks` tell of an earlier group of that id.
    pub(super) fn new(id: GroupId, marks: Marks, seed: u64) -> Self {
        Self {
            id,
            kind: GroupKind::Classic,
            hard: Hard::default(),
            roster: Roster::new(seed),
            phase: Phase::Empty,
            barrier: Deadline::unarmed(),
            generation: Generation(0),
            is_restored: false,
            is_led_anew: false,
            protocol_type: None,
            protocol: None,
            subscribed: None,
            motion: None,
            marks,
            journal: Journal::default(),
            recorded: Offset(-1),
        }
    }

    /// Forgets everything but the hard state and what answers wait for.
    pub(super) fn forget_soft(&mut self, seed: u64) {
        let hard = core::mem::take(&mut self.hard);
        let mut journal = core::mem::take(&mut self.journal);
        journal.forget_unwritten();
        *self = Self { hard, journal, ..Self::new(self.id.clone(), self.marks, seed) };
    }

    /// Whether it has no members.
    pub(super) fn is_empty(&self) -> bool {
        match self.kind {
            GroupKind::Classic | GroupKind::Register => self.phase.is_empty(),
            GroupKind::Consumer => self.hard.consumers().is_empty(),
        }
    }

    /// The generation a member names: the one in force, unless it was told another one when it was
    /// a member of a group of the consumer protocol.
    pub(super) fn generation_of(&self, member: &str) -> Generation {
        let told = self.roster.member(member).and_then(|member| member.told);
        told.unwrap_or(self.generation)
    }

    /// The state Kafka's tools know it by.
    pub(super) fn state(&self) -> GroupState {
        if self.kind != GroupKind::Consumer {
            return self.phase.state();
        }
        let consumers = self.hard.consumers();
        if consumers.is_empty() {
            GroupState::Empty
        } else if consumers.epoch() > consumers.target_epoch() {
            GroupState::Assigning
        } else if consumers.has_arrived() {
            GroupState::Stable
        } else {
            GroupState::Reconciling
        }
    }

    /// Whether nothing is left of it, neither on record nor in memory.
    pub(super) fn is_void(&self) -> bool {
        self.hard.is_void()
            && self.phase.is_empty()
            && self.roster.is_empty()
            && self.roster.pending_len() == 0
    }

    /// Whether its members exchange subscriptions and assignments in the consumer's format.
    pub(super) fn is_consumer(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// Whether a member subscribes to `topic`. Where subscriptions cannot be read, a group of
    /// consumers may subscribe to anything.
    pub(super) fn is_subscribed(&self, topic: &str) -> bool {
        match &self.subscribed {
            _ if self.kind == GroupKind::Consumer => self.hard.consumers().is_subscribed(topic),
            Some(topics) => topics.contains(topic),
            None => self.is_consumer(),
        }
    }
}

impl Marks {
    /// The later of the two.
    pub(super) fn latest(self) -> Index {
        self.membership.max(self.offsets)
    }
}

/// The protocol type of Kafka's consumers.
pub(super) const CONSUMER: &str = "consumer";
