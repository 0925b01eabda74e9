//! Order and sequence numbers under every fate: a model broker checks what KIP-98 asks.

use super::*;
use crate::producer::record::ProducerRecord;
use ottla_model::{Timestamp, TopicPartition};
use ottla_records::Compression;
use proptest::prelude::*;
use std::time::Duration;

const PACE: Pace = Pace { linger: Duration::ZERO, flying_max: 5, is_urgent: true };

fn identity(epoch: i16) -> Identity {
    Identity { id: ProducerId(7), epoch: ProducerEpoch(epoch) }
}

fn batch(number: u64, records: usize) -> Batch {
    let partition = TopicPartition::new("t", 0);
    let mut batch = Batch::new(number, partition, Compression::None, Instant::ZERO);
    for _ in 0..records {
        let record = ProducerRecord::to("t");
        drop(batch.append(&record, Timestamp(1), record.size()).unwrap());
    }
    batch
}

fn queue(batches: u64) -> Queue {
    let waiting = (0..batches).map(|number| batch(number, 1)).collect();
    Queue { waiting, ..Queue::default() }
}

fn sequence(batch: &Batch) -> i32 {
    batch.sequence.unwrap().1
}

#[test]
fn what_came_back_waits_for_the_others_and_keeps_its_number() {
    let mut queue = queue(3);
    let [first, second] = [0; 2].map(|_| queue.take(Some(identity(0))).unwrap());
    assert_eq!((sequence(&first), sequence(&second)), (0, 1));
    assert_eq!(queue.answered(0, Some(ErrorCode::NotLeaderOrFollower)), Fate::Again);
    queue.put_back(first, Instant::from_millis(5));
    assert!(!queue.is_ready(PACE, Instant::from_millis(5)), "the second is still under way");
    assert_eq!(queue.answered(1, Some(ErrorCode::OutOfOrderSequenceNumber)), Fate::Again);
    queue.put_back(second, Instant::from_millis(5));
    assert!(!queue.is_ready(PACE, Instant::from_millis(4)), "the pause is not over");
    assert!(queue.is_ready(PACE, Instant::from_millis(5)));
    assert_eq!(queue.worn_out(), None, "nothing is missing: the first is on its way");
    for number in 0..3 {
        let batch = queue.take(Some(identity(0))).unwrap();
        assert_eq!((sequence(&batch), batch.attempts), (number, if number < 2 { 2 } else { 1 }));
        assert!(!queue.is_ready(PACE, Instant::from_millis(9)), "what came back goes alone");
        queue.answered(number as u64, Some(ErrorCode::None));
    }
}

/// KIP-360: only when the broker itself misses what is gone, the rest is numbered afresh.
#[test]
fn a_gap_is_closed_by_a_new_epoch() {
    let mut queue = queue(3);
    let [first, second] = [0; 2].map(|_| queue.take(Some(identity(0))).unwrap());
    assert_eq!(queue.answered(0, Some(ErrorCode::MessageTooLarge)), Fate::Failed);
    drop(first);
    assert_eq!(queue.answered(1, Some(ErrorCode::OutOfOrderSequenceNumber)), Fate::Again);
    queue.put_back(second, Instant::ZERO);
    assert_eq!(queue.worn_out(), Some(identity(0)));
    assert_eq!(queue.ready_at(PACE), None);
    queue.renumber(identity(0));
    assert_eq!(queue.ready_at(PACE), None, "the old identity is worn out");
    queue.renumber(identity(1));
    let second = queue.take(Some(identity(1))).unwrap();
    assert_eq!(second.sequence, Some((identity(1), 0)));
    queue.answered(1, Some(ErrorCode::None));
    let third = queue.take(Some(identity(1))).unwrap();
    assert_eq!(third.sequence, Some((identity(1), 1)));
}

#[test]
fn a_batch_lingers_unless_it_is_full_or_somebody_waits() {
    let mut queue = queue(1);
    let pace = Pace { linger: Duration::from_millis(5), is_urgent: false, ..PACE };
    assert_eq!(queue.ready_at(pace), Some(Instant::from_millis(5)));
    assert!(queue.is_ready(PACE, Instant::ZERO));
    queue.waiting.push_back(batch(1, 1));
    assert!(queue.is_ready(pace, Instant::ZERO));
    assert_eq!(queue.expire(Instant::ZERO).len(), 2);
    assert!(queue.is_idle());
}

