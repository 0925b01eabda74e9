//! Every codec on its own: round trips, foreign framings, bombs, damage.

use proptest::prelude::*;

use super::*;

const PACKING: [Compression; 4] =
    [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn packed(codec: Compression, plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    pack(codec, plain, &mut out).expect("packing into memory");
    out
}

fn unpacked(codec: Compression, packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, RecordsError> {
    let mut out = b"left over from the batch before".to_vec();
    unpack(codec, packed, bytes_max, &mut out).map(|()| out)
}

fn too_large(bytes_max: usize) -> Result<Vec<u8>, RecordsError> {
    Err(RecordsError::TooLarge { bytes_max })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_codec_gives_back_what_it_packed(
        plain in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..3_000),
            proptest::collection::vec(0u8..4, 0..70_000),
        ],
    ) {
        for codec in Compression::ALL {
            let packed = packed(codec, &plain);
            prop_assert_eq!(unpacked(codec, &packed, plain.len()), Ok(plain.clone()));
        }
    }

    #[test]
    fn no_codec_panics_or_passes_its_bound_on_arbitrary_bytes(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..500),
        prefix in 0usize..5,
        bytes_max in 0usize..4_000,
    ) {
        // Arbitrary bytes rarely begin as a codec wants, so help them past the door.
        let prefixes: [&[u8]; 5] = [
            b"",
            b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
            b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x20",
            b"\x04\x22\x4d\x18\x60\x40\x82",
            b"\x28\xb5\x2f\xfd\0\x58",
        ];
        bytes.splice(0..0, prefixes[prefix].iter().copied());
        for codec in Compression::ALL {
            if let Ok(out) = unpacked(codec, &bytes, bytes_max) {
                prop_assert!(out.len() <= bytes_max);
            }
        }
    }

    #[test]
    fn cutting_a_packed_body_is_an_error(
        plain in proptest::collection::vec(any::<u8>(), 1..500),
        keep in 0.0..1.0f64,
    ) {
        for codec in PACKING {
            let mut packed = packed(codec, &plain);
            packed.truncate((packed.len() as f64 * keep) as usize);
            let out = unpacked(codec, &packed, 1 << 20);
            prop_assert!(out.as_ref() != Ok(&plain), "{codec:?} read {} bytes", packed.len());
        }
    }
}

/// A few kilobytes that unpack to 8 MiB must cost no more than the bound.
#[test]
fn a_bomb_is_an_error_at_the_bound() {
    let plain = vec![0u8; 8 << 20];
    for codec in PACKING {
        let packed = packed(codec, &plain);
        let mut out = Vec::new();
        let error = unpack(codec, &packed, 100_000, &mut out).expect_err("a bomb");
        assert_eq!(error, RecordsError::TooLarge { bytes_max: 100_000 }, "{codec:?}");
        assert!(out.capacity() < 512 << 10, "{codec:?} kept {} bytes", out.capacity());
    }
}

#[test]
fn output_of_exactly_the_bound_is_allowed_and_one_byte_more_is_not() {
    let plain: Vec<u8> = (0..70_000u32).map(|i| (i % 251) as u8).collect();
    for codec in Compression::ALL {
        let packed = packed(codec, &plain);
        assert_eq!(unpacked(codec, &packed, plain.len()), Ok(plain.clone()), "{codec:?}");
        assert_eq!(unpacked(codec, &packed, plain.len() - 1), too_large(plain.len() - 1));
    }
}

/// librdkafka and sarama send one raw block; the Java client reads it, so must we.
#[test]
fn snappy_as_one_raw_block_is_read() {
    let plain = b"abcabcabcabcabcabcabcabcabc";
    let raw = snap::raw::Encoder::new().compress_vec(plain).expect("packing into memory");
    assert_eq!(unpacked(Compression::Snappy, &raw, 100), Ok(plain.to_vec()));
}

/// The Java library reads streams that were written one after another.
#[test]
fn snappy_streams_may_be_concatenated() {
    let mut stream = packed(Compression::Snappy, b"first,");
    stream.extend(packed(Compression::Snappy, b"second"));
    assert_eq!(unpacked(Compression::Snappy, &stream, 100), Ok(b"first,second".to_vec()));
}

/// A raw block of five bytes that claims 4 GiB.
#[test]
fn snappy_does_not_trust_the_length_of_a_block() {
    let claim = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let error = unpacked(Compression::Snappy, &claim, usize::MAX).expect_err("a lie");
    assert!(matches!(error, RecordsError::Unpack { codec: "snappy", .. }), "{error}");
}

