//! Requests a member sends, owning what they say until the shell has written them.

use crate::message::consumer::{self, Standing};
use crate::message::register::{self, Detection};
use crate::message::{Ask, Blob, classic, offsets};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{
    Generation, GroupId, InstanceId, LeaderEpoch, MemberId, Offset, PartitionId, TopicId, TopicName,
};

/// One request; [`Request::ask`] shows it in the words a coordinator hears.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Join or rejoin.
    Join(Join),
    /// Register: join or rejoin.
    Register(Register),
    /// Hand in or pick up the assignment.
    Sync(Sync),
    /// I am alive.
    Heartbeat(Sender),
    /// Register: I am alive.
    RegisterHeartbeat(Sender),
    /// Consumer protocol: join, stay, report, leave.
    Beat(Beat),
    /// I go.
    Leave(Sender, &'static str),
    /// Store offsets.
    Commit(Sender, Vec<TopicOffsets>),
    /// Read offsets.
    Fetch(GroupId, Vec<(TopicName, Vec<PartitionId>)>),
}

/// Who sends, and the generation it believes in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sender {
    /// The group.
    pub group: GroupId,
    /// The member; empty where it has no id yet.
    pub member: MemberId,
    /// Its `group.instance.id`, if static.
    pub instance: Option<InstanceId>,
    /// Its generation; -1 where it has none.
    pub generation: Generation,
}

/// A heartbeat of the consumer protocol; what is `None` has not changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beat {
    /// Who sends.
    pub sender: Sender,
    /// Where it believes to stand.
    pub standing: Standing,
    /// Its rack.
    pub rack: Option<String>,
    /// How long it may take to give up partitions.
    pub rebalance_timeout: Option<Duration>,
    /// The topics it subscribes to.
    pub topics: Option<Vec<TopicName>>,
    /// The coordinator's assignor it votes for.
    pub assignor: Option<String>,
    /// What it owns.
    pub owned: Option<consumer::Partitions>,
}

/// A join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Join {
    /// Who joins; the generation is not sent.
    pub sender: Sender,
    /// Assignors, most wanted first, each with the member's subscription.
    pub protocols: Vec<(&'static str, Vec<u8>)>,
    /// Silence after which the coordinator may give it up.
    pub session_timeout: Duration,
    /// How long it may take to rejoin.
    pub rebalance_timeout: Duration,
    /// Why it joins (KIP-800).
    pub reason: &'static str,
}

/// A registration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// Who registers; the generation is not sent.
    pub sender: Sender,
    /// The host it says it runs on.
    pub host: String,
    /// How long it waits for an answer, and the window its heartbeats are counted in.
    pub session_timeout: Duration,
    /// When it beats, and when it is taken for dead.
    pub detection: Detection,
    /// The topics it wants.
    pub topics: Vec<TopicName>,
}

/// A sync.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sync {
    /// Who syncs.
    pub sender: Sender,
    /// The assignor the group chose.
    pub protocol: &'static str,
    /// The leader only: each member's part.
    pub assignments: Vec<(MemberId, Blob)>,
}

/// Offsets of one topic to be committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicOffsets {
    /// The topic.
    pub topic: TopicName,
    /// The id of the topic that was read; a recreated topic inherits nothing. Zero if unknown.
    pub id: TopicId,
    /// Its partitions.
    pub partitions: Vec<PartitionOffset>,
}

/// One partition's offset to be committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionOffset {
    /// The partition.
    pub partition: PartitionId,
    /// The next offset to read.
    pub offset: Offset,
    /// The leader epoch of the last record read, where known.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The application's own note.
    pub metadata: String,
}

/// The protocol type of consumers, among Connect's and others'.
const PROTOCOL_TYPE: &str = "consumer";

