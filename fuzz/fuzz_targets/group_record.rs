//! Records of the offsets topic: read or refused, and what is read can be written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ottla_wire::convert::record::{Decoded, decode, encode};

fuzz_target!(|input: (&[u8], Option<&[u8]>)| {
    let (key, value) = input;
    let Ok(Decoded::Record(record)) = decode(Some(key), value) else { return };
    let Ok(written) = encode(&record) else { return };
    let again = decode(Some(&written.key), written.value.as_deref()).expect("just written");
    let Decoded::Record(again) = again else { panic!("a kind that we write") };
    // An old layout may say what the one written cannot; from then on nothing changes any more.
    assert_eq!(encode(&again).expect("it was written before"), written);
});
