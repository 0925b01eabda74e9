//! Request and response headers, whose form depends on what they announce.

use crate::generated::{request_header, response_header};
use crate::{Api, ApiKey, DecodeError, DecodeErrorKind, EncodeError, Message, Output, Reader};

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// What is asked.
    pub key: ApiKey,
    /// In which version. Not checked: see [`RequestHeader::is_accepted`].
    pub version: i16,
    /// Echoed by the response.
    pub correlation_id: i32,
    /// The client's name for itself.
    pub client_id: Option<&'a str>,
}

impl<'a> RequestHeader<'a> {
    /// Reads the header and leaves the reader at the body. A version nobody knows is no error yet,
    /// because ApiVersions answers it.
    ///
    /// # Errors
    /// If the key is unknown or the bytes are no header.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut ahead = reader.clone();
        let number = ahead.i16("RequestHeader.RequestApiKey")?;
        let version = ahead.i16("RequestHeader.RequestApiVersion")?;
        let Some(api) = Api::from_number(number) else {
            return Err(reader.error("RequestHeader", DecodeErrorKind::ApiKey(number)));
        };
        let header = request_header::RequestHeader::decode(reader, form(api, version))?;
        let request_header::RequestHeader { correlation_id, client_id, .. } = header;
        Ok(Self { key: api.key, version, correlation_id, client_id })
    }

    /// Writes the header.
    ///
    /// # Errors
    /// If the client id is too long.
    pub fn encode(&self, out: &mut Output) -> Result<(), EncodeError> {
        let (header, form) = self.raw();
        header.encode(form, out)
    }

    /// How many bytes [`RequestHeader::encode`] writes.
    pub fn size(&self) -> usize {
        let (header, form) = self.raw();
        header.size(form)
    }

    /// Whether requests of this key are accepted in this version.
    pub fn is_accepted(&self) -> bool {
        self.key.api().accepted.contains(self.version)
    }

    fn raw(&self) -> (request_header::RequestHeader<'a>, i16) {
        let header = request_header::RequestHeader {
            request_api_key: self.key.number(),
            request_api_version: self.version,
            correlation_id: self.correlation_id,
            client_id: self.client_id,
        };
        (header, form(self.key.api(), self.version))
    }
}

/// Reads the header of a response and gives its correlation id.
///
/// # Errors
/// If the bytes are no header.
pub fn decode_response(
    reader: &mut Reader<'_>,
    key: ApiKey,
    version: i16,
) -> Result<i32, DecodeError> {
    let header = response_header::ResponseHeader::decode(reader, response_form(key, version))?;
    Ok(header.correlation_id)
}

/// Writes the header of a response to a request of this key and version.
///
/// # Errors
/// None in practice: a header has nothing that could be too long.
pub fn encode_response(
    correlation_id: i32,
    key: ApiKey,
    version: i16,
    out: &mut Output,
) -> Result<(), EncodeError> {
    let header = response_header::ResponseHeader { correlation_id };
    header.encode(response_form(key, version), out)
}

/// How many bytes [`encode_response`] writes.
pub fn response_size(key: ApiKey, version: i16) -> usize {
    response_header::ResponseHeader::default().size(response_form(key, version))
}

fn form(api: &Api, version: i16) -> i16 {
    if api.has_flexible_request_header(version) { 2 } else { 1 }
}

fn response_form(key: ApiKey, version: i16) -> i16 {
    i16::from(key.api().has_flexible_response_header(version))
}
