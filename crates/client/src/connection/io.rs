//! The task that owns a connection's socket: it writes what is queued, cuts frames out of what
//! arrives and hands each to the request it answers.

use super::Outgoing;
use super::pending::{Pending, Waiting};
use crate::security::Transport;
use crate::{Error, ErrorKind, clock};
use bytes::{Buf, Bytes, BytesMut};
use ottla_model::Instant;
use ottla_wire::{OutputBuf, frame};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

pub(super) struct Task {
    reader: ReadHalf<Box<dyn Transport>>,
    writer: WriteHalf<Box<dyn Transport>>,
    from_handles: mpsc::Receiver<Outgoing>,
    address: String,
    max_idle: Duration,
    last_used: Instant,
    arrived: BytesMut,
    leaving: VecDeque<OutputBuf>,
    pending: Pending,
    /// No handle is left: what is under way is finished, and that is all.
    is_deserted: bool,
}

/// Why the task ends.
enum End {
    Deserted,
    Idle,
    Failed(Error),
}

impl Task {
    pub(super) fn new(
        stream: Box<dyn Transport>,
        from_handles: mpsc::Receiver<Outgoing>,
        max_idle: Duration,
        address: &str,
    ) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self {
            reader,
            writer,
            from_handles,
            address: address.to_owned(),
            max_idle,
            last_used: clock::now(),
            arrived: BytesMut::with_capacity(ROOM),
            leaving: VecDeque::new(),
            pending: Pending::default(),
            is_deserted: false,
        }
    }

    pub(super) async fn run(mut self) {
        let end = loop {
            if let Err(end) = self.step().await {
                break end;
            }
        };
        if let End::Failed(error) = end {
            tracing::debug!(address = %self.address, %error, "connection closed");
            // Closed first, so that whoever is told finds it closed.
            self.from_handles.close();
            self.pending.fail(&error);
            while let Ok(outgoing) = self.from_handles.try_recv() {
                let _ = outgoing.reply.map(|reply| reply.send(Err(error.clone())));
            }
        }
    }

    /// Whatever comes first.
    async fn step(&mut self) -> Result<(), End> {
        if self.is_deserted && self.pending.is_empty() && self.leaving.is_empty() {
            return Err(End::Deserted);
        }
        let accepts = !self.is_deserted
            && self.leaving.len() < LEAVING_MAX
            && self.pending.len() < super::IN_FLIGHT_MAX;
        let deadline = self.deadline();
        tokio::select! {
            read = self.reader.read_buf(&mut self.arrived) => self.on_read(read),
            outgoing = self.from_handles.recv(), if accepts => self.on_outgoing(outgoing),
            wrote = write(&mut self.writer, &mut self.leaving) => {
                wrote.map_err(|error| self.broken(&error))
            }
            () = clock::sleep_until(Some(deadline)) => self.on_deadline(),
        }
    }

    fn deadline(&self) -> Instant {
        self.pending.deadline().unwrap_or(self.last_used + self.max_idle)
    }

    fn on_read(&mut self, read: io::Result<usize>) -> Result<(), End> {
        match read {
            Ok(0) => return Err(self.broken(&io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => self.last_used = clock::now(),
            Err(error) => return Err(self.broken(&error)),
        }
        self.take_answers().map_err(|error| {
            let message = format!("{} answers nonsense: {error}", self.address);
            End::Failed(Error::protocol(message))
        })
    }

    fn take_answers(&mut self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        while let Some(frame) = self.split()? {
            self.pending.answer(frame)?;
        }
        // What answers nothing is not collected, however long it goes on.
        if let Some(id) = self.arrived.get(4..8).and_then(<[u8]>::first_chunk) {
            self.pending.begun(i32::from_be_bytes(*id))?;
        }
        Ok(())
    }

    fn split(&mut self) -> Result<Option<Bytes>, frame::FrameError> {
        frame::split_with_room(&mut self.arrived, ANSWER_BYTES_MAX, ROOM_ANNOUNCED)
    }

    fn on_outgoing(&mut self, outgoing: Option<Outgoing>) -> Result<(), End> {
        let Some(Outgoing { frame, id, timeout, reply }) = outgoing else {
            self.is_deserted = true;
            return Ok(());
        };
        self.last_used = clock::now();
        if let Some(reply) = reply {
            let deadline = self.last_used + timeout;
            self.pending.push(Waiting { id, deadline, reply });
        }
        self.leaving.push_back(frame.into_buf());
        Ok(())
    }

    fn on_deadline(&self) -> Result<(), End> {
        match self.pending.deadline() {
            Some(deadline) if deadline <= clock::now() => {
                let message = format!("{} did not answer in time", self.address);
                Err(End::Failed(Error::new(ErrorKind::TimedOut, message)))
            }
            Some(_) => Ok(()),
            None if self.deadline() <= clock::now() => Err(End::Idle),
            None => Ok(()),
        }
    }

    fn broken(&self, error: &io::Error) -> End {
        let message = format!("the connection to {} is lost: {error}", self.address);
        End::Failed(Error::new(ErrorKind::TimedOut, message))
    }
}

/// Writes some of what is queued; cancel safe, because it remembers what was written.
async fn write(
    writer: &mut WriteHalf<Box<dyn Transport>>,
    leaving: &mut VecDeque<OutputBuf>,
) -> io::Result<()> {
    let Some(first) = leaving.front_mut() else { return std::future::pending().await };
    if writer.write_buf(first).await? == 0 {
        return Err(io::ErrorKind::WriteZero.into());
    }
    if !first.has_remaining() {
        leaving.pop_front();
    }
    Ok(())
}

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Room for what arrives before anything is known of it.
const ROOM: usize = 64 << 10;
/// Room for an answer of which little more than its length has arrived.
const ROOM_ANNOUNCED: usize = 4 << 20;
/// Requests that wait for the socket; more wait in front of the task, and are refused beyond that.
const LEAVING_MAX: usize = 16;
