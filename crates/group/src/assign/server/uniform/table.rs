//! Who owns which partition: one array over all partitions, a list through it for each member.
//!
//! Partitions of a topic lie side by side, so a partition is one small number; giving and taking
//! one costs a few writes, and no member has memory of its own. Knows no rule.

use super::super::facts::{MemberIx, TopicIx};
use alloc::vec::Vec;
use core::ops::Range;
use ottla_model::TopicId;

/// A partition: its place in the array.
pub(super) type PartitionIx = u32;

/// No member, no partition, no topic.
const NONE: u32 = u32::MAX;

/// Ownership of all partitions of all subscribed topics.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    cells: Vec<Cell>,
    hands: Vec<Hand>,
    /// What lies where, ascending.
    extents: Vec<Extent>,
    /// By topic slot.
    laid: Vec<Laid>,
    /// Cells of topics that are gone.
    wasted: usize,
    /// Whether some topic may lie in several extents, that is, out of order.
    has_grown: bool,
}

/// A partition's owner, and its neighbours in the owner's list.
#[derive(Clone, Copy, Debug)]
struct Cell {
    owner: MemberIx,
    next: PartitionIx,
    prev: PartitionIx,
}

/// A member's list and its length.
#[derive(Clone, Copy, Debug)]
struct Hand {
    first: PartitionIx,
    load: u32,
}

/// Partitions `base..base + len` of a topic, from cell `first` on.
#[derive(Clone, Copy, Debug)]
struct Extent {
    first: PartitionIx,
    len: u32,
    topic: TopicIx,
    base: u32,
}

/// A topic as it lies in the array; one that grew has several extents.
#[derive(Clone, Debug, Default)]
struct Laid {
    id: TopicId,
    count: u32,
    extents: Vec<Extent>,
}

impl Table {
    /// Makes room for a member's list.
    pub(super) fn admit(&mut self, member: MemberIx) {
        let slots = self.hands.len().max(member as usize + 1);
        self.hands.resize(slots, Hand { first: NONE, load: 0 });
    }

    /// How many partitions a member owns.
    pub(super) fn load(&self, member: MemberIx) -> u32 {
        self.hands[member as usize].load
    }

    /// The owner of a partition.
    pub(super) fn owner(&self, partition: PartitionIx) -> Option<MemberIx> {
        let owner = self.cells[partition as usize].owner;
        (owner != NONE).then_some(owner)
    }

    /// Gives a partition nobody owns to a member.
    pub(super) fn give(&mut self, partition: PartitionIx, member: MemberIx) {
        let hand = &mut self.hands[member as usize];
        let next = core::mem::replace(&mut hand.first, partition);
        hand.load += 1;
        self.cells[partition as usize] = Cell { owner: member, next, prev: NONE };
        if next != NONE {
            self.cells[next as usize].prev = partition;
        }
    }

    /// Takes a partition from its owner.
    pub(super) fn take(&mut self, partition: PartitionIx) {
        let Cell { owner, next, prev } = self.cells[partition as usize];
        let hand = &mut self.hands[owner as usize];
        hand.load -= 1;
        match prev {
            NONE => hand.first = next,
            prev => self.cells[prev as usize].next = next,
        }
        if next != NONE {
            self.cells[next as usize].prev = prev;
        }
        self.cells[partition as usize].owner = NONE;
    }

