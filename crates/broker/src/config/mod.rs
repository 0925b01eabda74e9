//! Every setting of the broker: name, type, default, bounds, documentation, source.
//!
//! One table makes them all. A value comes from a flag, else the environment, else the file, else
//! the default; each knows which. An unknown name is an error that names the nearest known one.
//! Settings of a topic live with the topic; the `log.*` settings here are their defaults.

pub(crate) mod groups;
mod load;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use groups::SETTINGS as GROUP_SETTINGS;
pub(crate) use load::bad_listener;
pub use load::{ConfigError, HostPort, ListenerSpec, Source};
pub use table::Setting;
pub use value::{Durability, Kind, PerClient, RegisterAssignor, ServerAssignors};

use ottla_group::coordinator::MigrationPolicy;
use std::path::PathBuf;
use std::time::Duration;
use table::settings;
use value::Value;

settings! {
    /// The id of this broker. It is part of the data directory's identity: changing it later is
    /// refused.
    kafka node_id "node.id": i32 = 1, 0..=i32::MAX;

    /// Where to listen: one or more `NAME://HOST:PORT`, separated by commas. A lone `HOST:PORT` is
    /// a listener named PLAINTEXT. Port 0 picks a free port. IPv6 addresses stand in brackets.
    kafka listeners "listeners": String = "PLAINTEXT://127.0.0.1:9092".into(), ();

    /// What clients of each listener are told to connect to, as `NAME://HOST:PORT` for the
    /// listeners that need it. A listener not named here advertises the address it is bound to;
    /// one that is bound to every address (0.0.0.0) must be named.
    kafka advertised_listeners "advertised.listeners": String = String::new(), ();

    /// The directory that holds all data. One broker at a time may use it. Kafka takes several;
    /// here there is one, and its name holds no comma.
    kafka log_dirs "log.dirs": PathBuf = "./ottla-data".into(), ();

    /// Where to serve `/metrics`, `/healthz`, `/readyz` and `/groups`. Empty for nowhere.
    ours http_listen "http.listen": String = "127.0.0.1:9644".into(), ();

    /// What an acknowledged write has survived. `fsync`: it is on stable storage and survives
    /// power loss; concurrent writers share one sync. `page-cache`: it is in the operating
    /// system's memory, as in Kafka, and survives the process but not the machine.
    ours durability "durability": Durability = Durability::Fsync, ();

    /// The largest request a client may send, in bytes.
    kafka socket_request_max_bytes "socket.request.max.bytes": usize = 104_857_600, 1_024..=1 << 30;

    /// Memory for requests above 128 KiB that are on their way in, of all connections together, in
    /// bytes; beyond it a connection is not read until others are done. At least
    /// `socket.request.max.bytes`, or -1 for no bound, which is Kafka's default.
    kafka queued_max_request_bytes "queued.max.request.bytes": i64 = 268_435_456, -1..=i64::MAX;

    /// A connection without a request for this long is closed.
    kafka connections_max_idle "connections.max.idle.ms": Duration = Duration::from_mins(10),
        1_000..=u64::from(u32::MAX);

    /// The most connections at any time; more are closed at once.
    kafka max_connections "max.connections": usize = 10_000, 1..=1_000_000;

    /// The most connections from one address at any time; more are closed at once.
    kafka max_connections_per_ip "max.connections.per.ip": usize = 10_000, 1..=1_000_000;

    /// The most requests of one connection that are decided and not answered yet; beyond it the
    /// connection is not read until answers have left.
    ours connection_in_flight_requests_max "connection.in.flight.requests.max": usize = 128,
        1..=10_000;

    /// How long a peer may take to send a request it has begun, or to take the replies it is
    /// owed, before it is cut; each 64 KiB that get through begin the time anew. A request above
    /// 128 KiB must be through within four times this.
    ours connection_transfer_grace "connection.transfer.grace.ms": Duration =
        Duration::from_secs(30), 100..=3_600_000;

    /// The largest answer to one fetch, in bytes; a client may ask for less.
    kafka fetch_max_bytes "fetch.max.bytes": usize = 57_671_680, 1_024..=1 << 30;

    /// The most fetches that wait for records at any time; more are answered at once with what
    /// there is.
    ours fetch_waiting_max "fetch.waiting.max": usize = 20_000, 0..=1_000_000;

    /// The most fetch sessions (KIP-227) at any time; a client that gets none sends its whole list
    /// of partitions with each fetch.
    kafka max_incremental_fetch_session_cache_slots "max.incremental.fetch.session.cache.slots":
        usize = 1_000, 0..=1_000_000;

    /// How often retention looks for segments to remove, ten milliseconds apart at least.
    kafka log_retention_check_interval "log.retention.check.interval.ms": Duration =
        Duration::from_mins(5), 1..=86_400_000;

    /// How often compaction looks for logs that need it.
    kafka log_cleaner_backoff "log.cleaner.backoff.ms": Duration = Duration::from_secs(15),
        1..=86_400_000;

    /// How often logs that have grown note up to where they are safe; a restart checks what
    /// follows. A log that grows fast notes it more often.
    kafka log_flush_offset_checkpoint_interval "log.flush.offset.checkpoint.interval.ms":
        Duration = Duration::from_mins(1), 1_000..=u64::from(u32::MAX);

    /// A producer that was silent for this long is forgotten, and its sequence with it.
    kafka producer_id_expiration "producer.id.expiration.ms": Duration =
        Duration::from_hours(24), 1..=u64::from(u32::MAX);

    /// How long a new group waits for more members after the first joined; each that comes
    /// extends it, up to the rebalance timeout. Kafka's default is 3000.
    kafka group_initial_rebalance_delay "group.initial.rebalance.delay.ms": Duration =
        Duration::from_millis(100), 0..=3_600_000;

    /// The shortest session timeout a classic member may have.
    kafka group_min_session_timeout "group.min.session.timeout.ms": Duration =
        Duration::from_secs(6), 1..=86_400_000;

    /// The longest session timeout a classic member may have.
    kafka group_max_session_timeout "group.max.session.timeout.ms": Duration =
        Duration::from_mins(30), 1..=86_400_000;

    /// The shortest session timeout a register member may have. The protocol's own example has
    /// one of 1000.
    ours register_min_session_timeout "register.min.session.timeout.ms": Duration =
        Duration::from_millis(100), 1..=86_400_000;

    /// How the partitions of a register group are shared out, unless the group says otherwise:
    /// `range`, contiguous for each topic, or `roundrobin`, one after the other over all topics.
    ours register_assignor "register.assignor": RegisterAssignor = RegisterAssignor::Range, ();

    /// How long the answer to a heartbeat may be kept, so that news reach its member at once:
    /// `CLIENT=MILLISECONDS` by the name a client gives of itself (`client.software.name`),
    /// separated by commas, `*` for every client that is not named. 0 keeps none. A client named
    /// neither here nor by `*` is treated as it is known to bear; an unknown one is answered
    /// at once. Never longer than a third of the member's session.
    ours group_heartbeat_hold_max "group.heartbeat.hold.max.ms": PerClient =
        PerClient::default(), ();

    /// The shortest interval between heartbeats that a member of the consumer protocol is told
    /// while it owes or awaits something, in the same form. 0: it is always told its group's.
    ours group_heartbeat_interval_min "group.heartbeat.interval.min.ms": PerClient =
        PerClient::default(), ();

    /// The most members of one group.
    kafka group_max_size "group.max.size": usize = 20_000, 1..=1_000_000;

    /// How long a member of the consumer protocol may be silent before it counts as dead.
    kafka group_consumer_session_timeout "group.consumer.session.timeout.ms": Duration =
        Duration::from_secs(45), 100..=3_600_000;

    /// The shortest session timeout a group of the consumer protocol may set for itself
    /// (`consumer.session.timeout.ms`); one it set before counts as this. Kafka's default is 45000.
    kafka group_consumer_min_session_timeout "group.consumer.min.session.timeout.ms": Duration =
        Duration::from_millis(100), 100..=3_600_000;

    /// The longest session timeout a group of the consumer protocol may set for itself. Kafka's
    /// default is 60000.
    kafka group_consumer_max_session_timeout "group.consumer.max.session.timeout.ms": Duration =
        Duration::from_hours(1), 100..=3_600_000;

    /// How often members of the consumer protocol are asked to come back; at most a third of their
    /// session timeout.
    kafka group_consumer_heartbeat_interval "group.consumer.heartbeat.interval.ms": Duration =
        Duration::from_secs(5), 100..=600_000;

    /// The shortest heartbeat interval a group of the consumer protocol may set for itself
    /// (`consumer.heartbeat.interval.ms`). Kafka's default is 5000.
    kafka group_consumer_min_heartbeat_interval "group.consumer.min.heartbeat.interval.ms":
        Duration = Duration::from_millis(100), 100..=600_000;

    /// The longest heartbeat interval a group of the consumer protocol may set for itself. Kafka's
    /// default is 15000.
    kafka group_consumer_max_heartbeat_interval "group.consumer.max.heartbeat.interval.ms":
        Duration = Duration::from_mins(10), 100..=600_000;

    /// How long after one assignment of a group of the consumer protocol the next is made at the
    /// earliest: what changes by then is acted on together. Kafka's default is 1000.
    kafka group_consumer_assignment_interval "group.consumer.assignment.interval.ms": Duration =
        Duration::from_millis(100), 0..=15_000;

    /// The shortest assignment interval a group of the consumer protocol may set for itself
    /// (`consumer.assignment.interval.ms`).
    kafka group_consumer_min_assignment_interval "group.consumer.min.assignment.interval.ms":
        Duration = Duration::ZERO, 0..=15_000;

    /// The longest assignment interval a group of the consumer protocol may set for itself.
    kafka group_consumer_max_assignment_interval "group.consumer.max.assignment.interval.ms":
        Duration = Duration::from_secs(15), 0..=15_000;

    /// The assignors that members of the consumer protocol may vote for, the one that is used where
    /// nobody votes first. Kafka takes classes of its operator's too; here there are these.
    kafka group_consumer_assignors "group.consumer.assignors": ServerAssignors =
        ServerAssignors::default(), ();

    /// The most members of one group of the consumer protocol.
    kafka group_consumer_max_size "group.consumer.max.size": usize = 20_000, 1..=1_000_000;

    /// Whether a group that has members may change its protocol while they are at work: `upgrade`,
    /// from classic to consumer, when a member of the consumer protocol joins; `downgrade`, back,
    /// when only classic members are left; `bidirectional`, both; `disabled`, neither.
    kafka group_consumer_migration_policy "group.consumer.migration.policy": MigrationPolicy =
        MigrationPolicy::Bidirectional, ();

    /// The most groups of one partition of the offsets topic.
    ours group_max_per_partition "group.max.per.partition": usize = 100_000, 1..=100_000_000;

    /// The longest note that may be committed beside an offset, in bytes.
    kafka offset_metadata_max_bytes "offset.metadata.max.bytes": usize = 4_096, 0..=1 << 20;

    /// How long offsets are kept after their group lost its last member, or were committed, where
    /// it never had one.
    kafka offsets_retention_minutes "offsets.retention.minutes": i32 = 10_080, 1..=i32::MAX;

    /// How often expired offsets are looked for.
    kafka offsets_retention_check_interval "offsets.retention.check.interval.ms": Duration =
        Duration::from_mins(10), 1..=86_400_000;

    /// How long a shutdown waits for what is in flight.
    ours shutdown_grace "shutdown.grace.ms": Duration = Duration::from_secs(10), 0..=600_000;
}

