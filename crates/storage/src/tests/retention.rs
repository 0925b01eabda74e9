//! What retention and DeleteRecords let go, what they keep, and lookups by time.

use std::time::Duration;

use super::*;
use crate::CleanupPolicy;

fn aged(config: LogConfig) -> Rig {
    let mut rig = Rig::new(config);
    for _ in 0..100 {
        rig.now_ms += 1_000;
        rig.put("a", 3);
    }
    rig.sync();
    rig
}

#[test]
fn old_segments_go_and_stay_gone() {
    let keep = Some(Duration::from_secs(50));
    let mut rig = aged(LogConfig { retention_ms: keep, ..small() });
    let retained = rig.retain(rig.log.end_offset()).unwrap();
    assert!(retained.segments >= 1);
    let start = rig.log.start_offset();
    assert!(start.0 > 0 && start.0 <= 150, "{start}");
    assert!(matches!(rig.read(start.0 - 1), Err(ReadError::OutOfRange { .. })));
    let before = rig.all();
    assert_eq!(before[0].offset, start.0);
    assert!(rig.files().iter().any(|name| name.ends_with(".deleted")));
    assert!(rig.log.due_removal(rig.now().mono).is_none());
    rig.now_ms += 60_000;
    rig.remove();
    assert!(!rig.files().iter().any(|name| name.ends_with(".deleted")));
    rig.crash();
    assert_eq!(rig.log.start_offset(), start);
    assert_eq!(rig.all(), before);
    assert_eq!(rig.log.epoch_end(LeaderEpoch(0)), Some((LeaderEpoch(0), Offset(300))));
}

/// Even the active segment goes, after a roll, once everything in it is old.
#[test]
fn an_idle_log_empties_itself() {
    let keep = Some(Duration::from_secs(50));
    let mut rig = aged(LogConfig { retention_ms: keep, ..small() });
    rig.now_ms += 3_600_000;
    for _ in 0..2 {
        // The first pass rolls; what is synced and checkpointed then can go.
        rig.retain(rig.log.end_offset()).unwrap();
        rig.sync();
    }
    assert_eq!(rig.log.start_offset(), Offset(300));
    assert_eq!(rig.log.segment_count(), 1);
    assert_eq!(rig.retain(rig.log.end_offset()).unwrap(), Default::default());
    rig.crash();
    assert_eq!((rig.log.start_offset(), rig.log.end_offset()), (Offset(300), Offset(300)));
    rig.put("on", 1);
}

#[test]
fn size_is_kept_by_dropping_the_oldest() {
    let mut rig = aged(LogConfig { retention_bytes: Some(6_000), ..small() });
    let size = rig.log.size();
    let retained = rig.retain(rig.log.end_offset()).unwrap();
    assert_eq!(rig.log.size(), size - retained.bytes);
    assert!(rig.log.size() >= 6_000 && rig.log.size() < 6_000 + 4_200);
}

#[test]
fn what_is_not_committed_stays() {
    let keep = Some(Duration::from_secs(1));
    let mut rig = aged(LogConfig { retention_ms: keep, ..small() });
    rig.now_ms += 3_600_000;
    let committed = Offset(100);
    rig.retain(committed).unwrap();
    assert!(rig.log.start_offset() <= committed && rig.log.start_offset().0 > 0);
}

#[test]
fn a_compacted_log_keeps_old_segments() {
    let keep = Some(Duration::from_secs(1));
    let policy = CleanupPolicy::COMPACT;
    let mut rig = aged(LogConfig { retention_ms: keep, cleanup_policy: policy, ..small() });
    rig.now_ms += 3_600_000;
    rig.retain(rig.log.end_offset()).unwrap();
    assert_eq!(rig.log.start_offset(), Offset(0));
}

/// KIP-107: the start may lie inside a segment, and survives.
#[test]
fn deleted_records_stay_deleted() {
    let mut rig = aged(small());
    assert_eq!(rig.delete_before(101).unwrap(), Offset(101));
    assert_eq!(rig.delete_before(50).unwrap(), Offset(101));
    assert!(rig.delete_before(301).is_err());
    let before = rig.from(Offset(101));
    let segments = rig.log.segment_count();
    rig.retain(rig.log.end_offset()).unwrap();
    assert!(rig.log.segment_count() < segments);
    for _ in 0..2 {
        rig.crash();
        assert_eq!(rig.log.start_offset(), Offset(101));
        assert_eq!(rig.from(Offset(101)), before);
    }
    let all = rig.log.end_offset();
    rig.delete_before(all.0).unwrap();
    assert_eq!(rig.all(), []);
    rig.crash();
    assert_eq!(rig.log.start_offset(), all);
    rig.put("on", 1);
}

