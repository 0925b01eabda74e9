//! Rebalances that hang: while one does, the log says whom its group waits for, and since when. A
//! rebalance that is over says so itself (`journal`); one that never ends would say nothing.

use super::Shards;
use super::journal::{named, shown};
use crate::clock;
use ottla_group::coordinator::{Blocker, Waiting};
use ottla_model::{GroupId, Instant};
use std::collections::HashMap;
use std::time::Duration;

/// What was said of each group that waits.
#[derive(Default)]
struct Hangs(HashMap<GroupId, Hang>);

struct Hang {
    /// Since when it waits.
    since: Instant,
    /// Once it has waited so long, it is mentioned again.
    next: Duration,
}

impl Shards {
    /// Looks for rebalances that hang and tells operators, until the broker stops.
    pub(crate) async fn watch_hangs(&self) {
        let mut hangs = Hangs::default();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = clock::mono();
            let before = now - HANGS_AFTER;
            let cells = self.cells.load_full();
            let waiting =
                cells.iter().flat_map(|cell| cell.observe(|s| (s.waiting(before), None)).0);
            hangs.due(waiting.collect(), now).iter().for_each(|waiting| tell(waiting, now));
        }
    }
}

impl Hangs {
    /// Of all groups that wait, those that are to be mentioned now. What no longer waits is
    /// forgotten.
    fn due(&mut self, mut waiting: Vec<Waiting>, now: Instant) -> Vec<Waiting> {
        let mut before = std::mem::take(&mut self.0);
        waiting.retain(|it| {
            let Some(longest) = it.blocking.first() else { return false };
            let known = before.remove(&it.group).filter(|hang| hang.since == longest.since);
            let mut hang = known.unwrap_or(Hang { since: longest.since, next: HANGS_AFTER });
            let waited = now.since(hang.since);
            let is_due = waited >= hang.next;
            while hang.next <= waited {
                hang.next *= 2;
            }
            self.0.insert(it.group.clone(), hang);
            is_due
        });
        waiting
    }
}

fn tell(waiting: &Waiting, now: Instant) {
    let shown_first = waiting.blocking.iter().take(NAMED_MAX).map(|it| blocker(it, now));
    let mut blocking = shown_first.collect::<Vec<_>>().join(", ");
    let more = waiting.blocking.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        blocking += &format!(" and {more} more");
    }
    tracing::warn!(
        group = %shown(&waiting.group),
        state = waiting.state.name(),
        waits_for = %blocking,
        "a rebalance hangs"
    );
}

fn blocker(blocker: &Blocker, now: Instant) -> String {
    let waited = now.since(blocker.since).as_secs();
    format!("{} (owes {} for {waited} s)", named(&blocker.who), blocker.owes.name())
}

/// A rebalance that takes longer is worth a word, and another one each time that has doubled.
const HANGS_AFTER: Duration = Duration::from_secs(10);
/// How often it is looked for them.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Members that are named in a line.
const NAMED_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use ottla_group::coordinator::{BlockedOn, Who};
    use ottla_group::message::admin::GroupState;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn waiting(group: &str, since: u64) -> Waiting {
        let who = Who {
            member: "m".into(),
            instance: None,
            client_id: "c".into(),
            client_host: "h".into(),
        };
        let blocker = Blocker { who, owes: BlockedOn::Join, since: at(since) };
        Waiting {
            group: group.into(),
            state: GroupState::PreparingRebalance,
            blocking: vec![blocker],
        }
    }

    /// The pauses double; a wait that begins anew is mentioned anew.
    #[test]
    fn a_hang_is_mentioned_with_doubling_pauses() {
        let mut hangs = Hangs::default();
        let mut told = Vec::new();
        for second in (0..=200).step_by(5) {
            if !hangs.due(vec![waiting("g", 0)], at(second)).is_empty() {
                told.push(second);
            }
        }
        assert_eq!(told, [10, 20, 40, 80, 160]);
        assert!(hangs.due(vec![waiting("g", 200)], at(205)).is_empty());
        assert_eq!(hangs.due(vec![waiting("g", 200), waiting("h", 0)], at(210)).len(), 2);
        assert!(hangs.due(Vec::new(), at(215)).is_empty());
        assert!(hangs.0.is_empty(), "what no longer waits is forgotten");
    }
}