impl Config {
    /// The listeners with what each advertises.
    ///
    /// # Errors
    /// A listener does not parse, is named twice, is advertised without existing, or would
    /// advertise every address.
    pub fn listener_specs(&self) -> Result<Vec<ListenerSpec>, ConfigError> {
        load::listener_specs(&self.listeners, &self.advertised_listeners)
    }

    /// Checks what no setting can tell for itself.
    ///
    /// # Errors
    /// Two settings contradict each other, in words.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let (queued, request) = (self.queued_max_request_bytes, self.socket_request_max_bytes);
        if queued != -1 && usize::try_from(queued).is_ok_and(|queued| queued < request) {
            return Err(ConfigError::Conflict(format!(
                "queued.max.request.bytes ({queued}) is below socket.request.max.bytes \
                 ({request}): the largest request would wait for ever; raise the one, lower the \
                 other, or set -1 for no bound"
            )));
        }
        let (min, max) = (self.group_min_session_timeout, self.group_max_session_timeout);
        if min > max {
            let (min, max) = (min.as_millis(), max.as_millis());
            return Err(ConfigError::Conflict(format!(
                "group.min.session.timeout.ms ({min}) is above group.max.session.timeout.ms \
                 ({max}): no consumer could join"
            )));
        }
        self.check_consumer_bounds()
    }

    /// What groups of the consumer protocol may set for themselves has a range, and the default
    /// lies in it.
    fn check_consumer_bounds(&self) -> Result<(), ConfigError> {
        for Bounded { setting, default, min, max } in self.consumer_bounds() {
            let (name, least, most) = (
                format!("group.{setting}"),
                format!("group.consumer.min.{}", setting.trim_start_matches("consumer.")),
                format!("group.consumer.max.{}", setting.trim_start_matches("consumer.")),
            );
            let [default, min, max] = [default, min, max].map(|it| it.as_millis());
            if !(min..=max).contains(&default) {
                return Err(ConfigError::Conflict(format!(
                    "{name} ({default}) must lie between {least} ({min}) and {most} ({max})"
                )));
            }
        }
        Ok(())
    }

    /// The settings that a group may have itself, within a range that the broker's set.
    pub(crate) fn consumer_bounds(&self) -> [Bounded; 3] {
        [
            Bounded {
                setting: "consumer.assignment.interval.ms",
                default: self.group_consumer_assignment_interval,
                min: self.group_consumer_min_assignment_interval,
                max: self.group_consumer_max_assignment_interval,
            },
            Bounded {
                setting: "consumer.heartbeat.interval.ms",
                default: self.group_consumer_heartbeat_interval,
                min: self.group_consumer_min_heartbeat_interval,
                max: self.group_consumer_max_heartbeat_interval,
            },
            Bounded {
                setting: "consumer.session.timeout.ms",
                default: self.group_consumer_session_timeout,
                min: self.group_consumer_min_session_timeout,
                max: self.group_consumer_max_session_timeout,
            },
        ]
    }

    /// Where a setting's value came from.
    pub fn source(&self, name: &str) -> Source {
        self.sources.get(name).copied().unwrap_or(Source::Default)
    }
}

/// A time that groups may set for themselves.
pub(crate) struct Bounded {
    /// Its name as a group's setting.
    pub(crate) setting: &'static str,
    default: Duration,
    /// The least of it.
    pub(crate) min: Duration,
    /// The most of it.
    pub(crate) max: Duration,
}
