//! `plot`: draws the figures of the last runs as SVG, anew from their JSON. Bars on a logarithmic
//! scale, because what is compared differs tenfold.

use super::goals;
use super::results::Results;
use super::sheet::median;
use crate::Outcome;
use crate::kafka::process::create;
use crate::shell::root;
use std::fmt::Write as _;
use std::io::Write as _;

/// A figure's bars: one of each contestant.
struct Row {
    label: String,
    /// Column, least, middle, most.
    bars: Vec<(usize, [f64; 3])>,
}

/// One plot: its file, title and the experiment with the words of the figures that it shows.
const PLOTS: &[(&str, &str, &str, &[&str])] = &[
    ("heartbeats", "Heartbeats per CPU-second of the broker", "hb-storm", &["/broker CPU-s"]),
    ("commits", "Offset commits per CPU-second of the broker", "commit-storm", &["/broker CPU-s"]),
    ("recall", "Killed coordinator: process start to answers", "coord-load", &["process start"]),
    ("latency", "Write to read, microseconds", "latency", &["write to read", "p"]),
    ("rebalance", "Time to a new assignment", "reb", &["converged"]),
    ("produce-fetch", "Records per CPU-second of the broker", "pf", &["records/broker CPU-s"]),
];

/// Draws all that was measured.
pub fn run() -> Outcome {
    for (file, title, bench, words) in PLOTS {
        let Some(results) = Results::of(bench) else {
            println!("{file}: nothing to draw, `{bench}` was not run");
            continue;
        };
        let columns = results.columns();
        let shown = results.names().filter(|name| words.iter().all(|word| name.contains(word)));
        let row = |name: &str| {
            let bar = |(number, column): (usize, &&str)| {
                let figures = results.sorted(name, column);
                let middle = median(&figures)?;
                Some((number, [*figures.first()?, middle, *figures.last()?]))
            };
            Row { label: label(name), bars: columns.iter().enumerate().filter_map(bar).collect() }
        };
        let rows: Vec<Row> = shown.map(row).collect();
        write(file, &draw(title, &results.origin(), &columns, &rows, None))?;
    }
    let reached = goals::reached();
    let marks: Vec<f64> = reached.iter().map(|(.., mark)| *mark).collect();
    let row = |(label, ratio, _): (String, f64, f64)| Row { label, bars: vec![(1, [ratio; 3])] };
    let rows: Vec<Row> = reached.into_iter().map(row).collect();
    let origin = Results::of("hb-storm").map_or_else(String::new, |results| results.origin());
    let caption = format!("ratio of medians; the stroke is the mark; {origin}");
    let columns = ["", "times better than Apache Kafka 4.4.0 on defaults"];
    write("goals", &draw("Goals", &caption, &columns, &rows, Some(&marks)))
}

/// A figure's name without the unit that the title says.
fn label(name: &str) -> String {
    let unit = name.rsplit_once(": ").filter(|(_, unit)| unit.ends_with("/broker CPU-s"));
    unit.map_or(name, |(what, _)| what).to_owned()
}

