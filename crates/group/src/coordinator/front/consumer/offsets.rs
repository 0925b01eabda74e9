//! Who may commit and read offsets of such a group (KIP-848, KIP-1251).

use crate::coordinator::reconcile::Position;
use crate::coordinator::turn::Turn;
use crate::message::GroupError;
use crate::message::admin::GroupKind;
use crate::message::offsets::{Commit, CommitTopic, Fetch};
use crate::probe::{self, Fault, Mark};
use ottla_model::Generation;

impl Turn<'_> {
    /// A member may commit in its epoch; and in an earlier one whatever it has held since, so that
    /// an epoch that moves on under a commit's way does not undo it. Nobody in particular may
    /// commit for a group without members.
    pub(in super::super::super) fn validate_consumer_commit(
        &self,
        ask: &Commit<'_>,
    ) -> Result<(), GroupError> {
        let consumers = self.group.hard.consumers();
        if ask.generation.0 < 0 && consumers.is_empty() {
            return Ok(());
        }
        self.validate_consumer(ask.member, ask.instance)?;
        let (_, member) = consumers.member(ask.member).ok_or(GroupError::UnknownMemberId)?;
        let is_classic = member.is_classic();
        if !ask.knows_epochs && !is_classic {
            return Err(GroupError::UnsupportedVersion);
        }
        let (position, named) = (member.position(), ask.generation);
        let holds_all = || ask.topics.iter().all(|t| self.has_held_since(position, t, named));
        if named == position.epoch || probe::has(Fault::CoordinatorTakesStaleCommits) {
            Ok(())
        } else if named < position.epoch && holds_all() {
            probe::hit(Mark::CoordinatorTookEarlierCommit);
            Ok(())
        } else {
            probe::hit(Mark::CoordinatorFencedCommit);
            // Each hears it in the words of its protocol.
            Err(if is_classic {
                GroupError::IllegalGeneration
            } else {
                GroupError::StaleMemberEpoch
            })
        }
    }

    /// Whether the member has held these partitions since `epoch` or longer.
    fn has_held_since(
        &self,
        position: &Position,
        topic: &CommitTopic<'_>,
        epoch: Generation,
    ) -> bool {
        let known = self.services.topics.as_ref().and_then(|view| view.topic(topic.topic));
        let id = match topic.id.is_zero() {
            true => known.map(|topic| topic.id).unwrap_or_default(),
            false => topic.id,
        };
        let mut partitions = topic.partitions.iter();
        partitions.all(|partition| {
            position.held_since((id, partition.partition)).is_some_and(|since| since <= epoch)
        })
    }

    /// A member that says who it is must be right about its epoch; who says nothing may read.
    pub(in super::super::super) fn validate_consumer_fetch(
        &self,
        ask: &Fetch<'_>,
    ) -> Result<(), GroupError> {
        let is_consumer = self.group.kind == GroupKind::Consumer;
        let Some((id, epoch)) = ask.member.filter(|_| is_consumer) else { return Ok(()) };
        let member = self.group.hard.consumers().member(id);
        let (_, member) = member.ok_or(GroupError::UnknownMemberId)?;
        match epoch == member.position().epoch {
            true => Ok(()),
            false => Err(GroupError::StaleMemberEpoch),
        }
    }
}
