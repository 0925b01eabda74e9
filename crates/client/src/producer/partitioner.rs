//! Which partition a record goes to. Pure: what it needs to know of the topic is an argument.
//!
//! A key's partition is Java's, byte for byte: murmur2 of the key. Records without a key stick to
//! one partition until it got a batch's worth of bytes, then move to another, drawn evenly
//! (KIP-794's uniform sticky partitioner, without its adaption to slow brokers).

use ottla_model::PartitionId;

/// The partition of `key` among `partitions`, which are not 0.
pub(super) fn of_key(key: &[u8], partitions: usize) -> PartitionId {
    let hash = murmur2(key) & 0x7fff_ffff;
    let count = u32::try_from(partitions).unwrap_or(u32::MAX).max(1);
    PartitionId((hash % count) as i32)
}

/// Where records without a key go in one topic.
#[derive(Debug)]
pub(super) struct Sticky {
    current: Option<PartitionId>,
    /// Bytes the current one got.
    bytes: usize,
    random: u64,
}

impl Sticky {
    pub(super) fn new(seed: u64) -> Self {
        Self { current: None, bytes: 0, random: seed }
    }

    /// The partition for a record of `size` bytes; `is_available` says which ones have a leader
    /// (if none has, all are as good).
    pub(super) fn next(
        &mut self,
        size: usize,
        batch_size: usize,
        partitions: usize,
        is_available: impl Fn(usize) -> bool,
    ) -> PartitionId {
        let stays = |current: &PartitionId| {
            let index = usize::try_from(current.0).unwrap_or(usize::MAX);
            index < partitions && self.bytes < batch_size && is_available(index)
        };
        let current = match self.current.filter(stays) {
            Some(current) => current,
            None => {
                self.bytes = 0;
                self.draw(partitions, is_available)
            }
        };
        self.bytes = self.bytes.saturating_add(size);
        self.current = Some(current);
        current
    }

    fn draw(&mut self, partitions: usize, is_available: impl Fn(usize) -> bool) -> PartitionId {
        let available = (0..partitions).filter(|index| is_available(*index)).count();
        let random = self.random();
        let index = match available {
            0 => random % partitions.max(1),
            _ => {
                let mut those = (0..partitions).filter(|index| is_available(*index));
                those.nth(random % available).unwrap_or(0)
            }
        };
        PartitionId(i32::try_from(index).unwrap_or(i32::MAX))
    }

    /// SplitMix64.
    fn random(&mut self) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 1) as usize
    }
}

/// The hash of Kafka's Java client: MurmurHash2, 32 bits, with its seed.
fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    let mut hash = SEED ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (place, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * place);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Kafka's own test (UtilsTest.testMurmur2).
    #[test]
    fn murmur2_is_javas() {
        let vectors: [(&[u8], i32); 7] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
            (b"", 275_646_681),
        ];
        for (key, hash) in vectors {
            assert_eq!(murmur2(key) as i32, hash, "{key:?}");
        }
        assert_eq!(of_key(b"foobar", 6), PartitionId((-790_332_482_i32 & 0x7fff_ffff) % 6));
    }

    #[test]
    fn records_without_a_key_stick_for_a_batch_and_then_spread() {
        let mut sticky = Sticky::new(1);
        let mut counts = [0_usize; 4];
        for _ in 0..4000 {
            let first = sticky.next(40, 100, 4, |_| true);
            assert_eq!(sticky.next(40, 100, 4, |_| true), first);
            assert_eq!(sticky.next(40, 100, 4, |_| true), first);
            counts[first.0 as usize] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_partition_without_leader_is_left_out_unless_all_are() {
        let mut sticky = Sticky::new(1);
        for _ in 0..100 {
            assert_eq!(sticky.next(100, 1, 4, |index| index == 2), PartitionId(2));
        }
        let mut nobody = Sticky::new(1);
        assert!((0..4).contains(&nobody.next(1, 1, 4, |_| false).0));
    }
}
