//! What a consumer does when sockets are cut, paused and black-holed, in every protocol (S21-S26,
//! decision 27).

use crate::groups::{Heard, poll_until};
use crate::harness::{fill, read, reader, unique};
use crate::proxy::{Line, Proxy};
use crate::register::registered;
use ottla_client::{Admin, AdminConfig, Consumer, ConsumerConfig, NewTopic};
use std::time::Duration;

/// A member of a group of one that owns the topic's two partitions, and all that is around it.
struct Bench {
    proxy: Proxy,
    topic: String,
    consumer: Consumer,
    heard: Heard,
    group: String,
    config: ConsumerConfig,
    next: i32,
}

const PROTOCOLS: [fn(&str, &str) -> ConsumerConfig; 2] = [registered, classic];

/// As short a session as Ottla lets a classic group have.
fn classic(bootstrap: &str, group: &str) -> ConsumerConfig {
    reader(bootstrap, group)
}

impl Bench {
    async fn start(protocol: fn(&str, &str) -> ConsumerConfig) -> Self {
        let proxy = Proxy::start().await;
        let (topic, group) = (unique("sockets"), unique("sockets"));
        let admin = Admin::new(AdminConfig::new(proxy.address())).unwrap();
        admin.create_topic(NewTopic::new(&topic, 2)).await.unwrap();
        let config = protocol(&proxy.address(), &group).request_timeout(Duration::from_secs(2));
        let heard = Heard::default();
        let mut consumer = Consumer::new(config.clone()).unwrap();
        consumer.set_listener(heard.clone());
        consumer.subscribe([&*topic]).unwrap();
        let mut bench = Self { proxy, topic, consumer, heard, group, config, next: 0 };
        bench.pass().await;
        assert_eq!(bench.heard.take(), ["assigned 2"]);
        bench
    }

    /// Records go through, and are committed.
    async fn pass(&mut self) {
        fill(&self.proxy.address(), &self.topic, 2, self.next, 20).await;
        let mut values = read(&mut self.consumer, 20).await;
        values.sort_unstable();
        assert_eq!(values, (self.next..self.next + 20).collect::<Vec<_>>());
        self.consumer.commit().await.unwrap();
        self.next += 20;
    }

    /// Polls until it heard that its partitions are lost.
    async fn lose(&mut self) {
        while self.heard.peek().last().is_none_or(|last| last != "lost 2") {
            // No coordinator, no records: whatever fails now is not what is asked.
            let _ = self.consumer.poll(Duration::from_millis(50)).await;
        }
        assert!(self.consumer.assignment().is_empty(), "decision 27: nothing more is handed out");
        assert_eq!(self.heard.take(), ["lost 2"]);
    }

    async fn own_again(&mut self) {
        poll_until(&mut self.consumer, |consumer| consumer.assignment().len() == 2).await;
        assert_eq!(self.heard.take(), ["assigned 2"]);
    }

    async fn member_id(&self) -> String {
        let admin = Admin::new(AdminConfig::new(self.proxy.address())).unwrap();
        let described = admin.describe_group(&self.group).await.unwrap();
        described.members[0].member.to_string()
    }
}

/// S22, S24: closed sockets are opened again, the id and the generation stay good, and nobody
/// rebalances.
#[tokio::test]
async fn s22_s24_cut_sockets_are_opened_again_and_nothing_is_lost() {
    for protocol in PROTOCOLS {
        let mut bench = Bench::start(protocol).await;
        let id = bench.member_id().await;
        for _ in 0..3 {
            bench.proxy.cut();
            bench.pass().await;
        }
        assert_eq!(bench.heard.take(), Vec::<String>::new());
        assert_eq!(bench.member_id().await, id);
        bench.consumer.close().await.unwrap();
    }
}

/// S21: no answer for a session timeout is a failed coordinator; what is owned is lost by then,
/// and found again through a new connection.
#[tokio::test]
async fn s21_a_black_hole_is_a_failed_coordinator() {
    for protocol in PROTOCOLS {
        let mut bench = Bench::start(protocol).await;
        bench.proxy.set(Line::BlackHole);
        bench.lose().await;
        bench.proxy.set(Line::Open);
        bench.own_again().await;
        bench.pass().await;
        bench.consumer.close().await.unwrap();
    }
}

/// S21 on the connections alone: they stay open and say nothing, while the broker is well.
#[tokio::test]
async fn s21_frozen_sockets_are_given_up_for_new_ones() {
    for protocol in PROTOCOLS {
        let mut bench = Bench::start(protocol).await;
        bench.proxy.freeze();
        bench.pass().await;
        bench.consumer.close().await.unwrap();
    }
}

/// S23, S25: a coordinator that is away, then reading its log, finds its members as they were.
#[tokio::test]
async fn s23_s25_a_restart_is_waited_for() {
    for protocol in PROTOCOLS {
        let mut bench = Bench::start(protocol).await;
        let id = bench.member_id().await;
        for _ in 0..2 {
            bench.proxy.broker.stop();
            bench.proxy.broker.boot();
            bench.pass().await;
        }
        // A busy machine may take longer to restart than the session lasts; then it is S26.
        let heard = bench.heard.take();
        assert!(heard.iter().all(|what| what == "lost 2" || what == "assigned 2"), "{heard:?}");
        if heard.is_empty() {
            assert_eq!(bench.member_id().await, id);
        }
        bench.consumer.close().await.unwrap();
    }
}

/// S26: who comes back after its limit is new: another id, and its partitions anew.
#[tokio::test]
async fn s26_a_paused_line_beyond_the_limit_makes_a_new_member() {
    let mut bench = Bench::start(registered).await;
    let id = bench.member_id().await;
    bench.proxy.set(Line::Paused);
    bench.lose().await;
    // Three times the limit: by now the coordinator has counted it out.
    tokio::time::sleep(Duration::from_secs(3)).await;
    bench.proxy.set(Line::Open);
    bench.own_again().await;
    assert_ne!(bench.member_id().await, id);
    bench.pass().await;
    bench.consumer.close().await.unwrap();
}

/// S11, S13, S18, S20: the others get a silent member's partitions once its limit is over, and
/// the silent one has stopped by then (decision 27): nobody reads what another owns.
#[tokio::test]
async fn s13_s20_a_silent_members_partitions_are_anothers_after_it_stopped() {
    for protocol in PROTOCOLS {
        let mut bench = Bench::start(protocol).await;
        bench.proxy.freeze();
        let mut other = Consumer::new(bench.config.clone()).unwrap();
        other.subscribe([&*bench.topic]).unwrap();
        loop {
            let _ = bench.consumer.poll(Duration::from_millis(20)).await;
            other.poll(Duration::from_millis(20)).await.unwrap();
            let (silent, other) = (bench.consumer.assignment(), other.assignment());
            assert!(silent.iter().all(|one| !other.contains(one)), "{silent:?} {other:?}");
            if !other.is_empty() {
                break;
            }
        }
        // The listener hears of it in the poll after the end. It may have come back in time, on a
        // new connection, and given up as it was asked to.
        let mut heard = bench.heard.take();
        while heard.is_empty() {
            let _ = bench.consumer.poll(Duration::from_millis(20)).await;
            heard = bench.heard.take();
        }
        let first = heard.into_iter().next();
        assert!(matches!(first.as_deref(), Some("lost 2" | "revoked 2")), "{first:?}");
        other.close().await.unwrap();
        bench.consumer.close().await.unwrap();
    }
}
