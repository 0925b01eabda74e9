//! One seed's world: a clock, a queue of what happens next, and everybody in it.

use crate::actor::{Actor, Plan, is_excused};
use crate::checker::{Checker, PARTITIONS_MAX, TOPICS, Verdict, topic_name};
use crate::harness::Log;
use crate::net::{Connection, OBSERVER};
use crate::rng::{Rng, Trace};
use crate::site::{NextAppend, Site};
use ottla_group::member::{CallId, Lane, Member, Protocol};
use ottla_model::{Instant, Now, OwnershipEpoch, Partition, Timestamp, Topic, TopicId, TopicsView};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1000 * MS;
/// At least so many events in every seed.
pub const EVENTS_MIN: u64 = 500;
/// Nobody has so much to do.
const EVENTS_MAX: u64 = 100_000;
/// How long a storm blows, at least.
const STORM: u64 = 25 * SECOND;
/// How soon after a storm everything must be in order.
const CALM_MAX: u64 = 90 * SECOND;

/// What can happen. `u32` is the incarnation or reign it was meant for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Event {
    ToSite(usize),
    ToClient(usize),
    SiteSeesClose(usize),
    ClientSeesClose(usize),
    MemberTimer(usize),
    Wake(usize),
    AppTurn(usize, u32),
    AppRevoked(usize, u32, u32),
    Found(usize, u32, CallId),
    Topics(usize, u32, u64),
    Start(usize),
    SiteTimer(usize, u32),
    Durable(usize, u32),
    Loaded(usize, u32),
    Deposed(usize, u32),
    Boot(usize),
    Renew,
    Chaos,
    Observe,
    Calm,
    Inspect,
}

pub struct World {
    pub rng: Rng,
    pub now: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    serial: u64,
    pub events: u64,
    pub trace: Trace,
    pub plan: Plan,
    pub actors: Vec<Actor>,
    pub connections: Vec<Connection>,
    pub sites: [Site; 2],
    pub owner: usize,
    pub epoch: OwnershipEpoch,
    pub log: Log,
    pub topics: Arc<TopicsView>,
    pub counts: [usize; TOPICS],
    /// How often each topic was made.
    pub incarnations: [u8; TOPICS],
    pub checker: Checker,
    pub is_calm: bool,
    calm_since: u64,
    has_blown: bool,
    pub wall_skew_ms: i64,
    /// Renewals fail until then.
    pub lease_cut_until: u64,
    pub observer: [Option<usize>; 2],
    pub observations: BTreeMap<CallId, crate::checker::Floor>,
    /// Requests a deposed coordinator answered before it knew.
    pub rival_answers: u64,
    pub is_settled: bool,
}

