//! What an experiment found: figures by name and contestant, one per repetition, with the limits of
//! the machine before and after, as a table for people and as JSON for plots and later runs.

use super::contestant::Contestant;
use super::load::Figure;
use serde_json::{Value, json};

/// Whoever is measured, by the head of its column.
pub trait Named: Copy {
    /// Unique among those beside it.
    fn name(self) -> &'static str;
}

impl Named for Contestant {
    fn name(self) -> &'static str {
        self.name
    }
}

/// Figures of one experiment.
#[derive(Debug, Default)]
pub struct Sheet {
    names: Vec<String>,
    columns: Vec<&'static str>,
    cells: Vec<(usize, usize, Vec<f64>)>,
}

impl Sheet {
    /// Adds the figures of one turn of a contestant.
    pub fn add(&mut self, contestant: impl Named, figures: Vec<Figure>) {
        for (name, figure) in figures {
            self.add_one(contestant.name(), &name, figure);
        }
    }

    /// Adds one figure to a column.
    pub fn add_one(&mut self, column: &'static str, name: &str, figure: f64) {
        let row = position(&mut self.names, name, str::to_owned);
        let column = position(&mut self.columns, column, |_| column);
        match self.cells.iter_mut().find(|(r, c, _)| (*r, *c) == (row, column)) {
            Some((_, _, figures)) => figures.push(figure),
            None => self.cells.push((row, column, vec![figure])),
        }
    }

    /// The table as Markdown: median (range) of each contestant, and the ratio of the last column's
    /// median to each other's.
    pub fn markdown(&self) -> String {
        let Some(last) = self.columns.len().checked_sub(1) else { return String::new() };
        let ratios =
            self.columns[..last].iter().map(|other| format!(" {} / {other} |", self.columns[last]));
        let heads = self.columns.iter().map(|column| format!(" {column} |"));
        let head: String = heads.chain(ratios).collect();
        let mut text = format!("| median (range) |{head}\n|{}\n", "---|".repeat(2 * last + 2));
        for (row, name) in self.names.iter().enumerate() {
            text += &format!("| {name} |");
            for column in 0..=last {
                text += &format!(" {} |", shown(&self.sorted(row, column)));
            }
            let ours = median(&self.sorted(row, last));
            for column in 0..last {
                text += &format!(" {} |", ratio(ours, median(&self.sorted(row, column))));
            }
            text.push('\n');
        }
        text
    }

    /// All of it.
    pub fn json(&self) -> Value {
        let rows = self.names.iter().enumerate().map(|(row, name)| {
            let cells = self.columns.iter().enumerate().filter_map(|(column, label)| {
                let figures = self.figures(row, column)?;
                Some(((*label).to_owned(), json!(figures)))
            });
            json!({ "name": name, "of": Value::Object(cells.collect()) })
        });
        json!({ "columns": self.columns, "figures": rows.collect::<Vec<_>>() })
    }

    fn figures(&self, row: usize, column: usize) -> Option<&Vec<f64>> {
        self.cells.iter().find(|(r, c, _)| (*r, *c) == (row, column)).map(|(_, _, f)| f)
    }

    fn sorted(&self, row: usize, column: usize) -> Vec<f64> {
        let mut figures = self.figures(row, column).cloned().unwrap_or_default();
        figures.sort_by(f64::total_cmp);
        figures
    }
}

/// Where it stands, at the end if it was not there.
fn position<T: AsRef<str>>(all: &mut Vec<T>, name: &str, make: impl Fn(&str) -> T) -> usize {
    all.iter().position(|one| one.as_ref() == name).unwrap_or_else(|| {
        all.push(make(name));
        all.len() - 1
    })
}

/// The middle one of sorted figures.
pub fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}

fn shown(sorted: &[f64]) -> String {
    let (Some(middle), [least, .., most]) = (median(sorted), sorted) else {
        return sorted.first().map_or_else(|| "-".into(), |only| rounded(*only));
    };
    format!("{} ({}-{})", rounded(middle), rounded(*least), rounded(*most))
}

fn ratio(ours: Option<f64>, theirs: Option<f64>) -> String {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if theirs > 0.0 => {
            let ratio = ours / theirs;
            if ratio >= 10.0 { format!("{ratio:.0}") } else { format!("{ratio:.3}") }
        }
        _ => "-".into(),
    }
}

fn rounded(figure: f64) -> String {
    match figure.abs() {
        size if size >= 1e6 => format!("{:.2} M", figure / 1e6),
        size if size >= 1e4 => format!("{:.1} k", figure / 1e3),
        size if size >= 100.0 => format!("{figure:.0}"),
        size if size >= 10.0 || size == 0.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_has_a_median_a_range_and_a_ratio_to_the_last() {
        let mut sheet = Sheet::default();
        for figure in [300.0, 100.0, 200.0] {
            sheet.add_one("a", "x", figure);
        }
        sheet.add_one("b", "x", 50.0);
        assert!(sheet.markdown().ends_with("| x | 200 (100-300) | 50.0 | 0.250 |\n"));
        assert_eq!(sheet.json()["figures"][0]["of"]["a"], json!([300.0, 100.0, 200.0]));
    }
}
