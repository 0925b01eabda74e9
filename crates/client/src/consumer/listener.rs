//! What an application hears of rebalances, and what it may do then.

use super::handle::ConsumerHandle;
use crate::Result;
use ottla_model::TopicPartition;
use std::pin::Pin;

/// Hears which partitions come and go. Its methods run inside [`Consumer::poll`] (or whichever
/// call the consumer makes progress in), one at a time, never while the application processes a
/// record that it got from that same consumer's last poll.
///
/// - [`revoked`](Self::revoked) runs *before* ownership ends: nobody else has the partitions yet,
///   their records are not handed out any more, and offsets can still be committed. The group
///   waits for it.
/// - [`assigned`](Self::assigned) runs *after* ownership began and before the first record.
/// - [`lost`](Self::lost) runs when ownership has already ended, without warning: another may own
///   the partitions, so a commit would be refused.
///
/// With automatic commits, offsets are committed before `revoked` runs.
///
/// An error of a method ends the poll with that error; the rebalance goes on all the same. If the
/// poll is dropped while a method runs, that method runs again, from its beginning, in the next.
///
/// [`Consumer::poll`]: super::Consumer::poll
pub trait RebalanceListener: Send {
    /// These are another's soon: finish with them. Nothing by default.
    fn revoked(
        &mut self,
        consumer: &ConsumerHandle,
        partitions: &[TopicPartition],
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (consumer, partitions);
        async { Ok(()) }
    }

    /// These are this consumer's from now on, besides those it had. Nothing by default.
    fn assigned(
        &mut self,
        consumer: &ConsumerHandle,
        partitions: &[TopicPartition],
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (consumer, partitions);
        async { Ok(()) }
    }

    /// These are not this consumer's any more. Nothing by default.
    fn lost(
        &mut self,
        consumer: &ConsumerHandle,
        partitions: &[TopicPartition],
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (consumer, partitions);
        async { Ok(()) }
    }
}

/// Hears nothing.
impl RebalanceListener for () {}

type Heard<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// A listener of whatever type.
pub(super) trait AnyListener: Send {
    fn revoked<'a>(
        &'a mut self,
        consumer: &'a ConsumerHandle,
        partitions: &'a [TopicPartition],
    ) -> Heard<'a>;
    fn assigned<'a>(
        &'a mut self,
        consumer: &'a ConsumerHandle,
        partitions: &'a [TopicPartition],
    ) -> Heard<'a>;
    fn lost<'a>(
        &'a mut self,
        consumer: &'a ConsumerHandle,
        partitions: &'a [TopicPartition],
    ) -> Heard<'a>;
}

impl<L: RebalanceListener> AnyListener for L {
    fn revoked<'a>(
        &'a mut self,
        consumer: &'a ConsumerHandle,
        partitions: &'a [TopicPartition],
    ) -> Heard<'a> {
        Box::pin(RebalanceListener::revoked(self, consumer, partitions))
    }

    fn assigned<'a>(
        &'a mut self,
        consumer: &'a ConsumerHandle,
        partitions: &'a [TopicPartition],
    ) -> Heard<'a> {
        Box::pin(RebalanceListener::assigned(self, consumer, partitions))
    }

    fn lost<'a>(
        &'a mut self,
        consumer: &'a ConsumerHandle,
        partitions: &'a [TopicPartition],
    ) -> Heard<'a> {
        Box::pin(RebalanceListener::lost(self, consumer, partitions))
    }
}
