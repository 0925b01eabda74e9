//! The server assignors beside Kafka's own, on the grid of its ConsumerAssignorBenchmark.
//!
//! Two figures a cell. *Assignor*: what Kafka's bench measures, `assign`, beside ours from the
//! event told to an assignment made. *Records*: what a coordinator runs, Kafka's
//! TargetAssignmentBuilder, beside ours with the share of every member that needs a record. The
//! two take turns within each cell; a cell has its time, so the whole ends by itself. Times are CPU
//! times of the working thread, Kafka's without its compiler and collector.

mod grid;
mod half;

use super::process;
use crate::Outcome;
use crate::shell::root;
use grid::Cell;
use half::Half;
use serde_json::{Value, json};
use std::fs;
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask bench assign [--quick | --fixture]";

/// What a test of `ottla-group` holds its moves against.
const FIXTURE: &str = "crates/group/src/assign/server/tests/kafka-moves.txt";

/// How often the halves take turns in a cell.
const ROUNDS: usize = 5;
/// One turn; a run that takes longer is one turn.
const TURN_MS: u64 = 40;
/// Warming up within a cell.
const WARM_MS: u64 = 150;
/// Warming up before the first cell, over the quick grid's kinds of cells.
const JVM_WARM_MS: u64 = 150;

/// Measures the grid, or its corners.
pub fn run(arguments: &[String]) -> Outcome {
    let (cells, name) = match arguments {
        [] => (grid::full(), "full"),
        [flag] if flag == "--quick" => (grid::quick(), "quick"),
        [flag] if flag == "--fixture" => return write_fixture(),
        _ => return Err(USAGE.into()),
    };
    println!("load {}", process::load());
    let (mut kafka, mut ours) = (Half::kafka()?, Half::ours()?);
    for cell in grid::quick() {
        kafka.tell(&cell.line())?;
        kafka.ask(&format!("run {JVM_WARM_MS}"))?;
        kafka.ask(&format!("build {JVM_WARM_MS}"))?;
    }
    let started = Instant::now();
    let mut measured = Vec::new();
    for cell in cells {
        let figures = Figures::measure(cell, &mut kafka, &mut ours)?;
        println!("{}", figures.row());
        measured.push(figures);
    }
    println!("\n{}", summary(&measured));
    let minutes = started.elapsed().as_secs_f64() / 60.0;
    println!("{} cells in {minutes:.1} min; load {}", measured.len(), process::load());
    write_json(name, &measured)
}

/// Writes, for small cells, how many partitions Kafka moves and who owned what before.
fn write_fixture() -> Outcome {
    let mut kafka = Half::kafka()?;
    let mut text = String::new();
    for cell in grid::small() {
        kafka.tell(&cell.line())?;
        let (moves, owners) = (kafka.ask_text("moves")?, kafka.ask_text("fixture")?);
        text += &format!("{} {moves} {owners}\n", cell.line());
    }
    fs::write(root().join(FIXTURE), text).map_err(|error| format!("{FIXTURE}: {error}"))
}

/// What one cell gave: microseconds of each turn, and moves.
struct Figures {
    cell: Cell,
    assignor: Pair,
    records: Pair,
    moves: [u64; 2],
    slice_us: f64,
}

/// Kafka's figures and ours, sorted.
struct Pair {
    kafka: Vec<f64>,
    ours: Vec<f64>,
}

impl Figures {
    fn measure(cell: Cell, kafka: &mut Half, ours: &mut Half) -> Result<Self, String> {
        kafka.tell(&cell.line())?;
        ours.tell(&cell.line())?;
        let (theirs, own) = (kafka.ask("moves")?, ours.ask("moves")?);
        let assignor = Pair::measure("run", kafka, ours)?;
        let records = Pair::measure("build", kafka, ours)?;
        let slice_us = own.get(1).map_or(0.0, |nanos| *nanos as f64 / 1e3);
        Ok(Self { cell, assignor, records, moves: [theirs[0], own[0]], slice_us })
    }

    /// A line while it runs.
    fn row(&self) -> String {
        let Self { cell, assignor, records, moves, slice_us } = self;
        format!(
            "{} ({}): {}; records {}; moves {} and {}; slice {slice_us:.0} us",
            cell.kind(),
            cell.size(),
            assignor.shown(),
            records.shown(),
            moves[0],
            moves[1],
        )
    }

