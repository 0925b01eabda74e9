//! Key compaction: of each key the last record stays. Knows batches, keys and files; when to
//! clean, and what the log does meanwhile, is the log's.

mod swap;

pub(crate) use swap::sweep;
