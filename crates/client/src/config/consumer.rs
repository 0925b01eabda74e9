//! The settings of a consumer.

use crate::{Error, ErrorKind, Result};
use ottla_group::assign::Assignor;
use ottla_group::message::register::Detection;
use std::time::Duration;

super::settings! {
    /// The settings of a [`Consumer`](crate::Consumer).
    ///
    /// ```
    /// use ottla_client::{ConsumerConfig, OffsetReset};
    ///
    /// let config = ConsumerConfig::new("localhost:9092")
    ///     .group_id("billing")
    ///     .auto_offset_reset(OffsetReset::Earliest)
    ///     .set("max.poll.records", "1000")?;
    /// # Ok::<(), ottla_client::Error>(())
    /// ```
    ConsumerConfig;
    /// The group it shares topics and offsets with. Empty for none.
    group_id: String = String::new(), "group.id";
    /// Its own name within the group, which keeps its partitions over a restart (KIP-345). Empty
    /// for none.
    group_instance_id: String = String::new(), "group.instance.id";
    /// How it coordinates with its group. Kafka's own default is `classic`.
    group_protocol: GroupProtocol = GroupProtocol::Consumer, "group.protocol";
    /// Consumer protocol: which of the coordinator's assignors it votes for. Empty leaves it to
    /// the coordinator.
    group_remote_assignor: String = String::new(), "group.remote.assignor";
    /// How partitions are shared out, most wanted first. A member of a group that changes from one
    /// to another lists both.
    partition_assignment_strategy: Vec<Assignor> =
        vec![Assignor::Range, Assignor::CooperativeSticky], "partition.assignment.strategy";
    /// Silence after which the group goes on without it.
    session_timeout: Duration = Duration::from_secs(45), "session.timeout.ms";
    /// How often it says that it is alive. The register protocol goes by the next two instead.
    heartbeat_interval: Duration = Duration::from_secs(3), "heartbeat.interval.ms";
    /// Register protocol: heartbeats in one session timeout, at least 1.
    heartbeat_frequency: i32 = 3, "heartbeat.frequency";
    /// Register protocol: heartbeats that may fail before the coordinator takes it for dead, at
    /// least 1.
    failed_heartbeat_threshold: i32 = 3, "failed.heartbeat.threshold";
    /// A consumer that does not poll for so long leaves its group.
    max_poll_interval: Duration = Duration::from_secs(300), "max.poll.interval.ms";
    /// The most records of one poll.
    max_poll_records: usize = 500, "max.poll.records";
    /// Where to begin without a committed offset, or with one that is gone.
    auto_offset_reset: OffsetReset = OffsetReset::Latest, "auto.offset.reset";
    /// Whether offsets are committed by themselves.
    enable_auto_commit: bool = true, "enable.auto.commit";
    /// How often.
    auto_commit_interval: Duration = Duration::from_secs(5), "auto.commit.interval.ms";
    /// A fetch is answered when so many bytes are there.
    fetch_min_bytes: i32 = 1, "fetch.min.bytes";
    /// Or when so long has passed.
    fetch_max_wait: Duration = Duration::from_millis(500), "fetch.max.wait.ms";
    /// The most bytes of one answer, but for a first batch that is larger. A broker that answers at
    /// once is asked for 2 MiB at a time, a distant one for more, and none for more than this.
    fetch_max_bytes: i32 = 50 << 20, "fetch.max.bytes";
    /// The most bytes of one partition in one answer, but for a first batch that is larger.
    max_partition_fetch_bytes: i32 = 1 << 20, "max.partition.fetch.bytes";
    /// Bytes fetched ahead of the application, in all; fetching waits beyond. This client's own
    /// setting: the Java client has no such bound.
    fetch_prefetch_max_bytes: usize = 64 << 20, "fetch.prefetch.max.bytes";
    /// Whether records of open and aborted transactions are read.
    isolation_level: IsolationLevel = IsolationLevel::ReadUncommitted, "isolation.level";
    /// Whether each batch's checksum is verified.
    check_crcs: bool = true, "check.crcs";
    /// Whether a subscription creates its topic, where the broker allows it.
    allow_auto_create_topics: bool = true, "allow.auto.create.topics";
    /// Whether a pattern leaves out Kafka's own topics.
    exclude_internal_topics: bool = true, "exclude.internal.topics";
}

impl ConsumerConfig {
    pub(crate) fn check(&self) -> Result<()> {
        self.client.check()?;
        let wrong = |message: &str| Err(Error::new(ErrorKind::Config, message));
        if self.group_protocol == GroupProtocol::Register {
            self.check_register()?;
        } else if self.heartbeat_interval >= self.session_timeout {
            return wrong("`heartbeat.interval.ms` must be less than `session.timeout.ms`");
        }
        if self.partition_assignment_strategy.is_empty() {
            return wrong("`partition.assignment.strategy` names no assignor");
        }
        if self.max_poll_records == 0 {
            return wrong("`max.poll.records` must be at least 1");
        }
        Ok(())
    }

    fn check_register(&self) -> Result<()> {
        let wrong = |message: &str| Err(Error::new(ErrorKind::Config, message));
        if self.detection().is_none() {
            return wrong("`heartbeat.frequency` and `failed.heartbeat.threshold` are at least 1");
        }
        if !self.group_instance_id.is_empty() {
            return wrong("`group.protocol=register` knows no `group.instance.id`");
        }
        Ok(())
    }

    /// When a register member beats and is taken for dead, if that makes sense.
    pub(crate) fn detection(&self) -> Option<Detection> {
        Detection::new(self.heartbeat_frequency, self.failed_heartbeat_threshold)
    }
}

/// How a consumer coordinates with its group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum GroupProtocol {
    /// JoinGroup and SyncGroup: all members pause and move together, and one of them assigns.
    Classic,
    /// ConsumerGroupHeartbeat: the coordinator assigns, and each member moves by itself (KIP-848).
    /// A broker that lacks it, or has it switched off, gets a classic member instead, and so does a
    /// group of classic members that it does not convert; a warning is logged. The group's session
    /// and heartbeats are the broker's settings then; `session.timeout.ms` here must not be longer
    /// than the broker's.
    Consumer,
    /// The coordinator assigns, and all members move together: Ottla's own protocol
    /// (`docs/register-protocol.md`). No broker of Apache Kafka has it.
    Register,
}

/// Where to begin without a committed offset.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OffsetReset {
    /// At the first record there is.
    Earliest,
    /// Behind the last one.
    Latest,
    /// Nowhere: the application has to say.
    None,
}

/// Which records of transactions are read (KIP-98).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IsolationLevel {
    /// All of them.
    ReadUncommitted,
    /// Those of committed transactions, up to the first that is still open.
    ReadCommitted,
}

impl IsolationLevel {
    /// The number on the wire.
    pub(crate) fn number(self) -> i8 {
        match self {
            Self::ReadUncommitted => 0,
            Self::ReadCommitted => 1,
        }
    }
}
