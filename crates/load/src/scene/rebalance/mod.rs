//! Rebalances of virtual members with the timing of the Java client: from an act (some join, some
//! leave, partitions are added) until every partition has the one owner it should have and the
//! coordinator knows. Beside it another group commits, to show whom a rebalance makes wait.

mod classic;
mod consumer;
mod probe;
mod world;

use self::classic::Classic;
use crate::figures::{Figures, count, latencies};
use crate::link::{Link, Software};
use crate::member::Member;
use crate::setup::{coordinators, grow, topic};
use crate::{Outcome, Target};
use clap::{Args, ValueEnum};
use probe::Probe;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};
use world::{Act, Number, Stage, World};

/// Its arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Rebalance {
    #[command(flatten)]
    target: Target,
    /// Of which protocol
    #[arg(long, value_enum, default_value_t = Protocol::Consumer)]
    protocol: Protocol,
    /// Members that start at once
    #[arg(long, default_value_t = 100)]
    members: usize,
    /// Partitions of all topics together
    #[arg(long, default_value_t = 1000)]
    partitions: i32,
    /// Topics; with more than one each member subscribes to one of them, in turn
    #[arg(long, default_value_t = 1)]
    topics: i32,
    /// What happens then, in this order: join:N, leave:N, restart:N, grow:N
    #[arg(long, value_delimiter = ',')]
    acts: Vec<String>,
    /// How long a member takes to give partitions up, in milliseconds
    #[arg(long, default_value_t = 0)]
    revoke_ms: u64,
    /// How long the stable group's heartbeats are counted at the end, in seconds
    #[arg(long, default_value_t = 10)]
    steady: u64,
    /// How long a group is stable before each act, in milliseconds: an interval between heartbeats
    /// or more, so that each member has spoken since
    #[arg(long, default_value_t = 5000)]
    pause_ms: u64,
    /// Of the part of an interval that is added to each pause, so that no act meets the members'
    /// heartbeats at a moment of its choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long an act may take, in seconds
    #[arg(long, default_value_t = 120)]
    limit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    Consumer,
    Classic,
}

/// A group that is one of several things on a broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Giant {
    pub(crate) members: usize,
    pub(crate) partitions: usize,
}

/// What a member is told from outside.
struct Errand {
    leave: oneshot::Receiver<()>,
    revoke_delay: Duration,
}

impl Errand {
    /// Returns when the member shall leave.
    async fn leave(&mut self) {
        // An abandoned member has nobody to tell it: it leaves too.
        let _ = (&mut self.leave).await;
    }
}

/// The scene as it runs.
struct Director {
    scene: Rebalance,
    stage: Rc<Stage>,
    /// How each member is told to leave, oldest first.
    cast: std::collections::VecDeque<(Number, oneshot::Sender<()>)>,
    next: usize,
    partitions: Rc<Cell<i32>>,
    control: Link,
    probe: Probe,
    figures: Figures,
}

impl Rebalance {
    /// All of it start at once, one leaves, one joins.
    pub(crate) fn of(target: Target, giant: Giant) -> Outcome<Self> {
        let partitions = i32::try_from(giant.partitions).map_err(|error| error.to_string())?;
        Ok(Self {
            target,
            protocol: Protocol::Consumer,
            members: giant.members,
            partitions,
            topics: 1,
            acts: vec!["leave:1".to_owned(), "join:1".to_owned()],
            revoke_ms: 0,
            steady: 0,
            pause_ms: 5000,
            seed: 1,
            limit: 300,
        })
    }

