//! A group's target assignment as it is kept up: facts in, shares and their changes out.

use super::ServerAssignor;
use super::facts::{ClassIx, Facts, MemberIx, TopicIx};
use super::range::Ranges;
use super::uniform::Uniform;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use ottla_model::{InstanceId, MemberId, PartitionId, TopicId, TopicName, TopicsView};

/// Who should own what in one group, kept up as facts change.
///
/// It is a *proposal*, not hard state: it moves ahead when [`step`](Self::step) works, and the
/// coordinator turns what [`take_changed`](Self::take_changed) names into records. It can be
/// dropped and rebuilt at any time from the group's members, the topics view and the target
/// assignment records; a new coordinator builds it that way from the log.
///
/// Order of calls: facts ([`set_member`](Self::set_member), [`remove_member`](Self::remove_member),
/// [`set_view`](Self::set_view), [`restore`](Self::restore)) in any order and number, also between
/// two steps; `step` until it says [`Progress::Settled`]; then `take_changed` and
/// [`share`](Self::share) of each member named. Replaying the records this leads to calls
/// `restore` with what is here already, which does nothing.
#[derive(Clone, Debug)]
pub struct Target {
    facts: Facts,
    engine: Engine,
    changed: Changed,
}

/// Who works here, with what it remembers.
#[derive(Clone, Debug)]
enum Engine {
    Uniform(Uniform),
    Range(Ranges),
}

/// A member as an assignor must know it.
#[derive(Clone, Copy, Debug)]
pub struct MemberFacts<'a> {
    /// Its member id.
    pub id: &'a MemberId,
    /// Its `group.instance.id`, if static: ranges go by it, so a restart keeps the place.
    pub instance: Option<&'a InstanceId>,
    /// Its `client.rack`: it is preferably given partitions with a replica there.
    pub rack: Option<&'a str>,
    /// The topics it subscribes to, by name and by pattern together. Members that mean the same
    /// must say it in the same order (sorted, say): they are then stored and treated as one.
    /// Topics the view does not know count once it does.
    pub topics: &'a [TopicName],
}

/// Whether there is more to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "an assignment is only usable once it is settled"]
pub enum Progress {
    /// The budget was used up; call again, after others had their turn.
    Working,
    /// Every partition of a subscribed topic has its owner.
    Settled,
}

/// What one member should own: topics ascending by id, each with its partitions ascending; no
/// topic without partitions. As a target assignment record has it.
pub type Share = Vec<(TopicId, Vec<PartitionId>)>;

impl Target {
    /// An empty group's.
    pub fn new(assignor: ServerAssignor, view: &Arc<TopicsView>) -> Self {
        let mut facts = Facts::default();
        facts.set_view(view);
        Self { facts, engine: Engine::new(assignor), changed: Changed::default() }
    }

    /// Which assignor works here.
    pub fn assignor(&self) -> ServerAssignor {
        match self.engine {
            Engine::Uniform(_) => ServerAssignor::Uniform,
            Engine::Range(_) => ServerAssignor::Range,
        }
    }

    /// Lets another assignor work from now on, from what members own. Costs the whole group.
    pub fn set_assignor(&mut self, assignor: ServerAssignor) {
        if self.assignor() == assignor {
            return;
        }
        let members = self.facts.order().iter().map(|member| self.facts.member(*member).id.clone());
        let shares: Vec<_> = members.map(|id| (self.share(&id), id)).collect();
        self.engine = Engine::new(assignor);
        for (topic, _) in self.facts.topics() {
            self.engine.topic_changed(&self.facts, topic, &mut self.changed);
        }
        for member in self.facts.order() {
            self.engine.joined(&self.facts, *member);
        }
        for (share, id) in shares {
            let each = |(topic, ids): (TopicId, Vec<PartitionId>)| {
                ids.into_iter().map(move |id| (topic, id))
            };
            self.restore(&id, share.into_iter().flat_map(each));
        }
    }

