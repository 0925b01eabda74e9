//! The beginning and the end of a group's time with this protocol: taking over from the log,
//! coming from another protocol, going to another one, ending.

use crate::coordinator::consumers::member_end;
use crate::coordinator::reconcile::State;
use crate::coordinator::record::{
    ConsumerGroupMetadata, ConsumerGroupPartitionMetadata, ConsumerGroupRegularExpression,
    ConsumerGroupTargetAssignmentMetadata, GroupMetadata, Record,
};
use crate::coordinator::timers::Timer;
use crate::coordinator::turn::Turn;
use crate::message::admin::GroupKind;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

impl Turn<'_> {
    /// Derives the soft state from the hard one: every session begins anew, and so does the time
    /// of members that are to give something up.
    pub(in super::super) fn restore_consumers(&mut self) {
        let consumers = self.group.hard.consumers();
        if consumers.is_void() {
            return;
        }
        let default = self.services.config.consumer_session_timeout;
        let members = consumers.members().map(|(id, member)| {
            let owes = matches!(member.position().state, State::Unrevoked { .. });
            (id.clone(), owes.then(|| member.says().rebalance_timeout.unwrap_or(default)))
        });
        let members: Vec<_> = members.collect();
        self.group.generation = consumers.epoch();
        self.group.kind = GroupKind::Consumer;
        self.group.protocol_type = Some(crate::coordinator::group::CONSUMER.into());
        let (now, group) = (self.now.mono, self.group.id.clone());
        for (id, owes) in members {
            self.renew_consumer_session(&id);
            let (Some(timeout), Some(motion)) = (owes, &mut self.group.motion) else { continue };
            let pulse = motion.pulse(&id);
            pulse.revokes_since = Some(now);
            let timer = || Timer::Revocation(group.clone(), id.clone());
            self.services.timers.arm(&mut pulse.revocation, now, timeout, timer);
        }
        self.resume_moving();
        self.consumer_topics_changed(None);
    }

    /// Members that were on their way to the target still are, since as long as the journal knows.
    fn resume_moving(&mut self) {
        if self.group.hard.consumers().has_arrived() {
            return;
        }
        let now = self.now;
        let last = self.group.journal.entries().last().filter(|last| !last.is_over());
        let since = last.map_or(now.mono, |last| {
            let millis = now.wall.0.saturating_sub(last.began_at.0);
            let ago = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
            now.mono - ago.saturating_sub(last.join_took)
        });
        self.motion().moving_since = Some(since);
    }

    /// The records that end a classic group without members, so that it can be one of this
    /// protocol.
    pub(super) fn end_of_classic(&self) -> Vec<Record> {
        let group = self.group.id.clone();
        let metadata = self.group.hard.metadata();
        let end = metadata.map(|_| Record::GroupMetadata(GroupMetadata { group, value: None }));
        end.into_iter().collect()
    }

    /// The records that end this protocol's side of a group, in the order Kafka needs to read them.
    pub(in super::super::super) fn end_of_consumers(&self) -> Vec<Record> {
        let consumers = self.group.hard.consumers();
        let group = self.group.id.clone();
        if consumers.is_void() {
            return Vec::new();
        }
        let (mut records, mut targets, mut says) = (Vec::new(), Vec::new(), Vec::new());
        for (id, _) in consumers.members() {
            let [position, target, word] = member_end(&group, id);
            records.push(position);
            targets.push(target);
            says.push(word);
        }
        records.extend(targets);
        let target = ConsumerGroupTargetAssignmentMetadata { group: group.clone(), value: None };
        records.push(Record::ConsumerGroupTargetAssignmentMetadata(target));
        records.extend(says);
        records.extend(consumers.patterns().keys().map(|regex| {
            Record::ConsumerGroupRegularExpression(ConsumerGroupRegularExpression {
                group: group.clone(),
                regex: regex.clone(),
                value: None,
            })
        }));
        if consumers.has_topics_record() {
            let topics = ConsumerGroupPartitionMetadata { group: group.clone(), value: None };
            records.push(Record::ConsumerGroupPartitionMetadata(topics));
        }
        records.push(Record::ConsumerGroupMetadata(ConsumerGroupMetadata { group, value: None }));
        records
    }

    /// A group without members leaves this protocol for another one.
    pub(in super::super) fn leave_consumer_protocol(&mut self) {
        let mut records = self.end_of_consumers();
        if !records.is_empty() {
            // Else a coordinator that took over before the next generation is hard would know of
            // no earlier one, and tell its number again.
            let value = Some(Arc::new(self.generation_record(|_, _| Default::default())));
            let group = self.group.id.clone();
            records.push(Record::GroupMetadata(GroupMetadata { group, value }));
        }
        self.decide_split(records);
        self.group.motion = None;
    }
}
