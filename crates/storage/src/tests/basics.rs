//! What a log does when nothing goes wrong, and what a plain restart brings back.

use super::*;
use crate::State;

#[test]
fn appends_are_read_back_in_order_across_segments() {
    let mut rig = Rig::new(small());
    let mut expected = Vec::new();
    for round in 0..100 {
        let prefix = format!("round {round}");
        let appended = rig.put(&prefix, 3);
        assert_eq!((appended.first.0, appended.last.0), (round * 3, round * 3 + 2));
        expected.extend((0..3).map(|index| format!("{prefix}-{index}")));
    }
    assert!(rig.log.segment_count() > 2);
    assert_eq!(rig.values(), expected);
    for from in 0..300 {
        let seen = rig.from(Offset(from));
        assert_eq!(seen[0].offset, from, "a read begins with the batch that holds its offset");
        assert_eq!(seen.len() as i64, 300 - from);
    }
    assert!(matches!(rig.read(301), Err(ReadError::OutOfRange { .. })));
    assert_eq!(rig.read(300).unwrap(), []);
}

/// KIP-74: at least one batch, however small the limit; none at all where the first is
/// bounded too.
#[test]
fn a_read_keeps_to_its_limits() {
    let mut rig = Rig::new(small());
    rig.put("a", 5);
    rig.put("b", 5);
    let reader = rig.log.reader();
    let end = rig.log.end_offset();
    let one = reader.read(Offset(0), 1, end, usize::MAX).unwrap();
    assert_eq!(records(&one.bytes).len(), 5);
    assert_eq!(one.next, Offset(5));
    assert!(reader.read(Offset(0), 1, end, 1).unwrap().bytes.is_empty());
    let room = one.bytes.len();
    assert_eq!(reader.read(Offset(0), 1, end, room).unwrap().bytes, one.bytes);
    assert!(reader.read(Offset(0), 1, end, room - 1).unwrap().bytes.is_empty());
    let both = reader.read(Offset(3), 1 << 20, end, usize::MAX).unwrap();
    assert_eq!(records(&both.bytes).len(), 10);
    let below = reader.read(Offset(0), 1 << 20, Offset(5), usize::MAX).unwrap();
    assert_eq!(records(&below.bytes).len(), 5);
    assert!(reader.read(Offset(5), 1 << 20, Offset(5), usize::MAX).unwrap().bytes.is_empty());
}

/// Decision 4: the synced offset is what fdatasync has covered; appends go on meanwhile.
#[test]
fn one_sync_covers_what_came_before_it() {
    let mut rig = Rig::new(small());
    rig.put("a", 1);
    rig.put("b", 1);
    let job = rig.log.start_sync().unwrap();
    assert!(rig.log.start_sync().is_none(), "one at a time");
    rig.put("c", 1);
    assert_eq!(rig.log.synced_offset(), Offset(0));
    rig.log.finish_sync(job.run()).unwrap();
    assert_eq!(rig.log.synced_offset(), Offset(2));
    assert!(rig.log.needs_sync());
    rig.sync();
    assert_eq!(rig.log.synced_offset(), Offset(3));
    assert!(rig.log.start_sync().is_none());
}

#[test]
fn a_roll_during_a_sync_is_synced_by_the_next() {
    let mut rig = Rig::new(small());
    rig.put("a", 1);
    let job = rig.log.start_sync().unwrap();
    for _ in 0..100 {
        rig.put("b", 3);
    }
    rig.log.finish_sync(job.run()).unwrap();
    assert_eq!(rig.log.synced_offset(), Offset(1));
    rig.sync();
    let before = rig.all();
    let recovery = rig.crash();
    assert_eq!(recovery.cuts, []);
    assert_eq!(rig.all(), before);
}

/// Must-show 4: after kill -9 only what lies past the checkpoint is read again.
#[test]
fn a_restart_reads_only_what_lies_past_the_checkpoint() {
    let mut rig = Rig::new(LogConfig { segment_bytes: 1 << 20, ..small() });
    for round in 0..500 {
        rig.put(&format!("{round}"), 3);
        rig.sync();
    }
    let before = rig.all();
    let recovery = rig.kill();
    assert!(recovery.checked_bytes <= 3000 + 300, "{recovery}");
    assert_eq!(rig.all(), before);
    assert_eq!(rig.kill().checked_bytes, 0, "what was checked is checkpointed");
    assert_eq!(rig.log.state(), &State::Online);
}

#[test]
fn a_closed_log_opens_without_looking() {
    let mut rig = Rig::new(small());
    rig.put("a", 10);
    rig.log.close().unwrap();
    let recovery = rig.crash();
    assert_eq!(recovery.to_string(), "offsets 0 to 10");
    assert_eq!(rig.all().len(), 10);
}

#[test]
fn a_folder_of_another_topic_is_refused() {
    let rig = Rig::new(small());
    let fs: Arc<dyn fs::Fs> = Arc::new(rig.fs.clone());
    let other = TopicId([8; 16]);
    let opened = Log::open(fs, Path::new(DIR), other, small(), rig.now());
    assert!(matches!(opened, Err(crate::OpenError::OtherTopic { .. })));
    assert_eq!(crate::read_topic_id(&rig.fs, Path::new(DIR)).unwrap(), Some(TOPIC));
}
