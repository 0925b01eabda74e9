//! Record batches v2: header, checksum, iteration, building, compression.
//!
//! The unit that producers send, logs keep and consumers fetch (KIP-98). This crate turns bytes
//! into batches and records and back. It never does IO, never knows topics, groups or requests,
//! and trusts nothing it reads: no input makes it panic or allocate more than is really there.

mod attributes;
mod batch;
mod builder;
mod compression;
mod control;
mod edit;
mod header;
mod recode;
mod record;
mod validate;
mod varint;

pub use attributes::{Attributes, Compression, TimestampType, UnknownCompression};
pub use batch::{Batch, BatchError, Batches, CrcMismatch};
pub use builder::{BuildError, Builder, NewRecord};
pub use control::ControlRecord;
pub use edit::{BatchMut, BatchesMut};
pub use header::{HEADER_LEN, Header, LOG_OVERHEAD, MAGIC};
pub use recode::{RecodeError, recode};
pub use record::{Headers, Iter, Record, RecordHeader, Records, RecordsError};
pub use validate::{
    InvalidBatch, ProduceError, ProduceRules, Produced, RECORD_FAULTS_MAX, RecordFault,
    RecordFaultReason, validate_produced,
};
