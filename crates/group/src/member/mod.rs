//! The member's side of the group protocols: a value that says what to send and what to tell the
//! application.
//!
//! The contract is the coordinator's: inputs come by method with `now`, outputs are polled,
//! nothing here opens a socket, reads a clock or draws entropy. A client ships it inside a task
//! that feeds events, drains [`Member::poll`] and sleeps until [`Member::deadline`]. What a
//! protocol demands lives in a module of its own ([`Protocol`]); the way to the coordinator,
//! offsets and requests under way are shared by all. This module never fetches a record and knows
//! neither wire versions nor addresses.

mod backoff;
mod classic;
mod config;
mod consumer;
#[cfg(feature = "probe")]
mod fingerprint;
mod leader;
mod link;
mod offsets;
mod output;
mod register;
mod request;
mod state;
mod verdict;
mod watch;

#[cfg(test)]
mod tests;

pub use backoff::Backoff;
pub use config::{Config, Protocol};
pub use link::{CallId, Lane};
pub use offsets::{CommitFailed, OffsetsId};
pub use output::Output;
pub use request::{Beat, Join, PartitionOffset, Register, Request, Sender, Sync, TopicOffsets};

use crate::assign::{Handover, Partitions};
use crate::message::{GroupError, Reply};
use crate::probe::{self, Fault, Mark};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use consumer::Consumer;
use link::{Call, Calls, Link};
use offsets::Offsets;
use ottla_model::{Generation, Instant, MemberId, NodeId, TopicName, TopicsView};
use state::{Phase, Then};
use verdict::Kind;
use watch::Watch;

/// One member of one group.
///
/// # What the shell must do
///
/// After any input, poll until `None` and carry out the outputs in order; call
/// [`handle_timeout`](Self::handle_timeout) at or after [`deadline`](Self::deadline). Every
/// [`Output::Send`] ends in one [`handle_reply`](Self::handle_reply) or in a
/// [`handle_disconnect`](Self::handle_disconnect) of its lane; late or repeated answers do no
/// harm. Requests of one lane must go out in order on one connection. `now` never goes backward.
///
/// # Ownership
///
/// The application owns a partition from the [`Output::Assigned`] that names it until it answers
/// an [`Output::Revoke`] that names it by [`revoked`](Self::revoked), or until an
/// [`Output::Lost`] names it, whichever comes first. No two live members of a group own one
/// partition at one time, provided each carries out its outputs without delay and clocks run at
/// about the same speed: a member gives up what it owns a session timeout after it *sent* the
/// last heartbeat that was answered, or a rebalance timeout after it sent the last one that was
/// answered without a rebalance, and a coordinator waits for longer than that.
#[derive(Debug)]
#[cfg_attr(feature = "probe", derive(Clone))]
pub struct Member {
    config: Config,
    /// What it subscribes to, sorted; `None` where it wants to be no member. One whose pattern
    /// matches no topic yet is a member all the same.
    topics: Option<Vec<TopicName>>,
    watch: Watch,
    link: Link,
    /// Pauses for the coordinator's trouble: not known, not ready, not reachable.
    backoff: Backoff,
    calls: Calls,
    phase: Phase,
    /// Its id; empty until it was given one.
    id: MemberId,
    /// The last generation it knows to be part of.
    generation: Option<Generation>,
    /// What the application owns, partitions it is asked to give up included.
    owned: Partitions,
    /// What it was last assigned and when: what the eager sticky assignor goes by.
    last_assigned: Option<(Partitions, Generation)>,
    /// The latest send of an answered heartbeat, join or sync of this membership.
    answered: Instant,
    /// The latest send of one that was answered as by a group at rest: any rebalance this member
    /// has not joined yet began after it.
    settled: Instant,
    /// When the first join was sent of those no generation was told for: the next barrier closes
    /// after it, whichever of them the coordinator hears.
    joining_since: Option<Instant>,
    /// Whether it was told of its generation and has not been given its part: until then the
    /// coordinator's time to sync is running, whatever heartbeats and joins are answered.
    owes_sync: bool,
    /// When the next heartbeat is due.
    heartbeat_at: Instant,
    /// When the next join may be sent.
    join_at: Instant,
    /// When a leader that withheld partitions asks what became of them.
    nudge_at: Option<Instant>,
    /// Why the next join is sent (KIP-800).
    reason: &'static str,
    offsets: Offsets,
    consumer: Consumer,
    outputs: VecDeque<Output>,
}

