//! Topics and their partitions.

use super::{Admin, Outcomes, outcome};
use crate::{Error, Result, TopicInfo};
use ottla_model::{TopicId, TopicName};
use ottla_wire::ErrorCode;
use ottla_wire::generated::create_partitions_request::CreatePartitionsTopic;
use ottla_wire::generated::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use ottla_wire::generated::delete_topics_request::DeleteTopicState;
use ottla_wire::generated::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse, MetadataResponse,
};
use std::sync::Arc;

/// A topic to be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewTopic {
    name: String,
    partitions: i32,
    replication_factor: i16,
    configs: Vec<(String, String)>,
}

/// A topic that was created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatedTopic {
    /// Its id; zero where the broker is too old to tell.
    pub id: TopicId,
    /// How many partitions it has, if the broker tells.
    pub partitions: Option<i32>,
    /// How many copies of each, if the broker tells.
    pub replication_factor: Option<i16>,
}

impl NewTopic {
    /// A topic of so many partitions, with the broker's own replication and settings.
    pub fn new(name: impl Into<String>, partitions: i32) -> Self {
        let name = name.into();
        Self { name, partitions, replication_factor: BROKERS_OWN as i16, configs: Vec::new() }
    }

    /// A topic with the broker's own number of partitions.
    pub fn with_default_partitions(name: impl Into<String>) -> Self {
        Self::new(name, BROKERS_OWN)
    }

    /// With so many copies of each partition.
    #[must_use]
    pub fn replication_factor(mut self, copies: i16) -> Self {
        self.replication_factor = copies;
        self
    }

    /// With this setting.
    #[must_use]
    pub fn config(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.configs.push((name.into(), value.into()));
        self
    }

    fn request(&self) -> CreatableTopic<'_> {
        CreatableTopic {
            name: &self.name,
            num_partitions: self.partitions,
            replication_factor: self.replication_factor,
            configs: self.configs.iter().map(setting).collect(),
            ..Default::default()
        }
    }
}

fn setting((name, value): &(String, String)) -> CreatableTopicConfig<'_> {
    CreatableTopicConfig { name, value: Some(value) }
}

impl Admin {
    /// Every topic, by name; Kafka's own are marked.
    ///
    /// # Errors
    /// `Retriable`, if no broker answers in time.
    pub async fn list_topics(&self) -> Result<Vec<TopicInfo>> {
        let topics = self.topics(None).await?;
        Ok(topics.into_iter().map(|topic| TopicInfo::clone(&topic)).collect())
    }

    /// What is known of these topics.
    ///
    /// # Errors
    /// As a whole if no broker answers in time; for each if there is no such topic.
    pub async fn describe_topics(
        &self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Outcomes<TopicName, TopicInfo>> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let topics = self.topics(Some(&names)).await?;
        let find = |name: &String| topics.iter().find(|topic| &*topic.name == name.as_str());
        let describe = |name: &String| {
            let what = || format!("cannot describe topic `{name}`");
            let described = match find(name) {
                Some(TopicInfo { error: Some(code), .. }) => Err(Error::of(*code, what())),
                Some(topic) => Ok(topic.clone()),
                None => Err(Error::of(ErrorCode::UnknownTopicOrPartition, what())),
            };
            (TopicName::from(name.as_str()), described)
        };
        Ok(names.iter().map(describe).collect())
    }

    async fn topics(&self, names: Option<&[String]>) -> Result<Vec<TopicInfo>> {
        use crate::cluster::{Interest, Snapshot};
        let answer = self.metadata(names).await?;
        let response: MetadataResponse<'_> = answer.read()?;
        let snapshot = Snapshot::default().after(&response, &Interest::All, 0);
        let topics = snapshot.topics.into_values();
        Ok(topics.map(Arc::unwrap_or_clone).collect())
    }

    /// Creates one topic.
    ///
    /// # Errors
    /// `Refused` with the broker's code and words; `TimedOut` if it may have been created.
    pub async fn create_topic(&self, topic: NewTopic) -> Result<CreatedTopic> {
        let created = self.create_topics([topic]).await?;
        created.into_iter().next().map_or_else(|| Err(nothing()), |(_, outcome)| outcome)
    }

