//! `GET /groups`, `/groups/{id}` and `/groups/{id}/journal`: who is in a group, why it rebalanced
//! and who holds it up, as JSON. Durations are in milliseconds, times in milliseconds since 1970.

use crate::broker::Broker;
use crate::clock;
use crate::shards::views::{Absent, listings, view};
use ottla_group::coordinator::{
    Blocker, Caller, JournalEntry, MemberTimes, Migration, Move, Trigger, Who,
};
use ottla_model::Instant;
use serde_json::{Value, json};
use std::time::Duration;

/// Every group of this broker, by name.
pub(super) async fn list(broker: &Broker) -> Result<Value, Absent> {
    let mut groups = listings(broker).await?;
    groups.sort_unstable_by(|a, b| a.group.cmp(&b.group));
    let groups = groups.iter().map(|group| {
        json!({
            "group": group.group.to_string(),
            "type": group.kind.name(),
            "state": group.state.name(),
        })
    });
    Ok(json!({ "groups": groups.collect::<Vec<_>>() }))
}

/// One group: its state, who holds it up, and its last rebalance.
pub(super) async fn one(broker: &Broker, group: &str) -> Result<Value, Absent> {
    let view = view(broker, group).await?;
    let now = clock::mono();
    Ok(json!({
        "group": view.group.to_string(),
        "type": view.kind.name(),
        "state": view.state.name(),
        "generation": view.generation.0,
        "members": view.members,
        "blocking": view.blocking.iter().map(|it| blocker(it, now)).collect::<Vec<_>>(),
        "migration": view.migration.as_ref().map(migration),
        "last_rebalance": view.journal.last().map(entry),
    }))
}

/// One group's journal, newest first.
pub(super) async fn journal(broker: &Broker, group: &str) -> Result<Value, Absent> {
    let view = view(broker, group).await?;
    Ok(json!({
        "group": view.group.to_string(),
        "journal": view.journal.iter().rev().map(entry).collect::<Vec<_>>(),
    }))
}

fn blocker(blocker: &Blocker, now: Instant) -> Value {
    json!({
        "member": who(&blocker.who),
        "owes": blocker.owes.name(),
        "for_ms": millis(now.since(blocker.since)),
    })
}

/// Where the group can go between the classic and the consumer protocol, and what is in the way.
fn migration(migration: &Migration) -> Value {
    json!({
        "to": migration.to.name(),
        "obstacles": migration.obstacles.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn entry(entry: &JournalEntry) -> Value {
    json!({
        "generation": entry.generation.0,
        "outcome": format!("{:?}", entry.outcome),
        "began_at_ms": entry.began_at.0,
        "took_ms": millis(entry.took()),
        "join_took_ms": millis(entry.join_took),
        "sync_took_ms": entry.sync_took.map(millis),
        "members": entry.members,
        "causes": entry.triggers.iter().map(trigger).collect::<Vec<_>>(),
        "more_causes": entry.absorbed,
        "slowest": entry.slowest.iter().map(times).collect::<Vec<_>>(),
        "moved": entry.moved,
        "moves": entry.moves.iter().map(moved).collect::<Vec<_>>(),
        "record_offset": entry.record.map(|at| at.0),
    })
}

fn trigger(trigger: &Trigger) -> Value {
    let by = |by: &Caller| json!({ "client_id": *by.client_id, "host": *by.client_host });
    json!({
        "cause": format!("{:?}", trigger.cause),
        "member": trigger.who.as_ref().map(who),
        "replaced": trigger.replaced.as_deref(),
        "by": trigger.by.as_ref().map(by),
        "topic": trigger.topic.as_deref(),
        "setting": trigger.setting.as_deref(),
        "reason": trigger.reason.as_deref(),
    })
}

fn who(who: &Who) -> Value {
    json!({
        "id": *who.member,
        "instance": who.instance.as_deref(),
        "client_id": *who.client_id,
        "host": *who.client_host,
    })
}

fn times(times: &MemberTimes) -> Value {
    json!({
        "member": who(&times.who),
        "join_took_ms": millis(times.join_took),
        "sync_took_ms": times.sync_took.map(millis),
    })
}

fn moved(moved: &Move) -> Value {
    json!({
        "topic": *moved.topic,
        "partition": moved.partition.0,
        "from": moved.from.as_deref(),
        "to": moved.to.as_deref(),
    })
}

/// With its fraction: much of what is worth knowing takes less than one.
fn millis(span: Duration) -> f64 {
    span.as_micros() as f64 / 1000.0
}

/// The text that `%41` and the like stand for; `None` where it is no text.
pub(super) fn unescaped(escaped: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit))?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_groups_may_be_escaped() {
        assert_eq!(unescaped("a%2Fb%C3%A9").as_deref(), Some("a/bé"));
        for broken in ["%", "%4", "%zz", "%+1", "%ff"] {
            assert_eq!(unescaped(broken), None, "{broken}");
        }
    }
}