impl Member {
    /// A member that subscribes to nothing yet. `seed` jitters its pauses.
    pub fn new(config: Config, seed: u64) -> Self {
        let (min, max) = (config.retry_backoff_min, config.retry_backoff_max);
        Self {
            topics: None,
            watch: Watch::default(),
            link: Link::Unknown { retry_at: Instant::ZERO },
            backoff: Backoff::new(min, max, seed),
            calls: Calls::default(),
            phase: Phase::Idle,
            id: match config.protocol {
                Protocol::Classic | Protocol::Register(_) => MemberId::from(""),
                Protocol::Consumer => consumer::own_id(seed),
            },
            generation: None,
            owned: Partitions::new(),
            last_assigned: None,
            answered: Instant::ZERO,
            settled: Instant::ZERO,
            joining_since: None,
            owes_sync: false,
            heartbeat_at: Instant::ZERO,
            join_at: Instant::ZERO,
            nudge_at: None,
            reason: "subscribed",
            offsets: Offsets::new(Backoff::new(min, max, !seed)),
            consumer: Consumer::default(),
            outputs: VecDeque::new(),
            config,
        }
    }

    /// Subscribes to exactly these topics and joins, also where there are none (yet). The same
    /// topics again change nothing.
    pub fn subscribe(&mut self, topics: impl IntoIterator<Item = TopicName>, now: Instant) {
        let mut topics: Vec<_> = topics.into_iter().collect();
        topics.sort_unstable();
        topics.dedup();
        let is_same = self.topics.as_ref() == Some(&topics);
        if matches!(self.phase, Phase::Failed | Phase::Closed) || is_same {
            return;
        }
        self.topics = Some(topics);
        self.watch_topics(core::iter::empty());
        match &mut self.phase {
            Phase::Idle => self.become_unjoined("subscribed", now),
            Phase::Stable(_) => self.rejoin("the subscription changed", now),
            Phase::Following => self.heartbeat_at = now,
            // Whatever is under way sees the change when it ends.
            _ => {}
        }
        self.advance(now);
    }

    /// Subscribes to nothing: gives up what it owns and leaves the group.
    pub fn unsubscribe(&mut self, now: Instant) {
        self.topics = None;
        self.leave(Then::Idle, now);
    }

    /// Gives up what it owns, leaves the group (a static member stays known to it until its
    /// session ends) and stops for good.
    pub fn close(&mut self, now: Instant) {
        self.topics = None;
        self.leave(Then::Closed, now);
    }

    /// The application has finished with the partitions of the last [`Output::Revoke`].
    pub fn revoked(&mut self, now: Instant) {
        self.lapse_if_due(now);
        if let Phase::Revoking(revoking) = &mut self.phase {
            if !core::mem::replace(&mut revoking.is_done, true) {
                self.owned = self.owned.minus(&revoking.partitions);
            }
            self.advance(now);
        }
    }

    /// What is known of the topics asked for in `round` of [`Output::Watch`].
    pub fn handle_topics(&mut self, round: u64, view: TopicsView, now: Instant) {
        if round < self.watch.seen {
            return;
        }
        self.lapse_if_due(now);
        self.watch.seen = round;
        self.watch.view = view;
        self.topics_changed(now);
        self.resolve(now);
        self.advance(now);
    }

    /// The answer to [`Output::Find`]; `None` where no broker knew.
    pub fn handle_coordinator(&mut self, call: CallId, node: Option<NodeId>, now: Instant) {
        if !matches!(self.link, Link::Finding { call: open, .. } if open == call) {
            return;
        }
        self.link = match node {
            Some(node) => Link::Known(node),
            None => Link::Unknown { retry_at: now + self.backoff.pause() },
        };
        self.advance(now);
    }

