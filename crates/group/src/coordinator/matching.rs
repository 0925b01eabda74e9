//! Which topics a group's patterns stand for, found out in slices.
//!
//! A pattern may be hostile and topics many: matching them all at once would stop every group of
//! the shard (Kafka leaves it to another thread). So a group's patterns are matched topic by topic
//! until a budget is spent, and go on where they stopped. Until all are through, each stands for
//! what it stood for before. Knows no record, no member and no time.

use super::journal::Triggers;
use super::pattern::Pattern;
use super::record::ConsumerGroupRegularExpressionValue;
use super::view::Trigger;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;
use ottla_model::{TopicName, TopicsView};

#[cfg(test)]
mod tests;

/// Work of one group that topics or patterns make.
#[derive(Debug, Default)]
pub(super) struct Matching {
    /// What is being looked at.
    now: Round,
    /// What changed meanwhile, looked at when that is done.
    later: Option<Round>,
    /// The last pattern that is through.
    done_to: Option<Arc<str>>,
    scan: Option<Scan>,
    found: Found,
    /// Who brought patterns that are new, for the journal.
    brought: Triggers,
}

/// What is to be looked at.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Topics that patterns which were matched before are matched with.
    pub(super) again: Again,
    /// The topics as they were before the first change, for the journal.
    pub(super) before: Option<Arc<TopicsView>>,
}

/// Topics to look at again; a pattern that is new is matched with all of them in any case.
#[derive(Clone, Debug)]
pub(super) enum Again {
    /// All there are, for nothing is known of how they were.
    All,
    /// These, sorted.
    These(Arc<BTreeSet<TopicName>>),
}

/// Patterns that are through, with the topics each stands for.
pub(super) type Found = BTreeMap<Arc<str>, Vec<TopicName>>;

/// What a group subscribes to and what is known of it.
pub(super) struct Subject<'a> {
    /// The patterns members subscribe to.
    pub(super) subscribed: &'a BTreeMap<Arc<str>, u32>,
    /// What each stood for when it was last matched.
    pub(super) known: &'a BTreeMap<Arc<str>, ConsumerGroupRegularExpressionValue>,
    /// The topics.
    pub(super) view: &'a TopicsView,
}

/// One pattern on its way through the topics.
#[derive(Debug)]
struct Scan {
    text: Arc<str>,
    pattern: Option<Pattern>,
    /// Whether it is matched with all topics.
    is_new: bool,
    /// The last topic it was matched with.
    cursor: Option<TopicName>,
    topics: Vec<TopicName>,
}

impl Matching {
    /// Topics are to be looked at, which were like this before: now, or when what is under way is
    /// done.
    pub(super) fn look_at(&mut self, again: Again, before: Option<&Arc<TopicsView>>) {
        let is_under_way = self.scan.is_some() || self.done_to.is_some();
        let round = match is_under_way {
            true => self.later.get_or_insert_default(),
            false => &mut self.now,
        };
        round.again.add(again);
        if round.before.is_none() {
            round.before = before.cloned();
        }
    }

    /// A member brought a pattern that is new.
    pub(super) fn brought(&mut self, trigger: Trigger) {
        self.brought.add(trigger);
    }

    /// Works until `budget` is spent, or a little more; true once every pattern is through.
    pub(super) fn step(&mut self, subject: &Subject<'_>, budget: &mut usize) -> bool {
        while *budget > 0 {
            let scan = match &mut self.scan {
                Some(scan) => scan,
                None => match next(self.done_to.as_ref(), &self.now.again, subject) {
                    None => return true,
                    Some(text) => self.scan.insert(Scan::new(text, subject, budget)),
                },
            };
            if !scan.go_on(&self.now.again, subject, budget) {
                return false;
            }
            if let Some(Scan { text, topics, .. }) = self.scan.take() {
                self.done_to = Some(text.clone());
                self.found.insert(text, topics);
            }
        }
        false
    }

