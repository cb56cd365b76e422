//! A client that makes the server hold as much memory as the protocol allows, and that never acknowledges anything.
//!
//! ```text
//! handshake ─▶ login ─▶ junk on all streams ── release ─▶ in the world, silent except for keep-alive packets
//! ```
//!
//! Each of its four streams begins with the longest allowed message without its last byte, so that the server keeps it; then come pieces
//! with gaps of one byte, as many as the server stores, up to the end of its receive window. Before [`release`](HostileMemoryPeer::release)
//! it acknowledges packets, so that a crowd of these peers is complete before the first is lost.

use std::net::SocketAddr;

use throng_protocol::wire::{CLIENT_MESSAGE_BYTES_MAX, write_varint};

use crate::cipher::{ConnectionCipher, SealedKind};
use crate::endpoint::EndpointSettings;
use crate::handshake::ClientHandshake;
use crate::packet::{
    FRAMES_MAX, PacketStamp, ParsedPacket, STREAMS, StreamId, TransportHeader, set_frames,
    write_frame_header,
};
use crate::token::ConnectToken;

/// Pieces with gaps per stream: as many as a server stores.
const PIECES: usize = 64;

/// Distance of the starts of two pieces, in bytes; one byte less is sent.
const PIECE_BYTES: usize = 127;

/// Time between two attempts to deliver a message, and between two keep-alive packets, in microseconds.
const RETRY_US: u64 = 100_000;
const KEEP_ALIVE_US: u64 = 1_000_000;

/// State of its connection.
#[derive(Debug)]
enum PeerState {
    Connecting(Box<ClientHandshake>),
    Open(Box<ConnectionCipher>),
    Failed,
}

/// A message that is sent until its packet is acknowledged.
#[derive(Debug)]
struct RepeatedMessage {
    /// With its length in front.
    bytes: Vec<u8>,
    /// Number of the first packet with it.
    number: Option<u16>,
    is_acknowledged: bool,
}

impl RepeatedMessage {
    fn new(message: &[u8]) -> Self {
        let mut bytes = Vec::new();
        write_varint(&mut bytes, message.len() as u64);
        bytes.extend_from_slice(message);
        Self {
            bytes,
            number: None,
            is_acknowledged: false,
        }
    }
}

/// The hostile client. No sockets, no clock.
#[derive(Debug)]
pub struct HostileMemoryPeer {
    state: PeerState,
    login: RepeatedMessage,
    ready: RepeatedMessage,
    is_released: bool,
    /// Number of its next packet.
    number: u16,
    /// The newest packet of the server that it acknowledges, and the 32 before.
    received: Option<(u16, u32)>,
    /// Frames of junk that were sent.
    junk: usize,
    must_confirm: bool,
    sent_us: u64,
    packet: Vec<u8>,
    sealed: Vec<u8>,
}

impl HostileMemoryPeer {
    /// A peer that connects with an unused token, logs in with the first message and enters its scene with the second.
    #[must_use]
    pub fn new(token: ConnectToken, login: &[u8], ready: &[u8]) -> Self {
        Self {
            state: PeerState::Connecting(Box::new(ClientHandshake::new(token))),
            login: RepeatedMessage::new(login),
            ready: RepeatedMessage::new(ready),
            is_released: false,
            number: 0,
            received: None,
            junk: 0,
            must_confirm: false,
            sent_us: 0,
            packet: Vec::new(),
            sealed: Vec::new(),
        }
    }

