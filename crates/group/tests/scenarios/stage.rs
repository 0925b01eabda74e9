//! One shard on a stage: carries out commands and writes down everything that comes out.

use crate::consumer::Consumers;
use crate::harness::{Broker, Emitted, Log};
use crate::parse::{Command, number, span};
use crate::print::{Names, at};
use ottla_group::assign::subscription::{Assignment, Subscription};
use ottla_group::assign::{Assignor, Partitions};
use ottla_group::coordinator::{Config, GroupSettings, Index, MigrationPolicy, SettingsView};
use ottla_group::message::classic::{Heartbeat, Join, Leave, Leaver, Protocol, Sync};
use ottla_group::message::register::{self, Register};
use ottla_group::message::{
    Ask, Client, GroupError, Patience, Reply, Request, Token, admin, offsets,
};
use ottla_model::{
    ConnectionId, Generation, Instant, Now, Offset, OwnershipEpoch, Partition, PartitionId,
    Timestamp, Topic, TopicId, TopicName, TopicsView,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

pub struct Stage {
    config: Config,
    broker: Broker,
    log: Log,
    now: Instant,
    pub topics: TopicsView,
    pub names: Names,
    pub consumers: Consumers,
    /// What the client that everybody uses bears.
    patience: Patience,
    /// Whose request each token is.
    askers: BTreeMap<Token, String>,
    connections: BTreeMap<String, ConnectionId>,
    /// What each member last heard: its generation.
    pub generations: BTreeMap<String, Generation>,
    tokens: u64,
    holds: bool,
    deadline: Option<Instant>,
    out: String,
}

pub type Done = Result<(), String>;
const FOREVER: Instant = Instant::from_millis(1_000_000_000_000);
const START: Timestamp = Timestamp(1_800_000_000_000);

impl Stage {
    /// A shard that owns its partition and has loaded an empty log, at time zero.
    pub fn new() -> Self {
        let config = Config { initial_rebalance_delay: Duration::ZERO, ..Config::default() };
        let mut stage = Self {
            broker: Broker::new(config.clone()),
            config,
            log: Log::default(),
            now: Instant::ZERO,
            topics: TopicsView::default(),
            names: Names::default(),
            consumers: Consumers::default(),
            patience: Patience::default(),
            askers: BTreeMap::new(),
            connections: BTreeMap::new(),
            generations: BTreeMap::new(),
            tokens: 0,
            holds: false,
            deadline: None,
            out: String::new(),
        };
        let topics = Command::parse("topics t=4 u=4").expect("a command");
        stage.start();
        stage.set_topics(&topics).expect("topics");
        stage.loaded();
        stage
    }

    fn start(&mut self) {
        self.broker = Broker::new(self.config.clone());
        self.log.fence = OwnershipEpoch(self.log.fence.0 + 1);
        self.broker.own(self.log.fence, FOREVER, self.clock());
        self.broker.replay(&self.log, 0);
    }

    fn loaded(&mut self) {
        let now = self.clock();
        self.broker.topics(Arc::new(self.topics.clone()), now);
        self.broker.loaded(now);
    }

    fn clock(&self) -> Now {
        let wall = START.plus(self.now.since(Instant::ZERO));
        Now { mono: self.now, wall }
    }

    pub fn carry_out(&mut self, line: &str) -> Done {
        let command = Command::parse(line)?;
        match command.verb {
            "config" => self.configure(&command)?,
            "topics" => self.set_topics(&command)?,
            "join" => self.join(&command)?,
            "sync" => self.sync(&command)?,
            "heartbeat" => self.heartbeat(&command)?,
            "register" => self.register(&command)?,
            "beat" => self.beat(&command)?,
            "metadata" => self.metadata(&command)?,
            "assignor" => self.set_assignor(&command)?,
            "enter" => self.enter(&command)?,
            "report" => self.report(&command)?,
            "exit" => self.exit(&command)?,
            "patience" => self.be_patient(&command)?,
            "consumers" => self.describe_consumers(&command)?,
            "leave" => self.leave(&command)?,
            "commit" => self.commit(&command)?,
            "fetch" => self.fetch(&command)?,
            "delete-offsets" => self.delete_offsets(&command)?,
            "describe" | "list" | "delete-group" => self.administer(&command)?,
            "behind" => self.wait_behind(command.word()?),
            "group" => self.view(&command),
            "migration" => self.preview(&command),
            "advance" => self.advance(span(command.word()?)?),
            "close" => self.close(command.word()?),
            "hold" => self.holds = true,
            "durable" => self.durable(command.words().first().copied())?,
            "fail" => self.fail(),
            "restart" => self.restart(command.has("loading"), command.has("keep")),
            "loaded" => self.loaded(),
            "own" => self.own(&command)?,
            "disown" => {
                for (token, reply) in self.broker.disown() {
                    self.say_reply(token, &reply, " instead");
                }
            }
            verb => return Err(format!("{verb} is not a command")),
        }
        self.settle();
        Ok(())
    }

    /// Writes down what came out, and lets due deadlines fire, as a driver would.
    pub fn settle(&mut self) {
        self.drain();
        while self.broker.deadline().is_some_and(|at| at <= self.now) {
            self.broker.timeout(self.clock());
            self.drain();
        }
    }

    /// What came out since the last block, and the next deadline if it changed.
    pub fn finish_block(&mut self) -> String {
        let deadline = self.broker.deadline();
        if deadline != self.deadline {
            let text = deadline.map_or("none".into(), at);
            writeln!(self.out, "deadline {text}").expect("memory");
            self.deadline = deadline;
        }
        std::mem::take(&mut self.out)
    }

    fn say(&mut self, line: &str) {
        self.out += line;
        self.out += "\n";
    }

    /// Writes down what the shard has to say; unless held, it becomes durable at once.
    fn drain(&mut self) {
        let mut emitted = Vec::new();
        self.broker.drain(&mut emitted);
        for item in &emitted {
            if let Emitted::Reply(token, reply) | Emitted::Held(token, reply, _) = item {
                self.learn(*token, reply);
            }
        }
        for item in emitted {
            match item {
                Emitted::Append(index) => self.say_append(index),
                Emitted::Reply(token, reply) => self.say_reply(token, &reply, ""),
                Emitted::Held(token, reply, after) => {
                    self.say_reply(token, &reply, &format!(" (after {})", after.0));
                }
                Emitted::Close(connection, after) => {
                    let name = self.connections.iter().find(|(_, id)| **id == connection);
                    let name = name.map_or("?".into(), |(name, _)| name.clone());
                    let wait = after.map(|after| format!(" (after {})", after.0));
                    self.say(&format!("close {name}{}", wait.unwrap_or_default()));
                }
            }
        }
        if !self.holds {
            while !self.broker.undurable.is_empty() {
                // What waited was written down with what it waited for.
                let now = self.clock();
                let released = self.broker.make_durable(&mut self.log, now);
                assert!(released.is_ok(), "the shard on stage is the owner");
            }
        }
    }

    fn say_append(&mut self, index: Index) {
        let append = self.broker.undurable.iter().find(|append| append.index == index);
        let records = &append.expect("just drained").records;
        let lines: Vec<_> = records.iter().map(|record| self.names.record(record)).collect();
        self.say(&format!("append {}: {}", index.0, lines.join("; ")));
    }

    fn say_reply(&mut self, token: Token, reply: &Reply, wait: &str) {
        let asker = self.askers.get(&token).cloned().unwrap_or_default();
        let text = self.names.reply(reply);
        self.say(&format!("{asker}{wait}: {text}"));
    }

    /// Ids and generations a reply tells, before anything is written down that names them.
    fn learn(&mut self, token: Token, reply: &Reply) {
        let asker = self.askers.get(&token).cloned().unwrap_or_default();
        match reply {
            Reply::Join(Ok(joined)) => {
                self.names.learn(&joined.member, &asker);
                self.generations.insert(asker, joined.generation);
            }
            Reply::Join(Err(refused)) if refused.error == GroupError::MemberIdRequired => {
                self.names.learn(&refused.member, &asker);
            }
            Reply::Register(Ok(registered)) => {
                self.names.learn(&registered.member, &asker);
                self.generations.insert(asker, registered.generation);
            }
            Reply::ConsumerHeartbeat(Ok(beat)) => self.learn_beat(asker, beat),
            _ => {}
        }
    }

    pub fn ask(&mut self, asker: &str, body: Ask<'_>) {
        self.ask_on(asker, asker, body);
    }

    /// Asks on the connection that goes by the name `line`.
    fn ask_on(&mut self, line: &str, asker: &str, body: Ask<'_>) {
        self.tokens += 1;
        let token = Token(self.tokens);
        let connection = self.connection(line);
        let mut fresh = [0; 16];
        fresh[8..].copy_from_slice(&self.tokens.to_be_bytes());
        self.askers.insert(token, asker.into());
        let now = self.clock();
        self.broker.request(Request {
            token,
            connection,
            client: Client { id: asker, host: "/10.0.0.1", patience: self.patience },
            fresh,
            now,
            body,
        });
    }

    fn connection(&mut self, name: &str) -> ConnectionId {
        let next = ConnectionId(self.connections.len() as u64 + 1);
        *self.connections.entry(name.into()).or_insert(next)
    }

    /// The id a command's member goes by: what it says, else what it was last given.
    pub fn id(&self, command: &Command<'_>, name: &str) -> String {
        match command.text("id") {
            Some("none") => String::new(),
            Some(other) => self.names.id_of(other).unwrap_or(other).into(),
            None => self.names.id_of(name).unwrap_or_default().into(),
        }
    }

    pub fn generation(&self, command: &Command<'_>, name: &str) -> Result<Generation, String> {
        let said = command.number("generation")?.map(|n| Generation(n as i32));
        let heard = self.generations.get(name).copied();
        Ok(said.or(heard).unwrap_or(Generation(-1)))
    }

    fn join(&mut self, command: &Command<'_>) -> Done {
        let name = command.word()?;
        let id = self.id(command, name);
        let metadata = match command.text("topics") {
            Some(topics) => Subscription {
                topics: topics.split(',').map(TopicName::from).collect(),
                owned: command.text("owns").map(named).transpose()?.unwrap_or_default(),
                ..Subscription::default()
            }
            .encode(3),
            None => command.text("metadata").unwrap_or(name).as_bytes().to_vec(),
        };
        let protocols = command.text("protocols").unwrap_or("range").split(',');
        let session_timeout = command.span("session")?.unwrap_or(Duration::from_secs(10));
        let rebalance_timeout = command.span("rebalance")?.unwrap_or(Duration::from_secs(30));
        self.ask(
            name,
            Ask::Join(Join {
                group: command.text("group").unwrap_or("g"),
                member: &id,
                instance: command.text("instance"),
                protocol_type: command.text("type").unwrap_or("consumer"),
                protocols: protocols.map(|name| Protocol { name, metadata: &metadata }).collect(),
                session_timeout,
                rebalance_timeout,
                requires_known_id: !command.has("old"),
                can_skip_assignment: !command.has("old"),
                reason: None,
            }),
        );
        Ok(())
    }

    fn sync(&mut self, command: &Command<'_>) -> Done {
        let name = command.word()?;
        let id = self.id(command, name);
        let parts = command.text("assign").map(|parts| parts.split(',').collect::<Vec<_>>());
        let parts = parts.unwrap_or_default();
        let parts = parts
            .iter()
            .filter_map(|part| part.split_once(':'))
            .map(|(who, text)| (self.names.id_of(who).unwrap_or(who).to_owned(), part(text)));
        let parts: Vec<_> = parts.collect();
        let generation = self.generation(command, name)?;
        self.ask(
            name,
            Ask::Sync(Sync {
                group: command.text("group").unwrap_or("g"),
                generation,
                member: &id,
                instance: command.text("instance"),
                protocol_type: command.text("type"),
                protocol: command.text("protocol"),
                assignments: parts.iter().map(|(who, part)| (who.as_str(), &**part)).collect(),
            }),
        );
        Ok(())
    }

    /// Where the group could go, and what is in the way.
    fn preview(&mut self, command: &Command<'_>) {
        let group = command.text("group").unwrap_or("g");
        let view = self.broker.shard.group(group).value;
        let text = match view.and_then(|view| view.migration) {
            None => "migration: none".into(),
            Some(migration) => {
                let obstacles =
                    migration.obstacles.iter().map(|obstacle| self.names.obstacle(obstacle));
                let obstacles: Vec<_> = obstacles.collect();
                format!("migration to {}: {}", migration.to, obstacles.join("; "))
            }
        };
        self.say(text.trim_end_matches([' ', ':']));
    }

    fn heartbeat(&mut self, command: &Command<'_>) -> Done {
        for name in command.words() {
            let id = self.id(command, name);
            let generation = self.generation(command, name)?;
            let group = command.text("group").unwrap_or("g");
            let instance = command.text("instance");
            self.ask(name, Ask::Heartbeat(Heartbeat { group, generation, member: &id, instance }));
            self.settle();
        }
        Ok(())
    }

    fn leave(&mut self, command: &Command<'_>) -> Done {
        let name = command.word()?;
        let ids: Vec<_> = command.words().iter().map(|name| self.id(command, name)).collect();
        let instance = command.text("instance");
        let reason = command.text("reason");
        let members = ids.iter().map(|member| Leaver { member, instance, reason }).collect();
        let asker = command.text("by").unwrap_or(name);
        self.ask(asker, Ask::Leave(Leave { group: command.text("group").unwrap_or("g"), members }));
        Ok(())
    }

    /// `t-0` or `t-0@note`, as a topic, a partition and a note.
    pub fn partition(text: &str) -> Result<(&str, PartitionId), String> {
        let (topic, partition) = text.rsplit_once('-').ok_or("a partition is topic-number")?;
        Ok((topic, PartitionId(number(partition)? as i32)))
    }

    fn commit(&mut self, command: &Command<'_>) -> Done {
        let name = command.word()?;
        let id = self.id(command, name);
        let mut topics: Vec<offsets::CommitTopic<'_>> = Vec::new();
        for (key, value) in command.pairs().iter().filter(|(key, _)| key.contains('-')) {
            let (topic, partition) = Self::partition(key)?;
            let (offset, metadata) = value.split_once('@').unwrap_or((value, ""));
            let offset = Offset(number(offset)?);
            let item = offsets::CommitPartition { partition, offset, leader_epoch: None, metadata };
            match topics.last_mut().filter(|last| last.topic == topic) {
                Some(last) => last.partitions.push(item),
                None => {
                    let mut id = self.topics.topic(topic).map_or(TopicId::ZERO, |topic| topic.id);
                    if let Some(incarnation) = command.number("incarnation")? {
                        id.0[15] = incarnation as u8;
                    }
                    topics.push(offsets::CommitTopic { topic, id, partitions: vec![item] });
                }
            }
        }
        let generation = self.generation(command, name)?;
        self.ask(
            name,
            Ask::Commit(offsets::Commit {
                group: command.text("group").unwrap_or("g"),
                generation,
                member: &id,
                instance: command.text("instance"),
                retention: command.span("retention")?,
                knows_epochs: !command.has("old"),
                topics,
            }),
        );
        Ok(())
    }

    fn named_partitions<'a>(words: &[&'a str]) -> Result<Vec<(&'a str, Vec<PartitionId>)>, String> {
        let mut topics: Vec<(&str, Vec<PartitionId>)> = Vec::new();
        for word in words {
            let (topic, partition) = Self::partition(word)?;
            match topics.iter_mut().find(|(name, _)| *name == topic) {
                Some((_, partitions)) => partitions.push(partition),
                None => topics.push((topic, vec![partition])),
            }
        }
        Ok(topics)
    }

    fn fetch(&mut self, command: &Command<'_>) -> Done {
        let topics = Self::named_partitions(command.words())?;
        let topics = (!topics.is_empty()).then_some(topics);
        let group = command.text("group").unwrap_or("g");
        let name = command.text("as").unwrap_or("reader");
        let (id, epoch) = (self.id(command, name), self.generation(command, name)?);
        let member = command.text("as").map(|_| (id.as_str(), epoch));
        self.ask(name, Ask::FetchOffsets(offsets::Fetch { group, member, topics }));
        Ok(())
    }

    fn delete_offsets(&mut self, command: &Command<'_>) -> Done {
        let topics = Self::named_partitions(command.words())?;
        let group = command.text("group").unwrap_or("g");
        self.ask("admin", Ask::DeleteOffsets(offsets::Delete { group, topics }));
        Ok(())
    }

    fn administer(&mut self, command: &Command<'_>) -> Done {
        let group = command.text("group").unwrap_or("g");
        let body = match command.verb {
            "describe" => Ask::Describe(admin::Describe { group }),
            "delete-group" => Ask::DeleteGroup(admin::DeleteGroup { group }),
            _ => Ask::List(admin::List {
                states: command.text("states").map_or(vec![], |text| text.split(',').collect()),
                types: command.text("types").map_or(vec![], |text| text.split(',').collect()),
            }),
        };
        self.ask("admin", body);
        Ok(())
    }

    fn view(&mut self, command: &Command<'_>) {
        let group = command.text("group").unwrap_or("g");
        let text = match self.broker.shard.group(group).value {
            Some(view) => self.names.view(&view),
            None => format!("no group {group}\n"),
        };
        self.out += &text;
    }

    /// Lets time pass, deadline by deadline, and says when something came out.
    fn advance(&mut self, span: Duration) {
        let end = self.now + span;
        // A deadline may come early and move on; it may not stand still.
        for _ in 0..10_000 {
            let Some(deadline) = self.broker.deadline().filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(deadline);
            self.broker.timeout(self.clock());
            let before = std::mem::take(&mut self.out);
            self.drain();
            let said = std::mem::replace(&mut self.out, before);
            if !said.is_empty() {
                let time = at(self.now);
                self.say(&format!("at {time}"));
                self.out += &said;
            }
        }
        panic!("a deadline stands still at {}", at(self.now));
    }

    fn be_patient(&mut self, command: &Command<'_>) -> Done {
        let interval_min = command.words().first().map(|word| span(word)).transpose()?;
        let (acks_at_once, rests_after_answer) = (command.has("acks"), command.has("rests"));
        let hold_max = command.span("hold")?;
        self.patience = Patience { interval_min, hold_max, acks_at_once, rests_after_answer };
        Ok(())
    }

    /// Another request waits behind the last one of this member.
    fn wait_behind(&mut self, name: &str) {
        let last = self.askers.iter().rev().find(|(_, asker)| *asker == name);
        if let Some(token) = last.map(|(token, _)| *token) {
            self.broker.waiting_behind(token, self.clock());
        }
    }

    fn close(&mut self, name: &str) {
        let connection = self.connection(name);
        let now = self.clock();
        self.broker.closed(connection, now);
        self.connections.remove(name);
        let next = ConnectionId(1000 + self.tokens);
        self.connections.insert(name.into(), next);
    }

    /// One decision, or all of them, become durable; what waited for them leaves.
    fn durable(&mut self, count: Option<&str>) -> Done {
        let all = self.broker.undurable.len();
        let count = count.map_or(Ok(all), |text| number(text).map(|n| n as usize))?;
        self.holds = count < all;
        for _ in 0..count {
            let now = self.clock();
            let released = self.broker.make_durable(&mut self.log, now);
            let Ok(released) = released else { return Err("the shard was deposed".into()) };
            for (token, reply) in released {
                self.say_reply(token, &reply, " released");
            }
        }
        Ok(())
    }

    fn fail(&mut self) {
        for (token, reply) in self.broker.fail() {
            self.say_reply(token, &reply, " instead");
        }
    }

    /// The broker dies; what was not durable is lost, or was written after all (`keep`).
    fn restart(&mut self, stays_loading: bool, keeps: bool) {
        let now = self.clock();
        while keeps && !self.broker.undurable.is_empty() {
            if self.broker.make_durable(&mut self.log, now).is_err() {
                break;
            }
        }
        self.holds = false;
        self.connections.clear();
        self.start();
        if !stays_loading {
            self.loaded();
        }
    }

    fn own(&mut self, command: &Command<'_>) -> Done {
        let epoch = command.number("epoch")?.ok_or("which epoch?")?;
        let until = command.span("until")?.map_or(FOREVER, |span| Instant::ZERO + span);
        let epoch = OwnershipEpoch(epoch as i32);
        let is_new = epoch != self.broker.epoch;
        self.log.fence = self.log.fence.max(epoch);
        let now = self.clock();
        self.broker.own(epoch, until, now);
        if is_new {
            self.broker.replay(&self.log, 0);
        }
        Ok(())
    }

    /// `config initial-delay=0ms group-size=2`: starts over with an empty log.
    fn configure(&mut self, command: &Command<'_>) -> Done {
        for (key, value) in command.pairs() {
            match *key {
                "initial-delay" => self.config.initial_rebalance_delay = span(value)?,
                "register-min" => self.config.register_session_timeout_min = span(value)?,
                "session-min" => self.config.session_timeout_min = span(value)?,
                "new-member" => self.config.new_member_join_timeout = span(value)?,
                "retention" => self.config.offsets_retention = span(value)?,
                "retention-check" => self.config.offsets_retention_check_interval = span(value)?,
                "margin" => self.config.ownership_margin = span(value)?,
                "group-size" => self.config.group_size_max = number(value)? as usize,
                "groups" => self.config.groups_max = number(value)? as usize,
                "group-bytes" => self.config.group_metadata_bytes_max = number(value)? as usize,
                "consumer-session" => self.config.consumer_session_timeout = span(value)?,
                "assignment-interval" => self.config.consumer_assignment_interval = span(value)?,
                "consumer-size" => self.config.consumer_group_size_max = number(value)? as usize,
                "migration" => {
                    self.config.consumer_migration =
                        MigrationPolicy::named(value).ok_or("no such policy")?
                }
                "parked" => self.config.parked_max = number(value)? as usize,
                "batch-bytes" => self.config.batch_bytes_max = number(value)? as usize,
                "metadata-bytes" => {
                    self.config.offset_metadata_bytes_max = number(value)? as usize;
                }
                key => return Err(format!("{key} is not a setting of the stage")),
            }
        }
        self.log = Log::default();
        self.names = Names::default();
        self.generations.clear();
        self.start();
        self.loaded();
        Ok(())
    }

    /// `topics t=3 u=1#2`: these topics exist, with so many partitions; `#` names an incarnation.
    fn set_topics(&mut self, command: &Command<'_>) -> Done {
        let named = command
            .pairs()
            .iter()
            .flat_map(|(name, value)| expanded(name).into_iter().map(move |name| (name, *value)));
        let topics = named.map(|(name, value)| {
            let (count, incarnation) = value.split_once('#').unwrap_or((value, "1"));
            let mut id = [0; 16];
            id[..name.len().min(8)].copy_from_slice(&name.as_bytes()[..name.len().min(8)]);
            id[15] = number(incarnation)? as u8;
            Ok(Topic {
                id: TopicId(id),
                name: name.as_str().into(),
                partitions: vec![Partition::default(); number(count)? as usize],
            })
        });
        let topics: Vec<Topic> = topics.collect::<Result<_, String>>()?;
        self.topics = TopicsView::new(topics);
        let now = self.clock();
        self.broker.topics(Arc::new(self.topics.clone()), now);
        Ok(())
    }
}

