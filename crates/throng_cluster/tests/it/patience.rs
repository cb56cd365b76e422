//! What makes tests independent of how busy the machine is.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use throng_cluster::{BusPeer, MessengerSettings, NatsSettings, NatsTransport, SharedRows};
use throng_core::clock::Stopwatch;

/// The longest step of the time. A test that a busy machine stops for seconds must not find its nodes late.
const STEP_MAX: Duration = Duration::from_millis(20);

/// Sets the time of rows: that of the machine, in steps of at most 20 ms.
pub struct RowClock {
    machine: Stopwatch,
    last: Cell<Duration>,
    now: Cell<Duration>,
}

impl RowClock {
    pub fn start() -> Self {
        Self {
            machine: Stopwatch::start(),
            last: Cell::default(),
            now: Cell::default(),
        }
    }

    /// Call it in each round of a test.
    pub fn advance(&self, rows: &SharedRows) {
        let elapsed = self.machine.elapsed();
        let step = elapsed.saturating_sub(self.last.replace(elapsed));
        self.now.set(self.now.get() + step.min(STEP_MAX));
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

/// Connects to a NATS server. A server on a busy machine may end a connection before it is complete.
pub fn connect_nats(settings: &NatsSettings, own: BusPeer) -> NatsTransport {
    let mut attempts = 0;
    loop {
        match NatsTransport::connect(settings, own) {
            Ok(transport) => return transport,
            Err(error) => assert!(attempts < 20, "{error}"),
        }
        attempts += 1;
        thread::park_timeout(Duration::from_millis(100));
    }
}
