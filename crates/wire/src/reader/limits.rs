//! How much decoding one message may allocate, whatever its lengths claim.

/// Array elements that one message may hold in all, unless its reader says otherwise.
pub const ELEMENTS_MAX: usize = 4_000_000;

/// Bytes of memory that decoding one message may allocate, unless its reader says otherwise.
pub const MEMORY_MAX: usize = 256 << 20;

/// How much one message may make its decoder allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Array elements, summed over all arrays of the message.
    pub elements: usize,
    /// Bytes of memory for those elements.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { elements: ELEMENTS_MAX, memory: MEMORY_MAX }
    }
}
