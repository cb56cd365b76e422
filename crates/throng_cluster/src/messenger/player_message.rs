//! A message to players, and its bytes on the bus.

use std::sync::Arc;

use throng_core::ids::PlayerId;

const TO_PLAYERS: u8 = 16;
const RETURNED: u8 = 17;
const TO_ALL: u8 = 18;

/// Upper limits of the settings, so that a message always fits into one message of the bus.
pub(super) const BYTES_MAX: usize = 64 * 1_024;
pub(super) const PLAYERS_MAX: usize = 4_096;

/// Whether a message of the bus is an announcement to all nodes.
#[cfg(feature = "gateway")]
pub(crate) fn is_announcement(bytes: &[u8]) -> bool {
    bytes.first() == Some(&TO_ALL)
}

/// A message to players.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlayerMessage {
    /// Ascending, each once.
    pub players: Vec<PlayerId>,
    pub channel: u16,
    pub bytes: Arc<[u8]>,
    /// The number of times that it was sent after a read of the rows.
    pub sends: u8,
}

impl PlayerMessage {
    /// The same message to other players.
    pub fn to(&self, players: Vec<PlayerId>) -> Self {
        Self {
            players,
            channel: self.channel,
            bytes: self.bytes.clone(),
            sends: self.sends,
        }
    }
}

/// A message of a messenger on the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CarriedMessage {
    ToPlayers(PlayerMessage),
    /// The players are not on the node that it was sent to.
    Returned(PlayerMessage),
    ToAll(u16, Arc<[u8]>),
}

impl CarriedMessage {
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, message) = match self {
            Self::ToPlayers(message) => (TO_PLAYERS, message),
            Self::Returned(message) => (RETURNED, message),
            Self::ToAll(channel, content) => {
                let mut bytes = vec![TO_ALL];
                bytes.extend_from_slice(&channel.to_le_bytes());
                bytes.extend_from_slice(content);
                return bytes;
            }
        };
        let mut bytes = vec![kind, message.sends];
        bytes.extend_from_slice(&message.channel.to_le_bytes());
        bytes.extend_from_slice(&(message.players.len() as u16).to_le_bytes());
        for player in &message.players {
            bytes.extend_from_slice(&player.0.to_le_bytes());
        }
        bytes.extend_from_slice(&message.bytes);
        bytes
    }

    /// Reads a message; `None` if the bytes are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        if kind == TO_ALL {
            let (channel, content) = rest.split_first_chunk()?;
            let is_short = content.len() <= BYTES_MAX;
            return is_short.then(|| Self::ToAll(u16::from_le_bytes(*channel), content.into()));
        }
        if kind != TO_PLAYERS && kind != RETURNED {
            return None;
        }
        let (&sends, rest) = rest.split_first()?;
        let (channel, rest) = rest.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let count = usize::from(u16::from_le_bytes(*count));
        let (players, content) = rest.split_at_checked(8 * count)?;
        let players: Vec<PlayerId> = players
            .as_chunks()
            .0
            .iter()
            .map(|player| PlayerId(u64::from_le_bytes(*player)))
            .collect();
        let is_valid = (1..=PLAYERS_MAX).contains(&count)
            && players.is_sorted_by(|one, next| one < next)
            && content.len() <= BYTES_MAX;
        let message = PlayerMessage {
            players,
            channel: u16::from_le_bytes(*channel),
            bytes: content.into(),
            sends,
        };
        is_valid.then_some(match kind {
            RETURNED => Self::Returned(message),
            _ => Self::ToPlayers(message),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::MESSAGE_BYTES_MAX;

    #[test]
    fn messages_survive_their_bytes_and_others_are_none() {
        let message = PlayerMessage {
            players: vec![PlayerId(1), PlayerId(u64::MAX)],
            channel: 0x1234,
            bytes: b"hello".as_slice().into(),
            sends: 3,
        };
        let all = [
            CarriedMessage::ToPlayers(message.clone()),
            CarriedMessage::Returned(message.to(vec![PlayerId(7)])),
            CarriedMessage::ToAll(9, b"hi".as_slice().into()),
        ];
        for carried in all {
            let bytes = carried.to_bytes();
            assert_eq!(CarriedMessage::from_bytes(&bytes), Some(carried));
        }
        let bytes = CarriedMessage::ToPlayers(message.clone()).to_bytes();
        for length in 0..6 + 16 {
            assert_eq!(CarriedMessage::from_bytes(&bytes[..length]), None);
        }
        // No players, unordered ones, those that are named twice, and other kinds.
        for players in [vec![], vec![PlayerId(2), PlayerId(1)], vec![PlayerId(2); 2]] {
            let bytes = CarriedMessage::ToPlayers(message.to(players)).to_bytes();
            assert_eq!(CarriedMessage::from_bytes(&bytes), None);
        }
        assert_eq!(CarriedMessage::from_bytes(&[0, 1, 2, 3, 4, 5, 6]), None);
        let longest = 6 + 8 * PLAYERS_MAX + BYTES_MAX;
        assert!(longest < MESSAGE_BYTES_MAX);
    }
}
