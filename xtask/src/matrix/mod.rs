//! `cargo xtask matrix`: every Kafka client in use, through one scenario, against a real broker.
//!
//! The clients are small programs under `matrix/` that speak one command language; everything that
//! is demanded of them is decided here.

mod clients;
mod connect;
mod consumer;
mod event;
mod group;
pub mod java;
mod ledger;
pub mod mixed;
mod report;
mod scenario;
pub mod soak;
mod streams;

use crate::Outcome;
use crate::kafka::broker::{Broker, Kind};
use crate::kafka::install::{Missing, in_ci};
use crate::shell::root;
use clients::{CLIENTS, Client};
pub use clients::{build_go, python_script, wheels};
use report::Report;
use scenario::Setting;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const USAGE: &str = "\
usage: cargo xtask matrix [--broker ottla|kafka] [--records N] [--jobs N] [CLIENT...]

  --broker    ours (the default), or Apache Kafka 4.4 to compare with
  --records   keyed records produced with each codec (20000)
  --jobs      clients run at a time (2)";

/// Runs the scenario with the named clients, or with all.
pub fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments)?;
    let folder = root().join("target/matrix");
    let broker = Broker::start(options.kind, &folder.join("broker"))?;
    println!("{:?} at {}, log {}", options.kind, broker.bootstrap, broker.log().display());
    let setting = Setting {
        bootstrap: broker.bootstrap.clone(),
        kind: options.kind,
        records: options.records,
        logs: folder.join("logs"),
    };
    let reports = run_all(&options, &setting);
    broker.stop()?;
    println!("\n{}", report::table(&reports));
    let failed: Vec<_> = reports.iter().filter(|r| r.is_failure()).map(|r| r.name).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// Runs a few clients at a time, in the order of the table.
fn run_all(options: &Options, setting: &Setting) -> Vec<Report> {
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(client) =
                    options.clients.get(next.fetch_add(1, Ordering::Relaxed)).copied()
                {
                    let report = run_client(client, setting);
                    reports.lock().expect("no job panics while it adds a report").push(report);
                }
            });
        }
    });
    reports.into_inner().expect("all jobs have ended")
}

fn run_client(client: &Client, setting: &Setting) -> Report {
    let mut report = Report::new(client.name);
    let started = Instant::now();
    let installed = client.install();
    report.install_seconds = started.elapsed().as_secs_f32();
    match installed {
        Ok(()) => {}
        Err(Missing::Toolchain(reason)) if !in_ci() => {
            report.skipped = Some(reason);
            return report;
        }
        Err(Missing::Toolchain(reason) | Missing::Broken(reason)) => {
            report.step(report::Step::Create, || Err(reason));
            return report;
        }
    }
    let started = Instant::now();
    report.version = client.version().unwrap_or_else(|error| error);
    (client.scenario)(client, setting, &mut report);
    report.seconds = started.elapsed().as_secs_f32();
    report
}

struct Options {
    kind: Kind,
    records: u64,
    jobs: usize,
    clients: Vec<&'static Client>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self { kind: Kind::Ottla, records: 20_000, jobs: 2, clients: Vec::new() };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(USAGE);
            match word.as_str() {
                "--broker" => options.kind = Kind::parse(value()?)?,
                "--records" => options.records = number(value()?)?,
                "--jobs" => options.jobs = number(value()?)?,
                name => options.clients.push(named(name)?),
            }
        }
        if options.clients.is_empty() {
            options.clients = CLIENTS.iter().collect();
        }
        Ok(options)
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number\n\n{USAGE}"))
}

fn named(name: &str) -> Result<&'static Client, String> {
    CLIENTS.iter().find(|client| client.name == name).ok_or_else(|| {
        let names: Vec<_> = CLIENTS.iter().map(|client| client.name).collect();
        format!("no client `{name}`; there are {}\n\n{USAGE}", names.join(", "))
    })
}
