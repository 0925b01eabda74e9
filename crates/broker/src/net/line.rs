//! Connections by their names, so that whoever knows a name can break one: the register protocol
//! closes the socket of a consumer that is dead (S19).

use ottla_model::ConnectionId;
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Every open connection.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    open: Mutex<HashMap<ConnectionId, Arc<Line>>>,
}

/// One connection, seen by those who may break it and by the task that serves it.
#[derive(Debug, Default)]
pub(crate) struct Line {
    is_broken: AtomicBool,
    told: Notify,
}

impl Lines {
    /// A connection is open.
    pub(crate) fn open(&self, connection: ConnectionId) -> Arc<Line> {
        Arc::clone(self.lock().entry(connection).or_default())
    }

    /// It is gone.
    pub(crate) fn forget(&self, connection: ConnectionId) {
        self.lock().remove(&connection);
    }

    /// Breaks it, if it is still open: true if it was.
    pub(crate) fn cut(&self, connection: ConnectionId) -> bool {
        let line = self.lock().remove(&connection);
        if let Some(line) = &line {
            line.is_broken.store(true, Ordering::Release);
            line.told.notify_one();
        }
        line.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionId, Arc<Line>>> {
        // Each change is one call of the map.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Whether it was broken.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }

    /// Completes when it is.
    pub(super) fn broken(&self) -> impl Future<Output = ()> + '_ {
        self.told.notified()
    }
}
