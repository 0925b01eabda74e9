//! A topic that is created and deleted again and again, and what Metadata says of topics.

use super::machine::Run;
use super::producer::Producer;
use super::{Counts, STEADY};
use ottla_storage::fs::sim::Rng;
use ottla_wire::generated::create_topics_request::CreatableTopic;
use ottla_wire::generated::metadata_request::MetadataRequestTopic;
use ottla_wire::generated::{
    CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest, DeleteTopicsResponse,
    MetadataRequest, MetadataResponse,
};
use std::collections::BTreeMap;

/// The topic that comes and goes.
pub(super) const CHURN: &str = "churn";

/// Where it is in its life.
#[derive(Default)]
pub(super) struct Churn {
    life: i64,
    state: State,
    producer: Option<Producer>,
    /// The highest producer id that was given out for it.
    id: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Gone,
    /// Nobody has said whether it was created.
    Creating,
    There,
    /// Nobody has said whether it was deleted.
    Deleting,
}

impl Churn {
    /// Its producer, while it is there for sure.
    pub(super) fn producer(&mut self) -> Option<&mut Producer> {
        self.producer.as_mut()
    }

    /// Which of its lives it is in, if it is there for sure.
    pub(super) fn life(&self) -> Option<i64> {
        (self.state == State::There).then_some(self.life)
    }

    /// Creates or deletes it, or finds out what became of that.
    pub(super) async fn step(&mut self, run: &Run, rng: &mut Rng, counts: &mut Counts) {
        self.state = match self.state {
            State::There if self.producer.is_none() => return self.hire(run).await,
            State::There if rng.chance(50) => return,
            State::There | State::Deleting => self.delete(run, counts).await,
            State::Gone | State::Creating => self.create(run, counts).await,
        };
        if self.state == State::Gone && rng.chance(60) {
            self.state = self.create(run, counts).await;
        }
    }

    /// What was said of it holds after a restart.
    pub(super) async fn check(&self, run: &Run) {
        let Some(found) = metadata(run, CHURN).await else { return };
        match self.state {
            State::Gone => assert_eq!(found.code, 3, "a deleted topic is there again"),
            State::There => assert_eq!(found.code, 0, "a created topic is gone"),
            State::Creating | State::Deleting => assert!([0, 3].contains(&found.code)),
        }
    }

    async fn create(&mut self, run: &Run, counts: &mut Counts) -> State {
        let code = create(run, CHURN, 1).await;
        if self.state == State::Gone {
            self.life += 1;
            assert_ne!(code, Err(Some(36)), "a deleted topic is there still");
        }
        match code {
            Ok(()) | Err(Some(36)) => {
                counts.note("topics created");
                State::There
            }
            Err(_) => State::Creating,
        }
    }

    async fn delete(&mut self, run: &Run, counts: &mut Counts) -> State {
        self.producer = None;
        let request = DeleteTopicsRequest {
            topic_names: vec![CHURN],
            timeout_ms: 10_000,
            ..Default::default()
        };
        let Some(response) = run.wait(run.call(3, &request)).await else { return State::Deleting };
        let response: DeleteTopicsResponse<'_> = response.read();
        let code = response.responses[0].error_code;
        if self.state == State::There {
            assert_ne!(code, 3, "a created topic is not known");
        }
        if [0, 3].contains(&code) {
            counts.note("topics deleted");
            return State::Gone;
        }
        State::Deleting
    }

    async fn hire(&mut self, run: &Run) {
        self.producer = Producer::new(run, CHURN, 0, self.life).await;
        if let Some(producer) = &self.producer {
            assert!(producer.id().0 > self.id, "a producer id was given out twice");
            self.id = producer.id().0;
        }
    }
}

/// Creates a topic. The error is the code, or none if there was no answer.
pub(super) async fn create(run: &Run, name: &str, partitions: i32) -> Result<(), Option<i16>> {
    let topic = CreatableTopic {
        name,
        num_partitions: partitions,
        replication_factor: 1,
        ..Default::default()
    };
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let response = run.wait(run.call(5, &request)).await.ok_or(None)?;
    let response: CreateTopicsResponse<'_> = response.read();
    match response.topics[0].error_code {
        0 => Ok(()),
        code => Err(Some(code)),
    }
}

/// Leader epochs of the topic that is always there only rise.
pub(super) async fn check_epochs(run: &Run, known: &mut BTreeMap<i32, i32>) {
    let Some(found) = metadata(run, STEADY).await else { return };
    assert_eq!(found.code, 0, "the steady topic is gone");
    for (partition, epoch) in found.epochs {
        let before = known.entry(partition).or_default();
        assert!(epoch >= *before, "{STEADY}-{partition}: epoch {epoch} after {before}");
        *before = epoch;
    }
}

struct Found {
    code: i16,
    epochs: Vec<(i32, i32)>,
}

async fn metadata(run: &Run, name: &str) -> Option<Found> {
    let topic = MetadataRequestTopic { name: Some(name), ..Default::default() };
    let request = MetadataRequest {
        topics: Some(vec![topic]),
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    let response = run.wait(run.call(9, &request)).await?;
    let response: MetadataResponse<'_> = response.read();
    let topic = &response.topics[0];
    let epochs = topic.partitions.iter().map(|part| (part.partition_index, part.leader_epoch));
    Some(Found { code: topic.error_code, epochs: epochs.collect() })
}
