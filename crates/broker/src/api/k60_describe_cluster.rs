//! Key 60, DescribeCluster, versions 0-2: the cluster's id and brokers (KIP-700).
//!
//! - v1 says whether brokers or controllers are meant (KIP-919); v2 marks fenced brokers
//!   (KIP-1073).
//!
//! Left out: controllers. There is no listener that leads to any, so asking for them is refused;
//! and a broker that is not live is not known, so none is ever listed as fenced.

use super::outcome::count;
use super::topology::{CLUSTER_OPERATIONS, Topology};
use super::{Answer, Context};
use ottla_wire::ErrorCode;
use ottla_wire::generated::describe_cluster_response::DescribeClusterBroker;
use ottla_wire::generated::{DescribeClusterRequest, DescribeClusterResponse};
use std::sync::Arc;

/// Answers from the image.
pub(super) fn handle(cx: &mut Context<'_>, request: DescribeClusterRequest) -> Answer {
    let image = cx.broker.cluster.image();
    let hosted = cx.broker.partitions.hosted();
    let listener = Arc::clone(&cx.session.listener);
    let topology = Topology::new(cx.broker, &image, &hosted, &listener);
    let response = match request.endpoint_type {
        BROKERS => answer(topology, request.include_cluster_authorized_operations),
        CONTROLLERS => refused(
            ErrorCode::MismatchedEndpointType,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of \
             type CONTROLLER",
        ),
        _ => refused(ErrorCode::UnsupportedEndpointType, "Unsupported endpoint type"),
    };
    count(cx.broker, cx.to.key, std::iter::once(response.error_code));
    cx.reply(&response)
}

fn answer(topology: Topology<'_>, operations: bool) -> DescribeClusterResponse<'_> {
    let brokers = topology.brokers().map(|broker| DescribeClusterBroker {
        broker_id: broker.node,
        host: &broker.at.host,
        port: broker.at.port.into(),
        rack: broker.rack,
        is_fenced: false,
    });
    DescribeClusterResponse {
        cluster_id: topology.image.cluster_id(),
        controller_id: topology.controller(),
        brokers: brokers.collect(),
        cluster_authorized_operations: if operations { CLUSTER_OPERATIONS } else { i32::MIN },
        ..Default::default()
    }
}

fn refused(code: ErrorCode, message: &str) -> DescribeClusterResponse<'_> {
    let error_code = code.number();
    DescribeClusterResponse { error_code, error_message: Some(message), ..Default::default() }
}

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;
