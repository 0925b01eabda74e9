//! How connections learn that the broker is shutting down, and how it learns that they are gone.

use std::future::Future;
use tokio::sync::watch;

/// Held by every connection. [`Shutdown`] is the other end.
#[derive(Clone, Debug)]
pub(crate) struct Lifeline {
    draining: watch::Receiver<bool>,
}

/// Starts the drain.
#[derive(Debug)]
pub(crate) struct Shutdown {
    draining: watch::Sender<bool>,
}

impl Shutdown {
    /// A broker that is not shutting down.
    pub(crate) fn new() -> Self {
        Self { draining: watch::Sender::new(false) }
    }

    /// A lifeline for one more holder.
    pub(crate) fn lifeline(&self) -> Lifeline {
        Lifeline { draining: self.draining.subscribe() }
    }

    /// From now on nothing new begins, and what has begun ends soon.
    pub(crate) fn drain(&self) {
        self.draining.send_replace(true);
    }
}

impl Lifeline {
    /// Whether the broker is shutting down.
    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Completes when the shutdown begins.
    pub(crate) fn draining(&self) -> impl Future<Output = ()> + use<> {
        let mut draining = self.draining.clone();
        async move {
            // An error means that the other end is gone, which is a shutdown too.
            let _ = draining.wait_for(|draining| *draining).await;
        }
    }
}
