//! What experiments have written, read again: for the table of goals and for the plots.

use super::block::folder;
use super::sheet::median;
use serde_json::Value;
use std::fs;

/// The file of one experiment.
pub struct Results(Value);

impl Results {
    /// Of a full run if there is one, else of a quick one; none if it was never run.
    pub fn of(bench: &str) -> Option<Self> {
        let read = |quick| {
            let text = fs::read_to_string(folder(quick).join(format!("{bench}.json"))).ok()?;
            Some(Self(serde_json::from_str(&text).ok()?))
        };
        read(false).or_else(|| read(true))
    }

    /// The columns, in their order.
    pub fn columns(&self) -> Vec<&str> {
        self.0["sheet"]["columns"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// The names of the figures, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let figures = self.0["sheet"]["figures"].as_array().into_iter().flatten();
        figures.filter_map(|figure| figure["name"].as_str())
    }

    /// A contestant's figures of one name, sorted.
    pub fn sorted(&self, name: &str, column: &str) -> Vec<f64> {
        let mut figures = self.0["sheet"]["figures"].as_array().into_iter().flatten();
        let found = figures.find(|figure| figure["name"] == name);
        found.map(|figure| sorted(&figure["of"][column])).unwrap_or_default()
    }

    /// A contestant's median of the first figure whose name has all these words.
    pub fn median(&self, words: &[&str], column: &str) -> Option<f64> {
        let name = self.names().find(|name| words.iter().all(|word| name.contains(word)))?;
        median(&self.sorted(name, column))
    }

    /// A limit of the machine, the mean of before and after.
    pub fn limit(&self, name: &str) -> Option<f64> {
        let limits = &self.0["limits"];
        Some((limits["before"][name].as_f64()? + limits["after"][name].as_f64()?) / 2.0)
    }

    /// When, where and of what it was measured, in a line.
    pub fn origin(&self) -> String {
        let of = |name: &str| self.0[name].as_str().unwrap_or("?").to_owned();
        let version = self.0["versions"]["ottla"].as_str().unwrap_or("?");
        let turns = self.0["repetitions"].as_u64().unwrap_or(0);
        let noise = if self.0["noisy"] == true { ", NOISY" } else { "" };
        let size = if self.0["quick"] == true { ", quick" } else { "" };
        format!(
            "{}: Ottla {version}, Apache Kafka 4.4.0, {}, load {}, turns: {turns}{size}{noise}",
            of("date"),
            of("machine"),
            of("load"),
        )
    }
}

/// The figures of an array, sorted.
pub fn sorted(figures: &Value) -> Vec<f64> {
    let all = figures.as_array().into_iter().flatten();
    let mut all: Vec<f64> = all.filter_map(Value::as_f64).collect();
    all.sort_by(f64::total_cmp);
    all
}
