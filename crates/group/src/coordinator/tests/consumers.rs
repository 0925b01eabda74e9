//! Groups of the consumer protocol at random: members that report truthfully, answers that are
//! lost, silence, restarts, topics that grow. What must hold is looked at from the members' side.

use super::super::consumers::Consumers;
use super::*;
use crate::message::consumer::{self, Standing};
use alloc::collections::BTreeSet;
use alloc::format;
use proptest::prelude::*;

const MEMBERS: usize = 4;
const SESSION: Duration = Duration::from_secs(45);

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A heartbeat, and its answer.
    Beat(usize),
    /// A heartbeat whose answer is lost.
    Lose(usize),
    /// A heartbeat that says nothing of what its member owns.
    Mute(usize),
    /// Another subscription: bits of topics.
    Subscribe(usize, u8),
    Leave(usize),
    /// Another process, another id; the former says nothing.
    Kill(usize),
    Pass(u16),
    Restart,
    /// Partitions of `t` and `u`.
    Topics(u8, u8),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let member = || 0..MEMBERS;
    let event = prop_oneof![
        12 => member().prop_map(Event::Beat),
        2 => member().prop_map(Event::Lose),
        2 => member().prop_map(Event::Mute),
        2 => (member(), 1u8..4).prop_map(|(member, topics)| Event::Subscribe(member, topics)),
        1 => member().prop_map(Event::Leave),
        1 => member().prop_map(Event::Kill),
        4 => (1u16..20_000).prop_map(Event::Pass),
        1 => Just(Event::Restart),
        1 => (1u8..6, 0u8..4).prop_map(|(t, u)| Event::Topics(t, u)),
    ];
    proptest::collection::vec(event, 0..80)
}

type Slots = BTreeSet<(TopicId, PartitionId)>;

/// A process that would be a member.
#[derive(Default)]
struct Process {
    number: usize,
    epoch: i32,
    owns: Slots,
    topics: u8,
    says_all: bool,
    answered_at: Instant,
}

struct Play {
    world: World,
    processes: [Process; MEMBERS],
    born: usize,
    partitions: (u8, u8),
}

impl Play {
    fn new() -> Self {
        let mut play = Self {
            world: World::new(),
            processes: Default::default(),
            born: 0,
            partitions: (4, 2),
        };
        play.tell_topics();
        (0..MEMBERS).for_each(|at| play.replace(at));
        play
    }

    fn tell_topics(&mut self) {
        let (t, u) = self.partitions;
        let of = |name, id, count: u8| Topic {
            partitions: alloc::vec![Partition::default(); count.into()],
            ..topic(name, id)
        };
        let topics = [of("t", 1, t), of("u", 2, u)];
        self.world.topics(topics.into_iter().filter(|topic| !topic.partitions.is_empty()));
    }

