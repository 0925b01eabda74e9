//! The consumer protocol (KIP-848) with real clients: the server assigns, each member moves by
//! itself. A broker of its own is started for each client, because it is restarted.

use super::clients::Client;
use super::group::{Group, PARTITIONS, View};
use super::ledger::Promise;
use super::report::{Report, Step};
use super::scenario::{Run, Setting};
use crate::kafka::broker::{Broker, Kind};
use crate::kafka::java_class;
use crate::kafka::process::Call;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
/// Members that die are missed as soon as in the rest of the matrix.
const SETTINGS: &[&str] =
    &["group.consumer.session.timeout.ms=6000", "group.consumer.heartbeat.interval.ms=500"];
/// By which Kafka allows them.
const KAFKA_SETTINGS: &[&str] =
    &["group.consumer.min.session.timeout.ms=1000", "group.consumer.min.heartbeat.interval.ms=100"];
/// Partitions of the topic after it has grown.
const GROWN: usize = PARTITIONS as usize + 2;

/// Takes a client through the steps of the consumer protocol.
pub fn run(client: &Client, setting: &Setting, report: &mut Report) {
    let folder = setting.logs.join(format!("{}-broker", client.name));
    let settings = settings(setting.kind);
    let mut broker = None;
    let started = report.step(Step::Other("a broker"), || {
        broker = Some(Broker::start_with(setting.kind, &folder, &settings)?);
        Ok(())
    });
    let Some(broker) = broker.filter(|_| started) else { return };
    let own = Setting {
        bootstrap: broker.bootstrap.clone(),
        kind: setting.kind,
        records: setting.records,
        logs: setting.logs.clone(),
    };
    let mut run = Run::new(client, &own);
    run.arguments = ["--protocol", "consumer"].map(str::to_owned).to_vec();
    steps(client, &mut run, broker, report);
}

/// What a broker of this kind is started with.
pub(super) fn settings(kind: Kind) -> Vec<&'static str> {
    let allowed = if kind == Kind::Kafka { KAFKA_SETTINGS } else { &[] };
    [SETTINGS, allowed].concat()
}

fn steps(client: &Client, run: &mut Run<'_>, broker: Broker, report: &mut Report) {
    let mut group = run.group("main");
    let passed = report.step(Step::Other("two share a topic"), || {
        run.create_topic()?;
        run.two_join(&mut group)?;
        run.produce("none", run.burst())?;
        run.all_is_read(&group, Promise::ExactlyOnce)
    }) && report.step(Step::Other("a third joins"), || run.third_joins(&mut group))
        && report.step(Step::Other("one is killed"), || run.one_is_killed(&mut group))
        && report.step(Step::Other("one falls silent and comes back"), || {
            one_is_silent(run, &mut group)
        })
        && report.step(Step::Other("one leaves"), || run.one_leaves(&mut group))
        && report.step(Step::Other("a new one resumes"), || run.new_one_resumes(&mut group));
    drop(group);
    if !passed {
        return;
    }
    let step = Step::Other("a static member restarts");
    report.step_if(step, client.is_static, || run.static_member_returns());
    report.step(Step::Other("a pattern finds a topic that is created"), || pattern(run));
    report.step(Step::Other("a topic grows"), || growth(run, &broker));
    report.step(Step::Other("a group goes over to the protocol and back"), || migration(run));
    report.step(Step::Other("the broker restarts, nobody moves"), || restart(run, broker));
}

/// The second member stops for longer than its session: the third has everything until it is back,
/// which it is as soon as it learns that it was fenced.
fn one_is_silent(run: &mut Run<'_>, group: &mut Group<'_>) -> Result<(), String> {
    run.rebalance_under_load(group, Promise::AtLeastOnce, |group| group.signal(1, "STOP"))?;
    group.signal(1, "CONT")?;
    group.wait("the one that was silent is back", View::is_shared_evenly)?;
    run.produce("none", run.burst())?;
    run.all_is_read(group, Promise::AtLeastOnce)
}

