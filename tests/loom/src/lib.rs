//! The hand-over between the tick's thread and a sender thread, under every interleaving that the memory model allows.
//!
//! The file under test is the one that the library is built from. The ring, which is a published crate's, is replaced by
//! the least that promises the same: what is committed together becomes visible together, and that the writer is gone
//! becomes visible after all that it committed.
#![cfg(test)]

#[path = "../../../crates/throng_net/src/outbox/ring_wait.rs"]
mod ring_wait;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
    pub(super) use loom::thread::park;
}

mod ring {
    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use loom::sync::{Arc, Mutex};

    #[derive(Default)]
    struct Shared {
        messages: Mutex<Vec<u8>>,
        /// How many of them are visible.
        tail: AtomicUsize,
        is_abandoned: AtomicBool,
    }

    pub struct RingWriter {
        shared: Arc<Shared>,
        gathered: Vec<u8>,
    }

    pub struct RingReader {
        shared: Arc<Shared>,
        head: usize,
    }

    pub fn ring() -> (RingWriter, RingReader) {
        let shared = Arc::new(Shared::default());
        let writer = RingWriter {
            shared: shared.clone(),
            gathered: Vec::new(),
        };
        (writer, RingReader { shared, head: 0 })
    }

    impl RingWriter {
        pub fn push(&mut self, message: u8) {
            self.gathered.push(message);
        }

        pub fn commit(&mut self) {
            let mut messages = self.shared.messages.lock().unwrap();
            messages.append(&mut self.gathered);
            let tail = messages.len();
            drop(messages);
            self.shared.tail.store(tail, Ordering::Release);
        }
    }

    impl Drop for RingWriter {
        fn drop(&mut self) {
            self.shared.is_abandoned.store(true, Ordering::Release);
        }
    }

    impl RingReader {
        pub fn read(&mut self, _bytes_min: usize, mut take: impl FnMut(&[u8])) -> usize {
            if self.head == self.shared.tail.load(Ordering::Acquire) {
                return 0;
            }
            let message = self.shared.messages.lock().unwrap()[self.head];
            self.head += 1;
            take(&[message]);
            1
        }

        pub fn is_abandoned(&self) -> bool {
            self.shared.is_abandoned.load(Ordering::Acquire)
        }
    }
}

use ring_wait::{is_taken, drain_until_abandoned};
use loom::sync::Arc;
use loom::thread;
use sync::AtomicU64;

/// What the thread took, and how much of it was written out by a `None`.
fn start(reader: ring::RingReader, taken: Arc<AtomicU64>) -> thread::JoinHandle<(Vec<u8>, usize)> {
    thread::spawn(move || {
        let (mut came, mut written) = (Vec::new(), 0);
        drain_until_abandoned(reader, &taken, |message| match message {
            Some(message) => came.extend_from_slice(message),
            None => written = came.len(),
        });
        (came, written)
    })
}

#[test]
fn committed_messages_are_read_before_the_thread_ends() {
    loom::model(|| {
        let (mut writer, reader) = ring::ring();
        let taken = Arc::new(AtomicU64::new(0));
        let sender = start(reader, taken.clone());
        writer.push(1);
        writer.push(2);
        writer.commit();
        sender.thread().unpark();
        writer.push(3);
        writer.commit();
        drop(writer);
        sender.thread().unpark();
        assert_eq!(sender.join().unwrap(), (vec![1, 2, 3], 3));
        assert!(is_taken(&taken, 3));
    });
}

#[test]
fn sleeping_thread_is_always_woken() {
    loom::model(|| {
        let (mut writer, reader) = ring::ring();
        let taken = Arc::new(AtomicU64::new(0));
        let sender = start(reader, taken.clone());
        writer.push(1);
        writer.commit();
        sender.thread().unpark();
        // Waits as a flush does: were the wake-up lost, this would never end.
        while !is_taken(&taken, 1) {
            thread::yield_now();
        }
        drop(writer);
        sender.thread().unpark();
        assert_eq!(sender.join().unwrap(), (vec![1], 1));
    });
}

#[test]
fn dropped_writer_ends_the_thread() {
    loom::model(|| {
        let (writer, reader) = ring::ring();
        let sender = start(reader, Arc::new(AtomicU64::new(0)));
        drop(writer);
        sender.thread().unpark();
        assert_eq!(sender.join().unwrap(), (vec![], 0));
    });
}
