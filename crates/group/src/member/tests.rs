//! One member against answers made up for it: a transcript of everything it wants done.

mod consumer;
mod register;

use super::*;
use crate::assign::Assignor;
use crate::assign::subscription::{Assignment, Subscription};
use crate::message::classic::{JoinRefused, Joined, JoinedMember, Synced};
use crate::message::offsets::Committed;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use core::time::Duration;
use ottla_model::{Offset, Partition, PartitionId, Topic, TopicId, TopicPartition};

/// A member, its time, and the requests it has open.
struct Bench {
    member: Member,
    now: Instant,
    open: Vec<(CallId, Request)>,
    find: Option<CallId>,
    round: u64,
}

impl Bench {
    fn new(assignors: &[Assignor]) -> Self {
        Self::with(|config| config.assignors = assignors.to_vec())
    }

    fn with(adjust: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new("g");
        adjust(&mut config);
        let now = Instant::from_millis(1000);
        Self { member: Member::new(config, 7), now, open: vec![], find: None, round: 0 }
    }

    /// A follower of generation 1 that owns these partitions.
    fn stable(assignors: &[Assignor], owned: &[i32]) -> Self {
        let mut bench = Self::new(assignors);
        bench.subscribe(&["t"]);
        bench.find_and_join();
        bench.joined(1, "other");
        bench.synced(owned);
        bench
    }

    fn subscribe(&mut self, topics: &[&str]) -> String {
        self.member.subscribe(topics.iter().copied().map(TopicName::from), self.now);
        self.said()
    }

    fn find_and_join(&mut self) -> String {
        let call = self.find.take().expect("a coordinator is looked for");
        self.member.handle_coordinator(call, Some(NodeId(1)), self.now);
        let mut said = self.said();
        if self.open.iter().any(|(_, request)| matches!(request, Request::Join(_))) {
            said += &self.answer(Reply::Join(Err(JoinRefused {
                error: GroupError::MemberIdRequired,
                member: "me".into(),
            })));
        }
        said
    }

    /// Answers the oldest open request of the reply's kind.
    fn answer(&mut self, reply: Reply) -> String {
        let fits = |request: &Request| {
            matches!(
                (request, &reply),
                (Request::Join(_), Reply::Join(_))
                    | (Request::Register(_), Reply::Register(_))
                    | (Request::RegisterHeartbeat(_), Reply::RegisterHeartbeat(_))
                    | (Request::Sync(_), Reply::Sync(_))
                    | (Request::Heartbeat(_), Reply::Heartbeat(_))
                    | (Request::Leave(..), Reply::Leave(_))
                    | (Request::Commit(..), Reply::Commit(_))
                    | (Request::Fetch(..), Reply::FetchOffsets(_))
                    | (Request::Beat(_), Reply::ConsumerHeartbeat(_))
            )
        };
        let at = self.open.iter().position(|(_, request)| fits(request)).expect("was asked");
        let (call, _) = self.open.remove(at);
        self.member.handle_reply(call, reply, self.now);
        self.said()
    }

    fn joined(&mut self, generation: i32, leader: &str) -> String {
        let assignor = self.member.config.assignors[0];
        self.joined_by(generation, leader, &[("me", &["t"])], assignor.name())
    }

    fn joined_by(
        &mut self,
        generation: i32,
        leader: &str,
        members: &[(&str, &[&str])],
        protocol: &str,
    ) -> String {
        let members = members.iter().map(|(member, topics)| JoinedMember {
            member: (*member).into(),
            instance: None,
            metadata: Subscription {
                topics: topics.iter().copied().map(TopicName::from).collect(),
                ..Subscription::default()
            }
            .encode(3)
            .into(),
        });
        self.answer(Reply::Join(Ok(Joined {
            generation: Generation(generation),
            protocol_type: "consumer".into(),
            protocol: protocol.into(),
            leader: leader.into(),
            member: "me".into(),
            skip_assignment: false,
            members: if leader == "me" { members.collect() } else { vec![] },
        })))
    }