/// The register protocol's commands.
impl Stage {
    fn register(&mut self, command: &Command<'_>) -> Done {
        let name = command.word()?;
        let id = self.id(command, name);
        let topics = command.text("topics").unwrap_or("t").split(',');
        let number = |key, default| Ok::<_, String>(command.number(key)?.unwrap_or(default) as i32);
        let body = Ask::Register(Register {
            group: command.text("group").unwrap_or("g"),
            member: &id,
            host: command.text("host").unwrap_or_default(),
            session_timeout: command.span("session")?.unwrap_or(Duration::from_secs(1)),
            heartbeat_frequency: number("frequency", 3)?,
            failed_heartbeat_threshold: number("threshold", 3)?,
            topics: topics.filter(|topic| *topic != "none").collect(),
        });
        self.ask_on(command.text("on").unwrap_or(name), name, body);
        Ok(())
    }

    fn beat(&mut self, command: &Command<'_>) -> Done {
        for name in command.words() {
            let id = self.id(command, name);
            let generation = self.generation(command, name)?;
            let group = command.text("group").unwrap_or("g");
            let body =
                Ask::RegisterHeartbeat(register::Heartbeat { group, generation, member: &id });
            self.ask_on(command.text("on").unwrap_or(name), name, body);
            self.settle();
        }
        Ok(())
    }

