//! The records of the audit log: who did what to a running server, one JSON object per line.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;

use serde::Serialize;
use throng::sim::clock::unix_ms;

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
