//! The message with which a node passes the resume token of a session on to the node that gets its player.

use throng_core::ids::PlayerId;
use throng_protocol::wire::ResumeToken;

/// The first byte of the message. No other message of the bus begins with it.
const MOVED_SESSION_KIND: u8 = 65;

/// A player whose session moves to another node, and the token with which its client may resume there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MovedSession {
    pub player: PlayerId,
    /// It is not part of any log: its `Debug` prints no byte of it.
    pub token: ResumeToken,
}

impl MovedSession {
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = vec![MOVED_SESSION_KIND];
        bytes.extend_from_slice(&self.player.0.to_le_bytes());
        bytes.extend_from_slice(&self.token.0);
        bytes
    }

    /// Reads a message; `None` if the bytes are not exactly one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let fields = bytes.strip_prefix(&[MOVED_SESSION_KIND])?;
        let (player, token) = fields.split_first_chunk()?;
        Some(Self {
            player: PlayerId(u64::from_le_bytes(*player)),
            token: ResumeToken(token.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_survives_its_bytes_and_other_bytes_are_none() {
        let session = MovedSession {
            player: PlayerId(u64::MAX - 5),
            token: ResumeToken([9; 16]),
        };
        let mut bytes = session.to_bytes();
        assert_eq!(MovedSession::from_bytes(&bytes), Some(session));
        for length in 0..bytes.len() {
            assert_eq!(MovedSession::from_bytes(&bytes[..length]), None);
        }
        bytes.push(0);
        assert_eq!(MovedSession::from_bytes(&bytes), None);
        bytes.pop();
        bytes[0] = 64;
        assert_eq!(MovedSession::from_bytes(&bytes), None);
        assert!(format!("{session:?}").contains("ResumeToken(…)"));
    }
}
