//! What is asked of a coordinator and what it answers, in words no protocol version changes.
//!
//! Requests borrow from whoever received them: a heartbeat costs no allocation. Replies own their
//! data, because they may wait for a disk. One file per protocol front; what the fronts share
//! (offsets, administration) has a file of its own. The wire's versions, flags and defaults never
//! reach this module: the edge turns them into these words.

pub mod admin;
pub mod classic;
pub mod consumer;
mod error;
pub mod offsets;
pub mod register;

pub use error::GroupError;

use alloc::sync::Arc;
use core::time::Duration;
use ottla_model::{ConnectionId, Now};

/// Names one request until its reply leaves; chosen by the shell, opaque here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub u64);

/// Opaque bytes that members exchange through the coordinator (subscriptions, assignments).
pub type Blob = Arc<[u8]>;

/// One request and everything the coordinator may know about where it came from.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Where the reply goes.
    pub token: Token,
    /// The connection it came on.
    pub connection: ConnectionId,
    /// Who sent it.
    pub client: Client<'a>,
    /// 128 random bits, should the coordinator need to name something new.
    pub fresh: [u8; 16],
    /// When it arrived.
    pub now: Now,
    /// What it asks.
    pub body: Ask<'a>,
}

/// The sender as the connection knows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Client<'a> {
    /// The request header's client id; empty where it sent none.
    pub id: &'a str,
    /// The peer's address, without port.
    pub host: &'a str,
    /// What it bears.
    pub patience: Patience,
}

/// Which of the ways to hear of a change at once this client bears. The shell knows, by the
/// client's name or by the user's will; a client it does not know bears neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Patience {
    /// The shortest heartbeat interval it may be told while it owes or awaits something; `None`
    /// where it is always told its group's.
    pub interval_min: Option<Duration>,
    /// How long its heartbeat's answer may be kept while there is nothing to tell it; `None` where
    /// it is answered at once.
    pub hold_max: Option<Duration>,
    /// Whether it says so at once when it has given up what it was told to, without waiting for
    /// its interval: then it need not be asked to come back soon for that.
    pub acks_at_once: bool,
    /// Whether it begins its interval with an answer, not with the request: it is not heard of for
    /// so long after each.
    pub rests_after_answer: bool,
}