    fn synced(&mut self, partitions: &[i32]) -> String {
        let partitions = partitions.iter().map(|p| TopicPartition::new("t", *p)).collect();
        self.answer(Reply::Sync(Ok(Synced {
            protocol_type: "consumer".into(),
            protocol: "range".into(),
            assignment: Assignment { partitions, user_data: None }.encode(3).into(),
        })))
    }

    fn topics(&mut self, counts: &[(&str, usize)]) -> String {
        let topics = counts.iter().map(|(name, count)| Topic {
            id: TopicId::ZERO,
            name: (*name).into(),
            partitions: vec![Partition::default(); *count],
        });
        self.member.handle_topics(self.round, TopicsView::new(topics), self.now);
        self.said()
    }

    /// Lets time pass, timer by timer, answering heartbeats with `beat` at once.
    fn wait(&mut self, millis: u64, beat: Option<Result<(), GroupError>>) -> String {
        let end = self.now + Duration::from_millis(millis);
        let mut said = String::new();
        while let Some(at) = self.member.deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.member.handle_timeout(self.now);
            said += &self.said();
            let is_beat = |(_, request): &(_, Request)| matches!(request, Request::Heartbeat(_));
            if let Some(reply) = beat.filter(|_| self.open.iter().any(is_beat)) {
                said += &self.answer(Reply::Heartbeat(reply));
            }
        }
        self.now = end;
        said
    }

    fn commit(&mut self, partition: i32, offset: i64) -> String {
        let partitions = vec![PartitionOffset {
            partition: PartitionId(partition),
            offset: Offset(offset),
            leader_epoch: None,
            metadata: String::new(),
        }];
        let topics = vec![TopicOffsets { topic: "t".into(), id: TopicId::ZERO, partitions }];
        self.member.commit(topics, self.now);
        self.said()
    }

    fn committed(&mut self, error: Option<GroupError>) -> String {
        self.answer(Reply::Commit(match error {
            None => Ok(Committed { topics: vec![] }),
            Some(error) => Err(error),
        }))
    }

    fn revoked(&mut self) -> String {
        self.member.revoked(self.now);
        self.said()
    }

    /// Everything the member wants done, one word or two each.
    fn said(&mut self) -> String {
        let mut said = String::new();
        while let Some(output) = self.member.poll() {
            let line = match output {
                Output::Watch { round, topics } => {
                    self.round = round;
                    format!("watch{topics:?}")
                }
                Output::Find { call } => {
                    self.find = Some(call);
                    "find".to_string()
                }
                Output::Send { call, lane, request, .. } => {
                    let line = shown(&request);
                    self.open.push((call, request));
                    line + if lane == Lane::Side { "|side" } else { "" }
                }
                Output::Disconnect => {
                    self.open.clear();
                    "disconnect".to_string()
                }
                Output::Assigned(partitions) => format!("assigned:{partitions:?}"),
                Output::Revoke(partitions) => format!("revoke:{partitions:?}"),
                Output::Lost(partitions) => format!("lost:{partitions:?}"),
                Output::Committed { outcome, .. } => match outcome {
                    Ok(_) => "committed".to_string(),
                    Err(why) => format!("commit failed {why:?}"),
                },
                Output::Fetched { outcome, .. } => format!("fetched {}", outcome.is_ok()),
                Output::Failed(error) => format!("failed {error:?}"),
                Output::Left => "left".to_string(),
            };
            said += &line;
            said += "; ";
        }
        said
    }
}