fn write(file: &str, svg: &str) -> Outcome {
    let path = root().join("docs/bench").join(format!("{file}.svg"));
    let written = create(&path)?.write_all(svg.as_bytes());
    println!("{}", path.display());
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// The range of a logarithmic axis and its length on paper.
struct Axis {
    least: f64,
    decades: f64,
}

impl Axis {
    fn over(figures: impl Iterator<Item = f64> + Clone) -> Self {
        let positive = figures.filter(|figure| *figure > 0.0);
        let least = positive.clone().fold(f64::MAX, f64::min).log10().floor();
        let most = positive.fold(f64::MIN_POSITIVE, f64::max).log10().ceil();
        Self { least, decades: (most - least).max(1.0) }
    }

    fn x(&self, figure: f64) -> f64 {
        let share = (figure.max(f64::MIN_POSITIVE).log10() - self.least) / self.decades;
        LEFT + share.clamp(0.0, 1.0) * WIDTH
    }
}

fn draw(
    title: &str,
    caption: &str,
    columns: &[&str],
    rows: &[Row],
    marks: Option<&[f64]>,
) -> String {
    let figures = rows.iter().flat_map(|row| row.bars.iter().flat_map(|(_, of)| *of));
    let axis = Axis::over(figures.chain(marks.into_iter().flatten().copied()));
    let bars: usize = rows.iter().map(|row| row.bars.len()).sum();
    let height = TOP + bars as f64 * BAR + rows.len() as f64 * GAP + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"18\" font-size=\"15\">{}</text>\n\
         <text x=\"10\" y=\"34\" fill=\"#555\" font-size=\"9\">{}</text>\n",
        LEFT + WIDTH + 90.0,
        escaped(title),
        escaped(caption),
    );
    legend(&mut svg, columns);
    grid(&mut svg, &axis, height - 25.0);
    let mut y = TOP;
    for (number, row) in rows.iter().enumerate() {
        let (from, label) = (y, escaped(&row.label));
        for (column, of) in &row.bars {
            bar(&mut svg, &axis, y, COLOURS[column % COLOURS.len()], *of);
            y += BAR;
        }
        let middle = (from + y) / 2.0 + 2.0;
        let place = format!("x=\"{:.0}\" y=\"{middle:.1}\" text-anchor=\"end\"", LEFT - 6.0);
        let _ = writeln!(svg, "<text {place}>{label}</text>");
        if let Some(mark) = marks.and_then(|marks| marks.get(number)) {
            let x = axis.x(*mark);
            let ends = format!("x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{from:.1}\" y2=\"{y:.1}\"");
            let _ = writeln!(svg, "<line {ends} stroke=\"black\" stroke-width=\"2\"/>");
        }
        y += GAP;
    }
    svg + "</svg>\n"
}

fn legend(svg: &mut String, columns: &[&str]) {
    let mut x = LEFT;
    for (number, column) in columns.iter().enumerate().filter(|(_, column)| !column.is_empty()) {
        let colour = COLOURS[number % COLOURS.len()];
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.0}\" y=\"42\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{:.0}\" y=\"51\">{}</text>",
            x + 14.0,
            escaped(column)
        );
        x += 30.0 + column.len() as f64 * 6.2;
    }
}

fn grid(svg: &mut String, axis: &Axis, bottom: f64) {
    for decade in 0..=(axis.decades as i32) {
        let figure = 10_f64.powf(axis.least + f64::from(decade));
        let x = axis.x(figure);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP:.0}\" y2=\"{bottom:.0}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            bottom + 14.0,
            rounded(figure)
        );
    }
}

fn bar(svg: &mut String, axis: &Axis, y: f64, colour: &str, [least, middle, most]: [f64; 3]) {
    let (x, height, centre) = (axis.x(middle), BAR - 2.0, y + BAR / 2.0 - 1.0);
    let _ = writeln!(
        svg,
        "<rect x=\"{LEFT:.0}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
         fill=\"{colour}\"/><line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{centre:.1}\" \
         y2=\"{centre:.1}\" stroke=\"#333\"/><text x=\"{:.1}\" y=\"{:.1}\" \
         fill=\"#333\">{}</text>",
        (x - LEFT).max(1.0),
        axis.x(least),
        axis.x(most),
        axis.x(most) + 4.0,
        y + height - 2.0,
        rounded(middle),
    );
}

fn rounded(figure: f64) -> String {
    match figure {
        _ if figure >= 1e6 => format!("{:.1} M", figure / 1e6),
        _ if figure >= 1e4 => format!("{:.0} k", figure / 1e3),
        _ if figure >= 10.0 => format!("{figure:.0}"),
        _ => format!("{figure:.2}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Left of the bars is room for labels.
const LEFT: f64 = 440.0;
const WIDTH: f64 = 480.0;
const TOP: f64 = 64.0;
const BAR: f64 = 13.0;
const GAP: f64 = 8.0;
/// Kafka's first, ours last.
const COLOURS: [&str; 4] = ["#9aa5b1", "#c2703d", "#2f6f9f", "#7fb069"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decade_is_as_long_as_the_next() {
        let axis = Axis::over([20.0, 3000.0].into_iter());
        assert_eq!(axis.x(10.0), LEFT);
        assert_eq!(axis.x(10_000.0), LEFT + WIDTH);
        assert!((axis.x(100.0) - LEFT - WIDTH / 3.0).abs() < 1e-6);
    }

    #[test]
    fn a_bar_names_its_figure_and_a_label_is_text() {
        let rows = [Row { label: "a < b".into(), bars: vec![(0, [1.0, 20.0, 30.0])] }];
        let svg = draw("t", "c", &["k"], &rows, None);
        assert!(svg.contains(">20</text>") && svg.contains("a &lt; b"));
    }
}
