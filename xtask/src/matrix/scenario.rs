//! What every client must do, step by step, each against the broker under test.

use super::clients::{CODECS, Client};
use super::group::{Group, PARTITIONS, Place, View};
use super::ledger::{KEYS, Promise};
use super::report::{Report, Step};
use crate::kafka::broker::Kind;
use crate::kafka::process::Call;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long one producer or admin call may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);

/// What the runs of all clients share.
pub struct Setting {
    pub bootstrap: String,
    pub kind: Kind,
    /// Records produced with each codec.
    pub records: u64,
    pub logs: PathBuf,
}

/// Runs every step with one client; later steps are not run when an earlier one leaves no ground.
pub fn run(client: &Client, setting: &Setting, report: &mut Report) {
    let mut run = Run::new(client, setting);
    let mut group = run.group("main");
    let mut ground = report.step(Step::Create, || run.create_topic());
    ground = ground && report.step(Step::Join, || run.two_join(&mut group));
    for codec in CODECS {
        ground = ground && run.codec(codec, &mut group, report);
    }
    report.note(Step::Idempotent, client.idempotent);
    ground = ground && report.step(Step::Third, || run.third_joins(&mut group));
    ground = ground && report.step(Step::Kill, || run.one_is_killed(&mut group));
    ground = ground && report.step(Step::Leave, || run.one_leaves(&mut group));
    ground = ground && report.step(Step::Resume, || run.new_one_resumes(&mut group));
    drop(group);
    if ground {
        report.step_if(Step::Static, client.is_static, || run.static_member_returns());
        report.step_if(Step::Cooperative, client.is_cooperative, || run.cooperative_join());
    }
    report.note(Step::ExactHandover, client.exact_handover);
}

/// One client on its way through the steps of a scenario.
pub(super) struct Run<'a> {
    client: &'a Client,
    setting: &'a Setting,
    pub(super) topic: String,
    /// Numbers of the records that were produced whole.
    pub(super) produced: Vec<Range<u64>>,
    next: u64,
    calls: usize,
    /// What every member is started with besides.
    pub(super) arguments: Vec<String>,
}

impl<'a> Run<'a> {
    /// At its beginning.
    pub(super) fn new(client: &'a Client, setting: &'a Setting) -> Self {
        Self {
            client,
            setting,
            topic: format!("matrix-{}", client.name),
            produced: Vec::new(),
            next: 0,
            calls: 0,
            arguments: Vec::new(),
        }
    }

    pub(super) fn create_topic(&mut self) -> Result<(), String> {
        let partitions = PARTITIONS.to_string();
        self.call(&["create-topic", "--partitions", &partitions])?.wait(TIMEOUT).map(drop)
    }

    /// Two members share an empty topic, so that both will read what comes.
    pub(super) fn two_join(&mut self, group: &mut Group) -> Result<(), String> {
        group.start(&[])?;
        group.start(&[])?;
        group.wait("two members share the partitions", View::is_shared_evenly)
    }

    /// Tells whether the group still reads; a codec that cannot be produced leaves it sound.
    fn codec(&mut self, codec: &'static str, group: &mut Group, report: &mut Report) -> bool {
        let step = Step::Codec(codec);
        if let Some((_, reason)) = self.client.lacks.iter().find(|(name, _)| *name == codec) {
            report.note(step, Err(*reason));
            return true;
        }
        let mut sound = true;
        report.step(step, || {
            self.produce(codec, self.setting.records)?;
            let read = self.all_is_read(group, Promise::ExactlyOnce);
            sound = read.is_ok();
            read
        });
        sound
    }

    pub(super) fn third_joins(&mut self, group: &mut Group) -> Result<(), String> {
        self.rebalance_under_load(group, self.handover(), |group| group.start(&[]).map(drop))
    }

    /// The first member dies in the middle of what it reads.
    pub(super) fn one_is_killed(&mut self, group: &mut Group) -> Result<(), String> {
        self.rebalance_under_load(group, Promise::AtLeastOnce, |group| {
            group.kill(0)?;
            group.view().ledger.raise_floors();
            Ok(())
        })
    }

    pub(super) fn one_leaves(&mut self, group: &mut Group) -> Result<(), String> {
        self.rebalance_under_load(group, self.handover(), |group| group.leave(1))
    }

    /// With nobody in the group, records are produced; a new member reads those and no other.
    pub(super) fn new_one_resumes(&mut self, group: &mut Group) -> Result<(), String> {
        group.leave(2)?;
        group.view().ledger.raise_floors();
        let duplicates = group.view().ledger.duplicates();
        self.produce("none", self.burst())?;
        group.start(&[])?;
        self.read_since(group, Promise::ExactlyOnce, duplicates)?;
        group.leave(3)
    }

    /// Two static members read everything from the start; one restarts within its session, gets
    /// its partitions back, and the other notices nothing.
    pub(super) fn static_member_returns(&mut self) -> Result<(), String> {
        let mut group = self.group("static");
        group.start(&["--instance-id", "one"])?;
        group.start(&["--instance-id", "two"])?;
        group.wait("two static members share the partitions", View::is_shared_evenly)?;
        self.all_is_read(&group, self.handover())?;
        let before = group.view().members[0].owned.clone();
        let changes = group.view().members[1].changes;
        group.leave(0)?;
        group.start(&["--instance-id", "one"])?;
        group.wait("the static member has partitions", |view| !view.members[2].owned.is_empty())?;
        self.produce("none", self.burst())?;
        self.all_is_read(&group, Promise::ExactlyOnce)?;
        let view = group.view();
        if view.members[2].owned != before {
            return Err(format!("had {before:?}, came back to {:?}", view.members[2].owned));
        }
        if view.members[1].changes != changes {
            return Err("the other member saw a rebalance".into());
        }
        Ok(())
    }

