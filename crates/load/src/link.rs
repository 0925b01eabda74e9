//! One connection to a broker. Whoever holds it knows what is in flight; nothing is retried here.

use crate::Outcome;
use bytes::{Bytes, BytesMut};
use ottla_wire::generated::{ApiVersionsRequest, ApiVersionsResponse};
use ottla_wire::{ErrorCode, Message, Output, Reader, Request, frame, header};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The name a client gives itself decides how patient a broker may be with it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Software {
    /// Apache Kafka's own Java client, whose timing a virtual member keeps.
    Java,
    /// A client that nobody has a special rule for.
    Unknown,
}

/// A connection, its unread bytes and its last correlation id.
pub(crate) struct Link {
    pub(crate) stream: TcpStream,
    pub(crate) arrived: BytesMut,
    last_id: i32,
}

/// The body of a response.
pub(crate) struct Answer {
    body: Bytes,
    version: i16,
}

/// A request that was sent and not answered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) id: i32,
    key: ottla_wire::ApiKey,
    version: i16,
}

impl Link {
    /// Connects and says who is there, as every client does.
    pub(crate) async fn open(address: &str, software: Software) -> Outcome<Self> {
        let mut link = Self::silent(address).await?;
        let (name, version) = match software {
            Software::Java => ("apache-kafka-java", "4.4.0"),
            Software::Unknown => ("ottla-load", env!("CARGO_PKG_VERSION")),
        };
        let hello = ApiVersionsRequest {
            client_software_name: name,
            client_software_version: version,
            ..Default::default()
        };
        let answer = tokio::time::timeout(PATIENCE, link.call(3, &hello)).await;
        let answer = answer.map_err(|_| format!("{address} does not answer ApiVersions"))??;
        check(answer.read::<ApiVersionsResponse<'_>>()?.error_code, "ApiVersions")?;
        Ok(link)
    }

    /// Connects and says nothing.
    pub(crate) async fn silent(address: &str) -> Outcome<Self> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|error| format!("cannot connect to {address}: {error}"))?;
        stream.set_nodelay(true).map_err(|error| format!("no TCP_NODELAY: {error}"))?;
        Ok(Self { stream, arrived: BytesMut::with_capacity(4096), last_id: 0 })
    }

    /// Asks and waits for the answer; nothing else may be in flight.
    pub(crate) async fn call<'a, R: Request<'a>>(
        &mut self,
        version: i16,
        request: &R,
    ) -> Outcome<Answer> {
        let asked = self.send(version, request).await?;
        self.answer(asked).await
    }

    /// Sends a request.
    pub(crate) async fn send<'a, R: Request<'a>>(
        &mut self,
        version: i16,
        request: &R,
    ) -> Outcome<Asked> {
        self.last_id += 1;
        let bytes = encoded(version, self.last_id, request)?;
        self.stream.write_all(&bytes).await.map_err(|error| format!("cannot send: {error}"))?;
        Ok(Asked { id: self.last_id, key: R::KEY, version })
    }

    /// Waits for the next answer, which must be to `asked`. Cancel safe: what has arrived is kept.
    pub(crate) async fn answer(&mut self, asked: Asked) -> Outcome<Answer> {
        loop {
            if let Some(frame) = self.arrived_frame()? {
                let body = frame.slice_ref(asked.body_of(&frame)?);
                return Ok(Answer { body, version: asked.version });
            }
            self.read_more().await?;
        }
    }

    /// The next whole frame that has arrived already.
    pub(crate) fn arrived_frame(&mut self) -> Outcome<Option<Bytes>> {
        frame::split(&mut self.arrived, FRAME_BYTES_MAX).map_err(|error| error.to_string())
    }

    /// Waits until more bytes have arrived.
    pub(crate) async fn read_more(&mut self) -> Outcome<()> {
        match self.stream.read_buf(&mut self.arrived).await {
            Ok(0) => Err("the broker closed the connection".into()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("cannot read: {error}")),
        }
    }
}

impl Asked {
    /// A request that was sent past [`Link::send`].
    pub(crate) fn new(id: i32, key: ottla_wire::ApiKey, version: i16) -> Self {
        Self { id, key, version }
    }

    /// The body in the frame that must be its answer.
    pub(crate) fn body_of(self, frame: &[u8]) -> Outcome<&[u8]> {
        let mut reader = Reader::new(frame);
        let id = header::decode_response(&mut reader, self.key, self.version)
            .map_err(|error| error.to_string())?;
        if id != self.id {
            return Err(format!("answer {id} came where {} was due", self.id));
        }
        Ok(reader.rest())
    }
}

impl Answer {
    /// The response, borrowed from the answer.
    pub(crate) fn read<'a, M: Message<'a>>(&'a self) -> Outcome<M> {
        M::decode_all(&self.body, self.version).map_err(|error| error.to_string())
    }
}

/// A whole frame.
pub(crate) fn encoded<'a, R: Request<'a>>(version: i16, id: i32, request: &R) -> Outcome<Vec<u8>> {
    let mut out = Output::new();
    frame::write_request(&mut out, version, id, Some(CLIENT_ID), request)
        .map_err(|error| error.to_string())?;
    Ok(out.into_vec())
}

/// An error code that is not zero is an error named as Kafka names it.
pub(crate) fn check(code: i16, what: &str) -> Outcome<()> {
    if code == 0 {
        return Ok(());
    }
    let name = ErrorCode::from_number(code).map_or("an unknown error", ErrorCode::name);
    Err(format!("{what}: {name} ({code})"))
}

const CLIENT_ID: &str = "load";
/// No answer to what is asked here is longer.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// A broker that has not said hello by then has no room for the connection.
const PATIENCE: Duration = Duration::from_secs(30);
