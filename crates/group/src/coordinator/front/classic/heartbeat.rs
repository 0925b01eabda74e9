//! Heartbeat: the hot path of a stable group. One lookup, one store, no allocation, unless its
//! answer is held.

use super::super::super::barrier::Phase;
use super::super::super::turn::{Call, Turn};
use crate::message::admin::GroupKind;
use crate::message::classic::Heartbeat;
use crate::message::{GroupError, Reply};

impl Turn<'_> {
    /// A heartbeat in a group that exists.
    pub(in super::super::super) fn heartbeat(&mut self, call: &Call<'_>, ask: &Heartbeat<'_>) {
        if self.group.kind == GroupKind::Consumer {
            return self.heartbeat_of_classic(call, ask);
        }
        let outcome = self.judge_heartbeat(call, ask);
        if outcome.is_ok() && self.hold_stable(call, ask.member) {
            return;
        }
        self.reply(call.token, Reply::Heartbeat(outcome));
    }

    fn judge_heartbeat(&mut self, call: &Call<'_>, ask: &Heartbeat<'_>) -> Result<(), GroupError> {
        if self.group.kind != GroupKind::Classic {
            return Err(GroupError::UnknownMemberId);
        }
        self.validate_member(ask.member, ask.instance)?;
        if ask.generation != self.group.generation_of(ask.member) {
            return Err(GroupError::IllegalGeneration);
        }
        self.hear(ask.member, call);
        // Whoever beats again does not wait for the answer to the last time.
        self.give_way(ask.member);
        match self.group.phase {
            Phase::Preparing(_) => Err(GroupError::RebalanceInProgress),
            Phase::Empty | Phase::Completing { .. } | Phase::Stable => Ok(()),
        }
    }

    /// Between two rebalances there is nothing to tell a member: whatever it has to hear is the
    /// beginning of the next.
    fn hold_stable(&mut self, call: &Call<'_>, id: &str) -> bool {
        let Some(member) = self.group.roster.member(id) else { return false };
        let timeout = member.session_timeout.min(member.rebalance_timeout);
        self.group.phase.is_stable() && self.hold(call, id, timeout)
    }
}
