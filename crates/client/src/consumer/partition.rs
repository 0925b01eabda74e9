//! One partition that a consumer reads: where it stands, how far it was handed out, what was
//! fetched ahead. Pure; knows nothing of the partitions beside it.

use super::shelf::Shelf;
use crate::cluster::OffsetSpec;
use crate::{Error, ErrorKind, OffsetReset};
use ottla_model::{Instant, LeaderEpoch, NodeId, Offset, TopicPartition};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};

/// Where a partition is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Position {
    /// The next offset.
    pub(super) offset: Offset,
    /// The leader epoch of the record before it, where known (KIP-320).
    pub(super) epoch: Option<LeaderEpoch>,
}

/// How far one partition was handed out. A seek or a new assignment makes a new one, so whoever
/// still holds an old one changes nothing any more.
#[derive(Debug)]
pub(super) struct Progress {
    /// Where handing out goes on.
    next: AtomicI64,
    epoch: AtomicI32,
    /// What may be committed without being asked: before it the application has finished.
    pub(super) done: AtomicI64,
    is_over: AtomicBool,
}

impl Progress {
    fn new(from: Position) -> Self {
        Self {
            next: AtomicI64::new(from.offset.0),
            epoch: AtomicI32::new(from.epoch.map_or(-1, |epoch| epoch.0)),
            done: AtomicI64::new(from.offset.0),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn position(&self) -> Position {
        let epoch = self.epoch.load(Ordering::Relaxed);
        Position {
            offset: Offset(self.next.load(Ordering::Acquire)),
            epoch: (epoch >= 0).then_some(LeaderEpoch(epoch)),
        }
    }

    /// Handed out up to `next`.
    pub(super) fn advance(&self, next: Offset, epoch: Option<LeaderEpoch>) {
        self.epoch.store(epoch.map_or(-1, |epoch| epoch.0), Ordering::Relaxed);
        self.next.store(next.0, Ordering::Release);
    }

    /// The application has finished with everything before `offset`.
    pub(super) fn finish(&self, offset: Offset) {
        self.done.store(offset.0, Ordering::Release);
    }

    /// The application has finished with everything that was handed out.
    pub(super) fn finish_handed_out(&self) {
        self.finish(self.position().offset);
    }

    /// Whether its partition is read elsewhere or not at all any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// What a partition waits for before it can be fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// The application is being told that it owns it.
    New,
    /// Its committed offset.
    Committed,
    /// An offset to be looked up.
    Lookup(OffsetSpec),
    /// Whether its log was cut before its position (KIP-320).
    Validation,
    /// Nothing.
    Ready,
    /// The application gives it up: it is not read any more.
    Leaving,
    /// The application to say where to read.
    Stuck,
}

/// One partition.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) key: Arc<TopicPartition>,
    pub(super) standing: Standing,
    pub(super) progress: Arc<Progress>,
    /// Where fetching goes on: ahead of handing out.
    pub(super) fetch_at: Position,
    /// The leader epoch its position was last found right under.
    pub(super) validated: Option<LeaderEpoch>,
    pub(super) is_paused: bool,
    pub(super) shelves: VecDeque<Shelf>,
    /// Where taking off the shelves goes on; ahead of the position while a stream hands out.
    pub(super) taken: Option<Offset>,
    pub(super) held: usize,
    /// A lookup or a validation is under way.
    pub(super) is_asked: bool,
    /// Not before this is it asked about or fetched again.
    pub(super) wait_until: Instant,
    pub(super) high_watermark: Option<Offset>,
    /// A nearer replica to fetch from, and until when (KIP-392).
    pub(super) replica: Option<(NodeId, Instant)>,
    pub(super) error: Option<Error>,
}

impl Partition {
    pub(super) fn new(key: Arc<TopicPartition>, standing: Standing) -> Self {
        let nowhere = Position { offset: Offset(-1), epoch: None };
        Self {
            key,
            standing,
            progress: Arc::new(Progress::new(nowhere)),
            fetch_at: nowhere,
            validated: None,
            is_paused: false,
            shelves: VecDeque::new(),
            taken: None,
            held: 0,
            is_asked: false,
            wait_until: Instant::ZERO,
            high_watermark: None,
            replica: None,
            error: None,
        }
    }

    /// Its position, once it has one.
    pub(super) fn position(&self) -> Option<Position> {
        let position = self.progress.position();
        (position.offset.0 >= 0).then_some(position)
    }

    /// Who hands it out now.
    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Whether it may be fetched: nothing is in the way, and not enough of it waits already.
    pub(super) fn is_fetchable(&self, held_max: usize, now: Instant) -> bool {
        self.standing == Standing::Ready
            && !self.is_paused
            && self.held < held_max
            && self.wait_until <= now
            && self.error.is_none()
    }

    /// Reads on from `position`; what was fetched before counts no more.
    pub(super) fn move_to(&mut self, position: Position) {
        self.forget_fetched();
        self.fetch_at = position;
        self.progress = Arc::new(Progress::new(position));
        self.error = None;
    }

    /// As [`Self::move_to`], to where it is looked for first.
    pub(super) fn look_for(&mut self, spec: OffsetSpec) {
        self.move_to(Position { offset: Offset(-1), epoch: None });
        self.standing = Standing::Lookup(spec);
        self.is_asked = false;
    }

    pub(super) fn forget_fetched(&mut self) {
        self.progress.is_over.store(true, Ordering::Release);
        self.shelves.clear();
        (self.taken, self.held) = (None, 0);
    }

    /// Where taking off the shelves goes on.
    pub(super) fn read_at(&self) -> Offset {
        self.taken.unwrap_or_else(|| self.progress.position().offset)
    }

    /// Something is wrong that the application has to hear of.
    pub(super) fn fail(&mut self, error: Error) {
        self.error = Some(error.about(vec![TopicPartition::clone(&self.key)]));
    }
}

/// Where to read without a position.
pub(super) fn reset_by_policy(partition: &mut Partition, reset: OffsetReset, why: &str) {
    match reset {
        OffsetReset::Earliest => partition.look_for(OffsetSpec::Earliest),
        OffsetReset::Latest => partition.look_for(OffsetSpec::Latest),
        OffsetReset::None => {
            partition.standing = Standing::Stuck;
            let message = format!("{} {why}, and `auto.offset.reset` is `none`", partition.key);
            partition.fail(Error::new(ErrorKind::NoOffset, message));
        }
    }
}
