//! `ottla group`, with a group that has offsets and no members.

use crate::world::{Member, is_ottla, json, ottla, topic, unique};

#[test]
fn a_group_without_offsets_is_given_some_and_loses_them() {
    let (topic, group) = (topic("offsets", 2), unique("group"));
    let reset = ["group", "offsets", "reset", &group, "--topic", &topic, "--to-earliest"];
    let planned = ottla(&reset).ok();
    assert!(planned.out.contains("WOULD BE"), "{planned:?}");
    assert!(planned.err.contains("--execute"), "{planned:?}");
    assert_eq!(json(&["group", "offsets", "show", &group]), serde_json::json!([]));

    let done = json(&[&reset[..], &["--execute"]].concat());
    assert_eq!(done["executed"], true);
    assert_eq!(done["partitions"][1]["new"], 0);
    let described = json(&["group", "describe", &group]);
    assert_eq!(described[0]["state"], "Empty");
    assert_eq!(described[0]["lag"], 0);
    assert_eq!(described[0]["partitions"][1]["offset"], 0);
    let listed = json(&["group", "list", "--state", "empty"]);
    let mut listed = listed.as_array().expect("a list").iter();
    assert!(listed.any(|line| line["group"] == *group));

    let one = format!("{topic}:1");
    let delete = ["group", "offsets", "delete", &group, "--topic", &one];
    assert_eq!(json(&delete)["executed"], false);
    assert_eq!(json(&[&delete[..], &["--execute"]].concat())["partitions"][0]["partition"], 1);
    let left = json(&["group", "offsets", "show", &group]);
    assert_eq!((&left[0]["partition"], left.as_array().map(Vec::len)), (&0.into(), Some(1)));

    ottla(&["group", "delete", &group]).ok();
    assert_eq!(ottla(&["group", "describe", &group]).code, 3);
}

#[test]
fn what_cannot_be_planned_is_said_before_anything_is_done() {
    let (topic, group) = (topic("plan", 1), unique("group"));
    let reset = |words: &[&str]| {
        ottla(&[&["group", "offsets", "reset", &group, "--execute"], words].concat())
    };
    assert_eq!(reset(&["--topic", &topic]).code, 2);
    assert_eq!(reset(&["--to-earliest"]).code, 2);
    assert_eq!(reset(&["--topic", &topic, "--to-datetime", "someday"]).code, 2);
    assert_eq!(reset(&["--topic", &format!("{topic}:7"), "--to-earliest"]).code, 3);
    assert_eq!(reset(&["--all-topics", "--to-earliest"]).code, 3);
    assert_eq!(reset(&["--topic", &topic, "--shift-by", "-1"]).code, 3);
    assert_eq!(ottla(&["group", "offsets", "show", &group]).code, 0);
    assert_eq!(ottla(&["group", "remove-member", &group, "--member", "x"]).code, 3);
}

/// Whoever changes the offsets of a group at work loses records or reads them twice.
#[test]
fn a_group_with_members_keeps_its_offsets_and_says_whom_to_stop() {
    let (topic, group) = (topic("busy", 1), unique("group"));
    let reset = ["group", "offsets", "reset", &group, "--topic", &topic, "--to-latest"];
    let delete = ["group", "offsets", "delete", &group, "--topic", &topic];
    ottla(&[&reset[..], &["--execute"]].concat()).ok();
    let member = Member::start(&topic, &group);
    for change in [&reset[..], &delete[..]] {
        let planned = ottla(change).ok();
        assert!(planned.err.contains("Not yet, though"), "{planned:?}");
        let refused = ottla(&[change, &["--execute"]].concat());
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.err.contains("has 1 member ("), "{refused:?}");
        assert!(refused.err.contains("hint: stop its consumers"), "{refused:?}");
    }
    drop(member);
}

/// What is in the way of a migration is asked before the first client is changed (issue 4).
#[test]
fn a_group_tells_whether_it_could_go_to_the_consumer_protocol() {
    let (topic, group) = (topic("goes", 1), unique("group"));
    let _member = Member::start(&topic, &group);
    let described = json(&["group", "describe", &group]);
    if !is_ottla() {
        assert_eq!(described[0]["migration"], serde_json::Value::Null);
        return;
    }
    let free = serde_json::json!({ "to": "consumer", "obstacles": [] });
    assert_eq!(described[0]["migration"], free, "{described}");
    let text = ottla(&["group", "describe", &group]).ok().out;
    assert!(text.contains("migration to consumer: nothing in the way"), "{text}");
}
