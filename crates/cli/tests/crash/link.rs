//! A client's connection at its barest: one request out, one response in, blocking.

use bytes::Bytes;
use ottla_wire::{Message, Output, Reader, Request, frame, header};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One connection.
pub(crate) struct Link {
    stream: TcpStream,
    correlation_id: i32,
}

/// A response still in its bytes: the message borrows from them.
pub(crate) struct Answer {
    body: Bytes,
    version: i16,
}

/// No answer is waited for longer than this; a broker that is silent for so long hangs.
const PATIENCE: Duration = Duration::from_secs(20);

impl Link {
    /// Connects.
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, correlation_id: 0 })
    }

    /// Sends a request and waits for its response.
    pub(crate) fn ask<'a, R: Request<'a>>(
        &mut self,
        version: i16,
        request: &R,
    ) -> io::Result<Answer> {
        self.send(version, request)?;
        self.receive::<R>(version)
    }

    /// Sends a request; its response is to be received in the order of sending.
    pub(crate) fn send<'a, R: Request<'a>>(&mut self, version: i16, request: &R) -> io::Result<()> {
        let mut out = Output::new();
        self.correlation_id += 1;
        frame::write_request(&mut out, version, self.correlation_id, Some("crash"), request)
            .map_err(io::Error::other)?;
        self.stream.write_all(&out.into_vec())
    }

    /// Receives the response to the oldest request not yet answered.
    pub(crate) fn receive<'a, R: Request<'a>>(&mut self, version: i16) -> io::Result<Answer> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut body)?;
        let body = Bytes::from(body);
        let mut reader = Reader::new(&body);
        header::decode_response(&mut reader, R::KEY, version).map_err(io::Error::other)?;
        let read = reader.offset();
        Ok(Answer { body: body.slice(read..), version })
    }
}

impl Answer {
    /// The response.
    pub(crate) fn read<'a, M: Message<'a>>(&'a self) -> M {
        M::decode_all(&self.body, self.version).expect("a broker's response is well-formed")
    }
}
