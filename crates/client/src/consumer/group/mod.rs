//! The task that drives a group's [`Member`]: it feeds events, carries out outputs, and sleeps
//! until the member's deadline. Every rule of the protocols is the member's; here are only
//! sockets, tasks, and what the consumer's own settings ask for (`max.poll.interval.ms`,
//! patterns).

mod lane;
mod outcome;
mod topics;
mod wire;

pub(super) use outcome::CommittedOffsets;

use super::Shared;
use super::event::RebalanceEvent;
use super::pattern::TopicFilter;
use crate::connection::{Answer, Connection};
use crate::{ConsumerConfig, Error, ErrorKind, GroupProtocol, Result, clock};
use lane::LaneState;
use ottla_group::assign::Partitions;
use ottla_group::member::{
    CallId, Config, Lane, Member, OffsetsId, Output, Protocol, Request, TopicOffsets,
};
use ottla_group::message::GroupError;
use ottla_model::{Instant, NodeId, OwnershipEpoch, TopicName};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{mpsc, oneshot};
use topics::{Wanted, Watch};
use wire::Kind;

/// What the consumer wants of its group. Whoever waits for an answer bounds how many there are.
pub(super) enum Command {
    Subscribe(Vec<TopicName>),
    SubscribeMatching(Arc<TopicFilter>),
    /// By a pattern that the coordinator matches (KIP-848).
    SubscribeRegex(String),
    Unsubscribe,
    /// The application has given up what it was asked for.
    Revoked,
    /// The application polls again; perhaps the group went on without it.
    Return,
    Commit(Vec<TopicOffsets>, oneshot::Sender<Result<()>>),
    Fetch(Partitions, oneshot::Sender<Result<CommittedOffsets>>),
    /// Topics of partitions that the consumer reads without the group's doing.
    Assign(BTreeSet<TopicName>),
    Close,
}

/// What the tasks that wait tell.
enum Event {
    Coordinator(CallId, Result<(NodeId, OwnershipEpoch)>),
    Connected(Lane, u64, Result<Connection>),
    Closed(Lane, u64),
    Answered(Lane, u64, CallId, Kind, Result<Answer>),
}

pub(super) struct Driver {
    shared: Arc<Shared>,
    member: Member,
    /// What the member speaks: what was asked for, unless it had to fall back.
    protocol: GroupProtocol,
    commands: mpsc::UnboundedReceiver<Command>,
    events: (mpsc::UnboundedSender<Event>, mpsc::UnboundedReceiver<Event>),
    /// The highest ownership epoch a coordinator was told with.
    epoch: OwnershipEpoch,
    main: LaneState,
    side: LaneState,
    watch: Watch,
    commits: HashMap<OffsetsId, oneshot::Sender<Result<()>>>,
    fetches: HashMap<OffsetsId, oneshot::Sender<Result<CommittedOffsets>>>,
    standing: Standing,
}

