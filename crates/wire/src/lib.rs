//! Kafka's wire protocol: generated codecs, frames and the conversion to our own words.
//!
//! Bytes become values here and values become bytes; nothing else happens. No socket, no task, no
//! rule of any API: those belong to the broker and the client.
//!
//! - [`frame`] cuts frames out of what arrived and writes whole frames.
//! - [`header`] reads and writes headers; [`Api`] is the table of keys and versions.
//! - [`generated`] has one module per message, made by `cargo xtask codegen` from `schema/`.
//! - [`convert`] turns group messages and records into the core's own words and back.
//! - [`Reader`] and [`Output`] are what the messages are read from and written to.
//!
//! A broker's connection, in short:
//!
//! ```
//! use bytes::BytesMut;
//! use ottla_wire::generated::{HeartbeatRequest, HeartbeatResponse};
//! use ottla_wire::{ErrorCode, Message, Output, Reader, frame, header::RequestHeader};
//!
//! # let mut sent = Output::new();
//! # let asked = HeartbeatRequest { group_id: "g", member_id: "m", ..Default::default() };
//! # frame::write_request(&mut sent, 4, 7, Some("me"), &asked)?;
//! # let mut arrived = BytesMut::from(&*sent.into_vec());
//! while let Some(frame) = frame::split(&mut arrived, frame::REQUEST_BYTES_MAX)? {
//!     let mut reader = Reader::new(&frame);
//!     let header = RequestHeader::decode(&mut reader)?;
//!     assert!(header.is_accepted());
//!     let request = HeartbeatRequest::decode(&mut reader, header.version)?;
//!     reader.finish(HeartbeatRequest::NAME)?;
//!     assert_eq!(request.group_id, "g"); // borrowed from the frame
//!
//!     let error_code = ErrorCode::RebalanceInProgress.number();
//!     let response = HeartbeatResponse { error_code, ..Default::default() };
//!     let (key, version, id) = (header.key, header.version, header.correlation_id);
//!     let mut out = Output::new();
//!     frame::write_response(&mut out, key, version, id, &response)?;
//!     // `out.into_buf()` is a `bytes::Buf` for one vectored write.
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Record batches travel as [`Records`]: borrowed from the frame when decoded, shared with the log
//! when encoded, never copied. `Records::to_bytes` turns a borrowed slice of a frame into a view
//! that outlives the request.

mod api;
pub mod convert;
mod error;
mod error_code;
pub mod frame;
pub mod generated;
pub mod header;
mod message;
mod output;
mod reader;
mod records;
pub mod size;
mod uuid;

pub use api::{APIS, Api, ApiKey};
pub use error::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};
pub use error_code::ErrorCode;
pub use message::{Message, Request, Versions};
pub use output::{Mark, Output, OutputBuf, SHARE_MIN};
pub use reader::{ELEMENTS_MAX, Limits, MEMORY_MAX, Reader};
pub use records::Records;
pub use uuid::Uuid;
