//! The two places where a coordinator may run: processes, reigns, leases, disks.
//!
//! A lease service says who owns the shard and until when. It never grants the shard to one site
//! before it fenced the log against the other; the new owner does not answer before the old one's
//! T. The old one may know of nothing until then.

use crate::actor::Plan;
use crate::harness::{Broker, Emitted};
use crate::rng::Rng;
use crate::world::{Event, MS, SECOND, World};
use ottla_group::coordinator::Config;
use ottla_model::{Instant, OwnershipEpoch};
use std::time::Duration;

/// How long a grant lasts; it is renewed long before.
pub const LEASE: u64 = 2500 * MS;

#[derive(Default)]
pub struct Site {
    /// The running process's coordinator; `None` while the process is down.
    pub broker: Option<Broker>,
    /// Counts coordinators; what was meant for an older one is void.
    pub reign: u32,
    /// T of the last grant, as a number for comparison with the world's clock.
    pub granted_until: u64,
    pub paused_until: u64,
    /// Appends take at least until then.
    pub stalled_until: u64,
    pub next_append: NextAppend,
    appending: bool,
    timer_at: u64,
}

/// What becomes of the append under way.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum NextAppend {
    #[default]
    Works,
    /// It fails and leaves nothing.
    Fails,
    /// It seems to fail, but is in the log.
    FailsUnknown,
}

impl Site {
    /// It stands still for a while. No pause ends before its time: what reached it meanwhile waits
    /// for the end, and whatever comes after the end must find it done. (A pause that was cut short
    /// let a commit of a connection long closed be heard after newer ones of the next.)
    pub fn pause(&mut self, until: u64) {
        self.paused_until = self.paused_until.max(until);
    }

    /// A driver with the bug that it does not look at T.
    pub fn ignores_silence(&self) -> bool {
        crate::bugs::driver_ignores_silence()
    }
}

fn config(rng: &mut Rng, plan: &Plan) -> Config {
    Config {
        session_timeout_min: Duration::from_secs(1),
        initial_rebalance_delay: Duration::from_millis(*rng.pick(&[0, 100, 500])),
        new_member_join_timeout: Duration::from_secs(20),
        consumer_session_timeout: plan.session_timeout,
        consumer_heartbeat_interval: plan.session_timeout / 4,
        consumer_migration: plan.migration,
        consumer_assignment_interval: Duration::from_millis(*rng.pick(&[0, 100, 1000])),
        hash_seed: rng.next(),
        ..Config::default()
    }
}

impl World {
    /// A process starts; it owns nothing.
    pub fn boot(&mut self, site: usize) {
        let config = config(&mut self.rng, &self.plan);
        let now = self.clock();
        let topics = self.topics.clone();
        let place = &mut self.sites[site];
        place.begin(config);
        if let Some(broker) = &mut place.broker {
            broker.topics(topics, now);
        }
    }

    pub fn boot_again(&mut self, site: usize) {
        if self.sites[site].broker.is_some() {
            return;
        }
        self.boot(site);
        if self.owner == site {
            self.begin_reign(site);
        }
    }

    /// The lease service gives the shard to `site` under a new epoch: the log is fenced, and read;
    /// requests are answered once the other one's T has passed.
    pub fn begin_reign(&mut self, site: usize) {
        self.owner = site;
        self.epoch = OwnershipEpoch(self.epoch.0 + 1);
        if !crate::bugs::log_has_no_fence() {
            self.log.fence = self.epoch;
        }
        let config = config(&mut self.rng, &self.plan);
        let topics = self.topics.clone();
        let now = self.clock();
        let until = self.now + LEASE;
        let place = &mut self.sites[site];
        place.begin(config);
        place.granted_until = until;
        let reign = place.reign;
        let Some(broker) = &mut place.broker else { return };
        broker.topics(topics, now);
        broker.own(self.epoch, Instant::from_nanos(until), now);
        broker.replay(&self.log, 0);
        let other = self.sites[1 - site].granted_until;
        let load = self.rng.between(0, 500) * MS;
        self.trace.say(|| format!("--- site {site} reigns"));
        self.at(self.now.max(other) + load, Event::Loaded(site, reign));
    }