/// How the application stands to its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// It subscribes to nothing.
    Apart,
    /// It takes part.
    Member,
    /// It did not poll for so long that it was made to leave.
    Late,
    /// It closes, and answers when it is asked for partitions.
    Closing,
    /// It is gone: nobody answers any more.
    Gone,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, commands: mpsc::UnboundedReceiver<Command>) -> Self {
        let member = Member::new(member_config(&shared), clock::seed());
        let protocol = shared.config.group_protocol;
        Self {
            shared,
            member,
            protocol,
            commands,
            events: mpsc::unbounded_channel(),
            epoch: OwnershipEpoch(0),
            main: LaneState::default(),
            side: LaneState::default(),
            watch: Watch::default(),
            commits: HashMap::new(),
            fetches: HashMap::new(),
            standing: Standing::Apart,
        }
    }

    /// Runs until the member has left for good.
    pub(super) async fn run(mut self) {
        let mut snapshots = self.shared.cluster.subscribe();
        while !(self.member.is_over() && self.is_closing()) {
            let deadline = [self.member.deadline(), self.late_at()].into_iter().flatten().min();
            tokio::select! {
                command = self.commands.recv(), if self.standing != Standing::Gone => {
                    self.on_command(command);
                }
                Some(event) = self.events.1.recv() => self.on_event(event),
                _ = snapshots.changed() => {
                    let snapshot = snapshots.borrow_and_update().clone();
                    self.on_snapshot(&snapshot);
                }
                () = clock::sleep_until(deadline) => self.on_deadline(),
            }
            self.carry_out();
        }
        self.main.close();
        self.side.close();
        self.shared.tell(RebalanceEvent::Left);
    }

    fn is_closing(&self) -> bool {
        matches!(self.standing, Standing::Closing | Standing::Gone)
    }

    /// When the application has not polled for too long.
    fn late_at(&self) -> Option<Instant> {
        if self.standing != Standing::Member {
            return None;
        }
        Some(self.shared.last_poll()? + self.shared.config.max_poll_interval)
    }

    fn on_deadline(&mut self) {
        let now = clock::now();
        if self.late_at().is_some_and(|at| at <= now) {
            let limit = self.shared.config.max_poll_interval;
            tracing::warn!(?limit, "the consumer was not polled in time, and leaves its group");
            self.standing = Standing::Late;
            self.shared.is_late.store(true, Ordering::Release);
            self.member.unsubscribe(now);
        }
        self.member.handle_timeout(now);
    }

    fn on_command(&mut self, command: Option<Command>) {
        let now = clock::now();
        match command {
            Some(Command::Subscribe(topics)) if topics.is_empty() => self.unsubscribe(),
            Some(Command::Subscribe(topics)) => self.subscribe(Wanted::Topics(topics)),
            Some(Command::SubscribeMatching(filter)) => self.subscribe(Wanted::Matching(filter)),
            Some(Command::SubscribeRegex(pattern)) => self.subscribe_regex(pattern),
            Some(Command::Unsubscribe) => self.unsubscribe(),
            Some(Command::Revoked) => self.member.revoked(now),
            Some(Command::Return) if self.standing == Standing::Late => {
                self.standing = Standing::Member;
                self.take_part();
            }
            Some(Command::Return) => {}
            Some(Command::Commit(topics, reply)) => {
                let id = self.member.commit(topics, now);
                self.commits.insert(id, reply);
            }
            Some(Command::Fetch(partitions, reply)) => {
                let id = self.member.fetch(partitions, now);
                self.fetches.insert(id, reply);
            }
            Some(Command::Assign(topics)) => {
                self.watch.assign(topics);
                self.watch.know(&self.shared.cluster);
            }
            Some(Command::Close) => {
                self.standing = Standing::Closing;
                self.member.close(now);
            }
            None => {
                self.standing = Standing::Gone;
                self.member.close(now);
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        let now = clock::now();
        match event {
            Event::Coordinator(call, Ok((node, epoch))) => {
                self.epoch = self.epoch.max(epoch);
                self.member.handle_coordinator(call, Some(node), now);
            }
            Event::Coordinator(call, Err(error)) => {
                self.member.handle_coordinator(call, None, now);
                if !error.is_retriable() {
                    self.fail(error);
                }
            }
            Event::Connected(lane, number, connection) => {
                if self.lane(lane).number == number {
                    self.on_connected(lane, connection);
                }
            }
            Event::Closed(lane, number) => {
                if self.lane(lane).number == number {
                    self.on_lost(lane);
                }
            }
            Event::Answered(lane, number, call, kind, answer) => {
                self.on_answered((lane, number), call, kind, answer);
            }
        }
    }

    fn on_answered(
        &mut self,
        (lane, number): (Lane, u64),
        call: CallId,
        kind: Kind,
        answer: Result<Answer>,
    ) {
        let snapshot = self.shared.cluster.snapshot();
        let Ok(answer) = answer else {
            // S21, S22: the connection is gone, and with it all that is under way on it.
            if self.lane(lane).number == number {
                self.on_lost(lane);
            }
            return;
        };
        match wire::read(kind, &answer, &snapshot) {
            Ok(reply) => self.member.handle_reply(call, reply, clock::now()),
            Err(error) if error.kind() == ErrorKind::Protocol => self.on_lost(lane),
            Err(error) => {
                self.fail(error);
                self.on_lost(lane);
            }
        }
    }

    fn on_connected(&mut self, lane: Lane, connection: Result<Connection>) {
        match connection {
            Ok(connection) => {
                let (number, events) = (self.lane(lane).number, self.events.0.clone());
                let watched = connection.clone();
                tokio::spawn(async move {
                    watched.closed().await;
                    let _ = events.send(Event::Closed(lane, number));
                });
                self.lane(lane).opened(connection);
                self.flush(lane);
            }
            Err(error) => {
                tracing::debug!(%error, "cannot reach the group's coordinator");
                self.on_lost(lane);
            }
        }
    }

    fn on_lost(&mut self, lane: Lane) {
        self.lane(lane).close();
        self.member.handle_disconnect(lane, clock::now());
    }

    fn lane(&mut self, lane: Lane) -> &mut LaneState {
        match lane {
            Lane::Main => &mut self.main,
            Lane::Side => &mut self.side,
        }
    }

    /// Carries out what the member says, until it says nothing more.
    fn carry_out(&mut self) {
        while let Some(output) = self.member.poll() {
            match output {
                Output::Watch { round, topics } => {
                    self.watch.ask(round, topics);
                    self.watch.know(&self.shared.cluster);
                }
                Output::Find { call } => self.find(call),
                Output::Send { call, node, lane, request } => self.send(call, node, lane, request),
                Output::Disconnect => {
                    self.main.close();
                    self.side.close();
                }
                Output::Assigned(partitions) => self.on_assigned(&partitions),
                Output::Revoke(partitions) => self.on_revoke(&partitions),
                Output::Lost(partitions) => self.on_lost_partitions(&partitions),
                Output::Committed { id, outcome } => {
                    if let Some(reply) = self.commits.remove(&id) {
                        let _ = reply.send(outcome::committed(outcome));
                    }
                }
                Output::Fetched { id, outcome } => {
                    if let Some(reply) = self.fetches.remove(&id) {
                        let _ = reply.send(outcome.map(outcome::fetched).map_err(Error::from));
                    }
                }
                Output::Failed(error) if self.may_fall_back(error) => self.fall_back(&error.into()),
                Output::Failed(error) => self.fail(error.into()),
                Output::Left => {}
            }
        }
    }

    fn find(&self, call: CallId) {
        let (shared, events) = (self.shared.clone(), self.events.0.clone());
        let epoch = self.epoch;
        tokio::spawn(async move {
            let (cluster, group) = (&shared.cluster, &shared.config.group_id);
            let found = match shared.config.group_protocol {
                GroupProtocol::Classic | GroupProtocol::Consumer => {
                    cluster.coordinator(group).await.map(|node| (node, epoch))
                }
                GroupProtocol::Register => cluster.register_coordinator(group, epoch).await,
            };
            let _ = events.send(Event::Coordinator(call, found));
        });
    }

    fn send(&mut self, call: CallId, node: NodeId, lane: Lane, request: Request) {
        if self.lane(lane).queue(node, call, request) {
            let number = self.lane(lane).number;
            let (cluster, events) = (self.shared.cluster.clone(), self.events.0.clone());
            tokio::spawn(async move {
                let connection = cluster.private_connection(node).await;
                let _ = events.send(Event::Connected(lane, number, connection));
            });
        }
        self.flush(lane);
    }

    /// Sends what is queued on a lane, if it is open.
    fn flush(&mut self, lane: Lane) {
        let snapshot = self.shared.cluster.snapshot();
        let config = &self.shared.config;
        // The member is less patient, but for a join; whichever gives up first closes both lanes.
        let patience = config.client.request_timeout + config.max_poll_interval;
        let number = self.lane(lane).number;
        let Some(connection) = self.lane(lane).connection().cloned() else { return };
        while let Some((call, request)) = self.lane(lane).queue.pop_front() {
            let regex = self.watch.regex();
            match wire::send(&connection, &request, &snapshot, (patience, regex)) {
                Ok((kind, awaited)) => {
                    let events = self.events.0.clone();
                    tokio::spawn(async move {
                        let answer = awaited.answer().await;
                        let _ = events.send(Event::Answered(lane, number, call, kind, answer));
                    });
                }
                Err(error) => {
                    if matches!(request, Request::Beat(_)) && error.kind() == ErrorKind::Unsupported
                    {
                        return self.fall_back(&error);
                    }
                    if !error.is_retriable() {
                        self.fail(error);
                    }
                    let _ = self.events.0.send(Event::Closed(lane, number));
                    return;
                }
            }
        }
    }

    /// Whether this refusal says that the coordinator has the consumer protocol switched off, or
    /// that the group is one of classic members which it does not convert.
    fn may_fall_back(&self, error: GroupError) -> bool {
        let is_lack = matches!(error, GroupError::UnsupportedVersion | GroupError::GroupIdNotFound);
        self.protocol == GroupProtocol::Consumer && is_lack
    }

    /// The coordinator lacks the consumer protocol: it is a classic member from now on.
    fn fall_back(&mut self, error: &Error) {
        if self.watch.regex().is_some_and(|pattern| !pattern.is_empty()) {
            return self.fail_regex(error);
        }
        let group = &self.shared.config.group_id;
        tracing::warn!(group, %error, "`group.protocol=consumer` falls back to `classic`");
        self.main.close();
        self.side.close();
        // What was asked for before its first heartbeat is asked for again by who waits for it.
        let late = || Error::new(ErrorKind::Retriable, "the group's protocol changed meanwhile");
        self.commits.drain().for_each(|(_, reply)| drop(reply.send(Err(late()))));
        self.fetches.drain().for_each(|(_, reply)| drop(reply.send(Err(late()))));
        self.protocol = GroupProtocol::Classic;
        let config = Config { protocol: Protocol::Classic, ..member_config(&self.shared) };
        self.member = Member::new(config, clock::seed());
        self.watch.forget();
        match self.standing {
            Standing::Member => self.take_part(),
            Standing::Closing | Standing::Gone => self.member.close(clock::now()),
            Standing::Apart | Standing::Late => {}
        }
    }

    fn on_assigned(&mut self, partitions: &Partitions) {
        // One on its way out will be asked for them at once.
        if self.standing == Standing::Member {
            self.shared.tell(RebalanceEvent::Assigned(outcome::list(partitions)));
        }
    }

    fn on_revoke(&mut self, partitions: &Partitions) {
        match self.standing {
            // Nobody is there to give them up, and nobody commits for them.
            Standing::Late => {
                self.on_lost_partitions(partitions);
                self.member.revoked(clock::now());
            }
            Standing::Gone => self.member.revoked(clock::now()),
            _ => self.shared.tell(RebalanceEvent::Revoke(outcome::list(partitions))),
        }
    }

    /// Not another record of them is handed out from now on (decision 27).
    fn on_lost_partitions(&self, partitions: &Partitions) {
        let lost = outcome::list(partitions);
        self.shared.assignment.lock().remove(&lost);
        self.shared.tell(RebalanceEvent::Lost(lost));
    }

    fn fail(&self, error: Error) {
        self.shared.tell(RebalanceEvent::Failed(error));
    }
}

fn member_config(shared: &Shared) -> Config {
    let config = &shared.config;
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Config {
        instance: text(&config.group_instance_id).map(Into::into),
        protocol: protocol(config),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        assignors: config.partition_assignment_strategy.clone(),
        remote_assignor: text(&config.group_remote_assignor),
        rack: text(&config.client.client_rack),
        session_timeout: config.session_timeout,
        heartbeat_interval: config.heartbeat_interval,
        rebalance_timeout: config.max_poll_interval,
        request_timeout: config.client.request_timeout,
        retry_backoff_min: config.client.retry_backoff,
        retry_backoff_max: config.client.retry_backoff_max,
        ..Config::new(config.group_id.as_str())
    }
}

fn protocol(config: &ConsumerConfig) -> Protocol {
    match (config.group_protocol, config.detection()) {
        (GroupProtocol::Consumer, _) => Protocol::Consumer,
        (GroupProtocol::Register, Some(detection)) => Protocol::Register(detection),
        // Settings that make no sense were refused.
        _ => Protocol::Classic,
    }
}
