//! What must hold of a shard after whatever happened: looked at after every step of every case.

use super::super::Shard;
use super::super::barrier::Phase;
use super::super::digest;
use super::super::group::Group;
use super::super::reconcile::State;
use super::super::roster::Member;
use crate::message::admin::GroupKind;
use alloc::collections::{BTreeMap, BTreeSet};

/// Panics where the shard contradicts itself.
pub(super) fn check(shard: &Shard) {
    let (mut parked, mut held) = (0, 0);
    for group in shard.all_groups() {
        counts_are_true(group);
        stable_and_empty_agree_with_the_log(group);
        nobody_is_immortal(group);
        consumers_are_true(group);
        digest_is_true(group, shard);
        assert!(!group.is_void(), "{} is void and kept", group.id);
        held += only_the_stable_are_held(group);
        parked += group.roster.in_order().iter().filter(|(_, m)| m.is_parked()).count();
    }
    assert_eq!(shard.parked(), parked, "parked requests are counted");
    assert_eq!(shard.services().held.len(), held, "kept answers are known by their tokens");
    lifelines_are_counted(shard);
    watched_topics_are_subscribed(shard);
}

/// An answer is kept while there is nothing to tell, and that is in stable groups only.
fn only_the_stable_are_held(group: &Group) -> usize {
    let held = group.roster.in_order().iter().filter(|(_, m)| m.hold.is_kept()).count();
    assert!(held == 0 || group.phase.is_stable(), "{} keeps news from its members", group.id);
    let pulses = group.motion.iter().flat_map(|motion| motion.pulses.values());
    held + pulses.filter(|pulse| pulse.hold.is_kept()).count()
}

fn lifelines_are_counted(shard: &Shard) {
    let mut counts = BTreeMap::new();
    for (_, member) in shard.all_groups().flat_map(|group| group.roster.in_order()) {
        if let Some(connection) = member.connection {
            *counts.entry(connection).or_insert(0) += 1;
        }
    }
    for pulse in shard.all_groups().flat_map(|group| &group.motion).flat_map(|m| m.pulses.values())
    {
        if let Some(connection) = pulse.connection {
            *counts.entry(connection).or_insert(0) += 1;
        }
    }
    assert_eq!(shard.services().lifelines.counts(), counts);
}

/// Consumer protocol: every member has an end, nobody else has a pulse, no partition is held
/// twice, and what is kept beside the records is what they imply.
fn consumers_are_true(group: &Group) {
    let consumers = group.hard.consumers();
    let pulses = group.motion.as_ref().map(|motion| &motion.pulses);
    assert_eq!(pulses.map_or(0, |pulses| pulses.len()), consumers.len(), "pulses of {}", group.id);
    let mut holders = BTreeMap::new();
    for (id, member) in consumers.members() {
        let pulse = pulses.and_then(|pulses| pulses.get(id)).expect("a member without a pulse");
        assert!(pulse.session.is_armed(), "{id} has no end");
        let owes = matches!(member.position().state, State::Unrevoked { .. });
        assert_eq!(owes, pulse.revocation.is_armed(), "what {id} owes has an end");
        for slot in member.position().holds() {
            assert_eq!(holders.insert(slot, id), None, "{slot:?} is held twice");
            assert_eq!(consumers.owner(slot), Some(id));
        }
    }
    assert!(consumers.target_epoch() <= consumers.epoch(), "a target of no epoch");
}

/// A digest that was kept up change by change is the digest of what is there.
fn digest_is_true(group: &Group, shard: &Shard) {
    let digest = group.motion.as_ref().and_then(|motion| motion.digest);
    if let (Some(digest), Some(view)) = (digest, &shard.services().topics) {
        assert_eq!(digest, digest::sum(group.hard.consumers(), view), "digest of {}", group.id);
    }
}

/// S28: topic -> groups is the other side of each group's topics.
fn watched_topics_are_subscribed(shard: &Shard) {
    let mut watched: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let is_watched = |group: &&Group| group.kind == GroupKind::Register || group.is_led_anew;
    for group in shard.all_groups().filter(is_watched) {
        for topic in group.subscribed.iter().flatten() {
            watched.entry(topic.clone()).or_default().insert(group.id.clone());
        }
    }
    assert_eq!(shard.services().watch.all(), &watched);
}

fn counts_are_true(group: &Group) {
    let roster = &group.roster;
    let members = roster.in_order();
    let count = |what: fn(&Member) -> bool| members.iter().filter(|(_, m)| what(m)).count();
    assert_eq!(roster.parked_joins(), count(Member::is_joining));
    assert_eq!(roster.owed_syncs(), count(Member::owes_sync));
    let bytes: usize = members.iter().map(|(id, member)| member.bytes(id)).sum();
    assert_eq!(roster.bytes(), bytes);
    let mut support = BTreeMap::new();
    for (_, member) in &members {
        for (name, _) in member.protocols.iter() {
            *support.entry(name.clone()).or_insert(0) += 1;
        }
    }
    assert_eq!(roster.support(), support);
    for (id, member) in &members {
        if let Some(instance) = &member.instance {
            assert_eq!(roster.holder(instance), Some(*id));
        }
    }
    let statics = members.iter().filter(|(_, member)| member.instance.is_some()).count();
    assert_eq!(roster.instances_len(), statics);
    assert_eq!(group.phase.is_empty(), members.is_empty() && !is_preparing(group));
}

/// Hard and soft state agree where no rebalance is under way.
fn stable_and_empty_agree_with_the_log(group: &Group) {
    let metadata = group.hard.metadata();
    if group.phase.is_empty() && group.kind != GroupKind::Consumer {
        assert!(metadata.is_none_or(|metadata| metadata.members.is_empty()));
        assert_eq!(group.generation.0, metadata.map_or(0, |metadata| metadata.generation.0));
    }
    if group.phase.is_stable() {
        let metadata = metadata.expect("a stable group is on record");
        assert_eq!(group.generation, metadata.generation);
        assert_eq!(group.protocol, metadata.protocol);
        assert_eq!(group.roster.leader(), metadata.leader.as_ref());
        let members = group.roster.in_order();
        assert_eq!(members.len(), metadata.members.len());
        for ((id, member), stored) in members.into_iter().zip(&metadata.members) {
            assert_eq!((id, &member.instance), (&stored.member, &stored.instance));
            assert_eq!(&*group.assignment_of(member), &*stored.assignment);
        }
    }
}

/// Every member, promise and rebalance ends by itself some day.
fn nobody_is_immortal(group: &Group) {
    for (id, member) in group.roster.in_order() {
        let waits = member.is_parked() && !member.is_new;
        assert!(waits || member.session.is_armed(), "{id} has no end");
    }
    for (id, pending) in group.roster.all_pending() {
        assert!(pending.session.is_armed(), "the promise of {id} has no end");
    }
    let ends = match group.phase {
        Phase::Empty => true,
        Phase::Stable => group.roster.owed_syncs() == 0 || group.barrier.is_armed(),
        Phase::Preparing(_) | Phase::Completing { .. } => group.barrier.is_armed(),
    };
    assert!(ends, "the rebalance of {} has no end", group.id);
}

fn is_preparing(group: &Group) -> bool {
    matches!(group.phase, Phase::Preparing(_))
}
