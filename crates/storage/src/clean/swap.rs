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
    for segment in group {
        let keeps: &[&str] =
            if segment.base == cleaned.base { &[names::SNAPSHOT, names::LOG] } else { &[] };
        for suffix in names::OF_SEGMENT.iter().filter(|suffix| !keeps.contains(suffix)) {
            remove(fs, &names::path(dir, segment.base, suffix))?;
        }
    }
    cleaned.seal()?;
    cleaned.sync_indexes()?;
    // Originals gone, indexes there: only then may it look like any other segment.
    fs.sync_dir(dir)?;
    fs.rename(swap, &names::path(dir, cleaned.base, names::LOG))?;
    fs.sync_dir(dir)
}

/// What [`sweep`] did.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    /// Whether the folder's files are other ones now.
    pub(crate) changed: bool,
    /// Segments whose index files may be those of another life.
    pub(crate) reindex: Vec<Offset>,
}

/// Finishes what a crash interrupted: swaps are completed, rubbish is removed.
pub(crate) fn sweep(fs: &dyn Fs, dir: &Path, listed: &[Listed]) -> io::Result<Swept> {
    let mut swept = Swept::default();
    for file in listed {
        let name = file.name.as_str();
        if let Some(original) = name.strip_suffix(names::SWAP) {
            swept.changed = true;
            finish_swap(fs, dir, original, listed, &mut swept.reindex)?;
        } else if is_rubbish(name, listed) {
            swept.changed = true;
            remove(fs, &dir.join(name))?;
        }
    }
    if swept.changed {
        fs.sync_dir(dir)?;
    }
    Ok(swept)
}

/// Puts the swap file in its place. An index is not worth it: it is made anew.
fn finish_swap(
    fs: &dyn Fs,
    dir: &Path,
    original: &str,
    listed: &[Listed],
    reindex: &mut Vec<Offset>,
) -> io::Result<()> {
    let swap = dir.join(format!("{original}{}", names::SWAP));
    let Some(base) = names::offset(original, names::LOG) else {
        let of_index = |suffix| names::offset(original, suffix);
        reindex.extend(of_index(names::INDEX).or(of_index(names::TIME_INDEX)));
        return remove(fs, &swap);
    };
    reindex.push(base);
    let end = end_of(fs, &swap)?;
    for file in listed {
        let replaced = names::offset(&file.name, names::LOG);
        if let Some(replaced) = replaced.filter(|it| *it > base && *it < end) {
            for suffix in names::OF_SEGMENT {
                remove(fs, &names::path(dir, replaced, suffix))?;
            }
        }
    }
    // The originals must be gone before the new one cannot be told from them any more.
    fs.sync_dir(dir)?;
    fs.rename(&swap, &dir.join(original))
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
