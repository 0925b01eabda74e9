//! Equal to Java in every byte, and no harm from bytes that are equal to nothing.

use super::*;
use alloc::format;
use alloc::vec;
use ottla_model::TopicPartition;
use proptest::prelude::*;

/// What Kafka's Java client 4.4.0 writes: `name hex`, one per line, from its ConsumerProtocol,
/// StickyAssignor and CooperativeStickyAssignor.
const JAVA: &str = include_str!("java-4.4.0.txt");

fn java(name: &str) -> Vec<u8> {
    let line = JAVA.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let hex = line.unwrap_or_else(|| panic!("no fixture {name}"));
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn owned(partitions: &[(&str, i32)]) -> Partitions {
    partitions.iter().map(|(topic, partition)| TopicPartition::new(*topic, *partition)).collect()
}

fn full() -> Subscription {
    Subscription {
        topics: vec!["beta".into(), "alpha".into()],
        user_data: Some(vec![1, 2, 3]),
        owned: owned(&[("beta", 0), ("beta", 2), ("alpha", 7)]),
        generation: Some(Generation(42)),
        rack: Some("rack-1".into()),
    }
}

#[test]
fn subscriptions_equal_java_in_every_version() {
    let bare = Subscription { topics: vec!["t".into()], ..Subscription::default() };
    for version in 0..=VERSION_MAX {
        assert_eq!(full().encode(version), java(&format!("subscription-full-v{version}")));
        assert_eq!(bare.encode(version), java(&format!("subscription-bare-v{version}")));
        let read = Subscription::decode(&java(&format!("subscription-full-v{version}"))).unwrap();
        assert_eq!(read.encode(version), full().encode(version));
        assert_eq!(read.generation, full().generation.filter(|_| version >= 2));
    }
}

#[test]
fn assignments_equal_java_in_every_version() {
    let full = Assignment { partitions: owned(&[("t", 0), ("t", 3)]), user_data: Some(vec![9]) };
    for version in 0..=VERSION_MAX {
        assert_eq!(full.encode(version), java(&format!("assignment-full-v{version}")));
        let empty = java(&format!("assignment-empty-v{version}"));
        assert_eq!(Assignment::default().encode(version), empty);
        assert_eq!(Assignment::decode(&empty), Ok(Assignment::default()));
        assert_eq!(Assignment::decode(&full.encode(version)).as_ref(), Ok(&full));
    }
    assert_eq!(Assignment::decode(&[]), Ok(Assignment::default()));
}

#[test]
fn sticky_user_data_equals_java() {
    let mine = owned(&[("t", 0), ("t", 3)]);
    let since = Some(Generation(5));
    assert_eq!(user_data(Assignor::Sticky, &mine, since), Some(java("sticky")));
    assert_eq!(user_data(Assignor::Sticky, &mine, None), None);
    assert_eq!(user_data(Assignor::CooperativeSticky, &mine, since), Some(java("cooperative")));
    let none = user_data(Assignor::CooperativeSticky, &Partitions::new(), None);
    assert_eq!(none, Some(java("cooperative-none")));
    let said = Subscription { user_data: Some(java("sticky")), ..Subscription::default() };
    assert_eq!(said.claim(Assignor::Sticky), (mine, since));
}

/// Some clients write version 1 and leave its field out; a version from the future has more.
#[test]
fn lenient_where_real_clients_are_odd() {
    let mut short = java("subscription-bare-v0");
    short[1] = 1;
    assert_eq!(Subscription::decode(&short).unwrap().topics, vec![TopicName::from("t")]);
    let mut future = full().encode(3);
    future[1] = 9;
    future.extend([1, 2, 3, 4]);
    assert_eq!(Subscription::decode(&future).unwrap().rack, full().rack);
}

#[test]
fn promises_beyond_the_bytes_are_refused() {
    let huge = [0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0];
    assert_eq!(Subscription::decode(&huge), Err(Malformed::Truncated));
    assert_eq!(Assignment::decode(&huge), Err(Malformed::Truncated));
    assert_eq!(Assignment::decode(&[0xff, 0xff]), Err(Malformed::Version(-1)));
    let null_list = [0, 0, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(Subscription::decode(&null_list), Err(Malformed::MissingValue));
}

fn any_subscription() -> impl Strategy<Value = Subscription> {
    let name = "[a-z.]{1,6}";
    let topics = prop::collection::btree_set(name, 0..5);
    let held = prop::collection::vec((name, any::<i32>()), 0..9);
    let data = prop::option::of(prop::collection::vec(any::<u8>(), 0..9));
    let rack = prop::option::of("[a-z]{0,4}");
    (topics, data, held, prop::option::of(0..i32::MAX), rack).prop_map(
        |(topics, user_data, held, generation, rack)| Subscription {
            topics: topics.into_iter().map(TopicName::from).collect(),
            user_data,
            owned: held.iter().map(|(t, p)| TopicPartition::new(t.as_str(), *p)).collect(),
            generation: generation.map(Generation),
            rack,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(subscription in any_subscription()) {
        let bytes = subscription.encode(VERSION_MAX);
        prop_assert_eq!(Subscription::decode(&bytes), Ok(subscription));
    }

    /// Any prefix and any flipped byte is read or refused; neither panics.
    #[test]
    fn damaged_bytes_do_no_harm(
        subscription in any_subscription(),
        cut in any::<prop::sample::Index>(),
        flip in any::<u8>(),
    ) {
        let mut bytes = subscription.encode(VERSION_MAX);
        let at = cut.index(bytes.len());
        let _ = Subscription::decode(&bytes[..at]);
        bytes[at] ^= flip;
        let _ = Subscription::decode(&bytes);
        let _ = Assignment::decode(&bytes);
    }
}