    /// The answer to a request.
    pub fn handle_reply(&mut self, call: CallId, reply: Reply, now: Instant) {
        self.lapse_if_due(now);
        let Some(call) = self.calls.close(call) else { return };
        match (call.kind, reply) {
            (Kind::Join, Reply::Join(reply)) => self.on_joined(call, reply, now),
            (Kind::Join, Reply::Register(reply)) => self.on_registered(call, reply, now),
            (Kind::Sync, Reply::Sync(reply)) => self.on_synced(call, reply, now),
            (Kind::Heartbeat, Reply::Heartbeat(reply)) => self.on_heartbeat(call, reply, now),
            (Kind::Heartbeat, Reply::RegisterHeartbeat(answer)) => {
                self.on_heartbeat(call, answer.outcome, now);
            }
            (Kind::Beat, Reply::ConsumerHeartbeat(reply)) => self.on_beat(call, reply, now),
            (Kind::Leave, _) => self.on_left(now),
            (Kind::Commit, Reply::Commit(reply)) => self.on_committed(call, reply, now),
            (Kind::Fetch, Reply::FetchOffsets(reply)) => self.on_fetched(call, reply, now),
            // An answer to another question: this coordinator is not to be trusted.
            (kind, _) => {
                self.fail_call(kind, now);
                self.give_up_coordinator(now);
            }
        }
        self.advance(now);
    }

    /// The connection of `lane` broke, or could not be opened (S22): whatever was on it may or may
    /// not have been heard. Not for connections closed by [`Output::Disconnect`].
    pub fn handle_disconnect(&mut self, lane: Lane, now: Instant) {
        self.lapse_if_due(now);
        // An idle side lane is closed by whoever likes to.
        if lane == Lane::Main || self.calls.is_using(lane) {
            self.give_up_coordinator(now);
        }
        self.advance(now);
    }

    /// The time of [`deadline`](Self::deadline) has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.lapse_if_due(now);
        if self.calls.deadline().is_some_and(|at| at <= now) {
            self.give_up_coordinator(now);
        }
        if matches!(self.link, Link::Finding { deadline, .. } if deadline <= now) {
            self.link = Link::Unknown { retry_at: now + self.backoff.pause() };
        }
        self.advance(now);
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) if nothing happens before.
    pub fn deadline(&self) -> Option<Instant> {
        let waits_for_link = !matches!(self.link, Link::Known(_));
        let link = match self.link {
            Link::Unknown { retry_at } if self.needs_coordinator() => Some(retry_at),
            Link::Finding { deadline, .. } => Some(deadline),
            _ => None,
        };
        let offsets = self.offsets.due(&self.calls);
        let when_linked = [self.join_due(), self.heartbeat_due(), self.nudge_due(), offsets];
        let when_linked = when_linked.into_iter().flatten().filter(|_| !waits_for_link).min();
        [link, when_linked, self.lapse_at(), self.leave_deadline(), self.calls.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Its id; empty until it was given one.
    pub fn id(&self) -> &MemberId {
        &self.id
    }

    /// The last generation it knows to be part of.
    pub fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// What the application owns.
    pub fn owned(&self) -> &Partitions {
        &self.owned
    }

    /// Whether it has its part of the current generation and nothing more to do.
    pub fn is_stable(&self) -> bool {
        matches!(self.phase, Phase::Stable(_)) || self.has_arrived()
    }

    /// Whether it has stopped for good.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Failed | Phase::Closed)
    }
}

impl Member {
    /// Does whatever can be done now: the one place that sends.
    fn advance(&mut self, now: Instant) {
        self.advance_revocation(now);
        self.advance_leave(now);
        self.find_coordinator(now);
        if let Link::Known(node) = self.link {
            match self.config.protocol {
                Protocol::Classic | Protocol::Register(_) => self.advance_classic(node, now),
                Protocol::Consumer => self.advance_consumer(node, now),
            }
            self.advance_offsets(node, now);
        }
    }

    fn needs_coordinator(&self) -> bool {
        let is_member = !matches!(self.phase, Phase::Idle | Phase::Failed | Phase::Closed);
        is_member || self.offsets.is_waiting()
    }

    fn find_coordinator(&mut self, now: Instant) {
        if matches!(self.link, Link::Unknown { retry_at } if retry_at <= now)
            && self.needs_coordinator()
        {
            let call = self.calls.fresh_id();
            self.link = Link::Finding { call, deadline: now + self.config.request_timeout };
            self.outputs.push_back(Output::Find { call });
        }
    }

