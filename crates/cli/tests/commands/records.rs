//! `ottla produce` and `ottla consume`.

use crate::world::{json, ottla, piped, topic, unique};

#[test]
fn lines_become_records_and_records_lines() {
    let topic = topic("records", 2);
    let produce =
        ["produce", &topic, "-k", ":", "--partition", "1", "-H", "a=b", "--null-value", "-"];
    piped(&produce, "k:one\ntwo\nk:-\n").ok();
    let read = ottla(&["consume", &topic, "--format", "%p/%o %k=%v %h"]).ok();
    assert_eq!(read.out, "1/0 k=one a=b\n1/1 =two a=b\n1/2 k= a=b\n");
    let last = format!("{topic}:1");
    let last = ottla(&["consume", &last, "--from", "-1", "--output", "json"]).ok().json();
    assert_eq!((&last["offset"], &last["value"]), (&2.into(), &serde_json::Value::Null));
    let until = ottla(&["consume", &topic, "--from", "1", "--until", "2"]).ok();
    assert_eq!(until.out, "two\n");
    assert_eq!(ottla(&["consume", &topic, "--from", "now"]).ok().out, "");
    assert_eq!(ottla(&["consume", &unique("none")]).code, 3);
}

/// What a group has read it does not read again, until it is sent back.
#[test]
fn a_group_goes_on_where_it_was_and_can_be_sent_back() {
    let (topic, group) = (topic("again", 1), unique("group"));
    piped(&["produce", &topic], "a\nb\nc\n").ok();
    let consume = |count: &str| {
        ottla(&["consume", &topic, "--group", &group, "-n", count, "--idle", "20s"]).ok().out
    };
    assert_eq!(consume("3"), "a\nb\nc\n");
    let described = json(&["group", "describe", &group]);
    assert_eq!((&described[0]["lag"], &described[0]["state"]), (&0.into(), &"Empty".into()));
    let back = ["group", "offsets", "reset", &group, "--topic", &topic, "--to-datetime"];
    let back = [&back[..], &["yesterday", "--execute"]].concat();
    assert_eq!(json(&back)["partitions"][0]["new"], 0);
    assert_eq!(consume("3"), "a\nb\nc\n");
}
