//! The WebSocket of a client: its token, then messages and packets until the connection ends.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use throng_protocol::wire::ClientId;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};

use super::admission::{AcceptedWebClient, WebConnectionEnd, accept};
use super::send_queue::{QueuedPackets, WebSendQueue};
use super::settings::{WebCounters, WebSettings};
use super::shared::{UnauthenticatedSlot, WebShared};
use crate::handshake::REQUEST_BYTES;

/// Time between two pings to a client that receives packets, and to one that does not, in microseconds.
const PING_US: u64 = 250_000;
const IDLE_PING_US: u64 = 1_000_000;

/// If a timer fires this late, the machine was stalled: the client is not at fault.
const STALL_US: u64 = 500_000;

/// The longest frame of a client, in bytes: a request. Messages are shorter.
const FRAME_BYTES_MAX: usize = REQUEST_BYTES;

/// Initial bytes of a connection's buffers. It writes when this many are buffered.
const BUFFER_BYTES: usize = 4 << 10;

type ClientSocket = WebSocketStream<TokioIo<Upgraded>>;

/// Whether the last ping was answered.
#[derive(Debug, Default)]
struct PingState {
    sent: AtomicU64,
    received: AtomicU64,
    /// When the last one was sent, in microseconds.
    sent_us: AtomicU64,
    /// The round trip time of the last answered one, in microseconds, with the packets before it.
    round_trip_us: AtomicU64,
}

impl PingState {
    fn is_pending(&self) -> bool {
        self.sent.load(Ordering::Relaxed) != self.received.load(Ordering::Relaxed)
    }
}

/// Runs a connection from the upgrade to its end.
pub(super) async fn run_websocket(
    upgrade: OnUpgrade,
    from: SocketAddr,
    place: Arc<UnauthenticatedSlot>,
    shared: Arc<WebShared>,
) {
    let counters = &shared.counters;
    let patience = Duration::from_micros(shared.settings.handshake_timeout_us);
    let Ok(Ok(upgraded)) = timeout(patience, upgrade).await else {
        return WebCounters::one(&counters.timed_out);
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(FRAME_BYTES_MAX))
        .max_frame_size(Some(FRAME_BYTES_MAX));
    let stream = TokioIo::new(upgraded);
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let Ok(first) = timeout(patience, socket.next()).await else {
        return WebCounters::one(&counters.timed_out);
    };
    let admitted = match first {
        Some(Ok(Message::Binary(request))) => accept(&shared, from, &request),
        _ => {
            WebCounters::one(&counters.denied);
            Err(CloseCode::Policy)
        }
    };
    match admitted {
        Ok(client) => {
            drop(place);
            run_client(socket, &client, &shared).await;
        }
        Err(code) => {
            let (mut sink, mut stream) = socket.split();
            send_close(&mut sink, &mut stream, code, &shared.settings).await;
        }
    }
}

/// Handles messages and packets in both directions until the connection ends.
async fn run_client(socket: ClientSocket, client: &AcceptedWebClient, shared: &WebShared) {
    let (mut sink, mut stream) = socket.split();
    // A packet sent just after a ping is confirmed by the pong to the next ping: after twice this time at most.
    let unread_us = shared.settings.read_timeout_us.saturating_sub(PING_US) / 2;
    let timeout_s = u64::try_from(client.timeout_s).unwrap_or(u64::MAX);
    let timeout_us = timeout_s.saturating_mul(1_000_000).min(unread_us);
    let pulse = PingState::default();
    let end = {
        // A pong that has arrived is handled before the timeout is checked.
        let hearing = pin!(receive_messages(&mut stream, client.id, &pulse, shared));
        let telling = pin!(send_packets(
            &mut sink,
            &client.send_queue,
            timeout_us,
            &pulse,
            shared
        ));
        match select(hearing, telling).await {
            Either::Left((end, _)) | Either::Right((end, _)) => end,
        }
    };
    client.send_queue.discard(&shared.waiting_bytes);
    match end.close_code() {
        Some(code) => send_close(&mut sink, &mut stream, code, &shared.settings).await,
        // Replies to the client's close frame, if there was one.
        None => _ = timeout(Duration::from_micros(PING_US), sink.flush()).await,
    }
    client.disconnect(end, shared);
}

/// Sends the close frame and waits for the reply. Closing the socket with unread data would discard packets that the client has not read.
async fn send_close(
    sink: &mut SplitSink<ClientSocket, Message>,
    stream: &mut SplitStream<ClientSocket>,
    code: CloseCode,
    settings: &WebSettings,
) {
    let goodbye = Message::Close(Some(CloseFrame {
        code,
        reason: "".into(),
    }));
    let parted = async {
        if sink.send(goodbye).await.is_ok() {
            while let Some(Ok(_)) = stream.next().await {}
        }
    };
    let _ = timeout(Duration::from_micros(settings.linger_us), parted).await;
}

