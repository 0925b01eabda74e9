//! JoinGroup: new members, promised ones, returning ones, and static ones that come back under a
//! new id.

use super::super::super::barrier::Phase;
use super::super::super::holds::Hold;
use super::super::super::record::{GroupMetadata, Record};
use super::super::super::roster::{Member, Parked, Pending, Supported};
use super::super::super::timers::{Deadline, Timer};
use super::super::super::turn::{Call, Turn, cut};
use super::super::super::view::{Cause, Trigger};
use crate::assign::subscription::{Assignment, Subscription};
use crate::message::admin::GroupKind;
use crate::message::classic::{Join, JoinRefused, Joined};
use crate::message::{Blob, GroupError, Reply};
use crate::probe::{self, Fault, Mark};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use ottla_model::{InstanceId, MemberId, TopicName};

impl Turn<'_> {
    /// A join of a group that exists, or that a new member may bring into being.
    pub(in super::super::super) fn join(&mut self, call: &Call<'_>, ask: &Join<'_>) {
        let is_empty = self.group.roster.is_empty() && self.group.hard.consumers().is_empty();
        if self.group.kind == GroupKind::Consumer && !is_empty {
            self.join_consumers(call, ask);
        } else if self.group.kind != GroupKind::Classic && !is_empty {
            self.refuse_join(call, GroupError::InconsistentGroupProtocol, ask.member);
        } else if ask.protocols.len() > PROTOCOLS_MAX {
            self.refuse_join(call, GroupError::InvalidRequest, ask.member);
        } else if !self.has_room(ask) {
            self.turn_away(call, ask);
        } else if !self.supports(ask) {
            self.refuse_join(call, GroupError::InconsistentGroupProtocol, ask.member);
        } else if !self.has_room_for_metadata(call, ask) {
            self.refuse_join(call, GroupError::GroupMaxSizeReached, ask.member);
        } else if self.services.parked >= self.services.config.parked_max {
            self.refuse_join(call, GroupError::NotAvailable, ask.member);
        } else if ask.member.is_empty() {
            self.join_new(call, ask);
        } else if self.group.roster.pending(ask.member).is_some() {
            self.join_promised(call, ask);
        } else if let Err(error) = self.validate_member(ask.member, ask.instance) {
            self.refuse_join(call, error, ask.member);
        } else {
            self.rejoin(call, ask);
        }
    }

    /// `group.max.size`: while members are joining, those at the barrier count, so that the last
    /// to rejoin an oversized group are the ones to go; otherwise all members do.
    fn has_room(&self, ask: &Join<'_>) -> bool {
        let bound = self.services.config.group_size_max;
        let roster = &self.group.roster;
        let known = self.place_of(ask).and_then(|id| roster.member(id));
        let has_room = match self.group.phase {
            Phase::Empty => true,
            Phase::Preparing(_) => {
                known.is_some_and(Member::is_joining) || roster.parked_joins() < bound
            }
            Phase::Completing { .. } | Phase::Stable => known.is_some() || roster.len() < bound,
        };
        let promises_id = ask.member.is_empty() && ask.instance.is_none() && ask.requires_known_id;
        has_room && !(promises_id && roster.pending_len() >= bound)
    }

    /// The member whose place this join is for: the one it names, or the one that holds the
    /// instance of a static member that comes back.
    fn place_of(&self, ask: &Join<'_>) -> Option<&MemberId> {
        let roster = &self.group.roster;
        match ask.member {
            "" => ask.instance.and_then(|instance| roster.holder(instance)),
            member => roster.id(member),
        }
    }

    fn has_room_for_metadata(&self, call: &Call<'_>, ask: &Join<'_>) -> bool {
        let protocols: usize = ask.protocols.iter().map(|p| p.name.len() + p.metadata.len()).sum();
        let sent = protocols + call.client.id.len() + ask.instance.map_or(0, str::len);
        let roster = &self.group.roster;
        let place = self.place_of(ask);
        let own = place.and_then(|id| roster.member(id).map(|member| member.bytes(id)));
        let others = roster.bytes() - own.unwrap_or_default();
        others + sent <= self.services.config.group_metadata_bytes_max
    }

    fn turn_away(&mut self, call: &Call<'_>, ask: &Join<'_>) {
        let trigger = self.trigger(Cause::TooManyMembers, ask.member);
        self.absorb(trigger);
        self.remove_member(ask.member);
        self.group.roster.break_promise(ask.member);
        self.refuse_join(call, GroupError::GroupMaxSizeReached, "");
        self.close_if_complete();
    }

    /// Whether this join's protocols go with the group's: the type is the group's and some
    /// assignor is common to all, or the group has no members to agree with.
    fn supports(&self, ask: &Join<'_>) -> bool {
        if self.group.phase.is_empty() || self.group.roster.is_empty() {
            return !ask.protocol_type.is_empty() && !ask.protocols.is_empty();
        }
        self.group.protocol_type.as_deref() == Some(ask.protocol_type)
            && self.group.roster.supports_any(&ask.protocols)
    }

    fn join_new(&mut self, call: &Call<'_>, ask: &Join<'_>) {
        let id = fresh_id(ask.instance.unwrap_or(call.client.id), &call.fresh);
        if let Some(instance) = ask.instance {
            match self.group.roster.holder(instance).cloned() {
                Some(holder) => self.replace_static(call, ask, &holder, id),
                None => self.add_member(call, ask, id, false),
            }
        } else if ask.requires_known_id {
            self.promise(call, ask, id);
        } else {
            self.add_member(call, ask, id, true);
        }
    }

    /// KIP-394: the joiner must come back with the id it gets now, so that a join whose answer is
    /// lost leaves no phantom member.
    fn promise(&mut self, call: &Call<'_>, ask: &Join<'_>, id: MemberId) {
        let mut session = Deadline::unarmed();
        let group = &self.group.id;
        let timer = || Timer::Pending(group.clone(), id.clone());
        self.services.timers.arm(&mut session, self.now.mono, ask.session_timeout, timer);
        let pending = Pending {
            client_id: Arc::from(cut(call.client.id, PREFIX_BYTES_MAX)),
            client_host: Arc::from(call.client.host),
            since: self.now.mono,
            session,
        };
        self.refuse_join(call, GroupError::MemberIdRequired, &id);
        self.group.roster.promise(id, pending);
    }

    fn join_promised(&mut self, call: &Call<'_>, ask: &Join<'_>) {
        if ask.instance.is_some() {
            // Static members are never promised an id: they have an identity of their own.
            self.refuse_join(call, GroupError::InvalidRequest, ask.member);
        } else {
            self.add_member(call, ask, MemberId::from(ask.member), false);
        }
    }

    /// Adds a member and rebalances. `stranger`: it does not know its id until it is answered.
    fn add_member(&mut self, call: &Call<'_>, ask: &Join<'_>, id: MemberId, stranger: bool) {
        if self.group.roster.is_empty() {
            self.leave_consumer_protocol();
            self.group.kind = GroupKind::Classic;
            self.group.protocol_type = Some(Arc::from(ask.protocol_type));
        }
        let mut member = Member::new(
            ask.instance.map(InstanceId::from),
            Arc::from(call.client.id),
            Arc::from(call.client.host),
            ask.session_timeout,
            ask.rebalance_timeout,
            supported(ask),
        );
        member.is_new = true;
        self.group.roster.add(id.clone(), member);
        if let Phase::Preparing(barrier) = &mut self.group.phase {
            barrier.newcomer();
        }
        self.park_join(call, &id, stranger);
        // Nobody heartbeats while its join is parked, so only this bounds how long a new member
        // that is gone can stay in a long rebalance.
        let join_timeout = self.services.config.new_member_join_timeout;
        self.arm_session(&id, |_| join_timeout);
        let trigger = self.trigger_for(Cause::Joined, &id, ask.reason);
        self.rebalance(trigger);
    }

    /// A member that is known joins again.
    fn rejoin(&mut self, call: &Call<'_>, ask: &Join<'_>) {
        let Some(member) = self.group.roster.member(ask.member) else { return };
        let same = member.matches(&ask.protocols);
        let cause = match self.group.phase {
            Phase::Preparing(_) if same => None,
            Phase::Stable if same && self.group.roster.is_leader(ask.member) => {
                Some(Cause::LeaderRejoined)
            }
            // It did not hear the answer, or a new coordinator fell back to this generation.
            Phase::Completing { .. } | Phase::Stable if same => {
                self.learn_protocols(ask);
                return self.answer_in_force(call, ask.member);
            }
            _ => Some(Cause::MetadataChanged),
        };
        let wanted = self.topics_wanted_by(ask.member);
        self.update_member(ask);
        let wants_the_same = wanted.is_some() && self.topics_wanted_by(ask.member) == wanted;
        let cause = cause.map(|cause| match cause {
            Cause::MetadataChanged if wants_the_same => Cause::OwnershipChanged,
            cause => cause,
        });
        let id = MemberId::from(ask.member);
        self.park_join(call, &id, false);
        let trigger = cause.and_then(|cause| self.trigger_for(cause, &id, ask.reason));
        self.rebalance(trigger.map(|trigger| self.blame_topic(trigger)));
    }

    /// A leader that asks for another assignment, saying nothing new itself, has most often seen
    /// that a topic changed.
    fn blame_topic(&self, trigger: Trigger) -> Trigger {
        // Within a rebalance it follows the others, and a member that is gone left its part behind.
        let asks = self.group.phase.is_stable()
            && matches!(trigger.cause, Cause::LeaderRejoined | Cause::OwnershipChanged);
        let by_leader =
            trigger.who.as_ref().is_some_and(|who| self.group.roster.is_leader(&who.member));
        match self.topic_that_changed().filter(|_| asks && by_leader) {
            Some((cause, topic)) => Trigger { cause, topic: Some(topic), ..trigger },
            None => trigger,
        }
    }

    /// Tells a member of the generation in force what it would have heard when it began.
    fn answer_in_force(&mut self, call: &Call<'_>, id: &str) {
        let Some(id) = self.group.roster.id(id).cloned() else { return };
        let tells_all = !self.group.phase.is_stable() && self.group.roster.is_leader(&id);
        let members = if tells_all { self.members_for_leader() } else { Vec::new() };
        let joined = self.joined(&id, members);
        self.hear(&id, call);
        self.reply(call.token, Reply::Join(Ok(joined)));
    }

    /// KIP-345: a static member came back without an id. It takes the place of the one that held
    /// its instance, which is fenced. A stable group takes that in without a rebalance if the
    /// assignor stays the same, the member wants the same topics, nobody waits for what its former
    /// self was to give up, and a leader finds no partition that nobody was assigned.
    fn replace_static(&mut self, call: &Call<'_>, ask: &Join<'_>, old: &MemberId, new: MemberId) {
        let leader_before = self.group.roster.leader().cloned();
        let wanted_before = self.topics_wanted_by(old);
        let owes_partitions = self.owes_partitions(old);
        self.refuse_held(old, GroupError::FencedInstanceId);
        if let Some(parked) = self.group.roster.replace(old, new.clone()) {
            if parked != Parked::No {
                probe::hit(Mark::CoordinatorFencedParked);
            }
            self.forget_parked(old, parked);
            self.refuse(parked, GroupError::FencedInstanceId, old);
        }
        // Through the roster, which counts the bytes of what a member says about itself.
        self.group.roster.update(&new, |member| {
            // The old id's timers find no member when they surface.
            member.session = Deadline::unarmed();
            member.hold = Hold::default();
            member.client_id = Arc::from(call.client.id);
            member.client_host = Arc::from(call.client.host);
        });
        self.update_member(&Join { member: &new, ..ask.clone() });
        self.hear(&new, call);
        let stays = self.group.phase.is_stable()
            && self.group.roster.elect_protocol() == self.group.protocol
            && self.topics_wanted_by(&new) == wanted_before
            && !owes_partitions
            && !(self.group.roster.is_leader(&new) && self.first_unassigned().is_some());
        if stays && self.write_replaced().is_ok() {
            probe::hit(Mark::CoordinatorReplacedStatic);
            let joined = self.rejoined(&new, ask.can_skip_assignment, leader_before);
            self.reply(call.token, Reply::Join(Ok(joined)));
            if self.group.roster.is_leader(&new) {
                self.watch_for_leader();
            }
            return;
        }
        self.park_join(call, &new, false);
        let trigger = self.trigger_for(Cause::StaticRejoined, &new, ask.reason);
        let replaced = Some(old.clone());
        self.rebalance(trigger.map(|trigger| Trigger { replaced, ..trigger }));
    }

    /// Writes the generation in force anew, with members' present ids and metadata.
    fn write_replaced(&mut self) -> Result<(), GroupError> {
        let value = self.generation_record(|_, member| {
            if probe::has(Fault::CoordinatorLosesStaticAssignment) {
                return Blob::default();
            }
            self.group.assignment_of(member)
        });
        let group = self.group.id.clone();
        let record = GroupMetadata { group, value: Some(Arc::new(value)) };
        self.decide(alloc::vec![Record::GroupMetadata(record)]).map(|_| ())
    }

    /// KIP-814: a leader that can skip assignment is told to; one that cannot is told of another
    /// leader, its former self, so that it takes the assignment as a follower does.
    fn rejoined(&self, id: &MemberId, can_skip: bool, leader_before: Option<MemberId>) -> Joined {
        if can_skip {
            let skip_assignment = self.group.roster.is_leader(id);
            let members = if skip_assignment { self.members_for_leader() } else { Vec::new() };
            return Joined { skip_assignment, ..self.joined(id, members) };
        }
        let joined = self.joined(id, Vec::new());
        let leader = leader_before.unwrap_or_else(|| joined.leader.clone());
        Joined { leader, ..joined }
    }

    /// The topics a member wants under the assignor in force; `None` where that cannot be told.
    fn topics_wanted_by(&self, id: &str) -> Option<BTreeSet<TopicName>> {
        if !self.group.is_consumer() {
            return None;
        }
        let metadata = self.group.roster.member(id)?.metadata(self.group.protocol.as_deref()?);
        Some(Subscription::decode(&metadata).ok()?.topics.into_iter().collect())
    }

    /// KIP-429: whether the generation in force took partitions from a member that said it owns
    /// them. Nobody has them until it gives them up and joins again, which hands them on. A process
    /// that takes its place owns nothing, so it would neither.
    fn owes_partitions(&self, id: &str) -> bool {
        let Some(protocol) = self.group.protocol.as_deref().filter(|_| self.group.is_consumer())
        else {
            return false;
        };
        let Some(member) = self.group.roster.member(id) else { return false };
        let said = Subscription::decode(&member.metadata(protocol)).unwrap_or_default();
        if said.owned.is_empty() {
            return false;
        }
        let given = Assignment::decode(&self.group.assignment_of(member));
        given.is_ok_and(|given| !said.owned.minus(&given.partitions).is_empty())
    }

    fn update_member(&mut self, ask: &Join<'_>) {
        let protocols = supported(ask);
        self.group.roster.update(ask.member, |member| {
            member.protocols = protocols;
            member.restored = false;
            member.session_timeout = ask.session_timeout;
            member.rebalance_timeout = ask.rebalance_timeout;
        });
    }

    /// A member known only from the log tells its other assignors.
    fn learn_protocols(&mut self, ask: &Join<'_>) {
        if self.group.roster.member(ask.member).is_some_and(|member| member.restored) {
            probe::hit(Mark::CoordinatorMatchedRestored);
            self.update_member(ask);
        }
    }

    pub(in super::super) fn park_join(&mut self, call: &Call<'_>, id: &MemberId, stranger: bool) {
        self.follow(id, call);
        let stranger = stranger.then_some(call.connection);
        if let Some(connection) = stranger {
            let entry = (self.group.id.clone(), id.clone());
            self.services.strangers.entry(connection).or_default().insert(entry);
        }
        let before = self.group.roster.park_join(id, call.token, stranger, self.now.mono);
        self.services.parked += 1;
        // An older request of the same member: whoever sent it has moved on.
        self.forget_parked(id, before);
        self.refuse(before, GroupError::RebalanceInProgress, id);
    }

    fn refuse_join(&mut self, call: &Call<'_>, error: GroupError, member: &str) {
        self.reply(call.token, Reply::Join(Err(JoinRefused::new(error, member))));
    }
}

/// The join's assignors, each name once.
fn supported(ask: &Join<'_>) -> Arc<[Supported]> {
    let mut supported: Vec<Supported> = Vec::with_capacity(ask.protocols.len());
    for protocol in &ask.protocols {
        if !supported.iter().any(|(name, _)| **name == *protocol.name) {
            supported.push((Arc::from(protocol.name), Blob::from(protocol.metadata)));
        }
    }
    Arc::from(supported)
}

/// `prefix-` and the fresh bits in the shape of a UUID, as Kafka names members.
pub(in super::super::super) fn fresh_id(prefix: &str, fresh: &[u8; 16]) -> MemberId {
    let mut id = format!("{}-", cut(prefix, PREFIX_BYTES_MAX));
    for (index, byte) in fresh.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        write!(id, "{byte:02x}").expect("a String takes whatever is written");
    }
    MemberId::from(id)
}

/// Of a client or instance id, what begins a member's id.
const PREFIX_BYTES_MAX: usize = 255;
/// Assignors of one member. Kafka's clients name one or two.
pub(in super::super) const PROTOCOLS_MAX: usize = 100;
