//! The classic protocol's words: join, sync, heartbeat, leave.

use super::{Blob, GroupError};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{Generation, InstanceId, MemberId};

/// Join a group, or rejoin it with new metadata.
#[derive(Clone, Debug)]
pub struct Join<'a> {
    /// The group.
    pub group: &'a str,
    /// The id the member already has; empty for a new one.
    pub member: &'a str,
    /// Its `group.instance.id`, if static (KIP-345).
    pub instance: Option<&'a str>,
    /// `consumer`, `connect`, ...: members of one group share it.
    pub protocol_type: &'a str,
    /// Assignors it supports, most wanted first, each with the metadata its leader would need.
    pub protocols: Vec<Protocol<'a>>,
    /// Silence after which it counts as dead.
    pub session_timeout: Duration,
    /// How long it may take to rejoin when a rebalance starts.
    pub rebalance_timeout: Duration,
    /// Whether a first join must come back with the id it was given (KIP-394; JoinGroup v4+).
    pub requires_known_id: bool,
    /// Whether a leader can be told to skip assignment (KIP-814; JoinGroup v9+).
    pub can_skip_assignment: bool,
    /// Why it joins, in its own words (KIP-800).
    pub reason: Option<&'a str>,
}

/// One assignor a member supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protocol<'a> {
    /// The assignor's name.
    pub name: &'a str,
    /// The member's subscription in that assignor's terms.
    pub metadata: &'a [u8],
}

/// A completed join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The generation that begins.
    pub generation: Generation,
    /// The group's protocol type.
    pub protocol_type: Arc<str>,
    /// The assignor the votes chose.
    pub protocol: Arc<str>,
    /// Who assigns.
    pub leader: MemberId,
    /// The joiner's own id.
    pub member: MemberId,
    /// The leader only: keep the current assignment, do not compute one (KIP-814).
    pub skip_assignment: bool,
    /// The leader only: every member with its metadata; empty for the others.
    pub members: Vec<JoinedMember>,
}

/// One member as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub member: MemberId,
    /// Its `group.instance.id`, if static.
    pub instance: Option<InstanceId>,
    /// Its metadata for the chosen assignor.
    pub metadata: Blob,
}

/// A refused join, with the id to use from now on where one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRefused {
    /// Why.
    pub error: GroupError,
    /// The id handed out with [`GroupError::MemberIdRequired`]; else the request's, or empty.
    pub member: MemberId,
}

impl JoinRefused {
    /// A refusal that leaves the joiner with the id it came with.
    pub fn new(error: GroupError, member: &str) -> Self {
        Self { error, member: MemberId::from(member) }
    }
}

/// Hand in the assignment (leader) or ask for one's own part (everyone).
#[derive(Clone, Debug)]
pub struct Sync<'a> {
    /// The group.
    pub group: &'a str,
    /// The generation the join answered.
    pub generation: Generation,
    /// The member.
    pub member: &'a str,
    /// Its `group.instance.id`, if static.
    pub instance: Option<&'a str>,
    /// The protocol type it believes in, where it says (SyncGroup v5+).
    pub protocol_type: Option<&'a str>,
    /// The assignor it believes in, where it says (SyncGroup v5+).
    pub protocol: Option<&'a str>,
    /// The leader only: each member's part.
    pub assignments: Vec<(&'a str, &'a [u8])>,
}

/// One's part of the assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    /// The group's protocol type.
    pub protocol_type: Arc<str>,
    /// The assignor the votes chose.
    pub protocol: Arc<str>,
    /// What the leader handed in for this member.
    pub assignment: Blob,
}

/// I am alive and know this generation.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeat<'a> {
    /// The group.
    pub group: &'a str,
    /// The member's generation.
    pub generation: Generation,
    /// The member.
    pub member: &'a str,
    /// Its `group.instance.id`, if static.
    pub instance: Option<&'a str>,
}

/// Members leave, or are removed by an administrator.
#[derive(Clone, Debug)]
pub struct Leave<'a> {
    /// The group.
    pub group: &'a str,
    /// Who.
    pub members: Vec<Leaver<'a>>,
}

/// One member to go.
#[derive(Clone, Copy, Debug)]
pub struct Leaver<'a> {
    /// Its id; may be empty where the instance names it.
    pub member: &'a str,
    /// Its `group.instance.id`, if static.
    pub instance: Option<&'a str>,
    /// Why, in the sender's words (KIP-800).
    pub reason: Option<&'a str>,
}

/// What became of each, in the request's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Each named member's outcome.
    pub members: Vec<Leaving>,
}

/// What became of one of them: its member id and instance id as the request named it, and the
/// outcome.
pub type Leaving = (MemberId, Option<InstanceId>, Result<(), GroupError>);
