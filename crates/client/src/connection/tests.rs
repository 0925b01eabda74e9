//! Brokers that answer nonsense (issue 5, 6): the connection closes, nothing panics, nobody waits.

use super::*;
use ottla_wire::generated::api_versions_response::ApiVersion;
use ottla_wire::generated::{MetadataRequest, MetadataResponse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A broker that answers ApiVersions as it should and everything else with `reply`, given the
/// request's correlation id.
async fn broker(reply: impl Fn(i32) -> Vec<u8> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        while let Some((key, id)) = read_request(&mut stream).await {
            let bytes = if key == ApiKey::ApiVersions.number() { versions(id) } else { reply(id) };
            stream.write_all(&bytes).await.unwrap();
        }
    });
    address
}

async fn read_request(stream: &mut TcpStream) -> Option<(i16, i32)> {
    let length = stream.read_i32().await.ok()?;
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes).await.ok()?;
    let key = i16::from_be_bytes([bytes[0], bytes[1]]);
    Some((key, i32::from_be_bytes(bytes[4..8].try_into().unwrap())))
}

fn versions(id: i32) -> Vec<u8> {
    answered_versions(id, &versions::ESSENTIAL)
}

fn answered_versions(id: i32, keys: &[ApiKey]) -> Vec<u8> {
    let range =
        |key: &ApiKey| ApiVersion { api_key: key.number(), min_version: 0, max_version: 12 };
    let api_keys = keys.iter().map(range).collect();
    let body = ApiVersionsResponse { api_keys, ..Default::default() };
    let mut out = Output::new();
    frame::write_response(&mut out, ApiKey::ApiVersions, ASKED_FIRST, id, &body).unwrap();
    out.into_vec()
}

fn metadata(id: i32) -> Vec<u8> {
    let body = MetadataResponse { cluster_id: Some("c"), ..Default::default() };
    let mut out = Output::new();
    frame::write_response(&mut out, ApiKey::Metadata, 12, id, &body).unwrap();
    out.into_vec()
}

async fn ask(reply: impl Fn(i32) -> Vec<u8> + Send + 'static) -> (Connection, Result<Answer>) {
    let config = ClientConfig::new("unused:1");
    let config = ClientConfig { request_timeout: Duration::from_millis(300), ..config };
    let connection = Connection::open(&config, &broker(reply).await).await.unwrap();
    let answer = connection.call(&MetadataRequest::default()).await;
    (connection, answer)
}

#[tokio::test]
async fn a_good_answer_is_read_in_the_version_both_speak() {
    let (connection, answer) = ask(metadata).await;
    let answer = answer.unwrap();
    assert_eq!(answer.version(), 12);
    assert_eq!(answer.read::<MetadataResponse<'_>>().unwrap().cluster_id, Some("c"));
    assert!(connection.is_open());
    assert_eq!(
        connection.version(ApiKey::InitProducerId).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

#[tokio::test]
async fn an_answer_to_another_request_closes_the_connection() {
    let (connection, answer) = ask(|id| metadata(id + 7)).await;
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Protocol);
    connection.closed().await;
}

#[tokio::test]
async fn an_endless_frame_closes_the_connection_before_it_is_read() {
    for length in [i32::MAX, -5] {
        let (connection, answer) = ask(move |_| length.to_be_bytes().to_vec()).await;
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Protocol);
        connection.closed().await;
    }
}

/// S21: no answer in time is a failed broker.
#[tokio::test]
async fn silence_closes_the_connection() {
    let (connection, answer) = ask(|_| Vec::new()).await;
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::TimedOut);
    connection.closed().await;
    let later = connection.call(&MetadataRequest::default()).await;
    assert_eq!(later.unwrap_err().kind(), ErrorKind::Retriable);
}

#[tokio::test]
async fn a_body_that_is_none_is_an_error_and_no_panic() {
    let body = |id: i32| [&5_i32.to_be_bytes()[..], &id.to_be_bytes(), &[9]].concat();
    let (_, answer) = ask(body).await;
    let error = answer.and_then(|answer| answer.read::<MetadataResponse<'_>>().map(drop));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Protocol);
}

#[tokio::test]
async fn aborting_fails_what_is_under_way() {
    let config = ClientConfig::new("unused:1");
    let connection = Connection::open(&config, &broker(|_| Vec::new()).await).await.unwrap();
    let request = MetadataRequest::default();
    let awaited = connection.start(12, &request, Duration::from_secs(60)).unwrap();
    connection.abort();
    assert_eq!(awaited.answer().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(!connection.is_open());
}

/// A connection whose versions are damaged is none: it would be of no use for as long as it lasts.
#[tokio::test]
async fn a_broker_without_the_essentials_is_not_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (_, id) = read_request(&mut stream).await.unwrap();
        let bytes = answered_versions(id, &[ApiKey::Produce, ApiKey::Fetch]);
        stream.write_all(&bytes).await.unwrap();
    });
    let error = Connection::open(&ClientConfig::new("unused:1"), &address).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("Metadata"), "{error}");
}

/// One that has no groups, or takes no records, is of use all the same; who asks for what it lacks
/// hears which that is.
#[tokio::test]
async fn a_broker_that_lacks_an_api_is_refused_by_the_call_that_needs_it() {
    let (connection, answer) = ask(metadata).await;
    assert!(answer.is_ok());
    let error = connection.version(ApiKey::JoinGroup).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("has no JoinGroup"), "{error}");
}
