//! The table: protocol by cause, and what the journal must say.

use crate::classic::Classic;
use crate::consumer::Consumer;
use crate::eventually;
use crate::expect::{self, Begun, Why, assert_moves, assert_times, assert_why};
use crate::protocol::{Owners, Process, Protocol, owners, settle};
use crate::register::Register;
use crate::stage::{ADMIN, ADMIN_REASON, Stage};
use ottla_client::admin::JournalEntry;
use std::collections::{BTreeMap, BTreeSet};

/// What makes a group rebalance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    Join,
    Leave,
    Expiry,
    /// A member does not do its part of a rebalance in time.
    Late,
    StaticFence,
    Subscription,
    TopicCreated,
    NewPartitions,
    TopicDeleted,
    AdminRemoval,
    Config,
    /// The members vote for another assignor of the coordinator's.
    Vote,
}

const CASES: [Case; 12] = [
    Case::Join,
    Case::Leave,
    Case::Expiry,
    Case::Late,
    Case::StaticFence,
    Case::Subscription,
    Case::TopicCreated,
    Case::NewPartitions,
    Case::TopicDeleted,
    Case::AdminRemoval,
    Case::Config,
    Case::Vote,
];

/// Why a protocol does not have a case.
trait Table: Protocol {
    const NAME: &'static str;
    /// What the journal calls it that a member was late.
    const LATE: &'static [&'static str];
    fn lacks(case: Case) -> Option<&'static str>;
}

impl Table for Classic {
    const NAME: &'static str = "classic";
    const LATE: &'static [&'static str] = &["Joined", "JoinExpired"];
    fn lacks(case: Case) -> Option<&'static str> {
        match case {
            Case::Config => {
                Some("no setting of a group is about its assignment: its leader assigns")
            }
            Case::Vote => Some("members choose by what they say of themselves: see Subscription"),
            _ => None,
        }
    }
}

impl Table for Consumer {
    const NAME: &'static str = "consumer";
    const LATE: &'static [&'static str] = &["RevocationExpired"];
    fn lacks(case: Case) -> Option<&'static str> {
        match case {
            Case::Config => Some("no setting of a group is about its assignment: see Vote"),
            _ => None,
        }
    }
}

impl Table for Register {
    const NAME: &'static str = "register";
    /// Who does not register again is silent, however it beats (decision 25).
    const LATE: &'static [&'static str] = &["Joined", "SessionExpired"];
    fn lacks(case: Case) -> Option<&'static str> {
        match case {
            Case::StaticFence => Some("there are no static members"),
            Case::Vote => Some("an administrator chooses: see Config"),
            _ => None,
        }
    }
}

#[test]
fn classic_groups_tell_every_cause_and_still_do_after_a_kill() {
    println!("{}", run_table::<Classic>());
}

#[test]
fn consumer_groups_tell_every_cause_and_still_do_after_a_kill() {
    println!("{}", run_table::<Consumer>());
}

#[test]
fn register_groups_tell_every_cause_and_still_do_after_a_kill() {
    println!("{}", run_table::<Register>());
}

