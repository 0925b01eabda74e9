//! The consumer protocol's rules (KIP-848): one heartbeat joins, stays, reports and leaves.
//!
//! The coordinator tells what the member may own; the member gives up the rest, takes what is new,
//! and reports what it owns, in that order. What a heartbeat does not say has not changed; after
//! one whose answer was lost the next says everything. Knows nothing of other members.

use super::link::Call;
use super::request::{Beat, Request};
use super::state::{Phase, Revoking, Then};
use super::verdict::{self, Kind, Verdict};
use super::{Member, Output, Protocol};
use crate::assign::Partitions;
use crate::message::GroupError;
use crate::message::consumer::{self, Standing};
use crate::probe::{self, Fault, Mark};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use core::time::Duration;
use ottla_model::{Instant, MemberId, NodeId, PartitionId, TopicId, TopicName};

/// What a member of this protocol keeps beside what all members do.
#[derive(Debug, Default)]
#[cfg_attr(feature = "probe", derive(Clone))]
pub(super) struct Consumer {
    /// What the coordinator last told it that it may own.
    told: consumer::Partitions,
    /// The ids of the topics it owns partitions of.
    ids: BTreeMap<TopicName, TopicId>,
    /// The topics it last said it wants; `None` where it must say everything again.
    said: Option<alloc::vec::Vec<TopicName>>,
    /// Whether what it owns is to be reported once nothing is left to give up.
    owes_report: bool,
    /// Whether it owns all it was told: it may not know every topic yet.
    is_whole: bool,
    /// Whether the heartbeat under way left the coordinator nothing to wait for.
    is_at_peace: bool,
    /// Whether the coordinator may know this member.
    is_known: bool,
}

impl Member {
    /// The id of a topic it owns partitions of; `None` in a protocol that goes by names.
    pub fn topic_id(&self, topic: &str) -> Option<TopicId> {
        self.consumer.ids.get(topic).copied()
    }

    pub(super) fn is_consumer(&self) -> bool {
        self.config.protocol == Protocol::Consumer
    }

    /// Sends what the phase calls for.
    pub(super) fn advance_consumer(&mut self, node: NodeId, now: Instant) {
        if matches!(self.phase, Phase::Unjoined) && self.join_at <= now {
            self.phase = Phase::Following;
            self.generation = None;
            self.heartbeat_at = now;
        }
        if self.beat_due().is_some_and(|at| at <= now) {
            self.send_beat(node, now);
        }
        if let Phase::Leaving { is_sent: is_sent @ false, .. } = &mut self.phase {
            *is_sent = true;
            let standing = match self.config.instance {
                Some(_) => Standing::LeavingForNow,
                None => Standing::Leaving,
            };
            let request = Request::Beat(Beat::bare(self.sender(), standing));
            self.send(node, Kind::Leave, request, now);
        }
    }

    /// When the next heartbeat is to be sent, if one is.
    pub(super) fn beat_due(&self) -> Option<Instant> {
        let beats = match self.phase {
            Phase::Following => true,
            Phase::Revoking(_) => self.generation.is_some(),
            _ => false,
        };
        (beats && !self.calls.has(Kind::Beat)).then_some(self.heartbeat_at)
    }

    /// Whether it takes more than it owns as soon as it knows the topics.
    pub(super) fn is_told_more(&self) -> bool {
        !self.consumer.is_whole && !self.consumer.told.is_empty()
    }

    /// Whether it owns what it was told to, and has said so.
    pub(super) fn has_arrived(&self) -> bool {
        let consumer = &self.consumer;
        matches!(self.phase, Phase::Following)
            && self.generation.is_some()
            && consumer.is_whole
            && !consumer.owes_report
            && consumer.said.as_deref() == Some(self.wanted())
    }

    /// Whether the coordinator may count this member among its own.
    pub(super) fn may_be_known(&self) -> bool {
        self.consumer.is_known
    }

    /// The coordinator does not know this member, or not as it stands.
    pub(super) fn forget_consumer(&mut self) {
        self.consumer = Consumer::default();
    }

