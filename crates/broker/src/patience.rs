//! Which client bears which way to hear of a change at once: its heartbeat's answer kept
//! (*hold*), or a short interval between heartbeats while it owes or awaits something
//! (*interval*). A table by the name that a client gives of itself in ApiVersions (v3 and later);
//! every row says what it rests on: measurements where it has some (`docs/performance.md`), else
//! the clients' sources and the matrix, in which they all run with it. A client that is not in it
//! gets neither.
//!
//! Knows no group and no connection; what is done with it is the core's rule.

use crate::config::{Config, PerClient};
use ottla_group::message::Patience;
use std::time::Duration;

/// What is known of clients, and what the operator wants instead.
#[derive(Debug)]
pub(crate) struct Patiences {
    holds: PerClient,
    intervals: PerClient,
    /// Whether a request behind a held answer is read, and can so release it.
    reads_on: bool,
}

/// One client library.
#[derive(Debug)]
pub struct Row {
    /// The name it gives itself; wrappers of a library have a name of their own.
    pub software: &'static str,
    /// What it bears.
    pub patience: Patience,
    /// Why.
    pub because: &'static str,
}

impl Patiences {
    /// By the settings.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            holds: config.group_heartbeat_hold_max.clone(),
            intervals: config.group_heartbeat_interval_min.clone(),
            reads_on: config.connection_in_flight_requests_max > 1,
        }
    }

    /// What a client of this name and version bears; both empty for one that names neither.
    pub(crate) fn of(&self, name: &str, version: &str) -> Patience {
        let known = row(name, version);
        let borne = known.map_or(Patience::default(), |row| row.patience);
        let software = known.map_or(name, |row| row.software);
        let wanted = |settings: &PerClient, borne| match settings.of(software) {
            Some(Duration::ZERO) => None,
            Some(wanted) => Some(wanted),
            None => borne,
        };
        Patience {
            hold_max: wanted(&self.holds, borne.hold_max).filter(|_| self.reads_on),
            interval_min: wanted(&self.intervals, borne.interval_min),
            ..borne
        }
    }
}

/// What is known of a client. Wrappers of librdkafka that are not named here still tell of it in
/// their version.
fn row(name: &str, version: &str) -> Option<&'static Row> {
    let by_name = |name: &str| ROWS.iter().find(|row| row.software == name);
    by_name(name).or_else(|| by_name(LIBRDKAFKA).filter(|_| version.contains(LIBRDKAFKA)))
}

const LIBRDKAFKA: &str = "librdkafka";

/// Milliseconds; zero where it does not bear that.
const fn bears(hold: u64, interval: u64) -> Patience {
    let hold_max = if hold == 0 { None } else { Some(Duration::from_millis(hold)) };
    let interval_min = if interval == 0 { None } else { Some(Duration::from_millis(interval)) };
    Patience { hold_max, interval_min, acks_at_once: false, rests_after_answer: false }
}

/// The same of a client that acknowledges a revocation at once, measured at 1-5 ms (librdkafka)
/// and at 12-145 ms (Java, which looks each 50 ms).
const fn acks(hold: u64, interval: u64) -> Patience {
    Patience { acks_at_once: true, ..bears(hold, interval) }
}

