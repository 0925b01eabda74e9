//! Members that are taken for dead, and their sockets (S18-S20).

use crate::coordinator::turn::Turn;
use crate::coordinator::view::Cause;
use crate::probe::{self, Mark};
use alloc::vec::Vec;
use ottla_model::{ConnectionId, MemberId};

impl Turn<'_> {
    /// A member was silent for its limit. One whose last answer is not durable yet has not been
    /// told what to beat with: its limit begins anew.
    pub(in super::super) fn limit_reached(&mut self, id: &MemberId) {
        if self.services.outbox.pending(self.group.marks.membership).is_some() {
            self.renew_session(id);
            return;
        }
        probe::hit(Mark::CoordinatorSessionEnded);
        let trigger = self.trigger(Cause::SessionExpired, id);
        let lines = self.lines_of(core::slice::from_ref(id));
        self.remove_member(id);
        self.rebalance(trigger);
        self.break_lines(lines);
    }

    /// The answer to a member's registration has left: its limit starts now.
    pub(in super::super::super) fn registration_answered(&mut self, id: &str) {
        let member = self.group.roster.member(id);
        let counts = member.is_some_and(|it| it.detection.is_some() && it.session.is_armed());
        if counts && self.group.phase.is_stable() {
            self.renew_session(id);
        }
    }

    /// The connections these members speak on.
    pub(super) fn lines_of(&self, ids: &[MemberId]) -> Vec<ConnectionId> {
        let connection = |id: &MemberId| self.group.roster.member(id)?.connection;
        ids.iter().filter_map(connection).collect()
    }

    /// Closes connections of members that are dead, unless somebody alive speaks on them (S19).
    pub(super) fn break_lines(&mut self, mut lines: Vec<ConnectionId>) {
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            if self.services.lifelines.has(line) {
                probe::hit(Mark::CoordinatorSparedSocket);
            } else {
                self.services.outbox.close(line, self.group.marks.membership);
            }
        }
    }
}
