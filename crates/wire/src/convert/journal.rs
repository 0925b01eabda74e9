//! The groups' journal to and from bytes: what a broker keeps beside its groups' records and what
//! GroupJournal (key 32020) answers. Numbers of causes and outcomes are persisted: keep them.

use ottla_group::coordinator::{
    Caller, Cause, JournalEntry, MemberTimes, Move, Note, Noted, Outcome, Trigger, Who,
};
use ottla_model::{Generation, Offset, PartitionId, Timestamp};
use std::time::Duration;

use crate::generated::group_journal_note as layout;
use crate::generated::group_journal_note::GroupJournalNote;
use crate::{DecodeError, EncodeError, Message, Output, Reader};

/// Writes a note: the version of its layout, and the layout.
///
/// # Errors
/// If a text in it is longer than its field holds.
pub fn encode(note: &Note) -> Result<Vec<u8>, EncodeError> {
    let message = match &note.what {
        Noted::Ended => {
            GroupJournalNote { group_id: &note.group, ended: true, ..Default::default() }
        }
        Noted::Entry(entry) => GroupJournalNote { group_id: &note.group, ..to_layout(entry) },
    };
    let mut out = Output::new();
    out.i16(VERSION);
    message.encode(VERSION, &mut out)?;
    Ok(out.into_vec())
}

/// Reads a note. A cause or outcome of a later release is read as lost.
///
/// # Errors
/// If the bytes are no note, or a later release's.
pub fn decode(bytes: &[u8]) -> Result<Note, DecodeError> {
    let mut reader = Reader::new(bytes);
    let version = reader.i16("GroupJournalNote")?;
    let message = GroupJournalNote::decode(&mut reader, version)?;
    let what = match message.ended {
        true => Noted::Ended,
        false => Noted::Entry(from_layout(&message)),
    };
    Ok(Note { group: message.group_id.into(), what })
}

fn to_layout(entry: &JournalEntry) -> GroupJournalNote<'_> {
    GroupJournalNote {
        group_id: "",
        ended: false,
        record_offset: entry.record.map_or(-1, |at| at.0),
        outcome: number_of(&OUTCOMES, entry.outcome),
        generation: entry.generation.0,
        began_at_ms: entry.began_at.0,
        join_took_us: micros(Some(entry.join_took)),
        sync_took_us: micros(entry.sync_took),
        member_count: i32::try_from(entry.members).unwrap_or(i32::MAX),
        triggers: entry.triggers.iter().map(to_trigger).collect(),
        more_triggers: i32::try_from(entry.absorbed).unwrap_or(i32::MAX),
        slowest: entry.slowest.iter().map(to_slow).collect(),
        moved_count: entry.moved.map_or(-1, |moved| i32::try_from(moved).unwrap_or(i32::MAX)),
        moves: entry.moves.iter().map(to_move).collect(),
    }
}

fn to_trigger(trigger: &Trigger) -> layout::Trigger<'_> {
    let who = trigger.who.as_ref();
    layout::Trigger {
        cause: number_of(&CAUSES, trigger.cause),
        member_id: who.map(|who| &*who.member),
        instance_id: who.and_then(|who| who.instance.as_deref()),
        client_id: who.map_or("", |who| &who.client_id),
        client_host: who.map_or("", |who| &who.client_host),
        replaced_member_id: trigger.replaced.as_deref(),
        by_client_id: trigger.by.as_ref().map(|by| &*by.client_id),
        by_client_host: trigger.by.as_ref().map_or("", |by| &by.client_host),
        topic: trigger.topic.as_deref(),
        setting: trigger.setting.as_deref(),
        reason: trigger.reason.as_deref(),
    }
}

fn to_slow(times: &MemberTimes) -> layout::SlowMember<'_> {
    layout::SlowMember {
        member_id: &times.who.member,
        instance_id: times.who.instance.as_deref(),
        client_id: &times.who.client_id,
        client_host: &times.who.client_host,
        join_took_us: micros(Some(times.join_took)),
        sync_took_us: micros(times.sync_took),
    }
}

fn to_move(moved: &Move) -> layout::Move<'_> {
    layout::Move {
        topic: &moved.topic,
        partition: moved.partition.0,
        from_member_id: moved.from.as_deref(),
        to_member_id: moved.to.as_deref(),
    }
}

fn from_layout(message: &GroupJournalNote<'_>) -> JournalEntry {
    JournalEntry {
        record: (message.record_offset >= 0).then_some(Offset(message.record_offset)),
        outcome: of_number(&OUTCOMES, message.outcome).unwrap_or(Outcome::Lost),
        generation: Generation(message.generation),
        triggers: message.triggers.iter().map(from_trigger).collect(),
        absorbed: u32::try_from(message.more_triggers).unwrap_or(0),
        began_at: Timestamp(message.began_at_ms),
        join_took: span(message.join_took_us).unwrap_or_default(),
        sync_took: span(message.sync_took_us),
        members: usize::try_from(message.member_count).unwrap_or(0),
        slowest: message.slowest.iter().map(from_slow).collect(),
        moved: u32::try_from(message.moved_count).ok(),
        moves: message.moves.iter().map(from_move).collect(),
    }
}

