//! The record batches of a Produce, Fetch or ShareFetch field, carried without copying or looking
//! inside. What a batch is, the `records` crate knows.

use bytes::Bytes;

/// Record batches, one after the other.
#[derive(Clone, Debug)]
pub enum Records<'a> {
    /// Bytes of the message being decoded, or any others that outlive the encoding.
    Borrowed(&'a [u8]),
    /// One shared chunk, put into the output by reference.
    Shared(Bytes),
    /// Several shared chunks in order, put into the output by reference.
    Chunks(Vec<Bytes>),
}

impl Records<'_> {
    /// No records.
    pub const EMPTY: Self = Self::Borrowed(&[]);

    /// Their length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Borrowed(bytes) => bytes.len(),
            Self::Shared(chunk) => chunk.len(),
            Self::Chunks(chunks) => chunks.iter().map(Bytes::len).sum(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The chunks in order.
    pub fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let (borrowed, shared): (Option<&[u8]>, &[Bytes]) = match self {
            Self::Borrowed(bytes) => (Some(bytes), &[]),
            Self::Shared(chunk) => (None, std::slice::from_ref(chunk)),
            Self::Chunks(chunks) => (None, chunks),
        };
        borrowed.into_iter().chain(shared.iter().map(|chunk| &**chunk))
    }

    /// All of them as one shared chunk. Only several chunks are copied; a borrowed slice of
    /// `frame` becomes a view of it.
    ///
    /// # Panics
    /// If the records are borrowed, but not from `frame`.
    pub fn to_bytes(&self, frame: &Bytes) -> Bytes {
        match self {
            Self::Borrowed([]) => Bytes::new(),
            Self::Borrowed(bytes) => frame.slice_ref(bytes),
            Self::Shared(chunk) => chunk.clone(),
            Self::Chunks(chunks) => chunks.concat().into(),
        }
    }
}

impl Default for Records<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Equal if their bytes are, however they are cut.
impl PartialEq for Records<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.chunks().flatten().eq(other.chunks().flatten())
    }
}
