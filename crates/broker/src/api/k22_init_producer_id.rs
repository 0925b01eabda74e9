//! Key 22, InitProducerId, versions 0-5: an identity for an idempotent producer (KIP-98).
//!
//! - v2 is flexible, v3 lets a producer ask for a new epoch (KIP-360), which only a transactional
//!   one needs; v4 and v5 add codes.
//! - v6 (two-phase commit, KIP-939) is not stable in Kafka 4.4.
//!
//! Left out: transactions. A transactional id gets TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the code
//! that the Java client, librdkafka and franz-go all take as final: the producer fails at once and
//! says so, instead of trying for ever.

use super::error_map::change_error;
use super::{Answer, Context};
use ottla_model::ProducerId;
use ottla_wire::ErrorCode;
use ottla_wire::generated::{InitProducerIdRequest, InitProducerIdResponse};
use std::sync::Arc;

/// Gives the producer an id nobody had before.
pub(super) fn handle(cx: &mut Context<'_>, request: InitProducerIdRequest<'_>) -> Answer {
    if request.transactional_id.is_some() {
        let code = cx.count(ErrorCode::TransactionalIdAuthorizationFailed);
        return cx.reply(&refused(code));
    }
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    Answer::Later(Box::pin(async move {
        match broker.cluster.next_producer_id().await {
            Ok(ProducerId(producer_id)) => to.encode(&InitProducerIdResponse {
                producer_id,
                producer_epoch: 0,
                ..Default::default()
            }),
            Err(error) => {
                tracing::warn!(%error, "no producer id could be had");
                // Kafka's clients wait and ask again on this one.
                let code = match change_error(&error) {
                    ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
                    code => code,
                };
                broker.metrics.errors.count(to.key, code);
                to.encode(&refused(code))
            }
        }
    }))
}

fn refused(code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse {
        error_code: code.number(),
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    }
}
