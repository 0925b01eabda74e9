//! An entry of the journal held against what the test did and saw.

use crate::protocol::{Owners, Process, Protocol, Slot};
use ottla_client::admin::{JournalEntry, Trigger, Who};
use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What an entry should say of why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) cause: &'static str,
    pub(crate) who: Option<Person>,
    pub(crate) replaced: Option<String>,
    pub(crate) by: Option<String>,
    pub(crate) topic: Option<String>,
    pub(crate) setting: Option<String>,
    pub(crate) reason: Option<String>,
}

/// A member: id, instance, client id, host.
pub(crate) type Person = (String, Option<String>, String, String);

/// When a row began to act.
pub(crate) struct Begun {
    mono: Instant,
    wall_ms: i64,
}

impl Begun {
    pub(crate) fn now() -> Self {
        Self { mono: Instant::now(), wall_ms: wall_ms() }
    }
}

pub(crate) fn person<P: Protocol>(process: &Process) -> Person {
    let instance = process.instance.map(String::from);
    (process.id.clone(), instance, process.wire.client.into(), P::HOST.into())
}

/// The entry says just this of why.
pub(crate) fn assert_why(entry: &JournalEntry, why: &[Why]) {
    let said: Vec<_> = entry.triggers.iter().map(said).collect();
    assert_eq!(said, why, "{entry:#?}");
    assert_eq!(entry.absorbed, 0);
}

/// The entry says just these moves.
pub(crate) fn assert_moves(entry: &JournalEntry, before: &Owners, after: &Owners) {
    let slots: BTreeSet<&Slot> = before.keys().chain(after.keys()).collect();
    let moves = slots.into_iter().map(|slot| (slot, before.get(slot), after.get(slot)));
    let moves: BTreeSet<_> = moves.filter(|(_, from, to)| from != to).collect();
    let said: Vec<(Slot, _, _)> = entry
        .moves
        .iter()
        .map(|it| {
            let slot = (it.topic.to_string(), it.partition.0);
            (
                slot,
                it.from.as_ref().map(ToString::to_string),
                it.to.as_ref().map(ToString::to_string),
            )
        })
        .collect();
    let said: BTreeSet<_> =
        said.iter().map(|(s, from, to)| (s, from.as_ref(), to.as_ref())).collect();
    assert_eq!(said, moves, "{entry:#?}");
    assert_eq!(entry.moved, u32::try_from(moves.len()).ok());
}

/// The durations are there, and fit together and into the time that has passed; the slowest are
/// members of the group, the slowest first, and none took longer than all.
pub(crate) fn assert_times(entry: &JournalEntry, begun: &Begun, present: &BTreeSet<String>) {
    let sync_took = entry.sync_took.expect("how long it took until everyone had a part");
    assert_eq!(entry.took(), entry.join_took + sync_took);
    assert!(entry.took() <= begun.mono.elapsed(), "{entry:#?}");
    assert!((begun.wall_ms..=wall_ms()).contains(&entry.began_at.0), "{entry:#?}");
    assert_eq!(entry.members, present.len());
    let times = entry.slowest.iter().map(|it| {
        assert!(present.contains(&*it.who.member), "{entry:#?}");
        assert!(it.join_took <= entry.join_took && it.sync_took <= entry.sync_took, "{entry:#?}");
        it.join_took + it.sync_took.unwrap_or_default()
    });
    let times: Vec<Duration> = times.collect();
    assert_eq!(times.len(), present.len(), "{entry:#?}");
    assert!(times.is_sorted_by(|a, b| a >= b), "{entry:#?}");
}

fn said(trigger: &Trigger) -> Why {
    let text = |text: &Option<_>| text.as_ref().map(|it: &std::sync::Arc<str>| it.to_string());
    Why {
        cause: cause(trigger),
        who: trigger.who.as_ref().map(told),
        replaced: trigger.replaced.as_ref().map(ToString::to_string),
        by: trigger.by.as_ref().map(|by| by.client_id.to_string()),
        topic: trigger.topic.as_ref().map(ToString::to_string),
        setting: text(&trigger.setting),
        reason: text(&trigger.reason),
    }
}

fn told(who: &Who) -> Person {
    let instance = who.instance.as_ref().map(ToString::to_string);
    let host = who.client_host.trim_start_matches('/').to_owned();
    (who.member.to_string(), instance, who.client_id.to_string(), host)
}

/// Leaked, so that a row reads like the journal: there are few of them.
fn cause(trigger: &Trigger) -> &'static str {
    Box::leak(format!("{:?}", trigger.cause).into_boxed_str())
}

fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the end of times")
}
