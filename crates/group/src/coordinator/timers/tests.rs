//! The heap against the naive idea: of all armed deadlines, those at or before now are due.

use super::*;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Arm { who: u8, after_secs: u16 },
    Disarm { who: u8 },
    Remove { who: u8 },
    Pass { seconds: u16 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4_u8, 0..200_u16).prop_map(|(who, after_secs)| Step::Arm { who, after_secs }),
        1 => (0..4_u8).prop_map(|who| Step::Disarm { who }),
        1 => (0..4_u8).prop_map(|who| Step::Remove { who }),
        4 => (0..60_u16).prop_map(|seconds| Step::Pass { seconds }),
    ];
    proptest::collection::vec(step, 1..100)
}

fn timer(who: u8) -> Timer {
    Timer::Barrier(GroupId::from(format!("{who}")))
}

/// Fires all that is due, stopping at each surfacing entry.
fn fire(timers: &mut Timers, slots: &mut BTreeMap<u8, Deadline>, now: Instant) -> Vec<u8> {
    let mut fired = Vec::new();
    while let Some((queued, timer)) = timers.pop(now) {
        let Timer::Barrier(group) = &timer else { panic!("only barriers here") };
        let who = group.parse().expect("a number");
        match slots.get_mut(&who).map_or(Due::Never, |slot| slot.surfaced(queued, now)) {
            Due::Now => fired.push(who),
            Due::Later(at) => timers.push(at, timer),
            Due::Never => {}
        }
    }
    fired.sort_unstable();
    fired
}

proptest! {
    #[test]
    fn what_is_armed_fires_once_and_on_time(steps in steps()) {
        let mut timers = Timers::default();
        let mut slots: BTreeMap<u8, Deadline> = BTreeMap::new();
        let mut model: BTreeMap<u8, Instant> = BTreeMap::new();
        let mut now = Instant::from_millis(1);
        for step in steps {
            match step {
                Step::Arm { who, after_secs } => {
                    let after = Duration::from_secs(after_secs.into());
                    let slot = slots.entry(who).or_insert(Deadline::unarmed());
                    timers.arm(slot, now, after, || timer(who));
                    model.insert(who, now + after);
                }
                Step::Disarm { who } => {
                    if let Some(slot) = slots.get_mut(&who) {
                        slot.disarm();
                    }
                    model.remove(&who);
                }
                Step::Remove { who } => {
                    slots.remove(&who);
                    model.remove(&who);
                }
                Step::Pass { seconds } => now = now + Duration::from_secs(seconds.into()),
            }
            let mut fired = Vec::new();
            while let Some(next) = timers.next().filter(|next| *next <= now) {
                fired.extend(fire(&mut timers, &mut slots, next));
            }
            fired.sort_unstable();
            let due = model.iter().filter(|(_, at)| **at <= now);
            let due: Vec<_> = due.map(|(who, _)| *who).collect();
            model.retain(|_, at| *at > now);
            prop_assert_eq!(fired, due);
            let first = model.values().min();
            prop_assert!(first.is_none_or(|first| timers.next().is_some_and(|at| at <= *first)));
        }
    }
}

/// A heartbeat is a store: putting a deadline off asks nothing of the heap.
#[test]
fn putting_a_deadline_off_needs_no_entry() {
    let mut timers = Timers::default();
    let mut slot = Deadline::unarmed();
    let second = Duration::from_secs(1);
    timers.arm(&mut slot, Instant::ZERO, second, || timer(0));
    for beat in 1..1_000 {
        let now = Instant::from_millis(beat);
        timers.arm(&mut slot, now, second, || panic!("no entry is needed"));
    }
    assert_eq!(timers.heap.len(), 1);
}

/// What a stranger leaves behind is gone within the horizon, whatever timeout it named.
#[test]
fn entries_of_the_gone_surface_within_the_horizon() {
    let mut timers = Timers::default();
    for _ in 0..100 {
        let day = Duration::from_secs(86_400);
        timers.arm(&mut Deadline::unarmed(), Instant::ZERO, day, || timer(0));
    }
    fire(&mut timers, &mut BTreeMap::new(), Instant::ZERO + HORIZON);
    assert_eq!(timers.next(), None);
}

/// Whoever stood still did not listen either: what was due meanwhile gets a little more time.
#[test]
fn a_deadline_missed_by_a_stall_is_put_off_once() {
    let mut timers = Timers::default();
    let mut slots = BTreeMap::from([(0, Deadline::unarmed())]);
    let slot = slots.get_mut(&0).expect("the slot");
    timers.arm(slot, Instant::ZERO, Duration::from_secs(10), || timer(0));
    let woken = Instant::from_millis(15_000);
    assert_eq!(fire(&mut timers, &mut slots, woken), [0; 0]);
    assert_eq!(timers.next(), Some(woken + FORGIVEN_MAX));
    assert_eq!(fire(&mut timers, &mut slots, woken + FORGIVEN_MAX), [0]);
}