    /// All start at once, then each act in turn.
    pub(crate) async fn run(self) -> Outcome<Figures> {
        let address = self.target.bootstrap.clone();
        let mut control = Link::open(&address, Software::Unknown).await?;
        for number in 0..self.topics {
            topic(&mut control, &self.topic(number), self.partitions / self.topics).await?;
        }
        coordinators(&mut control, &[self.group(), probe::GROUP.to_owned()]).await?;
        let expected = usize::try_from(self.partitions).unwrap_or(0);
        let is_even = self.topics == 1;
        let stage = Rc::new(Stage {
            world: RefCell::new(World::new(expected, is_even)),
            happened: Notify::new(),
        });
        let probe = Probe::start(&address, &self.topic(0)).await?;
        let (acts, members) = (self.acts.clone(), self.members);
        let mut director = Director {
            partitions: Rc::new(Cell::new(self.partitions)),
            cast: std::collections::VecDeque::new(),
            next: 0,
            figures: Figures::default(),
            scene: self,
            stage,
            control,
            probe,
        };
        director.act(&format!("all {members} start"), "join", members).await?;
        for act in &acts {
            let (verb, number) = act.split_once(':').ok_or_else(|| format!("no act: {act}"))?;
            let number = number.parse().map_err(|_| format!("no number: {act}"))?;
            tokio::time::sleep(director.pause()).await;
            director.act(&format!("{verb} {number}"), verb, number).await?;
        }
        director.steady().await?;
        Ok(director.figures)
    }

    fn group(&self) -> String {
        format!("{:?}-{}-{}", self.protocol, self.members, self.partitions).to_lowercase()
    }

    /// Of topic `number`; each scene has topics of its own.
    fn topic(&self, number: i32) -> String {
        format!("{}-{number}", self.group())
    }

    fn title(&self) -> String {
        let protocol = format!("{:?}", self.protocol).to_lowercase();
        format!("{protocol}, {} members, {} partitions", self.members, self.partitions)
    }
}

impl Director {
    /// Does one thing and waits until the group has come to rest.
    async fn act(&mut self, name: &str, verb: &str, number: usize) -> Outcome<()> {
        let arrivals = if matches!(verb, "join" | "restart") { number } else { 0 };
        let links = self.links(arrivals).await?;
        self.stage.world.borrow_mut().act = Act::default();
        self.probe.take();
        let cpu = self.scene.target.process().cpu_seconds()?;
        let begun = Instant::now();
        match verb {
            "join" => links.into_iter().try_for_each(|link| self.join(link))?,
            "leave" => self.leave(number),
            "restart" => {
                self.leave(number);
                links.into_iter().try_for_each(|link| self.join(link))?;
            }
            "grow" => self.grow(number).await?,
            _ => return Err(format!("no act is called {verb}")),
        }
        let took = self.converged(begun).await?.saturating_duration_since(begun);
        let cpu = self.scene.target.process().cpu_seconds()? - cpu;
        self.report(name, took, cpu)
    }

    fn report(&mut self, name: &str, took: Duration, cpu: f64) -> Outcome<()> {
        let act = std::mem::take(&mut self.stage.world.borrow_mut().act);
        let name = format!("{}: {name}", self.scene.title());
        if act.doubled > 0 {
            return Err(format!("{name}: {} partitions had two owners at once", act.doubled));
        }
        let figures = &mut self.figures;
        figures.add_time(format!("{name}: converged"), took);
        if !act.moved.is_empty() {
            let mut gaps = latencies();
            act.moved.iter().for_each(|gap| count(&mut gaps, *gap));
            let worst = act.moved.iter().max().copied().unwrap_or_default();
            let middle = Duration::from_micros(gaps.value_at_quantile(0.5));
            figures.add_time(format!("{name}: moved partition without owner, p50"), middle);
            figures.add_time(format!("{name}: moved partition without owner, longest"), worst);
        }
        figures.add(format!("{name}: unmoved partitions paused"), act.paused as f64);
        figures.add(format!("{name}: requests of the members"), act.beats as f64);
        figures.add(format!("{name}: broker CPU, ms"), cpu * 1e3);
        figures.add_time(format!("{name}: longest commit of another group"), self.probe.take());
        Ok(())
    }

    /// The pause before the next act.
    fn pause(&mut self) -> Duration {
        self.scene.seed = splitmix(self.scene.seed);
        let pause = self.scene.pause_ms;
        Duration::from_millis(pause + self.scene.seed % pause.max(1))
    }

