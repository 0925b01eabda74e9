//! One retry policy for every call.

use super::*;
use std::cell::Cell;

fn retry(timeout_ms: u64) -> Retry {
    let config = ClientConfig {
        retry_backoff: Duration::from_millis(1),
        retry_backoff_max: Duration::from_millis(2),
        ..ClientConfig::new("127.0.0.1:1")
    };
    Cluster::new(config).retry_for(Duration::from_millis(timeout_ms))
}

fn error(kind: ErrorKind) -> Result<i32> {
    Err(Error::new(kind, "no"))
}

#[tokio::test]
async fn what_may_help_is_tried_again_until_it_works() {
    let tries = Cell::new(0);
    let tried = || async {
        tries.set(tries.get() + 1);
        match tries.get() {
            1 => error(ErrorKind::Retriable),
            2 => error(ErrorKind::TimedOut),
            three => Ok(three),
        }
    };
    assert_eq!(retry(60_000).run(tried).await.unwrap(), 3);
}

#[tokio::test]
async fn what_may_have_been_carried_out_is_not_tried_again() {
    let tries = Cell::new(0);
    let tried = || async {
        tries.set(tries.get() + 1);
        let kinds = [ErrorKind::Retriable, ErrorKind::TimedOut];
        error(kinds[tries.get() - 1])
    };
    assert_eq!(retry(60_000).run_once(tried).await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(tries.get(), 2);
}

#[tokio::test]
async fn a_final_error_ends_it_and_so_does_the_time() {
    let mut refused = retry(60_000);
    let denied = refused.run(|| async { error(ErrorKind::Denied) }).await;
    assert_eq!(denied.unwrap_err().kind(), ErrorKind::Denied);
    let late = retry(5).run(|| async { std::future::pending::<Result<i32>>().await }).await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::TimedOut);
    let late = retry(5).run(|| async { error(ErrorKind::Retriable) }).await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Retriable);
}

/// Calls may be spawned: their futures are `Send`.
#[tokio::test]
async fn calls_may_be_spawned() {
    fn spawnable(_: impl Send) {}
    let admin = crate::Admin::new(crate::AdminConfig::new("127.0.0.1:1")).unwrap();
    spawnable(admin.list_groups(Default::default()));
    spawnable(admin.describe_group("g"));
    spawnable(admin.list_group_offsets("g"));
    spawnable(admin.delete_group_offsets("g", []));
    spawnable(admin.group_journal("g"));
    spawnable(admin.list_topics());
    spawnable(admin.create_topics([]));
}
