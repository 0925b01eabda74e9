//! The partitions a consumer reads, and how far: positions, what was fetched ahead, what is in the
//! way. Pure: the fetcher puts in, polling takes out, seeks and rebalances change, all under one
//! lock that nobody holds across a wait.

use super::partition::{Partition, Position, Progress, Standing, reset_by_policy};
use super::record::{Records, Slice};
use super::shelf::Shelf;
use crate::cluster::{OffsetSpec, Snapshot};
use crate::{Error, ErrorKind, OffsetReset, Result};
use ottla_model::{LeaderEpoch, Offset, TopicPartition};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// All of them.
#[derive(Debug)]
pub(super) struct Assignment {
    partitions: BTreeMap<Arc<TopicPartition>, Partition>,
    /// Those with something to hand out, next one first.
    turns: VecDeque<Arc<TopicPartition>>,
    reset: OffsetReset,
}

impl Assignment {
    pub(super) fn new(reset: OffsetReset) -> Self {
        Self { partitions: BTreeMap::new(), turns: VecDeque::new(), reset }
    }

    /// These are read, too, once they stand better than `standing`.
    pub(super) fn add(
        &mut self,
        partitions: impl IntoIterator<Item = TopicPartition>,
        standing: Standing,
    ) {
        for partition in partitions {
            let key = Arc::new(partition);
            if !self.partitions.contains_key(&key) {
                self.partitions.insert(key.clone(), Partition::new(key, standing));
            }
        }
    }

    /// These are not read any more.
    pub(super) fn remove(&mut self, gone: &[TopicPartition]) {
        for partition in gone {
            if let Some(mut partition) = self.partitions.remove(partition) {
                partition.forget_fetched();
            }
        }
    }

    /// Only these are left.
    pub(super) fn retain(&mut self, keep: impl Fn(&TopicPartition) -> bool) {
        let gone: Vec<_> = self.keys().filter(|partition| !keep(partition)).collect();
        self.remove(&gone);
    }

    /// These are handed out no more; their positions stay until they are removed.
    pub(super) fn leave(&mut self, leaving: &[TopicPartition]) {
        for partition in leaving {
            if let Some(partition) = self.partitions.get_mut(partition) {
                partition.forget_fetched();
                partition.standing = Standing::Leaving;
            }
        }
    }

