//! The register protocol's rules, where they are not the classic ones: a registration is answered
//! with the member's part, so there is nothing to sync; a heartbeat that is told of a rebalance
//! keeps nobody alive; what is owned is always given up before registering again.
//!
//! The way there and back (give up, wait for commits, pause, leave) is
//! [`classic`](super::classic)'s. Knows nothing of coordinators' insides.

use super::link::Call;
use super::request::{Register, Request};
use super::state::{Phase, Round};
use super::verdict::Kind;
use super::{Member, Protocol};
use crate::message::GroupError;
use crate::message::classic::JoinRefused;
use crate::message::register::{Detection, Registered};
use ottla_model::{Instant, NodeId};

impl Member {
    /// Registers, as a new consumer where it has no id.
    pub(super) fn send_registration(&mut self, detection: Detection, node: NodeId, now: Instant) {
        let request = Request::Register(Register {
            sender: self.sender(),
            host: self.config.host.clone(),
            session_timeout: self.config.session_timeout,
            detection,
            topics: self.wanted().to_vec(),
        });
        self.begin_join(node, request, now);
    }

    /// S7, S14: a generation began, with this member's part of it; failure detection starts.
    pub(super) fn on_registered(
        &mut self,
        call: Call,
        reply: Result<Registered, GroupError>,
        now: Instant,
    ) {
        let Phase::Joining { topics, claimed } = &mut self.phase else { return };
        let (topics, claimed) = (core::mem::take(topics), core::mem::take(claimed));
        let registered = match reply {
            Ok(registered) => registered,
            Err(error) => {
                let member = self.id.clone();
                return self.on_join_refused(JoinRefused { error, member }, now);
            }
        };
        self.id = registered.member;
        self.note_generation(&call, registered.generation);
        self.owes_sync = false;
        // Ownership is counted from the send, which may be long ago: then it beats at once.
        self.heartbeat_at = (call.sent_at + self.config.beat_interval()).max(now);
        self.watch_topics(core::iter::empty());
        self.take_part(Round { topics, claimed, led: None }, registered.partitions, now);
    }

    /// The request that says it is alive, in the protocol's words.
    pub(super) fn send_heartbeat(&mut self, node: NodeId, now: Instant) {
        let sender = self.sender();
        let request = match self.config.protocol {
            Protocol::Classic | Protocol::Consumer => Request::Heartbeat(sender),
            Protocol::Register(_) => Request::RegisterHeartbeat(sender),
        };
        self.heartbeat_at = now + self.config.beat_interval();
        self.send(node, Kind::Heartbeat, request, now);
    }
}