fn shown(request: &Request) -> String {
    match request {
        Request::Join(join) => {
            let (name, metadata) = &join.protocols[0];
            let owned = Subscription::decode(metadata).unwrap().owned;
            format!("join {:?} {name} owns:{owned:?}", join.sender.member)
        }
        Request::Sync(sync) => {
            let parts = sync.assignments.iter().map(|(member, part)| {
                format!("{member}={:?}", Assignment::decode(part).unwrap().partitions)
            });
            format!("sync {} {:?}", sync.sender.generation, parts.collect::<Vec<_>>())
        }
        Request::Register(register) => {
            format!("register {:?} {:?}", register.sender.member, register.topics)
        }
        Request::Heartbeat(sender) | Request::RegisterHeartbeat(sender) => {
            format!("heartbeat {}", sender.generation)
        }
        Request::Leave(sender, _) => format!("leave {:?}", sender.member),
        Request::Commit(sender, topics) => {
            format!("commit {} at {}", topics[0].partitions[0].offset, sender.generation)
        }
        Request::Beat(beat) => format!("beat {:?}", beat.standing),
        Request::Fetch(_, topics) => format!("fetch {topics:?}"),
    }
}

const EAGER: &[Assignor] = &[Assignor::Range];
const COOPERATIVE: &[Assignor] = &[Assignor::CooperativeSticky];
const REBALANCE: Option<Result<(), GroupError>> = Some(Err(GroupError::RebalanceInProgress));

