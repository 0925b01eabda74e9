//! Groups: listing, describing, deleting them, and removing members.

use super::{Admin, Outcomes, outcome};
use crate::cluster::Purpose;
use crate::{Error, Result};
use ottla_group::assign::subscription::{Assignment, Subscription};
use ottla_model::{GroupId, InstanceId, MemberId, TopicName, TopicPartition};
use ottla_wire::generated::consumer_group_describe_response as consumer;
use ottla_wire::generated::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use ottla_wire::generated::leave_group_request::MemberIdentity;
use ottla_wire::generated::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, DeleteGroupsRequest,
    DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse, LeaveGroupRequest,
    LeaveGroupResponse, ListGroupsRequest, ListGroupsResponse,
};
use ottla_wire::{ApiKey, ErrorCode};

/// Which groups are listed. The default lists all.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct GroupFilter {
    /// Only groups in one of these states (`Stable`, `Empty`, ...), if any is named.
    pub states: Vec<String>,
    /// Only groups of one of these types (`classic`, `consumer`, ...), if any is named.
    pub types: Vec<String>,
}

/// A group in a list.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct GroupListing {
    /// The group.
    pub group: GroupId,
    /// What its members are: `consumer`, `connect`, ...; empty for a group that only has offsets.
    pub protocol_type: String,
    /// Its state; empty where the broker is too old to tell.
    pub state: String,
    /// Which protocol its members speak; empty where the broker is too old to tell.
    pub kind: String,
}

/// A group as its coordinator sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupDescription {
    /// The group.
    pub group: GroupId,
    /// Its state: `Empty`, `Stable`, `PreparingRebalance`, ...
    pub state: String,
    /// What its members are: `consumer`, `connect`, ...
    pub protocol_type: String,
    /// Which assignor shares out the partitions; empty while none does.
    pub assignor: String,
    /// Its epoch, in the consumer protocol.
    pub epoch: Option<i32>,
    /// Its members.
    pub members: Vec<GroupMember>,
}

/// A member as its coordinator sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupMember {
    /// Its id.
    pub member: MemberId,
    /// Its `group.instance.id`, if it has one.
    pub instance: Option<InstanceId>,
    /// Its `client.id`.
    pub client_id: String,
    /// Where it connects from.
    pub host: String,
    /// The topics it subscribes to, where its metadata is a consumer's.
    pub topics: Vec<TopicName>,
    /// What it is assigned, where that is a consumer's.
    pub assignment: Vec<TopicPartition>,
}

/// A member to be removed from its group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberToRemove {
    /// By its id.
    Member(MemberId),
    /// A static member by its `group.instance.id`.
    Instance(InstanceId),
}

impl Admin {
    /// The groups of every broker, by id.
    ///
    /// # Errors
    /// `Retriable`, if a broker does not answer in time: part of a list would look like all of it.
    pub async fn list_groups(&self, filter: GroupFilter) -> Result<Vec<GroupListing>> {
        let snapshot = self.cluster.refreshed(&self.cluster.retry()).await?;
        let mut groups = Vec::new();
        for node in snapshot.brokers.keys() {
            let listed = || async { self.list_groups_of(node.0, &filter).await };
            groups.extend(self.cluster.retry().run(listed).await?);
        }
        groups.sort();
        groups.dedup_by(|a, b| a.group == b.group);
        Ok(groups)
    }

    async fn list_groups_of(&self, node: i32, filter: &GroupFilter) -> Result<Vec<GroupListing>> {
        let node = ottla_model::NodeId(node);
        let connection = self.cluster.connection(node, Purpose::General).await?;
        let request = ListGroupsRequest {
            states_filter: filter.states.iter().map(String::as_str).collect(),
            types_filter: filter.types.iter().map(String::as_str).collect(),
        };
        let answer = connection.call(&request).await?;
        let response: ListGroupsResponse<'_> = answer.read()?;
        Error::check(response.error_code, || format!("broker {node} cannot list its groups"))?;
        let listing = response.groups.iter().map(|group| GroupListing {
            group: GroupId::from(group.group_id),
            protocol_type: group.protocol_type.to_owned(),
            state: group.group_state.to_owned(),
            kind: group.group_type.to_owned(),
        });
        Ok(listing.collect())
    }

    /// What the group's coordinator knows of it, whichever protocol it speaks.
    ///
    /// # Errors
    /// `Refused` with GROUP_ID_NOT_FOUND, if there is no such group.
    pub async fn describe_group(&self, group: &str) -> Result<GroupDescription> {
        self.cluster.retry().run(|| async { self.describe_group_once(group).await }).await
    }

    /// A coordinator that has the consumer protocol is asked in it first; a group that does not
    /// speak it is absent there.
    async fn describe_group_once(&self, group: &str) -> Result<GroupDescription> {
        let connection = self.coordinator(group).await?;
        if connection.version(ApiKey::ConsumerGroupDescribe).is_ok() {
            let request = ConsumerGroupDescribeRequest {
                group_ids: vec![group],
                include_authorized_operations: false,
            };
            let answer = connection.call(&request).await?;
            let response: ConsumerGroupDescribeResponse<'_> = answer.read()?;
            match response.groups.first() {
                Some(found) if found.error_code == 0 => return Ok(consumer_group(found)),
                Some(found) if found.error_code != ErrorCode::GroupIdNotFound.number() => {
                    let what = || format!("cannot describe group `{group}`");
                    outcome(found.error_code, found.error_message, what)?;
                }
                _ => {}
            }
        }
        let request =
            DescribeGroupsRequest { groups: vec![group], include_authorized_operations: false };
        let answer = connection.call(&request).await?;
        let response: DescribeGroupsResponse<'_> = answer.read()?;
        let what = || format!("cannot describe group `{group}`");
        let found = response.groups.first().ok_or_else(|| Error::protocol(what()))?;
        outcome(found.error_code, found.error_message, what)?;
        // How a broker before KIP-1043 says that there is none.
        if found.group_state == "Dead" && found.members.is_empty() {
            return Err(Error::of(ErrorCode::GroupIdNotFound, what()));
        }
        Ok(classic_group(found))
    }

