//! A client's WebTransport session: its token, then packets until the connection ends.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use wtransport::endpoint::IncomingSessionFuture;
use wtransport::error::{ConnectionError, StreamReadExactError};
use wtransport::quinn::Incoming;
use wtransport::{Connection, SendStream, VarInt};

use super::{NO_ERROR, WebTransportSettings};
use crate::handshake::REQUEST_BYTES;
use crate::inbox::DisconnectReason;
use crate::server_endpoint::{ConnectionLimits, ServerEndpoint};
use crate::web::admission::{AcceptedWebClient, WebConnectionEnd, accept};
use crate::web::send_queue::QueuedPackets;
use crate::web::settings::WebCounters;
use crate::web::shared::{UnauthenticatedSlot, WebShared};

/// If a timer fires this late, the machine was stalled: the client is not at fault. It does not time out for the same time again, so that
/// waiting datagrams are received first.
const STALL_US: u64 = 500_000;

/// Burst of the rate limit of datagrams: half a second.
const AHEAD_US_MAX: u64 = 500_000;

/// A session and the token of its client.
struct ReceivedToken {
    connection: Connection,
    /// The stream for the close code.
    answer: SendStream,
    request: Vec<u8>,
}

/// Runs a session from its handshake to its end.
pub(super) async fn run_session(
    incoming: Incoming,
    place: UnauthenticatedSlot,
    shared: Arc<WebShared>,
) {
    let (settings, counters) = (&shared.settings, &shared.counters);
    let patience = Duration::from_micros(settings.handshake_timeout_us);
    let shown = match timeout(patience, receive_token(incoming)).await {
        Ok(Ok(Some(shown))) => shown,
        Ok(Ok(None) | Err(_)) => return WebCounters::one(&counters.refused),
        Err(_) => return WebCounters::one(&counters.timed_out),
    };
    let ReceivedToken {
        connection,
        mut answer,
        request,
    } = shown;
    WebCounters::one(&counters.answered);
    let code = match accept(&shared, connection.remote_address(), &request) {
        Ok(client) => {
            drop(place);
            WebCounters::one(&counters.webtransport);
            let mut conversation = WebTransportClient::new(&connection, &client, &shared);
            let end = conversation.run().await;
            client.send_queue.discard(&shared.waiting_bytes);
            if let Some(code) = end.close_code() {
                send_close(&connection, &mut answer, code, settings.linger_us).await;
            }
            connection.close(VarInt::from_u32(NO_ERROR), b"");
            return client.disconnect(end, &shared);
        }
        Err(code) => code,
    };
    send_close(&connection, &mut answer, code, settings.linger_us).await;
    connection.close(VarInt::from_u32(NO_ERROR), b"");
}

/// Accepts a session up to the token, which is on the client's first stream. `None` if the client requests something else.
async fn receive_token(incoming: Incoming) -> Result<Option<ReceivedToken>, ConnectionError> {
    let session = IncomingSessionFuture::with_quic_incoming(incoming).await?;
    if session.path() != "/play" {
        session.not_found().await;
        return Ok(None);
    }
    let connection = session.accept().await?;
    let (answer, mut stream) = connection.accept_bi().await?;
    let mut request = vec![0; REQUEST_BYTES];
    match stream.read_exact(&mut request).await {
        Ok(()) => {}
        Err(StreamReadExactError::FinishedEarly(length)) => request.truncate(length),
        Err(StreamReadExactError::Read(_)) => return Ok(None),
    }
    Ok(Some(ReceivedToken {
        connection,
        answer,
        request,
    }))
}

/// Sends the close code, and waits until the client has received it: closing the connection discards unreceived data.
async fn send_close(
    connection: &Connection,
    answer: &mut SendStream,
    code: CloseCode,
    linger_us: u64,
) {
    let said = async {
        let is_said = answer.write_all(&u16::from(code).to_le_bytes()).await;
        if is_said.is_ok() && answer.finish().await.is_ok() {
            connection.closed().await;
        }
    };
    let _ = timeout(Duration::from_micros(linger_us), said).await;
}

/// A client and its endpoint, in both directions at once.
struct WebTransportClient<'c> {
    connection: &'c Connection,
    client: &'c AcceptedWebClient,
    shared: &'c WebShared,
    settings: WebTransportSettings,
    endpoint: ServerEndpoint,
    packets: QueuedPackets,
    packet: Vec<u8>,
    /// Rate limit as the time up to which received datagrams are paid for: each costs 1/rate of a second.
    quota_us: u64,
    /// The client does not time out before this time.
    grace_until_us: u64,
}

