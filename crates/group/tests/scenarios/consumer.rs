//! The consumer protocol's commands: members that say only what changed, as Kafka's clients do.

use crate::parse::Command;
use crate::stage::{Done, Stage};
use ottla_group::message::Ask;
use ottla_group::message::consumer::{Beat, Describe, Heartbeat, Partitions, Standing};
use ottla_model::{Generation, PartitionId, TopicId};
use std::collections::BTreeMap;
use std::time::Duration;

/// What each member last heard and last said.
#[derive(Default)]
pub struct Consumers {
    told: BTreeMap<String, Partitions>,
    said: BTreeMap<String, Partitions>,
}

impl Consumers {
    /// A member was answered.
    pub fn learn(&mut self, name: &str, beat: &Beat) {
        if let Some(assignment) = &beat.assignment {
            self.told.insert(name.into(), assignment.clone());
        }
    }

    fn forget(&mut self, name: &str) {
        self.told.remove(name);
        self.said.remove(name);
    }

    /// What a member has to say of what it owns: nothing, where it said that already.
    fn news(&mut self, name: &str) -> Option<Partitions> {
        let told = self.told.get(name)?;
        let is_news = self.said.get(name) != Some(told);
        is_news.then(|| {
            self.said.insert(name.into(), told.clone());
            told.clone()
        })
    }
}

impl Stage {
    /// `enter a topics=t`: joins in epoch 0, under its own name.
    pub fn enter(&mut self, command: &Command<'_>) -> Done {
        let name = command.word()?;
        self.consumers.forget(name);
        let topics = command.text("topics").unwrap_or("t");
        let topics = topics.split(',').filter(|topic| *topic != "none").collect();
        let id = self.consumer_id(command, name);
        let rebalance = command.span("rebalance")?.unwrap_or(Duration::from_secs(30));
        self.ask(
            name,
            Ask::ConsumerHeartbeat(Heartbeat {
                group: command.text("group").unwrap_or("g"),
                member: &id,
                standing: Standing::Joining,
                instance: command.text("instance"),
                rack: command.text("rack"),
                rebalance_timeout: Some(rebalance),
                topics: Some(topics),
                regex: command.text("regex"),
                assignor: command.text("assignor"),
                owned: Some(Partitions::new()),
            }),
        );
        Ok(())
    }

    /// `report a b`: they stay, and say what they own if that is news.
    pub fn report(&mut self, command: &Command<'_>) -> Done {
        for name in command.words().iter().filter(|word| **word != "silently") {
            let id = self.consumer_id(command, name);
            let said = command.number("epoch")?.map(|epoch| Generation(epoch as i32));
            let epoch = said.map_or_else(|| self.generation(command, name), Ok)?;
            let owned = match command.text("owns") {
                Some(owns) => Some(self.slots(owns)?),
                None if command.has("silently") => None,
                None => self.consumers.news(name),
            };
            let topics = command.text("topics").map(|topics| topics.split(',').collect());
            let ask = Heartbeat {
                group: command.text("group").unwrap_or("g"),
                member: &id,
                standing: Standing::Member(epoch),
                instance: command.text("instance"),
                rack: None,
                rebalance_timeout: command.span("rebalance")?,
                topics,
                regex: command.text("regex"),
                assignor: command.text("assignor"),
                owned,
            };
            self.ask(name, Ask::ConsumerHeartbeat(ask));
            self.settle();
        }
        Ok(())
    }

    /// `exit a`: goes for good; `exit a for-now instance=i`: will be back.
    pub fn exit(&mut self, command: &Command<'_>) -> Done {
        let name = command.word()?;
        let id = self.consumer_id(command, name);
        let standing = match command.has("for-now") {
            true => Standing::LeavingForNow,
            false => Standing::Leaving,
        };
        let ask = Heartbeat {
            group: command.text("group").unwrap_or("g"),
            member: &id,
            standing,
            instance: command.text("instance"),
            rack: None,
            rebalance_timeout: None,
            topics: None,
            regex: None,
            assignor: None,
            owned: None,
        };
        self.ask(name, Ask::ConsumerHeartbeat(ask));
        Ok(())
    }

    pub fn describe_consumers(&mut self, command: &Command<'_>) -> Done {
        let group = command.text("group").unwrap_or("g");
        self.ask("admin", Ask::ConsumerDescribe(Describe { group }));
        Ok(())
    }

    /// A member names itself.
    fn consumer_id(&self, command: &Command<'_>, name: &str) -> String {
        let id = self.id(command, name);
        let is_nameless = command.text("id") == Some("none");
        if id.is_empty() && !is_nameless { name.into() } else { id }
    }

    /// `t-0,t-1`, `none`.
    fn slots(&self, text: &str) -> Result<Partitions, String> {
        let mut topics: BTreeMap<TopicId, Vec<PartitionId>> = BTreeMap::new();
        for slot in text.split(',').filter(|slot| *slot != "none") {
            let (topic, partition) = Self::partition(slot)?;
            let id = self.topics.topic(topic).ok_or("no such topic")?.id;
            topics.entry(id).or_default().push(partition);
        }
        Ok(topics.into_iter().collect())
    }

    /// What an answer tells of its member.
    pub fn learn_beat(&mut self, asker: String, beat: &Beat) {
        self.names.learn(&beat.member, &asker);
        self.consumers.learn(&asker, beat);
        let epoch = match beat.standing {
            Standing::Member(epoch) => epoch,
            other => Generation(other.epoch()),
        };
        self.generations.insert(asker, epoch);
    }
}
