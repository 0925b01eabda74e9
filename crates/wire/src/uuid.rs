//! Kafka's 128-bit identifiers as they travel.

use ottla_model::TopicId;
use std::fmt;

/// A 128-bit identifier of a topic, a directory, a client; zero stands for none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// None.
    pub const ZERO: Self = Self([0; 16]);

    /// Its bytes as they travel.
    pub const fn to_be_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The identifier of these bytes.
    pub const fn from_be_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Whether it stands for none.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

impl From<TopicId> for Uuid {
    fn from(id: TopicId) -> Self {
        Self(id.0)
    }
}

impl From<Uuid> for TopicId {
    fn from(id: Uuid) -> Self {
        Self(id.0)
    }
}

/// As Kafka prints it: URL-safe base64 without padding.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&TopicId(self.0), f)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
