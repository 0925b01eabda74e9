//! The lines a consumer prints, as `matrix/README.md` defines them.

use super::ledger::{KEYS, Read};
use std::collections::BTreeSet;

/// One line of a consumer's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// These partitions came on top of those it had.
    Assigned(BTreeSet<u32>),
    /// These partitions went.
    Revoked(BTreeSet<u32>),
    /// These are all it has now.
    Owns(BTreeSet<u32>),
    Record(Read),
    /// Partition and next offset.
    Committed(Vec<(u32, u64)>),
    /// Something it survived; worth a look when a step fails.
    Error(String),
    /// So many tasks of its runtime are alive.
    Tasks(usize),
    /// It left in good order.
    Closed,
}

impl Event {
    /// Reads one line; the error says what is wrong with it.
    pub fn parse(line: &str) -> Result<Self, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let event = match word {
            "assigned" => numbers(rest).map(Self::Assigned),
            "revoked" => numbers(rest).map(Self::Revoked),
            "owns" => numbers(rest).map(Self::Owns),
            "record" => record(rest).map(Self::Record),
            "committed" => offsets(rest).map(Self::Committed),
            "error" => Some(Self::Error(rest.into())),
            "tasks" => rest.parse().ok().map(Self::Tasks),
            "closed" => Some(Self::Closed),
            _ => None,
        };
        event.ok_or_else(|| format!("not an event: {line}"))
    }
}

fn numbers(list: &str) -> Option<BTreeSet<u32>> {
    list.split(',').filter(|text| !text.is_empty()).map(|text| text.parse().ok()).collect()
}

fn offsets(list: &str) -> Option<Vec<(u32, u64)>> {
    let pair = |text: &str| {
        let (partition, offset) = text.split_once(':')?;
        Some((partition.parse().ok()?, offset.parse().ok()?))
    };
    list.split(',').filter(|text| !text.is_empty()).map(pair).collect()
}

/// `PARTITION OFFSET KEY VALUE`, where the value is `KEY:SEQUENCE`.
fn record(text: &str) -> Option<Read> {
    let mut words = text.split(' ');
    let partition = words.next()?.parse().ok()?;
    let offset = words.next()?.parse().ok()?;
    let key = words.next()?;
    let (key_in_value, sequence) = words.next()?.split_once(':')?;
    if key_in_value != key || words.next().is_some() {
        return None;
    }
    let key: u64 = key.strip_prefix('k')?.parse().ok()?;
    let sequence: u64 = sequence.parse().ok()?;
    Some(Read { partition, offset, number: sequence.checked_mul(KEYS)?.checked_add(key)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_line() {
        let parse = |line| Event::parse(line).unwrap();
        assert_eq!(parse("assigned 0,2"), Event::Assigned(BTreeSet::from([0, 2])));
        assert_eq!(parse("owns "), Event::Owns(BTreeSet::new()));
        assert_eq!(parse("committed 1:7,2:9"), Event::Committed(vec![(1, 7), (2, 9)]));
        let read = Read { partition: 1, offset: 7, number: KEYS * 2 + 5 };
        assert_eq!(parse("record 1 7 k5 k5:2"), Event::Record(read));
        assert_eq!(parse("tasks 12"), Event::Tasks(12));
        assert_eq!(parse("closed"), Event::Closed);
    }

    #[test]
    fn a_value_that_is_not_its_keys_is_refused() {
        assert!(Event::parse("record 1 7 k5 k6:2").is_err());
        assert!(Event::parse("record 1 7 k5 k5:2 more").is_err());
        assert!(Event::parse("hello").is_err());
    }
}
