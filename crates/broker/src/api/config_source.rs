//! Where a setting's value came from, as DescribeConfigs and CreateTopics number it.

use ottla_cluster::config::Source;

/// Kafka's number (`DescribeConfigsResponse.ConfigSource`).
pub(super) fn number(source: Source) -> i8 {
    match source {
        Source::Topic => 1,
        Source::Broker => 2,
        Source::EveryBroker => 3,
        Source::Static => 4,
        Source::Default => 5,
        Source::Group => 8,
    }
}
