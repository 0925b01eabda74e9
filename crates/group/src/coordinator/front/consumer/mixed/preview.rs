//! What is in the way of a migration, told before anybody tries.

use crate::assign::subscription::{Assignment, Subscription};
use crate::coordinator::config::Config;
use crate::coordinator::group::Group;
use crate::coordinator::roster::Member;
use crate::coordinator::view::{Migration, Obstacle};
use crate::message::admin::GroupKind;
use alloc::vec::Vec;
use ottla_model::MemberId;

impl Group {
    /// Where the group would go, and what is in the way; `None` where it would go nowhere: it has
    /// no members, or none whose going would turn it.
    pub(in crate::coordinator) fn migration(&self, config: &Config) -> Option<Migration> {
        match self.kind {
            GroupKind::Classic if !self.is_empty() => Some(Migration {
                to: GroupKind::Consumer,
                obstacles: self.obstacles_to_upgrade(config),
            }),
            GroupKind::Consumer if self.hard.consumers().classics() > 0 => Some(Migration {
                to: GroupKind::Classic,
                obstacles: self.obstacles_to_downgrade(config),
            }),
            GroupKind::Classic | GroupKind::Consumer | GroupKind::Register => None,
        }
    }

    /// What is in the way of a classic group's becoming one of the consumer protocol, as in Kafka.
    pub(super) fn obstacles_to_upgrade(&self, config: &Config) -> Vec<Obstacle> {
        let mut obstacles = Vec::new();
        if !config.consumer_migration.allows_upgrade() {
            obstacles.push(Obstacle::Policy(config.consumer_migration));
        }
        if !self.is_consumer() {
            let protocol_type = self.protocol_type.clone().unwrap_or_default();
            obstacles.push(Obstacle::ProtocolType(protocol_type));
            return obstacles;
        }
        let (members, max) = (self.roster.len(), config.consumer_group_size_max);
        if members > max {
            obstacles.push(Obstacle::TooManyMembers { members, max });
        }
        let of_members = self.roster.in_order().into_iter();
        let of_members = of_members.filter_map(|(id, member)| self.obstacle_of(id, member));
        obstacles.extend(of_members.take(OBSTACLES_MAX));
        obstacles
    }

    /// What is in the way of a group's becoming a classic one, once only its classic members are
    /// left.
    pub(super) fn obstacles_to_downgrade(&self, config: &Config) -> Vec<Obstacle> {
        let consumers = self.hard.consumers();
        let mut obstacles = Vec::new();
        if !config.consumer_migration.allows_downgrade() {
            obstacles.push(Obstacle::Policy(config.consumer_migration));
        }
        let (members, max) = (consumers.classics(), config.group_size_max);
        if members > max {
            obstacles.push(Obstacle::TooManyMembers { members, max });
        }
        if !consumers.has_common_classic_assignor() {
            obstacles.push(Obstacle::NoCommonAssignor);
        }
        obstacles
    }

    /// What a member's bytes have against it.
    fn obstacle_of(&self, id: &MemberId, member: &Member) -> Option<Obstacle> {
        if Subscription::decode(&self.word(member)).is_err() {
            return Some(Obstacle::Subscription(id.clone()));
        }
        let Ok(assignment) = Assignment::decode(&self.assignment_of(member)) else {
            return Some(Obstacle::Assignment(id.clone()));
        };
        assignment.user_data.filter(|data| !data.is_empty()).map(|_| Obstacle::Assignor {
            member: id.clone(),
            assignor: self.protocol.clone().unwrap_or_default(),
        })
    }
}

/// So many members are named.
const OBSTACLES_MAX: usize = 10;