/// Two members subscribe to a pattern that nothing matches yet; then there is a topic.
fn pattern(run: &mut Run<'_>) -> Result<(), String> {
    new_topic(run, "pattern");
    let mut group = run.group("pattern");
    let pattern = format!("^{}.*", run.topic);
    let arguments = ["--pattern", pattern.as_str()];
    group.start(&arguments)?;
    group.start(&arguments)?;
    run.create_topic()?;
    group.wait("the topic was found", View::is_shared_evenly)?;
    run.produce("none", run.burst())?;
    run.all_is_read(&group, Promise::ExactlyOnce)
}

/// Classic members give way to consumer ones, one by one, while records come; then the other way
/// round (KIP-848, "Online Migration").
fn migration(run: &mut Run<'_>) -> Result<(), String> {
    new_topic(run, "migration");
    run.create_topic()?;
    let arguments = std::mem::take(&mut run.arguments);
    let outcome = migrate(run);
    run.arguments = arguments;
    outcome
}

fn migrate(run: &mut Run<'_>) -> Result<(), String> {
    let classic = [].as_slice();
    let consumer = ["--protocol", "consumer"].as_slice();
    let mut group = run.group("migration");
    group.start(classic)?;
    group.start(classic)?;
    group.wait("two members share the partitions", View::is_shared_evenly)?;
    run.produce("none", run.burst())?;
    run.all_is_read(&group, Promise::AtLeastOnce)?;
    // The first of each protocol turns or joins the group, the last to leave turns it.
    for (leaver, protocol) in [(0, consumer), (1, consumer), (2, classic), (3, classic)] {
        let joins = |group: &mut Group<'_>| group.start(protocol).map(drop);
        run.rebalance_under_load(&mut group, Promise::AtLeastOnce, joins)?;
        run.rebalance_under_load(&mut group, Promise::AtLeastOnce, |group| group.leave(leaver))?;
    }
    group.leave(4)?;
    group.leave(5)
}

fn growth(run: &mut Run<'_>, broker: &Broker) -> Result<(), String> {
    new_topic(run, "growing");
    run.create_topic()?;
    let mut group = run.group("growing");
    run.two_join(&mut group)?;
    let mut command = java_class("org.apache.kafka.tools.TopicCommand")?;
    command.args(["--bootstrap-server", &broker.bootstrap, "--alter", "--topic", &run.topic]);
    command.args(["--partitions", &GROWN.to_string()]);
    let log = broker.data.with_file_name("growth.log");
    Call::start(command, &log, "")?.wait(TIMEOUT)?;
    group.wait("the new partitions are shared", |view| view.share(GROWN))?;
    run.produce("none", run.burst())?;
    run.all_is_read(&group, Promise::ExactlyOnce)
}

/// The broker restarts under a group: every member goes on with what it has.
fn restart(run: &mut Run<'_>, broker: Broker) -> Result<(), String> {
    new_topic(run, "restart");
    run.create_topic()?;
    let mut group = run.group("restart");
    run.two_join(&mut group)?;
    run.produce("none", run.burst())?;
    run.all_is_read(&group, Promise::ExactlyOnce)?;
    let changes = |group: &Group<'_>| -> Vec<usize> {
        group.view().members.iter().map(|member| member.changes).collect()
    };
    let before = changes(&group);
    let broker = broker.restart()?;
    run.produce("none", run.burst())?;
    run.all_is_read(&group, Promise::ExactlyOnce)?;
    let after = changes(&group);
    if before != after {
        return Err(format!("partitions changed {before:?} times before, {after:?} after"));
    }
    group.leave(0)?;
    group.leave(1)?;
    broker.stop().map(drop)
}

fn new_topic(run: &mut Run<'_>, name: &str) {
    run.topic = format!("{name}-{}", run.topic);
    run.produced.clear();
}