    pub fn loaded(&mut self, site: usize, reign: u32) {
        if self.is_gone(site, reign) {
            return;
        }
        if self.sites[site].paused_until > self.now {
            let at = self.sites[site].paused_until;
            return self.at(at, Event::Loaded(site, reign));
        }
        let now = self.clock();
        self.trace.say(|| format!("--- site {site} serves"));
        if let Some(broker) = &mut self.sites[site].broker {
            broker.loaded(now);
        }
        self.after_site(site);
    }

    /// The owner's grant is renewed, if it is there to take it.
    pub fn renew(&mut self) {
        let pause = self.rng.between(400, 900) * MS;
        self.after(pause, Event::Renew);
        let (site, epoch) = (self.owner, self.epoch);
        let place = &mut self.sites[site];
        if self.lease_cut_until > self.now || place.paused_until > self.now {
            return;
        }
        let Some(broker) = &mut place.broker else { return };
        if broker.epoch != epoch {
            return;
        }
        let until = self.now + LEASE;
        place.granted_until = until;
        let now = self.clock();
        if let Some(broker) = &mut self.sites[site].broker {
            broker.own(epoch, Instant::from_nanos(until), now);
        }
        self.after_site(site);
    }

    /// The other site takes over. The old owner may hear of it late, or never.
    pub fn take_over(&mut self) {
        let old = self.owner;
        if self.sites[1 - old].broker.is_none() {
            self.boot(1 - old);
        }
        self.keep_some_appends(old);
        let (reign, delay) = (self.sites[old].reign, self.rng.between(0, 4000) * MS);
        if self.rng.percent(50) {
            self.after(delay, Event::Deposed(old, reign));
        }
        self.begin_reign(1 - old);
    }

    /// The old owner learns that it is none any more.
    pub fn deposed(&mut self, site: usize, reign: u32) {
        if self.is_gone(site, reign) || self.owner == site {
            return;
        }
        let refused = self.sites[site].broker.as_mut().map(Broker::disown).unwrap_or_default();
        for (token, reply) in refused {
            self.answer(site, token, reply);
        }
        self.after_site(site);
    }