impl World {
    pub fn new(seed: u64, keeps_lines: bool) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::draw(&mut rng);
        let counts = std::array::from_fn(|_| rng.between(1, 5) as usize);
        let mut world = Self {
            now: SECOND,
            queue: BinaryHeap::new(),
            serial: 0,
            events: 0,
            trace: Trace::new(keeps_lines),
            actors: (0..plan.slots).map(|slot| Actor::new(slot, &plan)).collect(),
            plan,
            connections: Vec::new(),
            sites: [Site::default(), Site::default()],
            owner: 0,
            epoch: OwnershipEpoch(0),
            log: Log::default(),
            topics: Arc::new(view(&counts, &[1; TOPICS])),
            counts,
            incarnations: [1; TOPICS],
            checker: Checker::new(),
            is_calm: false,
            calm_since: 0,
            has_blown: false,
            wall_skew_ms: 0,
            lease_cut_until: 0,
            observer: [None; 2],
            observations: BTreeMap::new(),
            rival_answers: 0,
            is_settled: false,
            rng,
        };
        world.boot(0);
        world.boot(1);
        world.begin_reign(0);
        for slot in 0..world.plan.members {
            let at = world.rng.between(0, 2000) * MS;
            world.after(at, Event::Start(slot));
        }
        world.after(0, Event::Renew);
        world.after(500 * MS, Event::Chaos);
        world.after(200 * MS, Event::Observe);
        world.after(STORM, Event::Calm);
        world
    }

    /// Runs the seed to its end.
    pub fn run(&mut self) -> Verdict {
        while !self.is_settled {
            let Reverse((at, _, event)) = self.queue.pop().ok_or("nothing happens any more")?;
            self.now = self.now.max(at);
            self.trace.now = self.now;
            self.events += 1;
            if self.events > EVENTS_MAX {
                return Err("time stands still".into());
            }
            self.trace.note(&[at, kind(event)]);
            self.handle(event)?;
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Verdict {
        match event {
            Event::ToSite(connection) => self.arrive_at_site(connection),
            Event::ToClient(connection) => return self.arrive_at_client(connection),
            Event::SiteSeesClose(connection) => self.site_sees_close(connection),
            Event::ClientSeesClose(connection) => return self.client_sees_close(connection),
            Event::MemberTimer(slot) => return self.member_timer(slot),
            Event::Wake(slot) => return self.wake(slot),
            Event::AppTurn(slot, life) => return self.app_turn(slot, life),
            Event::AppRevoked(slot, life, n) => return self.app_revoked(slot, life, n),
            Event::Found(slot, life, call) => return self.found(slot, life, call),
            Event::Topics(slot, life, round) => return self.tell_topics(slot, life, round),
            Event::Start(slot) => return self.start(slot),
            Event::SiteTimer(site, reign) => self.site_timer(site, reign),
            Event::Durable(site, reign) => self.durable(site, reign),
            Event::Loaded(site, reign) => self.loaded(site, reign),
            Event::Deposed(site, reign) => self.deposed(site, reign),
            Event::Boot(site) => self.boot_again(site),
            Event::Renew => self.renew(),
            Event::Chaos => return self.chaos(),
            Event::Observe => return self.observe(),
            Event::Calm => self.calm_down(),
            Event::Inspect => return self.inspect(),
        }
        Ok(())
    }

    pub fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    pub fn at(&mut self, at: u64, event: Event) {
        self.serial += 1;
        self.queue.push(Reverse((at, self.serial, event)));
    }

    pub fn instant(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    pub fn clock(&self) -> Now {
        let wall = 1_800_000_000_000 + (self.now / MS) as i64 + self.wall_skew_ms;
        Now { mono: self.instant(), wall: Timestamp(wall) }
    }

    /// How long a message takes.
    pub fn network_delay(&mut self) -> u64 {
        match self.rng.below(100) {
            _ if self.is_calm => self.rng.between(50, 3000) * 1000,
            // Long enough for the world to have moved on.
            0 => self.rng.between(1, 10) * SECOND,
            1..=14 => self.rng.between(3, 700) * MS,
            _ => self.rng.between(50, 3000) * 1000,
        }
    }

    pub fn grow_topic(&mut self, topic: usize) {
        self.counts[topic] = (self.counts[topic] + 1).min(PARTITIONS_MAX);
        self.topics_changed();
    }

    /// A topic is deleted and made again: nobody may see what was committed for the one before.
    pub fn recreate_topic(&mut self, topic: usize) {
        self.trace.say(|| format!("--- topic {topic} is made anew"));
        self.incarnations[topic] = self.incarnations[topic].wrapping_add(1).max(1);
        self.checker.topic_made(topic, topic_id(topic, self.incarnations[topic]));
        if self.plan.protocol == Some(Protocol::Consumer) {
            self.checker.owned_by_nobody(topic);
        }
        for actor in &mut self.actors {
            // Whoever reads it is told that there is no such topic, and begins at the begin.
            for (place, offset) in &mut actor.positions {
                if place / PARTITIONS_MAX == topic {
                    *offset = 0;
                }
            }
        }
        self.topics_changed();
    }

    fn topics_changed(&mut self) {
        self.topics = Arc::new(view(&self.counts, &self.incarnations));
        let (topics, now) = (self.topics.clone(), self.clock());
        for site in &mut self.sites {
            if let Some(broker) = &mut site.broker {
                broker.topics(topics.clone(), now);
            }
        }
        for slot in 0..self.actors.len() {
            let actor = &self.actors[slot];
            let (incarnation, round) = (actor.incarnation, actor.watch_round);
            let delay = self.rng.between(1, 1500) * MS;
            self.after(delay, Event::Topics(slot, incarnation, round));
        }
    }

    /// Faults stop: from now on everything works, and everything must come into order.
    fn calm_down(&mut self) {
        if self.events + 100 < EVENTS_MIN {
            return self.after(5 * SECOND, Event::Calm);
        }
        self.trace.say(|| "--- calm".into());
        self.is_calm = true;
        self.calm_since = self.now;
        self.lease_cut_until = 0;
        for index in 0..self.connections.len() {
            if self.connections[index].is_black_hole && self.connections[index].client_open {
                self.break_connection(index);
            }
        }
        // Whoever stands still goes on in its own time.
        for site in &mut self.sites {
            site.next_append = NextAppend::Works;
        }
        self.after(SECOND, Event::Inspect);
    }

    /// Is everything in order? It must be before long, and stay so.
    fn inspect(&mut self) -> Verdict {
        let mut wanted = [false; TOPICS];
        let mut live = 0;
        let mut unsettled = None;
        for actor in &self.actors {
            let Some(member) = &actor.member else { continue };
            if member.is_over() || actor.topics.is_empty() || self.is_kept_out(actor) {
                continue;
            }
            live += 1;
            actor.topics.iter().for_each(|topic| wanted[*topic] = true);
            if !member.is_stable() || member.owned().len() != actor.positions.len() {
                unsettled = Some(actor.slot);
            }
        }
        let is_owned = live == 0 || self.checker.all_owned(&self.counts, &wanted);
        if unsettled.is_none() && is_owned && self.events >= EVENTS_MIN {
            self.is_settled = !self.last_blow();
        } else if self.now > self.calm_since + CALM_MAX {
            return Err(match unsettled {
                Some(slot) => format!("member {slot} is not assigned long after the storm"),
                None => format!("not every partition is owned by {live} members after the storm"),
            });
        }
        self.after(500 * MS, Event::Inspect);
        Ok(())
    }

    /// Whether its twin has the place that both want, and need not give it up: only the classic
    /// protocol lets the later one win (KIP-848, "Static Membership").
    fn is_kept_out(&self, actor: &Actor) -> bool {
        let is_in = |twin: &Actor| twin.member.as_ref().is_some_and(Member::is_stable);
        let is_twin = |twin: &&Actor| twin.slot != actor.slot && twin.instance == actor.instance;
        self.plan.protocol != Some(Protocol::Classic)
            && actor.instance.is_some()
            && !is_in(actor)
            && self.actors.iter().filter(is_twin).any(is_in)
    }

    /// In some seeds, once everything is in order, a member dies and the coordinator moves in the
    /// same moment: the new one has to notice, and everything must come into order once more.
    fn last_blow(&mut self) -> bool {
        if self.has_blown || self.rng.percent(70) {
            return false;
        }
        self.has_blown = true;
        self.calm_since = self.now;
        let slot = self.rng.below(self.plan.slots);
        self.drop_process(slot);
        self.take_over();
        true
    }

    /// Someone who is no member reads everything, from whichever site.
    fn observe(&mut self) -> Verdict {
        self.checker.exclusive(is_excused(&self.actors, &self.plan, self.now))?;
        let site = self.rng.below(2);
        let open = self.observer[site].filter(|index| self.connections[*index].is_open());
        let connection = match open {
            Some(index) => index,
            None => {
                let index = self.open(OBSERVER, 0, Lane::Main, site);
                self.observer[site] = Some(index);
                index
            }
        };
        let call = CallId(self.serial);
        let floor = self.checker.floor();
        self.observations.insert(call, floor);
        self.send_on(connection, call, crate::net::Sent::Observe);
        let pause = self.rng.between(50, 600) * MS;
        self.after(pause, Event::Observe);
        Ok(())
    }
}

fn kind(event: Event) -> u64 {
    match event {
        Event::ToSite(n) => n as u64,
        Event::ToClient(n) => 1000 + n as u64,
        Event::MemberTimer(n) => 3 + ((n as u64) << 32),
        Event::AppTurn(n, _) => 4 + ((n as u64) << 32),
        Event::Durable(n, _) => 5 + ((n as u64) << 32),
        Event::SiteTimer(n, _) => 6 + ((n as u64) << 32),
        _ => 7,
    }
}

/// The id of a topic as it was made the `incarnation`th time.
pub fn topic_id(topic: usize, incarnation: u8) -> TopicId {
    let mut id = [topic as u8 + 1; 16];
    id[15] = incarnation;
    TopicId(id)
}

fn view(counts: &[usize; TOPICS], incarnations: &[u8; TOPICS]) -> TopicsView {
    TopicsView::new((0..TOPICS).map(|topic| Topic {
        id: topic_id(topic, incarnations[topic]),
        name: topic_name(topic).into(),
        partitions: vec![Partition::default(); counts[topic]],
    }))
}