    /// A second member joins: the first gives up what moves and keeps the rest all along.
    fn cooperative_join(&mut self) -> Result<(), String> {
        self.topic = format!("{}-cooperative", self.topic);
        self.produced.clear();
        self.create_topic()?;
        let mut group = self.group("cooperative");
        let assignor = ["--assignor", "cooperative-sticky"];
        group.start(&assignor)?;
        group.wait("one member has all partitions", View::is_shared_evenly)?;
        let promise = Promise::ExactlyOnce;
        self.rebalance_under_load(&mut group, promise, |group| group.start(&assignor).map(drop))?;
        let revoked = group.view().members[0].revoked;
        let moved = PARTITIONS as usize / 2;
        if revoked != moved {
            return Err(format!("{revoked} partitions were revoked where {moved} had to move"));
        }
        self.rebalance_under_load(&mut group, promise, |group| group.leave(1))
    }

    /// Produces while `change` happens to the group and until it has settled again.
    pub(super) fn rebalance_under_load(
        &mut self,
        group: &mut Group,
        promise: Promise,
        change: impl FnOnce(&mut Group) -> Result<(), String>,
    ) -> Result<(), String> {
        let duplicates = group.view().ledger.duplicates();
        group.view().ledger.raise_floors();
        let reads = group.view().reads();
        let (call, numbers) = self.produce_call("none", self.setting.records / 4)?;
        group.wait("somebody reads", |view| view.reads() > reads)?;
        change(group)?;
        call.wait(TIMEOUT)?;
        self.produced.push(numbers);
        let deadline = Instant::now() + TIMEOUT;
        while !group.view().is_shared_evenly() && Instant::now() < deadline {
            self.produce("none", self.burst())?;
        }
        group.wait("the partitions are shared again", View::is_shared_evenly)?;
        self.produce("none", self.burst())?;
        self.read_since(group, promise, duplicates)
    }

    pub(super) fn all_is_read(&self, group: &Group, promise: Promise) -> Result<(), String> {
        self.read_since(group, promise, 0)
    }

    /// Waits until all that was produced is read and committed, then judges how.
    pub(super) fn read_since(
        &self,
        group: &Group,
        promise: Promise,
        before: usize,
    ) -> Result<(), String> {
        let produced = &self.produced;
        let unread = |view: &View| produced.iter().map(|n| view.ledger.missing(n)).sum::<usize>();
        let read = group.wait("everything is read", |view| unread(view) == 0);
        if let Err(error) = read {
            let problem = group.view().ledger.verdict(promise, before).err().unwrap_or_default();
            return Err(format!("{} records unread; {problem} {error}", unread(&group.view())));
        }
        group.wait("what was read is committed", |view| view.ledger.is_committed())?;
        let verdict = group.view().ledger.verdict(promise, before);
        verdict.map_err(|problem| problem + &group.complaints())
    }

    /// What to demand of a rebalance in which nobody dies.
    fn handover(&self) -> Promise {
        let is_exact = self.client.exact_handover.is_ok();
        if is_exact { Promise::ExactlyOnce } else { Promise::AtLeastOnce }
    }

    pub(super) fn burst(&self) -> u64 {
        (self.setting.records / 40).max(KEYS)
    }

    pub(super) fn produce(&mut self, codec: &str, records: u64) -> Result<(), String> {
        let (call, numbers) = self.produce_call(codec, records)?;
        call.wait(TIMEOUT)?;
        self.produced.push(numbers);
        Ok(())
    }

    pub(super) fn produce_call(
        &mut self,
        codec: &str,
        records: u64,
    ) -> Result<(Call, Range<u64>), String> {
        let numbers = self.next..self.next + records;
        self.next = numbers.end;
        let first = numbers.start.to_string();
        let (records, keys) = (records.to_string(), KEYS.to_string());
        let idempotent = self.client.idempotent.is_ok().to_string();
        let call = self.call(&[
            "produce",
            "--first",
            &first,
            "--records",
            &records,
            "--keys",
            &keys,
            "--codec",
            codec,
            "--idempotent",
            &idempotent,
        ])?;
        Ok((call, numbers))
    }

    /// Starts one of the client's short commands on the topic.
    fn call(&mut self, arguments: &[&str]) -> Result<Call, String> {
        let mut command = self.client.command();
        command.args(arguments);
        command.args(["--bootstrap", &self.setting.bootstrap, "--topic", &self.topic]);
        self.calls += 1;
        let name = format!("{}-{:02}-{}.log", self.client.name, self.calls, arguments[0]);
        Call::start(command, &self.setting.logs.join(name), "")
    }

    pub(super) fn bootstrap(&self) -> &str {
        &self.setting.bootstrap
    }

    pub(super) fn group(&self, name: &str) -> Group<'a> {
        let place = Place {
            bootstrap: self.setting.bootstrap.clone(),
            topic: self.topic.clone(),
            group: format!("matrix-{}-{name}", self.client.name),
            logs: self.setting.logs.clone(),
            arguments: self.arguments.clone(),
        };
        Group::new(self.client, place)
    }
}
