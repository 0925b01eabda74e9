//! Of one group of the consumer protocol, exactly what its records say, and what follows from it.
//!
//! Changed by replayed records alone (see [`replay`](super::replay)); beside them it keeps indices
//! that records imply (who holds a partition, who votes for what), so that no request has to look
//! at every member. Knows nothing of time, of who waits or of replies.

mod indices;
mod records;

pub(super) use records::{AWAY, member_end, partitions_of};

use super::reconcile::{Position, Slot};
use super::record::{ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataValue, Record};
use super::record::{
    ConsumerGroupRegularExpressionValue, ConsumerGroupTargetAssignmentMetadataValue,
};
use super::view::Who;
use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use indices::Indices;
use ottla_model::{Generation, MemberId, TopicName};

/// What a member says of itself.
pub(super) type Says = Arc<ConsumerGroupMemberMetadataValue>;

/// The members of one group, its epochs, its target and its patterns.
#[derive(Debug, Default)]
pub(super) struct Consumers {
    epoch: Option<ConsumerGroupMetadataValue>,
    target: Option<ConsumerGroupTargetAssignmentMetadataValue>,
    members: BTreeMap<MemberId, Consumer>,
    patterns: BTreeMap<Arc<str>, ConsumerGroupRegularExpressionValue>,
    /// Whether there is a record of subscribed topics, as Kafka 4.0 wrote them.
    has_topics_record: bool,
    indices: Indices,
}

/// One member. A log may speak of what a member holds before it says who that is, never for long.
#[derive(Debug, Default)]
pub(super) struct Consumer {
    says: Option<Says>,
    target: Option<BTreeSet<Slot>>,
    position: Option<Position>,
}

