//! File names in a log's folder: Kafka's, and the few of our own.

use std::path::{Path, PathBuf};

use ottla_model::Offset;

/// Record batches.
pub(crate) const LOG: &str = ".log";
/// Offset -> position.
pub(crate) const INDEX: &str = ".index";
/// Timestamp -> offset.
pub(crate) const TIME_INDEX: &str = ".timeindex";
/// Aborted transactions; Kafka's, removed with its segment.
pub(crate) const TXN_INDEX: &str = ".txnindex";
/// Producer state at the offset of its name.
pub(crate) const SNAPSHOT: &str = ".snapshot";
/// Everything that goes with a segment; its batches last, so that what a crash leaves of a
/// removal is still a segment.
pub(crate) const OF_SEGMENT: [&str; 5] = [SNAPSHOT, TXN_INDEX, TIME_INDEX, INDEX, LOG];
/// Behind the name of a file that is to be removed.
pub(crate) const DELETED: &str = ".deleted";
/// Behind the name of a file that compaction is writing: rubbish after a crash.
pub(crate) const CLEANED: &str = ".cleaned";
/// Behind the name of a file that compaction has finished: after a crash it takes its place.
pub(crate) const SWAP: &str = ".swap";
/// Behind the name of a small file that is being replaced: rubbish after a crash.
pub(crate) const TMP: &str = ".tmp";

/// The file of the segment (or snapshot) at `base`: 20 digits and the suffix.
pub(crate) fn path(dir: &Path, base: Offset, suffix: &str) -> PathBuf {
    dir.join(format!("{:020}{suffix}", base.0))
}

/// The path with something behind its name.
pub(crate) fn behind(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The base of the segment whose batches a file holds, be it in its place or about to take it.
pub(crate) fn segment(name: &str) -> Option<Offset> {
    offset(name.strip_suffix(SWAP).unwrap_or(name), LOG)
}

/// The offset in a name that [`path`] made with this suffix.
pub(crate) fn offset(name: &str, suffix: &str) -> Option<Offset> {
    let digits = name.strip_suffix(suffix)?;
    let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten().map(Offset)
}
