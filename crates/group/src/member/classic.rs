//! The classic protocol's rules: when to join, what to make of each answer, how to leave.
//!
//! A member that is refused never guesses: what each error asks for is decided in
//! [`verdict`](super::verdict) and carried out here. Knows nothing of coordinators' insides.

use super::link::Call;
use super::request::{Join, Request, Sync};
use super::state::{Phase, Revoking, Round, Then};
use super::verdict::{self, Kind, Verdict};
use super::{Member, Output, Protocol};
use crate::assign::subscription::{self, Assignment, Subscription};
use crate::assign::{Assignor, Handover, Partitions};
use crate::message::GroupError;
use crate::message::classic::{JoinRefused, Joined, Synced};
use crate::probe::{self, Fault, Mark};
use alloc::vec::Vec;
use ottla_model::{Generation, Instant, MemberId, NodeId};

impl Member {
    /// Sends what the phase calls for.
    pub(super) fn advance_classic(&mut self, node: NodeId, now: Instant) {
        if self.nudge_due().is_some_and(|at| at <= now) {
            probe::hit(Mark::MemberNudged);
            self.rejoin("partitions that were withheld are still nobody's", now);
        }
        if self.join_due().is_some_and(|at| at <= now) {
            match &self.phase {
                Phase::Unjoined => self.send_join(node, now),
                Phase::Syncing { request, .. } => {
                    self.send(node, Kind::Sync, request.clone(), now);
                }
                _ => {}
            }
        }
        if self.heartbeat_due().is_some_and(|at| at <= now) {
            self.send_heartbeat(node, now);
        }
        if let Phase::Leaving { is_sent: is_sent @ false, .. } = &mut self.phase {
            *is_sent = true;
            let request = Request::Leave(self.sender(), "the consumer unsubscribed or closed");
            self.send(node, Kind::Leave, request, now);
        }
    }

