//! The bytes in which classic members tell each other what they want, own and get.
//!
//! `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, versions 0 to 3, and the user
//! data of the sticky assignors: equal to the Java client's in every byte, because members of
//! both kinds share groups. A coordinator that only classic members use never reads them. Counts
//! are checked against the bytes that are there before anything is allocated.

#[cfg(test)]
mod tests;

use super::{Assignor, Partitions};
use alloc::vec::Vec;
use core::fmt;
use ottla_model::{Generation, PartitionId, TopicName};

/// The newest version there is, which Java's consumers write.
pub const VERSION_MAX: i16 = 3;

/// What a member wants, with what an assignor needs to know to move little.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    /// The topics it wants.
    pub topics: Vec<TopicName>,
    /// The assignor's own bytes.
    pub user_data: Option<Vec<u8>>,
    /// What it owns and has not given up (version 1; KIP-429).
    pub owned: Partitions,
    /// The generation in which it came to own that; `None` where it knows none (version 2).
    pub generation: Option<Generation>,
    /// Its rack (version 3; KIP-881).
    pub rack: Option<alloc::string::String>,
}

/// What a member gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Its partitions.
    pub partitions: Partitions,
    /// The assignor's own bytes.
    pub user_data: Option<Vec<u8>>,
}

/// Bytes that are not what they should be: the member that wrote them is at fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// They end in the middle of a field, or a count promises more than follows.
    Truncated,
    /// The version is negative.
    Version(i16),
    /// A length is negative where a value is required.
    MissingValue,
    /// A name is not UTF-8.
    NotText,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the bytes end before the value does"),
            Self::Version(version) => write!(f, "version {version} is negative"),
            Self::MissingValue => f.write_str("a required value is null"),
            Self::NotText => f.write_str("a name is not UTF-8"),
        }
    }
}

impl core::error::Error for Malformed {}

impl Subscription {
    /// The bytes of this subscription in `version` (0 to [`VERSION_MAX`]); fields the version
    /// lacks are left out. Topics are sorted, so equal subscriptions are equal bytes.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut topics: Vec<_> = self.topics.iter().collect();
        topics.sort_unstable();
        let mut out = Writer::new(version);
        out.count(topics.len());
        for topic in topics {
            out.text(topic);
        }
        out.bytes(self.user_data.as_deref());
        if version >= 1 {
            out.partitions(&self.owned);
        }
        if version >= 2 {
            out.int(self.generation.map_or(-1, |generation| generation.0));
        }
        if version >= 3 {
            out.text_or_null(self.rack.as_deref());
        }
        out.bytes
    }

    /// Reads a subscription of any version; one newer than [`VERSION_MAX`] is read as that, its
    /// further fields ignored. Bytes that end where a version added a field count as the version
    /// before: some clients write the number alone.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (mut input, version) = Reader::new(bytes)?;
        let mut subscription = Self {
            topics: input.list(2, |input| Ok(TopicName::from(input.text()?)))?,
            user_data: input.bytes()?.map(<[u8]>::to_vec),
            ..Self::default()
        };
        if version >= 1 && !input.is_empty() {
            subscription.owned = input.partitions()?;
        }
        if version >= 2 && !input.is_empty() {
            subscription.generation = Some(Generation(input.int()?)).filter(|g| g.0 >= 0);
        }
        if version >= 3 && !input.is_empty() {
            subscription.rack = input.text_or_null()?.map(Into::into);
        }
        Ok(subscription)
    }

    /// What the member owned and when, as `assignor` learns it: the eager sticky assignor from its
    /// user data alone, because its members give up everything before they join; the cooperative
    /// one from the fields, or from the user data where version 1 had no generation.
    pub fn claim(&self, assignor: Assignor) -> (Partitions, Option<Generation>) {
        match assignor {
            Assignor::Range | Assignor::RoundRobin => (Partitions::new(), None),
            Assignor::Sticky => self
                .user_data
                .as_deref()
                .and_then(|bytes| decode_sticky(bytes).ok())
                .unwrap_or_default(),
            Assignor::CooperativeSticky => {
                (self.owned.clone(), self.generation.or_else(|| self.user_data_generation()))
            }
        }
    }

    fn user_data_generation(&self) -> Option<Generation> {
        let mut input = Reader { rest: self.user_data.as_deref()? };
        input.int().ok().map(Generation).filter(|generation| generation.0 >= 0)
    }
}