fn from_trigger(trigger: &layout::Trigger<'_>) -> Trigger {
    let who = |member: &str| Who {
        member: member.into(),
        instance: trigger.instance_id.map(Into::into),
        client_id: trigger.client_id.into(),
        client_host: trigger.client_host.into(),
    };
    let by = |client_id: &str| Caller {
        client_id: client_id.into(),
        client_host: trigger.by_client_host.into(),
    };
    Trigger {
        cause: of_number(&CAUSES, trigger.cause).unwrap_or(Cause::LostInCrash),
        who: trigger.member_id.map(who),
        replaced: trigger.replaced_member_id.map(Into::into),
        by: trigger.by_client_id.map(by),
        topic: trigger.topic.map(Into::into),
        setting: trigger.setting.map(Into::into),
        reason: trigger.reason.map(Into::into),
    }
}

fn from_slow(slow: &layout::SlowMember<'_>) -> MemberTimes {
    MemberTimes {
        who: Who {
            member: slow.member_id.into(),
            instance: slow.instance_id.map(Into::into),
            client_id: slow.client_id.into(),
            client_host: slow.client_host.into(),
        },
        join_took: span(slow.join_took_us).unwrap_or_default(),
        sync_took: span(slow.sync_took_us),
    }
}

fn from_move(moved: &layout::Move<'_>) -> Move {
    Move {
        topic: moved.topic.into(),
        partition: PartitionId(moved.partition),
        from: moved.from_member_id.map(Into::into),
        to: moved.to_member_id.map(Into::into),
    }
}

/// A duration in microseconds, -1 for none.
fn micros(span: Option<Duration>) -> i64 {
    span.map_or(-1, |span| i64::try_from(span.as_micros()).unwrap_or(i64::MAX))
}

fn span(micros: i64) -> Option<Duration> {
    u64::try_from(micros).ok().map(Duration::from_micros)
}

fn number_of<T: PartialEq>(table: &[T], value: T) -> i8 {
    let at = table.iter().position(|each| *each == value);
    at.and_then(|at| i8::try_from(at).ok()).unwrap_or(-1)
}

fn of_number<T: Copy>(table: &[T], number: i8) -> Option<T> {
    table.get(usize::try_from(number).ok()?).copied()
}

/// The layout written.
const VERSION: i16 = 0;

/// By their numbers; new ones go last.
const OUTCOMES: [Outcome; 5] =
    [Outcome::Running, Outcome::Assigned, Outcome::Emptied, Outcome::Overtaken, Outcome::Lost];

/// By their numbers; new ones go last.
const CAUSES: [Cause; 21] = [
    Cause::LostInCrash,
    Cause::Joined,
    Cause::Left,
    Cause::Removed,
    Cause::SessionExpired,
    Cause::JoinExpired,
    Cause::SyncExpired,
    Cause::RevocationExpired,
    Cause::StaticRejoined,
    Cause::MetadataChanged,
    Cause::OwnershipChanged,
    Cause::LeaderRejoined,
    Cause::TopicCreated,
    Cause::PartitionsAdded,
    Cause::TopicDeleted,
    Cause::TopicChanged,
    Cause::AssignorChanged,
    Cause::AssignmentTooLarge,
    Cause::TooManyMembers,
    Cause::Upgraded,
    Cause::Downgraded,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn who() -> Who {
        Who {
            member: "m-1".into(),
            instance: Some("i".into()),
            client_id: "c".into(),
            client_host: "/10.0.0.1".into(),
        }
    }

    fn full(cause: Cause, outcome: Outcome) -> Note {
        let entry = JournalEntry {
            record: Some(Offset(70)),
            outcome,
            generation: Generation(3),
            triggers: vec![Trigger {
                cause,
                who: Some(who()),
                replaced: Some("m-0".into()),
                by: Some(Caller { client_id: "admin".into(), client_host: "/10.0.0.9".into() }),
                topic: Some("t".into()),
                setting: Some("register.assignor".into()),
                reason: Some("so".into()),
            }],
            absorbed: 2,
            began_at: Timestamp(1_700_000_000_000),
            join_took: Duration::from_micros(1500),
            sync_took: Some(Duration::from_micros(7)),
            members: 1,
            slowest: vec![MemberTimes {
                who: who(),
                join_took: Duration::from_micros(1400),
                sync_took: None,
            }],
            moved: Some(1),
            moves: vec![Move {
                topic: "t".into(),
                partition: PartitionId(4),
                from: None,
                to: Some("m-1".into()),
            }],
        };
        Note { group: "g".into(), what: Noted::Entry(entry) }
    }

    #[test]
    fn every_note_is_read_as_it_was_written() {
        for cause in CAUSES {
            for outcome in OUTCOMES {
                let note = full(cause, outcome);
                assert_eq!(decode(&encode(&note).unwrap()).unwrap(), note);
            }
        }
        let ended = Note { group: "g".into(), what: Noted::Ended };
        assert_eq!(decode(&encode(&ended).unwrap()).unwrap(), ended);
    }

    /// The bytes are persisted: this is what version 0 looks like.
    #[test]
    fn version_0_stays_as_it_is() {
        let bytes = encode(&full(Cause::Joined, Outcome::Assigned)).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, include_str!("../../fixtures/group_journal_note_v0.hex").trim());
    }

    #[test]
    fn a_cut_note_is_refused() {
        let bytes = encode(&full(Cause::Left, Outcome::Emptied)).unwrap();
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "{end}");
        }
    }
}
