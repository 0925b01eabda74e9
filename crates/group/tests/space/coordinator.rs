//! The coordinator of the space: the shipped shard, made anew for each request from its records
//! and, where members wait for each other, from what it heard since.
//!
//! Whenever nobody waits, a new coordinator that reads the log knows as much, and takes over. So no
//! state depends on what only a living one remembers, but for a classic group on its way from one
//! generation to the next. Epochs are then counted from the group's, which is [`BASE`].

use crate::actor::{Asked, Told};
use crate::log::{Log, Part, all_disjoint};
use crate::shape::hashed;
use crate::shift;
use crate::world::all_of;
use ottla_group::assign::subscription::Subscription;
use ottla_group::coordinator::{Config, RecordAt, Shard};
use ottla_group::message::admin::{GroupKind, GroupState};
use ottla_group::message::classic::{Leave, Leaver};
use ottla_group::message::{Ask, Client, GroupError, Reply, Request, Token};
use ottla_model::{
    ConnectionId, Instant, MemberId, Now, Offset, OwnershipEpoch, PartitionId, Timestamp,
    TopicsView,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub const GROUP: &str = "g";
/// The group's epoch, however many it had.
pub const BASE: i32 = 100;

/// One state of the coordinator, and what its log says.
pub struct Coordinator {
    /// What it took over.
    base: Arc<Log>,
    /// What it heard since and would forget with its process; nothing where nobody waits.
    heard: Vec<Arc<Heard>>,
    /// The log by now.
    log: Arc<Log>,
    /// Of each member, what the log says.
    pub parts: BTreeMap<MemberId, Part>,
    pub epoch: i32,
    pub target_epoch: i32,
    /// Tells it from all others.
    pub key: u64,
}

/// A request, and what became of it.
#[derive(Clone)]
pub struct Heard {
    /// Where its sender is.
    pub place: usize,
    pub said: Said,
    /// Whether it was told to come back with an id that only this coordinator knows.
    is_promise: bool,
}

/// Who speaks.
#[derive(Clone)]
pub enum Said {
    /// A member for itself.
    Asked(Arc<Asked>),
    /// An administrator, in place of a member that is silent.
    Gone(MemberId),
}

/// What a request came to.
pub struct Answered {
    pub next: Arc<Coordinator>,
    /// Answers, each with the number of what it answers among those that wait.
    pub replies: Vec<(usize, Arc<Told>)>,
    /// The number of this request.
    pub token: usize,
    /// By how much epochs are counted anew.
    pub shift: i32,
}

impl Coordinator {
    /// Of a group nobody spoke of yet.
    pub fn void() -> Self {
        let log = Arc::new(Log::default());
        Self::of(Arc::clone(&log), Vec::new(), log)
    }

    /// Somebody speaks.
    pub fn answer(&self, heard: Heard, view: &Arc<TopicsView>) -> Result<Answered, String> {
        let mut shard = self.taken_over(view)?;
        for (token, before) in self.heard.iter().enumerate() {
            speak(&mut shard, token, before);
            outcome(&mut shard, &mut Log::default());
        }
        let token = self.heard.len();
        speak(&mut shard, token, &heard);
        let mut log = Log::clone(&self.log);
        let (has_written, replies) = outcome(&mut shard, &mut log);
        if log.epoch() < self.epoch || log.target_epoch() < self.target_epoch.min(log.epoch()) {
            return Err("an epoch went back".into());
        }
        if let Some((_, reply)) = replies.iter().find(|(_, reply)| !makes_sense(reply)) {
            return Err(format!("a leader was told of a member that said nothing: {reply:?}"));
        }
        let own = replies.iter().find(|(answered, _)| *answered == token).map(|(_, reply)| reply);
        let is_promise = own.is_some_and(is_promise);
        let leaves_nothing = !has_written && replies.len() == 1 && own.is_some_and(is_in_passing);
        let mut all = self.heard.clone();
        let heard = Arc::new(Heard { is_promise, ..heard });
        if !leaves_nothing {
            all.push(Arc::clone(&heard));
        }
        let (next, shift) = match is_at_rest(&shard, &all) {
            true => Self::over(log),
            false => (Self::of(Arc::clone(&self.base), all, Arc::new(log)), 0),
        };
        next.check()?;
        let replies = replies.into_iter().filter_map(|(token, reply)| {
            let name = self.heard.get(token).unwrap_or(&heard).name()?;
            Some((token, Arc::new(Told::new(shift::reply(reply, shift), name))))
        });
        let replies = replies.collect();
        Ok(Answered { next: Arc::new(next), replies, token, shift })
    }

    /// The coordinator that takes over from this one, and by how much it counts anew.
    pub fn successor(&self) -> (Self, i32) {
        Self::over(Log::clone(&self.log))
    }

    /// Whether a coordinator that took over would know as much.
    pub fn is_at_rest(&self) -> bool {
        self.heard.is_empty()
    }

    /// Whether there is a member, or somebody on the way to become one, at a place.
    pub fn knows(&self, place: usize, ids: &[MemberId]) -> bool {
        match self.heard.iter().rfind(|heard| heard.place == place) {
            Some(last) => matches!(last.said, Said::Asked(_)),
            None => self.remembers(ids),
        }
    }

    /// Whether the log has one of these members.
    pub fn remembers(&self, ids: &[MemberId]) -> bool {
        ids.iter().any(|id| self.parts.contains_key(id))
    }

    /// Equal for coordinators that differ but in what they know of members.
    pub fn shape(&self) -> (bool, i32, i32) {
        (self.log.is_classic(), self.epoch, self.epoch - self.target_epoch)
    }

    /// A group at rest, whose epoch is now [`BASE`].
    fn over(mut log: Log) -> (Self, i32) {
        let shift = if log.epoch() == 0 { 0 } else { BASE - log.epoch() };
        log.shift(shift);
        let log = Arc::new(log);
        (Self::of(Arc::clone(&log), Vec::new(), log), shift)
    }

    fn of(base: Arc<Log>, heard: Vec<Arc<Heard>>, log: Arc<Log>) -> Self {
        let heard_keys: Vec<_> = heard.iter().map(|heard| heard.key()).collect();
        let key = hashed(&(base.key(), heard_keys, log.key()));
        let (epoch, target_epoch, parts) = (log.epoch(), log.target_epoch(), log.parts());
        Self { base, heard, log, parts, epoch, target_epoch, key }
    }

    /// A new process that has read the log.
    fn taken_over(&self, view: &Arc<TopicsView>) -> Result<Shard, String> {
        let config = Config {
            session_timeout_max: LONG,
            new_member_join_timeout: LONG,
            consumer_session_timeout: LONG,
            consumer_assignment_interval: Duration::ZERO,
            initial_rebalance_delay: Duration::ZERO,
            ..Config::default()
        };
        let mut shard = Shard::new(config, PartitionId(0));
        shard.handle_owned(OwnershipEpoch(1), Instant::from_nanos(u64::MAX), NOW);
        for (offset, record) in (0..).zip(self.base.records()) {
            let at = RecordAt { offset: Offset(offset), appended_at: Timestamp(1) };
            shard.replay(record.clone(), at);
        }
        shard.handle_topics(Arc::clone(view), NOW);
        shard.handle_loaded(NOW);
        match shard.poll_append() {
            Some(_) => Err("a coordinator that took over had something to write".into()),
            None => Ok(shard),
        }
    }

    /// No partition is held twice or in two targets, and the target is what its members want.
    fn check(&self) -> Result<(), String> {
        let parts = || self.parts.values();
        if !all_disjoint(parts().map(|part| part.holds)) {
            return Err("a partition is held twice".into());
        }
        if !all_disjoint(parts().map(|part| part.target)) {
            return Err("a partition is in two targets".into());
        }
        if self.log.is_classic() {
            // Its members assign, and may keep a partition from its new owner until the old one
            // has given it up.
            return Ok(());
        }
        if parts().any(|part| part.epoch > self.target_epoch) {
            return Err("a member is ahead of the target".into());
        }
        match self.is_whole() || self.parts.is_empty() {
            true => Ok(()),
            false => Err("a target is not what its members want".into()),
        }
    }

    /// Whether every partition that somebody wants is somebody's.
    pub fn is_whole(&self) -> bool {
        let (targets, wanted) = self
            .parts
            .values()
            .fold((0, 0), |(targets, wanted), part| (targets | part.target, wanted | part.topics));
        targets == all_of(wanted) && self.target_epoch == self.epoch
    }
}

impl Heard {
    pub fn new(place: usize, said: Said) -> Self {
        Self { place, said, is_promise: false }
    }

    /// The member that speaks.
    fn name(&self) -> Option<&MemberId> {
        match &self.said {
            Said::Asked(asked) => Some(&asked.name),
            Said::Gone(_) => None,
        }
    }

    /// Tells it from all others.
    pub fn key(&self) -> u64 {
        match &self.said {
            Said::Asked(asked) => hashed(&(self.place, asked.key)),
            Said::Gone(_) => hashed(&(self.place, "gone")),
        }
    }
}

/// A shard hears a request.
fn speak(shard: &mut Shard, token: usize, heard: &Heard) {
    let leaver;
    let body = match &heard.said {
        Said::Asked(asked) => asked.request.ask(),
        Said::Gone(member) => {
            leaver = Leaver { member, instance: None, reason: None };
            Ask::Leave(Leave { group: GROUP, members: vec![leaver] })
        }
    };
    shard.handle_request(Request {
        token: Token(token as u64),
        connection: ConnectionId(1),
        client: Client { id: CLIENT, host: "/h", ..Client::default() },
        fresh: [heard.place as u8; 16],
        now: NOW,
        body,
    });
    // Nobody waits for a first rebalance; all other times are longer than anything takes.
    shard.handle_timeout(NOW);
}

/// What a shard wrote, and whom it answered.
fn outcome(shard: &mut Shard, log: &mut Log) -> (bool, Vec<(usize, Reply)>) {
    let mut has_written = false;
    while let Some(append) = shard.poll_append() {
        has_written = true;
        append.records.into_iter().for_each(|record| log.write(record));
    }
    shard.handle_durable(shard.last_index());
    let replies = std::iter::from_fn(|| shard.poll_reply());
    (has_written, replies.map(|out| (out.token.0 as usize, out.reply)).collect())
}

/// Whether a leader knows what each member wants.
fn makes_sense(reply: &Reply) -> bool {
    let Reply::Join(Ok(joined)) = reply else { return true };
    joined.members.iter().all(|member| Subscription::decode(&member.metadata).is_ok())
}

/// Whether nobody waits for anybody, and nobody was given an id that is not on record.
fn is_at_rest(shard: &Shard, heard: &[Arc<Heard>]) -> bool {
    let groups = shard.groups().value;
    let group = groups.first().map(|group| (group.kind, group.state));
    let is_under_way =
        |state| matches!(state, GroupState::PreparingRebalance | GroupState::CompletingRebalance);
    match group {
        Some((GroupKind::Consumer, state)) if state != GroupState::Empty => true,
        Some((GroupKind::Classic, state)) if is_under_way(state) => false,
        _ => {
            let last = |place| heard.iter().rfind(|heard| heard.place == place);
            !heard.iter().any(|it| last(it.place).is_some_and(|last| last.is_promise))
        }
    }
}

fn is_promise(reply: &Reply) -> bool {
    matches!(reply, Reply::Join(Err(refused)) if refused.error == GroupError::MemberIdRequired)
}

/// Whether an answer that nothing else came with leaves nothing to remember.
fn is_in_passing(reply: &Reply) -> bool {
    match reply {
        Reply::Heartbeat(_) | Reply::Sync(_) | Reply::ConsumerHeartbeat(Err(_)) => true,
        Reply::Join(Err(_)) => !is_promise(reply),
        _ => false,
    }
}

/// Always.
const NOW: Now = Now { mono: Instant::from_millis(1), wall: Timestamp(1) };
/// Longer than anything takes here.
const LONG: Duration = Duration::from_secs(10_000_000);
/// What begins the ids that the coordinator gives out.
pub const CLIENT: &str = "c";
