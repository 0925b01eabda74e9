//! What a shard must do, told through a harness: cases never touch the shard's own API, so a
//! change there is a change here alone.

mod absence;
mod admin;
mod classic;
mod commits;
mod consumers;
mod expiry;
mod invariants;
mod limits;
mod ownership;
mod recovery;
mod statics;

use super::record::Record;
use super::{Append, Config, Index, Lifecycle, Outgoing, RecordAt, Shard};
use crate::assign::subscription::Subscription;
use crate::message::admin::{DeleteGroup, Describe, Description, GroupState, List, Listing};
use crate::message::classic::{
    Heartbeat, Join, JoinRefused, Joined, Leave, Leaver, Left, Protocol,
};
use crate::message::classic::{Sync, Synced};
use crate::message::offsets::{
    Commit, CommitPartition, CommitTopic, Committed, CommittedOffset, Delete, Deleted, Fetch,
};
use crate::message::{Ask, Client, GroupError, Reply, Request, Token};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{
    ConnectionId, Generation, Instant, Now, Offset, OwnershipEpoch, Partition, PartitionId,
    Timestamp, Topic, TopicId, TopicName, TopicsView,
};

/// One shard, its driver and its log, in virtual time.
pub(super) struct World {
    pub(super) shard: Shard,
    config: Config,
    now: Now,
    /// Decisions in order; those after `durable` are lost by a crash.
    pub(super) log: Vec<Append>,
    durable: Index,
    /// Whether appends become durable at once.
    pub(super) durable_at_once: bool,
    waiting: Vec<Outgoing>,
    answered: BTreeMap<Token, Reply>,
    serial: u64,
    epoch: i32,
}

/// A would-be member and what it says of itself.
#[derive(Clone, Debug)]
pub(super) struct Joiner {
    pub(super) group: &'static str,
    pub(super) member: String,
    pub(super) instance: Option<&'static str>,
    pub(super) protocol_type: &'static str,
    pub(super) protocols: Vec<(&'static str, Vec<u8>)>,
    pub(super) session: Duration,
    pub(super) rebalance: Duration,
    pub(super) knows_kip394: bool,
    pub(super) knows_kip814: bool,
    pub(super) connection: u64,
    pub(super) client_id: &'static str,
    pub(super) reason: Option<&'static str>,
}

impl Joiner {
    /// A consumer of topic `t` with ten seconds of session and a minute for rebalances.
    pub(super) fn new(group: &'static str) -> Self {
        Self {
            group,
            member: String::new(),
            instance: None,
            protocol_type: "consumer",
            protocols: alloc::vec![("range", wants(&["t"]))],
            session: secs(10),
            rebalance: secs(60),
            knows_kip394: false,
            knows_kip814: true,
            connection: 1,
            client_id: "c",
            reason: None,
        }
    }

    pub(super) fn fixed(group: &'static str, instance: &'static str) -> Self {
        Self { instance: Some(instance), ..Self::new(group) }
    }

    pub(super) fn with_id(&self, member: &str) -> Self {
        Self { member: member.to_string(), ..self.clone() }
    }