    /// A member joined, or one of this id changed its subscription, rack or instance. Nothing
    /// happens where it is known just so.
    pub fn set_member(&mut self, facts: MemberFacts<'_>) {
        match self.facts.member_named(facts.id) {
            Some(member) if self.facts.knows(member, &facts) => {}
            Some(member) => {
                let before = self.facts.update_member(member, &facts);
                self.tell_news();
                self.engine.changed(&self.facts, member, before.class, &mut self.changed);
                self.leave_class(before.class);
            }
            None => {
                let member = self.facts.insert_member(&facts);
                self.changed.insert(member);
                self.tell_news();
                self.engine.joined(&self.facts, member);
            }
        }
    }

    /// A member left, expired or was fenced; what it owned is free. Nothing happens where no
    /// such member is known.
    pub fn remove_member(&mut self, id: &str) {
        if let Some(member) = self.facts.member_named(id) {
            self.changed.remove(member);
            self.engine.left(&self.facts, member);
            let gone = self.facts.remove_member(member);
            self.leave_class(gone.class);
        }
    }

    /// Topics were created, deleted, grew, or changed racks. Costs the group's topics.
    pub fn set_view(&mut self, view: &Arc<TopicsView>) {
        self.facts.set_view(view);
        self.tell_news();
    }

    /// As [`set_view`](Self::set_view), where only these topics differ from the view before. Costs
    /// them, or the group's topics where those are fewer.
    pub fn set_view_differing(&mut self, view: &Arc<TopicsView>, differing: &BTreeSet<TopicName>) {
        self.facts.set_view_differing(view, differing);
        self.tell_news();
    }

    /// These members subscribe to exactly this now, all of them alike; as
    /// [`set_member`](Self::set_member) for each, without looking at each topic for each of them.
    /// Those that are not known are passed over.
    pub fn set_topics<'a>(
        &mut self,
        members: impl IntoIterator<Item = &'a str>,
        topics: &[TopicName],
    ) {
        let members = members.into_iter().filter_map(|id| self.facts.member_named(id));
        let members: Vec<_> = members.collect();
        if members.is_empty() {
            return;
        }
        let class = self.facts.enter_class(topics);
        self.tell_news();
        for member in members {
            let before = self.facts.move_to_class(member, class);
            if before != class {
                self.engine.changed(&self.facts, member, before, &mut self.changed);
            }
            self.leave_class(before);
        }
        self.leave_class(class);
    }

    /// The log says that this member's target is exactly `owned`: while loading, or as a replayed
    /// decision. What is not there or not subscribed to is dropped, and the member is then among
    /// the changed; a member that is not known is ignored.
    pub fn restore(&mut self, id: &str, owned: impl IntoIterator<Item = (TopicId, PartitionId)>) {
        let Some(member) = self.facts.member_named(id) else { return };
        let mut known = Vec::new();
        for (id, partition) in owned {
            let topic = self.facts.topic_of_id(id);
            let there = topic.filter(|topic| {
                u32::try_from(partition.0).is_ok_and(|at| at < self.facts.topic(*topic).count)
            });
            match there {
                Some(topic) => known.push((topic, partition.0 as u32)),
                // Its record names what is not there: it needs a new one.
                None => self.changed.insert(member),
            }
        }
        known.sort_unstable();
        known.dedup();
        match &mut self.engine {
            Engine::Uniform(uniform) => {
                uniform.restore(&self.facts, member, &known, &mut self.changed);
            }
            Engine::Range(ranges) => ranges.restore(&self.facts, member, &known),
        }
    }

    /// Works towards the assignment for about `budget` units of well under a microsecond each.
    /// Facts may change between two steps.
    pub fn step(&mut self, budget: usize) -> Progress {
        let budget = budget.max(1);
        match &mut self.engine {
            Engine::Uniform(uniform) => uniform.step(&self.facts, budget, &mut self.changed),
            Engine::Range(ranges) => ranges.step(&self.facts, budget, &mut self.changed),
        }
    }

    /// [`step`](Self::step) to the end, for groups and tests that need no slices.
    pub fn assign(&mut self) {
        while self.step(usize::MAX / 2) == Progress::Working {}
    }

    /// The members whose share changed since this was last asked, ascending by id; members that
    /// joined since then are among them even if they own nothing. Rarely one whose share is the
    /// same again.
    pub fn take_changed(&mut self) -> Vec<MemberId> {
        let changed = self.changed.take().into_iter();
        let mut ids: Vec<_> = changed.map(|member| self.facts.member(member).id.clone()).collect();
        ids.sort_unstable();
        ids
    }

    /// What a member should own; empty for one that is not known.
    pub fn share(&self, id: &str) -> Share {
        let mut share = Share::new();
        self.visit(id, |topic, run| match share.last_mut() {
            Some((last, ids)) if *last == topic => ids.extend(run.map(|id| PartitionId(id as i32))),
            _ => share.push((topic, run.map(|id| PartitionId(id as i32)).collect())),
        });
        share.sort_unstable_by_key(|(topic, _)| *topic);
        share
    }

    /// As [`share`](Self::share), without allocating: runs of partition ids, those of one topic
    /// together and ascending, topics in no particular order.
    pub fn visit(&self, id: &str, each: impl FnMut(TopicId, Range<u32>)) {
        if let Some(member) = self.facts.member_named(id) {
            match &self.engine {
                Engine::Uniform(uniform) => uniform.visit(member, each),
                Engine::Range(ranges) => ranges.visit(member, each),
            }
        }
    }

    fn leave_class(&mut self, class: ClassIx) {
        for topic in self.facts.leave_class(class) {
            self.engine.forget_topic(topic, &mut self.changed);
            self.facts.forget_topic(topic);
        }
        self.tell_news();
    }

    fn tell_news(&mut self) {
        let news = self.facts.take_news();
        for topic in news.topics {
            self.engine.topic_changed(&self.facts, topic, &mut self.changed);
        }
        if news.has_other_classes {
            self.engine.classes_changed();
        }
    }
}

