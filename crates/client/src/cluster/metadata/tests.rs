//! How answers about the cluster add up.

use super::*;
use ottla_wire::Uuid;
use ottla_wire::generated::metadata_response::MetadataResponseBroker;

fn partition(index: i32, leader: i32, epoch: i32) -> MetadataResponsePartition {
    MetadataResponsePartition {
        partition_index: index,
        leader_id: leader,
        leader_epoch: epoch,
        ..Default::default()
    }
}

fn topic(
    name: &str,
    id: u8,
    partitions: Vec<MetadataResponsePartition>,
) -> MetadataResponseTopic<'_> {
    let topic_id = Uuid([id; 16]);
    MetadataResponseTopic { name: Some(name), topic_id, partitions, ..Default::default() }
}

fn after<'a>(snapshot: &Snapshot, topics: Vec<MetadataResponseTopic<'a>>) -> Snapshot {
    let names = topics.iter().filter_map(|topic| topic.name).map(TopicName::from).collect();
    let response = MetadataResponse { topics, ..Default::default() };
    snapshot.after(&response, &Interest::Topics(names), snapshot.answered + 1)
}

/// KIP-320: an old answer, from a broker that lags, does not bring an old leader back.
#[test]
fn an_older_leader_epoch_does_not_replace_a_newer_one() {
    let new = after(&Snapshot::default(), vec![topic("t", 1, vec![partition(0, 2, 7)])]);
    let old = after(&new, vec![topic("t", 1, vec![partition(0, 1, 6)])]);
    assert_eq!(old.partition("t", PartitionId(0)).unwrap().leader, Some(NodeId(2)));
    let again = after(&old, vec![topic("t", 9, vec![partition(0, 1, 0)])]);
    assert_eq!(again.partition("t", PartitionId(0)).unwrap().leader, Some(NodeId(1)));
    assert_eq!(again.name(TopicId([9; 16])).unwrap().as_str(), "t");
    assert_eq!(again.name(TopicId([1; 16])), None);
}

/// An epoch that nobody but one damaged answer ever knew is given up.
#[test]
fn an_epoch_that_nobody_else_knows_is_given_up() {
    let told = |epoch| vec![topic("t", 1, vec![partition(0, epoch, epoch)])];
    let mut snapshot = after(&Snapshot::default(), told(1_000_000));
    let leader = |snapshot: &Snapshot| snapshot.partition("t", PartitionId(0)).unwrap().leader;
    for _ in 0..DOUBTS_MAX {
        snapshot = after(&snapshot, told(6));
        assert_eq!(leader(&snapshot), Some(NodeId(1_000_000)));
    }
    snapshot = after(&snapshot, told(6));
    assert_eq!(leader(&snapshot), Some(NodeId(6)));
}

#[test]
fn partitions_in_any_order_and_nonsense_among_them() {
    let partitions = vec![partition(1, 5, 0), partition(0, 4, 0), partition(900_000, 1, 0)];
    let snapshot = after(&Snapshot::default(), vec![topic("t", 1, partitions)]);
    let leaders = snapshot.topic("t").unwrap().partitions.iter().map(|p| p.leader);
    assert_eq!(leaders.collect::<Vec<_>>(), [Some(NodeId(4)), Some(NodeId(5))]);
    let odd = vec![partition(-1, 1, 0)];
    assert_eq!(after(&snapshot, vec![topic("t", 1, odd)]).topic("t").unwrap().partitions, []);
}

#[test]
fn a_topic_with_an_error_is_not_there_but_its_error_is() {
    let mut gone = topic("t", 0, Vec::new());
    gone.error_code = ErrorCode::UnknownTopicOrPartition.number();
    let snapshot = after(&Snapshot::default(), vec![gone]);
    assert!(snapshot.topic("t").is_none());
    assert_eq!(snapshot.topics["t"].error, Some(ErrorCode::UnknownTopicOrPartition));
}

#[test]
fn a_broker_with_an_impossible_port_is_left_out() {
    let broker =
        |node_id, port| MetadataResponseBroker { node_id, host: "::1", port, ..Default::default() };
    let brokers = vec![broker(1, 9092), broker(2, 70_000)];
    let response = MetadataResponse { brokers, ..Default::default() };
    let snapshot = Snapshot::default().after(&response, &Interest::All, 1);
    let addresses: Vec<String> = snapshot.brokers.values().map(Broker::address).collect();
    assert_eq!(addresses, ["[::1]:9092"]);
}
