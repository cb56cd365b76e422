//! Connections and messages behind a lock that is held briefly: the only place that transports and the tick share.

use std::net::{IpAddr, SocketAddr};

use throng_core::ids::PlayerId;
use throng_core::memory::MemoryUse;
use throng_protocol::wire::{CLIENT_MESSAGE_BYTES_MAX, ClientId};

use super::queue::{DisconnectReason, InboxLimits, MessageQueue, ReceiveError};
use crate::token::TokenUserData;

/// What a transport knows about a new client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// What the transport has verified.
    pub claims: VerifiedIdentity,
    /// User data of its token, if it has any.
    pub user_data: Option<TokenUserData>,
    /// Address of the client, if it has one.
    pub address: Option<SocketAddr>,
    /// Whether packets are assembled for it. A client that only sends, such as a load generator, needs none.
    pub receives: bool,
    /// Whether it loads something before it enters a scene: the server then waits for its *Ready*.
    pub requires_ready: bool,
    /// Set if another server process has served the client over the same connection until now. Only a trusted gateway may set it.
    pub continues: Option<ContinuedConnection>,
}

/// The messages that a client has sent to another server process over the same connection. The client was logged in there, and its player
/// is verified. Its session opens at once, without a *Login*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContinuedConnection {
    /// Number of its last message for the former process, modulo 65,536.
    pub last_message: u16,
    /// Number of its newest *Input* for the former process, if it has sent any.
    pub last_input: Option<u16>,
}

impl ConnectionInfo {
    /// A client without a verified identity: its *Login* has to prove it.
    #[must_use]
    pub const fn unknown() -> Self {
        Self {
            claims: VerifiedIdentity {
                player: None,
                resumes_only: false,
            },
            user_data: None,
            address: None,
            receives: true,
            requires_ready: true,
            continues: None,
        }
    }

    /// A client in this process, or with a verified token: the transport guarantees that it is this player.
    #[must_use]
    pub const fn player(player: u64) -> Self {
        let mut connected = Self::unknown();
        connected.claims.player = Some(PlayerId(player));
        connected
    }

    /// The same; with `true`, of a client that may resume its session and cannot log in.
    #[must_use]
    pub const fn resuming_only(mut self, resumes_only: bool) -> Self {
        self.claims.resumes_only = resumes_only;
        self
    }

    /// The same, without loading.
    #[must_use]
    pub const fn without_loading(mut self) -> Self {
        self.requires_ready = false;
        self
    }

    /// The same, for a client that another process has served until now. It must have a verified player.
    #[must_use]
    pub const fn continuing(mut self, continues: ContinuedConnection) -> Self {
        self.continues = Some(continues);
        self
    }

    /// The same, with an address.
    #[must_use]
    pub const fn with_address(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// The same, with the user data of a token.
    #[must_use]
    pub fn with_user_data(mut self, user_data: Option<TokenUserData>) -> Self {
        self.user_data = user_data;
        self
    }
}

/// What a transport has verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifiedIdentity {
    /// The player id: from a verified token, or of a client in the server's own process.
    pub player: Option<PlayerId>,
    /// It has returned with a token that was used before, and may have expired: it may resume its session, and cannot log in.
    pub resumes_only: bool,
}

/// Maximum number of connections that wait for the next tick.
const NEW_CONNECTIONS_MAX: usize = 1 << 16;

/// Maximum number of events that a recording stores until they are taken.
const RECORDED_MAX: usize = 1 << 20;

/// An event of the transports, in order of occurrence, for a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportEvent {
    /// A client connected and received this id.
    Connected(ClientId, ConnectionInfo),
    /// A message was received.
    Received(ClientId, Vec<u8>),
    /// A connection ended.
    Disconnected(ClientId, DisconnectReason),
}

/// An address as words, for a hash.
pub fn address_words(address: Option<SocketAddr>) -> [u64; 3] {
    let Some(address) = address else {
        return [0; 3];
    };
    let (family, bits) = match address.ip() {
        IpAddr::V4(ip) => (4, u128::from(ip.to_bits())),
        IpAddr::V6(ip) => (6, ip.to_bits()),
    };
    let port = u64::from(address.port());
    [family << 16 | port, (bits >> 64) as u64, bits as u64]
}

/// New connections, and the messages of all clients.
#[derive(Debug, Default, MemoryUse)]
pub struct Intake {
    /// The waiting messages.
    pub queue: MessageQueue,
    /// The last id that was assigned.
    last_client: u32,
    /// Clients connected since the last tick.
    new_connections: Vec<(ClientId, ConnectionInfo)>,
    /// Connections refused since the last tick.
    refused: u64,
    recording: Option<Vec<TransportEvent>>,
    /// Events that did not fit into the recording.
    unrecorded: u64,
}

impl Intake {
    /// Assigns an id to a client. If too many new connections wait, returns their number as the error.
    pub fn connect(&mut self, connected: ConnectionInfo) -> Result<ClientId, usize> {
        if self.new_connections.len() >= NEW_CONNECTIONS_MAX || self.last_client == u32::MAX {
            self.refused += 1;
            return Err(self.new_connections.len());
        }
        self.last_client += 1;
        let client = ClientId(self.last_client);
        self.record_event(|| TransportEvent::Connected(client, connected.clone()));
        match connected.continues {
            Some(continued) => self.queue.open_continued(client, continued.last_message),
            None => self.queue.open(client),
        }
        self.new_connections.push((client, connected));
        Ok(client)
    }

