//! What a member says of itself, and what becomes of that: its record, the patterns of the group,
//! the votes. The first step of a heartbeat.

use super::place::Place;
use crate::coordinator::consumers::{Says, member_end, partitions_of};
use crate::coordinator::output::Index;
use crate::coordinator::pattern::Pattern;
use crate::coordinator::reconcile::{Position, Slot, State};
use crate::coordinator::record::{
    ConsumerGroupMemberMetadata, ConsumerGroupMemberMetadataValue, ConsumerGroupRegularExpression,
    ConsumerGroupTargetAssignmentMember, Record,
};
use crate::coordinator::turn::{Call, Turn};
use crate::coordinator::view::{Cause, Trigger};
use crate::message::GroupError;
use crate::message::admin::GroupKind;
use crate::message::consumer::Heartbeat;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{Generation, InstanceId, MemberId, TopicName};

/// What a heartbeat's first step did.
pub(super) struct Subscribed {
    /// Its decision, if it took one.
    pub(super) index: Option<Index>,
    /// Whether the member wants other topics than before.
    pub(super) is_changed: bool,
}

impl Turn<'_> {
    /// Writes down what the member says, and raises the epoch if others are concerned.
    pub(super) fn subscribe_consumer(
        &mut self,
        call: &Call<'_>,
        ask: &Heartbeat<'_>,
        id: &MemberId,
        place: &Place,
        with: Option<Index>,
    ) -> Result<Subscribed, GroupError> {
        let before = self.said_before(id, place);
        let is_known = matches!(place, Place::Known);
        if is_known && before.as_deref().is_some_and(|before| says_nothing_new(call, ask, before)) {
            return Ok(Subscribed { index: None, is_changed: false });
        }
        let says = described(call, ask, before.as_deref());
        self.write_down(says, id, place, with)
    }

    /// What a member, or its former self, said of itself last.
    fn said_before(&self, id: &MemberId, place: &Place) -> Option<Says> {
        let member = self.group.hard.consumers().member(place.id_before(id));
        member.map(|(_, member)| member.says().clone())
    }

    /// Writes down what a member says of itself, with an earlier decision, if it differs.
    pub(super) fn write_down(
        &mut self,
        says: ConsumerGroupMemberMetadataValue,
        id: &MemberId,
        place: &Place,
        with: Option<Index>,
    ) -> Result<Subscribed, GroupError> {
        let before = self.said_before(id, place);
        let is_known = matches!(place, Place::Known);
        if before.as_deref() == Some(&says) && is_known {
            return Ok(Subscribed { index: None, is_changed: false });
        }
        let wants_the_same = before.as_ref().is_some_and(|before| {
            before.topics == says.topics && before.pattern() == says.pattern()
        });
        let elected = self.group.hard.consumers().elected().cloned();
        self.check_room_for(
            &says,
            id,
            before.as_deref().map(|before| (place.id_before(id), before)),
        )?;
        let mut records = self.entering(&says, id, place)?;
        records.extend(self.pattern_records(before.as_deref(), &says)?);
        let inherited = self.inherited(place);
        let index = self.decide_with(with, records)?;
        self.enter_protocol();
        if let Place::Replaces(former) = place {
            self.refuse_held(former, GroupError::FencedInstanceId);
            self.forget_pulse(former);
            self.tell_target(former);
        }
        self.tell_target(id);
        let cause = match place {
            Place::New => Some(Cause::Joined),
            Place::Replaces(_) if !wants_the_same => Some(Cause::StaticRejoined),
            _ if !wants_the_same => Some(Cause::MetadataChanged),
            _ if elected.as_ref() != self.group.hard.consumers().elected() => {
                Some(Cause::AssignorChanged)
            }
            _ => None,
        };
        let replaced = match place {
            Place::Replaces(former) => Some(former.clone()),
            Place::New | Place::Known => None,
        };
        if let Some(former) = replaced.as_ref().filter(|_| cause.is_some()) {
            self.note_heir(former, id, inherited);
        }
        let trigger = cause.map(|cause| self.consumer_trigger(cause, id));
        let index = match trigger.map(|trigger| Trigger { replaced, ..trigger }) {
            Some(trigger) => self.raise_epoch_with_pattern(index, trigger, id),
            None if self.is_unseen() => self.raise_epoch(Some(index), None),
            None => Some(index),
        };
        Ok(Subscribed { index, is_changed: !wants_the_same })
    }

    /// What a member takes over from its former self.
    fn inherited(&self, place: &Place) -> Vec<Slot> {
        let Place::Replaces(former) = place else { return Vec::new() };
        let former = self.group.hard.consumers().member(former);
        former.map(|(_, member)| member.target().iter().copied().collect()).unwrap_or_default()
    }

    /// Remembers, for the journal, whose these were to be.
    fn note_heir(&mut self, former: &MemberId, heir: &MemberId, slots: Vec<Slot>) {
        let now = self.now;
        let wanted = self.motion().want(now);
        wanted.free(former, slots);
        wanted.heirs.insert(heir.clone());
    }

    /// Whether the epoch began without a look at the topics, as that of a classic group does which
    /// became one of this protocol: they may have changed since its leader looked.
    fn is_unseen(&self) -> bool {
        self.group.hard.consumers().metadata_hash() == 0 && self.services.topics.is_some()
    }

    /// Raises the epoch for what a member brought. A pattern that is new is matched before, if
    /// that takes no longer than others can wait.
    fn raise_epoch_with_pattern(
        &mut self,
        with: Index,
        trigger: Trigger,
        id: &MemberId,
    ) -> Option<Index> {
        let consumers = self.group.hard.consumers();
        let pattern = consumers.member(id).and_then(|(_, member)| member.says().pattern());
        let is_new = pattern.is_some_and(|pattern| !consumers.patterns().contains_key(pattern));
        let matched = match is_new {
            true => self.pattern_brought(with, trigger.clone()),
            false => None,
        };
        match matched {
            Some(matched) => {
                let triggers = core::iter::once(trigger).chain(matched.triggers);
                self.raise_epoch(matched.index, triggers)
            }
            None => self.raise_epoch(Some(with), Some(trigger)),
        }
    }

    /// The records that make a member of `id` what it says it is. One that takes a former self's
    /// place takes its target and what it held too, at the beginning of its epochs.
    fn entering(
        &self,
        says: &ConsumerGroupMemberMetadataValue,
        id: &MemberId,
        place: &Place,
    ) -> Result<Vec<Record>, GroupError> {
        let group = self.group.id.clone();
        let mut records = self.end_of_classic();
        let says = Record::ConsumerGroupMemberMetadata(ConsumerGroupMemberMetadata {
            group: group.clone(),
            member: id.clone(),
            value: Some(Arc::new(says.clone())),
        });
        let Place::Replaces(former) = place else {
            records.push(says);
            return Ok(records);
        };
        let member = self.group.hard.consumers().member(former);
        let (_, former_self) = member.ok_or(GroupError::UnknownMemberId)?;
        records.extend(member_end(&group, former));
        records.push(says);
        let target = ConsumerGroupTargetAssignmentMember {
            group: group.clone(),
            member: id.clone(),
            value: Some(partitions_of(former_self.target().iter().copied())),
        };
        records.push(Record::ConsumerGroupTargetAssignmentMember(target));
        records.push(revived(former_self.position()).to_record(&group, id));
        Ok(records)
    }

    fn check_room_for(
        &self,
        says: &ConsumerGroupMemberMetadataValue,
        id: &MemberId,
        before: Option<(&MemberId, &ConsumerGroupMemberMetadataValue)>,
    ) -> Result<(), GroupError> {
        let own = before.map_or(0, |(id, before)| id.len() + before.estimated_bytes());
        let others = self.group.hard.consumers().bytes() - own;
        let bound = self.services.config.group_metadata_bytes_max;
        match others + id.len() + says.estimated_bytes() > bound {
            true => Err(GroupError::GroupMaxSizeReached),
            false => Ok(()),
        }
    }

    /// A pattern that is new must make sense, one that nobody has any more ends.
    fn pattern_records(
        &self,
        before: Option<&ConsumerGroupMemberMetadataValue>,
        now: &ConsumerGroupMemberMetadataValue,
    ) -> Result<Vec<Record>, GroupError> {
        let (before, now) = (before.and_then(|before| before.pattern()), now.pattern());
        if before == now {
            return Ok(Vec::new());
        }
        let mut records = Vec::new();
        records.extend(before.and_then(|before| self.pattern_end(before, 1)));
        if let Some(pattern) = now
            && !self.group.hard.consumers().patterns().contains_key(pattern)
        {
            Pattern::parse(pattern)?;
        }
        Ok(records)
    }

    /// The record that ends a pattern, if no more than `members` subscribe to it.
    pub(super) fn pattern_end(&self, pattern: &Arc<str>, members: u32) -> Option<Record> {
        let consumers = self.group.hard.consumers();
        let times = consumers.subscribed_patterns().get(pattern).copied().unwrap_or_default();
        let ends = times <= members && consumers.patterns().contains_key(pattern);
        ends.then(|| {
            Record::ConsumerGroupRegularExpression(ConsumerGroupRegularExpression {
                group: self.group.id.clone(),
                regex: pattern.clone(),
                value: None,
            })
        })
    }

    /// From here on the group is one of the consumer protocol.
    pub(super) fn enter_protocol(&mut self) {
        if self.group.kind != GroupKind::Consumer {
            self.group.roster.break_promises();
            self.group.kind = GroupKind::Consumer;
            self.group.protocol_type = Some(Arc::from(crate::coordinator::group::CONSUMER));
            self.group.protocol = None;
            self.group.subscribed = None;
        }
    }
}

