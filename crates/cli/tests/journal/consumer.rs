//! Members of groups of the consumer protocol (KIP-848).

use crate::protocol::{Process, Protocol, Slot};
use crate::stage::Stage;
use ottla_wire::generated::consumer_group_heartbeat_request::TopicPartitions;
use ottla_wire::generated::*;
use std::collections::{BTreeMap, BTreeSet};

/// A group of the consumer protocol.
pub(crate) struct Consumer {
    group: String,
    cast: Vec<Process>,
    /// The assignor they vote for, if they do.
    vote: Option<&'static str>,
}

impl Protocol for Consumer {
    const HOST: &'static str = "127.0.0.1";
    const REASON: Option<&'static str> = None;
    const LEADER_WATCHES: bool = false;
    const SESSION_MS_MIN: i32 = 3_000;

    fn new(group: &str) -> Self {
        Self { group: group.into(), cast: Vec::new(), vote: None }
    }

    fn group(&self) -> &str {
        &self.group
    }

    fn cast(&mut self) -> &mut Vec<Process> {
        &mut self.cast
    }

    fn enter(&mut self, stage: &Stage, mut process: Process) {
        // Since version 1 a process brings its own id.
        process.id = format!("{}-{}", self.group, process.wire.client);
        process.generation = 0;
        assert_eq!(self.beat_error(stage, &mut process), 0);
        self.cast.push(process);
    }

    fn leave(&mut self, index: usize) {
        let mut process = self.cast.remove(index);
        assert_eq!(self.goodbye(&mut process, -1), 0);
    }

    fn stop_for_now(&mut self, process: &mut Process) {
        assert_eq!(self.goodbye(process, -2), 0);
    }

    fn subscribe(&mut self, stage: &Stage, index: usize, topics: &[String]) {
        self.cast[index].topics = topics.to_vec();
        self.step(stage);
    }

    fn ask_for_assignment(&mut self, _: &Stage) {}

    fn beat_error(&mut self, stage: &Stage, process: &mut Process) -> i16 {
        let owned = by_topic(stage, &process.owned);
        let Process { wire, id, instance, topics, generation, owned: own, .. } = process;
        let rebalance_timeout_ms = &process.rebalance_timeout_ms;
        let request = ConsumerGroupHeartbeatRequest {
            group_id: &self.group,
            member_id: id,
            member_epoch: *generation,
            instance_id: *instance,
            rebalance_timeout_ms: *rebalance_timeout_ms,
            subscribed_topic_names: Some(topics.iter().map(String::as_str).collect()),
            server_assignor: self.vote,
            topic_partitions: Some(owned),
            ..Default::default()
        };
        wire.ask(1, &request, |it| {
            if it.error_code == 0 {
                *generation = it.member_epoch;
                if let Some(told) = it.assignment {
                    *own = named(stage, &told.topic_partitions);
                }
            }
            it.error_code
        })
    }

    fn dawdle(&mut self, stage: &Stage, process: &mut Process) {
        // It hears what to give up, and goes on as if it did not.
        let owned = process.owned.clone();
        self.beat_error(stage, process);
        process.owned = owned;
    }

    fn vote(&mut self, assignor: &'static str) {
        self.vote = Some(assignor);
    }

    fn step(&mut self, stage: &Stage) {
        let mut cast = std::mem::take(&mut self.cast);
        for member in &mut cast {
            assert_eq!(self.beat_error(stage, member), 0, "{}", member.id);
        }
        self.cast = cast;
    }
}

impl Consumer {
    fn goodbye(&self, process: &mut Process, epoch: i32) -> i16 {
        let request = ConsumerGroupHeartbeatRequest {
            group_id: &self.group,
            member_id: &process.id,
            member_epoch: epoch,
            instance_id: process.instance,
            ..Default::default()
        };
        process.wire.ask(1, &request, |it| it.error_code)
    }
}

/// A topic that is gone is nobody's any more.
fn by_topic(stage: &Stage, owned: &BTreeSet<Slot>) -> Vec<TopicPartitions> {
    let mut topics: BTreeMap<_, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in owned {
        if let Some(id) = stage.topic_id(topic) {
            topics.entry(id).or_default().push(*partition);
        }
    }
    let all = topics.into_iter();
    all.map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions }).collect()
}

fn named(
    stage: &Stage,
    told: &[consumer_group_heartbeat_response::TopicPartitions],
) -> BTreeSet<Slot> {
    let topics = told.iter().map(|topic| (stage.topic_name(topic.topic_id), &topic.partitions));
    topics.flat_map(|(name, own)| own.iter().map(move |it| (name.clone(), *it))).collect()
}
