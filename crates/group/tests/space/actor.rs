//! The member of the space: the shipped one, with the clock, the application and the connection
//! that an input of the space calls for.

use crate::coordinator::GROUP;
use crate::log::{Slots, bits};
use crate::shape::{Shape, hashed};
use crate::world::{TOPICS, Tongue, id, view};
use ottla_group::member::{CallId, Config, Lane, Member, Output, Protocol, Request};
use ottla_group::message::Reply;
use ottla_model::{Instant, MemberId, NodeId, TopicName};
use std::sync::Arc;
use std::time::Duration;

/// One process.
#[derive(Clone)]
pub struct Actor {
    member: Member,
    /// What it is called, or will be.
    name: MemberId,
    now: Instant,
    call: Option<Call>,
    pub topics: usize,
    /// What its application owns.
    pub owned: Slots,
    /// Tells it from all others.
    pub key: u64,
    /// Equal for processes that behave alike, whoever they are.
    pub shape: Shape,
}

/// A request under way.
#[derive(Clone, Copy)]
struct Call {
    id: CallId,
    /// Whether it is a classic heartbeat, which another request may overtake.
    is_beat: bool,
}

/// What can come to a process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// Whatever waits has waited long enough.
    Wait,
    /// The application gave up what it was asked to.
    GiveUp,
    Subscribe(usize),
    Close,
    /// The connection broke.
    Break,
    /// Nothing comes through for so long that it may own nothing any more.
    Lapse,
    /// Epochs are counted anew.
    Shift(i32),
}

/// A request on its way.
#[derive(Debug)]
pub struct Asked {
    /// What its sender is called, or will be.
    pub name: MemberId,
    pub request: Request,
    pub key: u64,
    pub shape: Shape,
}

/// An answer on its way.
pub struct Told {
    /// Whom it is for.
    pub name: MemberId,
    pub reply: Reply,
    pub key: u64,
    pub shape: Shape,
}

/// What an input came to.
#[derive(Clone)]
pub struct Acted {
    /// The process; none once it has ended.
    pub actor: Option<Arc<Actor>>,
    pub asked: Option<Arc<Asked>>,
    /// Whether what was on its way is lost.
    pub is_cut: bool,
}

impl Actor {
    /// A new process in a place.
    pub fn start(place: usize, tongue: Tongue, topics: usize) -> Acted {
        let config = Config {
            protocol: match tongue {
                Tongue::Classic => Protocol::Classic,
                Tongue::Consumer => Protocol::Consumer,
            },
            session_timeout: LONG,
            rebalance_timeout: LONG,
            ..Config::new(GROUP)
        };
        let member = Member::new(config, place as u64);
        let now = Instant::from_millis(1);
        let name = id(place, tongue);
        let actor = Self {
            member,
            name,
            now,
            call: None,
            topics,
            owned: 0,
            key: 0,
            shape: Shape::default(),
        };
        actor.act(&Input::Subscribe(topics))
    }

    /// What a member of the consumer protocol at a place calls itself.
    pub fn own_id(place: usize) -> MemberId {
        let config = Config { protocol: Protocol::Consumer, ..Config::new(GROUP) };
        Member::new(config, place as u64).id().clone()
    }

    /// Whether it has all it was told and nothing more to say.
    pub fn is_stable(&self) -> bool {
        self.member.is_stable()
    }

    pub fn generation(&self) -> Option<i32> {
        self.member.generation().map(|generation| generation.0)
    }

    /// The last epoch it was given a part of.
    pub fn assigned_in(&self) -> Option<i32> {
        self.member.assigned_in().map(|generation| generation.0)
    }

    /// Whether its application was asked to give something up.
    pub fn gives_up(&self) -> bool {
        self.member.is_asked_to_give_up()
    }

    /// An answer comes.
    pub fn hear(&self, reply: &Reply) -> Acted {
        let mut actor = self.clone();
        let now = actor.now;
        if let Some(call) = actor.call.take() {
            actor.member.handle_reply(call.id, reply.clone(), now);
        }
        actor.finish()
    }

