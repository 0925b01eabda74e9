//! An idempotent producer of one partition that never gives a record up, and the check of what it
//! was told against what lies in the log.

use crate::link::Link;
use crate::world::{Progress, Random, TOPIC, World};
use ottla_model::{ProducerEpoch, ProducerId, Timestamp};
use ottla_records::{Batches, Builder, Compression, NewRecord};
use ottla_wire::Records;
use ottla_wire::generated::fetch_request::{FetchPartition, FetchTopic};
use ottla_wire::generated::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_wire::generated::{
    FetchRequest, FetchResponse, InitProducerIdRequest, InitProducerIdResponse, ProduceRequest,
    ProduceResponse,
};
use std::collections::VecDeque;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Batches a producer has in flight; the broker remembers five.
const IN_FLIGHT: usize = 3;
const RECORDS_PER_BATCH: std::ops::Range<u64> = 1..20;
const PRODUCE_VERSION: i16 = 9;
const FETCH_VERSION: i16 = 12;

/// What a producer was told.
pub(crate) struct Ledger {
    partition: i32,
    /// Per acked batch: its first number and the offset the broker named for it.
    acked: Vec<(i64, i64)>,
    /// Numbers below this one were acked.
    acked_end: i64,
    /// Numbers below this one were sent.
    sent_end: i64,
}

struct Producer {
    id: ProducerId,
    epoch: ProducerEpoch,
    partition: i32,
    random: Random,
    unacked: VecDeque<Sent>,
    ledger: Ledger,
}

struct Sent {
    first: i64,
    count: i64,
    bytes: Vec<u8>,
}

/// Produces numbers from 0 until the world stops, then until all it sent is acked.
pub(crate) fn run(world: &World, partition: i32, seed: u64) -> Ledger {
    let Some((id, epoch)) = producer_id(world) else { panic!("stopped before it began") };
    let ledger = Ledger { partition, acked: Vec::new(), acked_end: 0, sent_end: 0 };
    let random = Random::new(seed.wrapping_add(partition as u64 + 1));
    let mut producer = Producer { id, epoch, partition, random, unacked: VecDeque::new(), ledger };
    while let Some(link) = world.connect() {
        // Whatever broke: the same batches go out again, under the same numbers.
        let _ = producer.drive(world, link);
    }
    let _ = producer.finish(world);
    producer.ledger
}

fn producer_id(world: &World) -> Option<(ProducerId, ProducerEpoch)> {
    // A nullable string is not null by default.
    let transactional_id = None;
    let request = InitProducerIdRequest {
        transactional_id,
        transaction_timeout_ms: 1000,
        ..Default::default()
    };
    loop {
        let Ok(answer) = world.connect()?.ask(4, &request) else { continue };
        let response: InitProducerIdResponse = answer.read();
        if response.error_code == 0 {
            return Some((
                ProducerId(response.producer_id),
                ProducerEpoch(response.producer_epoch),
            ));
        }
    }
}

impl Producer {
    fn drive(&mut self, world: &World, mut link: Link) -> io::Result<()> {
        for sent in &self.unacked {
            self.send(&mut link, sent)?;
        }
        while !world.is_stopping() {
            while self.unacked.len() < IN_FLIGHT {
                let sent = self.next();
                // Kept before it is sent: one that breaks off in sending has to go again.
                self.unacked.push_back(sent);
                self.send(&mut link, self.unacked.back().expect("just kept"))?;
            }
            self.receive(world, &mut link)?;
        }
        Ok(())
    }

    /// Gets an answer for all that is in flight, so that the ledger is complete.
    fn finish(&mut self, world: &World) -> io::Result<()> {
        let mut link = world.connect_to_verify();
        for sent in &self.unacked {
            self.send(&mut link, sent)?;
        }
        while !self.unacked.is_empty() {
            self.receive(world, &mut link)?;
        }
        Ok(())
    }

    fn next(&mut self) -> Sent {
        let first = self.ledger.sent_end;
        let count = self.random.within(RECORDS_PER_BATCH) as i64;
        let sequence = i32::try_from(first).expect("the test ends before numbers wrap");
        let mut builder = Builder::new(Compression::None).producer(self.id, self.epoch, sequence);
        for number in first..first + count {
            let value = number.to_be_bytes();
            let record = NewRecord::new(now(), None, Some(&value));
            builder.append(&record).expect("a small batch");
        }
        self.ledger.sent_end = first + count;
        Sent { first, count, bytes: builder.build().expect("a small batch").to_vec() }
    }