/// All rows at the same time, each in a group and with topics of its own; then a kill. What each
/// row came to, for people.
fn run_table<P: Table>() -> String {
    let mut stage = Stage::new();
    let has = CASES.into_iter().filter(|case| P::lacks(*case).is_none());
    let groups: Vec<(Case, String)> = std::thread::scope(|scope| {
        let stage = &stage;
        let row = |case| (case, scope.spawn(move || Row::<P>::open(stage, case).run()));
        let rows: Vec<_> = has.map(row).collect();
        rows.into_iter().map(|(case, row)| (case, row.join().expect("a row"))).collect()
    });
    let entries = groups.iter().map(|(_, group)| stage.entries(group));
    let before: Vec<_> = entries.collect();
    stage.kill_and_restart();
    let mut told = BTreeMap::new();
    for ((case, group), before) in groups.iter().zip(before) {
        // Members that nobody speaks for any more may have expired by now.
        let after = stage.entries(group);
        assert_eq!(after[..before.len().min(after.len())], before, "{case:?}");
        told.insert(format!("{case:?}"), summary(before.last().expect("an entry")));
    }
    let lines = CASES.iter().map(|case| {
        let case_name = format!("{case:?}");
        let lacks = P::lacks(*case).map(|why| format!("none: {why}"));
        let outcome = lacks.or(told.remove(&case_name)).expect("a row, or a reason for none");
        format!("{:<8} {case_name:<13} {outcome}", P::NAME)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn summary(entry: &JournalEntry) -> String {
    let causes: Vec<_> = entry.triggers.iter().map(|it| format!("{:?}", it.cause)).collect();
    let moved = entry.moved.unwrap_or_default();
    format!("{}, {moved} moved in {:?}", causes.join(" and "), entry.took())
}

/// One row: two members of one group, and what happens to them.
struct Row<'s, P> {
    stage: &'s Stage,
    case: Case,
    members: P,
    t: String,
    u: String,
}

/// How it was before a row began to act.
struct Before {
    generation: i32,
    owners: Owners,
    begun: Begun,
}

impl<'s, P: Table> Row<'s, P> {
    fn open(stage: &'s Stage, case: Case) -> Self {
        let group = format!("{}-{case:?}", P::NAME);
        let (t, u) = (format!("{group}.t"), format!("{group}.u"));
        stage.create_topic(&t, 4);
        if case != Case::TopicCreated {
            stage.create_topic(&u, 2);
        }
        if case == Case::Expiry {
            // In the consumer protocol this is the group's, not the member's.
            let timeout = P::SESSION_MS_MIN.to_string();
            stage.set(&group, "consumer.session.timeout.ms", &timeout);
        }
        Self { stage, case, members: P::new(&group), t, u }
    }

    /// Plays the row and holds the journal against it. The group's name.
    fn run(mut self) -> String {
        self.enter_first();
        if !matches!(self.case, Case::Join | Case::Late) {
            let (alone, second) = (self.generation(), self.second());
            self.members.enter(self.stage, second);
            settle(self.stage, &mut self.members, alone);
        }
        let before = self.before();
        let why = self.act(before.generation);
        settle(self.stage, &mut self.members, before.generation);
        self.check(before, &why);
        self.members.group().to_owned()
    }

    fn enter_first(&mut self) {
        let topics = [self.t.clone(), self.u.clone()];
        let mut first = Process::new(self.stage, "first", &topics);
        first.instance = (self.case == Case::StaticFence).then_some("an-instance");
        if self.case == Case::Late {
            first.rebalance_timeout_ms = P::SESSION_MS_MIN;
            first.session_timeout_ms = P::SESSION_MS_MIN;
        }
        self.members.enter(self.stage, first);
        settle(self.stage, &mut self.members, 0);
    }

    fn second(&self) -> Process {
        let mut second = Process::new(self.stage, "second", &[self.t.clone(), self.u.clone()]);
        match self.case {
            Case::Expiry => second.session_timeout_ms = P::SESSION_MS_MIN,
            // A group waits as long as the most patient of its members would.
            Case::Late => second.rebalance_timeout_ms = P::SESSION_MS_MIN,
            _ => {}
        }
        second
    }

    fn generation(&self) -> i32 {
        // Of a group nobody is in yet there is nothing to ask.
        self.stage.journal(self.members.group()).generation.0
    }

    fn before(&mut self) -> Before {
        let owners = owners(&mut self.members);
        Before { generation: self.generation(), owners, begun: Begun::now() }
    }

    /// Does it, and says what the journal should say of it.
    fn act(&mut self, generation: i32) -> Vec<Why> {
        let why = match self.case {
            Case::Join => self.join(),
            Case::Leave => {
                let why = Why { reason: words::<P>(), ..self.of("Left", 1) };
                self.members.leave(1);
                why
            }
            Case::Expiry => {
                let why = self.of("SessionExpired", 1);
                // It lives on, but is silent.
                std::mem::forget(self.members.cast().remove(1));
                why
            }
            Case::Late => return self.be_late(generation),
            Case::StaticFence => self.fence(),
            Case::Subscription => {
                let topics = [self.t.clone()];
                self.members.subscribe(self.stage, 0, &topics);
                Why { reason: words::<P>(), ..self.of("MetadataChanged", 0) }
            }
            Case::TopicCreated => {
                self.stage.create_topic(&self.u, 2);
                self.topic("TopicCreated", self.u.clone())
            }
            Case::NewPartitions => {
                self.stage.grow_topic(&self.t, 6);
                self.topic("PartitionsAdded", self.t.clone())
            }
            Case::TopicDeleted => {
                self.stage.delete_topic(&self.u);
                self.topic("TopicDeleted", self.u.clone())
            }
            Case::AdminRemoval => self.remove(),
            Case::Config => {
                self.stage.set(self.members.group(), "register.assignor", "roundrobin");
                let setting = Some("register.assignor".into());
                Why { cause: "AssignorChanged", setting, ..Why::default() }
            }
            Case::Vote => {
                self.members.vote("range");
                self.of("AssignorChanged", 0)
            }
        };
        vec![why]
    }

    fn join(&mut self) -> Why {
        let second = self.second();
        self.members.enter(self.stage, second);
        // A new member hears its id with the answer, so it is looked up when that is there.
        Why { reason: words::<P>(), ..self.of("Joined", 1) }
    }

    /// The first member lives, but does nothing of what a rebalance asks of it.
    fn be_late(&mut self, generation: i32) -> Vec<Why> {
        let second = self.second();
        self.members.enter(self.stage, second);
        let joined = Why { reason: words::<P>(), ..self.of("Joined", 1) };
        let late = self.of(P::LATE[P::LATE.len() - 1], 0);
        let mut first = self.members.cast().remove(0);
        eventually("the others no longer wait", || {
            self.members.dawdle(self.stage, &mut first);
            let entries = self.stage.entries(self.members.group());
            let last = entries.last().expect("the first join");
            let is_late =
                |why: &ottla_client::admin::Trigger| format!("{:?}", why.cause) == late.cause;
            last.generation.0 > generation && last.triggers.iter().any(is_late)
        });
        let whys = [joined, late].into_iter().filter(|why| P::LATE.contains(&why.cause));
        whys.collect()
    }

    /// Another process takes the instance, and wants something else.
    fn fence(&mut self) -> Why {
        let mut former = self.members.cast().remove(0);
        self.members.stop_for_now(&mut former);
        let mut next = Process::new(self.stage, "third", std::slice::from_ref(&self.t));
        next.instance = former.instance;
        self.members.enter(self.stage, next);
        eventually("the former process is fenced", || {
            self.members.beat_error(self.stage, &mut former) == FENCED_INSTANCE_ID
        });
        let replaced = Some(former.id.clone());
        Why { replaced, reason: words::<P>(), ..self.of("StaticRejoined", 1) }
    }

    fn remove(&mut self) -> Why {
        let why = self.of("Removed", 1);
        let removed = self.members.cast().remove(1);
        self.stage.remove(self.members.group(), &removed.id);
        let reason = Some(ADMIN_REASON.into());
        Why { by: Some(ADMIN.into()), reason, ..why }
    }

    /// Something is about a topic: the coordinator saw it, or the leader did.
    fn topic(&mut self, cause: &'static str, topic: String) -> Why {
        self.members.ask_for_assignment(self.stage);
        let why = match P::LEADER_WATCHES {
            true => Why { reason: words::<P>(), ..self.of(cause, 0) },
            false => Why { cause, ..Why::default() },
        };
        Why { topic: Some(topic), ..why }
    }

    fn of(&mut self, cause: &'static str, index: usize) -> Why {
        let who = Some(expect::person::<P>(&self.members.cast()[index]));
        Why { cause, who, ..Why::default() }
    }

    fn check(&mut self, before: Before, why: &[Why]) {
        let entries = self.stage.entries(self.members.group());
        let (last, earlier) = entries.split_last().expect("an entry");
        let why: Vec<_> = why.iter().map(|why| self.identified(why)).collect();
        assert_why(last, &why);
        assert_eq!(format!("{:?}", last.outcome), "Assigned", "{:?}", self.case);
        let mut owned = before.owners;
        // What came between, and was overtaken, moved something too.
        for entry in earlier.iter().filter(|entry| entry.generation.0 > before.generation) {
            for it in &entry.moves {
                let slot = (it.topic.to_string(), it.partition.0);
                match &it.to {
                    Some(to) => owned.insert(slot, to.to_string()),
                    None => owned.remove(&slot),
                };
            }
        }
        assert_moves(last, &owned, &owners(&mut self.members));
        let present: BTreeSet<_> = self.members.cast().iter().map(|it| it.id.clone()).collect();
        assert_times(last, &before.begun, &present);
    }

    /// With the id of a member that did not know it yet when it acted.
    fn identified(&mut self, why: &Why) -> Why {
        let known: BTreeMap<_, _> = self
            .members
            .cast()
            .iter()
            .map(|it| (it.wire.client, expect::person::<P>(it)))
            .collect();
        let mut why = why.clone();
        if let Some(who) = &mut why.who
            && let Some(now) = known.get(&*who.2)
        {
            *who = now.clone();
        }
        why
    }
}

fn words<P: Protocol>() -> Option<String> {
    P::REASON.map(String::from)
}

const FENCED_INSTANCE_ID: i16 = 82;
