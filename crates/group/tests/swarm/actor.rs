//! A slot for one member after another: the shipped member code, and an application on top of it
//! that reads what it owns, commits, gives up partitions in its own time, sleeps and dies.

use crate::checker::{Floor, Life, TOPICS, Verdict, place, topic_name};
use crate::net::Sent;
use crate::rng::Rng;
use crate::site::LEASE;
use crate::world::{Event, MS, SECOND, World};
use ottla_group::assign::{Assignor, Partitions};
use ottla_group::coordinator::MigrationPolicy;
use ottla_group::member::{
    CallId, Config, Lane, Member, OffsetsId, Output, PartitionOffset, Protocol, TopicOffsets,
};
use ottla_group::message::offsets::{Committed, Fetched};
use ottla_group::message::{GroupError, Patience};
use ottla_model::{InstanceId, NodeId, Offset, PartitionId, TopicName};
use std::collections::BTreeMap;
use std::time::Duration;

/// What one seed's group is like.
pub struct Plan {
    /// Places for members, one of them for a twin of a static member.
    pub slots: usize,
    /// Slots that are filled at the start.
    pub members: usize,
    /// What its processes speak; `None`: each one whichever it likes, so that the group migrates.
    pub protocol: Option<Protocol>,
    /// Whether and where it may.
    pub migration: MigrationPolicy,
    /// What most members bear.
    patience: Patience,
    assignors: Vec<Assignor>,
    statics: usize,
    pub session_timeout: Duration,
    rebalance_timeout: Duration,
    request_timeout: Duration,
}

impl Plan {
    pub fn draw(rng: &mut Rng) -> Self {
        use Assignor::{CooperativeSticky, Range, RoundRobin, Sticky};
        let assignors: &[Assignor] = match rng.below(8) {
            0 => &[Range],
            1 => &[RoundRobin, Range],
            2 => &[Sticky],
            3 => &[Range, CooperativeSticky],
            _ => &[CooperativeSticky],
        };
        let members = rng.between(8, 10) as usize;
        let protocol = match rng.below(3) {
            0 => Some(Protocol::Consumer),
            1 => Some(Protocol::Classic),
            _ => None,
        };
        let migration = match rng.percent(80) {
            true => MigrationPolicy::Bidirectional,
            false => MigrationPolicy::Upgrade,
        };
        Self {
            slots: members + 1,
            members,
            protocol,
            migration,
            patience: Patience {
                interval_min: rng.percent(50).then_some(SHORTEST),
                hold_max: Some(Duration::from_millis(rng.between(100, 3000)))
                    .filter(|_| rng.percent(75)),
                acks_at_once: members.is_multiple_of(2),
                rests_after_answer: members == 9,
            },
            assignors: assignors.to_vec(),
            statics: rng.below(4),
            session_timeout: Duration::from_millis(rng.between(2000, 6000)),
            rebalance_timeout: Duration::from_millis(rng.between(2000, 10_000)),
            request_timeout: Duration::from_millis(rng.between(1500, 5000)),
        }
    }

    /// What the client in this slot bears; in every fourth slot answers are not kept.
    pub fn patience(&self, slot: usize) -> Patience {
        let hold_max = self.patience.hold_max.filter(|_| slot % 4 != 3);
        Patience { hold_max, ..self.patience }
    }
}

/// What members bear where they bear anything.
const SHORTEST: Duration = Duration::from_millis(100);
/// How long most processes of a mixed group prefer one protocol.
const PREFERENCE: u64 = 8 * SECOND;

pub struct Actor {
    pub slot: usize,
    pub incarnation: u32,
    pub member: Option<Member>,
    pub lanes: [Option<usize>; 2],
    pub paused_until: u64,
    pub topics: Vec<usize>,
    pub watch_round: u64,
    pub instance: Option<InstanceId>,
    /// When the last process in this slot ended.
    ended_at: Option<u64>,
    timer_at: u64,
    /// Partitions it reads, and how far it got.
    pub positions: BTreeMap<usize, i64>,
    /// What it is giving up.
    revoking: Partitions,
    revocations: u32,
    commits: BTreeMap<OffsetsId, usize>,
    fetches: BTreeMap<OffsetsId, (Partitions, Floor)>,
}