    /// An answer is lost: what it would have told, the next has to.
    pub(super) fn beat_unanswered(&mut self) {
        self.consumer.said = None;
    }

    /// The application gave up what it had to: what it has is reported at once.
    pub(super) fn follow_again(&mut self, now: Instant) {
        self.phase = Phase::Following;
        self.heartbeat_at = now;
        self.reconcile(now);
    }

    fn send_beat(&mut self, node: NodeId, now: Instant) {
        let is_settled = matches!(self.phase, Phase::Following);
        let joins = self.generation.is_none();
        let says_all = joins || self.consumer.said.is_none();
        let is_early = probe::has(Fault::MemberReportsEarly);
        let reports = says_all || (is_settled || is_early) && self.consumer.owes_report;
        let is_leaving = self.topics.is_none();
        let topics = says_all || self.consumer.said.as_deref() != Some(self.wanted());
        let standing = self.generation.map_or(Standing::Joining, Standing::Member);
        let beat = Beat {
            rack: self.config.rack.clone().filter(|_| says_all),
            rebalance_timeout: says_all.then_some(self.config.rebalance_timeout),
            topics: (topics && !is_leaving).then(|| self.wanted().to_vec()),
            assignor: self.config.remote_assignor.clone().filter(|_| says_all),
            owned: reports.then(|| self.claims()),
            ..Beat::bare(self.sender(), standing)
        };
        self.consumer.said = Some(self.wanted().to_vec());
        self.consumer.owes_report &= !(reports && is_settled);
        self.consumer.is_at_peace = is_settled && !self.consumer.owes_report;
        self.consumer.is_known = true;
        self.heartbeat_at = now + self.config.heartbeat_interval;
        self.joining_since.get_or_insert(now);
        self.send(node, Kind::Beat, Request::Beat(beat), now);
    }

    pub(super) fn on_beat(
        &mut self,
        call: Call,
        reply: Result<consumer::Beat, GroupError>,
        now: Instant,
    ) {
        if !matches!(self.phase, Phase::Following | Phase::Revoking(_)) {
            return;
        }
        let beat = match reply {
            Ok(beat) => beat,
            Err(error) => return self.on_beat_refused(error, now),
        };
        let Standing::Member(epoch) = beat.standing else {
            return self.beat_unanswered();
        };
        self.backoff.reset();
        self.id = beat.member;
        self.generation = Some(epoch);
        self.answered = self.answered.max(call.sent_at);
        // What the coordinator waits for it may wait for since the first of those it heard.
        let since = self.joining_since.take().unwrap_or(call.sent_at);
        if self.consumer.is_at_peace {
            self.settled = self.settled.max(since);
        }
        // From when it was sent: an answer that was kept leaves no silence behind it. Ownership
        // ends with the rebalance timeout; where that is short, the interval told is too long.
        let interval = beat.interval.min(self.config.rebalance_timeout / TIMEOUT_SHARE);
        self.heartbeat_at = (call.sent_at + interval.max(INTERVAL_MIN)).max(now);
        if let Some(told) = beat.assignment {
            self.consumer.told = told;
            self.consumer.owes_report = true;
            self.consumer.is_whole = false;
        }
        if self.consumer.said.as_deref() != Some(self.wanted()) {
            self.heartbeat_at = now;
        }
        self.reconcile(now);
        self.ask_for_unknown_topics();
    }

    /// The coordinator may know topics earlier than whoever told this member of them: they are
    /// asked for again with each answer that leaves some unknown.
    fn ask_for_unknown_topics(&mut self) {
        if !self.consumer.is_whole && self.watch.is_fresh() && !self.resolved().2 {
            self.watch_again(self.watch.topics.clone());
        }
    }

