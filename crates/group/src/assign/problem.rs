//! The assignment problem in dense numbers: members, topics and partitions by index.
//!
//! Names are compared once, here; the assignors then work on integers. Knows no assignor.

use super::{Partitions, Subscriber};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use ottla_model::{PartitionId, TopicName, TopicsView};

/// A member: its rank in the order all assignors go by.
pub(super) type MemberIx = u32;
/// A topic: its rank by name among the subscribed ones.
pub(super) type TopicIx = u32;
/// A partition: its place among all partitions of all topics, by topic then index.
pub(super) type PartitionIx = u32;

/// No member: a partition not (yet) given to anybody.
pub(super) const NOBODY: MemberIx = MemberIx::MAX;

/// What there is to assign and to whom. Only topics that exist, have partitions and at least one
/// subscriber appear.
pub(super) struct Problem {
    /// The topics, by name.
    pub(super) topics: Vec<TopicSpan>,
    /// For each member of the order, its index in the caller's list.
    pub(super) order: Vec<usize>,
    /// For each member of the order, the class of its subscription.
    class_of: Vec<u32>,
    /// Distinct subscriptions: topics ascending.
    classes: Vec<Vec<TopicIx>>,
    /// Distinct sets of subscribers of one topic, members ascending.
    audiences: Vec<Vec<MemberIx>>,
}

/// One topic's partitions: `first..first + count` of all.
pub(super) struct TopicSpan {
    /// The topic's name.
    pub(super) name: TopicName,
    /// The index of its partition 0.
    pub(super) first: PartitionIx,
    /// How many partitions it has.
    pub(super) count: u32,
    /// Which audience subscribes to it.
    audience: u32,
}

impl Problem {
    /// The problem these subscribers pose on this view.
    pub(super) fn new(subscribers: &[Subscriber<'_>], view: &TopicsView) -> Self {
        let mut order: Vec<usize> = (0..subscribers.len()).collect();
        order.sort_by(|a, b| by_identity(&subscribers[*a], &subscribers[*b]));
        let mut topics = subscribed_topics(subscribers, view);
        let (class_of, classes) = classify(subscribers, &order, &topics);
        let audiences = find_audiences(&mut topics, &class_of, &classes);
        Self { topics, order, class_of, classes, audiences }
    }

    /// How many partitions there are in all.
    pub(super) fn partition_count(&self) -> usize {
        self.topics.last().map_or(0, |last| (last.first + last.count) as usize)
    }

    /// How many members there are.
    pub(super) fn member_count(&self) -> usize {
        self.order.len()
    }

    /// The members that subscribe to `topic`, ascending; never empty.
    pub(super) fn audience(&self, topic: &TopicSpan) -> &[MemberIx] {
        &self.audiences[topic.audience as usize]
    }

    /// Whether `member` subscribes to `topic`.
    pub(super) fn subscribes(&self, member: MemberIx, topic: TopicIx) -> bool {
        let class = self.class_of[member as usize];
        self.classes[class as usize].binary_search(&topic).is_ok()
    }

    /// Whether every member has the same subscription.
    pub(super) fn is_uniform(&self) -> bool {
        self.classes.len() <= 1
    }

    /// The topic of this name.
    pub(super) fn topic_named(&self, name: &str) -> Option<TopicIx> {
        let at = self.topics.binary_search_by(|topic| topic.name.as_str().cmp(name)).ok()?;
        Some(at as TopicIx)
    }

    /// `owners` (by partition) as sets of partitions, in the order of the caller's list.
    pub(super) fn solution(&self, owners: &[MemberIx]) -> Vec<Partitions> {
        let mut sets = vec![Partitions::new(); self.order.len()];
        let mut held: Vec<Vec<PartitionId>> = vec![Vec::new(); self.order.len()];
        for topic in &self.topics {
            let mut holders = Vec::new();
            for index in 0..topic.count {
                let owner = owners[(topic.first + index) as usize];
                if owner == NOBODY {
                    continue;
                }
                let mine = &mut held[owner as usize];
                if mine.is_empty() {
                    holders.push(owner);
                }
                mine.push(PartitionId(index as i32));
            }
            for owner in holders {
                let mine = core::mem::take(&mut held[owner as usize]);
                sets[self.order[owner as usize]].push_topic(&topic.name, mine);
            }
        }
        sets
    }
}

/// Static members first, by instance id; then the others, by member id: Java's order, so that a
/// mixed group gets the same ranges from either leader and a restarted static member keeps its.
fn by_identity(a: &Subscriber<'_>, b: &Subscriber<'_>) -> Ordering {
    match (a.instance, b.instance) {
        (Some(a_instance), Some(b_instance)) => a_instance.cmp(b_instance),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.member.cmp(b.member),
    }
}

fn subscribed_topics(subscribers: &[Subscriber<'_>], view: &TopicsView) -> Vec<TopicSpan> {
    let mut names: Vec<&TopicName> = Vec::new();
    let mut last: &[TopicName] = &[];
    for subscriber in subscribers {
        // Most groups have one subscription: looking at it once is enough.
        if subscriber.topics != last {
            names.extend(subscriber.topics);
            last = subscriber.topics;
        }
    }
    names.sort_unstable();
    names.dedup();
    let mut first = 0;
    let mut spans = Vec::new();
    for topic in names.into_iter().filter_map(|name| view.topic(name)) {
        let count = u32::try_from(topic.partitions.len()).unwrap_or(0);
        if count > 0 {
            spans.push(TopicSpan { name: topic.name.clone(), first, count, audience: 0 });
            first += count;
        }
    }
    spans
}

/// Each member's class, and each class's topics.
fn classify(
    subscribers: &[Subscriber<'_>],
    order: &[usize],
    topics: &[TopicSpan],
) -> (Vec<u32>, Vec<Vec<TopicIx>>) {
    let mut by_names: BTreeMap<&[TopicName], u32> = BTreeMap::new();
    let mut by_topics: BTreeMap<Vec<TopicIx>, u32> = BTreeMap::new();
    let class_of = order
        .iter()
        .map(|&at| {
            let names = subscribers[at].topics;
            *by_names.entry(names).or_insert_with(|| {
                let next = by_topics.len() as u32;
                *by_topics.entry(resolve(names, topics)).or_insert(next)
            })
        })
        .collect();
    let mut classes = vec![Vec::new(); by_topics.len()];
    for (topics, class) in by_topics {
        classes[class as usize] = topics;
    }
    (class_of, classes)
}

fn resolve(names: &[TopicName], topics: &[TopicSpan]) -> Vec<TopicIx> {
    let mut found: Vec<TopicIx> = names
        .iter()
        .filter_map(|name| topics.binary_search_by(|topic| topic.name.cmp(name)).ok())
        .map(|at| at as TopicIx)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn find_audiences(
    topics: &mut [TopicSpan],
    class_of: &[u32],
    classes: &[Vec<TopicIx>],
) -> Vec<Vec<MemberIx>> {
    let mut classes_of_topic: Vec<Vec<u32>> = vec![Vec::new(); topics.len()];
    for (class, wanted) in classes.iter().enumerate() {
        for topic in wanted {
            classes_of_topic[*topic as usize].push(class as u32);
        }
    }
    let mut known: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    let mut audiences = Vec::new();
    for (topic, key) in topics.iter_mut().zip(classes_of_topic) {
        topic.audience = *known.entry(key).or_insert_with_key(|key| {
            let is_in = |member: &MemberIx| key.contains(&class_of[*member as usize]);
            audiences.push((0..class_of.len() as MemberIx).filter(is_in).collect());
            audiences.len() as u32 - 1
        });
    }
    audiences
}
