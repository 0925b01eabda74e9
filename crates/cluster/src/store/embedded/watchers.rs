//! Who wants to know of changes, and the last changes for those who ask late.

use super::super::{Change, Event, Key, Revision, Watch};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The engine's end of every watch.
pub(super) struct Watchers {
    feeds: Vec<Feed>,
    history: VecDeque<(Revision, Arc<[Change]>)>,
    /// The last revision that is no longer in the history.
    forgotten: Revision,
}

/// The engine's end of one watch.
pub(super) struct Feed {
    prefix: String,
    queue: Arc<Mutex<Queue>>,
}

/// The watcher's end.
pub(super) struct QueueWatch {
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    waker: Option<Waker>,
}

/// Both ends of a watch on `prefix`.
pub(super) fn pair(prefix: &str) -> (Feed, QueueWatch) {
    let queue = Arc::<Mutex<Queue>>::default();
    (Feed { prefix: prefix.into(), queue: queue.clone() }, QueueWatch { queue })
}

impl Watchers {
    pub(super) fn new(revision: Revision) -> Self {
        Self { feeds: Vec::new(), history: VecDeque::new(), forgotten: revision }
    }

    /// Lets a feed follow, from the first change after `after`.
    pub(super) fn add(&mut self, feed: Feed, after: Revision) {
        if after < self.forgotten {
            feed.push(Event::Lagged);
            return;
        }
        let missed = self.history.iter().filter(|(revision, _)| *revision > after);
        let kept_up = missed.fold(true, |ok, (at, changes)| ok && feed.offer(*at, changes));
        if kept_up {
            self.feeds.push(feed);
        }
    }

    /// Tells everyone; a feed that is full or abandoned is dropped.
    pub(super) fn tell(&mut self, revision: Revision, changes: Arc<[Change]>) {
        self.feeds.retain(|feed| feed.offer(revision, &changes));
        if self.history.len() == HISTORY_MAX {
            self.forgotten = self.history.pop_front().map_or(self.forgotten, |(at, _)| at);
        }
        self.history.push_back((revision, changes));
    }

    /// Has everyone read anew: what happened up to `revision` is not all known.
    pub(super) fn restart(&mut self, revision: Revision) {
        for feed in self.feeds.drain(..) {
            feed.push(Event::Lagged);
        }
        (self.history, self.forgotten) = (VecDeque::new(), revision);
    }

    pub(super) fn close(&mut self, reason: &str) {
        let reason = Arc::<str>::from(reason);
        for feed in self.feeds.drain(..) {
            feed.push(Event::Closed(reason.clone()));
        }
    }
}

impl Feed {
    /// Queues what of `changes` lies under the prefix; whether the watch goes on.
    fn offer(&self, revision: Revision, changes: &Arc<[Change]>) -> bool {
        let wanted = |change: &Change| key(change).starts_with(&self.prefix);
        if Arc::strong_count(&self.queue) == 1 {
            return false;
        }
        if !changes.iter().any(wanted) {
            return true;
        }
        if lock(&self.queue).events.len() >= QUEUE_MAX {
            self.push(Event::Lagged);
            return false;
        }
        let changes = if changes.iter().all(wanted) {
            changes.clone()
        } else {
            changes.iter().filter(|change| wanted(change)).cloned().collect()
        };
        self.push(Event::Changes { revision, changes });
        true
    }

    fn push(&self, event: Event) {
        let waker = {
            let mut queue = lock(&self.queue);
            queue.events.push_back(event);
            queue.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Watch for QueueWatch {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let mut queue = lock(&self.queue);
        match queue.events.pop_front() {
            Some(event) => Poll::Ready(event),
            None => {
                queue.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn key(change: &Change) -> &Key {
    match change {
        Change::Put(entry) => &entry.key,
        Change::Deleted(key) => key,
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    // A queue is whole after every statement, so a panicking holder leaves it usable.
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Events a watcher may be behind before it has to read anew.
const QUEUE_MAX: usize = 1024;

/// Transactions remembered for watches that start in the past.
const HISTORY_MAX: usize = 1024;
