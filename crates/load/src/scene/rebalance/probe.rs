//! A group of its own that commits every few milliseconds: whom does a rebalance make wait?

use crate::Outcome;
use crate::link::{Link, Software, check};
use ottla_wire::generated::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use ottla_wire::generated::{OffsetCommitRequest, OffsetCommitResponse};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The longest commit since it was last asked.
pub(super) struct Probe {
    longest: Rc<Cell<Duration>>,
    task: tokio::task::JoinHandle<Outcome<()>>,
}

impl Probe {
    /// Begins to commit.
    pub(super) async fn start(address: &str, topic: &str) -> Outcome<Self> {
        let link = Link::open(address, Software::Unknown).await?;
        let longest = Rc::new(Cell::new(Duration::ZERO));
        let task = tokio::task::spawn_local(commit(link, topic.to_owned(), longest.clone()));
        Ok(Self { longest, task })
    }

    /// The longest so far; counting begins anew.
    pub(super) fn take(&self) -> Duration {
        self.longest.take()
    }

    /// Commits no more.
    pub(super) fn stop(&self) {
        self.task.abort();
    }
}

async fn commit(mut link: Link, topic: String, longest: Rc<Cell<Duration>>) -> Outcome<()> {
    for offset in 0.. {
        let partition =
            OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
        let topic = OffsetCommitRequestTopic {
            name: &topic,
            partitions: vec![partition],
            ..Default::default()
        };
        let request =
            OffsetCommitRequest { group_id: GROUP, topics: vec![topic], ..Default::default() };
        let asked = Instant::now();
        let answer = link.call(9, &request).await?;
        longest.set(longest.get().max(asked.elapsed()));
        for topic in answer.read::<OffsetCommitResponse<'_>>()?.topics {
            topic.partitions.iter().try_for_each(|p| check(p.error_code, "OffsetCommit"))?;
        }
        tokio::time::sleep(PACE).await;
    }
    Ok(())
}

pub(super) const GROUP: &str = "probe";
const PACE: Duration = Duration::from_millis(5);
