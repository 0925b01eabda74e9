//! A broker as a large installation has it: very many groups at rest, each member heard every
//! interval, then beside them a giant group that starts at once, loses a member and gains one.
//! Every answer is checked, also after the giant has come to rest: a member that expired fails it.

use super::heartbeats::{Beats, consumers};
use super::rebalance::{Giant, Rebalance};
use crate::Outcome;
use crate::figures::{Figures, latencies};
use crate::link::Link;
use crate::process::Weighed;
use crate::storm::{Pace, Storm, Tally};
use clap::Args;
use std::cell::Cell;
use std::time::Duration;

/// Its arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Crowd {
    #[command(flatten)]
    broker: Weighed,
    /// Groups at rest
    #[arg(long, default_value_t = 1000)]
    groups: usize,
    /// Members of each
    #[arg(long, default_value_t = 100)]
    members: usize,
    /// Each member is heard so often, in milliseconds
    #[arg(long, default_value_t = 5000)]
    interval_ms: u32,
    /// Members of the giant group, and its partitions
    #[arg(long, default_value_t = 5000)]
    giants: usize,
    /// Seconds of rest that are counted
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Seconds before, in which a JVM warms
    #[arg(long, default_value_t = 0)]
    warm: u64,
}

type Connections = Vec<(Link, Beats)>;

impl Crowd {
    /// The crowd comes, rests, and has the giant beside it.
    pub(crate) async fn run(self) -> Outcome<Figures> {
        let mut figures = Figures::default();
        let empty = self.broker.held()?;
        let crowd = consumers(&self.broker.target, self.groups, self.members, CONNECTIONS).await?;
        let peopled = self.broker.held()? - empty;
        let (groups, all) = (self.groups as f64, (self.groups * self.members) as f64);
        let name = format!("{} groups of {}", self.groups, self.members);
        figures.add(format!("{name}: a group with its members, KiB"), peopled / groups / 1024.0);
        figures.add(format!("{name}: a member, bytes"), peopled / all);
        let (_, crowd) = self.beat(crowd, self.warm).await?;
        let (rest, crowd) = self.beat(crowd, self.seconds).await?;
        report(&mut figures, &format!("{name}, at rest"), &rest);
        figures.add(format!("{name}, at rest: heartbeats/broker CPU-s"), rest.per_cpu_second());
        let crowd = self.beside(crowd, &mut figures, &name).await?;
        // Whoever expired meanwhile is told so now.
        let settling = u64::from(self.interval_ms).div_ceil(1000) + 1;
        self.beat(crowd, settling).await?;
        figures.add(format!("{name}: members that expired"), 0.0);
        Ok(figures)
    }

    /// Heartbeats by the clock for so long.
    async fn beat(&self, crowd: Connections, seconds: u64) -> Outcome<(Tally, Connections)> {
        let all = (self.groups * self.members) as f64;
        let storm = Storm {
            pace: Pace::PerSecond(all * 1000.0 / f64::from(self.interval_ms)),
            warmup: Duration::ZERO,
            measured: Duration::from_secs(seconds),
        };
        storm.run(crowd, self.broker.target.process()).await
    }

    /// The giant's whole scene, while the crowd goes on.
    async fn beside(
        &self,
        crowd: Connections,
        figures: &mut Figures,
        name: &str,
    ) -> Outcome<Connections> {
        let is_over = Cell::new(false);
        let giant = async {
            let giant = Giant { members: self.giants, partitions: self.giants };
            let found = Rebalance::of(self.broker.target.clone(), giant)?.run().await;
            is_over.set(true);
            found
        };
        let beating = async {
            let (mut crowd, mut latencies) = (crowd, latencies());
            while !is_over.get() {
                let (tally, back) = self.beat(crowd, ROUND_SECONDS).await?;
                crowd = back;
                latencies.add(&tally.latencies).map_err(|error| error.to_string())?;
            }
            Outcome::Ok((crowd, latencies))
        };
        let (found, (crowd, latencies)) = tokio::try_join!(giant, beating)?;
        figures.append(found);
        figures.add_latencies(&format!("{name}, beside the giant: heartbeat"), &latencies);
        Ok(crowd)
    }
}

fn report(figures: &mut Figures, name: &str, tally: &Tally) {
    figures.add(format!("{name}: heartbeats/s"), tally.answers / tally.seconds);
    figures.add_latencies(&format!("{name}: heartbeat"), &tally.latencies);
}

const CONNECTIONS: usize = 64;
/// How often it is looked whether the giant has come to rest.
const ROUND_SECONDS: u64 = 2;
