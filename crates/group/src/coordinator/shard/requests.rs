//! From a request to the group it is about, or to the answer that there is none.

use super::super::config::Config;
use super::super::front::classic::all_leaving;
use super::super::group::Group;
use super::super::offsets::nothing_committed;
use super::super::turn::{Call, Turn};
use super::Shard;
use crate::message::admin::{List, Listing};
use crate::message::consumer::Standing;
use crate::message::register::{self, Detection};
use crate::message::{Ask, GroupError, Reply, Token};
use crate::probe::{self, Fault, Mark};
use alloc::vec::Vec;
use ottla_model::{Generation, GroupId, Now};

impl Shard {
    /// One request of an active shard.
    pub(super) fn dispatch(&mut self, now: Now, call: &Call<'_>, ask: &Ask<'_>) {
        match judge(&self.services.config, ask) {
            Err(error) => self.refuse(call.token, ask.refused(error)),
            Ok(Scope::AllGroups(list)) => self.list(call.token, list),
            Ok(Scope::Existing(id)) => {
                if self.turn(id, now, |turn| turn.handle(call, ask)).is_none() {
                    self.answer_absence(id, call.token, ask);
                }
            }
            Ok(Scope::New(id)) => {
                if self.make_group(id) {
                    self.turn(id, now, |turn| turn.handle(call, ask));
                } else {
                    self.refuse(call.token, ask.refused(GroupError::NotAvailable));
                }
            }
        }
    }

    fn list(&mut self, token: Token, ask: &List<'_>) {
        let found = self.listings(ask);
        // It tells of all groups, and of the absence of all others.
        let after = self.services.outbox.decided();
        self.services.outbox.reply(token, Reply::List(Ok(found)), after);
    }

    /// The groups a list's filters want, in the order of their ids.
    pub(super) fn listings(&self, ask: &List<'_>) -> Vec<Listing> {
        let mut found: Vec<_> =
            self.groups.values().filter_map(|group| group.listing(ask)).collect();
        found.sort_unstable_by(|a, b| a.group.cmp(&b.group));
        found
    }

    /// There is no such group; the answer waits until that is durable.
    fn answer_absence(&mut self, id: &str, token: Token, ask: &Ask<'_>) {
        let reply = match ask {
            Ask::Leave(leave) => Reply::Leave(Ok(all_leaving(leave, GroupError::UnknownMemberId))),
            Ask::FetchOffsets(fetch) => Reply::FetchOffsets(Ok(nothing_committed(fetch))),
            Ask::ConsumerMetadata(_) => Reply::ConsumerMetadata(Ok(Generation(0))),
            Ask::Join(_)
            | Ask::Sync(_)
            | Ask::Heartbeat(_)
            | Ask::Register(_)
            | Ask::RegisterHeartbeat(_) => ask.refused(GroupError::UnknownMemberId),
            // Below version 9 a client does not expect to hear of the group, and rejoins for this.
            Ask::Commit(commit) if !commit.knows_epochs => {
                ask.refused(GroupError::IllegalGeneration)
            }
            // Kafka says that there is no such group; to a member this says the same, and is what
            // makes every client join again.
            Ask::ConsumerHeartbeat(heartbeat)
                if matches!(heartbeat.standing, Standing::Member(_)) =>
            {
                ask.refused(GroupError::UnknownMemberId)
            }
            Ask::Commit(_)
            | Ask::DeleteOffsets(_)
            | Ask::Describe(_)
            | Ask::ConsumerHeartbeat(_)
            | Ask::ConsumerDescribe(_)
            | Ask::DeleteGroup(_)
            | Ask::List(_) => ask.refused(GroupError::GroupIdNotFound),
        };
        let gone = self.gone.get(id).filter(|_| !probe::has(Fault::CoordinatorForgetsRemovals));
        if gone.is_some() {
            probe::hit(Mark::CoordinatorAbsenceWaited);
        }
        let marks = gone.copied().unwrap_or_default();
        self.services.outbox.reply(token, reply, marks.latest());
    }

    /// Makes sure there is a group of this id; false where the shard is full.
    fn make_group(&mut self, id: &str) -> bool {
        if self.groups.contains_key(id) {
            return true;
        }
        if self.groups.len() >= self.services.config.groups_max {
            return false;
        }
        let marks = self.gone.remove(id).unwrap_or_default();
        let id = GroupId::from(id);
        let group = Group::new(id.clone(), marks, self.services.config.hash_seed);
        self.groups.insert(id, group);
        true
    }
}

