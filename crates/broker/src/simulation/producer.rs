//! An idempotent producer of one partition that never gives a record up, and the check of what it
//! was told against what lies in the log.

use super::Counts;
use super::client::Call;
use super::machine::Run;
use crate::clock;
use ottla_model::{ProducerEpoch, ProducerId};
use ottla_records::{Batches, Builder, Compression, NewRecord};
use ottla_storage::fs::sim::Rng;
use ottla_wire::Records;
use ottla_wire::generated::fetch_request::{FetchPartition, FetchTopic};
use ottla_wire::generated::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_wire::generated::{
    FetchRequest, FetchResponse, InitProducerIdRequest, InitProducerIdResponse, ProduceRequest,
    ProduceResponse,
};
use std::collections::VecDeque;

/// A producer and what it was told.
pub(super) struct Producer {
    topic: &'static str,
    partition: i32,
    /// Stands in every record: of another life of the topic there must be none.
    life: i64,
    id: ProducerId,
    epoch: ProducerEpoch,
    /// Sent and not acked, oldest first.
    unacked: VecDeque<Sent>,
    /// Per acked batch: its first number and the offset the broker named for it.
    acked: Vec<(i64, i64)>,
    acked_end: i64,
    sent_end: i64,
}

struct Sent {
    first: i64,
    count: i64,
    bytes: Vec<u8>,
    /// None if it must be sent again.
    call: Option<Call>,
}

impl Producer {
    /// A producer with an id of its own; none if there was no answer.
    pub(super) async fn new(
        run: &Run,
        topic: &'static str,
        partition: i32,
        life: i64,
    ) -> Option<Self> {
        // A nullable string is not null by default.
        let transactional_id = None;
        let request = InitProducerIdRequest {
            transactional_id,
            transaction_timeout_ms: 1_000,
            ..Default::default()
        };
        let response = run.wait(run.call(4, &request)).await?;
        let given: InitProducerIdResponse = response.read();
        (given.error_code == 0).then(|| Self {
            topic,
            partition,
            life,
            id: ProducerId(given.producer_id),
            epoch: ProducerEpoch(given.producer_epoch),
            unacked: VecDeque::new(),
            acked: Vec::new(),
            acked_end: 0,
            sent_end: 0,
        })
    }

    /// Its id.
    pub(super) fn id(&self) -> ProducerId {
        self.id
    }

    /// Whether everything is acked.
    pub(super) fn is_idle(&self) -> bool {
        self.unacked.is_empty()
    }

    /// Sends again what must be sent again, else something new.
    pub(super) fn drive(&mut self, run: &Run, rng: &mut Rng, counts: &mut Counts) {
        self.send_unacked(run, counts);
        // A log that does not know a producer takes whatever it sends first, as in Kafka: with the
        // second batch on its way, the first must not be refused.
        let in_flight_max = if self.acked.is_empty() { 1 } else { IN_FLIGHT };
        if self.unacked.len() < in_flight_max {
            let mut sent = self.next(rng);
            sent.call = Some(self.send(run, &sent.bytes));
            self.unacked.push_back(sent);
        }
    }

    /// Sends again, in order, what has no answer to come.
    pub(super) fn send_unacked(&mut self, run: &Run, counts: &mut Counts) {
        if self.unacked.iter().all(|sent| sent.call.is_some()) {
            return;
        }
        let calls: Vec<Call> =
            self.unacked.iter().map(|sent| self.send(run, &sent.bytes)).collect();
        for (sent, call) in self.unacked.iter_mut().zip(calls) {
            sent.call = Some(call);
            counts.note("batches sent again");
        }
    }

    /// Takes the answers that are there.
    pub(super) async fn collect(&mut self, run: &Run, counts: &mut Counts) {
        while let Some(oldest) = self.unacked.front_mut()
            && let Some(call) = oldest.call.take_if(|call| call.is_done())
        {
            let Some(response) = run.take(call).await else { return };
            let response: ProduceResponse<'_> = response.read();
            let outcome = &response.responses[0].partition_responses[0];
            match outcome.error_code {
                0 => {
                    let sent = self.unacked.pop_front().expect("just looked at");
                    assert_eq!(sent.first, self.acked_end);
                    self.acked.push((sent.first, outcome.base_offset));
                    self.acked_end = sent.first + sent.count;
                    counts.note("batches acked");
                }
                // Not here, not leader, storage: whatever a broker with a bad disk may say.
                3 | 5 | 6 | 7 | 56 => return self.lose_answers(),
                code => panic!("{}: error {code}: {:?}", self.name(), outcome.error_message),
            }
        }
    }

