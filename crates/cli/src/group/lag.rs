//! How far a group is in each of its partitions. Pure.

use ottla_client::admin::GroupMember;
use ottla_client::{CommittedOffset, FoundOffset, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};

/// A group in one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Progress {
    /// The partition.
    pub(super) partition: TopicPartition,
    /// What is committed, if anything is.
    pub(super) committed: Option<CommittedOffset>,
    /// Where the next record will be, if its leader tells.
    pub(super) latest: Option<i64>,
    /// Which of the members owns it, if one does, by its place in the list.
    pub(super) owner: Option<usize>,
}

impl Progress {
    /// How many records are there that the group has not committed. None where nothing is
    /// committed: where its consumers would begin is their own setting.
    pub(super) fn lag(&self) -> Option<i64> {
        let committed = self.committed.as_ref()?.offset.0;
        // A commit may be newer than what the leader told.
        Some(self.latest?.saturating_sub(committed).max(0))
    }
}

/// The partitions that a group has to do with: those it committed and those its members own.
pub(super) fn partitions(
    committed: &[(TopicPartition, CommittedOffset)],
    members: &[GroupMember],
) -> BTreeSet<TopicPartition> {
    let owned = members.iter().flat_map(|member| &member.assignment);
    committed.iter().map(|(partition, _)| partition).chain(owned).cloned().collect()
}

/// A group in each of its partitions, in order.
pub(super) fn progress(
    committed: &[(TopicPartition, CommittedOffset)],
    members: &[GroupMember],
    latest: &BTreeMap<TopicPartition, FoundOffset>,
) -> Vec<Progress> {
    let offsets: BTreeMap<_, _> = committed.iter().map(|(of, offset)| (of, offset)).collect();
    let owners: BTreeMap<_, _> = members
        .iter()
        .enumerate()
        .flat_map(|(index, member)| member.assignment.iter().map(move |of| (of, index)))
        .collect();
    let all = partitions(committed, members).into_iter();
    let all = all.map(|partition| Progress {
        committed: offsets.get(&partition).map(|offset| (*offset).clone()),
        latest: latest.get(&partition).and_then(|found| found.offset).map(|offset| offset.0),
        owner: owners.get(&partition).copied(),
        partition,
    });
    all.collect()
}

/// The lag of all of them together, as far as it is known; None where nothing is committed.
pub(super) fn total(progress: &[Progress]) -> Option<i64> {
    progress.iter().filter_map(Progress::lag).reduce(i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ottla_client::Offset;

    fn member(assignment: &[i32]) -> GroupMember {
        GroupMember {
            member: "m".into(),
            instance: None,
            client_id: "c".into(),
            host: "/h".into(),
            topics: vec!["t".into()],
            assignment: assignment.iter().map(|of| TopicPartition::new("t", *of)).collect(),
        }
    }

    fn committed(partition: i32, offset: i64) -> (TopicPartition, CommittedOffset) {
        (TopicPartition::new("t", partition), CommittedOffset::new(Offset(offset)))
    }

    fn latest(partition: i32, offset: i64) -> (TopicPartition, FoundOffset) {
        let offset = Some(Offset(offset));
        let found = FoundOffset { offset, timestamp: None, leader_epoch: None };
        (TopicPartition::new("t", partition), found)
    }

    #[test]
    fn every_partition_committed_or_owned_is_there_once_with_its_owner() {
        let committed = [committed(2, 5), committed(0, 3)];
        let members = [member(&[1]), member(&[2])];
        let latest = [latest(0, 10), latest(1, 4), latest(2, 5)].into();
        let progress = progress(&committed, &members, &latest);
        let seen: Vec<_> =
            progress.iter().map(|one| (one.partition.partition.0, one.lag(), one.owner)).collect();
        assert_eq!(seen, [(0, Some(7), None), (1, None, Some(0)), (2, Some(0), Some(1))]);
        assert_eq!(total(&progress), Some(7));
    }

    /// A zero would say that the group has read everything.
    #[test]
    fn a_group_that_has_committed_nothing_has_no_lag() {
        let progress = progress(&[], &[member(&[0])], &[latest(0, 8)].into());
        assert_eq!(total(&progress), None);
    }

    #[test]
    fn a_commit_beyond_what_the_leader_told_is_no_negative_lag() {
        let progress = progress(&[committed(0, 9)], &[], &[latest(0, 8)].into());
        assert_eq!(progress[0].lag(), Some(0));
    }
}
