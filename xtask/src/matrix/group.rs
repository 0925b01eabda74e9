//! One consumer group made of real client processes, and all that its members said.

use super::clients::Client;
use super::event::Event;
use super::ledger::Ledger;
use crate::kafka::process::{create, signal, tail};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Partitions of every topic of the matrix.
pub const PARTITIONS: u32 = 6;
/// Short, so that the matrix need not wait long for a dead member to be missed.
const SESSION_TIMEOUT_MS: &str = "6000";
/// How long any one thing may take; far above what a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Where a group lives and what its members write to.
#[derive(Clone)]
pub struct Place {
    pub bootstrap: String,
    pub topic: String,
    pub group: String,
    /// Members' error output goes into files here.
    pub logs: PathBuf,
    /// What every member is started with besides.
    pub arguments: Vec<String>,
}

/// A group whose members are processes of one client.
pub struct Group<'a> {
    client: &'a Client,
    place: Place,
    view: Arc<Mutex<View>>,
    members: Vec<Member>,
}

/// What the members said so far.
#[derive(Default)]
pub struct View {
    pub ledger: Ledger,
    pub members: Vec<MemberView>,
}

/// What one member said so far.
#[derive(Default)]
pub struct MemberView {
    pub owned: BTreeSet<u32>,
    /// How often its partitions changed.
    pub changes: usize,
    /// Partitions it ever gave up, in sum.
    pub revoked: usize,
    /// Tasks of its runtime that were alive when it last said so.
    pub tasks: usize,
    reads: usize,
    closed: bool,
    ended: bool,
    /// Taken out of the group by us, so its end is no surprise.
    dismissed: bool,
    complaint: Option<String>,
}

struct Member {
    child: Child,
    input: Option<ChildStdin>,
    reader: Option<JoinHandle<()>>,
    log: PathBuf,
}

impl<'a> Group<'a> {
    /// A group without members yet.
    pub fn new(client: &'a Client, place: Place) -> Self {
        let mut view = View::default();
        if client.exact_handover.is_err() {
            view.ledger.allow_rewinds();
        }
        Self { client, place, view: Arc::new(Mutex::new(view)), members: Vec::new() }
    }

    /// The group's name.
    pub fn name(&self) -> &str {
        &self.place.group
    }

    /// Starts a member with further arguments and returns its index.
    pub fn start(&mut self, arguments: &[&str]) -> Result<usize, String> {
        self.start_as(self.client, arguments)
    }

    /// Starts a member that is a process of another client.
    pub fn start_as(&mut self, client: &Client, arguments: &[&str]) -> Result<usize, String> {
        let index = self.members.len();
        let place = &self.place;
        let log = place.logs.join(format!("{}-{index}.log", place.group));
        let mut command = client.command();
        command.args(["consume", "--bootstrap", &place.bootstrap, "--topic", &place.topic]);
        command.args(["--group", &place.group, "--session-timeout-ms", SESSION_TIMEOUT_MS]);
        command.args(&place.arguments).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(create(&log)?);
        let mut child = command.spawn().map_err(|error| format!("cannot start: {error}"))?;
        let output = child.stdout.take().ok_or("a member without output")?;
        let view = Arc::clone(&self.view);
        self.view().members.push(MemberView::default());
        let reader = std::thread::spawn(move || follow(index, output, &view));
        let input = child.stdin.take();
        self.members.push(Member { child, input, reader: Some(reader), log });
        Ok(index)
    }

    /// Kills a member with SIGKILL and takes in all it had said.
    pub fn kill(&mut self, index: usize) -> Result<(), String> {
        self.dismiss(index);
        let member = &mut self.members[index];
        member.child.kill().map_err(|error| error.to_string())?;
        self.finish(index).map(drop)
    }

    /// Stops a member without its knowing (SIGSTOP), or lets it go on (SIGCONT).
    pub fn signal(&mut self, index: usize, name: &str) -> Result<(), String> {
        self.view().members[index].dismissed = name == "STOP";
        signal(&self.members[index].child, name)
    }

