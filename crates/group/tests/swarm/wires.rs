//! Messages on their way, in both directions.

use crate::checker::{TOPICS, Verdict, topic_name};
use crate::net::{Connection, OBSERVER, Sent, connection_of};
use crate::world::{Event, MS, SECOND, World};
use ottla_group::member::{CallId, Lane};
use ottla_group::message::{Ask, Client, GroupError, Reply, Request, Token, offsets};
use ottla_model::{ConnectionId, PartitionId};

impl World {
    pub fn open(&mut self, slot: usize, incarnation: u32, lane: Lane, site: usize) -> usize {
        let index = self.connections.len();
        let is_up = self.sites[site].broker.is_some();
        self.connections.push(Connection::new(slot, incarnation, lane, site, is_up));
        if !is_up {
            let delay = self.rng.between(1, 50) * MS;
            self.after(delay, Event::ClientSeesClose(index));
        }
        index
    }

    pub fn send_on(&mut self, index: usize, call: CallId, sent: Sent) {
        let delay = self.network_delay();
        let connection = &mut self.connections[index];
        connection.to_site.push_back((call, sent));
        connection.last_at_site = (connection.last_at_site + 1).max(self.now + delay);
        let at = connection.last_at_site;
        if !connection.is_black_hole {
            self.at(at, Event::ToSite(index));
        }
    }

    pub fn arrive_at_site(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let (site, slot) = (connection.site, connection.slot);
        if self.sites[site].paused_until > self.now {
            let at = self.sites[site].paused_until;
            return self.at(at, Event::ToSite(index));
        }
        if !connection.site_open || connection.is_black_hole {
            return;
        }
        let Some((call, sent)) = connection.to_site.pop_front() else { return };
        let elder = connection.last_awaiting();
        let token = connection.expect(index, call);
        let mut fresh = [0; 16];
        fresh[..8].copy_from_slice(&self.rng.next().to_be_bytes());
        fresh[8..].copy_from_slice(&token.0.to_be_bytes());
        self.trace.say(|| match &sent {
            Sent::Request(request) => format!("  -> site {site} {token:?} {request:?}"),
            Sent::Observe => format!("  -> site {site} {token:?} observe"),
        });
        let body = match &sent {
            Sent::Request(request) => request.ask(),
            Sent::Observe => self.ask_everything(),
        };
        let now = self.clock();
        let patience = self.plan.patience(slot);
        let Some(broker) = &mut self.sites[site].broker else { return };
        broker.request(Request {
            token,
            connection: ConnectionId(index as u64),
            client: Client { id: "m", host: "h", patience },
            fresh,
            now,
            body,
        });
        if let Some(elder) = elder {
            broker.waiting_behind(elder, now);
        }
        self.after_site(site);
    }