/// Passes on the client's messages until there are no more.
async fn receive_messages(
    stream: &mut SplitStream<ClientSocket>,
    client: ClientId,
    pulse: &PingState,
    shared: &WebShared,
) -> WebConnectionEnd {
    let counters = &shared.counters;
    let rate = u64::from(shared.settings.messages_per_s.max(1));
    // Rate limit as the time up to which received messages are paid for: each costs 1/rate of a second, at most one second ahead.
    let mut paid_us = 0;
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(message))) => {
                WebCounters::one(&counters.messages_in);
                WebCounters::add(&counters.bytes_in, message.len() as u64);
                shared.transport.receive(client, &message);
            }
            Some(Ok(Message::Pong(number))) => {
                let number = number.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                if number == Some(pulse.sent.load(Ordering::Relaxed)) {
                    pulse
                        .received
                        .store(number.unwrap_or_default(), Ordering::Relaxed);
                    let sent_us = pulse.sent_us.load(Ordering::Relaxed);
                    let round_trip_us = shared.now_us().saturating_sub(sent_us).max(1);
                    pulse.round_trip_us.store(round_trip_us, Ordering::Relaxed);
                }
            }
            Some(Ok(Message::Ping(_))) => {}
            Some(Ok(Message::Close(frame))) => {
                let code = frame.map_or(0, |frame| u16::from(frame.code));
                return WebConnectionEnd::of_client_code(code);
            }
            Some(Ok(Message::Text(_) | Message::Frame(_))) => return WebConnectionEnd::Broken,
            Some(Err(error)) => return end_of_error(&error),
            None => return WebConnectionEnd::Lost,
        }
        let now_us = shared.now_us();
        paid_us = now_us.saturating_sub(1_000_000).max(paid_us) + 1_000_000 / rate;
        if paid_us > now_us {
            WebCounters::one(&counters.throttled);
            sleep(Duration::from_micros(paid_us - now_us)).await;
        }
    }
}

/// The reason that belongs to an error.
const fn end_of_error(error: &Error) -> WebConnectionEnd {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => WebConnectionEnd::Left,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) | Error::Io(_) => {
            WebConnectionEnd::Lost
        }
        _ => WebConnectionEnd::Broken,
    }
}

/// Sends the client's packets until there are no more, or the client does not read them in time.
async fn send_packets(
    sink: &mut SplitSink<ClientSocket, Message>,
    line: &WebSendQueue,
    timeout_us: u64,
    pulse: &PingState,
    shared: &WebShared,
) -> WebConnectionEnd {
    let counters = &shared.counters;
    let mut packets = QueuedPackets::default();
    let mut bytes_sent = 0;
    // Time of the last ping, and whether packets were sent after it.
    let (mut asked_us, mut is_owed) = (shared.now_us(), false);
    let apart_us = |is_owed| if is_owed { PING_US } else { IDLE_PING_US };
    loop {
        let wait_us = match pulse.is_pending() {
            true => timeout_us,
            false => apart_us(is_owed),
        };
        let until_us = asked_us.saturating_add(wait_us);
        let pause = Duration::from_micros(until_us.saturating_sub(shared.now_us()));
        let _ = timeout(pause, line.filled.notified()).await;
        let now_us = shared.now_us();
        let mut is_waited_for = pulse.is_pending();
        if is_waited_for && now_us.saturating_sub(asked_us) >= timeout_us {
            if now_us.saturating_sub(until_us) < STALL_US {
                return WebConnectionEnd::Lost;
            }
            asked_us = now_us;
        }
        let state = line.swap(&mut packets, &shared.waiting_bytes);
        if state.is_full {
            return WebConnectionEnd::SlowConsumer;
        }
        is_owed |= !packets.is_empty();
        let mut ping = None;
        if !is_waited_for && now_us.saturating_sub(asked_us) >= apart_us(is_owed) {
            let number = pulse.sent.fetch_add(1, Ordering::Relaxed) + 1;
            pulse.sent_us.store(now_us, Ordering::Relaxed);
            ping = Some(Bytes::copy_from_slice(&number.to_le_bytes()));
            (is_waited_for, is_owed, asked_us) = (true, false, now_us);
        }
        let (packets_out, bytes_out) = (packets.len(), packets.bytes.len());
        let since_us = if is_waited_for { asked_us } else { now_us };
        let left_us = since_us.saturating_add(timeout_us).saturating_sub(now_us);
        let written = timeout(
            Duration::from_micros(left_us),
            write_packets(sink, &mut packets, ping),
        );
        if !matches!(written.await, Ok(Ok(()))) {
            return WebConnectionEnd::Lost;
        }
        WebCounters::add(&counters.packets_out, packets_out as u64);
        WebCounters::add(&counters.bytes_out, bytes_out as u64);
        bytes_sent += bytes_out as u64;
        line.measure(now_us, || {
            (pulse.round_trip_us.load(Ordering::Relaxed), bytes_sent, 0.0)
        });
        if state.is_closed {
            return WebConnectionEnd::Closed;
        }
    }
}

async fn write_packets(
    sink: &mut SplitSink<ClientSocket, Message>,
    packets: &mut QueuedPackets,
    ping: Option<Bytes>,
) -> Result<(), Error> {
    for (_, packet) in packets.drain() {
        sink.feed(Message::Binary(packet)).await?;
    }
    if let Some(ping) = ping {
        sink.feed(Message::Ping(ping)).await?;
    }
    sink.flush().await
}
