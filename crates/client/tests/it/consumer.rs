//! The consumer against a real broker, alone: positions, seeks, pauses, resets, commits.

use crate::harness::{bootstrap, fill, read, reader, topic, unique};
use ottla_client::{
    CommittedOffset, Compression, Consumer, ConsumerConfig, ErrorKind, Offset, OffsetReset,
    Producer, ProducerConfig, ProducerRecord, Timestamp, TopicPartition,
};
use std::time::Duration;

fn partition(topic: &str, index: i32) -> TopicPartition {
    TopicPartition::new(topic, index)
}

/// A consumer of one partition, without a group.
fn alone(topic: &str, reset: OffsetReset) -> Consumer {
    let config = ConsumerConfig::new(bootstrap()).auto_offset_reset(reset);
    let mut consumer = Consumer::new(config).unwrap();
    consumer.assign([partition(topic, 0)]).unwrap();
    consumer
}

#[tokio::test]
async fn records_of_every_codec_come_as_they_were_sent() {
    let name = topic("consume-codecs", 1).await;
    for codec in Compression::ALL {
        let config = ProducerConfig::new(bootstrap()).compression_type(codec);
        let producer = Producer::new(config).unwrap();
        for number in 0..50 {
            let value = format!("{number} {}", codec.name()).repeat(10);
            let record = ProducerRecord::to(&name).key("k").value(&value).header("codec", "h");
            drop(producer.send(record.timestamp(Timestamp(1_000 + number))).await.unwrap());
        }
        producer.send(ProducerRecord::to(&name).key("gone")).await.unwrap().await.unwrap();
        producer.close().await.unwrap();
    }
    let mut consumer = alone(&name, OffsetReset::Earliest);
    let mut offset = 0;
    while offset < 5 * 51 {
        for record in consumer.poll(Duration::from_secs(1)).await.unwrap().iter() {
            assert_eq!((record.offset(), record.topic()), (Offset(offset), &*name));
            let (codec, number) = (Compression::ALL[offset as usize / 51], offset % 51);
            if number == 50 {
                assert_eq!((record.key(), record.value()), (Some(&b"gone"[..]), None));
            } else {
                let value = format!("{number} {}", codec.name()).repeat(10);
                assert_eq!(record.value(), Some(value.as_bytes()));
                assert_eq!(record.timestamp(), Timestamp(1_000 + number));
                assert_eq!(record.headers().next(), Some((&b"codec"[..], Some(&b"h"[..]))));
            }
            offset += 1;
        }
    }
    assert_eq!(consumer.position(&partition(&name, 0)).await.unwrap(), Offset(5 * 51));
    assert_eq!(consumer.lag(&partition(&name, 0)), Some(0));
}

/// Max poll records, and a position inside of a batch.
#[tokio::test]
async fn a_batch_is_handed_out_in_portions_and_seeks_go_into_it() {
    let name = topic("consume-portions", 1).await;
    fill(&bootstrap(), &name, 1, 0, 100).await;
    let config = ConsumerConfig::new(bootstrap()).max_poll_records(7_usize);
    let mut consumer = Consumer::new(config).unwrap();
    let only = partition(&name, 0);
    consumer.assign([only.clone()]).unwrap();
    consumer.seek(&only, Offset(50)).unwrap();
    let records = consumer.poll(Duration::from_secs(5)).await.unwrap();
    let offsets: Vec<i64> = records.iter().map(|record| record.offset().0).collect();
    assert_eq!(offsets, (50..57).collect::<Vec<_>>());
    assert_eq!(records.next_offsets(), [(only.clone(), Offset(57))]);
    assert_eq!(read(&mut consumer, 43).await, (57..100).collect::<Vec<_>>());
    consumer.seek_to_beginning(std::slice::from_ref(&only)).unwrap();
    assert_eq!(read(&mut consumer, 100).await, (0..100).collect::<Vec<_>>());
    consumer.seek_to_end(std::slice::from_ref(&only)).unwrap();
    assert_eq!(consumer.position(&only).await.unwrap(), Offset(100));
    let elsewhere = consumer.seek(&partition(&name, 9), Offset(0)).unwrap_err();
    assert_eq!(elsewhere.kind(), ErrorKind::State);
}