impl Actor {
    pub fn new(slot: usize, plan: &Plan) -> Self {
        // The last slot holds a twin of the first static member.
        let instance = match slot {
            slot if slot < plan.statics => Some(slot),
            slot if slot + 1 == plan.slots && plan.statics > 0 => Some(0),
            _ => None,
        };
        Self {
            slot,
            incarnation: 0,
            member: None,
            lanes: [None; 2],
            paused_until: 0,
            topics: Vec::new(),
            watch_round: 0,
            instance: instance.map(|n| InstanceId::from(format!("i{n}"))),
            ended_at: None,
            timer_at: u64::MAX,
            positions: BTreeMap::new(),
            revoking: Partitions::new(),
            revocations: 0,
            commits: BTreeMap::new(),
            fetches: BTreeMap::new(),
        }
    }

    pub fn life(&self) -> Life {
        Life { slot: self.slot, incarnation: self.incarnation }
    }

    fn is_running(&self) -> bool {
        self.member.as_ref().is_some_and(|member| !member.is_over())
    }

    fn forget(&mut self, partitions: &Partitions) {
        for (topic, partition) in partitions.iter() {
            self.positions.remove(&place(topic, partition));
        }
    }
}

impl World {
    /// A new process in this slot, if none is running.
    pub fn start(&mut self, slot: usize) -> Verdict {
        if self.actors[slot].is_running() {
            // It may have unsubscribed, and now wants something again.
            let rests = self.actors[slot].topics.is_empty();
            return if rests { self.resubscribe(slot) } else { Ok(()) };
        }
        let topics: Vec<usize> = match self.rng.below(4) {
            0 => vec![self.rng.below(TOPICS)],
            1 => vec![0, 1],
            _ => (0..TOPICS).collect(),
        };
        let seed = self.rng.next();
        let protocol = self.some_protocol();
        let config = self.member_config(slot, protocol);
        let now = self.instant();
        self.drop_process(slot);
        let actor = &mut self.actors[slot];
        actor.topics.clone_from(&topics);
        let mut member = Member::new(config, seed);
        member.subscribe(topics.iter().map(|topic| TopicName::from(topic_name(*topic))), now);
        actor.member = Some(member);
        let life = actor.incarnation;
        self.trace.say(|| format!("--- {slot} starts"));
        self.after(self.plan_turn(), Event::AppTurn(slot, life));
        self.after_member(slot)
    }

    fn plan_turn(&self) -> u64 {
        150 * MS
    }

    /// What a new process speaks. For a while most speak the one, then most the other.
    fn some_protocol(&mut self) -> Protocol {
        if let Some(protocol) = self.plan.protocol {
            return protocol;
        }
        let is_late = (self.now / PREFERENCE).is_multiple_of(2);
        match self.rng.percent(if is_late { 80 } else { 20 }) {
            true => Protocol::Classic,
            false => Protocol::Consumer,
        }
    }

    fn member_config(&self, slot: usize, protocol: Protocol) -> Config {
        let plan = &self.plan;
        Config {
            instance: self.actors[slot].instance.clone(),
            protocol,
            assignors: plan.assignors.clone(),
            session_timeout: plan.session_timeout,
            heartbeat_interval: plan.session_timeout / 4,
            rebalance_timeout: plan.rebalance_timeout,
            request_timeout: plan.request_timeout,
            retry_backoff_min: Duration::from_millis(20),
            retry_backoff_max: Duration::from_millis(500),
            ..Config::new("g")
        }
    }

    /// Whatever ran in this slot is gone without a word.
    pub fn drop_process(&mut self, slot: usize) {
        for lane in 0..2 {
            if let Some(index) = self.actors[slot].lanes[lane].take() {
                self.close_by_client(index);
            }
        }
        let actor = &mut self.actors[slot];
        self.checker.died(actor.life());
        if actor.is_running() {
            actor.ended_at = Some(self.now);
        }
        actor.incarnation += 1;
        actor.member = None;
        actor.paused_until = 0;
        actor.timer_at = u64::MAX;
        actor.positions.clear();
        actor.commits.clear();
        actor.fetches.clear();
        actor.revoking = Partitions::new();
    }

    pub fn member_timer(&mut self, slot: usize) -> Verdict {
        let now = self.instant();
        let actor = &mut self.actors[slot];
        if actor.paused_until > self.now {
            return Ok(());
        }
        if actor.timer_at > self.now {
            return Ok(());
        }
        actor.timer_at = u64::MAX;
        let Some(member) = &mut actor.member else { return Ok(()) };
        member.handle_timeout(now);
        self.after_member(slot)
    }

    /// A process that slept looks at the clock before it does anything else.
    pub fn wake(&mut self, slot: usize) -> Verdict {
        let now = self.instant();
        let actor = &mut self.actors[slot];
        if actor.paused_until > self.now {
            return Ok(());
        }
        actor.paused_until = 0;
        actor.timer_at = u64::MAX;
        let Some(member) = &mut actor.member else { return Ok(()) };
        member.handle_timeout(now);
        self.after_member(slot)?;
        // It had its chance to notice: nothing of its may be another's.
        self.checker.exclusive(is_excused(&self.actors, &self.plan, self.now))
    }

