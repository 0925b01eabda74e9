//! Members that fell silent, and members that do not give up what they were told to.

use crate::coordinator::timers::Due;
use crate::coordinator::turn::Turn;
use crate::coordinator::view::{BlockedOn, Cause};
use crate::probe::{self, Mark};
use ottla_model::{Instant, MemberId};

impl Turn<'_> {
    /// A session's heap entry surfaced.
    pub(in super::super) fn consumer_session_surfaced(
        &mut self,
        id: &MemberId,
        queued: Instant,
    ) -> Due {
        let now = self.now.mono;
        let Some(motion) = &mut self.group.motion else { return Due::Never };
        let Some(pulse) = motion.pulses.get_mut(id) else { return Due::Never };
        let due = pulse.session.surfaced(queued, now);
        if due == Due::Now {
            probe::hit(Mark::CoordinatorSessionEnded);
            let trigger = self.consumer_trigger(Cause::SessionExpired, id);
            self.remove_consumers(core::slice::from_ref(id), alloc::vec![trigger]);
        }
        due
    }

    /// A revocation's heap entry surfaced: whoever still owes it may own nothing any more, for
    /// others wait (KIP-848, "Rebalance Timeout").
    pub(in super::super::super) fn revocation_surfaced(
        &mut self,
        id: &MemberId,
        queued: Instant,
    ) -> Due {
        let now = self.now.mono;
        let Some(motion) = &mut self.group.motion else { return Due::Never };
        let Some(pulse) = motion.pulses.get_mut(id) else { return Due::Never };
        let due = pulse.revocation.surfaced(queued, now);
        let cause = match pulse.owes {
            BlockedOn::Join => Cause::JoinExpired,
            BlockedOn::Sync => Cause::SyncExpired,
            BlockedOn::Revoke | BlockedOn::Heartbeat => Cause::RevocationExpired,
        };
        if due == Due::Now && pulse.revokes_since.is_some() {
            probe::hit(Mark::CoordinatorRevocationEnded);
            let trigger = self.consumer_trigger(cause, id);
            self.remove_consumers(core::slice::from_ref(id), alloc::vec![trigger]);
        }
        due
    }
}
