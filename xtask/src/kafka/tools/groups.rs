//! kafka-consumer-groups: everything it can ask of a group and do to it.

use super::records::LINES;
use super::{TIMEOUT, Tools, contains_all};
use crate::kafka::java_class;
use crate::kafka::process::Background;

const GROUPS: &str = "consumer.group.ConsumerGroupCommand";

/// Works on the group `console`, which has read all of the topic `tools`, and deletes it.
pub fn run(tools: &mut Tools) {
    without_members(tools);
    match with_a_member(tools) {
        Ok(member) => {
            let ended = member.terminate(TIMEOUT);
            tools.note("consumer.ConsoleConsumer", "(SIGTERM)", ended);
        }
        Err(problem) => tools.note("consumer.ConsoleConsumer", "(start)", Err(problem)),
    }
    tools.await_text(GROUPS, "--describe --group console --state", &["Empty"]);
    reset(tools);
    delete(tools);
    match consumer_protocol(tools) {
        Ok(member) => {
            let ended = member.terminate(TIMEOUT);
            tools.note("consumer.ConsoleConsumer", "(SIGTERM)", ended);
        }
        Err(problem) => tools.note("consumer.ConsoleConsumer", "(start)", Err(problem)),
    }
    tools.await_text(GROUPS, "--describe --group modern --state", &["Empty"]);
    tools.expect(GROUPS, "--delete --group modern", &["('modern') was successful."]);
    if let Err(problem) = migration(tools) {
        tools.note("consumer.ConsoleConsumer", "(migration)", Err(problem));
    }
}

/// A classic group takes in a member of the consumer protocol, is one of that protocol while both
/// are in it, and a classic one again when only the classic member is left (KIP-848, "Online
/// Migration"; KIP-1099 for what the tool shows of it).
fn migration(tools: &mut Tools) -> Result<(), String> {
    let state = "--describe --group mixed --state";
    let members = "--describe --group mixed --members --verbose";
    let old = console(tools, "mixed", &["client.id=old"])?;
    tools.await_text(GROUPS, state, &["Stable", "range"]);
    tools.expect(GROUPS, "--list --type classic", &["mixed", "Classic"]);
    let new = console(tools, "mixed", &["client.id=new", "group.protocol=consumer"])?;
    tools.await_text(GROUPS, state, &["Stable", "uniform"]);
    tools.check(GROUPS, members, "", |text| {
        half_upgraded(text, "old", "false").and_then(|()| half_upgraded(text, "new", "true"))
    });
    tools.expect(GROUPS, "--list --type consumer", &["mixed", "Consumer"]);
    tools.expect(GROUPS, "--describe --group mixed", &["old-", "/127.0.0.1"]);
    let ended = new.terminate(TIMEOUT);
    tools.note("consumer.ConsoleConsumer", "(SIGTERM)", ended);
    tools.await_text(GROUPS, "--list --type classic", &["mixed"]);
    tools.await_text(GROUPS, state, &["Stable", "range"]);
    tools.await_text(GROUPS, members, &["old-", "tools:0,1,2,3,4,5"]);
    let ended = old.terminate(TIMEOUT);
    tools.note("consumer.ConsoleConsumer", "(SIGTERM)", ended);
    tools.await_text(GROUPS, state, &["Empty"]);
    Ok(())
}

/// `GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH
/// TARGET-ASSIGNMENT UPGRADED`: this client has half of the topic, where it is to have it.
fn half_upgraded(text: &str, client: &str, upgraded: &str) -> Result<(), String> {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut rows = rows.filter(|row| row.first() == Some(&"mixed"));
    let is_so = rows.any(|row| match row[..] {
        [_, _, "/127.0.0.1", id, "3", epoch, owns, target_epoch, target, state] => {
            id == client && epoch == target_epoch && owns == target && state == upgraded
        }
        _ => false,
    });
    let amiss = || format!("{client}, upgraded {upgraded}, has no such half in:\n{text}");
    is_so.then_some(()).ok_or_else(amiss)
}

/// A member of a group that reads the topic `tools`.
fn console(tools: &Tools, group: &str, properties: &[&str]) -> Result<Background, String> {
    let mut command = java_class("org.apache.kafka.tools.consumer.ConsoleConsumer")?;
    command.args(["--bootstrap-server", &tools.bootstrap, "--topic", "tools", "--group", group]);
    for property in properties {
        command.args(["--command-property", property]);
    }
    let name = properties.concat().replace(['=', '.'], "-");
    Background::start("a member", command, &tools.logs.join(format!("{group}-{name}.log")))
}

/// A group of the consumer protocol (KIP-848), with its epochs and targets.
fn consumer_protocol(tools: &mut Tools) -> Result<Background, String> {
    let member = console(tools, "modern", &["client.id=watched", "group.protocol=consumer"])?;
    tools.await_text(GROUPS, "--describe --group modern --state", &["Stable", "uniform"]);
    let members = "--describe --group modern --members --verbose";
    let told = ["watched", "CURRENT-EPOCH", "TARGET-ASSIGNMENT", "tools:0,1,2,3,4,5"];
    tools.expect(GROUPS, members, &told);
    tools.expect(GROUPS, "--list --type consumer", &["modern", "Consumer"]);
    tools.expect_refusal(GROUPS, "--delete --group modern", "GroupNotEmptyException");
    Ok(member)
}

