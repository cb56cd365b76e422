//! The audit log of actions outside the administration API.
//!
//! ```text
//! administration API ── after the change, before its reply ──────────────┐
//! actions of pages, take-overs ─▶ a queue ─▶ a thread ── as they come ──▶ file
//! ```
//! Invariant: the tick waits for no write. A record without room in the queue is not written, and the log of the program has an error.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use bevy_ecs::prelude::*;

use crate::audit::{AuditRecord, append_record, open_audit_file};

/// Maximum number of records that wait for the disk.
const PENDING_RECORDS_MAX: usize = 1_024;

/// The audit log of actions outside the administration API: what pages do, and what the program reports. The API writes its own
/// records, to the same file if its [`AdminSettings`](crate::AdminSettings) name it.
#[derive(Resource, Debug)]
pub struct AuditLog {
    records: Option<SyncSender<AuditRecord>>,
    thread: Option<JoinHandle<()>>,
}

impl AuditLog {
    /// Appends to a file from now on. All records are written when it is dropped.
    ///
    /// # Errors
    /// When the file cannot be opened, or the thread not started.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = open_audit_file(path)?;
        let (records, pending) = sync_channel(PENDING_RECORDS_MAX);
        let thread = thread::Builder::new().name("audit".to_owned());
        let thread = thread.spawn(move || write_records(file, &pending));
        Ok(Self {
            records: Some(records),
            thread: Some(thread?),
        })
    }

    /// Adds a record. Does not wait.
    pub fn record(&self, record: AuditRecord) {
        let Some(records) = &self.records else {
            return;
        };
        if let Err(error) = records.try_send(record) {
            tracing::error!(%error, "audit record not written");
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.records = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_records(mut file: File, pending: &Receiver<AuditRecord>) {
    for record in pending {
        if let Err(error) = append_record(&mut file, &record) {
            tracing::error!(%error, ?record, "audit record not written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn records_are_in_the_file_when_the_log_is_dropped() {
        let name = format!("throng-audit-{}.log", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_file(&path);
        for run in 0..2 {
            let log = AuditLog::open(&path).unwrap();
            for nth in 0..100 {
                log.record(AuditRecord {
                    target: format!("run {run}, \"{nth}\"\n"),
                    ..AuditRecord::now("alice", None, "cue")
                });
            }
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!([&line["who"], &line["action"]], ["alice", "cue"]);
            line["target"].as_str().unwrap().to_owned()
        });
        let expected = (0..200).map(|nth| format!("run {}, \"{}\"\n", nth / 100, nth % 100));
        assert!(lines.eq(expected), "{text}");
        fs::remove_file(&path).unwrap();
    }
}
