//! The reign of a shard: owning, loading, falling silent, ending.

use super::super::group::{Group, Marks};
use super::super::record::Record;
use super::super::timers::{Deadline, Timer};
use super::super::turn::Services;
use super::{RecordAt, Shard, Stage};
use crate::message::GroupError;
use crate::probe::{self, Fault, Mark};
use ottla_model::{Instant, Now, OwnershipEpoch, Timestamp};

impl Shard {
    /// This shard is ours under `epoch` until `until`. A new epoch begins a reign: everything
    /// known is forgotten and the log must be replayed. The current epoch renews. A shard whose
    /// append failed stays silent.
    pub fn handle_owned(&mut self, epoch: OwnershipEpoch, until: Instant, now: Now) {
        let now = self.observe(now);
        if self.stage == Stage::Failed {
            return;
        }
        let begins = self.stage == Stage::Disowned || epoch != self.epoch;
        if begins {
            self.forget();
            self.stage = Stage::Loading;
            self.epoch = epoch;
            self.silent_from = until - self.services.config.ownership_margin;
            self.lapsed = now.mono >= self.silent_from;
            return;
        }
        self.silent_from = until - self.services.config.ownership_margin;
        if self.lapsed && now.mono < self.silent_from {
            probe::hit(Mark::CoordinatorRenewedLate);
            self.lapsed = false;
            if self.stage == Stage::Active {
                self.start(now);
            }
        }
    }

    /// This shard is no longer ours: everything is forgotten, parked requests are answered.
    pub fn handle_disowned(&mut self) {
        self.forget();
        if self.stage != Stage::Failed {
            self.stage = Stage::Disowned;
        }
    }

    /// One record of the log, in order, between `handle_owned` and `handle_loaded`. Records that
    /// come at any other time are ignored.
    pub fn replay(&mut self, record: Record, at: RecordAt) {
        if self.stage != Stage::Loading {
            return;
        }
        let seed = self.services.config.hash_seed;
        // Transactions will need the offset too: the later of two commits is the one that counts.
        let is_commit = matches!(record, Record::OffsetCommit(_));
        if let Some(group) = self.groups.get_mut(&**record.group()) {
            group.hard.replay(&record);
            if !is_commit {
                group.recorded = at.offset;
            }
            if group.hard.is_void() {
                self.groups.remove(&**record.group());
            }
            return;
        }
        let id = record.group().clone();
        let mut group = Group::new(id.clone(), Marks::default(), seed);
        group.hard.replay(&record);
        if !is_commit {
            group.recorded = at.offset;
        }
        if !group.hard.is_void() {
            self.groups.insert(id, group);
        }
    }

    /// The log is read to its end. Timers start in full; not to be called before the former
    /// owner's T.
    pub fn handle_loaded(&mut self, now: Now) {
        let now = self.observe(now);
        if self.stage == Stage::Loading {
            self.stage = Stage::Active;
            if !self.lapsed {
                self.start(now);
            }
        }
    }

    /// An append failed or its outcome is unknown; see the contract above.
    pub fn handle_append_failed(&mut self) {
        self.forget();
        self.stage = Stage::Failed;
    }

    /// Begins to serve from the hard state alone, with full timers.
    fn start(&mut self, now: Now) {
        let interval = self.services.config.offsets_retention_check_interval;
        let Services { timers, expiry, .. } = &mut self.services;
        timers.arm(expiry, now.mono, interval, || Timer::OffsetExpiry);
        self.each_group(now, |turn| turn.restore());
        if let Some(topics) = self.services.topics.clone() {
            self.each_group(now, |turn| turn.forget_lost_topics(None, &topics));
        }
        self.work_off(now);
    }

    /// Falls silent where ownership has run out: everyone who waits is told, and nothing soft is
    /// remembered, for others may act from now on.
    pub(super) fn observe(&mut self, now: Now) -> Now {
        self.latest = self.latest.max(now.mono);
        let owns = matches!(self.stage, Stage::Loading | Stage::Active);
        let lapses =
            self.latest >= self.silent_from && !probe::has(Fault::CoordinatorOutlivesOwnership);
        if owns && !self.lapsed && lapses {
            self.lapsed = true;
            self.silence();
        }
        Now { mono: self.latest, wall: now.wall }
    }

    /// Forgets all there is, hard state too, and answers whoever waits.
    fn forget(&mut self) {
        self.silence();
        self.services.outbox.forget_appends();
        self.groups.clear();
        self.services.notes.clear();
        self.gone.clear();
    }

    /// Answers whoever waits and forgets all soft state.
    fn silence(&mut self) {
        let now = Now { mono: self.latest, wall: Timestamp::NONE };
        self.each_group(now, |turn| turn.let_everyone_go());
        self.services.outbox.refuse_all(GroupError::NotCoordinator);
        self.services.timers.clear();
        self.services.chores.clear();
        self.services.expiry = Deadline::unarmed();
        self.services.strangers.clear();
        self.services.watch.clear();
        self.services.lifelines.clear();
        debug_assert_eq!(self.services.parked, 0, "every parked request was answered");
        debug_assert!(self.services.held.is_empty(), "every kept answer was given");
    }
}
