//! Settings and their resources in the numbers Kafka gives them on the wire.

use ottla_cluster::config::{Kind, Source};
use ottla_cluster::record::{ConfigResource, ResourceKind};

/// A kind of resource as a request names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    /// One whose settings the cluster keeps.
    Kept(ResourceKind),
    /// A broker's loggers.
    BrokerLogger,
    /// What clients send metrics of.
    ClientMetrics,
}

impl Resource {
    /// The kind of this number.
    pub(super) fn of(number: i8) -> Option<Self> {
        Some(match number {
            2 => Self::Kept(ResourceKind::Topic),
            4 => Self::Kept(ResourceKind::Broker),
            8 => Self::BrokerLogger,
            16 => Self::ClientMetrics,
            32 => Self::Kept(ResourceKind::Group),
            _ => return None,
        })
    }
}

/// A kind's number.
pub(super) fn kind_number(kind: ResourceKind) -> i8 {
    match kind {
        ResourceKind::Topic => 2,
        ResourceKind::Broker => 4,
        ResourceKind::Group => 32,
    }
}

/// A resource of the cluster.
pub(super) fn resource(kind: ResourceKind, name: &str) -> ConfigResource {
    ConfigResource { kind, name: name.to_owned() }
}

/// The number of where a value came from.
pub(super) fn source_number(source: Source) -> i8 {
    match source {
        Source::Topic => 1,
        Source::Broker => 2,
        Source::EveryBroker => 3,
        Source::Static => 4,
        Source::Default => 5,
        Source::Group => 8,
    }
}

/// The number of a setting's type.
pub(super) fn type_number(kind: Kind) -> i8 {
    match kind {
        Kind::Boolean => 1,
        Kind::String => 2,
        Kind::Int => 3,
        Kind::Long => 5,
        Kind::Double => 6,
        Kind::List => 7,
    }
}