    pub(super) fn protocols(mut self, protocols: &[(&'static str, &[u8])]) -> Self {
        self.protocols = protocols.iter().map(|(name, data)| (*name, data.to_vec())).collect();
        self
    }
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(super) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A consumer's subscription to these topics.
pub(super) fn wants(topics: &[&str]) -> Vec<u8> {
    let topics = topics.iter().map(|topic| TopicName::from(*topic)).collect();
    Subscription { topics, ..Subscription::default() }.encode(1)
}

pub(super) fn topic(name: &str, id: u8) -> Topic {
    Topic {
        id: TopicId([id; 16]),
        name: TopicName::from(name),
        partitions: alloc::vec![Partition::default(); 4],
    }
}

/// Running a world.
impl World {
    pub(super) fn new() -> Self {
        Self::with(Config { initial_rebalance_delay: Duration::ZERO, ..Config::default() })
    }

    pub(super) fn with(config: Config) -> Self {
        let mut world = Self::unowned(config);
        world.own(secs(1_000_000_000));
        world.load();
        world
    }

    pub(super) fn unowned(config: Config) -> Self {
        let now = Now { mono: Instant::from_millis(1_000), wall: Timestamp(1_700_000_000_000) };
        Self {
            shard: Shard::new(config.clone(), PartitionId(7)),
            config,
            now,
            log: Vec::new(),
            durable: Index(0),
            durable_at_once: true,
            waiting: Vec::new(),
            answered: BTreeMap::new(),
            serial: 0,
            epoch: 0,
        }
    }

    pub(super) fn own(&mut self, lease: Duration) {
        self.epoch += 1;
        self.renew(lease);
    }

    pub(super) fn renew(&mut self, lease: Duration) {
        let until = self.now.mono + lease;
        self.shard.handle_owned(OwnershipEpoch(self.epoch), until, self.now);
        self.drive();
    }

    /// Replays the durable part of the log and begins to serve.
    pub(super) fn load(&mut self) {
        let records = self.log.iter().flat_map(|append| append.records.clone());
        for (offset, record) in records.collect::<Vec<_>>().into_iter().enumerate() {
            let at = RecordAt { offset: Offset(offset as i64), appended_at: self.now.wall };
            self.shard.replay(record, at);
        }
        self.shard.handle_loaded(self.now);
        self.drive();
    }

    /// The broker dies and comes back: what was not durable is lost, whoever waits hears nothing.
    pub(super) fn restart(&mut self) {
        let durable = self.durable;
        self.log.retain(|append| append.index <= durable);
        self.waiting.clear();
        self.shard = Shard::new(self.config.clone(), PartitionId(7));
        self.own(secs(1_000_000_000));
        self.load();
        // The new shard counts anew; what is in the log already is durable.
        self.log.iter_mut().for_each(|append| append.index = Index(0));
        self.durable = Index(0);
    }

    /// Polls in the order the contract asks for.
    pub(super) fn drive(&mut self) {
        while let Some(append) = self.shard.poll_append() {
            self.log.push(append);
        }
        while let Some(reply) = self.shard.poll_reply() {
            self.waiting.push(reply);
        }
        assert_eq!(self.shard.poll_close(), None, "classic groups close no connection");
        if matches!(self.shard.lifecycle(), Lifecycle::Active(_)) {
            invariants::check(&self.shard);
        }
        if self.durable_at_once {
            self.make_durable();
        } else {
            self.release();
        }
    }

    pub(super) fn make_durable(&mut self) {
        self.durable = self.shard.last_index();
        self.shard.handle_durable(self.durable);
        self.release();
    }

    fn release(&mut self) {
        let durable = self.durable;
        let mut held = Vec::new();
        for outgoing in self.waiting.drain(..) {
            if outgoing.after.is_none_or(|after| after <= durable) {
                let earlier = self.answered.insert(outgoing.token, outgoing.reply);
                assert_eq!(earlier, None, "one reply per token");
            } else {
                held.push(outgoing);
            }
        }
        self.waiting = held;
    }

    /// Lets time pass, stopping at every deadline on the way.
    pub(super) fn pass(&mut self, span: Duration) {
        let end = self.now.mono + span;
        while let Some(next) = self.shard.poll_timeout()
            && next <= end
        {
            self.jump(next.max(self.now.mono));
        }
        self.jump(end);
    }

    fn jump(&mut self, to: Instant) {
        let span = to.since(self.now.mono);
        self.now = Now { mono: to, wall: self.now.wall.plus(span) };
        self.shard.handle_timeout(self.now);
        self.drive();
    }

    pub(super) fn fail_append(&mut self) {
        self.shard.handle_append_failed();
        self.drive();
    }

    pub(super) fn disown(&mut self) {
        self.shard.handle_disowned();
        self.drive();
    }

    pub(super) fn lifecycle(&self) -> Lifecycle {
        self.shard.lifecycle()
    }

    pub(super) fn close_connection(&mut self, connection: u64) {
        self.shard.handle_connection_closed(ConnectionId(connection), self.now);
        self.drive();
    }

    pub(super) fn topics(&mut self, topics: impl IntoIterator<Item = Topic>) {
        self.shard.handle_topics(Arc::new(TopicsView::new(topics)), self.now);
        self.drive();
    }

    /// Records appended since the world began, the latest last.
    pub(super) fn records(&self) -> Vec<Record> {
        self.log.iter().flat_map(|append| append.records.clone()).collect()
    }
}

/// Asking.
impl World {
    pub(super) fn ask(&mut self, connection: u64, client_id: &str, body: Ask<'_>) -> Token {
        self.serial += 1;
        let token = Token(self.serial);
        let mut fresh = [0; 16];
        fresh[8..].copy_from_slice(&self.serial.to_be_bytes());
        self.shard.handle_request(Request {
            token,
            connection: ConnectionId(connection),
            client: Client { id: client_id, host: "/127.0.0.1", ..Client::default() },
            fresh,
            now: self.now,
            body,
        });
        self.drive();
        token
    }

    pub(super) fn join(&mut self, joiner: &Joiner) -> Token {
        let protocols = joiner.protocols.iter();
        let body = Ask::Join(Join {
            group: joiner.group,
            member: &joiner.member,
            instance: joiner.instance,
            protocol_type: joiner.protocol_type,
            protocols: protocols.map(|(name, metadata)| Protocol { name, metadata }).collect(),
            session_timeout: joiner.session,
            rebalance_timeout: joiner.rebalance,
            requires_known_id: joiner.knows_kip394,
            can_skip_assignment: joiner.knows_kip814,
            reason: joiner.reason,
        });
        self.ask(joiner.connection, joiner.client_id, body)
    }

    pub(super) fn sync(&mut self, joined: &Joined, parts: &[(&str, &[u8])]) -> Token {
        self.sync_as("g", joined, None, parts)
    }

    pub(super) fn sync_as(
        &mut self,
        group: &str,
        joined: &Joined,
        instance: Option<&str>,
        parts: &[(&str, &[u8])],
    ) -> Token {
        let body = Ask::Sync(Sync {
            group,
            generation: joined.generation,
            member: &joined.member,
            instance,
            protocol_type: Some(&joined.protocol_type),
            protocol: Some(&joined.protocol),
            assignments: parts.to_vec(),
        });
        self.ask(1, "c", body)
    }

    pub(super) fn beat(&mut self, member: &str, generation: i32) -> Result<(), GroupError> {
        self.beat_as("g", member, None, generation)
    }

    pub(super) fn beat_as(
        &mut self,
        group: &str,
        member: &str,
        instance: Option<&str>,
        generation: i32,
    ) -> Result<(), GroupError> {
        let token = self.beat_later(group, member, instance, generation);
        match self.answer(token) {
            Reply::Heartbeat(outcome) => outcome,
            other => panic!("not a heartbeat's answer: {other:?}"),
        }
    }

    pub(super) fn beat_later(
        &mut self,
        group: &str,
        member: &str,
        instance: Option<&str>,
        generation: i32,
    ) -> Token {
        let generation = Generation(generation);
        self.ask(1, "c", Ask::Heartbeat(Heartbeat { group, generation, member, instance }))
    }

    pub(super) fn leave(&mut self, members: &[(&str, Option<&str>)]) -> Left {
        let leavers = members.iter();
        let members =
            leavers.map(|(member, instance)| Leaver { member, instance: *instance, reason: None });
        let body = Ask::Leave(Leave { group: "g", members: members.collect() });
        let token = self.ask(1, "c", body);
        match self.answer(token) {
            Reply::Leave(outcome) => outcome.expect("a leave is answered per member"),
            other => panic!("not a leave's answer: {other:?}"),
        }
    }

    /// Commits `offset` for partition 0 of topic `t`.
    pub(super) fn commit(
        &mut self,
        group: &str,
        member: &str,
        generation: i32,
        offset: i64,
    ) -> Result<Committed, GroupError> {
        let token = self.commit_later(group, member, generation, offset);
        self.committed(token)
    }

    pub(super) fn commit_later(
        &mut self,
        group: &str,
        member: &str,
        generation: i32,
        offset: i64,
    ) -> Token {
        self.commit_for(group, (member, generation), ("t", TopicId::ZERO), &[(0, offset, "")], None)
    }

    pub(super) fn commit_for(
        &mut self,
        group: &str,
        (member, generation): (&str, i32),
        (topic, id): (&str, TopicId),
        partitions: &[(i32, i64, &str)],
        retention: Option<Duration>,
    ) -> Token {
        let partitions = partitions.iter().map(|(partition, offset, metadata)| CommitPartition {
            partition: PartitionId(*partition),
            offset: Offset(*offset),
            leader_epoch: None,
            metadata,
        });
        let body = Ask::Commit(Commit {
            group,
            generation: Generation(generation),
            member,
            instance: None,
            retention,
            knows_epochs: true,
            topics: alloc::vec![CommitTopic { topic, id, partitions: partitions.collect() }],
        });
        self.ask(1, "c", body)
    }

    pub(super) fn committed(&mut self, token: Token) -> Result<Committed, GroupError> {
        match self.answer(token) {
            Reply::Commit(outcome) => outcome,
            other => panic!("not a commit's answer: {other:?}"),
        }
    }

    pub(super) fn fetch_later(&mut self, group: &str) -> Token {
        let topics = Some(alloc::vec![("t", alloc::vec![PartitionId(0)])]);
        self.ask(1, "c", Ask::FetchOffsets(Fetch { group, member: None, topics }))
    }

    /// What is committed for partition 0 of topic `t`.
    pub(super) fn fetch(&mut self, group: &str) -> Option<i64> {
        let token = self.fetch_later(group);
        self.fetched(token)
    }

    pub(super) fn fetched(&mut self, token: Token) -> Option<i64> {
        let mut topics = match self.answer(token) {
            Reply::FetchOffsets(outcome) => outcome.expect("fetching does not fail").topics,
            other => panic!("not a fetch's answer: {other:?}"),
        };
        let (_, mut partitions) = topics.pop().expect("the topic asked for");
        let (_, committed) = partitions.pop().expect("the partition asked for");
        committed.map(|committed| committed.offset.0)
    }

    /// All that is committed, as `topic-partition -> offset`.
    pub(super) fn fetch_all(&mut self, group: &str) -> BTreeMap<String, CommittedOffset> {
        let body = Ask::FetchOffsets(Fetch { group, member: None, topics: None });
        let token = self.ask(1, "c", body);
        let topics = match self.answer(token) {
            Reply::FetchOffsets(outcome) => outcome.expect("fetching does not fail").topics,
            other => panic!("not a fetch's answer: {other:?}"),
        };
        let mut all = BTreeMap::new();
        for (topic, partitions) in topics {
            for (partition, committed) in partitions {
                let committed = committed.expect("only what is committed is listed");
                all.insert(alloc::format!("{topic}-{partition}"), committed);
            }
        }
        all
    }

    pub(super) fn delete_offsets(
        &mut self,
        group: &str,
        topic: &str,
        partition: i32,
    ) -> Result<Result<(), GroupError>, GroupError> {
        let topics = alloc::vec![(topic, alloc::vec![PartitionId(partition)])];
        let token = self.ask(1, "c", Ask::DeleteOffsets(Delete { group, topics }));
        match self.answer(token) {
            Reply::DeleteOffsets(outcome) => outcome.map(|Deleted { topics }| topics[0].1[0].1),
            other => panic!("not a deletion's answer: {other:?}"),
        }
    }

    pub(super) fn delete_group(&mut self, group: &str) -> Result<(), GroupError> {
        let token = self.ask(1, "c", Ask::DeleteGroup(DeleteGroup { group }));
        match self.answer(token) {
            Reply::DeleteGroup(outcome) => outcome,
            other => panic!("not a deletion's answer: {other:?}"),
        }
    }

    pub(super) fn describe(&mut self, group: &str) -> Result<Description, GroupError> {
        let token = self.ask(1, "c", Ask::Describe(Describe { group }));
        match self.answer(token) {
            Reply::Describe(outcome) => outcome,
            other => panic!("not a description: {other:?}"),
        }
    }

    pub(super) fn state(&mut self, group: &str) -> GroupState {
        self.describe(group).map_or(GroupState::Dead, |description| description.state)
    }

    pub(super) fn list(&mut self, states: &[&str], types: &[&str]) -> Vec<Listing> {
        let body = Ask::List(List { states: states.to_vec(), types: types.to_vec() });
        let token = self.ask(1, "c", body);
        match self.answer(token) {
            Reply::List(outcome) => outcome.expect("listing does not fail"),
            other => panic!("not a list: {other:?}"),
        }
    }
}

/// Being answered.
impl World {
    pub(super) fn is_waiting(&self, token: Token) -> bool {
        !self.answered.contains_key(&token)
    }

    pub(super) fn answer(&mut self, token: Token) -> Reply {
        self.answered.remove(&token).unwrap_or_else(|| panic!("{token:?} is not answered yet"))
    }

    pub(super) fn join_outcome(&mut self, token: Token) -> Result<Joined, JoinRefused> {
        match self.answer(token) {
            Reply::Join(outcome) => outcome,
            other => panic!("not a join's answer: {other:?}"),
        }
    }

    pub(super) fn joined(&mut self, token: Token) -> Joined {
        self.join_outcome(token).unwrap_or_else(|refused| panic!("refused: {refused:?}"))
    }

    pub(super) fn refused(&mut self, token: Token) -> JoinRefused {
        self.join_outcome(token).expect_err("the join is refused")
    }

    pub(super) fn sync_outcome(&mut self, token: Token) -> Result<Synced, GroupError> {
        match self.answer(token) {
            Reply::Sync(outcome) => outcome,
            other => panic!("not a sync's answer: {other:?}"),
        }
    }

    pub(super) fn assignment(&mut self, token: Token) -> Vec<u8> {
        self.sync_outcome(token).expect("the sync is answered").assignment.to_vec()
    }
}

/// Stories that begin where most do.
impl World {
    /// A stable group of these members, the first one leading, each assigned its own id.
    pub(super) fn stable(&mut self, joiners: &[Joiner]) -> Vec<Joined> {
        let mut tokens = Vec::new();
        for joiner in joiners {
            tokens.push(self.join(joiner));
        }
        self.pass(self.config.initial_rebalance_delay * 2);
        let mut members: Vec<_> = tokens.into_iter().map(|token| self.joined(token)).collect();
        members.sort_by_key(|joined| joined.member != joined.leader);
        self.settle(&members);
        members
    }

    /// Everyone of this generation syncs; the leader assigns each its own id.
    pub(super) fn settle(&mut self, members: &[Joined]) {
        let parts: Vec<_> =
            members.iter().map(|joined| (&*joined.member, joined.member.as_bytes())).collect();
        let (leaders, followers): (Vec<_>, Vec<_>) =
            members.iter().partition(|joined| joined.member == joined.leader);
        let followers: Vec<_> =
            followers.into_iter().map(|joined| (self.sync(joined, &[]), joined)).collect();
        for leader in leaders {
            let token = self.sync(leader, &parts);
            assert_eq!(self.assignment(token), leader.member.as_bytes());
        }
        for (token, joined) in followers {
            assert_eq!(self.assignment(token), joined.member.as_bytes());
        }
        assert_eq!(self.state("g"), GroupState::Stable);
    }
}
