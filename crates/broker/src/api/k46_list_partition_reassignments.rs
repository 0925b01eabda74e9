//! Key 46, ListPartitionReassignments, version 0 (KIP-455).
//!
//! Replicas are not moved between brokers here, so none is ever on the move. Asking for partitions
//! that do not exist is no error, as in Kafka.

use super::{Answer, Context};
use ottla_wire::generated::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

/// Answers that nothing moves.
pub(super) fn handle(cx: &mut Context<'_>, _: ListPartitionReassignmentsRequest<'_>) -> Answer {
    cx.reply(&ListPartitionReassignmentsResponse { error_message: None, ..Default::default() })
}
