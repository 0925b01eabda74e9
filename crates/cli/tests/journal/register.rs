//! Members of register groups, by the register protocol's own test member.

use crate::protocol::{Process, Protocol};
use crate::stage::Stage;
use ottla_wire::generated::*;

/// A register group.
pub(crate) struct Register {
    group: String,
    cast: Vec<Process>,
}

impl Protocol for Register {
    const HOST: &'static str = "consumer.example";
    const REASON: Option<&'static str> = None;
    const LEADER_WATCHES: bool = false;
    const SESSION_MS_MIN: i32 = 1_000;

    fn new(group: &str) -> Self {
        Self { group: group.into(), cast: Vec::new() }
    }

    fn group(&self) -> &str {
        &self.group
    }

    fn cast(&mut self) -> &mut Vec<Process> {
        &mut self.cast
    }

    fn enter(&mut self, _: &Stage, mut process: Process) {
        send_registration(&self.group, &mut process);
        self.cast.push(process);
    }

    fn leave(&mut self, index: usize) {
        let mut process = self.cast.remove(index);
        let request = LeaveGroupRequest {
            group_id: &self.group,
            member_id: &process.id,
            ..Default::default()
        };
        assert_eq!(process.wire.ask(2, &request, |it| it.error_code), 0);
    }

    fn stop_for_now(&mut self, _: &mut Process) {}

    fn subscribe(&mut self, _: &Stage, index: usize, topics: &[String]) {
        self.cast[index].topics = topics.to_vec();
        send_registration(&self.group, &mut self.cast[index]);
    }

    fn ask_for_assignment(&mut self, _: &Stage) {}

    fn beat_error(&mut self, _: &Stage, process: &mut Process) -> i16 {
        let request = RegisterHeartbeatRequest {
            group_id: &self.group,
            group_generation_id: process.generation,
            consumer_id: &process.id,
        };
        process.wire.ask(0, &request, |it| it.error_code)
    }

    fn dawdle(&mut self, _: &Stage, _: &mut Process) {
        // Its heartbeats would not count, and its connection is closed in the end.
    }

    fn step(&mut self, stage: &Stage) {
        let mut cast = std::mem::take(&mut self.cast);
        for member in cast.iter_mut().filter(|member| !member.is_joining) {
            match self.beat_error(stage, member) {
                0 => {}
                REBALANCE_IN_PROGRESS => send_registration(&self.group, member),
                error => panic!("{}: {error}", member.id),
            }
        }
        if cast.iter().all(|member| member.is_joining) {
            cast.iter_mut().for_each(take_registration);
        }
        self.cast = cast;
    }
}

fn send_registration(group: &str, process: &mut Process) {
    let request = RegisterConsumerRequest {
        group_id: group,
        consumer_id: &process.id,
        consumer_host: Register::HOST,
        session_timeout: process.session_timeout_ms,
        heartbeat_frequency: 3,
        failed_heartbeat_threshold: 3,
        topics: process.topics.iter().map(String::as_str).collect(),
    };
    process.wire.send(0, &request);
    process.is_joining = true;
}

fn take_registration(process: &mut Process) {
    process.is_joining = false;
    let Process { wire, id, generation, owned, .. } = process;
    let taken = wire.receive::<RegisterConsumerRequest<'_>, _>(0, |it| {
        assert_eq!(it.error_code, 0);
        it.consumer_id.clone_into(id);
        *generation = it.group_generation_id;
        let each = it.partitions_to_own.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| (topic.topic.to_owned(), *partition))
        });
        *owned = each.collect();
    });
    taken.expect("an answer, not a closed connection");
}

const REBALANCE_IN_PROGRESS: i16 = 27;