    pub fn act(&self, input: &Input) -> Acted {
        let mut actor = self.clone();
        let now = actor.now;
        match input {
            Input::Wait => return actor.wait(),
            Input::GiveUp => actor.member.revoked(now),
            Input::Subscribe(topics) => {
                actor.topics = *topics;
                actor.member.subscribe(names(*topics), now);
            }
            Input::Close => actor.member.close(now),
            Input::Break => {
                actor.call = None;
                actor.member.handle_disconnect(Lane::Main, now);
            }
            Input::Lapse => {
                actor.call = None;
                actor.now = now + LONG * 2;
                actor.member.handle_timeout(actor.now);
                actor.member.handle_disconnect(Lane::Main, actor.now);
            }
            Input::Shift(by) => actor.member.shift_epochs(*by),
        }
        actor.finish()
    }

    /// Waits until it has something to say.
    fn wait(mut self) -> Acted {
        for _ in 0..WAITS_MAX {
            let Some(deadline) = self.member.deadline() else { break };
            self.now = self.now.max(deadline);
            self.member.handle_timeout(self.now);
            let acted = self.clone().finish();
            let Some(actor) = &acted.actor else { return acted };
            if acted.asked.is_some() {
                return acted;
            }
            self = Self::clone(actor);
        }
        self.finish()
    }

    /// Carries out what the member wants done.
    fn finish(mut self) -> Acted {
        let (mut asked, mut is_cut, mut is_over) = (None, false, false);
        let now = self.now;
        while let Some(output) = self.member.poll() {
            match output {
                Output::Watch { round, .. } => {
                    self.member.handle_topics(round, (*view()).clone(), now);
                }
                Output::Find { call } => {
                    self.member.handle_coordinator(call, Some(NodeId(1)), now);
                }
                Output::Send { call, request, .. } => {
                    asked = self.send(call, request).or(asked);
                }
                Output::Disconnect => (is_cut, self.call, asked) = (true, None, None),
                Output::Left | Output::Failed(_) => is_over = true,
                Output::Assigned(_) | Output::Revoke(_) | Output::Lost(_) => {}
                Output::Committed { .. } | Output::Fetched { .. } => {}
            }
        }
        let print = (self.member.fingerprint(), self.topics, self.call.is_some());
        self.owned = bits(self.member.owned());
        self.key = hashed(&(self.name.as_str(), &print));
        self.shape = Shape::of(&print, &self.name);
        Acted { actor: (!is_over).then(|| Arc::new(self)), asked, is_cut }
    }

    /// A request goes out. One at a time is on its way: a classic heartbeat that another request
    /// comes after, or that comes after another, says nothing more to a member that waits for that
    /// one's answer.
    fn send(&mut self, id: CallId, request: Request) -> Option<Arc<Asked>> {
        let is_beat = matches!(request, Request::Heartbeat(_));
        let is_late = is_beat && self.call.is_some();
        let overtaken = if is_late { Some(id) } else { None };
        let before = self.call.filter(|before| before.is_beat && !is_late).map(|before| before.id);
        if !is_late {
            self.call = Some(Call { id, is_beat });
        }
        if let Some(lost) = overtaken.or(before) {
            self.member.handle_reply(lost, Reply::Heartbeat(Ok(())), self.now);
        }
        (!is_late).then(|| Arc::new(Asked::new(request, &self.name)))
    }
}

impl Asked {
    pub fn new(mut request: Request, name: &MemberId) -> Self {
        if let Request::Join(join) = &mut request {
            // Only the journal reads it.
            join.reason = "";
        }
        let shape = Shape::of(&request, name);
        let key = hashed(&(name.as_str(), format!("{request:?}")));
        Self { name: name.clone(), request, key, shape }
    }

    /// Whether it asks for a name.
    pub fn is_nameless(&self) -> bool {
        matches!(&self.request, Request::Join(join) if join.sender.member.is_empty())
    }
}

impl Told {
    pub fn new(reply: Reply, name: &MemberId) -> Self {
        let key = hashed(&(name.as_str(), format!("{reply:?}")));
        let shape = Shape::of(&reply, name);
        Self { name: name.clone(), reply, key, shape }
    }
}

/// The topics of these bits.
pub fn names(topics: usize) -> impl Iterator<Item = TopicName> {
    let named = TOPICS.iter().enumerate().filter(move |(bit, _)| topics & (1 << bit) != 0);
    named.map(|(_, name)| TopicName::from(*name))
}

/// Longer than anything takes here.
const LONG: Duration = Duration::from_secs(1_000_000);
/// A member has something to say after so many deadlines, or never.
const WAITS_MAX: usize = 8;
