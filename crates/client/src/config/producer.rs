//! The settings of a producer.

use crate::{Error, ErrorKind, Result};
use ottla_records::Compression;
use std::time::Duration;

super::settings! {
    /// The settings of a [`Producer`](crate::Producer).
    ///
    /// ```
    /// use ottla_client::{Compression, ProducerConfig};
    /// use std::time::Duration;
    ///
    /// let config = ProducerConfig::new("localhost:9092")
    ///     .compression_type(Compression::Zstd)
    ///     .linger(Duration::from_millis(20))
    ///     .set("batch.size", "65536")?;
    /// # Ok::<(), ottla_client::Error>(())
    /// ```
    ProducerConfig;
    /// Whose word counts that a record is stored.
    acks: Acks = Acks::All, "acks";
    /// How long a batch that is not full waits for more records.
    linger: Duration = Duration::from_millis(5), "linger.ms";
    /// A batch is sent when it has so many bytes; 0 sends each record alone.
    batch_size: usize = 16_384, "batch.size";
    /// The bytes of records that may wait to be sent; beyond, sending waits.
    buffer_memory: usize = 32 << 20, "buffer.memory";
    /// How batches are compressed.
    compression_type: Compression = Compression::None, "compression.type";
    /// How long sending may wait for room and for knowledge of the topic.
    max_block: Duration = Duration::from_secs(60), "max.block.ms";
    /// How long a record may take from being accepted to its report, with all retries.
    delivery_timeout: Duration = Duration::from_secs(120), "delivery.timeout.ms";
    /// The largest request, and the largest record.
    max_request_size: usize = 1 << 20, "max.request.size";
    /// Requests under way to one broker; at most 5 for an idempotent producer.
    max_in_flight_requests_per_connection: usize = 5, "max.in.flight.requests.per.connection";
    /// Whether each record is stored once and in order, however often it is sent.
    enable_idempotence: bool = true, "enable.idempotence";
    /// How often a batch is sent again before it fails; `delivery.timeout.ms` is the better bound.
    retries: u32 = i32::MAX as u32, "retries";
    /// Whether the key has no say in the partition.
    partitioner_ignore_keys: bool = false, "partitioner.ignore.keys";
}

impl ProducerConfig {
    pub(crate) fn check(&self) -> Result<()> {
        self.client.check()?;
        let wrong = |message: &str| Err(Error::new(ErrorKind::Config, message));
        if self.enable_idempotence && self.acks != Acks::All {
            return wrong("`enable.idempotence` needs `acks=all`: set it to false for less");
        }
        let in_flight = self.max_in_flight_requests_per_connection;
        if in_flight == 0 || self.enable_idempotence && in_flight > IN_FLIGHT_MAX {
            return wrong(
                "`max.in.flight.requests.per.connection` must be 1 to 5 for an idempotent \
                 producer, and at least 1 for any",
            );
        }
        if self.delivery_timeout < self.linger + self.client.request_timeout {
            return wrong(
                "`delivery.timeout.ms` must be at least `linger.ms` plus `request.timeout.ms`",
            );
        }
        Ok(())
    }
}

/// How many batches a broker remembers of an idempotent producer.
const IN_FLIGHT_MAX: usize = 5;

/// Whose word counts that a record is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Acks {
    /// Nobody's: the record is sent and forgotten.
    None,
    /// The leader's.
    Leader,
    /// That of every replica in sync.
    All,
}

impl Acks {
    /// The number on the wire.
    pub(crate) fn number(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}
