//! What may be shown of groups: nothing that a crash could still take back. For everyone who is no
//! member: people, monitoring, the command line.

use crate::broker::Broker;
use crate::partitions::Passes;
use ottla_group::coordinator::GroupView;
use ottla_group::message::admin::Listing;
use std::time::Duration;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// There is no such group.
    Unknown,
    /// What is known is not safe yet, or its shard is loading.
    NotYet,
}

/// Every group of this broker, in no order.
pub(crate) async fn listings(broker: &Broker) -> Result<Vec<Listing>, Absent> {
    let mut groups = Vec::new();
    for shard in &*broker.shards.all() {
        let (listings, safe) = shard.observe(|shard| {
            let listings = shard.groups();
            (listings.value, listings.after)
        });
        is_safe(safe).await?;
        groups.extend(listings);
    }
    Ok(groups)
}

/// A group as it may be shown: nothing of it can still be lost.
pub(crate) async fn view(broker: &Broker, group: &str) -> Result<GroupView, Absent> {
    let shard = broker.shards.of(group).ok_or(Absent::Unknown)?;
    if !shard.is_active() {
        return Err(Absent::NotYet);
    }
    let (view, safe) = shard.observe(|shard| {
        let view = shard.group(group);
        (view.value, view.after)
    });
    is_safe(safe).await?;
    view.ok_or(Absent::Unknown)
}

async fn is_safe(safe: Option<Passes>) -> Result<(), Absent> {
    let Some(safe) = safe else { return Ok(()) };
    match tokio::time::timeout(SAFE_MAX, safe).await {
        Ok(Ok(_)) => Ok(()),
        _ => Err(Absent::NotYet),
    }
}

/// How long a group's last record may take to become safe; else the asker is told to come back.
const SAFE_MAX: Duration = Duration::from_secs(1);
