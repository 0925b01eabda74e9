//! What an assignor must know: members, subscriptions and topics by small numbers.
//!
//! Names are compared when a fact changes, never while assigning. Members with the same
//! subscription share a *class*, so a thousand topics times ten thousand members are stored once.
//! Knows no assignor.

use super::MemberFacts;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use ottla_model::{InstanceId, MemberId, TopicId, TopicName, TopicsView};

/// A member's slot; slots of members that left are used again.
pub(super) type MemberIx = u32;
/// A topic's slot.
pub(super) type TopicIx = u32;
/// A subscription's slot.
pub(super) type ClassIx = u32;

/// The racks of one partition, or the one of a member, as bits; 0 where none is known.
pub(super) type RackMask = u64;

/// Racks that can be told apart; members and replicas in further ones count as in none.
const RACKS_MAX: usize = RackMask::BITS as usize;

/// A group's members and the topics they name.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    view: Arc<TopicsView>,
    members: Slots<Member>,
    by_id: BTreeMap<MemberId, MemberIx>,
    /// Every member: static ones first, by instance id; then the others, by member id.
    order: Vec<MemberIx>,
    topics: Slots<Topic>,
    by_name: BTreeMap<TopicName, TopicIx>,
    classes: Slots<Class>,
    by_subscription: BTreeMap<Arc<[TopicName]>, ClassIx>,
    racks: Vec<Arc<str>>,
    news: News,
}

/// What is new about topics and classes since it was last asked.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    /// Topics that are new or not what they were.
    pub(super) topics: Vec<TopicIx>,
    /// Whether a class came or went.
    pub(super) has_other_classes: bool,
}

/// One member.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: MemberId,
    instance: Option<InstanceId>,
    pub(super) rack: RackMask,
    pub(super) class: ClassIx,
}

/// One topic that somebody names.
#[derive(Clone, Debug)]
pub(super) struct Topic {
    name: TopicName,
    /// Its id; zero while the view does not know it.
    pub(super) id: TopicId,
    /// Its partitions; 0 while the view does not know it.
    pub(super) count: u32,
    /// The racks of each partition; empty where no partition has any.
    pub(super) racks: Arc<[RackMask]>,
    /// The classes that name it, ascending.
    pub(super) classes: Vec<ClassIx>,
}

/// Members with one subscription.
#[derive(Clone, Debug)]
pub(super) struct Class {
    names: Arc<[TopicName]>,
    /// Its topics, whether the view knows them or not, ascending.
    pub(super) topics: Vec<TopicIx>,
    /// How many members have it.
    pub(super) members: u32,
}

impl Facts {
    pub(super) fn member(&self, member: MemberIx) -> &Member {
        self.members.at(member)
    }

    pub(super) fn topic(&self, topic: TopicIx) -> &Topic {
        self.topics.at(topic)
    }

    pub(super) fn class(&self, class: ClassIx) -> &Class {
        self.classes.at(class)
    }

    /// Every topic somebody names.
    pub(super) fn topics(&self) -> impl Iterator<Item = (TopicIx, &Topic)> {
        self.topics.iter()
    }

    /// Every class.
    pub(super) fn classes(&self) -> impl Iterator<Item = (ClassIx, &Class)> {
        self.classes.iter()
    }

    /// The members in the order ranges go by.
    pub(super) fn order(&self) -> &[MemberIx] {
        &self.order
    }

    /// One more than the highest slot a member has or had.
    pub(super) fn member_slots(&self) -> usize {
        self.members.slots.len()
    }

    /// The member of this id.
    pub(super) fn member_named(&self, id: &str) -> Option<MemberIx> {
        self.by_id.get(id).copied()
    }

    /// The topic of this id, among those somebody names.
    pub(super) fn topic_of_id(&self, id: TopicId) -> Option<TopicIx> {
        let name = &self.view.topic_by_id(id)?.name;
        self.by_name.get(name).copied()
    }

    /// What is new about topics and classes since this was last asked.
    pub(super) fn take_news(&mut self) -> News {
        core::mem::take(&mut self.news)
    }

    /// Takes in a member nobody of this id is; the caller made sure.
    pub(super) fn insert_member(&mut self, facts: &MemberFacts<'_>) -> MemberIx {
        let class = self.enter_class(facts.topics);
        let rack = self.rack_mask(facts.rack);
        let (id, instance) = (facts.id.clone(), facts.instance.cloned());
        let member = self.members.insert(Member { id, instance, rack, class });
        self.by_id.insert(facts.id.clone(), member);
        let place = self.place_of(member);
        self.order.insert(place, member);
        member
    }

