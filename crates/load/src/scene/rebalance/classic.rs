//! How a member of the classic protocol lives in time: as Java's client with the eager range
//! assignor. It beats every 3 s, and when it hears of a rebalance gives up all it owns and joins
//! again; the leader hands out partitions in turn.

use super::Errand;
use super::world::{Number, Stage};
use crate::Outcome;
use crate::classic::{self, Joined};
use crate::link::{Link, check};
use crate::member::Partition;
use crate::setup::is_not_ready;
use ottla_wire::generated::leave_group_request::MemberIdentity;
use ottla_wire::generated::{
    ConsumerProtocolAssignment, HeartbeatRequest, HeartbeatResponse, JoinGroupResponse,
    LeaveGroupRequest, SyncGroupResponse,
};
use ottla_wire::{ErrorCode, Message, Reader, Uuid};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// One member.
pub(super) struct Classic {
    pub(super) link: Link,
    pub(super) who: Number,
    pub(super) group: String,
    pub(super) topic: String,
    pub(super) partitions: Rc<std::cell::Cell<i32>>,
    pub(super) stage: Rc<Stage>,
}

impl Classic {
    /// Lives until it is told to leave.
    pub(super) async fn live(mut self, mut errand: Errand) -> Outcome<()> {
        let mut member = String::new();
        loop {
            let Some((joined, owned)) = self.join(&mut member).await? else { continue };
            let now = Instant::now();
            {
                let mut world = self.stage.world.borrow_mut();
                world.gains(self.who, &owned, now);
                world.spoke(self.who, true, now);
                self.stage.happened.notify_one();
            }
            if self.beat(&joined, &owned, &mut errand).await? {
                return Ok(());
            }
            if !errand.revoke_delay.is_zero() {
                tokio::time::sleep(errand.revoke_delay).await;
            }
            let mut world = self.stage.world.borrow_mut();
            world.loses(self.who, &owned, Instant::now());
            world.spoke(self.who, false, Instant::now());
        }
    }

    /// Joins and syncs; nothing if that was overtaken by the next rebalance.
    async fn join(&mut self, member: &mut String) -> Outcome<Option<(Joined, Vec<Partition>)>> {
        let metadata = classic::subscription(&self.topic)?;
        let request = classic::join(&self.group, member, &metadata);
        let answer = self.link.call(classic::JOIN_VERSION, &request).await?;
        self.stage.world.borrow_mut().act.beats += 1;
        let response: JoinGroupResponse<'_> = answer.read()?;
        if classic::must_come_again(&response) {
            response.member_id.clone_into(member);
            return Ok(None);
        }
        if is_not_ready(response.error_code) || is_overtaken(response.error_code) {
            if response.error_code == ErrorCode::UnknownMemberId.number() {
                member.clear();
            }
            tokio::time::sleep(BACKOFF).await;
            return Ok(None);
        }
        let joined = classic::joined(&answer)?;
        let parts = classic::assignment(&joined, &self.topic, self.partitions.get())?;
        let request = classic::sync(&self.group, &joined, &parts);
        let answer = self.link.call(classic::SYNC_VERSION, &request).await?;
        self.stage.world.borrow_mut().act.beats += 1;
        let response: SyncGroupResponse<'_> = answer.read()?;
        if is_overtaken(response.error_code) {
            return Ok(None);
        }
        check(response.error_code, "SyncGroup")?;
        Ok(Some((joined, partitions_in(response.assignment)?)))
    }

    /// Beats until there is a rebalance; true if it left instead.
    async fn beat(
        &mut self,
        joined: &Joined,
        owned: &[Partition],
        errand: &mut Errand,
    ) -> Outcome<bool> {
        let group = self.group.clone();
        let beat = HeartbeatRequest {
            group_id: &group,
            generation_id: joined.generation,
            member_id: &joined.member,
            ..Default::default()
        };
        let mut next = Instant::now() + INTERVAL;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = errand.leave() => return self.leave(joined, owned, None).await,
            }
            next = Instant::now() + INTERVAL;
            let asked = self.link.send(classic::HEARTBEAT_VERSION, &beat).await?;
            let answer = tokio::select! {
                answer = self.link.answer(asked) => answer?,
                () = errand.leave() => return self.leave(joined, owned, Some(asked)).await,
            };
            self.stage.world.borrow_mut().act.beats += 1;
            let code = answer.read::<HeartbeatResponse>()?.error_code;
            if is_overtaken(code) {
                return Ok(false);
            }
            check(code, "Heartbeat")?;
        }
    }

    async fn leave(
        &mut self,
        joined: &Joined,
        owned: &[Partition],
        open: Option<crate::link::Asked>,
    ) -> Outcome<bool> {
        {
            let mut world = self.stage.world.borrow_mut();
            world.act.beats += 1;
            world.leaves(self.who, owned, Instant::now());
        }
        let member = MemberIdentity { member_id: &joined.member, ..Default::default() };
        let request = LeaveGroupRequest {
            group_id: &self.group,
            members: vec![member],
            ..Default::default()
        };
        let asked = self.link.send(5, &request).await?;
        if let Some(open) = open {
            self.link.answer(open).await?;
        }
        self.link.answer(asked).await?;
        Ok(true)
    }
}

/// Whether a member must join (again) because the group moved on.
fn is_overtaken(code: i16) -> bool {
    let moved_on =
        [ErrorCode::RebalanceInProgress, ErrorCode::IllegalGeneration, ErrorCode::UnknownMemberId];
    moved_on.iter().any(|one| one.number() == code)
}

/// What a leader handed out: the protocol's version, then the assignment.
fn partitions_in(assignment: &[u8]) -> Outcome<Vec<Partition>> {
    let mut reader = Reader::new(assignment);
    let version = reader.i16("version").map_err(|error| error.to_string())?;
    let assignment = ConsumerProtocolAssignment::decode(&mut reader, version);
    let topics = assignment.map_err(|error| error.to_string())?.assigned_partitions;
    Ok(topics.iter().flat_map(|topic| &topic.partitions).map(|n| (Uuid::ZERO, *n)).collect())
}

/// Java's default `heartbeat.interval.ms`.
const INTERVAL: Duration = Duration::from_secs(3);
/// Java's `retry.backoff.ms`.
const BACKOFF: Duration = Duration::from_millis(100);
