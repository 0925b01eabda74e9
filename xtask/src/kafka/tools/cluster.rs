//! What is asked of the cluster as a whole: settings, log folders, versions, quorum, features.

use super::Tools;

const CONFIGS: &str = "ConfigCommand";

/// Works on the topic `tools` and on broker 1.
pub fn run(tools: &mut Tools) {
    topic_settings(tools);
    broker_settings(tools);
    tools.expect(
        "LogDirsCommand",
        "--describe --topic-list tools",
        &["\"partition\":\"tools-0\"", "\"offsetLag\":0", "\"error\":null"],
    );
    tools.expect(
        "BrokerApiVersionsCommand",
        "",
        &[
            "Fetch(1): 4 to 18",
            "JoinGroup(11): 0 to 9",
            "OffsetCommit(8): 2 to 10",
            "CreateTopics(19): 2 to 7",
        ],
    );
    tools.expect("MetadataQuorumCommand", "describe --status", &["LeaderId:", "CurrentVoters:"]);
    // What is finalized differs between brokers; that the tool understands the answer does not.
    tools.expect("FeatureCommand", "describe", &["group.version"]);
    let election = "--election-type preferred --topic tools --partition 0";
    tools.expect("LeaderElectionCommand", election, &["Valid replica already elected"]);
    let reassignments = ["No partition reassignments found."];
    tools.expect("reassign.ReassignPartitionsCommand", "--list", &reassignments);
    tools.expect(
        "TransactionsCommand",
        "describe-producers --topic perf --partition 0",
        &["ProducerId"],
    );
}

fn topic_settings(tools: &mut Tools) {
    let topic = "--entity-type topics --entity-name tools";
    let describe = format!("{topic} --describe");
    tools.expect(CONFIGS, &describe, &["retention.ms=3600000", "DYNAMIC_TOPIC_CONFIG"]);
    let all = format!("{describe} --all");
    tools.expect(CONFIGS, &all, &["cleanup.policy=delete", "DEFAULT_CONFIG"]);
    let alter = format!("{topic} --alter --add-config max.message.bytes=50000,segment.ms=60000");
    let done = "Completed updating config for topic tools.";
    tools.expect(CONFIGS, &alter, &[done]);
    tools.expect(CONFIGS, &describe, &["max.message.bytes=50000", "segment.ms=60000"]);
    let delete = format!("{topic} --alter --delete-config retention.ms,segment.ms");
    tools.expect(CONFIGS, &delete, &[done]);
    tools.check(CONFIGS, &describe, "", |text| {
        let kept = text.contains("max.message.bytes=50000") && !text.contains("retention.ms=");
        if kept { Ok(()) } else { Err(format!("not as altered:\n{text}")) }
    });
    let bad = format!("{topic} --alter --add-config max.message.bytes=-7");
    tools.expect_refusal(CONFIGS, &bad, "Invalid value -7 for configuration max.message.bytes");
}

fn broker_settings(tools: &mut Tools) {
    let broker = "--entity-type brokers --entity-name 1";
    let all = format!("{broker} --describe --all");
    tools.expect(CONFIGS, &all, &["group.initial.rebalance.delay.ms=100", "log.retention"]);
    let done = "Completed updating config for broker 1.";
    let alter = format!("{broker} --alter --add-config message.max.bytes=2000000");
    tools.expect(CONFIGS, &alter, &[done]);
    let describe = format!("{broker} --describe");
    tools.expect(CONFIGS, &describe, &["message.max.bytes=2000000", "DYNAMIC_BROKER_CONFIG"]);
    let delete = format!("{broker} --alter --delete-config message.max.bytes");
    tools.expect(CONFIGS, &delete, &[done]);
}