    pub fn found(&mut self, slot: usize, life: u32, call: CallId) -> Verdict {
        if self.actors[slot].incarnation != life {
            return Ok(());
        }
        if self.actors[slot].paused_until > self.now {
            let at = self.actors[slot].paused_until;
            self.at(at, Event::Found(slot, life, call));
            return Ok(());
        }
        let stale = !self.is_calm && self.rng.percent(10);
        let silent = !self.is_calm && self.rng.percent(4);
        let site = if stale { 1 - self.owner } else { self.owner };
        let now = self.instant();
        let Some(member) = &mut self.actors[slot].member else { return Ok(()) };
        member.handle_coordinator(call, (!silent).then_some(NodeId(site as i32)), now);
        self.after_member(slot)
    }

    pub fn tell_topics(&mut self, slot: usize, life: u32, round: u64) -> Verdict {
        if self.actors[slot].incarnation != life || self.actors[slot].watch_round != round {
            return Ok(());
        }
        if self.actors[slot].paused_until > self.now {
            let at = self.actors[slot].paused_until;
            self.at(at, Event::Topics(slot, life, round));
            return Ok(());
        }
        let (now, view) = (self.instant(), (*self.topics).clone());
        let Some(member) = &mut self.actors[slot].member else { return Ok(()) };
        member.handle_topics(round, view, now);
        self.after_member(slot)
    }

    /// Carries out whatever the member wants, and sees to its next deadline.
    pub fn after_member(&mut self, slot: usize) -> Verdict {
        let mut assigned = false;
        let mut taken_away = Partitions::new();
        while let Some(output) = self.actors[slot].member.as_mut().and_then(Member::poll) {
            if let Output::Revoke(partitions) = &output {
                taken_away = partitions.clone();
            }
            assigned |= matches!(output, Output::Assigned(_));
            self.carry_out(slot, output)?;
        }
        let actor = &self.actors[slot];
        let life = actor.life();
        let Some(member) = &actor.member else { return Ok(()) };
        if assigned && let Some(generation) = member.generation() {
            let part = member.owned().minus(&taken_away);
            let actors = &self.actors;
            let instance = &actors[slot].instance;
            let is_former =
                |other: Life| instance.is_some() && actors[other.slot].instance == *instance;
            self.checker.adopted(life, generation, &part, is_former)?;
        }
        if let Some(at) = member.deadline().map(|at| at.as_nanos())
            && at < actor.timer_at
        {
            self.actors[slot].timer_at = at;
            self.at(at.max(self.now), Event::MemberTimer(slot));
        }
        Ok(())
    }

    fn carry_out(&mut self, slot: usize, output: Output) -> Verdict {
        self.trace.say(|| format!("  {slot} says {output:?}"));
        let life = self.actors[slot].incarnation;
        match output {
            Output::Watch { round, .. } => {
                self.actors[slot].watch_round = round;
                let delay = self.rng.between(1, 300) * MS;
                self.after(delay, Event::Topics(slot, life, round));
            }
            Output::Find { call } => {
                let delay = self.network_delay();
                self.after(delay, Event::Found(slot, life, call));
            }
            Output::Send { call, node, lane, request } => {
                let connection = self.connection(slot, lane, node.0 as usize);
                self.send_on(connection, call, Sent::Request(request));
            }
            Output::Disconnect => {
                for lane in 0..2 {
                    if let Some(index) = self.actors[slot].lanes[lane].take() {
                        self.close_by_client(index);
                    }
                }
            }
            Output::Assigned(partitions) => return self.begin_reading(slot, partitions),
            Output::Revoke(partitions) => self.plan_revocation(slot, partitions),
            Output::Lost(partitions) => {
                let actor = &mut self.actors[slot];
                actor.forget(&partitions);
                actor.revoking = Partitions::new();
                self.checker.gave_up(actor.life(), &partitions);
            }
            Output::Committed { id, outcome } => {
                if let (Some(number), Ok(committed)) =
                    (self.actors[slot].commits.remove(&id), outcome)
                {
                    self.note_commit(number, &committed);
                }
            }
            Output::Fetched { id, outcome } => return self.note_fetched(slot, id, outcome),
            Output::Failed(error) => return self.note_failure(slot, error),
            Output::Left => self.note_left(slot),
        }
        Ok(())
    }