/// KIP-394: find, join, take the id, join again; a follower syncs and owns.
#[test]
fn first_join_takes_the_id_it_is_given() {
    let mut bench = Bench::new(EAGER);
    assert_eq!(bench.subscribe(&["t"]), r#"watch["t"]; find; "#);
    let said = bench.find_and_join();
    assert_eq!(said, r#"join "" range owns:; join "me" range owns:; "#);
    assert_eq!(bench.joined(1, "other"), "sync 1 []; ");
    assert_eq!(bench.synced(&[0, 1]), "assigned:t[0 1]; ");
    assert!(bench.member.is_stable());
}

/// S38: a pattern that means no topic yet makes a member all the same, as Kafka's does, and its
/// first topic is another subscription.
#[test]
fn s38_a_member_of_no_topic_takes_part() {
    let mut bench = Bench::new(EAGER);
    assert_eq!(bench.subscribe(&[]), "find; ");
    bench.find_and_join();
    let said = bench.joined_by(1, "me", &[("me", &[])], "range");
    assert_eq!(said, r#"sync 1 ["me="]; "#);
    assert_eq!(bench.synced(&[]), "assigned:; ");
    assert_eq!(bench.subscribe(&[]), "");
    assert_eq!(bench.subscribe(&["t"]), r#"watch["t"]; join "me" range owns:; "#);
    bench.topics(&[("t", 1)]);
    bench.joined(2, "me");
    assert_eq!(bench.synced(&[0]), "assigned:t[0]; ");
    assert_eq!(bench.subscribe(&[]), "watch[]; revoke:t[0]; ");
}

/// A leader assigns to members whose topics it did not know, once it does.
#[test]
fn leader_learns_topics_before_it_assigns() {
    let mut bench = Bench::new(EAGER);
    bench.subscribe(&["t"]);
    bench.find_and_join();
    bench.topics(&[("t", 2)]);
    let members: &[(&str, &[&str])] = &[("me", &["t"]), ("you", &["t", "u"])];
    assert_eq!(bench.joined_by(1, "me", members, "range"), r#"watch["t", "u"]; "#);
    let said = bench.topics(&[("t", 2), ("u", 1)]);
    assert_eq!(said, r#"sync 1 ["me=t[0]", "you=t[1] u[0]"]; "#);
}

/// S6: a leader starts a rebalance when a topic it assigned grows or appears.
#[test]
fn s6_leader_rejoins_when_topics_change() {
    let mut bench = Bench::new(COOPERATIVE);
    bench.subscribe(&["t"]);
    bench.find_and_join();
    bench.topics(&[("t", 1)]);
    bench.joined(1, "me");
    bench.synced(&[0]);
    assert_eq!(bench.topics(&[("t", 1)]), "");
    assert_eq!(bench.topics(&[("t", 3)]), r#"join "me" cooperative-sticky owns:t[0]; "#);
}

/// A leader that withheld a partition whose owner never gives it up, because it came back as a new
/// process that owns nothing, does not leave it nobody's.
#[test]
fn leader_asks_after_what_it_withheld() {
    let mut bench = Bench::new(COOPERATIVE);
    bench.subscribe(&["t"]);
    bench.find_and_join();
    bench.topics(&[("t", 2)]);
    let claims = Subscription {
        topics: vec!["t".into()],
        owned: [TopicPartition::new("t", 0), TopicPartition::new("t", 1)].into_iter().collect(),
        generation: Some(Generation(1)),
        ..Subscription::default()
    };
    let members =
        [("me", Subscription { owned: Partitions::new(), ..claims.clone() }), ("you", claims)];
    let members = members.map(|(member, subscription)| JoinedMember {
        member: member.into(),
        instance: None,
        metadata: subscription.encode(3).into(),
    });
    let said = bench.answer(Reply::Join(Ok(Joined {
        generation: Generation(2),
        protocol_type: "consumer".into(),
        protocol: "cooperative-sticky".into(),
        leader: "me".into(),
        member: "me".into(),
        skip_assignment: false,
        members: members.to_vec(),
    })));
    assert_eq!(said, r#"sync 2 ["me=", "you=t[0]"]; "#);
    assert_eq!(bench.synced(&[]), "assigned:; ");
    let said = bench.wait(45_000, Some(Ok(())));
    assert!(said.ends_with(r#"join "me" cooperative-sticky owns:; "#), "{said}");
}

/// KIP-429: an eager member gives up everything, and joins when the application is done.
#[test]
fn eager_revokes_before_it_joins() {
    let mut bench = Bench::stable(EAGER, &[0, 1]);
    assert_eq!(bench.wait(3000, REBALANCE), "heartbeat 1; revoke:t[0 1]; ");
    assert_eq!(bench.wait(3000, REBALANCE), "heartbeat 1; ");
    assert_eq!(bench.revoked(), r#"join "me" range owns:; "#);
}

/// KIP-429: a cooperative member keeps what it has through the join; what the sync takes away it
/// gives up, and joins once more to hand it on.
#[test]
fn cooperative_gives_up_after_the_sync() {
    let mut bench = Bench::stable(COOPERATIVE, &[0, 1]);
    let said = bench.wait(3000, REBALANCE);
    assert_eq!(said, r#"heartbeat 1; join "me" cooperative-sticky owns:t[0 1]; "#);
    assert_eq!(bench.joined(2, "other"), "sync 2 []; ");
    assert_eq!(bench.synced(&[0]), "assigned:; revoke:t[1]; ");
    assert_eq!(bench.revoked(), r#"join "me" cooperative-sticky owns:t[0]; "#);
}

/// Decision 27: heartbeats overtake a join that is kept, so that a slow rebalance costs nobody
/// what it owns.
#[test]
fn cooperative_beats_beside_a_slow_join() {
    let mut bench = Bench::stable(COOPERATIVE, &[0]);
    bench.wait(3000, REBALANCE);
    let said = bench.wait(50_000, REBALANCE);
    assert!(said.starts_with("heartbeat 1|side; "), "{said}");
    assert!(!said.contains("lost"), "{said}");
}

/// Decision 27, S21: ownership ends a session timeout after the send of the last answered
/// heartbeat, and the coordinator is looked for again.
#[test]
fn s21_silence_for_a_session_timeout_is_a_loss() {
    let mut bench = Bench::stable(EAGER, &[0]);
    assert_eq!(bench.wait(3000, Some(Ok(()))), "heartbeat 1; ");
    let sent_at = bench.now;
    // The next heartbeat is never answered; its own patience ends first.
    assert_eq!(bench.wait(33_200, None), "heartbeat 1; disconnect; find; ");
    let said = bench.wait(60_000, None);
    assert!(said.contains("lost:t[0]; "), "{said}");
    assert_eq!(bench.member.lapse_at(), None);
    assert_eq!(bench.member.answered, sent_at);
}

/// A member that takes longer to give up its partitions than it said it would is dropped from the
/// rebalance, so they are lost to it then, however well its heartbeats are answered.
#[test]
fn a_slow_revocation_is_a_loss() {
    let mut bench = Bench::stable(EAGER, &[0]);
    let said = bench.wait(299_000, REBALANCE);
    assert!(said.starts_with("heartbeat 1; revoke:t[0]; ") && !said.contains("lost"), "{said}");
    assert_eq!(bench.wait(1_000, REBALANCE), r#"lost:t[0]; join "me" range owns:; "#);
    // The application's answer comes too late to mean anything.
    assert_eq!(bench.revoked(), "");
}

/// A coordinator drops who does not sync within a rebalance timeout of the barrier. Joining again
/// instead, or being told of the same generation again, stops none of that: what a cooperative
/// member kept through the rebalance is lost when the first join for it is that old (the others
/// would be given it beside a live owner; seeds 36764, 45615).
#[test]
fn joining_again_buys_no_time_to_sync() {
    for is_told_again in [false, true] {
        let mut bench = Bench::stable(COOPERATIVE, &[0]);
        bench.wait(3000, REBALANCE);
        let joined_at = bench.now;
        bench.wait(1000, REBALANCE);
        bench.joined(2, "other");
        // A rebalance that is overtaken: it joins again, and its join is kept.
        bench.wait(3000, REBALANCE);
        assert!(matches!(bench.member.phase, Phase::Joining { .. }));
        if is_told_again {
            bench.wait(1000, Some(Ok(())));
            assert_eq!(bench.joined(2, "other"), "sync 2 []; ");
        }
        let said = bench.wait(300_000, Some(Ok(())));
        assert!(said.contains("lost:t[0]; "), "told again: {is_told_again}: {said}");
        let lost_at = joined_at + Duration::from_secs(300);
        assert_eq!(bench.member.settled, joined_at);
        assert!(bench.now >= lost_at);
    }
}

/// A join whose answer is lost is sent again. What is told then began before that, so the time to
/// sync counts from the first one.
#[test]
fn a_join_sent_again_counts_from_the_first() {
    let mut bench = Bench::stable(COOPERATIVE, &[0]);
    bench.wait(3000, REBALANCE);
    let joined_at = bench.now;
    bench.member.handle_disconnect(Lane::Main, bench.now);
    bench.said();
    bench.wait(10_000, None);
    bench.find_and_join();
    bench.joined(2, "other");
    assert_eq!(bench.member.settled, joined_at);
}

/// Decision 27: an answer that comes after the end does not bring ownership back.
#[test]
fn a_late_answer_is_too_late() {
    let mut bench = Bench::with(|config| {
        config.assignors = EAGER.to_vec();
        config.request_timeout = Duration::from_secs(60);
    });
    bench.subscribe(&["t"]);
    bench.find_and_join();
    bench.joined(1, "other");
    bench.synced(&[0]);
    bench.wait(3000, None);
    bench.now = bench.now + Duration::from_secs(43);
    assert_eq!(bench.answer(Reply::Heartbeat(Ok(()))), "lost:t[0]; disconnect; ");
}

/// Decision 27: an assignment that comes a session timeout after it was asked for is owned only
/// after a heartbeat was answered.
#[test]
fn a_late_assignment_is_confirmed_first() {
    let mut bench = Bench::with(|config| {
        config.assignors = EAGER.to_vec();
        config.request_timeout = Duration::from_secs(60);
    });
    bench.subscribe(&["t"]);
    bench.find_and_join();
    bench.joined(1, "other");
    assert_eq!(bench.wait(46_000, None), "heartbeat 1|side; ");
    assert_eq!(bench.synced(&[0]), "");
    assert_eq!(bench.answer(Reply::Heartbeat(Ok(()))), "assigned:t[0]; heartbeat 1; ");
}

/// Commits made while partitions are given up are answered before the join overtakes them.
#[test]
fn last_commits_go_before_the_join() {
    let mut bench = Bench::stable(EAGER, &[0]);
    bench.wait(3000, REBALANCE);
    assert_eq!(bench.commit(0, 5), "commit 5 at 1; ");
    assert_eq!(bench.revoked(), "");
    assert_eq!(bench.committed(None), r#"committed; join "me" range owns:; "#);
}

/// A commit the coordinator cannot take during a rebalance waits for its end, and is sent again
/// only for partitions that are still owned.
#[test]
fn commits_wait_for_the_end_of_a_rebalance() {
    for (kept, expected) in [
        (vec![0], "assigned:; commit 5 at 2; "),
        // Nobody else gets it before this member joins once more.
        (vec![1], "assigned:t[1]; revoke:t[0]; commit 5 at 2; "),
    ] {
        let mut bench = Bench::stable(COOPERATIVE, &[0]);
        assert_eq!(bench.commit(0, 5), "commit 5 at 1; ");
        let said = bench.committed(Some(GroupError::RebalanceInProgress));
        assert_eq!(said, r#"join "me" cooperative-sticky owns:t[0]; "#);
        bench.joined(2, "other");
        assert_eq!(bench.synced(&kept), expected);
    }
    let mut bench = Bench::stable(EAGER, &[0]);
    bench.commit(0, 5);
    assert_eq!(bench.committed(Some(GroupError::RebalanceInProgress)), "revoke:t[0]; ");
    // What is given up is committed before it is, or not at all: others may have it next, even if
    // it comes back some generations later.
    let said = bench.revoked();
    assert_eq!(said, r#"commit failed NotOwned; join "me" range owns:; "#);
}

/// A commit that is refused while the group is assigned says nothing a member that syncs does not
/// know. If it joined again, a leader would keep everyone from the assignment it just handed in.
#[test]
fn a_refused_commit_stops_no_sync() {
    let mut bench = Bench::stable(COOPERATIVE, &[0]);
    bench.wait(3000, REBALANCE);
    bench.joined(2, "other");
    assert_eq!(bench.commit(0, 5), "commit 5 at 2|side; ");
    assert_eq!(bench.committed(Some(GroupError::RebalanceInProgress)), "");
    assert_eq!(bench.synced(&[0]), "assigned:; commit 5 at 2; ");
}

/// An old offset never overwrites a new owner's: what is not owned is not committed.
#[test]
fn only_owned_partitions_are_committed() {
    let mut bench = Bench::stable(EAGER, &[0]);
    assert_eq!(bench.commit(1, 5), "commit failed NotOwned; ");
    bench.commit(0, 5);
    let said = bench.committed(Some(GroupError::IllegalGeneration));
    assert_eq!(said, r#"commit failed NotOwned; lost:t[0]; join "me" range owns:; "#);
}

/// A commit whose connection broke is sent again; the second answer counts.
#[test]
fn commits_survive_a_broken_connection() {
    let mut bench = Bench::stable(EAGER, &[0]);
    bench.commit(0, 5);
    bench.member.handle_disconnect(Lane::Main, bench.now);
    assert_eq!(bench.said(), "disconnect; ");
    assert_eq!(bench.wait(150, None), "find; ");
    assert_eq!(bench.find_and_join(), "commit 5 at 1; ");
    assert_eq!(bench.committed(None), "committed; ");
}

/// The table of errors, as a stable member meets them in a heartbeat.
#[test]
fn heartbeat_errors() {
    for (error, expected) in [
        (GroupError::LoadInProgress, ""),
        (GroupError::NotCoordinator, "disconnect; "),
        (GroupError::NotAvailable, "disconnect; "),
        (GroupError::RebalanceInProgress, "revoke:t[0]; "),
        (GroupError::IllegalGeneration, r#"lost:t[0]; join "me" range owns:; "#),
        (GroupError::UnknownMemberId, r#"lost:t[0]; join "" range owns:; "#),
        (GroupError::FencedInstanceId, "lost:t[0]; failed FencedInstanceId; "),
    ] {
        let mut bench = Bench::stable(EAGER, &[0]);
        let said = bench.wait(3000, Some(Err(error)));
        assert_eq!(said, format!("heartbeat 1; {expected}"), "{error}");
    }
}

/// The table of errors, as a member that owns something meets them when it joins again.
#[test]
fn join_errors() {
    for (error, expected) in [
        (GroupError::LoadInProgress, ""),
        (GroupError::RebalanceInProgress, ""),
        (GroupError::NotCoordinator, "disconnect; "),
        (GroupError::UnknownMemberId, "lost:t[0]; "),
        (GroupError::GroupMaxSizeReached, "lost:t[0]; failed GroupMaxSizeReached; "),
        (GroupError::InconsistentGroupProtocol, "lost:t[0]; failed InconsistentGroupProtocol; "),
    ] {
        let mut bench = Bench::stable(COOPERATIVE, &[0]);
        bench.wait(3000, REBALANCE);
        let said = bench.answer(Reply::Join(Err(JoinRefused { error, member: "".into() })));
        assert_eq!(said, expected, "{error}");
    }
}

/// A dynamic member says goodbye after giving up what it owns; a static one just stops (KIP-345).
#[test]
fn leaving() {
    let mut bench = Bench::stable(EAGER, &[0]);
    bench.member.close(bench.now);
    assert_eq!(bench.said(), "revoke:t[0]; ");
    assert_eq!(bench.revoked(), r#"leave "me"; "#);
    assert_eq!(bench.answer(Reply::Leave(Err(GroupError::UnknownMemberId))), "left; ");
    assert!(bench.member.is_over());

    let mut bench = Bench::stable(EAGER, &[0]);
    bench.member.config.instance = Some("i".into());
    bench.member.close(bench.now);
    bench.said();
    assert_eq!(bench.revoked(), "left; ");
}

/// A leave does not queue behind a join that the coordinator keeps.
#[test]
fn leaving_while_a_join_is_kept() {
    let mut bench = Bench::stable(COOPERATIVE, &[]);
    bench.wait(3000, REBALANCE);
    bench.member.close(bench.now);
    assert_eq!(bench.said(), r#"disconnect; leave "me"; "#);
}

/// Unsubscribing and subscribing again ends as a new member.
#[test]
fn resubscribing_after_leaving() {
    let mut bench = Bench::stable(EAGER, &[]);
    bench.member.unsubscribe(bench.now);
    assert_eq!(bench.said(), r#"leave "me"; "#);
    assert_eq!(bench.subscribe(&["t"]), "");
    assert_eq!(
        bench.answer(Reply::Leave(Err(GroupError::NotCoordinator))),
        r#"left; join "" range owns:; "#
    );
}

/// A coordinator that answers another question than it was asked is given up.
#[test]
fn nonsense_is_a_reason_to_look_elsewhere() {
    let mut bench = Bench::stable(EAGER, &[0]);
    bench.wait(3000, None);
    let (call, _) = bench.open.pop().expect("a heartbeat");
    bench.member.handle_reply(call, Reply::DeleteGroup(Ok(())), bench.now);
    assert_eq!(bench.said(), "disconnect; ");
    // A late answer to what was given up changes nothing.
    bench.member.handle_reply(call, Reply::Heartbeat(Ok(())), bench.now);
    assert_eq!(bench.said(), "");
}

/// An assignment that cannot be read is the leader's fault: the member tries another generation.
#[test]
fn unreadable_assignment_means_another_try() {
    let mut bench = Bench::new(EAGER);
    bench.subscribe(&["t"]);
    bench.find_and_join();
    bench.joined(1, "other");
    let said = bench.answer(Reply::Sync(Ok(Synced {
        protocol_type: "consumer".into(),
        protocol: "range".into(),
        assignment: Arc::from([0u8, 0, 0, 0, 0, 9]),
    })));
    assert_eq!(said, "");
    assert_eq!(bench.wait(200, None), r#"join "me" range owns:; "#);
}