impl<'c> WebTransportClient<'c> {
    fn new(
        connection: &'c Connection,
        client: &'c AcceptedWebClient,
        shared: &'c WebShared,
    ) -> Self {
        let settings = shared.settings.webtransport.unwrap_or_default();
        let limits = ConnectionLimits {
            endpoint: settings.endpoint,
            linger_us: shared.settings.linger_us,
            unacknowledged_us_max: shared.settings.read_timeout_us,
        };
        Self {
            connection,
            client,
            shared,
            settings,
            endpoint: ServerEndpoint::new(client.timeout_s, limits, shared.now_us()),
            packets: QueuedPackets::default(),
            packet: Vec::new(),
            quota_us: 0,
            grace_until_us: 0,
        }
    }

    /// Runs until the connection ends.
    async fn run(&mut self) -> WebConnectionEnd {
        loop {
            let due_us = self.endpoint.flushed_us + self.settings.flush_us_max();
            let pause = due_us.saturating_sub(self.shared.now_us());
            // In this order, so that a client that sends without pause does not block the server's packets.
            let woken = pin!(timeout(
                Duration::from_micros(pause),
                self.client.send_queue.filled.notified()
            ));
            let came = pin!(self.connection.receive_datagram());
            let came = match select(woken, came).await {
                Either::Left(_) => None,
                Either::Right((came, _)) => Some(came),
            };
            let now_us = self.shared.now_us();
            let end = match came {
                None => self.send(now_us, due_us),
                Some(Ok(datagram)) => self.receive(now_us, &datagram),
                Some(Err(error)) => Some(end_of_error(&error)),
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// Passes on the messages that a datagram completes.
    fn receive(&mut self, now_us: u64, datagram: &[u8]) -> Option<WebConnectionEnd> {
        let (shared, counters) = (self.shared, &self.shared.counters);
        WebCounters::one(&counters.datagrams_in);
        let rate = u64::from(self.settings.datagrams_per_s.max(1));
        let paid_us = self.quota_us.max(now_us);
        if paid_us - now_us > AHEAD_US_MAX {
            WebCounters::one(&counters.throttled);
            return None;
        }
        self.quota_us = paid_us + 1_000_000 / rate;
        self.endpoint.mark_received(now_us);
        let taken = self.endpoint.receive(now_us, datagram, |message| {
            WebCounters::one(&counters.messages_in);
            WebCounters::add(&counters.bytes_in, message.len() as u64);
            shared.transport.receive(self.client.id, message);
        });
        match taken {
            Ok(()) => None,
            Err(refused) => {
                WebCounters::one(&counters.datagrams_refused);
                refused.is_fatal().then_some(WebConnectionEnd::Broken)
            }
        }
    }

    /// Sends pending packets, unless the connection has ended.
    fn send(&mut self, now_us: u64, due_us: u64) -> Option<WebConnectionEnd> {
        let (shared, counters) = (self.shared, &self.shared.counters);
        let state = self
            .client
            .send_queue
            .swap(&mut self.packets, &shared.waiting_bytes);
        let (packets_out, bytes_out) = (self.packets.len(), self.packets.bytes.len());
        let mut is_behind = state.is_full;
        for (channel, packet) in self.packets.drain() {
            is_behind |= !self.endpoint.push(channel, &packet);
        }
        if is_behind {
            return Some(WebConnectionEnd::SlowConsumer);
        }
        WebCounters::add(&counters.packets_out, packets_out as u64);
        WebCounters::add(&counters.bytes_out, bytes_out as u64);
        if state.is_closed {
            self.endpoint.close(now_us);
        }
        if now_us.saturating_sub(due_us) >= STALL_US {
            self.grace_until_us = now_us + STALL_US;
        }
        match self.endpoint.end_reason(now_us) {
            Some(DisconnectReason::Closed) => return Some(WebConnectionEnd::Closed),
            Some(DisconnectReason::Lost) if now_us >= self.grace_until_us => {
                return Some(WebConnectionEnd::Lost);
            }
            _ => {}
        }
        let endpoint = &self.endpoint;
        self.client.send_queue.measure(now_us, || {
            (
                endpoint.round_trip_us(),
                endpoint.stats().bytes_sent,
                endpoint.loss(),
            )
        });
        let connection = self.connection;
        self.endpoint.flush(now_us, &mut self.packet, |packet| {
            // A datagram that this path does not carry is lost; the endpoint detects it.
            if connection.send_datagram(packet).is_ok() {
                WebCounters::one(&counters.datagrams_out);
            }
        });
        None
    }
}

/// The reason that belongs to an error.
fn end_of_error(error: &ConnectionError) -> WebConnectionEnd {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            let code = u16::try_from(close.code().into_inner()).unwrap_or_default();
            WebConnectionEnd::of_client_code(code)
        }
        ConnectionError::ConnectionClosed(_) => WebConnectionEnd::Left,
        ConnectionError::LocalH3Error(_) | ConnectionError::QuicProto(_) => {
            WebConnectionEnd::Broken
        }
        _ => WebConnectionEnd::Lost,
    }
}