    fn connection(&mut self, slot: usize, lane: Lane, site: usize) -> usize {
        let actor = &self.actors[slot];
        let life = actor.incarnation;
        if let Some(index) = actor.lanes[lane as usize] {
            if self.connections[index].site == site && self.connections[index].client_open {
                return index;
            }
            self.close_by_client(index);
        }
        let index = self.open(slot, life, lane, site);
        self.actors[slot].lanes[lane as usize] = Some(index);
        index
    }

    fn begin_reading(&mut self, slot: usize, partitions: Partitions) -> Verdict {
        let life = self.actors[slot].life();
        let is_excused = is_excused(&self.actors, &self.plan, self.now);
        let (floor, member) = (self.checker.floor(), &self.actors[slot].member);
        // What it was given of a topic that is another one by now is nobody's concern.
        let current = partitions.filtered(|topic, partition| {
            let id = member.as_ref().and_then(|member| member.topic_id(topic));
            let topic = place(topic, partition) / crate::checker::PARTITIONS_MAX;
            id.is_none_or(|id| id == floor.id(topic))
        });
        self.checker.gained(life, &current, is_excused)?;
        self.fetch(slot, partitions);
        Ok(())
    }

    fn fetch(&mut self, slot: usize, partitions: Partitions) {
        if partitions.is_empty() {
            return;
        }
        let (now, floor) = (self.instant(), self.checker.floor());
        let actor = &mut self.actors[slot];
        if let Some(member) = &mut actor.member {
            let id = member.fetch(partitions.clone(), now);
            actor.fetches.insert(id, (partitions, floor));
        }
    }

    fn note_fetched(
        &mut self,
        slot: usize,
        id: OffsetsId,
        outcome: Result<Fetched, GroupError>,
    ) -> Verdict {
        let actor = &mut self.actors[slot];
        let Some((partitions, floor)) = actor.fetches.remove(&id) else { return Ok(()) };
        let fetched = outcome.map_err(|error| format!("an offset fetch ends with {error}"))?;
        self.checker.read(&fetched, &floor)?;
        let Some(member) = &actor.member else { return Ok(()) };
        for (topic, found) in &fetched.topics {
            for (partition, committed) in found {
                // Another fetch may be on its way for what was lost and won again meanwhile.
                let is_again = actor.fetches.values().any(|(p, _)| p.contains(topic, *partition));
                let is_owned = member.owned().contains(topic, *partition);
                if is_owned && !is_again && partitions.contains(topic, *partition) {
                    let offset = committed.as_ref().map_or(0, |committed| committed.offset.0);
                    let at = place(topic, *partition);
                    // What was committed for a topic that is no more is no position in this one.
                    let is_current = floor.is_current(&self.checker.floor(), at);
                    actor.positions.insert(at, if is_current { offset } else { 0 });
                }
            }
        }
        Ok(())
    }

    /// The application finishes with the partitions in its own time, and commits, mostly.
    fn plan_revocation(&mut self, slot: usize, partitions: Partitions) {
        let actor = &mut self.actors[slot];
        actor.revoking = partitions;
        actor.revocations += 1;
        let (life, number) = (actor.incarnation, actor.revocations);
        let delay = match self.rng.below(10) {
            0..=5 => self.rng.between(0, 20) * MS,
            6..=8 => self.rng.between(0, 1000) * MS,
            _ if self.is_calm => 500 * MS,
            _ => self.rng.between(0, 12) * SECOND,
        };
        self.after(delay, Event::AppRevoked(slot, life, number));
    }

    pub fn app_revoked(&mut self, slot: usize, life: u32, number: u32) -> Verdict {
        let actor = &self.actors[slot];
        if actor.incarnation != life || actor.revocations != number || actor.revoking.is_empty() {
            return Ok(());
        }
        if actor.paused_until > self.now {
            let at = actor.paused_until;
            self.at(at, Event::AppRevoked(slot, life, number));
            return Ok(());
        }
        if self.rng.percent(70) {
            self.commit(slot);
        }
        let now = self.instant();
        let actor = &mut self.actors[slot];
        let revoking = std::mem::take(&mut actor.revoking);
        let life = actor.life();
        if let Some(member) = &mut actor.member {
            // Ownership may have ended by itself just now; then there is nothing to give up.
            member.revoked(now);
            let given_up = revoking.filtered(|topic, p| !member.owned().contains(topic, p));
            actor.forget(&given_up);
            self.checker.gave_up(life, &given_up);
        }
        self.after_member(slot)
    }

