//! One state of the whole: what the log says, what each process believes, what is on its way; what
//! can happen next, what must hold, and where it must lead once nothing goes wrong any more.

use crate::actor::{Acted, Actor, Asked, Input};
use crate::coordinator::{Answered, Coordinator, GROUP, Slots, shifted};
use crate::shape::{Map, hashed, nameless};
use ottla_group::member::Request;
use ottla_group::message::classic::{Leave, Leaver};
use ottla_group::message::consumer::Standing;
use ottla_group::message::{Ask, Reply};
use ottla_model::{Generation, MemberId, Partition, Topic, TopicId, TopicName, TopicsView};
use std::sync::{Arc, OnceLock};

pub const MEMBERS: usize = 3;
pub const TOPICS: [&str; 2] = ["t", "u"];
pub const PARTITIONS: usize = 3;
/// All topics, the first, the second: as bits.
const BOTH: usize = 3;
const FIRST: usize = 1;
const SECOND: usize = 2;

/// Everything at one moment.
#[derive(Clone)]
pub struct State {
    coordinator: Arc<Coordinator>,
    places: [Place; MEMBERS],
}

/// Where a process may be.
#[derive(Clone, Default)]
struct Place {
    actor: Option<Arc<Actor>>,
    wire: Wire,
    /// Whether it was silent for so long that the coordinator may take it for dead.
    is_quiet: bool,
}

/// What is on its way; a member asks one thing at a time.
#[derive(Clone, Default)]
enum Wire {
    #[default]
    Nothing,
    Request(Arc<Asked>),
    Answer(Arc<Told>),
}

/// An answer on its way.
struct Told {
    reply: Reply,
    key: u64,
    shape: u64,
}

/// What can happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The time has come for which a member waits: it asks.
    Wait(usize),
    /// The coordinator hears and answers.
    Arrive(usize),
    Hear(usize),
    GiveUp(usize),
    /// The coordinator takes a silent member for dead.
    Expire(usize),
    Join(usize, usize),
    Leave(usize),
    Kill(usize),
    /// Nothing comes through for so long that the member gives up what it owns.
    Cut(usize),
    Subscribe(usize, usize),
    /// What is on its way is lost with its connection.
    Break(usize),
    /// Another coordinator: whatever is on its way is lost.
    Restart,
}

/// What production code made of what, so that it is asked once.
#[derive(Default)]
pub struct Memory {
    answers: Map<(u64, u64), Arc<Answered>>,
    acts: Map<(u64, u64), Acted>,
}

impl Event {
    /// Whether it is one of the few things that may go otherwise in one run.
    pub fn is_trouble(self) -> bool {
        !matches!(
            self,
            Self::Wait(_) | Self::Arrive(_) | Self::Hear(_) | Self::GiveUp(_) | Self::Expire(_)
        )
    }
}

impl State {
    /// Nobody is there.
    pub fn begin() -> Self {
        Self { coordinator: Arc::new(Coordinator::void()), places: Default::default() }
    }

    /// Equal for states that lead to the same: members are alike but for their names, and epochs
    /// count from the group's.
    pub fn key(&self) -> u64 {
        let mut shapes = self.places.each_ref().map(|place| {
            let part = place.part(self).map_or(0, |part| part.shape);
            let actor = place.actor.as_ref().map_or(0, |actor| actor.shape);
            let wire = match &place.wire {
                Wire::Nothing => (0, 0),
                Wire::Request(asked) => (1, asked.shape),
                Wire::Answer(told) => (2, told.shape),
            };
            (part, actor, wire, place.is_quiet)
        });
        shapes.sort_unstable();
        let behind = self.coordinator.epoch - self.coordinator.target_epoch;
        hashed(&(shapes, behind))
    }

