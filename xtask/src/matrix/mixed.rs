//! Groups of different clients: ours together with Java's and librdkafka's, each of them leader in
//! its turn, and ours together with Java's in the consumer protocol. Members join and leave under
//! load, and every record is read once.

use super::clients::Client;
use super::consumer::settings;
use super::group::{Group, View};
use super::ledger::Promise;
use super::named;
use super::report::{Report, Step};
use super::scenario::{Run, Setting};
use crate::Outcome;
use crate::kafka::broker::{Broker, Kind};
use crate::kafka::install::Missing;
use crate::shell::root;

/// Records of a burst and more come during each change.
const RECORDS: u64 = 2000;

/// One group: who joins, in this order, and with what. The first to join leads a classic group,
/// and the second once that has left.
struct Mix {
    title: &'static str,
    members: [&'static str; 3],
    arguments: &'static [&'static str],
}

const RANGE: &[&str] = &["--assignor", "range"];
const STICKY: &[&str] = &["--assignor", "cooperative-sticky"];
const CONSUMER: &[&str] = &["--protocol", "consumer"];

const MIXES: &[Mix] = &[
    mix("range: ottla leads, then java", ["ottla", "java-4.4", "librdkafka"], RANGE),
    mix("range: java leads, then librdkafka", ["java-4.4", "librdkafka", "ottla"], RANGE),
    mix("range: librdkafka leads, then ottla", ["librdkafka", "ottla", "java-4.4"], RANGE),
    mix("cooperative-sticky: ottla leads, then java", ["ottla", "java-4.4", "librdkafka"], STICKY),
    mix(
        "cooperative-sticky: java leads, then librdkafka",
        ["java-4.4", "librdkafka", "ottla"],
        STICKY,
    ),
    mix(
        "cooperative-sticky: librdkafka leads, then ottla",
        ["librdkafka", "ottla", "java-4.4"],
        STICKY,
    ),
    mix("consumer protocol: ottla, java, ottla", ["ottla", "java-4.4", "ottla"], CONSUMER),
    mix("consumer protocol: java, ottla, java", ["java-4.4", "ottla", "java-4.4"], CONSUMER),
];

const fn mix(
    title: &'static str,
    members: [&'static str; 3],
    arguments: &'static [&'static str],
) -> Mix {
    Mix { title, members, arguments }
}

/// Takes every mix through its changes on a broker of this kind.
pub fn run(kind: Kind) -> Outcome {
    for client in ["ottla", "java-4.4", "librdkafka"] {
        let installed = named(client)?.install();
        if let Err(Missing::Toolchain(why) | Missing::Broken(why)) = installed {
            return Err(why);
        }
    }
    let folder = root().join("target/matrix");
    let broker = Broker::start_with(kind, &folder.join("mixed"), &settings(kind))?;
    println!("mixed groups at {kind:?}, {RECORDS} records each; log {}", broker.log().display());
    let logs = folder.join("logs");
    let setting = Setting { bootstrap: broker.bootstrap.clone(), kind, records: RECORDS, logs };
    let mut report = Report::new("mixed");
    for mix in MIXES {
        report.step(Step::Other(mix.title), || changes(mix, &setting));
    }
    broker.stop()?;
    match report.is_failure() {
        true => Err(super::report::table(&[report])),
        false => Ok(()),
    }
}

/// Three join one after the other, then the one that was first leaves.
fn changes(mix: &Mix, setting: &Setting) -> Outcome {
    let [first, second, third] = mix.members;
    let mut run = Run::new(named("ottla")?, setting);
    let name = mix.title.replace([' ', ':', ','], "-");
    run.topic = format!("mixed-{name}");
    run.create_topic()?;
    let mut group = run.group(&name);
    group.start_as(named(first)?, mix.arguments)?;
    group.wait("the first has everything", View::is_shared_evenly)?;
    joins(&mut run, &mut group, named(second)?, mix)?;
    joins(&mut run, &mut group, named(third)?, mix)?;
    run.rebalance_under_load(&mut group, Promise::ExactlyOnce, |group| group.leave(0))?;
    group.leave(1)?;
    group.leave(2)
}

fn joins(run: &mut Run<'_>, group: &mut Group<'_>, client: &Client, mix: &Mix) -> Outcome {
    run.rebalance_under_load(group, Promise::ExactlyOnce, |group| {
        group.start_as(client, mix.arguments).map(drop)
    })
}
