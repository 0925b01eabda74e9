//! The connections of one client: one per broker and purpose, opened when first used.
//!
//! Purposes are apart because a broker answers one connection's requests in order: what may be
//! held (a fetch, a join) must not stand in front of what must not wait.

use crate::config::ClientConfig;
use crate::connection::Connection;
use crate::{Result, clock};
use ottla_group::member::Backoff;
use ottla_model::Instant;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Purpose {
    /// Questions that are answered at once.
    General,
    /// Fetches, which wait for records.
    Fetch,
    /// Produces, which wait for disks.
    Produce,
}

/// All of them, by address.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<HashMap<(String, Purpose), Arc<Slot>>>);

/// One address and purpose; the lock is held while connecting, so that everybody waits for one try.
type Slot = tokio::sync::Mutex<State>;

#[derive(Debug)]
struct State {
    connection: Option<Connection>,
    backoff: Backoff,
    retry_at: Instant,
}

impl Pool {
    /// The connection to this address for this purpose; a new one, if there is none or the last
    /// one is closed, but not before the pause after a failed try is over.
    pub(crate) async fn connection(
        &self,
        config: &ClientConfig,
        address: &str,
        purpose: Purpose,
    ) -> Result<Connection> {
        let slot = self.slot(config, address, purpose);
        let mut state = slot.lock().await;
        if let Some(connection) = state.connection.as_ref().filter(|open| open.is_open()) {
            return Ok(connection.clone());
        }
        clock::sleep_until(Some(state.retry_at)).await;
        match Connection::open(config, address).await {
            Ok(connection) => {
                state.backoff.reset();
                state.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                state.retry_at = clock::now() + state.backoff.pause();
                tracing::debug!(%error);
                Err(error)
            }
        }
    }

    /// An open connection to this address, for anything, without opening one.
    pub(crate) fn open_connection(&self, address: &str) -> Option<Connection> {
        let slot = self.0.lock().get(&(address.to_owned(), Purpose::General))?.clone();
        let state = slot.try_lock().ok()?;
        state.connection.clone().filter(Connection::is_open)
    }

    fn slot(&self, config: &ClientConfig, address: &str, purpose: Purpose) -> Arc<Slot> {
        let fresh = || {
            let (min, max) = (config.reconnect_backoff, config.reconnect_backoff_max);
            let backoff = Backoff::new(min, max, clock::seed());
            Arc::new(Slot::new(State { connection: None, backoff, retry_at: Instant::ZERO }))
        };
        let mut slots = self.0.lock();
        slots.entry((address.to_owned(), purpose)).or_insert_with(fresh).clone()
    }
}
