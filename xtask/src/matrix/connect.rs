//! Two Kafka Connect workers in distributed mode: JoinGroup of the protocol type `connect`,
//! compacted topics as their memory, tasks that move when a worker goes.

use super::clients::Client;
use super::java::{classes, compile, jvm};
use super::report::{Report, Step};
use super::scenario::Setting;
use crate::kafka::node::free_port;
use crate::kafka::process::{Background, Call, create};
use crate::kafka::{jars, java_class};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(90);
const TOPIC: &str = "matrix-connect-numbers";
const TASKS: usize = 4;
const CONNECTOR: &str = "org.apache.kafka.connect.source.SourceConnector";

/// Runs a counting source on two workers, then on one.
pub fn run(_: &Client, setting: &Setting, report: &mut Report) {
    let mut workers = Vec::new();
    let spread = report.step(Step::Other("two workers share the tasks"), || {
        install()?;
        for _ in 0..2 {
            workers.push(Worker::start(setting, workers.len())?);
        }
        workers[1].await_answer()?;
        workers[0].await_answer()?;
        workers[0].create_connector()?;
        workers[0].await_tasks(TASKS / 2)
    });
    let moved = spread
        && report.step(Step::Other("one stops, the other takes its tasks"), || {
            workers.remove(1).process.terminate(TIMEOUT)?;
            workers[0].await_tasks(TASKS)
        });
    if moved {
        report.step(Step::Other("every task's numbers are there"), || {
            let before = numbers(setting, 1)?;
            std::thread::sleep(Duration::from_secs(1));
            workers.remove(0).process.terminate(TIMEOUT)?;
            let after = numbers(setting, 2)?;
            without_gaps(&after)?;
            let grew = after.iter().all(|(task, all)| before[task].len() < all.len());
            if grew { Ok(()) } else { Err("a task stood still".into()) }
        });
    }
}

fn install() -> Result<(), String> {
    compile("connect", &["matrix/java/connect/Numbers.java"], &jars()?)?;
    let service = classes("connect").join("META-INF/services").join(CONNECTOR);
    let written = create(&service)?.write_all(b"Numbers\n");
    written.map_err(|error| format!("{}: {error}", service.display()))
}

struct Worker {
    process: Background,
    port: u16,
}

impl Worker {
    fn start(setting: &Setting, index: usize) -> Result<Self, String> {
        let port = free_port()?;
        let properties = setting.logs.join(format!("connect-{index}.properties"));
        let text = worker_properties(&setting.bootstrap, port);
        create(&properties)?.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
        let mut command = jvm("connect", &jars()?);
        command.arg("org.apache.kafka.connect.cli.ConnectDistributed").arg(properties);
        let log = setting.logs.join(format!("connect-{index}.log"));
        Ok(Self { process: Background::start("a Connect worker", command, &log)?, port })
    }

    fn await_answer(&mut self) -> Result<(), String> {
        let port = self.port;
        self.process.wait_for(TIMEOUT, |_| http(port, "GET", "/connectors", None).ok().map(drop))
    }

    fn create_connector(&self) -> Result<(), String> {
        let config = json!({
            "connector.class": "Numbers",
            "tasks.max": TASKS.to_string(),
            "topic": TOPIC,
        });
        let deadline = Instant::now() + TIMEOUT;
        loop {
            // A worker refuses with 409 while its group rebalances.
            let done = http(self.port, "PUT", "/connectors/numbers/config", Some(&config));
            match done {
                Ok(_) => return Ok(()),
                Err(problem) if Instant::now() > deadline => return Err(problem),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Waits until all tasks run, so many on each worker.
    fn await_tasks(&self, each: usize) -> Result<(), String> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let status = http(self.port, "GET", "/connectors/numbers/status", None);
            let shares = status.as_ref().map(shares).unwrap_or_default();
            if shares.values().sum::<usize>() == TASKS && shares.values().all(|n| *n == each) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("running tasks by worker: {shares:?}; {status:?}"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Running tasks by worker.
fn shares(status: &Value) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for task in status["tasks"].as_array().into_iter().flatten() {
        if task["state"] == "RUNNING" {
            *shares.entry(task["worker_id"].to_string()).or_insert(0) += 1;
        }
    }
    shares
}

/// All numbers in the topic, by task.
fn numbers(setting: &Setting, call: usize) -> Result<BTreeMap<String, BTreeSet<u64>>, String> {
    let mut command = java_class("org.apache.kafka.tools.consumer.ConsoleConsumer")?;
    command.args(["--bootstrap-server", &setting.bootstrap, "--topic", TOPIC]);
    command.args(["--from-beginning", "--timeout-ms", "3000", "--max-messages", "1000000"]);
    command.args(["--formatter-property", "print.key=true"]);
    let log = setting.logs.join(format!("connect-numbers-{call}.log"));
    // While the source counts on, the topic has no end: half of the time limit is enough.
    let text = Call::start(command, &log, "")?.output_within(TIMEOUT / 9)?;
    let mut numbers: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (task, number) in text.lines().filter_map(|line| line.split_once('\t')) {
        if let Ok(number) = number.parse() {
            numbers.entry(task.into()).or_default().insert(number);
        }
    }
    if numbers.len() == TASKS { Ok(numbers) } else { Err(format!("{} tasks", numbers.len())) }
}

fn without_gaps(numbers: &BTreeMap<String, BTreeSet<u64>>) -> Result<(), String> {
    let gap = numbers.iter().find(|(_, all)| all.last() != Some(&(all.len() as u64 - 1)));
    match gap {
        None => Ok(()),
        Some((task, all)) => Err(format!("task {task}: {} of {:?}", all.len(), all.last())),
    }
}

/// One request to a worker's REST side; anything but success is an error.
fn http(port: u16, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut reply = String::new();
    let mut exchange = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(request.as_bytes())?;
        stream.read_to_string(&mut reply)
    };
    exchange().map_err(|error| format!("{path}: {error}"))?;
    let (head, body) = reply.split_once("\r\n\r\n").ok_or("an answer without a body")?;
    let success = head.split(' ').nth(1).is_some_and(|code| code.starts_with('2'));
    if success {
        serde_json::from_str(body).map_err(|error| format!("{path}: {error}: {body}"))
    } else {
        Err(format!("{method} {path}: {reply}"))
    }
}

fn worker_properties(bootstrap: &str, port: u16) -> String {
    format!(
        "bootstrap.servers={bootstrap}\n\
         group.id=matrix-connect\n\
         listeners=http://127.0.0.1:{port}\n\
         key.converter=org.apache.kafka.connect.storage.StringConverter\n\
         value.converter=org.apache.kafka.connect.storage.StringConverter\n\
         config.storage.topic=matrix-connect-configs\n\
         offset.storage.topic=matrix-connect-offsets\n\
         status.storage.topic=matrix-connect-status\n\
         config.storage.replication.factor=1\n\
         offset.storage.replication.factor=1\n\
         status.storage.replication.factor=1\n\
         offset.flush.interval.ms=500\n\
         session.timeout.ms=6000\n\
         heartbeat.interval.ms=500\n\
         scheduled.rebalance.max.delay.ms=1000\n\
         plugin.discovery=service_load\n"
    )
}
