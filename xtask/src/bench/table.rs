//! Figures of both brokers as a table: median, range, ratio of the medians.

use super::sheet::{median, with_range};
use crate::kafka::broker::Kind;
use std::collections::BTreeMap;

/// What was measured, by what it is called, in the order of first appearance.
#[derive(Default)]
pub struct Table {
    names: Vec<String>,
    figures: BTreeMap<(String, &'static str), Vec<f64>>,
}

impl Table {
    /// Adds one figure of one repetition.
    pub fn add(&mut self, name: &str, kind: Kind, figure: f64) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
        self.figures.entry((name.to_owned(), label(kind))).or_default().push(figure);
    }

    /// The table as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| | Kafka 4.4, median (range) | Ottla, median (range) | Ottla / Kafka |\n\
             |---|---|---|---|\n",
        );
        for name in &self.names {
            let [kafka, ottla] = [Kind::Kafka, Kind::Ottla].map(|kind| self.of(name, kind));
            let ratio = ratio(median(&ottla), median(&kafka));
            text += &format!("| {name} | {} | {} | {ratio} |\n", shown(&kafka), shown(&ottla));
        }
        text
    }

    fn of(&self, name: &str, kind: Kind) -> Vec<f64> {
        let mut figures =
            self.figures.get(&(name.to_owned(), label(kind))).cloned().unwrap_or_default();
        figures.sort_by(f64::total_cmp);
        figures
    }
}

fn label(kind: Kind) -> &'static str {
    match kind {
        Kind::Kafka => "kafka",
        Kind::Ottla => "ottla",
    }
}

fn shown(sorted: &[f64]) -> String {
    with_range(sorted, rounded)
}

fn ratio(ours: Option<f64>, theirs: Option<f64>) -> String {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if theirs > 0.0 => format!("{:.3}", ours / theirs),
        _ => "-".into(),
    }
}

fn rounded(figure: f64) -> String {
    if figure >= 100.0 { format!("{figure:.0}") } else { format!("{figure:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_range_and_ratio_are_those_of_the_figures() {
        let mut table = Table::default();
        for figure in [300.0, 100.0, 200.0] {
            table.add("x", Kind::Kafka, figure);
        }
        table.add("x", Kind::Ottla, 50.0);
        assert!(table.markdown().ends_with("| x | 200 (100-300) | 50.0 (50.0-50.0) | 0.250 |\n"));
    }
}
