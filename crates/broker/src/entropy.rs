//! The only place of the broker that draws random bits.

use rustix::rand::{GetRandomFlags, getrandom};

/// 128 random bits from the system.
pub(crate) fn bits() -> [u8; 16] {
    let mut bits = [0; 16];
    // Requests of up to 256 bytes are filled whole, once the system has seeded its pool; before
    // that the call waits.
    while getrandom(&mut bits, GetRandomFlags::empty()) != Ok(bits.len()) {}
    bits
}