impl Consumers {
    /// Of a group that does not speak the protocol.
    pub(super) fn none() -> &'static Self {
        static NONE: Consumers = Consumers {
            epoch: None,
            target: None,
            members: BTreeMap::new(),
            patterns: BTreeMap::new(),
            has_topics_record: false,
            indices: Indices::NONE,
        };
        &NONE
    }

    /// Applies one record; those of other kinds say nothing here. Applying it twice is applying it
    /// once.
    pub(super) fn replay(&mut self, record: &Record) {
        match record {
            Record::OffsetCommit(_) | Record::GroupMetadata(_) => {}
            Record::ConsumerGroupMetadata(record) => self.epoch = record.value,
            Record::ConsumerGroupPartitionMetadata(record) => {
                self.has_topics_record = record.value.is_some();
            }
            Record::ConsumerGroupTargetAssignmentMetadata(record) => self.target = record.value,
            Record::ConsumerGroupRegularExpression(record) => {
                self.match_pattern(&record.regex, record.value.clone());
            }
            Record::ConsumerGroupMemberMetadata(record) => {
                let says = record.value.clone();
                self.change(&record.member, |id, member, indices| {
                    indices.leave(id, member);
                    member.says = says;
                    indices.enter(id, member);
                });
            }
            Record::ConsumerGroupTargetAssignmentMember(record) => {
                let target = record.value.as_ref().map(records::slots);
                self.change(&record.member, |_, member, _| member.target = target);
            }
            Record::ConsumerGroupCurrentMemberAssignment(record) => {
                let position = record.value.as_deref().map(records::position);
                self.change(&record.member, |id, member, indices| {
                    indices.leave_position(id, member);
                    member.position = position;
                    indices.enter_position(id, member);
                });
            }
        }
    }

    fn match_pattern(
        &mut self,
        text: &Arc<str>,
        value: Option<ConsumerGroupRegularExpressionValue>,
    ) {
        let before = self.patterns.remove(text);
        if let Some(mut value) = value {
            value.topics.sort_unstable();
            value.topics.dedup();
            value.topics.iter().for_each(|topic| self.indices.subscribe(topic));
            self.patterns.insert(text.clone(), value);
        }
        let topics = before.iter().flat_map(|before| &before.topics);
        topics.for_each(|topic| self.indices.unsubscribe(topic));
    }

    fn change(
        &mut self,
        id: &MemberId,
        change: impl FnOnce(&MemberId, &mut Consumer, &mut Indices),
    ) {
        if let Some(member) = self.members.get_mut(id) {
            change(id, member, &mut self.indices);
            if member.is_void() {
                self.members.remove(id);
            }
            return;
        }
        let mut member = Consumer::default();
        change(id, &mut member, &mut self.indices);
        if !member.is_void() {
            self.members.insert(id.clone(), member);
        }
    }

    /// Whether no record speaks of such a group (any more).
    pub(super) fn is_void(&self) -> bool {
        self.epoch.is_none()
            && self.target.is_none()
            && self.members.is_empty()
            && self.patterns.is_empty()
            && !self.has_topics_record
    }

    /// Whether it has no members.
    pub(super) fn is_empty(&self) -> bool {
        self.indices.members() == 0
    }

    /// How many members it has.
    pub(super) fn len(&self) -> usize {
        self.indices.members()
    }

    /// How many of its members speak the classic protocol.
    pub(super) fn classics(&self) -> usize {
        self.indices.classics()
    }

    /// How many of those support a classic assignor.
    pub(super) fn support_of(&self, assignor: &str) -> usize {
        self.indices.support.get(assignor).copied().unwrap_or_default() as usize
    }

    /// Whether some classic assignor is common to all of those.
    pub(super) fn has_common_classic_assignor(&self) -> bool {
        self.indices.support.values().any(|count| *count as usize == self.classics())
    }

    /// Bytes of what its members say of themselves.
    pub(super) fn bytes(&self) -> usize {
        self.indices.bytes()
    }

    /// The group's epoch; 0 before the first.
    pub(super) fn epoch(&self) -> Generation {
        self.epoch.map_or(Generation(0), |value| value.epoch)
    }

    /// The digest of the subscribed topics at that epoch.
    pub(super) fn metadata_hash(&self) -> i64 {
        self.epoch.map_or(0, |value| value.metadata_hash)
    }

    /// The epoch of the target; 0 before the first.
    pub(super) fn target_epoch(&self) -> Generation {
        self.target.map_or(Generation(0), |value| value.epoch)
    }

    /// Whether there is a record that only Kafka 4.0 would write.
    pub(super) fn has_topics_record(&self) -> bool {
        self.has_topics_record
    }

    /// A member, and its own copy of its id.
    pub(super) fn member(&self, id: &str) -> Option<(&MemberId, &Consumer)> {
        self.members.get_key_value(id).filter(|(_, member)| member.says.is_some())
    }

    /// Members by id.
    pub(super) fn members(&self) -> impl Iterator<Item = (&MemberId, &Consumer)> {
        self.members.iter().filter(|(_, member)| member.says.is_some())
    }

    /// The member that holds this instance id.
    pub(super) fn holder(&self, instance: &str) -> Option<&MemberId> {
        self.indices.instances.get(instance)
    }

    /// The member that holds a partition, in the sense of [`Position::holds`].
    pub(super) fn owner(&self, slot: Slot) -> Option<&MemberId> {
        self.indices.owners.get(&slot)
    }

    /// The assignor most members vote for; of equals the first by name.
    pub(super) fn elected(&self) -> Option<&Arc<str>> {
        // `max_by_key` keeps the last of equals.
        self.indices.votes.iter().rev().max_by_key(|(_, votes)| **votes).map(|(name, _)| name)
    }

    /// Patterns some member subscribes to, and how many do.
    pub(super) fn subscribed_patterns(&self) -> &BTreeMap<Arc<str>, u32> {
        &self.indices.patterns
    }

    /// Every pattern with the topics it stood for when it was last matched.
    pub(super) fn patterns(&self) -> &BTreeMap<Arc<str>, ConsumerGroupRegularExpressionValue> {
        &self.patterns
    }

    /// Whether a member subscribes to `topic`, by name or by pattern.
    pub(super) fn is_subscribed(&self, topic: &str) -> bool {
        self.indices.topics.contains_key(topic)
    }

    /// Every topic that some member subscribes to, by name or by pattern, ascending.
    pub(super) fn subscribed_topics(&self) -> impl ExactSizeIterator<Item = &TopicName> {
        self.indices.topics.keys()
    }

    /// Those of these topics that somebody subscribes to, ascending. Costs the shorter list.
    pub(super) fn subscribed_among<'a>(
        &'a self,
        topics: &'a BTreeSet<TopicName>,
    ) -> impl Iterator<Item = &'a TopicName> {
        let own = &self.indices.topics;
        let (few, many) = match topics.len() <= own.len() {
            true => (Some(topics.iter().filter(|topic| own.contains_key(*topic))), None),
            false => (None, Some(own.keys().filter(|topic| topics.contains(*topic)))),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }

    /// From now on it is kept which topics become subscribed and which no longer are.
    pub(super) fn watch_subscriptions(&mut self) {
        self.indices.toggled = Some(Vec::new());
    }

    /// Topics that became subscribed (true) or no longer are, in order, since this was last asked.
    pub(super) fn take_toggled(&mut self) -> Vec<(TopicName, bool)> {
        self.indices.toggled.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// The topics a member subscribes to, by name and by pattern, each once, ascending. Nothing is
    /// copied for a member that does only the one or the other, as nearly all do.
    pub(super) fn topics_of<'a>(&'a self, says: &'a Says) -> Cow<'a, [TopicName]> {
        let pattern = says.pattern().and_then(|pattern| self.patterns.get(pattern));
        let matched = pattern.map_or(&[][..], |pattern| &pattern.topics);
        if says.topics.is_empty() {
            return Cow::Borrowed(matched);
        }
        // Ours are in order; what Kafka wrote need not be.
        if matched.is_empty() && says.topics.is_sorted_by(|a, b| a < b) {
            return Cow::Borrowed(&says.topics);
        }
        let topics: BTreeSet<_> = says.topics.iter().chain(matched).cloned().collect();
        Cow::Owned(topics.into_iter().collect())
    }

    /// Whether every member is where the target wants it.
    pub(super) fn has_arrived(&self) -> bool {
        let settled = self.indices.settled.get(&self.target_epoch());
        settled.copied().unwrap_or_default() as usize == self.len()
    }
}

