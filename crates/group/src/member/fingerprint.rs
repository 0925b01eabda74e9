//! What tells two members of the classic or the consumer protocol apart, for the search through all
//! states of a group (`tests/space`). Times, pauses and counters of requests are left out: that
//! search lets anything that waits happen at any time.

use super::link::Link;
use super::state::Phase;
use super::{Generation, Member, Protocol, Request};
use alloc::format;
use alloc::string::String;

impl Member {
    /// Equal for members that behave alike from now on.
    pub fn fingerprint(&self) -> String {
        let phase = match &self.phase {
            Phase::Revoking(it) => format!("{:?}{}{:?}", it.partitions, it.is_done, it.then),
            Phase::Leaving { then, is_sent, .. } => format!("Leaving{then:?}{is_sent}"),
            Phase::Idle => "Idle".into(),
            Phase::Unjoined => "Unjoined".into(),
            Phase::Syncing { round, request, .. } => format!("Syncing{round:?}{request:?}"),
            Phase::Following => "Following".into(),
            Phase::Failed => "Failed".into(),
            Phase::Closed => "Closed".into(),
            other => format!("{other:?}"),
        };
        let is_linked = matches!(self.link, Link::Known(_));
        let (topics, owned, generation) = (&self.topics, &self.owned, self.generation);
        let calls = self.calls.fingerprint();
        let (consumer, is_named, last) = (&self.consumer, !self.id.is_empty(), &self.last_assigned);
        let last = (self.config.protocol == Protocol::Classic).then_some(last);
        format!(
            "{phase} {is_linked} {topics:?} {owned:?} {generation:?} {calls:?} {consumer:?} \
             {is_named} {last:?} {}",
            self.owes_sync,
        )
    }

    /// The last generation it was given a part of. A classic member may be told of a later one that
    /// never came about, because its coordinator was gone before the leader had assigned.
    pub fn assigned_in(&self) -> Option<Generation> {
        match self.config.protocol {
            Protocol::Consumer => self.generation,
            Protocol::Classic | Protocol::Register(_) => self.last_assigned.as_ref().map(|it| it.1),
        }
    }

    /// Whether the application was asked to give something up and has not answered.
    pub fn is_asked_to_give_up(&self) -> bool {
        matches!(&self.phase, Phase::Revoking(revoking) if !revoking.is_done)
    }

    /// Counts epochs from another beginning.
    pub fn shift_epochs(&mut self, by: i32) {
        let shifted = |generation: &mut Option<Generation>| {
            if let Some(Generation(epoch @ 1..)) = generation {
                *epoch += by;
            }
        };
        shifted(&mut self.generation);
        if let Some((_, Generation(epoch @ 1..))) = &mut self.last_assigned {
            *epoch += by;
        }
        if let Phase::Syncing { request: Request::Sync(sync), .. } = &mut self.phase
            && let Generation(epoch @ 1..) = &mut sync.sender.generation
        {
            *epoch += by;
        }
        self.calls.generations_mut().for_each(shifted);
    }
}