    /// The connection broke: what is not acked goes again.
    pub(super) fn lose_answers(&mut self) {
        self.unacked.iter_mut().for_each(|sent| sent.call = None);
    }

    /// Every acked number is in the log once, in order, where the broker said; nothing else is.
    pub(super) async fn check(&self, run: &Run) {
        let Some(stored) = self.stored(run).await else { return };
        let name = self.name();
        for (at, (_, life, number)) in stored.iter().enumerate() {
            assert_eq!((*life, *number), (self.life, at as i64), "{name}");
        }
        let kept = stored.len() as i64;
        assert!(kept >= self.acked_end, "{name}: {kept} kept, {} acked", self.acked_end);
        assert!(kept <= self.sent_end, "{name}: {kept} kept, {} sent", self.sent_end);
        for (first, offset) in &self.acked {
            assert_eq!(stored[*first as usize].0, *offset, "{name}: {first} was acked there");
        }
    }

    fn name(&self) -> String {
        format!("{}-{} life {}", self.topic, self.partition, self.life)
    }

    fn next(&mut self, rng: &mut Rng) -> Sent {
        let (first, count) = (self.sent_end, 1 + rng.below(4) as i64);
        let sequence = i32::try_from(first).expect("a life ends before numbers wrap");
        let mut builder = Builder::new(Compression::None).producer(self.id, self.epoch, sequence);
        for number in first..first + count {
            let mut value = [self.life.to_be_bytes(), number.to_be_bytes()].concat();
            value.resize(16 + rng.below(400) as usize, 0xab);
            let record = NewRecord::new(clock::now().wall, None, Some(&value));
            builder.append(&record).expect("a small batch");
        }
        self.sent_end = first + count;
        let bytes = builder.build().expect("a small batch").to_vec();
        Sent { first, count, bytes, call: None }
    }

    fn send(&self, run: &Run, bytes: &[u8]) -> Call {
        let partition =
            PartitionProduceData { index: self.partition, records: Some(Records::Borrowed(bytes)) };
        let topic = TopicProduceData {
            name: self.topic,
            partition_data: vec![partition],
            ..Default::default()
        };
        let request = ProduceRequest {
            transactional_id: None,
            acks: -1,
            timeout_ms: 10_000,
            topic_data: vec![topic],
        };
        run.call(9, &request)
    }

    /// Offset, life and number of every record; none if the machine ended.
    async fn stored(&self, run: &Run) -> Option<Vec<(i64, i64, i64)>> {
        let mut found: Vec<(i64, i64, i64)> = Vec::new();
        loop {
            let next = found.last().map_or(0, |(offset, ..)| offset + 1);
            let response = run.wait(run.call(12, &self.fetch(next))).await?;
            let response: FetchResponse<'_> = response.read();
            let data = &response.responses[0].partitions[0];
            if data.error_code != 0 && run.is_over() {
                return None;
            }
            assert_eq!(data.error_code, 0, "{}: fetch from {next}", self.name());
            let before = found.len();
            if let Some(records) = &data.records {
                let bytes: Vec<u8> = records.chunks().flatten().copied().collect();
                read_numbers(&bytes, next, &mut found);
            }
            if found.len() == before {
                assert_eq!(next, data.high_watermark, "{}: all is read", self.name());
                return Some(found);
            }
        }
    }

    fn fetch(&self, from: i64) -> FetchRequest<'static> {
        let partition = FetchPartition {
            partition: self.partition,
            fetch_offset: from,
            partition_max_bytes: 3_000,
            ..Default::default()
        };
        let topic =
            FetchTopic { topic: self.topic, partitions: vec![partition], ..Default::default() };
        FetchRequest {
            max_wait_ms: 0,
            max_bytes: 1 << 20,
            topics: vec![topic],
            session_epoch: -1,
            ..Default::default()
        }
    }
}

fn read_numbers(bytes: &[u8], from: i64, found: &mut Vec<(i64, i64, i64)>) {
    for batch in Batches::new(bytes).map_while(Result::ok) {
        batch.verify_crc().expect("a batch as it was written");
        let records = batch.records(1 << 20).expect("a batch of ours");
        for record in records.iter().map(|record| record.expect("a record of ours")) {
            let value = record.value.expect("a value of ours");
            let number = |at: usize| {
                let bytes = value[at..at + 8].try_into().expect("eight bytes");
                i64::from_be_bytes(bytes)
            };
            if record.offset.0 >= from {
                found.push((record.offset.0, number(0), number(8)));
            }
        }
    }
}

/// Batches a producer has in flight; the broker remembers five.
const IN_FLIGHT: usize = 4;
