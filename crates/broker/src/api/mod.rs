//! One file per API key, and what they share: the request's context, the shapes an answer can
//! have, the table from key to handler, the one map from our errors to Kafka's codes.
//!
//! A handler is a plain function. It runs when its request's turn has come, takes its decisions
//! before it returns, and hands back the reply, or a future of the reply that only waits. It
//! encodes the reply itself, in the version that was asked. Rules of groups, logs and topics live
//! below; this module translates.

mod answer;
mod dispatch;
mod error_map;
mod groups;
mod lookup;
mod outcome;
mod settings_words;
mod topology;

mod k00_produce;
mod k01_fetch;
mod k02_list_offsets;
mod k03_metadata;
mod k08_offset_commit;
mod k09_offset_fetch;
mod k10_find_coordinator;
mod k11_join_group;
mod k12_heartbeat;
mod k13_leave_group;
mod k14_sync_group;
mod k15_describe_groups;
mod k16_list_groups;
mod k18_api_versions;
mod k19_create_topics;
mod k20_delete_topics;
mod k21_delete_records;
mod k22_init_producer_id;
mod k23_offset_for_leader_epoch;
mod k32010_consumer_metadata;
mod k32011_register_consumer;
mod k32012_register_heartbeat;
mod k32020_group_journal;
mod k32_describe_configs;
mod k33_alter_configs;
mod k35_describe_log_dirs;
mod k37_create_partitions;
mod k42_delete_groups;
mod k43_elect_leaders;
mod k44_incremental_alter_configs;
mod k46_list_partition_reassignments;
mod k47_offset_delete;
mod k55_describe_quorum;
mod k57_update_features;
mod k60_describe_cluster;
mod k61_describe_producers;
mod k68_consumer_group_heartbeat;
mod k69_consumer_group_describe;
mod k74_list_config_resources;
mod k75_describe_topic_partitions;

pub(crate) use answer::{Answer, Context, Held, Later, Pace, Reply, ReplyTo};
pub(crate) use dispatch::{Cut, check_greeting, dispatch};
pub(crate) use error_map::read_error;
