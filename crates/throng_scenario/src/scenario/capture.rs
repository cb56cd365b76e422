//! Capture of every packet of a run, in addition to delivery to the mirrors.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use throng::outbox::{CaptureSink, PacketSink};
use throng::wire::CloseReason;
use throng::wire::{Channel, ClientId};

/// The output of a packet capture, shared by the run and the sink in the outbox.
#[derive(Clone)]
pub(super) struct PacketLog(Arc<Mutex<Option<CaptureWriter>>>);

type CaptureWriter = CaptureSink<Box<dyn Write + Send + Sync>>;

impl PacketLog {
    /// Starts the capture.
    ///
    /// # Errors
    /// When the header cannot be written.
    pub fn new(to: Box<dyn Write + Send + Sync>) -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Some(CaptureSink::new(to)?)))))
    }

    /// A sink that captures packets and passes them on.
    pub fn wrap(&self, next: Box<dyn PacketSink>) -> Box<dyn PacketSink> {
        Box::new(CapturingSink {
            log: self.clone(),
            next,
        })
    }

    /// Flushes buffered packets. Later packets are passed on, and are not captured.
    ///
    /// # Errors
    /// When some of the packets could not be written.
    pub fn finish(&self) -> io::Result<()> {
        let sink = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut sink) = sink else {
            return Ok(());
        };
        sink.flush();
        match sink.errors() {
            0 => Ok(()),
            errors => Err(io::Error::other(format!(
                "{errors} records are missing in the capture"
            ))),
        }
    }

    /// Calls `act` with the capture; returns the default value if the capture is finished.
    fn with<T: Default>(&self, act: impl FnOnce(&mut CaptureWriter) -> T) -> T {
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sink.as_mut().map(act).unwrap_or_default()
    }
}

struct CapturingSink {
    log: PacketLog,
    next: Box<dyn PacketSink>,
}

impl PacketSink for CapturingSink {
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        self.log.with(|log| log.deliver(client, channel, packet));
        self.next.deliver(client, channel, packet);
    }

    fn close(&mut self, client: ClientId, reason: CloseReason) {
        self.log.with(|log| log.close(client, reason));
        self.next.close(client, reason);
    }

    /// Does not flush the capture, since a write per tick would be slow; [`PacketLog::finish`] does.
    fn flush(&mut self) {
        self.next.flush();
    }

    fn errors(&self) -> u64 {
        self.next.errors() + self.log.with(|log| log.errors())
    }
}
