//! A connection's place in a queue for something all connections share.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Waits in the queue, then holds what it waited for. First come, first served.
#[derive(Default)]
pub(super) enum Turn {
    /// Nothing is wanted.
    #[default]
    Idle,
    /// Others come first.
    Waiting(Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>),
    /// It has its share; ending the turn gives it back.
    Held { _share: Option<OwnedSemaphorePermit> },
}

impl Turn {
    /// Asks for `share` of what `queue` gives out, or goes on to wait for it. True once it is held;
    /// until then the task is woken when there is news.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        queue: &Arc<Semaphore>,
        share: u32,
    ) -> bool {
        if let Self::Idle = self {
            let queue = Arc::clone(queue);
            *self =
                Self::Waiting(Box::pin(async move { queue.acquire_many_owned(share).await.ok() }));
        }
        if let Self::Waiting(coming) = self
            && let Poll::Ready(permit) = coming.as_mut().poll(cx)
        {
            *self = Self::Held { _share: permit };
        }
        self.is_held()
    }

    /// Whether others come first.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting(_))
    }

    /// Whether it has what it asked for.
    pub(super) fn is_held(&self) -> bool {
        matches!(self, Self::Held { .. })
    }

    /// Whether nothing is wanted.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// Gives back what is held, or leaves the queue.
    pub(super) fn end(&mut self) {
        *self = Self::Idle;
    }
}
