//! Take a block of producer ids: no other broker, and no later life of this one, gets them again.

use super::{Command, Means, Plan};
use crate::image::Image;
use crate::record::{ProducerIdsRecord, producer_ids_key, put};
use std::ops::Range;

/// Take the next block.
#[derive(Clone, Copy, Debug)]
pub struct TakeProducerIds;

impl Command for TakeProducerIds {
    /// The block; empty once 2^63 ids are taken.
    type Reply = Range<i64>;

    fn decide(&mut self, image: &Image, _: &mut Means<'_>) -> Plan<Range<i64>> {
        let first = image.producer_id_next();
        let next = first.saturating_add(BLOCK);
        Plan::write(vec![put(producer_ids_key(), &ProducerIdsRecord { next })], first..next)
    }
}

/// Ids in one block, as in Kafka's `ProducerIdsBlock`.
const BLOCK: i64 = 1000;
