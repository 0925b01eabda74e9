//! What must hold, seen from outside: by what members were told and what readers were answered.

use crate::world::topic_id;
use ottla_group::assign::Partitions;
use ottla_group::message::offsets::Fetched;
use ottla_model::{Generation, PartitionId, TopicId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Topics are `t0`, `t1`, ...; a partition is a place in one flat list.
pub const TOPICS: usize = 3;
pub const PARTITIONS_MAX: usize = 8;
pub const PLACES: usize = TOPICS * PARTITIONS_MAX;

/// What a reader that begins now must at least see.
#[derive(Clone, Copy, Default)]
pub struct Floor {
    /// Per partition the least offset; 0 while nothing was acked.
    offsets: [i64; PLACES],
    /// The ids the topics have.
    ids: [TopicId; TOPICS],
}

/// A commit that was sent, and of which topics.
struct Commit {
    offsets: Vec<(usize, i64)>,
    ids: [TopicId; TOPICS],
}

/// One process of one member slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Life {
    pub slot: usize,
    pub incarnation: u32,
}

/// The first thing found wrong, in words.
pub type Verdict = Result<(), String>;

#[derive(Default)]
pub struct Checker {
    owners: Vec<Vec<Life>>,
    /// Who was assigned a partition in which generation.
    assigned: BTreeMap<(Generation, usize), Life>,
    /// The last generation each life was part of.
    generations: BTreeMap<Life, Generation>,
    floor: Floor,
    /// Every commit ever sent, by its number: what it says.
    commits: Vec<Commit>,
    pub acked: u64,
    pub reads: u64,
}

pub fn place(topic: &str, partition: PartitionId) -> usize {
    let topic = usize::from(topic.as_bytes()[1] - b'0');
    topic * PARTITIONS_MAX + partition.0 as usize
}

pub fn topic_name(topic: usize) -> &'static str {
    ["t0", "t1", "t2"][topic]
}

fn named(place: usize) -> String {
    format!("{}-{}", topic_name(place / PARTITIONS_MAX), place % PARTITIONS_MAX)
}

/// An offset as it was read, and the note beside it: the number of its commit.
type Seen = (i64, Option<Arc<str>>);

/// Whether the topic of this place is the same in both.
fn is_same(one: &[TopicId; TOPICS], other: &[TopicId; TOPICS], place: usize) -> bool {
    one[place / PARTITIONS_MAX] == other[place / PARTITIONS_MAX]
}

impl Floor {
    /// Whether a topic is still the one it was.
    pub fn is_current(&self, now: &Self, place: usize) -> bool {
        is_same(&self.ids, &now.ids, place)
    }

    /// The id a topic has.
    pub fn id(&self, topic: usize) -> TopicId {
        self.ids[topic]
    }
}

impl Checker {
    pub fn new() -> Self {
        let mut checker = Self { owners: vec![Vec::new(); PLACES], ..Self::default() };
        (0..TOPICS).for_each(|topic| checker.topic_made(topic, topic_id(topic, 1)));
        checker
    }

    /// A member was told that these are its own from now on. `is_excused` names those that may
    /// share them for now: who does not run delivers nothing; the excuse of the others ends by
    /// itself. All are looked at again, by [`exclusive`](Self::exclusive).
    pub fn gained(
        &mut self,
        life: Life,
        partitions: &Partitions,
        is_excused: impl Fn(Life) -> bool,
    ) -> Verdict {
        for (topic, partition) in partitions.iter() {
            let place = place(topic, partition);
            let owners = &mut self.owners[place];
            let other = owners.iter().find(|other| !is_excused(**other) && !is_excused(life));
            if let Some(other) = other {
                return Err(format!("{} has two owners: {other:?} and {life:?}", named(place)));
            }
            owners.push(life);
        }
        Ok(())
    }

    /// These are its own no longer.
    pub fn gave_up(&mut self, life: Life, partitions: &Partitions) {
        for (topic, partition) in partitions.iter() {
            self.owners[place(topic, partition)].retain(|owner| *owner != life);
        }
    }

    /// It is gone, and whatever it had with it.
    pub fn died(&mut self, life: Life) {
        for owners in &mut self.owners {
            owners.retain(|owner| *owner != life);
        }
    }

    /// Nothing has two owners without an excuse.
    pub fn exclusive(&self, is_excused: impl Fn(Life) -> bool) -> Verdict {
        for (place, owners) in self.owners.iter().enumerate() {
            if owners.len() > 1 && owners.iter().filter(|owner| !is_excused(**owner)).count() > 1 {
                return Err(format!("{} still has two owners: {owners:?}", named(place)));
            }
        }
        Ok(())
    }

