//! Admission and end of a client of a browser transport.

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

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WebConnectionEnd {
    /// The client closed it.
    Left,
    /// A timeout passed, or the connection broke.
    Lost,
    /// The client sent an invalid message.
    Broken,
    /// The server closed it.
    Closed,
    /// The send queue of the client was full.
    SlowConsumer,
}

impl WebConnectionEnd {
    /// The close code for the client, if it can still receive one.
    pub const fn close_code(self) -> Option<CloseCode> {
        match self {
            Self::Broken => Some(CloseCode::Policy),
            Self::Closed => Some(CloseCode::Normal),
            Self::Left | Self::Lost | Self::SlowConsumer => None,
        }
    }
}

/// An admitted client.
#[derive(Debug)]
pub(super) struct AcceptedWebClient {
    pub id: ClientId,
    pub send_queue: Arc<WebSendQueue>,
    /// The connection ends after so many seconds without a sign of life. Below 0: never.
    pub timeout_s: i32,
}

impl AcceptedWebClient {
    /// Removes the client and notifies the handler.
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

/// Admits a client by its request. The server may send packets to it before this returns; they wait for its send queue.
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
