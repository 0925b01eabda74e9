//! Connections that a shard asks to close: a dead consumer's, unless another shard has somebody
//! alive on it (S19, decision 17).

use super::Shards;
use super::delivery::Reign;
use crate::net::Lines;
use crate::partitions::Passes;
use ottla_model::ConnectionId;
use std::sync::Arc;
use tokio::sync::mpsc;

/// One of them.
pub(super) struct Closing {
    pub(super) connection: ConnectionId,
    /// What must be safe before anybody may see that the consumer is dead.
    pub(super) after: Option<Passes>,
    /// A shard that was deposed meanwhile must not act any more.
    pub(super) reign: Arc<Reign>,
}

/// Where shards say it. At most one stands here for each member that died.
pub(super) type Closings = mpsc::UnboundedSender<Closing>;

impl Shards {
    /// Carries out what shards ask to close, until the broker stops.
    pub(crate) async fn break_lines(self: Arc<Self>, lines: Arc<Lines>) {
        let Some(mut closings) = self.take_closings() else { return };
        while let Some(mut closing) = closings.recv().await {
            let Some(safe) = closing.after.take() else {
                self.close(&closing, &lines);
                continue;
            };
            let (shards, lines) = (Arc::clone(&self), Arc::clone(&lines));
            tokio::spawn(async move {
                if safe.await.is_ok() {
                    shards.close(&closing, &lines);
                }
            });
        }
    }

    fn close(&self, closing: &Closing, lines: &Lines) {
        let connection = closing.connection;
        let is_spoken_on = || self.all().iter().any(|cell| cell.speaks_on(connection));
        if !closing.reign.is_over() && !is_spoken_on() && lines.cut(connection) {
            tracing::debug!(%connection, "closed the connection of a consumer that is dead");
        }
    }
}
