//! kafka-dump-log on the files a stopped broker leaves: segments, indexes, group records,
//! producer snapshots. That it reads them is how we know that they are Kafka's own format.

use super::records::LINES;
use super::{Tools, contains_all};
use std::fs;
use std::path::{Path, PathBuf};

const DUMP: &str = "DumpLogSegments";

/// Reads what the other tools left in `data`.
pub fn run(tools: &mut Tools, data: &Path) {
    let tools_0 = files(data, "tools-0", "log");
    dump(tools, &tools_0, "--print-data-log", |text| contains_all(text, &["payload: value-"]));
    let lines: usize = (0..6)
        .map(|partition| files(data, &format!("tools-{partition}"), "log"))
        .map(|logs| records_in(tools, &logs))
        .sum();
    let all = if lines == LINES { Ok(()) } else { Err(format!("{lines} records dumped")) };
    tools.note(DUMP, "(all console lines)", all);
    let perf = files(data, "perf-0", "log");
    dump(tools, &perf, "--deep-iteration", |text| contains_all(text, &["CreateTime:"]));
    let index = files(data, "perf-0", "index");
    let sane = ["passed sanity check"];
    dump(tools, &index, "--index-sanity-check", |text| contains_all(text, &sane));
    dump(tools, &index, "", |text| contains_all(text, &["offset: ", "position: "]));
    let time_index = files(data, "perf-0", "timeindex");
    dump(tools, &time_index, "--index-sanity-check", |text| contains_all(text, &sane));
    dump(tools, &time_index, "", |text| contains_all(text, &["timestamp: ", "offset: "]));
    let snapshot = files(data, "perf-0", "snapshot");
    let wants = ["producerId: ", "producerEpoch: ", "lastSequence: "];
    dump(tools, &snapshot, "", |text| contains_all(text, &wants));
    let offsets = group_partition(data, "console");
    let logs = files(data, &offsets, "log");
    let wants = ["\"group\":\"console\"", "\"topic\":\"tools\"", "\"protocolType\":\"consumer\""];
    dump(tools, &logs, "--offsets-decoder", |text| contains_all(text, &wants));
    let logs = files(data, &group_partition(data, "mixed"), "log");
    dump(tools, &logs, "--offsets-decoder", mixed_group);
}

/// The records of a group that was classic, had a classic member as one of the consumer protocol,
/// and was classic again.
fn mixed_group(text: &str) -> Result<(), String> {
    let of_mixed = text.lines().filter(|line| line.contains("\"mixed\""));
    let of_mixed = of_mixed.collect::<Vec<_>>().join("\n");
    contains_all(
        &of_mixed,
        &[
            "\"protocolType\":\"consumer\"",
            "\"clientId\":\"old\"",
            "\"classicMemberMetadata\":{\"sessionTimeoutMs\":45000",
            "\"clientId\":\"new\"",
            "\"classicMemberMetadata\":null",
            "\"assignmentEpoch\":",
            "\"memberEpoch\":",
        ],
    )
}

/// Dumps files and refuses whatever the tool found amiss in them.
fn dump(
    tools: &mut Tools,
    files: &[PathBuf],
    flags: &str,
    judge: impl FnOnce(&str) -> Result<(), String>,
) {
    let outcome = dumped(tools, files, flags).and_then(|text| judge(&text));
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    tools.note(DUMP, &format!("{flags} {}", names.join(",")), outcome);
}

fn dumped(tools: &mut Tools, files: &[PathBuf], flags: &str) -> Result<String, String> {
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    if names.is_empty() {
        return Err("there is no such file".into());
    }
    let arguments = format!("--files {} {flags}", names.join(","));
    let text = tools.call_offline(DUMP, &arguments, "")?;
    let amiss = ["Mismatches in", "not found in", "Found timestamp mismatch", "isvalid: false"];
    match amiss.iter().find(|words| text.contains(**words)) {
        None => Ok(text),
        Some(words) => Err(format!("`{words}` in:\n{text}")),
    }
}

fn records_in(tools: &mut Tools, logs: &[PathBuf]) -> usize {
    let text = dumped(tools, logs, "--print-data-log").unwrap_or_default();
    text.lines().filter(|line| line.contains("payload: value-")).count()
}

/// The files of one partition with this ending, in the order of their names.
fn files(data: &Path, partition: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join(partition)).into_iter().flatten().flatten();
    let ends = |path: &PathBuf| path.extension().is_some_and(|found| found == ending);
    let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(ends).collect();
    found.sort();
    found
}

/// The partition of the offsets topic that a group lives in, by Java's hash of its name.
fn group_partition(data: &Path, group: &str) -> String {
    let hash = group
        .encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    let prefix = "__consumer_offsets-";
    let names = fs::read_dir(data).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let partitions = names.filter(|name| name.to_string_lossy().starts_with(prefix)).count();
    format!("{prefix}{}", (hash & i32::MAX) as usize % partitions.max(1))
}
