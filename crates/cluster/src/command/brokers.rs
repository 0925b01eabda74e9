//! Make a broker known to clients, for as long as its session lives.

use super::{Command, Means, Plan, Refusal, RefusalKind};
use crate::image::Image;
use crate::record::{BrokerRecord, broker_key, put_for};
use crate::store::SessionId;
use ottla_model::NodeId;

/// Register a broker, or change what it is known by.
#[derive(Clone, Debug)]
pub struct Register {
    /// Its id.
    pub node: NodeId,
    /// Its session.
    pub session: SessionId,
    /// Where it is reached and where it stands.
    pub record: BrokerRecord,
}

impl Command for Register {
    /// Refused where the id cannot be a broker's, or no address is advertised.
    type Reply = Result<(), Refusal>;

    fn decide(&mut self, _: &Image, _: &mut Means<'_>) -> Plan<Self::Reply> {
        let refuse = |why: &str| Plan::answer(Err(Refusal::new(RefusalKind::InvalidRequest, why)));
        if self.node.0 < 0 {
            return refuse("a broker's id is not negative");
        }
        if self.record.listeners.is_empty() {
            return refuse("a broker advertises at least one address");
        }
        Plan::write(vec![put_for(broker_key(self.node), &self.record, Some(self.session))], Ok(()))
    }
}
