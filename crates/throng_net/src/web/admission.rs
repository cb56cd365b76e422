//! A client from its token to its end, whichever way it came.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use throng_core::clock::unix_ms;
use throng_protocol::wire::ClientId;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::send_queue::WebSendQueue;
use super::settings::WebCounters;
use super::shared::WebShared;
use crate::inbox::{ConnectionInfo, DisconnectReason};

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WebConnectionEnd {
    /// Its client said so.
    Left,
    /// It was not answered in time, or without a word.
    Lost,
    /// What came is no message.
    Broken,
    /// The server is done with it.
    Closed,
    /// Too much waited for it.
    SlowConsumer,
}

impl WebConnectionEnd {
    /// What the client is told of it, where it can be told anything.
    pub const fn close_code(self) -> Option<CloseCode> {
        match self {
            Self::Broken => Some(CloseCode::Policy),
            Self::Closed => Some(CloseCode::Normal),
            Self::Left | Self::Lost | Self::SlowConsumer => None,
        }
    }
}

/// A client that was let in.
#[derive(Debug)]
pub(super) struct AcceptedWebClient {
    pub id: ClientId,
    pub send_queue: Arc<WebSendQueue>,
    /// After so long without a sign of life its connection is over, in seconds; below 0 never.
    pub timeout_s: i32,
}

impl AcceptedWebClient {
    /// Tells everybody that it is gone.
    pub fn disconnect(&self, end: WebConnectionEnd, shared: &WebShared) {
        let counters = &shared.counters;
        let (counter, reason) = match end {
            WebConnectionEnd::Left => (&counters.left, DisconnectReason::Closed),
            WebConnectionEnd::Lost => (&counters.lost, DisconnectReason::Lost),
            WebConnectionEnd::Broken => (&counters.broken, DisconnectReason::Lost),
            WebConnectionEnd::Closed => (&counters.closed, DisconnectReason::Closed),
            WebConnectionEnd::SlowConsumer => (&counters.slow_consumers, DisconnectReason::Lost),
        };
        self.send_queue.discard(&shared.waiting_bytes);
        shared.send_queues_mut().remove(&self.id);
        shared.transport.disconnect(self.id, reason);
        counters.clients.fetch_sub(1, Ordering::Relaxed);
        WebCounters::one(counter);
    }
}

/// Lets a client in by its request. The server may have packets for it before this is over; they wait for its line.
pub(super) fn accept(
    shared: &WebShared,
    from: SocketAddr,
    request: &[u8],
) -> Result<AcceptedWebClient, CloseCode> {
    let (settings, counters) = (&shared.settings, &shared.counters);
    if shared.send_queues().len() >= settings.clients_max {
        WebCounters::one(&counters.full);
        return Err(CloseCode::Again);
    }
    let times = (shared.now_us(), unix_ms() / 1_000);
    let bearer = shared
        .handshake()
        .accept_by_token(times, from, &mut request.to_vec());
    let bearer = bearer.map_err(|refused| {
        tracing::debug!(address = %from, error = %refused, "connect token refused");
        WebCounters::one(&counters.denied);
        CloseCode::Policy
    })?;
    let connected = ConnectionInfo {
        requires_ready: settings.requires_ready,
        ..ConnectionInfo::player(bearer.client).with_address(from)
    };
    let mut lines = shared.send_queues_mut();
    let Some(client) = shared.transport.connect(connected) else {
        WebCounters::one(&counters.full);
        return Err(CloseCode::Again);
    };
    let line = Arc::<WebSendQueue>::default();
    lines.insert(client, line.clone());
    drop(lines);
    WebCounters::one(&counters.clients_accepted);
    WebCounters::one(&counters.clients);
    Ok(AcceptedWebClient {
        id: client,
        send_queue: line,
        timeout_s: bearer.timeout_s,
    })
}