    /// What was found out, what was looked at for it, and whose patterns; the next round begins.
    pub(super) fn finish(&mut self) -> (Found, Round, Triggers) {
        (self.scan, self.done_to) = (None, None);
        let round = core::mem::replace(&mut self.now, self.later.take().unwrap_or_default());
        (core::mem::take(&mut self.found), round, core::mem::take(&mut self.brought))
    }

    /// Whether there is something to look at.
    pub(super) fn is_due(&self, subject: &Subject<'_>) -> bool {
        !self.now.again.is_none() || next(None, &self.now.again, subject).is_some()
    }
}

/// The next pattern that needs a look, in the order of their texts.
fn next(after: Option<&Arc<str>>, again: &Again, subject: &Subject<'_>) -> Option<Arc<str>> {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut rest = subject.subscribed.range::<Arc<str>, _>((from, Bound::Unbounded));
    rest.find(|(text, _)| !again.is_none() || !subject.known.contains_key(*text))
        .map(|(text, _)| text.clone())
}

impl Again {
    /// The topics, where it is known which.
    pub(super) fn topics(&self) -> Option<&Arc<BTreeSet<TopicName>>> {
        match self {
            Self::All => None,
            Self::These(topics) => Some(topics),
        }
    }

    /// No topic.
    fn none() -> Self {
        Self::These(Arc::default())
    }

    fn is_none(&self) -> bool {
        matches!(self, Self::These(topics) if topics.is_empty())
    }

    fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::All, _) => {}
            (Self::These(topics), Self::These(more)) if !topics.is_empty() => {
                Arc::make_mut(topics).extend(more.iter().cloned());
            }
            (_, other) => *self = other,
        }
    }
}

impl Default for Again {
    fn default() -> Self {
        Self::none()
    }
}

impl Scan {
    fn new(text: Arc<str>, subject: &Subject<'_>, budget: &mut usize) -> Self {
        *budget = budget.saturating_sub(COMPILING);
        let is_new = !subject.known.contains_key(&text);
        // Only a log that another broker wrote may hold what cannot be understood.
        let pattern = Pattern::parse(&text).ok();
        Self { text, pattern, is_new, cursor: None, topics: Vec::new() }
    }

    /// True once it is through.
    fn go_on(&mut self, again: &Again, subject: &Subject<'_>, budget: &mut usize) -> bool {
        let view = subject.view;
        if !self.is_new && !subject.known.contains_key(&self.text) {
            // It went and came back: what it stood for is forgotten.
            (self.is_new, self.cursor) = (true, None);
            self.topics.clear();
        }
        let cursor = self.cursor.clone();
        let topics = again.topics().filter(|_| !self.is_new);
        let Some(topics) = topics else {
            let rest = view.topics_after(cursor.as_deref()).map(|topic| &topic.name);
            return self.match_those(rest, view, budget);
        };
        let from = cursor.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let rest = topics.range::<TopicName, _>((from, Bound::Unbounded));
        let is_through = self.match_those(rest, view, budget);
        if is_through {
            self.keep_others(topics, subject);
        }
        is_through
    }

    fn match_those<'a>(
        &mut self,
        names: impl Iterator<Item = &'a TopicName>,
        view: &TopicsView,
        budget: &mut usize,
    ) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        for name in names {
            if *budget == 0 {
                return false;
            }
            *budget = budget.saturating_sub(pattern.cost(name));
            if view.topic(name).is_some() && pattern.matches(name) {
                self.topics.push(name.clone());
            }
            self.cursor = Some(name.clone());
        }
        true
    }

    /// What it stood for before and nothing happened to.
    fn keep_others(&mut self, again: &BTreeSet<TopicName>, subject: &Subject<'_>) {
        let known = subject.known.get(&self.text).into_iter().flat_map(|known| &known.topics);
        self.topics.extend(known.filter(|topic| !again.contains(*topic)).cloned());
        self.topics.sort_unstable();
        self.topics.dedup();
    }
}

/// What is spent on patterns before others have their turn, in units of [`Pattern::cost`]: some
/// milliseconds where a pattern is hostile, far less where it is not.
pub(super) const SLICE: usize = 32 << 10;
/// What it costs to understand a pattern.
const COMPILING: usize = 2 << 10;
