//! The producer against a real broker.

use crate::harness::{TestBroker, admin, bootstrap, end, topic, unique};
use ottla_client::{
    Acks, Admin, AdminConfig, Compression, ErrorCode, ErrorKind, NewTopic, Offset, Producer,
    ProducerConfig, ProducerRecord, TopicPartition,
};
use std::time::Duration;

#[tokio::test]
async fn every_codec_is_stored_and_every_record_reported() {
    let name = topic("produce-codecs", 1).await;
    for (round, codec) in Compression::ALL.into_iter().enumerate() {
        let config = ProducerConfig::new(bootstrap()).compression_type(codec);
        let producer = Producer::new(config).unwrap();
        let mut reports = Vec::new();
        for number in 0..200 {
            let value = format!("value {number} of {}", codec.name()).repeat(4);
            let record = ProducerRecord::to(&name).key("k").value(&value).header("n", "1");
            reports.push(producer.send(record).await.unwrap());
        }
        producer.flush().await.unwrap();
        for (number, report) in (0..).zip(reports) {
            let stored = report.await.unwrap();
            assert_eq!(stored.offset, Some(Offset(round as i64 * 200 + number)));
            assert_eq!(stored.partition, TopicPartition::new(&*name, 0));
        }
        producer.close().await.unwrap();
    }
    assert_eq!(end(&admin(), &name, 0).await, 1000);
}

/// Kafka's partitioner: murmur2 of "21" is -973932308, of "foobar" -790332482.
#[tokio::test]
async fn keys_go_where_javas_would() {
    let name = topic("produce-keys", 6).await;
    let producer = Producer::new(ProducerConfig::new(bootstrap())).unwrap();
    for (key, hash) in [("21", -973_932_308_i32), ("foobar", -790_332_482)] {
        let record = ProducerRecord::to(&name).key(key).value("v");
        let stored = producer.send(record).await.unwrap().await.unwrap();
        assert_eq!(stored.partition.partition.0, (hash & i32::MAX) % 6);
    }
    let chosen = ProducerRecord::to(&name).key("21").partition(5);
    let stored = producer.send(chosen).await.unwrap().await.unwrap();
    assert_eq!(stored.partition.partition.0, 5);
    let nowhere = producer.send(ProducerRecord::to(&name).partition(6)).await.unwrap_err();
    assert_eq!(nowhere.code(), Some(ErrorCode::UnknownTopicOrPartition));
}

#[tokio::test]
async fn acks_0_and_1_work_without_idempotence() {
    let name = topic("produce-acks", 1).await;
    for acks in [Acks::None, Acks::Leader] {
        let config = ProducerConfig::new(bootstrap()).enable_idempotence(false).acks(acks);
        let producer = Producer::new(config).unwrap();
        let report = producer.send(ProducerRecord::to(&name).value("v")).await.unwrap();
        let stored = report.await.unwrap();
        assert_eq!(stored.offset.is_some(), acks == Acks::Leader);
        producer.close().await.unwrap();
    }
    // What nobody confirmed may take its time.
    while end(&admin(), &name, 0).await < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_at_once_or_in_time() {
    let name = topic("produce-refused", 1).await;
    let config = ProducerConfig::new(bootstrap()).max_block(Duration::from_millis(300));
    let producer = Producer::new(config).unwrap();
    let huge = vec![0; 2 << 20];
    let error = producer.send(ProducerRecord::to(&name).value(&huge)).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::MessageTooLarge));
    let invalid = producer.send(ProducerRecord::to("no/such topic")).await.unwrap_err();
    assert_eq!(invalid.kind(), ErrorKind::Config);
    producer.close().await.unwrap();
    let late = producer.send(ProducerRecord::to(&name)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Closed);

    let config = ProducerConfig::new("127.0.0.1:1").max_block(Duration::from_millis(300));
    let nowhere = Producer::new(config).unwrap();
    let error = nowhere.send(ProducerRecord::to("t")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retriable);
}

/// Back-pressure by bytes: a buffer of a few records, and a thousand senders.
#[tokio::test]
async fn a_full_buffer_makes_senders_wait_and_loses_nothing() {
    let name = topic("produce-buffer", 2).await;
    let config =
        ProducerConfig::new(bootstrap()).buffer_memory(4_000_usize).linger(Duration::from_secs(1));
    let producer = Producer::new(config).unwrap();
    let value = vec![7; 500];
    let mut sends = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (producer, name, value) = (producer.clone(), name.clone(), value.clone());
        sends.spawn(async move {
            producer.send(ProducerRecord::to(&name).value(&value)).await.unwrap().await.unwrap()
        });
    }
    assert_eq!(sends.join_all().await.len(), 100);
    let admin = admin();
    assert_eq!(end(&admin, &name, 0).await + end(&admin, &name, 1).await, 100);
}

/// KIP-98: whatever the restarts did to connections and answers, each record is stored once, and
/// the offsets rise in the order of sending.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_of_the_broker_neither_lose_nor_repeat_nor_reorder() {
    let broker = TestBroker::start();
    let admin = Admin::new(AdminConfig::new(broker.address())).unwrap();
    let name = unique("produce-restart");
    admin.create_topic(NewTopic::new(&name, 1)).await.unwrap();
    let config = ProducerConfig::new(broker.address()).batch_size(300_usize);
    let producer = Producer::new(config).unwrap();
    let sending = tokio::spawn({
        let (producer, name) = (producer.clone(), name.clone());
        async move {
            let mut reports = Vec::new();
            for number in 0..3000 {
                let value = format!("{number}");
                let record = ProducerRecord::to(&name).value(&value);
                reports.push(producer.send(record).await.unwrap());
                if number % 10 == 0 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
            reports
        }
    });
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        broker.stop();
        broker.boot();
    }
    let mut before = None;
    for report in sending.await.unwrap() {
        let stored = report.await.unwrap().offset;
        assert!(stored > before || stored.is_none(), "{stored:?} after {before:?}");
        before = stored.or(before);
    }
    assert_eq!(end(&admin, &name, 0).await, 3000);
}

/// What was sent before the last handle went is delivered.
#[tokio::test]
async fn a_dropped_producer_still_delivers() {
    let name = topic("produce-drop", 1).await;
    let producer = Producer::new(ProducerConfig::new(bootstrap())).unwrap();
    let report = producer.send(ProducerRecord::to(&name).value("v")).await.unwrap();
    drop(producer);
    assert_eq!(report.await.unwrap().offset, Some(Offset(0)));
}
