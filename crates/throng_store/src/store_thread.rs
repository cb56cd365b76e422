//! The thread that waits for the store, so that no tick does.
//!
//! A server has at most one pending request of each kind, so both queues are short and never full. While a failed save is retried, all
//! other requests return the store's error.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use throng_core::clock::Stopwatch;
use tracing::{error, warn};

use super::error::{StoreError, StoreErrorKind};
use super::supervisor::{StoreReply, StoreRequest, StoreSupervisor};

/// Maximum number of pending requests: one of each kind, and a reserve.
const REQUESTS_MAX: usize = 8;

/// Maximum number of waiting replies: one per request, and reports of errors.
const REPLIES_MAX: usize = 64;

/// Minimum time before a failed save is retried, in milliseconds.
const RETRY_MS: u64 = 50;

/// How long the end of the thread is waited for: a store that hangs must not block the shutdown of the server.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The tick's handle of a store thread.
pub struct StoreThread {
    requests: Option<SyncSender<StoreRequest>>,
    replies: Receiver<StoreReply>,
    /// Whether failed saves are abandoned, because no caller waits for them.
    abandons_saves: Arc<AtomicBool>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
    shutdown_timeout: Duration,
    thread: Option<JoinHandle<()>>,
}

impl StoreThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(supervisor: StoreSupervisor) -> io::Result<Self> {
        let (orders, taken) = sync_channel(REQUESTS_MAX);
        let (replies_sender, reports) = sync_channel(REPLIES_MAX);
        let (runs, end) = sync_channel(0);
        let gives_up = Arc::new(AtomicBool::new(false));
        let worker = StoreWorker {
            supervisor,
            requests: taken,
            in_progress: Vec::new(),
            replies: replies_sender,
            abandons_saves: gives_up.clone(),
            clock: Stopwatch::start(),
        };
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || {
                let _runs = runs;
                worker.run();
            })?;
        Ok(Self {
            requests: Some(orders),
            replies: reports,
            abandons_saves: gives_up,
            ended: end,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            thread: Some(thread),
        })
    }

    /// Sends a request. Never waits.
    ///
    /// # Errors
    /// The request, if the thread has ended or does not keep up.
    pub fn send(&self, order: StoreRequest) -> Result<(), StoreRequest> {
        let Some(orders) = &self.requests else {
            return Err(order);
        };
        orders.try_send(order).map_err(|error| match error {
            TrySendError::Full(order) | TrySendError::Disconnected(order) => order,
        })
    }

    /// The next reply, if there is one. Never waits.
    #[must_use]
    pub fn try_recv(&self) -> Option<StoreReply> {
        self.replies.try_recv().ok()
    }

    /// The next reply; waits at most this long. For use between ticks and at the end.
    #[must_use]
    pub fn recv_timeout(&self, time: Duration) -> Option<StoreReply> {
        self.replies.recv_timeout(time).ok()
    }
}

impl Drop for StoreThread {
    /// Lets the thread execute its requests, and ends it. A save that fails now is abandoned, and so is a thread that does not end within
    /// five seconds.
    fn drop(&mut self) {
        self.requests = None;
        self.abandons_saves.store(true, Ordering::Relaxed);
        // Nobody reads replies any more, and the thread must not wait for room for them.
        self.replies = sync_channel(0).1;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if self.ended.recv_timeout(self.shutdown_timeout) == Err(RecvTimeoutError::Timeout) {
                error!(
                    "store thread not joined: the store does not respond; the last request may be lost"
                );
            } else if thread.join().is_err() {
                error!("store thread panicked: the last request may be lost");
            }
        }
    }
}

fn thread_panicked_error() -> StoreError {
    StoreError {
        store: "of this server".to_owned(),
        kind: StoreErrorKind::Unreachable,
        cause: "its thread panicked".to_owned(),
    }
}

/// The state of the thread.
struct StoreWorker {
    supervisor: StoreSupervisor,
    requests: Receiver<StoreRequest>,
    /// Requests without a reply: the save, and those executed while it waits.
    in_progress: Vec<StoreRequest>,
    replies: SyncSender<StoreReply>,
    abandons_saves: Arc<AtomicBool>,
    clock: Stopwatch,
}

