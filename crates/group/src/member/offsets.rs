//! Commits and offset fetches: one of each under way at a time, in the order they were asked for.
//!
//! A commit whose answer is lost is sent again, which is harmless: it says the same. It never
//! outlives the ownership it was made under: once another member may own the partition, an old
//! offset must not be written over a newer one.

use super::backoff::Backoff;
use super::link::Call;
use super::request::{Request, TopicOffsets};
use super::state::Phase;
use super::verdict::{self, Kind, Verdict};
use super::{Calls, Member, Output};
use crate::assign::Partitions;
use crate::message::GroupError;
use crate::message::offsets::{Committed, Fetched};
use crate::probe::{self, Mark};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use ottla_model::{Instant, NodeId};

/// Names one commit or offset fetch of one member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OffsetsId(pub u64);

/// Why a commit has no outcome per partition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CommitFailed {
    /// It names a partition that is not, or no longer, the member's: whoever owns it now commits
    /// for it. Whether the offset was stored before is unknown. Nothing to do.
    NotOwned,
    /// The coordinator refuses it for good: see the error's own advice.
    Refused(GroupError),
}

impl fmt::Display for CommitFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOwned => f.write_str("a partition of the commit is no longer owned"),
            Self::Refused(error) => write!(f, "the coordinator refused the commit: {error}"),
        }
    }
}

impl core::error::Error for CommitFailed {}

/// What waits for, or is on its way to, the coordinator.
#[derive(Debug)]
#[cfg_attr(feature = "probe", derive(Clone))]
pub(super) struct Offsets {
    last: u64,
    commits: VecDeque<Commit>,
    fetches: VecDeque<(OffsetsId, Partitions)>,
    retry_at: Instant,
    backoff: Backoff,
}

#[derive(Debug)]
#[cfg_attr(feature = "probe", derive(Clone))]
struct Commit {
    id: OffsetsId,
    topics: Vec<TopicOffsets>,
    /// Waits for the end of a rebalance.
    is_parked: bool,
}

impl Offsets {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            last: 0,
            commits: VecDeque::new(),
            fetches: VecDeque::new(),
            retry_at: Instant::ZERO,
            backoff,
        }
    }

    fn fresh_id(&mut self) -> OffsetsId {
        self.last += 1;
        OffsetsId(self.last)
    }

    /// Whether a commit is sent, or could be.
    pub(super) fn has_commit_under_way(&self) -> bool {
        self.commits.front().is_some_and(|commit| !commit.is_parked)
    }

    /// A fetch waits for the commits before it: its reader must see them.
    fn has_fetch_to_send(&self) -> bool {
        !self.fetches.is_empty() && !self.has_commit_under_way()
    }

    /// Whether anything needs a coordinator.
    pub(super) fn is_waiting(&self) -> bool {
        self.has_commit_under_way() || !self.fetches.is_empty()
    }

    /// When something is to be sent, if something is.
    pub(super) fn due(&self, calls: &Calls) -> Option<Instant> {
        let commit = self.has_commit_under_way() && !calls.has(Kind::Commit);
        let fetch = self.has_fetch_to_send() && !calls.has(Kind::Fetch);
        (commit || fetch).then_some(self.retry_at)
    }

    pub(super) fn commit_unanswered(&self) {
        probe::hit(Mark::MemberCommitRetried);
    }
}

impl Member {
    /// Commits these offsets; [`Output::Committed`] will tell. Commits are sent in order, one at
    /// a time. One made during a rebalance is sent as soon as the coordinator takes it, if its
    /// partitions are still owned then. A member that subscribes to nothing commits without
    /// membership, which a coordinator takes only for a group without members.
    pub fn commit(&mut self, topics: Vec<TopicOffsets>, now: Instant) -> OffsetsId {
        let id = self.offsets.fresh_id();
        if !matches!(self.phase, Phase::Idle) && !self.owns(&topics) {
            self.refuse_commit(id, CommitFailed::NotOwned);
            return id;
        }
        self.offsets.commits.push_back(Commit { id, topics, is_parked: false });
        self.advance(now);
        id
    }

    /// Reads the committed offsets of these partitions; [`Output::Fetched`] will tell.
    pub fn fetch(&mut self, partitions: Partitions, now: Instant) -> OffsetsId {
        let id = self.offsets.fresh_id();
        self.offsets.fetches.push_back((id, partitions));
        self.advance(now);
        id
    }

    /// Sends the next commit and the next fetch, if none is under way.
    pub(super) fn advance_offsets(&mut self, node: NodeId, now: Instant) {
        if self.offsets.due(&self.calls).is_none_or(|at| now < at) {
            return;
        }
        if self.offsets.has_commit_under_way() && !self.calls.has(Kind::Commit) {
            let topics = self.offsets.commits[0].topics.clone();
            self.send(node, Kind::Commit, Request::Commit(self.sender(), topics), now);
        }
        if self.offsets.has_fetch_to_send() && !self.calls.has(Kind::Fetch) {
            let (_, partitions) = &self.offsets.fetches[0];
            let topics = partitions.by_topic().map(|(name, ids)| (name.clone(), ids.to_vec()));
            let request = Request::Fetch(self.config.group.clone(), topics.collect());
            self.send(node, Kind::Fetch, request, now);
        }
    }

