//! The nouns every other crate shares: ids, epochs, offsets, time, the topics view.
//!
//! Names and values only. This crate never knows a protocol, a file, a clock or a rule about
//! groups; what it offers is equality, order and display.

#![no_std]

extern crate alloc;

mod ids;
mod time;
mod topics;

pub use ids::{
    ConnectionId, Generation, GroupId, InstanceId, LeaderEpoch, MemberId, NodeId, Offset,
    OwnershipEpoch, PartitionId, ProducerEpoch, ProducerId, TopicId, TopicName, TopicPartition,
};
pub use time::{Instant, Now, Timestamp};
pub use topics::{Partition, Topic, TopicsView};