    fn json(&self) -> Value {
        let Cell { assignor, subscription, has_racks, is_skewed, .. } = self.cell;
        let Cell { members, topics, partitions, event, .. } = self.cell;
        json!({
            "assignor": assignor, "subscription": subscription, "event": event.name(),
            "racks": has_racks, "skewed": is_skewed,
            "members": members, "topics": topics, "partitions": partitions,
            "assignor_us": self.assignor.json(), "records_us": self.records.json(),
            "moves": {"kafka": self.moves[0], "ottla": self.moves[1]},
            "longest_slice_us": self.slice_us,
        })
    }
}

impl Pair {
    fn measure(what: &str, kafka: &mut Half, ours: &mut Half) -> Result<Self, String> {
        kafka.micros(what, WARM_MS)?;
        ours.micros(what, WARM_MS / 3)?;
        let mut pair = Self { kafka: Vec::new(), ours: Vec::new() };
        for _ in 0..ROUNDS {
            pair.kafka.push(kafka.micros(what, TURN_MS)?);
            pair.ours.push(ours.micros(what, TURN_MS)?);
        }
        pair.kafka.sort_by(f64::total_cmp);
        pair.ours.sort_by(f64::total_cmp);
        Ok(pair)
    }

    /// How many times faster ours is.
    fn ratio(&self) -> f64 {
        median(&self.kafka) / median(&self.ours)
    }

    fn shown(&self) -> String {
        let (kafka, ours) = (shown(&self.kafka), shown(&self.ours));
        format!("Kafka {kafka} us, Ottla {ours} us, {:.1}x", self.ratio())
    }

    fn json(&self) -> Value {
        json!({"kafka": self.kafka, "ottla": self.ours, "ratio": self.ratio()})
    }
}

/// One line for each kind of cell: how many, and the least, middle and greatest ratio.
fn summary(measured: &[Figures]) -> String {
    let mut text = String::from(
        "| assignor, subscription: event | cells | Kafka / Ottla, assignor: least, median, most | \
         records: least, median, most | largest group: Kafka us | Ottla us | more moves |\n\
         |---|---|---|---|---|---|---|\n",
    );
    let mut kinds: Vec<String> = measured.iter().map(|figures| figures.cell.kind()).collect();
    kinds.sort();
    kinds.dedup();
    for kind in kinds {
        let cells: Vec<_> = measured.iter().filter(|figures| figures.cell.kind() == kind).collect();
        let size = |figures: &&&Figures| {
            let Cell { members, topics, partitions, .. } = figures.cell;
            members * topics + partitions
        };
        let Some(largest) = cells.iter().max_by_key(size) else { continue };
        let more = cells.iter().filter(|figures| figures.moves[1] > figures.moves[0]).count();
        let assignor = ratios(cells.iter().map(|figures| figures.assignor.ratio()));
        let records = ratios(cells.iter().map(|figures| figures.records.ratio()));
        let Pair { kafka, ours } = &largest.assignor;
        let (kafka, ours) = (shown(kafka), shown(ours));
        let count = cells.len();
        text +=
            &format!("| {kind} | {count} | {assignor} | {records} | {kafka} | {ours} | {more} |\n");
    }
    text
}

fn ratios(ratios: impl Iterator<Item = f64>) -> String {
    let mut ratios: Vec<f64> = ratios.collect();
    ratios.sort_by(f64::total_cmp);
    let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
    format!("{}, {}, {}", rounded(least), rounded(median(&ratios)), rounded(most))
}

/// The middle one of sorted figures; there is at least one.
fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

fn shown(sorted: &[f64]) -> String {
    let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
    format!("{} ({}-{})", rounded(median(sorted)), rounded(least), rounded(most))
}

fn rounded(figure: f64) -> String {
    if figure >= 100.0 { format!("{figure:.0}") } else { format!("{figure:.1}") }
}

fn write_json(name: &str, measured: &[Figures]) -> Outcome {
    let path = root().join(format!("target/bench/assign-{name}.json"));
    let cells: Vec<Value> = measured.iter().map(Figures::json).collect();
    let all = json!({"machine": process::machine(), "rounds": ROUNDS, "cells": cells});
    fs::create_dir_all(root().join("target/bench")).map_err(|error| error.to_string())?;
    fs::write(&path, format!("{all:#}\n")).map_err(|error| error.to_string())?;
    println!("written: {}", path.strip_prefix(root()).unwrap_or(&path).display());
    Ok(())
}