    /// Has a member leave the group and end.
    pub fn leave(&mut self, index: usize) -> Result<(), String> {
        self.dismiss(index);
        self.members[index].input = None;
        let deadline = Instant::now() + TIMEOUT;
        while self.members[index].child.try_wait().map_err(|e| e.to_string())?.is_none() {
            if Instant::now() > deadline {
                return Err(format!("member {index} did not leave in {} s", TIMEOUT.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let success = self.finish(index)?;
        if success && self.view().members[index].closed {
            return Ok(());
        }
        Err(format!("member {index} did not end well: {}", tail(&self.members[index].log)))
    }

    /// Waits until `reached` holds, as long as no member ends unasked.
    pub fn wait(&self, what: &str, reached: impl Fn(&View) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let view = self.view();
            if reached(&view) {
                return Ok(());
            }
            let ended = view.members.iter().position(|member| member.ended && !member.dismissed);
            drop(view);
            if let Some(index) = ended {
                let said = tail(&self.members[index].log);
                return Err(format!("member {index} ended while waiting: {what}\n{said}"));
            }
            if Instant::now() > deadline {
                return Err(format!("waited {} s: {what}{}", TIMEOUT.as_secs(), self.complaints()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The members that are still there, but for the one of this index.
    pub fn others(&self, index: usize) -> Vec<usize> {
        let view = self.view();
        let there = view.members.iter().enumerate().filter(|(_, member)| !member.dismissed);
        there.map(|(index, _)| index).filter(|other| *other != index).collect()
    }

    /// A member's process.
    pub fn process(&self, index: usize) -> u32 {
        self.members[index].child.id()
    }

    /// What the members said so far, held still while the guard lives.
    pub fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each member has and last complained of, to explain a failure.
    pub fn complaints(&self) -> String {
        let view = self.view();
        let members = view.members.iter().enumerate();
        let telling = members.filter(|(_, of)| !of.dismissed || of.complaint.is_some());
        let lines = telling.map(|(index, member)| {
            let complaint = member.complaint.as_deref().unwrap_or("nothing wrong");
            format!("\nmember {index} owns {:?}, says: {complaint}", member.owned)
        });
        lines.collect()
    }

    fn dismiss(&self, index: usize) {
        let member = &mut self.view().members[index];
        member.dismissed = true;
    }

    fn finish(&mut self, index: usize) -> Result<bool, String> {
        let member = &mut self.members[index];
        let status = member.child.wait().map_err(|error| error.to_string())?;
        if let Some(reader) = member.reader.take() {
            reader.join().map_err(|_| "a reader panicked".to_owned())?;
        }
        self.view().members[index].owned.clear();
        Ok(status.success())
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

impl View {
    /// Records read by all members so far, repetitions included.
    pub fn reads(&self) -> usize {
        self.members.iter().map(|member| member.reads).sum()
    }

    /// Whether the members still there share all partitions evenly, each partition once.
    pub fn is_shared_evenly(&self) -> bool {
        self.share(PARTITIONS as usize)
    }

    /// The same of a topic of so many partitions.
    pub fn share(&self, partitions: usize) -> bool {
        let live: Vec<_> = self.members.iter().filter(|member| !member.dismissed).collect();
        let owned: BTreeSet<_> = live.iter().flat_map(|member| &member.owned).collect();
        let share = partitions / live.len().max(1);
        owned.len() == partitions && live.iter().all(|member| member.owned.len() == share)
    }
}

/// Takes in a member's output until it ends.
fn follow(index: usize, output: ChildStdout, view: &Mutex<View>) {
    let (mut output, mut line) = (BufReader::new(output), String::new());
    // The last line of one that was killed may be cut off.
    while output.read_line(&mut line).is_ok() && line.ends_with('\n') {
        let event = Event::parse(line.trim_end()).unwrap_or_else(Event::Error);
        line.clear();
        apply(index, event, &mut view.lock().unwrap_or_else(PoisonError::into_inner));
    }
    view.lock().unwrap_or_else(PoisonError::into_inner).members[index].ended = true;
}

fn apply(index: usize, event: Event, view: &mut View) {
    let member = &mut view.members[index];
    match event {
        Event::Assigned(partitions) => {
            member.owned.extend(partitions);
            member.changes += 1;
            view.ledger.rebalanced(index);
        }
        Event::Revoked(partitions) => {
            member.owned.retain(|partition| !partitions.contains(partition));
            member.changes += 1;
            member.revoked += partitions.len();
        }
        Event::Owns(partitions) => {
            member.owned = partitions;
            member.changes += 1;
            view.ledger.rebalanced(index);
        }
        Event::Record(read) => {
            member.reads += 1;
            view.ledger.read(index, read);
        }
        Event::Committed(offsets) => {
            for (partition, next_offset) in offsets {
                view.ledger.committed(partition, next_offset);
            }
        }
        Event::Error(text) => member.complaint = Some(text),
        Event::Tasks(tasks) => member.tasks = tasks,
        Event::Closed => member.closed = true,
    }
}
