//! Failing disks and full ones: the log refuses, says why, and comes back without a gap.

use std::io::ErrorKind;

use super::*;
use crate::State;
use crate::fs::sim::{Fault, Op};

fn fault(op: Op, path_suffix: &'static str, kind: ErrorKind) -> Fault {
    Fault { op, path_suffix, after: 0, kind }
}

fn next(rig: &mut Rig) -> Result<Appended, AppendError> {
    let one = batch(rig.now_ms, "next", 1);
    rig.append(one)
}

/// Issue 3: disk full is a clear, retriable error; reading goes on; no gap.
#[test]
fn a_full_disk_refuses_appends_until_there_is_room() {
    let mut rig = Rig::new(small());
    rig.put("a", 3);
    rig.sync();
    rig.fs.set_room(Some(20));
    for _ in 0..3 {
        let refused = next(&mut rig);
        assert!(matches!(refused, Err(AppendError::DiskFull(_))), "{refused:?}");
    }
    assert_eq!(rig.log.state(), &State::Online);
    assert_eq!(rig.values().len(), 3, "reading goes on");
    rig.fs.set_room(None);
    assert_eq!(next(&mut rig).unwrap().first, Offset(3));
    rig.sync();
    let before = rig.all();
    let recovery = rig.crash();
    assert_eq!(recovery.cuts, []);
    assert_eq!(rig.all(), before);
}

#[test]
fn a_full_disk_at_a_roll_refuses_too() {
    let mut rig = Rig::new(small());
    while rig.log.size() < 1950 {
        rig.put("a", 1);
    }
    rig.fs.inject(fault(Op::Create, "", ErrorKind::StorageFull));
    let refused = rig.append(batch(1, "large", 40));
    assert!(matches!(refused, Err(AppendError::DiskFull(_))), "{refused:?}");
    rig.append(batch(1, "large", 40)).unwrap();
    assert_eq!(rig.log.segment_count(), 2);
    rig.sync();
    let before = rig.all();
    rig.log.close().unwrap();
    rig.crash();
    assert_eq!(rig.all(), before);
}

/// Decision 4: after a failed sync the log is cut to the last synced offset, and only then goes on.
#[test]
fn a_failed_sync_poisons_until_recovered() {
    let mut rig = Rig::new(small());
    rig.put("safe", 3);
    rig.sync();
    rig.put("lost", 3);
    rig.fs.inject(fault(Op::Sync, ".log", ErrorKind::Other));
    let job = rig.log.start_sync().unwrap();
    rig.put("lost too", 3);
    let poison = rig.log.finish_sync(job.run()).unwrap_err();
    assert!(poison.to_string().contains("sync the segment"), "{poison}");
    let refused = next(&mut rig);
    assert!(matches!(refused, Err(AppendError::Poisoned(_))), "{refused:?}");
    assert!(rig.log.start_sync().is_none());
    assert_eq!(rig.log.synced_offset(), Offset(3));
    assert_eq!(rig.read(0).unwrap()[0].offset, 0, "reading goes on");

    let recovery = rig.log.recover(rig.now()).unwrap();
    assert_eq!(recovery.end, Offset(3));
    assert_eq!(recovery.epoch_raised, Some(LeaderEpoch(1)));
    assert!(matches!(next(&mut rig), Err(AppendError::Fenced { .. })), "the epoch rose");
    rig.epoch = 1;
    assert_eq!(next(&mut rig).unwrap().first, Offset(3));
    rig.sync();
    let before = rig.values();
    assert_eq!(before, ["safe-0", "safe-1", "safe-2", "next-0"]);
    rig.crash();
    assert_eq!(rig.values(), before);
}

/// Issue 3: the process is killed upon a failed sync, before it can say so to anyone. What the
/// next one finds in the kernel's memory it must not take for safe.
#[test]
fn a_kill_upon_a_failed_sync_leaves_nothing_unsafe() {
    for seed in 0..50 {
        let mut rig = Rig::on(SimFs::new(seed), small());
        rig.put("safe", 3);
        rig.sync();
        for _ in 0..20 {
            rig.put("unsafe", 3);
        }
        rig.fs.inject(fault(Op::Sync, ".log", ErrorKind::Other));
        rig.fs.inject(fault(Op::Create, "", ErrorKind::Other));
        rig.log.start_sync().unwrap().run().data_error().expect("the fault");
        rig.fs.heal();
        rig.kill();
        let found = rig.all();
        assert_eq!(found.len(), 63, "a kill alone loses nothing");
        rig.crash();
        assert_eq!(rig.all(), found, "seed {seed}");
    }
}

#[test]
fn a_recovery_that_fails_can_be_tried_again() {
    let epochs = "leader-epoch-checkpoint.tmp";
    for (op, path) in
        [(Op::Sync, ".log"), (Op::SyncDir, ""), (Op::SetLen, ""), (Op::Rename, epochs)]
    {
        let mut rig = Rig::new(small());
        for _ in 0..10 {
            rig.put("safe", 3);
        }
        rig.sync();
        let end = rig.log.end_offset();
        let before = rig.all();
        for _ in 0..50 {
            rig.put("lost", 3);
        }
        rig.fs.inject(fault(Op::Sync, ".log", ErrorKind::Other));
        let job = rig.log.start_sync().unwrap();
        rig.log.finish_sync(job.run()).unwrap_err();
        rig.fs.inject(fault(op, path, ErrorKind::Other));
        rig.log.recover(rig.now()).expect_err("the fault");
        assert!(matches!(rig.log.state(), State::Poisoned(_)));
        rig.log.recover(rig.now()).unwrap();
        assert_eq!((rig.log.end_offset(), rig.all()), (end, before.clone()));
        rig.epoch = rig.log.leader_epoch().unwrap().0;
        next(&mut rig).unwrap();
        rig.sync();
        rig.crash();
        assert_eq!(rig.all()[..before.len()], before);
        assert_eq!(rig.all().len(), before.len() + 1);
    }
}

