//! Admission and end of a client of a browser transport.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use throng_core::clock::unix_ms;
use throng_protocol::wire::{ClientId, CloseReason, PROTOCOL_VERSION};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::send_queue::WebSendQueue;
use super::settings::WebCounters;
use super::shared::WebShared;
use crate::handshake::ServerHandshakeError;
use crate::inbox::{ConnectionInfo, DisconnectReason};
use crate::token::TokenUserData;

/// A close code is this and the number of a [`CloseReason`].
const REASON_CODES: u16 = 4_000;

/// A close code is this and the version of the server, for a client of another version.
const VERSION_CODES: u16 = 4_100;

const fn reason_code(reason: CloseReason) -> CloseCode {
    CloseCode::Library(REASON_CODES + reason.number() as u16)
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WebConnectionEnd {
    /// The client closed it.
    Left,
    /// A timeout passed, the connection broke, or the client gave it up as lost.
    Lost,
    /// The client sent an invalid message.
    Broken,
    /// The server closed it.
    Closed,
    /// The send queue of the client was full.
    SlowConsumer,
}

impl WebConnectionEnd {
    /// The end that a client means by its close code.
    pub const fn of_client_code(code: u16) -> Self {
        if code == REASON_CODES + CloseReason::Lost.number() as u16 {
            Self::Lost
        } else {
            Self::Left
        }
    }

    /// Whether the client may return with its token.
    const fn allows_return(self) -> bool {
        matches!(self, Self::Lost | Self::SlowConsumer)
    }

    /// The close code for the client, if it can still receive one.
    pub const fn close_code(self) -> Option<CloseCode> {
        match self {
            Self::Broken => Some(CloseCode::Policy),
            Self::Closed => Some(CloseCode::Normal),
            Self::SlowConsumer => Some(reason_code(CloseReason::SlowConsumer)),
            Self::Left | Self::Lost => None,
        }
    }
}

/// An admitted client.
#[derive(Debug)]
pub(super) struct AcceptedWebClient {
    pub id: ClientId,
    pub send_queue: Arc<WebSendQueue>,
    /// The connection ends after this number of seconds without a sign of life. Below 0: never.
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
        let may_return = end.allows_return() && !self.send_queue.is_closed_by_server();
        let reason = if may_return {
            DisconnectReason::Lost
        } else {
            DisconnectReason::Closed
        };
        let token = self.send_queue.token;
        shared
            .returns
            .end_connection(token, reason, unix_ms() / 1_000);
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
        if refused.is_unknown_key() {
            WebCounters::one(&counters.unknown_keys);
        }
        match refused {
            ServerHandshakeError::Version { found: 1.., .. } => {
                CloseCode::Library(VERSION_CODES + PROTOCOL_VERSION as u16)
            }
            _ => CloseCode::Policy,
        }
    })?;
    let connected = ConnectionInfo {
        requires_ready: settings.requires_ready,
        ..ConnectionInfo::player(bearer.client).with_address(from)
    }
    .resuming_only(bearer.resumes_only)
    .with_user_data(TokenUserData::new(&bearer.user_data));
    let mut lines = shared.send_queues_mut();
    let Some(client) = shared.transport.connect(connected) else {
        drop(lines);
        shared.handshake().release_token(times.1, bearer.token);
        WebCounters::one(&counters.full);
        return Err(CloseCode::Again);
    };
    let line = Arc::new(WebSendQueue::new(bearer.token));
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::handshake::{ClientHandshake, ServerHandshake, ServerHandshakeSettings};
    use crate::udp::ConnectionHandler;
    use crate::web::settings::WebSettings;
    use crate::{ConnectToken, PROTOCOL_ID, SecretKey, TokenClaims};

    /// A server that may have no room.
    #[derive(Default)]
    struct Room(AtomicBool);

    impl ConnectionHandler for Room {
        fn connect(&self, _: ConnectionInfo) -> Option<ClientId> {
            let has_room = self.0.load(Ordering::Relaxed);
            has_room.then_some(ClientId(1))
        }

        fn receive(&self, _: ClientId, _: &[u8]) {}

        fn disconnect(&self, _: ClientId, _: DisconnectReason) {}
    }

    #[test]
    fn client_refused_as_full_can_use_its_token_again() {
        let address: SocketAddr = "127.0.0.1:7000".parse().unwrap();
        let key = SecretKey([3; 32]);
        let gate = ServerHandshakeSettings::new(PROTOCOL_ID, vec![address]);
        let gate = ServerHandshake::new(gate, key).unwrap();
        let room = Arc::<Room>::default();
        let shared = WebShared::new(WebSettings::default(), gate, room.clone());
        let claims = TokenClaims::new(1, vec![address], unix_ms() / 1_000);
        let token = ConnectToken::issue(&claims, key).unwrap();
        let mut request = Vec::new();
        ClientHandshake::new(token).update(0, &mut request);
        let full = accept(&shared, address, &request);
        assert_eq!(full.unwrap_err(), CloseCode::Again);
        room.0.store(true, Ordering::Relaxed);
        assert!(accept(&shared, address, &request).is_ok());
        let used = accept(&shared, address, &request);
        assert_eq!(used.unwrap_err(), CloseCode::Policy);
        // A client of another version receives the version of the server.
        request[12] ^= 1;
        let other = accept(&shared, address, &request);
        assert_eq!(
            u16::from(other.unwrap_err()),
            4_100 + PROTOCOL_VERSION as u16
        );
    }
}
