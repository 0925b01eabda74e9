//! `ottla topic describe`: partitions with their offsets, and the settings somebody set.

use super::Outcome;
use crate::failure::{Failure, Failures};
use crate::print::{self, Cell, Report, Table};
use crate::progress;
use crate::session::Session;
use clap::Args;
use ottla_client::admin::{ConfigEntry, ConfigResource, ConfigSource};
use ottla_client::{Admin, NodeId, OffsetSpec, PartitionInfo, TopicInfo, TopicPartition};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Show a topic's partitions, offsets and settings.
///
/// Exit code 3 if there is no such topic.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ottla topic describe orders
  ottla topic describe orders --all-configs --output json")]
pub(super) struct Arguments {
    /// The topics
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// Show every setting, not only those that differ from the broker's
    #[arg(long)]
    all_configs: bool,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let Arguments { topics, all_configs } = arguments;
    let mut failures = Failures::default();
    let work = async {
        let mut described = Vec::new();
        for (_, topic) in admin.describe_topics(topics).await? {
            let Some(topic) = failures.keep(topic) else { continue };
            described.extend(failures.keep(describe(&admin, &topic, all_configs).await));
        }
        Ok::<_, Failure>(described)
    };
    let described = progress::during(&session.asking("asking for the topics"), work).await?;
    print::report(session.output, &Descriptions(described))?;
    failures.outcome()
}

async fn describe(
    admin: &Admin,
    topic: &TopicInfo,
    all_configs: bool,
) -> Result<Description, Failure> {
    let configs = admin.describe_configs(&ConfigResource::topic(&*topic.name)).await?;
    let is_set = |entry: &&ConfigEntry| all_configs || entry.source == ConfigSource::Topic;
    let earliest = offsets(admin, topic, OffsetSpec::Earliest).await?;
    let latest = offsets(admin, topic, OffsetSpec::Latest).await?;
    let partitions = topic.partitions.iter().enumerate().map(|(index, info)| {
        let offset = |of: &BTreeMap<usize, i64>| of.get(&index).copied();
        partition(index, info, offset(&earliest), offset(&latest))
    });
    Ok(Description {
        topic: topic.name.to_string(),
        topic_id: (!topic.id.is_zero()).then(|| topic.id.to_string()),
        internal: topic.is_internal,
        partitions: partitions.collect(),
        configs: configs.iter().filter(is_set).map(config).collect(),
    })
}

/// An offset of each partition that has a leader to ask; a partition without one shows none.
async fn offsets(
    admin: &Admin,
    topic: &TopicInfo,
    spec: OffsetSpec,
) -> Result<BTreeMap<usize, i64>, Failure> {
    let led = topic.partitions.iter().zip(0..).filter(|(info, _)| info.leader.is_some());
    let wanted = led.map(|(_, index)| (TopicPartition::new(topic.name.clone(), index), spec));
    let found = admin.list_offsets(wanted).await?;
    let found = found.into_iter().filter_map(|(partition, found)| {
        let index = usize::try_from(partition.partition.0).ok()?;
        Some((index, found.ok()?.offset?.0))
    });
    Ok(found.collect())
}

fn partition(
    index: usize,
    info: &PartitionInfo,
    earliest: Option<i64>,
    latest: Option<i64>,
) -> PartitionView {
    let ids = |nodes: &[NodeId]| nodes.iter().map(|node| node.0).collect();
    PartitionView {
        partition: index,
        leader: info.leader.map(|node| node.0),
        leader_epoch: info.leader_epoch.map(|epoch| epoch.0),
        replicas: ids(&info.replicas),
        in_sync: ids(&info.in_sync),
        offline: ids(&info.offline),
        earliest,
        latest,
    }
}

fn config(entry: &ConfigEntry) -> ConfigView {
    ConfigView {
        name: entry.name.clone(),
        value: entry.value.clone(),
        source: source(entry.source).to_owned(),
    }
}

/// Kafka's names.
fn source(source: ConfigSource) -> &'static str {
    match source {
        ConfigSource::Topic => "DYNAMIC_TOPIC_CONFIG",
        ConfigSource::DynamicBroker => "DYNAMIC_BROKER_CONFIG",
        ConfigSource::DynamicDefaultBroker => "DYNAMIC_DEFAULT_BROKER_CONFIG",
        ConfigSource::StaticBroker => "STATIC_BROKER_CONFIG",
        ConfigSource::Default => "DEFAULT_CONFIG",
        ConfigSource::Group => "GROUP_CONFIG",
        _ => "UNKNOWN",
    }
}

#[derive(Serialize)]
struct Descriptions(Vec<Description>);

#[derive(Serialize)]
struct Description {
    topic: String,
    topic_id: Option<String>,
    internal: bool,
    partitions: Vec<PartitionView>,
    configs: Vec<ConfigView>,
}

#[derive(Serialize)]
struct PartitionView {
    partition: usize,
    leader: Option<i32>,
    leader_epoch: Option<i32>,
    replicas: Vec<i32>,
    in_sync: Vec<i32>,
    offline: Vec<i32>,
    earliest: Option<i64>,
    latest: Option<i64>,
}

#[derive(Serialize)]
struct ConfigView {
    name: String,
    value: Option<String>,
    source: String,
}

impl Report for Descriptions {
    fn text(&self) -> String {
        let texts: Vec<String> = self.0.iter().map(Description::text).collect();
        texts.join("\n")
    }
}

impl Description {
    fn text(&self) -> String {
        let mut text = format!("topic    {}\n", self.topic);
        if let Some(id) = &self.topic_id {
            let _ = writeln!(text, "id       {id}");
        }
        for (index, config) in self.configs.iter().enumerate() {
            let title = if index == 0 { "configs" } else { "" };
            let value = config.value.as_deref().unwrap_or(print::NONE);
            let _ = writeln!(text, "{title:<9}{}={value}", config.name);
        }
        text + "\n" + &self.table().text()
    }

    fn table(&self) -> Table {
        let mut table =
            Table::new(["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "EARLIEST", "LATEST"]);
        for partition in &self.partitions {
            table.row([
                partition.partition.into(),
                Cell::number(partition.leader),
                ids(&partition.replicas).into(),
                ids(&partition.in_sync).into(),
                Cell::number(partition.earliest),
                Cell::number(partition.latest),
            ]);
        }
        table
    }
}

fn ids(nodes: &[i32]) -> String {
    nodes.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}
