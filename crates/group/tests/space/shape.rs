//! Numbers that tell things apart.

use crate::world::ids;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use ottla_model::MemberId;
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};

/// A map that is quick, and the same from run to run.
pub type Map<K, V> = HashMap<K, V, FixedState>;

/// What a thing is, whoever it is about.
#[derive(Clone, Copy, Default, Debug)]
pub struct Shape {
    /// Equal for things that differ but in the name of the member they are about.
    pub hash: u64,
    /// Whether it names others.
    pub names_others: bool,
}

impl Shape {
    /// Of a thing about a member.
    pub fn of(thing: &impl Debug, id: &MemberId) -> Self {
        let text = nameless(thing, id);
        let names_others = ids().any(|other| other != id && text.contains(other.as_str()));
        Self { hash: hashed(&text), names_others }
    }
}

/// A thing as text, without the name of the member it is about.
pub fn nameless(thing: &impl Debug, id: &MemberId) -> String {
    format!("{thing:?}").replace(id.as_str(), "*")
}

/// Equal for equal things; for others, but for an accident of one in 2^64, not.
pub fn hashed(thing: &(impl Hash + ?Sized)) -> u64 {
    foldhash::quality::FixedState::with_seed(7).hash_one(thing)
}
