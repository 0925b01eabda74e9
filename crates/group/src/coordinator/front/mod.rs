//! The protocol fronts: which requests a protocol has, which error each state answers, and which
//! switch of the core it sets. Thin; what two fronts would share belongs into the core.
//!
//! Classic and register groups are here, on the same roster, barrier and offsets: all members move
//! together, and who assigns is the switch between them. In consumer groups the server assigns too,
//! and each member moves by itself: they have no roster and no barrier, but epochs, a target and
//! positions, all of them hard.

pub(super) mod classic;
pub(super) mod consumer;
pub(super) mod register;
