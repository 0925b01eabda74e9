//! The records a shard appends and replays, in the project's own words: one file per kind.
//!
//! They hold everything Kafka 4.4's `common/message` schemas of the offsets topic hold and
//! nothing more, so a conversion to its bytes loses nothing. How those bytes look is the
//! edge's business.

mod consumer_group_current_member_assignment;
mod consumer_group_member_metadata;
mod consumer_group_metadata;
mod consumer_group_partition_metadata;
mod consumer_group_regular_expression;
mod consumer_group_target_assignment_member;
mod consumer_group_target_assignment_metadata;
mod group_metadata;
mod offset_commit;

pub use consumer_group_current_member_assignment::{
    ConsumerGroupCurrentMemberAssignment, ConsumerGroupCurrentMemberAssignmentValue,
    HeldPartitions, StoredState,
};
pub use consumer_group_member_metadata::{
    ClassicMember, ConsumerGroupMemberMetadata, ConsumerGroupMemberMetadataValue,
};
pub use consumer_group_metadata::{ConsumerGroupMetadata, ConsumerGroupMetadataValue};
pub use consumer_group_partition_metadata::{ConsumerGroupPartitionMetadata, StoredTopic};
pub use consumer_group_regular_expression::{
    ConsumerGroupRegularExpression, ConsumerGroupRegularExpressionValue,
};
pub use consumer_group_target_assignment_member::ConsumerGroupTargetAssignmentMember;
pub use consumer_group_target_assignment_metadata::{
    ConsumerGroupTargetAssignmentMetadata, ConsumerGroupTargetAssignmentMetadataValue,
};
pub use group_metadata::{GroupMetadata, GroupMetadataValue, StoredMember};
pub use offset_commit::{OffsetCommit, OffsetCommitValue};

use ottla_model::GroupId;

/// One record of the offsets topic: a key with a value, or with a tombstone that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// One committed offset (Kafka's key types 0 and 1).
    OffsetCommit(OffsetCommit),
    /// A classic group's last generation (Kafka's key type 2).
    GroupMetadata(GroupMetadata),
    /// The epoch of a group of the consumer protocol (3).
    ConsumerGroupMetadata(ConsumerGroupMetadata),
    /// Its subscribed topics, as Kafka 4.0 wrote them (4).
    ConsumerGroupPartitionMetadata(ConsumerGroupPartitionMetadata),
    /// What one of its members says of itself (5).
    ConsumerGroupMemberMetadata(ConsumerGroupMemberMetadata),
    /// The epoch of its target (6).
    ConsumerGroupTargetAssignmentMetadata(ConsumerGroupTargetAssignmentMetadata),
    /// What one of its members should own (7).
    ConsumerGroupTargetAssignmentMember(ConsumerGroupTargetAssignmentMember),
    /// What one of its members holds (8).
    ConsumerGroupCurrentMemberAssignment(ConsumerGroupCurrentMemberAssignment),
    /// Which topics a pattern stands for (16).
    ConsumerGroupRegularExpression(ConsumerGroupRegularExpression),
}

impl Record {
    /// The group this record is about; it decides the shard.
    pub fn group(&self) -> &GroupId {
        match self {
            Self::OffsetCommit(record) => &record.group,
            Self::GroupMetadata(record) => &record.group,
            Self::ConsumerGroupMetadata(record) => &record.group,
            Self::ConsumerGroupPartitionMetadata(record) => &record.group,
            Self::ConsumerGroupMemberMetadata(record) => &record.group,
            Self::ConsumerGroupTargetAssignmentMetadata(record) => &record.group,
            Self::ConsumerGroupTargetAssignmentMember(record) => &record.group,
            Self::ConsumerGroupCurrentMemberAssignment(record) => &record.group,
            Self::ConsumerGroupRegularExpression(record) => &record.group,
        }
    }

    /// An upper estimate of its bytes in a batch, key, value and framing together.
    pub fn estimated_bytes(&self) -> usize {
        match self {
            Self::OffsetCommit(record) => record.estimated_bytes(),
            Self::GroupMetadata(record) => record.estimated_bytes(),
            Self::ConsumerGroupMetadata(record) => record.estimated_bytes(),
            Self::ConsumerGroupPartitionMetadata(record) => record.estimated_bytes(),
            Self::ConsumerGroupMemberMetadata(record) => record.estimated_bytes(),
            Self::ConsumerGroupTargetAssignmentMetadata(record) => record.estimated_bytes(),
            Self::ConsumerGroupTargetAssignmentMember(record) => record.estimated_bytes(),
            Self::ConsumerGroupCurrentMemberAssignment(record) => record.estimated_bytes(),
            Self::ConsumerGroupRegularExpression(record) => record.estimated_bytes(),
        }
    }
}

/// Upper estimate of a record's framing: attributes, deltas, lengths, version, flexible fields.
const FRAMING_BYTES: usize = 32;
