//! Offsets that are committed by themselves (`enable.auto.commit`): when, and which.

use super::Consumer;
use super::handle::to_commit;
use super::shared::ToCommit;
use crate::{Error, Result, clock};
use ottla_model::{Instant, Offset, TopicPartition};
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// When offsets are committed by themselves, and which were.
#[derive(Debug)]
pub(super) struct AutoCommit {
    pub(super) due: Instant,
    pub(super) under_way: Option<oneshot::Receiver<Result<()>>>,
    pub(super) last: BTreeMap<TopicPartition, Offset>,
}

impl Consumer {
    /// With automatic commits: commits what is done of partitions that go, and waits.
    pub(super) async fn commit_finished(&mut self, leaving: &[TopicPartition]) {
        if !self.commits_automatically() {
            return;
        }
        let finished = self.shared.assignment.lock().finished();
        let going = finished.into_iter().filter(|(partition, _)| leaving.contains(partition));
        let offsets: Vec<ToCommit> = going.map(to_commit).collect();
        let outcome = match self.shared.start_commit(&offsets) {
            Ok(outcome) => outcome.await.unwrap_or_else(|_| Err(Error::closed())),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, "the last automatic commit of partitions that go failed");
        }
        self.auto_commit.last.retain(|partition, _| !leaving.contains(partition));
    }

    fn commits_automatically(&self) -> bool {
        self.shared.config.enable_auto_commit && self.commands.is_some()
    }

    pub(super) fn auto_commit_at(&self) -> Option<Instant> {
        self.commits_automatically().then_some(self.auto_commit.due)
    }

    /// Starts an automatic commit if it is due, none is under way and there is something new.
    pub(super) fn auto_commit(&mut self) {
        let now = clock::now();
        if self.auto_commit_at().is_none_or(|at| now < at) {
            return;
        }
        self.auto_commit.due = now + self.shared.config.auto_commit_interval;
        match self.auto_commit.under_way.as_mut().map(oneshot::Receiver::try_recv) {
            Some(Err(oneshot::error::TryRecvError::Empty)) => return,
            Some(Ok(Err(error))) => {
                // What was not stored is tried again.
                self.auto_commit.last.clear();
                tracing::warn!(%error, "an automatic commit failed");
            }
            _ => {}
        }
        let mut finished = self.shared.assignment.lock().finished();
        let last = &self.auto_commit.last;
        finished.retain(|(partition, position)| last.get(partition) != Some(&position.offset));
        if finished.is_empty() {
            return;
        }
        let known = finished.iter().map(|(partition, at)| (partition.clone(), at.offset));
        self.auto_commit.last.extend(known);
        let offsets: Vec<ToCommit> = finished.into_iter().map(to_commit).collect();
        self.auto_commit.under_way = self.shared.start_commit(&offsets).ok();
    }
}
