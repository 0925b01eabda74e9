//! A Kafka client in Rust alone: consumer, producer and admin, for Ottla and Apache Kafka alike.
//!
//! This is the other shell beside the broker: sockets, tasks and retries live here. The rules of
//! the group protocols live in `ottla-group`, which the consumer drives and never repeats; the
//! codecs in `ottla-wire`; batches in `ottla-records`. Invariant: it prints nothing, panics on
//! nothing a broker sends, and buffers nothing without a bound.

pub mod admin;
mod clock;
mod cluster;
mod config;
mod connection;
mod consumer;
mod error;
mod producer;
mod security;

pub use admin::{Admin, CommittedOffset, NewTopic};
pub use cluster::{Broker, FoundOffset, OffsetSpec, PartitionInfo, TopicInfo};
pub use config::{
    Acks, AdminConfig, ClientConfig, ConsumerConfig, GroupProtocol, IsolationLevel, OffsetReset,
    ProducerConfig,
};
pub use consumer::{
    Consumer, ConsumerHandle, ConsumerMetrics, ConsumerRecord, PendingCommit, RebalanceListener,
    Record, RecordStream, Records, TopicFilter,
};
pub use error::{Error, ErrorKind, Result};
pub use ottla_group::assign::Assignor;
pub use ottla_model::{
    LeaderEpoch, NodeId, Offset, PartitionId, Timestamp, TopicId, TopicName, TopicPartition,
};
pub use ottla_records::Compression;
pub use ottla_wire::ErrorCode;
pub use producer::{Delivery, Producer, ProducerRecord, RecordMetadata};
pub use security::SecurityProtocol;