    /// Heartbeats of a group to which nothing happens.
    async fn steady(&mut self) -> Outcome<()> {
        let seconds = self.scene.steady;
        if seconds == 0 {
            return Ok(());
        }
        self.probe.stop();
        self.stage.world.borrow_mut().act = Act::default();
        let cpu = self.scene.target.process().cpu_seconds()?;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let cpu = self.scene.target.process().cpu_seconds()? - cpu;
        let beats = self.stage.world.borrow().act.beats as f64;
        let title = self.scene.title();
        let per_second = beats / seconds as f64;
        self.figures.add(format!("{title}: steady, requests/s"), per_second);
        self.figures.add(format!("{title}: steady, broker CPU ms/s"), cpu * 1e3 / seconds as f64);
        Ok(())
    }

    /// Connections are made before the clock starts: a bootstrap is no rebalance.
    async fn links(&self, count: usize) -> Outcome<Vec<Link>> {
        let mut links = Vec::with_capacity(count);
        for _ in 0..count {
            links.push(Link::open(&self.scene.target.bootstrap, Software::Java).await?);
        }
        Ok(links)
    }

    fn join(&mut self, link: Link) -> Outcome<()> {
        let (who, group, stage) = (self.next, self.scene.group(), self.stage.clone());
        self.next += 1;
        let (sender, leave) = oneshot::channel();
        self.cast.push_back((who, sender));
        let revoke_delay = Duration::from_millis(self.scene.revoke_ms);
        let errand = Errand { leave, revoke_delay };
        stage.world.borrow_mut().arrives(who);
        let noted = stage.clone();
        let number = i32::try_from(who).map_err(|error| error.to_string())?;
        let name = self.scene.topic(number % self.scene.topics);
        let partitions = self.partitions.clone();
        let protocol = self.scene.protocol;
        tokio::task::spawn_local(async move {
            let lived = match protocol {
                Protocol::Classic => {
                    let topic = name;
                    let member = Classic { link, who, group, topic, partitions, stage };
                    member.live(errand).await
                }
                Protocol::Consumer => {
                    let topics = Rc::from([name]);
                    let member = Member::new(&Rc::from(group), format!("member-{who}"), &topics);
                    consumer::live(link, who, member, stage, errand).await
                }
            };
            if let Err(problem) = lived {
                noted.world.borrow_mut().failure = Some(format!("member {who}: {problem}"));
                noted.happened.notify_one();
            }
        });
        Ok(())
    }

    fn leave(&mut self, number: usize) {
        let now = Instant::now();
        for (who, sender) in self.cast.drain(..number.min(self.cast.len())) {
            // Until it has bowed out the group is not at rest.
            self.stage.world.borrow_mut().spoke(who, false, now);
            // Whoever is not there any more has failed, and said so.
            let _ = sender.send(());
        }
    }

    async fn grow(&mut self, number: usize) -> Outcome<()> {
        let before = self.partitions.get();
        let after = before + i32::try_from(number).map_err(|error| error.to_string())?;
        self.partitions.set(after);
        self.stage.world.borrow_mut().grow(usize::try_from(after).unwrap_or(0));
        grow(&mut self.control, &self.scene.topic(0), before, after).await.map(drop)
    }

    /// Since when the group is at rest; it must stay so for a moment.
    async fn converged(&self, begun: Instant) -> Outcome<Instant> {
        let limit = Duration::from_secs(self.scene.limit);
        while begun.elapsed() < limit {
            let at = self.stage.world.borrow().converged_at();
            if let Some(problem) = &self.stage.world.borrow().failure {
                return Err(problem.clone());
            }
            if let Some(at) = at.filter(|at| at.elapsed() > REST) {
                return Ok(at.max(begun));
            }
            let woken = self.stage.happened.notified();
            let _ = tokio::time::timeout(REST / 4, woken).await;
        }
        Err(format!("not converged after {limit:?}"))
    }
}

/// The next of a sequence of numbers that look random (SplitMix64).
fn splitmix(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// So long nothing may change for a group to count as converged.
const REST: Duration = Duration::from_millis(200);