    /// What can happen now.
    pub fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let free = (0..MEMBERS).find(|at| self.is_free(*at));
        events.extend(
            free.into_iter().flat_map(|at| [Event::Join(at, BOTH), Event::Join(at, FIRST)]),
        );
        for (at, place) in self.places.iter().enumerate() {
            match &place.wire {
                Wire::Nothing => events.extend(place.actor.is_some().then_some(Event::Wait(at))),
                Wire::Request(_) => events.push(Event::Arrive(at)),
                Wire::Answer(_) => events.push(Event::Hear(at)),
            }
            if self.may_expire(at) {
                events.push(Event::Expire(at));
            }
            let Some(actor) = &place.actor else { continue };
            if actor.gives_up() {
                events.push(Event::GiveUp(at));
            }
            let other = if actor.topics == BOTH { SECOND } else { BOTH };
            events.extend([Event::Leave(at), Event::Kill(at), Event::Cut(at)]);
            events.push(Event::Subscribe(at, other));
            events.extend(place.is_waiting().then_some(Event::Break(at)));
        }
        let waiting = self.places.iter().filter(|place| place.is_waiting()).count();
        events.extend((waiting > 1).then_some(Event::Restart));
        events
    }

    /// What comes of an event; an error where that breaks a rule.
    pub fn after(&self, event: Event, memory: &mut Memory) -> Result<Self, String> {
        let mut next = self.clone();
        match event {
            Event::Wait(at) => next.act(at, &Input::Wait, memory),
            Event::GiveUp(at) => next.act(at, &Input::GiveUp, memory),
            Event::Leave(at) => next.act(at, &Input::Close, memory),
            Event::Subscribe(at, topics) => next.act(at, &Input::Subscribe(topics), memory),
            Event::Break(at) => next.act(at, &Input::Break, memory),
            Event::Cut(at) => {
                next.act(at, &Input::Lapse, memory);
                next.places[at].is_quiet = true;
            }
            Event::Restart => {
                for at in 0..MEMBERS {
                    if self.places[at].is_waiting() {
                        next.act(at, &Input::Break, memory);
                    }
                }
            }
            Event::Join(at, topics) => {
                next.places[at] = Place::default();
                next.settle(at, Actor::start(at, topics));
            }
            Event::Kill(at) => {
                // What it asked may still arrive.
                let place = &mut next.places[at];
                (place.actor, place.is_quiet) = (None, true);
                if let Wire::Answer(_) = place.wire {
                    place.wire = Wire::Nothing;
                }
            }
            Event::Hear(at) => next.hear(at, memory)?,
            Event::Arrive(at) => next.arrive(at, memory)?,
            Event::Expire(at) => next.expire(at, memory)?,
        }
        next.check()?;
        Ok(next)
    }

    /// Everybody does what it can, in turn, and nothing goes wrong: the same from each state.
    pub fn round(&self, memory: &mut Memory) -> Result<Self, String> {
        let mut state = self.clone();
        for at in 0..MEMBERS {
            for event in [
                Event::Arrive(at),
                Event::Hear(at),
                Event::GiveUp(at),
                Event::Wait(at),
                Event::Arrive(at),
                Event::Hear(at),
                Event::Expire(at),
            ] {
                if state.events().contains(&event) {
                    state = state.after(event, memory)?;
                }
            }
        }
        Ok(state)
    }

    /// Whether everybody who lives owns what the target says, and the dead are forgotten.
    pub fn has_arrived(&self) -> bool {
        self.places.iter().all(|place| match (&place.actor, place.part(self)) {
            (None, None) => matches!(place.wire, Wire::Nothing),
            (Some(actor), Some(part)) => {
                let is_told = actor.generation() == Some(self.coordinator.epoch);
                let is_there = part.is_settled && part.epoch == self.coordinator.epoch;
                is_told
                    && is_there
                    && actor.is_stable()
                    && actor.topics == part.topics
                    && actor.owned == part.target
            }
            _ => false,
        })
    }

    fn check(&self) -> Result<(), String> {
        let mut owned = 0;
        for actor in self.places.iter().filter_map(|place| place.actor.as_ref()) {
            if owned & actor.owned != 0 {
                return Err("a partition has two owners".into());
            }
            owned |= actor.owned;
        }
        Ok(())
    }

    fn act(&mut self, at: usize, input: &Input, memory: &mut Memory) {
        let Some(actor) = &self.places[at].actor else { return };
        let key = (actor.key, hashed(input));
        let acted = memory.acts.entry(key).or_insert_with(|| actor.act(input)).clone();
        self.settle(at, acted);
    }

    fn settle(&mut self, at: usize, acted: Acted) {
        let Acted { actor, asked, is_cut } = acted;
        let place = &mut self.places[at];
        if is_cut {
            place.wire = Wire::Nothing;
        }
        if let Some(asked) = asked {
            place.wire = Wire::Request(asked);
        }
        if actor.is_none() {
            // Gone, whether or not the coordinator heard of it.
            (place.is_quiet, place.wire) = (true, Wire::Nothing);
        }
        place.actor = actor;
    }

    fn hear(&mut self, at: usize, memory: &mut Memory) -> Result<(), String> {
        let Wire::Answer(told) = core::mem::take(&mut self.places[at].wire) else { return Ok(()) };
        let Some(actor) = self.places[at].actor.clone() else { return Ok(()) };
        let key = (actor.key, told.key);
        let acted = memory.acts.entry(key).or_insert_with(|| actor.hear(&told.reply)).clone();
        let now = acted.actor.as_ref().and_then(|actor| actor.generation());
        if now.zip(actor.generation()).is_some_and(|(now, before)| now < before) {
            return Err("a member's epoch went back".into());
        }
        self.settle(at, acted);
        Ok(())
    }

    fn arrive(&mut self, at: usize, memory: &mut Memory) -> Result<(), String> {
        let Wire::Request(asked) = core::mem::take(&mut self.places[at].wire) else {
            return Ok(());
        };
        let answered = self.ask(asked.key, asked.request.ask(), memory)?;
        let Some(actor) = &self.places[at].actor else { return Ok(()) };
        let key = hashed(&format!("{:?}", answered.reply));
        let shape = hashed(&nameless(&answered.reply, actor.id()));
        let reply = answered.reply.clone();
        self.places[at].wire = Wire::Answer(Arc::new(Told { reply, key, shape }));
        self.places[at].is_quiet = false;
        Ok(())
    }

    fn expire(&mut self, at: usize, memory: &mut Memory) -> Result<(), String> {
        let id = id(at);
        let leaver = Leaver { member: &id, instance: None, reason: None };
        let ask = Ask::Leave(Leave { group: GROUP, members: vec![leaver] });
        self.ask(hashed(&("gone", at)), ask, memory)?;
        self.places[at].is_quiet = self.places[at].actor.is_none();
        Ok(())
    }

    fn ask(
        &mut self,
        key: u64,
        ask: Ask<'_>,
        memory: &mut Memory,
    ) -> Result<Arc<Answered>, String> {
        let key = (self.coordinator.key, key);
        let answered = match memory.answers.get(&key) {
            Some(answered) => Arc::clone(answered),
            None => {
                let answered = Arc::new(self.coordinator.answer(ask, &view())?);
                memory.answers.insert(key, Arc::clone(&answered));
                answered
            }
        };
        self.coordinator = Arc::clone(&answered.next);
        if answered.shift != 0 {
            self.shift(answered.shift, memory);
        }
        Ok(answered)
    }

    /// Counts epochs anew, everywhere.
    fn shift(&mut self, by: i32, memory: &mut Memory) {
        for at in 0..MEMBERS {
            let wire = match &self.places[at].wire {
                Wire::Nothing => Wire::Nothing,
                Wire::Request(asked) => Wire::Request(Arc::new(moved(asked, by, &id(at)))),
                Wire::Answer(told) => {
                    let reply = shifted(told.reply.clone(), by);
                    let key = hashed(&format!("{reply:?}"));
                    let shape = hashed(&nameless(&reply, &id(at)));
                    Wire::Answer(Arc::new(Told { reply, key, shape }))
                }
            };
            self.act(at, &Input::Shift(by), memory);
            self.places[at].wire = wire;
        }
    }

    fn may_expire(&self, at: usize) -> bool {
        self.places[at].is_quiet && self.coordinator.parts.contains_key(&id(at))
    }

    fn is_free(&self, at: usize) -> bool {
        let place = &self.places[at];
        let is_idle = place.actor.is_none() && matches!(place.wire, Wire::Nothing);
        is_idle && !self.coordinator.parts.contains_key(&id(at))
    }
}

