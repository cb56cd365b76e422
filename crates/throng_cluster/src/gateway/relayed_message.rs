//! The messages between a gateway and a node about a client: a kind in one byte, then its fields. Numbers are little endian.

use std::net::{IpAddr, SocketAddr};

use throng_core::ids::PlayerId;
use throng_net::inbox::{ConnectionInfo, ContinuedConnection, DisconnectReason, VerifiedIdentity};
use throng_net::{TokenUserData, USER_DATA_BYTES};
use throng_protocol::wire::{Channel, CloseReason};

/// A message about a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RelayedMessage<'b> {
    /// To the node: the client has connected.
    Connected(ConnectionInfo),
    /// To the node: a message of the client.
    Input(&'b [u8]),
    /// To the node: the connection has ended.
    Disconnected(DisconnectReason),
    /// To the gateway: a packet for the client.
    Packet(Channel, &'b [u8]),
    /// To the gateway: close the client. No more packets follow.
    Close(CloseReason),
}

const CONNECTED: u8 = 1;
const INPUT: u8 = 2;
const DISCONNECTED: u8 = 3;
const RELIABLE_PACKET: u8 = 4;
const UNRELIABLE_PACKET: u8 = 5;
const CLOSE: u8 = 6;

/// Flags of a connected client.
const HAS_PLAYER: u8 = 1;
const RESUMES_ONLY: u8 = 2;
const RECEIVES: u8 = 4;
const REQUIRES_READY: u8 = 8;
const HAS_USER_DATA: u8 = 16;
const HAS_ADDRESS: u8 = 32;
const CONTINUES: u8 = 64;
const HAS_INPUT: u8 = 128;

impl<'b> RelayedMessage<'b> {
    /// Replaces the contents of `into` with the bytes of the message.
    pub fn write(&self, into: &mut Vec<u8>) {
        into.clear();
        match self {
            Self::Connected(info) => write_connected(info, into),
            Self::Input(bytes) => {
                into.push(INPUT);
                into.extend_from_slice(bytes);
            }
            Self::Disconnected(reason) => {
                into.push(DISCONNECTED);
                into.push(match reason {
                    DisconnectReason::Closed => 0,
                    DisconnectReason::Lost => 1,
                    DisconnectReason::Moved => 2,
                });
            }
            Self::Packet(channel, bytes) => {
                into.push(match channel {
                    Channel::Reliable => RELIABLE_PACKET,
                    Channel::Unreliable => UNRELIABLE_PACKET,
                });
                into.extend_from_slice(bytes);
            }
            Self::Close(reason) => into.extend([CLOSE, reason.number()]),
        }
    }

    /// Reads a message; `None` if the bytes are invalid.
    pub fn read(bytes: &'b [u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        match (kind, rest) {
            (CONNECTED, rest) => read_connected(rest).map(Self::Connected),
            (INPUT, rest) => Some(Self::Input(rest)),
            (DISCONNECTED, [0]) => Some(Self::Disconnected(DisconnectReason::Closed)),
            (DISCONNECTED, [1]) => Some(Self::Disconnected(DisconnectReason::Lost)),
            (DISCONNECTED, [2]) => Some(Self::Disconnected(DisconnectReason::Moved)),
            (RELIABLE_PACKET, rest) => Some(Self::Packet(Channel::Reliable, rest)),
            (UNRELIABLE_PACKET, rest) => Some(Self::Packet(Channel::Unreliable, rest)),
            (CLOSE, &[number]) => CloseReason::from_number(number).map(Self::Close),
            _ => None,
        }
    }
}

fn write_connected(info: &ConnectionInfo, into: &mut Vec<u8>) {
    let last_input = info.continues.and_then(|continued| continued.last_input);
    let bits = [
        (info.claims.player.is_some(), HAS_PLAYER),
        (info.claims.resumes_only, RESUMES_ONLY),
        (info.receives, RECEIVES),
        (info.requires_ready, REQUIRES_READY),
        (info.user_data.is_some(), HAS_USER_DATA),
        (info.address.is_some(), HAS_ADDRESS),
        (info.continues.is_some(), CONTINUES),
        (last_input.is_some(), HAS_INPUT),
    ];
    let bits = bits.iter().filter(|(is_set, _)| *is_set);
    into.push(CONNECTED);
    into.push(bits.fold(0, |bits, (_, bit)| bits | bit));
    if let Some(player) = info.claims.player {
        into.extend_from_slice(&player.0.to_le_bytes());
    }
    if let Some(continued) = info.continues {
        into.extend_from_slice(&continued.last_message.to_le_bytes());
    }
    if let Some(input) = last_input {
        into.extend_from_slice(&input.to_le_bytes());
    }
    if let Some(user_data) = &info.user_data {
        into.extend_from_slice(user_data.as_bytes());
    }
    if let Some(address) = info.address {
        into.extend_from_slice(&address.port().to_le_bytes());
        match address.ip() {
            IpAddr::V4(ip) => into.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => into.extend_from_slice(&ip.octets()),
        }
    }
}