impl Assignment {
    /// The bytes of this assignment; versions 0 to 3 differ in their number alone.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut out = Writer::new(version);
        out.partitions(&self.partitions);
        out.bytes(self.user_data.as_deref());
        out.bytes
    }

    /// Reads an assignment of any version. No bytes at all are an empty assignment: what a member
    /// gets whom the leader forgot, or who joined after it assigned.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let (mut input, _) = Reader::new(bytes)?;
        let partitions = input.partitions()?;
        Ok(Self { partitions, user_data: input.bytes()?.map(<[u8]>::to_vec) })
    }
}

/// The user data a member of `assignor` sends that owned `owned` since `generation`; `None` where
/// the assignor sends none.
pub fn user_data(
    assignor: Assignor,
    owned: &Partitions,
    generation: Option<Generation>,
) -> Option<Vec<u8>> {
    let generation_or_none = generation.map_or(-1, |generation| generation.0);
    let mut out = Writer { bytes: Vec::new() };
    match assignor {
        Assignor::Range | Assignor::RoundRobin => return None,
        Assignor::Sticky => {
            generation?;
            out.partitions(owned);
            out.int(generation_or_none);
        }
        Assignor::CooperativeSticky => out.int(generation_or_none),
    }
    Some(out.bytes)
}

/// The eager sticky assignor's user data: previous partitions, then (since KIP-341) their
/// generation.
fn decode_sticky(bytes: &[u8]) -> Result<(Partitions, Option<Generation>), Malformed> {
    let mut input = Reader { rest: bytes };
    let owned = input.partitions()?;
    let generation = if input.is_empty() { None } else { Some(Generation(input.int()?)) };
    Ok((owned, generation.filter(|generation| generation.0 >= 0)))
}

struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn new(version: i16) -> Self {
        Self { bytes: version.to_be_bytes().to_vec() }
    }

    fn int(&mut self, value: i32) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn count(&mut self, count: usize) {
        // A list of more than 2^31 entries does not fit in memory beside its names.
        self.int(i32::try_from(count).expect("lists are shorter than 2^31"));
    }

    fn text(&mut self, text: &str) {
        // Topic names are at most 249 bytes and racks are configured: both fit.
        let length = i16::try_from(text.len()).unwrap_or(i16::MAX);
        self.bytes.extend(length.to_be_bytes());
        self.bytes.extend(&text.as_bytes()[..length as usize]);
    }

    fn text_or_null(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.text(text),
            None => self.bytes.extend((-1i16).to_be_bytes()),
        }
    }

    fn bytes(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => {
                self.count(bytes.len());
                self.bytes.extend(bytes);
            }
            None => self.int(-1),
        }
    }

    fn partitions(&mut self, partitions: &Partitions) {
        self.count(partitions.by_topic().len());
        for (topic, indexes) in partitions.by_topic() {
            self.text(topic);
            self.count(indexes.len());
            for index in indexes {
                self.int(index.0);
            }
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The bytes after the version, and the version.
    fn new(bytes: &'a [u8]) -> Result<(Self, i16), Malformed> {
        let mut input = Self { rest: bytes };
        let version = input.short()?;
        if version < 0 {
            return Err(Malformed::Version(version));
        }
        Ok((input, version))
    }

    fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn short(&mut self) -> Result<i16, Malformed> {
        let bytes = self.rest.first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = &self.rest[2..];
        Ok(i16::from_be_bytes(*bytes))
    }

    fn int(&mut self) -> Result<i32, Malformed> {
        let bytes = self.rest.first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = &self.rest[4..];
        Ok(i32::from_be_bytes(*bytes))
    }

    fn text_or_null(&mut self) -> Result<Option<&'a str>, Malformed> {
        let length = self.short()?;
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        let bytes = self.take(length)?;
        core::str::from_utf8(bytes).map(Some).map_err(|_| Malformed::NotText)
    }

    fn text(&mut self) -> Result<&'a str, Malformed> {
        self.text_or_null()?.ok_or(Malformed::MissingValue)
    }

    fn bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match usize::try_from(self.int()?) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// A list whose items take at least `item_min` bytes each.
    fn list<T>(
        &mut self,
        item_min: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = usize::try_from(self.int()?).map_err(|_| Malformed::MissingValue)?;
        if count > self.rest.len() / item_min {
            return Err(Malformed::Truncated);
        }
        (0..count).map(|_| item(self)).collect()
    }

    fn partitions(&mut self) -> Result<Partitions, Malformed> {
        let lists = self.list(6, |input| {
            let topic = TopicName::from(input.text()?);
            Ok((topic, input.list(4, |input| Ok(PartitionId(input.int()?)))?))
        })?;
        Ok(Partitions::gather(lists))
    }
}
