//! How a broker is reached: the seam where TLS and SASL will join.
//!
//! A [`Transport`] is any stream of bytes; whatever has to happen before Kafka's own requests (a
//! handshake of TLS, of SASL) happens in [`open`]. Nothing above knows which it is.

use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// How brokers are spoken to: `security.protocol`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SecurityProtocol {
    /// TCP, neither encrypted nor authenticated.
    Plaintext,
}

/// A stream of bytes to a broker.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// Opens a stream to `address` (`host:port`), ready for Kafka's requests.
pub(crate) async fn open(
    protocol: SecurityProtocol,
    address: &str,
) -> io::Result<Box<dyn Transport>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    match protocol {
        SecurityProtocol::Plaintext => Ok(Box::new(stream)),
    }
}