    /// Gives a member another subscription, rack or instance; what it was before is returned.
    pub(super) fn update_member(&mut self, member: MemberIx, facts: &MemberFacts<'_>) -> Member {
        let class = self.enter_class(facts.topics);
        let rack = self.rack_mask(facts.rack);
        let before = self.members.at(member).clone();
        if before.instance.as_ref() != facts.instance {
            self.order.retain(|other| *other != member);
            self.members.at_mut(member).instance = facts.instance.cloned();
            let place = self.place_of(member);
            self.order.insert(place, member);
        }
        let now = self.members.at_mut(member);
        (now.class, now.rack) = (class, rack);
        before
    }

    /// Lets a member go. Its class stays until [`leave_class`](Self::leave_class).
    pub(super) fn remove_member(&mut self, member: MemberIx) -> Member {
        let place = self.place_of(member);
        self.order.remove(place);
        let gone = self.members.remove(member);
        self.by_id.remove(&gone.id);
        gone
    }

    /// Whether the member already is what `facts` say.
    pub(super) fn knows(&self, member: MemberIx, facts: &MemberFacts<'_>) -> bool {
        let known = self.members.at(member);
        known.instance.as_ref() == facts.instance
            && known.rack == self.known_rack_mask(facts.rack).unwrap_or(0)
            && *self.classes.at(known.class).names == *facts.topics
    }

    /// One member less in `class`. The topics that nobody names any more are returned; forget
    /// them with [`forget_topic`](Self::forget_topic) once nothing refers to them.
    pub(super) fn leave_class(&mut self, class: ClassIx) -> Vec<TopicIx> {
        let left = self.classes.at_mut(class);
        left.members -= 1;
        if left.members > 0 {
            return Vec::new();
        }
        self.news.has_other_classes = true;
        let gone = self.classes.remove(class);
        self.by_subscription.remove(&gone.names);
        let mut orphans = Vec::new();
        for topic in gone.topics {
            let classes = &mut self.topics.at_mut(topic).classes;
            classes.retain(|other| *other != class);
            if classes.is_empty() {
                orphans.push(topic);
            }
        }
        orphans
    }

    /// Drops a topic that nobody names.
    pub(super) fn forget_topic(&mut self, topic: TopicIx) {
        let gone = self.topics.remove(topic);
        self.by_name.remove(&gone.name);
    }

    /// Takes a new view; topics it changes are news.
    pub(super) fn set_view(&mut self, view: &Arc<TopicsView>) {
        let old = core::mem::replace(&mut self.view, Arc::clone(view));
        for topic in self.differing(&old) {
            if self.refresh_topic(topic) {
                self.news.topics.push(topic);
            }
        }
    }

    /// Takes a new view that differs in these topics alone.
    pub(super) fn set_view_differing(
        &mut self,
        view: &Arc<TopicsView>,
        differing: &BTreeSet<TopicName>,
    ) {
        self.view = Arc::clone(view);
        let topics: Vec<_> = match differing.len() <= self.by_name.len() {
            true => differing.iter().filter_map(|name| self.by_name.get(name).copied()).collect(),
            false => {
                let known = self.by_name.iter();
                known.filter(|(name, _)| differing.contains(*name)).map(|(_, ix)| *ix).collect()
            }
        };
        for topic in topics {
            if self.refresh_topic(topic) {
                self.news.topics.push(topic);
            }
        }
    }

    /// Gives a member another class, which counts it from now on; what it was in is returned and
    /// still counts it.
    pub(super) fn move_to_class(&mut self, member: MemberIx, class: ClassIx) -> ClassIx {
        self.classes.at_mut(class).members += 1;
        core::mem::replace(&mut self.members.at_mut(member).class, class)
    }

    /// The topics somebody names that the view may show otherwise than an older one. Views share
    /// what did not change, so most need no look; but few topics are faster found than many passed.
    fn differing(&self, old: &TopicsView) -> Vec<TopicIx> {
        const FEW: usize = 16;
        if self.by_name.len() * FEW < self.view.topics().size_hint().0 {
            return self.topics.iter().map(|(topic, _)| topic).collect();
        }
        let (mut before, mut now) = (old.topics().peekable(), self.view.topics().peekable());
        let mut differing = Vec::new();
        loop {
            let name = match (before.peek().copied(), now.peek().copied()) {
                (None, None) => return differing,
                (Some(a), Some(b)) if core::ptr::eq(a, b) => {
                    before.next();
                    now.next();
                    continue;
                }
                (Some(a), Some(b)) => (&a.name).min(&b.name),
                (Some(one), None) | (None, Some(one)) => &one.name,
            };
            differing.extend(self.by_name.get(name).copied());
            before.next_if(|topic| topic.name == *name);
            now.next_if(|topic| topic.name == *name);
        }
    }

