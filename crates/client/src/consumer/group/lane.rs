//! One of a member's two connections to its coordinator: requests go out in the order they were
//! asked for, as soon as it is open.

use crate::connection::Connection;
use ottla_group::member::{CallId, Request};
use ottla_model::NodeId;
use std::collections::VecDeque;

/// A connection on its way, or there, or neither.
#[derive(Debug, Default)]
pub(super) struct LaneState {
    /// Counts connections: what is told of an earlier one means nothing.
    pub(super) number: u64,
    node: Option<NodeId>,
    link: Link,
    pub(super) queue: VecDeque<(CallId, Request)>,
}

#[derive(Debug, Default)]
enum Link {
    #[default]
    None,
    Opening,
    Open(Connection),
}

impl LaneState {
    /// Queues a request for `node`; whether a connection has to be opened for it.
    pub(super) fn queue(&mut self, node: NodeId, call: CallId, request: Request) -> bool {
        if self.node != Some(node) {
            self.close();
            self.node = Some(node);
        }
        self.queue.push_back((call, request));
        match &self.link {
            Link::Open(connection) if connection.is_open() => false,
            Link::Opening => false,
            _ => {
                self.number += 1;
                self.link = Link::Opening;
                true
            }
        }
    }

    pub(super) fn opened(&mut self, connection: Connection) {
        self.link = Link::Open(connection);
    }

    pub(super) fn connection(&self) -> Option<&Connection> {
        match &self.link {
            Link::Open(connection) => Some(connection),
            _ => None,
        }
    }

    /// Closes it at once, unsent requests and all.
    pub(super) fn close(&mut self) {
        if let Link::Open(connection) = std::mem::take(&mut self.link) {
            connection.abort();
        }
        self.number += 1;
        self.queue.clear();
        self.node = None;
    }
}