impl Request {
    /// The request as a coordinator hears it.
    pub fn ask(&self) -> Ask<'_> {
        match self {
            Self::Join(join) => Ask::Join(join.ask()),
            Self::Register(register) => Ask::Register(register.ask()),
            Self::Sync(sync) => Ask::Sync(sync.ask()),
            Self::Heartbeat(sender) => Ask::Heartbeat(classic::Heartbeat {
                group: &sender.group,
                generation: sender.generation,
                member: &sender.member,
                instance: sender.instance.as_deref(),
            }),
            Self::RegisterHeartbeat(sender) => Ask::RegisterHeartbeat(register::Heartbeat {
                group: &sender.group,
                generation: sender.generation,
                member: &sender.member,
            }),
            Self::Beat(beat) => Ask::ConsumerHeartbeat(beat.ask()),
            Self::Leave(sender, reason) => Ask::Leave(sender.leave(reason)),
            Self::Commit(sender, topics) => Ask::Commit(sender.commit(topics)),
            Self::Fetch(group, topics) => Ask::FetchOffsets(offsets::Fetch {
                group,
                // A classic reader claims no membership; its commits are what is fenced.
                member: None,
                topics: Some(
                    topics.iter().map(|(name, ids)| (name.as_str(), ids.clone())).collect(),
                ),
            }),
        }
    }
}

impl Beat {
    /// One that says nothing but where its sender stands.
    pub(super) fn bare(sender: Sender, standing: Standing) -> Self {
        Self {
            sender,
            standing,
            rack: None,
            rebalance_timeout: None,
            topics: None,
            assignor: None,
            owned: None,
        }
    }

    fn ask(&self) -> consumer::Heartbeat<'_> {
        consumer::Heartbeat {
            group: &self.sender.group,
            member: &self.sender.member,
            standing: self.standing,
            instance: self.sender.instance.as_deref(),
            rack: self.rack.as_deref(),
            rebalance_timeout: self.rebalance_timeout,
            topics: self.topics.as_ref().map(|topics| topics.iter().map(|t| t.as_str()).collect()),
            regex: None,
            assignor: self.assignor.as_deref(),
            owned: self.owned.clone(),
        }
    }
}

impl Join {
    fn ask(&self) -> classic::Join<'_> {
        classic::Join {
            group: &self.sender.group,
            member: &self.sender.member,
            instance: self.sender.instance.as_deref(),
            protocol_type: PROTOCOL_TYPE,
            protocols: self
                .protocols
                .iter()
                .map(|(name, metadata)| classic::Protocol { name, metadata })
                .collect(),
            session_timeout: self.session_timeout,
            rebalance_timeout: self.rebalance_timeout,
            requires_known_id: true,
            can_skip_assignment: true,
            reason: Some(self.reason),
        }
    }
}

impl Register {
    fn ask(&self) -> register::Register<'_> {
        register::Register {
            group: &self.sender.group,
            member: &self.sender.member,
            host: &self.host,
            session_timeout: self.session_timeout,
            heartbeat_frequency: self.detection.heartbeat_frequency(),
            failed_heartbeat_threshold: self.detection.failed_heartbeat_threshold(),
            topics: self.topics.iter().map(|topic| &**topic).collect(),
        }
    }
}

impl Sync {
    fn ask(&self) -> classic::Sync<'_> {
        classic::Sync {
            group: &self.sender.group,
            generation: self.sender.generation,
            member: &self.sender.member,
            instance: self.sender.instance.as_deref(),
            protocol_type: Some(PROTOCOL_TYPE),
            protocol: Some(self.protocol),
            assignments: self.assignments.iter().map(|(id, part)| (id.as_str(), &**part)).collect(),
        }
    }
}

impl Sender {
    fn leave<'a>(&'a self, reason: &'a str) -> classic::Leave<'a> {
        let leaver = classic::Leaver {
            member: &self.member,
            instance: self.instance.as_deref(),
            reason: Some(reason),
        };
        classic::Leave { group: &self.group, members: alloc::vec![leaver] }
    }

    fn commit<'a>(&'a self, topics: &'a [TopicOffsets]) -> offsets::Commit<'a> {
        offsets::Commit {
            group: &self.group,
            generation: self.generation,
            member: &self.member,
            instance: self.instance.as_deref(),
            retention: None,
            knows_epochs: true,
            topics: topics.iter().map(TopicOffsets::ask).collect(),
        }
    }
}

impl TopicOffsets {
    fn ask(&self) -> offsets::CommitTopic<'_> {
        let partitions = self.partitions.iter().map(|item| offsets::CommitPartition {
            partition: item.partition,
            offset: item.offset,
            leader_epoch: item.leader_epoch,
            metadata: &item.metadata,
        });
        offsets::CommitTopic { topic: &self.topic, id: self.id, partitions: partitions.collect() }
    }
}
