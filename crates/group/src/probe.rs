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
        /// A leader that withheld partitions had to start the next rebalance itself.
        MemberNudged,
        /// A member's ownership ended because no answer came for a session timeout.
        MemberSessionLapsed,
        /// A sync was answered so late that the member asked again before it owned anything.
        MemberConfirmed,
        /// A member finished revoking while a commit was still on its way.
        MemberCommitBeforeJoin,
        /// A commit was sent again because its first outcome is unknown.
        MemberCommitRetried,
        /// A commit was given up while it was under way, and its connection with it.
        MemberCommitAbandoned,
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
        /// A cooperative member lost partitions while it joined with them, and joined once more
        /// for those who wait for them.
        MemberLostWhileJoining,
        /// An initial rebalance was extended because someone came.
        CoordinatorExtendedInitial,
        /// A barrier closed without a dynamic member, which was dropped.
        CoordinatorDroppedAbsent,
        /// A barrier closed with a static member that had not come, which kept its place.
        CoordinatorKeptAbsentStatic,
        /// A barrier's time was up and nobody had come to it.
        CoordinatorFoundNobody,
        /// A generation was overtaken before its leader had assigned.
        CoordinatorOvertookGeneration,
        /// A member did not sync in time and was dropped.
        CoordinatorDroppedUnsynced,
        /// A session ended in silence.
        CoordinatorSessionEnded,
        /// A member did not give up in time what it was told to.
        CoordinatorRevocationEnded,
        /// A promised id was never used.
        CoordinatorPromiseEnded,
        /// A static member took the place of its former self without a rebalance.
        CoordinatorReplacedStatic,
        /// A parked request of a former self was fenced.
        CoordinatorFencedParked,
        /// A member that nobody could speak for went with its connection.
        CoordinatorStrangerGone,
        /// A member known only from the log rejoined unchanged and was not rebalanced for.
        CoordinatorMatchedRestored,
        /// Ownership ran out with requests parked.
        CoordinatorLapsedParked,
        /// Ownership was renewed after it had run out.
        CoordinatorRenewedLate,
        /// An answer of absence waited for a removal.
        CoordinatorAbsenceWaited,
        /// Offsets went because their topic had.
        CoordinatorForgotTopic,
        /// A commit named a topic that was recreated meanwhile.
        CoordinatorRefusedStaleTopic,
        /// A dead member lost no socket, because somebody alive speaks on it.
        CoordinatorSparedSocket,
        /// A member whose answer was kept heard the news at once.
        CoordinatorToldHeld,
        /// A classic member of a group of the consumer protocol, whose answer was kept, heard of
        /// its next step at once.
        CoordinatorToldHeldClassic,
        /// A member of the consumer protocol, whose answer was kept, heard at once what it may own.
        CoordinatorToldHeldConsumer,
        /// A classic group became one of the consumer protocol.
        CoordinatorUpgraded,
        /// A group of the consumer protocol became a classic one.
        CoordinatorDowngraded,
        /// An answer was kept as long as it may be.
        CoordinatorHeldInFull,
        /// A kept answer was given because another request waited behind it.
        CoordinatorHoldGaveWay,
        /// A deadline was missed by a process that stood still, and put off.
        CoordinatorForgaveStall,
        /// A commit of an epoch before was taken, for what its member has held since.
        CoordinatorTookEarlierCommit,
        /// A commit came for a generation that is over.
        CoordinatorFencedCommit,
        /// A member of the consumer protocol was told of a topic it did not know yet.
        MemberMetUnknownTopic,
    }
}

names! {
    /// A bug that the swarm must be able to find.
    Fault {
        /// The member keeps delivering after its session lapsed without an answer.
        MemberIgnoresLapse,
        /// The member joins before its revocation is acknowledged.
        MemberJoinsBeforeRevoked,
        /// The member of the consumer protocol reports as given up what its application still has.
        MemberReportsEarly,
        /// The cooperative leader hands out partitions their old owner still holds.
        LeaderForgetsToWithhold,
        /// The log takes appends of owners that are deposed.
        LogWithoutFence,
        /// The log keeps a part of a batch.
        LogTearsBatches,
        /// The coordinator answers before the record is durable.
        CoordinatorAnswersEarly,
        /// The coordinator takes commits of any generation.
        CoordinatorTakesStaleCommits,
        /// The coordinator goes on past the end of its ownership.
        CoordinatorOutlivesOwnership,
        /// The coordinator does not count generations up.
        CoordinatorReusesGenerations,
        /// The coordinator that takes over may tell of a generation that was told of before.
        CoordinatorRepeatsGenerations,
        /// The coordinator lets a former self of a static member go on.
        CoordinatorFencesNobody,
        /// The coordinator gives members of the consumer protocol what others still hold.
        CoordinatorForgetsHolders,
        /// The coordinator takes for given up what it told members of the consumer protocol to
        /// give up.
        CoordinatorBelievesEveryone,
        /// The coordinator does not tell members of the consumer protocol what became theirs.
        CoordinatorTellsNobody,
        /// The coordinator that makes a classic group one of the consumer protocol forgets what its
        /// members have yet to give up, as Kafka's does.
        UpgradeForgetsOwed,
        /// The coordinator that makes a group a classic one writes down what its members are to
        /// hold, not what they do, as Kafka's does.
        DowngradeWritesTarget,
        /// The coordinator that makes a group a classic one keeps its epoch, as Kafka's does: the
        /// next coordinator takes it for a group at rest.
        DowngradeKeepsEpoch,
        /// The coordinator answers of absence before the removal is durable.
        CoordinatorForgetsRemovals,
        /// The coordinator forgets to answer followers when the leader has assigned.
        CoordinatorForgetsFollowers,
        /// The coordinator hands a static member that came back nobody's assignment.
        CoordinatorLosesStaticAssignment,
        /// The coordinator takes an assignment of any generation.
        CoordinatorTakesStaleAssignments,
        /// The coordinator that takes over starts no sessions: the dead stay members.
        CoordinatorRestoresNoSessions,
        /// The coordinator keeps an answer although there is something to tell.
        CoordinatorKeepsNews,
        /// The coordinator that takes over shows offsets of a topic that was recreated.
        CoordinatorInheritsOffsets,
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
