//! ConsumerMetadata, RegisterConsumer and Heartbeat of the register protocol (S29-S34).

use std::time::Duration;

use ottla_group::assign::Partitions;
use ottla_group::message::GroupError;
use ottla_group::message::register::{
    ConsumerMetadata, Heartbeat, HeartbeatAnswer, Register, Registered,
};
use ottla_model::{Generation, NodeId, OwnershipEpoch, TopicPartition};

use super::{assert_same, through};
use crate::convert::consumer_metadata::{self, Place};
use crate::convert::{register_consumer, register_heartbeat};
use crate::generated::{
    ConsumerMetadataRequest, ConsumerMetadataResponse, RegisterConsumerRequest,
    RegisterConsumerResponse, RegisterHeartbeatRequest, RegisterHeartbeatResponse,
};
use crate::{ErrorCode, Message, Output};

fn bytes_of<'a>(message: &impl Message<'a>) -> Vec<u8> {
    let mut out = Output::reusing(Vec::new());
    message.encode(0, &mut out).expect("it fits");
    out.into_vec()
}

#[test]
fn s29_consumer_metadata_asks_for_a_group() {
    let sent = ConsumerMetadata { group: "g" };
    assert_eq!(bytes_of(&consumer_metadata::request(&sent)), b"\0\x01g");
    let bytes;
    let request: ConsumerMetadataRequest<'_> =
        through!(bytes, consumer_metadata::request(&sent), 0);
    assert_eq!(consumer_metadata::ask(&request).group, "g");
}

#[test]
fn s30_consumer_metadata_tells_place_epoch_and_generation() {
    let (node, epoch) = (NodeId(7), OwnershipEpoch(3));
    let place = Place { node, host: "h", port: 9092, epoch };
    let told = consumer_metadata::response(ErrorCode::None, Some(place), Some(Generation(2)));
    let expected = b"\0\0\0\0\0\x07\0\x01h\0\0\x23\x84\0\0\0\x03\0\0\0\x02";
    assert_eq!(bytes_of(&told), expected);
    let bytes;
    let response: ConsumerMetadataResponse<'_> = through!(bytes, told, 0);
    assert_eq!(consumer_metadata::place(&response), Some((place, Generation(2))));

    let nowhere = consumer_metadata::response(ErrorCode::CoordinatorNotAvailable, None, None);
    assert_eq!(nowhere.group_generation_id, -1);
    assert_eq!(consumer_metadata::place(&nowhere), None);
}

#[test]
fn s31_register_consumer_carries_timeouts_and_topics() {
    let sent = Register {
        group: "g",
        member: "c",
        host: "h",
        session_timeout: Duration::from_millis(1000),
        heartbeat_frequency: 3,
        failed_heartbeat_threshold: 4,
        topics: vec!["t", "u"],
    };
    let expected = b"\0\x01g\0\x01c\0\x01h\0\0\x03\xe8\0\0\0\x03\0\0\0\x04\0\0\0\x02\0\x01t\0\x01u";
    assert_eq!(bytes_of(&register_consumer::request(&sent)), expected);
    let bytes;
    let request: RegisterConsumerRequest<'_> =
        through!(bytes, register_consumer::request(&sent), 0);
    assert_same(&register_consumer::ask(&request), &sent, 0);
}

/// A negative timeout is one that the coordinator's bounds refuse, not one of 49 days.
#[test]
fn s8_a_negative_session_timeout_asks_for_none() {
    let request = RegisterConsumerRequest { session_timeout: -1, ..Default::default() };
    assert_eq!(register_consumer::ask(&request).session_timeout, Duration::ZERO);
}

#[test]
fn s32_register_consumer_tells_what_to_own() {
    let owned: Partitions = [("t", 0), ("t", 2), ("u", 1)]
        .map(|(t, p)| TopicPartition::new(t, p))
        .into_iter()
        .collect();
    let registered = Registered {
        group: "g".into(),
        generation: Generation(5),
        member: "c-1".into(),
        partitions: owned,
    };
    let sent = Ok(registered);
    let response = register_consumer::response(&sent, "g", "");
    let expected = b"\0\0\0\0\0\x05\0\x01g\0\x03c-1\0\0\0\x02\
        \0\x01t\0\0\0\x02\0\0\0\0\0\0\0\x02\0\x01u\0\0\0\x01\0\0\0\x01";
    assert_eq!(bytes_of(&response), expected);
    let bytes;
    let response: RegisterConsumerResponse<'_> = through!(bytes, response, 0);
    assert_eq!(register_consumer::reply(&response), Ok(sent.clone()));

    let refused = Err(GroupError::UnknownMemberId);
    let response = register_consumer::response(&refused, "g", "late");
    assert_eq!((response.error_code, response.group_generation_id), (25, -1));
    assert_eq!((response.group_id, response.consumer_id), ("g", "late"));
    assert_eq!(register_consumer::reply(&response), Ok(refused.clone()));
}

#[test]
fn s33_heartbeat_names_generation_as_a_number() {
    let sent = Heartbeat { group: "g", generation: Generation(5), member: "c-1" };
    let expected = b"\0\x01g\0\0\0\x05\0\x03c-1";
    assert_eq!(bytes_of(&register_heartbeat::request(&sent)), expected);
    let bytes;
    let request: RegisterHeartbeatRequest<'_> =
        through!(bytes, register_heartbeat::request(&sent), 0);
    assert_same(&register_heartbeat::ask(&request), &sent, 0);
}

/// Decision 14: group and consumer id are echoed, the generation stands beside an error too.
#[test]
fn s34_heartbeat_response_echoes_and_tells_the_generation() {
    let generation = Generation(6);
    let answer = HeartbeatAnswer { generation, outcome: Err(GroupError::RebalanceInProgress) };
    let response = register_heartbeat::response(&answer, "g", "c-1");
    assert_eq!(bytes_of(&response), b"\0\x01g\0\0\0\x06\0\x03c-1\0\x1b");
    let bytes;
    let response: RegisterHeartbeatResponse<'_> = through!(bytes, response, 0);
    assert_eq!(register_heartbeat::reply(&response), Ok(answer));
}
