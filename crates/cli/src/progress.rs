//! What a person sees while something takes longer than a second.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use tokio::time::{Instant, interval_at};

/// Waits for `work`. From the first second on, standard error says what is waited for: on a
/// terminal in one line that is gone in the end, else in a line now and then.
pub(crate) async fn during<T>(what: &str, work: impl Future<Output = T>) -> T {
    telling(|| format!("{what} ..."), work).await
}

/// The same, with words that change.
pub(crate) async fn telling<T>(what: impl Fn() -> String, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    let is_terminal = io::stderr().is_terminal();
    let began = Instant::now();
    let every = if is_terminal { TICK } else { TICK_IN_A_LOG };
    let mut ticks = interval_at(began + TICK, every);
    let mut has_told = false;
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                if has_told && is_terminal {
                    tell("\r\x1b[K");
                }
                return done;
            }
            _ = ticks.tick() => {
                has_told = true;
                let line = format!("{} {} s", what(), began.elapsed().as_secs());
                tell(&if is_terminal { format!("\r\x1b[K{line}") } else { line + "\n" });
            }
        }
    }
}

fn tell(text: &str) {
    let mut out = io::stderr().lock();
    // Without standard error there is nobody to tell.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

const TICK: Duration = Duration::from_secs(1);
const TICK_IN_A_LOG: Duration = Duration::from_secs(10);
