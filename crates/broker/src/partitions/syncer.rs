//! Group commit: a few threads that sync dirty logs outside their locks.
//!
//! A log is in the queue at most once. While one sync runs, appends gather for the next; so the
//! busier a partition, the more of them share one sync, and nothing unsynced waits longer than
//! the syncs before it take.

use super::Partition;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The threads and their queue.
#[derive(Debug)]
pub(crate) struct Syncer {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    dirty: VecDeque<Arc<Partition>>,
    stopping: bool,
}

/// The end of the queue that partitions hold.
#[derive(Clone, Debug)]
pub(crate) struct SyncQueue(Arc<Shared>);

impl Syncer {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let threads = (0..THREADS).map(|number| {
            let shared = Arc::clone(&shared);
            let name = format!("sync-{number}");
            std::thread::Builder::new().name(name).spawn(move || shared.work())
        });
        let threads = Mutex::new(threads.collect::<Result<_, _>>()?);
        Ok(Self { shared, threads })
    }

    /// What partitions put themselves into.
    pub(crate) fn queue(&self) -> SyncQueue {
        SyncQueue(Arc::clone(&self.shared))
    }

    /// Syncs what is in the queue and ends the threads.
    pub(crate) fn stop(&self) {
        self.shared.lock().stopping = true;
        self.shared.work.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic of a thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl SyncQueue {
    /// A queue nobody serves: the test syncs.
    #[cfg(test)]
    pub(crate) fn unserved() -> Self {
        Self(Arc::default())
    }

    /// Takes the partition that has waited longest, as a thread would.
    #[cfg(test)]
    pub(crate) fn take(&self) -> Option<Arc<Partition>> {
        self.0.lock().dirty.pop_front()
    }

    /// Queues a partition; the caller sees to it that it is in the queue only once.
    pub(super) fn push(&self, partition: Arc<Partition>) {
        self.0.lock().dirty.push_back(partition);
        self.0.work.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        // The queue is whole after every statement.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(partition) = self.next() {
            partition.sync();
        }
    }

    fn next(&self) -> Option<Arc<Partition>> {
        let mut queue = self.lock();
        loop {
            if let Some(partition) = queue.dirty.pop_front() {
                return Some(partition);
            }
            if queue.stopping {
                return None;
            }
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Syncs of different files overlap in the device and the file system's journal, so a few more
/// threads than cores pay; they mostly wait.
const THREADS: usize = 4;
