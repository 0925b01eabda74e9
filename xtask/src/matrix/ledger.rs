//! What a group of consumers has read and committed, and whether that is what was promised.
//!
//! Pure bookkeeping over the events that clients print; knows no process and no broker.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// How many keys the records are spread over.
pub const KEYS: u64 = 64;

/// What a step may demand of a rebalance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Each record is read once: nobody died, and the client hands over what it committed.
    ExactlyOnce,
    /// Records read and not yet committed may be read again.
    AtLeastOnce,
}

/// One record as a consumer printed it. Its number is its place in the order of production.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    pub partition: u32,
    pub offset: u64,
    pub number: u64,
}

/// Everything one group read and committed.
#[derive(Debug, Default)]
pub struct Ledger {
    reads: BTreeMap<(u32, u64), Entry>,
    seen: BTreeSet<u64>,
    committed: BTreeMap<u32, u64>,
    floors: BTreeMap<u32, u64>,
    /// Where each consumer stands in each partition since it last got it.
    positions: BTreeMap<(usize, u32), u64>,
    /// Whether the client may go back at any time, not only where a rebalance made it start anew.
    rewinds: bool,
    problems: Vec<String>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    times: u32,
}

impl Ledger {
    /// For a client that delivers what it fetched before a rebalance after it, and then goes back.
    pub fn allow_rewinds(&mut self) {
        self.rewinds = true;
    }

    /// Consumer number `consumer` read a record.
    pub fn read(&mut self, consumer: usize, read: Read) {
        let Read { partition, offset, number } = read;
        let floor = self.floors.get(&partition).copied().unwrap_or(0);
        if offset < floor {
            let text = format!("{partition}@{offset} read again though {floor} was committed");
            self.problems.push(text);
        }
        if let Some(last) = self.positions.insert((consumer, partition), offset)
            && offset <= last
            && !self.rewinds
        {
            let text = format!("consumer {consumer} went from {partition}@{last} to @{offset}");
            self.problems.push(text);
        }
        let entry = self.reads.entry((partition, offset)).or_insert(Entry { number, times: 0 });
        entry.times += 1;
        if entry.number != number {
            self.problems.push(format!("{partition}@{offset} gave two different records"));
        }
        self.seen.insert(number);
    }

    /// A rebalance touched this consumer: it may start anew from the committed offsets.
    pub fn rebalanced(&mut self, consumer: usize) {
        self.positions.retain(|(who, _), _| *who != consumer);
    }

    /// The next offset to read was committed.
    pub fn committed(&mut self, partition: u32, next_offset: u64) {
        let known = self.committed.entry(partition).or_insert(0);
        *known = next_offset.max(*known);
    }

    /// From now on nothing below what is committed may be read.
    pub fn raise_floors(&mut self) {
        self.floors = self.committed.clone();
    }

    /// How many of these records nobody has read yet.
    pub fn missing(&self, numbers: &Range<u64>) -> usize {
        numbers.clone().filter(|number| !self.seen.contains(number)).count()
    }

    /// Whether all that was read is also committed.
    pub fn is_committed(&self) -> bool {
        let mut last = BTreeMap::new();
        for (partition, offset) in self.reads.keys() {
            last.insert(*partition, *offset);
        }
        last.iter().all(|(partition, offset)| self.committed.get(partition) > Some(offset))
    }

    /// How many records were read more than once.
    pub fn duplicates(&self) -> usize {
        self.reads.values().filter(|entry| entry.times > 1).count()
    }

    /// All that broke a promise, the first few in words. `duplicates` were there before the step.
    pub fn verdict(&self, promise: Promise, duplicates: usize) -> Result<(), String> {
        let mut problems = self.problems.clone();
        let repeated = self.duplicates() - duplicates;
        if promise == Promise::ExactlyOnce && repeated > 0 {
            problems.push(format!("{repeated} records read more than once"));
        }
        problems.extend(self.disorder());
        match problems.as_slice() {
            [] => Ok(()),
            [first] => Err(first.clone()),
            [first, rest @ ..] => Err(format!("{first} (and {} more problems)", rest.len())),
        }
    }

    /// Keys that changed their partition, or whose values do not come in the order produced.
    fn disorder(&self) -> Option<String> {
        let mut last_of_key: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
        for ((partition, offset), entry) in &self.reads {
            let place = (*partition, entry.number);
            let before = last_of_key.insert(entry.number % KEYS, place);
            if before.is_some_and(|(home, last)| home != *partition || last >= entry.number) {
                return Some(format!("record {} out of order at {partition}@{offset}", place.1));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(partition: u32, offset: u64, number: u64) -> Read {
        Read { partition, offset, number }
    }

    #[test]
    fn records_read_once_and_in_order_pass() {
        let mut ledger = Ledger::default();
        ledger.read(0, read(0, 0, 0));
        ledger.read(0, read(0, 1, KEYS));
        ledger.read(1, read(1, 0, 1));
        assert_eq!(ledger.missing(&(0..2)), 0);
        assert_eq!(ledger.missing(&(0..3)), 1);
        assert_eq!(ledger.verdict(Promise::ExactlyOnce, 0), Ok(()));
    }

    #[test]
    fn a_second_reading_breaks_exactly_once_alone() {
        let mut ledger = Ledger::default();
        ledger.read(0, read(0, 0, 0));
        ledger.read(1, read(0, 0, 0));
        assert_eq!(ledger.verdict(Promise::AtLeastOnce, 0), Ok(()));
        assert!(ledger.verdict(Promise::ExactlyOnce, 0).is_err());
        assert_eq!(ledger.verdict(Promise::ExactlyOnce, 1), Ok(()));
    }

    #[test]
    fn reading_below_a_committed_offset_breaks_every_promise() {
        let mut ledger = Ledger::default();
        ledger.read(0, read(0, 0, 0));
        assert!(!ledger.is_committed());
        ledger.committed(0, 1);
        assert!(ledger.is_committed());
        ledger.raise_floors();
        ledger.read(1, read(0, 0, 0));
        assert!(ledger.verdict(Promise::AtLeastOnce, 1).is_err());
    }

    #[test]
    fn going_back_needs_a_rebalance() {
        let mut ledger = Ledger::default();
        ledger.read(0, read(0, 1, KEYS));
        ledger.rebalanced(0);
        ledger.read(0, read(0, 0, 0));
        assert_eq!(ledger.verdict(Promise::ExactlyOnce, 0), Ok(()));
        ledger.read(0, read(0, 0, 0));
        assert!(ledger.verdict(Promise::AtLeastOnce, 0).is_err());
    }

    #[test]
    fn a_key_keeps_its_partition_and_its_order() {
        let mut moved = Ledger::default();
        moved.read(0, read(0, 0, 0));
        moved.read(0, read(1, 0, KEYS));
        assert!(moved.verdict(Promise::AtLeastOnce, 0).is_err());
        let mut swapped = Ledger::default();
        swapped.read(0, read(0, 0, KEYS));
        swapped.read(0, read(0, 1, 0));
        assert!(swapped.verdict(Promise::AtLeastOnce, 0).is_err());
    }
}
