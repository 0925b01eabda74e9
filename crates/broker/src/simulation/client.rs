//! A client at its barest: requests of which some are answered later, and some never.

use super::machine::Run;
use crate::api::Reply;
use ottla_wire::generated::{FindCoordinatorRequest, FindCoordinatorResponse};
use ottla_wire::{ApiKey, Message, Reader, header};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A request that was sent.
pub(super) struct Call {
    key: ApiKey,
    version: i16,
    reply: JoinHandle<Reply>,
}

/// A response still in its bytes: the message borrows from them.
pub(super) struct Response {
    body: Vec<u8>,
    from: usize,
    version: i16,
}

impl Call {
    /// The call that this task answers.
    pub(super) fn new(key: ApiKey, version: i16, reply: JoinHandle<Reply>) -> Self {
        Self { key, version, reply }
    }

    /// Whether the answer is there.
    pub(super) fn is_done(&self) -> bool {
        self.reply.is_finished()
    }

    /// Waits for the answer.
    async fn response(self) -> Response {
        let reply = self.reply.await.expect("a handler does not panic");
        let body = reply.expect("a response that its version can carry").into_vec();
        let frame = &body[size_of::<i32>()..];
        let mut reader = Reader::new(frame);
        header::decode_response(&mut reader, self.key, self.version).expect("a header");
        let from = size_of::<i32>() + reader.offset();
        Response { body, from, version: self.version }
    }
}

impl Response {
    /// The message.
    pub(super) fn read<'a, M: Message<'a>>(&'a self) -> M {
        M::decode_all(&self.body[self.from..], self.version).expect("a well-formed response")
    }
}

impl Run {
    /// The answer to a call that is done; none if the machine ended: then it never left.
    pub(super) async fn take(&self, call: Call) -> Option<Response> {
        let response = call.response().await;
        (!self.is_over()).then_some(response)
    }

    /// Waits for an answer while the logs are synced; none if the machine ends before it is there,
    /// or if it takes too long, as it may while the disk fails.
    pub(super) async fn wait(&self, call: Call) -> Option<Response> {
        for _ in 0..WAIT_MS {
            while self.sync_one() {}
            tokio::task::yield_now().await;
            if call.is_done() {
                return self.take(call).await;
            }
            if self.is_over() {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        None
    }

    /// Asks for a coordinator, which makes the offsets topic.
    pub(super) async fn find_coordinator(&self) {
        let request = FindCoordinatorRequest { key: "any", ..Default::default() };
        let response = self.wait(self.call(2, &request)).await.expect("nothing fails yet");
        let found: FindCoordinatorResponse<'_> = response.read();
        assert!([0, 15].contains(&found.error_code), "code {}", found.error_code);
    }
}

const WAIT_MS: u64 = 300;
