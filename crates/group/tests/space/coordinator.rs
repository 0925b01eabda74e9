//! The coordinator of the space: the shipped shard, made anew from its records for each request.
//!
//! So every state is one that a new coordinator finds in the log, and no state depends on what
//! only a living one remembers. Epochs are counted from the group's, which is always [`BASE`].

use crate::shape::{hashed, nameless};
use crate::world::{PARTITIONS, all_of, topic_bit};
use ottla_group::coordinator::record::{
    ConsumerGroupCurrentMemberAssignmentValue, Record, StoredState,
};
use ottla_group::coordinator::{Config, RecordAt, Shard};
use ottla_group::message::{Ask, Client, Reply, Request, Token};
use ottla_model::{
    ConnectionId, Generation, Instant, MemberId, Now, Offset, OwnershipEpoch, PartitionId,
    Timestamp, TopicId, TopicsView,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub const GROUP: &str = "g";
/// The group's epoch, however many it had.
pub const BASE: i32 = 100;

/// Partitions, a bit for each.
pub type Slots = u8;

/// One state of the log, and what it says.
pub struct Coordinator {
    records: BTreeMap<Key, Record>,
    pub parts: BTreeMap<MemberId, Part>,
    pub epoch: i32,
    pub target_epoch: i32,
    /// Tells it from all others.
    pub key: u64,
}

/// Of one member, what the log says.
#[derive(Default)]
pub struct Part {
    /// Bits of the topics it wants.
    pub topics: usize,
    pub target: Slots,
    pub epoch: i32,
    pub holds: Slots,
    pub is_settled: bool,
    /// Equal for members that stand alike, whoever they are.
    pub shape: u64,
}

/// A record of a group, by what it is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Epoch,
    Target,
    Says(MemberId),
    Wants(MemberId),
    Stands(MemberId),
}

/// What a request came to: the next state, the answer, and by how much epochs are counted anew.
pub struct Answered {
    pub next: Arc<Coordinator>,
    pub reply: Reply,
    pub shift: i32,
}

impl Coordinator {
    /// Of a group nobody spoke of yet.
    pub fn void() -> Self {
        Self::of(BTreeMap::new())
    }

    /// A member asks, or an administrator speaks for one.
    pub fn answer(&self, ask: Ask<'_>, view: &Arc<TopicsView>) -> Result<Answered, String> {
        let now = Now { mono: Instant::from_millis(1), wall: Timestamp(1) };
        let config = Config {
            consumer_session_timeout: Duration::from_secs(1_000_000),
            consumer_assignment_interval: Duration::ZERO,
            ..Config::default()
        };
        let mut shard = Shard::new(config, PartitionId(0));
        shard.handle_owned(OwnershipEpoch(1), Instant::from_nanos(u64::MAX), now);
        for (offset, record) in (0..).zip(self.records.values()) {
            let at = RecordAt { offset: Offset(offset), appended_at: Timestamp(1) };
            shard.replay(record.clone(), at);
        }
        shard.handle_topics(Arc::clone(view), now);
        shard.handle_loaded(now);
        if shard.poll_append().is_some() {
            return Err("a coordinator that took over had something to write".into());
        }
        let client = Client { id: "c", host: "/h", ..Client::default() };
        let connection = ConnectionId(1);
        shard.handle_request(Request {
            token: Token(1),
            connection,
            client,
            fresh: [7; 16],
            now,
            body: ask,
        });
        let mut records = self.records.clone();
        while let Some(append) = shard.poll_append() {
            append.records.into_iter().for_each(|record| write(&mut records, record));
        }
        shard.handle_durable(shard.last_index());
        let reply = shard.poll_reply().ok_or("nobody was answered")?.reply;
        let epoch = epoch_of(&records);
        if epoch < self.epoch || target_epoch_of(&records) < self.target_epoch.min(epoch) {
            return Err("an epoch went back".into());
        }
        let shift = if epoch == 0 { 0 } else { BASE - epoch };
        records.values_mut().for_each(|record| rebase(record, shift));
        let next = Arc::new(Self::of(records));
        next.check()?;
        Ok(Answered { next, reply: shifted(reply, shift), shift })
    }

    /// No partition is held twice or in two targets, and the target is what its members want.
    fn check(&self) -> Result<(), String> {
        let (mut held, mut targets, mut wanted) = (0, 0, 0);
        for part in self.parts.values() {
            if held & part.holds != 0 {
                return Err("a partition is held twice".into());
            }
            if targets & part.target != 0 {
                return Err("a partition is in two targets".into());
            }
            if part.epoch > self.target_epoch {
                return Err("a member is ahead of the target".into());
            }
            (held, targets, wanted) =
                (held | part.holds, targets | part.target, wanted | part.topics);
        }
        let is_whole = targets == all_of(wanted) && self.target_epoch == self.epoch;
        match is_whole || self.parts.is_empty() {
            true => Ok(()),
            false => Err("a target is not what its members want".into()),
        }
    }

