//! The topics that matter to a member: those it subscribes to, by name or by pattern, those its
//! leader's part asks for, and those the consumer reads without the group's doing.

use super::{Driver, Standing};
use crate::cluster::{Cluster, Interest, Snapshot};
use crate::consumer::pattern::TopicFilter;
use crate::{Error, ErrorKind, clock};
use ottla_model::{TopicName, TopicsView};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is watched, and what was told of it.
#[derive(Default)]
pub(super) struct Watch {
    round: u64,
    topics: Vec<TopicName>,
    /// The snapshot's question that covers them.
    question: u64,
    told: Option<(u64, TopicsView)>,
    assigned: BTreeSet<TopicName>,
    /// `None` where nothing is subscribed to, or a pattern was not held against the topics yet.
    subscribed: Option<Vec<TopicName>>,
    filter: Option<Arc<TopicFilter>>,
    /// The pattern that the coordinator matches; empty once there is none any more.
    regex: Option<String>,
}

/// What a consumer subscribes to.
pub(super) enum Wanted {
    Nothing,
    Topics(Vec<TopicName>),
    /// Those that there are of these, whenever the cluster is looked at.
    Matching(Arc<TopicFilter>),
}

impl Watch {
    pub(super) fn subscribe(&mut self, wanted: Wanted) {
        (self.subscribed, self.filter) = match wanted {
            Wanted::Nothing => (None, None),
            Wanted::Topics(topics) => (Some(topics), None),
            Wanted::Matching(filter) => (None, Some(filter)),
        };
        self.regex.iter_mut().for_each(String::clear);
    }

    /// What the coordinator has to hear of a pattern whenever it hears of topics.
    pub(super) fn regex(&self) -> Option<&str> {
        self.regex.as_deref()
    }

    pub(super) fn subscribed(&self) -> Option<Vec<TopicName>> {
        self.subscribed.clone()
    }

    pub(super) fn assign(&mut self, topics: BTreeSet<TopicName>) {
        self.assigned = topics;
    }

    /// The member wants to know of these.
    pub(super) fn ask(&mut self, round: u64, topics: Vec<TopicName>) {
        (self.round, self.topics, self.told) = (round, topics, None);
    }

    /// Another member asks from now on, counting from the beginning.
    pub(super) fn forget(&mut self) {
        (self.round, self.topics, self.told) = (0, Vec::new(), None);
    }

    /// Has the cluster know all that matters.
    pub(super) fn know(&mut self, cluster: &Cluster) {
        let interest = match &self.filter {
            // S35, S36: all there are.
            Some(_) => Interest::All,
            None => {
                let topics = self.topics.iter().chain(self.subscribed.iter().flatten());
                let topics = topics.chain(&self.assigned);
                Interest::Topics(topics.cloned().collect())
            }
        };
        cluster.set_interest(interest);
        self.question = cluster.ask();
    }

    /// S37: the topics that the pattern means now, if it means others than before.
    fn refiltered(
        &mut self,
        snapshot: &Snapshot,
        excludes_internal: bool,
    ) -> Option<Vec<TopicName>> {
        let filter = self.filter.as_ref().filter(|_| snapshot.answered >= self.question)?;
        let all = snapshot.topics.values().filter(|topic| topic.error.is_none());
        // What the coordinator matches is its own business: any topic may come.
        let excludes_internal = excludes_internal && self.regex().is_none_or(str::is_empty);
        let matching = all.filter(|topic| !(excludes_internal && topic.is_internal));
        let matching = matching.filter(|topic| filter.matches(&topic.name));
        let topics: Vec<TopicName> = matching.map(|topic| topic.name.clone()).collect();
        if self.subscribed.as_ref() == Some(&topics) {
            return None;
        }
        self.subscribed = Some(topics.clone());
        Some(topics)
    }
}

impl Driver {
    pub(super) fn subscribe(&mut self, wanted: Wanted) {
        self.standing = Standing::Member;
        // Its topics may stay the same while the coordinator's pattern does not.
        if self.watch.regex().is_some_and(|pattern| !pattern.is_empty()) {
            self.member.unsubscribe(clock::now());
        }
        self.watch.subscribe(wanted);
        self.watch.know(&self.shared.cluster);
        self.take_part();
    }

    /// Joins with the topics it wants, as soon as it is known which.
    pub(super) fn take_part(&mut self) {
        if let Some(topics) = self.watch.subscribed() {
            self.member.subscribe(topics, clock::now());
        }
    }

    pub(super) fn unsubscribe(&mut self) {
        self.standing = Standing::Apart;
        self.watch.subscribe(Wanted::Nothing);
        self.member.unsubscribe(clock::now());
    }

    /// The member knows of all topics there are, so that whatever it is assigned has a name; the
    /// coordinator hears of the pattern alone.
    pub(super) fn subscribe_regex(&mut self, pattern: String) {
        self.subscribe(Wanted::Matching(Arc::new(TopicFilter::all())));
        self.watch.regex = Some(pattern);
    }

    /// A classic member would have to match the pattern itself, perhaps otherwise.
    pub(super) fn fail_regex(&mut self, error: &Error) {
        let message = format!("the coordinator matches no patterns: {error}");
        self.fail(Error::new(ErrorKind::Unsupported, message));
        self.unsubscribe();
    }

    pub(super) fn on_snapshot(&mut self, snapshot: &Snapshot) {
        let now = clock::now();
        let excludes_internal = self.shared.config.exclude_internal_topics;
        // S38: another list is another subscription.
        let refiltered = self.watch.refiltered(snapshot, excludes_internal);
        if let Some(topics) = refiltered.filter(|_| self.standing == Standing::Member) {
            tracing::info!(?topics, "the pattern means these now");
            self.member.subscribe(topics, now);
        }
        if snapshot.answered < self.watch.question || self.watch.round == 0 {
            return;
        }
        let told = (self.watch.round, snapshot.view(&self.watch.topics));
        if self.watch.told.as_ref() != Some(&told) {
            self.watch.told = Some(told.clone());
            self.member.handle_topics(told.0, told.1, now);
        }
    }
}