    /// Deletes groups with their committed offsets. They must have no members.
    ///
    /// # Errors
    /// For each: `Refused` with NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND; `TimedOut` if it may have
    /// been deleted.
    pub async fn delete_groups(
        &self,
        groups: impl IntoIterator<Item = impl Into<String>>,
    ) -> Outcomes<GroupId, ()> {
        let mut outcomes = Vec::new();
        for group in groups {
            let group: String = group.into();
            let deleted = self.delete_group(&group).await;
            outcomes.push((GroupId::from(group), deleted));
        }
        outcomes
    }

    /// Deletes one group with its committed offsets. It must have no members.
    ///
    /// # Errors
    /// As [`Admin::delete_groups`].
    pub async fn delete_group(&self, group: &str) -> Result<()> {
        self.cluster.retry().run_once(|| async { self.delete_group_once(group).await }).await
    }

    async fn delete_group_once(&self, group: &str) -> Result<()> {
        let connection = self.coordinator(group).await?;
        let request = DeleteGroupsRequest { groups_names: vec![group] };
        let answer = connection.call(&request).await?;
        let response: DeleteGroupsResponse<'_> = answer.read()?;
        let what = || format!("cannot delete group `{group}`");
        let deleted = response.results.first().ok_or_else(|| Error::protocol(what()))?;
        outcome(deleted.error_code, deleted.error_message, what)
    }

    /// Removes members from a group; they find out and, if they live, join again.
    ///
    /// # Errors
    /// As a whole if the coordinator does not answer in time; for each if it is no member.
    pub async fn remove_members(
        &self,
        group: &str,
        members: &[MemberToRemove],
        reason: &str,
    ) -> Result<Vec<Result<()>>> {
        let tried = || async { self.remove_members_once(group, members, reason).await };
        self.cluster.retry().run_once(tried).await
    }

    async fn remove_members_once(
        &self,
        group: &str,
        members: &[MemberToRemove],
        reason: &str,
    ) -> Result<Vec<Result<()>>> {
        let connection = self.coordinator(group).await?;
        let version = connection.version(ApiKey::LeaveGroup)?;
        let members = members.iter().map(|member| {
            let reason = (version >= 5).then_some(reason);
            match member {
                MemberToRemove::Member(id) => {
                    MemberIdentity { member_id: id, reason, group_instance_id: None }
                }
                MemberToRemove::Instance(id) => {
                    MemberIdentity { member_id: "", reason, group_instance_id: Some(id) }
                }
            }
        });
        let members = members.collect();
        let request = LeaveGroupRequest { group_id: group, member_id: "", members };
        let answer = connection.call_at(version, &request).await?;
        let response: LeaveGroupResponse<'_> = answer.read()?;
        let what = || format!("cannot remove members of group `{group}`");
        Error::check(response.error_code, what)?;
        Ok(response.members.iter().map(|member| Error::check(member.error_code, what)).collect())
    }
}

fn classic_group(from: &DescribedGroup<'_>) -> GroupDescription {
    GroupDescription {
        group: GroupId::from(from.group_id),
        state: from.group_state.to_owned(),
        protocol_type: from.protocol_type.to_owned(),
        assignor: from.protocol_data.to_owned(),
        epoch: None,
        members: from.members.iter().map(classic_member).collect(),
    }
}

/// What is no consumer's (Connect's, say) is shown without topics and partitions.
fn classic_member(from: &DescribedGroupMember<'_>) -> GroupMember {
    let subscription = Subscription::decode(from.member_metadata).unwrap_or_default();
    let assignment = Assignment::decode(from.member_assignment).unwrap_or_default();
    let partition =
        |(topic, partition): (&TopicName, _)| TopicPartition { topic: topic.clone(), partition };
    GroupMember {
        member: MemberId::from(from.member_id),
        instance: from.group_instance_id.map(InstanceId::from),
        client_id: from.client_id.to_owned(),
        host: from.client_host.to_owned(),
        topics: subscription.topics,
        assignment: assignment.partitions.iter().map(partition).collect(),
    }
}

fn consumer_group(from: &consumer::DescribedGroup<'_>) -> GroupDescription {
    GroupDescription {
        group: GroupId::from(from.group_id),
        state: from.group_state.to_owned(),
        protocol_type: "consumer".to_owned(),
        assignor: from.assignor_name.to_owned(),
        epoch: Some(from.group_epoch),
        members: from.members.iter().map(consumer_member).collect(),
    }
}

fn consumer_member(from: &consumer::Member<'_>) -> GroupMember {
    let mut assignment = Vec::new();
    for topic in &from.assignment.topic_partitions {
        let partitions = topic.partitions.iter();
        assignment
            .extend(partitions.map(|partition| TopicPartition::new(topic.topic_name, *partition)));
    }
    GroupMember {
        member: MemberId::from(from.member_id),
        instance: from.instance_id.map(InstanceId::from),
        client_id: from.client_id.to_owned(),
        host: from.client_host.to_owned(),
        topics: from.subscribed_topic_names.iter().map(|name| TopicName::from(*name)).collect(),
        assignment,
    }
}
