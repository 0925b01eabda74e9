//! LeaveGroup: members go, or an administrator removes them, several at once (KIP-345).

use super::super::super::turn::{Call, Turn};
use super::super::super::view::{Cause, Trigger};
use crate::message::admin::GroupKind;
use crate::message::classic::{Leave, Leaver, Leaving, Left};
use crate::message::{GroupError, Reply};
use alloc::vec::Vec;
use ottla_model::{InstanceId, MemberId};

impl Turn<'_> {
    /// Members leave a group that exists.
    pub(in super::super::super) fn leave(&mut self, call: &Call<'_>, ask: &Leave<'_>) {
        if self.group.kind == GroupKind::Consumer {
            let outcomes = self.dismiss_consumers(ask);
            let members = ask.members.iter().zip(outcomes).map(|(l, outcome)| leaving(l, outcome));
            let left = Left { members: members.collect() };
            return self.reply(call.token, Reply::Leave(Ok(left)));
        }
        let mut triggers = Vec::new();
        let outcomes = ask.members.iter().map(|leaver| {
            let outcome = self.let_go(leaver, &mut triggers);
            leaving(leaver, outcome)
        });
        let members = outcomes.collect();
        if triggers.is_empty() {
            // Only promises were given up, if anything: they may have been all that was awaited.
            self.close_if_complete();
        } else {
            self.rebalance(triggers);
        }
        // Last, so that it waits for the record of a group that ran empty.
        self.reply(call.token, Reply::Leave(Ok(Left { members })));
    }

    fn let_go(
        &mut self,
        leaver: &Leaver<'_>,
        triggers: &mut Vec<Trigger>,
    ) -> Result<(), GroupError> {
        if self.group.roster.break_promise(leaver.member).is_some() {
            return Ok(());
        }
        let id = match (leaver.member, leaver.instance) {
            // An administrator names the instance alone.
            ("", instance) => {
                let holder = instance.and_then(|instance| self.group.roster.holder(instance));
                holder.cloned().ok_or(GroupError::UnknownMemberId)?
            }
            (member, instance) => {
                self.validate_member(member, instance)?;
                MemberId::from(member)
            }
        };
        triggers.extend(self.trigger_for(Cause::Left, &id, leaver.reason));
        self.remove_member(&id);
        Ok(())
    }
}

/// Every named member with this outcome: what a group that does not exist answers.
pub(in super::super::super) fn all_leaving(ask: &Leave<'_>, error: GroupError) -> Left {
    Left { members: ask.members.iter().map(|leaver| leaving(leaver, Err(error))).collect() }
}

fn leaving(leaver: &Leaver<'_>, outcome: Result<(), GroupError>) -> Leaving {
    (MemberId::from(leaver.member), leaver.instance.map(InstanceId::from), outcome)
}
