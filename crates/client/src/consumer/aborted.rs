//! Which batches of a fetch count for `read_committed` (KIP-98): a broker sends aborted
//! transactions' records all the same, and says beside them whose they are. Pure.

use ottla_model::{Offset, ProducerId};
use ottla_records::{Batch, ControlRecord};
use std::collections::{HashSet, VecDeque};

/// The aborted transactions of one fetch, as reading goes through them.
#[derive(Debug)]
pub(super) struct Aborted {
    /// By first offset, ascending.
    ahead: VecDeque<(Offset, ProducerId)>,
    /// Those that the reading is inside of.
    open: HashSet<ProducerId>,
}

impl Aborted {
    pub(super) fn new(transactions: impl IntoIterator<Item = (Offset, ProducerId)>) -> Self {
        let mut ahead: Vec<_> = transactions.into_iter().collect();
        ahead.sort_by_key(|(first, _)| *first);
        Self { ahead: ahead.into(), open: HashSet::new() }
    }

    /// Whether the records of the next batch count.
    pub(super) fn counts(&mut self, batch: &[u8]) -> bool {
        let Ok(batch) = Batch::first(batch) else { return true };
        let header = batch.header();
        while let Some((first, producer)) = self.ahead.front().copied() {
            if first > header.last_offset() {
                break;
            }
            self.open.insert(producer);
            self.ahead.pop_front();
        }
        let Some(producer) = header.producer_id() else { return true };
        if header.attributes().is_control() {
            if is_abort(&batch) {
                self.open.remove(&producer);
            }
            return false;
        }
        !(header.attributes().is_transactional() && self.open.contains(&producer))
    }
}

fn is_abort(batch: &Batch<'_>) -> bool {
    let Ok(records) = batch.records(MARK_MAX) else { return false };
    let first = records.iter().next().and_then(Result::ok);
    let mark = first.and_then(|record| ControlRecord::of(&record));
    matches!(mark, Some(ControlRecord::EndTransaction { committed: false, .. }))
}

/// More than a mark takes.
const MARK_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use ottla_model::{ProducerEpoch, Timestamp};
    use ottla_records::{Builder, Compression, NewRecord};

    fn batch(offset: i64, producer: i64) -> Vec<u8> {
        let mut builder = Builder::new(Compression::None)
            .base_offset(Offset(offset))
            .producer(ProducerId(producer), ProducerEpoch(0), 0)
            .transactional();
        builder.append(&NewRecord::new(Timestamp(1), None, Some(b"v"))).unwrap();
        builder.build().unwrap()
    }

    fn mark(offset: i64, producer: i64, committed: bool) -> Vec<u8> {
        let (key, value) = ControlRecord::end_transaction(committed, 0);
        let mut builder = Builder::new(Compression::None)
            .base_offset(Offset(offset))
            .producer(ProducerId(producer), ProducerEpoch(0), -1)
            .transactional()
            .control();
        builder.append(&NewRecord::new(Timestamp(1), Some(&key), Some(&value))).unwrap();
        builder.build().unwrap()
    }

    /// KIP-98: the records of an aborted transaction do not count, up to its own abort mark; those
    /// of another producer, and of the same one afterwards, do.
    #[test]
    fn records_between_the_first_offset_and_the_abort_mark_do_not_count() {
        let mut aborted = Aborted::new([(Offset(2), ProducerId(1))]);
        let log = [
            (batch(1, 1), true),
            (batch(2, 1), false),
            (batch(3, 2), true),
            (batch(4, 1), false),
            (mark(5, 2, true), false),
            (mark(6, 1, false), false),
            (batch(7, 1), true),
        ];
        for (bytes, counts) in log {
            assert_eq!(aborted.counts(&bytes), counts, "{:?}", Batch::first(&bytes));
        }
    }
}
