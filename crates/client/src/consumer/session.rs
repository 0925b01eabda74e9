//! A fetch session with one broker (KIP-227): only what changed since the last request is said.
//! Pure: what is wanted goes in, what to say comes out.

use ottla_model::{TopicId, TopicPartition};
use ottla_wire::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is asked of one partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wish {
    pub(super) topic_id: TopicId,
    pub(super) offset: i64,
    pub(super) leader_epoch: i32,
    pub(super) bytes_max: i32,
}

/// What is wanted of each partition.
pub(super) type Wishes = BTreeMap<Arc<TopicPartition>, Wish>;

/// What to say in the next request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    pub(super) session_id: i32,
    pub(super) epoch: i32,
    /// Partitions to name, with what is wanted.
    pub(super) named: Vec<(Arc<TopicPartition>, Wish)>,
    /// Partitions to take out of the session.
    pub(super) forgotten: Vec<(Arc<TopicPartition>, TopicId)>,
}

/// A session as both sides know it.
#[derive(Debug, Default)]
pub(super) struct Session {
    id: i32,
    /// The epoch of the next request; 0 begins a session.
    epoch: i32,
    known: Wishes,
}

impl Session {
    /// The next request, if this is what is wanted now.
    pub(super) fn plan(&mut self, wanted: &Wishes) -> Plan {
        // A topic that was made anew is another one, which a session cannot change to.
        let is_remade = |(partition, wish): (&Arc<TopicPartition>, &Wish)| {
            self.known.get(partition).is_some_and(|known| known.topic_id != wish.topic_id)
        };
        if wanted.iter().any(is_remade) {
            self.restart();
        }
        let is_full = self.epoch == 0;
        if is_full {
            self.known.clear();
        }
        let is_new = |(partition, wish): &(&Arc<TopicPartition>, &Wish)| {
            self.known.get(*partition) != Some(wish)
        };
        let named = wanted.iter().filter(is_new);
        let named = named.map(|(partition, wish)| (partition.clone(), *wish)).collect();
        let forgotten = self.known.iter().filter(|(partition, _)| !wanted.contains_key(*partition));
        let forgotten =
            forgotten.map(|(partition, wish)| (partition.clone(), wish.topic_id)).collect();
        self.known = wanted.clone();
        Plan { session_id: self.id, epoch: self.epoch, named, forgotten }
    }

    /// The broker answered: with this code for the whole, and this session.
    pub(super) fn answered(&mut self, code: ErrorCode, session_id: i32) {
        match code {
            ErrorCode::None if session_id == 0 => *self = Self::default(),
            ErrorCode::None => {
                self.id = session_id;
                // After the last epoch comes the first one of a session, not that which begins it.
                self.epoch = self.epoch.checked_add(1).unwrap_or(1);
            }
            // The broker has forgotten it.
            ErrorCode::FetchSessionIdNotFound => *self = Self::default(),
            _ => self.restart(),
        }
    }

    /// What the broker knows is not sure any more: the next request replaces the session.
    pub(super) fn restart(&mut self) {
        self.epoch = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wish(offset: i64) -> Wish {
        Wish { topic_id: TopicId([1; 16]), offset, leader_epoch: 0, bytes_max: 100 }
    }

    fn wishes(offsets: &[(i32, i64)]) -> Wishes {
        let entry = |(index, offset): &(i32, i64)| {
            (Arc::new(TopicPartition::new("t", *index)), wish(*offset))
        };
        offsets.iter().map(entry).collect()
    }

    #[test]
    fn only_changes_are_said_once_there_is_a_session() {
        let mut session = Session::default();
        let first = session.plan(&wishes(&[(0, 5), (1, 6)]));
        assert_eq!((first.session_id, first.epoch, first.named.len()), (0, 0, 2));
        session.answered(ErrorCode::None, 77);
        let second = session.plan(&wishes(&[(0, 9), (1, 6)]));
        assert_eq!((second.session_id, second.epoch), (77, 1));
        assert_eq!(second.named, [(Arc::new(TopicPartition::new("t", 0)), wish(9))]);
        session.answered(ErrorCode::None, 77);
        let third = session.plan(&wishes(&[(1, 6)]));
        assert_eq!((third.epoch, third.named.len(), third.forgotten.len()), (2, 0, 1));
    }

    #[test]
    fn a_session_that_is_lost_begins_anew_with_everything() {
        let mut session = Session::default();
        session.plan(&wishes(&[(0, 5)]));
        session.answered(ErrorCode::None, 77);
        session.plan(&wishes(&[(0, 5)]));
        session.answered(ErrorCode::FetchSessionIdNotFound, 0);
        let anew = session.plan(&wishes(&[(0, 5)]));
        assert_eq!((anew.session_id, anew.epoch, anew.named.len()), (0, 0, 1));
        session.answered(ErrorCode::None, 78);
        session.restart();
        let replaced = session.plan(&wishes(&[(0, 5)]));
        assert_eq!((replaced.session_id, replaced.epoch, replaced.named.len()), (78, 0, 1));
    }

    #[test]
    fn a_topic_made_anew_makes_the_session_anew() {
        let mut session = Session::default();
        session.plan(&wishes(&[(0, 5)]));
        session.answered(ErrorCode::None, 77);
        let mut other = wishes(&[(0, 0)]);
        other.values_mut().for_each(|wish| wish.topic_id = TopicId([2; 16]));
        assert_eq!(session.plan(&other).epoch, 0);
    }

    proptest! {
        /// KIP-227: whatever is wanted in whatever order, and however sessions are lost, the
        /// broker's side of the session is what is wanted.
        #[test]
        fn the_broker_always_knows_what_is_wanted(
            steps in prop::collection::vec(
                (prop::collection::btree_map(0..6_i32, 0..4_i64, 0..6), 0..4_u8), 1..30),
        ) {
            let (mut session, mut broker) = (Session::default(), Wishes::new());
            for (offsets, fate) in steps {
                let wanted = wishes(&offsets.into_iter().collect::<Vec<_>>());
                let plan = session.plan(&wanted);
                if plan.epoch == 0 {
                    broker.clear();
                }
                broker.retain(|partition, _| {
                    !plan.forgotten.iter().any(|(forgotten, _)| forgotten == partition)
                });
                broker.extend(plan.named);
                prop_assert_eq!(&broker, &wanted);
                match fate {
                    0 => session.answered(ErrorCode::FetchSessionIdNotFound, 0),
                    1 => session.restart(),
                    _ => session.answered(ErrorCode::None, 5),
                }
            }
        }
    }
}
