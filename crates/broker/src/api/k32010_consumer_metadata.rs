//! Key 32010, ConsumerMetadata (register protocol), version 0: which broker coordinates a group,
//! under which ownership epoch, and which generation the group is in.
//!
//! It is FindCoordinator for consumers of the register protocol (decisions 3 and 13). A broker
//! that does not coordinate the group names who does and says generation -1; the coordinator says
//! the group's generation, 0 for one it does not know, and COORDINATOR_LOAD_IN_PROGRESS with its
//! own address while it reads its log.

use super::k10_find_coordinator::make_offsets_topic;
use super::{Answer, Context};
use crate::broker::Broker;
use crate::net::Listener;
use crate::shards::Asked;
use ottla_cluster::image::Image;
use ottla_cluster::placement::{Coordinator as At, coordinator};
use ottla_group::message::register::ConsumerMetadata;
use ottla_group::message::{Ask, Client, Reply};
use ottla_model::{ConnectionId, Generation, GroupId, Now};
use ottla_wire::ErrorCode;
use ottla_wire::convert::code;
use ottla_wire::convert::consumer_metadata::{Place, response};
use ottla_wire::generated::ConsumerMetadataRequest;
use std::sync::Arc;

/// Answers from the image and, where it is here, from the group's shard; makes the offsets topic
/// first if there is none.
pub(super) fn handle(cx: &mut Context<'_>, request: ConsumerMetadataRequest<'_>) -> Answer {
    if request.group_id.is_empty() {
        let code = cx.count(ErrorCode::InvalidGroupId);
        return cx.reply(&response(code, None, None));
    }
    let group = GroupId::from(request.group_id);
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    let (connection, listener, now) = (cx.session.id, Arc::clone(&cx.session.listener), cx.now);
    Answer::Later(Box::pin(async move {
        let mut image = broker.cluster.image();
        let mut made = Ok(());
        if coordinator(&image, &group) == At::NoOffsetsTopic {
            made = make_offsets_topic(&broker).await;
            image = broker.cluster.image();
        }
        let found = made.and_then(|()| find(&image, &listener, &group));
        let (code, place, generation) = match found {
            Err(code) => (code, None, None),
            Ok(place) if place.node != broker.node => (ErrorCode::None, Some(place), None),
            Ok(place) => {
                let told = generation(&broker, connection, now, &group).await;
                let code = told.err().unwrap_or(ErrorCode::None);
                (code, Some(place), told.ok())
            }
        };
        broker.metrics.errors.count(to.key, code);
        to.encode(&response(code, place, generation))
    }))
}

fn find<'a>(
    image: &'a Image,
    listener: &Listener,
    group: &GroupId,
) -> Result<Place<'a>, ErrorCode> {
    let At::At(partition, node) = coordinator(image, group) else {
        return Err(ErrorCode::CoordinatorNotAvailable);
    };
    let shard = image.shard(partition).ok_or(ErrorCode::CoordinatorNotAvailable)?;
    let known = image.broker(node).ok_or(ErrorCode::CoordinatorNotAvailable)?;
    let named = known.record.listeners.iter().find(|each| *each.name == *listener.name);
    let address = named.ok_or(ErrorCode::ListenerNotFound)?;
    Ok(Place { node, host: &address.host, port: address.port, epoch: shard.epoch })
}

/// What the group's shard on this broker says.
async fn generation(
    broker: &Broker,
    connection: ConnectionId,
    now: Now,
    group: &GroupId,
) -> Result<Generation, ErrorCode> {
    let shard = broker.shards.of(group).ok_or(ErrorCode::NotCoordinator)?;
    let ask = Ask::ConsumerMetadata(ConsumerMetadata { group });
    let reply = match shard.ask(connection, Client::default(), [0; 16], now, ask) {
        Asked::Now(reply) => reply,
        Asked::Later(delivery) | Asked::Held(delivery, _) => delivery.reply().await,
    };
    match reply {
        Reply::ConsumerMetadata(told) => told.map_err(code),
        other => unreachable!("asked for a generation, answered {other:?}"),
    }
}
