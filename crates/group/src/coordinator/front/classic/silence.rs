//! Members and joiners that fell silent, and strangers whose connection closed.

use super::super::super::timers::Due;
use super::super::super::turn::Turn;
use super::super::super::view::Cause;
use crate::message::admin::GroupKind;
use crate::probe::{self, Mark};
use ottla_model::{ConnectionId, Instant, MemberId};

impl Turn<'_> {
    /// A session's heap entry surfaced. A member whose request is parked is not silent: its
    /// session begins anew with the answer. A new member can only be parked, so it is dropped.
    pub(in super::super::super) fn session_surfaced(
        &mut self,
        id: &MemberId,
        queued: Instant,
    ) -> Due {
        if self.group.kind == GroupKind::Consumer {
            return self.consumer_session_surfaced(id, queued);
        }
        let now = self.now.mono;
        let Some(member) = self.group.roster.member_mut(id) else { return Due::Never };
        let due = member.session.surfaced(queued, now);
        if self.group.kind == GroupKind::Register {
            if due == Due::Now {
                self.limit_reached(id);
            }
            return due;
        }
        if due == Due::Now && (member.is_new || !member.is_parked()) {
            probe::hit(Mark::CoordinatorSessionEnded);
            let trigger = self.trigger(Cause::SessionExpired, id);
            self.remove_member(id);
            self.rebalance(trigger);
        }
        due
    }

    /// A promise's heap entry surfaced: its joiner had a session timeout to come back.
    pub(in super::super::super) fn pending_surfaced(
        &mut self,
        id: &MemberId,
        queued: Instant,
    ) -> Due {
        let now = self.now.mono;
        let Some(pending) = self.group.roster.pending_mut(id) else { return Due::Never };
        let due = pending.session.surfaced(queued, now);
        if due == Due::Now {
            probe::hit(Mark::CoordinatorPromiseEnded);
            self.group.roster.break_promise(id);
            self.close_if_complete();
        }
        due
    }

    /// The connection of a parked join closed whose member was never told its id: nobody can
    /// speak for that member any more, so it must not come to own anything.
    pub(in super::super::super) fn stranger_gone(&mut self, id: &str, connection: ConnectionId) {
        let member = self.group.roster.member(id);
        if member.is_some_and(|member| member.is_stranger_of(connection)) {
            probe::hit(Mark::CoordinatorStrangerGone);
            let trigger = self.trigger(Cause::Left, id);
            self.remove_member(id);
            self.rebalance(trigger);
        }
    }
}
