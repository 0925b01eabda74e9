//! `ottla demo`: a broker in a temporary folder and a group at work, with causes and times.
//!
//! Broker and consumers are processes of this same binary, so that the one that is killed is
//! killed for good. What is shown is what the group's coordinator says: who owns what, and its
//! journal of why and how fast that came about.

use crate::failure::{Code, Failure};
use crate::group::journal::words;
use crate::print;
use clap::Args;
use ottla_client::admin::{GroupMember, JournalEntry};
use ottla_client::{Admin, AdminConfig, NewTopic};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Watch a broker and a group at work for a few seconds, with nothing set up.
///
/// Three consumers share six partitions; one is killed, one leaves. It takes about ten seconds,
/// needs no network but the loopback, and leaves nothing behind.
#[derive(Args)]
pub(crate) struct Arguments {}

/// Runs it.
pub(crate) fn run(_: Arguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let shown = match runtime {
        Ok(runtime) => runtime.block_on(async {
            // Whatever is running is ended when the demo is dropped.
            tokio::select! {
                shown = show() => shown,
                _ = tokio::signal::ctrl_c() => Ok(()),
            }
        }),
        Err(error) => Err(io(error)),
    };
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(false),
    }
}

async fn show() -> Result<(), Failure> {
    let folder = Folder::new()?;
    let began = Instant::now();
    let (_broker, address) = start_broker(&folder.0)?;
    let admin = Admin::new(AdminConfig::new(&address))?;
    admin.create_topic(NewTopic::new(TOPIC, PARTITIONS)).await?;
    let mut demo =
        Demo { address, admin, began, changed: began, told: -1, owners: BTreeMap::new() };
    demo.say(&format!("a broker is up, topic `{TOPIC}` has {PARTITIONS} partitions"))?;
    let _one = demo.join("one").await?;
    let mut two = demo.join("two").await?;
    let mut three = demo.join("three").await?;
    demo.say("three is killed with SIGKILL: only its session timeout of 2 s can tell")?;
    demo.changed = Instant::now();
    three.0.kill().map_err(io)?;
    demo.settle(2).await?;
    demo.say("two is told to stop: it commits and leaves the group")?;
    demo.changed = Instant::now();
    terminate(&two.0);
    demo.settle(1).await?;
    two.0.wait().map_err(io)?;
    demo.say(
        "every partition had an owner again each time; the demo is over and removes its folder",
    )
}

struct Demo {
    address: String,
    admin: Admin,
    began: Instant,
    /// When what is being waited for was caused.
    changed: Instant,
    /// The last generation that was told of.
    told: i32,
    /// Who owned what when the group last was at rest.
    owners: BTreeMap<i32, String>,
}

impl Demo {
    /// Starts a consumer; returns when every partition has an owner and it owns some.
    async fn join(&mut self, name: &str) -> Result<Process, Failure> {
        self.say(&format!("{name} starts and subscribes"))?;
        self.changed = Instant::now();
        let consumer = start_consumer(name, &self.address)?;
        let members = match self.owners.values().collect::<std::collections::BTreeSet<_>>().len() {
            0 => 1,
            before => before + 1,
        };
        self.settle(members).await?;
        Ok(consumer)
    }

    /// Waits until so many members share all partitions, then tells what moved and why.
    async fn settle(&mut self, members: usize) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        let owners = loop {
            if let Some(owners) = self.at_rest(members).await {
                break owners;
            }
            if Instant::now() > deadline {
                let message = format!("the group did not come to rest with {members} members");
                return Err(Failure::new(Code::Unreachable, message));
            }
            tokio::time::sleep(GLANCE).await;
        };
        let took = self.changed.elapsed().as_millis();
        self.say(&format!("{took} ms later the group is at rest; its journal says why:"))?;
        self.tell_journal().await?;
        for name in owners.values().collect::<std::collections::BTreeSet<_>>() {
            print::line(&format!("             {}", self.line(name, &owners)))?;
        }
        self.owners = owners;
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    /// What the coordinator noted since the last time.
    async fn tell_journal(&mut self) -> Result<(), Failure> {
        for entry in self.admin.group_journal(GROUP).await?.entries {
            if entry.generation.0 > self.told {
                self.told = entry.generation.0;
                for line in rebalance(&entry) {
                    print::line(&format!("             {line}"))?;
                }
            }
        }
        Ok(())
    }