impl StoreWorker {
    /// Executes requests until all senders are dropped. A panic ends neither the thread nor a save.
    fn run(mut self) {
        while catch_unwind(AssertUnwindSafe(|| self.handle_requests())).is_err() {
            error!(
                "store thread panicked: the store is opened again, and a save that was under way is repeated"
            );
            self.supervisor.close();
        }
        self.supervisor.unregister();
    }

    fn handle_requests(&mut self) {
        // Requests that a panic interrupted.
        let (saves, others) = std::mem::take(&mut self.in_progress)
            .into_iter()
            .partition(|order| matches!(order, StoreRequest::Save { .. }));
        self.in_progress = saves;
        for order in others {
            self.reply_failed(order, thread_panicked_error());
        }
        if let Some(save) = self.in_progress.first().cloned() {
            self.send_reply(StoreReply::SaveFailed(thread_panicked_error()));
            self.finish_save(&save);
        }
        while let Ok(order) = self.requests.recv() {
            self.in_progress.push(order.clone());
            match self.execute(&order) {
                Ok(report) => self.finish_request(report),
                Err(error) if matches!(order, StoreRequest::Save { .. }) => {
                    self.send_reply(StoreReply::SaveFailed(error));
                    self.finish_save(&order);
                }
                Err(error) => {
                    self.in_progress.pop();
                    self.reply_failed(order, error);
                }
            }
        }
    }

    /// Completes the last pending request.
    fn finish_request(&mut self, report: StoreReply) {
        self.in_progress.pop();
        self.send_reply(report);
    }

    fn finish_save(&mut self, order: &StoreRequest) {
        let saved = self.save_with_retry(order);
        self.in_progress.pop();
        if let Some(saved) = saved {
            self.send_reply(saved);
        }
    }

    fn reply_failed(&self, order: StoreRequest, error: StoreError) {
        if let Some(report) = order.into_failure(error) {
            self.send_reply(report);
        }
    }

