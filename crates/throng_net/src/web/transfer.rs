//! The time limit of an HTTP request and its response: a time for the request, then a minimum rate, then a maximum in total.
//!
//! A fixed time would cut off a large response over a slow network. So the limit moves on with each byte that the client has taken: a client
//! that reads at the minimum rate gets everything, one that reads slower or not at all does not hold its connection.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

/// Time limits of an HTTP request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransferLimits {
    /// For the request, and for a response without a byte.
    pub request: Duration,
    /// The slowest rate at which a response has to be read, on average.
    pub bytes_per_s_min: u32,
    /// For everything together.
    pub total: Duration,
}

impl TransferLimits {
    /// The latest time, counted from the start, for the next byte or the end, once `written` bytes were written.
    fn limit(&self, written: u64) -> Duration {
        let rate = u64::from(self.bytes_per_s_min.max(1));
        let earned = Duration::from_micros(written.saturating_mul(1_000_000) / rate);
        self.request.saturating_add(earned).min(self.total)
    }

    /// Runs an exchange over a counted stream; `None` if it takes too long.
    pub async fn run<T>(self, written: &AtomicU64, exchange: impl Future<Output = T>) -> Option<T> {
        let mut exchange = pin!(exchange);
        let mut waited = Duration::ZERO;
        loop {
            let limit = self.limit(written.load(Ordering::Relaxed));
            if limit <= waited {
                return None;
            }
            if let Ok(done) = timeout(limit - waited, &mut exchange).await {
                return Some(done);
            }
            waited = limit;
        }
    }
}

/// A stream that counts the bytes which were written to it.
#[derive(Debug)]
pub(super) struct CountedStream<S> {
    stream: S,
    written: Arc<AtomicU64>,
}

impl<S> CountedStream<S> {
    /// A stream, and its counter.
    pub fn new(stream: S) -> (Self, Arc<AtomicU64>) {
        let written = Arc::<AtomicU64>::default();
        let counter = written.clone();
        (Self { stream, written }, counter)
    }

    fn count(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_moves_on_with_the_bytes_up_to_the_total() {
        let limits = TransferLimits {
            request: Duration::from_secs(5),
            bytes_per_s_min: 1_000,
            total: Duration::from_secs(60),
        };
        for (written, seconds) in [
            (0, 5),
            (1_000, 6),
            (20_000, 25),
            (55_000, 60),
            (u64::MAX, 60),
        ] {
            assert_eq!(limits.limit(written), Duration::from_secs(seconds));
        }
    }
}
