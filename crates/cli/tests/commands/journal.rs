//! `ottla group journal`, and whom a group waits for in `ottla group describe`.

use crate::world::{Member, is_ottla, json, ottla, topic, unique};
use serde_json::Value;
use std::time::{Duration, Instant};

/// What a rebalance was for is what an operator asks first (issue 4, must-show 7).
#[test]
fn a_group_tells_why_it_rebalanced_and_what_moved() {
    let (topic, group) = (topic("why", 4), unique("group"));
    assert_eq!(ottla(&["group", "journal", &group]).code, if is_ottla() { 3 } else { 6 });
    let one = Member::start(&topic, &group);
    if !is_ottla() {
        let refused = ottla(&["group", "journal", &group]);
        assert_eq!(refused.code, 6, "{refused:?}");
        assert!(refused.err.contains("keeps no journal"), "{refused:?}");
        assert_eq!(json(&["group", "describe", &group])[0]["blocking"], Value::Null);
        return;
    }
    let _two = Member::start(&topic, &group);
    one.stop();
    let journal = eventually("it left", || {
        let journal = json(&["group", "journal", &group]);
        (journal["journal"][0]["causes"][0]["cause"] == "Left").then_some(journal)
    });
    assert_eq!(journal["group"], *group);
    let entries = journal["journal"].as_array().expect("a list");
    let left = &entries[0]["causes"][0]["member"];
    assert_eq!((&left["client_id"], &left["host"]), (&"reader".into(), &"127.0.0.1".into()));
    let joined = |entry: &&Value| entry["causes"][0]["cause"] == "Joined";
    assert_eq!(entries.iter().filter(joined).count(), 2, "{journal}");
    let second = entries.iter().find(joined).expect("two joined");
    assert_eq!((&second["members"], &second["moved"]), (&2.into(), &2.into()));
    assert_eq!(second["moves"].as_array().map(Vec::len), Some(2));

    let generation = second["generation"].to_string();
    let text = ottla(&["group", "journal", &group, "--generation", &generation]).ok().out;
    for words in ["CAUSES", "Joined reader at", "Joined reader-", "SLOWEST", "MOVED", &topic] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let text = ottla(&["group", "journal", &group, "-n", "1"]).ok().out;
    assert!(text.contains("Left reader at 127.0.0.1") && !text.contains("Joined"), "{text}");
    assert_eq!(ottla(&["group", "journal", &group, "--generation", "999"]).code, 3);
}

/// A member that hangs is found while it hangs, not after its timeout.
#[test]
fn a_group_that_waits_tells_for_whom() {
    let (topic, group) = (topic("waits", 2), unique("group"));
    let hanging = Member::start(&topic, &group);
    let id = json(&["group", "describe", &group])[0]["members"][0]["member"].clone();
    hanging.signal(rustix::process::Signal::STOP);
    let _second = Member::spawn(&topic, &group);
    if !is_ottla() {
        return;
    }
    let blocking = eventually("the group waits", || {
        let described = json(&["group", "describe", &group]);
        let blocking = described[0]["blocking"][0].clone();
        (!blocking.is_null()).then_some(blocking)
    });
    assert_eq!((&blocking["member"]["id"], &blocking["owes"]), (&id, &"Join".into()));
    for command in ["describe", "journal"] {
        let text = ottla(&["group", command, &group]).ok().out;
        assert!(text.contains("WAITS FOR") && text.contains("Join"), "{text}");
    }
}

fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