    fn execute(&mut self, order: &StoreRequest) -> Result<StoreReply, StoreError> {
        let now_ms = self.now_ms();
        self.supervisor.execute(order, now_ms)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Tries a save until it is done; `None` if it is abandoned. Leases are renewed between the attempts, before the store is busy with the
    /// save again: a save that cannot be done must not cost the players their leases.
    fn save_with_retry(&mut self, order: &StoreRequest) -> Option<StoreReply> {
        let mut renewal = None;
        loop {
            if self.abandons_saves.load(Ordering::Relaxed) {
                warn!("pending save abandoned: the server stops before the store recovers");
                return None;
            }
            let pause_ms = self.supervisor.pause_ms(self.now_ms());
            let pause = Duration::from_millis(pause_ms.max(RETRY_MS));
            match self.requests.recv_timeout(pause) {
                Ok(later @ StoreRequest::Renew { .. }) => renewal = Some(later),
                Ok(other) => {
                    // There is one save at a time, so this is another request.
                    self.handle_request(other);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(renewal) = renewal.take() {
                        self.handle_request(renewal);
                    }
                    match self.execute(order) {
                        Ok(report) => return Some(report),
                        Err(error) => self.send_reply(StoreReply::SaveFailed(error)),
                    }
                }
                Err(RecvTimeoutError::Disconnected) => thread::park_timeout(pause),
            }
        }
    }

    /// Executes a request other than a save.
    fn handle_request(&mut self, order: StoreRequest) {
        self.in_progress.push(order.clone());
        match self.execute(&order) {
            Ok(report) => self.finish_request(report),
            Err(error) => {
                self.in_progress.pop();
                self.reply_failed(order, error);
            }
        }
    }

    /// Error reports are sent if there is room; replies always have room.
    fn send_reply(&self, report: StoreReply) {
        if let StoreReply::SaveFailed(_) = report {
            // Without a receiver, no more are needed.
            let _ = self.replies.try_send(report);
        } else {
            // At the end no thread receives replies.
            let _ = self.replies.send(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::memory_store::MemoryDisk;
    use crate::save_batch::SaveBatch;
    use crate::store::{ClaimTerms, StoreBackend, StoreFactory};
    use crate::testing::HookedSource;
    use throng_core::ids::PlayerId;

    fn thread(source: HookedSource) -> StoreThread {
        let supervisor = StoreSupervisor::new(Box::new(source), "a".to_owned(), Vec::new());
        StoreThread::start(supervisor).unwrap()
    }

    fn save() -> StoreRequest {
        StoreRequest::Save {
            batch: Arc::new(SaveBatch::new(1, 1)),
        }
    }

    #[test]
    fn leases_are_renewed_while_a_save_fails() {
        let failures_left = AtomicU32::new(3);
        // No save is tried before the renewal is requested.
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock().unwrap();
        let of_saves = gate.clone();
        let thread = thread(HookedSource::new(MemoryDisk::default(), move |saving| {
            drop(of_saves.lock().unwrap());
            let less = |left: u32| left.checked_sub(1);
            match failures_left.try_update(Ordering::Relaxed, Ordering::Relaxed, less) {
                Ok(_) => Err(StoreError {
                    store: "it".to_owned(),
                    kind: StoreErrorKind::DiskFull,
                    cause: "no room".to_owned(),
                }),
                Err(_) => saving(),
            }
        }));
        thread.send(save()).unwrap();
        let leases = vec![(PlayerId(7), 1)];
        let terms = ClaimTerms {
            at_ms: None,
            lease_ms: 1,
            grace_ms: 0,
        };
        thread.send(StoreRequest::Renew { leases, terms }).unwrap();
        drop(held);
        let mut renewed = None;
        loop {
            match thread.recv_timeout(Duration::from_secs(30)).unwrap() {
                StoreReply::SaveFailed(_) => {}
                StoreReply::Renewed(answer) => renewed = Some(answer.is_ok()),
                StoreReply::Saved(_) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(renewed, Some(true), "the store has nothing against that");
    }

    #[test]
    fn hanging_store_does_not_block_shutdown() {
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock().unwrap();
        let waited_for = gate.clone();
        let mut thread = thread(HookedSource::new(MemoryDisk::default(), move |saving| {
            drop(waited_for.lock());
            saving()
        }));
        thread.shutdown_timeout = Duration::from_millis(20);
        thread.send(save()).unwrap();
        drop(thread);
        drop(held);
    }

    /// A factory whose `Debug` implementation panics this many times.
    struct PanickingSource(HookedSource, AtomicU32);

    impl fmt::Debug for PanickingSource {
        fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
            let less = |left: u32| left.checked_sub(1);
            let left = self
                .1
                .try_update(Ordering::Relaxed, Ordering::Relaxed, less);
            assert!(
                left.is_err(),
                "a panic that no call of the store is to blame for"
            );
            formatter.write_str("it")
        }
    }

    impl StoreFactory for PanickingSource {
        fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
            self.0.open()
        }
    }

    #[test]
    fn panic_does_not_end_the_thread_and_the_save_is_done() {
        let panics_left = AtomicU32::new(2);
        let hooked = HookedSource::new(MemoryDisk::default(), move |saving| {
            let less = |left: u32| left.checked_sub(1);
            let left = panics_left.try_update(Ordering::Relaxed, Ordering::Relaxed, less);
            assert!(left.is_err(), "a panic of the store");
            saving()
        });
        let source = PanickingSource(hooked, AtomicU32::new(2));
        let supervisor = StoreSupervisor::new(Box::new(source), "a".to_owned(), Vec::new());
        let thread = StoreThread::start(supervisor).unwrap();
        thread.send(save()).unwrap();
        let players = vec![PlayerId(7)];
        thread.send(StoreRequest::Lookup { players }).unwrap();
        let (mut looked_up, mut is_saved) = (0, false);
        while looked_up == 0 || !is_saved {
            match thread
                .recv_timeout(Duration::from_secs(30))
                .expect("an answer")
            {
                StoreReply::SaveFailed(_) => {}
                StoreReply::LookedUp(..) => looked_up += 1,
                StoreReply::Saved(_) => is_saved = true,
                other => panic!("{other:?}"),
            }
        }
        let players = vec![PlayerId(8)];
        assert!(thread.send(StoreRequest::Lookup { players }).is_ok());
    }
}
