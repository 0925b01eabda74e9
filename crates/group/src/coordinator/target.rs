//! From one epoch to the next: what changes a group's epoch, and the target that follows.
//!
//! An epoch counts versions of members, subscriptions and topics. A target is computed for an
//! epoch, at once for the first change after a while and together for a burst of them
//! (`group.consumer.assignment.interval.ms`), in slices short enough that no other group waits for
//! a large one. Until then the last target stands, which is safe: members move only between what
//! is written. Knows no request.

use super::consumers::{Says, partitions_of};
use super::group::Group;
use super::holds::Stir;
use super::motion::Motion;
use super::output::Index;
use super::reconcile::Slot;
use super::record::{
    ConsumerGroupMetadata, ConsumerGroupMetadataValue, ConsumerGroupPartitionMetadata,
    ConsumerGroupTargetAssignmentMember, ConsumerGroupTargetAssignmentMetadata,
    ConsumerGroupTargetAssignmentMetadataValue, Record,
};
use super::timers::{Due, Timer};
use super::turn::Turn;
use super::view::Trigger;
use crate::assign::server::{MemberFacts, Progress, ServerAssignor, Target};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{Instant, MemberId, TopicName, TopicsView};

impl Turn<'_> {
    /// Members, subscriptions or topics are others now: raises the epoch, and says why.
    pub(super) fn raise_epoch(
        &mut self,
        with: Option<Index>,
        triggers: impl IntoIterator<Item = Trigger>,
    ) -> Option<Index> {
        let metadata_hash = self.subscribed_digest();
        let consumers = self.group.hard.consumers();
        let last = consumers.epoch().max(self.group.generation);
        let epoch = super::front::classic::next(last);
        let group = self.group.id.clone();
        let mut records = Vec::new();
        if consumers.has_topics_record() {
            let record = ConsumerGroupPartitionMetadata { group: group.clone(), value: None };
            records.push(Record::ConsumerGroupPartitionMetadata(record));
        }
        let value = Some(ConsumerGroupMetadataValue { epoch, metadata_hash });
        records.push(Record::ConsumerGroupMetadata(ConsumerGroupMetadata { group, value }));
        let index = self.decide_also(with, records);
        self.group.generation = epoch;
        let now = self.now;
        self.motion().want(now).triggers.extend(triggers);
        index
    }

    /// Computes the target of the present epoch, unless it is not due yet.
    pub(super) fn renew_target(&mut self, with: Option<Index>) -> Option<Index> {
        let consumers = self.group.hard.consumers();
        if consumers.epoch() <= consumers.target_epoch() {
            return with;
        }
        if consumers.is_empty() {
            self.motion().target = None;
            let index = self.write_target(with, Vec::new());
            // Nobody was assigned anything: whoever joins next need not wait.
            self.motion().assigned_at = None;
            return index;
        }
        // What is not known of topics yet must not look as if it were gone.
        let Some(view) = self.services.topics.clone() else { return with };
        if let Some(wait) = self.assignment_wait() {
            self.arm_assignment(wait);
            return with;
        }
        let mut target = match self.motion().target.take() {
            Some(target) => target,
            None => self.target_from_records(&view),
        };
        if target.assignor() != self.elected_assignor() {
            target.set_assignor(self.elected_assignor());
        }
        let progress = target.step(SLICE);
        let changed = match progress {
            Progress::Working => Vec::new(),
            Progress::Settled => target.take_changed(),
        };
        let shares = changed.into_iter().map(|id| {
            let share = target.share(&id);
            (id, share)
        });
        let shares: Vec<_> = shares.collect();
        self.motion().target = Some(target);
        match progress {
            Progress::Working => {
                self.arm_assignment(SLICE_PAUSE);
                with
            }
            Progress::Settled => {
                let records = self.target_records(shares);
                self.write_target(with, records)
            }
        }
    }

    /// The next target's time has come.
    pub(super) fn assignment_surfaced(&mut self, queued: Instant) -> Due {
        let now = self.now.mono;
        let due = self.motion().assignment.surfaced(queued, now);
        if due == Due::Now {
            self.renew_target(None);
        }
        due
    }

    /// Tells the next target, where there is one, what a member is now.
    pub(super) fn tell_target(&mut self, id: &str) {
        let Group { hard, motion, .. } = &mut *self.group;
        let Some(target) = motion.as_mut().and_then(|motion| motion.target.as_mut()) else {
            return;
        };
        match hard.consumers().member(id) {
            None => target.remove_member(id),
            Some((id, member)) => {
                let topics = hard.consumers().topics_of(member.says());
                tell(target, id, member.says(), &topics);
            }
        }
    }

    /// Tells it that these patterns stand for other topics now. Members that say the same are told
    /// together: that costs the group's members and the topics, not one times the other.
    pub(super) fn tell_target_of(&mut self, patterns: &BTreeSet<Arc<str>>) {
        let Group { hard, motion, .. } = &mut *self.group;
        let Some(target) = motion.as_mut().and_then(|motion| motion.target.as_mut()) else {
            return;
        };
        let mut alike: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (id, member) in hard.consumers().members() {
            let says = member.says();
            if let Some(pattern) = says.pattern().filter(|pattern| patterns.contains(*pattern)) {
                alike.entry((pattern, &says.topics)).or_default().push((id, says));
            }
        }
        for members in alike.into_values() {
            let Some((_, says)) = members.first() else { continue };
            let topics = hard.consumers().topics_of(says);
            target.set_topics(members.iter().map(|(id, _)| &***id), &topics);
        }
    }

    /// How much longer the next target waits, if it does.
    fn assignment_wait(&mut self) -> Option<Duration> {
        let own = self.services.settings.of(&self.group.id).consumer_assignment_interval;
        let interval = own.unwrap_or(self.services.config.consumer_assignment_interval);
        let now = self.now.mono;
        let due = self.motion().assigned_at? + interval;
        (due > now).then(|| due.since(now))
    }

    fn arm_assignment(&mut self, wait: Duration) {
        let Group { id, motion, .. } = &mut *self.group;
        let Some(motion) = motion else { return };
        let (deadline, now) = (&mut motion.assignment, self.now.mono);
        self.services.timers.arm(deadline, now, wait, || Timer::Assignment(id.clone()));
    }

    /// The one most members vote for, if it may be used here (any more).
    pub(super) fn elected_assignor(&self) -> ServerAssignor {
        let usable = &self.services.config.consumer_assignors;
        let elected = self.group.hard.consumers().elected();
        let elected = elected.and_then(|name| ServerAssignor::named(name));
        let elected = elected.filter(|elected| usable.contains(elected));
        elected.or(usable.first().copied()).unwrap_or_default()
    }

    /// The next target as it follows from what is written.
    fn target_from_records(&self, view: &Arc<TopicsView>) -> Target {
        let consumers = self.group.hard.consumers();
        let mut target = Target::new(self.elected_assignor(), view);
        for (id, member) in consumers.members() {
            tell(&mut target, id, member.says(), &consumers.topics_of(member.says()));
            target.restore(id, member.target().iter().copied());
        }
        target
    }

    /// A record for each of these members whose target is another one now.
    fn target_records(
        &self,
        shares: Vec<(MemberId, crate::message::consumer::Partitions)>,
    ) -> Vec<Record> {
        let consumers = self.group.hard.consumers();
        let differs = |(id, share): &(MemberId, _)| {
            let member = consumers.member(id);
            member
                .is_some_and(|(_, member)| *share != partitions_of(member.target().iter().copied()))
        };
        let records = shares.into_iter().filter(differs).map(|(member, share)| {
            let group = self.group.id.clone();
            Record::ConsumerGroupTargetAssignmentMember(ConsumerGroupTargetAssignmentMember {
                group,
                member,
                value: Some(share),
            })
        });
        records.collect()
    }

    /// Writes the target of the present epoch: what differs, and that it is whole.
    fn write_target(&mut self, with: Option<Index>, mut records: Vec<Record>) -> Option<Index> {
        let (changed, before) = self.moved_from(&records);
        let value = ConsumerGroupTargetAssignmentMetadataValue {
            epoch: self.group.hard.consumers().epoch(),
            assigned_at: self.now.wall,
        };
        let record = ConsumerGroupTargetAssignmentMetadata {
            group: self.group.id.clone(),
            value: Some(value),
        };
        records.push(Record::ConsumerGroupTargetAssignmentMetadata(record));
        let index = self.decide_also(with, records);
        let now = self.now.mono;
        let motion = self.motion();
        motion.assigned_at = Some(now);
        motion.assignment.disarm();
        motion.moving_since = Some(now);
        motion.arrivals.clear();
        self.stir(Stir::Target);
        self.tell_classics();
        self.note_epoch(changed, before);
        index
    }

    /// The members these records are about, and what each was to own before them.
    fn moved_from(&self, records: &[Record]) -> (BTreeSet<MemberId>, BTreeMap<Slot, MemberId>) {
        let consumers = self.group.hard.consumers();
        let members = records.iter().filter_map(|record| match record {
            Record::ConsumerGroupTargetAssignmentMember(record) => consumers.member(&record.member),
            _ => None,
        });
        let members: Vec<_> = members.collect();
        let changed = members.iter().map(|(id, _)| (*id).clone()).collect();
        let owned = members
            .iter()
            .flat_map(|(id, member)| member.target().iter().map(|slot| (*slot, (*id).clone())));
        (changed, owned.collect())
    }

    /// Writes the epoch that has its target now into the journal.
    fn note_epoch(&mut self, mut changed: BTreeSet<MemberId>, before: BTreeMap<Slot, MemberId>) {
        let departed = core::mem::take(&mut self.motion().departed);
        let Some(wanted) = self.motion().wanted.take() else { return };
        changed.extend(wanted.heirs);
        let mut owners = before;
        owners.extend(wanted.freed);
        if let Some(first) = wanted.triggers.first() {
            *self.services.rebalances.entry(first.cause).or_insert(0) += 1;
        }
        let view = self.services.topics.clone().unwrap_or_default();
        let bound = self.services.config.journal_entries_max;
        let Group { hard, journal, .. } = &mut *self.group;
        let consumers = hard.consumers();
        journal.begin_epoch(consumers, wanted.triggers, wanted.since, self.now.mono, bound);
        journal.note_moves(consumers, &changed, &owners, |id| {
            let shown = view.topic_by_id(id).map(|topic| &topic.name);
            shown.or_else(|| departed.get(&id)).cloned()
        });
        self.write_journal();
    }

    /// What moves this group's members; from now on if nothing did.
    pub(super) fn motion(&mut self) -> &mut Motion {
        let seed = self.services.config.hash_seed;
        self.group.motion.get_or_insert_with(|| alloc::boxed::Box::new(Motion::new(seed)))
    }
}

fn tell(target: &mut Target, id: &MemberId, says: &Says, topics: &[TopicName]) {
    target.set_member(MemberFacts {
        id,
        instance: says.instance.as_ref(),
        rack: says.rack.as_deref(),
        topics,
    });
}

/// Of the work on a target, what is done before others have their turn: some milliseconds.
const SLICE: usize = 100_000;
/// How long others have their turn. Not nothing: who frees a lock and wants it again at once
/// mostly gets it.
pub(super) const SLICE_PAUSE: Duration = Duration::from_millis(1);
