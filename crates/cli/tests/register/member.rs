//! A consumer of the register protocol without a mind of its own: it says what the test tells it
//! to, and remembers what it was told.

use crate::wire::Wire;
use ottla_wire::generated::*;

/// One consumer. It may speak on any connection.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) group: String,
    pub(crate) topics: Vec<String>,
    pub(crate) session_timeout: i32,
    pub(crate) frequency: i32,
    pub(crate) threshold: i32,
    pub(crate) id: String,
    pub(crate) generation: i32,
    /// Topic and partition.
    pub(crate) owned: Vec<(String, i32)>,
}

/// What a heartbeat was answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) error: i16,
    pub(crate) generation: i32,
    pub(crate) group: String,
    pub(crate) id: String,
}

impl Member {
    /// A new consumer with the timeouts of the document's example.
    pub(crate) fn new(group: &str, topics: &[&str]) -> Self {
        Self {
            group: group.into(),
            topics: topics.iter().map(|topic| (*topic).into()).collect(),
            session_timeout: 1000,
            frequency: 3,
            threshold: 3,
            id: String::new(),
            generation: -1,
            owned: Vec::new(),
        }
    }

    /// The same, with a limit so long that no loaded machine is taken for a death.
    pub(crate) fn patient(group: &str, topics: &[&str]) -> Self {
        Self { session_timeout: 60_000, ..Self::new(group, topics) }
    }

    /// Registers and waits for the response; its error.
    pub(crate) fn register(&mut self, wire: &mut Wire) -> i16 {
        self.send_registration(wire);
        self.take_registration(wire)
    }

    /// Sends a registration.
    pub(crate) fn send_registration(&self, wire: &mut Wire) {
        let topics = self.topics.iter().map(String::as_str).collect();
        wire.send(
            0,
            &RegisterConsumerRequest {
                group_id: &self.group,
                consumer_id: &self.id,
                consumer_host: "consumer.example",
                session_timeout: self.session_timeout,
                heartbeat_frequency: self.frequency,
                failed_heartbeat_threshold: self.threshold,
                topics,
            },
        );
    }

    /// Takes the response to a registration; its error.
    pub(crate) fn take_registration(&mut self, wire: &mut Wire) -> i16 {
        let taken = wire.receive::<RegisterConsumerRequest<'_>, _>(0, |response| {
            assert_eq!(response.group_id, self.group, "it echoes the group");
            if response.error_code != 0 {
                assert_eq!(response.consumer_id, self.id, "it echoes the id");
                assert_eq!(response.group_generation_id, -1);
                return response.error_code;
            }
            response.consumer_id.clone_into(&mut self.id);
            self.generation = response.group_generation_id;
            let each = response.partitions_to_own.iter().flat_map(|topic| {
                topic.partitions.iter().map(|partition| (topic.topic.to_owned(), *partition))
            });
            self.owned = each.collect();
            0
        });
        taken.expect("an answer, not a closed connection")
    }

    /// Beats and waits for the response.
    pub(crate) fn beat(&self, wire: &mut Wire) -> Beat {
        self.send_beat(wire);
        self.take_beat(wire).expect("an answer, not a closed connection")
    }

    /// Sends a heartbeat.
    pub(crate) fn send_beat(&self, wire: &mut Wire) {
        wire.send(
            0,
            &RegisterHeartbeatRequest {
                group_id: &self.group,
                group_generation_id: self.generation,
                consumer_id: &self.id,
            },
        );
    }

    /// Takes the response to a heartbeat; `None` where the broker closed instead.
    pub(crate) fn take_beat(&self, wire: &mut Wire) -> Option<Beat> {
        wire.receive::<RegisterHeartbeatRequest<'_>, _>(0, |response| Beat {
            error: response.error_code,
            generation: response.group_generation_id,
            group: response.group_id.into(),
            id: response.consumer_id.into(),
        })
    }

    /// Leaves by Kafka's LeaveGroup; its error.
    pub(crate) fn leave(&self, wire: &mut Wire) -> i16 {
        let request =
            LeaveGroupRequest { group_id: &self.group, member_id: &self.id, ..Default::default() };
        wire.ask(2, &request, |response| response.error_code)
    }
}

/// Registers all of them, each on its connection, at the same time: a group moves together.
pub(crate) fn register_all(members: &mut [Member], wires: &mut [Wire]) {
    for (member, wire) in members.iter().zip(&mut *wires) {
        member.send_registration(wire);
    }
    for (member, wire) in members.iter_mut().zip(wires) {
        assert_eq!(member.take_registration(wire), 0);
    }
}
