//! `ottla topic`.

use crate::world::{command, json, ottla, topic, unique};

#[test]
fn a_topic_is_created_described_altered_and_deleted() {
    let name = unique("life");
    let create = ["topic", "create", &name, "-p", "2", "--config", "retention.ms=60000"];
    let created = ottla(&create).ok();
    assert!(created.out.contains("created"), "{created:?}");
    let listed = json(&["topic", "list"]);
    let listed = listed.as_array().expect("a list").iter().find(|line| line["topic"] == *name);
    assert_eq!(listed.expect("listed")["partitions"], 2);

    let alter = ["topic", "alter", &name, "--partitions", "3", "--config", "retention.ms=70000"];
    ottla(&alter).ok();
    let described = json(&["topic", "describe", &name]);
    assert_eq!(described[0]["partitions"].as_array().expect("a list").len(), 3);
    assert_eq!(described[0]["partitions"][2]["latest"], 0);
    assert_eq!(described[0]["configs"][0]["name"], "retention.ms");
    assert_eq!(described[0]["configs"][0]["value"], "70000");
    let text = ottla(&["topic", "describe", &name]).ok().out;
    assert!(text.contains("retention.ms=70000") && text.contains("EARLIEST"), "{text}");

    ottla(&["topic", "delete", &name]).ok();
    assert_eq!(ottla(&["topic", "describe", &name]).code, 3);
}

/// Scripts tell by the code alone what went wrong; people by the words what to do.
#[test]
fn failures_have_codes_and_say_what_to_do_next() {
    let name = topic("taken", 1);
    let again = ottla(&["topic", "create", &name]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.err.contains("--if-not-exists"), "{again:?}");
    ottla(&["topic", "create", &name, "--if-not-exists"]).ok();

    let none = unique("none");
    let missing = ottla(&["topic", "delete", &none, "--output", "json"]);
    assert_eq!(missing.code, 3, "{missing:?}");
    let error: serde_json::Value = serde_json::from_str(&missing.err).expect("JSON");
    assert_eq!(error["error"]["kafka_code"], "UNKNOWN_TOPIC_OR_PARTITION");
    ottla(&["topic", "delete", &none, "--if-exists"]).ok();

    assert_eq!(ottla(&["topic", "alter", &name]).code, 2);
    assert_eq!(ottla(&["topic", "create", &name, "--config", "x"]).code, 2);
}

/// One of several that fails keeps none of the others from being done.
#[test]
fn what_can_be_done_is_done() {
    let (name, none) = (topic("some", 1), unique("none"));
    let deleted = ottla(&["topic", "delete", &none, &name, "--output", "json"]);
    assert_eq!(deleted.code, 3);
    assert_eq!(deleted.json()[0]["topic"], *name);
}

#[test]
fn a_broker_that_is_not_there_is_named() {
    let mut list = command(&["topic", "list", "-b", "127.0.0.1:1", "--timeout", "300ms"]);
    let ran: crate::world::Ran = list.output().expect("it ends").into();
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.err.contains("127.0.0.1:1") && ran.err.contains("hint"), "{ran:?}");
}