impl Place {
    fn part<'a>(&self, state: &'a State) -> Option<&'a crate::coordinator::Part> {
        let at = state.places.iter().position(|place| core::ptr::eq(place, self))?;
        state.coordinator.parts.get(&id(at))
    }

    fn is_waiting(&self) -> bool {
        self.actor.is_some() && !matches!(self.wire, Wire::Nothing)
    }
}

/// The same request, had epochs been counted otherwise.
fn moved(asked: &Asked, by: i32, id: &MemberId) -> Asked {
    let mut request = asked.request.clone();
    if let Request::Beat(beat) = &mut request {
        for epoch in [
            Some(&mut beat.sender.generation),
            match &mut beat.standing {
                Standing::Member(epoch) => Some(epoch),
                _ => None,
            },
        ]
        .into_iter()
        .flatten()
        {
            if epoch.0 > 0 {
                *epoch = Generation(epoch.0 + by);
            }
        }
    }
    let (key, shape) = (hashed(&format!("{request:?}")), hashed(&nameless(&request, id)));
    Asked { request, key, shape }
}

/// All partitions of these topics.
pub fn all_of(topics: usize) -> Slots {
    let of = |bit: usize| if topics & (1 << bit) != 0 { 0b111 << (bit * PARTITIONS) } else { 0 };
    (0..TOPICS.len()).fold(0, |all, bit| all | of(bit))
}

/// The bit of a topic.
pub fn topic_bit(topic: &str) -> usize {
    1 << TOPICS.iter().position(|name| *name == topic).expect("one of the topics")
}

/// The id of a topic.
pub fn topic_id(topic: &str) -> TopicId {
    TopicId([topic_bit(topic) as u8; 16])
}

/// The id of whoever is at a place.
fn id(at: usize) -> MemberId {
    static IDS: OnceLock<[MemberId; MEMBERS]> = OnceLock::new();
    let ids = IDS.get_or_init(|| {
        core::array::from_fn(|at| Actor::start(at, BOTH).actor.expect("it lives").id().clone())
    });
    ids[at].clone()
}

/// The topics, which do not change.
pub fn view() -> Arc<TopicsView> {
    static VIEW: OnceLock<Arc<TopicsView>> = OnceLock::new();
    let view = VIEW.get_or_init(|| {
        let topics = TOPICS.iter().map(|name| Topic {
            id: topic_id(name),
            name: TopicName::from(*name),
            partitions: vec![Partition::default(); PARTITIONS],
        });
        Arc::new(TopicsView::new(topics))
    });
    Arc::clone(view)
}
