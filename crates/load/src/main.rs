//! `ottla-load SCENE`: one bounded load on one broker that runs already, the same for every broker.
//! Figures are the last line it prints, as JSON. It starts no broker, compares nothing and knows
//! nothing of any broker's inside: turns, tables and plots are the business of `cargo xtask bench`.

mod classic;
mod figures;
mod link;
mod member;
mod process;
mod scene;
mod setup;
mod storm;
mod ticker;

use clap::{Args, Parser, Subcommand};
use process::Process;
use scene::{commits, crowd, heartbeats, latency, limits, memory, rebalance, recall};
use std::process::ExitCode;
use std::time::Duration;

/// A value, or one sentence that says what is wrong.
type Outcome<T> = Result<T, String>;

#[derive(Parser)]
#[command(about = "One bounded load on a Kafka broker; prints figures as JSON")]
struct Arguments {
    #[command(subcommand)]
    scene: Scene,
}

#[derive(Subcommand)]
enum Scene {
    /// What this machine can do without any broker
    Limits(limits::Limits),
    /// Echoes whatever arrives; prints the port it listens on
    #[command(hide = true)]
    Echo,
    /// Heartbeats of stable members as fast as they are answered
    Heartbeats(heartbeats::Heartbeats),
    /// Offset commits as fast as they are answered
    Commits(commits::Commits),
    /// From whoever writes a record to whoever reads it
    Latency(latency::Latency),
    /// Offset commits, so many and no more
    Fill(recall::Fill),
    /// What is left of these after the broker died
    Recall(recall::Recall),
    /// What groups, offsets and members cost in memory
    Memory(memory::Memory),
    /// Many groups at rest, then a giant one beside them
    Crowd(crowd::Crowd),
    /// Rebalances of virtual members with the timing of the Java client
    Rebalance(rebalance::Rebalance),
}

/// The broker under load.
#[derive(Args, Clone, Debug)]
pub(crate) struct Target {
    /// Where it listens, `host:port`
    #[arg(long)]
    bootstrap: String,
    /// Its process, whose CPU time is counted
    #[arg(long)]
    pid: u32,
}

impl Target {
    fn process(&self) -> Process {
        Process(self.pid)
    }
}

/// How long a closed loop runs.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Seconds that are counted
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Seconds before them, for each depth
    #[arg(long, default_value_t = 1)]
    warmup: u64,
    /// Seconds at the greatest depth before all of it: a young JVM does a third of what it can
    #[arg(long, default_value_t = 0)]
    warm: u64,
}

impl Span {
    fn warming(self, depths: &[usize]) -> Option<storm::Storm> {
        let depth = depths.iter().max().copied().unwrap_or(1);
        let warming = Self { seconds: self.warm, warmup: 0, warm: 0 };
        (self.warm > 0).then(|| warming.storm(depth))
    }

    fn storm(self, depth: usize) -> storm::Storm {
        storm::Storm {
            pace: storm::Pace::InFlight(depth),
            warmup: Duration::from_secs(self.warmup),
            measured: Duration::from_secs(self.seconds),
        }
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse().scene) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            figures::say(&format!("failed: {problem}"));
            ExitCode::FAILURE
        }
    }
}

fn run(scene: Scene) -> Outcome<()> {
    if matches!(scene, Scene::Echo) {
        return scene::echo::serve();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let local = tokio::task::LocalSet::new();
    let figures = local.block_on(&runtime, async {
        match scene {
            Scene::Limits(scene) => scene.run().await,
            Scene::Heartbeats(scene) => scene.run().await,
            Scene::Commits(scene) => scene.run().await,
            Scene::Latency(scene) => scene.run().await,
            Scene::Fill(scene) => scene.run().await,
            Scene::Recall(scene) => scene.run().await,
            Scene::Memory(scene) => scene.run().await,
            Scene::Crowd(scene) => scene.run().await,
            Scene::Rebalance(scene) => scene.run().await,
            Scene::Echo => unreachable!("served above"),
        }
    })?;
    figures.print()
}
