//! Fetch sessions (KIP-227): the broker remembers a client's partitions, the client sends only
//! what changes, and the broker answers only what is new.
//!
//! The number of sessions and of partitions in each is bounded; who gets none, or lost it, sends
//! its whole list, as if sessions did not exist.

use super::plan::Found;
use crate::entropy;
use ottla_model::{Instant, LeaderEpoch, Offset, PartitionId, TopicId, TopicName};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All sessions of this broker.
#[derive(Debug)]
pub(crate) struct Sessions {
    slots: usize,
    open: Mutex<HashMap<i32, Arc<Mutex<Session>>>>,
}

/// A topic as the session's requests name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TopicKey {
    /// By name, below version 13.
    Name(TopicName),
    /// By id, from version 13 on.
    Id(TopicId),
}

/// One partition of a fetch.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Its topic.
    pub(crate) topic: TopicKey,
    /// Its index.
    pub(crate) partition: PartitionId,
    /// Where to read from.
    pub(crate) offset: Offset,
    /// The most to read.
    pub(crate) bytes_max: usize,
    /// The leader epoch the reader believes in; negative for none.
    pub(crate) leader_epoch: i32,
    /// The epoch of its last record, where it says.
    pub(crate) last_epoch: Option<LeaderEpoch>,
}

/// A fetch ready to be read: its partitions in order, and the session it belongs to.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The partitions.
    pub(crate) wanted: Vec<Wanted>,
    /// The session, if there is one.
    pub(crate) ticket: Option<Ticket>,
}

/// A fetch's hold on its session.
#[derive(Debug)]
pub(crate) struct Ticket {
    id: i32,
    /// Whether the answer leaves out what has not changed.
    incremental: bool,
    session: Arc<Mutex<Session>>,
}

/// Why a fetch of a session is refused; the client begins a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionError {
    /// There is no such session (any more), or it has no room for what the fetch adds.
    NotFound,
    /// A request was lost, repeated or overtaken.
    WrongEpoch,
    /// The session names topics by id and this request by name, or the other way round.
    OtherNaming,
}

#[derive(Debug)]
struct Session {
    next_epoch: i32,
    by_id: bool,
    used: Instant,
    /// In the order they are read: whoever had something goes to the end.
    entries: BTreeMap<u64, Entry>,
    places: HashMap<(TopicKey, PartitionId), u64>,
    next_place: u64,
}

#[derive(Debug)]
struct Entry {
    wanted: Wanted,
    /// Watermark and start as last told; `None` if never, or beside an error.
    told: Option<(Offset, Offset)>,
}

impl Sessions {
    /// At most `slots` sessions.
    pub(crate) fn new(slots: usize) -> Self {
        Self { slots, open: Mutex::default() }
    }

    /// Finds or makes the session of a fetch and applies what the fetch changes.
    ///
    /// # Errors
    /// The session is not there or the request does not fit it.
    pub(crate) fn open(
        &self,
        (id, epoch): (i32, i32),
        by_id: bool,
        wanted: Vec<Wanted>,
        forgotten: Vec<(TopicKey, PartitionId)>,
        now: Instant,
    ) -> Result<Opening, SessionError> {
        if epoch == FINAL_EPOCH || epoch == INITIAL_EPOCH {
            lock(&self.open).remove(&id);
            let ticket = (epoch == INITIAL_EPOCH).then(|| self.create(by_id, &wanted, now));
            return Ok(Opening { wanted, ticket: ticket.flatten() });
        }
        let session = lock(&self.open).get(&id).cloned().ok_or(SessionError::NotFound)?;
        let mut locked = lock(&session);
        if locked.next_epoch != epoch {
            return Err(SessionError::WrongEpoch);
        }
        if locked.by_id != by_id {
            return Err(SessionError::OtherNaming);
        }
        locked.next_epoch = if epoch == i32::MAX { INITIAL_EPOCH + 1 } else { epoch + 1 };
        locked.used = now;
        forgotten.into_iter().for_each(|at| locked.forget(&at));
        if !wanted.into_iter().all(|wanted| locked.want(wanted)) {
            // A partition left out in silence would never be read. Without its session the client
            // sends its whole list, however long.
            drop(locked);
            lock(&self.open).remove(&id);
            return Err(SessionError::NotFound);
        }
        let wanted = locked.entries.values().map(|entry| entry.wanted.clone()).collect();
        drop(locked);
        Ok(Opening { wanted, ticket: Some(Ticket { id, incremental: true, session }) })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        lock(&self.open).len()
    }

