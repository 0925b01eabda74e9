//! The journal's entries in a line of words. Pure.

use super::view::host;
use ottla_client::admin::{JournalEntry, Trigger, Who};
use std::time::Duration;

/// Why, in the order it happened, in a line. `name` is how a member is called.
pub(crate) fn causes(entry: &JournalEntry, name: impl Fn(&Who) -> String) -> String {
    let mut causes: Vec<String> = entry.triggers.iter().map(|it| brief(it, &name)).collect();
    if entry.absorbed > 0 {
        causes.push(format!("and {} more", entry.absorbed));
    }
    causes.join("; ")
}

/// One cause by the journal's own name, with all that is known of it.
pub(super) fn cause(trigger: &Trigger) -> String {
    let mut words = vec![brief(trigger, member)];
    let by = trigger.by.as_ref();
    words.extend(by.map(|by| format!("by {} at {}", by.client_id, host(&by.client_host))));
    words.extend(trigger.reason.as_ref().map(|reason| format!("({reason})")));
    words.join(" ")
}

/// One cause by the journal's own name, and whom or what it is about.
fn brief(trigger: &Trigger, name: impl Fn(&Who) -> String) -> String {
    let mut words = vec![format!("{:?}", trigger.cause)];
    words.extend(trigger.who.as_ref().map(name));
    words.extend(trigger.replaced.as_ref().map(|member| format!("in place of {member}")));
    words.extend(trigger.topic.as_ref().map(ToString::to_string));
    words.extend(trigger.setting.as_ref().map(ToString::to_string));
    words.join(" ")
}

/// A member by its id, which other commands take, and where it is.
fn member(who: &Who) -> String {
    format!("{} at {}", who.member, host(&who.client_host))
}

/// A member by what people call it, and where it is.
pub(super) fn client(who: &Who) -> String {
    let name = who.instance.as_deref().unwrap_or(&who.client_id);
    format!("{name} at {}", host(&who.client_host))
}

/// A length of time, as exactly as a person cares for.
pub(crate) fn span(span: Duration) -> String {
    match span.as_millis() {
        0..10 => format!("{:.1} ms", span.as_secs_f64() * 1000.0),
        millis @ 10..10_000 => format!("{millis} ms"),
        10_000..600_000 => format!("{:.1} s", span.as_secs_f64()),
        _ => format!("{} min", span.as_secs() / 60),
    }
}

/// How many partitions moved that the entry does not name.
pub(super) fn untold(entry: &JournalEntry) -> usize {
    let moved = entry.moved.and_then(|moved| usize::try_from(moved).ok()).unwrap_or(0);
    moved.saturating_sub(entry.moves.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ottla_client::admin::{Caller, Cause};

    fn who() -> Who {
        Who {
            member: "m-1".into(),
            instance: None,
            client_id: "c".into(),
            client_host: "/10.0.0.1".into(),
        }
    }

    #[test]
    fn a_cause_has_its_own_name_and_all_that_is_known_of_it() {
        let trigger = Trigger {
            who: Some(who()),
            by: Some(Caller { client_id: "admin".into(), client_host: "/10.0.0.9".into() }),
            reason: Some("host is gone".into()),
            ..Trigger::new(Cause::Removed)
        };
        let words = "Removed m-1 at 10.0.0.1 by admin at 10.0.0.9 (host is gone)";
        assert_eq!(cause(&trigger), words);
        assert_eq!(brief(&trigger, client), "Removed c at 10.0.0.1");
        let trigger = Trigger { topic: Some("t".into()), ..Trigger::new(Cause::TopicCreated) };
        assert_eq!(cause(&trigger), "TopicCreated t");
    }

    #[test]
    fn a_length_of_time_is_as_exact_as_it_is_short() {
        let told = [1_250, 211_400, 45_040_000, 900_000_000].map(Duration::from_micros).map(span);
        assert_eq!(told, ["1.2 ms", "211 ms", "45.0 s", "15 min"]);
    }
}