/// All that is known.
pub static ROWS: &[Row] = &[
    Row {
        software: "apache-kafka-java",
        patience: acks(9_000, 100),
        because: "4.4 sends its next heartbeat an interval after the last one whether or not that \
                  was answered, on the coordinator's own connection, so no answer is kept longer \
                  than its interval, and whatever it commits or asks releases it. It acts on an \
                  answer as soon as it comes. Measured with ten members, consumer protocol: \
                  a join takes 303 ms without automatic commits and 4569 ms with them (Kafka \
                  5120): a commit each 5 s releases the answer, and nothing reaches the member \
                  until its next heartbeat.",
    },
    Row {
        software: LIBRDKAFKA,
        patience: acks(9_000, 200),
        because: "2.16 has one heartbeat on its way at a time, on the coordinator's own \
                  connection, and sends the next one when an answer has come and the interval has \
                  passed. It gives up after the session timeout. Its timer for heartbeats is \
                  looked at twice a second, hence no interval below 200 ms. Measured with ten \
                  members, consumer protocol: a join 204 ms, a leave 7 ms (Kafka 4.4: 5055, 2936).",
    },
    Row {
        software: "confluent-kafka-python",
        patience: acks(9_000, 200),
        because: "librdkafka under another name.",
    },
    Row {
        software: "confluent-kafka-go",
        patience: acks(9_000, 200),
        because: "librdkafka under another name.",
    },
    Row {
        software: "confluent-kafka-dotnet",
        patience: acks(9_000, 200),
        because: "librdkafka under another name.",
    },
    Row {
        software: "karafka",
        patience: acks(9_000, 200),
        because: "librdkafka under another name.",
    },
    Row {
        software: "ClickHouse",
        patience: acks(9_000, 200),
        because: "librdkafka under another name.",
    },
    Row {
        software: "kgo",
        patience: Patience { rests_after_answer: true, ..bears(6_000, 100) },
        because: "franz-go 1.22 waits for the answer in the loop that also hears of new topics, \
                  and begins its interval with it; a request for metadata or to leave comes on the \
                  same connection and releases it. Shorter, so that nothing else waits long.",
    },
    Row {
        software: "ottla",
        patience: acks(9_000, 100),
        because: "Our own counts its interval from the heartbeat it sent, has one on its way at a \
                  time on the coordinator's own connection, and acknowledges as soon as the \
                  application has given up what it had to.",
    },
    Row {
        software: "kafka-python",
        patience: bears(9_000, 0),
        because: "3.0 has one heartbeat on its way at a time, in a task of its own.",
    },
    Row {
        software: "sarama",
        patience: bears(0, 0),
        because: "1.61 waits for its heartbeat's answer before it leaves or joins again, and would \
                  do both as much later.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(settings: &[(&str, &str)], name: &str, version: &str) -> Patience {
        let mut config = Config::default();
        for (setting, value) in settings {
            config.set(setting, value, crate::config::Source::Flag).expect("a good setting");
        }
        Patiences::new(&config).of(name, version)
    }

    const HOLD: &str = "group.heartbeat.hold.max.ms";

    /// Issue 4: an unknown client gets neither lever; kafkajs says no name at all.
    #[test]
    fn who_is_not_known_is_answered_at_once() {
        for name in ["", "kafkajs", "somebody", "sarama"] {
            assert_eq!(of(&[], name, "1.0"), Patience::default(), "{name}");
        }
    }

    #[test]
    fn wrappers_of_librdkafka_are_known_by_name_or_by_version() {
        let librdkafka = of(&[], "librdkafka", "2.16.1");
        assert!(librdkafka.hold_max.is_some());
        for (name, version) in [
            ("confluent-kafka-go", "2.8.0"),
            ("ClickHouse", "25.1"),
            ("rdkafka-ruby", "0.21-librdkafka-2.8.0"),
        ] {
            assert_eq!(of(&[], name, version), librdkafka, "{name}");
        }
    }

    #[test]
    fn the_operator_has_the_last_word() {
        let only = [(HOLD, "kgo=1500, *=0")];
        assert_eq!(of(&only, "kgo", "1").hold_max, Some(Duration::from_millis(1500)));
        assert_eq!(of(&only, "apache-kafka-java", "4").hold_max, None);
        assert_eq!(of(&[(HOLD, "*=50")], "", "").hold_max, Some(Duration::from_millis(50)));
        // Nobody would read what comes behind a kept answer.
        let alone = [("connection.in.flight.requests.max", "1")];
        assert_eq!(of(&alone, "kgo", "1").hold_max, None);
    }

    #[test]
    fn every_row_says_what_it_rests_on_and_keeps_the_bounds() {
        for row in ROWS {
            assert!(!row.because.is_empty());
            let interval = row.patience.interval_min;
            assert!(interval.is_none_or(|it| it >= Duration::from_millis(100)), "{}", row.software);
        }
    }
}
