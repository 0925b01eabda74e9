//! What the rows of the table ask of a protocol: members without a mind of their own, which do what
//! the test tells them and remember what they were told.

use crate::eventually;
use crate::stage::Stage;
use crate::wire::Wire;
use std::collections::{BTreeMap, BTreeSet};

/// A partition.
pub(crate) type Slot = (String, i32);
/// Who has which partition.
pub(crate) type Owners = BTreeMap<Slot, String>;

/// One member's process.
pub(crate) struct Process {
    pub(crate) id: String,
    pub(crate) instance: Option<&'static str>,
    pub(crate) topics: Vec<String>,
    pub(crate) owned: BTreeSet<Slot>,
    pub(crate) session_timeout_ms: i32,
    /// How long it may take for its part of a rebalance, where it can say that.
    pub(crate) rebalance_timeout_ms: i32,
    /// Its generation or epoch.
    pub(crate) generation: i32,
    /// The protocol's own: whether it waits for an answer to its join.
    pub(crate) is_joining: bool,
    pub(crate) wire: Wire,
}

impl Process {
    /// A process that is patient with a loaded machine.
    pub(crate) fn new(stage: &Stage, client: &'static str, topics: &[String]) -> Self {
        let mut wire = stage.wire();
        wire.client = client;
        Self {
            id: String::new(),
            instance: None,
            topics: topics.to_vec(),
            owned: BTreeSet::new(),
            session_timeout_ms: 60_000,
            rebalance_timeout_ms: 60_000,
            generation: -1,
            is_joining: false,
            wire,
        }
    }
}

/// A group's members, of one protocol.
pub(crate) trait Protocol {
    /// The host that members come from, as the journal has it.
    const HOST: &'static str;
    /// Why they do what they do, in their own words, where the protocol carries that (KIP-800).
    const REASON: Option<&'static str>;
    /// Whether it is a member, the first, that tells the group of topics that changed.
    const LEADER_WATCHES: bool;
    /// The shortest session timeout there may be here.
    const SESSION_MS_MIN: i32;

    fn new(group: &str) -> Self;
    fn group(&self) -> &str;
    fn cast(&mut self) -> &mut Vec<Process>;
    /// Asks to join. It is in once the group is [settled](settle).
    fn enter(&mut self, stage: &Stage, process: Process);
    /// Says goodbye.
    fn leave(&mut self, index: usize);
    /// A static member stops for now, as far as the protocol knows that.
    fn stop_for_now(&mut self, process: &mut Process);
    /// Says that it wants other topics.
    fn subscribe(&mut self, stage: &Stage, index: usize, topics: &[String]);
    /// What the leader does that sees a topic change.
    fn ask_for_assignment(&mut self, stage: &Stage);
    /// What a process is answered that is alive.
    fn beat_error(&mut self, stage: &Stage, process: &mut Process) -> i16;
    /// What a process does that lives, but does not do its part of a rebalance.
    fn dawdle(&mut self, stage: &Stage, process: &mut Process);
    /// The first member votes for this assignor of the coordinator's.
    fn vote(&mut self, _assignor: &'static str) {}
    /// One round of what all members do when nothing is asked of them.
    fn step(&mut self, stage: &Stage);
}

/// Everyone does what the protocol asks, until the group is stable beyond this generation.
pub(crate) fn settle<P: Protocol>(stage: &Stage, members: &mut P, beyond: i32) {
    eventually("the group is stable", || {
        members.step(stage);
        let journal = stage.journal(members.group());
        let generation = journal.generation.0;
        generation > beyond
            && (journal.state == "Stable" || journal.state == "Empty")
            && members.cast().iter().all(|member| member.generation == generation)
    });
}

/// Who has what now, as the members were told.
pub(crate) fn owners<P: Protocol>(members: &mut P) -> Owners {
    let mut owners = Owners::new();
    for member in members.cast() {
        for slot in &member.owned {
            let other = owners.insert(slot.clone(), member.id.clone());
            assert_eq!(other, None, "{slot:?} has two owners");
        }
    }
    owners
}
