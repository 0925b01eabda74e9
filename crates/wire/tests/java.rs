//! Equality with Kafka 4.4's own Java classes for every message, from a fixture they wrote: each
//! sample decodes, and encodes in every version to the bytes Kafka makes of it, or is refused where
//! Kafka refuses it. Each message's default is checked too.
//!
//! The fixture is made anew, with a JDK and Maven, by
//! `cargo test -p ottla-wire --test java -- --ignored`.

#![allow(clippy::unwrap_used)]

mod support;

use ottla_wire::generated::{self, request_header::RequestHeader, response_header::ResponseHeader};
use ottla_wire::{EncodeError, Message};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{Random, hex, sample, schemas, unhex};

const SAMPLES: u64 = 2;

const JARS: [&str; 3] =
    ["kafka-clients", "kafka-group-coordinator", "kafka-transaction-coordinator"];

/// Issue 3, "must show" 6.
#[test]
fn every_message_encodes_as_kafka_4_4_does() {
    let fixture = std::fs::read_to_string(fixture()).unwrap();
    let mut lines = 0;
    for line in fixture.lines() {
        let mut words = line.split(' ');
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        let outcomes = match version.parse() {
            Ok(version) => {
                let bytes = unhex(words.next().unwrap());
                recode(name, Some((version, &bytes)))
            }
            Err(_) => recode(name, None),
        };
        assert_eq!(outcomes.trim(), words.collect::<Vec<_>>().join(" "), "{name} {version}");
        lines += 1;
    }
    assert!(lines > 1000, "{lines}");
}

macro_rules! dispatch {
    ($($name:ident,)*) => {
        /// What `Recode.java` prints behind the sample, or behind the default if there is none.
        fn recode(name: &str, sample: Option<(i16, &[u8])>) -> String {
            match name {
                $(stringify!($name) => outcomes::<generated::$name>(sample),)*
                "RequestHeader" => outcomes::<RequestHeader>(sample),
                "ResponseHeader" => outcomes::<ResponseHeader>(sample),
                _ => panic!("no message `{name}`"),
            }
        }
    };
}
ottla_wire::each_message!(dispatch);

fn outcomes<'a, M: Message<'a> + Default>(sample: Option<(i16, &'a [u8])>) -> String {
    let message = match sample {
        Some((version, bytes)) => M::decode_all(bytes, version).unwrap(),
        None => M::default(),
    };
    let mut out = String::new();
    for version in M::VERSIONS.iter() {
        let _ = match message.to_vec(version) {
            Ok(bytes) => write!(out, " {version}:{:016x}", hash(&bytes)),
            Err(EncodeError { .. }) => write!(out, " {version}:!"),
        };
    }
    out
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    bytes
        .iter()
        .fold(start, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/java-4.4.txt")
}

#[test]
#[ignore = "needs a JDK and Maven; rewrites the fixture"]
fn rewrite_the_fixture() {
    let libraries = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kafka-4.4.0");
    let pom = libraries.join("pom.xml");
    std::fs::create_dir_all(&libraries).unwrap();
    std::fs::write(&pom, pom_text()).unwrap();
    let fetched = Command::new("mvn")
        .args(["-q", "dependency:copy-dependencies", "-DoutputDirectory=libs"])
        .current_dir(&libraries)
        .status();
    assert!(fetched.unwrap().success());
    let mut java = Command::new("java")
        .arg("-cp")
        .arg(libraries.join("libs/*"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/Recode.java"))
        .stdin(Stdio::piped())
        .stdout(std::fs::File::create(fixture()).unwrap())
        .spawn()
        .unwrap();
    java.stdin.take().unwrap().write_all(samples().as_bytes()).unwrap();
    assert!(java.wait().unwrap().success());
}

fn samples() -> String {
    let mut out = String::new();
    for schema in schemas().iter().filter(|schema| schema.key.is_none_or(|key| key < 32000)) {
        let _ = writeln!(out, "{} default", schema.name);
        for version in schema.versions.min..=schema.version_max() {
            for seed in 0..SAMPLES {
                let bytes = sample(schema, version, &mut Random(seed));
                let _ = writeln!(out, "{} {version} {}", schema.name, hex(&bytes));
            }
        }
    }
    out
}

fn pom_text() -> String {
    let mut dependencies = String::new();
    for jar in JARS {
        let _ = write!(
            dependencies,
            "<dependency><groupId>org.apache.kafka</groupId><artifactId>{jar}</artifactId>\
             <version>4.4.0</version></dependency>"
        );
    }
    format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>ottla</groupId>\
         <artifactId>wire-fixtures</artifactId><version>1</version>\
         <dependencies>{dependencies}</dependencies></project>"
    )
}