#[tokio::test]
async fn resets_go_where_the_policy_says() {
    let name = topic("consume-reset", 1).await;
    fill(&bootstrap(), &name, 1, 0, 10).await;
    let only = partition(&name, 0);
    let mut earliest = alone(&name, OffsetReset::Earliest);
    assert_eq!(read(&mut earliest, 10).await.len(), 10);
    let mut latest = alone(&name, OffsetReset::Latest);
    assert_eq!(latest.position(&only).await.unwrap(), Offset(10));
    fill(&bootstrap(), &name, 1, 10, 1).await;
    assert_eq!(read(&mut latest, 1).await, [10]);
    // An offset that was never there.
    latest.seek(&only, Offset(500)).unwrap();
    let none = latest.poll(Duration::from_millis(700)).await.unwrap();
    assert!(none.is_empty());
    assert_eq!(latest.position(&only).await.unwrap(), Offset(11));

    let mut nowhere = alone(&name, OffsetReset::None);
    let error = nowhere.poll(Duration::from_secs(5)).await.unwrap_err();
    assert_eq!((error.kind(), error.partitions()), (ErrorKind::NoOffset, &[only.clone()][..]));
    nowhere.seek(&only, Offset(3)).unwrap();
    assert_eq!(read(&mut nowhere, 8).await, (3..11).collect::<Vec<_>>());
}

#[tokio::test]
async fn paused_partitions_are_not_handed_out() {
    let name = topic("consume-pause", 2).await;
    fill(&bootstrap(), &name, 2, 0, 20).await;
    let config = ConsumerConfig::new(bootstrap()).auto_offset_reset(OffsetReset::Earliest);
    let mut consumer = Consumer::new(config).unwrap();
    consumer.assign([partition(&name, 0), partition(&name, 1)]).unwrap();
    consumer.pause(&[partition(&name, 1)]).unwrap();
    assert_eq!(consumer.paused(), [partition(&name, 1)]);
    let evens = read(&mut consumer, 10).await;
    assert!(evens.iter().all(|value| value % 2 == 0), "{evens:?}");
    consumer.resume(&[partition(&name, 1)]).unwrap();
    let odds = read(&mut consumer, 10).await;
    assert!(odds.iter().all(|value| value % 2 == 1), "{odds:?}");
}

#[tokio::test]
async fn offsets_are_found_by_time() {
    let name = topic("consume-times", 1).await;
    let producer = Producer::new(ProducerConfig::new(bootstrap())).unwrap();
    // Not older than the topic keeps, nor further ahead than it takes.
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = since.as_millis() as i64;
    for time in [now, now + 1000, now + 2000] {
        let record = ProducerRecord::to(&name).value("v").timestamp(Timestamp(time));
        producer.send(record).await.unwrap().await.unwrap();
    }
    let consumer = alone(&name, OffsetReset::Latest);
    let only = partition(&name, 0);
    let at = |time| [(only.clone(), Timestamp(time))];
    let found = consumer.offsets_for_times(at(now + 500)).await.unwrap();
    assert_eq!(found[0].1.offset, Some(Offset(1)));
    let none = consumer.offsets_for_times(at(now + 9000)).await.unwrap();
    assert_eq!(none[0].1.offset, None);
    let all = [only.clone()];
    assert_eq!(consumer.beginning_offsets(&all).await.unwrap()[0].1, Offset(0));
    assert_eq!(consumer.end_offsets(&all).await.unwrap()[0].1, Offset(3));
    assert_eq!(consumer.partitions_for(&name).await.unwrap().partitions.len(), 1);
}

