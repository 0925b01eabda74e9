//! What a register member says of itself, in the bytes of a consumer's subscription.
//!
//! Register groups are stored as Kafka's tools know groups (decision 28): topics in
//! `ConsumerProtocolSubscription`, and in its user data what that has no field for, ten bytes:
//!
//! ```text
//! int16 version = 0, int32 heartbeat_frequency, int32 failed_heartbeat_threshold
//! ```

use super::PROTOCOL;
use crate::assign::subscription::Subscription;
use crate::coordinator::group::CONSUMER;
use crate::coordinator::record::GroupMetadataValue;
use crate::message::Blob;
use crate::message::admin::GroupKind;
use crate::message::register::{Detection, Register};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use ottla_model::TopicName;

/// The protocol that the group of this record speaks. A classic group whose assignor has our name
/// is told apart by its members' user data. A group without members speaks none yet, and is called
/// classic.
pub(in super::super) fn kind_of(metadata: &GroupMetadataValue) -> GroupKind {
    let is_register = metadata.protocol.as_deref() == Some(PROTOCOL)
        && &*metadata.protocol_type == CONSUMER
        && !metadata.members.is_empty()
        && metadata.members.iter().all(|member| detection_of(&member.subscription).is_some());
    if is_register { GroupKind::Register } else { GroupKind::Classic }
}

/// How often the member of this subscription beats; `None` where it is not a register member's.
pub(in super::super) fn detection_of(subscription: &[u8]) -> Option<Detection> {
    let user_data = Subscription::decode(subscription).ok()?.user_data?;
    let (version, terms) = user_data.split_first_chunk()?;
    if i16::from_be_bytes(*version) != VERSION {
        return None;
    }
    let (frequency, terms) = terms.split_first_chunk()?;
    let (threshold, rest) = terms.split_first_chunk()?;
    let detection = Detection::new(i32::from_be_bytes(*frequency), i32::from_be_bytes(*threshold));
    detection.filter(|_| rest.is_empty())
}

/// The subscription a registration stands for: its topics as a set, in order (decision 18).
pub(super) fn subscription_of(ask: &Register<'_>, detection: Detection) -> Blob {
    let topics: BTreeSet<&str> = ask.topics.iter().copied().collect();
    let mut user_data = Vec::with_capacity(10);
    user_data.extend(VERSION.to_be_bytes());
    user_data.extend(detection.heartbeat_frequency().to_be_bytes());
    user_data.extend(detection.failed_heartbeat_threshold().to_be_bytes());
    let subscription = Subscription {
        topics: topics.into_iter().map(TopicName::from).collect(),
        user_data: Some(user_data),
        ..Subscription::default()
    };
    Blob::from(subscription.encode(0))
}

/// The topics of a subscription of ours, in order.
pub(super) fn topics_of(subscription: &[u8]) -> Vec<TopicName> {
    // We wrote it, or `kind_of` has read it.
    Subscription::decode(subscription).map(|read| read.topics).unwrap_or_default()
}

/// The version of the user data.
const VERSION: i16 = 0;