    fn ask_everything(&self) -> Ask<'static> {
        let topics = (0..TOPICS).map(|topic| {
            let partitions = (0..self.counts[topic] as i32).map(PartitionId).collect();
            (topic_name(topic), partitions)
        });
        Ask::FetchOffsets(offsets::Fetch {
            group: "g",
            member: None,
            topics: Some(topics.collect()),
        })
    }

    /// A site's reply goes to its connection, and to the client when its turn has come.
    pub fn answer(&mut self, site: usize, token: Token, reply: Reply) {
        let index = connection_of(token);
        self.connections[index].answer(token, reply);
        let is_rival = site != self.owner;
        while let Some((call, mut reply)) = self.connections[index].next_reply() {
            // Every driver looks at T again when a reply goes to the socket.
            if self.now >= self.sites[site].granted_until && !self.sites[site].ignores_silence() {
                reply = reply.refused(GroupError::NotCoordinator);
            }
            let is_beat = reply == Reply::Heartbeat(Ok(()))
                || matches!(reply, Reply::ConsumerHeartbeat(Ok(_)));
            if is_rival && is_beat {
                self.rival_answers += 1;
            }
            self.trace.note(&[token.0, reply_word(&reply)]);
            let delay = self.network_delay();
            let connection = &mut self.connections[index];
            connection.to_client.push_back((call, reply));
            connection.last_at_client = (connection.last_at_client + 1).max(self.now + delay);
            let at = connection.last_at_client;
            if !connection.is_black_hole {
                self.at(at, Event::ToClient(index));
            }
        }
    }

    pub fn arrive_at_client(&mut self, index: usize) -> Verdict {
        let connection = &self.connections[index];
        let (slot, incarnation) = (connection.slot, connection.incarnation);
        if slot == OBSERVER {
            let message = self.connections[index].to_client.pop_front();
            let Some((call, Reply::FetchOffsets(reply))) = message else { return Ok(()) };
            let floor = self.observations.remove(&call);
            return match (reply, floor) {
                (Ok(fetched), Some(floor)) => self.checker.read(&fetched, &floor),
                _ => Ok(()),
            };
        }
        if !connection.client_open || connection.is_black_hole {
            return Ok(());
        }
        if self.actors[slot].paused_until > self.now {
            let at = self.actors[slot].paused_until;
            self.at(at, Event::ToClient(index));
            return Ok(());
        }
        let Some((call, reply)) = self.connections[index].to_client.pop_front() else {
            return Ok(());
        };
        self.trace.say(|| format!("  {slot} <- {call:?} {reply:?}"));
        let now = self.instant();
        let actor = &mut self.actors[slot];
        match &mut actor.member {
            Some(member) if actor.incarnation == incarnation => {
                member.handle_reply(call, reply, now);
                self.after_member(slot)
            }
            _ => Ok(()),
        }
    }

    /// The client closes: what it sent is heard up to some point, the site notices later.
    pub fn close_by_client(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !core::mem::replace(&mut connection.client_open, false) {
            return;
        }
        let waiting = connection.to_site.len();
        let is_heard = connection.site_open && !connection.is_black_hole;
        let heard = if is_heard { self.rng.below(waiting + 1) } else { 0 };
        self.connections[index].to_site.truncate(heard);
        for _ in 0..heard {
            self.after(0, Event::ToSite(index));
        }
        let delay = if is_heard { self.rng.between(1, 2000) * MS } else { 10 * SECOND };
        self.after(delay, Event::SiteSeesClose(index));
    }

    pub fn site_sees_close(&mut self, index: usize) {
        let site = self.connections[index].site;
        if !self.connections[index].site_open {
            return;
        }
        self.connections[index].lose_site();
        let now = self.clock();
        if let Some(broker) = &mut self.sites[site].broker {
            broker.closed(ConnectionId(index as u64), now);
            self.after_site(site);
        }
    }

    pub fn client_sees_close(&mut self, index: usize) -> Verdict {
        let connection = &self.connections[index];
        let (slot, incarnation, lane) = (connection.slot, connection.incarnation, connection.lane);
        if !connection.client_open {
            return Ok(());
        }
        if slot == OBSERVER {
            self.connections[index].client_open = false;
            return Ok(());
        }
        if self.actors[slot].paused_until > self.now {
            let at = self.actors[slot].paused_until;
            self.at(at, Event::ClientSeesClose(index));
            return Ok(());
        }
        self.connections[index].client_open = false;
        let actor = &mut self.actors[slot];
        if actor.incarnation != incarnation || actor.lanes[lane as usize] != Some(index) {
            return Ok(());
        }
        actor.lanes[lane as usize] = None;
        let now = self.instant();
        let Some(member) = &mut self.actors[slot].member else { return Ok(()) };
        member.handle_disconnect(lane, now);
        self.after_member(slot)
    }

    /// The network breaks a connection: what is on it is lost, each end notices in its time.
    pub fn break_connection(&mut self, index: usize) {
        let (client, site) = (self.rng.between(1, 1500) * MS, self.rng.between(1, 1500) * MS);
        let connection = &mut self.connections[index];
        connection.to_site.clear();
        connection.to_client.clear();
        connection.is_black_hole = true;
        self.after(client, Event::ClientSeesClose(index));
        self.after(site, Event::SiteSeesClose(index));
    }
}

/// Enough of a reply to tell two runs apart.
fn reply_word(reply: &Reply) -> u64 {
    match reply {
        Reply::Join(Ok(joined)) => 1 + ((joined.generation.0 as u64) << 8),
        Reply::Join(Err(refused)) => 2 + ((refused.error as u64) << 8),
        Reply::Sync(Ok(synced)) => 3 + ((synced.assignment.len() as u64) << 8),
        Reply::Sync(Err(error)) => 4 + ((*error as u64) << 8),
        Reply::Heartbeat(Ok(())) => 5,
        Reply::Heartbeat(Err(error)) => 6 + ((*error as u64) << 8),
        Reply::Commit(Ok(_)) => 7,
        Reply::Commit(Err(error)) => 8 + ((*error as u64) << 8),
        Reply::FetchOffsets(Ok(_)) => 9,
        Reply::FetchOffsets(Err(error)) => 10 + ((*error as u64) << 8),
        Reply::ConsumerHeartbeat(Ok(beat)) => 12 + ((beat.standing.epoch() as u64) << 8),
        Reply::ConsumerHeartbeat(Err(error)) => 13 + ((*error as u64) << 8),
        _ => 11,
    }
}
