//! Putting cleaned segments in the place of their originals so that a crash leaves the old ones
//! or the new one, by the file names that Kafka uses for it.
//!
//! A cleaned segment is written as `.cleaned`, synced, renamed to `.swap` (the point of no
//! return), the originals are removed, its indexes are written, and it takes its name. Its last
//! batch is always kept, be it empty, so that its end tells which originals it replaces.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ottla_model::Offset;

use crate::fs::{Fs, Listed, OpenMode};
use crate::segment::{Scanner, Segment, names};

/// Puts a cleaned segment, written and synced, in the place of the group it was made of.
///
/// An error before the point of no return leaves the originals. After it there is none: whatever
/// is left undone the next opening does, and until then open files hide it.
pub(crate) fn swap_in(
    fs: &dyn Fs,
    dir: &Path,
    group: &[Arc<Segment>],
    cleaned: &Segment,
) -> io::Result<()> {
    let path = names::path(dir, cleaned.base, names::LOG);
    let swap = names::behind(&path, names::SWAP);
    // Readers of the originals must not come upon the new one's indexes.
    for segment in group {
        segment.hold_indexes()?;
    }
    fs.rename(&names::behind(&path, names::CLEANED), &swap)?;
    fs.sync_dir(dir)?;
    let _ = take_place(fs, dir, group, cleaned, &swap);
    Ok(())
}

fn take_place(
    fs: &dyn Fs,
    dir: &Path,
    group: &[Arc<Segment>],
    cleaned: &Segment,
    swap: &Path,
) -> io::Result<()> {
    for segment in group.iter().filter(|segment| segment.base != cleaned.base) {
        remove_replaced(fs, dir, segment.base)?;
    }
    remove(fs, &names::path(dir, cleaned.base, names::TXN_INDEX))?;
    remove_indexes(fs, dir, cleaned.base)?;
    cleaned.seal()?;
    cleaned.sync_indexes()?;
    // Originals gone, indexes there: only then may it look like any other segment.
    fs.sync_dir(dir)?;
    fs.rename(swap, &names::path(dir, cleaned.base, names::LOG))?;
    fs.sync_dir(dir)
}

/// Finishes what a crash interrupted: swaps are completed, rubbish is removed. True if the folder's
/// files are other ones now.
pub(crate) fn sweep(fs: &dyn Fs, dir: &Path, listed: &[Listed]) -> io::Result<bool> {
    let mut changed = false;
    let mut swaps = Vec::new();
    for file in listed {
        let name = file.name.as_str();
        if let Some(original) = name.strip_suffix(names::SWAP) {
            changed = true;
            match names::offset(original, names::LOG) {
                Some(base) => swaps.push(base),
                None => drop_index_swap(fs, dir, original)?,
            }
        } else if is_rubbish(name, listed) {
            changed = true;
            remove(fs, &dir.join(name))?;
        }
    }
    swaps.sort_unstable();
    let mut covered_to = Offset(0);
    // One that reaches over another is the newer: it was made of what the other holds.
    for base in swaps {
        if base >= covered_to {
            covered_to = finish_swap(fs, dir, base, listed)?;
        }
    }
    if changed {
        fs.sync_dir(dir)?;
    }
    Ok(changed)
}

/// An index is not worth it: it is made anew.
fn drop_index_swap(fs: &dyn Fs, dir: &Path, original: &str) -> io::Result<()> {
    let of_index = |suffix| names::offset(original, suffix);
    if let Some(base) = of_index(names::INDEX).or(of_index(names::TIME_INDEX)) {
        remove_indexes(fs, dir, base)?;
        fs.sync_dir(dir)?;
    }
    remove(fs, &names::behind(&dir.join(original), names::SWAP))
}

/// Puts the swap file in its place. Returns where it ends.
fn finish_swap(fs: &dyn Fs, dir: &Path, base: Offset, listed: &[Listed]) -> io::Result<Offset> {
    let path = names::path(dir, base, names::LOG);
    let swap = names::behind(&path, names::SWAP);
    let end = end_of(fs, &swap)?;
    for replaced in listed.iter().filter_map(|file| names::segment(&file.name)) {
        if replaced > base && replaced < end {
            remove_replaced(fs, dir, replaced)?;
        }
    }
    remove_indexes(fs, dir, base)?;
    // The originals must be gone before the new one cannot be told from them any more.
    fs.sync_dir(dir)?;
    fs.rename(&swap, &path)?;
    Ok(end)
}

/// Removes a segment that another holds now, and what a pass before that one left of it.
fn remove_replaced(fs: &dyn Fs, dir: &Path, base: Offset) -> io::Result<()> {
    for suffix in names::OF_SEGMENT {
        remove(fs, &names::path(dir, base, suffix))?;
    }
    remove(fs, &names::behind(&names::path(dir, base, names::LOG), names::SWAP))
}

/// Those of another life look as true as its own.
fn remove_indexes(fs: &dyn Fs, dir: &Path, base: Offset) -> io::Result<()> {
    remove(fs, &names::path(dir, base, names::INDEX))?;
    remove(fs, &names::path(dir, base, names::TIME_INDEX))
}

/// The offset after a segment file's last batch.
fn end_of(fs: &dyn Fs, path: &Path) -> io::Result<Offset> {
    let file = fs.open(path, OpenMode::Existing)?;
    let mut scanner = Scanner::new(&*file, 0, file.size()?);
    let mut end = Offset(0);
    while let Some(Ok(seen)) = scanner.next()? {
        end = seen.header().next_offset();
    }
    Ok(end)
}

fn is_rubbish(name: &str, listed: &[Listed]) -> bool {
    let dead = [names::DELETED, names::CLEANED, names::TMP];
    if dead.iter().any(|suffix| name.ends_with(suffix)) {
        return true;
    }
    let of_segment = names::OF_SEGMENT.iter().find_map(|suffix| names::offset(name, suffix));
    // Indexes without batches, and snapshots at no segment's base.
    of_segment.is_some_and(|base| {
        !listed.iter().any(|file| names::offset(&file.name, names::LOG) == Some(base))
    })
}

fn remove(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    match fs.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
