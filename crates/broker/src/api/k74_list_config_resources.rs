//! Key 74, ListConfigResources, versions 0-1: what has settings at all.
//!
//! - v0 lists client metrics alone (KIP-1000), v1 whichever kinds are asked for, none meaning all
//!   (KIP-1142).
//!
//! Groups are listed where they have settings of their own. There are no client metrics.

use super::settings_words::{Resource, kind_number};
use super::{Answer, Context};
use ottla_cluster::image::Image;
use ottla_cluster::record::ResourceKind;
use ottla_wire::ErrorCode;
use ottla_wire::generated::list_config_resources_response::ConfigResource;
use ottla_wire::generated::{ListConfigResourcesRequest, ListConfigResourcesResponse};
use std::collections::BTreeSet;

/// Answers from the image.
pub(super) fn handle(cx: &mut Context<'_>, request: ListConfigResourcesRequest) -> Answer {
    let mut kinds: BTreeSet<i8> = request.resource_types.iter().copied().collect();
    if cx.version() == 0 {
        kinds = [CLIENT_METRICS].into();
    } else if kinds.is_empty() {
        kinds = ALL.into();
    }
    if kinds.iter().any(|kind| Resource::of(*kind).is_none()) {
        let error_code = cx.count(ErrorCode::UnsupportedVersion).number();
        return cx.reply(&ListConfigResourcesResponse { error_code, ..Default::default() });
    }
    let image = cx.broker.cluster.image();
    let brokers: Vec<_> = image.brokers().map(|(node, _)| node.to_string()).collect();
    let config_resources = kinds.into_iter().flat_map(|kind| of_kind(&image, &brokers, kind));
    let config_resources = config_resources.collect();
    cx.reply(&ListConfigResourcesResponse { config_resources, ..Default::default() })
}

fn of_kind<'a>(image: &'a Image, brokers: &'a [String], kind: i8) -> Vec<ConfigResource<'a>> {
    let line = |name: &'a str| ConfigResource { resource_name: name, resource_type: kind };
    match Resource::of(kind) {
        Some(Resource::Kept(ResourceKind::Topic)) => {
            image.topics().map(|topic| line(&topic.name)).collect()
        }
        Some(Resource::Kept(ResourceKind::Broker) | Resource::BrokerLogger) => {
            brokers.iter().map(|node| line(node)).collect()
        }
        Some(Resource::Kept(ResourceKind::Group)) => {
            let configured = image.configured().filter(|at| kind_number(at.kind) == kind);
            configured.map(|at| line(&at.name)).collect()
        }
        Some(Resource::ClientMetrics) | None => Vec::new(),
    }
}

const CLIENT_METRICS: i8 = 16;
/// Topics, brokers, their loggers, client metrics, groups.
const ALL: [i8; 5] = [2, 4, 8, CLIENT_METRICS, 32];
