//! What goes wrong while the storm blows, one thing at a time.

use crate::checker::{TOPICS, Verdict, topic_name};
use crate::world::{Event, MS, SECOND, World};
use ottla_model::TopicName;

impl World {
    pub fn chaos(&mut self) -> Verdict {
        if self.is_calm {
            return Ok(());
        }
        let pause = self.rng.between(50, 900) * MS;
        self.after(pause, Event::Chaos);
        let slot = self.rng.below(self.plan.slots);
        match self.rng.below(100) {
            0..=24 => self.break_some_connection(),
            25..=36 => self.swallow_some_connection(),
            37..=50 => self.send_to_sleep(slot),
            51..=62 => self.kill(slot),
            63..=68 => return self.close(slot),
            69..=74 => return self.resubscribe(slot),
            75..=77 => {
                let topic = self.rng.below(TOPICS);
                // Classic members own by name what others own by id: nobody could tell whose it is.
                if self.plan.protocol.is_some() && self.rng.percent(25) {
                    self.recreate_topic(topic);
                } else {
                    self.grow_topic(topic);
                }
            }
            78..=81 => self.wall_skew_ms = self.rng.between(0, 7_200_000) as i64 - 3_600_000,
            82..=87 => return self.start(slot),
            _ => self.site_chaos(),
        }
        Ok(())
    }

    fn some_connection(&mut self) -> Option<usize> {
        let open: Vec<usize> = self
            .actors
            .iter()
            .flat_map(|actor| actor.lanes)
            .flatten()
            .filter(|index| self.connections[*index].is_open())
            .collect();
        (!open.is_empty()).then(|| *self.rng.pick(&open))
    }

    fn break_some_connection(&mut self) {
        if let Some(index) = self.some_connection() {
            self.trace.say(|| format!("--- connection {index} breaks"));
            self.break_connection(index);
        }
    }

    fn swallow_some_connection(&mut self) {
        if let Some(index) = self.some_connection() {
            self.trace.say(|| format!("--- connection {index} swallows everything"));
            self.connections[index].is_black_hole = true;
        }
    }

    /// The whole machine sleeps, or the process does not get to run: no difference.
    fn send_to_sleep(&mut self, slot: usize) {
        let actor = &mut self.actors[slot];
        if actor.member.is_none() || actor.paused_until > self.now {
            return;
        }
        actor.paused_until = self.now + self.rng.between(100, 9000) * MS;
        let at = actor.paused_until;
        self.trace.say(|| format!("--- {slot} sleeps"));
        self.at(at, Event::Wake(slot));
    }

    fn kill(&mut self, slot: usize) {
        if self.actors[slot].member.is_none() {
            return;
        }
        self.trace.say(|| format!("--- {slot} is killed"));
        self.drop_process(slot);
        if slot < self.plan.members {
            let down = self.rng.between(50, 8000) * MS;
            self.after(down, Event::Start(slot));
        }
    }

    fn close(&mut self, slot: usize) -> Verdict {
        let now = self.instant();
        if self.actors[slot].paused_until > self.now {
            return Ok(());
        }
        self.trace.say(|| format!("--- {slot} closes"));
        let is_final = self.rng.percent(50);
        let Some(member) = &mut self.actors[slot].member else { return Ok(()) };
        if is_final {
            member.close(now);
        } else {
            member.unsubscribe(now);
            self.actors[slot].topics.clear();
            // It comes back to its senses, perhaps before it is gone.
            self.after_member(slot)?;
            if self.rng.percent(50) {
                return self.resubscribe(slot);
            }
            self.drop_later(slot);
        }
        self.after_member(slot)
    }

    fn drop_later(&mut self, slot: usize) {
        let delay = self.rng.between(1, 6) * SECOND;
        self.after(delay, Event::Start(slot));
    }

    pub fn resubscribe(&mut self, slot: usize) -> Verdict {
        if self.actors[slot].paused_until > self.now {
            return Ok(());
        }
        let mut topics: Vec<usize> = (0..TOPICS).filter(|_| self.rng.percent(60)).collect();
        if topics.is_empty() {
            topics.push(self.rng.below(TOPICS));
        }
        let now = self.instant();
        let actor = &mut self.actors[slot];
        let Some(member) = actor.member.as_mut().filter(|member| !member.is_over()) else {
            return Ok(());
        };
        actor.topics.clone_from(&topics);
        member.subscribe(topics.iter().map(|topic| TopicName::from(topic_name(*topic))), now);
        self.after_member(slot)
    }
}
