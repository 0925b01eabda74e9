//! Tasks that keep the broker in step with the cluster: the driver, the session, the image.

use crate::broker::Broker;
use crate::clock;
use crate::partitions::Partitions;
use ottla_cluster::lease::Tenure;
use ottla_cluster::{ChangeError, Cluster, Driver};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Runs the cluster's driver until the broker stops.
pub(crate) async fn drive(driver: Driver) {
    if let Err(error) = driver.run().await {
        tracing::error!(%error, "the cluster can no longer be changed: restart this broker");
    }
}

/// Renews the broker's session in time.
pub(crate) async fn keep_session(cluster: Cluster, mut tenure: Tenure) {
    loop {
        tokio::time::sleep_until(clock::tokio_instant(tenure.renew_at())).await;
        match cluster.renew(&mut tenure, clock::mono()).await {
            Ok(()) => {}
            Err(ChangeError::Stopped) => return,
            Err(error) => {
                tracing::error!(%error, "the session could not be renewed");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Carries each new image into the broker: logs, then whoever depends on topics.
pub(crate) async fn follow(broker: Arc<Broker>) {
    let mut changes = broker.cluster.changes(&broker.cluster.image());
    while changes.next().await.is_some() {
        while let Err(error) = reconcile(&broker.cluster, &broker.partitions).await {
            tracing::error!(%error, "the logs could not be brought in line with the cluster");
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Makes the logs what the newest image wants, and tells the cluster what came of it.
///
/// # Errors
/// The data directory cannot be read.
pub(crate) async fn reconcile(cluster: &Cluster, partitions: &Arc<Partitions>) -> io::Result<()> {
    let (image, partitions) = (cluster.image(), Arc::clone(partitions));
    let task = tokio::task::spawn_blocking(move || partitions.reconcile(&image));
    let aftermath = task.await.map_err(io::Error::other)??;
    let told = async {
        if !aftermath.reigns.is_empty() {
            cluster.raise_leader_epochs(aftermath.reigns).await?;
        }
        for topic in aftermath.cleared {
            cluster.finish_deletion(topic).await?;
        }
        Ok::<(), ChangeError>(())
    };
    // What could not be told is found again with the next image or at the next start.
    if let Err(error) = told.await {
        tracing::warn!(%error, "the cluster could not be told of changes to the logs");
    }
    Ok(())
}

/// After a failure, the next try comes this much later.
const RETRY: Duration = Duration::from_millis(500);
