//! The consumer protocol's answers, as one line each.

use crate::print::{Names, at};
use core::time::Duration;
use ottla_group::coordinator::JournalEntry;
use ottla_group::coordinator::record::{
    ConsumerGroupCurrentMemberAssignment, ConsumerGroupMemberMetadata,
    ConsumerGroupRegularExpression, HeldPartitions, Record,
};
use ottla_group::message::consumer::{Beat, Description, NamedPartitions, Partitions, Standing};
use ottla_model::{Instant, TopicId};

impl Names {
    pub(crate) fn beat(&self, beat: &Beat) -> String {
        let standing = match beat.standing {
            Standing::Joining => "joining".into(),
            Standing::Member(epoch) => format!("epoch {epoch}"),
            Standing::Leaving => "left".into(),
            Standing::LeavingForNow => "left for now".into(),
        };
        let owns = beat.assignment.as_ref().map(|owned| format!(" [{}]", partitions(owned)));
        let interval = match beat.interval.is_zero() {
            true => String::new(),
            false => format!(" again in {}", at(Instant::ZERO + beat.interval)),
        };
        format!("{standing}{}{interval}", owns.unwrap_or_default())
    }

    pub(crate) fn consumer_description(&self, group: &Description) -> String {
        let members = group.members.iter().map(|member| {
            let topics: Vec<_> = member.topics.iter().map(|topic| topic.as_str()).collect();
            let regex = member.regex.as_ref().map_or(String::new(), |regex| format!("/{regex}/"));
            let (owns, target) = (named(&member.assignment), named(&member.target));
            let (who, epoch, topics) = (self.of(&member.member), member.epoch, topics.join(","));
            let classic = if member.is_classic { " classic" } else { "" };
            format!("{who}@{epoch}{classic}:{{{topics}{regex}}} [{owns}]->[{target}]")
        });
        format!(
            "described {} epoch {} target {} {} {}",
            group.state,
            group.epoch,
            group.assignment_epoch,
            group.assignor,
            members.collect::<Vec<_>>().join(" ")
        )
    }
}

/// The consumer protocol's records, as one phrase each.
impl Names {
    pub(crate) fn consumer_record(&self, record: &Record) -> String {
        match record {
            Record::ConsumerGroupMetadata(record) => match &record.value {
                Some(value) => format!("epoch {}", value.epoch),
                None => "epoch tombstone".into(),
            },
            Record::ConsumerGroupTargetAssignmentMetadata(record) => match &record.value {
                Some(value) => format!("target {}", value.epoch),
                None => "target tombstone".into(),
            },
            Record::ConsumerGroupTargetAssignmentMember(record) => {
                let member = self.of(&record.member);
                match &record.value {
                    Some(value) => format!("target of {member} [{}]", partitions(value)),
                    None => format!("target of {member} tombstone"),
                }
            }
            Record::ConsumerGroupMemberMetadata(record) => self.says(record),
            Record::ConsumerGroupCurrentMemberAssignment(record) => self.position(record),
            Record::ConsumerGroupRegularExpression(record) => pattern(record),
            other => format!("{other:?}"),
        }
    }

    fn says(&self, record: &ConsumerGroupMemberMetadata) -> String {
        let member = self.of(&record.member);
        let Some(value) = &record.value else { return format!("member {member} tombstone") };
        let topics: Vec<_> = value.topics.iter().map(|topic| topic.as_str()).collect();
        let regex = value.regex.as_ref().map_or(String::new(), |regex| format!("/{regex}/"));
        let instance = value.instance.as_ref().map(|it| format!("({it})")).unwrap_or_default();
        let vote = value.assignor.as_ref().map(|it| format!(" votes {it}")).unwrap_or_default();
        let classic = value.classic.as_ref().map(|classic| {
            let names: Vec<_> = classic.protocols.iter().map(|(name, _)| &**name).collect();
            format!(" classic {}", names.join(","))
        });
        let classic = classic.unwrap_or_default();
        format!("member {member}{instance} {{{}{regex}}}{vote}{classic}", topics.join(","))
    }

    fn position(&self, record: &ConsumerGroupCurrentMemberAssignment) -> String {
        let member = self.of(&record.member);
        let Some(value) = &record.value else { return format!("{member} tombstone") };
        let revoking = match value.revoking.is_empty() {
            true => String::new(),
            false => format!(" gives up [{}]", held(&value.revoking)),
        };
        let (epoch, state) = (value.epoch, value.state);
        format!("{member}@{epoch} {state:?} [{}]{revoking}", held(&value.assigned))
    }
}

fn pattern(record: &ConsumerGroupRegularExpression) -> String {
    let Some(value) = &record.value else { return format!("/{}/ tombstone", record.regex) };
    let topics: Vec<_> = value.topics.iter().map(|topic| topic.as_str()).collect();
    format!("/{}/ is {{{}}}", record.regex, topics.join(","))
}

/// Each with the epoch since which it is held.
fn held(topics: &[HeldPartitions]) -> String {
    let all = topics.iter().flat_map(|held| {
        let epochs = held.epochs.iter().flatten();
        let slots = held.partitions.iter().zip(epochs);
        slots.map(|(partition, since)| format!("{}-{partition}^{since}", name(held.topic)))
    });
    all.collect::<Vec<_>>().join(" ")
}

/// What an epoch moved, and how long its members took to get there.
pub(crate) fn moved(entry: &JournalEntry) -> String {
    let who = |who: &Option<_>| who.as_ref().map_or("-".into(), ToString::to_string);
    let moves = entry
        .moves
        .iter()
        .map(|it| format!(" {}-{} {}->{}", it.topic, it.partition, who(&it.from), who(&it.to)));
    let took = entry
        .sync_took
        .map_or("under way".into(), |took| format!("took {}", at(Instant::ZERO + took)));
    let slowest = entry.slowest.first().filter(|it| it.sync_took > Some(Duration::ZERO));
    let slowest = slowest.map_or(String::new(), |it| format!(", slowest {}", it.who.member));
    format!("; moved{}; {took}{slowest}", moves.collect::<String>())
}

/// `t-0 t-1`: on stage a topic's id begins with its name and ends with its incarnation.
pub(crate) fn partitions(partitions: &Partitions) -> String {
    let all = partitions.iter().flat_map(|(topic, partitions)| {
        partitions.iter().map(move |partition| format!("{}-{partition}", name(*topic)))
    });
    all.collect::<Vec<_>>().join(" ")
}

fn named(partitions: &[NamedPartitions]) -> String {
    let all = partitions
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(move |p| format!("{}-{p}", topic.topic)));
    all.collect::<Vec<_>>().join(" ")
}

pub(crate) fn name(topic: TopicId) -> String {
    let name: Vec<u8> = topic.0[..8].iter().copied().take_while(|byte| *byte != 0).collect();
    let name = String::from_utf8_lossy(&name);
    match topic.0[15] {
        1 => name.into_owned(),
        incarnation => format!("{name}#{incarnation}"),
    }
}
