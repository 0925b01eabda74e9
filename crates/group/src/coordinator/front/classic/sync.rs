//! SyncGroup: the leader hands in the assignment, everyone picks up its part.

use super::super::super::barrier::Phase;
use super::super::super::map::{Map, seeded};
use super::super::super::record::{GroupMetadata, Record};
use super::super::super::roster::{Member, Parked};
use super::super::super::turn::{Call, Turn};
use super::super::super::view::Cause;
use crate::message::admin::GroupKind;
use crate::message::classic::{Sync, Synced};
use crate::message::{Blob, GroupError, Reply};
use crate::probe::{self, Fault};
use alloc::sync::Arc;

impl Turn<'_> {
    /// A sync of a group that exists.
    pub(in super::super::super) fn sync(&mut self, call: &Call<'_>, ask: &Sync<'_>) {
        if self.group.kind == GroupKind::Consumer && !self.group.is_empty() {
            return self.sync_of_classic(call, ask);
        }
        if let Err(error) = self.validate_sync(ask) {
            self.reply(call.token, Reply::Sync(Err(error)));
            return;
        }
        match self.group.phase {
            Phase::Completing { .. } if !self.may_park(ask.member) => {
                self.reply(call.token, Reply::Sync(Err(GroupError::NotAvailable)));
            }
            Phase::Completing { closed } => {
                self.park_sync(call, ask);
                if self.group.roster.is_leader(ask.member) {
                    self.assign(ask, closed);
                }
            }
            _ => self.pick_up(call, ask.member),
        }
    }

    fn validate_sync(&self, ask: &Sync<'_>) -> Result<(), GroupError> {
        if self.group.phase.is_empty() || self.group.kind != GroupKind::Classic {
            return Err(GroupError::UnknownMemberId);
        }
        self.validate_member(ask.member, ask.instance)?;
        let takes_any = probe::has(Fault::CoordinatorTakesStaleAssignments);
        if ask.generation != self.group.generation_of(ask.member) && !takes_any {
            return Err(GroupError::IllegalGeneration);
        }
        if differs(ask.protocol_type, self.group.protocol_type.as_deref())
            || differs(ask.protocol, self.group.protocol.as_deref())
        {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        if matches!(self.group.phase, Phase::Preparing(_)) {
            return Err(GroupError::RebalanceInProgress);
        }
        Ok(())
    }

    /// Whether there is a place for this member's sync: its own last one's, or a free one. The
    /// leader's waits for nobody.
    fn may_park(&self, id: &str) -> bool {
        let roster = &self.group.roster;
        roster.is_leader(id)
            || roster.member(id).is_some_and(Member::is_parked)
            || self.services.parked < self.services.config.parked_max
    }

    fn park_sync(&mut self, call: &Call<'_>, ask: &Sync<'_>) {
        self.note_synced(ask.member);
        self.follow(ask.member, call);
        let before = self.group.roster.park_sync(ask.member, call.token);
        self.services.parked += 1;
        self.forget_parked(ask.member, before);
        self.refuse(before, GroupError::RebalanceInProgress, ask.member);
    }

    /// The group is stable: a member's part stands in the last record.
    fn pick_up(&mut self, call: &Call<'_>, id: &str) {
        self.note_synced(id);
        if self.group.roster.owed_syncs() == 0 {
            self.group.barrier.disarm();
        }
        self.hear(id, call);
        let synced = self.synced(id);
        self.reply(call.token, Reply::Sync(Ok(synced)));
    }

    /// The leader's assignment makes the generation hard and the group stable.
    fn assign(&mut self, ask: &Sync<'_>, closed: ottla_model::Instant) {
        let mut parts: Map<&str, &[u8]> = seeded(self.services.config.hash_seed);
        parts.extend(ask.assignments.iter().copied());
        let value = Arc::new(self.generation_record(|id, _| {
            parts.get(&**id).map_or_else(Blob::default, |part| Blob::from(*part))
        }));
        let before = self.group.hard.metadata().cloned();
        let group = self.group.id.clone();
        let record = GroupMetadata { group, value: Some(value.clone()) };
        if let Err(error) = self.decide(alloc::vec![Record::GroupMetadata(record)]) {
            self.send_syncs_back(error);
            let trigger = self.trigger(Cause::AssignmentTooLarge, ask.member);
            self.prepare(trigger);
            return;
        }
        self.group.phase = Phase::Stable;
        if self.group.roster.owed_syncs() == 0 {
            self.group.barrier.disarm();
        }
        for (index, stored) in value.members.iter().enumerate() {
            if let Some(member) = self.group.roster.member_mut(&stored.member) {
                member.stored = Some(index as u32);
            }
            if let Parked::Sync(token) = self.unpark(&stored.member) {
                if probe::has(Fault::CoordinatorForgetsFollowers) && *stored.member != *ask.member {
                    continue;
                }
                let synced = self.synced(&stored.member);
                self.reply(token, Reply::Sync(Ok(synced)));
                self.renew_session(&stored.member);
            }
        }
        let now = self.now.mono;
        let roster = &self.group.roster;
        self.group.journal.complete(closed, now, roster, before.as_deref(), &value);
        self.write_journal();
    }

    fn synced(&self, id: &str) -> Synced {
        let member = self.group.roster.member(id);
        Synced {
            protocol_type: self.group.protocol_type.clone().unwrap_or_default(),
            protocol: self.group.protocol.clone().unwrap_or_default(),
            assignment: member
                .map_or_else(Blob::default, |member| self.group.assignment_of(member)),
        }
    }

    fn note_synced(&mut self, id: &str) {
        self.group.roster.owe_sync(id, false);
        if let Some(member) = self.group.roster.member_mut(id) {
            member.synced_at = Some(self.now.mono);
        }
    }
}

/// Whether a claim, where one is made, differs from the group's, where it has one.
fn differs(claimed: Option<&str>, actual: Option<&str>) -> bool {
    matches!((claimed, actual), (Some(claimed), Some(actual)) if claimed != actual)
}
