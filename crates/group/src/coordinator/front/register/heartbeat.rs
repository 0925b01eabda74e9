//! Heartbeat and ConsumerMetadata: one lookup each, no record.

use crate::coordinator::barrier::Phase;
use crate::coordinator::turn::{Call, Turn};
use crate::message::admin::GroupKind;
use crate::message::register::{Heartbeat, HeartbeatAnswer};
use crate::message::{GroupError, Reply};

impl Turn<'_> {
    /// Which generation a group that exists is in (decision 13).
    pub(in super::super::super) fn tell_generation(&mut self, call: &Call<'_>) {
        self.reply(call.token, Reply::ConsumerMetadata(Ok(self.group.generation)));
    }

    /// A heartbeat in a group that exists (S16, S17).
    pub(in super::super::super) fn register_heartbeat(
        &mut self,
        call: &Call<'_>,
        ask: &Heartbeat<'_>,
    ) {
        let outcome = self.judge_register_heartbeat(call, ask);
        let generation = self.group.generation;
        let answer = HeartbeatAnswer { generation, outcome };
        self.reply(call.token, Reply::RegisterHeartbeat(answer));
    }

    fn judge_register_heartbeat(
        &mut self,
        call: &Call<'_>,
        ask: &Heartbeat<'_>,
    ) -> Result<(), GroupError> {
        let is_member = self.group.roster.member(ask.member).is_some();
        if !is_member || self.group.kind != GroupKind::Register {
            return Err(GroupError::UnknownMemberId);
        }
        if ask.generation != self.group.generation {
            return Err(GroupError::IllegalGeneration);
        }
        if matches!(self.group.phase, Phase::Preparing(_)) {
            // It must register again; until then its own limit keeps running (decision 25).
            self.follow(ask.member, call);
            return Err(GroupError::RebalanceInProgress);
        }
        self.hear(ask.member, call);
        Ok(())
    }
}
