//! What of a group of the consumer protocol is soft: who is late, which target is being worked
//! out, and why. Derived from the hard state when a shard takes over, and lost with it.

use super::holds::{Hold, Stir};
use super::journal::{SLOWEST_MAX, Triggers};
use super::map::{Map, seeded};
use super::matching::Matching;
use super::reconcile::Slot;
use super::timers::Deadline;
use super::view::BlockedOn;
use crate::assign::server::Target;
use crate::message::Patience;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::time::Duration;
use ottla_model::{ConnectionId, Instant, MemberId, Now, TopicId, TopicName};

/// Beside a group's members, what moves them.
#[derive(Debug)]
pub(super) struct Motion {
    /// Every member's pulse.
    pub(super) pulses: Map<MemberId, Pulse>,
    /// The next target, ahead of the hard one while it is worked out. Dropped when in doubt: it is
    /// made anew from the hard state.
    pub(super) target: Option<Target>,
    /// When the next target is worked out, if one is due later.
    pub(super) assignment: Deadline,
    /// When the last target was computed.
    pub(super) assigned_at: Option<Instant>,
    /// What asked for the next target, since when.
    pub(super) wanted: Option<Wanted>,
    /// The digest of the subscribed topics, once it was asked for; see [`digest`](super::digest).
    pub(super) digest: Option<u64>,
    /// Patterns and topics that are to be looked at.
    pub(super) matching: Option<Box<Matching>>,
    /// Since when members move to the last target, until they have all arrived.
    pub(super) moving_since: Option<Instant>,
    /// Who arrived there last, and when; see [`Arrivals`].
    pub(super) arrivals: Arrivals,
    /// Topics that are gone, by name, until a target knows no partition of theirs any more.
    pub(super) departed: BTreeMap<TopicId, TopicName>,
    /// Members that wait for partitions while their heartbeat's answer is kept, and perhaps some
    /// that no longer do.
    pub(super) waiting: BTreeSet<MemberId>,
    /// Who is to be looked at before the turn ends.
    pub(super) stir: Stir,
}

/// The last few members that arrived at a target. They come in the order of time, so these are the
/// slowest so far.
#[derive(Debug, Default)]
pub(super) struct Arrivals(VecDeque<(MemberId, Instant)>);

/// Why there is to be a new target.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) since: Now,
    pub(super) triggers: Triggers,
    /// What members that went since were to own.
    pub(super) freed: BTreeMap<Slot, MemberId>,
    /// Those that came back under these ids and took over what their former selves were to own.
    pub(super) heirs: BTreeSet<MemberId>,
}

/// When a member is late.
#[derive(Debug)]
pub(super) struct Pulse {
    /// When it is taken for dead.
    pub(super) session: Deadline,
    /// When it has taken too long to do what it owes.
    pub(super) revocation: Deadline,
    /// Since when it owes something.
    pub(super) revokes_since: Option<Instant>,
    /// What it owes, if it does: to give something up; a classic member also to join or to sync.
    pub(super) owes: BlockedOn,
    /// Heartbeats in a row that brought it nothing while it owed or awaited something.
    pub(super) idle_beats: u8,
    /// The connection its last request came on.
    pub(super) connection: Option<ConnectionId>,
    /// When it was asked to come back, in the last answer; `None` where none is known of.
    pub(super) told: Option<Duration>,
    /// Since when its next answer is kept, or was.
    pub(super) kept_since: Option<Instant>,
    /// What its client bears.
    pub(super) patience: Patience,
    /// A heartbeat whose answer is kept.
    pub(super) hold: Hold,
}

impl Motion {
    /// What asks for the next target, from `now` on if nothing did.
    pub(super) fn want(&mut self, now: Now) -> &mut Wanted {
        self.wanted.get_or_insert_with(|| Wanted {
            since: now,
            triggers: Triggers::default(),
            freed: BTreeMap::new(),
            heirs: BTreeSet::new(),
        })
    }

    /// Nothing moves.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            pulses: seeded(seed),
            target: None,
            assignment: Deadline::unarmed(),
            assigned_at: None,
            wanted: None,
            digest: None,
            matching: None,
            moving_since: None,
            arrivals: Arrivals::default(),
            departed: BTreeMap::new(),
            waiting: BTreeSet::new(),
            stir: Stir::None,
        }
    }

    /// A member's pulse, from now on if there was none.
    pub(super) fn pulse(&mut self, id: &MemberId) -> &mut Pulse {
        self.pulses.entry_ref(id).or_insert_with(Pulse::new)
    }
}

impl Wanted {
    /// This member goes, and was to own these. Whoever was to own them when the last target was
    /// written down is who they move from, however many have gone since.
    pub(super) fn free(&mut self, id: &MemberId, slots: impl IntoIterator<Item = Slot>) {
        for slot in slots {
            self.freed.entry(slot).or_insert_with(|| id.clone());
        }
    }
}

impl Arrivals {
    /// A member has what it was to have.
    pub(super) fn note(&mut self, id: &MemberId, now: Instant) {
        if self.0.len() == SLOWEST_MAX {
            self.0.pop_front();
        }
        self.0.push_back((id.clone(), now));
    }

    /// There is another target to arrive at.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The last ones, the very last first.
    pub(super) fn last(&self) -> impl Iterator<Item = (&MemberId, Instant)> {
        self.0.iter().rev().map(|(id, at)| (id, *at))
    }
}

impl Pulse {
    fn new() -> Self {
        Self {
            session: Deadline::unarmed(),
            revocation: Deadline::unarmed(),
            revokes_since: None,
            owes: BlockedOn::Revoke,
            idle_beats: 0,
            connection: None,
            told: None,
            kept_since: None,
            patience: Patience::default(),
            hold: Hold::default(),
        }
    }
}