    /// The application was told of those that are new: where they have no position yet, it is
    /// looked for.
    pub(super) fn begin(&mut self, standing: Standing) {
        for partition in self.partitions.values_mut() {
            if partition.standing == Standing::New {
                partition.standing = standing;
            }
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = TopicPartition> + '_ {
        self.partitions.keys().map(|key| TopicPartition::clone(key))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Partition> {
        self.partitions.values_mut()
    }

    pub(super) fn get(&self, partition: &TopicPartition) -> Option<&Partition> {
        self.partitions.get(partition)
    }

    pub(super) fn get_mut(&mut self, partition: &TopicPartition) -> Option<&mut Partition> {
        self.partitions.get_mut(partition)
    }

    /// Bytes that were fetched and not handed out yet.
    pub(super) fn held(&self) -> usize {
        self.partitions.values().map(|partition| partition.held).sum()
    }

    /// Reads a partition on from an offset.
    ///
    /// # Errors
    /// `State`, if it is not read here.
    pub(super) fn seek(&mut self, partition: &TopicPartition, to: Position) -> Result<()> {
        let partition = self.owned_mut(partition)?;
        partition.move_to(to);
        partition.standing = Standing::Ready;
        partition.validated = None;
        partition.is_asked = false;
        Ok(())
    }

    /// Reads a partition on from an offset that is looked up first.
    ///
    /// # Errors
    /// `State`, if it is not read here.
    pub(super) fn seek_to(&mut self, partition: &TopicPartition, spec: OffsetSpec) -> Result<()> {
        self.owned_mut(partition)?.look_for(spec);
        Ok(())
    }

    /// Keeps a partition from being fetched and handed out, or not any more.
    ///
    /// # Errors
    /// `State`, if it is not read here.
    pub(super) fn pause(&mut self, partition: &TopicPartition, paused: bool) -> Result<()> {
        let owned = self.owned_mut(partition)?;
        owned.is_paused = paused;
        let (key, has_some) = (owned.key.clone(), !owned.shelves.is_empty());
        if !paused && has_some && !self.turns.contains(&key) {
            self.turns.push_back(key);
        }
        Ok(())
    }

    pub(super) fn paused(&self) -> Vec<TopicPartition> {
        let paused = self.partitions.values().filter(|partition| partition.is_paused);
        paused.map(|partition| TopicPartition::clone(&partition.key)).collect()
    }

    fn owned_mut(&mut self, partition: &TopicPartition) -> Result<&mut Partition> {
        self.partitions.get_mut(partition).ok_or_else(|| not_assigned(partition))
    }

    /// The committed offset of a partition was looked up; `None` if there is none.
    pub(super) fn on_committed(&mut self, partition: &TopicPartition, found: Option<Position>) {
        let reset = self.reset;
        let Some(partition) = self.partitions.get_mut(partition) else { return };
        partition.is_asked = false;
        // The application may have sought meanwhile.
        if partition.standing != Standing::Committed {
            return;
        }
        match found {
            Some(position) => {
                partition.move_to(position);
                partition.standing = Standing::Ready;
            }
            None => reset_by_policy(partition, reset, "has no committed offset"),
        }
    }

    /// An offset was looked up for a partition.
    pub(super) fn on_found(
        &mut self,
        partition: &TopicPartition,
        spec: OffsetSpec,
        offset: Offset,
        epoch: Option<LeaderEpoch>,
    ) {
        let Some(partition) = self.partitions.get_mut(partition) else { return };
        if partition.standing == Standing::Lookup(spec) {
            partition.move_to(Position { offset, epoch });
            partition.standing = Standing::Ready;
            partition.is_asked = false;
        }
    }

    /// The broker has no such offset.
    pub(super) fn on_out_of_range(&mut self, partition: &TopicPartition, fetched_at: Offset) {
        let reset = self.reset;
        let Some(partition) = self.partitions.get_mut(partition) else { return };
        // What is on the shelves was there when it was fetched: it is handed out first.
        let is_current = partition.fetch_at.offset == fetched_at;
        if is_current && partition.shelves.is_empty() && partition.standing == Standing::Ready {
            reset_by_policy(partition, reset, "has no such offset any more");
        }
    }

    /// A partition's log turned out to end at `end` for the epoch its position is of (KIP-320).
    pub(super) fn on_validated(
        &mut self,
        partition: &TopicPartition,
        end: Position,
        leader_epoch: Option<LeaderEpoch>,
    ) {
        let reset = self.reset;
        let Some(partition) = self.partitions.get_mut(partition) else { return };
        if partition.standing != Standing::Validation {
            return;
        }
        (partition.is_asked, partition.standing) = (false, Standing::Ready);
        partition.validated = leader_epoch;
        if end.offset >= partition.fetch_at.offset {
            return;
        }
        tracing::warn!(partition = %partition.key, cut_at = %end.offset, "the log was cut");
        if reset == OffsetReset::None {
            return reset_by_policy(partition, reset, "was cut before the position");
        }
        let position = partition.position().map_or(end, |position| match position.offset {
            offset if offset <= end.offset => position,
            _ => end,
        });
        partition.move_to(position);
    }

    /// Which partitions a newer leader has to confirm the position of.
    pub(super) fn note_leaders(&mut self, snapshot: &Snapshot) {
        for partition in self.partitions.values_mut() {
            let known = snapshot.partition(&partition.key.topic, partition.key.partition);
            let Some(epoch) = known.and_then(|known| known.leader_epoch) else { continue };
            if partition.standing != Standing::Ready || partition.validated >= Some(epoch) {
                continue;
            }
            if partition.fetch_at.epoch.is_some_and(|of| of < epoch) {
                (partition.standing, partition.is_asked) = (Standing::Validation, false);
            } else {
                partition.validated = Some(epoch);
            }
        }
    }

    /// A fetch brought something, up to `next`.
    pub(super) fn shelve(&mut self, partition: &TopicPartition, shelf: Shelf, next: Position) {
        let Some(partition) = self.partitions.get_mut(partition) else { return };
        partition.held += shelf.held;
        partition.fetch_at = next;
        partition.shelves.push_back(shelf);
        if !partition.is_paused && !self.turns.contains(&partition.key) {
            self.turns.push_back(partition.key.clone());
        }
    }

    /// Hands out up to `max` records, from one partition after the other, whose positions
    /// move.
    ///
    /// # Errors
    /// What is wrong with a partition, once. Records of others come with the next call.
    pub(super) fn take(&mut self, max: usize) -> Result<Records> {
        let mut records = Records::default();
        let mut left = max;
        while left > 0 {
            let Some((slice, progress)) = self.take_slice(left)? else { break };
            left -= slice.len();
            progress.advance(slice.next, slice.leader_epoch());
            records.push(slice);
        }
        Ok(records)
    }

    /// Takes the next records, up to `max`, of one partition, without its position moving.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(super) fn take_slice(&mut self, max: usize) -> Result<Option<(Slice, Arc<Progress>)>> {
        self.raise()?;
        while let Some(key) = self.turns.front().cloned() {
            let Some(partition) = self.partitions.get_mut(&key) else {
                self.turns.pop_front();
                continue;
            };
            let (from, progress) = (partition.read_at(), partition.progress.clone());
            let Some(shelf) = partition.shelves.front_mut().filter(|_| !partition.is_paused) else {
                self.turns.pop_front();
                continue;
            };
            match shelf.take(from, max) {
                Ok(Some(taken)) => {
                    partition.taken = Some(taken.next);
                    match taken.slice {
                        Some(slice) => return Ok(Some((slice, progress))),
                        // Marks are passed over without anybody seeing them.
                        None if partition.position().map(|at| at.offset) == Some(from) => {
                            let position = partition.progress.position();
                            let is_done = partition.progress.done.load(Ordering::Acquire) == from.0;
                            partition.progress.advance(taken.next, position.epoch);
                            if is_done {
                                partition.progress.finish(taken.next);
                            }
                        }
                        None => {}
                    }
                }
                Ok(None) => {
                    partition.held -= shelf.held;
                    partition.shelves.pop_front();
                    // Another partition's turn.
                    self.turns.rotate_left(1);
                }
                Err(error) => {
                    partition.fail(error);
                    partition.shelves.clear();
                    partition.held = 0;
                    self.raise()?;
                }
            }
        }
        Ok(None)
    }

    /// Whether something can be handed out or told.
    pub(super) fn has_news(&self) -> bool {
        !self.turns.is_empty() || self.partitions.values().any(|one| one.error.is_some())
    }

    /// The first thing that is wrong, once.
    fn raise(&mut self) -> Result<()> {
        for partition in self.partitions.values_mut() {
            if partition.error.is_some() && partition.shelves.is_empty() {
                return partition.error.take().map_or(Ok(()), Err);
            }
        }
        Ok(())
    }

    /// Everything handed out is finished with: that is what polling again says.
    pub(super) fn finish_all(&mut self) {
        for partition in self.partitions.values() {
            partition.progress.finish_handed_out();
        }
    }

    /// Positions, of those partitions that have one.
    pub(super) fn positions(&self) -> Vec<(TopicPartition, Position)> {
        let with_position = self.partitions.values().filter_map(|partition| {
            Some((TopicPartition::clone(&partition.key), partition.position()?))
        });
        with_position.collect()
    }

    /// Offsets the application has finished with, of those partitions that have one.
    pub(super) fn finished(&self) -> Vec<(TopicPartition, Position)> {
        let done = |partition: &Partition| {
            let offset = Offset(partition.progress.done.load(Ordering::Acquire));
            let epoch = partition.progress.position().epoch;
            let is_some = offset.0 >= 0;
            is_some.then(|| (TopicPartition::clone(&partition.key), Position { offset, epoch }))
        };
        self.partitions.values().filter_map(done).collect()
    }
}

pub(super) fn not_assigned(partition: &TopicPartition) -> Error {
    let message = format!("{partition} is not assigned to this consumer");
    Error::new(ErrorKind::State, message)
}