    /// Creates topics.
    ///
    /// # Errors
    /// As a whole if no broker answers in time; for each as the broker refuses.
    pub async fn create_topics(
        &self,
        topics: impl IntoIterator<Item = NewTopic>,
    ) -> Result<Outcomes<TopicName, CreatedTopic>> {
        let topics: Vec<NewTopic> = topics.into_iter().collect();
        let timeout_ms = self.timeout_ms();
        let answer = self
            .change(|_| CreateTopicsRequest {
                topics: topics.iter().map(NewTopic::request).collect(),
                timeout_ms,
                validate_only: false,
            })
            .await?;
        let response: CreateTopicsResponse<'_> = answer.read()?;
        let created = response.topics.iter().map(|topic| {
            let what = || format!("cannot create topic `{}`", topic.name);
            let created = outcome(topic.error_code, topic.error_message, what);
            let created = created.map(|()| CreatedTopic {
                id: topic.topic_id.into(),
                partitions: (topic.num_partitions >= 0).then_some(topic.num_partitions),
                replication_factor: (topic.replication_factor >= 0)
                    .then_some(topic.replication_factor),
            });
            (TopicName::from(topic.name), created)
        });
        Ok(created.collect())
    }

    /// Deletes one topic with its records and its committed offsets.
    ///
    /// # Errors
    /// As [`Admin::delete_topics`].
    pub async fn delete_topic(&self, name: impl Into<String>) -> Result<()> {
        let deleted = self.delete_topics([name]).await?;
        deleted.into_iter().next().map_or_else(|| Err(nothing()), |(_, outcome)| outcome)
    }

    /// Deletes topics with their records and their committed offsets.
    ///
    /// # Errors
    /// As a whole if no broker answers in time; for each as the broker refuses.
    pub async fn delete_topics(
        &self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Outcomes<TopicName, ()>> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let timeout_ms = self.timeout_ms();
        let answer = self.change(|version| delete_request(&names, version, timeout_ms)).await?;
        let response: DeleteTopicsResponse<'_> = answer.read()?;
        let deleted = response.responses.iter().map(|topic| {
            let name = topic.name.unwrap_or_default();
            let what = || format!("cannot delete topic `{name}`");
            let deleted = outcome(topic.error_code, topic.error_message, what);
            (TopicName::from(name), deleted)
        });
        Ok(deleted.collect())
    }

    /// Gives a topic more partitions: `total` in all. Keys may move to other partitions.
    ///
    /// # Errors
    /// `Refused`, if the topic has as many already or there is none.
    pub async fn create_partitions(&self, topic: &str, total: i32) -> Result<()> {
        let timeout_ms = self.timeout_ms();
        let answer = self
            .change(|_| CreatePartitionsRequest {
                topics: vec![CreatePartitionsTopic {
                    name: topic,
                    count: total,
                    assignments: None,
                }],
                timeout_ms,
                validate_only: false,
            })
            .await?;
        let response: CreatePartitionsResponse<'_> = answer.read()?;
        let result = response.results.first().ok_or_else(nothing)?;
        let what = || format!("cannot give topic `{topic}` {total} partitions");
        outcome(result.error_code, result.error_message, what)
    }
}

fn delete_request(names: &[String], version: i16, timeout_ms: i32) -> DeleteTopicsRequest<'_> {
    let names = names.iter().map(String::as_str);
    let state = |name| DeleteTopicState { name: Some(name), ..Default::default() };
    match version {
        6.. => {
            let topics = names.map(state).collect();
            DeleteTopicsRequest { topics, timeout_ms, ..Default::default() }
        }
        _ => DeleteTopicsRequest { topic_names: names.collect(), timeout_ms, ..Default::default() },
    }
}

fn nothing() -> Error {
    Error::protocol("the broker answers for nothing that it was asked")
}

/// A number that leaves the choice to the broker.
const BROKERS_OWN: i32 = -1;