    /// Adds a message to the queue of its client.
    ///
    /// # Errors
    /// Why the message is refused; the refusal is counted.
    pub fn receive(&mut self, client: ClientId, bytes: &[u8]) -> Result<(), ReceiveError> {
        // Of a message that is too long, one byte more than allowed is recorded.
        let noted = &bytes[..bytes.len().min(CLIENT_MESSAGE_BYTES_MAX + 1)];
        self.record_event(|| TransportEvent::Received(client, noted.to_vec()));
        self.queue.push(client, bytes)
    }

    /// Ends a client's connection; its messages are still handled.
    pub fn disconnect(&mut self, client: ClientId, reason: DisconnectReason) {
        self.record_event(|| TransportEvent::Disconnected(client, reason));
        self.queue.disconnect(client, reason);
    }

    fn record_event(&mut self, event: impl FnOnce() -> TransportEvent) {
        match &mut self.recording {
            Some(record) if record.len() < RECORDED_MAX => record.push(event()),
            Some(_) => self.unrecorded += 1,
            None => {}
        }
    }

    /// Hashes all state that affects later ticks, as words.
    pub fn hash_state(&self, mut word: impl FnMut(u64)) {
        word(u64::from(self.last_client) << 32 | self.new_connections.len() as u64);
        word(self.refused);
        for (client, connected) in &self.new_connections {
            word(
                u64::from(client.0) << 2
                    | u64::from(connected.receives) << 1
                    | u64::from(connected.requires_ready),
            );
            word(connected.claims.player.map_or(u64::MAX, |player| player.0));
            let address = address_words(connected.address);
            address.into_iter().for_each(&mut word);
            if let Some(continued) = connected.continues {
                word(u64::from(continued.last_message));
                word(continued.last_input.map_or(u64::MAX, u64::from));
            }
            let user_data = connected.user_data.iter();
            user_data
                .flat_map(|data| data.as_bytes())
                .for_each(|&byte| word(u64::from(byte)));
            // They have no turn yet, so their messages are not among the others.
            for message in self.queue.client_messages(*client) {
                word(u64::from(message.number));
                message.bytes.iter().for_each(|&byte| word(u64::from(byte)));
            }
        }
        self.queue.hash_state(word);
    }

    /// Sets the limits of the next tick.
    pub fn begin_tick(&mut self, tick: u64, limits: InboxLimits) {
        self.queue.begin_tick(tick, limits);
    }

    /// Takes new connections, in order and up to a maximum, and the number of refused ones. Their messages may be taken from now on, and
    /// not before.
    pub fn take_connections(
        &mut self,
        max: usize,
        into: &mut Vec<(ClientId, ConnectionInfo)>,
    ) -> u64 {
        for (client, connected) in self
            .new_connections
            .drain(..max.min(self.new_connections.len()))
        {
            self.queue.acknowledge(client);
            into.push((client, connected));
        }
        std::mem::take(&mut self.refused)
    }

    /// Starts or stops a recording of events.
    pub fn set_recording(&mut self, is_on: bool) {
        self.unrecorded = 0;
        self.recording = is_on.then(Vec::new);
    }

    /// Number of events that did not fit since the recording started.
    pub const fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    /// Takes the events recorded since the last call.
    pub fn take_recording(&mut self) -> Vec<TransportEvent> {
        self.recording
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_recording_events_are_counted() {
        let mut intake = Intake::default();
        intake.set_recording(true);
        for _ in 0..RECORDED_MAX + 3 {
            intake.disconnect(ClientId(9), DisconnectReason::Lost);
        }
        assert_eq!(intake.unrecorded(), 3);
        assert_eq!(intake.take_recording().len(), RECORDED_MAX);
        intake.set_recording(true);
        assert_eq!(intake.unrecorded(), 0);
    }

    #[test]
    fn messages_wait_until_the_tick_accepts_their_client() {
        let mut intake = Intake::default();
        let mut new = Vec::new();
        intake.take_connections(9, &mut new);
        // It connects, sends and disconnects while the tick runs.
        let client = intake.connect(ConnectionInfo::unknown()).unwrap();
        intake.receive(client, &[1, 7]).unwrap();
        let silent = intake.connect(ConnectionInfo::unknown()).unwrap();
        intake.disconnect(client, DisconnectReason::Closed);
        intake.disconnect(silent, DisconnectReason::Lost);
        let mut ended = Vec::new();
        intake.queue.take_ended(&mut ended);
        assert!(intake.queue.pop(1).is_none() && ended.is_empty());
        // In the next tick all of it is there, in order.
        intake.take_connections(1, &mut new);
        assert_eq!(new.len(), 1);
        assert_eq!(
            intake.queue.pop(2).map(|message| message.client),
            Some(client)
        );
        intake.queue.take_ended(&mut ended);
        assert_eq!(ended, [(client, DisconnectReason::Closed)]);
        intake.take_connections(1, &mut new);
        intake.queue.take_ended(&mut ended);
        assert_eq!(ended[1], (silent, DisconnectReason::Lost));
    }
}
