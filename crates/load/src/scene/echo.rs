//! The plainest server there is: epoll, one thread, what arrives goes back. What it costs is the
//! floor under every request a broker answers.

use crate::Outcome;
use crate::figures::say;
use crate::process::Process;
use rustix::event::epoll;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// Serves until it is killed, or until whoever started it is gone.
pub(crate) fn serve() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    say(&listener.local_addr().map_err(|error| error.to_string())?.to_string());
    run(&listener).map_err(|error| error.to_string())
}

fn run(listener: &TcpListener) -> std::io::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let mut streams: Vec<Option<TcpStream>> = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let mut events = Vec::with_capacity(256);
    loop {
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            let token = event.data.u64();
            if token == LISTENER {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                let data = epoll::EventData::new_u64(streams.len() as u64);
                epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
                streams.push(Some(stream));
            } else if !echo(&mut streams, token, &mut buffer) && streams.iter().all(Option::is_none)
            {
                return Ok(());
            }
        }
    }
}

/// Whether the stream is still open.
fn echo(streams: &mut [Option<TcpStream>], token: u64, buffer: &mut [u8]) -> bool {
    let slot = usize::try_from(token).ok().and_then(|index| streams.get_mut(index));
    let Some(slot) = slot else { return false };
    let Some(stream) = slot.as_mut() else { return false };
    let echoed = stream.read(buffer).and_then(|count| {
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        stream.write_all(buffer.get(..count).unwrap_or_default())
    });
    if echoed.is_err() {
        *slot = None;
    }
    echoed.is_ok()
}

/// Such a server in a process of its own; killed when it is dropped.
pub(crate) struct EchoServer {
    child: Child,
    pub(crate) address: String,
}

impl EchoServer {
    /// Starts it.
    pub(crate) fn start() -> Outcome<Self> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .arg("echo")
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start the echo server: {error}"))?;
        let mut address = String::new();
        if let Some(output) = child.stdout.take() {
            let read =
                std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut address);
            read.map_err(|error| error.to_string())?;
        }
        Ok(Self { child, address: address.trim().to_owned() })
    }

    /// Its process.
    pub(crate) fn process(&self) -> Process {
        Process(self.child.id())
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const LISTENER: u64 = u64::MAX;
