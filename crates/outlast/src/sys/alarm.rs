//! The clock that rings for the engine.
//!
//! A timer of the runtime is looked at, and given to the system anew, each time it waits for anything:
//! more than a microsecond of every call. On Linux the system therefore gets the moment once, as a file
//! that becomes readable. Elsewhere, and if it has none left, the runtime's own timer has to do.

use crate::clock;
use std::time::{Duration, Instant};

/// Rings at one moment at a time.
#[derive(Debug)]
pub struct Alarm {
    /// It rings at whole milliseconds since then, so that what is due nearly together is done together.
    start: Instant,
    #[cfg(target_os = "linux")]
    timer: Option<linux::Timer>,
}

impl Alarm {
    /// Set to nothing yet. Must be called inside a runtime.
    pub fn new() -> Alarm {
        Alarm {
            start: clock::monotonic(),
            #[cfg(target_os = "linux")]
            timer: linux::new().ok(),
        }
    }

    /// Waits for a moment, never less.
    pub async fn at(&self, moment: Instant) {
        let moment = self.start + rounded_up(moment.saturating_duration_since(self.start));
        #[cfg(target_os = "linux")]
        if let Some(timer) = &self.timer
            && linux::wait(timer, moment).await.is_ok()
        {
            return;
        }
        tokio::time::sleep_until(moment.into()).await;
    }
}

/// To whole milliseconds.
fn rounded_up(time: Duration) -> Duration {
    let more = time.subsec_nanos().next_multiple_of(1_000_000) - time.subsec_nanos();
    time + Duration::from_nanos(more.into())
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::clock;
    use nix::sys::time::TimeSpec;
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, RawFd};
    use std::time::Instant;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    pub type Timer = AsyncFd<Readable>;

    /// The runtime wants to know its number.
    #[derive(Debug)]
    pub struct Readable(TimerFd);

    impl AsRawFd for Readable {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_fd().as_raw_fd()
        }
    }

    /// The clock of [`Instant`].
    pub fn new() -> io::Result<Timer> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        // SAFETY: it owns its descriptor, which is the same and open for as long as it lives.
        let registered = unsafe { AsyncFd::register_with_interest(Readable(timer), Interest::READABLE) };
        registered.map_err(|error| error.into_parts().1)
    }

    pub async fn wait(timer: &Timer, moment: Instant) -> io::Result<()> {
        let left = clock::left_until(moment);
        // To the system it would mean never.
        if left.is_zero() {
            return Ok(());
        }
        let left = Expiration::OneShot(TimeSpec::from_duration(left));
        timer.get_ref().0.set(left, TimerSetTimeFlags::empty())?;
        loop {
            let mut ready = timer.readable().await?;
            // Not yet: it rang for a moment that was given up.
            if let Ok(rang) = ready.try_io(|timer| timer.get_ref().0.wait().map_err(io::Error::from)) {
                return rang;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_rings_for_the_moment_that_it_was_set_to_last() {
        let alarm = Alarm::new();
        for _ in 0..20 {
            let (soon, late) =
                (clock::in_future(Duration::from_micros(300)), clock::in_future(Duration::from_millis(2)));
            // Given up before it rang, as it rings, or after.
            tokio::select! {
                () = alarm.at(soon) => {}
                () = tokio::task::yield_now() => {}
            }
            alarm.at(late).await;
            assert!(clock::left_until(late).is_zero());
        }
        alarm.at(clock::monotonic()).await;
    }
}