    fn create(&self, by_id: bool, wanted: &[Wanted], now: Instant) -> Option<Ticket> {
        if wanted.is_empty() {
            return None;
        }
        let mut session = Session {
            next_epoch: INITIAL_EPOCH + 1,
            by_id,
            used: now,
            entries: BTreeMap::new(),
            places: HashMap::new(),
            next_place: 0,
        };
        if !wanted.iter().all(|wanted| session.want(wanted.clone())) {
            return None;
        }
        let mut open = lock(&self.open);
        if open.len() >= self.slots && !evict(&mut open, now) {
            return None;
        }
        let id = fresh_id(&open);
        let session = Arc::new(Mutex::new(session));
        open.insert(id, Arc::clone(&session));
        Some(Ticket { id, incremental: false, session })
    }
}

impl Ticket {
    /// The session's id.
    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    /// Takes note of what is about to be answered, and says for each partition whether the answer
    /// needs to name it.
    pub(crate) fn note(&self, wanted: &[Wanted], found: &[Found]) -> Vec<bool> {
        let mut session = lock(&self.session);
        let both = wanted.iter().zip(found);
        both.map(|(wanted, found)| session.note(wanted, found) || !self.incremental).collect()
    }
}

impl Session {
    /// Adds or changes a partition; false where there is no room for another.
    #[must_use]
    fn want(&mut self, wanted: Wanted) -> bool {
        let at = (wanted.topic.clone(), wanted.partition);
        if let Some(entry) = self.places.get(&at).and_then(|place| self.entries.get_mut(place)) {
            entry.wanted = wanted;
            return true;
        }
        if self.entries.len() >= PARTITIONS_MAX {
            return false;
        }
        self.next_place += 1;
        self.places.insert(at, self.next_place);
        self.entries.insert(self.next_place, Entry { wanted, told: None });
        true
    }

    fn forget(&mut self, at: &(TopicKey, PartitionId)) {
        if let Some(place) = self.places.remove(at) {
            self.entries.remove(&place);
        }
    }

    /// Whether there is anything new to tell of the partition.
    fn note(&mut self, wanted: &Wanted, found: &Found) -> bool {
        let at = (wanted.topic.clone(), wanted.partition);
        let Some(place) = self.places.get_mut(&at) else { return true };
        let Some(entry) = self.entries.get_mut(place) else { return true };
        let tell = (found.high_watermark, found.start);
        let failed = found.code.is_error();
        let news = failed
            || found.diverging.is_some()
            || !found.records.is_empty()
            || entry.told != Some(tell);
        entry.told = (!failed).then_some(tell);
        if !found.records.is_empty()
            && let Some(entry) = self.entries.remove(place)
        {
            self.next_place += 1;
            *place = self.next_place;
            self.entries.insert(self.next_place, entry);
        }
        news
    }
}

/// Removes the session longest unused, if it was unused long enough.
fn evict(open: &mut HashMap<i32, Arc<Mutex<Session>>>, now: Instant) -> bool {
    let eldest = open.iter().map(|(id, session)| (lock(session).used, *id)).min();
    match eldest {
        Some((used, id)) if now.since(used) >= EVICT_AFTER => open.remove(&id).is_some(),
        _ => false,
    }
}

fn fresh_id(open: &HashMap<i32, Arc<Mutex<Session>>>) -> i32 {
    loop {
        let bits = entropy::bits();
        let id = i32::from_be_bytes([bits[0] & 0x7f, bits[1], bits[2], bits[3]]);
        if id != 0 && !open.contains_key(&id) {
            return id;
        }
    }
}

/// Sessions hold no invariant across statements that a panic could break for good: the worst is
/// that a client begins a new one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A full fetch that opens a session.
const INITIAL_EPOCH: i32 = 0;
/// A full fetch without a session; ends the one it names.
const FINAL_EPOCH: i32 = -1;
/// Partitions of one session.
const PARTITIONS_MAX: usize = 100_000;
/// As in Kafka: a session used within this time is not taken from its client.
const EVICT_AFTER: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests;
