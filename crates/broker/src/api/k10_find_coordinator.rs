//! Key 10, FindCoordinator, versions 0-6: which broker coordinates a group.
//!
//! - v1 has key types, v3 is flexible, v4 asks for several keys (KIP-699).
//! - v5 adds codes of transactions, v6 share groups (KIP-932).
//!
//! The first question creates the offsets topic and waits until its shards are there. Left out:
//! transactions, refused with a code that every client takes as final, and share groups.

use super::error_map::change_error;
use super::{Answer, Context};
use crate::broker::Broker;
use crate::net::Listener;
use ottla_cluster::image::Image;
use ottla_cluster::placement::{Coordinator as Place, coordinator};
use ottla_model::GroupId;
use ottla_wire::ErrorCode;
use ottla_wire::generated::find_coordinator_response::Coordinator;
use ottla_wire::generated::{FindCoordinatorRequest, FindCoordinatorResponse};
use std::sync::Arc;

/// Answers from the image; makes the offsets topic first if there is none.
pub(super) fn handle(cx: &mut Context<'_>, request: FindCoordinatorRequest<'_>) -> Answer {
    let batched = cx.version() >= 4;
    let keys = if batched { request.coordinator_keys } else { vec![request.key] };
    let keys: Vec<String> = keys.into_iter().map(Into::into).collect();
    if let Some((code, message)) = refusal(request.key_type) {
        let code = cx.count(code);
        let places = keys.iter().map(|key| refused(key, code, message)).collect();
        return cx.reply(&response(batched, places));
    }
    let image = cx.broker.cluster.image();
    let (broker, listener) = (Arc::clone(cx.broker), Arc::clone(&cx.session.listener));
    let is_there = |key: &String| matches!(place(&image, key), Place::At(..));
    if keys.iter().all(is_there) {
        let places = find(&broker, &image, &listener, &keys);
        return cx.reply(&response(batched, places));
    }
    let to = cx.to;
    Answer::Later(Box::pin(async move {
        if let Err(code) = make_offsets_topic(&broker).await {
            broker.metrics.errors.count(to.key, code);
            let places = keys.iter().map(|key| refused(key, code, None)).collect();
            return to.encode(&response(batched, places));
        }
        let image = broker.cluster.image();
        let places = find(&broker, &image, &listener, &keys);
        to.encode(&response(batched, places))
    }))
}

/// Creates the offsets topic, and waits until its shards answer.
pub(super) async fn make_offsets_topic(broker: &Broker) -> Result<(), ErrorCode> {
    match broker.cluster.ensure_offsets_topic().await {
        Ok(Ok(())) => {}
        Ok(Err(refusal)) => {
            tracing::error!(reason = %refusal.message, "the offsets topic is refused");
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        Err(error) => {
            tracing::warn!(%error, "the offsets topic could not be created");
            return Err(match change_error(&error) {
                ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
                code => code,
            });
        }
    }
    // The client asks again if this takes longer.
    let _ = tokio::time::timeout(SHARDS_MAX, broker.shards.ready()).await;
    Ok(())
}

fn refusal(key_type: i8) -> Option<(ErrorCode, Option<&'static str>)> {
    match key_type {
        GROUP => None,
        TRANSACTION => Some((
            ErrorCode::TransactionalIdAuthorizationFailed,
            Some("this broker has no transactions yet"),
        )),
        _ => Some((ErrorCode::InvalidRequest, None)),
    }
}

fn place(image: &Image, group: &str) -> Place {
    coordinator(image, &GroupId::from(group))
}

fn find<'a>(
    broker: &Broker,
    image: &'a Image,
    listener: &Listener,
    keys: &'a [String],
) -> Vec<Coordinator<'a>> {
    let find = |key: &'a String| {
        let Place::At(_, node) = place(image, key) else {
            return Err(ErrorCode::CoordinatorNotAvailable);
        };
        let known = image.broker(node).ok_or(ErrorCode::CoordinatorNotAvailable)?;
        let listeners = &known.record.listeners;
        let named = listeners.iter().find(|each| *each.name == *listener.name);
        let address = named.ok_or(ErrorCode::ListenerNotFound)?;
        Ok(Coordinator {
            key,
            node_id: node.0,
            host: &address.host,
            port: address.port.into(),
            ..Default::default()
        })
    };
    let found = keys.iter().map(|key| {
        find(key).unwrap_or_else(|code| {
            broker.metrics.errors.count(ottla_wire::ApiKey::FindCoordinator, code);
            refused(key, code, None)
        })
    });
    found.collect()
}

fn refused<'a>(key: &'a str, code: ErrorCode, message: Option<&'a str>) -> Coordinator<'a> {
    Coordinator {
        key,
        node_id: -1,
        port: -1,
        error_code: code.number(),
        error_message: message,
        ..Default::default()
    }
}

fn response(batched: bool, places: Vec<Coordinator<'_>>) -> FindCoordinatorResponse<'_> {
    if batched {
        return FindCoordinatorResponse { coordinators: places, ..Default::default() };
    }
    let only = places.into_iter().next().unwrap_or_default();
    FindCoordinatorResponse {
        error_code: only.error_code,
        error_message: only.error_message,
        node_id: only.node_id,
        host: only.host,
        port: only.port,
        ..Default::default()
    }
}

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
/// How long a first question waits for new shards.
const SHARDS_MAX: std::time::Duration = std::time::Duration::from_secs(5);
