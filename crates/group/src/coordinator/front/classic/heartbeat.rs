//! Heartbeat: the hot path of a stable group. One lookup, one store, no allocation.

use super::super::super::barrier::Phase;
use super::super::super::turn::{Call, Turn};
use crate::message::admin::GroupKind;
use crate::message::classic::Heartbeat;
use crate::message::{GroupError, Reply};

impl Turn<'_> {
    /// A heartbeat in a group that exists.
    pub(in super::super::super) fn heartbeat(&mut self, call: &Call<'_>, ask: &Heartbeat<'_>) {
        let outcome = self.judge_heartbeat(call, ask);
        self.reply(call.token, Reply::Heartbeat(outcome));
    }

    fn judge_heartbeat(&mut self, call: &Call<'_>, ask: &Heartbeat<'_>) -> Result<(), GroupError> {
        if self.group.kind != GroupKind::Classic {
            return Err(GroupError::UnknownMemberId);
        }
        self.validate_member(ask.member, ask.instance)?;
        if ask.generation != self.group.generation {
            return Err(GroupError::IllegalGeneration);
        }
        self.hear(ask.member, call);
        match self.group.phase {
            Phase::Preparing(_) => Err(GroupError::RebalanceInProgress),
            Phase::Empty | Phase::Completing { .. } | Phase::Stable => Ok(()),
        }
    }
}
