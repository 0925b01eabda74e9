//! Who asks: a new member, a known one, or one that takes the place of its former self. All that
//! can be refused for that reason is refused here.

use crate::assign;
use crate::assign::server::ServerAssignor;
use crate::coordinator::reconcile::{Position, Slot, State};
use crate::coordinator::turn::Turn;
use crate::message::GroupError;
use crate::message::consumer::{Heartbeat, Partitions, Standing};
use alloc::collections::BTreeSet;
use ottla_model::{Generation, MemberId, TopicsView};

/// Whose heartbeat it is.
#[derive(Debug)]
pub(super) enum Place {
    /// Nobody's yet.
    New,
    /// A member's.
    Known,
    /// That of a static member which went for now under this id and is back under another, or
    /// which comes back with the other protocol.
    Replaces(MemberId),
}

impl Place {
    /// The id under which `id` was known before.
    pub(super) fn id_before<'a>(&'a self, id: &'a MemberId) -> &'a MemberId {
        match self {
            Self::Replaces(former) => former,
            Self::New | Self::Known => id,
        }
    }
}

impl Turn<'_> {
    /// What makes no sense whatever the group is (KIP-848, "Request Validation").
    pub(super) fn validate(&self, ask: &Heartbeat<'_>) -> Result<(), GroupError> {
        if !makes_sense(ask) {
            return Err(GroupError::InvalidRequest);
        }
        let usable = &self.services.config.consumer_assignors;
        match ask.assignor.map(ServerAssignor::named) {
            None => Ok(()),
            Some(Some(assignor)) if usable.contains(&assignor) => Ok(()),
            Some(_) => Err(GroupError::UnsupportedAssignor),
        }
    }

    /// Finds the place of a heartbeat that joins or stays.
    pub(super) fn place_of_consumer(&self, ask: &Heartbeat<'_>) -> Result<Place, GroupError> {
        let consumers = self.group.hard.consumers();
        let joins = ask.standing == Standing::Joining;
        let holder = ask.instance.map(|instance| consumers.holder(instance));
        match holder {
            Some(Some(holder)) if **holder != *ask.member && joins => {
                let member = consumers.member(holder);
                let is_released = member
                    .is_some_and(|(_, m)| m.is_classic() || m.position().state == State::Away);
                return match is_released {
                    true => Ok(Place::Replaces(holder.clone())),
                    false => Err(GroupError::UnreleasedInstanceId),
                };
            }
            Some(_) if !joins => self.validate_consumer(ask.member, ask.instance)?,
            Some(_) | None => {}
        }
        match (consumers.member(ask.member), ask.standing) {
            // An id belongs to a process, which speaks one protocol.
            (Some((_, member)), Standing::Member(_)) if member.is_classic() => {
                Err(GroupError::UnknownMemberId)
            }
            (Some((_, member)), Standing::Member(epoch)) => {
                check_epoch(member.position(), epoch, ask.owned.as_ref())?;
                Ok(Place::Known)
            }
            // It may join again whenever it wants: what it holds is its own all the same.
            (Some(_), _) => Ok(Place::Known),
            (None, Standing::Joining) => {
                match consumers.len() >= self.services.config.consumer_group_size_max {
                    true => Err(GroupError::GroupMaxSizeReached),
                    false => Ok(Place::New),
                }
            }
            (None, _) => Err(GroupError::UnknownMemberId),
        }
    }
}

/// A member must name its epoch. The one before will do if the answer that told it of the new one
/// may have been lost: then it owns nothing but what was its own before.
fn check_epoch(
    position: &Position,
    named: Generation,
    owned: Option<&Partitions>,
) -> Result<(), GroupError> {
    let missed_one = || {
        named == position.previous_epoch
            && owned.is_some_and(|owned| position.may_own(&slots(owned)))
    };
    match named == position.epoch || (named < position.epoch && missed_one()) {
        true => Ok(()),
        false => Err(GroupError::FencedMemberEpoch),
    }
}

/// The partitions a request names, each once.
pub(super) fn slots(partitions: &Partitions) -> BTreeSet<Slot> {
    let slots = partitions.iter().flat_map(|(topic, partitions)| {
        partitions.iter().map(move |partition| (*topic, *partition))
    });
    slots.collect()
}

/// The same for partitions named by their topics' names; those that do not exist are left out.
pub(super) fn slots_of(named: &assign::Partitions, view: &TopicsView) -> BTreeSet<Slot> {
    let slots = named.iter().filter_map(|(name, partition)| {
        let topic = view.topic(name)?;
        let exists = usize::try_from(partition.0).is_ok_and(|at| at < topic.partitions.len());
        exists.then_some((topic.id, partition))
    });
    slots.collect()
}

fn makes_sense(ask: &Heartbeat<'_>) -> bool {
    ask.instance != Some("")
        && ask.rack != Some("")
        && match ask.standing {
            Standing::Joining => {
                let subscribes = ask.topics.is_some() || ask.regex.is_some();
                let owns_nothing = ask.owned.as_ref().is_some_and(|owned| owned.is_empty());
                ask.rebalance_timeout.is_some() && subscribes && owns_nothing
            }
            Standing::Member(_) | Standing::Leaving => !ask.member.is_empty(),
            Standing::LeavingForNow => !ask.member.is_empty() && ask.instance.is_some(),
        }
}
