//! Members of classic groups. The first is the leader and shares partitions out in turns.

use crate::protocol::{Process, Protocol, Slot};
use crate::stage::Stage;
use ottla_wire::generated::join_group_request::JoinGroupRequestProtocol;
use ottla_wire::generated::leave_group_request::MemberIdentity;
use ottla_wire::generated::sync_group_request::SyncGroupRequestAssignment;
use ottla_wire::generated::*;
use std::collections::BTreeSet;

/// A classic group.
pub(crate) struct Classic {
    group: String,
    cast: Vec<Process>,
}

const WORDS: &str = "as the test said";

impl Protocol for Classic {
    const HOST: &'static str = "127.0.0.1";
    const REASON: Option<&'static str> = Some(WORDS);
    const LEADER_WATCHES: bool = true;
    const SESSION_MS_MIN: i32 = 6_000;

    fn new(group: &str) -> Self {
        Self { group: group.into(), cast: Vec::new() }
    }

    fn group(&self) -> &str {
        &self.group
    }

    fn cast(&mut self) -> &mut Vec<Process> {
        &mut self.cast
    }

    fn enter(&mut self, _: &Stage, mut process: Process) {
        send_join(&self.group, &mut process);
        if process.instance.is_none() {
            // KIP-394: it is told its id first.
            assert_eq!(take_join(&mut process).0, MEMBER_ID_REQUIRED);
            send_join(&self.group, &mut process);
        }
        self.cast.push(process);
    }

    fn leave(&mut self, index: usize) {
        let mut process = self.cast.remove(index);
        let members = vec![MemberIdentity {
            member_id: &process.id,
            reason: Some(WORDS),
            ..Default::default()
        }];
        let request = LeaveGroupRequest { group_id: &self.group, members, ..Default::default() };
        assert_eq!(process.wire.ask(5, &request, |it| it.members[0].error_code), 0);
    }

    fn stop_for_now(&mut self, _: &mut Process) {}

    fn subscribe(&mut self, _: &Stage, index: usize, topics: &[String]) {
        self.cast[index].topics = topics.to_vec();
        send_join(&self.group, &mut self.cast[index]);
    }

    fn ask_for_assignment(&mut self, _: &Stage) {
        send_join(&self.group, &mut self.cast[0]);
    }

    fn beat_error(&mut self, _: &Stage, process: &mut Process) -> i16 {
        let request = HeartbeatRequest {
            group_id: &self.group,
            generation_id: process.generation,
            member_id: &process.id,
            group_instance_id: process.instance,
        };
        process.wire.ask(4, &request, |it| it.error_code)
    }

    fn dawdle(&mut self, stage: &Stage, process: &mut Process) {
        self.beat_error(stage, process);
    }

    fn step(&mut self, stage: &Stage) {
        let mut cast = std::mem::take(&mut self.cast);
        for member in cast.iter_mut().filter(|member| !member.is_joining) {
            match self.beat_error(stage, member) {
                0 => {}
                REBALANCE_IN_PROGRESS => send_join(&self.group, member),
                error => panic!("{}: {error}", member.id),
            }
        }
        if cast.iter().all(|member| member.is_joining) {
            assign(&self.group, stage, &mut cast);
        }
        self.cast = cast;
    }
}

impl Classic {
    /// One round in a group that has members of the consumer protocol: nobody waits for others,
    /// and the coordinator assigns.
    pub(crate) fn step_among_consumers(&mut self) {
        for member in &mut self.cast {
            let request = HeartbeatRequest {
                group_id: &self.group,
                generation_id: member.generation,
                member_id: &member.id,
                group_instance_id: member.instance,
            };
            match member.wire.ask(4, &request, |it| it.error_code) {
                0 => continue,
                REBALANCE_IN_PROGRESS => member.owned.clear(),
                error => panic!("{}: {error}", member.id),
            }
            send_join(&self.group, member);
            assert_eq!(take_join(member), (0, false));
            let request = SyncGroupRequest {
                group_id: &self.group,
                generation_id: member.generation,
                member_id: &member.id,
                group_instance_id: member.instance,
                protocol_type: Some("consumer"),
                protocol_name: Some("turns"),
                assignments: Vec::new(),
            };
            let told = member.wire.ask(5, &request, |it| (it.error_code, it.assignment.to_vec()));
            assert_eq!(told.0, 0);
            member.owned = assigned(&told.1);
        }
    }
}

fn send_join(group: &str, process: &mut Process) {
    let metadata = subscription(&process.topics);
    let request = JoinGroupRequest {
        group_id: group,
        session_timeout_ms: process.session_timeout_ms,
        rebalance_timeout_ms: process.rebalance_timeout_ms,
        member_id: &process.id,
        group_instance_id: process.instance,
        protocol_type: "consumer",
        protocols: vec![JoinGroupRequestProtocol { name: "turns", metadata: &metadata }],
        reason: Some(WORDS),
    };
    process.wire.send(9, &request);
    process.is_joining = true;
}

