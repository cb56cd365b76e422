//! Messages about the session. They belong to no scene, so to no epoch.

use super::client::ResumeToken;
use super::close_reason::CloseReason;
use super::codec::{WireError, WireReader, write_varint};
use super::login_refusal::LoginRefusal;
use super::position::{QuantizedPosition, read_position, write_position};

/// A message about the session. The table in the [module documentation](super) has its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionNotice {
    /// The client waits in the login queue.
    Queued {
        /// Position in the queue; 1 is next.
        position: u32,
    },
    /// The player is logged in, or the session is resumed.
    Welcome {
        /// Player id.
        player: u64,
        /// Token to resume the session over another connection. Earlier tokens are invalid.
        token: ResumeToken,
    },
    /// The client controls an object of this scene, and receives nothing more of it before it sends *Ready*.
    Loading {
        /// The scene's number.
        scene: u32,
        /// Width and height, in 1/64 m.
        size: QuantizedPosition,
    },
    /// The server ends the session. No message follows.
    Closed {
        /// The reason: a number of [`CloseReason`](crate::wire::CloseReason).
        reason: u8,
        /// Why the login was refused; with [`CloseReason::Refused`] only, and always.
        refusal: Option<LoginRefusal>,
    },
    /// No session has the token of *Resume*, or its player is not available now. Nothing has changed: the client may log in, or send
    /// *Resume* again.
    ResumeRefused,
    /// Follows *Welcome* after *Resume*. From now on the client's epoch is that of the packet.
    Resumed {
        /// Whether the client keeps its state, and the messages that it missed follow; otherwise it discards its state.
        keeps_state: bool,
    },
    /// The reply to *Ping*.
    Pong {
        /// Number of the *Ping*.
        number: u32,
        /// The tick of the reply.
        tick: u64,
    },
    /// From the packet's tick on, simulated time passes at this rate, because the server is overloaded.
    TimeRate {
        /// In percent of real time, 1 to 100. Fewer ticks pass per real second; a tick is as long in simulated time as before.
        percent: u8,
    },
}

const QUEUED: u8 = 13;
const WELCOME: u8 = 14;
const LOADING: u8 = 15;
const CLOSED: u8 = 16;
const PONG: u8 = 17;
const RESUME_REFUSED: u8 = 18;
const RESUMED: u8 = 19;
const TIME_RATE: u8 = 20;

impl SessionNotice {
    /// Whether messages of this kind are notices.
    #[must_use]
    pub const fn is_notice(kind: u8) -> bool {
        QUEUED <= kind && kind <= TIME_RATE
    }

    /// Appends the encoded message.
    pub fn write(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Queued { position: place } => {
                bytes.push(QUEUED);
                write_varint(bytes, u64::from(place));
            }
            Self::Welcome { player, token } => {
                bytes.push(WELCOME);
                write_varint(bytes, player);
                bytes.extend(token.0);
            }
            Self::Loading { scene, size } => {
                bytes.push(LOADING);
                write_varint(bytes, u64::from(scene));
                write_position(bytes, size);
            }
            Self::Closed { reason, refusal } => {
                bytes.extend([CLOSED, reason]);
                if reason == CloseReason::Refused.number() {
                    refusal.unwrap_or(LoginRefusal::ByGame).write(bytes);
                }
            }
            Self::TimeRate { percent } => bytes.extend([TIME_RATE, percent]),
            Self::ResumeRefused => bytes.push(RESUME_REFUSED),
            Self::Resumed { keeps_state: keeps } => bytes.extend([RESUMED, u8::from(keeps)]),
            Self::Pong { number, tick } => {
                bytes.push(PONG);
                write_varint(bytes, u64::from(number));
                write_varint(bytes, tick);
            }
        }
    }

    /// Decodes what follows the kind byte.
    pub(super) fn read(kind: u8, reader: &mut WireReader) -> Result<Self, WireError> {
        let at = reader.at();
        Ok(match kind {
            QUEUED => Self::Queued {
                position: reader.varint_u32()?,
            },
            WELCOME => Self::Welcome {
                player: reader.varint_u64()?,
                token: ResumeToken(reader.array()?),
            },
            LOADING => Self::Loading {
                scene: reader.varint_u32()?,
                size: read_position(reader)?,
            },
            CLOSED => {
                let reason = reader.byte()?;
                let is_refused = reason == CloseReason::Refused.number();
                let refusal = is_refused.then(|| LoginRefusal::read(reader));
                Self::Closed {
                    reason,
                    refusal: refusal.transpose()?,
                }
            }
            RESUME_REFUSED => Self::ResumeRefused,
            RESUMED => {
                let at = reader.at();
                match reader.byte()? {
                    keeps @ (0 | 1) => Self::Resumed {
                        keeps_state: keeps == 1,
                    },
                    found => return Err(WireError::UnknownKind { at, found }),
                }
            }
            PONG => Self::Pong {
                number: reader.varint_u32()?,
                tick: reader.varint_u64()?,
            },
            TIME_RATE => Self::TimeRate {
                percent: reader.byte()?,
            },
            found => return Err(WireError::UnknownKind { at, found }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ServerMessage;
    use proptest::prelude::*;

    fn notices() -> impl Strategy<Value = SessionNotice> {
        prop_oneof![
            any::<u32>().prop_map(|position| SessionNotice::Queued { position }),
            (any::<u64>(), any::<[u8; 16]>()).prop_map(|(player, token)| {
                let token = ResumeToken(token);
                SessionNotice::Welcome { player, token }
            }),
            any::<[u32; 3]>().prop_map(|[scene, x, y]| {
                let size = QuantizedPosition { x, y };
                SessionNotice::Loading { scene, size }
            }),
            (0..16_u8, any::<[u64; 2]>(), 0..3_u8).prop_map(|(reason, [token, login], cause)| {
                let refusal = match cause {
                    0 => LoginRefusal::ByGame,
                    1 => LoginRefusal::Unverified,
                    _ => LoginRefusal::WrongPlayer { token, login },
                };
                let is_refused = reason == CloseReason::Refused.number();
                let refusal = is_refused.then_some(refusal);
                SessionNotice::Closed { reason, refusal }
            }),
            any::<u8>().prop_map(|percent| SessionNotice::TimeRate { percent }),
            Just(SessionNotice::ResumeRefused),
            any::<bool>().prop_map(|keeps_state| SessionNotice::Resumed { keeps_state }),
            (any::<u32>(), any::<u64>())
                .prop_map(|(number, tick)| SessionNotice::Pong { number, tick }),
        ]
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn notice_reads_back_and_a_truncated_one_is_an_error(notice in notices()) {
            let mut bytes = Vec::new();
            notice.write(&mut bytes);
            let read = ServerMessage::read(&mut WireReader::new(&bytes));
            prop_assert_eq!(read, Ok(ServerMessage::Notice(notice)));
            for cut in 0..bytes.len() {
                prop_assert!(ServerMessage::read(&mut WireReader::new(&bytes[..cut])).is_err());
            }
        }
    }
}
