//! Range: each topic's partitions in contiguous runs over its subscribers, in order of identity.
//!
//! Topics with the same subscribers and as many partitions come out alike, which is what joins of
//! streams rely on; such topics form one *shape* and are worked out once. So the work is that of
//! the distinct shapes, however many topics there are.

use super::facts::{ClassIx, Facts, MemberIx, TopicIx};
use super::target::{Changed, Progress};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use ottla_model::TopicId;

type ShapeIx = u32;

/// The shares of all members under range.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// The shares of the last finished assignment.
    shares: Shares,
    /// Shares the log gave a member since; they stand until the next assignment.
    restored: BTreeMap<MemberIx, Vec<(TopicId, u32)>>,
    /// Topics by shape; `None` once a topic or a class came, went or changed.
    shapes: Option<Arc<[Shape]>>,
    /// An assignment that is under way; dropped when a fact changes.
    job: Option<Job>,
    /// Whether there is something to assign.
    is_stale: bool,
}

/// Topics that come out alike, by id: a slot may be another topic's by the time two are compared.
#[derive(Clone, Debug)]
struct Shape {
    classes: Vec<ClassIx>,
    count: u32,
    topics: Vec<TopicId>,
}

/// What members own: runs of partition ids of the topics of a shape.
#[derive(Clone, Debug, Default)]
struct Shares {
    shapes: Arc<[Shape]>,
    /// Where in `runs` each member slot's runs begin; one entry more than there are slots.
    starts: Vec<u32>,
    runs: Vec<Run>,
}

/// `start..end` of each topic of a shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    shape: ShapeIx,
    start: u32,
    end: u32,
}

#[derive(Clone, Debug)]
struct Job {
    shapes: Arc<[Shape]>,
    next: usize,
    runs: Vec<(MemberIx, Run)>,
}

impl Ranges {
    /// A member came, went or changed its subscription or place.
    pub(super) fn members_changed(&mut self) {
        self.job = None;
        self.is_stale = true;
    }

    /// A topic or a class came, went or changed.
    pub(super) fn topics_changed(&mut self) {
        self.shapes = None;
        self.members_changed();
    }

    /// A member goes; its slot may be used again.
    pub(super) fn left(&mut self, member: MemberIx) {
        self.restored.remove(&member);
        self.shares.empty(member);
        self.members_changed();
    }

    /// The log says that the member owns exactly this.
    pub(super) fn restore(&mut self, facts: &Facts, member: MemberIx, owned: &[(TopicIx, u32)]) {
        let by_id = |(topic, index): &(TopicIx, u32)| (facts.topic(*topic).id, *index);
        let mut owned: Vec<_> = owned.iter().map(by_id).collect();
        owned.sort_unstable();
        if self.owned(member) != owned {
            self.restored.insert(member, owned);
            self.is_stale = true;
        }
    }

    /// Works for about `budget` units: a member looked at or a run made.
    pub(super) fn step(&mut self, facts: &Facts, budget: usize, changed: &mut Changed) -> Progress {
        if !self.is_stale {
            return Progress::Settled;
        }
        let shapes = Arc::clone(self.shapes.get_or_insert_with(|| shapes_of(facts)));
        let fresh = || Job { shapes, next: 0, runs: Vec::new() };
        let job = self.job.get_or_insert_with(fresh);
        if !job.step(facts, budget) {
            return Progress::Working;
        }
        let runs = core::mem::take(&mut job.runs);
        let shapes = Arc::clone(&job.shapes);
        self.job = None;
        self.is_stale = false;
        self.adopt(Shares::new(shapes, runs, facts.member_slots()), facts, changed);
        Progress::Settled
    }

    /// What the member owns, as runs of partition ids.
    pub(super) fn visit(&self, member: MemberIx, mut each: impl FnMut(TopicId, Range<u32>)) {
        if let Some(owned) = self.restored.get(&member) {
            owned.iter().for_each(|(topic, id)| each(*topic, *id..*id + 1));
            return;
        }
        for run in self.shares.of(member) {
            for topic in &self.shares.shapes[run.shape as usize].topics {
                each(*topic, run.start..run.end);
            }
        }
    }

    /// Puts new shares in place of the old ones and says whose differ.
    fn adopt(&mut self, shares: Shares, facts: &Facts, changed: &mut Changed) {
        let old = core::mem::replace(&mut self.shares, shares);
        let renamed = old.renamed(&self.shares.shapes);
        let restored = core::mem::take(&mut self.restored);
        for member in facts.order() {
            let is_same = match restored.get(member) {
                Some(owned) => self.owned(*member) == *owned,
                None => old.is_as_in(*member, &renamed, self.shares.of(*member)),
            };
            if !is_same {
                changed.insert(*member);
            }
        }
    }

