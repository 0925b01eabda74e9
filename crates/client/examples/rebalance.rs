//! Times the rebalances of a group of this client's members: the scenes and the words of
//! `matrix/python/rebalance.py`. Driven by `cargo xtask bench reb-clients`.

use ottla_client::{
    Admin, AdminConfig, Consumer, ConsumerConfig, ConsumerHandle, NewTopic, OffsetReset,
    RebalanceListener, Result, TopicPartition,
};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

type Outcome<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const TOPIC: &str = "rebalanced";
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, protocol, members, partitions, pause] = words.as_slice() else {
        return Err("usage: rebalance BOOTSTRAP PROTOCOL MEMBERS PARTITIONS PAUSE_S".into());
    };
    let (members, partitions) = (members.parse()?, partitions.parse()?);
    let pause = Duration::from_secs_f64(pause.parse()?);
    let scene = Scene { bootstrap, protocol, pause };
    scene.run(members, partitions).await
}

struct Scene<'a> {
    bootstrap: &'a str,
    protocol: &'a str,
    pause: Duration,
}

impl Scene<'_> {
    async fn run(&self, count: usize, partitions: i32) -> Outcome {
        let admin = Admin::new(AdminConfig::new(self.bootstrap))?;
        admin.create_topic(NewTopic::new(TOPIC, partitions)).await?;
        let started = Instant::now();
        let mut members: Vec<Member> = (0..count).map(|_| self.member()).collect::<Outcome<_>>()?;
        timed("all start, ms", started, &members, partitions).await?;
        self.stand().await;
        let started = Instant::now();
        members.push(self.member()?);
        timed("one joins, ms", started, &members, partitions).await?;
        self.stand().await;
        let started = Instant::now();
        let joiner = members.pop().ok_or("nobody joined")?;
        joiner.leave.notify_one();
        timed("one leaves, ms", started, &members, partitions).await?;
        if self.protocol == "consumer" {
            self.stand().await;
            let started = Instant::now();
            admin.create_partitions(TOPIC, 2 * partitions).await?;
            timed("partitions doubled, ms", started, &members, 2 * partitions).await?;
        }
        members.push(joiner);
        for member in members {
            member.leave.notify_one();
            member.task.await??;
        }
        Ok(())
    }

    /// No act meets the members' heartbeats at a moment of its choice.
    async fn stand(&self) {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.subsec_nanos());
        tokio::time::sleep(self.pause.mul_f64(1.0 + f64::from(nanos % 1000) / 1000.0)).await;
    }

    fn member(&self) -> Outcome<Member> {
        let config = ConsumerConfig::new(self.bootstrap)
            .group_id("timed")
            .auto_offset_reset(OffsetReset::Earliest)
            .set("group.protocol", self.protocol)?;
        let (part, leave) = (Part::default(), Arc::new(Notify::new()));
        let mut consumer = Consumer::new(config)?;
        consumer.set_listener(part.clone());
        consumer.subscribe([TOPIC])?;
        let leaves = Arc::clone(&leave);
        let task = tokio::spawn(async move {
            loop {
                tokio::select! {
                    polled = consumer.poll(Duration::from_millis(50)) => drop(polled?),
                    () = leaves.notified() => return consumer.close().await,
                }
            }
        });
        Ok(Member { part, leave, task })
    }
}

/// A member and what it owns.
struct Member {
    part: Part,
    leave: Arc<Notify>,
    task: tokio::task::JoinHandle<Result<()>>,
}

/// What a member owns, and when that changed last.
#[derive(Clone, Default)]
struct Part(Arc<Mutex<(BTreeSet<TopicPartition>, Option<Instant>)>>);

impl Part {
    fn with<T>(
        &self,
        act: impl FnOnce(&mut (BTreeSet<TopicPartition>, Option<Instant>)) -> T,
    ) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, partitions: &[TopicPartition], owns: bool) {
        self.with(|(owned, changed)| {
            for partition in partitions {
                match owns {
                    true => owned.insert(partition.clone()),
                    false => owned.remove(partition),
                };
            }
            *changed = Some(Instant::now());
        });
    }
}

impl RebalanceListener for Part {
    async fn assigned(&mut self, _: &ConsumerHandle, new: &[TopicPartition]) -> Result<()> {
        self.change(new, true);
        Ok(())
    }

    async fn revoked(&mut self, _: &ConsumerHandle, gone: &[TopicPartition]) -> Result<()> {
        self.change(gone, false);
        Ok(())
    }

    async fn lost(&mut self, _: &ConsumerHandle, gone: &[TopicPartition]) -> Result<()> {
        self.change(gone, false);
        Ok(())
    }
}

async fn timed(name: &str, started: Instant, members: &[Member], partitions: i32) -> Outcome {
    while started.elapsed() < PATIENCE {
        if let Some(done) = settled(members, partitions).filter(|done| *done > started) {
            let millis = done.duration_since(started).as_millis();
            writeln!(std::io::stdout(), "{name}\t{millis}")?;
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Err(format!("{name}: not settled in {PATIENCE:?}").into())
}

/// When the last of them got its part, once the parts are the whole topic; else nothing.
fn settled(members: &[Member], partitions: i32) -> Option<Instant> {
    let mut all = BTreeSet::new();
    let (mut sum, mut most, mut least, mut last) = (0, 0, usize::MAX, None);
    for member in members {
        member.part.with(|(owned, changed)| {
            all.extend(owned.iter().cloned());
            (sum, most, least) = (sum + owned.len(), most.max(owned.len()), least.min(owned.len()));
            last = last.max(*changed);
        });
    }
    let whole = usize::try_from(partitions).ok()?;
    let is_settled = sum == whole && all.len() == whole && most - least <= 1;
    last.filter(|_| is_settled)
}
