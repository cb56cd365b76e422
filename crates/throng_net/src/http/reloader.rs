//! Reloads a certificate when its files change.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::certificate::TlsCertificate;

/// A thread that looks at the files of a certificate from time to time, and reloads it if they have changed. It ends when this is dropped.
///
/// A reload is logged. Files that cannot be used are logged once, and the old certificate stays in use.
#[derive(Debug)]
pub struct TlsReloader {
    requests: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TlsReloader {
    /// Starts the thread. Changed files are loaded after one to two intervals.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(certificate: TlsCertificate, interval: Duration) -> io::Result<Self> {
        let (requests, requested) = sync_channel(1);
        let thread = thread::Builder::new().name("tls-reload".to_owned());
        let thread = thread.spawn(move || {
            loop {
                let loaded = match requested.recv_timeout(interval) {
                    Ok(()) => certificate.reload().map(|()| true),
                    Err(RecvTimeoutError::Timeout) => certificate.reload_if_changed(),
                    Err(RecvTimeoutError::Disconnected) => return,
                };
                match loaded {
                    Ok(false) => {}
                    Ok(true) => {
                        let sha256 = certificate.sha256();
                        let sha256: String = sha256.iter().map(|it| format!("{it:02x}")).collect();
                        tracing::info!(%sha256, "TLS certificate reloaded");
                    }
                    Err(error) => {
                        tracing::warn!(%error, "TLS certificate not reloaded; the old one stays in use");
                    }
                }
            }
        })?;
        Ok(Self {
            requests: Some(requests),
            thread: Some(thread),
        })
    }

    /// Reloads the files now, changed or not. Does not wait for it.
    pub fn request(&self) {
        // If one is pending, it reads the same files.
        let _ = self.requests.as_ref().map(|requests| requests.try_send(()));
    }
}

impl Drop for TlsReloader {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("TLS reload thread panicked: changed certificates were not loaded");
        }
    }
}
