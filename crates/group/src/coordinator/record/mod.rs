//! The records a shard appends and replays, in the project's own words: one file per kind.
//!
//! They hold everything Kafka 4.4's `common/message` schemas of the offsets topic hold and
//! nothing more, so a conversion to its bytes loses nothing. How those bytes look is the
//! edge's business.

mod group_metadata;
mod offset_commit;

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
}

impl Record {
    /// The group this record is about; it decides the shard.
    pub fn group(&self) -> &GroupId {
        match self {
            Self::OffsetCommit(record) => &record.group,
            Self::GroupMetadata(record) => &record.group,
        }
    }

    /// An upper estimate of its bytes in a batch, key, value and framing together.
    pub fn estimated_bytes(&self) -> usize {
        match self {
            Self::OffsetCommit(record) => record.estimated_bytes(),
            Self::GroupMetadata(record) => record.estimated_bytes(),
        }
    }
}

/// Upper estimate of a record's framing: attributes, deltas, lengths, version, flexible fields.
const FRAMING_BYTES: usize = 32;
