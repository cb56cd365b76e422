//! What makes tests independent of how busy the machine is.

use std::cell::Cell;
use std::fmt::Display;
use std::thread;
use std::time::Duration;

use throng_cluster::{BusPeer, MessengerSettings, NatsSettings, NatsTransport, SharedRows};
use throng_core::clock::Stopwatch;

/// The longest step of the time. A test that a busy machine stops for seconds must not find its nodes late.
const STEP_MAX: Duration = Duration::from_millis(20);

/// Checks, 2 ms apart, after which a condition counts as never met.
const CHECKS_MAX: u32 = 60_000;

/// Attempts to connect, 100 ms apart.
const ATTEMPTS_MAX: u32 = 1_200;

/// Waits until a condition holds, which may itself wait.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..CHECKS_MAX {
        if condition() {
            return;
        }
        thread::park_timeout(Duration::from_millis(2));
    }
    panic!("{what}");
}

/// Sets the time of rows: that of the machine, in steps of at most 20 ms.
pub struct RowClock {
    /// How many times slower it is than that of the machine.
    slowness: u32,
    machine: Stopwatch,
    last: Cell<Duration>,
    now: Cell<Duration>,
}

impl RowClock {
    pub fn start() -> Self {
        Self::start_slow(1)
    }

    /// For tests in which no node dies: the store finds nodes late after 15 s.
    pub fn patient() -> Self {
        Self::start_slow(10)
    }

    fn start_slow(slowness: u32) -> Self {
        Self {
            slowness,
            machine: Stopwatch::start(),
            last: Cell::default(),
            now: Cell::default(),
        }
    }

    /// Call it in each round of a test.
    pub fn advance(&self, rows: &SharedRows) {
        let elapsed = self.machine.elapsed();
        let step = elapsed.saturating_sub(self.last.replace(elapsed));
        let step = step.min(STEP_MAX) / self.slowness;
        self.now.set(self.now.get() + step);
        rows.set_now_ms(self.now.get().as_millis() as u64);
    }
}

/// No message is dropped because the machine was busy.
pub fn patient_messages() -> MessengerSettings {
    MessengerSettings {
        hold_ms: 60_000,
        read_timeout_ms: 60_000,
        ..MessengerSettings::default()
    }
}

/// Connects to a NATS server.
pub fn connect_nats(settings: &NatsSettings, own: BusPeer) -> NatsTransport {
    connected(|| NatsTransport::connect(settings, own))
}

/// Connects to a server. A server on a busy machine may end a connection before it is complete.
pub fn connected<T, E: Display>(mut connect: impl FnMut() -> Result<T, E>) -> T {
    let mut attempts = 0;
    loop {
        match connect() {
            Ok(connection) => return connection,
            Err(error) => assert!(attempts < ATTEMPTS_MAX, "{error}"),
        }
        attempts += 1;
        thread::park_timeout(Duration::from_millis(100));
    }
}