fn without_members(tools: &mut Tools) {
    tools.expect(GROUPS, "--list", &["console"]);
    tools.expect(GROUPS, "--list --state Empty", &["console", "Empty"]);
    tools.expect(GROUPS, "--list --type classic", &["console", "Classic"]);
    tools.check(GROUPS, "--describe --group console", "", |text| {
        contains_all(text, &["Consumer group 'console' has no active members."])?;
        total(text, Column::Lag).and_then(|lag| equals("lag", lag, 0))
    });
    tools.expect(GROUPS, "--describe --group console --state", &["Empty"]);
    tools.expect(GROUPS, "--describe --group console --members", &["no active members"]);
    tools.expect_refusal(GROUPS, "--describe --group nobody", "GroupIdNotFoundException");
}

fn with_a_member(tools: &mut Tools) -> Result<Background, String> {
    let member = console(tools, "console", &["client.id=watched"])?;
    tools.await_text(GROUPS, "--describe --group console --state", &["Stable", "range"]);
    let members = "--describe --group console --members --verbose";
    tools.expect(GROUPS, members, &["watched-", "/127.0.0.1", "tools:0,1,2,3,4,5"]);
    tools.expect(GROUPS, "--describe --group console", &["watched-", "/127.0.0.1"]);
    tools.expect(GROUPS, "--list --state Stable", &["console"]);
    tools.expect_refusal(GROUPS, "--delete --group console", "GroupNotEmptyException");
    let reset = "--reset-offsets --group console --topic tools --to-earliest --execute";
    tools.expect_refusal(GROUPS, reset, "can only be reset if the group 'console' is inactive");
    Ok(member)
}

fn reset(tools: &mut Tools) {
    let reset = "--reset-offsets --group console --topic tools";
    let describe = "--describe --group console";
    tools.check(GROUPS, &format!("{reset} --to-earliest --dry-run"), "", |text| {
        // Records were deleted below offset 5 of partition 0.
        total(text, Column::NewOffset).and_then(|sum| equals("new offsets", sum, 5))
    });
    tools.check(GROUPS, describe, "", |text| {
        total(text, Column::Lag).and_then(|lag| equals("lag after a dry run", lag, 0))
    });
    tools.check(GROUPS, &format!("{reset} --to-earliest --execute"), "", |text| {
        total(text, Column::NewOffset).and_then(|sum| equals("new offsets", sum, 5))
    });
    tools.check(GROUPS, describe, "", |text| {
        total(text, Column::Lag).and_then(|lag| equals("lag", lag, LINES - 5))
    });
    tools.check(GROUPS, &format!("{reset}:1 --shift-by 3 --execute"), "", |text| {
        total(text, Column::NewOffset).and_then(|sum| equals("new offset", sum, 3))
    });
    // Nothing is as young as that, so every partition goes to its end.
    let future = format!("{reset} --to-datetime 2099-01-01T00:00:00.000 --execute");
    tools.check(GROUPS, &future, "", |text| {
        total(text, Column::NewOffset).and_then(|sum| equals("new offsets", sum, LINES))
    });
    tools.check(GROUPS, &format!("{reset} --by-duration P1D --dry-run"), "", |text| {
        total(text, Column::NewOffset).and_then(|sum| equals("new offsets", sum, 5))
    });
    tools.expect(GROUPS, &format!("{reset} --to-current --export --dry-run"), &["tools,0,"]);
}

fn delete(tools: &mut Tools) {
    let offsets = "--delete-offsets --group console --topic tools:5";
    tools.expect(GROUPS, offsets, &["Request succeeded for deleting offsets from group console"]);
    tools.check(GROUPS, "--describe --group console", "", |text| {
        let gone = !text.lines().any(|line| line.split_whitespace().nth(2) == Some("5"));
        if gone { Ok(()) } else { Err(format!("partition 5 still has an offset:\n{text}")) }
    });
    let done = "Deletion of requested consumer groups ('console') was successful.";
    tools.expect(GROUPS, "--delete --group console", &[done]);
    tools.check(GROUPS, "--list", "", |text| {
        let gone = !text.lines().any(|line| line == "console");
        if gone { Ok(()) } else { Err(format!("the group is still listed:\n{text}")) }
    });
}

/// Columns whose numbers are added up, by their place in a line of the table.
#[derive(Clone, Copy)]
enum Column {
    /// `GROUP TOPIC PARTITION NEW-OFFSET`
    NewOffset = 3,
    /// `GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG ...`
    Lag = 5,
}

fn total(text: &str, column: Column) -> Result<usize, String> {
    let rows = text.lines().filter(|line| line.starts_with("console "));
    let numbers: Option<Vec<usize>> =
        rows.map(|row| row.split_whitespace().nth(column as usize)?.parse().ok()).collect();
    match numbers {
        Some(numbers) if !numbers.is_empty() => Ok(numbers.iter().sum()),
        _ => Err(format!("no such table:\n{text}")),
    }
}

fn equals(what: &str, found: usize, wanted: usize) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found}, not {wanted}")) }
}
