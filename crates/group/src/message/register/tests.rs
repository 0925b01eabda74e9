//! The arithmetic of failure detection.

use super::Detection;
use core::time::Duration;

fn detection(frequency: i32, threshold: i32) -> Detection {
    Detection::new(frequency, threshold).expect("both are at least 1")
}

/// S10, S12, S15: a session timeout of 1 s and a frequency of 3 make 333.33 ms between heartbeats.
#[test]
fn s15_interval_is_session_timeout_by_frequency() {
    let second = Duration::from_secs(1);
    assert_eq!(detection(3, 3).interval(second), Duration::from_micros(333_333));
    assert_eq!(detection(1, 3).interval(second), second);
    assert_eq!(detection(7, 1).interval(Duration::from_secs(30)), Duration::from_micros(4_285_714));
}

/// S11, S13, S18: three of them make 1 s, divided once: not 999.999 ms.
#[test]
fn s13_limit_of_the_example_is_exactly_one_second() {
    let second = Duration::from_secs(1);
    assert_eq!(detection(3, 3).limit(second), second);
    assert_eq!(detection(3, 2).limit(second), Duration::from_micros(666_666));
    assert_eq!(detection(3, 6).limit(second), 2 * second);
    assert_eq!(detection(3, 1).limit(second), detection(3, 1).interval(second));
}

/// Decision 4: below 1 there is no frequency and no threshold.
#[test]
fn s8_frequency_and_threshold_begin_at_one() {
    for (frequency, threshold) in [(0, 1), (1, 0), (-1, 1), (1, i32::MIN)] {
        assert_eq!(Detection::new(frequency, threshold), None);
    }
    assert!(Detection::new(1, 1).is_some());
}

/// Decision 20: they have no upper limit, and nothing overflows.
#[test]
fn s18_extremes_do_not_overflow() {
    let longest = Duration::from_millis(i32::MAX as u64);
    assert_eq!(detection(i32::MAX, i32::MAX).limit(longest), longest);
    let forever = Duration::from_micros(u64::MAX);
    assert_eq!(detection(1, i32::MAX).limit(longest), forever);
    assert_eq!(detection(1, i32::MAX).limit(Duration::MAX), forever);
    assert_eq!(detection(i32::MAX, 1).limit(Duration::from_millis(100)), Duration::ZERO);
}
