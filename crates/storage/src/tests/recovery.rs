//! What a restart makes of torn, damaged and missing files, and what it says about it.

use super::*;
use crate::{CutReason, Damage};

fn filled() -> Rig {
    let mut rig = Rig::new(LogConfig { checkpoint_bytes: 1 << 20, ..small() });
    for round in 0..60 {
        rig.put(&format!("{round}"), 3);
    }
    rig
}

fn active(rig: &Rig) -> String {
    names_of(rig, ".log").pop().unwrap()
}

fn names_of(rig: &Rig, suffix: &str) -> Vec<String> {
    rig.files().into_iter().filter(|name| name.ends_with(suffix)).collect()
}

#[test]
fn a_torn_tail_is_cut_and_said() {
    let mut rig = filled();
    let name = active(&rig);
    let whole = rig.file(&name);
    let before = rig.all();
    rig.plant(&name, &whole[..whole.len() - 5]);
    let recovery = rig.kill();
    assert_eq!(recovery.cuts.len(), 1);
    assert_eq!(recovery.cuts[0].why, CutReason::Damage(Damage::Torn));
    assert_eq!(recovery.epoch_raised, Some(LeaderEpoch(1)));
    assert_eq!(rig.log.epoch_end(LeaderEpoch(0)), Some((LeaderEpoch(0), Offset(177))));
    let said = recovery.to_string();
    assert!(said.contains("as the file ends inside a batch; leader epoch raised to 1"), "{said}");
    assert_eq!(rig.all(), before[..before.len() - 3]);
    assert_eq!(rig.kill().cuts, [], "it is not cut twice");
    assert_eq!(rig.log.leader_epoch(), Some(LeaderEpoch(1)));
    rig.put("on", 1);
}

#[test]
fn damage_in_the_middle_cuts_all_that_follows() {
    let mut rig = filled();
    let before = rig.all();
    let names: Vec<_> = rig.files().into_iter().filter(|name| name.ends_with(".log")).collect();
    assert!(names.len() >= 3);
    let mut bytes = rig.file(&names[names.len() - 2]);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    rig.plant(&names[names.len() - 2], &bytes);
    let recovery = rig.kill();
    let whys: Vec<_> = recovery.cuts.iter().map(|cut| cut.why).collect();
    assert!(matches!(whys[0], CutReason::Damage(_)), "{recovery}");
    assert_eq!(whys[1..], [CutReason::Follows]);
    let after = rig.all();
    assert!(after.len() < before.len());
    assert_eq!(after, before[..after.len()]);
}

#[test]
fn a_missing_segment_cuts_those_behind_it() {
    let mut rig = filled();
    let before = rig.all();
    let names: Vec<_> = rig.files().into_iter().filter(|name| name.ends_with(".log")).collect();
    fs::Fs::remove(&rig.fs, &Path::new(DIR).join(&names[1])).unwrap();
    let recovery = rig.kill();
    assert!(matches!(recovery.cuts[0].why, CutReason::Damage(Damage::Offsets { .. })));
    let after = rig.all();
    assert_eq!(after, before[..after.len()]);
    assert!(!after.is_empty());
}

/// Indexes are hints: lost, cut, damaged or swapped, every offset is found all the same.
#[test]
fn damaged_indexes_are_rebuilt() {
    type Damaging = fn(Vec<u8>) -> Vec<u8>;
    let damagings: [Damaging; 5] = [
        |_| Vec::new(),
        |bytes| bytes[..bytes.len() - 3].to_vec(),
        |bytes| bytes.iter().map(|byte| !byte).collect(),
        |bytes| vec![0; bytes.len()],
        |bytes| bytes.chunks(4).rev().flatten().copied().collect(),
    ];
    for (which, damage) in damagings.into_iter().enumerate() {
        let mut rig = filled();
        rig.sync();
        rig.log.close().unwrap();
        let before = rig.all();
        for name in rig.files().iter().filter(|name| name.ends_with("index")) {
            let bytes = rig.file(name);
            rig.plant(name, &damage(bytes));
        }
        let recovery = rig.kill();
        assert_eq!(recovery.cuts, [], "damage {which}: {recovery}");
        assert_eq!(rig.all(), before);
        for from in 0..before.len() {
            assert_eq!(rig.read(from as i64).unwrap().first().unwrap().offset / 3, from as i64 / 3);
        }
    }
}

