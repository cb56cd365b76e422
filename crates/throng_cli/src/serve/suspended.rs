//! Detects that the process was suspended, by a thread that only sleeps.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use throng::sim::clock::Stopwatch;

/// Time between two checks of the clock.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A shorter pause is normal on a busy machine.
const SUSPENSION_MIN: Duration = Duration::from_secs(2);

/// Writes a log message after each suspension, until it is dropped.
#[derive(Debug)]
pub(super) struct SuspensionWatch {
    _end: Sender<()>,
}

impl SuspensionWatch {
    /// Starts to watch.
    ///
    /// # Errors
    /// Where the system has no threads.
    pub fn start() -> io::Result<Self> {
        let (end, ended) = channel();
        let thread = thread::Builder::new().name("suspension".to_owned());
        thread.spawn(move || {
            loop {
                let slept = Stopwatch::start();
                if ended.recv_timeout(CHECK_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                if let Some(pause) = suspension(slept.elapsed()) {
                    let seconds = pause.as_secs_f64();
                    tracing::warn!("process was suspended for {seconds:.1} s");
                }
            }
        })?;
        Ok(Self { _end: end })
    }
}

/// For how long the process was suspended, if a sleep of [`CHECK_INTERVAL`] took that long.
fn suspension(slept: Duration) -> Option<Duration> {
    let pause = slept.saturating_sub(CHECK_INTERVAL);
    (pause >= SUSPENSION_MIN).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sleep_is_a_suspension() {
        let of_ms = |ms| suspension(Duration::from_millis(ms));
        assert_eq!([of_ms(0), of_ms(250), of_ms(2_249)], [None; 3]);
        assert_eq!(of_ms(12_250), Some(Duration::from_secs(12)));
    }
}
