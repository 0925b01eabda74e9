//! The journal's notes: what a driver keeps of it beside the groups' records, and takes back.
//!
//! An entry becomes a note once its group's record is appended, and carries that record's offset;
//! it is written after it, so a crash may leave a record without its entry, and a log that was cut
//! an entry without its record. A load puts both right ([`Shard::replay_notes`]).

use super::group::Group;
use super::output::Index;
use super::shard::{RecordAt, Shard};
use super::turn::Turn;
use super::view::{JournalEntry, Note, Noted};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use ottla_model::{Generation, GroupId, Offset, Timestamp};

/// Notes on their way out.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Decided, not appended yet: of which group, and which generation or, with none, its end.
    awaiting: VecDeque<(Index, GroupId, Option<Generation>)>,
    ready: VecDeque<Note>,
    /// Bytes of all groups' entries.
    pub(super) bytes: usize,
}

impl Notes {
    /// Forgets all there is.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Forgets what was decided up to `index`: whoever drives this shard keeps no notes.
    pub(super) fn forget(&mut self, index: Index) {
        while self.awaiting.front().is_some_and(|(at, ..)| *at <= index) {
            self.awaiting.pop_front();
        }
    }
}

impl Turn<'_> {
    /// The record of the group's last generation was decided: so is its entry.
    pub(super) fn write_journal(&mut self) {
        let (config, notes) = (&self.services.config, &mut self.services.notes);
        let Group { id, journal, marks, .. } = &mut *self.group;
        let before = journal.bytes();
        let room = config.journal_bytes_max.saturating_sub(notes.bytes - before);
        let written = journal.written(config.journal_entries_max, room);
        notes.bytes = notes.bytes - before + journal.bytes();
        let index = marks.membership;
        notes.awaiting.extend(written.into_iter().map(|it| (index, id.clone(), Some(it))));
    }

    /// An entry that was written has become another one.
    pub(super) fn rewrite_journal(&mut self, generation: Generation) {
        // One whose record is not appended yet is noted then, as it is then.
        if let Some(entry) = self.group.journal.entry(generation) {
            let note = Note { group: self.group.id.clone(), what: Noted::Entry(entry.clone()) };
            self.services.notes.ready.push_back(note);
        }
    }

    /// The group's last record is gone, and with it its history.
    pub(super) fn end_journal(&mut self, index: Index) {
        let journal = core::mem::take(&mut self.group.journal);
        let notes = &mut self.services.notes;
        notes.bytes -= journal.bytes();
        notes.awaiting.push_back((index, self.group.id.clone(), None));
    }
}

impl Shard {
    /// Decision `index` was appended, its first record at `base`. Call it before
    /// [`handle_durable`](Self::handle_durable) for the same one, if notes are kept.
    pub fn handle_appended(&mut self, index: Index, base: Offset) {
        while self.services.notes.awaiting.front().is_some_and(|(at, ..)| *at <= index) {
            let Some((_, group, what)) = self.services.notes.awaiting.pop_front() else { return };
            let what = match what {
                None => Some(Noted::Ended),
                Some(generation) => self
                    .groups
                    .get_mut(&group)
                    .and_then(|found| found.journal.recorded(generation, base))
                    .map(|entry| Noted::Entry(entry.clone())),
            };
            self.services.notes.ready.extend(what.map(|what| Note { group, what }));
        }
    }

    /// The next note to keep, in order. Poll until `None` after appends.
    pub fn poll_note(&mut self) -> Option<Note> {
        self.services.notes.ready.pop_front()
    }

    /// Takes back the notes that were kept, in order: after the last record of the log, before
    /// [`handle_loaded`](Self::handle_loaded). Drops entries whose record is absent, and completes
    /// missing ones as lost in a crash.
    pub fn replay_notes(&mut self, notes: impl IntoIterator<Item = Note>) {
        let bound = self.services.config.journal_entries_max;
        for Note { group, what } in notes {
            let Some(group) = self.groups.get_mut(&group) else { continue };
            let before = group.journal.bytes();
            let others = self.services.notes.bytes - before;
            let room = self.services.config.journal_bytes_max.saturating_sub(others);
            match what {
                Noted::Ended => group.journal = Default::default(),
                Noted::Entry(entry) if has_record(group, &entry) => {
                    group.journal.take_back(entry, bound, room);
                }
                Noted::Entry(_) => {}
            }
            self.services.notes.bytes = others + group.journal.bytes();
        }
        for group in self.groups.values_mut() {
            let (generation, members) = in_force(group);
            if generation.0 > 0 {
                let at = RecordAt { offset: group.recorded, appended_at: written_at(group) };
                let others = self.services.notes.bytes - group.journal.bytes();
                group.journal.complete_lost(generation, members, at);
                self.services.notes.bytes = others + group.journal.bytes();
            }
        }
    }

    /// Everything a driver should have kept by now: fewer notes than it was given, perhaps.
    pub fn notes(&self) -> Vec<Note> {
        let mut groups: Vec<_> = self.groups.values().collect();
        groups.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let notes = groups.into_iter().flat_map(|group| {
            let entries = group.journal.entries().filter(|entry| entry.record.is_some());
            entries.map(|entry| Note { group: group.id.clone(), what: Noted::Entry(entry.clone()) })
        });
        notes.collect()
    }
}

/// Whether the record that made this entry true is in the log: of a group's records the last one
/// always is, so one that lay behind it was cut off.
fn has_record(group: &Group, entry: &JournalEntry) -> bool {
    let (generation, _) = in_force(group);
    entry.record.is_some_and(|at| at <= group.recorded) && entry.generation <= generation
}

/// The generation that a group's records tell of, and how many members it has.
fn in_force(group: &Group) -> (Generation, usize) {
    match group.hard.metadata() {
        Some(metadata) => (metadata.generation, metadata.members.len()),
        None => (group.hard.consumers().target_epoch(), group.hard.consumers().len()),
    }
}

fn written_at(group: &Group) -> Timestamp {
    let since = group.hard.metadata().and_then(|metadata| metadata.state_since);
    since.unwrap_or(Timestamp::NONE)
}
