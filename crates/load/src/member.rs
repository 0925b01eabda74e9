//! A virtual member of the consumer protocol (KIP-848): what it owns and what it says next. A value
//! without a clock or a socket; when it speaks is the affair of the scene.

use crate::Outcome;
use crate::link::{Link, check};
use crate::setup::is_not_ready;
use ottla_wire::generated::consumer_group_heartbeat_request::TopicPartitions;
use ottla_wire::generated::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use ottla_wire::{ErrorCode, Uuid};
use std::collections::BTreeSet;
use std::rc::Rc;

/// A partition of a topic, by the topic's id.
pub(crate) type Partition = (Uuid, i32);

/// One member.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    group: Rc<str>,
    id: String,
    topics: Rc<[String]>,
    epoch: i32,
    owned: BTreeSet<Partition>,
    /// What it owns changed and the coordinator has not been told.
    owes_word: bool,
}

/// What an answer changed.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// Given up.
    pub(crate) lost: Vec<Partition>,
    /// Now owned.
    pub(crate) gained: Vec<Partition>,
    /// When to come back.
    pub(crate) interval_ms: u64,
    /// The coordinator is not ready; ask again after a pause.
    pub(crate) retry: bool,
}

impl Member {
    /// One that has not joined yet.
    pub(crate) fn new(group: &Rc<str>, id: String, topics: &Rc<[String]>) -> Self {
        let (group, topics) = (group.clone(), topics.clone());
        Self { group, id, topics, epoch: 0, owned: BTreeSet::new(), owes_word: true }
    }

    /// What it owns.
    pub(crate) fn owned(&self) -> &BTreeSet<Partition> {
        &self.owned
    }

    /// Whether it has been answered by the coordinator, and not been fenced since.
    pub(crate) fn has_joined(&self) -> bool {
        self.epoch != 0
    }

    /// Whether the next request says more than that it lives.
    pub(crate) fn owes_word(&self) -> bool {
        self.owes_word
    }

    /// What it says next.
    pub(crate) fn request(&self) -> ConsumerGroupHeartbeatRequest<'_> {
        let mut request = ConsumerGroupHeartbeatRequest {
            group_id: &self.group,
            member_id: &self.id,
            member_epoch: self.epoch,
            ..Default::default()
        };
        if self.epoch == 0 {
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS;
            request.subscribed_topic_names = Some(self.topics.iter().map(String::as_str).collect());
        }
        if self.owes_word {
            request.topic_partitions = Some(by_topic(&self.owned));
        }
        request
    }

    /// Its goodbye.
    pub(crate) fn farewell(&self) -> ConsumerGroupHeartbeatRequest<'_> {
        ConsumerGroupHeartbeatRequest {
            group_id: &self.group,
            member_id: &self.id,
            member_epoch: LEAVES,
            ..Default::default()
        }
    }

    /// Takes the answer to [`Member::request`].
    ///
    /// # Errors
    /// Any error but that the coordinator is not ready, and that the member is fenced: then it owns
    /// nothing and joins anew.
    pub(crate) fn take(&mut self, response: &ConsumerGroupHeartbeatResponse<'_>) -> Outcome<Step> {
        if is_not_ready(response.error_code) {
            return Ok(Step { retry: true, ..Default::default() });
        }
        if is_fenced(response.error_code) {
            let lost = std::mem::take(&mut self.owned).into_iter().collect();
            (self.epoch, self.owes_word) = (0, true);
            return Ok(Step { lost, ..Default::default() });
        }
        check(response.error_code, "ConsumerGroupHeartbeat")?;
        (self.epoch, self.owes_word) = (response.member_epoch, false);
        let interval_ms = u64::try_from(response.heartbeat_interval_ms).unwrap_or(0);
        let Some(assignment) = &response.assignment else {
            return Ok(Step { interval_ms, ..Default::default() });
        };
        let target: BTreeSet<Partition> = assignment
            .topic_partitions
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|number| (topic.topic_id, *number)))
            .collect();
        let lost = self.owned.difference(&target).copied().collect();
        let gained = target.difference(&self.owned).copied().collect();
        self.owned = target;
        self.owes_word = true;
        Ok(Step { lost, gained, interval_ms, retry: false })
    }
}

/// Whether the coordinator does not know the member any more.
pub(crate) fn is_fenced(code: i16) -> bool {
    code == ErrorCode::FencedMemberEpoch.number() || code == ErrorCode::UnknownMemberId.number()
}

fn by_topic(owned: &BTreeSet<Partition>) -> Vec<TopicPartitions> {
    let mut topics: Vec<TopicPartitions> = Vec::new();
    for (topic_id, number) in owned {
        match topics.last_mut().filter(|topic| topic.topic_id == *topic_id) {
            Some(topic) => topic.partitions.push(*number),
            None => {
                topics.push(TopicPartitions { topic_id: *topic_id, partitions: vec![*number] });
            }
        }
    }
    topics
}

/// Lets members talk without pauses, a few at a time, until each owns `share` partitions and has
/// said so.
pub(crate) async fn settle(link: &mut Link, members: &mut [Member], share: usize) -> Outcome<()> {
    for _ in 0..ROUNDS_MAX {
        let mut is_settled = true;
        for some in members.chunks_mut(AT_ONCE) {
            let mut asked = Vec::with_capacity(some.len());
            for member in &*some {
                asked.push(link.send(HEARTBEAT_VERSION, &member.request()).await?);
            }
            for (member, asked) in some.iter_mut().zip(asked) {
                let answer = link.answer(asked).await?;
                member.take(&answer.read()?)?;
                is_settled &= member.owned.len() == share && !member.owes_word;
            }
        }
        if is_settled {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(format!("members do not own {share} partitions each after {ROUNDS_MAX} rounds"))
}

/// The newest.
pub(crate) const HEARTBEAT_VERSION: i16 = 1;
/// The epoch of a dynamic member that leaves.
const LEAVES: i32 = -1;
/// Java's default `max.poll.interval.ms`.
const REBALANCE_TIMEOUT_MS: i32 = 300_000;
/// Requests that `settle` has in flight.
const AT_ONCE: usize = 32;
/// How often `settle` lets each member speak.
const ROUNDS_MAX: usize = 1000;
/// Between the rounds.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
