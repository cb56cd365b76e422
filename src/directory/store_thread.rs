//! The thread that waits for the store, so that no tick does.
//!
//! A server has at most one order of each kind under way, so that both queues are short: whoever hands over never finds them
//! full. While a save is tried again and again, whatever else is asked is answered with the store's error.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing::{error, warn};

use super::supervisor::{StoreOrder, StoreReport, StoreSupervisor};
use crate::sim::clock::Stopwatch;

/// Orders that can be under way: one of each kind, and some to spare.
const ORDERS_MAX: usize = 8;

/// Answers that can wait: one an order, and news of trouble.
const REPORTS_MAX: usize = 64;

/// A store's thread, as the tick has it.
pub struct StoreThread {
    orders: Option<SyncSender<StoreOrder>>,
    reports: Receiver<StoreReport>,
    /// Whether saves that fail are given up, since nobody waits any longer.
    gives_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl StoreThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(supervisor: StoreSupervisor) -> io::Result<Self> {
        let (orders, taken) = sync_channel(ORDERS_MAX);
        let (told, reports) = sync_channel(REPORTS_MAX);
        let gives_up = Arc::new(AtomicBool::new(false));
        let worker = StoreWorker {
            supervisor,
            orders: taken,
            reports: told,
            gives_up: gives_up.clone(),
            clock: Stopwatch::start(),
        };
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || worker.run())?;
        Ok(Self {
            orders: Some(orders),
            reports,
            gives_up,
            thread: Some(thread),
        })
    }

    /// Hands an order over. Never waits.
    ///
    /// # Errors
    /// The order, when the thread has ended or does not keep up.
    pub fn order(&self, order: StoreOrder) -> Result<(), StoreOrder> {
        let Some(orders) = &self.orders else {
            return Err(order);
        };
        orders.try_send(order).map_err(|error| match error {
            TrySendError::Full(order) | TrySendError::Disconnected(order) => order,
        })
    }

    /// The next answer, if there is one. Never waits.
    #[must_use]
    pub fn report(&self) -> Option<StoreReport> {
        self.reports.try_recv().ok()
    }

    /// The next answer; waits for it so long at most. Between ticks, and at the end.
    #[must_use]
    pub fn report_within(&self, time: Duration) -> Option<StoreReport> {
        self.reports.recv_timeout(time).ok()
    }
}

impl Drop for StoreThread {
    /// Lets the thread do what it was asked for, and ends it; a save that fails now is given up.
    fn drop(&mut self) {
        self.orders = None;
        self.gives_up.store(true, Ordering::Relaxed);
        // Nobody reads answers any more, and the thread must not wait for room for them.
        self.reports = sync_channel(0).1;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if thread.join().is_err() {
                error!("the store's thread panicked: what it was asked last may not be saved");
            }
        }
    }
}

/// What the thread works with.
struct StoreWorker {
    supervisor: StoreSupervisor,
    orders: Receiver<StoreOrder>,
    reports: SyncSender<StoreReport>,
    gives_up: Arc<AtomicBool>,
    clock: Stopwatch,
}

impl StoreWorker {
    fn run(mut self) {
        while let Ok(order) = self.orders.recv() {
            let report = match self.work(&order) {
                Ok(report) => Some(report),
                Err(error) if matches!(order, StoreOrder::Save { .. }) => {
                    self.tell(StoreReport::Trouble(error));
                    self.save_at_last(&order)
                }
                Err(error) => order.failed(error),
            };
            if let Some(report) = report {
                self.tell(report);
            }
        }
    }

    fn work(&mut self, order: &StoreOrder) -> Result<StoreReport, super::error::StoreError> {
        let now_ms = self.now_ms();
        self.supervisor.work(order, now_ms)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Tries a save until it is done; `None` when it is given up.
    fn save_at_last(&mut self, order: &StoreOrder) -> Option<StoreReport> {
        loop {
            if self.gives_up.load(Ordering::Relaxed) {
                warn!("the server ends, and what the store did not take is lost");
                return None;
            }
            let pause = Duration::from_millis(self.supervisor.pause_ms(self.now_ms()).max(1));
            match self.orders.recv_timeout(pause) {
                Ok(other) => {
                    // There is one save at a time, so this is something else.
                    let answer = match self.work(&other) {
                        Ok(report) => Some(report),
                        Err(error) => other.failed(error),
                    };
                    if let Some(report) = answer {
                        self.tell(report);
                    }
                }
                Err(RecvTimeoutError::Timeout) => match self.work(order) {
                    Ok(report) => return Some(report),
                    Err(error) => self.tell(StoreReport::Trouble(error)),
                },
                Err(RecvTimeoutError::Disconnected) => thread::park_timeout(pause),
            }
        }
    }

    /// Trouble is told if there is room; answers always have it.
    fn tell(&self, report: StoreReport) {
        if let StoreReport::Trouble(_) = report {
            // Whoever does not read needs no more of it.
            let _ = self.reports.try_send(report);
        } else {
            // At the end nobody listens any more.
            let _ = self.reports.send(report);
        }
    }
}
