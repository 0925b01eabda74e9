//! The protocol fronts: which requests a protocol has, which error each state answers, and which
//! switch of the core it sets. Thin; what two fronts would share belongs into the core.
//!
//! Classic and register groups are here, on the same roster, barrier and offsets: all members move
//! together, and who assigns is the switch between them. The consumer front (each moves by itself,
//! the server assigns) will stand on the same roster and offsets.

pub(super) mod classic;
pub(super) mod register;
