//! Slices: bounded, whole in the end, true of the last view whatever happens between two.

use super::*;
use alloc::format;
use alloc::string::String;
use ottla_model::{Partition, Timestamp, Topic, TopicId};
use proptest::prelude::*;

fn view(names: impl IntoIterator<Item = String>) -> TopicsView {
    TopicsView::new(names.into_iter().map(|name| {
        let mut id = [0; 16];
        name.bytes().enumerate().for_each(|(at, byte)| id[at % 16] ^= byte.rotate_left(at as u32));
        let partitions = alloc::vec![Partition::default()];
        Topic { id: TopicId(id), name: TopicName::from(name.as_str()), partitions }
    }))
}

type Known = BTreeMap<Arc<str>, ConsumerGroupRegularExpressionValue>;

fn know(known: &mut Known, found: Found) {
    known.extend(found.into_iter().map(|(pattern, topics)| {
        let resolved_at = Timestamp(0);
        (pattern, ConsumerGroupRegularExpressionValue { topics, version: 0, resolved_at })
    }));
}

fn subscribed(patterns: &[&str]) -> BTreeMap<Arc<str>, u32> {
    patterns.iter().map(|pattern| (Arc::from(*pattern), 1)).collect()
}

/// Issue 4, KIP-1263: a pattern that is slow for each byte takes more slices, none of them longer
/// than one name more than the budget.
#[test]
fn a_hostile_pattern_takes_many_short_slices() {
    let view = view((0..400).map(|topic| format!("{topic:0249}")));
    let slices = |pattern: &str| {
        let (subscribed, known) = (subscribed(&[pattern]), Known::new());
        let subject = Subject { subscribed: &subscribed, known: &known, view: &view };
        let mut matching = Matching::default();
        for slice in 1.. {
            let mut budget = SLICE;
            let before = matching.scan.as_ref().map_or(0, |scan| scan.topics.len());
            if matching.step(&subject, &mut budget) {
                return (slice, matching.finish().0.remove(pattern).map(|topics| topics.len()));
            }
            let cost = Pattern::parse(pattern).expect("a pattern").cost(&"0".repeat(249));
            let after = matching.scan.as_ref().map_or(0, |scan| scan.topics.len());
            assert!(after.saturating_sub(before + 1) * cost <= SLICE, "a slice is too long");
        }
        unreachable!("it comes to an end")
    };
    let (few, all) = slices("[0-9]*");
    let (many, all_too) = slices("(.{1,100}0?){9}.*");
    assert_eq!((all, all_too), (Some(400), Some(400)));
    assert!(few <= 4 && many > 40, "{few} slices, and {many}");
}

/// A topic that comes is matched with each pattern, and nothing else is.
#[test]
fn only_what_differs_is_looked_at_again() {
    let (patterns, mut known) = (subscribed(&["a.*", ".*z"]), Known::new());
    let all = view((0..1000).map(|topic| format!("a{topic}")));
    let mut matching = Matching::default();
    let mut budget = usize::MAX;
    let subject = Subject { subscribed: &patterns, known: &known, view: &all };
    assert!(matching.is_due(&subject) && matching.step(&subject, &mut budget));
    know(&mut known, matching.finish().0);
    let names = all.topics().map(|topic| String::from(topic.name.as_str()));
    let more = view(names.chain([String::from("az")]));
    let subject = Subject { subscribed: &patterns, known: &known, view: &more };
    assert!(!matching.is_due(&subject));
    matching.look_at(Again::These(Arc::new([TopicName::from("az")].into())), None);
    let mut budget = SLICE;
    assert!(matching.step(&subject, &mut budget));
    assert!(SLICE - budget <= 2 * (COMPILING + 32), "a thousand topics were not looked at");
    let found = matching.finish().0;
    assert_eq!((found["a.*"].len(), found[".*z"].len()), (1001, 1));
}

proptest! {
    /// Whatever comes between slices, in the end each pattern stands for exactly what it matches.
    #[test]
    fn every_pattern_ends_up_true(
        steps in proptest::collection::vec((0u8..6, 0u8..16, 0u16..4), 1..40),
        budgets in proptest::collection::vec(1usize..6000, 1..8),
    ) {
        const TEXTS: [&str; 4] = ["a.*", ".*1", "b[0-3]", "(a|b)[5-9]"];
        let mut names: BTreeSet<String> = ["a0", "a1", "b2"].map(String::from).into();
        let (mut patterns, mut known) = (subscribed(&["a.*"]), Known::new());
        let mut now = view(names.iter().cloned());
        let mut matching = Matching::default();
        let mut budgets = budgets.into_iter().cycle();
        for (what, topic, pattern) in steps {
            let name = format!("{}{}", ["a", "b"][usize::from(topic % 2)], topic / 2);
            match what {
                0 | 1 => {
                    if !names.remove(&name) {
                        names.insert(name.clone());
                    }
                    now = view(names.iter().cloned());
                    let differing = [TopicName::from(name.as_str())].into();
                    matching.look_at(Again::These(Arc::new(differing)), None);
                }
                2 => {
                    let text = Arc::from(TEXTS[usize::from(pattern)]);
                    if patterns.remove(&text).is_some() {
                        known.remove(&text);
                    } else {
                        patterns.insert(text, 1);
                    }
                }
                3 => matching.look_at(Again::All, None),
                _ => {
                    let mut budget = budgets.next().expect("an endless cycle");
                    go_on(&mut matching, &patterns, &mut known, &now, &mut budget);
                }
            }
        }
        for _ in 0..200 {
            go_on(&mut matching, &patterns, &mut known, &now, &mut SLICE.clone());
        }
        for text in patterns.keys() {
            let pattern = Pattern::parse(text).expect("a pattern");
            let all = now.topics().map(|topic| topic.name.clone());
            let matching: Vec<_> = all.filter(|name| pattern.matches(name)).collect();
            prop_assert_eq!(&known[text].topics, &matching, "{}", text);
        }
    }
}

fn go_on(
    matching: &mut Matching,
    subscribed: &BTreeMap<Arc<str>, u32>,
    known: &mut Known,
    view: &TopicsView,
    budget: &mut usize,
) {
    if matching.step(&Subject { subscribed, known, view }, budget) {
        let mut found = matching.finish().0;
        found.retain(|text, _| subscribed.contains_key(text));
        know(known, found);
    }
}
