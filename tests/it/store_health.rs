//! Promise: a server says that players cannot play while its store is unreachable or hangs, also if no player needs the store.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use throng::prelude::*;
use throng::store::{
    MemoryDisk, PlayerStore, StoreBackend, StoreError, StoreErrorKind, StoreFactory,
};
use throng_inspect::ServerHealth;

use crate::inspect_page::{get, inspected_server};

/// A store that cannot be opened while it is away.
#[derive(Clone, Debug)]
struct UnreachableStore {
    is_unreachable: Arc<AtomicBool>,
    disk: MemoryDisk,
}

impl StoreFactory for UnreachableStore {
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
        if self.is_unreachable.load(Ordering::Relaxed) {
            return Err(StoreError {
                store: "of a test".to_owned(),
                kind: StoreErrorKind::Unreachable,
                cause: "away".to_owned(),
            });
        }
        self.disk.open()
    }
}

/// A store that hangs while another thread holds the lock.
#[derive(Clone, Debug, Default)]
struct HangingStore {
    gate: Arc<Mutex<()>>,
    disk: MemoryDisk,
}

impl StoreFactory for HangingStore {
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
        drop(self.gate.lock().unwrap_or_else(PoisonError::into_inner));
        self.disk.open()
    }
}

fn open(server: &mut Server, source: impl StoreFactory + 'static) {
    let mut store = server.world_mut().resource_mut::<PlayerStore>();
    store.open(source).unwrap();
}

/// Does ticks until `/readyz` has this status; returns the reason.
fn wait_for_status(server: &mut Server, address: SocketAddr, expected: u16) -> String {
    loop {
        server.step(1);
        let (status, reason) = get(address, "/readyz");
        if status == expected {
            return reason;
        }
        thread::yield_now();
    }
}

#[test]
fn server_without_players_is_ready_while_its_store_answers() {
    let (mut server, address) = inspected_server();
    let source = UnreachableStore {
        is_unreachable: Arc::new(AtomicBool::new(true)),
        disk: MemoryDisk::default(),
    };
    let is_away = source.is_unreachable.clone();
    open(&mut server, source);
    let reason = wait_for_status(&mut server, address, 503);
    assert!(reason.starts_with("store unreachable"), "{reason}");
    assert_eq!(get(address, "/healthz").0, 200, "a restart would not help");
    is_away.store(false, Ordering::Relaxed);
    assert_eq!(wait_for_status(&mut server, address, 200), "ready\n");
    let mut health = server.world_mut().resource_mut::<ServerHealth>();
    health.set_stopping();
    let reason = wait_for_status(&mut server, address, 503);
    assert!(reason.starts_with("stopping"), "{reason}");
}

#[test]
fn server_whose_store_hangs_is_not_ready_until_it_replies() {
    let (mut server, address) = inspected_server();
    let source = HangingStore::default();
    let gate = source.gate.clone();
    let held = gate.lock().unwrap();
    open(&mut server, source);
    let reason = wait_for_status(&mut server, address, 503);
    assert!(reason.starts_with("store unreachable"), "{reason}");
    drop(held);
    assert_eq!(wait_for_status(&mut server, address, 200), "ready\n");
}
