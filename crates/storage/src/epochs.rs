//! Which leader epoch began at which offset, and Kafka's file of it, `leader-epoch-checkpoint`.
//!
//! Knows numbers only: when an epoch rises is the log's business, what clients do with it theirs.

use std::fmt::Write;

use ottla_model::{LeaderEpoch, Offset};

/// The epochs of a log, both numbers rising.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epochs(Vec<(LeaderEpoch, Offset)>);

impl Epochs {
    /// The newest epoch.
    pub(crate) fn latest(&self) -> Option<LeaderEpoch> {
        self.0.last().map(|(epoch, _)| *epoch)
    }

    /// Notes that `epoch` begins at `start`; entries it contradicts go. False if it was known.
    pub(crate) fn assign(&mut self, epoch: LeaderEpoch, start: Offset) -> bool {
        if self.latest().is_some_and(|latest| latest >= epoch) {
            return false;
        }
        self.0.retain(|(_, begin)| *begin < start);
        self.0.push((epoch, start));
        true
    }

    /// Drops epochs that began past `end`. One that began there stays: it has no record yet.
    pub(crate) fn cut_end(&mut self, end: Offset) -> bool {
        let before = self.0.len();
        self.0.retain(|(_, begin)| *begin <= end);
        self.0.len() != before
    }

    /// Forgets what lies below `start`; the epoch that spans it now begins there.
    pub(crate) fn cut_start(&mut self, start: Offset) -> bool {
        let before = self.0.clone();
        let spans = self.0.partition_point(|(_, begin)| *begin <= start);
        if spans > 0 {
            self.0.drain(..spans - 1);
            self.0[0].1 = start.max(self.0[0].1);
        }
        self.0 != before
    }

    /// What a follower or consumer asks after a change of leader (KIP-101, KIP-320): the largest
    /// epoch up to `asked`, and where it ended. None if `asked` is unknown here.
    pub(crate) fn end_of(&self, asked: LeaderEpoch, end: Offset) -> Option<(LeaderEpoch, Offset)> {
        let latest = self.latest()?;
        if asked >= latest {
            return (asked == latest).then_some((latest, end));
        }
        let above = self.0.partition_point(|(epoch, _)| *epoch <= asked);
        let epoch = above.checked_sub(1).map_or(asked, |at| self.0[at].0);
        Some((epoch, self.0[above].1))
    }

    /// The epoch that a record at `offset` was written in.
    pub(crate) fn of_offset(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self.0.partition_point(|(_, begin)| *begin <= offset);
        after.checked_sub(1).map(|at| self.0[at].0)
    }

    /// The file's text: version, count, then epoch and start offset a line.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("0\n{}\n", self.0.len());
        for (epoch, start) in &self.0 {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{epoch} {start}");
        }
        text
    }

    /// Reads [`Epochs::to_text`] back; none if it is anything else or does not rise.
    pub(crate) fn from_text(text: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(text).ok()?.lines();
        if lines.next()? != "0" {
            return None;
        }
        let count: usize = lines.next()?.parse().ok()?;
        let mut epochs = Vec::new();
        for line in lines {
            let (epoch, start) = line.split_once(' ')?;
            let entry = (LeaderEpoch(epoch.parse().ok()?), Offset(start.parse().ok()?));
            let rises = epochs
                .last()
                .is_none_or(|last: &(LeaderEpoch, Offset)| last.0 < entry.0 && last.1 <= entry.1);
            if !rises || entry.0.0 < 0 || entry.1.0 < 0 {
                return None;
            }
            epochs.push(entry);
        }
        (epochs.len() == count).then_some(Self(epochs))
    }
}

/// The file's name in the log's folder.
pub(crate) const FILE: &str = "leader-epoch-checkpoint";

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> Epochs {
        let entries = entries.iter().map(|(epoch, start)| (LeaderEpoch(*epoch), Offset(*start)));
        Epochs(entries.collect())
    }

    /// The text is what Kafka 4.4 writes for the same entries.
    #[test]
    fn text_round_trips_and_refuses_nonsense() {
        let some = epochs(&[(0, 0), (3, 17), (4, 17)]);
        assert_eq!(some.to_text(), "0\n3\n0 0\n3 17\n4 17\n");
        assert_eq!(Epochs::from_text(some.to_text().as_bytes()), Some(some));
        for bad in ["", "1\n0\n", "0\n1\n", "0\n1\nx 0\n", "0\n2\n3 1\n2 5\n", "0\n1\n0 -4\n"] {
            assert_eq!(Epochs::from_text(bad.as_bytes()), None, "{bad:?}");
        }
    }

    /// KIP-101, KIP-320: the cases of `LeaderEpochFileCache.endOffsetFor`.
    #[test]
    fn end_of_epoch_follows_kafka() {
        let end = Offset(100);
        let ask = |epochs: &Epochs, epoch| {
            epochs.end_of(LeaderEpoch(epoch), end).map(|(epoch, offset)| (epoch.0, offset.0))
        };
        let some = epochs(&[(2, 10), (4, 20), (7, 50)]);
        assert_eq!(ask(&epochs(&[]), 0), None);
        assert_eq!(ask(&some, 1), Some((1, 10)));
        assert_eq!(ask(&some, 2), Some((2, 20)));
        assert_eq!(ask(&some, 3), Some((2, 20)));
        assert_eq!(ask(&some, 6), Some((4, 50)));
        assert_eq!(ask(&some, 7), Some((7, 100)));
        assert_eq!(ask(&some, 8), None);
    }

    #[test]
    fn cuts_keep_what_spans_them() {
        let mut some = epochs(&[(2, 10), (4, 20), (7, 50)]);
        assert!(some.cut_end(Offset(20)));
        assert_eq!(some, epochs(&[(2, 10), (4, 20)]));
        assert!(some.cut_start(Offset(15)));
        assert_eq!(some, epochs(&[(2, 15), (4, 20)]));
        assert!(some.cut_start(Offset(30)));
        assert_eq!(some, epochs(&[(4, 30)]));
        assert!(!some.assign(LeaderEpoch(4), Offset(31)));
        assert!(some.assign(LeaderEpoch(5), Offset(30)));
        assert_eq!(some, epochs(&[(5, 30)]));
    }
}
