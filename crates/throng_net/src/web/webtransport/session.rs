//! A client's WebTransport session: its token, then packets until it is over.

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

/// After a pause of so long beyond its time, as of a machine that stood still, it was not the client who said nothing: it is not given up for
/// as long again, in which what waits comes in.
const STALL_US: u64 = 500_000;

/// How far datagrams may come ahead of the time that they are paid for: half as many at once as in a second.
const AHEAD_US_MAX: u64 = 500_000;

/// A session with what its client showed first.
struct ReceivedToken {
    connection: Connection,
    /// Where the client is told how it ends.
    answer: SendStream,
    request: Vec<u8>,
}

/// From the handshake to the end.
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

/// A session from its handshake to the token, which is on the client's first stream; none where it asks for something else.
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

/// Says that it is over and why, and waits until the client heard it: with the end of the connection goes what was not.
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
    /// The time up to which datagrams that came are paid for, one a rate's share of a second.
    quota_us: u64,
    /// Before then it is not given up.
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

    /// Until it is over.
    async fn run(&mut self) -> WebConnectionEnd {
        loop {
            let due_us = self.endpoint.flushed_us + self.settings.flush_us_max();
            let pause = due_us.saturating_sub(self.shared.now_us());
            // In this order: whoever sends without end does not keep the server from speaking.
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

    /// Hands the messages over that are whole with a datagram.
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

    /// Sends what waits for the client, or is due anyway, unless it is over.
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
        let connection = self.connection;
        self.endpoint.flush(now_us, &mut self.packet, |packet| {
            // One that this path does not take is lost, which the endpoint notices.
            if connection.send_datagram(packet).is_ok() {
                WebCounters::one(&counters.datagrams_out);
            }
        });
        None
    }
}

/// What an error says of the connection.
const fn end_of_error(error: &ConnectionError) -> WebConnectionEnd {
    match error {
        ConnectionError::ApplicationClosed(_) | ConnectionError::ConnectionClosed(_) => {
            WebConnectionEnd::Left
        }
        ConnectionError::LocalH3Error(_) | ConnectionError::QuicProto(_) => {
            WebConnectionEnd::Broken
        }
        _ => WebConnectionEnd::Lost,
    }
}
