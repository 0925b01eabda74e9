//! Golden values from Java, and what a placement owes whatever the brokers.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Computed by Java (`Utils.abs(group.hashCode()) % n`) and, for the first two, seen on the disk
/// of a Kafka 4.4 broker after a commit. A wrong one loses a migrated group's offsets.
#[test]
fn groups_live_where_kafka_puts_them() {
    let golden = [
        ("my-group", 12, 1),
        ("größe", 7, 6),
        ("", 0, 0),
        ("a", 47, 6),
        ("console-consumer-12345", 6, 6),
        ("group-1", 49, 4),
        ("Ωmega", 47, 5),
        ("日本語", 43, 5),
        ("\u{1f600}", 49, 2),
        ("a\u{1f600}b", 44, 0),
        ("\u{ffff}", 35, 1),
        // These hash to the one number without an absolute value.
        ("polygenelubricants", 0, 0),
        ("GydZG_", 0, 0),
        ("DESIGNING WORKHOUSES", 0, 0),
        ("connect-cluster", 13, 5),
    ];
    for (group, of_50, of_7) in golden {
        assert_eq!(group_partition(group, 50).0, of_50, "{group} of 50");
        assert_eq!(group_partition(group, 7).0, of_7, "{group} of 7");
    }
    assert_eq!(group_partition(&"x".repeat(300), 50).0, 14);
}

#[test]
fn too_few_brokers_are_refused_in_kafkas_words() {
    let refused = place(&brokers(&[None]), 1, 3, 0).unwrap_err();
    let kafka = "The target replication factor of 3 cannot be reached because only 1 broker(s) \
                 are registered.";
    assert_eq!(refused, kafka);
    assert_eq!(place(&[], 1, 1, 0).unwrap_err(), "All brokers are currently fenced.");
}

#[test]
fn every_second_neighbour_stands_in_another_rack() {
    let racks = [Some("a"), Some("a"), Some("b"), Some("b")];
    let placed = place(&brokers(&racks), 4, 2, 0).unwrap();
    let ids: Vec<Vec<i32>> =
        placed.iter().map(|nodes| nodes.iter().map(|node| node.0).collect()).collect();
    assert_eq!(ids, [[0, 2], [2, 1], [1, 3], [3, 0]]);
}

fn brokers(racks: &[Option<&str>]) -> Vec<Candidate> {
    let candidate = |(id, rack): (usize, &Option<&str>)| Candidate {
        node: NodeId(id as i32),
        rack: rack.map(str::to_owned),
    };
    racks.iter().enumerate().map(candidate).collect()
}

proptest! {
    /// What a placement owes whatever the brokers: distinct replicas, leaders and replicas spread
    /// evenly, as many racks as there are.
    #[test]
    fn replicas_are_distinct_spread_and_rack_aware(
        racks in prop::collection::vec(prop::option::of("[a-c]"), 1..9),
        partitions in 1_usize..60,
        replication in 1_usize..5,
        start in 0_usize..100,
    ) {
        let racks: Vec<_> = racks.iter().map(Option::as_deref).collect();
        prop_assume!(replication <= racks.len());
        let candidates = brokers(&racks);
        let placed = place(&candidates, partitions, replication, start).unwrap();
        prop_assert_eq!(placed.len(), partitions);
        let mut leads = BTreeMap::<NodeId, usize>::new();
        let all_racks: BTreeSet<_> = racks.iter().collect();
        for replicas in &placed {
            *leads.entry(replicas[0]).or_default() += 1;
            let distinct: BTreeSet<_> = replicas.iter().collect();
            prop_assert_eq!(distinct.len(), replication);
            let used: BTreeSet<_> = replicas.iter().map(|node| &racks[node.0 as usize]).collect();
            prop_assert_eq!(used.len(), replication.min(all_racks.len()));
        }
        let most = leads.values().max().copied().unwrap_or(0);
        prop_assert!(most <= partitions.div_ceil(racks.len()));
    }

    #[test]
    fn a_group_always_has_a_partition(group: String, partitions in 1..2000_i32) {
        let PartitionId(at) = group_partition(&group, partitions);
        prop_assert!((0..partitions).contains(&at));
    }
}
