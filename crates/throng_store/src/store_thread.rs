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

use throng_core::clock::Stopwatch;
use tracing::{error, warn};

use super::supervisor::{StoreOrder, StoreReport, StoreSupervisor};

/// Orders that can be under way: one of each kind, and some to spare.
const ORDERS_MAX: usize = 8;

/// Answers that can wait: one an order, and news of trouble.
const REPORTS_MAX: usize = 64;

/// How long a save that failed waits at least before it is tried again, in milliseconds.
const RETRY_MS: u64 = 50;

/// How long the end of the thread is waited for: a store that hangs must not hold up the end of the server for ever.
const END_WITHIN: Duration = Duration::from_secs(5);

/// A store's thread, as the tick has it.
pub struct StoreThread {
    orders: Option<SyncSender<StoreOrder>>,
    reports: Receiver<StoreReport>,
    /// Whether saves that fail are given up, since nobody waits any longer.
    gives_up: Arc<AtomicBool>,
    /// Is disconnected when the thread has ended.
    end: Receiver<()>,
    end_within: Duration,
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
        let (runs, end) = sync_channel(0);
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
            .spawn(move || {
                let _runs = runs;
                worker.run();
            })?;
        Ok(Self {
            orders: Some(orders),
            reports,
            gives_up,
            end,
            end_within: END_WITHIN,
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
    /// Lets the thread do what it was asked for, and ends it; a save that fails now is given up, and so is a thread that does not
    /// end within five seconds.
    fn drop(&mut self) {
        self.orders = None;
        self.gives_up.store(true, Ordering::Relaxed);
        // Nobody reads answers any more, and the thread must not wait for room for them.
        self.reports = sync_channel(0).1;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if self.end.recv_timeout(self.end_within) == Err(RecvTimeoutError::Timeout) {
                error!(
                    "store thread not joined: the store does not respond; the last request may be lost"
                );
            } else if thread.join().is_err() {
                error!("store thread panicked: the last request may be lost");
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
        self.supervisor.sign_off();
    }

    fn work(&mut self, order: &StoreOrder) -> Result<StoreReport, super::error::StoreError> {
        let now_ms = self.now_ms();
        self.supervisor.work(order, now_ms)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Tries a save until it is done; `None` when it is given up. Leases are renewed between the attempts, before the store
    /// is busy with the save again: a save that cannot be done must not cost the players.
    fn save_at_last(&mut self, order: &StoreOrder) -> Option<StoreReport> {
        let mut renewal = None;
        loop {
            if self.gives_up.load(Ordering::Relaxed) {
                warn!("pending save abandoned: the server stops before the store recovers");
                return None;
            }
            let pause_ms = self.supervisor.pause_ms(self.now_ms());
            let pause = Duration::from_millis(pause_ms.max(RETRY_MS));
            match self.orders.recv_timeout(pause) {
                Ok(later @ StoreOrder::Renew { .. }) => renewal = Some(later),
                Ok(other) => {
                    // There is one save at a time, so this is something else.
                    self.answer(other);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(renewal) = renewal.take() {
                        self.answer(renewal);
                    }
                    match self.work(order) {
                        Ok(report) => return Some(report),
                        Err(error) => self.tell(StoreReport::Trouble(error)),
                    }
                }
                Err(RecvTimeoutError::Disconnected) => thread::park_timeout(pause),
            }
        }
    }

    /// Works off what is no save.
    fn answer(&mut self, order: StoreOrder) {
        let answer = match self.work(&order) {
            Ok(report) => Some(report),
            Err(error) => order.failed(error),
        };
        if let Some(report) = answer {
            self.tell(report);
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::error::{StoreError, StoreFault};
    use crate::memory_store::MemoryDisk;
    use crate::save_batch::SaveBatch;
    use crate::store::ClaimTerms;
    use crate::testing::HookedSource;
    use throng_core::ids::PlayerId;

    fn thread(source: HookedSource) -> StoreThread {
        let supervisor = StoreSupervisor::new(Box::new(source), "a".to_owned(), Vec::new());
        StoreThread::start(supervisor).unwrap()
    }

    fn save() -> StoreOrder {
        StoreOrder::Save {
            batch: Arc::new(SaveBatch::new(1, 1)),
        }
    }

    #[test]
    fn leases_are_renewed_while_a_save_fails() {
        let failures_left = AtomicU32::new(3);
        let thread = thread(HookedSource::new(MemoryDisk::default(), move |saving| {
            let less = |left: u32| left.checked_sub(1);
            match failures_left.try_update(Ordering::Relaxed, Ordering::Relaxed, less) {
                Ok(_) => Err(StoreError {
                    store: "it".to_owned(),
                    fault: StoreFault::Full,
                    cause: "no room".to_owned(),
                }),
                Err(_) => saving(),
            }
        }));
        thread.order(save()).unwrap();
        let leases = vec![(PlayerId(7), 1)];
        let terms = ClaimTerms {
            at_ms: None,
            lease_ms: 1,
            grace_ms: 0,
        };
        thread.order(StoreOrder::Renew { leases, terms }).unwrap();
        let mut renewed = None;
        loop {
            match thread.report_within(Duration::from_secs(30)).unwrap() {
                StoreReport::Trouble(_) => {}
                StoreReport::Renewed(answer) => renewed = Some(answer.is_ok()),
                StoreReport::Saved(_) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(renewed, Some(true), "the store has nothing against that");
    }

    #[test]
    fn a_store_that_hangs_does_not_hold_up_the_end() {
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock().unwrap();
        let waited_for = gate.clone();
        let mut thread = thread(HookedSource::new(MemoryDisk::default(), move |saving| {
            drop(waited_for.lock());
            saving()
        }));
        thread.end_within = Duration::from_millis(20);
        thread.order(save()).unwrap();
        drop(thread);
        drop(held);
    }
}
