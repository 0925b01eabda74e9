//! Epochs counted anew: two states that differ but in how many epochs went before are one.

use ottla_group::assign::subscription::{Subscription, VERSION_MAX};
use ottla_group::coordinator::record::{
    ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue,
    GroupMetadataValue, Record,
};
use ottla_group::member::Request;
use ottla_group::message::consumer::Standing;
use ottla_group::message::{Blob, Reply};
use ottla_model::Generation;
use std::sync::Arc;

/// The same record. Since when a partition is held changes nothing but commits.
pub fn record(record: &mut Record, by: i32) {
    match record {
        Record::GroupMetadata(it) => {
            let Some(value) = &mut it.value else { return };
            let mut fresh = GroupMetadataValue::clone(value);
            epoch(&mut fresh.generation, by);
            for member in &mut fresh.members {
                member.subscription = words(&member.subscription, by);
            }
            *value = Arc::new(fresh);
        }
        Record::ConsumerGroupMetadata(it) => {
            it.value.iter_mut().for_each(|value| epoch(&mut value.epoch, by));
        }
        Record::ConsumerGroupTargetAssignmentMetadata(it) => {
            it.value.iter_mut().for_each(|value| epoch(&mut value.epoch, by));
        }
        Record::ConsumerGroupMemberMetadata(it) => {
            let Some(value) = it.value.as_mut().filter(|it| it.classic.is_some()) else { return };
            let mut fresh = ConsumerGroupMemberMetadataValue::clone(value);
            for (_, said) in fresh.classic.iter_mut().flat_map(|classic| &mut classic.protocols) {
                *said = words(said, by);
            }
            *value = Arc::new(fresh);
        }
        Record::ConsumerGroupCurrentMemberAssignment(it) => {
            let Some(value) = &mut it.value else { return };
            let mut fresh = ConsumerGroupCurrentMemberAssignmentValue::clone(value);
            epoch(&mut fresh.epoch, by);
            epoch(&mut fresh.previous_epoch, by);
            for held in fresh.assigned.iter_mut().chain(&mut fresh.revoking) {
                held.epochs = None;
            }
            *value = Arc::new(fresh);
        }
        _ => {}
    }
}

/// The same answer.
pub fn reply(reply: Reply, by: i32) -> Reply {
    match reply {
        Reply::ConsumerHeartbeat(Ok(mut beat)) => {
            if let Standing::Member(it) = &mut beat.standing {
                epoch(it, by);
            }
            Reply::ConsumerHeartbeat(Ok(beat))
        }
        Reply::Join(Ok(mut joined)) => {
            epoch(&mut joined.generation, by);
            for member in &mut joined.members {
                member.metadata = words(&member.metadata, by);
            }
            Reply::Join(Ok(joined))
        }
        other => other,
    }
}

/// The same request.
pub fn request(request: &mut Request, by: i32) {
    match request {
        Request::Beat(beat) => {
            epoch(&mut beat.sender.generation, by);
            if let Standing::Member(it) = &mut beat.standing {
                epoch(it, by);
            }
        }
        Request::Join(join) => {
            epoch(&mut join.sender.generation, by);
            for (_, said) in &mut join.protocols {
                *said = words(said, by).to_vec();
            }
        }
        Request::Sync(sync) => epoch(&mut sync.sender.generation, by),
        Request::Heartbeat(sender) | Request::Leave(sender, _) => {
            epoch(&mut sender.generation, by);
        }
        _ => {}
    }
}

/// What a classic member says of itself, with the generation of its last assignment.
fn words(bytes: &[u8], by: i32) -> Blob {
    let mut said = Subscription::decode(bytes).expect("members here make sense");
    said.generation.iter_mut().for_each(|generation| epoch(generation, by));
    if let Some(user_data) = &mut said.user_data {
        let bytes = user_data.as_slice().try_into().expect("a generation alone");
        let mut generation = Generation(i32::from_be_bytes(bytes));
        epoch(&mut generation, by);
        *user_data = generation.0.to_be_bytes().to_vec();
    }
    Blob::from(said.encode(VERSION_MAX))
}

fn epoch(epoch: &mut Generation, by: i32) {
    if epoch.0 > 0 {
        epoch.0 += by;
    }
}
