//! What a consumer's group task tells the consumer, to be acted on in its next poll.

use crate::Error;
use ottla_model::TopicPartition;

#[derive(Clone, Debug)]
pub(super) enum RebalanceEvent {
    /// These are its own from now on. Ends every rebalance, so there may be none.
    Assigned(Vec<TopicPartition>),
    /// It shall finish with these and say so.
    Revoke(Vec<TopicPartition>),
    /// These are another's already.
    Lost(Vec<TopicPartition>),
    /// Something that the member cannot mend.
    Failed(Error),
    /// It is no member any more, and will not be one again.
    Left,
}