    /// The process dies, with everything it had in memory.
    pub fn crash(&mut self, site: usize) {
        if self.sites[site].broker.is_none() {
            return;
        }
        self.trace.say(|| format!("--- site {site} crashes"));
        self.keep_some_appends(site);
        let place = &mut self.sites[site];
        place.broker = None;
        place.reign += 1;
        place.granted_until = 0;
        place.paused_until = 0;
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            if connection.site == site && connection.site_open {
                connection.lose_site();
                let delay = self.rng.between(1, 300) * MS;
                let at = self.connections[index].last_at_client.max(self.now) + delay;
                self.at(at, Event::ClientSeesClose(index));
            }
        }
        let down = self.rng.between(50, 3000) * MS;
        self.after(down, Event::Boot(site));
    }

    /// Of what was under way to the disk, some may be there: nobody was told.
    fn keep_some_appends(&mut self, site: usize) {
        let now = self.clock();
        let Some(broker) = &mut self.sites[site].broker else { return };
        let kept = self.rng.below(broker.undurable.len() + 1);
        for _ in 0..kept {
            if broker.make_durable(&mut self.log, now).is_err() {
                break;
            }
        }
        if crate::bugs::log_tears_batches()
            && kept > 0
            && let Some((records, _)) = self.log.batches.last_mut()
        {
            records.truncate(1);
        }
    }

    /// The oldest append ends.
    pub fn durable(&mut self, site: usize, reign: u32) {
        if self.is_gone(site, reign) {
            return;
        }
        let blocked = self.sites[site].paused_until.max(self.sites[site].stalled_until);
        if blocked > self.now {
            return self.at(blocked, Event::Durable(site, reign));
        }
        self.sites[site].appending = false;
        let outcome = std::mem::take(&mut self.sites[site].next_append);
        let group = if self.rng.percent(50) { 1 } else { usize::MAX };
        let now = self.clock();
        let Some(broker) = &mut self.sites[site].broker else { return };
        if outcome != NextAppend::Works {
            if outcome == NextAppend::FailsUnknown {
                let _ = broker.make_durable(&mut self.log, now);
            }
            return self.append_failed(site);
        }
        for _ in 0..group.min(broker.undurable.len()) {
            let Some(broker) = &mut self.sites[site].broker else { return };
            match broker.make_durable(&mut self.log, now) {
                Ok(released) => {
                    for (token, reply) in released {
                        self.answer(site, token, reply);
                    }
                }
                Err(_) => return self.append_failed(site),
            }
        }
        self.after_site(site);
    }

    /// Memory is ahead of the log: everything is refused, and a new coordinator reads the log.
    fn append_failed(&mut self, site: usize) {
        self.trace.say(|| format!("--- site {site}: an append failed"));
        let refused = self.sites[site].broker.as_mut().map(Broker::fail).unwrap_or_default();
        for (token, reply) in refused {
            self.answer(site, token, reply);
        }
        self.after_site(site);
        if self.owner == site {
            self.begin_reign(site);
        }
    }

    pub fn site_timer(&mut self, site: usize, reign: u32) {
        if self.is_gone(site, reign) {
            return;
        }
        if self.sites[site].paused_until > self.now {
            let at = self.sites[site].paused_until;
            return self.at(at, Event::SiteTimer(site, reign));
        }
        let now = self.clock();
        self.sites[site].timer_at = u64::MAX;
        if let Some(broker) = &mut self.sites[site].broker {
            broker.timeout(now);
        }
        self.after_site(site);
    }

    fn is_gone(&self, site: usize, reign: u32) -> bool {
        self.sites[site].reign != reign || self.sites[site].broker.is_none()
    }

    /// Carries out whatever the coordinator has to say.
    pub fn after_site(&mut self, site: usize) {
        let mut emitted = Vec::new();
        let place = &mut self.sites[site];
        let (reign, deadline) = match &mut place.broker {
            Some(broker) => {
                broker.drain(&mut emitted);
                (place.reign, broker.deadline())
            }
            None => return,
        };
        if let Some(at) = deadline.map(Instant::as_nanos)
            && at < place.timer_at
        {
            place.timer_at = at;
            // A deadline that has passed is looked at again soon, not at once for ever.
            let at = if at > self.now { at } else { self.now + MS };
            self.at(at, Event::SiteTimer(site, reign));
        }
        for item in emitted {
            if let Emitted::Reply(token, reply) = item {
                self.answer(site, token, reply);
            }
        }
        let place = &mut self.sites[site];
        let is_waiting = place.broker.as_ref().is_some_and(|b| !b.undurable.is_empty());
        if is_waiting && !place.appending {
            place.appending = true;
            let slow = self.rng.percent(3) && !self.is_calm;
            let delay = self.rng.between(20, if slow { 400_000 } else { 3000 }) * 1000;
            self.after(delay, Event::Durable(site, reign));
        }
    }

    /// Something goes wrong with a site.
    pub fn site_chaos(&mut self) {
        let owner = self.owner;
        match self.rng.below(10) {
            0..=2 => self.take_over(),
            3 => self.crash(owner),
            4 => self.crash(1 - owner),
            5 => self.sites[owner].next_append = NextAppend::Fails,
            6 => self.sites[owner].next_append = NextAppend::FailsUnknown,
            7 => self.sites[owner].stalled_until = self.now + self.rng.between(100, 3000) * MS,
            8 => {
                let pause = self.rng.between(100, 5000) * MS;
                self.sites[owner].pause(self.now + pause);
                // A pause may be what the take-over is for.
                if self.rng.percent(40) {
                    self.take_over();
                }
            }
            _ => {
                self.lease_cut_until = self.now + self.rng.between(1, 5) * SECOND;
                if self.rng.percent(50) {
                    self.take_over();
                }
            }
        }
    }
}

impl Site {
    fn begin(&mut self, config: Config) {
        self.broker = Some(Broker::new(config));
        self.reign += 1;
        self.appending = false;
        self.timer_at = u64::MAX;
    }
}
