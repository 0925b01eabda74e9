//! How many connections there are, in all and per peer address.

use ottla_model::ConnectionId;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts connections and refuses what is above the bounds.
#[derive(Debug)]
pub(crate) struct Admission {
    shared: Arc<Mutex<Counts>>,
    connections_max: usize,
    per_address_max: usize,
}

/// The right to one connection; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Pass {
    /// The connection's id.
    pub(super) id: ConnectionId,
    address: IpAddr,
    shared: Arc<Mutex<Counts>>,
}

/// Which bound a connection met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// `max.connections`.
    Total(usize),
    /// `max.connections.per.ip`.
    PerAddress(usize),
}

#[derive(Debug, Default)]
struct Counts {
    ids: u64,
    total: usize,
    per_address: HashMap<IpAddr, usize>,
}

impl Admission {
    /// Bounds as configured.
    pub(crate) fn new(connections_max: usize, per_address_max: usize) -> Self {
        Self { shared: Arc::default(), connections_max, per_address_max }
    }

    /// A pass for one more connection from `address`.
    pub(super) fn admit(&self, address: IpAddr) -> Result<Pass, Refusal> {
        let mut counts = lock(&self.shared);
        if counts.total >= self.connections_max {
            return Err(Refusal::Total(self.connections_max));
        }
        let address = address.to_canonical();
        let here = counts.per_address.entry(address).or_default();
        if *here >= self.per_address_max {
            return Err(Refusal::PerAddress(self.per_address_max));
        }
        *here += 1;
        counts.total += 1;
        counts.ids += 1;
        Ok(Pass { id: ConnectionId(counts.ids), address, shared: Arc::clone(&self.shared) })
    }

    /// Connections there are now.
    pub(crate) fn count(&self) -> usize {
        lock(&self.shared).total
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut counts = lock(&self.shared);
        counts.total -= 1;
        if let Some(here) = counts.per_address.get_mut(&self.address) {
            *here -= 1;
            if *here == 0 {
                counts.per_address.remove(&self.address);
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Total(max) => write!(f, "max.connections = {max} is reached"),
            Self::PerAddress(max) => write!(f, "max.connections.per.ip = {max} is reached"),
        }
    }
}

/// Counters are whole after every statement, so a panic elsewhere does not spoil them.
fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_and_a_dropped_pass_makes_room() {
        let admission = Admission::new(3, 2);
        let (here, there) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let first = admission.admit(here).expect("room");
        let _second = admission.admit(here).expect("room");
        assert_eq!(admission.admit(here).err(), Some(Refusal::PerAddress(2)));
        let _third = admission.admit(there).expect("room");
        assert_eq!(admission.admit(there).err(), Some(Refusal::Total(3)));
        drop(first);
        assert!(admission.admit(here).is_ok());
    }

    /// An IPv4 peer on a dual-stack listener is one address, not two.
    #[test]
    fn mapped_addresses_count_as_their_original() {
        let admission = Admission::new(9, 1);
        let _pass = admission.admit(IpAddr::from([10, 0, 0, 1])).expect("room");
        let mapped = IpAddr::from([0, 0, 0, 0, 0, 0xffff, 0x0a00, 1]);
        assert_eq!(admission.admit(mapped).err(), Some(Refusal::PerAddress(1)));
    }
}
