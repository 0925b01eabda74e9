//! Settings of topics, brokers and groups.

use super::{Admin, Outcomes, outcome};
use crate::Result;
use ottla_wire::generated::describe_configs_request::DescribeConfigsResource;
use ottla_wire::generated::describe_configs_response::DescribeConfigsResourceResult;
use ottla_wire::generated::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use ottla_wire::generated::{
    DescribeConfigsRequest, DescribeConfigsResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};

/// Something that has settings.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConfigResource {
    /// What it is.
    pub kind: ResourceKind,
    /// Which one: a name, or a broker's id (empty for what is the same on all brokers).
    pub name: String,
}

/// What has settings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum ResourceKind {
    /// A topic.
    Topic,
    /// A broker, or all of them.
    Broker,
    /// A consumer group.
    Group,
}

/// One setting as the broker has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigEntry {
    /// Its name.
    pub name: String,
    /// Its value; none if it is a secret or has none.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: ConfigSource,
    /// Whether it cannot be altered.
    pub is_read_only: bool,
    /// Whether it is a secret.
    pub is_sensitive: bool,
    /// What it does, if the broker tells.
    pub documentation: Option<String>,
}

/// Where a setting's value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ConfigSource {
    /// Set on the topic itself.
    Topic,
    /// Set on the broker while it runs.
    DynamicBroker,
    /// Set on all brokers while they run.
    DynamicDefaultBroker,
    /// The broker's configuration file.
    StaticBroker,
    /// Nobody set it.
    Default,
    /// Set on the group itself.
    Group,
    /// Something newer than this client, by its number.
    Other(i8),
}

/// What to do with a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigOp {
    /// Give it this value.
    Set(String, String),
    /// Let it be what it would be without.
    Unset(String),
    /// Add these to a list.
    Append(String, String),
    /// Take these out of a list.
    Subtract(String, String),
}

impl ConfigResource {
    /// The topic of this name.
    pub fn topic(name: impl Into<String>) -> Self {
        Self { kind: ResourceKind::Topic, name: name.into() }
    }

    /// The group of this id.
    pub fn group(name: impl Into<String>) -> Self {
        Self { kind: ResourceKind::Group, name: name.into() }
    }

    /// The broker of this id.
    pub fn broker(id: i32) -> Self {
        Self { kind: ResourceKind::Broker, name: id.to_string() }
    }
}

impl ResourceKind {
    fn number(self) -> i8 {
        match self {
            Self::Topic => 2,
            Self::Broker => 4,
            Self::Group => 32,
        }
    }
}

impl Admin {
    /// The settings of one thing, all of them.
    ///
    /// # Errors
    /// `Refused` if there is no such thing.
    pub async fn describe_configs(&self, resource: &ConfigResource) -> Result<Vec<ConfigEntry>> {
        let request = DescribeConfigsRequest {
            resources: vec![DescribeConfigsResource {
                resource_type: resource.kind.number(),
                resource_name: &resource.name,
                configuration_keys: None,
            }],
            include_synonyms: false,
            include_documentation: false,
        };
        let answer = match (resource.kind, resource.name.parse()) {
            // A broker's own settings only that broker knows.
            (ResourceKind::Broker, Ok(id)) => self.read_from(id, &request).await?,
            _ => self.read(&request).await?,
        };
        let response: DescribeConfigsResponse<'_> = answer.read()?;
        let Some(result) = response.results.first() else { return Ok(Vec::new()) };
        let what = || format!("cannot read the settings of {:?}", resource.name);
        outcome(result.error_code, result.error_message, what)?;
        Ok(result.configs.iter().map(entry).collect())
    }

    /// Alters settings of several things.
    ///
    /// # Errors
    /// As a whole if no broker answers in time; for each as the broker refuses, and then none of
    /// its settings is altered.
    pub async fn alter_configs(
        &self,
        changes: impl IntoIterator<Item = (ConfigResource, Vec<ConfigOp>)>,
    ) -> Result<Outcomes<ConfigResource, ()>> {
        let changes: Vec<_> = changes.into_iter().collect();
        let answer = self.change(|_| alteration(&changes)).await?;
        let response: IncrementalAlterConfigsResponse<'_> = answer.read()?;
        let outcomes = response.responses.iter().filter_map(|result| {
            let mut changed = changes.iter().map(|(resource, _)| resource);
            let resource = changed.find(|resource| {
                resource.kind.number() == result.resource_type
                    && resource.name == result.resource_name
            })?;
            let what = || format!("cannot alter the settings of {:?}", resource.name);
            let altered = outcome(result.error_code, result.error_message, what);
            Some((resource.clone(), altered))
        });
        Ok(outcomes.collect())
    }
}

fn alteration(changes: &[(ConfigResource, Vec<ConfigOp>)]) -> IncrementalAlterConfigsRequest<'_> {
    IncrementalAlterConfigsRequest {
        resources: changes.iter().map(altered).collect(),
        validate_only: false,
    }
}

fn altered((resource, ops): &(ConfigResource, Vec<ConfigOp>)) -> AlterConfigsResource<'_> {
    AlterConfigsResource {
        resource_type: resource.kind.number(),
        resource_name: &resource.name,
        configs: ops.iter().map(operation).collect(),
    }
}

fn operation(op: &ConfigOp) -> AlterableConfig<'_> {
    let (config_operation, name, value) = match op {
        ConfigOp::Set(name, value) => (0, name, Some(value.as_str())),
        ConfigOp::Unset(name) => (1, name, None),
        ConfigOp::Append(name, value) => (2, name, Some(value.as_str())),
        ConfigOp::Subtract(name, value) => (3, name, Some(value.as_str())),
    };
    AlterableConfig { name, config_operation, value }
}

fn entry(from: &DescribeConfigsResourceResult<'_>) -> ConfigEntry {
    ConfigEntry {
        name: from.name.to_owned(),
        value: from.value.map(str::to_owned),
        source: match from.config_source {
            1 => ConfigSource::Topic,
            2 => ConfigSource::DynamicBroker,
            3 => ConfigSource::DynamicDefaultBroker,
            4 => ConfigSource::StaticBroker,
            5 => ConfigSource::Default,
            8 => ConfigSource::Group,
            other => ConfigSource::Other(other),
        },
        is_read_only: from.read_only,
        is_sensitive: from.is_sensitive,
        documentation: from.documentation.map(str::to_owned),
    }
}
