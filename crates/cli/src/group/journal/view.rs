//! What programs read of a journal: the names and units of the broker's own JSON
//! (`GET /groups/ID` and `/groups/ID/journal`). Durations are in milliseconds, times in
//! milliseconds since 1970.

use super::words;
use crate::print::{Cell, Table};
use ottla_client::admin::{Blocking, Caller, JournalEntry, MemberTimes, Move, Trigger, Who};
use serde::Serialize;
use std::time::Duration;

/// A member that its group waits for.
#[derive(Serialize)]
pub(in crate::group) struct BlockingView {
    member: WhoView,
    owes: String,
    for_ms: f64,
}

/// A rebalance.
#[derive(Serialize)]
pub(super) struct EntryView {
    generation: i32,
    outcome: String,
    began_at_ms: i64,
    took_ms: f64,
    join_took_ms: f64,
    sync_took_ms: Option<f64>,
    members: usize,
    causes: Vec<CauseView>,
    more_causes: u32,
    slowest: Vec<TimesView>,
    moved: Option<u32>,
    moves: Vec<MoveView>,
    record_offset: Option<i64>,
}

#[derive(Serialize)]
struct WhoView {
    id: String,
    instance: Option<String>,
    client_id: String,
    host: String,
}

#[derive(Serialize)]
struct CauseView {
    cause: String,
    member: Option<WhoView>,
    replaced: Option<String>,
    by: Option<CallerView>,
    topic: Option<String>,
    setting: Option<String>,
    reason: Option<String>,
}

#[derive(Serialize)]
struct CallerView {
    client_id: String,
    host: String,
}

#[derive(Serialize)]
struct TimesView {
    member: WhoView,
    join_took_ms: f64,
    sync_took_ms: Option<f64>,
}

#[derive(Serialize)]
struct MoveView {
    topic: String,
    partition: i32,
    from: Option<String>,
    to: Option<String>,
}

/// Whom a group waits for, for people.
pub(in crate::group) fn blocking_table(blocking: &[BlockingView]) -> Table {
    let mut table = Table::new(["WAITS FOR", "INSTANCE", "CLIENT", "HOST", "OWES", "FOR"]);
    for BlockingView { member, owes, for_ms } in blocking {
        let waited = Duration::try_from_secs_f64(for_ms / 1000.0).unwrap_or_default();
        table.row([
            member.id.as_str().into(),
            member.instance.as_deref().unwrap_or_default().into(),
            member.client_id.as_str().into(),
            member.host.as_str().into(),
            owes.as_str().into(),
            Cell::number(Some(words::span(waited))),
        ]);
    }
    table
}

/// An address; Java writes them with a slash before, and so do coordinators.
pub(super) fn host(client_host: &str) -> &str {
    client_host.trim_start_matches('/')
}

impl From<&Blocking> for BlockingView {
    fn from(from: &Blocking) -> Self {
        let for_ms = millis(from.waited);
        Self { member: WhoView::from(&from.who), owes: from.owes.clone(), for_ms }
    }
}

impl From<&JournalEntry> for EntryView {
    fn from(from: &JournalEntry) -> Self {
        Self {
            generation: from.generation.0,
            outcome: format!("{:?}", from.outcome),
            began_at_ms: from.began_at.0,
            took_ms: millis(from.took()),
            join_took_ms: millis(from.join_took),
            sync_took_ms: from.sync_took.map(millis),
            members: from.members,
            causes: from.triggers.iter().map(CauseView::from).collect(),
            more_causes: from.absorbed,
            slowest: from.slowest.iter().map(TimesView::from).collect(),
            moved: from.moved,
            moves: from.moves.iter().map(MoveView::from).collect(),
            record_offset: from.record.map(|at| at.0),
        }
    }
}

impl From<&Who> for WhoView {
    fn from(from: &Who) -> Self {
        Self {
            id: from.member.to_string(),
            instance: from.instance.as_ref().map(ToString::to_string),
            client_id: from.client_id.to_string(),
            host: host(&from.client_host).to_owned(),
        }
    }
}

impl From<&Trigger> for CauseView {
    fn from(from: &Trigger) -> Self {
        Self {
            cause: format!("{:?}", from.cause),
            member: from.who.as_ref().map(WhoView::from),
            replaced: from.replaced.as_ref().map(ToString::to_string),
            by: from.by.as_ref().map(CallerView::from),
            topic: from.topic.as_ref().map(ToString::to_string),
            setting: from.setting.as_ref().map(ToString::to_string),
            reason: from.reason.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&Caller> for CallerView {
    fn from(from: &Caller) -> Self {
        Self { client_id: from.client_id.to_string(), host: host(&from.client_host).to_owned() }
    }
}

impl From<&MemberTimes> for TimesView {
    fn from(from: &MemberTimes) -> Self {
        Self {
            member: WhoView::from(&from.who),
            join_took_ms: millis(from.join_took),
            sync_took_ms: from.sync_took.map(millis),
        }
    }
}

impl From<&Move> for MoveView {
    fn from(from: &Move) -> Self {
        Self {
            topic: from.topic.to_string(),
            partition: from.partition.0,
            from: from.from.as_ref().map(ToString::to_string),
            to: from.to.as_ref().map(ToString::to_string),
        }
    }
}

/// With its fraction: much of what is worth knowing takes less than one.
fn millis(span: Duration) -> f64 {
    span.as_micros() as f64 / 1000.0
}