    fn of(records: BTreeMap<Key, Record>) -> Self {
        let mut parts: BTreeMap<MemberId, Part> = BTreeMap::new();
        let mut shapes: BTreeMap<MemberId, String> = BTreeMap::new();
        for record in records.values() {
            let id = match record {
                Record::ConsumerGroupMemberMetadata(it) => &it.member,
                Record::ConsumerGroupTargetAssignmentMember(it) => &it.member,
                Record::ConsumerGroupCurrentMemberAssignment(it) => &it.member,
                _ => continue,
            };
            parts.entry(id.clone()).or_default().read(record);
            *shapes.entry(id.clone()).or_default() += &nameless(record, id);
        }
        for (id, shape) in shapes {
            parts.entry(id).or_default().shape = hashed(&shape);
        }
        let key = hashed(&format!("{:?}", records.values().collect::<Vec<_>>()));
        let (epoch, target_epoch) = (epoch_of(&records), target_epoch_of(&records));
        Self { epoch, target_epoch, records, parts, key }
    }
}

impl Part {
    fn read(&mut self, record: &Record) {
        match record {
            Record::ConsumerGroupMemberMetadata(it) => {
                let says = it.value.iter().flat_map(|value| &value.topics);
                self.topics = says.fold(0, |all, topic| all | topic_bit(topic));
            }
            Record::ConsumerGroupTargetAssignmentMember(it) => {
                self.target = it.value.as_deref().map_or(0, slots);
            }
            Record::ConsumerGroupCurrentMemberAssignment(it) => {
                let Some(value) = &it.value else { return };
                self.epoch = value.epoch.0;
                self.is_settled = value.state == StoredState::Stable;
                let held = value.assigned.iter().chain(&value.revoking);
                self.holds =
                    held.fold(0, |all, held| all | slots(&[(held.topic, held.partitions.clone())]));
            }
            _ => {}
        }
    }
}

/// All partitions of an assignment.
pub fn slots(partitions: &[(TopicId, Vec<PartitionId>)]) -> Slots {
    let slots = partitions.iter().flat_map(|(topic, ids)| ids.iter().map(|id| slot(*topic, *id)));
    slots.fold(0, |all, slot| all | slot)
}

/// The bit of a partition.
pub fn slot(topic: TopicId, partition: PartitionId) -> Slots {
    let topic = i32::from(topic.0[0]) - 1;
    1 << (topic * PARTITIONS as i32 + partition.0)
}

/// Keeps the last record of each key, as compaction does.
fn write(records: &mut BTreeMap<Key, Record>, record: Record) {
    let (key, is_tombstone) = match &record {
        Record::ConsumerGroupMetadata(it) => (Key::Epoch, it.value.is_none()),
        Record::ConsumerGroupTargetAssignmentMetadata(it) => (Key::Target, it.value.is_none()),
        Record::ConsumerGroupMemberMetadata(it) => {
            (Key::Says(it.member.clone()), it.value.is_none())
        }
        Record::ConsumerGroupTargetAssignmentMember(it) => {
            (Key::Wants(it.member.clone()), it.value.is_none())
        }
        Record::ConsumerGroupCurrentMemberAssignment(it) => {
            (Key::Stands(it.member.clone()), it.value.is_none())
        }
        other => unreachable!("no member here makes a {other:?}"),
    };
    match is_tombstone {
        true => drop(records.remove(&key)),
        false => drop(records.insert(key, record)),
    }
}

fn epoch_of(records: &BTreeMap<Key, Record>) -> i32 {
    match records.get(&Key::Epoch) {
        Some(Record::ConsumerGroupMetadata(it)) => it.value.map_or(0, |value| value.epoch.0),
        _ => 0,
    }
}

fn target_epoch_of(records: &BTreeMap<Key, Record>) -> i32 {
    match records.get(&Key::Target) {
        Some(Record::ConsumerGroupTargetAssignmentMetadata(it)) => {
            it.value.map_or(0, |value| value.epoch.0)
        }
        _ => 0,
    }
}

/// Counts epochs anew. Since when a partition is held changes nothing but commits.
fn rebase(record: &mut Record, by: i32) {
    let shift = |epoch: &mut Generation| {
        if epoch.0 > 0 {
            epoch.0 += by;
        }
    };
    match record {
        Record::ConsumerGroupMetadata(it) => {
            it.value.iter_mut().for_each(|value| shift(&mut value.epoch));
        }
        Record::ConsumerGroupTargetAssignmentMetadata(it) => {
            it.value.iter_mut().for_each(|value| shift(&mut value.epoch));
        }
        Record::ConsumerGroupCurrentMemberAssignment(it) => {
            if let Some(value) = &mut it.value {
                let mut fresh = ConsumerGroupCurrentMemberAssignmentValue::clone(value);
                shift(&mut fresh.epoch);
                shift(&mut fresh.previous_epoch);
                for held in fresh.assigned.iter_mut().chain(&mut fresh.revoking) {
                    held.epochs = None;
                }
                *value = Arc::new(fresh);
            }
        }
        _ => {}
    }
}

/// The same answer with epochs counted anew.
pub fn shifted(reply: Reply, by: i32) -> Reply {
    use ottla_group::message::consumer::Standing;
    match reply {
        Reply::ConsumerHeartbeat(Ok(mut beat)) => {
            if let Standing::Member(Generation(epoch @ 1..)) = &mut beat.standing {
                *epoch += by;
            }
            Reply::ConsumerHeartbeat(Ok(beat))
        }
        other => other,
    }
}
