//! Groups that commit rising offsets, and read them back: never absent, never older than acked.

use super::client::{Call, Response};
use super::machine::Run;
use super::topics::CHURN;
use super::{Counts, PARTITIONS, STEADY};
use ottla_storage::fs::sim::Rng;
use ottla_wire::generated::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use ottla_wire::generated::offset_fetch_request::OffsetFetchRequestTopic;
use ottla_wire::generated::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
};

/// One group.
pub(super) struct Group {
    name: String,
    steady: Ledger,
    /// Of the topic that comes and goes; it begins anew with each life of it.
    churn: Ledger,
    life: i64,
    commit: Option<(Target, i64, Call)>,
    reads: Vec<(Promise, Call)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Steady,
    Churn,
}

/// The highest offset sent and the highest acked.
#[derive(Clone, Copy, Default)]
struct Ledger {
    sent: i64,
    acked: i64,
}

/// What was acked when a read was sent: its answer may not be older.
#[derive(Clone, Copy)]
struct Promise {
    steady: i64,
    churn: i64,
    life: i64,
}

impl Group {
    /// A group that has committed nothing.
    pub(super) fn new(number: usize) -> Self {
        Self {
            name: format!("group-{number}"),
            steady: Ledger::default(),
            churn: Ledger::default(),
            life: 0,
            commit: None,
            reads: Vec::new(),
        }
    }

    /// Commits a higher offset, unless the last commit is on its way still.
    pub(super) fn commit(&mut self, run: &Run, rng: &mut Rng) {
        if self.commit.is_some() {
            return;
        }
        let target = if self.life > 0 && rng.chance(30) { Target::Churn } else { Target::Steady };
        let ledger = self.ledger(target);
        let offset = ledger.sent + 1 + rng.below(4) as i64;
        ledger.sent = offset;
        // All partitions, with the same offset: a commit is all or nothing.
        let (topic, partitions) = match target {
            Target::Steady => (STEADY, PARTITIONS),
            Target::Churn => (CHURN, 1),
        };
        let partitions = (0..partitions).map(|partition_index| OffsetCommitRequestPartition {
            partition_index,
            committed_offset: offset,
            ..Default::default()
        });
        let topic = OffsetCommitRequestTopic {
            name: topic,
            partitions: partitions.collect(),
            ..Default::default()
        };
        let request =
            OffsetCommitRequest { group_id: &self.name, topics: vec![topic], ..Default::default() };
        self.commit = Some((target, offset, run.call(8, &request)));
    }

    /// Asks what is committed.
    pub(super) fn read(&mut self, run: &Run) {
        let promise =
            Promise { steady: self.steady.acked, churn: self.churn.acked, life: self.life };
        self.reads.push((promise, self.ask(run)));
    }

    /// Takes the answers that are there. `life` is the one that the topic is in that comes and
    /// goes, if it is there for sure.
    pub(super) async fn collect(&mut self, run: &Run, life: Option<i64>, counts: &mut Counts) {
        self.turn(life);
        if let Some((target, offset, call)) = self.commit.take_if(|(.., call)| call.is_done())
            && let Some(response) = run.take(call).await
        {
            let response: OffsetCommitResponse<'_> = response.read();
            let parts = response.topics.iter().flat_map(|topic| &topic.partitions);
            let codes: Vec<i16> = parts.map(|part| part.error_code).collect();
            match codes[0] {
                0 => {
                    assert!(codes.iter().all(|code| *code == 0), "{}: {codes:?}", self.name);
                    let ledger = self.ledger(target);
                    ledger.acked = offset;
                    counts.note(match target {
                        Target::Steady => "commits acked",
                        Target::Churn => "commits acked of a topic that goes",
                    });
                }
                3 if target == Target::Churn => counts.note("commits refused of a topic that goes"),
                code => self.refused(code),
            }
        }
        for at in (0..self.reads.len()).rev() {
            if self.reads[at].1.is_done() {
                let (promise, call) = self.reads.swap_remove(at);
                let Some(response) = run.take(call).await else { continue };
                if self.judge(promise, &response) {
                    counts.note("commits read");
                }
            }
        }
    }

    /// The connection broke.
    pub(super) fn lose_answers(&mut self) {
        self.commit = None;
        self.reads.clear();
    }

    /// Asks what is committed, again while nobody says.
    pub(super) async fn check(&mut self, run: &Run, life: Option<i64>) {
        self.turn(life);
        let promise =
            Promise { steady: self.steady.acked, churn: self.churn.acked, life: self.life };
        for _ in 0..ASKS {
            let Some(response) = run.wait(self.ask(run)).await else { return };
            if self.judge(promise, &response) {
                return;
            }
        }
    }

    /// Another life of the topic that comes and goes: what was committed for it is gone.
    fn turn(&mut self, life: Option<i64>) {
        let life = life.unwrap_or(0);
        if self.life != life {
            self.life = life;
            self.churn = Ledger { sent: life * LIFE, acked: 0 };
            if self.commit.as_ref().is_some_and(|(target, ..)| *target == Target::Churn) {
                self.commit = None;
            }
        }
    }

    fn ledger(&mut self, target: Target) -> &mut Ledger {
        match target {
            Target::Steady => &mut self.steady,
            Target::Churn => &mut self.churn,
        }
    }

    fn ask(&self, run: &Run) -> Call {
        let topic = |name, partitions: i32| OffsetFetchRequestTopic {
            name,
            partition_indexes: (0..partitions).collect(),
        };
        let topics = Some(vec![topic(STEADY, PARTITIONS), topic(CHURN, 1)]);
        let request = OffsetFetchRequest { group_id: &self.name, topics, ..Default::default() };
        run.call(7, &request)
    }

    /// Holds an answer against what was promised. False if it was a refusal.
    fn judge(&self, promise: Promise, response: &Response) -> bool {
        let response: OffsetFetchResponse<'_> = response.read();
        if response.error_code != 0 {
            self.refused(response.error_code);
            return false;
        }
        let name = &self.name;
        let of = |topic: &str| -> Vec<i64> {
            let found = response.topics.iter().filter(|found| found.name == topic);
            found.flat_map(|found| &found.partitions).map(|part| part.committed_offset).collect()
        };
        let steady = of(STEADY);
        assert!(steady.windows(2).all(|pair| pair[0] == pair[1]), "{name}: {steady:?} is torn");
        for offset in steady {
            let (acked, sent) = (promise.steady, self.steady.sent);
            let right = if offset < 0 { acked == 0 } else { (acked..=sent).contains(&offset) };
            assert!(right, "{name}: {offset} committed, {acked} acked, {sent} sent");
        }
        // Of a topic that may be gone, or another one by now, nothing is promised.
        if promise.life > 0 && promise.life == self.life {
            for offset in of(CHURN) {
                let (acked, sent) = (promise.churn, self.churn.sent);
                let least = acked.max(promise.life * LIFE);
                let right = if offset < 0 { acked == 0 } else { (least..=sent).contains(&offset) };
                assert!(right, "{name}, {CHURN}: {offset} committed, {acked} acked, {sent} sent");
            }
        }
        true
    }

    /// Only what a broker that restarts, or has a bad disk, may say is no violation.
    fn refused(&self, code: i16) {
        assert!([14, 15, 16, 56].contains(&code), "{}: error {code}", self.name);
    }
}

/// A shard whose log has failed is read again after a while.
const ASKS: usize = 100;
/// Offsets of one life of the topic that comes and goes begin here times its number.
const LIFE: i64 = 1_000_000;