    fn send(&self, link: &mut Link, sent: &Sent) -> io::Result<()> {
        let partition = PartitionProduceData {
            index: self.partition,
            records: Some(Records::Borrowed(&sent.bytes)),
        };
        let request = ProduceRequest {
            transactional_id: None,
            acks: -1,
            timeout_ms: 10_000,
            topic_data: vec![TopicProduceData {
                name: TOPIC,
                partition_data: vec![partition],
                ..Default::default()
            }],
        };
        link.send(PRODUCE_VERSION, &request)
    }

    fn receive(&mut self, world: &World, link: &mut Link) -> io::Result<()> {
        let answer = link.receive::<ProduceRequest<'_>>(PRODUCE_VERSION)?;
        let response: ProduceResponse<'_> = answer.read();
        let outcome = &response.responses[0].partition_responses[0];
        match outcome.error_code {
            0 => self.acked(world, outcome.base_offset),
            // Not here yet, not leader, storage: whatever a restarting broker may say.
            3 | 5 | 6 | 7 | 56 => return Err(io::Error::other("not now")),
            code => {
                let (partition, message) = (self.partition, outcome.error_message);
                world.violation(format!("partition {partition}: error {code}: {message:?}"));
            }
        }
        Ok(())
    }

    fn acked(&mut self, world: &World, offset: i64) {
        let Some(sent) = self.unacked.pop_front() else { return };
        self.ledger.acked.push((sent.first, offset));
        self.ledger.acked_end = sent.first + sent.count;
        world.count(Progress::Records(sent.count as u64));
    }
}

/// Old records would be retention's to delete.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is set");
    Timestamp(since.as_millis() as i64)
}

/// Every acked number is in the log once, in order, where the broker said; nothing else is.
pub(crate) fn verify(world: &World, ledger: &Ledger) {
    let stored = stored(world, ledger.partition);
    let numbers: Vec<i64> = stored.iter().map(|(_, number)| *number).collect();
    let expected: Vec<i64> = (0..numbers.len() as i64).collect();
    if numbers != expected {
        let at = numbers.iter().zip(&expected).position(|(is, should)| is != should);
        world.violation(format!("partition {}: numbers break at {at:?}", ledger.partition));
    }
    let kept = numbers.len() as i64;
    if kept < ledger.acked_end || kept > ledger.sent_end {
        let (acked, sent) = (ledger.acked_end, ledger.sent_end);
        world.violation(format!("{kept} records kept, {acked} acked, {sent} sent"));
    }
    for (first, offset) in &ledger.acked {
        if stored.get(*first as usize) != Some(&(*offset, *first)) {
            world.violation(format!("number {first} was acked at offset {offset}"));
        }
    }
}

/// All records of a partition: offset and number.
fn stored(world: &World, partition: i32) -> Vec<(i64, i64)> {
    let mut link = world.connect_to_verify();
    let mut found = Vec::new();
    loop {
        let next = found.last().map_or(0, |(offset, _)| offset + 1);
        let answer = link.ask(FETCH_VERSION, &fetch(partition, next)).expect("an answer");
        let response: FetchResponse<'_> = answer.read();
        let data = &response.responses[0].partitions[0];
        assert_eq!(data.error_code, 0, "fetch from {next}");
        let before = found.len();
        if let Some(records) = &data.records {
            let bytes: Vec<u8> = records.chunks().flatten().copied().collect();
            read_numbers(&bytes, next, &mut found);
        }
        if found.len() == before {
            assert_eq!(next, data.high_watermark, "all is read");
            return found;
        }
    }
}

fn fetch(partition: i32, from: i64) -> FetchRequest<'static> {
    let partition = FetchPartition {
        partition,
        fetch_offset: from,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    FetchRequest {
        max_wait_ms: 0,
        max_bytes: 1 << 20,
        topics: vec![FetchTopic {
            topic: TOPIC,
            partitions: vec![partition],
            ..Default::default()
        }],
        session_epoch: -1,
        ..Default::default()
    }
}

fn read_numbers(bytes: &[u8], from: i64, found: &mut Vec<(i64, i64)>) {
    for batch in Batches::new(bytes).map_while(Result::ok) {
        batch.verify_crc().expect("a batch as it was written");
        let records = batch.records(1 << 20).expect("a batch of ours");
        for record in records.iter() {
            let record = record.expect("a record of ours");
            let value = record.value.expect("a value of ours");
            let number = i64::from_be_bytes(value.try_into().expect("eight bytes"));
            if record.offset.0 >= from {
                found.push((record.offset.0, number));
            }
        }
    }
}
