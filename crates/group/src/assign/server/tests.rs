//! Server assignors as a coordinator drives them: facts in, shares out.

use super::{MemberFacts, ServerAssignor, Target};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};
use ottla_model::{InstanceId, MemberId, Partition, Topic, TopicId, TopicName, TopicsView};

/// A view of topics `t0`, `t1`, ... with so many partitions.
fn view(counts: &[usize]) -> Arc<TopicsView> {
    let topics = counts.iter().enumerate().map(|(at, count)| Topic {
        id: TopicId([at as u8 + 1; 16]),
        name: TopicName::from(format!("t{at}")),
        partitions: vec![Partition::default(); *count],
    });
    Arc::new(TopicsView::new(topics))
}

fn names(topics: &[usize]) -> Vec<TopicName> {
    topics.iter().map(|at| TopicName::from(format!("t{at}"))).collect()
}

fn join(target: &mut Target, id: &str, instance: Option<&str>, topics: &[usize]) {
    let instance = instance.map(InstanceId::from);
    target.set_member(MemberFacts {
        id: &MemberId::from(id),
        instance: instance.as_ref(),
        rack: None,
        topics: &names(topics),
    });
}

/// `t0[0 1] t1[2]`
fn shown(target: &Target, id: &str) -> alloc::string::String {
    let share = target.share(id);
    let topics = share.iter().map(|(topic, ids)| format!("t{}{ids:?}", topic.0[0] - 1));
    topics.collect::<Vec<_>>().join(" ")
}

/// KIP-848, "range": members by id, static ones first; the first few one partition longer; topics
/// of one size come out alike.
#[test]
fn range_gives_runs_in_order_of_identity() {
    let mut target = Target::new(ServerAssignor::Range, &view(&[3, 3]));
    join(&mut target, "b", None, &[0, 1]);
    join(&mut target, "a", None, &[0, 1]);
    join(&mut target, "z", Some("i"), &[0, 1]);
    join(&mut target, "y", Some("h"), &[0]);
    target.assign();
    assert_eq!(target.take_changed().len(), 4);
    assert_eq!(shown(&target, "y"), "t0[0]");
    assert_eq!(shown(&target, "z"), "t0[1] t1[0]");
    assert_eq!(shown(&target, "a"), "t0[2] t1[1]");
    assert_eq!(shown(&target, "b"), "t1[2]");

    target.remove_member("b");
    target.assign();
    assert_eq!(target.take_changed(), ["a", "z"].map(MemberId::from));
    assert_eq!(shown(&target, "a"), "t0[2] t1[2]");
}
