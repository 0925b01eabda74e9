//! kafka-topics: create, list, describe, alter, delete.

use super::Tools;

const TOPICS: &str = "TopicCommand";

/// Leaves the topic `tools` with six partitions behind for the other tools.
pub fn run(tools: &mut Tools) {
    let create = "--create --topic tools --partitions 3 --config retention.ms=3600000";
    tools.expect(TOPICS, create, &["Created topic tools."]);
    tools.expect_refusal(TOPICS, create, "Topic 'tools' already exists.");
    let bad = "--create --topic bad --partitions 1 --config retention.ms=tomorrow";
    tools.expect_refusal(TOPICS, bad, "Invalid value tomorrow for configuration retention.ms");
    tools.expect(TOPICS, "--create --topic short-lived", &["Created topic short-lived."]);
    tools.expect(TOPICS, "--list", &["short-lived\n", "tools\n"]);
    let wants = ["PartitionCount: 3", "ReplicationFactor: 1", "retention.ms=3600000"];
    tools.expect(TOPICS, "--describe --topic tools", &wants);
    tools.expect(TOPICS, "--alter --topic tools --partitions 6", &[]);
    let wants = ["PartitionCount: 6", "Partition: 5", "Leader: 1", "Isr: 1"];
    tools.expect(TOPICS, "--describe --topic tools", &wants);
    let fewer = "--alter --topic tools --partitions 2";
    tools.expect_refusal(TOPICS, fewer, "The topic tools currently has 6 partition(s); 2 would");
    tools.expect(TOPICS, "--delete --topic short-lived", &[]);
    tools.check(TOPICS, "--list", "", |text| {
        let gone = !text.contains("short-lived");
        if gone { Ok(()) } else { Err(format!("the topic is still listed:\n{text}")) }
    });
}