    fn send(&mut self, node: NodeId, kind: Kind, request: Request, now: Instant) {
        let patience = match kind {
            // The coordinator keeps a join for as long as the slowest member may take.
            Kind::Join | Kind::Sync => self.config.request_timeout + self.config.rebalance_timeout,
            // S21: no answer for a session timeout is a failed coordinator.
            Kind::Heartbeat | Kind::Beat => {
                self.config.request_timeout.min(self.config.session_timeout)
            }
            Kind::Leave | Kind::Commit | Kind::Fetch => self.config.request_timeout,
        };
        let (id, lane) = (self.calls.fresh_id(), self.calls.lane(kind));
        let generation = self.generation;
        self.calls.open(Call {
            id,
            kind,
            lane,
            sent_at: now,
            deadline: now + patience,
            generation,
        });
        self.outputs.push_back(Output::Send { call: id, node, lane, request });
    }

    fn sender(&self) -> Sender {
        Sender {
            group: self.config.group.clone(),
            member: self.id.clone(),
            instance: self.config.instance.clone(),
            generation: self.generation.unwrap_or(Generation(-1)),
        }
    }

    /// The coordinator does not answer: nothing it was asked counts any more.
    fn give_up_coordinator(&mut self, now: Instant) {
        self.drop_connections(now);
        if let Link::Known(_) = self.link {
            self.link = Link::Unknown { retry_at: now + self.backoff.pause() };
        }
    }

    /// Whatever is under way will have no answer.
    fn drop_connections(&mut self, now: Instant) {
        self.outputs.push_back(Output::Disconnect);
        for call in self.calls.take_all() {
            self.fail_call(call.kind, now);
        }
    }

    /// A request will have no answer; its outcome is unknown.
    fn fail_call(&mut self, kind: Kind, now: Instant) {
        match kind {
            Kind::Join => self.join_unanswered(),
            Kind::Beat => self.beat_unanswered(),
            Kind::Leave => self.on_left(now),
            Kind::Commit => self.offsets.commit_unanswered(),
            // These are sent again as they are, by the phase that needs them.
            Kind::Sync | Kind::Heartbeat | Kind::Fetch => {}
        }
    }

    /// No heartbeat was answered for a session timeout, or no rebalance was joined for a rebalance
    /// timeout: the coordinator may have given this member's partitions away (decision 27). What it
    /// owned is lost; the coordinator is, too. Looked at before every other input, so that an
    /// answer that comes too late is too late.
    fn lapse_if_due(&mut self, now: Instant) {
        if self.lapse_at().is_none_or(|at| now < at) {
            return;
        }
        probe::hit(Mark::MemberSessionLapsed);
        if self.answered + self.config.silence_max() <= now {
            self.lose_membership("no heartbeat was answered for the session timeout", now);
            self.give_up_coordinator(now);
        } else {
            self.lose_membership("no rebalance was joined for the rebalance timeout", now);
        }
    }

    /// When ownership ends unless a heartbeat is answered, if there is any or it may yet begin
    /// without another answer.
    fn lapse_at(&self) -> Option<Instant> {
        let owns = !self.owned.is_empty() || self.is_told_more();
        let ends = owns && !probe::has(Fault::MemberIgnoresLapse);
        ends.then(|| self.safe_until())
    }

    /// Until when nobody can have been given what this member has: a coordinator drops it after a
    /// session timeout without a sign of life, or when a rebalance timeout passes from the begin
    /// of a rebalance it does not join, or of a generation it does not sync.
    fn safe_until(&self) -> Instant {
        let by_session = self.answered + self.config.silence_max();
        by_session.min(self.settled + self.config.rebalance_timeout)
    }

    /// Everything the application owns is gone.
    fn lose_ownership(&mut self, now: Instant) {
        self.drop_commits(now);
        let lost = core::mem::take(&mut self.owned);
        if !lost.is_empty() {
            self.outputs.push_back(Output::Lost(lost));
        }
    }

    /// Ends the membership with an error nothing can be done about.
    fn fail(&mut self, error: GroupError, now: Instant) {
        if error == GroupError::FencedInstanceId {
            probe::hit(Mark::MemberFenced);
        }
        self.lose_ownership(now);
        self.forget_membership_calls();
        self.phase = Phase::Failed;
        self.outputs.push_back(Output::Failed(error));
    }

    fn forget_membership_calls(&mut self) {
        for kind in [Kind::Join, Kind::Sync, Kind::Heartbeat, Kind::Beat, Kind::Leave] {
            self.calls.forget(kind);
        }
    }

    /// The topics it subscribes to, sorted.
    fn wanted(&self) -> &[TopicName] {
        self.topics.as_deref().unwrap_or_default()
    }

    fn handover(&self) -> Handover {
        self.config.handover()
    }
}