    /// The application reads on, and commits now and then.
    pub fn app_turn(&mut self, slot: usize, life: u32) -> Verdict {
        if self.actors[slot].incarnation != life {
            return Ok(());
        }
        let pause = self.rng.between(100, 700) * MS;
        self.after(pause, Event::AppTurn(slot, life));
        if self.actors[slot].paused_until > self.now {
            return Ok(());
        }
        let actor = &mut self.actors[slot];
        for position in actor.positions.values_mut() {
            *position += self.rng.between(0, 4) as i64;
        }
        if self.rng.percent(40) {
            self.commit(slot);
        }
        self.after_member(slot)
    }

    /// Commits how far it got, everywhere.
    pub fn commit(&mut self, slot: usize) {
        let now = self.instant();
        let floor = self.checker.floor();
        let actor = &mut self.actors[slot];
        let Some(member) = &mut actor.member else { return };
        // Whoever reads by a topic's id has read nothing of the one made in its place.
        let is_current = |place: usize| {
            let topic = place / crate::checker::PARTITIONS_MAX;
            member.topic_id(topic_name(topic)).is_none_or(|id| id == floor.id(topic))
        };
        let offsets: Vec<(usize, i64)> = actor
            .positions
            .iter()
            .filter(|(place, offset)| **offset > 0 && is_current(**place))
            .map(|(place, offset)| (*place, *offset))
            .collect();
        if offsets.is_empty() {
            return;
        }
        let commit = committable(&offsets, self.checker.next_commit(), &floor);
        let number = self.checker.number_commit(offsets);
        let id = member.commit(commit, now);
        actor.commits.insert(id, number);
    }

    fn note_commit(&mut self, number: usize, committed: &Committed) {
        let is_stored = |wanted: usize| {
            committed.topics.iter().any(|(topic, partitions)| {
                partitions.iter().any(|(p, outcome)| place(topic, *p) == wanted && outcome.is_ok())
            })
        };
        self.checker.committed(number, is_stored);
    }

    fn note_failure(&mut self, slot: usize, error: GroupError) -> Verdict {
        if error != GroupError::FencedInstanceId {
            return Err(format!("member {slot} fails with {error}"));
        }
        self.note_left(slot);
        Ok(())
    }

    /// It is over; in a storm another one may take its place.
    fn note_left(&mut self, slot: usize) {
        let actor = &mut self.actors[slot];
        actor.positions.clear();
        self.checker.died(actor.life());
        let is_over = actor.member.as_ref().is_some_and(Member::is_over);
        if is_over {
            actor.ended_at = Some(self.now);
        }
        if is_over && !self.is_calm && slot + 1 < self.plan.slots {
            let delay = self.rng.between(100, 5000) * MS;
            self.after(delay, Event::Start(slot));
        }
    }
}

/// Who may have what another has: who sleeps; and who has a twin, a process with its instance id
/// (KIP-345), for a process takes another's place at once, with no session to wait for, and that
/// one hears of it with its next request, which may be when an answer that was long under way has
/// just given it something. Whoever starts two such processes has asked for it. It lasts no longer
/// than it can: once the twin is gone, until the last it sent was heard by a coordinator that
/// stood still, and a session timeout from then.
pub fn is_excused(actors: &[Actor], plan: &Plan, now: u64) -> impl Fn(Life) -> bool {
    let grace = LEASE + plan.session_timeout.as_nanos() as u64;
    let was_there = move |twin: &Actor| {
        twin.is_running() || twin.ended_at.is_some_and(|ended_at| now <= ended_at + grace)
    };
    move |life| {
        let one = &actors[life.slot];
        let is_twin = |other: &Actor| other.slot != one.slot && other.instance == one.instance;
        let has_twin =
            || one.instance.is_some() && actors.iter().any(|a| is_twin(a) && was_there(a));
        one.paused_until >= now || has_twin()
    }
}

/// Offsets as a member commits them, with the commit's number beside each.
fn committable(offsets: &[(usize, i64)], number: usize, now: &Floor) -> Vec<TopicOffsets> {
    let mut topics: Vec<TopicOffsets> = Vec::new();
    for (at, offset) in offsets {
        let (topic, partition) =
            (at / crate::checker::PARTITIONS_MAX, at % crate::checker::PARTITIONS_MAX);
        let name = topic_name(topic);
        if topics.last().is_none_or(|last| last.topic.as_str() != name) {
            let id = now.id(topic);
            topics.push(TopicOffsets { topic: name.into(), id, partitions: Vec::new() });
        }
        if let Some(last) = topics.last_mut() {
            last.partitions.push(PartitionOffset {
                partition: PartitionId(partition as i32),
                offset: Offset(*offset),
                leader_epoch: None,
                metadata: number.to_string(),
            });
        }
    }
    topics
}