    async fn at_rest(&self, members: usize) -> Option<BTreeMap<i32, String>> {
        let group = self.admin.describe_group(GROUP).await.ok()?;
        let is_at_rest = group.state == "Stable" && group.members.len() == members;
        let owners = owners(&group.members);
        (is_at_rest && owners.len() == PARTITIONS as usize).then_some(owners)
    }

    /// What one member owns, and what of it is new.
    fn line(&self, name: &str, owners: &BTreeMap<i32, String>) -> String {
        let owns = owners.iter().filter(|(_, owner)| *owner == name);
        let partition = |(partition, _): (&i32, _)| match self.owners.get(partition) {
            Some(before) if before != name => format!("{partition} (from {before})"),
            _ => partition.to_string(),
        };
        format!("{name:<6} owns {}", owns.map(partition).collect::<Vec<_>>().join(", "))
    }

    fn say(&self, text: &str) -> Result<(), Failure> {
        print::line(&format!("{:>8.3} s  {text}", self.began.elapsed().as_secs_f64()))
    }
}

/// One rebalance: why, and how long it took.
fn rebalance(entry: &JournalEntry) -> [String; 2] {
    let causes = words::causes(entry, |who| who.client_id.to_string());
    let mut times = format!("all had joined after {}", words::span(entry.join_took));
    if let Some(took) = entry.sync_took {
        times += &format!(", all was assigned {} later", words::span(took));
    }
    if let Some(moved) = entry.moved {
        times += &format!(", {moved} partitions moved");
    }
    [format!("generation {}: {causes}", entry.generation.0), format!("  {times}")]
}

fn owners(members: &[GroupMember]) -> BTreeMap<i32, String> {
    let owned = members.iter().flat_map(|member| {
        let partitions = member.assignment.iter();
        partitions.map(|partition| (partition.partition.0, member.client_id.clone()))
    });
    owned.collect()
}

/// A process that ends when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("ottla-demo-{}", std::process::id()));
        std::fs::create_dir(&folder).map_err(io)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start_broker(folder: &Path) -> Result<(Process, String), Failure> {
    let mut command = this_program()?;
    command.args(["serve", "--listen", "127.0.0.1:0", "--http", "off", "--data"]).arg(folder);
    // So that nobody has to wait long for the group to notice.
    command.args(["--set", "group.min.session.timeout.ms=1000"]);
    let mut process = Process(command.stdout(Stdio::piped()).spawn().map_err(io)?);
    let out = process.0.stdout.take().ok_or_else(|| Failure::new(Code::Io, "no pipe"))?;
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    let address = lines
        .by_ref()
        .find_map(|line| Some(line.split_once("clients connect to ")?.1.trim().to_owned()));
    // Nobody reads on, but a full pipe would block the broker.
    std::thread::spawn(move || lines.for_each(drop));
    match address {
        Some(address) => Ok((process, address)),
        None => Err(Failure::new(Code::Io, "the broker did not start")
            .hint("`ottla serve --data DIR` tells why")),
    }
}

fn start_consumer(name: &str, address: &str) -> Result<Process, Failure> {
    let mut command = this_program()?;
    command.args(["consume", TOPIC, "--group", GROUP, "--brokers", address]);
    let client_id = format!("client.id={name}");
    // Of this protocol's members the session is their own, and the barrier is seen to close.
    let classic = ["group.protocol=classic", "session.timeout.ms=2000"];
    for property in classic.into_iter().chain(["heartbeat.interval.ms=300", &client_id]) {
        command.args(["--property", property]);
    }
    Ok(Process(command.stdout(Stdio::null()).spawn().map_err(io)?))
}

/// This binary, with nothing of our environment that would be a setting to it.
fn this_program() -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe().map_err(io)?);
    command.env_clear().stdin(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// SIGTERM.
fn terminate(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // One that is gone already has left.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

fn io(error: std::io::Error) -> Failure {
    Failure::new(Code::Io, format!("cannot run the demo: {error}"))
}

const TOPIC: &str = "orders";
const GROUP: &str = "billing";
const PARTITIONS: i32 = 6;
const GLANCE: Duration = Duration::from_millis(10);
const PAUSE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(20);
