//! JoinGroup of a group of the consumer protocol that has members: it joins the group, or takes
//! the member one step further. The answer does not wait for anybody.

use crate::assign::subscription::Subscription;
use crate::coordinator::front::classic::{PROTOCOLS_MAX, fresh_id};
use crate::coordinator::front::consumer::place::Place;
use crate::coordinator::group::CONSUMER;
use crate::coordinator::record::{ClassicMember, ConsumerGroupMemberMetadataValue};
use crate::coordinator::turn::{Call, Turn};
use crate::coordinator::view::BlockedOn;
use crate::message::classic::{Join, JoinRefused, Joined, Protocol};
use crate::message::consumer::Standing;
use crate::message::{Blob, GroupError, Reply};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{Generation, InstanceId, MemberId, TopicName};

impl Turn<'_> {
    /// A join of a group of the consumer protocol that has members.
    pub(in crate::coordinator::front) fn join_consumers(
        &mut self,
        call: &Call<'_>,
        ask: &Join<'_>,
    ) {
        let outcome = match self.take_in(call, ask) {
            // The group became a classic one, in which a join waits for the others.
            Ok(None) => return,
            Ok(Some(joined)) => Ok(joined),
            Err(GroupError::MemberIdRequired) => {
                let id = fresh_id(call.client.id, &call.fresh);
                Err(JoinRefused::new(GroupError::MemberIdRequired, &id))
            }
            Err(error) => Err(JoinRefused::new(error, ask.member)),
        };
        self.reply(call.token, Reply::Join(outcome));
    }

    /// `None`: the join is parked.
    fn take_in(&mut self, call: &Call<'_>, ask: &Join<'_>) -> Result<Option<Joined>, GroupError> {
        let (id, place) = self.place_of_classic(call, ask)?;
        let (first, subscription) = self.understand(ask, &id)?;
        if ask.member.is_empty() && ask.instance.is_none() && ask.requires_known_id {
            return Err(GroupError::MemberIdRequired);
        }
        let owned = self.existing(&subscription.owned)?;
        let says = self.described_classic(call, ask, &id, &place, subscription);
        let ends_consumers = self.replaces_last_consumer(&place);
        let subscribed = self.write_down(says, &id, &place, None)?;
        let index = self.renew_target(subscribed.index);
        self.advance(&id, Standing::Joining, Some(&owned), subscribed.is_changed, index);
        self.hear_consumer(&id, call);
        self.owe(&id, BlockedOn::Sync);
        if ends_consumers && self.downgrade(&[], Vec::new()) {
            return Ok(self.joined_after_downgrade(call, &id));
        }
        let member = self.group.hard.consumers().member(&id);
        let epoch = member.map_or(Generation(0), |(_, member)| member.position().epoch);
        Ok(Some(Joined {
            generation: epoch,
            protocol_type: Arc::from(CONSUMER),
            protocol: Arc::from(first),
            // Nobody is told that it leads: there is nothing to compute.
            leader: MemberId::from(""),
            member: id,
            skip_assignment: false,
            members: Vec::new(),
        }))
    }

    /// Whose join it is.
    fn place_of_classic(
        &self,
        call: &Call<'_>,
        ask: &Join<'_>,
    ) -> Result<(MemberId, Place), GroupError> {
        let consumers = self.group.hard.consumers();
        let fresh = || fresh_id(ask.instance.unwrap_or(call.client.id), &call.fresh);
        let holder = ask.instance.and_then(|instance| consumers.holder(instance));
        let (id, place) = match (ask.member, holder) {
            ("", Some(holder)) => (fresh(), Place::Replaces(holder.clone())),
            ("", None) => (fresh(), Place::New),
            (member, _) => {
                if ask.instance.is_some() {
                    self.validate_consumer(member, ask.instance)?;
                }
                match consumers.member(member) {
                    Some((id, member)) if member.is_classic() => (id.clone(), Place::Known),
                    // An id belongs to a process, which speaks one protocol.
                    Some(_) => return Err(GroupError::UnknownMemberId),
                    None => (MemberId::from(member), Place::New),
                }
            }
        };
        let is_full = consumers.len() >= self.services.config.consumer_group_size_max;
        match matches!(place, Place::New) && is_full {
            true => Err(GroupError::GroupMaxSizeReached),
            false => Ok((id, place)),
        }
    }

    /// The assignor the member is told, its most wanted one, and what it says in its terms. Some
    /// assignor must be common to all classic members, so that they can be a classic group again.
    fn understand<'a>(
        &self,
        ask: &Join<'a>,
        id: &MemberId,
    ) -> Result<(&'a str, Subscription), GroupError> {
        let consumers = self.group.hard.consumers();
        let own = consumers.member(id).and_then(|(_, member)| member.says().classic.as_ref());
        let others = consumers.classics() - usize::from(own.is_some());
        let is_common = |protocol: &Protocol<'_>| {
            let is_own = own.is_some_and(|own| own.supports(protocol.name));
            consumers.support_of(protocol.name) - usize::from(is_own) == others
        };
        let is_bound = ask.protocols.len() <= PROTOCOLS_MAX;
        if !is_bound {
            return Err(GroupError::InvalidRequest);
        }
        let fits = ask.protocol_type == CONSUMER && ask.protocols.iter().any(is_common);
        let first = ask.protocols.first().filter(|_| fits);
        let first = first.ok_or(GroupError::InconsistentGroupProtocol)?;
        let subscription = Subscription::decode(first.metadata);
        let subscription = subscription.map_err(|_| GroupError::InconsistentGroupProtocol)?;
        Ok((first.name, subscription))
    }

    fn described_classic(
        &self,
        call: &Call<'_>,
        ask: &Join<'_>,
        id: &MemberId,
        place: &Place,
        subscription: Subscription,
    ) -> ConsumerGroupMemberMetadataValue {
        let before = self.group.hard.consumers().member(place.id_before(id));
        let before = before.map(|(_, member)| member.says());
        let (instance, rack) = match before {
            Some(before) => (before.instance.clone(), before.rack.clone()),
            None => (None, None),
        };
        let topics: BTreeSet<TopicName> = subscription.topics.into_iter().collect();
        ConsumerGroupMemberMetadataValue {
            instance: ask.instance.map(InstanceId::from).or(instance),
            rack: subscription.rack.map(Arc::from).or(rack),
            client_id: Arc::from(call.client.id),
            client_host: Arc::from(call.client.host),
            topics: topics.into_iter().collect(),
            regex: None,
            rebalance_timeout: Some(ask.rebalance_timeout),
            assignor: before.and_then(|before| before.assignor.clone()),
            classic: Some(ClassicMember {
                session_timeout: ask.session_timeout,
                protocols: protocols(ask),
            }),
        }
    }
}

/// The join's assignors, each name once.
fn protocols(ask: &Join<'_>) -> Vec<(Arc<str>, Blob)> {
    let mut protocols: Vec<(Arc<str>, Blob)> = Vec::with_capacity(ask.protocols.len());
    for protocol in &ask.protocols {
        if !protocols.iter().any(|(name, _)| **name == *protocol.name) {
            protocols.push((Arc::from(protocol.name), Blob::from(protocol.metadata)));
        }
    }
    protocols
}
