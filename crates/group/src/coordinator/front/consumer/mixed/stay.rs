//! Heartbeat and SyncGroup of classic members in a group of the consumer protocol.

use crate::assign::Partitions;
use crate::assign::subscription::{Assignment, VERSION_MAX};
use crate::coordinator::group::CONSUMER;
use crate::coordinator::reconcile::{Slot, State};
use crate::coordinator::record::ClassicMember;
use crate::coordinator::turn::{Call, Turn};
use crate::coordinator::view::BlockedOn;
use crate::message::classic::{Heartbeat, Sync, Synced};
use crate::message::{Blob, GroupError, Reply};
use alloc::sync::Arc;
use core::time::Duration;

impl Turn<'_> {
    /// A classic heartbeat in a group of the consumer protocol.
    pub(in crate::coordinator::front) fn heartbeat_of_classic(
        &mut self,
        call: &Call<'_>,
        ask: &Heartbeat<'_>,
    ) {
        let outcome = match self.judge_classic_heartbeat(call, ask) {
            Ok(timeout) if self.hold(call, ask.member, timeout) => return,
            other => other.map(|_| ()),
        };
        self.reply(call.token, Reply::Heartbeat(outcome));
    }

    /// The shorter of the member's timeouts, if there is nothing to tell it.
    fn judge_classic_heartbeat(
        &mut self,
        call: &Call<'_>,
        ask: &Heartbeat<'_>,
    ) -> Result<Duration, GroupError> {
        let (id, member) = self.classic_member(ask.member, ask.instance)?;
        if ask.generation != member.position().epoch {
            return Err(GroupError::IllegalGeneration);
        }
        let must_rejoin = self.must_rejoin(&id, member);
        self.hear_consumer(&id, call);
        // Whoever beats again does not wait for the answer to the last time.
        self.give_way(ask.member);
        if must_rejoin {
            self.owe_join(&id);
            return Err(GroupError::RebalanceInProgress);
        }
        Ok(self.consumer_session_timeout_of(&id).min(self.revocation_timeout(&id)))
    }

    /// A sync in a group of the consumer protocol.
    pub(in crate::coordinator::front) fn sync_of_classic(
        &mut self,
        call: &Call<'_>,
        ask: &Sync<'_>,
    ) {
        let outcome = self.pick_up_as_classic(call, ask);
        self.reply(call.token, Reply::Sync(outcome));
    }

    fn pick_up_as_classic(
        &mut self,
        call: &Call<'_>,
        ask: &Sync<'_>,
    ) -> Result<Synced, GroupError> {
        let (id, member) = self.classic_member(ask.member, ask.instance)?;
        let position = member.position();
        if ask.generation != position.epoch {
            return Err(GroupError::IllegalGeneration);
        }
        let classic = member.says().classic.as_ref();
        let told = classic.and_then(ClassicMember::most_wanted).map(|(name, _)| name.clone());
        let told = told.unwrap_or_default();
        let other_type = ask.protocol_type.is_some_and(|claimed| claimed != CONSUMER);
        if other_type || ask.protocol.is_some_and(|claimed| *claimed != *told) {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        let revokes = matches!(position.state, State::Unrevoked { .. });
        let is_behind = position.epoch != self.group.hard.consumers().target_epoch();
        let assignment = self.classic_part(classic, position.assigned.keys().copied());
        if is_behind && !revokes {
            self.owe_join(&id);
            return Err(GroupError::RebalanceInProgress);
        }
        self.hear_consumer(&id, call);
        match revokes {
            // It sees that something is missing, gives that up and joins again.
            true => self.owe(&id, BlockedOn::Revoke),
            false => self.forgive(&id),
        }
        Ok(Synced { protocol_type: Arc::from(CONSUMER), protocol: told, assignment })
    }

    /// Partitions in the bytes of classic members, in the version this one speaks.
    pub(super) fn classic_part(
        &self,
        classic: Option<&ClassicMember>,
        slots: impl IntoIterator<Item = Slot>,
    ) -> Blob {
        let metadata = classic.and_then(ClassicMember::most_wanted).map(|(_, metadata)| metadata);
        let version = metadata.and_then(|bytes| bytes.first_chunk()).copied();
        let version = version.map_or(0, i16::from_be_bytes).clamp(0, VERSION_MAX);
        let named = self.named(slots).into_iter().map(|named| (named.topic, named.partitions));
        let assignment = Assignment { partitions: Partitions::gather(named), user_data: None };
        Blob::from(assignment.encode(version))
    }
}