/// Whether a heartbeat only says that its member is alive, as nearly all do: found out without
/// looking at any list.
fn says_nothing_new(
    call: &Call<'_>,
    ask: &Heartbeat<'_>,
    before: &ConsumerGroupMemberMetadataValue,
) -> bool {
    let is_same = |new: Option<&str>, old: Option<&str>| new.is_none() || new == old;
    ask.topics.is_none()
        && is_same(ask.regex, before.regex.as_deref())
        && is_same(ask.rack, before.rack.as_deref())
        && is_same(ask.assignor, before.assignor.as_deref())
        && is_same(ask.instance, before.instance.as_deref())
        && ask.rebalance_timeout.is_none_or(|new| Some(new) == before.rebalance_timeout)
        && *call.client.id == *before.client_id
        && *call.client.host == *before.client_host
}

/// What a member says of itself now: what its heartbeat leaves out is as it was before.
fn described(
    call: &Call<'_>,
    ask: &Heartbeat<'_>,
    before: Option<&ConsumerGroupMemberMetadataValue>,
) -> ConsumerGroupMemberMetadataValue {
    let text = |new: Option<&str>, old: Option<Arc<str>>| new.map(Arc::from).or(old);
    let (instance, rack, topics, regex, rebalance_timeout, assignor) = match before.cloned() {
        Some(b) => (b.instance, b.rack, b.topics, b.regex, b.rebalance_timeout, b.assignor),
        None => (None, None, Vec::new(), None, None, None),
    };
    ConsumerGroupMemberMetadataValue {
        instance: ask.instance.map(InstanceId::from).or(instance),
        rack: text(ask.rack, rack),
        client_id: Arc::from(call.client.id),
        client_host: Arc::from(call.client.host),
        topics: ask.topics.as_ref().map_or(topics, |topics| {
            let topics: BTreeSet<&str> = topics.iter().copied().collect();
            topics.into_iter().map(TopicName::from).collect()
        }),
        regex: text(ask.regex, regex).filter(|regex| !regex.is_empty()),
        rebalance_timeout: ask.rebalance_timeout.or(rebalance_timeout),
        assignor: text(ask.assignor, assignor),
        classic: None,
    }
}

/// Where a static member that was away begins again: with what it held, in no epoch.
pub(super) fn revived(position: &Position) -> Position {
    Position {
        epoch: Generation(0),
        previous_epoch: Generation(0),
        assigned: position.assigned.clone(),
        state: State::Stable,
    }
}
