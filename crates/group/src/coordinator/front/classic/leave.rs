//! LeaveGroup: members go, or an administrator removes them, several at once (KIP-345).

use super::super::super::turn::{Call, Turn, cut, kept_reason};
use super::super::super::view::{Caller, Cause, Trigger, Who};
use crate::message::admin::GroupKind;
use crate::message::classic::{Leave, Leaver, Leaving, Left};
use crate::message::{GroupError, Reply};
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{InstanceId, MemberId};

impl Turn<'_> {
    /// Members leave a group that exists.
    pub(in super::super::super) fn leave(&mut self, call: &Call<'_>, ask: &Leave<'_>) {
        if self.group.kind == GroupKind::Consumer {
            let outcomes = self.dismiss_consumers(call, ask);
            let members = ask.members.iter().zip(outcomes).map(|(l, outcome)| leaving(l, outcome));
            let left = Left { members: members.collect() };
            return self.reply(call.token, Reply::Leave(Ok(left)));
        }
        let mut triggers = Vec::new();
        let outcomes = ask.members.iter().map(|leaver| {
            let outcome = self.let_go(call, leaver, &mut triggers);
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
        call: &Call<'_>,
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
        let line = self.group.roster.member(&id).and_then(|member| member.connection);
        if line == Some(call.connection) {
            // It waits behind its own heartbeat, which it knew to be in order.
            self.give_way(&id);
        }
        let who = self.group.roster.who(&id);
        triggers.extend(who.map(|who| leaving_trigger(call, leaver, who)));
        self.remove_member(&id);
        Ok(())
    }
}

/// A member said goodbye, or somebody else said it for the member: an administrator names an
/// instance alone, or comes as another client, or says so (KIP-800, as Kafka's own admin client
/// does).
pub(in super::super) fn leaving_trigger(call: &Call<'_>, leaver: &Leaver<'_>, who: Who) -> Trigger {
    let is_other = *who.client_id != *call.client.id;
    let says_so = leaver.reason.is_some_and(|reason| reason.starts_with(REMOVED_BY_ADMIN));
    match leaver.member.is_empty() || is_other || says_so {
        true => removal_trigger(call, leaver, who),
        false => Trigger { reason: kept_reason(leaver.reason), ..Trigger::of(Cause::Left, who) },
    }
}

/// Somebody else said goodbye for a member.
pub(in super::super) fn removal_trigger(call: &Call<'_>, leaver: &Leaver<'_>, who: Who) -> Trigger {
    let by = Some(Caller {
        client_id: Arc::from(cut(call.client.id, CLIENT_ID_BYTES_MAX)),
        client_host: Arc::from(call.client.host),
    });
    Trigger { by, reason: kept_reason(leaver.reason), ..Trigger::of(Cause::Removed, who) }
}

/// Every named member with this outcome: what a group that does not exist answers.
pub(in super::super::super) fn all_leaving(ask: &Leave<'_>, error: GroupError) -> Left {
    Left { members: ask.members.iter().map(|leaver| leaving(leaver, Err(error))).collect() }
}

fn leaving(leaver: &Leaver<'_>, outcome: Result<(), GroupError>) -> Leaving {
    (MemberId::from(leaver.member), leaver.instance.map(InstanceId::from), outcome)
}

/// How the reasons of Kafka's admin client begin.
const REMOVED_BY_ADMIN: &str = "member was removed by an admin";
/// What the journal keeps of a client id.
const CLIENT_ID_BYTES_MAX: usize = 255;