fn read_connected(bytes: &[u8]) -> Option<ConnectionInfo> {
    let (&bits, mut rest) = bytes.split_first()?;
    let is_set = |bit| bits & bit != 0;
    let mut info = ConnectionInfo {
        claims: VerifiedIdentity {
            player: None,
            resumes_only: is_set(RESUMES_ONLY),
        },
        user_data: None,
        address: None,
        receives: is_set(RECEIVES),
        requires_ready: is_set(REQUIRES_READY),
        continues: None,
    };
    if is_set(HAS_PLAYER) {
        let (player, after) = rest.split_first_chunk()?;
        info.claims.player = Some(PlayerId(u64::from_le_bytes(*player)));
        rest = after;
    }
    if is_set(CONTINUES) {
        // Only a verified player continues without a login.
        info.claims.player?;
        let (last_message, after) = rest.split_first_chunk()?;
        rest = after;
        let mut continued = ContinuedConnection {
            last_message: u16::from_le_bytes(*last_message),
            last_input: None,
        };
        if is_set(HAS_INPUT) {
            let (input, after) = rest.split_first_chunk()?;
            continued.last_input = Some(u16::from_le_bytes(*input));
            rest = after;
        }
        info.continues = Some(continued);
    } else if is_set(HAS_INPUT) {
        return None;
    }
    if is_set(HAS_USER_DATA) {
        let (user_data, after) = rest.split_first_chunk::<USER_DATA_BYTES>()?;
        info.user_data = TokenUserData::new(user_data);
        rest = after;
    }
    if is_set(HAS_ADDRESS) {
        let (port, ip) = rest.split_first_chunk()?;
        let ip = match ip.len() {
            4 => IpAddr::from(*ip.first_chunk::<4>()?),
            16 => IpAddr::from(*ip.first_chunk::<16>()?),
            _ => return None,
        };
        info.address = Some(SocketAddr::new(ip, u16::from_le_bytes(*port)));
    } else if !rest.is_empty() {
        return None;
    }
    Some(info)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    #[test]
    fn messages_survive_their_bytes() {
        let mut infos = vec![
            ConnectionInfo::unknown(),
            ConnectionInfo::player(u64::MAX).without_loading(),
            ConnectionInfo::player(7).resuming_only(true),
            ConnectionInfo::player(7).continuing(ContinuedConnection::default()),
            ConnectionInfo::player(7).continuing(ContinuedConnection {
                last_message: 65_535,
                last_input: Some(700),
            }),
        ];
        for address in ["10.1.2.3:4567", "[2001:db8::1]:1"] {
            let user_data = TokenUserData::new(&[3; USER_DATA_BYTES]);
            let info = ConnectionInfo::player(1).with_user_data(user_data);
            infos.push(info.with_address(address.parse().unwrap()));
        }
        let mut messages: Vec<RelayedMessage<'_>> =
            infos.into_iter().map(RelayedMessage::Connected).collect();
        messages.extend([
            RelayedMessage::Input(b"hello"),
            RelayedMessage::Disconnected(DisconnectReason::Closed),
            RelayedMessage::Disconnected(DisconnectReason::Lost),
            RelayedMessage::Disconnected(DisconnectReason::Moved),
            RelayedMessage::Packet(Channel::Reliable, b"x"),
            RelayedMessage::Packet(Channel::Unreliable, b""),
            RelayedMessage::Close(CloseReason::Lost),
        ]);
        let mut bytes = Vec::new();
        for message in messages {
            message.write(&mut bytes);
            assert_eq!(RelayedMessage::read(&bytes), Some(message.clone()));
            if let RelayedMessage::Connected(_) | RelayedMessage::Close(_) = message {
                bytes.push(0);
                assert_eq!(RelayedMessage::read(&bytes), None, "{message:?}");
            }
        }
        for bytes in [
            &[][..],
            &[0],
            &[9],
            &[CLOSE, 0],
            &[CLOSE, 200],
            &[DISCONNECTED, 3],
            &[CONNECTED, CONTINUES, 1, 0],
            &[
                CONNECTED,
                HAS_PLAYER | HAS_INPUT,
                1,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                1,
                0,
            ],
        ] {
            assert_eq!(RelayedMessage::read(bytes), None);
        }
    }

    #[test]
    fn random_bytes_are_read_without_a_panic() {
        let mut rng = Pcg64Mcg::seed_from_u64(2);
        let mut written = Vec::new();
        for _ in 0..20_000 {
            let length = rng.random_range(0..300);
            let mut bytes = vec![rng.random_range(0..8_u8), rng.random_range(0..=255)];
            bytes.extend((0..length).map(|_| rng.random_range(0..=255_u8)));
            // What can be read is written as the same bytes, except bits that mean nothing.
            if let Some(message) = RelayedMessage::read(&bytes) {
                message.write(&mut written);
                assert!(written.len() <= bytes.len());
                assert_eq!(RelayedMessage::read(&written), Some(message));
            }
        }
    }
}
