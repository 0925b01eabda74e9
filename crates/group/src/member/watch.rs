//! Which topics a member must know about, and what it was told of them. Whoever drives the member
//! looks them up; nothing here knows where.

use super::{Member, Output};
use alloc::vec::Vec;
use ottla_model::{TopicName, TopicsView};

/// Which topics are watched and what is known of them.
#[derive(Debug, Default)]
#[cfg_attr(feature = "probe", derive(Clone))]
pub(super) struct Watch {
    pub(super) round: u64,
    pub(super) topics: Vec<TopicName>,
    /// The last round that was answered.
    pub(super) seen: u64,
    pub(super) view: TopicsView,
}

impl Watch {
    /// Whether the view speaks of everything that is watched.
    pub(super) fn is_fresh(&self) -> bool {
        self.seen == self.round
    }
}

impl Member {
    /// Watches the subscription and what else the leader needs.
    pub(super) fn watch_topics(&mut self, others: impl Iterator<Item = TopicName>) {
        let mut topics: Vec<_> = self.wanted().iter().cloned().chain(others).collect();
        topics.sort_unstable();
        topics.dedup();
        if topics != self.watch.topics {
            self.watch_again(topics);
        }
    }

    /// Asks for topics as they are now.
    pub(super) fn watch_again(&mut self, topics: Vec<TopicName>) {
        self.watch.topics.clone_from(&topics);
        self.watch.round += 1;
        self.outputs.push_back(Output::Watch { round: self.watch.round, topics });
    }
}
