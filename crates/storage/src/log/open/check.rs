//! Checking what lies past the checkpoint, batch by batch, up to the first damage.

use std::io;
use std::sync::Arc;

use ottla_model::Offset;

use super::{Cut, CutReason, Files, Loading, note_epoch, pass_disk_full};
use crate::segment::{Damage, Scanner, Seen, Segment, names};

impl Loading {
    /// Checks a segment from a position on, then all later ones, up to the first damage.
    pub(super) fn check_from(
        &mut self,
        mut segment: Arc<Segment>,
        mut from: u64,
        mut size: u64,
        later: &[Offset],
        files: &Files<'_>,
    ) -> io::Result<()> {
        for (index, &base) in later.iter().enumerate() {
            let whole = self.check(&segment, from, size)?;
            self.segments.push(segment.clone());
            let file_size = files.size(base, names::LOG).unwrap_or(0);
            let joins = base == self.next || (self.gaps_allowed && base > self.next);
            if !whole || !joins {
                self.drop_segments(&later[index..], files, whole);
                return Ok(());
            }
            segment.seal().or_else(pass_disk_full)?;
            segment = Arc::new(Segment::open(&self.fs, &self.dir, base, 0)?);
            (from, size) = (0, file_size);
            self.next = base;
            self.changed = true;
        }
        self.check(&segment, from, size)?;
        self.segments.push(segment);
        Ok(())
    }

    /// Checks a segment from a position on and takes note of its batches. False if it was cut.
    fn check(&mut self, segment: &Arc<Segment>, from: u64, size: u64) -> io::Result<bool> {
        if from == 0 {
            segment.begin(self.now.wall);
        }
        let mut scanner = Scanner::new(&*segment.file, from, size).verifying();
        let damage = loop {
            match scanner.next()? {
                None => break None,
                Some(Ok(seen)) => match self.accept(segment, &seen) {
                    Ok(()) => segment.publish(seen.end()),
                    Err(damage) => break Some(damage),
                },
                Some(Err(damage)) => break Some(damage),
            }
        };
        let position = segment.size();
        self.recovery.checked_bytes += position - from.min(position);
        self.changed |= position != from || damage.is_some();
        let Some(damage) = damage else { return Ok(true) };
        self.cut_at = Some((segment.clone(), position));
        let (segment, bytes) = (segment.base, size - position);
        let why = CutReason::Damage(damage);
        self.recovery.cuts.push(Cut { segment, position, bytes, why });
        Ok(false)
    }

    fn accept(&mut self, segment: &Segment, seen: &Seen) -> Result<(), Damage> {
        let header = seen.header();
        let found = header.base_offset();
        let follows = found == self.next || (self.gaps_allowed && found > self.next);
        if !follows || !segment.spans(header.last_offset()) {
            return Err(Damage::Offsets { expected: self.next, found });
        }
        if !self.synced.covers(header.next_offset()) {
            self.unsafe_from.get_or_insert((self.segments.len(), seen.position));
        }
        segment.note(header, seen.position, self.config.index_interval_bytes);
        if let Some(id) = header.producer_id() {
            self.producers.note(id, header, self.now.wall);
            self.producers.bound(self.config.producers_max);
        }
        self.epochs_changed |= note_epoch(&mut self.epochs, seen);
        self.next = header.next_offset();
        Ok(())
    }
}
