//! A clock that ticks at a fixed rate whatever else happens (open loop): what a tick was due for is
//! timed from when it was due, not from when somebody had time for it, so that a broker that stalls
//! is charged for all that it kept waiting (coordinated omission).

use crate::Outcome;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::time::{Duration, Instant};
use tokio::net::unix::pipe::Receiver;

/// The kernel's timer: the runtime's own has steps of a millisecond.
pub(crate) struct Ticker {
    timer: Receiver,
    begun: Instant,
    interval: Duration,
    ticked: u32,
}

impl Ticker {
    /// So many ticks a second, the first one interval from now.
    pub(crate) fn new(per_second: f64) -> Outcome<Self> {
        let interval = Duration::from_secs_f64(1.0 / per_second.max(0.1));
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let start = || -> std::io::Result<_> {
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            let step = Timespec::try_from(interval).map_err(std::io::Error::other)?;
            let times = Itimerspec { it_interval: step, it_value: step };
            timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
            // It is read like a pipe: eight bytes for however many ticks.
            Receiver::from_owned_fd_unchecked(timer)
        };
        let timer = start().map_err(|error| format!("no timer: {error}"))?;
        Ok(Self { timer, begun: Instant::now(), interval, ticked: 0 })
    }

    /// Waits for the next tick; when each of those that are due was due. Cancel safe.
    pub(crate) async fn due(&mut self) -> Outcome<impl Iterator<Item = Instant> + use<>> {
        let count = self.expired().await.map_err(|error| format!("timer: {error}"))?;
        let (begun, interval, ticked) = (self.begun, self.interval, self.ticked);
        self.ticked += count;
        Ok((1..=count).map(move |number| begun + interval * (ticked + number)))
    }

    async fn expired(&self) -> std::io::Result<u32> {
        loop {
            self.timer.readable().await?;
            let mut count = [0; 8];
            match self.timer.try_read(&mut count) {
                Ok(_) => return Ok(u32::try_from(u64::from_ne_bytes(count)).unwrap_or(u32::MAX)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}
