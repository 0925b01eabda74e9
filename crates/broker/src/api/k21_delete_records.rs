//! Key 21, DeleteRecords, versions 0-2: raise the start of logs (KIP-107).
//!
//! - v1 changes nothing, v2 is flexible.
//!
//! Offset -1 means everything there is. The new start is durable when the answer leaves. There are
//! no followers to wait for; what the disk has not done within `TimeoutMs` is REQUEST_TIMED_OUT,
//! as what Kafka's followers have not, and what was not begun then is not done.

use super::answer::aside;
use super::outcome::{count, patience};
use super::{Answer, Context};
use crate::broker::Broker;
use ottla_model::{Offset, PartitionId};
use ottla_wire::ErrorCode;
use ottla_wire::generated::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use ottla_wire::generated::{DeleteRecordsRequest, DeleteRecordsResponse};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// Raises starts; off the connection's thread, because it waits for the disk.
pub(super) fn handle(cx: &mut Context<'_>, request: DeleteRecordsRequest<'_>) -> Answer {
    let wanted: Vec<Wanted> = request.topics.iter().map(Wanted::of).collect();
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    let patience = patience(request.timeout_ms);
    Answer::Later(Box::pin(async move {
        let (wanted, deleting) = (Arc::new(wanted), Arc::clone(&broker));
        let asked = Arc::clone(&wanted);
        let told = within(patience, move |told| delete_all(&asked, &deleting, &told)).await;
        let late = std::iter::repeat(Err(ErrorCode::RequestTimedOut));
        let mut outcomes = told.into_iter().chain(late);
        let topics = wanted.iter().map(|topic| DeleteRecordsTopicResult {
            name: &topic.topic,
            partitions: topic.lines(&mut outcomes),
        });
        let topics: Vec<_> = topics.collect();
        let lines = topics.iter().flat_map(|topic| &topic.partitions);
        count(&broker, to.key, lines.map(|line| line.error_code));
        to.encode(&DeleteRecordsResponse { topics, ..Default::default() })
    }))
}

/// The first part of what `work` has to tell: as much as it told within `patience`. It may not be
/// over then, but nobody listens any more.
async fn within<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce(UnboundedSender<T>) + Send + 'static,
) -> Vec<T> {
    let (teller, mut tales) = unbounded_channel();
    let mut told = Vec::new();
    let listen = async {
        while let Some(each) = tales.recv().await {
            told.push(each);
        }
    };
    // A disk that is stuck must not hold the connection's other answers.
    let _ = timeout(patience, async { tokio::join!(aside(move || work(teller)), listen) }).await;
    told
}

fn delete_all(wanted: &[Wanted], broker: &Broker, told: &UnboundedSender<Outcome>) {
    let all = wanted.iter().flat_map(|topic| topic.partitions.iter().map(move |one| (topic, one)));
    while_heard(all, told, |(topic, (index, offset))| topic.delete_before(broker, *index, *offset));
}

/// Does one after the other and tells of each. Once nobody listens any more, what was not begun is
/// not done: it was answered as not done.
fn while_heard<T, U>(
    all: impl Iterator<Item = T>,
    told: &UnboundedSender<U>,
    each: impl Fn(T) -> U,
) {
    for one in all {
        if told.is_closed() || told.send(each(one)).is_err() {
            return;
        }
    }
}

type Outcome = Result<Offset, ErrorCode>;

struct Wanted {
    topic: String,
    partitions: Vec<(i32, i64)>,
}

impl Wanted {
    fn of(topic: &ottla_wire::generated::delete_records_request::DeleteRecordsTopic<'_>) -> Self {
        let partitions = topic.partitions.iter().map(|p| (p.partition_index, p.offset)).collect();
        Self { topic: topic.name.to_owned(), partitions }
    }

    fn lines(
        &self,
        outcomes: &mut impl Iterator<Item = Outcome>,
    ) -> Vec<DeleteRecordsPartitionResult> {
        let lines = self.partitions.iter().zip(outcomes).map(|((index, _), outcome)| {
            DeleteRecordsPartitionResult {
                partition_index: *index,
                low_watermark: outcome.map_or(-1, |start| start.0),
                error_code: outcome.err().unwrap_or(ErrorCode::None).number(),
            }
        });
        lines.collect()
    }

    fn delete_before(&self, broker: &Broker, index: i32, offset: i64) -> Outcome {
        if ottla_cluster::names::is_internal(&self.topic) {
            return Err(ErrorCode::InvalidTopicException);
        }
        let image = broker.cluster.image();
        let topic = image.topic(&self.topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        if !topic.settings.cleanup_policy.delete && topic.settings.cleanup_policy.compact {
            return Err(ErrorCode::PolicyViolation);
        }
        if !(0..topic.partition_count()).contains(&index) {
            return Err(ErrorCode::UnknownTopicOrPartition);
        }
        let partition = broker.partitions.by_name(&self.topic, PartitionId(index));
        let partition = partition.ok_or(ErrorCode::NotLeaderOrFollower)?;
        let end = partition.high_watermark();
        let before = if offset == TO_THE_END { end } else { Offset(offset) };
        if before > end || before.0 < 0 {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        let deleted = partition.delete_records_before(before);
        deleted.map_err(|error| {
            tracing::warn!(%error, topic = self.topic, index, "records could not be deleted");
            ErrorCode::KafkaStorageError
        })
    }
}

const TO_THE_END: i64 = -1;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Issue 3: a disk that is stuck holds an answer for as long as the request allows, and what
    /// was not begun by then is left undone.
    #[tokio::test]
    async fn what_is_late_is_given_up() {
        let (unstick, stuck) = channel::<()>();
        let (ended, end) = channel();
        let work = move |told: UnboundedSender<u32>| {
            let first = told.send(1);
            stuck.recv().expect("unstuck");
            ended.send((first, told.send(2))).expect("heard");
        };
        let told = within(Duration::from_millis(1), work).await;
        assert!(told.len() <= 1, "{told:?}");
        unstick.send(()).expect("stuck");
        let (_, second) = end.recv().expect("it ends");
        assert!(second.is_err());
        let quick = |told: UnboundedSender<u32>| told.send(3).expect("heard");
        assert_eq!(within(Duration::MAX, quick).await, [3]);
    }

    /// What was answered as not done must not be done later.
    #[test]
    fn nothing_is_begun_once_nobody_listens() {
        let (told, tales) = unbounded_channel();
        drop(tales);
        let begun = std::cell::Cell::new(0);
        while_heard(0..3, &told, |_| begun.set(begun.get() + 1));
        assert_eq!(begun.get(), 0);
        let (told, mut tales) = unbounded_channel();
        for one in [0, 1] {
            while_heard([one].into_iter(), &told, |_| begun.set(begun.get() + 1));
            tales.close();
        }
        assert_eq!(begun.get(), 1);
    }
}
