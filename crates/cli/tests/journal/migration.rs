//! A group goes from the classic to the consumer protocol and back (KIP-848, "Online Migration"):
//! members of both, and what the journal says of it.

use crate::classic::Classic;
use crate::consumer::Consumer;
use crate::eventually;
use crate::expect::{Begun, Why, assert_moves, assert_times, assert_why, person};
use crate::protocol::{Owners, Process, Protocol, owners, settle};
use crate::stage::Stage;
use ottla_client::admin::JournalEntry;
use std::collections::BTreeSet;

/// The first member of the one protocol and the last of it are what converts the group.
#[test]
fn a_group_that_migrates_tells_why_and_still_does_after_a_kill() {
    let mut stage = Stage::new();
    let mut group = Mixed::open(&stage);
    let alone = group.owners();

    let begun = Begun::now();
    group.new.enter(&stage, Process::new(&stage, "new", &group.topics));
    group.settle(&stage);
    let joined = group.of_new("Joined");
    let upgraded = Why { cause: "Upgraded", ..Why::default() };
    let together = group.owners();
    let entry = group.last(&stage);
    assert_why(&entry, &[upgraded, joined]);
    assert_moves(&entry, &alone, &together);
    assert_times(&entry, &begun, &group.present());

    let (begun, left) = (Begun::now(), group.of_new("Left"));
    group.new.leave(0);
    settle(&stage, &mut group.old, entry.generation.0);
    let downgraded = Why { cause: "Downgraded", ..Why::default() };
    let alone_again = group.owners();
    let entry = group.last(&stage);
    assert_why(&entry, &[left, downgraded]);
    // Its leader shares out what the classic members had: the one that went speaks another
    // protocol, so what it had was nobody's.
    assert_eq!(alone_again, alone);
    assert_times(&entry, &begun, &group.present());

    let before = stage.entries(NAME);
    stage.kill_and_restart();
    assert_eq!(stage.entries(NAME)[..before.len()], before);
}

/// One member of each protocol, in one group.
struct Mixed {
    old: Classic,
    new: Consumer,
    topics: [String; 1],
}

impl Mixed {
    /// A classic group of one.
    fn open(stage: &Stage) -> Self {
        let topics = [format!("{NAME}.t")];
        stage.create_topic(&topics[0], 4);
        let mut old = Classic::new(NAME);
        old.enter(stage, Process::new(stage, "old", &topics));
        settle(stage, &mut old, 0);
        Self { old, new: Consumer::new(NAME), topics }
    }

    /// Everyone does what its protocol asks in a group of both, until that is stable.
    fn settle(&mut self, stage: &Stage) {
        eventually("the group of both is stable", || {
            self.old.step_among_consumers();
            self.new.step(stage);
            let journal = stage.journal(NAME);
            let is_told = |member: &Process| member.generation == journal.generation.0;
            let (old, new) = (self.old.cast(), self.new.cast());
            journal.state == "Stable" && old.iter().chain(new.iter()).all(is_told)
        });
    }

    fn owners(&mut self) -> Owners {
        let mut all = owners(&mut self.old);
        for (slot, owner) in owners(&mut self.new) {
            let other = all.insert(slot, owner);
            assert_eq!(other, None, "it has two owners");
        }
        all
    }

    fn present(&mut self) -> BTreeSet<String> {
        let all = self.old.cast().iter().chain(self.new.cast().iter());
        all.map(|member| member.id.clone()).collect()
    }

    fn of_new(&mut self, cause: &'static str) -> Why {
        Why { cause, who: Some(person::<Consumer>(&self.new.cast()[0])), ..Why::default() }
    }

    fn last(&self, stage: &Stage) -> JournalEntry {
        stage.entries(NAME).pop().expect("an entry")
    }
}

const NAME: &str = "migrating";
