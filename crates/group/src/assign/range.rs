//! Range: each topic's partitions in contiguous runs over its subscribers, topic by topic.
//!
//! Kafka's rule without racks: members in order, the first few one partition longer. Topics with
//! the same subscribers and as many partitions come out alike, which is what joins rely on.

use super::problem::{MemberIx, NOBODY, Problem};
use alloc::vec;
use alloc::vec::Vec;

/// The owner of each partition.
pub(super) fn assign(problem: &Problem) -> Vec<MemberIx> {
    let mut owners = vec![NOBODY; problem.partition_count()];
    for topic in &problem.topics {
        let audience = problem.audience(topic);
        let members = audience.len() as u32;
        let (each, longer) = (topic.count / members, topic.count % members);
        let mut next = topic.first;
        for (rank, member) in audience.iter().enumerate() {
            let take = each + u32::from((rank as u32) < longer);
            owners[next as usize..(next + take) as usize].fill(*member);
            next += take;
        }
    }
    owners
}
