//! Work that topics and patterns make, done in turns: each group's in slices, the groups of a
//! shard one after the other.
//!
//! Whoever brings such work does the first slice of it, so that most is done at once; the rest is
//! done on time, with pauses in which every other group is heard. Nobody waits for it: until a
//! group's patterns are matched anew, they stand for what they stood for.

use super::consumers::Consumers;
use super::matching::{Again, Found, Matching, Round, SLICE, Subject};
use super::output::Index;
use super::record::{ConsumerGroupRegularExpression, ConsumerGroupRegularExpressionValue, Record};
use super::shard::Shard;
use super::target::SLICE_PAUSE;
use super::timers::{Deadline, Due, Timer};
use super::turn::{Services, Turn};
use super::view::{Cause, Trigger};
use super::watch::difference;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{GroupId, Instant, Now, TopicName, TopicsView};

/// Groups that have work to do, each once, and when some is done next.
#[derive(Debug)]
pub(super) struct Chores {
    groups: VecDeque<GroupId>,
    due: Deadline,
}

impl Default for Chores {
    fn default() -> Self {
        Self { groups: VecDeque::new(), due: Deadline::unarmed() }
    }
}

impl Chores {
    /// Nothing is left to do. The timer must be forgotten too.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Shard {
    /// One slice of what there is to do.
    pub(super) fn work_off(&mut self, now: Now) {
        let mut budget = SLICE;
        while budget > 0
            && let Some(group) = self.services.chores.groups.pop_front()
        {
            let work = |turn: &mut Turn<'_>| turn.look(&mut budget);
            if self.turn(&group, now, work) == Some(false) {
                self.services.chores.groups.push_back(group);
            }
        }
        let Services { chores, timers, .. } = &mut self.services;
        if !chores.groups.is_empty() {
            timers.arm(&mut chores.due, now.mono, SLICE_PAUSE, || Timer::Chores);
        }
    }

    /// More is to be done.
    pub(super) fn chores_surfaced(&mut self, queued: Instant, now: Now) -> Due {
        // However late: nobody is judged by it.
        let due = self.services.chores.due.passed(queued, now.mono);
        if due == Due::Now {
            self.work_off(now);
        }
        due
    }
}

/// Patterns that are through.
pub(super) struct Matched {
    /// The last decision.
    pub(super) index: Option<Index>,
    /// Whether some stand for other topics now.
    has_changed: bool,
    /// What asked for it, for the journal.
    pub(super) triggers: Vec<Trigger>,
}

