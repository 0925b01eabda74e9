//! A digest of what a group's topics look like: it tells a coordinator that takes over whether
//! they changed while nobody watched.
//!
//! It is the sum of a digest of each topic, so that what comes or goes is added or taken away, and
//! an epoch costs what changed. Equal for equal topics, on every machine.

use super::consumers::Consumers;
use super::turn::Turn;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use ottla_model::{Topic, TopicName, TopicsView};

impl Turn<'_> {
    /// The digest of what the subscribed topics look like now; 0 while nobody knows. Costs all of
    /// them once after the shard took over, and nothing from then on.
    pub(super) fn subscribed_digest(&mut self) -> i64 {
        let Some(view) = self.services.topics.clone() else { return 0 };
        let sum = match self.motion().digest {
            Some(sum) => sum,
            None => {
                self.group.hard.watch_subscriptions();
                let sum = sum(self.group.hard.consumers(), &view);
                self.motion().digest = Some(sum);
                sum
            }
        };
        match sum as i64 {
            // Zero means that nobody looked.
            0 => 1,
            digest => digest,
        }
    }

    /// Records were replayed: what they subscribe to, or no longer do, counts from now on.
    pub(super) fn follow_subscriptions(&mut self) {
        let toggled = self.group.hard.take_toggled();
        let view = self.services.topics.as_deref();
        let Some(motion) = &mut self.group.motion else { return };
        let (Some(sum), Some(view)) = (&mut motion.digest, view) else { return };
        for (name, is_on) in toggled {
            let digest = of(view.topic(&name));
            *sum = if is_on { sum.wrapping_add(digest) } else { sum.wrapping_sub(digest) };
        }
    }

    /// The view is another one; only `differing` topics are shown otherwise.
    pub(super) fn follow_topics(
        &mut self,
        before: Option<&Arc<TopicsView>>,
        differing: Option<&BTreeSet<TopicName>>,
    ) {
        let view = self.services.topics.clone();
        let consumers = self.group.hard.consumers();
        let (Some(before), Some(view), Some(differing)) = (before, view, differing) else {
            self.motion().digest = None;
            return;
        };
        let mut change = 0_u64;
        for name in consumers.subscribed_among(differing) {
            let (was, is) = (of(before.topic(name)), of(view.topic(name)));
            change = change.wrapping_add(is).wrapping_sub(was);
        }
        let digest = &mut self.motion().digest;
        *digest = digest.map(|sum| sum.wrapping_add(change));
    }
}

/// The sum over all that a group subscribes to.
pub(super) fn sum(consumers: &Consumers, view: &TopicsView) -> u64 {
    consumers.subscribed_topics().map(|name| of(view.topic(name))).fold(0, u64::wrapping_add)
}

/// The digest of one topic; nothing of one that is not there.
fn of(topic: Option<&Topic>) -> u64 {
    let Some(topic) = topic else { return 0 };
    let mut hash = Fnv::default();
    hash.add(&topic.id.0);
    hash.add(topic.name.as_bytes());
    hash.add(&(topic.partitions.len() as u64).to_be_bytes());
    for (index, partition) in topic.partitions.iter().enumerate() {
        let racks: BTreeSet<_> = partition.racks.iter().collect();
        for rack in racks {
            hash.add(&(index as u64).to_be_bytes());
            hash.add(rack.as_bytes());
        }
    }
    mixed(hash.0)
}

/// Spreads every bit over all others (the finalizer of SplitMix64): FNV alone ends in a product,
/// so that one topic's growth could take back another's in the sum.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// FNV-1a, each part followed by its length.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_be_bytes();
        for byte in bytes.iter().chain(&length) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
