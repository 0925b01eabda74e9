//! What a reset does to each partition. Pure: the offsets there are come as arguments.

use ottla_client::TopicPartition;

/// Where a group shall go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    /// At the first record there is.
    Earliest,
    /// Behind the last one.
    Latest,
    /// At the first record that is not older than a time; behind the last one if all are.
    Time,
    /// So many records later than now, or earlier.
    Shift(i64),
    /// At this offset.
    Offset(i64),
    /// Where it is, but within the records there are.
    Current,
}

/// What is known of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    /// The partition.
    pub(super) partition: TopicPartition,
    /// What the group has committed, if anything.
    pub(super) committed: Option<i64>,
    /// The first offset there is.
    pub(super) earliest: i64,
    /// Where the next record will be.
    pub(super) latest: i64,
    /// The first offset whose record is not older than the goal's time, if there is one.
    pub(super) at_time: Option<i64>,
}

/// What a reset does to one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Step {
    /// The partition.
    pub(super) partition: TopicPartition,
    /// What the group has committed, if anything.
    pub(super) current: Option<i64>,
    /// What it will have committed.
    pub(super) new: i64,
    /// Why that is not quite what was asked, if so.
    pub(super) note: Option<Note>,
}

/// Why a step is not quite what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Note {
    /// The records before this offset are gone.
    BelowEarliest,
    /// There is no record there yet.
    BeyondLatest,
    /// All records are older than the time asked for.
    NoneSoYoung,
}

impl Note {
    /// In words.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::BelowEarliest => "earlier records are gone: the first there is",
            Self::BeyondLatest => "no record there yet: the end",
            Self::NoneSoYoung => "all records are older: the end",
        }
    }
}

/// The step of each partition, and the partitions that have no offset to go from.
pub(super) fn plan(goal: Goal, facts: &[Facts]) -> (Vec<Step>, Vec<TopicPartition>) {
    let mut steps = Vec::new();
    let mut without = Vec::new();
    for facts in facts {
        match wanted(goal, facts) {
            Some((wanted, note)) => steps.push(step(facts, wanted, note)),
            None => without.push(facts.partition.clone()),
        }
    }
    (steps, without)
}

/// The offset that is asked for; none if it would have to be counted from one that is not there.
fn wanted(goal: Goal, facts: &Facts) -> Option<(i64, Option<Note>)> {
    Some(match goal {
        Goal::Earliest => (facts.earliest, None),
        Goal::Latest => (facts.latest, None),
        Goal::Time => match facts.at_time {
            Some(offset) => (offset, None),
            None => (facts.latest, Some(Note::NoneSoYoung)),
        },
        Goal::Shift(by) => (facts.committed?.saturating_add(by), None),
        Goal::Offset(offset) => (offset, None),
        Goal::Current => (facts.committed?, None),
    })
}

/// Nobody can read outside of what is there: a consumer would start over by its own policy.
fn step(facts: &Facts, wanted: i64, note: Option<Note>) -> Step {
    let (new, note) = match wanted {
        _ if wanted < facts.earliest => (facts.earliest, Some(Note::BelowEarliest)),
        _ if wanted > facts.latest => (facts.latest, Some(Note::BeyondLatest)),
        _ => (wanted, note),
    };
    Step { partition: facts.partition.clone(), current: facts.committed, new, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records 10 to 19 are there; the time asked for is that of record 15.
    fn facts(committed: Option<i64>) -> Facts {
        let partition = TopicPartition::new("t", 0);
        Facts { partition, committed, earliest: 10, latest: 20, at_time: Some(15) }
    }

    fn new(goal: Goal, facts: Facts) -> (i64, Option<Note>) {
        let (steps, without) = plan(goal, &[facts]);
        assert!(without.is_empty());
        (steps[0].new, steps[0].note)
    }

    #[test]
    fn a_goal_within_the_records_is_met() {
        assert_eq!(new(Goal::Earliest, facts(None)), (10, None));
        assert_eq!(new(Goal::Latest, facts(Some(12))), (20, None));
        assert_eq!(new(Goal::Time, facts(None)), (15, None));
        assert_eq!(new(Goal::Offset(20), facts(None)), (20, None));
        assert_eq!(new(Goal::Shift(-2), facts(Some(12))), (10, None));
        assert_eq!(new(Goal::Current, facts(Some(12))), (12, None));
    }

    #[test]
    fn a_goal_outside_the_records_is_moved_to_their_edge_and_says_so() {
        assert_eq!(new(Goal::Offset(3), facts(None)), (10, Some(Note::BelowEarliest)));
        assert_eq!(new(Goal::Shift(i64::MAX), facts(Some(12))), (20, Some(Note::BeyondLatest)));
        assert_eq!(new(Goal::Shift(i64::MIN), facts(Some(12))), (10, Some(Note::BelowEarliest)));
        assert_eq!(new(Goal::Current, facts(Some(3))), (10, Some(Note::BelowEarliest)));
        let none_so_young = Facts { at_time: None, ..facts(None) };
        assert_eq!(new(Goal::Time, none_so_young), (20, Some(Note::NoneSoYoung)));
    }

    #[test]
    fn what_is_not_committed_cannot_be_shifted() {
        for goal in [Goal::Shift(1), Goal::Current] {
            let (steps, without) = plan(goal, &[facts(None), facts(Some(12))]);
            assert_eq!((steps.len(), without.len()), (1, 1));
        }
    }
}
