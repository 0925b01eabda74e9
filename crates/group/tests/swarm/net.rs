//! Connections between members and would-be coordinators: in order, late, broken, or silent.
//!
//! Within a connection messages keep their order, as in TCP; between connections they do not. When
//! a client closes, what it had sent is heard up to some point, and nothing after. A connection
//! that turned into a black hole takes messages and delivers none until somebody gives up.

use ottla_group::member::{CallId, Lane, Request};
use ottla_group::message::{Reply, Token};
use std::collections::VecDeque;

/// A reader that is no member.
pub const OBSERVER: usize = usize::MAX;

/// What somebody sends to a coordinator.
pub enum Sent {
    Request(Request),
    /// The observer reads everything.
    Observe,
}

pub struct Connection {
    pub slot: usize,
    pub incarnation: u32,
    pub lane: Lane,
    pub site: usize,
    pub client_open: bool,
    pub site_open: bool,
    pub is_black_hole: bool,
    pub to_site: VecDeque<(CallId, Sent)>,
    pub to_client: VecDeque<(CallId, Reply)>,
    /// Requests in their order, each with its reply if there is one: replies keep that order.
    awaiting: VecDeque<(Token, CallId, Option<Reply>)>,
    requests: u64,
    /// When the last message arrives, in either direction: the next comes later.
    pub last_at_site: u64,
    pub last_at_client: u64,
}

const TOKEN_BITS: u32 = 24;

/// The connection a token's request came on.
pub fn connection_of(token: Token) -> usize {
    (token.0 >> TOKEN_BITS) as usize
}

impl Connection {
    pub fn new(slot: usize, incarnation: u32, lane: Lane, site: usize, is_up: bool) -> Self {
        Self {
            slot,
            incarnation,
            lane,
            site,
            client_open: true,
            site_open: is_up,
            is_black_hole: false,
            to_site: VecDeque::new(),
            to_client: VecDeque::new(),
            awaiting: VecDeque::new(),
            requests: 0,
            last_at_site: 0,
            last_at_client: 0,
        }
    }

    pub fn is_open(&self) -> bool {
        self.client_open && self.site_open
    }

    /// The request that came last, if it has no reply yet.
    pub fn last_awaiting(&self) -> Option<Token> {
        let (token, _, reply) = self.awaiting.back()?;
        reply.is_none().then_some(*token)
    }

    /// A request reached the site: its token.
    pub fn expect(&mut self, own: usize, call: CallId) -> Token {
        self.requests += 1;
        let token = Token((own as u64) << TOKEN_BITS | self.requests);
        self.awaiting.push_back((token, call, None));
        token
    }

    /// A reply is ready; it leaves once those before it have.
    pub fn answer(&mut self, token: Token, reply: Reply) {
        if let Some(slot) = self.awaiting.iter_mut().find(|(waiting, ..)| *waiting == token) {
            assert!(slot.2.is_none(), "two replies to one request");
            slot.2 = Some(reply);
        }
    }

    /// The next reply whose turn it is.
    pub fn next_reply(&mut self) -> Option<(CallId, Reply)> {
        self.awaiting.front().filter(|(_, _, reply)| reply.is_some())?;
        let (_, call, reply) = self.awaiting.pop_front()?;
        Some((call, reply?))
    }

    /// The site's process is gone, and with it what it had not sent.
    pub fn lose_site(&mut self) {
        self.site_open = false;
        self.to_site.clear();
        self.awaiting.clear();
    }
}
