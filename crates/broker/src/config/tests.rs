//! Settings are read, refused and documented.

use super::*;

fn with(text: &str) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    config.apply_toml(text)?;
    Ok(config)
}

/// Decision 5: every default must pass its own bounds, and text and value must be one.
#[test]
fn every_default_survives_being_shown_and_read() {
    for setting in SETTINGS {
        let mut config = Config::default();
        let shown = setting.value(&config);
        config.set(setting.name, &shown, Source::Flag).expect(setting.name);
        assert_eq!(setting.value(&config), shown, "{}", setting.name);
        assert_eq!(config.source(setting.name), Source::Flag);
        assert!(!setting.doc.trim().is_empty());
    }
}

#[test]
fn quoted_and_dotted_names_are_the_same() {
    for text in ["\"node.id\" = 7", "node.id = 7", "[node]\nid = 7"] {
        let config = with(text).expect(text);
        assert_eq!((config.node_id, config.source("node.id")), (7, Source::File));
    }
}

#[test]
fn the_environment_wins_over_the_file() {
    let mut config = with("node.id = 7").expect("valid");
    let variables = [("OTTLA_NODE_ID", "8"), ("OTTLA_BROKERS", "x"), ("HOME", "/")];
    let variables = variables.map(|(name, value)| (name.to_string(), value.to_string()));
    config.apply_environment(variables).expect("valid");
    assert_eq!((config.node_id, config.source("node.id")), (8, Source::Environment));
}

#[test]
fn an_unknown_name_is_refused_with_its_nearest_neighbour() {
    let error = with("max.conections = 3").expect_err("no such setting");
    assert!(error.to_string().contains("did you mean 'max.connections'"), "{error}");
    let error = with("zookeeper.connect = 3").expect_err("no such setting");
    assert!(!error.to_string().contains("did you mean"), "{error}");
}

#[test]
fn a_value_out_of_bounds_is_refused_with_the_bounds() {
    let error = with("max.connections = 0").expect_err("too small");
    assert!(error.to_string().contains("1 to 1000000"), "{error}");
}

/// Kafka's list of directories would otherwise be one directory with a strange name.
#[test]
fn several_data_directories_are_refused() {
    let error = with("log.dirs = ['/a', '/b']").expect_err("one directory");
    assert!(error.to_string().contains("one directory"), "{error}");
    assert!(with("log.dirs = ''").is_err());
}

#[test]
fn listeners_carry_names_and_their_own_advertised_addresses() {
    let config = with(
        "listeners = 'INSIDE://inside.example:9092, outside://[::1]:0'\n\
         advertised.listeners = 'OUTSIDE://broker.example:19092'",
    )
    .expect("valid");
    let specs = config.listener_specs().expect("valid");
    let address = |host: &str, port| HostPort { host: host.into(), port };
    assert_eq!(specs[0].bind, address("inside.example", 9092));
    assert_eq!(specs[0].advertise, None);
    assert_eq!((specs[1].name.as_str(), &specs[1].bind), ("OUTSIDE", &address("::1", 0)));
    assert_eq!(specs[1].advertise, Some(address("broker.example", 19092)));
}

#[test]
fn senseless_listeners_are_refused() {
    for text in [
        "listeners = ''",
        "listeners = 'nowhere'",
        "listeners = '::1:9092'",
        "listeners = 'A://h:1,A://h:2'",
        "advertised.listeners = 'B://h:1'",
        "advertised.listeners = 'h:1,h:2'",
    ] {
        let config = with(text).expect("a string is a string");
        assert!(config.listener_specs().is_err(), "{text}");
    }
}

/// Kafka refuses it too: a client that is told 0.0.0.0, or another machine's localhost, connects
/// nowhere.
#[test]
fn whoever_listens_everywhere_must_say_what_to_connect_to() {
    for (text, named) in [
        ("listeners = '0.0.0.0:9092'", "--advertise PLAINTEXT://HOST:9092"),
        ("listeners = ':9092'", "--advertise"),
        ("listeners = 'A://[::]:9092'", "--advertise A://HOST:9092"),
        ("advertised.listeners = '0.0.0.0:9092'", "0.0.0.0"),
    ] {
        let error = with(text).expect(text).listener_specs().expect_err(text).to_string();
        assert!(error.contains(named), "{error}");
    }
    let text = "listeners = '0.0.0.0:9092'\nadvertised.listeners = 'localhost:9092'";
    assert!(with(text).expect(text).listener_specs().is_ok());
}

/// What looks secured must not be open: Kafka takes these names for security protocols.
#[test]
fn names_that_promise_security_are_refused() {
    for text in [
        "listeners = 'SSL://0.0.0.0:9093'",
        "listeners = 'PLAINTEXT://h:1,sasl_ssl://h:2'",
        "advertised.listeners = 'SASL_PLAINTEXT://h:1'",
    ] {
        let config = with(text).expect("a string is a string");
        let error = config.listener_specs().expect_err(text).to_string();
        let (setting, _) = text.split_once(" =").expect("a line of TOML");
        assert!(error.starts_with(setting) && error.contains("PLAINTEXT"), "{error}");
    }
}

/// Each alone is fine; together they would let nobody in, or a request wait for ever.
#[test]
fn settings_that_contradict_each_other_are_refused() {
    for (text, named) in [
        ("group.min.session.timeout.ms = 2000000", "group.max.session.timeout.ms"),
        ("group.consumer.min.session.timeout.ms = 46000", "group.consumer.session.timeout.ms"),
        ("group.consumer.max.session.timeout.ms = 44000", "group.consumer.session.timeout.ms"),
        ("group.consumer.max.heartbeat.interval.ms = 4000", "group.consumer.heartbeat.interval"),
        ("group.consumer.min.assignment.interval.ms = 101", "group.consumer.assignment.interval"),
        ("queued.max.request.bytes = 1000000", "socket.request.max.bytes"),
        ("queued.max.request.bytes = 0", "socket.request.max.bytes"),
    ] {
        let error = with(text).expect(text).check().expect_err(text).to_string();
        assert!(error.contains(named), "{error}");
    }
    assert_eq!(with("queued.max.request.bytes = -1").expect("valid").check(), Ok(()));
    assert_eq!(Config::default().check(), Ok(()));
}

/// What could not take effect is refused, not ignored (`docs/compatibility.md`).
#[test]
fn settings_of_kafka_that_mean_nothing_here_are_refused() {
    for text in [
        "group.consumer.assignor.offload.enable = false",
        "group.consumer.regex.refresh.interval.ms = 600000",
        "group.consumer.assignors = 'uniform,com.example.Lucky'",
        "group.consumer.assignors = ''",
        "group.consumer.assignors = 'range,range'",
    ] {
        assert!(with(text).is_err(), "{text}");
    }
}
