//! What a shard's groups remember of their rebalances, in a file beside the logs.
//!
//! `group-journal/N` in the data directory, for partition N of the offsets topic. An entry is
//! appended after its group's record and never synced: the core knows how to do without
//! (`replay_notes`), so no answer waits for it, and a journal that cannot be written stops nobody.

use crate::metrics::Latency;
use crate::partitions::Partition;
use ottla_group::coordinator::{JournalEntry, Note, Noted, Outcome, Shard, Trigger, Who};
use ottla_model::GroupId;
use ottla_storage::{Frames, ReplaceJob, Replaced};
use ottla_wire::convert::journal;
use std::fmt::Write;
use std::io;

/// The file of one shard.
pub(super) struct Journal {
    frames: Frames,
    /// Bytes when it was last written anew.
    live: u64,
    /// That it is to be written anew: for a thread that may wait for the disk.
    rewrite: Option<ReplaceJob>,
}

impl Journal {
    /// Gives a shard that has replayed its log what is kept of its journal, and makes the file
    /// agree with what the shard makes of it.
    pub(super) fn load(shard: &mut Shard, partition: &Partition) -> io::Result<Self> {
        let (fs, dir) = partition.place();
        let folder = dir.parent().unwrap_or(&dir).join(FOLDER);
        let path = folder.join(shard.partition().to_string());
        let (frames, kept) = Frames::open(fs, &path)?;
        let notes = kept.iter().filter_map(|frame| match journal::decode(frame) {
            Ok(note) => Some(note),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a journal entry cannot be read");
                None
            }
        });
        shard.replay_notes(notes.collect::<Vec<_>>());
        let mut journal = Self { live: frames.size(), frames, rewrite: None };
        if shard.notes().len() != kept.len() {
            journal.frames.replace(&encoded(shard)?)?;
            journal.live = journal.frames.size();
        }
        Ok(journal)
    }

    /// The rewrite that is due, if one is. Its outcome goes to [`finish`].
    pub(super) fn due_rewrite(&mut self) -> Option<ReplaceJob> {
        self.rewrite.take()
    }

    fn keep(&mut self, note: &Note, shard: &Shard) -> io::Result<()> {
        // Ids and hosts are bounded where they come in.
        let bytes = journal::encode(note).map_err(io::Error::other)?;
        self.frames.append(&bytes)?;
        let is_large = self.frames.size() > REWRITE_FROM.max(self.live * REWRITE_FACTOR);
        if is_large && !self.frames.is_being_replaced() {
            self.rewrite = Some(self.frames.start_replace(&encoded(shard)?));
        }
        Ok(())
    }

    fn finish(&mut self, replaced: Replaced) -> io::Result<()> {
        self.frames.finish_replace(replaced)?;
        self.live = self.frames.size();
        Ok(())
    }
}

fn encoded(shard: &Shard) -> io::Result<Vec<Vec<u8>>> {
    let notes = shard.notes();
    let notes: Result<Vec<_>, _> = notes.iter().map(journal::encode).collect();
    notes.map_err(io::Error::other)
}

/// Keeps one more note of `shard`, tells operators, and counts how long it took. A journal that
/// cannot be written ends.
pub(super) fn keep(journal: &mut Option<Journal>, note: &Note, shard: &Shard, durations: &Latency) {
    tell(note, durations);
    let kept = journal.as_mut().map(|journal| journal.keep(note, shard));
    end_if_failed(journal, kept, shard);
}

/// Puts a rewritten journal in force. One that cannot be ends.
pub(super) fn finish(journal: &mut Option<Journal>, replaced: Replaced, shard: &Shard) {
    let finished = journal.as_mut().map(|journal| journal.finish(replaced));
    end_if_failed(journal, finished, shard);
}

fn end_if_failed(journal: &mut Option<Journal>, done: Option<io::Result<()>>, shard: &Shard) {
    if let Some(Err(error)) = done {
        tracing::error!(shard = %shard.partition(), %error, "the journal ends here");
        *journal = None;
    }
}

/// Tells operators of a rebalance that is over.
fn tell(note: &Note, durations: &Latency) {
    let Noted::Entry(entry) = &note.what else { return };
    if !entry.is_over() || entry.outcome == Outcome::Overtaken {
        return;
    }
    durations.record(entry.took(), 1);
    let Note { group, .. } = note;
    tell_entry(group, entry);
}

fn tell_entry(group: &GroupId, entry: &JournalEntry) {
    let slowest = entry.slowest.first().map(|times| {
        let took = times.join_took + times.sync_took.unwrap_or_default();
        format!("{} in {took:?}", named(&times.who))
    });
    tracing::info!(
        group = %shown(group),
        generation = entry.generation.0,
        cause = %causes(entry),
        members = entry.members,
        moved = entry.moved,
        took = ?entry.took(),
        slowest,
        "rebalanced"
    );
}

fn causes(entry: &JournalEntry) -> String {
    let mut text = String::new();
    for trigger in &entry.triggers {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a string fails for nobody.
        let _ = write!(text, "{comma}{}", cause(trigger));
    }
    if entry.absorbed > 0 {
        let _ = write!(text, " and {} more", entry.absorbed);
    }
    text
}

fn cause(trigger: &Trigger) -> String {
    let mut text = format!("{:?}", trigger.cause);
    if let Some(who) = &trigger.who {
        let _ = write!(text, " {}", named(who));
    }
    if let Some(topic) = &trigger.topic {
        let _ = write!(text, " topic {topic}");
    }
    if let Some(setting) = &trigger.setting {
        let _ = write!(text, " {setting}");
    }
    if let Some(by) = &trigger.by {
        let (client, host) = (shown(&by.client_id), shown(&by.client_host));
        let _ = write!(text, " by {client} at {host}");
    }
    text
}

/// A member as a reader knows it: by its instance, else by its id; and where it is.
pub(super) fn named(who: &Who) -> String {
    let name = who.instance.as_deref().unwrap_or(&who.member);
    format!("{} at {}", shown(name), shown(&who.client_host))
}

/// A text of a client's own making, on one line and of bounded length.
pub(super) fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN_MAX);
    let rest = if end < text.len() { "..." } else { "" };
    format!("{}{rest}", text[..end].escape_debug())
}

/// Of a client's text, so many bytes are told; the journal itself has all of it.
const SHOWN_MAX: usize = 256;
/// The folder of the journals, in the data directory.
const FOLDER: &str = "group-journal";
/// A file is written anew when it is as large as this,
const REWRITE_FROM: u64 = 1 << 20;
/// and so many times as large as it was then.
const REWRITE_FACTOR: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// A group may have any name: none of them writes a line of its own into the log.
    #[test]
    fn names_stay_on_their_line() {
        assert_eq!(shown("billing"), "billing");
        assert_eq!(shown("a\n2026 ERROR \u{1b}[31m\"b"), r#"a\n2026 ERROR \u{1b}[31m\"b"#);
        let long = shown(&"é".repeat(1_000));
        assert!(long.ends_with("é...") && long.len() <= SHOWN_MAX + 3, "{long}");
    }
}
