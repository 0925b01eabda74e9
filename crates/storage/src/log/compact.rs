//! When a log is compacted, and what it does with the outcome. The work itself is
//! [`crate::clean`]'s and runs outside the log's lock.

use std::sync::Arc;
use std::time::Duration;

use ottla_model::{Now, Offset, Timestamp};

use super::notes::Notes;
use super::{Log, State};
use crate::clean::{CleanError, Passed, Plan, Rules, Swapped};
use crate::offsets_file::KeptOffsets;
use crate::segment::Segment;

/// A compaction to run outside the lock.
#[derive(Debug)]
pub struct CleanJob {
    plan: Plan,
    notes: Arc<Notes>,
}

/// How a compaction went. Give it back to [`Log::finish_clean`], whatever became of it.
#[derive(Debug)]
#[must_use = "the log waits for it"]
pub struct Cleaned(Passed);

/// What a compaction did.
#[derive(Debug, Default)]
pub struct CleanReport {
    /// Segments read and written anew.
    pub segments_before: usize,
    /// Segments that took their place.
    pub segments_after: usize,
    /// Bytes of the former.
    pub bytes_before: u64,
    /// Bytes of the latter.
    pub bytes_after: u64,
    /// Records that stayed.
    pub records_kept: u64,
    /// Records that went.
    pub records_dropped: u64,
    /// Everything below has been compacted.
    pub clean_to: Offset,
    /// Why it stopped early, if it did. The next pass begins anew.
    pub error: Option<CleanError>,
}

impl Log {
    /// The compaction that is due, if one is: `cleanup.policy` has `compact`, and enough is
    /// dirty (`min.cleanable.dirty.ratio`) or too old (`max.compaction.lag.ms`). Never the active
    /// segment, nothing past `committed` (the high watermark), nothing younger than
    /// `min.compaction.lag.ms`. One at a time; it and retention wait for each other.
    pub fn start_clean(&mut self, now: Now, committed: Offset) -> Option<CleanJob> {
        let wanted = self.config.cleanup_policy.compact && self.state == State::Online;
        if !wanted || self.is_cleaning() || self.raising > 0 {
            return None;
        }
        let segments = self.cleanable(now, committed);
        let first_dirty = self.kept.first_dirty.max(self.start_offset());
        let all = self.shared.segments();
        let end = all.get(segments.len()).map_or(self.end_offset(), |next| next.base);
        if first_dirty >= end || !self.is_dirty_enough(&segments, first_dirty, now) {
            return None;
        }
        self.cleaning = Some(end);
        let config = &self.config;
        let plan = Plan {
            fs: self.fs.clone(),
            dir: self.dir.clone(),
            segments,
            first_dirty,
            end,
            segment_bytes: config.segment_bytes.min(i32::MAX as u64),
            index_interval_bytes: config.index_interval_bytes,
            memory_bytes_max: config.compaction_memory_bytes_max,
            rules: Rules {
                now: now.wall,
                horizon: now.wall.plus(config.delete_retention_ms),
                unpacked_bytes_max: config.batch_unpacked_bytes_max,
                producers: self.producers.last_offsets(),
            },
        };
        Some(CleanJob { plan, notes: self.notes.clone() })
    }

    /// Puts the cleaned segments in force and says what was done.
    pub fn finish_clean(&mut self, cleaned: Cleaned) -> CleanReport {
        self.cleaning = None;
        let Passed { swapped, clean_to, counts, error } = cleaned.0;
        let mut report = CleanReport {
            segments_after: swapped.len(),
            records_kept: counts.kept,
            records_dropped: counts.dropped,
            error,
            ..CleanReport::default()
        };
        for Swapped { originals, cleaned } in swapped {
            report.segments_before += originals.len();
            report.bytes_before += originals.iter().map(|segment| segment.size()).sum::<u64>();
            report.bytes_after += cleaned.size();
            self.replace_segments(&originals, cleaned);
        }
        if let Some(first_dirty) = clean_to {
            self.kept.first_dirty = first_dirty;
        }
        report.clean_to = self.kept.first_dirty;
        report
    }

    /// Whether a compaction runs.
    pub fn is_cleaning(&self) -> bool {
        self.cleaning.is_some()
    }

    /// The segments that a compaction may touch: a run from the first on.
    fn cleanable(&self, now: Now, committed: Offset) -> Vec<Arc<Segment>> {
        let segments = self.shared.segments();
        let lag = self.config.compaction_lag_min_ms;
        let may = |pair: &&[Arc<Segment>]| {
            let (segment, end) = (&pair[0], pair[1].base);
            end <= committed
                && segment.base < self.syncing.checkpointed_in()
                && (lag == Duration::ZERO || is_older(segment, lag, now.wall))
        };
        segments.windows(2).take_while(may).map(|pair| pair[0].clone()).collect()
    }

    fn is_dirty_enough(&self, segments: &[Arc<Segment>], first_dirty: Offset, now: Now) -> bool {
        let clean = segments.partition_point(|segment| segment.base < first_dirty);
        let bytes = |segments: &[Arc<Segment>]| -> u64 {
            segments.iter().map(|segment| segment.size()).sum()
        };
        let (clean_bytes, dirty) = (bytes(&segments[..clean]), &segments[clean..]);
        let dirty_bytes = bytes(dirty);
        if dirty_bytes == 0 {
            // Only a pass that ran out of memory stops inside a segment.
            return clean > 0 && first_dirty > segments[clean - 1].base;
        }
        let overdue = self
            .config
            .compaction_lag_max_ms
            .is_some_and(|lag| dirty.iter().any(|segment| is_older(segment, lag, now.wall)));
        let permille = u64::from(self.config.dirty_ratio_min_permille);
        overdue || dirty_bytes * 1000 >= (clean_bytes + dirty_bytes) * permille
    }

    fn replace_segments(&mut self, originals: &[Arc<Segment>], cleaned: Arc<Segment>) {
        let mut segments = Vec::clone(&self.shared.segments());
        let is_first = |segment: &Arc<Segment>| Arc::ptr_eq(segment, &originals[0]);
        if let Some(at) = segments.iter().position(is_first) {
            segments.splice(at..at + originals.len(), [cleaned]);
            self.shared.set_segments(segments);
        }
    }
}

impl CleanJob {
    /// Runs the compaction: reads and writes every segment it touches.
    pub fn run(self) -> Cleaned {
        let passed = self.plan.run();
        if let Some(first_dirty) = passed.clean_to {
            // If it cannot be noted durably, a restart cleans once more.
            let _ = self.notes.raise(KeptOffsets { first_dirty, ..KeptOffsets::default() });
        }
        Cleaned(passed)
    }
}

fn is_older(segment: &Segment, lag: Duration, now: Timestamp) -> bool {
    segment.largest().is_none_or(|largest| largest.timestamp.plus(lag) <= now)
}
