//! The search itself: which state is looked at next, and which was.

use crate::shape::Map;
use crate::world::{Memory, State};
use std::collections::VecDeque;

/// Rounds after which everybody must have arrived.
const ROUNDS_MAX: u8 = 16;
/// States remembered at most, for the machine's sake: about 8 GB. Beyond, what comes of the ones in
/// sight is still looked at, but leads no further.
const STATES_MAX: usize = 16_000_000;

/// How far a search has come.
pub struct Search {
    start: State,
    /// States in sight, with the fewest troubles it takes to get there.
    seen: Map<u64, u8>,
    /// From how many states, nothing going wrong, everybody arrives after how many rounds.
    rounds: Map<u64, u8>,
    memory: Memory,
    /// By the troubles they took: states to look at, each with how it came to be, as numbers of
    /// [`State::events`].
    queues: Vec<VecDeque<(State, Vec<u8>)>>,
    /// States by the troubles it takes to get there.
    found: Vec<usize>,
    steps: u64,
    /// The fewest troubles of a state that was not remembered.
    lost: Option<usize>,
    is_whole: bool,
}

impl Search {
    /// A search through all that up to `troubles` events can lead to from a state.
    pub fn new(start: State, troubles: usize) -> Self {
        let mut queues = vec![VecDeque::new(); troubles + 1];
        queues[0].push_back((start.clone(), Vec::new()));
        Self {
            seen: [(start.key(), 0)].into_iter().collect(),
            start,
            rounds: Map::default(),
            memory: Memory::default(),
            queues,
            found: vec![0; troubles + 1],
            steps: 0,
            lost: None,
            is_whole: false,
        }
    }

    /// Looks on as long as it may; the first thing that is wrong, and how it comes to be.
    pub fn run(&mut self, may_go_on: impl Fn() -> bool) -> Result<(), String> {
        for troubles in 0..self.queues.len() {
            while let Some((state, path)) = self.queues[troubles].pop_front() {
                if self.seen.get(&state.key()) != Some(&(troubles as u8)) {
                    // It was looked at with fewer troubles meanwhile.
                    continue;
                }
                self.found[troubles] += 1;
                self.look_at(&state, &path, troubles)?;
                if self.states().is_multiple_of(CHECK_EVERY) && !may_go_on() {
                    return Ok(());
                }
            }
        }
        self.is_whole = self.lost.is_none();
        Ok(())
    }

    /// How many states were looked at.
    pub fn states(&self) -> usize {
        self.found.iter().sum()
    }

    /// What was looked at, in words.
    pub fn summary(&self) -> String {
        let longest = self.rounds.values().max().copied().unwrap_or_default();
        let waiting: usize = self.queues.iter().map(VecDeque::len).sum();
        let whole = self.queues.iter().take_while(|queue| queue.is_empty()).count();
        let whole = whole.min(self.lost.unwrap_or(whole));
        let rest = match (self.is_whole, whole) {
            (true, _) => String::from("all of them"),
            (false, 0) => format!("{waiting} more in sight"),
            (false, whole) => format!("all of up to {}, {waiting} more in sight", whole - 1),
        };
        format!(
            "{} states of 3 members, 2 topics, 3 partitions, by troubles {:?}, {rest}; {} steps; \
             everybody arrives within {longest} rounds",
            self.states(),
            self.found,
            self.steps,
        )
    }

    fn look_at(&mut self, state: &State, path: &[u8], troubles: usize) -> Result<(), String> {
        let start = self.start.clone();
        let told = |wrong: String| format!("{wrong}, after {:?}", retold(&start, path));
        self.arrive(state).map_err(told)?;
        for (number, event) in (0..).zip(state.events()) {
            let troubles = troubles + usize::from(event.is_trouble());
            if troubles >= self.queues.len() {
                continue;
            }
            self.steps += 1;
            let next = state.after(event, &mut self.memory);
            let next = next.map_err(|wrong| format!("{event:?}: {}", told(wrong)))?;
            let key = next.key();
            if self.seen.len() >= STATES_MAX && !self.seen.contains_key(&key) {
                self.lost = Some(self.lost.map_or(troubles, |lost| lost.min(troubles)));
                continue;
            }
            let fewest = self.seen.entry(key).or_insert(u8::MAX);
            if usize::from(*fewest) > troubles {
                *fewest = troubles as u8;
                let path = path.iter().copied().chain([number]).collect();
                self.queues[troubles].push_back((next, path));
            }
        }
        Ok(())
    }

    /// Convergence as an *always* property: what one round leads to is known, or looked at too.
    fn arrive(&mut self, state: &State) -> Result<(), String> {
        let mut on_the_way = Vec::new();
        let mut state = state.clone();
        let mut rounds = loop {
            let key = state.key();
            if let Some(rounds) = self.rounds.get(&key) {
                break *rounds;
            }
            if state.has_arrived() {
                self.rounds.insert(key, 0);
                break 0;
            }
            on_the_way.push(key);
            if on_the_way.len() > usize::from(ROUNDS_MAX) {
                return Err("somebody does not arrive".into());
            }
            self.steps += 1;
            state = state.round(&mut self.memory)?;
        };
        for key in on_the_way.into_iter().rev() {
            rounds += 1;
            self.rounds.insert(key, rounds);
        }
        match rounds > ROUNDS_MAX {
            true => Err("somebody arrives too late".into()),
            false => Ok(()),
        }
    }
}

/// The events of a path.
fn retold(start: &State, path: &[u8]) -> Vec<String> {
    let (mut state, mut memory) = (start.clone(), Memory::default());
    let mut events = Vec::new();
    for number in path {
        let event = state.events()[usize::from(*number)];
        events.push(format!("{event:?}"));
        match state.after(event, &mut memory) {
            Ok(next) => state = next,
            Err(_) => break,
        }
    }
    events
}

/// After so many states it is asked whether to go on.
const CHECK_EVERY: usize = 4096;
