//! One state of the whole: what the log says, what each process believes, what is on its way; what
//! can happen next, what must hold, and where it must lead once nothing goes wrong any more.

use crate::actor::{Acted, Actor, Asked, Input, Told};
use crate::coordinator::{Answered, CLIENT, Coordinator, Heard, Said};
use crate::log::{Part, Slots, all_disjoint};
use crate::shape::{Map, hashed};
use crate::shift;
use ottla_model::{MemberId, Partition, Topic, TopicId, TopicName, TopicsView};
use std::sync::{Arc, OnceLock};

pub const MEMBERS: usize = 3;
pub const TOPICS: [&str; 2] = ["t", "u"];
pub const PARTITIONS: usize = 3;
/// All topics, the first, the second: as bits.
pub const BOTH: usize = 3;
const FIRST: usize = 1;
const SECOND: usize = 2;
/// Who may come.
const NEWCOMERS: [(Tongue, usize); 3] =
    [(Tongue::Consumer, BOTH), (Tongue::Consumer, FIRST), (Tongue::Classic, BOTH)];

/// Everything at one moment.
#[derive(Clone)]
pub struct State {
    coordinator: Arc<Coordinator>,
    places: [Place; MEMBERS],
}

/// Which protocol a process speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tongue {
    Classic,
    #[default]
    Consumer,
}

/// Where a process may be.
#[derive(Clone, Default)]
struct Place {
    /// What the last process here speaks or spoke.
    tongue: Tongue,
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
    /// The coordinator has it, under this number, and waits for others.
    Waiting(usize),
    Answer(Arc<Told>),
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
    Join(usize, Tongue, usize),
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
    /// What was on its way, with epochs counted anew.
    moved: Map<(u64, i32), Wire>,
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

    /// These came one after the other, and all arrived; then this happened.
    pub fn of(processes: &[(Tongue, usize)], then: &[Event]) -> Self {
        let (mut state, mut memory) = (Self::begin(), Memory::default());
        for (at, (tongue, topics)) in processes.iter().enumerate() {
            let join = Event::Join(at, *tongue, *topics);
            state = state.after(join, &mut memory).expect("a member may join");
            while !state.has_arrived() {
                state = state.round(&mut memory).expect("nothing goes wrong");
            }
        }
        let after = |state: Self, event: &Event| state.after(*event, &mut memory);
        then.iter().try_fold(state, after).expect("nothing goes wrong")
    }

    /// Equal for states that lead to the same: members are alike but for their names, and epochs
    /// count from the group's.
    pub fn key(&self) -> u64 {
        let names_others = self.places.iter().any(Place::names_others);
        if names_others || !self.coordinator.is_at_rest() {
            // Who waits in which order matters, and what is to come names them.
            let places = self.places.each_ref().map(|place| {
                let actor = place.actor.as_ref().map_or(0, |actor| actor.key);
                (actor, place.tongue, place.wire.key(), place.is_quiet)
            });
            return hashed(&(self.coordinator.key, places));
        }
        let mut at = 0..;
        let mut shapes = self.places.each_ref().map(|place| {
            let part = at.next().and_then(|at| self.part(at)).map_or(0, |part| part.shape);
            let actor = place.actor.as_ref().map_or(0, |actor| actor.shape.hash);
            (part, actor, place.wire.shape(), place.is_quiet)
        });
        shapes.sort_unstable();
        hashed(&(shapes, self.coordinator.shape()))
    }

