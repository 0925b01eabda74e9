//! Rebalances as the application meets them, inside of its polls and in the end: events of the
//! group's task, the listener, and what happens to the partitions around it.

use super::event::RebalanceEvent;
use super::group::Command;
use super::partition::Standing;
use super::{Consumer, Subscription};
use crate::Result;
use std::sync::atomic::Ordering;

impl Consumer {
    /// Acts on what the group's task told, and commits if that is due. An event is forgotten only
    /// when it was acted on.
    pub(super) async fn act(&mut self) -> Result<()> {
        loop {
            if self.event.is_none() {
                self.event = self.shared.next_event();
            }
            let Some(event) = self.event.clone() else { break };
            let acted = self.act_on(event).await;
            self.event = None;
            acted?;
        }
        self.auto_commit();
        Ok(())
    }

    async fn act_on(&mut self, event: RebalanceEvent) -> Result<()> {
        match event {
            RebalanceEvent::Assigned(added) => {
                self.shared.counters.rebalances.fetch_add(1, Ordering::Relaxed);
                self.shared.assignment.lock().add(added.iter().cloned(), Standing::New);
                let heard = self.listener.0.assigned(&self.handle, &added).await;
                self.shared.assignment.lock().begin(Standing::Committed);
                self.shared.fetch_wake.notify_one();
                heard
            }
            RebalanceEvent::Revoke(all) => {
                let mut leaving = all.clone();
                leaving.retain(|partition| !self.shared.is_lost(partition));
                self.shared.assignment.lock().leave(&leaving);
                self.commit_finished(&leaving).await;
                let heard = match leaving.is_empty() {
                    true => Ok(()),
                    false => self.listener.0.revoked(&self.handle, &leaving).await,
                };
                self.shared.assignment.lock().remove(&all);
                self.shared.command(Command::Revoked)?;
                heard
            }
            RebalanceEvent::Lost(lost) => {
                self.shared.assignment.lock().remove(&lost);
                self.listener.0.lost(&self.handle, &lost).await
            }
            RebalanceEvent::Failed(error) => Err(error),
            RebalanceEvent::Left => Ok(()),
        }
    }

    pub(super) async fn leave(&mut self) -> Result<()> {
        if self.yielded.is_none() {
            self.shared.assignment.lock().finish_all();
        }
        if self.subscription == Subscription::Partitions {
            let all = self.assignment();
            self.commit_finished(&all).await;
        }
        self.shared.command(Command::Close)?;
        let mut outcome = Ok(());
        loop {
            if self.event.is_none() {
                self.event = self.shared.next_event();
            }
            match self.event.clone() {
                Some(RebalanceEvent::Left) => return outcome,
                // It leaves; what it would have had, or could not do, matters no more.
                Some(RebalanceEvent::Assigned(_) | RebalanceEvent::Failed(_)) => {}
                Some(event) => outcome = outcome.and(self.act_on(event).await),
                None => self.handle.shared.news.notified().await,
            }
            self.event = None;
        }
    }
}
