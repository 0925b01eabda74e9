//! What groups, offsets and members cost a broker in memory, as differences between what it holds
//! before and after they come. Of a process its own resident memory, which also counts what its
//! allocator keeps; of a JVM what is live after a collection, which flatters it.

use crate::Outcome;
use crate::figures::Figures;
use crate::link::{Link, Software, check};
use crate::member::{Member, settle};
use crate::process::Weighed;
use crate::setup::{coordinators, names, topic};
use clap::Args;
use ottla_wire::generated::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use ottla_wire::generated::{OffsetCommitRequest, OffsetCommitResponse};
use std::rc::Rc;

/// Its arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Memory {
    #[command(flatten)]
    broker: Weighed,
    /// Groups
    #[arg(long, default_value_t = 1000)]
    groups: usize,
    /// Offsets of each group, and partitions of the topic its members share
    #[arg(long, default_value_t = 100)]
    partitions: i32,
    /// Groups of as many members as there are partitions
    #[arg(long, default_value_t = 100)]
    peopled: usize,
}

impl Memory {
    /// Empty groups (of one offset), then more offsets, then members.
    pub(crate) async fn run(self) -> Outcome<Figures> {
        let mut link = Link::open(&self.broker.target.bootstrap, Software::Unknown).await?;
        topic(&mut link, TOPIC, self.partitions).await?;
        let groups = names("kept", self.groups);
        coordinators(&mut link, &groups).await?;
        // What is made by the first of a kind is not counted.
        commit(&mut link, "first", 0..1).await?;
        let before = self.broker.held()?;
        for group in &groups {
            commit(&mut link, group, 0..1).await?;
        }
        let with_groups = self.broker.held()?;
        for group in &groups {
            commit(&mut link, group, 1..self.partitions).await?;
        }
        let with_offsets = self.broker.held()?;
        let members = self.people(&mut link).await?;
        let with_members = self.broker.held()?;
        let (count, share) = (self.groups as f64, f64::from(self.partitions));
        let per_offset = (with_offsets - with_groups) / (count * (share - 1.0));
        let mut figures = Figures::default();
        figures.add("an offset, bytes", per_offset);
        figures.add("an empty group, bytes", (with_groups - before) / count - per_offset);
        figures.add(
            "a member, its share of its group included, bytes",
            (with_members - with_offsets) / members as f64,
        );
        figures.add("all of it, MiB", with_members / f64::from(1 << 20));
        Ok(figures)
    }

    /// Groups whose members own one partition each.
    async fn people(&self, link: &mut Link) -> Outcome<usize> {
        let topics: Rc<[String]> = Rc::from([TOPIC.to_owned()]);
        let share = usize::try_from(self.partitions).unwrap_or(0);
        for name in names("peopled", self.peopled) {
            let group: Rc<str> = Rc::from(name);
            let member = |number| Member::new(&group, format!("member-{number}"), &topics);
            let mut members: Vec<Member> = (0..share).map(member).collect();
            settle(link, &mut members, 1).await?;
        }
        Ok(self.peopled * share)
    }
}

async fn commit(link: &mut Link, group: &str, partitions: std::ops::Range<i32>) -> Outcome<()> {
    let partition = |partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 1,
        ..Default::default()
    };
    let topic = OffsetCommitRequestTopic {
        name: TOPIC,
        partitions: partitions.map(partition).collect(),
        ..Default::default()
    };
    let request =
        OffsetCommitRequest { group_id: group, topics: vec![topic], ..Default::default() };
    let answer = link.call(9, &request).await?;
    let response: OffsetCommitResponse<'_> = answer.read()?;
    let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.try_for_each(|partition| check(partition.error_code, "OffsetCommit"))
}

const TOPIC: &str = "memory";