/// The Java client calls these unsupported, so storing them would poison its consumers.
#[test]
fn lz4_of_dependent_blocks_is_refused() {
    use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};
    let linked = FrameInfo::new().block_mode(BlockMode::Linked);
    let mut encoder = FrameEncoder::with_frame_info(linked, Vec::new());
    std::io::Write::write_all(&mut encoder, b"some records").expect("packing into memory");
    let frame = encoder.finish().expect("packing into memory");
    let error = unpacked(Compression::Lz4, &frame, 100).expect_err("refused");
    assert!(error.to_string().contains("independent blocks"), "{error}");
}

/// What Go's, C's and Python's libraries write by default or at a user's wish: larger blocks, the
/// content's size, checksums, blocks that are not packed.
#[test]
fn lz4_of_every_kind_that_kafka_reads_is_read() {
    use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
    let mut noise = 1u32;
    let mut byte = |index: u32| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if index < 100_000 { (noise >> 24) as u8 } else { b'a' }
    };
    let plain: Vec<u8> = (0..300_000).map(&mut byte).collect();
    for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB] {
        let info = FrameInfo::new().block_size(size).block_checksums(true).content_checksum(true);
        let info = info.content_size(Some(plain.len() as u64));
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        std::io::Write::write_all(&mut encoder, &plain).expect("packing into memory");
        let frame = encoder.finish().expect("packing into memory");
        assert_eq!(unpacked(Compression::Lz4, &frame, plain.len()), Ok(plain.clone()));
        assert_eq!(unpacked(Compression::Lz4, &frame, plain.len() - 1), too_large(plain.len() - 1));
        // Header, checksums of blocks and content: whichever byte changes, it is noticed.
        for at in [4, 5, 8, 14, 20, 50_000, frame.len() - 1] {
            let mut damaged = frame.clone();
            damaged[at] ^= 0x10;
            let read = unpacked(Compression::Lz4, &damaged, 1 << 20);
            assert!(read.is_err(), "byte {at} of {}", frame.len());
        }
    }
}

/// A frame of a few bytes may ask for a window of 2 GiB; none is allocated for it.
#[test]
fn zstd_of_unknown_size_is_read_without_its_window() {
    let mut encoder = zstd_writer();
    std::io::Write::write_all(&mut encoder, &[7u8; 50_000]).expect("packing into memory");
    let frame = encoder.finish().expect("packing into memory");
    assert_eq!(unpacked(Compression::Zstd, &frame, 50_000), Ok(vec![7; 50_000]));
    assert_eq!(unpacked(Compression::Zstd, &frame, 49_999), too_large(49_999));
}

/// The first frame says it holds nothing, and so it does; the second holds more. (Found by fuzzing:
/// twice no room is no room, for ever.)
#[test]
fn zstd_frames_are_read_to_the_last_whatever_the_first_one_says() {
    let mut frames = packed(Compression::Zstd, b"");
    frames.extend(packed(Compression::Zstd, b"second"));
    assert_eq!(unpacked(Compression::Zstd, &frames, 100), Ok(b"second".to_vec()));
    assert_eq!(unpacked(Compression::Zstd, &frames, 5), too_large(5));
    assert_eq!(unpacked(Compression::Zstd, &frames, 0), too_large(0));
}

fn zstd_writer() -> ::zstd::stream::write::Encoder<'static, Vec<u8>> {
    let mut encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 3).expect("an encoder");
    encoder.window_log(27).expect("a window of 128 MiB");
    encoder
}

/// What Python's two clients make of the same text (aiokafka's and kafka-python's own functions).
#[test]
fn bodies_that_python_clients_packed_are_read() {
    let plain = "0123456789abcdef".repeat(5000).into_bytes();
    let bodies: [(Compression, &[u8]); 8] = [
        (Compression::Gzip, include_bytes!("../../fixtures/bodies/aiokafka.gzip")),
        (Compression::Snappy, include_bytes!("../../fixtures/bodies/aiokafka.snappy")),
        (Compression::Lz4, include_bytes!("../../fixtures/bodies/aiokafka.lz4")),
        (Compression::Zstd, include_bytes!("../../fixtures/bodies/aiokafka.zstd")),
        (Compression::Gzip, include_bytes!("../../fixtures/bodies/kafka-python.gzip")),
        (Compression::Snappy, include_bytes!("../../fixtures/bodies/kafka-python.snappy")),
        (Compression::Lz4, include_bytes!("../../fixtures/bodies/kafka-python.lz4")),
        (Compression::Zstd, include_bytes!("../../fixtures/bodies/kafka-python.zstd")),
    ];
    for (codec, body) in bodies {
        assert_eq!(unpacked(codec, body, plain.len()), Ok(plain.clone()), "{codec:?}");
    }
}
