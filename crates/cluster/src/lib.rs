//! Who owns what: topics, brokers, placement and the store that keeps them.
//!
//! # How to use it
//!
//! ```no_run
//! # use ottla_cluster::{Cluster, Setup, config::Registry, command::{Limits, NewTopic}};
//! # use ottla_cluster::store::{DirLock, embedded::Embedded};
//! # use ottla_cluster::record::{BrokerRecord, ListenerRecord};
//! # use ottla_model::{Instant, NodeId};
//! # use std::{path::Path, sync::Arc, time::Duration, collections::BTreeMap};
//! # type Done = Result<(), Box<dyn std::error::Error>>;
//! # async fn start(random: fn() -> [u8; 16], now: Instant) -> Done {
//! let lock = DirLock::acquire(Path::new("ottla-data"))?;
//! let store = Arc::new(Embedded::open(lock)?);
//! let setup = Setup {
//!     node: NodeId(1),
//!     registry: Registry::new(&[], &[], BTreeMap::new())?,
//!     limits: Limits::default(),
//!     fresh: Box::new(random),
//! };
//! let (cluster, driver) = Cluster::open(store, setup).await?;
//! // Spawn `driver.run()` on the broker's runtime: without it nothing changes.
//!
//! let listeners =
//!     vec![ListenerRecord { name: "PLAINTEXT".into(), host: "localhost".into(), port: 9092 }];
//! let record = BrokerRecord { listeners, rack: None };
//! let tenure = cluster.join(record, Duration::from_secs(10), now).await?;
//! // Renew with `cluster.renew` whenever `tenure.renew_at()` has come.
//!
//! let created = cluster.create_topics(vec![NewTopic::named("orders")], false).await?;
//! let image = cluster.image(); // shows it already; costs no lock
//! let orders = image.topic("orders").expect("just created");
//! # Ok(()) }
//! ```
//!
//! Reading is [`Cluster::image`]: an immutable [`image::Image`] with topics, partitions and their
//! leaders, brokers, shards, settings and the [`model view`](image::Image::view) for the group
//! core. [`Cluster::changes`] waits for the next one. Writing is a [`command`]; the methods of
//! [`Cluster`] submit them and answer once the change is durable and visible. Where a group
//! lives is [`placement::coordinator`]; the offsets topic comes from
//! [`Cluster::ensure_offsets_topic`], its shards from [`Cluster::claim_shards`]. Which folders
//! should exist is [`logs::plan`], to be asked at start and after each change of topics.
//!
//! # The map
//!
//! - [`store`]: the engine's contract, its embedded implementation, its conformance suite.
//! - [`record`]: what the store holds, byte for byte.
//! - [`image`]: the fold of those entries.
//! - [`command`]: pure decisions from an image to a transaction.
//! - [`config`]: the settings of topics and brokers, typed, with where each value came from.
//! - [`placement`], [`lease`], [`logs`], [`names`]: pure rules.
//!
//! This crate never knows a wire format, a socket, a record batch or a rule about groups, and no
//! runtime: its futures are plain `std`.

mod changes;
mod cluster;
pub mod command;
pub mod config;
mod driver;
pub mod image;
pub mod lease;
pub mod logs;
pub mod names;
pub mod placement;
pub mod record;
pub mod store;

pub use changes::Changes;
pub use cluster::{ChangeError, Cluster, JoinError, OpenError, Setup};
pub use driver::{Driver, DriverError};