/// A sealed segment's index is taken by its size, so one that an interrupted opening was making
/// must be whole or absent (issue 3: a torn one was believed after the second crash).
#[test]
fn an_index_that_was_being_rebuilt_is_whole_or_absent() {
    use crate::fs::sim::{Fault, Op};
    let config = LogConfig { segment_bytes: 12_000, index_interval_bytes: 0, ..small() };
    let mut torn = 0;
    for seed in 0..40 {
        let mut rig = Rig::on(SimFs::new(seed), config.clone());
        for round in 0..200 {
            rig.now_ms += 10;
            rig.put(&format!("{round}"), 1);
        }
        rig.log.close().unwrap();
        let lost = names_of(&rig, if seed % 2 == 0 { ".index" } else { ".timeindex" });
        fs::Fs::remove(&rig.fs, &Path::new(DIR).join(&lost[0])).unwrap();
        fs::Fs::sync_dir(&rig.fs, Path::new(DIR)).unwrap();
        let (after, kind) = ((seed / 2 % 6) as u32, std::io::ErrorKind::PermissionDenied);
        for op in [Op::Sync, Op::Rename, Op::SyncDir] {
            rig.fs.inject(Fault { op, path_suffix: "", after, kind });
        }
        let _ = open(&rig.fs, &rig.config, rig.now_ms);
        torn += usize::from(rig.fs.faults_left() < 3);
        let recovery = rig.crash();
        assert_eq!(recovery.cuts, [], "seed {seed}");
        rig.log.check_indexes();
        for record in rig.all() {
            let found = rig.log.reader().find_by_time(Timestamp(record.timestamp), 1 << 20);
            assert_eq!(found.unwrap().unwrap().offset.0, record.offset, "seed {seed}");
        }
    }
    assert!(torn > 10, "{torn} openings were interrupted");
}

/// The bytes below the checkpoint are not looked at when a log opens: if they go bad, a read says
/// so and gives nothing that is not a batch (found by fuzzing, 3e06bb1).
#[test]
fn a_read_gives_nothing_that_is_not_a_batch() {
    type Damaging = fn(&mut [u8]);
    let damagings: [Damaging; 4] = [
        |batch| batch[16] = 1,
        |batch| batch[23..27].copy_from_slice(&(-2_i32).to_be_bytes()),
        |batch| batch[..8].copy_from_slice(&(-7_i64).to_be_bytes()),
        |batch| batch[8..12].copy_from_slice(&i32::MAX.to_be_bytes()),
    ];
    for (which, damage) in damagings.into_iter().enumerate() {
        for at in [0, 1] {
            let mut rig = Rig::new(LogConfig { segment_bytes: 1 << 20, ..small() });
            let first = batch(1, "a", 1).build().unwrap().len();
            for _ in 0..3 {
                rig.put("a", 1);
            }
            rig.log.close().unwrap();
            let name = active(&rig);
            let mut bytes = rig.file(&name);
            damage(&mut bytes[at * first..]);
            rig.plant(&name, &bytes);
            assert_eq!(rig.kill().checked_bytes, 0, "the checkpoint vouches for it");
            match rig.log.reader().read(Offset(0), 1 << 20, Offset(3), usize::MAX) {
                Ok(read) => {
                    let mut batches = Batches::new(&read.bytes);
                    assert!(batches.next().unwrap().is_ok() && batches.next().is_none());
                    assert_eq!((at, read.next), (1, Offset(1)), "damage {which}");
                }
                Err(ReadError::Damaged { .. }) => assert_eq!(at, 0, "damage {which}"),
                Err(error) => panic!("damage {which} at {at}: {error}"),
            }
        }
    }
}