    /// What can happen now.
    pub fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let free = (0..MEMBERS).find(|at| self.is_free(*at));
        events.extend(
            free.into_iter()
                .flat_map(|at| NEWCOMERS.map(|(it, topics)| Event::Join(at, it, topics))),
        );
        for (at, place) in self.places.iter().enumerate() {
            match &place.wire {
                Wire::Nothing => events.extend(place.actor.is_some().then_some(Event::Wait(at))),
                Wire::Request(_) => events.push(Event::Arrive(at)),
                Wire::Waiting(_) => {}
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
        let is_known = waiting > 1 || !self.coordinator.is_at_rest();
        events.extend(is_known.then_some(Event::Restart));
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
                let (successor, shift) = self.coordinator.successor();
                next.coordinator = Arc::new(successor);
                next.shift(shift, memory);
                for at in 0..MEMBERS {
                    if self.places[at].is_waiting() {
                        next.act(at, &Input::Break, memory);
                    }
                }
            }
            Event::Join(at, tongue, topics) => {
                next.places[at] = Place { tongue, ..Place::default() };
                next.settle(at, Actor::start(at, tongue, topics));
            }
            Event::Kill(at) => {
                // What it asked may still arrive.
                let place = &mut next.places[at];
                (place.actor, place.is_quiet) = (None, true);
                if let Wire::Answer(_) | Wire::Waiting(_) = place.wire {
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
        let is_there = |at: usize| match (&self.places[at].actor, self.part(at)) {
            (None, None) => matches!(self.places[at].wire, Wire::Nothing),
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
        };
        let is_whole = self.coordinator.is_whole() || self.coordinator.parts.is_empty();
        self.coordinator.is_at_rest() && is_whole && (0..MEMBERS).all(is_there)
    }

    fn check(&self) -> Result<(), String> {
        let actors = self.places.iter().filter_map(|place| place.actor.as_ref());
        match all_disjoint(actors.map(|actor| actor.owned)) {
            true => Ok(()),
            false => Err("a partition has two owners".into()),
        }
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
        if now.zip(actor.assigned_in()).is_some_and(|(now, before)| now < before) {
            return Err("a member was told of an epoch before that of its part".into());
        }
        self.settle(at, acted);
        Ok(())
    }

    fn arrive(&mut self, at: usize, memory: &mut Memory) -> Result<(), String> {
        let Wire::Request(asked) = core::mem::take(&mut self.places[at].wire) else {
            return Ok(());
        };
        if asked.is_nameless() && self.coordinator.remembers(ids_at(at)) {
            // Here it would be given its former name, which in truth nobody is given twice: it
            // ends instead, and another may come once that is forgotten.
            self.places[at].actor = None;
            self.places[at].is_quiet = true;
            return Ok(());
        }
        let answered = self.ask(Heard::new(at, Said::Asked(asked)), memory)?;
        if self.places[at].actor.is_some() {
            self.places[at].is_quiet = false;
            self.places[at].wire = Wire::Waiting(answered.token);
        }
        self.tell(&answered)
    }

    fn expire(&mut self, at: usize, memory: &mut Memory) -> Result<(), String> {
        let id = id(at, self.places[at].tongue);
        let answered = self.ask(Heard::new(at, Said::Gone(id)), memory)?;
        self.places[at].is_quiet = self.places[at].actor.is_none();
        self.tell(&answered)
    }

    fn ask(&mut self, heard: Heard, memory: &mut Memory) -> Result<Arc<Answered>, String> {
        let key = (self.coordinator.key, heard.key());
        let answered = match memory.answers.get(&key) {
            Some(answered) => Arc::clone(answered),
            None => {
                let answered = Arc::new(self.coordinator.answer(heard, &view())?);
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

    /// Answers are on their way to those who wait for them.
    fn tell(&mut self, answered: &Answered) -> Result<(), String> {
        for place in &mut self.places {
            let Wire::Waiting(token) = place.wire else { continue };
            match answered.replies.iter().find(|(answers, _)| *answers == token) {
                Some((_, told)) => place.wire = Wire::Answer(Arc::clone(told)),
                None if self.coordinator.is_at_rest() => return Err("nobody is answered".into()),
                None => {}
            }
        }
        Ok(())
    }

    /// Counts epochs anew, everywhere.
    fn shift(&mut self, by: i32, memory: &mut Memory) {
        for at in 0..MEMBERS {
            let wire = self.places[at].wire.shifted(by, memory);
            self.act(at, &Input::Shift(by), memory);
            self.places[at].wire = wire;
        }
    }

    fn may_expire(&self, at: usize) -> bool {
        self.places[at].is_quiet && self.coordinator.knows(at, ids_at(at))
    }

    fn is_free(&self, at: usize) -> bool {
        let place = &self.places[at];
        let is_idle = place.actor.is_none() && matches!(place.wire, Wire::Nothing);
        is_idle
            && !self.coordinator.knows(at, ids_at(at))
            && !self.coordinator.remembers(ids_at(at))
    }

    /// What the log says of whoever is at a place.
    fn part(&self, at: usize) -> Option<&Part> {
        ids_at(at).iter().find_map(|id| self.coordinator.parts.get(id))
    }
}

impl Place {
    fn names_others(&self) -> bool {
        let says = match &self.wire {
            Wire::Request(asked) => asked.shape.names_others,
            Wire::Answer(told) => told.shape.names_others,
            Wire::Nothing | Wire::Waiting(_) => false,
        };
        says || self.actor.as_ref().is_some_and(|actor| actor.shape.names_others)
    }

    fn is_waiting(&self) -> bool {
        self.actor.is_some() && !matches!(self.wire, Wire::Nothing)
    }
}

impl Wire {
    /// The same, had epochs been counted otherwise.
    fn shifted(&self, by: i32, memory: &mut Memory) -> Self {
        let key = match self {
            Self::Nothing | Self::Waiting(_) => return self.clone(),
            Self::Request(_) | Self::Answer(_) => (hashed(&self.key()), by),
        };
        let shifted = || match self {
            Self::Request(asked) => {
                let mut request = asked.request.clone();
                shift::request(&mut request, by);
                Self::Request(Arc::new(Asked::new(request, &asked.name)))
            }
            Self::Answer(told) => {
                let reply = shift::reply(told.reply.clone(), by);
                Self::Answer(Arc::new(Told::new(reply, &told.name)))
            }
            Self::Nothing | Self::Waiting(_) => self.clone(),
        };
        memory.moved.entry(key).or_insert_with(shifted).clone()
    }

    fn key(&self) -> (u8, u64) {
        match self {
            Self::Request(asked) => (1, asked.key),
            Self::Answer(told) => (2, told.key),
            other => other.shape(),
        }
    }

    fn shape(&self) -> (u8, u64) {
        match self {
            Self::Nothing => (0, 0),
            Self::Request(asked) => (1, asked.shape.hash),
            Self::Answer(told) => (2, told.shape.hash),
            Self::Waiting(token) => (3, *token as u64),
        }
    }
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

/// What a process at a place is called: by itself, or by the coordinator.
pub fn id(at: usize, tongue: Tongue) -> MemberId {
    ids_at(at)[tongue as usize].clone()
}

/// All names there are.
pub fn ids() -> impl Iterator<Item = &'static MemberId> {
    (0..MEMBERS).flat_map(ids_at)
}

/// Whatever a process at a place may be called.
fn ids_at(at: usize) -> &'static [MemberId; 2] {
    static IDS: OnceLock<[[MemberId; 2]; MEMBERS]> = OnceLock::new();
    let named = |at: usize| {
        let byte = format!("{at:02x}");
        let uuid = [4, 2, 2, 2, 6].map(|bytes| byte.repeat(bytes)).join("-");
        [MemberId::from(format!("{CLIENT}-{uuid}")), Actor::own_id(at)]
    };
    &IDS.get_or_init(|| core::array::from_fn(named))[at]
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