    fn on_beat_refused(&mut self, error: GroupError, now: Instant) {
        self.consumer.said = None;
        self.heartbeat_at = now + self.backoff.pause();
        // To a member: the group is no more. To one that joins: it is not for such members.
        let is_gone = error == GroupError::GroupIdNotFound && self.generation.is_some();
        let verdict = match is_gone {
            true => Verdict::LoseIdentity,
            false => verdict::on(Kind::Beat, error),
        };
        if matches!(verdict, Verdict::LoseGeneration | Verdict::LoseIdentity) {
            self.join_at = now + self.backoff.pause();
        }
        self.carry_out(verdict, error, now);
    }

    /// Topics are known that were not, perhaps.
    pub(super) fn resolve(&mut self, now: Instant) {
        if !self.consumer.is_whole {
            self.reconcile(now);
        }
    }

    /// One step from what it owns to what it was told: first what goes, then what comes.
    fn reconcile(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Following) || self.consumer.is_whole {
            return;
        }
        let (target, ids, is_whole) = self.resolved();
        let known = &self.consumer.ids;
        let goes = self.owned.filtered(|topic, partition| {
            known.get(topic) != ids.get(topic) || !target.contains(topic, partition)
        });
        if !goes.is_empty() {
            self.outputs.push_back(Output::Revoke(goes.clone()));
            let deadline = now + self.config.rebalance_timeout;
            self.phase = Phase::Revoking(Revoking {
                partitions: goes,
                is_done: false,
                then: Then::Join,
                deadline,
            });
            return;
        }
        let comes = target.minus(&self.owned);
        for (topic, partition) in comes.iter() {
            self.owned.insert(topic, partition);
        }
        self.consumer.ids = ids;
        self.consumer.is_whole = is_whole;
        self.consumer.owes_report |= !comes.is_empty();
        self.outputs.push_back(Output::Assigned(comes));
        self.resume_commits(now);
        if self.consumer.owes_report {
            self.heartbeat_at = now;
        }
    }

    /// What it was told, by the names of its topics, as far as they are known.
    fn resolved(&self) -> (Partitions, BTreeMap<TopicName, TopicId>, bool) {
        let (mut target, mut ids, mut is_whole) = (Partitions::new(), BTreeMap::new(), true);
        for (id, partitions) in &self.consumer.told {
            let owned = self.consumer.ids.iter().find(|(_, known)| *known == id);
            let seen = self.watch.view.topic_by_id(*id).map(|topic| &topic.name);
            let Some(topic) = owned.map(|(name, _)| name).or(seen) else {
                probe::hit(Mark::MemberMetUnknownTopic);
                is_whole = false;
                continue;
            };
            ids.insert(topic.clone(), *id);
            for partition in partitions {
                target.insert(topic, *partition);
            }
        }
        (target, ids, is_whole)
    }

    /// What it may own at any time from now on until it hears otherwise: what it was told, whether
    /// or not it took it already, and what it is giving up.
    fn claims(&self) -> consumer::Partitions {
        let mut claims: BTreeMap<TopicId, BTreeSet<PartitionId>> = BTreeMap::new();
        for (id, partitions) in &self.consumer.told {
            claims.entry(*id).or_default().extend(partitions);
        }
        let goes = match &self.phase {
            Phase::Revoking(revoking) => Some(&revoking.partitions),
            _ => None,
        };
        let held = self.owned.by_topic().chain(goes.into_iter().flat_map(Partitions::by_topic));
        for (topic, partitions) in held.filter(|_| !probe::has(Fault::MemberReportsEarly)) {
            if let Some(id) = self.consumer.ids.get(topic) {
                claims.entry(*id).or_default().extend(partitions);
            }
        }
        let claims = claims.into_iter();
        claims.map(|(id, partitions)| (id, partitions.into_iter().collect())).collect()
    }
}

/// An id that no other member has: members of this protocol name themselves (KIP-1082).
pub(super) fn own_id(seed: u64) -> MemberId {
    let mut random = super::Backoff::new(Duration::ZERO, Duration::ZERO, seed);
    MemberId::from(format!("{:016x}{:016x}", random.draw(), random.draw()))
}

/// Of its rebalance timeout, what a member is silent at most.
const TIMEOUT_SHARE: u32 = 3;
/// A coordinator that asks for more asks for a storm.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