impl Consumer {
    /// What it says of itself.
    pub(super) fn says(&self) -> &Says {
        self.says.as_ref().expect("only members that said something are shown")
    }

    /// Whether it speaks the classic protocol.
    pub(super) fn is_classic(&self) -> bool {
        self.says().classic.is_some()
    }

    /// Where it stands; at the beginning before it was ever told anything.
    pub(super) fn position(&self) -> &Position {
        self.position.as_ref().unwrap_or(&BEGINNING)
    }

    /// What it should own.
    pub(super) fn target(&self) -> &BTreeSet<Slot> {
        self.target.as_ref().unwrap_or(&NOTHING)
    }

    /// The member as the journal remembers it.
    pub(super) fn who(&self, id: &MemberId) -> Who {
        let says = self.says();
        Who {
            member: id.clone(),
            instance: says.instance.clone(),
            client_id: says.client_id.clone(),
            client_host: says.client_host.clone(),
        }
    }

    fn is_void(&self) -> bool {
        self.says.is_none() && self.target.is_none() && self.position.is_none()
    }
}

impl ConsumerGroupMemberMetadataValue {
    /// The pattern it subscribes to, if it does.
    pub(super) fn pattern(&self) -> Option<&Arc<str>> {
        self.regex.as_ref().filter(|regex| !regex.is_empty())
    }
}

static NOTHING: BTreeSet<Slot> = BTreeSet::new();
static BEGINNING: Position = Position {
    epoch: Generation(0),
    previous_epoch: Generation(0),
    assigned: BTreeMap::new(),
    state: super::reconcile::State::Stable,
};
