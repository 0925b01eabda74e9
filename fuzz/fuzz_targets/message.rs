//! Every message in every version, requests of all keys among them: decoded or refused within the
//! limits, and what is decoded can be encoded, and decoded again to the same.
//!
//! The first byte picks the message, the second the version.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ottla_wire::{Limits, Message, Reader, generated};

const LIMITS: Limits = Limits { elements: 100_000, memory: 16 << 20 };

fuzz_target!(|bytes: &[u8]| {
    let [message, version, body @ ..] = bytes else { return };
    let check = CHECKS[usize::from(*message) % CHECKS.len()];
    check(*version, body);
});

macro_rules! checks {
    ($($name:ident,)*) => {
        &[$(|pick, body| {
            let version = version::<generated::$name>(pick);
            let Some(written) = recode::<generated::$name>(version, body) else { return };
            // Unknown tagged fields are skipped, so only what we wrote must come back the same.
            let again = recode::<generated::$name>(version, &written);
            assert_eq!(again.as_deref(), Some(&*written));
        }),*]
    };
}
const CHECKS: &[fn(u8, &[u8])] = ottla_wire::each_message!(checks);

fn version<'a, M: Message<'a>>(pick: u8) -> i16 {
    M::VERSIONS.min + i16::from(pick) % (M::VERSIONS.max - M::VERSIONS.min + 1)
}

/// Decodes and encodes again. A message that was decoded can be encoded in the same version; in
/// the others it may be refused, no more.
fn recode<'a, M: Message<'a>>(version: i16, bytes: &'a [u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::with_limits(bytes, LIMITS);
    let message = M::decode(&mut reader, version).ok()?;
    M::VERSIONS.iter().for_each(|other| drop(message.to_vec(other)));
    Some(message.to_vec(version).expect("it was decoded"))
}
