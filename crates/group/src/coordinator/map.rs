//! Hash maps with a seed from outside: quick, hard to flood, and the same from run to run.
//!
//! Order of iteration is arbitrary, so nothing that leaves the shard may depend on it.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// A hash map seeded by [`Config::hash_seed`](super::Config::hash_seed).
pub(super) type Map<K, V> = HashMap<K, V, FixedState>;

/// An empty map with this seed; it allocates with its first entry.
pub(super) fn seeded<K, V>(seed: u64) -> Map<K, V> {
    Map::with_hasher(FixedState::with_seed(seed))
}
