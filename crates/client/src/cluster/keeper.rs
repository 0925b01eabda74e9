//! The task that keeps the snapshot fresh. It asks again at the snapshot's age and when somebody
//! asks; questions that come while one is under way are answered together by the next.

use super::State;
use super::metadata::Snapshot;
use crate::{Error, Result, clock};
use ottla_group::member::Backoff;
use ottla_wire::generated::MetadataResponse;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// Runs until nobody holds the state.
pub(super) async fn run(state: Weak<State>) {
    let Some(first) = state.upgrade() else { return };
    let (min, max) = (first.config.retry_backoff, first.config.retry_backoff_max);
    let mut backoff = Backoff::new(min, max, clock::seed());
    drop(first);
    loop {
        // The keeper's handle stops this task, so holding the state while waiting keeps nothing
        // alive for long.
        let Some(state) = state.upgrade() else { return };
        wait(&state).await;
        match refresh(&state).await {
            Ok(()) => backoff.reset(),
            Err(error) => {
                tracing::debug!(%error, "cannot learn of the cluster");
                state.snapshot.send_modify(|snapshot| {
                    *snapshot = Arc::new(snapshot.with_error(error));
                });
                state.wake.notify_one();
                tokio::time::sleep(backoff.pause()).await;
            }
        }
    }
}

/// Waits for a question or for the snapshot to be old.
async fn wait(state: &State) {
    let chases = state.chases_missing.load(Ordering::Relaxed)
        && state.snapshot.borrow().topics.values().any(|topic| topic.error.is_some());
    let max_age = match chases {
        true => state.config.retry_backoff_max.min(state.config.metadata_max_age),
        false => state.config.metadata_max_age,
    };
    if state.asked.load(Ordering::Acquire) > state.snapshot.borrow().answered {
        return;
    }
    // Nothing was ever asked: nothing grows old.
    let is_used = state.asked.load(Ordering::Acquire) > 0;
    let deadline = is_used.then(|| clock::now() + max_age);
    tokio::select! {
        () = state.wake.notified() => {}
        () = clock::sleep_until(deadline) => {}
    }
}

async fn refresh(state: &State) -> Result<()> {
    let answered = state.asked.load(Ordering::Acquire);
    let interest = state.interest.lock().clone();
    let may_create = state.may_create.load(Ordering::Relaxed);
    let connection = state.any().await?;
    let answer = connection.call(&interest.request(may_create)).await?;
    let response: MetadataResponse<'_> = answer.read()?;
    Error::check(response.error_code, || "cannot learn of the cluster".into())?;
    let next = |now: &Snapshot| Arc::new(now.after(&response, &interest, answered));
    state.snapshot.send_modify(|snapshot| *snapshot = next(snapshot));
    Ok(())
}