    /// It took its part of a generation. `is_former` names those whose place it took in it: a
    /// static member that restarts stays in the same generation.
    pub fn adopted(
        &mut self,
        life: Life,
        generation: Generation,
        part: &Partitions,
        is_former: impl Fn(Life) -> bool,
    ) -> Verdict {
        let before = self.generations.insert(life, generation);
        if before.is_some_and(|before| before > generation) {
            return Err(format!("{life:?} went back from {before:?} to {generation}"));
        }
        for (topic, partition) in part.iter() {
            let place = place(topic, partition);
            let owner = *self.assigned.entry((generation, place)).or_insert(life);
            if owner != life && !is_former(owner) {
                let place = named(place);
                return Err(format!("{place} is {owner:?}'s and {life:?}'s in {generation}"));
            }
        }
        Ok(())
    }

    /// Every partition up to `counts` of `topics` has exactly one owner?
    pub fn all_owned(&self, counts: &[usize; TOPICS], wanted: &[bool; TOPICS]) -> bool {
        (0..PLACES).all(|place| {
            let (topic, partition) = (place / PARTITIONS_MAX, place % PARTITIONS_MAX);
            !wanted[topic] || partition >= counts[topic] || self.owners[place].len() == 1
        })
    }

    /// The number of the next commit.
    pub fn next_commit(&self) -> usize {
        self.commits.len()
    }

    /// A commit is about to be sent; its number goes into its metadata.
    pub fn number_commit(&mut self, offsets: Vec<(usize, i64)>) -> usize {
        self.commits.push(Commit { offsets, ids: self.floor.ids });
        self.commits.len() - 1
    }

    /// A commit was acknowledged, for some of its partitions.
    pub fn committed(&mut self, number: usize, is_stored: impl Fn(usize) -> bool) {
        self.acked += 1;
        let commit = &self.commits[number];
        for (place, offset) in &commit.offsets {
            if is_stored(*place) && is_same(&commit.ids, &self.floor.ids, *place) {
                self.floor.offsets[*place] = self.floor.offsets[*place].max(*offset);
            }
        }
    }

    /// A topic was made, perhaps in place of another: nothing is committed for it.
    pub fn topic_made(&mut self, topic: usize, id: TopicId) {
        self.floor.ids[topic] = id;
        let first = topic * PARTITIONS_MAX;
        self.floor.offsets[first..first + PARTITIONS_MAX].fill(0);
    }

    /// Where partitions go by their topic's id, nobody has any of a topic just made.
    pub fn owned_by_nobody(&mut self, topic: usize) {
        let first = topic * PARTITIONS_MAX;
        self.owners[first..first + PARTITIONS_MAX].fill(Vec::new());
    }

    /// What a read that begins now must at least see.
    pub fn floor(&self) -> Floor {
        self.floor
    }

    /// A read that began at `floor` was answered.
    pub fn read(&mut self, fetched: &Fetched, floor: &Floor) -> Verdict {
        self.reads += 1;
        let mut seen = [const { None }; PLACES];
        for (topic, partitions) in &fetched.topics {
            for (partition, committed) in partitions {
                let place = place(topic, *partition);
                if !is_same(&floor.ids, &self.floor.ids, place) {
                    // It was read before the topic was made anew, or after: who knows.
                    continue;
                }
                let offset = committed.as_ref().map_or(0, |committed| committed.offset.0);
                if offset < floor.offsets[place] {
                    return Err(format!(
                        "{} was read as {offset} after {} was acknowledged or read",
                        named(place),
                        floor.offsets[place]
                    ));
                }
                let is_inherited =
                    |id: TopicId| !id.is_zero() && id != floor.ids[place / PARTITIONS_MAX];
                if committed.as_ref().is_some_and(|committed| is_inherited(committed.topic_id)) {
                    return Err(format!("{} inherits an offset", named(place)));
                }
                // Whoever reads it may rely on it.
                self.floor.offsets[place] = self.floor.offsets[place].max(offset);
                seen[place] = Some((offset, committed.as_ref().map(|c| c.metadata.clone())));
            }
        }
        self.check_whole(&seen)
    }

    /// Commits are whole: where one partition of a commit is seen, so are the others, or newer.
    fn check_whole(&self, seen: &[Option<Seen>; PLACES]) -> Verdict {
        for (_, metadata) in seen.iter().flatten() {
            let number = metadata.as_ref().and_then(|text| text.parse::<usize>().ok());
            let Some(commit) = number.and_then(|number| self.commits.get(number)) else { continue };
            for (place, offset) in &commit.offsets {
                if let Some((other, _)) = &seen[*place]
                    && other < offset
                    && is_same(&commit.ids, &self.floor.ids, *place)
                {
                    let place = named(*place);
                    return Err(format!("half a commit: {place} at {other}, not yet {offset}"));
                }
            }
        }
        Ok(())
    }
}