impl Turn<'_> {
    /// Topics became others; `None` where nothing is known of how they were. What that means for
    /// the group is found out soon.
    pub(super) fn consumer_topics_changed(&mut self, differing: Option<&Arc<BTreeSet<TopicName>>>) {
        if self.group.hard.consumers().is_empty() {
            return;
        }
        let Some(view) = self.services.topics.clone() else { return };
        let before = self.services.topics_before.clone();
        self.follow_topics(before.as_ref(), differing.map(|topics| &**topics));
        self.remember_departed(before.as_deref(), &view, differing.map(|topics| &**topics));
        if let Some(target) = &mut self.motion().target {
            match differing {
                Some(differing) => target.set_view_differing(&view, differing),
                None => target.set_view(&view),
            }
        }
        let consumers = self.group.hard.consumers();
        let concerns = |topics: &Arc<BTreeSet<_>>| {
            !consumers.subscribed_patterns().is_empty()
                || consumers.subscribed_among(topics).next().is_some()
        };
        if differing.is_none_or(concerns) {
            let again = differing.map_or(Again::All, |topics| Again::These(topics.clone()));
            self.look_later(|matching| matching.look_at(again, before.as_ref()));
        }
    }

    /// Topics that are gone keep their names for the journal, until the next target.
    fn remember_departed(
        &mut self,
        before: Option<&TopicsView>,
        view: &TopicsView,
        differing: Option<&BTreeSet<TopicName>>,
    ) {
        let (Some(before), Some(differing)) = (before, differing) else { return };
        let subscribed = self.group.hard.consumers().subscribed_among(differing);
        let departed = subscribed.filter_map(|name| {
            let topic = before.topic(name)?;
            let is_gone = view.topic_by_id(topic.id).is_none();
            is_gone.then(|| (topic.id, topic.name.clone()))
        });
        let departed: Vec<_> = departed.collect();
        self.motion().departed.extend(departed);
    }

    /// A member brought a pattern that is new: matches it, and what else is due, for one slice.
    /// What is left is done later, and raises the epoch by itself for the reason given here.
    pub(super) fn pattern_brought(&mut self, with: Index, trigger: Trigger) -> Option<Matched> {
        let is_queued = self.motion().matching.is_some();
        self.motion().matching.get_or_insert_default();
        let matched = self.match_patterns(Some(with), &mut SLICE.clone());
        if matched.is_none()
            && let Some(matching) = &mut self.motion().matching
        {
            matching.brought(trigger);
        }
        if !is_queued && self.motion().matching.is_some() {
            let group = self.group.id.clone();
            self.services.chores.groups.push_back(group);
            let (now, Services { chores, timers, .. }) = (self.now.mono, &mut *self.services);
            timers.arm(&mut chores.due, now, SLICE_PAUSE, || Timer::Chores);
        }
        matched
    }

    /// Has something looked at when the shard comes to it.
    fn look_later(&mut self, what: impl FnOnce(&mut Matching)) {
        let mut matching = self.motion().matching.take();
        if matching.is_none() {
            self.services.chores.groups.push_back(self.group.id.clone());
        }
        what(matching.get_or_insert_default());
        self.motion().matching = matching;
    }

    /// One slice of what is to be looked at, and what follows once that is done; true when nothing
    /// is left.
    fn look(&mut self, budget: &mut usize) -> bool {
        let Some(matched) = self.match_patterns(None, budget) else {
            return self.group.motion.as_ref().is_none_or(|motion| motion.matching.is_none());
        };
        if self.motion().digest.is_none() {
            let topics = self.group.hard.consumers().subscribed_topics().len();
            *budget = budget.saturating_sub(topics.saturating_mul(DIGEST_COST));
        }
        let digest = self.subscribed_digest();
        let mut index = matched.index;
        if matched.has_changed || digest != self.group.hard.consumers().metadata_hash() {
            index = self.raise_epoch(index, matched.triggers);
            *budget = budget.saturating_sub(EPOCH_COST);
        }
        // There may have been no view when the last epoch began.
        self.renew_target(index);
        self.motion().matching.is_none()
    }

    /// Matches patterns until the budget is spent; once all are through, writes down what they
    /// stand for now. `None` while some are not, and where there is nothing to do.
    fn match_patterns(&mut self, with: Option<Index>, budget: &mut usize) -> Option<Matched> {
        let is_over = self.group.hard.consumers().is_empty();
        let motion = self.group.motion.as_mut()?;
        let mut matching = motion.matching.take()?;
        // Without a view there is nothing to match; with the first, everything is.
        let view = self.services.topics.clone().filter(|_| !is_over)?;
        if !matching.step(&subject(self.group.hard.consumers(), &view), budget) {
            motion.matching = Some(matching);
            return None;
        }
        let (found, round, brought) = matching.finish();
        let mut concerned = self.concerned(&round);
        let records = self.found_records(found);
        let patterns: BTreeSet<_> = records.iter().map(|(pattern, _)| pattern.clone()).collect();
        let index = self.decide_also(with, records.into_iter().map(|(_, record)| record).collect());
        self.tell_target_of(&patterns);
        concerned.append(&mut self.concerned(&round));
        let topics = concerned.into_iter().map(|topic| self.topic_trigger(topic, &round));
        let triggers = brought.into_iter().chain(topics).collect();
        if matching.is_due(&subject(self.group.hard.consumers(), &view)) {
            self.motion().matching = Some(matching);
        }
        Some(Matched { index, has_changed: !patterns.is_empty(), triggers })
    }

    /// Those of the topics that were looked at that somebody subscribes to.
    fn concerned(&self, round: &Round) -> BTreeSet<TopicName> {
        let consumers = self.group.hard.consumers();
        let topics = round.again.topics().into_iter();
        topics.flat_map(|topics| consumers.subscribed_among(topics)).cloned().collect()
    }

    /// A topic became another one.
    fn topic_trigger(&self, topic: TopicName, round: &Round) -> Trigger {
        let now = self.services.topics.as_deref().and_then(|now| now.topic(&topic));
        let cause = round
            .before
            .as_deref()
            .map_or(Cause::TopicChanged, |before| difference(before.topic(&topic), now));
        Trigger::about(cause, topic)
    }

    /// A record for each pattern that stands for other topics now.
    fn found_records(&self, found: Found) -> Vec<(Arc<str>, Record)> {
        let consumers = self.group.hard.consumers();
        let differs = |(pattern, topics): &(Arc<str>, Vec<TopicName>)| {
            consumers.subscribed_patterns().contains_key(pattern)
                && consumers.patterns().get(pattern).is_none_or(|known| known.topics != *topics)
        };
        let records = found.into_iter().filter(differs).map(|(pattern, mut topics)| {
            // A pattern that stands for more than one record can say stands for as many as it can.
            let mut room = self.services.config.batch_bytes_max / 2;
            let fitting = topics.iter().take_while(|topic| {
                let bytes = topic.len() + NAME_BYTES;
                room = room.saturating_sub(bytes);
                room > 0
            });
            topics.truncate(fitting.count());
            let value = ConsumerGroupRegularExpressionValue {
                topics,
                // Ours have no version; Kafka would match anew, which costs it little.
                version: 0,
                resolved_at: self.now.wall,
            };
            let record = ConsumerGroupRegularExpression {
                group: self.group.id.clone(),
                regex: pattern.clone(),
                value: Some(value),
            };
            (pattern, Record::ConsumerGroupRegularExpression(record))
        });
        records.collect()
    }
}

fn subject<'a>(consumers: &'a Consumers, view: &'a TopicsView) -> Subject<'a> {
    Subject { subscribed: consumers.subscribed_patterns(), known: consumers.patterns(), view }
}

/// What the digest of one topic costs, of a slice.
const DIGEST_COST: usize = 4;
/// What a new epoch and its target may cost, of a slice.
const EPOCH_COST: usize = SLICE / 4;
/// What a name takes in a record beside its bytes.
const NAME_BYTES: usize = 4;
