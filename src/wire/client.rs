//! What clients send.

use glam::Vec2;

use super::codec::{Reader, WireError, write_varint};
use super::server::{PositionQuantum, quantise, read_position, write_position};

/// A message from a client. The table in the [module's page](super) has its bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClientMessage {
    /// The first message of a connection: who plays.
    Login {
        /// The player; whether that is true is for the embedder to check.
        player: u64,
    },
    /// The player leaves.
    Logout,
    /// The own object goes where its player put it; the server checks.
    Move {
        /// Where, in units of 1/64 m.
        to: PositionQuantum,
        /// Where it looks, in 256ths of a turn.
        heading: u8,
    },
    /// The own object turns on the spot.
    Face {
        /// Where it looks, in 256ths of a turn.
        heading: u8,
    },
}

impl ClientMessage {
    /// A move to a position in metres.
    #[must_use]
    pub fn move_to(position: Vec2, heading: u8) -> Self {
        Self::Move {
            to: quantise(position),
            heading,
        }
    }

    /// The message's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Appends the message's bytes.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match *self {
            Self::Login { player } => {
                bytes.push(1);
                write_varint(bytes, player);
            }
            Self::Logout => bytes.push(2),
            Self::Move { to, heading } => {
                bytes.push(3);
                write_position(bytes, to);
                bytes.push(heading);
            }
            Self::Face { heading } => bytes.extend([4, heading]),
        }
    }

    /// Reads one message, which must fill `bytes`.
    ///
    /// # Errors
    /// [`WireError`] with the place of the first byte that does not fit.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let message = match reader.byte()? {
            1 => Self::Login {
                player: reader.varint_u64()?,
            },
            2 => Self::Logout,
            3 => Self::Move {
                to: read_position(&mut reader)?,
                heading: reader.byte()?,
            },
            4 => Self::Face {
                heading: reader.byte()?,
            },
            found => return Err(WireError::Kind { at: 0, found }),
        };
        reader.end()?;
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages() -> impl Strategy<Value = ClientMessage> {
        prop_oneof![
            any::<u64>().prop_map(|player| ClientMessage::Login { player }),
            Just(ClientMessage::Logout),
            (any::<u32>(), any::<u32>(), any::<u8>()).prop_map(|(x, y, heading)| {
                ClientMessage::Move {
                    to: PositionQuantum { x, y },
                    heading,
                }
            }),
            any::<u8>().prop_map(|heading| ClientMessage::Face { heading }),
        ]
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn what_is_encoded_decodes(message in messages(), extra: u8) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            prop_assert_eq!(ClientMessage::decode(&bytes), Ok(message));
            for cut in 0..bytes.len() {
                prop_assert!(ClientMessage::decode(&bytes[..cut]).is_err());
            }
            bytes.push(extra);
            prop_assert!(ClientMessage::decode(&bytes).is_err());
        }

        #[test]
        fn any_bytes_decode_or_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = ClientMessage::decode(&bytes);
        }
    }
}