    fn replace(&mut self, at: usize) {
        self.born += 1;
        let (number, topics) = (self.born, self.processes[at].topics.max(1));
        self.processes[at] = Process { number, topics, says_all: true, ..Process::default() };
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Beat(at) => self.beat(at, true, true),
            Event::Lose(at) => self.beat(at, false, true),
            Event::Mute(at) => self.beat(at, true, false),
            Event::Subscribe(at, topics) => {
                let process = &mut self.processes[at];
                process.topics = topics;
                process.says_all = true;
                self.beat(at, true, true);
            }
            Event::Leave(at) => {
                // Known or not, it is gone.
                let _ = self.ask(at, Standing::Leaving, false);
                self.replace(at);
            }
            Event::Kill(at) => self.replace(at),
            Event::Pass(ms) => self.world.pass(millis(ms.into())),
            Event::Restart => {
                self.world.restart();
                self.tell_topics();
            }
            Event::Topics(t, u) => {
                // Partitions are added, never taken.
                self.partitions = (self.partitions.0.max(t), self.partitions.1.max(u));
                self.tell_topics();
            }
        }
        self.lapse();
        self.nobody_shares();
    }

    /// Whoever hears nothing for a session gives up by itself.
    fn lapse(&mut self) {
        let now = self.world.now.mono;
        for process in &mut self.processes {
            if process.epoch > 0 && process.answered_at + SESSION <= now {
                (process.epoch, process.says_all) = (0, true);
                process.owns.clear();
            }
        }
    }

    fn beat(&mut self, at: usize, is_heard: bool, reports: bool) {
        let sent_at = self.world.now.mono;
        let standing = match self.processes[at].epoch {
            0 => Standing::Joining,
            epoch => Standing::Member(Generation(epoch)),
        };
        let reply = self.ask(at, standing, reports);
        let process = &mut self.processes[at];
        process.says_all = !is_heard;
        if !is_heard {
            return;
        }
        match reply {
            Ok(beat) => {
                let Standing::Member(epoch) = beat.standing else { unreachable!("it stays") };
                assert!(epoch.0 >= process.epoch, "an epoch fell");
                (process.epoch, process.answered_at) = (epoch.0, sent_at);
                if let Some(told) = beat.assignment {
                    let slots = told.into_iter().flat_map(|(topic, partitions)| {
                        partitions.into_iter().map(move |partition| (topic, partition))
                    });
                    process.owns = slots.collect();
                }
            }
            Err(GroupError::UnknownMemberId | GroupError::FencedMemberEpoch) => {
                (process.epoch, process.says_all) = (0, true);
                process.owns.clear();
            }
            Err(error) => unreachable!("nothing to refuse: {error}"),
        }
    }

    fn ask(
        &mut self,
        at: usize,
        standing: Standing,
        reports: bool,
    ) -> Result<consumer::Beat, GroupError> {
        let process = &self.processes[at];
        let says_all = process.says_all || standing == Standing::Joining;
        let names = ["t", "u"];
        let wanted = names.iter().enumerate().filter(|(bit, _)| process.topics & (1 << bit) != 0);
        let mut owned: BTreeMap<TopicId, Vec<PartitionId>> = BTreeMap::new();
        for (topic, partition) in &process.owns {
            owned.entry(*topic).or_default().push(*partition);
        }
        let member = format!("m{}", process.number);
        let body = Ask::ConsumerHeartbeat(consumer::Heartbeat {
            group: "g",
            member: &member,
            standing,
            instance: None,
            rack: None,
            rebalance_timeout: says_all.then_some(secs(3600)),
            topics: says_all.then(|| wanted.map(|(_, name)| *name).collect()),
            regex: None,
            assignor: None,
            owned: (says_all || reports).then(|| owned.into_iter().collect()),
        });
        let token = self.world.ask(at as u64, "c", body);
        match self.world.answer(token) {
            Reply::ConsumerHeartbeat(reply) => reply,
            other => unreachable!("another answer: {other:?}"),
        }
    }

    fn nobody_shares(&self) {
        let mut owners = BTreeMap::new();
        for process in &self.processes {
            for slot in &process.owns {
                let other = owners.insert(*slot, process.number);
                assert_eq!(other, None, "{slot:?} is also that of {}", process.number);
            }
        }
    }

    /// Everything works now: the dead are found out, and everybody arrives.
    fn calm_down(&mut self) {
        for _ in 0..10 {
            self.world.pass(secs(5));
            (0..MEMBERS).for_each(|at| self.take(Event::Beat(at)));
        }
        for _ in 0..4 {
            self.world.pass(millis(200));
            (0..MEMBERS).for_each(|at| self.take(Event::Beat(at)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// KIP-848: no partition has two owners, epochs never fall, and once nothing goes wrong every
    /// partition that somebody wants has an owner who wants it.
    #[test]
    fn members_never_share_and_always_arrive(events in events()) {
        let mut play = Play::new();
        events.into_iter().for_each(|event| play.take(event));
        play.calm_down();
        let owned: usize = play.processes.iter().map(|process| process.owns.len()).sum();
        let wants = |bit: u8| play.processes.iter().any(|process| process.topics & bit != 0);
        let count = |bit, partitions: u8| if wants(bit) { usize::from(partitions) } else { 0 };
        let wanted = count(1, play.partitions.0) + count(2, play.partitions.1);
        prop_assert_eq!(owned, wanted);
        for process in &play.processes {
            let topics: BTreeSet<u8> = process.owns.iter().map(|(topic, _)| topic.0[0]).collect();
            prop_assert!(topics.into_iter().all(|topic| process.topics & topic != 0));
        }
        let listed = play.world.list(&["stable"], &["consumer"]);
        prop_assert_eq!(listed.len(), 1);
    }

    /// Decide, record, replay: a shard that read the log stands where the one that wrote it does,
    /// and writes nothing to begin with.
    #[test]
    fn replaying_the_log_gives_the_same_hard_state(events in events()) {
        let mut play = Play::new();
        for event in events {
            play.take(event);
            let mut reader = World::unowned(play.world.config.clone());
            reader.now = play.world.now;
            reader.log = play.world.log.clone();
            reader.own(secs(1_000_000_000));
            reader.load();
            prop_assert_eq!(stands(&reader), stands(&play.world));
            prop_assert_eq!(reader.log.len(), play.world.log.len());
        }
    }
}

fn stands(world: &World) -> Vec<alloc::string::String> {
    // Only who serves the group asks what becomes subscribed, and always hears all of it.
    let shown = |consumers: &Consumers| {
        format!("{consumers:?}").replace("toggled: Some([])", "toggled: None")
    };
    world.shard.all_groups().map(|group| shown(group.hard.consumers())).collect()
}
