//! How a member of the consumer protocol lives in time: as Java's client 4.4, which takes its
//! interval from each response, counts it from the sending of the last request (from the response
//! if it changed), never beats within 100 ms, and tells of what it gained or gave up at once.

use super::Errand;
use super::world::{Number, Stage};
use crate::Outcome;
use crate::link::Link;
use crate::member::{HEARTBEAT_VERSION, Member, Step};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Lives until it is told to leave.
pub(super) async fn live(
    mut link: Link,
    who: Number,
    mut member: Member,
    stage: Rc<Stage>,
    mut errand: Errand,
) -> Outcome<()> {
    let mut interval = Duration::ZERO;
    loop {
        let sent_at = Instant::now();
        let asked = link.send(HEARTBEAT_VERSION, &member.request()).await?;
        tells(who, &member, &stage, sent_at);
        let answer = tokio::select! {
            answer = link.answer(asked) => answer?,
            () = errand.leave() => {
                bow_out(who, &member, &stage);
                let farewell = link.send(HEARTBEAT_VERSION, &member.farewell()).await?;
                link.answer(asked).await?;
                return link.answer(farewell).await.map(drop);
            }
        };
        let step = member.take(&answer.read()?)?;
        if step.retry {
            tokio::time::sleep(BACKOFF).await;
            continue;
        }
        follow(who, &step, &member, &stage, errand.revoke_delay).await;
        let told = Duration::from_millis(step.interval_ms);
        let from = if told == interval { sent_at } else { Instant::now() };
        // Also by an answer that is acknowledged at once: its interval is the acknowledgement's.
        interval = told;
        if member.owes_word() {
            continue;
        }
        let next = (from + told).max(sent_at + INTERVAL_MIN);
        tokio::select! {
            () = tokio::time::sleep_until(next.into()) => {}
            () = errand.leave() => {
                bow_out(who, &member, &stage);
                return link.call(HEARTBEAT_VERSION, &member.farewell()).await.map(drop);
            }
        }
    }
}

/// Gives up and takes what an answer says.
async fn follow(who: Number, step: &Step, member: &Member, stage: &Stage, delay: Duration) {
    if !step.lost.is_empty() && !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let now = Instant::now();
    let mut world = stage.world.borrow_mut();
    world.act.beats += 1;
    world.loses(who, &step.lost, now);
    world.gains(who, &step.gained, now);
    if member.owes_word() {
        world.spoke(who, false, now);
    }
    stage.happened.notify_one();
}

/// What it owns counts as acknowledged when it has said so, not when that was answered: a broker
/// may keep an answer that says nothing.
fn tells(who: Number, member: &Member, stage: &Stage, now: Instant) {
    if member.has_joined() {
        stage.world.borrow_mut().spoke(who, true, now);
        stage.happened.notify_one();
    }
}

/// What it owns is free from the moment it says goodbye.
fn bow_out(who: Number, member: &Member, stage: &Stage) {
    let owned: Vec<_> = member.owned().iter().copied().collect();
    let mut world = stage.world.borrow_mut();
    world.act.beats += 1;
    world.leaves(who, &owned, Instant::now());
    stage.happened.notify_one();
}

/// Java's own floor.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Java's `retry.backoff.ms`.
const BACKOFF: Duration = Duration::from_millis(100);
