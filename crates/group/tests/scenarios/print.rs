//! What came out of the shard, as one line each.

use crate::print_consumer::moved;
use ottla_group::assign::subscription::{Assignment, Subscription};
use ottla_group::coordinator::record::{GroupMetadata, OffsetCommit, Record};
use ottla_group::coordinator::{GroupView, Obstacle};
use ottla_group::message::Reply;
use ottla_group::message::admin::{Description, GroupKind};
use ottla_group::message::classic::{Joined, Left};
use ottla_group::message::offsets::PerPartition;
use ottla_group::message::register::{HeartbeatAnswer, Registered};
use ottla_model::Instant;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Member ids by the names the scenario knows them by.
#[derive(Default)]
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// From now on `id` is called `name`; an older id of that name gets a tick.
    pub fn learn(&mut self, id: &str, name: &str) {
        if id.is_empty() || self.0.get(id).is_some_and(|known| known == name) {
            return;
        }
        for known in self.0.values_mut().filter(|known| *known == name) {
            known.push('\'');
        }
        self.0.insert(id.into(), name.into());
    }

    pub fn id_of(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(_, known)| *known == name).map(|(id, _)| id.as_str())
    }

    pub fn of<'a>(&'a self, id: &'a str) -> &'a str {
        match self.0.get(id) {
            Some(name) => name,
            None if id.is_empty() => "-",
            None => id,
        }
    }

    pub fn reply(&self, reply: &Reply) -> String {
        match reply {
            Reply::Join(Ok(joined)) => self.joined(joined),
            Reply::Join(Err(refused)) => {
                format!("join {:?} {}", refused.error, self.of(&refused.member))
            }
            Reply::Sync(Ok(synced)) => {
                format!("synced {} {}", synced.protocol, blob(&synced.assignment))
            }
            Reply::Sync(Err(error)) => format!("sync {error:?}"),
            Reply::Heartbeat(outcome) => format!("heartbeat {}", shown(outcome)),
            Reply::Leave(Ok(left)) => self.left(left),
            Reply::Leave(Err(error)) => format!("leave {error:?}"),
            Reply::ConsumerHeartbeat(Ok(beat)) => self.beat(beat),
            Reply::ConsumerHeartbeat(Err(error)) => format!("{error:?}"),
            Reply::ConsumerDescribe(Ok(group)) => self.consumer_description(group),
            Reply::ConsumerDescribe(Err(error)) => format!("describe {error:?}"),
            Reply::ConsumerMetadata(outcome) => match outcome {
                Ok(generation) => format!("metadata generation {generation}"),
                Err(error) => format!("metadata {error:?}"),
            },
            Reply::Register(Ok(registered)) => {
                format!("registered {} owns {}", registered.generation, owned(registered))
            }
            Reply::Register(Err(error)) => format!("register {error:?}"),
            Reply::RegisterHeartbeat(HeartbeatAnswer { generation, outcome }) => {
                format!("beat {} in {generation}", shown(outcome))
            }
            Reply::Commit(Ok(committed)) => {
                format!("committed {}", each(&committed.topics, shown))
            }
            Reply::Commit(Err(error)) => format!("commit {error:?}"),
            Reply::FetchOffsets(Ok(fetched)) => {
                let offset = |found: &Option<ottla_group::message::offsets::CommittedOffset>| {
                    found.as_ref().map_or("none".into(), |found| found.offset.to_string())
                };
                format!("offsets {}", each(&fetched.topics, offset))
            }
            Reply::FetchOffsets(Err(error)) => format!("offsets {error:?}"),
            Reply::DeleteOffsets(Ok(deleted)) => {
                format!("offsets deleted {}", each(&deleted.topics, shown))
            }
            Reply::DeleteOffsets(Err(error)) => format!("delete-offsets {error:?}"),
            Reply::Describe(Ok(description)) => self.description(description),
            Reply::Describe(Err(error)) => format!("describe {error:?}"),
            Reply::List(Ok(groups)) => {
                let groups = groups.iter().map(|g| format!("{} {} {}", g.group, g.kind, g.state));
                format!("groups [{}]", groups.collect::<Vec<_>>().join(", "))
            }
            Reply::List(Err(error)) => format!("list {error:?}"),
            Reply::DeleteGroup(outcome) => format!("delete-group {}", shown(outcome)),
        }
    }

    fn joined(&self, joined: &Joined) -> String {
        let skip = if joined.skip_assignment { " skip" } else { "" };
        let members = joined
            .members
            .iter()
            .map(|member| format!("{}:{}", self.of(&member.member), blob(&member.metadata)));
        let members: Vec<_> = members.collect();
        let members =
            if members.is_empty() { String::new() } else { format!(" of {}", members.join(" ")) };
        format!(
            "joined {} {} leader {}{members}{skip}",
            joined.generation,
            joined.protocol,
            self.of(&joined.leader)
        )
    }

    fn left(&self, left: &Left) -> String {
        let members = left.members.iter().map(|(member, instance, outcome)| {
            let instance = instance.as_ref().map(|i| format!("({i})")).unwrap_or_default();
            format!("{}{instance} {}", self.of(member), shown(outcome))
        });
        format!("left {}", members.collect::<Vec<_>>().join(", "))
    }

    fn description(&self, description: &Description) -> String {
        let members = description.members.iter().map(|member| {
            let (metadata, assignment) = (blob(&member.metadata), blob(&member.assignment));
            format!("{}:{metadata}->{assignment}", self.of(&member.member))
        });
        format!(
            "described {} {} {} [{}]",
            description.state,
            text_or_dash(&description.protocol_type),
            text_or_dash(&description.protocol),
            members.collect::<Vec<_>>().join(" ")
        )
    }

    pub fn record(&self, record: &Record) -> String {
        match record {
            Record::OffsetCommit(commit) => offset(commit),
            Record::GroupMetadata(metadata) => self.group(metadata),
            other => self.consumer_record(other),
        }
    }

    fn group(&self, record: &GroupMetadata) -> String {
        let Some(value) = &record.value else { return format!("group {} tombstone", record.group) };
        let members = value.members.iter().map(|member| {
            let instance = member.instance.as_ref().map(|i| format!("({i})")).unwrap_or_default();
            format!("{}{instance}->{}", self.of(&member.member), blob(&member.assignment))
        });
        format!(
            "group {} generation {} {} leader {} [{}]",
            record.group,
            value.generation,
            value.protocol.as_deref().unwrap_or("-"),
            value.leader.as_ref().map_or("-", |leader| self.of(leader)),
            members.collect::<Vec<_>>().join(" ")
        )
    }

    /// What is in the way of a migration, with a member's name for its id.
    pub fn obstacle(&self, obstacle: &Obstacle) -> String {
        let text = obstacle.to_string();
        match obstacle {
            Obstacle::Subscription(member)
            | Obstacle::Assignment(member)
            | Obstacle::Assignor { member, .. } => text.replace(&**member, self.of(member)),
            _ => text,
        }
    }

    /// State, who blocks it, and why its generations came to be.
    pub fn view(&self, view: &GroupView) -> String {
        let mut out = format!(
            "group {} {} generation {} members {}\n",
            view.group, view.state, view.generation, view.members
        );
        for blocker in &view.blocking {
            let who = self.of(&blocker.who.member);
            out +=
                &format!("  waits for {who} to {:?} since {}\n", blocker.owes, at(blocker.since));
        }
        for entry in &view.journal {
            let causes = entry.triggers.iter().map(|trigger| {
                let about = match (&trigger.who, &trigger.topic) {
                    (Some(who), _) => self.of(&who.member),
                    (None, Some(topic)) => topic,
                    (None, None) => "-",
                };
                let replaced = trigger.replaced.as_ref();
                let replaced = replaced.map(|id| format!(" for {}", self.of(id)));
                let by = trigger.by.as_ref().map(|by| format!(" by {}", by.client_id));
                let (replaced, by) = (replaced.unwrap_or_default(), by.unwrap_or_default());
                format!("{:?} {about}{replaced}{by}", trigger.cause)
            });
            let causes = causes.collect::<Vec<_>>().join(", ");
            let moved = match view.kind {
                GroupKind::Consumer => moved(entry),
                GroupKind::Classic | GroupKind::Register => String::new(),
            };
            out += &format!("  {}: {causes}{moved}\n", entry.generation);
        }
        out
    }
}

