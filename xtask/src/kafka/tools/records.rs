//! Producing, reading, locating and deleting records.

use super::Tools;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

/// Lines the console producer sends to `tools`.
pub const LINES: usize = 300;
/// Records of the perf tests, in one partition so that its indexes have entries.
const PERF_RECORDS: usize = 50_000;

/// Leaves the topics `tools` (read by the group `console`) and `perf` behind.
pub fn run(tools: &mut Tools) {
    console(tools);
    offsets(tools);
    perf(tools);
}

fn console(tools: &mut Tools) {
    let mut input = String::new();
    for line in 0..LINES {
        let _ = writeln!(input, "key-{line}:value-{line}");
    }
    let produce = "--topic tools --reader-property parse.key=true \
                   --reader-property key.separator=:";
    tools.check("ConsoleProducer", produce, &input, |_| Ok(()));
    let consume = format!(
        "--topic tools --group console --from-beginning --max-messages {LINES} \
         --timeout-ms 20000 --formatter-property print.key=true \
         --formatter-property key.separator=:"
    );
    tools.check("consumer.ConsoleConsumer", &consume, "", |text| {
        let lines: BTreeSet<_> = text.lines().collect();
        let missing = input.lines().filter(|line| !lines.contains(line)).count();
        if missing == 0 { Ok(()) } else { Err(format!("{missing} lines are missing:\n{text}")) }
    });
}

fn offsets(tools: &mut Tools) {
    const OFFSETS: &str = "GetOffsetShell";
    tools.check(OFFSETS, "--topic tools", "", |text| sum_is(text, LINES));
    tools.check(OFFSETS, "--topic tools --time earliest", "", |text| sum_is(text, 0));
    tools.check(OFFSETS, "--topic tools --time 0", "", |text| sum_is(text, 0));
    tools.expect(OFFSETS, "--topic-partitions tools:0 --time max-timestamp", &["tools:0:"]);
    let file = tools.logs.join("delete-records.json");
    let partition = r#"{"topic": "tools", "partition": 0, "offset": 5}"#;
    let text = format!(r#"{{"version": 1, "partitions": [{partition}]}}"#);
    let written = fs::write(&file, text).map_err(|error| error.to_string());
    tools.note("DeleteRecordsCommand", "(its file)", written);
    let delete = format!("--offset-json-file {}", file.display());
    tools.expect("DeleteRecordsCommand", &delete, &["partition: tools-0\tlow_watermark: 5"]);
    tools.check(OFFSETS, "--topic tools --time earliest", "", |text| sum_is(text, 5));
}

/// Adds up the offsets of lines `TOPIC:PARTITION:OFFSET`.
fn sum_is(text: &str, wanted: usize) -> Result<(), String> {
    let offset =
        |line: &str| line.strip_prefix("tools:")?.rsplit(':').next()?.parse::<usize>().ok();
    let sum: usize = text.lines().filter_map(offset).sum();
    if sum == wanted { Ok(()) } else { Err(format!("offsets add up to {sum}:\n{text}")) }
}

fn perf(tools: &mut Tools) {
    tools.expect("TopicCommand", "--create --topic perf --partitions 1", &["Created topic perf."]);
    let produce = format!(
        "--topic perf --num-records {PERF_RECORDS} --record-size 100 --throughput -1 \
         --command-property acks=all"
    );
    let sent = format!("{PERF_RECORDS} records sent");
    tools.expect("ProducerPerformance", &produce, &[&sent]);
    let consume = format!("--topic perf --num-records {PERF_RECORDS} --hide-header");
    tools.check("ConsumerPerformance", &consume, "", |text| {
        // start, end, MB, MB/s, records, ...
        let records = text.lines().find_map(|line| line.split(", ").nth(4)?.parse().ok());
        let enough = records.is_some_and(|records: usize| records >= PERF_RECORDS);
        if enough { Ok(()) } else { Err(format!("not {PERF_RECORDS} records:\n{text}")) }
    });
}
