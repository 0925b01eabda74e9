//! Numbers that tell things apart.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use ottla_model::MemberId;
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};

/// A map that is quick, and the same from run to run.
pub type Map<K, V> = HashMap<K, V, FixedState>;

/// A thing as text, without the name of the member it is about.
pub fn nameless(thing: &impl Debug, id: &MemberId) -> String {
    format!("{thing:?}").replace(id.as_str(), "*")
}

/// Equal for equal things; for others, but for an accident of one in 2^64, not.
pub fn hashed(thing: &(impl Hash + ?Sized)) -> u64 {
    foldhash::quality::FixedState::with_seed(7).hash_one(thing)
}