/// KIP-79, KIP-734: the first record at or after a time; the first that has the greatest.
#[test]
fn records_are_found_by_time() {
    let mut rig = Rig::new(small());
    let times = |index: i64| 10_000 + (index * 37) % 1_000;
    for index in 0..300 {
        rig.append(batch(times(index), "a", 1)).unwrap();
    }
    rig.sync();
    for restarted in [false, true] {
        if restarted {
            rig.crash();
        }
        let reader = rig.log.reader();
        for time in (9_990..11_010).step_by(7) {
            let found = reader.find_by_time(Timestamp(time), 1 << 20).unwrap();
            let expected = (0..300).find(|index| times(*index) >= time);
            assert_eq!(found.map(|found| found.offset.0), expected, "at {time}");
        }
        let latest = reader.find_latest_time(1 << 20).unwrap().unwrap();
        let greatest = (0..300).map(times).max().unwrap();
        assert_eq!(latest.timestamp.0, greatest);
        assert_eq!(Some(latest.offset.0), (0..300).find(|index| times(*index) == greatest));
    }
}

/// `segment.ms`: a segment rolls when its first append lies that far back.
#[test]
fn a_segment_rolls_by_age() {
    let mut rig = Rig::new(LogConfig { segment_ms: Duration::from_secs(10), ..small() });
    rig.put("a", 1);
    rig.now_ms += 9_000;
    rig.put("a", 1);
    assert_eq!(rig.log.segment_count(), 1);
    rig.now_ms += 1_000;
    rig.put("a", 1);
    assert_eq!(rig.log.segment_count(), 2);
}

/// `message.timestamp.type`: the broker's time in every record, the checksum right again.
#[test]
fn log_append_time_is_the_brokers() {
    let timestamp_type = ottla_records::TimestampType::LogAppend;
    let mut rig = Rig::new(LogConfig { timestamp_type, ..small() });
    rig.now_ms = 77_000;
    let appended = rig.append(batch(5, "a", 2)).unwrap();
    assert_eq!(appended.log_append_time, Some(Timestamp(77_000)));
    assert!(rig.all().iter().all(|record| record.timestamp == 77_000));
}

/// KIP-734 after DeleteRecords: the greatest timestamp is that of the records there are to read.
#[test]
fn the_latest_time_is_that_of_a_record_that_can_be_read() {
    let mut rig = Rig::new(small());
    for time in [5_000, 9_000, 7_000, 6_000] {
        rig.append(batch(time, "a", 2)).unwrap();
    }
    rig.sync();
    let latest = |rig: &Rig| {
        let found = rig.log.reader().find_latest_time(1 << 20).unwrap();
        found.map(|it| (it.timestamp.0, it.offset.0))
    };
    let expected = [
        (2, Some((9_000, 2))),
        (3, Some((9_000, 3))),
        (4, Some((7_000, 4))),
        (7, Some((6_000, 7))),
        (8, None),
    ];
    for (start, found) in expected {
        rig.delete_before(start).unwrap();
        assert_eq!(latest(&rig), found, "from {start}");
    }
}

/// Issue 3: a slow disk must not hold up the log. While its start is being made durable it is
/// appended to, synced and ruled by a new epoch; of raises that overtake each other the highest is
/// what remains.
#[test]
fn a_log_is_used_while_its_start_is_raised() {
    let mut rig = aged(small());
    let low = rig.log.start_raise(Offset(50)).unwrap().unwrap();
    let high = rig.log.start_raise(Offset(101)).unwrap().unwrap();
    let high = high.run();
    rig.log.begin_epoch(LeaderEpoch(3)).unwrap();
    rig.epoch = 3;
    rig.put("on", 1);
    rig.sync();
    assert_eq!(rig.log.start_offset(), Offset(0), "nothing is done before it is finished");
    let refused = rig.log.truncate_to(Offset(120), rig.now());
    assert!(matches!(refused, Err(ChangeError::RaiseUnderWay)), "{refused:?}");
    let low = low.run();
    assert_eq!(rig.log.finish_raise(high).unwrap(), Offset(101));
    assert_eq!(rig.log.finish_raise(low).unwrap(), Offset(101));
    let before = rig.all();
    rig.crash();
    assert_eq!((rig.log.start_offset(), rig.all()), (Offset(101), before));
    assert_eq!(rig.log.leader_epoch(), Some(LeaderEpoch(3)), "the epochs' file is not an old one");
}
