//! A member of the consumer protocol (KIP-848).

use super::*;
use crate::message::consumer::{Beat, Standing};

const T: TopicId = TopicId([7; 16]);

impl Bench {
    fn beats(&mut self, epoch: i32, assignment: Option<&[i32]>) -> String {
        let partitions = |of: &[i32]| vec![(T, of.iter().map(|p| PartitionId(*p)).collect())];
        self.answer(Reply::ConsumerHeartbeat(Ok(Beat {
            member: "me".into(),
            standing: Standing::Member(Generation(epoch)),
            interval: Duration::from_secs(5),
            assignment: assignment.map(partitions),
        })))
    }

    fn learns_topic(&mut self) -> String {
        let topic = Topic { id: T, name: "t".into(), partitions: vec![Partition::default(); 4] };
        self.member.handle_topics(self.round, TopicsView::new([topic]), self.now);
        self.said()
    }
}

/// A member told what to own before it knows the topic.
fn bench_in_the_dark() -> Bench {
    let mut bench = Bench::with(|config| config.protocol = Protocol::Consumer);
    bench.subscribe(&["t"]);
    bench.find_and_join();
    assert_eq!(bench.beats(1, Some(&[0, 1])), "assigned:; beat Member(1); ");
    bench
}

#[test]
fn what_it_was_told_begins_once_the_topic_is_known() {
    let mut bench = bench_in_the_dark();
    assert_eq!(bench.learns_topic(), "assigned:t[0 1]; ");
}

/// A topic as new as what the coordinator tells of it, or made again under its name: what was
/// heard of topics before does not say which it is, so they are asked for again, once an answer.
#[test]
fn a_topic_newer_than_the_members_knowledge_is_asked_for() {
    let mut bench = bench_in_the_dark();
    assert_eq!(bench.topics(&[]), "assigned:; ");
    assert_eq!(bench.beats(1, None), r#"assigned:; watch["t"]; "#);
    assert_eq!(bench.topics(&[]), "assigned:; ");
    assert_eq!(bench.wait(5000, None), "beat Member(1); ");
    assert_eq!(bench.beats(1, None), r#"assigned:; watch["t"]; "#);
    assert_eq!(bench.learns_topic(), "assigned:t[0 1]; beat Member(1); ");
    assert_eq!(bench.beats(1, None), "");
}

/// S38: a pattern that means no topic yet makes a member that says so.
#[test]
fn s38_a_member_of_no_topic_says_so() {
    let mut bench = Bench::with(|config| config.protocol = Protocol::Consumer);
    assert_eq!(bench.subscribe(&[]), "find; ");
    let call = bench.find.take().expect("a coordinator is looked for");
    bench.member.handle_coordinator(call, Some(NodeId(1)), bench.now);
    bench.said();
    let (_, request) = &bench.open[0];
    assert!(matches!(request, Request::Beat(beat) if beat.topics.as_deref() == Some(&[])));
    assert_eq!(bench.beats(1, None), "assigned:; ");
    assert_eq!(bench.subscribe(&["t"]), r#"watch["t"]; beat Member(1); "#);
    let (_, request) = &bench.open[0];
    assert!(matches!(request, Request::Beat(beat) if beat.topics == Some(vec!["t".into()])));
}

/// KIP-848, member fencing: after a session without an answer others may own what it was told,
/// whether it had begun to own it or not; also where its process slept and the topic's news is the
/// first thing to wake it.
#[test]
fn what_it_was_told_a_session_ago_does_not_begin() {
    let mut bench = bench_in_the_dark();
    bench.now = bench.now + Duration::from_secs(46);
    let said = bench.learns_topic();
    assert!(!said.contains("assigned:t"), "{said}");
}