    pub(super) fn on_committed(
        &mut self,
        call: Call,
        reply: Result<Committed, GroupError>,
        now: Instant,
    ) {
        let error = match reply {
            Ok(committed) => {
                self.offsets.backoff.reset();
                return self.end_commit(Ok(committed));
            }
            Err(error) => error,
        };
        match verdict::on(Kind::Commit, error) {
            Verdict::Rejoin if matches!(self.phase, Phase::Idle) => {
                self.end_commit(Err(CommitFailed::Refused(error)));
            }
            Verdict::RetrySame => self.pause_offsets(now),
            Verdict::Rediscover => self.give_up_coordinator(now),
            verdict @ Verdict::Rejoin => {
                self.park_commits();
                // A coordinator that refuses commits waits for the assignment of this generation.
                // A member that is about to sync would keep it waiting by joining again.
                if !matches!(self.phase, Phase::Assigning { .. } | Phase::Syncing { .. }) {
                    self.carry_out(verdict, error, now);
                }
            }
            verdict @ (Verdict::LoseGeneration | Verdict::LoseIdentity) => {
                self.on_commit_fenced(call, verdict, error, now);
            }
            Verdict::Fail | Verdict::AdoptId => {
                self.end_commit(Err(CommitFailed::Refused(error)));
                if error == GroupError::FencedInstanceId {
                    self.fail(error, now);
                }
            }
        }
    }

    /// The generation of a commit was refused. If it is the member's own, so is its membership;
    /// if the member has moved on since, the commit is sent again in the new one.
    fn on_commit_fenced(&mut self, call: Call, verdict: Verdict, error: GroupError, now: Instant) {
        match self.phase {
            // The answer to the join says which it is.
            Phase::Joining { .. } => self.park_commits(),
            Phase::Idle => self.end_commit(Err(CommitFailed::Refused(error))),
            _ if self.is_current(call.generation) => self.carry_out(verdict, error, now),
            _ => {}
        }
    }

    pub(super) fn on_fetched(
        &mut self,
        _call: Call,
        reply: Result<Fetched, GroupError>,
        now: Instant,
    ) {
        if let Err(error) = &reply {
            match verdict::on(Kind::Fetch, *error) {
                Verdict::RetrySame => return self.pause_offsets(now),
                Verdict::Rediscover => return self.give_up_coordinator(now),
                _ => {}
            }
        }
        if let Some((id, _)) = self.offsets.fetches.pop_front() {
            self.outputs.push_back(Output::Fetched { id, outcome: reply });
        }
    }

    /// A new part took effect: commits that waited go on if their partitions are still in it.
    pub(super) fn resume_commits(&mut self, now: Instant) {
        self.drop_commits_of_others(now);
        for commit in &mut self.offsets.commits {
            commit.is_parked = false;
        }
    }

    /// Gives up commits of partitions that are not this member's (any more). Even if it gets them
    /// back, another may have had them in between.
    pub(super) fn drop_commits_of_others(&mut self, now: Instant) {
        let commits = core::mem::take(&mut self.offsets.commits);
        if commits.front().is_some_and(|first| !self.owns(&first.topics)) {
            self.abandon_commit(now);
        }
        for commit in commits {
            if self.owns(&commit.topics) {
                self.offsets.commits.push_back(commit);
            } else {
                self.refuse_commit(commit.id, CommitFailed::NotOwned);
            }
        }
    }

    /// Ownership is over: so is every commit under it.
    pub(super) fn drop_commits(&mut self, now: Instant) {
        self.abandon_commit(now);
        for commit in core::mem::take(&mut self.offsets.commits) {
            self.refuse_commit(commit.id, CommitFailed::NotOwned);
        }
    }

    /// A commit that is under way must not arrive after the next one, which may take the other
    /// lane: its connection goes with it.
    fn abandon_commit(&mut self, now: Instant) {
        if self.calls.has(Kind::Commit) {
            probe::hit(Mark::MemberCommitAbandoned);
            self.drop_connections(now);
        }
    }

    fn pause_offsets(&mut self, now: Instant) {
        self.offsets.retry_at = now + self.offsets.backoff.pause();
    }

    fn park_commits(&mut self) {
        for commit in &mut self.offsets.commits {
            commit.is_parked = true;
        }
    }

    fn end_commit(&mut self, outcome: Result<Committed, CommitFailed>) {
        if let Some(commit) = self.offsets.commits.pop_front() {
            self.outputs.push_back(Output::Committed { id: commit.id, outcome });
        }
    }

    fn refuse_commit(&mut self, id: OffsetsId, why: CommitFailed) {
        self.outputs.push_back(Output::Committed { id, outcome: Err(why) });
    }

    fn owns(&self, topics: &[TopicOffsets]) -> bool {
        topics.iter().all(|topic| {
            let mut partitions = topic.partitions.iter();
            partitions.all(|item| self.owned.contains(&topic.topic, item.partition))
        })
    }
}