#[test]
fn missing_side_files_are_made_anew() {
    for name in ["recovery-checkpoint", "leader-epoch-checkpoint", "partition.metadata"] {
        for damaged in [false, true] {
            if damaged && name == "partition.metadata" {
                continue;
            }
            let mut rig = filled();
            rig.epoch = 3;
            for sequence in 0..5 {
                rig.append(idempotent(1, 0, sequence, "v")).unwrap();
            }
            rig.log.close().unwrap();
            let before = rig.all();
            match damaged {
                true => rig.plant(name, b"nonsense"),
                false => fs::Fs::remove(&rig.fs, &Path::new(DIR).join(name)).unwrap(),
            }
            let recovery = rig.kill();
            assert_eq!(recovery.cuts, []);
            assert_eq!(rig.all(), before);
            assert_eq!(rig.log.epoch_of(Offset(0)), Some(LeaderEpoch(0)));
            assert_eq!(rig.log.epoch_of(Offset(180)), Some(LeaderEpoch(3)));
            assert!(rig.append(idempotent(1, 0, 2, "v")).unwrap().duplicate);
            assert!(rig.files().contains(&name.to_owned()));
            assert_eq!(rig.kill().notes, [] as [String; 0]);
        }
    }
}

/// Decision 4 and KIP-101: in the page-cache mode a lost tail leaves no trace, so every opening
/// raises the epoch unless the log was closed.
#[test]
fn page_cache_mode_raises_the_epoch_unless_the_log_was_closed() {
    let mut rig = Rig::new(LogConfig { durability: crate::Durability::PageCache, ..small() });
    assert_eq!(rig.reopen().epoch_raised, None, "there was nothing to lose");
    rig.put("a", 1);
    assert_eq!(rig.log.safe_offset(), Offset(1));
    assert_eq!(rig.crash().epoch_raised, Some(LeaderEpoch(1)));
    assert_eq!(rig.kill().epoch_raised, Some(LeaderEpoch(2)));
    rig.put("b", 1);
    rig.log.close().unwrap();
    let values = rig.values();
    let recovery = rig.crash();
    assert_eq!((recovery.epoch_raised, rig.values()), (None, values));
    assert_eq!(rig.crash().epoch_raised, Some(LeaderEpoch(3)), "it was opened since");
    rig.log.close().unwrap();
    rig.put("c", 1);
    assert_eq!(rig.crash().epoch_raised, Some(LeaderEpoch(4)), "it was appended to since");
}

#[test]
fn rubbish_of_a_crash_is_swept() {
    let mut rig = filled();
    rig.log.close().unwrap();
    let before = rig.files();
    for name in [
        "00000000000000000000.log.deleted",
        "00000000000000000000.log.cleaned",
        "recovery-checkpoint.tmp",
        "00000000000000009999.index",
        "00000000000000000007.snapshot",
    ] {
        rig.plant(name, b"rubbish");
    }
    rig.plant("someone-elses.txt", b"kept");
    rig.kill();
    let mut after = rig.files();
    after.retain(|name| name != "someone-elses.txt");
    let at_end = |name: &String| name == &format!("{:020}.snapshot", rig.log.end_offset().0);
    let expected: Vec<_> = before.into_iter().filter(|name| !at_end(name)).collect();
    assert_eq!(after, expected);
}

/// A process that was killed in the middle of making a log may leave a folder whose name is not on
/// the disk yet. Whoever finds it must not count on it.
#[test]
fn what_goes_into_a_folder_that_was_just_made_stays() {
    use crate::fs::sim::End;
    for (seed, changes) in (0..8).flat_map(|seed| (0..12).map(move |changes| (seed, changes))) {
        let sim = SimFs::new(seed);
        fs::Fs::create_dir(&sim, Path::new("/data")).unwrap();
        fs::Fs::sync_dir(&sim, Path::new("/")).unwrap();
        sim.end_after(changes, End::Kill);
        let made = open(&sim, &small(), 1_000);
        let mut rig = Rig::on(sim, small());
        assert!(made.is_err() || changes > 6, "{changes} changes make a log");
        rig.put("safe", 1);
        rig.sync();
        rig.crash();
        assert_eq!(rig.values(), ["safe-0"], "seed {seed}, killed after {changes} changes");
    }
}

/// A log that grows slowly is checkpointed all the same, so that a restart has nothing to look at.
#[test]
fn a_checkpoint_that_was_asked_for_spares_the_restart() {
    let mut rig = Rig::new(LogConfig { checkpoint_bytes: 1 << 20, ..small() });
    rig.put("a", 1);
    rig.sync();
    assert!(rig.log.checkpoint_soon());
    rig.sync();
    assert!(!rig.log.checkpoint_soon(), "there is nothing to add");
    assert!(rig.log.start_sync().is_none());
    assert_eq!(rig.kill().checked_bytes, 0);
    assert_eq!(rig.values(), ["a-0"]);
}
