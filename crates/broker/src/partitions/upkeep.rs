//! What logs need now and then: retention, compaction, removal of files, a second try after a
//! failure.
//!
//! Two threads, because all of it blocks on the disk: one whose rounds are short, and one for
//! compaction, which may take long and must not keep a failed log waiting.

use super::{Partition, Partitions};
use crate::clock;
use crate::config::Durability;
use ottla_model::Instant;
use ottla_storage::{Log, State};
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The threads; [`Upkeep::stop`] ends them.
#[derive(Debug)]
pub(crate) struct Upkeep(Mutex<Vec<Worker>>);

#[derive(Debug)]
struct Worker {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Upkeep {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn start(partitions: &Arc<Partitions>) -> io::Result<Self> {
        let (mine, cleaned) = (Arc::clone(partitions), Arc::clone(partitions));
        let mut rounds = Rounds::new(mine, clock::mono());
        let backoff = partitions.config.log_cleaner_backoff;
        let tick = partitions.config.log_retention_check_interval.clamp(TICK_MIN, TICK);
        let workers = vec![
            Worker::start("upkeep", tick, move || rounds.tick(clock::mono()))?,
            Worker::start(COMPACTION, backoff, move || {
                for partition in cleaned.all() {
                    clean(&partition);
                }
            })?,
        ];
        Ok(Self(Mutex::new(workers)))
    }

    /// Ends the threads. A compaction under way is not waited for: it may take long, and loses
    /// nothing if it is cut off.
    pub(crate) fn stop(&self) {
        let workers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for Worker { stop, thread } in workers {
            drop(stop);
            if thread.thread().name() != Some(COMPACTION) {
                // A panic was reported when it happened.
                let _ = thread.join();
            }
        }
    }
}

impl Worker {
    fn start(
        name: &str,
        every: Duration,
        mut round: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let work = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(every) {
                round();
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(Self { stop, thread })
    }
}

struct Rounds {
    partitions: Arc<Partitions>,
    retained: Instant,
    flushed: Instant,
    checkpointed: Instant,
}

impl Rounds {
    fn new(partitions: Arc<Partitions>, now: Instant) -> Self {
        Self { partitions, retained: now, flushed: now, checkpointed: now }
    }

    fn tick(&mut self, now: Instant) {
        let due = now.since(self.retained) >= self.partitions.config.log_retention_check_interval;
        let flush = self.partitions.config.durability == Durability::PageCache
            && now.since(self.flushed) >= FLUSH;
        let interval = self.partitions.config.log_flush_offset_checkpoint_interval;
        let checkpoint = now.since(self.checkpointed) >= interval;
        for partition in self.partitions.all() {
            mend(&partition);
            if due {
                retain(&partition);
            }
            if flush {
                partition.mark_dirty();
            }
            if checkpoint && partition.with_log(Log::checkpoint_soon) {
                partition.mark_dirty();
            }
            remove(&partition, now);
        }
        self.partitions.remove_doomed();
        if due {
            self.retained = now;
        }
        if flush {
            self.flushed = now;
        }
        if checkpoint {
            self.checkpointed = now;
        }
    }
}

/// Does all of it once, for tests that are their own threads. Returns how many compactions ran.
#[cfg(test)]
pub(crate) fn upkeep_round(partitions: &Partitions) -> usize {
    let (all, now) = (partitions.all(), clock::mono());
    for partition in &all {
        mend(partition);
        retain(partition);
        remove(partition, now);
    }
    partitions.remove_doomed();
    all.iter().filter(|partition| clean(partition)).count()
}

fn mend(partition: &Arc<Partition>) {
    if partition.with_log(|log| *log.state() != State::Online) {
        partition.recover();
    }
}

fn retain(partition: &Arc<Partition>) {
    match partition.retain(clock::now()) {
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

/// True if there was something to compact.
fn clean(partition: &Arc<Partition>) -> bool {
    let (committed, now) = (partition.high_watermark(), clock::now());
    let Some(job) = partition.with_log(|log| log.start_clean(now, committed)) else {
        return false;
    };
    let cleaned = job.run();
    let report = partition.with_log(|log| log.finish_clean(cleaned));
    if let Some(error) = &report.error {
        tracing::error!(partition = %partition.at, %error, "compaction stopped early");
    }
    tracing::info!(
        partition = %partition.at,
        bytes_before = report.bytes_before,
        bytes_after = report.bytes_after,
        records_kept = report.records_kept,
        records_dropped = report.records_dropped,
        clean_to = %report.clean_to,
        "compacted"
    );
    true
}

fn remove(partition: &Arc<Partition>, now: Instant) {
    let removal = partition.with_log(|log| log.due_removal(now));
    if let Some(Err(error)) = removal.map(|removal| removal.run()) {
        tracing::warn!(partition = %partition.at, %error, "cannot remove old files yet");
    }
}

const COMPACTION: &str = "compaction";
/// How often the first thread looks around, unless retention is to look more often.
const TICK: Duration = Duration::from_secs(1);
/// How often it does so at most.
const TICK_MIN: Duration = Duration::from_millis(10);
/// With `durability = "page-cache"`, how often logs are synced all the same, so that a restart
/// has little to check.
const FLUSH: Duration = Duration::from_secs(60);
