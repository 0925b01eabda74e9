//! A shard's reply on its way to the connection that asked.

use crate::clock;
use crate::partitions::Passes;
use ottla_group::message::{GroupError, Reply, Token};
use ottla_model::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;

/// What became of a request when it was put to its shard.
pub(crate) enum Asked {
    /// The reply is there and may leave.
    Now(Reply),
    /// The reply is there, or will be, and must be waited for.
    Later(Delivery),
    /// The same, and the shard holds it back on purpose: it wants to know who waits behind it.
    Held(Delivery, Token),
}

impl Asked {
    /// The reply, if it may leave at once.
    pub(crate) fn now(self) -> Option<Reply> {
        match self {
            Self::Now(reply) => Some(reply),
            Self::Later(_) | Self::Held(..) => None,
        }
    }
}

/// A reply that is waited for.
pub(crate) struct Delivery {
    state: State,
    /// What to say if no reply comes: the shard was dropped.
    lost: Reply,
    reign: Arc<Reign>,
}

enum State {
    Known(Reply, Passes),
    Parked(oneshot::Receiver<Settled>),
}

/// A reply and what must be safe before it may leave.
pub(super) struct Settled {
    pub(super) reply: Reply,
    pub(super) after: Option<Passes>,
}

/// Until when the broker may speak for a shard; read when a reply leaves.
#[derive(Debug, Default)]
pub(super) struct Reign {
    until: AtomicU64,
}

impl Reign {
    /// It lasts until then.
    pub(super) fn set(&self, until: Instant) {
        self.until.store(until.as_nanos(), Ordering::Release);
    }

    pub(super) fn is_over(&self) -> bool {
        clock::mono() >= Instant::from_nanos(self.until.load(Ordering::Acquire))
    }
}

impl Delivery {
    /// The reply is known and must become safe.
    pub(super) fn known(settled: (Reply, Passes), lost: Reply, reign: Arc<Reign>) -> Self {
        Self { state: State::Known(settled.0, settled.1), lost, reign }
    }

    /// The shard keeps the request for now.
    pub(super) fn parked(
        settled: oneshot::Receiver<Settled>,
        lost: Reply,
        reign: Arc<Reign>,
    ) -> Self {
        Self { state: State::Parked(settled), lost, reign }
    }

    /// Waits for the reply, until it is safe.
    pub(crate) async fn reply(self) -> Reply {
        let (reply, after) = match self.state {
            State::Known(reply, passes) => (reply, Some(passes)),
            State::Parked(settled) => match settled.await {
                Ok(Settled { reply, after }) => (reply, after),
                Err(_) => return self.lost,
            },
        };
        let safe = match after {
            Some(passes) => passes.await.is_ok(),
            None => true,
        };
        // A coordinator that was deposed while it waited must not speak any more.
        if safe && !self.reign.is_over() {
            reply
        } else {
            reply.refused(GroupError::NotCoordinator)
        }
    }
}
