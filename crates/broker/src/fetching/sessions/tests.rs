//! KIP-227, session by session.

use super::*;
use bytes::Bytes;
use ottla_wire::ErrorCode;

const NOW: Instant = Instant::from_millis(1_000);

fn wanted(partition: i32, offset: i64) -> Wanted {
    Wanted {
        topic: TopicKey::Name("t".into()),
        partition: PartitionId(partition),
        offset: Offset(offset),
        bytes_max: 1_000,
        leader_epoch: -1,
        last_epoch: None,
    }
}

fn found(high_watermark: i64, records: &'static [u8]) -> Found {
    Found {
        records: Bytes::from_static(records),
        code: ErrorCode::None,
        high_watermark: Offset(high_watermark),
        start: Offset(0),
        diverging: None,
        bytes_passed: 0,
    }
}

fn partitions(opening: &Opening) -> Vec<i32> {
    opening.wanted.iter().map(|wanted| wanted.partition.0).collect()
}

fn full(sessions: &Sessions) -> (i32, Opening) {
    let all = vec![wanted(0, 0), wanted(1, 0), wanted(2, 0)];
    let opening = sessions.open((0, 0), false, all, vec![], NOW).expect("a full fetch");
    (opening.ticket.as_ref().map_or(0, Ticket::id), opening)
}

#[test]
fn an_incremental_fetch_repeats_the_list_and_answers_what_is_new() {
    let sessions = Sessions::new(9);
    let (id, opening) = full(&sessions);
    let ticket = opening.ticket.expect("a session");
    let nothing = [found(5, b""), found(5, b""), found(5, b"")];
    assert_eq!(ticket.note(&opening.wanted, &nothing), [true; 3], "a full fetch is answered fully");

    let next = sessions.open((id, 1), false, vec![wanted(1, 7)], vec![], NOW).expect("its turn");
    assert_eq!(partitions(&next), [0, 1, 2]);
    assert_eq!(next.wanted[1].offset, Offset(7));
    let ticket = next.ticket.expect("the session");
    let news = [found(5, b""), found(6, b""), found(5, b"x")];
    assert_eq!(ticket.note(&next.wanted, &news), [false, true, true]);
    assert_eq!(ticket.note(&next.wanted, &news[..2]), [false, false], "told once");
}

/// Or the first partitions of the list would starve the others under a small bound.
#[test]
fn whoever_had_records_goes_to_the_end() {
    let sessions = Sessions::new(9);
    let (id, opening) = full(&sessions);
    let some = [found(5, b"x"), found(5, b""), found(5, b"")];
    opening.ticket.expect("a session").note(&opening.wanted, &some);
    let next = sessions.open((id, 1), false, vec![], vec![], NOW).expect("its turn");
    assert_eq!(partitions(&next), [1, 2, 0]);
}

#[test]
fn forgotten_partitions_are_not_read_again() {
    let sessions = Sessions::new(9);
    let (id, _) = full(&sessions);
    let gone = vec![(TopicKey::Name("t".into()), PartitionId(1))];
    let next = sessions.open((id, 1), false, vec![wanted(7, 0)], gone, NOW).expect("its turn");
    assert_eq!(partitions(&next), [0, 2, 7]);
}

/// A partition that finds no room must not starve: the session ends, and the client sends its
/// whole list.
#[test]
fn a_session_that_grows_too_large_ends() {
    let sessions = Sessions::new(9);
    let most = i32::try_from(PARTITIONS_MAX).expect("a small number");
    let all = (0..most).map(|partition| wanted(partition, 0)).collect();
    let opening = sessions.open((0, 0), false, all, vec![], NOW).expect("a full fetch");
    let id = opening.ticket.expect("a session of the largest size").id();
    let next = sessions.open((id, 1), false, vec![wanted(0, 5)], vec![], NOW);
    assert!(next.is_ok(), "it may change what it has");
    let more = sessions.open((id, 2), false, vec![wanted(most, 0)], vec![], NOW);
    assert_eq!(more.expect_err("no room"), SessionError::NotFound);
    assert_eq!(sessions.count(), 0);
}

#[test]
fn a_fetch_out_of_turn_is_refused() {
    let sessions = Sessions::new(9);
    let (id, _) = full(&sessions);
    let open = |at, by_id| sessions.open(at, by_id, vec![], vec![], NOW).map(|_| ());
    assert_eq!(open((id, 2), false), Err(SessionError::WrongEpoch));
    assert_eq!(open((id, 1), true), Err(SessionError::OtherNaming));
    assert_eq!(open((id, 1), false), Ok(()));
    assert_eq!(open((id, 1), false), Err(SessionError::WrongEpoch), "a repetition");
    assert_eq!(open((id, FINAL_EPOCH), false), Ok(()));
    assert_eq!(open((id, 2), false), Err(SessionError::NotFound));
}

/// The bound's answer: no session, and the client fetches with its whole list.
#[test]
fn a_session_in_use_is_not_taken_for_another() {
    let sessions = Sessions::new(1);
    let (first, _) = full(&sessions);
    assert!(full(&sessions).1.ticket.is_none());
    let later = NOW + EVICT_AFTER;
    let opening = sessions.open((0, 0), false, vec![wanted(0, 0)], vec![], later).expect("full");
    assert!(opening.ticket.is_some());
    let lost = sessions.open((first, 1), false, vec![], vec![], later).map(|_| ());
    assert_eq!(lost, Err(SessionError::NotFound));
}
