//! S2: the design document's six usage examples, which are the crate's, do what they say.

use crate::harness::{bootstrap, fill, topic, unique};
use std::collections::HashMap;

#[path = "../../examples/e1_automatic_commits.rs"]
#[allow(dead_code, unreachable_pub)]
mod e1;
#[path = "../../examples/e2_manual_commits.rs"]
#[allow(dead_code, unreachable_pub)]
mod e2;
#[path = "../../examples/e3_rewind_a_group.rs"]
#[allow(dead_code, unreachable_pub)]
mod e3;
#[path = "../../examples/e4_own_offsets.rs"]
#[allow(dead_code, unreachable_pub)]
mod e4;
#[path = "../../examples/e5_fixed_partitions.rs"]
#[allow(dead_code, unreachable_pub)]
mod e5;
#[path = "../../examples/e6_fixed_partitions_own_offsets.rs"]
#[allow(dead_code, unreachable_pub)]
mod e6;

#[tokio::test]
async fn s2_e1_records_are_taken_and_committed() {
    let (a, b, group) = (topic("e1", 1).await, topic("e1", 1).await, unique("e1"));
    fill(&bootstrap(), &a, 1, 0, 10).await;
    fill(&bootstrap(), &b, 1, 0, 10).await;
    assert_eq!(e1::run(&bootstrap(), &group, &[&a, &b], 20).await.unwrap(), 20);
}

#[tokio::test]
async fn s2_e2_what_failed_is_processed_again() {
    let (name, group) = (topic("e2", 2).await, unique("e2"));
    fill(&bootstrap(), &name, 2, 0, 150).await;
    let mut seen = Vec::new();
    let process = |record: ottla_client::Record<'_>| {
        let value = String::from_utf8(record.value().unwrap().to_vec()).unwrap();
        let failed_before = seen.contains(&value);
        seen.push(value.clone());
        // Every tenth fails at first.
        failed_before || !value.ends_with('7')
    };
    e2::run(&bootstrap(), &group, &[&name], 150, process).await.unwrap();
    assert_eq!(seen.len(), 150 + 15);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 150);
}

#[tokio::test]
async fn s2_e3_a_group_is_rewound_by_a_hundred() {
    let (name, group) = (topic("e3", 1).await, unique("e3"));
    fill(&bootstrap(), &name, 1, 0, 150).await;
    let run = async |asked| e3::run(&bootstrap(), &group, &[&name], asked).await.unwrap();
    assert_eq!(run((150, false)).await.unwrap().0, 0);
    assert_eq!(run((10, true)).await.unwrap().0, 150 - e3::BACK);
    assert_eq!(run((1, false)).await.unwrap().0, 150 - e3::BACK + 10);
}

#[tokio::test]
async fn s2_e4_offsets_come_from_the_applications_store() {
    let (name, group) = (topic("e4", 2).await, unique("e4"));
    fill(&bootstrap(), &name, 2, 0, 40).await;
    let store = e4::Store::default();
    let mut values = Vec::new();
    for _ in 0..2 {
        values.extend(e4::run(&bootstrap(), &group, &[&name], 20, &store).await.unwrap());
    }
    values.sort();
    values.dedup();
    assert_eq!(values.len(), 40);
}

#[tokio::test]
async fn s2_e5_every_partition_is_read_to_its_end_once() {
    let (name, group) = (topic("e5", 3).await, unique("e5"));
    for _ in 0..2 {
        fill(&bootstrap(), &name, 3, 0, 31).await;
        assert_eq!(e5::run(&bootstrap(), &group, &[&name]).await.unwrap(), 31);
    }
}

#[tokio::test]
async fn s2_e6_partitions_are_read_on_from_the_applications_store() {
    let name = topic("e6", 1).await;
    let mut store = HashMap::new();
    for _ in 0..2 {
        fill(&bootstrap(), &name, 1, 0, 17).await;
        assert_eq!(e6::run(&bootstrap(), &[&name], &mut store).await.unwrap(), 17);
    }
}
