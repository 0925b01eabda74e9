//! One client connection, from accept to close, as one task.
//!
//! A wake-up reads what has arrived, decides every complete request in order, collects the
//! replies that are ready, in order, and hands them to the socket in one vectored write. Requests
//! are decided synchronously: of two appends sent one after the other the first gets the lower
//! offset, whatever their replies wait for. Nothing here knows what a request means.

use super::inbox::{BadLength, Inbox, PREFIX};
use super::outbox::Outbox;
use super::pace::Pace;
use super::replies::{Ready, Replies};
use super::session::Session;
use super::tally::Tally;
use super::turn::Turn;
use super::{Lifeline, Limits};
use crate::api::{self, Answer, Cut, Pace as Time};
use crate::broker::Broker;
use crate::clock;
use ottla_model::{Instant, Now};
use ottla_wire::{ApiKey, EncodeError};
use std::io::{self, IoSlice};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::runtime::{Handle, RuntimeFlavor};

/// A connection and everything it owns.
pub(super) struct Connection<S> {
    stream: S,
    broker: Arc<Broker>,
    session: Session,
    limits: Limits,
    inbox: Inbox,
    replies: Replies,
    outbox: Outbox,
    scratch: Vec<u8>,
    tally: Tally,
    received: u64,
    sent: u64,
    inbound: Pace,
    outbound: Pace,
    now: Now,
    active: Instant,
    armed: Instant,
    greeted: bool,
    /// Its turn among requests that take long.
    long: Turn,
    /// Its share of the memory for large requests.
    room: Turn,
}

