//! A client over UDP or over a WebSocket.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use throng_client::{Client, ClientEvent, ClientSession, ClientSettings, ControlState};
use throng_core::clock::unix_ms;
use throng_net::{ConnectToken, SecretKey, TokenClaims};
use throng_protocol::wire::PROTOCOL_VERSION;
use tokio_tungstenite::tungstenite::{self, Error, Message, WebSocket};

use super::nodes::PLAYER;

pub enum TestClient {
    Udp(Box<Client>),
    Web(Box<WebClient>),
}

/// A client in a browser: a session over a WebSocket.
pub struct WebClient {
    socket: WebSocket<TcpStream>,
    /// What authenticates it at each gateway.
    request: Vec<u8>,
    session: ClientSession,
    started: Instant,
}

fn token(servers: Vec<SocketAddr>) -> ConnectToken {
    let claims = TokenClaims::new(PLAYER.0, servers, unix_ms() / 1_000);
    ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap()
}

impl TestClient {
    pub fn over_udp(servers: Vec<SocketAddr>) -> Self {
        let client = Client::connect(&token(servers).to_bytes(), ClientSettings::default());
        Self::Udp(Box::new(client.unwrap()))
    }

    pub fn over_web_socket(servers: Vec<SocketAddr>) -> Self {
        let first = servers[0];
        let token = token(servers).to_bytes();
        let version = u16::try_from(PROTOCOL_VERSION).unwrap().to_le_bytes();
        let prefix = b"\0THRONG NET\0";
        let request = [prefix, &version[..], &token[13..21], &token[29..1_085]].concat();
        Self::Web(Box::new(WebClient {
            socket: open(first, &request),
            request,
            session: ClientSession::new(ClientSettings::default()),
            started: Instant::now(),
        }))
    }

    /// Opens another WebSocket with the same token, and drops the current one, which is not closed.
    pub fn resume_at(&mut self, server: SocketAddr) {
        let Self::Web(client) = self else {
            panic!("only for clients with a WebSocket");
        };
        let lost = std::mem::replace(&mut client.socket, open(server, &client.request));
        drop(lost);
        client.session.reconnect();
    }

    /// Drops the WebSocket without closing it.
    pub fn lose_socket(&self) {
        if let Self::Web(client) = self {
            let _ = client.socket.get_ref().shutdown(std::net::Shutdown::Both);
        }
    }

    pub fn update(&mut self, now: Instant) -> Result<(), String> {
        match self {
            Self::Udp(client) => client.update(now).map_err(|error| error.to_string()),
            Self::Web(client) => client.update(now),
        }
    }

    pub fn session(&self) -> &ClientSession {
        match self {
            Self::Udp(client) => client.session(),
            Self::Web(client) => &client.session,
        }
    }

    pub fn set_controls(&mut self, controls: ControlState) {
        match self {
            Self::Udp(client) => client.set_controls(controls),
            Self::Web(client) => client.session.set_controls(controls),
        }
    }

    pub fn next_event(&mut self) -> Option<ClientEvent> {
        match self {
            Self::Udp(client) => client.next_event(),
            Self::Web(client) => client.session.next_event(),
        }
    }

    pub fn leave(self) {
        match self {
            Self::Udp(client) => client.leave(),
            Self::Web(mut client) => client.socket.close(None).unwrap(),
        }
    }
}

/// Opens a WebSocket, and sends a connect request.
fn open(server: SocketAddr, request: &[u8]) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(server).unwrap();
    let (mut socket, _) = tungstenite::client(format!("ws://{server}/play"), stream).unwrap();
    socket
        .send(Message::Binary(request.to_vec().into()))
        .unwrap();
    socket.get_ref().set_nonblocking(true).unwrap();
    socket
}

fn is_blocked(error: &Error) -> bool {
    matches!(error, Error::Io(error) if error.kind() == ErrorKind::WouldBlock)
}

impl WebClient {
    fn update(&mut self, now: Instant) -> Result<(), String> {
        let now_s = now.duration_since(self.started).as_secs_f64();
        let mut sent = Ok(());
        let socket = &mut self.socket;
        self.session.update(now_s, |message| {
            let message = Message::Binary(message.to_bytes().into());
            match socket.send(message) {
                // What is blocked is sent with the next message.
                Err(error) if !is_blocked(&error) => sent = Err(error.to_string()),
                _ => {}
            }
        });
        sent?;
        loop {
            match self.socket.read() {
                Ok(Message::Binary(packet)) => {
                    let received = self.session.receive(&packet, now_s);
                    received.map_err(|error| error.to_string())?;
                }
                Ok(Message::Close(frame)) => return Err(format!("closed: {frame:?}")),
                Ok(_) => {}
                Err(error) if is_blocked(&error) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}