    /// What a member owns, latest first.
    pub(super) fn hand(&self, member: MemberIx) -> impl Iterator<Item = PartitionIx> + '_ {
        let first = self.hands.get(member as usize).map_or(NONE, |hand| hand.first);
        let some = |partition| (partition != NONE).then_some(partition);
        core::iter::successors(some(first), move |at| some(self.cells[*at as usize].next))
    }

    /// The id a topic had when it was laid; zero where it was not.
    pub(super) fn id(&self, topic: TopicIx) -> TopicId {
        self.laid.get(topic as usize).map_or(TopicId::ZERO, |laid| laid.id)
    }

    /// How many partitions a topic has here.
    pub(super) fn count(&self, topic: TopicIx) -> u32 {
        self.laid.get(topic as usize).map_or(0, |laid| laid.count)
    }

    /// The cells of a topic.
    pub(super) fn cells(&self, topic: TopicIx) -> impl Iterator<Item = Range<PartitionIx>> + '_ {
        let extents = self.laid.get(topic as usize).map_or(&[][..], |laid| &laid.extents);
        extents.iter().map(|extent| extent.first..extent.first + extent.len)
    }

    /// The cell of partition `index` of a topic.
    pub(super) fn cell(&self, topic: TopicIx, index: u32) -> Option<PartitionIx> {
        let extents = &self.laid.get(topic as usize)?.extents;
        let extent = extents.iter().find(|extent| index.wrapping_sub(extent.base) < extent.len)?;
        Some(extent.first + (index - extent.base))
    }

    /// The topics that have partitions here.
    pub(super) fn topics(&self) -> impl Iterator<Item = TopicIx> + '_ {
        let topics = (0..).zip(&self.laid).filter(|(_, laid)| laid.count > 0);
        topics.map(|(topic, _)| topic)
    }

    /// The topic whose cell this is, unless it is gone.
    pub(super) fn topic_of(&self, partition: PartitionIx) -> Option<TopicIx> {
        let topic = self.extents[self.extent_of(partition)].topic;
        (topic != NONE).then_some(topic)
    }

    /// The topic of a partition and its index there.
    pub(super) fn locate(&self, partition: PartitionIx) -> (TopicIx, u32) {
        let extent = self.extents[self.extent_of(partition)];
        (extent.topic, extent.base + (partition - extent.first))
    }

    /// What a member owns as runs of partition indices, those of one topic together and ascending.
    pub(super) fn runs(&self, member: MemberIx, mut each: impl FnMut(TopicIx, Range<u32>)) {
        let mut hand: Vec<_> = self.hand(member).collect();
        // Given in ascending order, mostly.
        hand.reverse();
        hand.sort();
        if !self.has_grown {
            return self.runs_of(&hand, each);
        }
        let mut runs = Vec::new();
        self.runs_of(&hand, |topic, run| runs.push((topic, run.start, run.end)));
        runs.sort_unstable();
        runs.into_iter().for_each(|(topic, start, end)| each(topic, start..end));
    }

    /// Ascending cells as runs, in the order in which they lie.
    fn runs_of(&self, cells: &[PartitionIx], mut each: impl FnMut(TopicIx, Range<u32>)) {
        let mut cells = cells.iter().copied().peekable();
        while let Some(first) = cells.next() {
            let extent = self.extents[self.extent_of(first)];
            let (mut start, mut end) = (first, first + 1);
            let index = |cell: PartitionIx| extent.base + (cell - extent.first);
            while let Some(next) = cells.next_if(|next| *next - extent.first < extent.len) {
                if next != end {
                    each(extent.topic, index(start)..index(end));
                    start = next;
                }
                end = next + 1;
            }
            each(extent.topic, index(start)..index(end));
        }
    }

    /// Lays the partitions of a topic that are not there yet; nobody owns them.
    pub(super) fn lay(&mut self, topic: TopicIx, id: TopicId, count: u32) -> Range<PartitionIx> {
        let slots = self.laid.len().max(topic as usize + 1);
        self.laid.resize(slots, Laid::default());
        let laid = &mut self.laid[topic as usize];
        let (first, len) = (self.cells.len() as u32, count - laid.count);
        let extent = Extent { first, len, topic, base: laid.count };
        (laid.id, laid.count) = (id, count);
        self.has_grown |= extent.base > 0 && len > 0;
        if len > 0 {
            laid.extents.push(extent);
            self.extents.push(extent);
            let fresh = Cell { owner: NONE, next: NONE, prev: NONE };
            self.cells.resize(first as usize + len as usize, fresh);
        }
        first..first + len
    }

    /// Drops a topic, whose partitions nobody owns any more.
    pub(super) fn drop_topic(&mut self, topic: TopicIx) {
        let Some(laid) = self.laid.get_mut(topic as usize) else { return };
        for gone in core::mem::take(laid).extents {
            let at = self.extents.partition_point(|extent| extent.first < gone.first);
            self.extents[at].topic = NONE;
            self.wasted += gone.len as usize;
        }
    }

    /// Whether so much is wasted that [`compacted`](Self::compacted) is worth its work.
    pub(super) fn is_wasteful(&self) -> bool {
        self.wasted > 1024 && self.wasted * 2 > self.cells.len()
    }

    /// The same ownership without the cells of topics that are gone. All cells change.
    pub(super) fn compacted(&self) -> Self {
        let mut fresh = Self::default();
        for (topic, laid) in self.laid.iter().enumerate().filter(|(_, laid)| laid.count > 0) {
            fresh.lay(topic as TopicIx, laid.id, laid.count);
        }
        for member in 0..self.hands.len() as MemberIx {
            fresh.admit(member);
            let mut hand: Vec<_> = self.hand(member).collect();
            hand.reverse();
            for partition in hand {
                let (topic, index) = self.locate(partition);
                let cell = fresh.cell(topic, index).expect("every laid topic was laid again");
                fresh.give(cell, member);
            }
        }
        fresh
    }

    fn extent_of(&self, partition: PartitionIx) -> usize {
        self.extents.partition_point(|extent| extent.first <= partition) - 1
    }
}
