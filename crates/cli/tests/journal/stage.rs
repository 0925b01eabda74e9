//! The broker, its topics and its administrator.

use crate::wire::Wire;
use crate::{Broker, eventually};
use ottla_client::admin::{
    Admin, ConfigOp, ConfigResource, GroupJournal, JournalEntry, MemberToRemove,
};
use ottla_client::{AdminConfig, NewTopic};
use ottla_wire::Uuid;
use std::collections::BTreeMap;
use std::process::{ChildStderr, Stdio};
use std::sync::Mutex;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A broker and what is on it.
pub(crate) struct Stage {
    broker: Broker,
    admin: Admin,
    runtime: Runtime,
    topics: Mutex<BTreeMap<String, (Uuid, i32)>>,
    _folder: TempDir,
}

/// What an administrator says when removing somebody.
pub(crate) const ADMIN_REASON: &str = "for the test";

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::around(Broker::start(folder.path()), folder)
    }

    /// The same, and the broker's log.
    pub(crate) fn with_log() -> (Self, ChildStderr) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut broker = Broker::logging_to(folder.path(), Stdio::piped());
        let log = broker.process.stderr.take().expect("its log is piped");
        (Self::around(broker, folder), log)
    }

    fn around(broker: Broker, folder: TempDir) -> Self {
        let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = threads.expect("a runtime");
        let admin = runtime.block_on(async { admin(&broker) });
        // The first who asks makes the offsets topic.
        let mut wire = Wire::open(broker.address());
        eventually("there is a coordinator", || wire.metadata("any").error == 0);
        Self { broker, admin, runtime, topics: Mutex::default(), _folder: folder }
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::open(self.broker.address())
    }

    /// SIGKILL, and another process on the same data.
    pub(crate) fn kill_and_restart(&mut self) {
        self.broker.kill_and_restart();
        self.admin = self.runtime.block_on(async { admin(&self.broker) });
    }

    pub(crate) fn create_topic(&self, name: &str, partitions: i32) {
        let created = self.admin.create_topic(NewTopic::new(name, partitions));
        let created = self.runtime.block_on(created).expect("a topic");
        let id = Uuid::from_be_bytes(created.id.0);
        self.topics.lock().expect("nobody panics").insert(name.into(), (id, partitions));
    }

    pub(crate) fn grow_topic(&self, name: &str, partitions: i32) {
        let grown = self.admin.create_partitions(name, partitions);
        self.runtime.block_on(grown).expect("more partitions");
        self.topics.lock().expect("nobody panics").get_mut(name).expect("a topic").1 = partitions;
    }

    pub(crate) fn delete_topic(&self, name: &str) {
        self.runtime.block_on(self.admin.delete_topic(name)).expect("a topic to delete");
        // Members may have it until they are told.
        self.topics.lock().expect("nobody panics").get_mut(name).expect("a topic").1 = 0;
    }

    /// How many partitions a topic has; none of one that is not there.
    pub(crate) fn partitions(&self, name: &str) -> i32 {
        self.topics.lock().expect("nobody panics").get(name).map_or(0, |(_, count)| *count)
    }

    /// A topic's id.
    pub(crate) fn topic_id(&self, name: &str) -> Option<Uuid> {
        self.topics.lock().expect("nobody panics").get(name).map(|(id, _)| *id)
    }

    /// The topic of an id.
    pub(crate) fn topic_name(&self, id: Uuid) -> String {
        let topics = self.topics.lock().expect("nobody panics");
        let found = topics.iter().find(|(_, (its, _))| *its == id);
        found.map(|(name, _)| name.clone()).expect("a member is given only what there is")
    }

    pub(crate) fn set(&self, group: &str, name: &str, value: &str) {
        let op = ConfigOp::Set(name.into(), value.into());
        let altered = self.admin.alter_configs([(ConfigResource::group(group), vec![op])]);
        let outcomes = self.runtime.block_on(altered).expect("an answer");
        assert!(outcomes.iter().all(|(_, outcome)| outcome.is_ok()), "{outcomes:?}");
    }

    pub(crate) fn remove(&self, group: &str, member: &str) {
        let members = [MemberToRemove::Member(member.into())];
        let removed = self.admin.remove_members(group, &members, ADMIN_REASON);
        let outcomes = self.runtime.block_on(removed).expect("an answer");
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }

    pub(crate) fn journal(&self, group: &str) -> GroupJournal {
        self.runtime.block_on(self.admin.group_journal(group)).expect("a group")
    }

    pub(crate) fn entries(&self, group: &str) -> Vec<JournalEntry> {
        self.journal(group).entries
    }
}

fn admin(broker: &Broker) -> Admin {
    let config = AdminConfig::new(broker.address().to_string());
    let config = config.set("client.id", ADMIN).expect("a client id");
    Admin::new(config).expect("an administrator")
}

/// The administrator's client id.
pub(crate) const ADMIN: &str = "an-admin";