    /// Whether it has logged in and sent all its junk.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.login.is_acknowledged && self.junk >= junk_frames()
    }

    /// Whether it has failed to connect, or the server has ended the connection.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        matches!(self.state, PeerState::Failed)
    }

    /// Enters the scene. From then on it acknowledges nothing.
    pub const fn release(&mut self) {
        self.is_released = true;
    }

    /// Whether the server has received the message with which it enters the scene.
    #[must_use]
    pub const fn is_inside(&self) -> bool {
        self.ready.is_acknowledged
    }

    /// The server that it connects to.
    #[must_use]
    pub fn server(&self) -> Option<SocketAddr> {
        match &self.state {
            PeerState::Connecting(handshake) => handshake.server(),
            _ => None,
        }
    }

    /// Handles a datagram of the server, which it decrypts in place.
    pub fn receive(&mut self, now_us: u64, datagram: &mut [u8]) {
        match &mut self.state {
            PeerState::Failed => {}
            PeerState::Connecting(handshake) => {
                // A refused datagram changes nothing.
                let _ = handshake.receive(now_us, datagram);
                self.open_if_connected();
            }
            PeerState::Open(cipher) => match cipher.open(datagram) {
                Ok((SealedKind::KeepAlive, _)) => self.must_confirm = true,
                Ok((SealedKind::Disconnect, _)) => self.state = PeerState::Failed,
                Ok((SealedKind::Payload, body)) => {
                    if let Ok(packet) = ParsedPacket::read(body) {
                        let (number, newest) = (packet.header.number, packet.header.newest);
                        self.record(number, newest);
                    }
                }
                _ => {}
            },
        }
    }

    fn open_if_connected(&mut self) {
        let state = std::mem::replace(&mut self.state, PeerState::Failed);
        self.state = match state {
            PeerState::Connecting(handshake) => match handshake.is_connected() {
                Ok(false) => PeerState::Connecting(handshake),
                Ok(true) => {
                    self.must_confirm = true;
                    let cipher = handshake.into_cipher();
                    cipher.map_or(PeerState::Failed, |it| PeerState::Open(Box::new(it)))
                }
                Err(_) => PeerState::Failed,
            },
            state => state,
        };
    }

    /// Records a packet of the server, and the newest packet that it acknowledges.
    fn record(&mut self, number: u16, newest: u16) {
        for message in [&mut self.login, &mut self.ready] {
            let arrived = |first: u16| newest != u16::MAX && newest.wrapping_sub(first) < 1 << 15;
            message.is_acknowledged |= message.number.is_some_and(arrived);
        }
        if self.is_released {
            return;
        }
        self.received = Some(match self.received {
            None => (number, u32::MAX),
            Some((last, before)) => {
                let ahead = number.wrapping_sub(last) as i16;
                match ahead {
                    1.. => {
                        let shifted = before.checked_shl(ahead as u32).unwrap_or(0);
                        let mark = 1_u32.checked_shl(ahead as u32 - 1).unwrap_or(0);
                        (number, shifted | mark)
                    }
                    -32..=-1 => (last, before | 1 << (-ahead - 1)),
                    _ => (last, before),
                }
            }
        });
    }

    /// The next datagram to send, if there is one. Call it until there is none, but with pauses: it sends all its junk at once.
    pub fn next_datagram(&mut self, now_us: u64) -> Option<&[u8]> {
        match &mut self.state {
            PeerState::Failed => None,
            PeerState::Connecting(handshake) => {
                handshake.update(now_us, &mut self.packet);
                let is_pending = !self.packet.is_empty();
                self.open_if_connected();
                is_pending.then_some(&*self.packet)
            }
            PeerState::Open(cipher) => {
                if std::mem::take(&mut self.must_confirm) {
                    cipher.seal(SealedKind::KeepAlive, &[0; 8], &mut self.sealed);
                    return Some(&self.sealed);
                }
                self.write_packet(now_us).then(|| self.seal())
            }
        }
    }

    fn seal(&mut self) -> &[u8] {
        if let PeerState::Open(cipher) = &mut self.state {
            cipher.seal(SealedKind::Payload, &self.packet, &mut self.sealed);
        }
        &self.sealed
    }

    /// Writes the next packet of the connection; `false` if there is none.
    fn write_packet(&mut self, now_us: u64) -> bool {
        let silent_us = now_us.saturating_sub(self.sent_us);
        let message = match (&self.login, &self.ready) {
            (login, _) if !login.is_acknowledged => Some(true),
            (_, ready) if self.is_released && !ready.is_acknowledged => Some(false),
            _ => None,
        };
        if let Some(is_login) = message {
            if silent_us < RETRY_US {
                return false;
            }
            self.begin_packet(now_us);
            let at = if is_login { 0 } else { self.login.bytes.len() };
            let number = self.number.wrapping_sub(1);
            let message = if is_login {
                &mut self.login
            } else {
                &mut self.ready
            };
            message.number.get_or_insert(number);
            let world = StreamId::World.number();
            write_frame_header(&mut self.packet, world, at as u32, message.bytes.len());
            self.packet.extend_from_slice(&message.bytes);
            set_frames(&mut self.packet, 1);
            return true;
        }
        if self.junk < junk_frames() {
            self.begin_packet(now_us);
            self.write_junk();
            return true;
        }
        if silent_us >= KEEP_ALIVE_US {
            self.begin_packet(now_us);
            return true;
        }
        false
    }

    fn begin_packet(&mut self, now_us: u64) {
        self.sent_us = now_us;
        self.packet.clear();
        let (newest, before) = self.received.unwrap_or((u16::MAX, u32::MAX));
        let header = TransportHeader {
            frames: 0,
            wants_ack: false,
            stamp: PacketStamp::default(),
            number: self.number,
            newest,
            before,
            has_long_bitmap: true,
        };
        header.write(&mut self.packet);
        self.number = self.number.wrapping_add(1);
    }

    fn write_junk(&mut self) {
        let window = EndpointSettings::default().receive_window_bytes;
        let mut frames = 0;
        while frames < FRAMES_MAX && self.junk < junk_frames() {
            let (stream, nth) = (self.junk / (PIECES + 1), self.junk % (PIECES + 1));
            self.junk += 1;
            // Before its release the server expects the second message of the first stream.
            let expected = [self.login.bytes.len(), 0, 0, 0][stream];
            let start = expected + [self.ready.bytes.len(), 0, 0, 0][stream];
            let mut message = Vec::new();
            write_varint(&mut message, CLIENT_MESSAGE_BYTES_MAX as u64);
            message.resize(message.len() + CLIENT_MESSAGE_BYTES_MAX - 1, 0xa5);
            let (offset, bytes) = if nth == 0 {
                (start, &message[..])
            } else {
                let offset = start + message.len() + 1 + (nth - 1) * PIECE_BYTES;
                let room = (expected + window).saturating_sub(offset);
                (offset, &message[2..][..room.min(PIECE_BYTES - 1)])
            };
            if bytes.is_empty() {
                continue;
            }
            write_frame_header(&mut self.packet, stream, offset as u32, bytes.len());
            self.packet.extend_from_slice(bytes);
            frames += 1;
        }
        set_frames(&mut self.packet, frames);
    }
}

/// Frames of junk of a peer.
const fn junk_frames() -> usize {
    STREAMS * (PIECES + 1)
}
