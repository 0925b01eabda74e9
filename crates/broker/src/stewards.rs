//! Tasks that keep the broker in step with the cluster: the driver, the session, the image.

use crate::broker::Broker;
use crate::clock;
use crate::config::groups;
use crate::partitions::Partitions;
use crate::shards;
use ottla_cluster::image::Image;
use ottla_cluster::lease::Tenure;
use ottla_cluster::names::OFFSETS_TOPIC;
use ottla_cluster::{ChangeError, Cluster, Driver};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Runs the cluster's driver until the broker stops.
pub(crate) async fn drive(driver: Driver) {
    if let Err(error) = driver.run().await {
        tracing::error!(%error, "the cluster can no longer be changed: restart this broker");
    }
}

/// Renews the broker's session in time, and with it the reign of its shards.
pub(crate) async fn keep_session(broker: Arc<Broker>, tenure: Arc<Mutex<Tenure>>) {
    loop {
        let mut mine = *held(&tenure);
        tokio::time::sleep_until(clock::tokio_instant(mine.renew_at())).await;
        match broker.cluster.renew(&mut mine, clock::mono()).await {
            Ok(()) => {
                broker.shards.renew(mine.until());
                *held(&tenure) = mine;
            }
            Err(ChangeError::Stopped) => return,
            Err(error) => {
                tracing::error!(%error, "the session could not be renewed");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Carries each image after `seen` into the broker: logs first, then the shards that write them.
/// What could not be done is tried again after a while.
pub(crate) async fn follow(broker: Arc<Broker>, tenure: Arc<Mutex<Tenure>>, seen: Arc<Image>) {
    let mut changes = broker.cluster.changes(&seen);
    let mut settled = true;
    loop {
        let wait = if settled { Duration::MAX } else { AGAIN };
        if let Ok(None) = tokio::time::timeout(wait, changes.next()).await {
            broker.detached.store(true, Ordering::Release);
            return;
        }
        let image = broker.cluster.image();
        settled = match reconcile(&broker.cluster, &broker.partitions).await {
            Ok(all_open) => all_open,
            Err(error) => {
                tracing::error!(%error, "the logs could not be brought in line with the cluster");
                false
            }
        };
        if broker.lifeline.is_draining() {
            // Whoever waits for it is not to wait for shards that are gone.
            broker.shards.told(image.revision());
            return;
        }
        broker.shards.topics_changed(image.view());
        broker.shards.settings_changed(groups::view(&image));
        broker.shards.told(image.revision());
        settled &= claim(&broker, &tenure).await;
    }
}

/// Claims the shards whose logs are here, and begins to load them. False if one could not be had.
pub(crate) async fn claim(broker: &Broker, tenure: &Mutex<Tenure>) -> bool {
    let image = broker.cluster.image();
    broker.shards.settings_changed(groups::view(&image));
    let Some(topic) = image.topic(OFFSETS_TOPIC) else { return true };
    broker.shards.prepare(topic.partition_count());
    let mut wanted = broker.shards.unclaimed();
    wanted.retain(|shard| shards::log_of(&broker.partitions, *shard).is_some());
    if wanted.is_empty() {
        return true;
    }
    let mine = *held(tenure);
    let claimed = match broker.cluster.claim_shards(&mine, wanted).await {
        Ok(claimed) => claimed,
        Err(error) => {
            tracing::error!(%error, "the shards could not be claimed");
            return false;
        }
    };
    let mut all = true;
    for grant in claimed {
        match grant {
            Ok(grant) => {
                if let Some(log) = shards::log_of(&broker.partitions, grant.partition) {
                    broker.shards.begin(grant, log, image.view());
                }
            }
            Err(refusal) => {
                tracing::warn!(reason = %refusal.message, "a shard was refused");
                all = false;
            }
        }
    }
    all
}

fn held(tenure: &Mutex<Tenure>) -> std::sync::MutexGuard<'_, Tenure> {
    // It is replaced whole.
    tenure.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the logs what the newest image wants, and tells the cluster what came of it. False if a
/// log could not be opened.
///
/// # Errors
/// The data directory cannot be read.
pub(crate) async fn reconcile(cluster: &Cluster, partitions: &Arc<Partitions>) -> io::Result<bool> {
    let (image, partitions) = (cluster.image(), Arc::clone(partitions));
    let task = tokio::task::spawn_blocking(move || partitions.reconcile(&image));
    let aftermath = task.await.map_err(io::Error::other)??;
    let all_open = !aftermath.offline;
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
    Ok(all_open)
}

/// After a failure, the next try comes this much later.
const RETRY: Duration = Duration::from_millis(500);
/// What could not be brought in line with the cluster is tried again after this.
const AGAIN: Duration = Duration::from_secs(5);