    /// When a join or a sync is to be sent, if one is.
    pub(super) fn join_due(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Unjoined => Some(self.join_at),
            Phase::Syncing { send_at, .. } if !self.calls.has(Kind::Sync) => Some(*send_at),
            _ => None,
        }
    }

    /// When a leader that withheld partitions starts the rebalance that hands them on by itself.
    /// Their owner does so once it gave them up (KIP-429); but it may have come back as another
    /// process under the same instance id, which owns nothing and knows of nothing to give up.
    pub(super) fn nudge_due(&self) -> Option<Instant> {
        self.nudge_at.filter(|_| matches!(self.phase, Phase::Stable(_)))
    }

    /// When a heartbeat is to be sent, if one is. While a join is under way it renews no session,
    /// but its answer shows that nobody was given what this member still owns.
    pub(super) fn heartbeat_due(&self) -> Option<Instant> {
        if self.is_consumer() {
            return self.beat_due();
        }
        let is_joining = matches!(self.phase, Phase::Joining { .. } | Phase::Unjoined);
        let beats = self.phase.is_member() || is_joining && !self.owned.is_empty();
        let is_due = beats && self.generation.is_some() && !self.calls.has(Kind::Heartbeat);
        is_due.then_some(self.heartbeat_at)
    }

    pub(super) fn become_unjoined(&mut self, reason: &'static str, now: Instant) {
        self.calls.forget(Kind::Sync);
        self.phase = Phase::Unjoined;
        self.reason = reason;
        // A pause that an earlier refusal asked for still counts.
        self.join_at = self.join_at.max(now);
    }

    /// Takes part in a rebalance, after giving up what has to be given up before (KIP-429).
    pub(super) fn rejoin(&mut self, reason: &'static str, now: Instant) {
        let giving_up = match self.handover() {
            Handover::Eager => self.owned.clone(),
            Handover::Cooperative => {
                self.owned.filtered(|topic, _| self.wanted().binary_search(topic).is_err())
            }
        };
        self.become_unjoined(reason, now);
        self.revoke(giving_up, Then::Join, now);
    }

    /// Asks the application for `partitions`, if there are any; then comes `then`.
    fn revoke(&mut self, partitions: Partitions, then: Then, now: Instant) {
        if partitions.is_empty() {
            return;
        }
        self.calls.forget(Kind::Sync);
        self.outputs.push_back(Output::Revoke(partitions.clone()));
        let deadline = now + self.config.rebalance_timeout;
        let is_done = probe::has(Fault::MemberJoinsBeforeRevoked);
        self.phase = Phase::Revoking(Revoking { partitions, is_done, then, deadline });
    }

    /// Goes on once the application is done and its last commits are answered: a commit that a
    /// join overtakes would be refused.
    pub(super) fn advance_revocation(&mut self, now: Instant) {
        let Phase::Revoking(revoking) = &self.phase else { return };
        if !revoking.is_done {
            return;
        }
        if self.offsets.has_commit_under_way() && now < revoking.deadline {
            return probe::hit(Mark::MemberCommitBeforeJoin);
        }
        let then = revoking.then;
        self.drop_commits_of_others(now);
        match then {
            Then::Join if self.is_consumer() => self.follow_again(now),
            Then::Join => self.become_unjoined(self.reason, now),
            then => self.begin_leave(then, now),
        }
    }

    fn send_join(&mut self, node: NodeId, now: Instant) {
        if let Protocol::Register(detection) = self.config.protocol {
            return self.send_registration(detection, node, now);
        }
        let protocols = self.config.assignors.iter().map(|assignor| {
            (assignor.name(), self.subscription(*assignor).encode(subscription::VERSION_MAX))
        });
        let request = Request::Join(Join {
            sender: self.sender(),
            protocols: protocols.collect(),
            session_timeout: self.config.session_timeout,
            rebalance_timeout: self.config.rebalance_timeout,
            reason: self.reason,
        });
        self.begin_join(node, request, now);
    }

    pub(super) fn begin_join(&mut self, node: NodeId, request: Request, now: Instant) {
        self.phase = Phase::Joining { topics: self.wanted().to_vec(), claimed: self.owned.clone() };
        self.joining_since.get_or_insert(now);
        self.send(node, Kind::Join, request, now);
    }

    fn subscription(&self, assignor: Assignor) -> Subscription {
        let since = self.last_assigned.as_ref().map(|(_, generation)| *generation);
        let nothing = Partitions::new();
        let last = self.last_assigned.as_ref().map_or(&nothing, |(partitions, _)| partitions);
        Subscription {
            topics: self.wanted().to_vec(),
            user_data: subscription::user_data(assignor, last, since),
            owned: self.owned.clone(),
            generation: since,
            rack: self.config.rack.clone(),
        }
    }

    pub(super) fn on_joined(
        &mut self,
        call: Call,
        reply: Result<Joined, JoinRefused>,
        now: Instant,
    ) {
        let Phase::Joining { topics, claimed } = &mut self.phase else { return };
        let (topics, claimed) = (core::mem::take(topics), core::mem::take(claimed));
        let joined = match reply {
            Ok(joined) => joined,
            Err(refused) => return self.on_join_refused(refused, now),
        };
        self.backoff.reset();
        let known = Assignor::named(&joined.protocol);
        let Some(assignor) = known.filter(|known| self.config.assignors.contains(known)) else {
            return self.fail(GroupError::InconsistentGroupProtocol, now);
        };
        self.id = joined.member;
        self.note_generation(&call, joined.generation);
        self.heartbeat_at = now + self.config.heartbeat_interval;
        let round = Round { topics, claimed, led: None };
        if joined.leader == self.id {
            self.lead(round, assignor, joined.members, joined.skip_assignment, now);
        } else {
            self.watch_topics(core::iter::empty());
            self.sync(round, assignor, Vec::new(), now);
        }
    }

    pub(super) fn on_join_refused(&mut self, refused: JoinRefused, now: Instant) {
        self.phase = Phase::Unjoined;
        match verdict::on(Kind::Join, refused.error) {
            Verdict::AdoptId => {
                probe::hit(Mark::MemberIdAdopted);
                self.id = refused.member;
                self.join_at = now;
            }
            verdict => {
                self.join_at = now + self.backoff.pause();
                self.carry_out(verdict, refused.error, now);
            }
        }
    }

    /// Hands in the assignment, or asks for one's part.
    pub(super) fn sync(
        &mut self,
        round: Round,
        assignor: Assignor,
        assignments: Vec<(MemberId, crate::message::Blob)>,
        now: Instant,
    ) {
        let protocol = assignor.name();
        let request = Request::Sync(Sync { sender: self.sender(), protocol, assignments });
        self.phase = Phase::Syncing { round, request, send_at: now };
    }

    pub(super) fn on_synced(
        &mut self,
        call: Call,
        reply: Result<Synced, GroupError>,
        now: Instant,
    ) {
        let Phase::Syncing { round, send_at, .. } = &mut self.phase else { return };
        match reply {
            Ok(synced) => {
                let round = round.clone();
                self.owes_sync = false;
                self.note_at_rest(&call);
                self.on_assignment(round, &synced.assignment, now);
            }
            Err(error) => {
                *send_at = now + self.backoff.pause();
                if error == GroupError::RebalanceInProgress {
                    probe::hit(Mark::MemberRebalanceInSync);
                }
                self.carry_out(verdict::on(Kind::Sync, error), error, now);
            }
        }
    }

    fn on_assignment(&mut self, round: Round, bytes: &[u8], now: Instant) {
        let Ok(Assignment { partitions, .. }) = Assignment::decode(bytes) else {
            // The leader is at fault, and the next one may be a better one.
            self.rejoin("the assignment cannot be read", now);
            self.join_at = now + self.backoff.pause();
            return;
        };
        self.take_part(round, partitions, now);
    }

    /// The member was told its part of the generation, perhaps too late.
    pub(super) fn take_part(&mut self, round: Round, partitions: Partitions, now: Instant) {
        self.backoff.reset();
        if self.safe_until() <= now {
            probe::hit(Mark::MemberConfirmed);
            self.heartbeat_at = now;
            self.phase = Phase::Confirming { round, assigned: partitions };
            return;
        }
        self.adopt(round, partitions, now);
    }

    /// The member's part of the generation takes effect.
    fn adopt(&mut self, round: Round, assigned: Partitions, now: Instant) {
        let added = assigned.minus(&self.owned);
        let taken_away = self.owned.minus(&assigned);
        for (topic, partition) in added.iter() {
            self.owned.insert(topic, partition);
        }
        self.last_assigned = self.generation.map(|generation| (assigned, generation));
        self.outputs.push_back(Output::Assigned(added));
        self.resume_commits(now);
        // What was lost since the join is kept from others like what is given up only now.
        let waits = !round.claimed.minus(&self.owned).is_empty();
        let withholds = round.led.as_ref().is_some_and(|led| led.withholds);
        self.nudge_at = withholds.then(|| now + self.config.session_timeout);
        self.phase = Phase::Stable(round);
        if !taken_away.is_empty() {
            probe::hit(Mark::MemberSecondRebalance);
            self.reason = "partitions were given up for others";
            return self.revoke(taken_away, Then::Join, now);
        }
        if waits {
            probe::hit(Mark::MemberLostWhileJoining);
            return self.rejoin("partitions were lost that others wait for", now);
        }
        self.rejoin_if_outdated(now);
    }

    /// Starts another rebalance where the world moved on while this one was made.
    pub(super) fn rejoin_if_outdated(&mut self, now: Instant) {
        let Phase::Stable(round) = &self.phase else { return };
        if round.topics != self.wanted() {
            self.rejoin("the subscription changed", now);
        } else if self.has_led_outdated_topics() {
            self.rejoin("topics changed", now);
        }
    }

    pub(super) fn on_heartbeat(&mut self, call: Call, reply: Result<(), GroupError>, now: Instant) {
        // Sent in a generation that is over: it says nothing about this one.
        if call.generation != self.generation {
            return;
        }
        let renews = self.config.is_renewed_by_rebalance();
        if reply.is_ok() || renews && reply == Err(GroupError::RebalanceInProgress) {
            self.answered = self.answered.max(call.sent_at);
        }
        match reply {
            Ok(()) => {
                self.backoff.reset();
                // While it owes its sync the group is not at rest, whatever heartbeats say, and
                // even where it joins again by now.
                if !self.owes_sync {
                    self.note_at_rest(&call);
                }
                self.confirm(now);
            }
            Err(error) => {
                let verdict = verdict::on(Kind::Heartbeat, error);
                if verdict == Verdict::RetrySame {
                    self.heartbeat_at = now + self.backoff.pause();
                }
                self.carry_out(verdict, error, now);
            }
        }
    }

    /// A join was answered: the barrier of `generation` closed, and the time to sync began, after
    /// the first join for it was sent. One that is told once more, because the member joined again
    /// instead of syncing, began when it did: that join bought no time.
    pub(super) fn note_generation(&mut self, call: &Call, generation: Generation) {
        let is_told_again = self.owes_sync && self.is_current(Some(generation));
        self.answered = self.answered.max(call.sent_at);
        let since = self.joining_since.take().unwrap_or(call.sent_at);
        if !is_told_again {
            self.settled = self.settled.max(since);
        }
        self.generation = Some(generation);
        self.owes_sync = true;
    }

    /// The coordinator had this member in a group at rest after `call` was sent.
    fn note_at_rest(&mut self, call: &Call) {
        self.answered = self.answered.max(call.sent_at);
        self.settled = self.settled.max(call.sent_at);
    }

    /// The heartbeat that had to be answered first was; was it answered in time?
    fn confirm(&mut self, now: Instant) {
        let is_safe = now < self.safe_until();
        if let Phase::Confirming { round, assigned } = &mut self.phase {
            if is_safe {
                let (round, assigned) = (round.clone(), core::mem::take(assigned));
                self.adopt(round, assigned, now);
            } else {
                self.heartbeat_at = now;
            }
        }
    }

    /// What a refusal asks for, whatever was refused. The caller has set when to try again.
    pub(super) fn carry_out(&mut self, verdict: Verdict, error: GroupError, now: Instant) {
        // Its own answer, on the way, says more than that of another request.
        let is_joining = matches!(self.phase, Phase::Joining { .. });
        match verdict {
            Verdict::RetrySame | Verdict::AdoptId => {}
            Verdict::Rediscover => self.give_up_coordinator(now),
            Verdict::Rejoin => match &self.phase {
                Phase::Assigning { .. } | Phase::Syncing { .. } => {
                    self.rejoin("the group is rebalancing", now);
                }
                Phase::Confirming { .. } | Phase::Stable(_) => {
                    self.rejoin("the group is rebalancing", now);
                }
                _ => {}
            },
            Verdict::LoseGeneration | Verdict::LoseIdentity if is_joining => {}
            Verdict::LoseGeneration => {
                probe::hit(Mark::MemberIllegalGeneration);
                self.lose_membership("the generation is over", now);
            }
            Verdict::LoseIdentity => {
                probe::hit(Mark::MemberUnknown);
                self.forget_id();
                self.lose_membership("the coordinator does not know this member", now);
            }
            Verdict::Fail => self.fail(error, now),
        }
    }

    /// The group went on without this member: others may own what it had.
    pub(super) fn lose_membership(&mut self, reason: &'static str, now: Instant) {
        self.generation = None;
        self.forget_consumer();
        self.lose_ownership(now);
        match &mut self.phase {
            Phase::Revoking(revoking) if revoking.then != Then::Join => {
                revoking.partitions = Partitions::new();
                revoking.is_done = true;
            }
            Phase::Joining { .. } | Phase::Leaving { .. } => {}
            Phase::Idle | Phase::Failed | Phase::Closed => {}
            _ => {
                self.calls.forget(Kind::Heartbeat);
                self.calls.forget(Kind::Beat);
                self.become_unjoined(reason, now);
            }
        }
    }

    /// Sets out to leave: gives up what is owned first.
    pub(super) fn leave(&mut self, then: Then, now: Instant) {
        match &mut self.phase {
            Phase::Closed => return,
            Phase::Failed if then != Then::Closed => return,
            Phase::Leaving { then: planned, .. } => *planned = (*planned).max(then),
            Phase::Revoking(revoking) => revoking.then = revoking.then.max(then),
            Phase::Idle | Phase::Failed => self.finish_leave(then, now),
            Phase::Joining { .. } | Phase::Syncing { .. } => {
                // The leave must not wait behind what the coordinator keeps parked.
                self.drop_connections(now);
                self.begin_leave(then, now);
            }
            _ => self.begin_leave(then, now),
        }
        self.advance(now);
    }

    fn begin_leave(&mut self, then: Then, now: Instant) {
        if !self.owned.is_empty() {
            return self.revoke(self.owned.clone(), then, now);
        }
        self.calls.forget(Kind::Sync);
        let deadline = now + self.config.request_timeout;
        self.phase = Phase::Leaving { then, deadline, is_sent: false };
    }

    /// A static member never says that it leaves: it is expected back (KIP-345). One that has no
    /// id is no member yet.
    pub(super) fn advance_leave(&mut self, now: Instant) {
        let Phase::Leaving { then, deadline, .. } = self.phase else { return };
        let is_unknown = match self.is_consumer() {
            true => !self.may_be_known(),
            false => self.id.is_empty() || self.config.instance.is_some(),
        };
        if is_unknown || deadline <= now {
            self.finish_leave(then, now);
        }
    }

    pub(super) fn leave_deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Leaving { deadline, .. } => Some(*deadline),
            Phase::Revoking(revoking) if revoking.is_done => Some(revoking.deadline),
            _ => None,
        }
    }

    /// The leave was answered, or its connection is gone: either way nothing is left to do.
    pub(super) fn on_left(&mut self, now: Instant) {
        if let Phase::Leaving { then, .. } = self.phase {
            self.finish_leave(then, now);
        }
    }

    fn finish_leave(&mut self, then: Then, now: Instant) {
        self.forget_membership_calls();
        self.forget_id();
        self.forget_consumer();
        self.generation = None;
        self.drop_commits(now);
        self.outputs.push_back(Output::Left);
        self.phase = if then == Then::Closed { Phase::Closed } else { Phase::Idle };
        if then == Then::Idle && self.topics.is_some() {
            self.become_unjoined("subscribed", now);
        }
    }

    /// What the coordinator called it by; whoever names itself keeps its name.
    fn forget_id(&mut self) {
        if !self.is_consumer() {
            self.id = MemberId::from("");
        }
    }

    /// The join is lost with its connection.
    pub(super) fn join_unanswered(&mut self) {
        if matches!(self.phase, Phase::Joining { .. }) {
            self.phase = Phase::Unjoined;
        }
    }

    /// The generation a request was sent in is still the member's own.
    pub(super) fn is_current(&self, generation: Option<Generation>) -> bool {
        generation == self.generation
    }
}
