//! Hooks for tests alone: coverage marks, and bugs that can be switched on.
//!
//! A [`Mark`] names a subtle branch; the swarm counts which were reached and fails where one never
//! is. A [`Fault`] names a bug somebody could make; the swarm must find each. Without the feature
//! `probe` (only this crate's own tests turn it on) both compile to nothing. No rule may depend on
//! this module.

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }
    };
}

names! {
    /// A branch that is easy to get wrong and easy never to reach in a test.
    Mark {
        /// A leader withheld a partition that its old owner still holds (KIP-429).
        MemberWithheld,
        /// A member's ownership ended because no answer came for a session timeout.
        MemberSessionLapsed,
        /// A sync was answered so late that the member asked again before it owned anything.
        MemberConfirmed,
        /// A member finished revoking while a commit was still on its way.
        MemberCommitBeforeJoin,
        /// A commit was sent again because its first outcome is unknown.
        MemberCommitRetried,
        /// A member was fenced by another of its instance id.
        MemberFenced,
        /// A member heard that its generation is over.
        MemberIllegalGeneration,
        /// A member heard that its id is unknown.
        MemberUnknown,
        /// A member heard of a rebalance while it waited for its assignment.
        MemberRebalanceInSync,
        /// A member joined a second time with the id it was given.
        MemberIdAdopted,
        /// A leader was told to skip assignment (KIP-814).
        MemberSkippedAssignment,
        /// A cooperative member gave up partitions and joined once more to hand them on.
        MemberSecondRebalance,
    }
}

names! {
    /// A bug that the swarm must be able to find.
    Fault {
        /// The member keeps delivering after its session lapsed without an answer.
        MemberIgnoresLapse,
        /// The member joins before its revocation is acknowledged.
        MemberJoinsBeforeRevoked,
        /// The cooperative leader hands out partitions their old owner still holds.
        LeaderForgetsToWithhold,
    }
}

/// Notes that `mark` was reached.
#[inline(always)]
pub fn hit(mark: Mark) {
    #[cfg(feature = "probe")]
    state::hit(mark);
    #[cfg(not(feature = "probe"))]
    let _ = mark;
}

/// Whether `fault` is switched on; never, without the feature.
#[inline(always)]
pub fn has(fault: Fault) -> bool {
    #[cfg(feature = "probe")]
    return state::has(fault);
    #[cfg(not(feature = "probe"))]
    {
        let _ = fault;
        false
    }
}

#[cfg(feature = "probe")]
pub use state::{hits, inject};

#[cfg(feature = "probe")]
mod state {
    use super::{Fault, Mark};
    use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

    const NONE: u32 = u32::MAX;
    static HITS: [AtomicBool; Mark::ALL.len()] =
        [const { AtomicBool::new(false) }; Mark::ALL.len()];
    static FAULT: AtomicU32 = AtomicU32::new(NONE);

    pub(super) fn hit(mark: Mark) {
        let slot = &HITS[mark as usize];
        // Reading first keeps the line shared between threads once the mark is set.
        if !slot.load(Relaxed) {
            slot.store(true, Relaxed);
        }
    }

    pub(super) fn has(fault: Fault) -> bool {
        FAULT.load(Relaxed) == fault as u32
    }

    /// Every mark, and whether it was reached in this process.
    pub fn hits() -> impl Iterator<Item = (Mark, bool)> {
        Mark::ALL.iter().map(|mark| (*mark, HITS[*mark as usize].load(Relaxed)))
    }

    /// Switches one bug on for the whole process, or all off.
    pub fn inject(fault: Option<Fault>) {
        FAULT.store(fault.map_or(NONE, |fault| fault as u32), Relaxed);
    }
}
