//! The driver over a store whose answers get lost: what it says happened has happened, once.

use super::*;
use crate::cluster::tests::Rig;
use crate::command::{NewTopic, TakeProducerIds};
use crate::store::embedded::Embedded;
use crate::store::{Reply, Session, SessionId};
use pollster::block_on;
use proptest::prelude::*;
use redb::backends::InMemoryBackend;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

/// What becomes of one transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// It happens and is answered.
    Fine,
    /// It happens; the answer is lost.
    AnswerLost,
    /// It does not happen; nobody says so.
    QuestionLost,
    /// It arrives after the next one; nobody says so.
    Late,
    /// The engine cannot be reached.
    Refused,
}

/// A store that treats transactions by a script.
struct Flaky {
    inner: Embedded,
    script: Mutex<VecDeque<Fate>>,
    /// Reads that fail before one succeeds.
    unreadable: Mutex<usize>,
    late: Mutex<Option<Txn>>,
}

impl Flaky {
    fn new() -> Arc<Self> {
        let inner = Embedded::open_backend(InMemoryBackend::new()).unwrap();
        Arc::new(Self {
            inner,
            script: Mutex::default(),
            unreadable: Mutex::default(),
            late: Mutex::default(),
        })
    }

    fn follow(&self, script: impl IntoIterator<Item = Fate>) {
        self.script.lock().unwrap().extend(script);
    }
}

impl Store for Flaky {
    fn read(&self, prefix: &str) -> Reply<Result<Snapshot, StoreError>> {
        let mut unreadable = self.unreadable.lock().unwrap();
        if *unreadable > 0 {
            *unreadable -= 1;
            return Box::pin(std::future::ready(Err(StoreError::Unavailable("no route".into()))));
        }
        self.inner.read(prefix)
    }

    fn commit(&self, txn: Txn) -> Reply<Result<Outcome, StoreError>> {
        let fate = self.script.lock().unwrap().pop_front().unwrap_or(Fate::Fine);
        let unknown = || Ok(Outcome::Unknown("the line went dead".into()));
        let late = self.late.lock().unwrap().take();
        let reply: Reply<_> = match fate {
            Fate::Fine => self.inner.commit(txn),
            Fate::AnswerLost => {
                let done = self.inner.commit(txn);
                Box::pin(async move {
                    done.await?;
                    unknown()
                })
            }
            Fate::QuestionLost => Box::pin(std::future::ready(unknown())),
            Fate::Late => {
                *self.late.lock().unwrap() = Some(txn);
                Box::pin(std::future::ready(unknown()))
            }
            Fate::Refused => {
                let refusal = StoreError::Unavailable("no route".into());
                Box::pin(std::future::ready(Err(refusal)))
            }
        };
        // Asked after this one, so it also happens after it.
        drop(late.map(|late| self.inner.commit(late)));
        reply
    }

    fn watch(&self, prefix: &str, after: Revision) -> Box<dyn Watch> {
        self.inner.watch(prefix, after)
    }

    fn open_session(&self, ttl: Duration) -> Reply<Result<Session, StoreError>> {
        self.inner.open_session(ttl)
    }

    fn keep_alive(&self, session: SessionId) -> Reply<Result<Duration, StoreError>> {
        self.inner.keep_alive(session)
    }

    fn close_session(&self, session: SessionId) -> Reply<Result<(), StoreError>> {
        self.inner.close_session(session)
    }
}

/// Decision 7: an unknown outcome is a real answer, and it is found out, not guessed.
#[test]
fn a_lost_answer_is_found_to_have_happened() {
    let store = Flaky::new();
    let rig = Rig::start(store.clone());
    store.follow([Fate::AnswerLost]);
    let created = block_on(rig.cluster.create_topics(vec![NewTopic::named("t")], false)).unwrap();
    let id = created[0].as_ref().unwrap().id;
    assert_eq!(rig.cluster.image().topic("t").unwrap().id, id);
    rig.stop().unwrap();
}

/// A transaction that arrives after its successor must not happen any more.
#[test]
fn a_late_transaction_does_not_undo_its_successor() {
    let store = Flaky::new();
    let rig = Rig::start(store.clone());
    store.follow([Fate::Late]);
    let created = block_on(rig.cluster.create_topics(vec![NewTopic::named("t")], false)).unwrap();
    block_on(rig.cluster.create_topics(vec![NewTopic::named("u")], false)).unwrap();
    let image = rig.cluster.image();
    assert_eq!(image.topic("t").unwrap().id, created[0].as_ref().unwrap().id);
    assert_eq!(image.topic_count(), 2);
    rig.stop().unwrap();
}

#[test]
fn what_cannot_be_asked_has_not_happened() {
    let store = Flaky::new();
    let rig = Rig::start(store.clone());
    store.follow([Fate::Refused]);
    let refused = block_on(rig.cluster.submit(TakeProducerIds)).unwrap_err();
    assert!(matches!(refused, ChangeError::Unavailable(_)), "{refused}");
    assert_eq!(rig.cluster.image().producer_id_next(), 0);
    rig.stop().unwrap();
}

/// Issue 3: a store that cannot be asked for a while does not end the driver. What is not known
/// is said, and nothing is decided from an image that may be old.
#[test]
fn an_outage_passes() {
    for fate in [Fate::AnswerLost, Fate::QuestionLost] {
        let store = Flaky::new();
        let rig = Rig::start(store.clone());
        *store.unreadable.lock().unwrap() = 2;
        store.follow([fate]);
        let topics = |name: &str| vec![NewTopic::named(name)];
        let unknown = block_on(rig.cluster.create_topics(topics("t"), false)).unwrap_err();
        assert!(matches!(unknown, ChangeError::OutcomeUnknown(_)), "{unknown}");
        let later = block_on(rig.cluster.create_topics(topics("u"), false)).unwrap();
        assert!(later[0].is_ok());
        assert_eq!(rig.cluster.image().topic("t").is_some(), fate == Fate::AnswerLost);
        rig.stop().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever gets lost: blocks of producer ids never overlap, and topics that were answered as
    /// created are there under the id that was answered.
    #[test]
    fn nothing_happens_twice_whatever_gets_lost(
        script in prop::collection::vec(
            prop_oneof![
                3 => Just(Fate::Fine),
                1 => Just(Fate::AnswerLost),
                1 => Just(Fate::QuestionLost),
                1 => Just(Fate::Late),
                1 => Just(Fate::Refused),
            ],
            0..24,
        ),
    ) {
        let store = Flaky::new();
        let rig = Rig::start(store.clone());
        store.follow(script);
        let mut taken = 0;
        for n in 0..12 {
            if let Ok(block) = block_on(rig.cluster.submit(TakeProducerIds)) {
                prop_assert!(block.start >= taken, "{block:?} after {taken}");
                taken = block.end;
            }
            let topic = vec![NewTopic::named(format!("t{n}"))];
            if let Ok(created) = block_on(rig.cluster.create_topics(topic, false)) {
                let created = created[0].as_ref().unwrap();
                prop_assert_eq!(rig.cluster.image().topic(&created.name).unwrap().id, created.id);
            }
        }
        let image = rig.cluster.image();
        let snapshot = block_on(store.read("")).unwrap();
        let stored = Image::load(image.node(), image.registry().clone(), snapshot).unwrap();
        prop_assert_eq!(image.producer_id_next(), stored.producer_id_next());
        prop_assert!(image.topics().map(|t| t.id).eq(stored.topics().map(|t| t.id)));
        rig.stop().unwrap();
    }
}
