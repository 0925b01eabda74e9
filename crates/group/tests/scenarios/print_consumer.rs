//! The consumer protocol's answers, as one line each.

use crate::print::{Names, at};
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
            format!("{who}@{epoch}:{{{topics}{regex}}} [{owns}]->[{target}]")
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
