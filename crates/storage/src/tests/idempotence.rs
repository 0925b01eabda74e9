//! KIP-98: retries are recognised, gaps and old epochs refused, also after restarts.

use super::*;
use crate::SequenceError;

fn offsets(appended: &Appended) -> (i64, i64, bool) {
    (appended.first.0, appended.last.0, appended.duplicate)
}

fn sequence_error(result: Result<Appended, AppendError>) -> SequenceError {
    match result {
        Err(AppendError::Sequence(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Issue 3: five batches are remembered per producer, as many as a client has in flight.
#[test]
fn a_retry_of_the_last_five_gets_its_original_offsets() {
    let mut rig = Rig::new(small());
    for sequence in 0..7 {
        rig.append(idempotent(1, 0, sequence, "v")).unwrap();
    }
    for sequence in 2..7 {
        let again = rig.append(idempotent(1, 0, sequence, "v")).unwrap();
        assert_eq!(offsets(&again), (i64::from(sequence), i64::from(sequence), true));
    }
    let gap = sequence_error(rig.append(idempotent(1, 0, 1, "v")));
    assert_eq!(gap, SequenceError::OutOfOrder { id: ProducerId(1), expected: 7, found: 1 });
    let gap = sequence_error(rig.append(idempotent(1, 0, 8, "v")));
    assert_eq!(gap, SequenceError::OutOfOrder { id: ProducerId(1), expected: 7, found: 8 });
    assert_eq!(rig.log.end_offset(), Offset(7));
}

#[test]
fn a_new_epoch_starts_at_zero_and_fences_the_old_one() {
    let mut rig = Rig::new(small());
    rig.append(idempotent(1, 0, 0, "v")).unwrap();
    let gap = sequence_error(rig.append(idempotent(1, 1, 5, "v")));
    assert_eq!(gap, SequenceError::OutOfOrder { id: ProducerId(1), expected: 0, found: 5 });
    rig.append(idempotent(1, 1, 0, "v")).unwrap();
    let fenced = sequence_error(rig.append(idempotent(1, 0, 1, "v")));
    let (current, found) = (ProducerEpoch(1), ProducerEpoch(0));
    assert_eq!(fenced, SequenceError::Fenced { id: ProducerId(1), current, found });
}

/// KIP-360: a producer that the log does not know may go on at any sequence.
#[test]
fn an_unknown_producer_goes_on_where_it_is() {
    let mut rig = Rig::new(small());
    rig.append(idempotent(1, 3, 1234, "v")).unwrap();
    rig.append(idempotent(1, 3, 1235, "v")).unwrap();
}

#[test]
fn sequences_wrap_to_zero() {
    let mut rig = Rig::new(small());
    rig.append(idempotent(1, 0, i32::MAX, "v")).unwrap();
    rig.append(idempotent(1, 0, 0, "v")).unwrap();
    assert!(rig.append(idempotent(1, 0, i32::MAX, "v")).unwrap().duplicate);
    let three = batch(1_000, "w", 3).producer(ProducerId(2), ProducerEpoch(0), i32::MAX - 1);
    rig.append(three.clone()).unwrap();
    assert_eq!(offsets(&rig.append(three).unwrap()), (2, 4, true));
    rig.append(idempotent(2, 0, 1, "v")).unwrap();
}

/// Kafka forgets all but the last batch at a restart. Ours does not, however the end came.
#[test]
fn all_five_survive_every_kind_of_restart() {
    for closes in [true, false] {
        let mut rig = Rig::new(small());
        for sequence in 0..100 {
            rig.append(idempotent(1, 0, sequence, "some value")).unwrap();
            rig.append(idempotent(2, 4, sequence, "some value")).unwrap();
            rig.sync();
        }
        if closes {
            rig.log.close().unwrap();
        }
        rig.crash();
        for sequence in 95..100 {
            let again = rig.append(idempotent(1, 0, sequence, "some value")).unwrap();
            assert_eq!(offsets(&again), (i64::from(sequence * 2), i64::from(sequence * 2), true));
        }
        rig.append(idempotent(2, 4, 100, "some value")).unwrap();
        sequence_error(rig.append(idempotent(2, 3, 0, "some value")));
    }
}

#[test]
fn silent_producers_are_forgotten() {
    let mut rig = Rig::new(small());
    rig.append(idempotent(1, 0, 0, "v")).unwrap();
    rig.now_ms += 23 * 3_600_000;
    rig.append(idempotent(2, 0, 0, "v")).unwrap();
    rig.now_ms += 3_600_000;
    assert_eq!(rig.log.expire_producers(rig.now().wall), 1);
    assert!(rig.log.producer(ProducerId(1)).is_none());
    assert!(rig.log.producer(ProducerId(2)).is_some());
}

/// The bound on what hostile clients can make a log remember.
#[test]
fn past_the_bound_the_longest_silent_are_forgotten() {
    let mut rig = Rig::new(LogConfig { producers_max: 100, ..small() });
    for id in 0..1_000 {
        rig.now_ms += 1;
        rig.append(idempotent(id, 0, 0, "v")).unwrap();
        assert!(rig.log.producers().count() <= 100);
    }
    assert!(rig.log.producer(ProducerId(999)).is_some());
    assert!(rig.log.producer(ProducerId(950)).is_some());
    assert!(rig.log.producer(ProducerId(500)).is_none());
}

#[test]
fn an_idempotent_append_is_one_batch() {
    let mut rig = Rig::new(small());
    let mut bytes = idempotent(1, 0, 0, "v").build().unwrap();
    bytes.extend(idempotent(1, 0, 1, "v").build().unwrap());
    let refused = rig.log.append(&mut bytes, rig.context());
    let many = crate::Malformed::ManyIdempotent;
    assert!(matches!(refused, Err(AppendError::Malformed(it)) if it == many));
    let mut plain = batch(1, "a", 2).build().unwrap();
    plain.extend(batch(1, "b", 3).build().unwrap());
    let appended = rig.log.append(&mut plain, rig.context()).unwrap();
    assert_eq!(offsets(&appended), (0, 4, false));
}
