//! A member of a classic group that lives through every crash: once it was given its part, it
//! belongs. (A join alone promises nothing yet: as in Kafka the leader's SyncGroup makes a
//! generation durable.)

use super::Counts;
use super::machine::Run;
use ottla_storage::fs::sim::Rng;
use ottla_wire::generated::join_group_request::JoinGroupRequestProtocol;
use ottla_wire::generated::sync_group_request::SyncGroupRequestAssignment;
use ottla_wire::generated::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, SyncGroupRequest,
    SyncGroupResponse,
};

/// The member.
#[derive(Default)]
pub(super) struct Member {
    id: String,
    /// The generation that it was told last.
    generation: i32,
    /// The highest one in which it was given its part.
    synced: i32,
    /// Whether it belongs to that one for sure: no join since was left without an answer.
    settled: bool,
    joins: u32,
}

impl Member {
    /// Joins, joins again with another subscription, or beats.
    pub(super) async fn step(&mut self, run: &Run, rng: &mut Rng, counts: &mut Counts) {
        if self.settled && rng.chance(70) {
            return self.beat(run, counts).await;
        }
        self.settled = false;
        if let Some(generation) = self.join(run, counts).await {
            assert!(generation > self.synced, "{generation} after {}", self.synced);
            self.generation = generation;
            counts.note("generations");
            self.settled = self.sync(run, counts).await;
            if self.settled {
                self.synced = generation;
            }
        }
    }

    /// It is known after a restart.
    pub(super) async fn check(&self, run: &Run) {
        if self.settled {
            self.beat(run, &mut Counts::default()).await;
        }
    }

    async fn join(&mut self, run: &Run, counts: &mut Counts) -> Option<i32> {
        self.joins += 1;
        let (known, metadata) = (self.id.clone(), self.joins.to_be_bytes());
        let request = JoinGroupRequest {
            group_id: GROUP,
            session_timeout_ms: 60_000,
            rebalance_timeout_ms: 60_000,
            member_id: &known,
            protocol_type: "consumer",
            protocols: vec![JoinGroupRequestProtocol { name: "range", metadata: &metadata }],
            ..Default::default()
        };
        let response = run.wait(run.call(5, &request)).await?;
        let response: JoinGroupResponse<'_> = response.read();
        if !response.member_id.is_empty() {
            response.member_id.clone_into(&mut self.id);
        }
        counts.tell(format!(
            "join of {known:?}: error {}, generation {}",
            response.error_code, response.generation_id
        ));
        match response.error_code {
            0 => Some(response.generation_id),
            // Told its id; or a broker that restarts, or has a bad disk.
            79 | 14..=16 | 56 => None,
            25 if self.synced == 0 => {
                self.id.clear();
                None
            }
            code => panic!("a member's join got error {code}"),
        }
    }

    async fn sync(&self, run: &Run, counts: &mut Counts) -> bool {
        let request = SyncGroupRequest {
            group_id: GROUP,
            generation_id: self.generation,
            member_id: &self.id,
            assignments: vec![SyncGroupRequestAssignment {
                member_id: &self.id,
                assignment: b"all",
            }],
            ..Default::default()
        };
        let Some(response) = run.wait(run.call(3, &request)).await else { return false };
        let response: SyncGroupResponse<'_> = response.read();
        let allowed = matches!(response.error_code, 0 | 14..=16 | 56);
        counts.tell(format!("sync: error {}", response.error_code));
        assert!(allowed, "a member's sync got error {}", response.error_code);
        response.error_code == 0
    }

    async fn beat(&self, run: &Run, counts: &mut Counts) {
        let request = HeartbeatRequest {
            group_id: GROUP,
            generation_id: self.generation,
            member_id: &self.id,
            ..Default::default()
        };
        let Some(response) = run.wait(run.call(3, &request)).await else { return };
        let response: HeartbeatResponse = response.read();
        let allowed = matches!(response.error_code, 0 | 14..=16);
        assert!(allowed, "a live member's heartbeat got error {}", response.error_code);
        counts.note("heartbeats");
    }
}

const GROUP: &str = "lives-on";