#[test]
fn a_failed_write_poisons_and_leaves_no_gap() {
    let mut rig = Rig::new(small());
    rig.put("safe", 3);
    rig.sync();
    rig.put("unsynced", 1);
    rig.fs.inject(fault(Op::Write, ".log", ErrorKind::Other));
    let refused = next(&mut rig);
    assert!(matches!(refused, Err(AppendError::Poisoned(_))), "{refused:?}");
    let recovery = rig.log.recover(rig.now()).unwrap();
    assert!(!recovery.cuts.is_empty());
    assert_eq!(rig.values(), ["safe-0", "safe-1", "safe-2"]);
}

/// The producer state goes back with the log: what was cut is no duplicate when it is sent again.
#[test]
fn what_was_cut_is_accepted_again() {
    let mut rig = Rig::new(small());
    for sequence in 0..3 {
        rig.append(idempotent(1, 0, sequence, "safe")).unwrap();
    }
    rig.sync();
    for sequence in 3..6 {
        rig.append(idempotent(1, 0, sequence, "lost")).unwrap();
    }
    rig.fs.inject(fault(Op::Sync, ".log", ErrorKind::Other));
    let job = rig.log.start_sync().unwrap();
    rig.log.finish_sync(job.run()).unwrap_err();
    rig.log.recover(rig.now()).unwrap();
    rig.epoch = 1;
    assert!(rig.append(idempotent(1, 0, 2, "safe")).unwrap().duplicate);
    let again = rig.append(idempotent(1, 0, 3, "again")).unwrap();
    assert_eq!((again.first, again.duplicate), (Offset(3), false));
}

#[test]
fn a_checkpoint_that_fails_costs_only_time() {
    let mut rig = Rig::new(small());
    rig.fs.inject(fault(Op::Write, "recovery-checkpoint.tmp", ErrorKind::StorageFull));
    for _ in 0..100 {
        rig.put("a", 3);
        rig.sync();
    }
    assert_eq!(rig.fs.faults_left(), 0);
    let before = rig.all();
    assert_eq!(rig.crash().cuts, []);
    assert_eq!(rig.all(), before);
}

#[test]
fn truncation_lowers_the_end_for_good() {
    for to in [0, 1, 40, 41, 42, 250, 299, 300] {
        let mut rig = Rig::new(small());
        for _ in 0..100 {
            rig.put("a", 3);
        }
        rig.sync();
        let end = rig.log.truncate_to(Offset(to), rig.now()).unwrap();
        assert_eq!(end.0, to / 3 * 3);
        let before = rig.all();
        assert_eq!(before.len() as i64, end.0);
        rig.put("b", 2);
        rig.sync();
        assert_eq!(rig.crash().cuts, []);
        assert_eq!(rig.all()[..before.len()], before);
        assert_eq!(rig.log.end_offset().0, end.0 + 2);
    }
}

/// A start offset that could not be made durable may be on the disk all the same: a cut below it
/// must not leave it there, for a start would take all that is left for deleted.
#[test]
fn a_failed_deletion_of_records_deletes_nothing_after_a_cut() {
    for seed in 0..20 {
        let mut rig = Rig::on(SimFs::new(seed), small());
        for _ in 0..10 {
            rig.put("a", 3);
        }
        rig.sync();
        rig.fs.inject(fault(Op::SyncDir, "", ErrorKind::Other));
        rig.delete_before(20).unwrap_err();
        assert_eq!(rig.log.truncate_to(Offset(9), rig.now()).unwrap(), Offset(9));
        let before = rig.all();
        assert_eq!(before.len(), 9);
        rig.crash();
        assert_eq!(rig.all(), before, "seed {seed}");
    }
}

/// Issue 3: a start on a full disk. Whatever a kill left to write (checkpoint, note, indexes), the
/// log is readable, refuses appends retriably, and takes them once there is room.
#[test]
fn a_log_opens_for_reading_on_a_full_disk() {
    for (lost, synced) in [("", true), ("", false), ("recovery-checkpoint", true)] {
        let mut rig = Rig::new(small());
        for _ in 0..40 {
            rig.put("a", 3);
        }
        if synced {
            rig.sync();
        }
        if !lost.is_empty() {
            fs::Fs::remove(&rig.fs, &Path::new(DIR).join(lost)).unwrap();
        }
        let before = rig.all();
        rig.fs.set_room(Some(0));
        for _ in 0..3 {
            assert_eq!(rig.kill().cuts, []);
            assert_eq!(rig.all(), before, "{lost} {synced}");
            let refused = next(&mut rig).unwrap_err();
            let full = match &refused {
                AppendError::DiskFull(_) => true,
                AppendError::Poisoned(poison) => poison.disk_full,
                _ => false,
            };
            assert!(full, "{refused}");
        }
        rig.fs.set_room(None);
        rig.log.recover(rig.now()).unwrap();
        rig.epoch = rig.log.leader_epoch().unwrap().0;
        assert_eq!(next(&mut rig).unwrap().first.0, before.len() as i64);
        rig.sync();
        rig.crash();
        assert_eq!(rig.all()[..before.len()], before);
        assert_eq!(rig.all().len(), before.len() + 1);
    }
}
