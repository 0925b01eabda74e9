//! A single Apache Kafka 4.4 node, broker and controller in one process, on free loopback ports.

use super::process::{Background, create};
use super::{jars, java_class};
use crate::kafka::install::quiet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Flags of the JVM where nothing is measured.
const SMALL_JVM: &[&str] = &["-Xmx512m", "-XX:+UseSerialGC"];
/// The file in a node's folder with the flags of its JVM.
const JVM_OPTIONS: &str = "jvm.options";

/// Formats `folder` for a new cluster and starts a node in it, with more lines for its properties
/// than every run needs (those that begin with a dash are flags of the JVM instead of the usual
/// ones); returns it with its address.
pub fn start(folder: &Path, settings: &[&str]) -> Result<(Background, String), String> {
    let bootstrap = format!("127.0.0.1:{}", free_port()?);
    let properties = folder.join("server.properties");
    let mut text = server_properties(&bootstrap, free_port()?, folder);
    let (flags, lines): (Vec<&str>, Vec<&str>) =
        settings.iter().partition(|setting| setting.starts_with('-'));
    text += &lines.join("\n");
    let flags = if flags.is_empty() { SMALL_JVM.to_vec() } else { flags };
    let options = folder.join(JVM_OPTIONS);
    let written = create(&options)?.write_all(flags.join("\n").as_bytes());
    written.map_err(|error| format!("{}: {error}", options.display()))?;
    let written = create(&properties)?.write_all(text.as_bytes());
    written.map_err(|error| format!("{}: {error}", properties.display()))?;
    format_storage(&properties)?;
    Ok((start_again(folder, &bootstrap)?, bootstrap))
}

/// Starts the node in a folder that was formatted for it.
pub fn start_again(folder: &Path, bootstrap: &str) -> Result<Background, String> {
    let mut command = Command::new("java");
    command.arg(format!("@{}", folder.join(JVM_OPTIONS).display())).arg("-cp");
    command.arg(format!("{}/*", jars()?.display())).arg("kafka.Kafka");
    command.arg(folder.join("server.properties"));
    let mut node = Background::start("Apache Kafka", command, &folder.join("kafka.log"))?;
    node.wait_for(START_TIMEOUT, |_| answers(bootstrap).then_some(()))?;
    Ok(node)
}

/// Whether a broker at this address answers a first question, as every client's first.
pub fn answers(bootstrap: &str) -> bool {
    // Size, API key 18 (ApiVersions), version 0, correlation id, no client id.
    const API_VERSIONS: &[u8] = &[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];
    let Ok(mut stream) = TcpStream::connect(bootstrap) else { return false };
    let mut reply = [0; 8];
    stream.set_read_timeout(Some(Duration::from_secs(2))).is_ok()
        && stream.write_all(API_VERSIONS).is_ok()
        && stream.read_exact(&mut reply).is_ok()
        && reply.ends_with(&[0, 0, 0, 7])
}

/// A loopback port that was free a moment ago.
pub fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    Ok(listener.local_addr().map_err(|error| error.to_string())?.port())
}

fn format_storage(properties: &Path) -> Result<(), String> {
    // Any 16 bytes in Kafka's base64 name a cluster.
    const CLUSTER_ID: &str = "T3R0bGFNYXRyaXhOb2RlMQ";
    let mut command = java_class("kafka.tools.StorageTool")?;
    command.args(["format", "--cluster-id", CLUSTER_ID, "--config"]).arg(properties);
    quiet(&mut command)
}

fn server_properties(bootstrap: &str, controller_port: u16, folder: &Path) -> String {
    let data = folder.join("data");
    format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller_port}\n\
         listeners=CLIENT://{bootstrap},CONTROLLER://127.0.0.1:{controller_port}\n\
         advertised.listeners=CLIENT://{bootstrap}\n\
         inter.broker.listener.name=CLIENT\n\
         controller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
         log.dirs={}\n\
         group.initial.rebalance.delay.ms=100\n\
         offsets.topic.replication.factor=1\n\
         share.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n",
        data.display()
    )
}
