//! Record kind: the last generation of a classic (or register) group.

use super::FRAMING_BYTES;
use crate::message::Blob;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{Generation, GroupId, InstanceId, MemberId, Timestamp};

/// A group's last durable generation, or the group's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMetadata {
    /// Key: the group.
    pub group: GroupId,
    /// The generation; `None` is the tombstone. Shared, because the shard keeps it too.
    pub value: Option<Arc<GroupMetadataValue>>,
}

/// A generation as it was when it became stable or empty (Kafka's `GroupMetadataValue` v0-v4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMetadataValue {
    /// `consumer`, `connect`, ...; empty where the group never had a member.
    pub protocol_type: Arc<str>,
    /// The generation.
    pub generation: Generation,
    /// The assignor in force; `None` for a group without members.
    pub protocol: Option<Arc<str>>,
    /// Who assigned; `None` for a group without members.
    pub leader: Option<MemberId>,
    /// When the group entered the state this record shows; `None` in records before v2.
    pub state_since: Option<Timestamp>,
    /// The members, in the order they joined.
    pub members: Vec<StoredMember>,
}

/// One member of that generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMember {
    /// Its id.
    pub member: MemberId,
    /// Its `group.instance.id`, if static (KIP-345; v3).
    pub instance: Option<InstanceId>,
    /// The client id it sent.
    pub client_id: Arc<str>,
    /// The address it came from.
    pub client_host: Arc<str>,
    /// How long it may take to rejoin. Records before v1 lack it: then the session timeout.
    pub rebalance_timeout: Duration,
    /// Silence after which it counts as dead.
    pub session_timeout: Duration,
    /// Its metadata for [`GroupMetadataValue::protocol`].
    pub subscription: Blob,
    /// Its part of the assignment.
    pub assignment: Blob,
}

impl GroupMetadata {
    pub(super) fn estimated_bytes(&self) -> usize {
        let value = self.value.as_ref().map_or(0, |value| {
            let head = value.protocol_type.len()
                + value.protocol.as_ref().map_or(0, |name| name.len())
                + value.leader.as_ref().map_or(0, |leader| leader.len());
            let members: usize = value.members.iter().map(StoredMember::estimated_bytes).sum();
            40 + head + members
        });
        FRAMING_BYTES + self.group.len() + value
    }
}

impl StoredMember {
    fn estimated_bytes(&self) -> usize {
        let texts = self.member.len()
            + self.instance.as_ref().map_or(0, |instance| instance.len())
            + self.client_id.len()
            + self.client_host.len();
        32 + texts + self.subscription.len() + self.assignment.len()
    }
}