/// The error, and whether it leads.
fn take_join(process: &mut Process) -> (i16, bool) {
    process.is_joining = false;
    let Process { wire, id, generation, .. } = process;
    let taken = wire.receive::<JoinGroupRequest<'_>, _>(9, |it| {
        it.member_id.clone_into(id);
        *generation = it.generation_id;
        (it.error_code, it.leader == it.member_id)
    });
    taken.expect("an answer, not a closed connection")
}

/// All have asked to join: they hear of the generation, and of the leader's assignment.
fn assign(group: &str, stage: &Stage, cast: &mut [Process]) {
    let mut leader = None;
    for (index, member) in cast.iter_mut().enumerate() {
        let (error, leads) = take_join(member);
        assert_eq!(error, 0);
        leader = leader.or(leads.then_some(index));
    }
    let leader = leader.expect("one of them leads");
    share_out(stage, cast);
    let parts: Vec<_> = cast.iter().map(|it| (it.id.clone(), assignment(&it.owned))).collect();
    let order = (0..cast.len()).filter(|index| *index != leader).chain([leader]);
    for index in order {
        let own = if index == leader { &parts[..] } else { &[] };
        let own = own
            .iter()
            .map(|(id, part)| SyncGroupRequestAssignment { member_id: id, assignment: part });
        let member = &mut cast[index];
        let request = SyncGroupRequest {
            group_id: group,
            generation_id: member.generation,
            member_id: &member.id,
            group_instance_id: member.instance,
            protocol_type: Some("consumer"),
            protocol_name: Some("turns"),
            assignments: own.collect(),
        };
        member.wire.send(5, &request);
    }
    for (member, (_, part)) in cast.iter_mut().zip(&parts) {
        let taken = member.wire.receive::<SyncGroupRequest<'_>, _>(5, |it| {
            assert_eq!((it.error_code, it.assignment), (0, &part[..]));
        });
        taken.expect("an answer, not a closed connection");
    }
}

fn share_out(stage: &Stage, cast: &mut [Process]) {
    cast.iter_mut().for_each(|member| member.owned.clear());
    let topics: BTreeSet<String> = cast.iter().flat_map(|it| it.topics.clone()).collect();
    for topic in topics {
        for partition in 0..stage.partitions(&topic) {
            let wants = cast.iter_mut().filter(|member| member.topics.contains(&topic));
            let mut wants: Vec<_> = wants.collect();
            let turn = usize::try_from(partition).expect("few") % wants.len();
            wants[turn].owned.insert((topic.clone(), partition));
        }
    }
}

/// `ConsumerProtocolSubscription` of version 0.
fn subscription(topics: &[String]) -> Vec<u8> {
    let mut out = vec![0, 0];
    count(&mut out, topics.len());
    topics.iter().for_each(|topic| text(&mut out, topic));
    out.extend((-1_i32).to_be_bytes());
    out
}

/// `ConsumerProtocolAssignment` of version 0.
fn assignment(owned: &BTreeSet<Slot>) -> Vec<u8> {
    let mut out = vec![0, 0];
    let topics: BTreeSet<&String> = owned.iter().map(|(topic, _)| topic).collect();
    count(&mut out, topics.len());
    for topic in topics {
        text(&mut out, topic);
        let own: Vec<i32> = owned.iter().filter(|slot| slot.0 == *topic).map(|it| it.1).collect();
        count(&mut out, own.len());
        own.iter().for_each(|partition| out.extend(partition.to_be_bytes()));
    }
    out.extend((-1_i32).to_be_bytes());
    out
}

/// What such bytes of any version say.
fn assigned(bytes: &[u8]) -> BTreeSet<Slot> {
    let (_version, mut rest) = bytes.split_at(2);
    let mut slots = BTreeSet::new();
    for _ in 0..number(&mut rest) {
        let (length, after) = rest.split_first_chunk().expect("a length");
        let length = usize::try_from(i16::from_be_bytes(*length)).expect("a length");
        let (topic, after) = after.split_at(length);
        let topic = std::str::from_utf8(topic).expect("a name");
        rest = after;
        let count = number(&mut rest);
        slots.extend((0..count).map(|_| (topic.to_owned(), number(&mut rest))));
    }
    slots
}

fn number(rest: &mut &[u8]) -> i32 {
    let (number, after) = rest.split_first_chunk().expect("a number");
    *rest = after;
    i32::from_be_bytes(*number)
}

fn count(out: &mut Vec<u8>, count: usize) {
    out.extend(i32::try_from(count).expect("few").to_be_bytes());
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(i16::try_from(text.len()).expect("short").to_be_bytes());
    out.extend(text.as_bytes());
}

const REBALANCE_IN_PROGRESS: i16 = 27;
const MEMBER_ID_REQUIRED: i16 = 79;
