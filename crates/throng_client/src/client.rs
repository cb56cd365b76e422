//! A session with a socket and a clock.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use glam::Vec2;
use thiserror::Error;
use throng_nav::map::TileMap;
use throng_net::{
    ConnectToken, ConnectionError, EndpointSettings, SendError, TokenError, UdpClient,
};
use throng_protocol::mirror::{Mirror, MirrorError};
use throng_protocol::wire::{ClientMessage, LoginRefusal, ReplicatedAttribute};

use crate::event::ClientEvent;
use crate::session::{ClientMap, ClientSession, ClientSettings, ControlState};

/// Why a client cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientStartError {
    /// The token is invalid.
    #[error("the token: {0}")]
    Token(#[from] TokenError),
    /// The system cannot open a socket.
    #[error("no socket: {0}")]
    Socket(#[from] io::Error),
}

/// Why a client has stopped working.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientError {
    /// The connection has ended, or was never made. If it was lost, [`Client::resume`] continues; otherwise [`Client::reconnect`] with
    /// another token may help.
    #[error(transparent)]
    Ended(#[from] ConnectionError),
    /// The server has refused the login.
    #[error("login refused: {0}")]
    Refused(LoginRefusal),
    /// The server's messages are inconsistent: client and server have different versions.
    #[error("the server is not understood: {0}")]
    Mirror(#[from] MirrorError),
    /// The send queue is full.
    #[error(transparent)]
    SendQueueFull(#[from] SendError),
}

/// The client of a player: see the [crate documentation](crate).
#[derive(Debug)]
pub struct Client {
    connection: UdpClient,
    session: ClientSession,
    /// The token of the connection.
    token: Vec<u8>,
    started: Instant,
    error: Option<ClientError>,
}

impl Client {
    /// Starts to connect with an unused token of 2,048 bytes from the game's login service.
    ///
    /// # Errors
    /// [`ClientStartError`]. Whether the server accepts the token shows in [`update`](Self::update). The server does not reply to a token
    /// that was used, is expired or has another key: `update` then fails after the token's timeout.
    pub fn connect(token: &[u8], settings: ClientSettings) -> Result<Self, ClientStartError> {
        Ok(Self {
            connection: open_connection(token)?,
            session: ClientSession::new(settings),
            token: token.to_vec(),
            started: Instant::now(),
            error: None,
        })
    }

    /// Connects again with another token. Client state stays, and the session resumes if the server still has it.
    ///
    /// # Errors
    /// [`ClientStartError`]; then nothing has changed.
    pub fn reconnect(&mut self, token: &[u8]) -> Result<(), ClientStartError> {
        self.connection = open_connection(token)?;
        self.token = token.to_vec();
        self.session.reconnect();
        self.error = None;
        Ok(())
    }

    /// Connects again with the same token after the connection was lost, and resumes the session. The server allows it as long as it keeps
    /// the session, 30 seconds by default; afterwards the session ends with [`CloseReason::Refused`](throng_protocol::wire::CloseReason),
    /// or the server does not reply, and [`reconnect`](Self::reconnect) with another token is needed.
    ///
    /// # Errors
    /// [`ClientStartError`]; then nothing has changed.
    pub fn resume(&mut self) -> Result<(), ClientStartError> {
        self.resume_with(ConnectToken::from_bytes(&self.token)?)
    }

    /// The same as [`resume`](Self::resume), but begins with the address of the token that follows the current one, and tries the current
    /// one last. For a game with several gateways: if this one is silent, the session continues at the next one. Wait longer after each
    /// attempt, until packets arrive again: a gateway that many clients have just come to is slow.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use throng_client::{Client, ClientStartError};
    /// # fn frame(client: &mut Client) -> Result<(), ClientStartError> {
    /// // A gateway sends a packet at least every 200 ms.
    /// if client.silence() > Duration::from_millis(500) {
    ///     client.resume_elsewhere()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ClientStartError`]; then nothing has changed.
    pub fn resume_elsewhere(&mut self) -> Result<(), ClientStartError> {
        let mut token = ConnectToken::from_bytes(&self.token)?;
        let current = self.connection.connection().server();
        let at = token.servers.iter().position(|it| Some(*it) == current);
        if let Some(at) = at {
            token.servers.rotate_left(at + 1);
        }
        self.resume_with(token)
    }

    fn resume_with(&mut self, token: ConnectToken) -> Result<(), ClientStartError> {
        self.connection = UdpClient::connect(token, EndpointSettings::default())?;
        self.session.reconnect();
        self.error = None;
        Ok(())
    }

    /// Continues from another port, as after a change of network.
    ///
    /// # Errors
    /// If the system cannot open a socket; then the old one stays in use.
    pub fn rebind(&mut self) -> io::Result<()> {
        self.connection.rebind()
    }

    /// Receives what has arrived, and sends pending messages. Call it once per frame.
    ///
    /// # Errors
    /// [`ClientError`], on every call after the first error. Earlier events can still be read.
    pub fn update(&mut self, now: Instant) -> Result<(), ClientError> {
        self.error.map_or(Ok(()), Err)?;
        let went = self.exchange_packets(self.seconds_since_start(now));
        let went = went.map_err(|error| self.end_cause(error));
        self.error = went.err();
        went
    }

    /// The error with the reason that the server gave, if that has arrived.
    fn end_cause(&self, error: ClientError) -> ClientError {
        if let Some(refusal) = self.session.refusal() {
            return ClientError::Refused(refusal);
        }
        let reason = self.session.close_reason();
        match error {
            // The reason has arrived, and perhaps not the end of the connection.
            ClientError::Ended(ConnectionError::Lost | ConnectionError::Closed { .. })
                if reason.is_some() =>
            {
                ConnectionError::Closed { reason }.into()
            }
            _ => error,
        }
    }

    fn exchange_packets(&mut self, now_s: f64) -> Result<(), ClientError> {
        let Self {
            connection: line,
            session,
            ..
        } = self;
        let mut refused = Ok(());
        session.update(now_s, |message| {
            refused = refused.and_then(|()| line.send(&message.to_bytes()));
        });
        refused?;
        let mut taken = Ok(());
        line.update(|packet| {
            taken = taken.and_then(|()| session.receive(packet, now_s));
        })?;
        Ok(taken?)
    }

    /// Sends a message of the game or of the protocol, once and in order.
    ///
    /// # Errors
    /// [`ClientError::SendQueueFull`] if it is too long, or the send queue is full.
    pub fn send(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        Ok(self.connection.send(&message.to_bytes())?)
    }

    /// Logs out and disconnects.
    pub fn leave(mut self) {
        let _ = self.connection.send(&ClientMessage::Logout.to_bytes());
        let _ = self.connection.update(|_| ());
        self.connection.leave();
    }

    /// Sets the player's controls from now on.
    pub const fn set_controls(&mut self, walk: ControlState) {
        self.session.set_controls(walk);
    }

    /// The scene is loaded and may be sent; needed if [`ClientSettings::is_ready_at_once`] is off.
    pub const fn ready(&mut self, scene: u32) {
        self.session.ready(scene);
    }

    /// Sets the map for the prediction of the controlled object, so that it stops at walls as on the server. `tile_m` is the side of a tile in
    /// metres.
    /// Call it again in each scene.
    pub fn set_ground(&mut self, tiles: Arc<TileMap>, tile_m: f32) {
        self.session.set_ground(Some(ClientMap { tiles, tile_m }));
    }

    /// The oldest event that was not returned yet.
    pub fn next_event(&mut self) -> Option<ClientEvent> {
        self.session.next_event()
    }

    /// Time since the last packet of the server arrived; zero while connecting. Packets arrive in each tick, and else as often as
    /// [`EndpointSettings::keep_alive_us`] of the server says: once a second by default.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.connection.silence()
    }

    /// Whether the connection is open; `false` while connecting.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connection.connection().is_open() == Ok(true)
    }

    /// The state from the server: objects, their kinds and attributes.
    #[must_use]
    pub const fn mirror(&self) -> &Mirror {
        self.session.mirror()
    }

    /// The session of this client.
    #[must_use]
    pub const fn session(&self) -> &ClientSession {
        &self.session
    }

    /// The ids of all objects in view, ascending.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        self.mirror().ids()
    }

    /// Shown position of an object, in metres.
    #[must_use]
    pub fn position(&self, id: u32, now: Instant) -> Option<Vec2> {
        self.session.position(id, self.seconds_since_start(now))
    }

    /// Shown position of the controlled object, predicted ahead of the server, in metres.
    #[must_use]
    pub fn own_position(&self, now: Instant) -> Option<Vec2> {
        self.session.own_position(self.seconds_since_start(now))
    }

    /// The server's current tick, with its fraction; `None` before the first *Pong*.
    #[must_use]
    pub fn server_tick(&self, now: Instant) -> Option<f64> {
        self.session.server_tick(self.seconds_since_start(now))
    }

    /// The encoded value of an object's attribute.
    #[must_use]
    pub fn attribute(&self, id: u32, attribute: u16) -> Option<&[u8]> {
        self.mirror().object(id)?.attributes.bytes(attribute)
    }

    /// The value of an object's attribute, decoded: `client.get::<Hunger>(id)`, as [`Mirror::get`].
    #[must_use]
    pub fn get<A: ReplicatedAttribute>(&self, id: u32) -> Option<A::Value> {
        self.mirror().get::<A>(id)
    }

    /// Smoothed round trip time, including the server's tick, in seconds; `None` before the first measurement.
    #[must_use]
    pub fn round_trip_s(&self) -> Option<f64> {
        let us = self.connection.connection().endpoint().round_trip_us();
        (us > 0).then(|| us as f64 / 1e6)
    }

    /// Share of about the last 250 packets of this client that were lost.
    #[must_use]
    pub fn loss(&self) -> f32 {
        self.connection.connection().endpoint().loss()
    }

    fn seconds_since_start(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.started).as_secs_f64()
    }
}

fn open_connection(token: &[u8]) -> Result<UdpClient, ClientStartError> {
    let token = ConnectToken::from_bytes(token)?;
    Ok(UdpClient::connect(token, EndpointSettings::default())?)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use throng_net::{SecretKey, TokenClaims};

    use super::*;

    #[test]
    fn resuming_elsewhere_begins_with_the_next_server_of_the_token() {
        let server = |nth: u16| SocketAddr::from(([127, 0, 0, 1], nth));
        let claims = TokenClaims::new(7, (1..=3).map(server).collect(), 1_000);
        let token = ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap();
        let mut client = Client::connect(&token.to_bytes(), ClientSettings::default()).unwrap();
        let tried = |client: &Client| client.connection.connection().server();
        for nth in [1, 2, 3, 1] {
            assert_eq!(tried(&client), Some(server(nth)));
            assert_eq!(client.silence(), Duration::ZERO);
            client.resume_elsewhere().unwrap();
        }
        client.resume().unwrap();
        assert_eq!(tried(&client), Some(server(1)), "the order of the token");
    }
}