/// A broker as KIP-98 describes it, in one partition.
#[derive(Default)]
struct Broker {
    epoch: Option<ProducerEpoch>,
    next: i32,
    /// Sequence and number of the last five batches.
    recent: VecDeque<(i32, u64)>,
    stored: Vec<u64>,
}

impl Broker {
    fn append(&mut self, batch: &Batch) -> ErrorCode {
        let (identity, sequence) = batch.sequence.unwrap();
        if self.epoch > Some(identity.epoch) {
            return ErrorCode::InvalidProducerEpoch;
        }
        let is_new = self.epoch != Some(identity.epoch);
        if !is_new && self.recent.iter().any(|(known, _)| *known == sequence) {
            return ErrorCode::DuplicateSequenceNumber;
        }
        if sequence != if is_new { 0 } else { self.next } {
            return ErrorCode::OutOfOrderSequenceNumber;
        }
        if is_new {
            self.recent.clear();
        }
        self.epoch = Some(identity.epoch);
        self.next = sequence + batch.count();
        self.recent.push_back((sequence, batch.number));
        if self.recent.len() > 5 {
            self.recent.pop_front();
        }
        self.stored.push(batch.number);
        ErrorCode::None
    }
}

/// What happens to a batch on its way.
#[derive(Clone, Copy, Debug)]
enum Way {
    Answered,
    /// It arrives, its answer does not.
    AnswerLost,
    /// It does not arrive.
    Lost,
    /// The broker refuses it once.
    Refused,
    /// The broker refuses it for good.
    Rejected,
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        6 => Just(Way::Answered),
        2 => Just(Way::AnswerLost),
        1 => Just(Way::Lost),
        1 => Just(Way::Refused),
        1 => Just(Way::Rejected),
    ]
}

proptest! {
    /// Whatever is lost on the way: every batch is stored once and in order, but for those the
    /// broker rejects, and none is given up.
    #[test]
    fn each_batch_is_stored_once_and_in_order(
        ways in proptest::collection::vec(way(), 0..60),
        sizes in proptest::collection::vec(1_usize..4, 1..25),
    ) {
        let waiting = sizes.iter().enumerate().map(|(number, size)| batch(number as u64, *size));
        let mut queue = Queue { waiting: waiting.collect(), ..Queue::default() };
        let (mut broker, mut epoch, mut ways) = (Broker::default(), 0, ways.into_iter());
        let (mut failed, mut rounds) = (Vec::new(), 0);
        while !queue.is_idle() {
            rounds += 1;
            prop_assert!(rounds < 1000, "no end");
            if queue.worn_out().is_some() {
                epoch += 1;
                queue.renumber(identity(epoch));
            }
            // One connection: from the first loss on, nothing that follows arrives either.
            let (mut flight, mut is_broken) = (Vec::new(), false);
            while queue.is_ready(PACE, Instant::ZERO) {
                let batch = queue.take(Some(identity(epoch))).unwrap();
                let way = ways.next().unwrap_or(Way::Answered);
                let code = match way {
                    _ if is_broken => None,
                    Way::Answered => Some(broker.append(&batch)),
                    Way::AnswerLost => { broker.append(&batch); None }
                    Way::Lost => { is_broken = true; None }
                    Way::Refused => Some(ErrorCode::NotEnoughReplicas),
                    Way::Rejected => Some(ErrorCode::MessageTooLarge),
                };
                flight.push((batch, code));
            }
            for (batch, code) in flight {
                match queue.answered(batch.number, code) {
                    Fate::Stored => {}
                    Fate::Again => queue.put_back(batch, Instant::ZERO),
                    Fate::Failed => failed.push(batch.number),
                }
            }
        }
        let mut all: Vec<u64> = broker.stored.iter().chain(&failed).copied().collect();
        prop_assert!(broker.stored.is_sorted(), "{:?}", broker.stored);
        all.sort_unstable();
        all.dedup();
        prop_assert_eq!(all.len(), sizes.len());
        prop_assert!(broker.stored.windows(2).all(|two| two[0] < two[1]));
    }
}