fn offset(record: &OffsetCommit) -> String {
    let key = format!("offset {} {}-{}", record.group, record.topic, record.partition);
    match &record.value {
        None => format!("{key} tombstone"),
        Some(value) => {
            let note = if value.metadata.is_empty() { "" } else { &format!("@{}", value.metadata) };
            format!("{key} = {}{note}", value.offset)
        }
    }
}

fn shown<E: Debug>(outcome: &Result<(), E>) -> String {
    outcome.as_ref().map_or_else(|error| format!("{error:?}"), |()| "ok".into())
}

fn each<T>(topics: &PerPartition<T>, show: impl Fn(&T) -> String) -> String {
    let partitions = topics.iter().flat_map(|(topic, partitions)| {
        partitions.iter().map(move |(partition, value)| (topic, partition, value))
    });
    let partitions = partitions.map(|(topic, p, value)| format!("{topic}-{p} {}", show(value)));
    partitions.collect::<Vec<_>>().join(", ")
}

fn owned(registered: &Registered) -> String {
    let partitions = format!("{:?}", registered.partitions);
    if partitions.is_empty() { "nothing".into() } else { partitions }
}

fn text_or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// Bytes that are a subscription or an assignment are shown as such, text as text.
fn blob(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".into();
    }
    if bytes[0] != 0 {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let version = i16::from(bytes.get(1).copied().unwrap_or_default());
    match (Subscription::decode(bytes), Assignment::decode(bytes)) {
        (_, Ok(assignment)) if assignment.encode(version) == bytes => {
            format!("{:?}", assignment.partitions)
        }
        (Ok(subscription), _) => {
            let topics: Vec<_> = subscription.topics.iter().map(|topic| topic.as_str()).collect();
            format!("{{{}}}", topics.join(","))
        }
        _ => format!("{} bytes", bytes.len()),
    }
}

/// Virtual time since the start.
pub fn at(instant: Instant) -> String {
    let millis = instant.as_nanos() / 1_000_000;
    match millis % 1000 {
        0 => format!("{}s", millis / 1000),
        rest => format!("{}.{rest:03}s", millis / 1000),
    }
}
