//! This client as a program of the client matrix: it speaks the command language of
//! `matrix/README.md`, and is driven by `cargo xtask matrix ottla` and `cargo xtask client`.

use ottla_client::{
    Admin, AdminConfig, CommittedOffset, Consumer, ConsumerConfig, ConsumerHandle, Delivery,
    NewTopic, Offset, OffsetReset, Producer, ProducerConfig, ProducerRecord, RebalanceListener,
    Records, Result, TopicFilter, TopicPartition,
};
use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

type Outcome<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let mut flags = Flags(HashMap::new());
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        flags.0.insert(name, value);
    }
    match command.as_str() {
        "version" => emit(&format!("ottla-client {}", env!("CARGO_PKG_VERSION"))),
        "create-topic" => create_topic(&flags).await?,
        "produce" => produce(&flags).await?,
        "consume" => consume(&flags).await?,
        other => return Err(format!("no command `{other}`").into()),
    }
    Ok(())
}

/// What follows the command: names and values.
struct Flags(HashMap<String, String>);

impl Flags {
    fn text(&self, name: &str) -> Outcome<&str> {
        Ok(self.maybe(name).ok_or_else(|| format!("{name} is missing"))?)
    }

    fn maybe(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Outcome<u64> {
        Ok(self.text(name)?.parse().map_err(|_| format!("{name} is no number"))?)
    }
}

async fn create_topic(flags: &Flags) -> Outcome {
    let admin = Admin::new(AdminConfig::new(flags.text("--bootstrap")?))?;
    let partitions = i32::try_from(flags.number("--partitions")?).unwrap_or(i32::MAX);
    admin.create_topic(NewTopic::new(flags.text("--topic")?, partitions)).await?;
    Ok(())
}

async fn produce(flags: &Flags) -> Outcome {
    let config = ProducerConfig::new(flags.text("--bootstrap")?)
        .set("compression.type", flags.text("--codec")?)?
        .set("enable.idempotence", flags.text("--idempotent")?)?
        .set("linger.ms", "5")?;
    let (topic, first) = (flags.text("--topic")?, flags.number("--first")?);
    let (records, keys) = (flags.number("--records")?, flags.number("--keys")?);
    let producer = Producer::new(config)?;
    let mut deliveries: Vec<Delivery> = Vec::new();
    for number in first..first + records {
        let key = format!("k{}", number % keys);
        let value = format!("{key}:{}", number / keys);
        deliveries.push(producer.send(ProducerRecord::to(topic).key(&key).value(&value)).await?);
    }
    producer.flush().await?;
    for delivery in deliveries {
        delivery.await?;
    }
    emit(&format!("produced {records}"));
    Ok(producer.close().await?)
}

async fn consume(flags: &Flags) -> Outcome {
    let mut config = ConsumerConfig::new(flags.text("--bootstrap")?)
        .group_id(flags.text("--group")?)
        .enable_auto_commit(false)
        .auto_offset_reset(OffsetReset::Earliest)
        .metadata_max_age(Duration::from_secs(5))
        .set("group.protocol", flags.maybe("--protocol").unwrap_or("classic"))?
        .set("session.timeout.ms", flags.text("--session-timeout-ms")?)?
        .set("heartbeat.interval.ms", "500")?;
    if let Some(instance) = flags.maybe("--instance-id") {
        config = config.group_instance_id(instance);
    }
    if let Some(assignor) = flags.maybe("--assignor") {
        config = config.set("partition.assignment.strategy", assignor)?;
    }
    let progress = Progress::default();
    let mut consumer = Consumer::new(config)?;
    consumer.set_listener(progress.clone());
    match flags.maybe("--pattern") {
        Some(pattern) => consumer.subscribe_matching(TopicFilter::allow(pattern)?)?,
        None => consumer.subscribe([flags.text("--topic")?])?,
    }
    // Whoever started it asks it to leave by closing its input.
    let input_ended =
        std::thread::spawn(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    // Time that the application would need for what one poll found.
    let work = Duration::from_millis(flags.number("--work-ms").unwrap_or(0));
    let reports_tasks = flags.maybe("--tasks") == Some("true");
    let mut reported = Instant::now();
    while !input_ended.is_finished() {
        if reports_tasks && reported.elapsed() >= Duration::from_secs(1) {
            reported = Instant::now();
            let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
            emit(&format!("tasks {tasks}"));
        }
        match consumer.poll(Duration::from_millis(100)).await {
            Ok(records) => progress.take(&consumer, &records, work).await,
            Err(error) => emit(&format!("error {error}")),
        }
    }
    consumer.close().await?;
    emit("closed");
    Ok(())
}

/// What was read and is not committed yet: the next offset by partition.
#[derive(Clone, Default)]
struct Progress(Arc<Mutex<BTreeMap<TopicPartition, i64>>>);

impl Progress {
    async fn take(&self, consumer: &ConsumerHandle, records: &Records, work: Duration) {
        let mut lines = String::new();
        for record in records.iter() {
            let text = |bytes: Option<&[u8]>| {
                String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
            };
            let (partition, offset) = (record.partition(), record.offset().0);
            let (key, value) = (text(record.key()), text(record.value()));
            lines += &format!("record {} {offset} {key} {value}\n", partition.partition);
            self.with(|open| open.insert(partition.clone(), offset + 1));
        }
        emit(lines.trim_end());
        if !records.is_empty() {
            tokio::time::sleep(work).await;
        }
        self.commit(consumer).await;
    }

    async fn commit(&self, consumer: &ConsumerHandle) {
        let open = self.with(|open| open.clone());
        if open.is_empty() {
            return;
        }
        let next =
            |(of, next): (&TopicPartition, &i64)| (of.clone(), CommittedOffset::new(Offset(*next)));
        match consumer.commit_offsets(open.iter().map(next)).await {
            Ok(()) => {
                let of = |(of, next): (&TopicPartition, &i64)| format!("{}:{next}", of.partition);
                emit(&format!("committed {}", open.iter().map(of).collect::<Vec<_>>().join(",")));
                self.with(|now| now.retain(|of, next| open.get(of) != Some(next)));
            }
            // It is committed with what comes next, or is another's.
            Err(error) => emit(&format!("error commit: {error}")),
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<TopicPartition, i64>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl RebalanceListener for Progress {
    async fn revoked(&mut self, consumer: &ConsumerHandle, gone: &[TopicPartition]) -> Result<()> {
        self.commit(consumer).await;
        self.lost(consumer, gone).await
    }

    async fn assigned(&mut self, _: &ConsumerHandle, new: &[TopicPartition]) -> Result<()> {
        emit(&format!("assigned {}", list(new)));
        Ok(())
    }

    async fn lost(&mut self, _: &ConsumerHandle, gone: &[TopicPartition]) -> Result<()> {
        self.with(|open| open.retain(|partition, _| !gone.contains(partition)));
        emit(&format!("revoked {}", list(gone)));
        Ok(())
    }
}

fn list(partitions: &[TopicPartition]) -> String {
    let numbers = partitions.iter().map(|one| one.partition.to_string());
    numbers.collect::<Vec<_>>().join(",")
}

/// Lines, whole and at once.
fn emit(lines: &str) {
    if !lines.is_empty() {
        // Nobody is left to tell when nobody reads.
        let _ = writeln!(std::io::stdout(), "{lines}");
    }
}