    fn metadata(&mut self, command: &Command<'_>) -> Done {
        let group = command.text("group").unwrap_or("g");
        let body = Ask::ConsumerMetadata(register::ConsumerMetadata { group });
        self.ask(command.word()?, body);
        Ok(())
    }

    /// `assignor g=roundrobin`: these groups have an assignor of their own.
    fn set_assignor(&mut self, command: &Command<'_>) -> Done {
        let settings = command.pairs().iter().map(|(group, name)| {
            let register_assignor = Some(Assignor::named(name).ok_or("no such assignor")?);
            let own = GroupSettings { register_assignor, ..GroupSettings::default() };
            Ok(((*group).into(), own))
        });
        let settings = settings.collect::<Result<SettingsView, String>>()?;
        let now = self.clock();
        self.broker.settings(Arc::new(settings), now);
        Ok(())
    }
}

/// A part of an assignment: `t-0+t-1`, as consumers write it, with the assignor's own data after a
/// `!`; any other text is itself.
fn part(text: &str) -> Vec<u8> {
    let (partitions, data) = text.split_once('!').unwrap_or((text, ""));
    match named(partitions) {
        Ok(partitions) if !partitions.is_empty() => {
            let user_data = (!data.is_empty()).then(|| data.as_bytes().to_vec());
            Assignment { partitions, user_data }.encode(3)
        }
        _ => text.as_bytes().to_vec(),
    }
}

/// `t-0+t-1`, `none`.
fn named(text: &str) -> Result<Partitions, String> {
    let mut partitions = Partitions::default();
    for slot in text.split('+').filter(|slot| *slot != "none") {
        let (topic, partition) = Stage::partition(slot)?;
        partitions.insert(&topic.into(), partition);
    }
    Ok(partitions)
}

/// `x{300}` stands for `x000`, `x001` and so on.
fn expanded(name: &str) -> Vec<String> {
    let many = name.strip_suffix('}').and_then(|name| name.split_once('{'));
    match many.and_then(|(stem, count)| Some((stem, count, count.parse::<usize>().ok()?))) {
        Some((stem, count, all)) => {
            (0..all).map(|at| format!("{stem}{at:0width$}", width = count.len())).collect()
        }
        None => vec![name.into()],
    }
}
