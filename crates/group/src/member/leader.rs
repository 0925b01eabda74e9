//! A classic leader's work: from everyone's subscriptions to everyone's part.
//!
//! The leader needs to know every topic any member wants, so it may have to wait for topics first;
//! afterwards it watches their partitions and starts a rebalance when they change (S6).

use super::Member;
use super::state::{Phase, Round};
use crate::assign::subscription::{Assignment, Subscription, VERSION_MAX};
use crate::assign::{Assignor, Partitions, Subscriber};
use crate::message::Blob;
use crate::message::classic::JoinedMember;
use crate::probe::{self, Fault, Mark};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use ottla_model::{Generation, Instant, MemberId, TopicName, TopicsView};

impl Member {
    /// Leads `round`: assigns now, or once the topics it takes are known.
    pub(super) fn lead(
        &mut self,
        round: Round,
        assignor: Assignor,
        members: Vec<JoinedMember>,
        skips: bool,
        now: Instant,
    ) {
        let subscriptions = members.iter().map(|member| read(&member.metadata));
        let wanted: Vec<_> = subscriptions.flat_map(|subscription| subscription.topics).collect();
        self.watch_topics(wanted.into_iter());
        self.phase = Phase::Assigning { round, assignor, members, skips };
        self.assign_if_known(now);
    }

    /// New knowledge of topics: what a leader waits for, or a reason to rebalance.
    pub(super) fn topics_changed(&mut self, now: Instant) {
        self.assign_if_known(now);
        self.rejoin_if_outdated(now);
    }

    /// Whether the topics this member assigned by have other partitions now.
    pub(super) fn has_led_outdated_topics(&self) -> bool {
        let Phase::Stable(Round { led: Some(led), .. }) = &self.phase else { return false };
        self.watch.is_fresh()
            && led
                .counts
                .iter()
                .any(|(topic, count)| partitions_of(&self.watch.view, topic) != *count)
    }

    fn assign_if_known(&mut self, now: Instant) {
        if !self.watch.is_fresh() {
            return;
        }
        let Phase::Assigning { round, assignor, members, skips } = &mut self.phase else { return };
        let (mut round, assignor) = (round.clone(), *assignor);
        let (members, skips) = (core::mem::take(members), *skips);
        let view = &self.watch.view;
        let counts = self.watch.topics.iter().map(|t| (t.clone(), partitions_of(view, t)));
        let counts: BTreeMap<TopicName, usize> = counts.collect();
        let (parts, withholds) = if skips {
            // KIP-814: the coordinator keeps what it has; the leader only watches the topics.
            probe::hit(Mark::MemberSkippedAssignment);
            (Vec::new(), false)
        } else {
            let sets = assign(assignor, &members, view);
            let assigned: usize = sets.iter().map(Partitions::len).sum();
            (encoded(&members, sets), assigned < counts.values().sum())
        };
        round.led = Some(Led { counts, withholds });
        self.sync(round, assignor, parts, now);
    }
}

fn partitions_of(view: &TopicsView, topic: &TopicName) -> usize {
    view.topic(topic).map_or(0, |topic| topic.partitions.len())
}

/// A subscription that cannot be read wants nothing: its member alone goes without.
fn read(metadata: &[u8]) -> Subscription {
    Subscription::decode(metadata).unwrap_or_default()
}

/// Each member's part, in the order of `members`.
fn assign(assignor: Assignor, members: &[JoinedMember], view: &TopicsView) -> Vec<Partitions> {
    type Claim = (Partitions, Option<Generation>);
    let read: Vec<(Subscription, Claim)> = members
        .iter()
        .map(|member| {
            let subscription = read(&member.metadata);
            let claim = subscription.claim(assignor);
            (subscription, claim)
        })
        .collect();
    let subscribers: Vec<_> = members
        .iter()
        .zip(&read)
        .map(|(member, (subscription, (owned, generation)))| Subscriber {
            member: &member.member,
            instance: member.instance.as_deref(),
            topics: &subscription.topics,
            owned,
            generation: *generation,
        })
        .collect();
    let forgets = probe::has(Fault::LeaderForgetsToWithhold);
    let assignor = if forgets { Assignor::Sticky } else { assignor };
    assignor.assign(&subscribers, view)
}

/// Each member's part in the bytes members exchange.
fn encoded(members: &[JoinedMember], sets: Vec<Partitions>) -> Vec<(MemberId, Blob)> {
    let bytes = sets.into_iter().map(|partitions| {
        Blob::from(Assignment { partitions, user_data: None }.encode(VERSION_MAX))
    });
    members.iter().map(|member| member.member.clone()).zip(bytes).collect()
}

/// What a leader remembers of the assignment it made.
#[derive(Clone, Debug)]
pub(super) struct Led {
    /// The topics it assigned, and how many partitions each had.
    counts: BTreeMap<TopicName, usize>,
    /// Whether it kept partitions from their new owners until the old ones give them up.
    pub(super) withholds: bool,
}