/// What a request asks. Every protocol has its own variants; nothing else about a request differs.
#[derive(Clone, Debug)]
pub enum Ask<'a> {
    /// Classic: join or rejoin.
    Join(classic::Join<'a>),
    /// Classic: hand in or pick up the assignment.
    Sync(classic::Sync<'a>),
    /// Classic: I am alive.
    Heartbeat(classic::Heartbeat<'a>),
    /// Classic (and, without a protocol of its own, register): some members leave.
    Leave(classic::Leave<'a>),
    /// Consumer: join, stay, acknowledge or leave.
    ConsumerHeartbeat(consumer::Heartbeat<'a>),
    /// Consumer: describe one group.
    ConsumerDescribe(consumer::Describe<'a>),
    /// Register: which generation the group is in.
    ConsumerMetadata(register::ConsumerMetadata<'a>),
    /// Register: join or join again.
    Register(register::Register<'a>),
    /// Register: I am alive.
    RegisterHeartbeat(register::Heartbeat<'a>),
    /// Store offsets.
    Commit(offsets::Commit<'a>),
    /// Read offsets.
    FetchOffsets(offsets::Fetch<'a>),
    /// Forget offsets of some topics.
    DeleteOffsets(offsets::Delete<'a>),
    /// Describe one group.
    Describe(admin::Describe<'a>),
    /// List this shard's groups.
    List(admin::List<'a>),
    /// Delete one empty group.
    DeleteGroup(admin::DeleteGroup<'a>),
}

/// The answer to one [`Ask`], same variant for same variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To [`Ask::Join`].
    Join(Result<classic::Joined, classic::JoinRefused>),
    /// To [`Ask::Sync`].
    Sync(Result<classic::Synced, GroupError>),
    /// To [`Ask::Heartbeat`].
    Heartbeat(Result<(), GroupError>),
    /// To [`Ask::Leave`]: one outcome per named member, in the request's order.
    Leave(Result<classic::Left, GroupError>),
    /// To [`Ask::ConsumerHeartbeat`].
    ConsumerHeartbeat(Result<consumer::Beat, GroupError>),
    /// To [`Ask::ConsumerDescribe`].
    ConsumerDescribe(Result<consumer::Description, GroupError>),
    /// To [`Ask::ConsumerMetadata`]; 0 for a group that is not there.
    ConsumerMetadata(Result<ottla_model::Generation, GroupError>),
    /// To [`Ask::Register`].
    Register(Result<register::Registered, GroupError>),
    /// To [`Ask::RegisterHeartbeat`].
    RegisterHeartbeat(register::HeartbeatAnswer),
    /// To [`Ask::Commit`].
    Commit(Result<offsets::Committed, GroupError>),
    /// To [`Ask::FetchOffsets`].
    FetchOffsets(Result<offsets::Fetched, GroupError>),
    /// To [`Ask::DeleteOffsets`].
    DeleteOffsets(Result<offsets::Deleted, GroupError>),
    /// To [`Ask::Describe`].
    Describe(Result<admin::Description, GroupError>),
    /// To [`Ask::List`].
    List(Result<alloc::vec::Vec<admin::Listing>, GroupError>),
    /// To [`Ask::DeleteGroup`].
    DeleteGroup(Result<(), GroupError>),
}

impl Ask<'_> {
    /// The group it is about; `None` for a list of all.
    pub fn group(&self) -> Option<&str> {
        match self {
            Self::Join(ask) => Some(ask.group),
            Self::Sync(ask) => Some(ask.group),
            Self::Heartbeat(ask) => Some(ask.group),
            Self::Leave(ask) => Some(ask.group),
            Self::ConsumerHeartbeat(ask) => Some(ask.group),
            Self::ConsumerDescribe(ask) => Some(ask.group),
            Self::ConsumerMetadata(ask) => Some(ask.group),
            Self::Register(ask) => Some(ask.group),
            Self::RegisterHeartbeat(ask) => Some(ask.group),
            Self::Commit(ask) => Some(ask.group),
            Self::FetchOffsets(ask) => Some(ask.group),
            Self::DeleteOffsets(ask) => Some(ask.group),
            Self::Describe(ask) => Some(ask.group),
            Self::List(_) => None,
            Self::DeleteGroup(ask) => Some(ask.group),
        }
    }

    /// The reply that refuses it.
    pub fn refused(&self, error: GroupError) -> Reply {
        match self {
            Self::Join(ask) => Reply::Join(Err(classic::JoinRefused::new(error, ask.member))),
            Self::Sync(_) => Reply::Sync(Err(error)),
            Self::Heartbeat(_) => Reply::Heartbeat(Err(error)),
            Self::Leave(_) => Reply::Leave(Err(error)),
            Self::ConsumerHeartbeat(_) => Reply::ConsumerHeartbeat(Err(error)),
            Self::ConsumerDescribe(_) => Reply::ConsumerDescribe(Err(error)),
            Self::ConsumerMetadata(_) => Reply::ConsumerMetadata(Err(error)),
            Self::Register(_) => Reply::Register(Err(error)),
            Self::RegisterHeartbeat(_) => {
                Reply::RegisterHeartbeat(register::HeartbeatAnswer::refused(error))
            }
            Self::Commit(_) => Reply::Commit(Err(error)),
            Self::FetchOffsets(_) => Reply::FetchOffsets(Err(error)),
            Self::DeleteOffsets(_) => Reply::DeleteOffsets(Err(error)),
            Self::Describe(_) => Reply::Describe(Err(error)),
            Self::List(_) => Reply::List(Err(error)),
            Self::DeleteGroup(_) => Reply::DeleteGroup(Err(error)),
        }
    }
}

impl Reply {
    /// The reply that refuses what this one was going to answer: for a reply that waited for a
    /// record that never became durable, or for its shard's ownership to outlive it.
    pub fn refused(self, error: GroupError) -> Self {
        match self {
            Self::Join(was) => {
                let member = was.map_or_else(|refused| refused.member, |joined| joined.member);
                Self::Join(Err(classic::JoinRefused { error, member }))
            }
            Self::Sync(_) => Self::Sync(Err(error)),
            Self::Heartbeat(_) => Self::Heartbeat(Err(error)),
            Self::Leave(_) => Self::Leave(Err(error)),
            Self::ConsumerHeartbeat(_) => Self::ConsumerHeartbeat(Err(error)),
            Self::ConsumerDescribe(_) => Self::ConsumerDescribe(Err(error)),
            Self::ConsumerMetadata(_) => Self::ConsumerMetadata(Err(error)),
            Self::Register(_) => Self::Register(Err(error)),
            Self::RegisterHeartbeat(_) => {
                Self::RegisterHeartbeat(register::HeartbeatAnswer::refused(error))
            }
            Self::Commit(_) => Self::Commit(Err(error)),
            Self::FetchOffsets(_) => Self::FetchOffsets(Err(error)),
            Self::DeleteOffsets(_) => Self::DeleteOffsets(Err(error)),
            Self::Describe(_) => Self::Describe(Err(error)),
            Self::List(_) => Self::List(Err(error)),
            Self::DeleteGroup(_) => Self::DeleteGroup(Err(error)),
        }
    }
}