/// Commits with a group that nobody is a member of.
#[tokio::test]
async fn assigned_partitions_commit_and_go_on_there() {
    let (name, group) = (topic("consume-commit", 1).await, unique("commit"));
    fill(&bootstrap(), &name, 1, 0, 10).await;
    let only = partition(&name, 0);
    let mut consumer = Consumer::new(reader(&bootstrap(), &group)).unwrap();
    consumer.assign([only.clone()]).unwrap();
    assert_eq!(
        consumer.committed(std::slice::from_ref(&only)).await.unwrap(),
        [(only.clone(), None)]
    );
    assert_eq!(read(&mut consumer, 10).await.len(), 10);
    consumer.commit().await.unwrap();
    let committed = consumer.committed(std::slice::from_ref(&only)).await.unwrap();
    assert_eq!(committed[0].1.as_ref().unwrap().offset, Offset(10));
    let four = CommittedOffset { metadata: "four".into(), ..CommittedOffset::new(Offset(4)) };
    consumer.commit_offsets([(only.clone(), four.clone())]).await.unwrap();
    consumer.close().await.unwrap();

    let mut next = Consumer::new(reader(&bootstrap(), &group)).unwrap();
    next.assign([only.clone()]).unwrap();
    assert_eq!(read(&mut next, 6).await, (4..10).collect::<Vec<_>>());
    assert_eq!(next.committed(std::slice::from_ref(&only)).await.unwrap()[0].1, Some(four));
}

/// For a stream only records before the one last yielded are committed by themselves.
#[tokio::test]
async fn a_stream_commits_what_came_before_the_last_record() {
    let (name, group) = (topic("consume-stream", 1).await, unique("stream"));
    fill(&bootstrap(), &name, 1, 0, 10).await;
    let only = partition(&name, 0);
    let config = reader(&bootstrap(), &group).enable_auto_commit(true);
    let mut consumer = Consumer::new(config).unwrap();
    consumer.assign([only.clone()]).unwrap();
    for expected in 0..5 {
        let record = consumer.next().await.unwrap();
        assert_eq!(record.value_bytes(), expected.to_string().as_bytes());
    }
    consumer.close().await.unwrap();
    let mut next = Consumer::new(reader(&bootstrap(), &group)).unwrap();
    next.assign([only]).unwrap();
    assert_eq!(read(&mut next, 6).await, (4..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_stream_and_polls_take_turns_without_losing_records() {
    let name = topic("consume-turns", 1).await;
    fill(&bootstrap(), &name, 1, 0, 30).await;
    let mut consumer = alone(&name, OffsetReset::Earliest);
    let mut values = Vec::new();
    for _ in 0..10 {
        let mut stream = Box::pin(consumer.stream());
        let next = std::future::poll_fn(|context| {
            futures_core::Stream::poll_next(stream.as_mut(), context)
        });
        let record = next.await.unwrap().unwrap();
        values.push(String::from_utf8(record.value_bytes().to_vec()).unwrap().parse().unwrap());
    }
    values.extend(read(&mut consumer, 20).await);
    assert_eq!(values, (0..30).collect::<Vec<_>>());
}

#[tokio::test]
async fn subscribing_and_assigning_exclude_each_other() {
    let mut consumer = Consumer::new(reader(&bootstrap(), &unique("both"))).unwrap();
    consumer.subscribe(["t"]).unwrap();
    assert_eq!(consumer.assign([partition("t", 0)]).unwrap_err().kind(), ErrorKind::State);
    consumer.unsubscribe().await.unwrap();
    consumer.assign([partition("t", 0)]).unwrap();
    let mut alone = Consumer::new(ConsumerConfig::new(bootstrap())).unwrap();
    assert_eq!(alone.subscribe(["t"]).unwrap_err().kind(), ErrorKind::Config);
    assert_eq!(alone.commit().await.unwrap_err().kind(), ErrorKind::Config);
}
