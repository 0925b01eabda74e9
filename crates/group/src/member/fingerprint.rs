//! What tells two members of the consumer protocol apart, for the search through all states of a
//! group (`tests/space`). Times, pauses and counters of requests are left out: that search lets
//! anything that waits happen at any time.

use super::link::Link;
use super::state::Phase;
use super::{Generation, Member};
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
            Phase::Following => "Following".into(),
            Phase::Failed => "Failed".into(),
            Phase::Closed => "Closed".into(),
            other => format!("{other:?}"),
        };
        let is_linked = matches!(self.link, Link::Known(_));
        let (topics, owned, generation) = (&self.topics, &self.owned, self.generation);
        let calls = self.calls.fingerprint();
        let consumer = &self.consumer;
        format!("{phase} {is_linked} {topics:?} {owned:?} {generation:?} {calls:?} {consumer:?}")
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
        self.calls.generations_mut().for_each(shifted);
    }
}
