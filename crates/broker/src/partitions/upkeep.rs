//! What logs need now and then: retention, removal of files, a second try after a failure.
//!
//! One thread, because none of it is urgent and all of it blocks on the disk.

use super::{Partition, Partitions};
use crate::clock;
use crate::config::Durability;
use ottla_model::Instant;
use ottla_storage::State;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The thread; [`Upkeep::stop`] ends it.
#[derive(Debug)]
pub(crate) struct Upkeep {
    stop: Mutex<Option<Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Upkeep {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn start(partitions: Arc<Partitions>) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let work = move || {
            let mut rounds = Rounds::new(&partitions, clock::mono());
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TICK) {
                rounds.tick(clock::mono());
            }
        };
        let thread = std::thread::Builder::new().name("upkeep".into()).spawn(work)?;
        Ok(Self { stop: Mutex::new(Some(stop)), thread: Mutex::new(Some(thread)) })
    }

    /// Ends the thread after what it is doing.
    pub(crate) fn stop(&self) {
        drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

struct Rounds<'a> {
    partitions: &'a Partitions,
    retained: Instant,
    flushed: Instant,
}

impl<'a> Rounds<'a> {
    fn new(partitions: &'a Partitions, now: Instant) -> Self {
        Self { partitions, retained: now, flushed: now }
    }

    fn tick(&mut self, now: Instant) {
        let due = now.since(self.retained) >= self.partitions.config.log_retention_check_interval;
        let flush = self.partitions.config.durability == Durability::PageCache
            && now.since(self.flushed) >= FLUSH;
        for partition in self.partitions.all() {
            mend(&partition);
            if due {
                retain(&partition);
            }
            if flush {
                partition.mark_dirty();
            }
            remove(&partition, now);
        }
        if due {
            self.retained = now;
        }
        if flush {
            self.flushed = now;
        }
    }
}

fn mend(partition: &Arc<Partition>) {
    if partition.with_log(|log| *log.state() != State::Online) {
        partition.recover();
    }
}

fn retain(partition: &Arc<Partition>) {
    let committed = partition.high_watermark();
    let now = clock::now();
    let retained = partition.with_log(|log| {
        log.expire_producers(now.wall);
        log.retain(now, committed)
    });
    match retained {
        Ok(retained) if retained.segments > 0 => tracing::info!(
            partition = %partition.at,
            segments = retained.segments,
            bytes = retained.bytes,
            start = %partition.start_offset(),
            "retention removed segments"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(partition = %partition.at, %error, "retention failed"),
    }
}

fn remove(partition: &Arc<Partition>, now: Instant) {
    let removal = partition.with_log(|log| log.due_removal(now));
    if let Some(Err(error)) = removal.map(|removal| removal.run()) {
        tracing::warn!(partition = %partition.at, %error, "cannot remove old files yet");
    }
}

/// How often the thread looks around.
const TICK: Duration = Duration::from_secs(1);
/// With `durability = "page-cache"`, how often logs are synced all the same, so that a restart
/// has little to check.
const FLUSH: Duration = Duration::from_secs(60);
