//! The protocol fronts: which requests a protocol has, which error each state answers, and which
//! switch of the core it sets. Thin; what two fronts would share belongs into the core.
//!
//! Classic groups are here. The register front (all move together, the server assigns) will stand
//! on the same roster and barrier, the consumer front (each moves by itself, the server assigns)
//! on the same roster, and both on the same offsets.

pub(super) mod classic;
