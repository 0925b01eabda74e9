//! Key 32020, GroupJournal, version 0: why a group rebalanced, what moved, how long everything and
//! everyone took, who holds the group up now, and what is in the way of its migration.
//!
//! For the command line; the same as `GET /groups/{id}` and `/groups/{id}/journal`. Each note of
//! the answer is as it is kept (`docs/formats.md`), oldest first.

use super::{Answer, Context};
use crate::clock;
use crate::shards::views::{Absent, view};
use ottla_group::coordinator::{Blocker, GroupView, Note, Noted};
use ottla_wire::ErrorCode;
use ottla_wire::convert::journal;
use ottla_wire::generated::group_journal_response::{BlockingMember, EncodedNote};
use ottla_wire::generated::{GroupJournalRequest, GroupJournalResponse};
use std::sync::Arc;

/// Answers from the group's shard, once that is safe.
pub(super) fn handle(cx: &mut Context<'_>, request: GroupJournalRequest<'_>) -> Answer {
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    let group = String::from(request.group_id);
    Answer::Later(Box::pin(async move {
        match view(&broker, &group).await {
            Ok(view) => {
                let (notes, obstacles) = (notes(&view), obstacles(&view));
                to.encode(&response(&view, &notes, &obstacles))
            }
            Err(absent) => {
                let code = match absent {
                    Absent::Unknown => ErrorCode::GroupIdNotFound,
                    Absent::NotYet => ErrorCode::CoordinatorLoadInProgress,
                };
                broker.metrics.errors.count(to.key, code);
                let error_code = code.number();
                to.encode(&GroupJournalResponse { error_code, ..Default::default() })
            }
        }
    }))
}

fn notes(view: &GroupView) -> Vec<Vec<u8>> {
    let notes = view.journal.iter().map(|entry| {
        journal::encode(&Note { group: view.group.clone(), what: Noted::Entry(entry.clone()) })
    });
    // Every text in it came in through a field as long.
    notes.filter_map(Result::ok).collect()
}

/// In words: they are for people, and there will be others.
fn obstacles(view: &GroupView) -> Vec<String> {
    let all = view.migration.iter().flat_map(|migration| &migration.obstacles);
    all.map(ToString::to_string).collect()
}

fn response<'a>(
    view: &'a GroupView,
    notes: &'a [Vec<u8>],
    obstacles: &'a [String],
) -> GroupJournalResponse<'a> {
    GroupJournalResponse {
        error_code: ErrorCode::None.number(),
        group_id: &view.group,
        group_type: view.kind.name(),
        group_state: view.state.name(),
        generation: view.generation.0,
        member_count: i32::try_from(view.members).unwrap_or(i32::MAX),
        blocking: view.blocking.iter().map(blocking).collect(),
        migrates_to: view.migration.as_ref().map(|migration| migration.to.name()),
        obstacles: obstacles.iter().map(String::as_str).collect(),
        notes: notes.iter().map(|note| EncodedNote { note }).collect(),
    }
}

fn blocking(blocker: &Blocker) -> BlockingMember<'_> {
    let waited = clock::mono().since(blocker.since);
    BlockingMember {
        member_id: &blocker.who.member,
        instance_id: blocker.who.instance.as_deref(),
        client_id: &blocker.who.client_id,
        client_host: &blocker.who.client_host,
        owes: blocker.owes.name(),
        for_ms: i64::try_from(waited.as_millis()).unwrap_or(i64::MAX),
    }
}