/// Why a connection ended.
#[derive(Debug, Error)]
pub(super) enum End {
    /// The peer closed it.
    #[error("closed by the peer")]
    PeerClosed,
    /// The broker is shutting down and owed nothing more.
    #[error("drained")]
    Drained,
    /// No request for `connections.max.idle.ms`.
    #[error("idle")]
    Idle,
    /// A consumer that spoke on it is dead (S19).
    #[error("its consumer is dead")]
    MemberDead,
    /// A request began and did not arrive in time.
    #[error("a request did not arrive within its time limit")]
    SlowSender,
    /// Replies were not taken in time.
    #[error("replies were not read within their time limit")]
    SlowReader,
    /// A length prefix nobody may send.
    #[error(transparent)]
    BadLength(#[from] BadLength),
    /// A request that cannot be understood or may not be sent here.
    #[error(transparent)]
    Cut(#[from] Cut),
    /// The socket failed.
    #[error("socket: {0}")]
    Io(#[from] io::Error),
    /// A reply does not fit into the version that was asked: our fault.
    #[error("a reply cannot be encoded: {0}")]
    Unencodable(#[from] EncodeError),
    /// A handler panicked: our fault, contained to this connection.
    #[error("a handler panicked")]
    Panicked,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// The connection of `session` over `stream`.
    pub(super) fn new(stream: S, broker: Arc<Broker>, session: Session, limits: Limits) -> Self {
        let now = clock::now();
        Self {
            stream,
            broker,
            session,
            limits,
            inbox: Inbox::default(),
            replies: Replies::default(),
            outbox: Outbox::default(),
            scratch: Vec::new(),
            tally: Tally::default(),
            received: 0,
            sent: 0,
            inbound: Pace::default(),
            outbound: Pace::default(),
            now,
            active: now.mono,
            armed: now.mono,
            greeted: false,
            long: Turn::default(),
            room: Turn::default(),
        }
    }

    /// Serves the connection until it ends, and says why it did.
    pub(super) async fn run(mut self, lifeline: &Lifeline) -> End {
        let mut draining = pin!(lifeline.draining());
        let line = Arc::clone(&self.session.line);
        let mut broken = pin!(line.broken());
        let mut registered = false;
        let mut alarm = pin!(tokio::time::sleep(self.limits.idle_max));
        let end = std::future::poll_fn(|cx| {
            // Polled once, to leave a waker; from then on the flags tell.
            if !std::mem::replace(&mut registered, true) {
                let _ = draining.as_mut().poll(cx);
                let _ = broken.as_mut().poll(cx);
            }
            let step = contained(|| {
                if line.is_broken() {
                    return Err(End::MemberDead);
                }
                self.step(cx, lifeline.is_draining())?;
                self.watch_time(cx, alarm.as_mut())
            });
            step.map_or_else(Poll::Ready, |()| Poll::Pending)
        })
        .await;
        self.broker.connection_closed(&self.session);
        end
    }

    fn step(&mut self, cx: &mut Context<'_>, draining: bool) -> Result<(), End> {
        self.now = clock::now();
        loop {
            let mut moved = !draining && self.read(cx)?;
            moved |= self.decide(cx, draining)?;
            moved |= self.collect(cx)?;
            let (had_room, full) = (self.has_room(), self.is_full());
            self.write(cx)?;
            // Room that a write made must be used now: nobody else would wake this task for it.
            moved |= (!had_room && self.has_room()) || (full && !self.is_full());
            if draining && self.replies.is_empty() && self.outbox.is_empty() {
                return Err(End::Drained);
            }
            if !self.tally.is_empty() {
                self.tally.flush(clock::mono(), &self.broker.metrics);
            }
            if !moved {
                return Ok(());
            }
        }
    }

    /// Reads once, if there is room for more requests. True if bytes arrived.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if !self.has_room() || self.long.is_waiting() {
            return Ok(false);
        }
        let announced = self.inbox.announced(self.limits.request_bytes_max)?.unwrap_or(0);
        if !self.has_memory(cx, announced) {
            return Ok(false);
        }
        let buffer = self.inbox.room(announced + PREFIX);
        match pin!(self.stream.read_buf(buffer)).poll(cx) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(0)) => Err(End::PeerClosed),
            Poll::Ready(Ok(count)) => {
                self.received += count as u64;
                self.broker.metrics.bytes_in.add(count as u64);
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(error.into()),
        }
    }

    /// Decides every complete request there is room for. True if there was one.
    fn decide(&mut self, cx: &mut Context<'_>, draining: bool) -> Result<bool, End> {
        let mut any = false;
        while !draining && self.has_room() {
            let Some(len) = self.inbox.announced(self.limits.request_bytes_max)? else { break };
            self.greet(len)?;
            let Some((key, answer)) = self.ask(cx, len)? else { break };
            self.inbox.consume(len);
            self.room.end();
            self.inbound.stop();
            if let Some(ready) = self.replies.push(key, self.now.mono, answer) {
                self.send(ready)?;
            }
            any = true;
        }
        if any {
            self.active = self.now.mono;
            self.greeted = true;
        }
        if self.inbox.is_partial() {
            // Half a request waits as a whole one does. In a drain shards let go of what they hold.
            self.replies.hurry();
        }
        if self.inbox.is_partial() && self.has_room() && !self.is_queued() {
            self.inbound.run(self.now.mono, self.received);
        } else {
            // Nothing has begun, or it is we who do not read on.
            self.inbound.stop();
        }
        Ok(any)
    }

    /// Decides the first request, once all `len` bytes of it are here and, if it takes long, its
    /// turn has come.
    fn ask(&mut self, cx: &mut Context<'_>, len: usize) -> Result<Option<(ApiKey, Answer)>, End> {
        let Some(body) = self.inbox.body(len) else { return Ok(None) };
        let (session, scratch) = (&mut self.session, &mut self.scratch);
        let mut ask = |time| api::dispatch(&self.broker, session, (self.now, time), scratch, body);
        if self.long.is_idle() {
            match ask(Time::Quick)? {
                (_, Answer::Long) => {}
                decided => return Ok(Some(decided)),
            }
        }
        if !self.long.poll(cx, &self.broker.long_turns, 1) {
            return Ok(None);
        }
        let decided = aside(|| ask(Time::Long));
        self.long.end();
        Ok(Some(decided?))
    }

    /// Until a first request was understood, a large one must at least have a valid header.
    fn greet(&self, len: usize) -> Result<(), End> {
        if self.greeted || len <= GREETING_BYTES_MAX {
            return Ok(());
        }
        Ok(api::check_greeting(self.inbox.start())?)
    }

    /// Moves the replies that are ready to the outbox. True if one was.
    fn collect(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let mut any = false;
        while !self.is_full() {
            let Poll::Ready(ready) = self.replies.poll_next(cx) else { break };
            self.send(ready)?;
            any = true;
        }
        if any {
            self.active = self.now.mono;
        }
        Ok(any)
    }

    fn send(&mut self, ready: Ready) -> Result<(), End> {
        if let Some(reply) = ready.reply
            && let Some(buffer) = self.outbox.push(reply?)
        {
            self.scratch = buffer;
        }
        self.tally.add(ready.key, ready.arrived);
        Ok(())
    }

    /// Hands the socket as much as it takes.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        while !self.outbox.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.outbox.slices(&mut slices);
            let write = Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..count]);
            match write {
                Poll::Ready(Ok(0)) => return Err(End::PeerClosed),
                Poll::Ready(Ok(count)) => {
                    self.sent += count as u64;
                    self.broker.metrics.bytes_out.add(count as u64);
                    self.outbox.advance(count);
                }
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending => {
                    self.outbound.run(self.now.mono, self.sent);
                    return Ok(());
                }
            }
        }
        self.outbound.stop();
        Ok(())
    }

    /// Whether no more replies are collected until some have left.
    fn is_full(&self) -> bool {
        self.outbox.len() >= OUTBOX_BYTES_MAX
    }

    /// Whether more requests are read and decided.
    fn has_room(&self) -> bool {
        let waiting = self.outbox.len() + self.replies.bytes();
        self.replies.len() < self.limits.in_flight_max && waiting < OUTBOX_BYTES_MAX
    }

    /// Whether there is memory for a request of this length, of which the first bytes are here.
    /// While others have it, the connection is not read, and its peer waits.
    fn has_memory(&mut self, cx: &mut Context<'_>, len: usize) -> bool {
        let share = u32::try_from(len).unwrap_or(u32::MAX);
        len <= SMALL_REQUEST_BYTES_MAX || self.room.poll(cx, &self.broker.request_room, share)
    }

    /// Whether the connection waits for others to be done.
    fn is_queued(&self) -> bool {
        self.long.is_waiting() || self.room.is_waiting()
    }

    /// Ends the connection if a time limit has passed; else sleeps until the next one.
    fn watch_time(
        &mut self,
        cx: &mut Context<'_>,
        mut alarm: Pin<&mut tokio::time::Sleep>,
    ) -> Result<(), End> {
        let (deadline, end) = self.deadline();
        if deadline <= self.now.mono {
            return Err(end);
        }
        // An alarm that rings early costs one look at the clock, so it is moved only when it has
        // rung or would ring too late.
        let rung = self.armed <= self.now.mono;
        if rung || deadline < self.armed {
            self.armed = deadline;
            alarm.as_mut().reset(clock::tokio_instant(deadline));
            if alarm.poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        Ok(())
    }

    /// The next moment at which something will have taken too long, and what that would be.
    fn deadline(&self) -> (Instant, End) {
        // Whoever waits for an answer is not idle: the answer's own limit decides.
        let waits = !self.replies.is_empty() || self.is_queued();
        let since = if waits { self.now.mono } else { self.active };
        let mut first = (since + self.limits.idle_max, End::Idle);
        let grace = self.limits.transfer_grace;
        let inbound = match self.room.is_held() {
            true => self.inbound.whole_deadline(grace),
            false => self.inbound.deadline(grace),
        };
        let outbound = self.outbound.deadline(grace);
        for (limit, end) in [(inbound, End::SlowSender), (outbound, End::SlowReader)] {
            match limit {
                Some(limit) if limit < first.0 => first = (limit, end),
                _ => {}
            }
        }
        first
    }
}

/// Does what takes long. The runtime gives this thread's other tasks to another one first, where it
/// has more than one.
fn aside<T>(act: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => act(),
        _ => tokio::task::block_in_place(act),
    }
}

/// A panic of a handler ends its connection and nothing else. What it may have left half done lies
/// behind locks that tell whoever comes next.
fn contained(step: impl FnOnce() -> Result<(), End>) -> Result<(), End> {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or(Err(End::Panicked))
}

/// No more requests are read while this much waits for the socket.
const OUTBOX_BYTES_MAX: usize = 1024 * 1024;
/// A first request larger than this must begin with a valid header.
const GREETING_BYTES_MAX: usize = 64 * 1024;
/// Requests up to this size are not counted against `queued.max.request.bytes`: there can be no
/// more of them than connections, and a heartbeat must never wait for a large request.
const SMALL_REQUEST_BYTES_MAX: usize = 128 * 1024;
/// Slices of one write; the rest goes with the next.
const SLICES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_connection_only() {
        assert!(matches!(contained(|| panic!("a test's")), Err(End::Panicked)));
        assert!(contained(|| Ok(())).is_ok());
    }
}
