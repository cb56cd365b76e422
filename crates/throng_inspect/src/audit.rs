//! The audit log: who did what to a running server, one JSON object per line.
//!
//! ```text
//! administration API ── after the change, before its reply ──────────────┐
//! actions of pages, take-overs ─▶ a queue ─▶ a thread ── as they come ──▶ file
//! ```
//! Invariant: the tick waits for no write. A record without room in the queue is in the log of the program instead, as an error.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use bevy_ecs::prelude::*;
use serde::Serialize;
use throng::sim::clock::unix_ms;

/// Maximum number of records that wait for the disk.
const PENDING_RECORDS_MAX: usize = 1_024;

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditRecord {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// The name of the operator; `page` for a page that was opened without an operator's token.
    pub who: String,
    /// The address of the operator's connection; `None` on the server's own machine.
    pub from: Option<SocketAddr>,
    /// Such as `kick` or `cue`.
    pub action: &'static str,
    /// Such as `player 7`.
    pub target: String,
    /// The reason that the operator gives; it may be empty.
    pub reason: String,
    /// The result, or the error.
    pub outcome: String,
}

impl AuditRecord {
    /// A record of now.
    #[must_use]
    pub fn now(who: &str, from: Option<SocketAddr>, action: &'static str) -> Self {
        Self {
            unix_s: unix_ms() / 1000,
            who: who.to_owned(),
            from,
            action,
            target: String::new(),
            reason: String::new(),
            outcome: String::new(),
        }
    }
}

/// Opens the file of an audit log, or creates it.
pub(super) fn open_audit_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Appends a line.
pub(super) fn append_record(file: &mut File, record: &AuditRecord) -> io::Result<()> {
    let mut line = serde_json::to_string(record)?;
    line.push('\n');
    // One call, so that lines stay whole if several writers append to the file.
    file.write_all(line.as_bytes())
}

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
