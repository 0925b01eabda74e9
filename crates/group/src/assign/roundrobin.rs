//! Round robin: all partitions in order, dealt to the members in turn; a member that does not
//! subscribe to the topic is passed over.

use super::problem::{MemberIx, NOBODY, Problem, TopicIx};
use alloc::vec;
use alloc::vec::Vec;

/// The owner of each partition.
pub(super) fn assign(problem: &Problem) -> Vec<MemberIx> {
    let mut owners = vec![NOBODY; problem.partition_count()];
    let members = problem.member_count() as MemberIx;
    let mut turn = 0;
    for (index, topic) in problem.topics.iter().enumerate() {
        for partition in topic.first..topic.first + topic.count {
            // Ends: a topic in the problem has at least one subscriber.
            while !problem.subscribes(turn, index as TopicIx) {
                turn = (turn + 1) % members;
            }
            owners[partition as usize] = turn;
            turn = (turn + 1) % members;
        }
    }
    owners
}