impl Engine {
    fn new(assignor: ServerAssignor) -> Self {
        match assignor {
            ServerAssignor::Uniform => Self::Uniform(Uniform::default()),
            ServerAssignor::Range => Self::Range(Ranges::default()),
        }
    }

    fn joined(&mut self, facts: &Facts, member: MemberIx) {
        match self {
            Self::Uniform(uniform) => uniform.joined(facts, member),
            Self::Range(ranges) => ranges.members_changed(),
        }
    }

    fn left(&mut self, facts: &Facts, member: MemberIx) {
        match self {
            Self::Uniform(uniform) => uniform.left(facts, member),
            Self::Range(ranges) => ranges.left(member),
        }
    }

    fn changed(&mut self, facts: &Facts, member: MemberIx, before: ClassIx, changed: &mut Changed) {
        match self {
            Self::Uniform(uniform) => uniform.changed(facts, member, before, changed),
            Self::Range(ranges) => ranges.members_changed(),
        }
    }

    fn topic_changed(&mut self, facts: &Facts, topic: TopicIx, changed: &mut Changed) {
        match self {
            Self::Uniform(uniform) => uniform.topic_changed(facts, topic, changed),
            Self::Range(ranges) => ranges.topics_changed(),
        }
    }

    fn forget_topic(&mut self, topic: TopicIx, changed: &mut Changed) {
        match self {
            Self::Uniform(uniform) => uniform.forget_topic(topic, changed),
            Self::Range(ranges) => ranges.topics_changed(),
        }
    }

    fn classes_changed(&mut self) {
        match self {
            Self::Uniform(uniform) => uniform.classes_changed(),
            Self::Range(ranges) => ranges.topics_changed(),
        }
    }
}

/// A set of members that is filled and emptied often.
#[derive(Clone, Debug, Default)]
pub(super) struct Changed {
    members: Vec<MemberIx>,
    is_in: Vec<bool>,
}

impl Changed {
    pub(super) fn insert(&mut self, member: MemberIx) {
        let slot = member as usize;
        if self.is_in.len() <= slot {
            self.is_in.resize(slot + 1, false);
        }
        if !core::mem::replace(&mut self.is_in[slot], true) {
            self.members.push(member);
        }
    }

    fn remove(&mut self, member: MemberIx) {
        if self.is_in.get(member as usize) == Some(&true) {
            self.is_in[member as usize] = false;
            self.members.retain(|other| *other != member);
        }
    }

    fn take(&mut self) -> Vec<MemberIx> {
        self.is_in.fill(false);
        core::mem::take(&mut self.members)
    }
}