    /// What the member owns, ascending.
    fn owned(&self, member: MemberIx) -> Vec<(TopicId, u32)> {
        if let Some(owned) = self.restored.get(&member) {
            return owned.clone();
        }
        let mut owned = Vec::new();
        for run in self.shares.of(member) {
            for topic in &self.shares.shapes[run.shape as usize].topics {
                owned.extend((run.start..run.end).map(|id| (*topic, id)));
            }
        }
        owned.sort_unstable();
        owned
    }
}

impl Job {
    /// Whether all is done.
    fn step(&mut self, facts: &Facts, budget: usize) -> bool {
        let until = self.runs.len() + budget;
        let mut looked_at = 0;
        while let Some(shape) = self.shapes.get(self.next) {
            if self.runs.len() + looked_at > until {
                return false;
            }
            looked_at += self.deal(facts, shape.clone());
            self.next += 1;
        }
        true
    }

    /// Deals one shape; returns how many members were looked at.
    fn deal(&mut self, facts: &Facts, shape: Shape) -> usize {
        let members: u32 = shape.classes.iter().map(|class| facts.class(*class).members).sum();
        let (each, longer) = (shape.count / members, shape.count % members);
        let is_for_all = members as usize == facts.order().len();
        let mut start = 0;
        let mut rank = 0;
        for (looked_at, member) in facts.order().iter().enumerate() {
            if start == shape.count {
                return looked_at;
            }
            let class = facts.member(*member).class;
            if !is_for_all && shape.classes.binary_search(&class).is_err() {
                continue;
            }
            let end = start + each + u32::from(rank < longer);
            self.runs.push((*member, Run { shape: self.next as ShapeIx, start, end }));
            (start, rank) = (end, rank + 1);
        }
        facts.order().len()
    }
}

impl Shares {
    /// The runs by member.
    fn new(shapes: Arc<[Shape]>, by_shape: Vec<(MemberIx, Run)>, slots: usize) -> Self {
        let mut starts = vec![0; slots + 1];
        for (member, _) in &by_shape {
            starts[*member as usize + 1] += 1;
        }
        for slot in 0..slots {
            starts[slot + 1] += starts[slot];
        }
        let mut next = starts.clone();
        let mut runs = vec![Run { shape: 0, start: 0, end: 0 }; by_shape.len()];
        for (member, run) in by_shape {
            let at = &mut next[member as usize];
            runs[*at as usize] = run;
            *at += 1;
        }
        Self { shapes, starts, runs }
    }

    fn of(&self, member: MemberIx) -> &[Run] {
        let slot = member as usize;
        match self.starts.get(slot..slot + 2) {
            Some(&[start, end]) => {
                let runs = &self.runs[start as usize..end as usize];
                // A slot is emptied by making its first run one of nothing.
                if runs.first().is_some_and(|run| run.start == run.end) { &[] } else { runs }
            }
            _ => &[],
        }
    }

    fn empty(&mut self, member: MemberIx) {
        if let Some(start) =
            self.starts.get(member as usize).filter(|_| !self.of(member).is_empty())
        {
            let run = &mut self.runs[*start as usize];
            run.end = run.start;
        }
    }

    /// For each shape, the one of the same topics among `others`.
    fn renamed(&self, others: &Arc<[Shape]>) -> Vec<Option<ShapeIx>> {
        if Arc::ptr_eq(&self.shapes, others) {
            return (0..others.len() as ShapeIx).map(Some).collect();
        }
        let by_topics: BTreeMap<&[TopicId], ShapeIx> =
            (0..).zip(others.iter()).map(|(at, shape)| (&*shape.topics, at)).collect();
        self.shapes.iter().map(|shape| by_topics.get(&*shape.topics).copied()).collect()
    }

    /// Whether the member's runs here are those, by the new names of shapes.
    fn is_as_in(&self, member: MemberIx, renamed: &[Option<ShapeIx>], new: &[Run]) -> bool {
        let old = self.of(member);
        let mut names = old.iter().map(|run| renamed[run.shape as usize]);
        old.len() == new.len()
            && old.iter().zip(new).all(|(old, new)| {
                names.next().flatten() == Some(new.shape)
                    && (old.start, old.end) == (new.start, new.end)
            })
    }
}

/// Topics grouped by who subscribes and how many partitions they have.
fn shapes_of(facts: &Facts) -> Arc<[Shape]> {
    let mut shapes: BTreeMap<(&[ClassIx], u32), Vec<TopicId>> = BTreeMap::new();
    for (_, topic) in facts.topics().filter(|(_, topic)| topic.count > 0) {
        shapes.entry((&topic.classes, topic.count)).or_default().push(topic.id);
    }
    let shapes = shapes.into_iter().map(|((classes, count), mut topics)| {
        topics.sort_unstable();
        Shape { classes: classes.to_vec(), count, topics }
    });
    shapes.collect()
}