    /// Whether anything about the topic changed.
    fn refresh_topic(&mut self, topic: TopicIx) -> bool {
        let name = self.topics.at(topic).name.clone();
        let fresh = self.described(name);
        let known = self.topics.at_mut(topic);
        if (known.id, known.count, &known.racks) == (fresh.id, fresh.count, &fresh.racks) {
            return false;
        }
        (known.id, known.count, known.racks) = (fresh.id, fresh.count, fresh.racks);
        true
    }

    /// The class of this subscription, with one member more.
    pub(super) fn enter_class(&mut self, names: &[TopicName]) -> ClassIx {
        if let Some(class) = self.by_subscription.get(names) {
            self.classes.at_mut(*class).members += 1;
            return *class;
        }
        let names: Arc<[TopicName]> = names.into();
        let mut topics: Vec<TopicIx> = names.iter().map(|name| self.topic_named(name)).collect();
        topics.sort_unstable();
        topics.dedup();
        let class = self.classes.insert(Class { names: names.clone(), topics, members: 1 });
        for topic in &self.classes.at(class).topics {
            let classes = &mut self.topics.at_mut(*topic).classes;
            let at = classes.partition_point(|other| *other < class);
            classes.insert(at, class);
        }
        self.by_subscription.insert(names, class);
        self.news.has_other_classes = true;
        class
    }

    fn topic_named(&mut self, name: &TopicName) -> TopicIx {
        if let Some(topic) = self.by_name.get(name) {
            return *topic;
        }
        let described = self.described(name.clone());
        let topic = self.topics.insert(described);
        self.news.topics.push(topic);
        self.by_name.insert(name.clone(), topic);
        topic
    }

    /// The topic as the view has it; without id and partitions where the view does not.
    fn described(&mut self, name: TopicName) -> Topic {
        let view = Arc::clone(&self.view);
        let Some(found) = view.topic(&name) else {
            let racks = Arc::default();
            return Topic { name, id: TopicId::ZERO, count: 0, racks, classes: Vec::new() };
        };
        let count = u32::try_from(found.partitions.len()).unwrap_or(u32::MAX);
        let mut racks: Vec<RackMask> = Vec::new();
        if found.partitions.iter().any(|partition| !partition.racks.is_empty()) {
            racks.extend(found.partitions.iter().map(|partition| {
                let masks = partition.racks.iter().map(|rack| self.rack_mask(Some(rack)));
                masks.fold(0, |all, one| all | one)
            }));
        }
        Topic { name, id: found.id, count, racks: racks.into(), classes: Vec::new() }
    }

    fn rack_mask(&mut self, rack: Option<&str>) -> RackMask {
        if let Some(mask) = self.known_rack_mask(rack) {
            return mask;
        }
        let fresh = rack.filter(|_| self.racks.len() < RACKS_MAX);
        fresh.map_or(0, |rack| {
            self.racks.push(rack.into());
            1 << (self.racks.len() - 1)
        })
    }

    fn known_rack_mask(&self, rack: Option<&str>) -> Option<RackMask> {
        let Some(rack) = rack else { return Some(0) };
        self.racks.iter().position(|known| **known == *rack).map(|at| 1 << at)
    }

    /// Where in the order a member is, or would be.
    fn place_of(&self, member: MemberIx) -> usize {
        let member = self.members.at(member);
        self.order
            .partition_point(|other| by_identity(self.members.at(*other), member) == Ordering::Less)
    }
}

/// Kafka's order: static members first, by instance id, so that a restarted one keeps its place
/// under whatever id it returns; then the others, by member id.
fn by_identity(a: &Member, b: &Member) -> Ordering {
    match (&a.instance, &b.instance) {
        (Some(a_instance), Some(b_instance)) => {
            a_instance.cmp(b_instance).then_with(|| a.id.cmp(&b.id))
        }
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.id.cmp(&b.id),
    }
}

/// Things by small numbers that stay the same while the thing is there.
#[derive(Clone, Debug)]
struct Slots<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    fn insert(&mut self, thing: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(thing);
            return slot;
        }
        self.slots.push(Some(thing));
        (self.slots.len() - 1) as u32
    }

    fn remove(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("only what is there is removed")
    }

    fn at(&self, slot: u32) -> &T {
        self.slots[slot as usize].as_ref().expect("slots in use hold something")
    }

    fn at_mut(&mut self, slot: u32) -> &mut T {
        self.slots[slot as usize].as_mut().expect("slots in use hold something")
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, thing)| Some((slot as u32, thing.as_ref()?)))
    }
}
