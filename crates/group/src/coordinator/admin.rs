//! Looking at groups from outside: describing, listing, deleting one, and the views of `view`.

use super::barrier::Phase;
use super::config::Config;
use super::group::Group;
use super::reconcile::{Slot, State};
use super::roster::Member;
use super::turn::{Call, Turn};
use super::view::{BlockedOn, Blocker, GroupView, Who};
use crate::message::admin::{DescribedMember, Description, GroupKind, List, Listing};
use crate::message::{Blob, GroupError, Reply};
use alloc::vec::Vec;
use ottla_model::MemberId;

impl Turn<'_> {
    /// Describes a group that exists.
    pub(super) fn describe(&mut self, call: &Call<'_>) {
        let description = match self.group.kind {
            // Kafka's tools ask in the words of its own protocol.
            GroupKind::Consumer => Err(GroupError::GroupIdNotFound),
            GroupKind::Classic | GroupKind::Register => Ok(self.group.describe()),
        };
        self.reply(call.token, Reply::Describe(description));
    }

    /// Deletes a group that exists, if nobody is in it.
    pub(super) fn delete_group(&mut self, call: &Call<'_>) {
        if self.group.is_empty() {
            self.end_group();
            self.reply_offsets(call.token, Reply::DeleteGroup(Ok(())));
        } else {
            self.reply(call.token, Reply::DeleteGroup(Err(GroupError::NonEmptyGroup)));
        }
    }
}

impl Group {
    fn describe(&self) -> Description {
        let is_stable = self.phase.is_stable();
        let protocol = self.protocol.clone().filter(|_| is_stable).unwrap_or_default();
        let members = self.roster.in_order().into_iter().map(|(id, member)| DescribedMember {
            member: id.clone(),
            instance: member.instance.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            // Between generations there is no assignor whose metadata could be shown.
            metadata: if is_stable { member.metadata(&protocol) } else { Blob::default() },
            assignment: self.assignment_of(member),
        });
        let members = members.collect();
        Description {
            group: self.id.clone(),
            state: self.phase.state(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol,
            members,
        }
    }

    /// The group as a list shows it, where the filters want it. Filters no group can match are
    /// no error: they match none.
    pub(super) fn listing(&self, ask: &List<'_>) -> Option<Listing> {
        let matches = |filters: &[&str], names: &[&str]| {
            let is_wanted = |name: &&str| filters.iter().any(|f| f.eq_ignore_ascii_case(name));
            filters.is_empty() || names.iter().any(is_wanted)
        };
        let state = self.state();
        let wanted = matches(&ask.states, &[state.name()])
            && matches(&ask.types, &[self.kind.name(), self.kind.kafka_name()]);
        wanted.then(|| Listing {
            group: self.id.clone(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            state,
            kind: self.kind,
        })
    }

    /// A member's part of the assignment in force.
    pub(super) fn assignment_of(&self, member: &Member) -> Blob {
        let metadata = self.hard.metadata();
        let stored = member.stored.and_then(|index| metadata?.members.get(index as usize));
        stored.map_or_else(Blob::default, |stored| stored.assignment.clone())
    }

    /// The group, its journal, and who holds it up.
    pub(super) fn view(&self, config: &Config) -> GroupView {
        GroupView {
            group: self.id.clone(),
            kind: self.kind,
            state: self.state(),
            generation: self.generation,
            members: self.roster.len() + self.hard.consumers().len(),
            blocking: self.blocking(),
            migration: self.migration(config),
            journal: self.journal.entries().cloned().collect(),
        }
    }

    /// Whom it waits for, longest first.
    pub(super) fn blocking(&self) -> Vec<Blocker> {
        let mut blocking = self.blocking_by_id();
        blocking.sort_by_key(|blocker| blocker.since);
        blocking
    }

    fn blocking_by_id(&self) -> Vec<Blocker> {
        if self.kind == GroupKind::Consumer {
            return self.on_their_way();
        }
        let blocker = |id: &MemberId, member: &Member, owes, since| Blocker {
            who: member.who(id),
            owes,
            since,
        };
        let members = self.roster.in_order().into_iter();
        match &self.phase {
            Phase::Preparing(barrier) if !barrier.is_initial() => {
                let since = barrier.began.mono;
                let absent = members.filter(|(_, member)| !member.is_joining());
                let absent = absent.map(|(id, m)| blocker(id, m, BlockedOn::Join, since));
                let promised = self.roster.all_pending().map(|(id, pending)| Blocker {
                    who: Who {
                        member: id.clone(),
                        instance: None,
                        client_id: pending.client_id.clone(),
                        client_host: pending.client_host.clone(),
                    },
                    owes: BlockedOn::Join,
                    since: pending.since,
                });
                absent.chain(promised).collect()
            }
            Phase::Completing { closed } => {
                let owing = members.filter(|(_, member)| member.owes_sync());
                owing.map(|(id, m)| blocker(id, m, BlockedOn::Sync, *closed)).collect()
            }
            Phase::Empty | Phase::Preparing(_) | Phase::Stable => Vec::new(),
        }
    }

    /// Members that are not where the target wants them, but for those that only wait for others:
    /// who is to give something up, and who has not come back since the target was computed.
    fn on_their_way(&self) -> Vec<Blocker> {
        let consumers = self.hard.consumers();
        let (Some(motion), epoch) = (&self.motion, consumers.target_epoch()) else {
            return Vec::new();
        };
        let moving = consumers.members().filter_map(|(id, member)| {
            let position = member.position();
            let owed = motion.pulses.get(id).and_then(|p| Some((p.owes, p.revokes_since?)));
            let is_held = |slot: &Slot| consumers.owner(*slot).is_some_and(|owner| owner != id);
            let (owes, since) = match (owed, &position.state) {
                (Some((owes, since)), _) => (owes, Some(since)),
                (None, State::Unreleased)
                    if position.epoch == epoch && member.target().iter().any(is_held) =>
                {
                    return None;
                }
                (None, _) if position.is_at(epoch) => return None,
                (None, _) => (BlockedOn::Heartbeat, motion.moving_since),
            };
            Some(Blocker { who: member.who(id), owes, since: since? })
        });
        moving.collect()
    }
}
