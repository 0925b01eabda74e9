//! One connection: frames out, frames in, blocking; and the few requests of Kafka's own that the
//! tests need.

use crate::PATIENCE;
use ottla_wire::generated::create_topics_request::CreatableTopic;
use ottla_wire::generated::*;
use ottla_wire::{Message, Output, Reader, Request, frame, header};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// One connection.
pub(crate) struct Wire {
    stream: TcpStream,
    /// The client id of its requests.
    pub(crate) client: &'static str,
    pub(crate) correlation_id: i32,
    /// Every frame, length included, and whether it was sent, since somebody began to record.
    pub(crate) recorded: Option<Vec<(bool, Vec<u8>)>>,
}

/// Where a coordinator is and what it says, with the error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) error: i16,
    pub(crate) node: i32,
    pub(crate) address: String,
    pub(crate) epoch: i32,
    pub(crate) generation: i32,
}

impl Wire {
    /// Connects.
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the broker listens");
        stream.set_nodelay(true).expect("a socket option");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        Self { stream, client: "consumer", correlation_id: 0, recorded: None }
    }

    /// Sends a request and waits for its response; what `read` makes of it.
    pub(crate) fn ask<'a, R, T>(
        &mut self,
        version: i16,
        request: &R,
        read: impl FnOnce(R::Response<'_>) -> T,
    ) -> T
    where
        R: Request<'a>,
    {
        self.send(version, request);
        self.receive::<R, T>(version, read).expect("an answer, not a closed connection")
    }

    /// Sends a request; its response is to be received in the order of sending.
    pub(crate) fn send<'a, R: Request<'a>>(&mut self, version: i16, request: &R) {
        self.correlation_id += 1;
        let mut out = Output::new();
        frame::write_request(&mut out, version, self.correlation_id, Some(self.client), request)
            .expect("a request this version can carry");
        self.send_raw(&out.into_vec());
    }

    /// Sends bytes as they are.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.record(true, bytes);
        self.stream.write_all(bytes).expect("the broker reads");
    }

    /// The response to the oldest request that has none; `None` where the broker closed instead.
    pub(crate) fn receive<'a, R, T>(
        &mut self,
        version: i16,
        read: impl FnOnce(R::Response<'_>) -> T,
    ) -> Option<T>
    where
        R: Request<'a>,
    {
        let bytes = self.receive_raw()?;
        let mut reader = Reader::new(&bytes);
        header::decode_response(&mut reader, R::KEY, version).expect("a header");
        let body = &bytes[reader.offset()..];
        Some(read(Message::decode_all(body, version).expect("a well-formed response")))
    }

    fn receive_raw(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if is_closed(error.kind()) => return None,
            Err(error) => panic!("neither an answer nor a closed connection: {error}"),
        }
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut body).expect("a whole frame");
        self.record(false, &[&length[..], &body].concat());
        Some(body)
    }

    /// Whether the broker closes the connection without another word; waits for it.
    pub(crate) fn is_broken(&mut self) -> bool {
        self.receive_raw().is_none()
    }

    /// Whether the broker answers on it.
    pub(crate) fn is_open(&mut self) -> bool {
        self.send(0, &ApiVersionsRequest::default());
        self.receive::<ApiVersionsRequest<'_>, _>(0, |_| ()).is_some()
    }

    /// ConsumerMetadata.
    pub(crate) fn metadata(&mut self, group_id: &str) -> Metadata {
        self.ask(0, &ConsumerMetadataRequest { group_id }, |response| Metadata {
            error: response.error_code,
            node: response.coordinator.node_id,
            address: format!("{}:{}", response.coordinator.host, response.coordinator.port),
            epoch: response.coordinator_epoch,
            generation: response.group_generation_id,
        })
    }

    /// Creates a topic.
    pub(crate) fn create_topic(&mut self, name: &str, partitions: i32) {
        let topic = CreatableTopic {
            name,
            num_partitions: partitions,
            replication_factor: 1,
            ..Default::default()
        };
        let request =
            CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let error = self.ask(7, &request, |response| response.topics[0].error_code);
        assert_eq!(error, 0);
    }

    fn record(&mut self, sent: bool, frame: &[u8]) {
        if let Some(recorded) = &mut self.recorded {
            recorded.push((sent, frame.to_vec()));
        }
    }
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
