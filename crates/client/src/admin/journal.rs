//! A group's journal: why it rebalanced, what moved, how long that took, and whom it waits for.
//! Ottla's own (API key 32020); Apache Kafka keeps none.

use super::Admin;
use crate::connection::Connection;
use crate::{Error, ErrorKind, Result};
use ottla_group::coordinator::{JournalEntry, Noted, Who};
use ottla_model::{Generation, GroupId};
use ottla_wire::ApiKey;
use ottla_wire::convert::journal;
use ottla_wire::generated::group_journal_response::BlockingMember;
use ottla_wire::generated::{GroupJournalRequest, GroupJournalResponse};
use std::time::Duration;

/// A group, its recent past, and who holds it up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupJournal {
    /// The group.
    pub group: GroupId,
    /// Which protocol its members speak: `classic`, `consumer`, ...
    pub kind: String,
    /// Its state: `Empty`, `Stable`, `PreparingRebalance`, ...
    pub state: String,
    /// The generation in force or being prepared for.
    pub generation: Generation,
    /// How many members it has.
    pub members: usize,
    /// Whom it waits for right now, longest first.
    pub blocking: Vec<Blocking>,
    /// Where it would go between the classic and the consumer protocol, if others of the other one
    /// came or the last one of its own went; `None` where that does not arise.
    pub migration: Option<Migration>,
    /// Its last rebalances, oldest first; how many are kept is the broker's own bound.
    pub entries: Vec<JournalEntry>,
}

/// Where a group would go, and whether it could (KIP-848, "Online Migration").
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Migration {
    /// The protocol: `classic` or `consumer`.
    pub to: String,
    /// What is in the way, in the coordinator's words; nothing, if it is empty.
    pub obstacles: Vec<String>,
}

/// A member that its group waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocking {
    /// Who.
    pub who: Who,
    /// What it owes, in the coordinator's word: `Join`, `Sync`, `Revoke` or `Heartbeat`.
    pub owes: String,
    /// For how long it has owed that.
    pub waited: Duration,
}

impl Admin {
    /// Why a group rebalanced, what moved, how long it took, and whom it waits for now.
    ///
    /// Entries are in the coordinator's own words. A cause that only a later broker knows reads
    /// as [`Cause::LostInCrash`](super::Cause::LostInCrash).
    ///
    /// # Errors
    /// `Unsupported`, if the broker keeps no journal, which is so for every Apache Kafka;
    /// `Refused` with GROUP_ID_NOT_FOUND, if there is no such group; `Retriable`, if the
    /// coordinator does not answer in time; `Protocol`, if an entry cannot be read.
    pub async fn group_journal(&self, group: &str) -> Result<GroupJournal> {
        let tried = || async { ask(&self.coordinator(group).await?, group).await };
        self.cluster.retry().run(tried).await
    }
}

async fn ask(connection: &Connection, group: &str) -> Result<GroupJournal> {
    let version = connection.version(ApiKey::GroupJournal).map_err(|_| {
        let message =
            format!("the coordinator of group `{group}` keeps no journal: only Ottla does");
        Error::new(ErrorKind::Unsupported, message)
    })?;
    let answer = connection.call_at(version, &GroupJournalRequest { group_id: group }).await?;
    let response: GroupJournalResponse<'_> = answer.read()?;
    Error::check(response.error_code, || format!("cannot read the journal of group `{group}`"))?;
    let mut entries = Vec::new();
    for note in &response.notes {
        match journal::decode(note.note)?.what {
            Noted::Entry(entry) => entries.push(entry),
            // What was before it is of another group with the same name.
            Noted::Ended => entries.clear(),
        }
    }
    Ok(GroupJournal {
        group: GroupId::from(response.group_id),
        kind: response.group_type.to_owned(),
        state: response.group_state.to_owned(),
        generation: Generation(response.generation),
        members: usize::try_from(response.member_count).unwrap_or(0),
        blocking: response.blocking.iter().map(blocking).collect(),
        migration: response.migrates_to.map(|to| Migration {
            to: to.to_owned(),
            obstacles: response.obstacles.iter().map(|why| (*why).to_owned()).collect(),
        }),
        entries,
    })
}

fn blocking(from: &BlockingMember<'_>) -> Blocking {
    Blocking {
        who: Who {
            member: from.member_id.into(),
            instance: from.instance_id.map(Into::into),
            client_id: from.client_id.into(),
            client_host: from.client_host.into(),
        },
        owes: from.owes.to_owned(),
        waited: Duration::from_millis(u64::try_from(from.for_ms).unwrap_or(0)),
    }
}
