//! Consumer groups: each member moves by itself, the coordinator assigns
//! (ConsumerGroupHeartbeat, ConsumerGroupDescribe as Kafka 4.4 has them; KIP-848, 1082, 1251).
//!
//! One heartbeat does everything, in three steps, each of which is true by itself: what the member
//! says is written down, and the group's epoch raised if that changes anything for others; the
//! target of the epoch is computed, if it is due; the member moves one step towards it. A member's
//! position moves only in an answer to it, so it always knows where it stands, or has lost just
//! one answer.

mod describe;
mod heartbeat;
mod held;
mod leave;
mod lifecycle;
mod mixed;
mod offsets;
mod place;
mod silence;
mod subscription;

use crate::coordinator::timers::Timer;
use crate::coordinator::turn::{Call, Turn};
use crate::coordinator::view::{Cause, Trigger};
use crate::message::GroupError;
use core::time::Duration;
use ottla_model::MemberId;

impl Turn<'_> {
    /// A valid request of a member came: its silence starts anew, and this is its connection.
    fn hear_consumer(&mut self, id: &MemberId, call: &Call<'_>) {
        self.renew_consumer_session(id);
        let group = &mut *self.group;
        let Some(motion) = &mut group.motion else { return };
        self.services.lifelines.follow(&mut motion.pulse(id).connection, call.connection);
    }

    /// Starts a member's silence anew, in full.
    fn renew_consumer_session(&mut self, id: &MemberId) {
        let timeout = self.consumer_session_timeout_of(id);
        let group = self.group.id.clone();
        let now = self.now.mono;
        self.motion();
        let Some(motion) = &mut self.group.motion else { return };
        let session = &mut motion.pulse(id).session;
        self.services.timers.arm(session, now, timeout, || Timer::Session(group, id.clone()));
    }

    /// How long a member may be silent: the group's own setting, else the broker's.
    fn consumer_session_timeout(&self) -> Duration {
        let own = self.services.settings.of(&self.group.id).consumer_session_timeout;
        own.unwrap_or(self.services.config.consumer_session_timeout)
    }

    /// How long this member may be silent: a classic one has its own word for it.
    fn consumer_session_timeout_of(&self, id: &str) -> Duration {
        let member = self.group.hard.consumers().member(id);
        let classic = member.and_then(|(_, member)| member.says().classic.as_ref());
        let own = classic.map(|classic| classic.session_timeout);
        own.unwrap_or_else(|| self.consumer_session_timeout())
    }

    /// Whether this is a member that speaks the classic protocol.
    fn is_classic(&self, id: &str) -> bool {
        self.group.hard.consumers().member(id).is_some_and(|(_, member)| member.is_classic())
    }

    /// How often a member is asked to come back: the group's own setting, else the broker's, but
    /// so that no two settings together end the session of one that does as it is asked.
    fn consumer_heartbeat_interval(&self) -> Duration {
        let own = self.services.settings.of(&self.group.id).consumer_heartbeat_interval;
        let interval = own.unwrap_or(self.services.config.consumer_heartbeat_interval);
        interval.min(self.consumer_session_timeout() / 3)
    }

    /// What happened to a member, for the journal.
    fn consumer_trigger(&self, cause: Cause, id: &str) -> Trigger {
        let member = self.group.hard.consumers().member(id);
        let who = member.map(|(id, member)| member.who(id));
        Trigger { who, ..Trigger::new(cause) }
    }

    /// Whether `member` may speak for itself and, if it is static, for its instance.
    pub(in super::super) fn validate_consumer(
        &self,
        member: &str,
        instance: Option<&str>,
    ) -> Result<(), GroupError> {
        let consumers = self.group.hard.consumers();
        if let Some(instance) = instance {
            match consumers.holder(instance) {
                None => return Err(GroupError::UnknownMemberId),
                Some(holder) if **holder != *member => return Err(GroupError::FencedInstanceId),
                Some(_) => {}
            }
        }
        consumers.member(member).map(|_| ()).ok_or(GroupError::UnknownMemberId)
    }
}
