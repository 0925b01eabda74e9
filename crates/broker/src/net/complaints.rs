//! Log lines a hostile peer can cause, kept to a few per second.

use std::sync::atomic::{AtomicU64, Ordering};

/// Lets through the first few lines of each second and counts the rest.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    /// The second in force, and how many lines it has seen, in one word.
    window: AtomicU64,
    suppressed: AtomicU64,
}

impl Complaints {
    /// Whether a line may be written in `second`; with it, how many were left out before.
    pub(crate) fn admit(&self, second: u64) -> Option<u64> {
        let mut admitted = false;
        let _ = self.window.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let (then, count) = (word >> COUNT_BITS, word & COUNT_MASK);
            let count = if then == second { count } else { 0 };
            admitted = count < LINES_PER_SECOND;
            admitted.then_some(second << COUNT_BITS | (count + 1))
        });
        if admitted {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// Enough to see a problem, too few to fill a disk.
const LINES_PER_SECOND: u64 = 10;
const COUNT_BITS: u32 = 8;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_leaves_ten_lines_a_second_and_a_count() {
        let complaints = Complaints::default();
        let admitted = (0..1_000).filter(|_| complaints.admit(7).is_some()).count();
        assert_eq!(admitted, 10);
        assert_eq!(complaints.admit(8), Some(990));
        assert_eq!(complaints.admit(8), Some(0));
    }
}
