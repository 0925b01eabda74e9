//! Identifiers and counters. Each is its own type so that two of them cannot be swapped.

use alloc::string::String;
use alloc::sync::Arc;
use core::borrow::Borrow;
use core::fmt;
use core::ops::Deref;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        // `Arc<str>` hashes and orders as `str` does, so a map keyed by this type can be asked
        // with a borrowed string.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

name! {
    /// A consumer group's id, as its members name it.
    GroupId
}
name! {
    /// A member's id within its group, given by the coordinator (or, in KIP-848, by the member).
    MemberId
}
name! {
    /// A static member's `group.instance.id` (KIP-345): it survives the member's restarts.
    InstanceId
}
name! {
    /// A topic's name.
    TopicName
}

number! {
    /// A broker's id. Never negative for a live broker; `-1` on the wire means "none".
    NodeId(i32)
}
number! {
    /// The index of a partition within its topic, from 0.
    PartitionId(i32)
}
number! {
    /// A record's position in its partition, from 0. A log's end offset is the next one to write.
    Offset(i64)
}
number! {
    /// Counts the reigns of a partition's leader; rises also whenever recovery cuts the log.
    LeaderEpoch(i32)
}
number! {
    /// Counts the owners of a coordinator shard; an append by an older owner is refused.
    OwnershipEpoch(i32)
}
number! {
    /// Counts the rebalances of a classic or register group. The consumer protocol says *epoch*
    /// for the same idea; both live in this one counter so that a group may change protocol.
    Generation(i32)
}
number! {
    /// An idempotent producer's id, unique over the cluster's life.
    ProducerId(i64)
}
number! {
    /// Fences older instances of the same producer id.
    ProducerEpoch(i16)
}
number! {
    /// One client connection of one broker process. Never reused within a process.
    ConnectionId(u64)
}

/// A topic's 128-bit id (KIP-516). A topic that is deleted and created again gets a new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TopicId(pub [u8; 16]);

impl TopicId {
    /// The id the wire uses for "none given".
    pub const ZERO: Self = Self([0; 16]);

    /// Whether this is the wire's "none given".
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

impl fmt::Display for TopicId {
    /// URL-safe base64 without padding, 22 characters: how Kafka's tools print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let bits = u128::from_be_bytes(self.0);
        for sextet in 0..21 {
            let index = (bits >> (122 - 6 * sextet)) & 63;
            fmt::Write::write_char(f, ALPHABET[index as usize] as char)?;
        }
        fmt::Write::write_char(f, ALPHABET[((bits & 3) << 4) as usize] as char)
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One partition of one topic, by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: TopicName,
    /// The partition's index.
    pub partition: PartitionId,
}

impl TopicPartition {
    /// The partition `partition` of `topic`.
    pub fn new(topic: impl Into<TopicName>, partition: i32) -> Self {
        Self { topic: topic.into(), partition: PartitionId(partition) }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// KIP-516: the text form is what `kafka-topics.sh --describe` prints for the same bytes.
    #[test]
    fn topic_id_prints_as_url_safe_base64() {
        assert_eq!(TopicId::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(TopicId([0xff; 16]).to_string(), "_____________________w");
        let counted = core::array::from_fn(|byte| byte as u8);
        assert_eq!(TopicId(counted).to_string(), "AAECAwQFBgcICQoLDA0ODw");
    }
}
