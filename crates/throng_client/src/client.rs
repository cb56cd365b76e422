//! A session with a socket and a clock.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use glam::Vec2;
use thiserror::Error;
use throng_nav::map::TileMap;
use throng_net::{
    ConnectToken, ConnectionError, EndpointSettings, SendError, TokenError, UdpClient,
};
use throng_protocol::mirror::{Mirror, MirrorError};
use throng_protocol::wire::ClientMessage;
use throng_protocol::wire::ReplicatedAttribute;

use crate::event::ClientEvent;
use crate::session::{ClientMap, ClientSession, ClientSettings, ControlState};

/// Why a client does not even begin.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientStartError {
    /// What is to be a token is none.
    #[error("the token: {0}")]
    Token(#[from] TokenError),
    /// The system has no socket.
    #[error("no socket: {0}")]
    Socket(#[from] io::Error),
}

/// Why a client is of no use any more.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no connection any more, or never was one. [`Client::reconnect`] with another token may help.
    #[error(transparent)]
    Ended(#[from] ConnectionError),
    /// What the server says does not follow from what it said: the two are of different versions.
    #[error("the server is not understood: {0}")]
    Mirror(#[from] MirrorError),
    /// More waits to be sent than may.
    #[error(transparent)]
    SendQueueFull(#[from] SendError),
}

/// A player's program at one server: see the [crate's page](crate).
#[derive(Debug)]
pub struct Client {
    connection: UdpClient,
    session: ClientSession,
    started: Instant,
    error: Option<ClientError>,
}

impl Client {
    /// Begins to connect by a token of 2,048 bytes that was not used before, which the game's login service made.
    ///
    /// # Errors
    /// [`ClientStartError`]; whether the server lets it in shows in [`update`](Self::update). It does not answer a token that was used
    /// before, is expired or of another key: that is told by `update` once the token's timeout is over.
    pub fn connect(token: &[u8], settings: ClientSettings) -> Result<Self, ClientStartError> {
        Ok(Self {
            connection: open_connection(token)?,
            session: ClientSession::new(settings),
            started: Instant::now(),
            error: None,
        })
    }

    /// Connects once more, by another token: what is known stays, and the session goes on if the server still keeps it.
    ///
    /// # Errors
    /// [`ClientStartError`]; all is as before then.
    pub fn reconnect(&mut self, token: &[u8]) -> Result<(), ClientStartError> {
        self.connection = open_connection(token)?;
        self.session.reconnect();
        self.error = None;
        Ok(())
    }

    /// Goes on from another port, as a phone does that changes its network.
    ///
    /// # Errors
    /// Where the system has no socket; it goes on from the one that it has then.
    pub fn rebind(&mut self) -> io::Result<()> {
        self.connection.rebind()
    }

    /// Takes what came, and sends what is due. To be called once a frame.
    ///
    /// # Errors
    /// [`ClientError`], again and again. Events that came before wait.
    pub fn update(&mut self, now: Instant) -> Result<(), ClientError> {
        self.error.map_or(Ok(()), Err)?;
        let went = self.exchange_packets(self.seconds_since_start(now));
        self.error = went.err();
        went
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

    /// Sends a message of the game's, or of the server's own: once and in order.
    ///
    /// # Errors
    /// [`ClientError::SendQueueFull`] where it is too long, or more waits than may.
    pub fn send(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        Ok(self.connection.send(&message.to_bytes())?)
    }

    /// Says that it leaves, and logs out.
    pub fn leave(mut self) {
        let _ = self.connection.send(&ClientMessage::Logout.to_bytes());
        let _ = self.connection.update(|_| ());
        self.connection.leave();
    }

    /// What the player's hands say, from now on.
    pub const fn set_controls(&mut self, walk: ControlState) {
        self.session.set_controls(walk);
    }

    /// It has loaded a scene, and may be told of it; needed where [`ClientSettings::is_ready_at_once`] is off.
    pub const fn ready(&mut self, scene: u32) {
        self.session.ready(scene);
    }

    /// How fast its own object walks from now on, in metres a second.
    pub const fn set_speed(&mut self, speed_m_s: f32) {
        self.session.set_speed(speed_m_s);
    }

    /// The map that its own object walks on, with tiles of so many metres: from now on it stops at the walls at which the server would
    /// stop it. To be called anew in each scene.
    pub fn set_ground(&mut self, tiles: Arc<TileMap>, tile_m: f32) {
        self.session.set_ground(Some(ClientMap { tiles, tile_m }));
    }

    /// The oldest event that the game was not told of.
    pub fn next_event(&mut self) -> Option<ClientEvent> {
        self.session.next_event()
    }

    /// Whether there is a connection: not yet, where it is `false`.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connection.connection().is_open() == Ok(true)
    }

    /// What the server told: objects, their kinds and attributes.
    #[must_use]
    pub const fn mirror(&self) -> &Mirror {
        self.session.mirror()
    }

    /// The session behind it.
    #[must_use]
    pub const fn session(&self) -> &ClientSession {
        &self.session
    }

    /// The numbers of all objects in sight, ascending.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        self.mirror().ids()
    }

    /// Where an object is shown now, in metres.
    #[must_use]
    pub fn position(&self, id: u32, now: Instant) -> Option<Vec2> {
        self.session.position(id, self.seconds_since_start(now))
    }

    /// Where the own object is shown now, in metres, ahead of the server.
    #[must_use]
    pub fn own_position(&self, now: Instant) -> Option<Vec2> {
        self.session.own_position(self.seconds_since_start(now))
    }

    /// The server's tick now, with its fraction; none before it was asked and answered.
    #[must_use]
    pub fn server_tick(&self, now: Instant) -> Option<f64> {
        self.session.server_tick(self.seconds_since_start(now))
    }

    /// The bytes of an object's attribute, as the game encodes it.
    #[must_use]
    pub fn attribute(&self, id: u32, attribute: u16) -> Option<&[u8]> {
        self.mirror().object(id)?.attributes.bytes(attribute)
    }

    /// The value of an object's attribute, decoded: `client.get::<Hunger>(id)`, as [`Mirror::get`].
    #[must_use]
    pub fn get<A: ReplicatedAttribute>(&self, id: u32) -> Option<A::Value> {
        self.mirror().get::<A>(id)
    }

    /// The smoothed round trip of a packet, the server's tick included, in seconds; none before the first.
    #[must_use]
    pub fn round_trip_s(&self) -> Option<f64> {
        let us = self.connection.connection().endpoint().round_trip_us();
        (us > 0).then(|| us as f64 / 1e6)
    }

    /// The share of this client's packets that do not arrive, estimated.
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
