//! `ottla demo`.

use crate::world::ottla;

/// The first thing a newcomer runs: it tells who took over from whom and why, ends by itself and
/// leaves no folder.
#[test]
fn the_demo_ends_by_itself_and_tells_what_moved_and_why() {
    let ran = ottla(&["demo"]).ok();
    for words in ["Joined three", "SessionExpired three", "(from three)", "Left two", "(from two)"]
    {
        assert!(ran.out.contains(words), "{words}: {ran:?}");
    }
}
