//! How the changes of a request ended, as most administrative responses tell it: a code and a
//! text per item, counted.

use super::error_map::{change_error, refusal};
use crate::broker::Broker;
use ottla_cluster::ChangeError;
use ottla_cluster::command::Refusal;
use ottla_wire::{ApiKey, ErrorCode};
use std::future::Future;
use std::time::Duration;

/// A code, and why; nothing for success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The code.
    pub(super) code: ErrorCode,
    /// Why, for whoever reads the client's log.
    pub(super) message: Option<String>,
}

impl Outcome {
    /// It went well.
    pub(super) const FINE: Self = Self { code: ErrorCode::None, message: None };

    /// It did not.
    pub(super) fn failed(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: Some(message.into()) }
    }

    /// The code as it travels.
    pub(super) fn number(&self) -> i16 {
        self.code.number()
    }

    /// The text as it travels.
    pub(super) fn text(&self) -> Option<&str> {
        self.message.as_deref()
    }
}

impl From<&Refusal> for Outcome {
    fn from(refused: &Refusal) -> Self {
        Self::failed(refusal(refused.kind), &*refused.message)
    }
}

impl From<&ChangeError> for Outcome {
    fn from(error: &ChangeError) -> Self {
        Self::failed(change_error(error), error.to_string())
    }
}

impl<T> From<&Result<T, Refusal>> for Outcome {
    fn from(outcome: &Result<T, Refusal>) -> Self {
        outcome.as_ref().map_or_else(Self::from, |_| Self::FINE)
    }
}

/// The outcomes of `count` items that were changed together: theirs, or the one failure of all.
pub(super) fn of_each<T>(
    count: usize,
    outcomes: Result<Vec<Result<T, Refusal>>, ChangeError>,
) -> Vec<Outcome> {
    match outcomes {
        Ok(outcomes) => outcomes.iter().map(Outcome::from).collect(),
        Err(error) => {
            tracing::warn!(%error, "a change of the cluster failed");
            vec![Outcome::from(&error); count]
        }
    }
}

/// How long a request that allows `timeout_ms` is waited for. Here every write waits for the disk,
/// which with Kafka few do: a shorter time than a disk takes is not meant to make them fail.
pub(super) fn patience(timeout_ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0)).max(PATIENCE_MIN)
}

/// A change of the cluster, as far as it is made within the request's time.
///
/// # Errors
/// Its own, or [`ChangeError::OutcomeUnknown`] (REQUEST_TIMED_OUT) once the time is up.
pub(super) async fn in_time<T>(
    timeout_ms: i32,
    change: impl Future<Output = Result<T, ChangeError>>,
) -> Result<T, ChangeError> {
    let late = |_| ChangeError::OutcomeUnknown("the request's time is up".into());
    tokio::time::timeout(patience(timeout_ms), change).await.map_err(late)?
}

/// Waits until this broker's logs are as its newest image wants them and its shards know it, so
/// that what was changed can be used at once, also by a group that subscribes to it. Not for ever:
/// the change is durable, and a disk that is stuck must not hold the connection's other answers.
pub(super) async fn settled(broker: &Broker, timeout_ms: i32) {
    let revision = broker.cluster.image().revision();
    let applied = async {
        broker.partitions.applied(revision).await;
        broker.shards.know(revision).await;
    };
    let _ = tokio::time::timeout(patience(timeout_ms).min(SETTLING_MAX), applied).await;
}

/// Counts the codes of a response.
pub(super) fn count(broker: &Broker, key: ApiKey, codes: impl Iterator<Item = i16>) {
    for code in codes.filter(|code| *code != ErrorCode::None.number()) {
        let known = ErrorCode::from_number(code).unwrap_or(ErrorCode::UnknownServerError);
        broker.metrics.errors.count(key, known);
    }
}

/// For requests that allow no time of their own.
pub(super) const NO_LIMIT: i32 = i32::MAX;
const PATIENCE_MIN: Duration = Duration::from_secs(1);
const SETTLING_MAX: Duration = Duration::from_secs(10);
