//! Who an idempotent producer is to brokers (InitProducerId; KIP-98, KIP-360).

use super::queue::Identity;
use crate::cluster::Cluster;
use crate::{Error, Result};
use ottla_model::{ProducerEpoch, ProducerId};
use ottla_wire::ApiKey;
use ottla_wire::generated::{InitProducerIdRequest, InitProducerIdResponse};

/// A new identity; if there was an `old` one, the same with the next epoch where the broker can.
/// Tries for as long as a call may take.
pub(super) async fn obtain(cluster: &Cluster, old: Option<Identity>) -> Result<Identity> {
    cluster.retry().run(|| async { obtain_once(cluster, old).await }).await
}

async fn obtain_once(cluster: &Cluster, old: Option<Identity>) -> Result<Identity> {
    let connection = cluster.any().await?;
    let version = connection.version(ApiKey::InitProducerId)?;
    let mut request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: i32::MAX,
        ..Default::default()
    };
    if let Some(old) = old.filter(|_| version >= BUMPS_SINCE) {
        (request.producer_id, request.producer_epoch) = (old.id.0, old.epoch.0);
    }
    let answer = connection.call_at(version, &request).await?;
    let response: InitProducerIdResponse = answer.read()?;
    Error::check(response.error_code, || "cannot obtain a producer id".into())?;
    let (id, epoch) = (ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch));
    Ok(Identity { id, epoch })
}

/// The first version that raises the epoch of a known id.
const BUMPS_SINCE: i16 = 3;