impl Turn<'_> {
    /// One request to this group.
    fn handle(&mut self, call: &Call<'_>, ask: &Ask<'_>) {
        match ask {
            Ask::Join(ask) => self.join(call, ask),
            Ask::Sync(ask) => self.sync(call, ask),
            Ask::Heartbeat(ask) => self.heartbeat(call, ask),
            Ask::Leave(ask) => self.leave(call, ask),
            Ask::ConsumerHeartbeat(ask) => self.consumer_heartbeat(call, ask),
            Ask::ConsumerDescribe(_) => self.describe_consumers(call),
            Ask::ConsumerMetadata(_) => self.tell_generation(call),
            Ask::Register(ask) => self.register(call, ask),
            Ask::RegisterHeartbeat(ask) => self.register_heartbeat(call, ask),
            Ask::Commit(ask) => self.commit_offsets(call, ask),
            Ask::FetchOffsets(ask) => self.fetch_offsets(call, ask),
            Ask::DeleteOffsets(ask) => self.delete_offsets(call, ask),
            Ask::Describe(_) => self.describe(call),
            Ask::DeleteGroup(_) => self.delete_group(call),
            Ask::List(_) => {}
        }
    }
}

/// Which groups a request is about.
enum Scope<'a> {
    /// All.
    AllGroups(&'a List<'a>),
    /// This one, if it exists.
    Existing(&'a str),
    /// This one, made for it if need be.
    New(&'a str),
}

/// What can be said of a request without looking at its group.
fn judge<'a>(config: &Config, ask: &'a Ask<'a>) -> Result<Scope<'a>, GroupError> {
    let named = |group: &'a str| match group {
        "" => Err(GroupError::InvalidGroupId),
        group => Ok(Scope::Existing(group)),
    };
    match ask {
        Ask::List(list) => Ok(Scope::AllGroups(list)),
        Ask::Join(join) => {
            let scope = named(join.group)?;
            let bounds = config.session_timeout_min..=config.session_timeout_max;
            if !bounds.contains(&join.session_timeout) {
                return Err(GroupError::InvalidSessionTimeout);
            }
            Ok(if join.member.is_empty() { Scope::New(join.group) } else { scope })
        }
        Ask::Sync(sync) => named(sync.group),
        Ask::Heartbeat(heartbeat) => named(heartbeat.group),
        Ask::Leave(leave) => named(leave.group),
        Ask::ConsumerHeartbeat(heartbeat) => match (heartbeat.group, heartbeat.standing) {
            ("", _) => Err(GroupError::InvalidRequest),
            (group, Standing::Joining) => Ok(Scope::New(group)),
            (group, _) => Ok(Scope::Existing(group)),
        },
        Ask::ConsumerDescribe(describe) => named(describe.group),
        Ask::ConsumerMetadata(metadata) => named(metadata.group),
        Ask::Register(register) => judge_registration(config, register),
        Ask::RegisterHeartbeat(heartbeat) => named(heartbeat.group),
        // The empty group id is as good as any for offsets, as it was before groups had rules.
        Ask::Commit(commit) if commit.generation.0 < 0 => Ok(Scope::New(commit.group)),
        Ask::Commit(commit) => Ok(Scope::Existing(commit.group)),
        Ask::FetchOffsets(fetch) => Ok(Scope::Existing(fetch.group)),
        Ask::DeleteOffsets(delete) => Ok(Scope::Existing(delete.group)),
        Ask::Describe(describe) => Ok(Scope::Existing(describe.group)),
        Ask::DeleteGroup(delete) => Ok(Scope::Existing(delete.group)),
    }
}

fn judge_registration<'a>(
    config: &Config,
    ask: &'a register::Register<'a>,
) -> Result<Scope<'a>, GroupError> {
    if ask.group.is_empty() {
        return Err(GroupError::InvalidGroupId);
    }
    if Detection::new(ask.heartbeat_frequency, ask.failed_heartbeat_threshold).is_none() {
        return Err(GroupError::InvalidRequest);
    }
    let bounds = config.register_session_timeout_min..=config.session_timeout_max;
    if !bounds.contains(&ask.session_timeout) {
        return Err(GroupError::InvalidSessionTimeout);
    }
    Ok(if ask.member.is_empty() { Scope::New(ask.group) } else { Scope::Existing(ask.group) })
}
