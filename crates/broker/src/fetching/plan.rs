//! What one fetch asks, and one pass over it.

use crate::partitions::Partition;
use bytes::Bytes;
use ottla_model::{LeaderEpoch, Offset};
use ottla_wire::ErrorCode;
use std::sync::Arc;
use std::time::Duration;

/// One fetch: its bounds and its partitions, in the order they are to be read.
#[derive(Debug)]
pub(crate) struct Plan {
    /// How long to wait for `bytes_min`.
    pub(crate) wait_max: Duration,
    /// Enough to answer without waiting.
    pub(crate) bytes_min: usize,
    /// The most to answer with; one batch may be larger (KIP-74).
    pub(crate) bytes_max: usize,
    /// The partitions.
    pub(crate) wants: Vec<Want>,
}

/// What is asked of one partition.
#[derive(Debug)]
pub(crate) struct Want {
    /// The partition, or why it cannot be read.
    pub(crate) partition: Result<Arc<Partition>, ErrorCode>,
    /// Where to read from.
    pub(crate) offset: Offset,
    /// The most to read.
    pub(crate) bytes_max: usize,
    /// The epoch of the last record the reader has, where it says (KIP-595): does our log agree?
    pub(crate) last_epoch: Option<LeaderEpoch>,
}

/// What one pass found in one partition.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Whole batches; empty beside an error.
    pub(crate) records: Bytes,
    /// Why there are none, if it is an error.
    pub(crate) code: ErrorCode,
    /// The watermark when it was read; -1 beside an error.
    pub(crate) high_watermark: Offset,
    /// The log's start; -1 beside an error.
    pub(crate) start: Offset,
    /// Where the reader's log and ours part, if they do.
    pub(crate) diverging: Option<(LeaderEpoch, Offset)>,
    /// How many bytes the partition had ever shown, before it was read.
    pub(crate) bytes_passed: u64,
}

/// What one pass found in all of them.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// In the plan's order.
    pub(crate) found: Vec<Found>,
    /// Bytes of records.
    pub(crate) bytes: usize,
}

impl Outcome {
    /// Whether it should be answered without waiting for more.
    pub(crate) fn is_enough(&self, plan: &Plan) -> bool {
        self.bytes >= plan.bytes_min
            || self.found.iter().any(|found| found.code.is_error() || found.diverging.is_some())
    }
}

/// Reads every partition once, in order, until the fetch's bound is reached. The first batch found
/// is returned whatever its size, so that a reader always gets on (KIP-74).
///
/// Partitions with records share what fits into the processor's cache: records are copied in and
/// out again, and a reader that is served soon asks again soon (docs/performance.md).
pub(crate) fn read_once(plan: &Plan) -> Outcome {
    let mut bytes = 0;
    let share = plan.share();
    let mut found = Vec::with_capacity(plan.wants.len());
    for want in &plan.wants {
        let left = plan.bytes_max.saturating_sub(bytes);
        let one = match &want.partition {
            Ok(partition) => read(partition, want, (left, share), bytes == 0),
            Err(code) => Found::nothing(*code),
        };
        bytes += one.records.len();
        found.push(one);
    }
    Outcome { found, bytes }
}

impl Plan {
    /// What one partition gives at most, but for a batch that is larger. Who waits for more than
    /// any record must not be given less than there is.
    fn share(&self) -> usize {
        if self.bytes_min > 1 {
            return usize::MAX;
        }
        let wants = self.wants.iter().filter_map(|w| Some((w.partition.as_ref().ok()?, w.offset)));
        let full = wants.filter(|(partition, offset)| partition.high_watermark() > *offset).count();
        (CACHED_BYTES / full.max(1)).max(SHARE_BYTES_MIN)
    }
}

fn read(
    partition: &Partition,
    want: &Want,
    (bytes_left, share): (usize, usize),
    min_one: bool,
) -> Found {
    // Before the read, so that nothing that comes in between is missed by whoever waits.
    let bytes_passed = partition.bytes_passed();
    let high_watermark = partition.high_watermark();
    let mut found = Found {
        high_watermark,
        bytes_passed,
        start: partition.start_offset(),
        ..Found::nothing(ErrorCode::None)
    };
    if let Some(last) = want.last_epoch
        && let Some(end) = partition.with_log(|log| log.epoch_end(last))
        && (end.0 < last || end.1 < want.offset)
    {
        found.diverging = Some(end);
        return found;
    }
    if bytes_left == 0 && !min_one {
        return found;
    }
    let bytes_max = want.bytes_max.min(bytes_left);
    // A batch larger than the share is no less due.
    let first_max = if min_one { usize::MAX } else { bytes_max };
    match partition.read(want.offset, bytes_max.min(share), first_max) {
        Ok(records) => found.records = records,
        Err(error) => {
            let code = crate::api::read_error(&error);
            if code != ErrorCode::OffsetOutOfRange {
                tracing::error!(partition = %partition.at, %error, "cannot read");
            }
            return Found { bytes_passed, ..Found::nothing(code) };
        }
    }
    found
}

impl Found {
    fn nothing(code: ErrorCode) -> Self {
        Self {
            records: Bytes::new(),
            code,
            high_watermark: Offset(-1),
            start: Offset(-1),
            diverging: None,
            bytes_passed: 0,
        }
    }
}

/// What one answer aims at: with its copy in the socket it fits into a core's second cache.
const CACHED_BYTES: usize = 1 << 20;
/// Less from each of many partitions would be spent on what is paid for each of them.
const SHARE_BYTES_MIN: usize = 64 << 10;
