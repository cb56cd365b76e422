//! Messages of clients.

use glam::Vec2;

use super::codec::{WireError, WireReader, write_varint};
use super::position::{QuantizedPosition, quantise, read_position, write_position};

/// The longest message that a client may send, in bytes.
pub const CLIENT_MESSAGE_BYTES_MAX: usize = 1_024;

/// The longest credential of a *Login*, in bytes.
pub const CREDENTIAL_BYTES_MAX: usize = 512;

/// The longest text of a *Chat*, in bytes.
pub const CHAT_BYTES_MAX: usize = 512;

/// Proof that a session belongs to a client: 16 random bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResumeToken(pub [u8; 16]);

impl ResumeToken {
    /// Whether both are the same token. The duration does not depend on the number of equal bytes.
    #[must_use]
    pub fn is_same(self, other: Self) -> bool {
        let bytes = self.0.iter().zip(other.0);
        let differences = bytes.fold(0, |all, (own, other)| all | (own ^ other));
        std::hint::black_box(differences) == 0
    }
}

impl std::fmt::Debug for ResumeToken {
    /// Prints no byte of it, because logs are not secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ResumeToken(…)")
    }
}

/// A message of a client. The table in the [module documentation](super) has its format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClientMessage<'a> {
    /// The first message of a connection: the player logs in.
    Login {
        /// The claimed player id; 0 for the player of the connection's token.
        player: u64,
        /// Proof of the identity, as the game defines it; may be empty.
        credential: &'a [u8],
    },
    /// The player logs out.
    Logout,
    /// The controlled object moves to a position; the server validates it.
    Move {
        /// Target, in units of 1/64 m.
        to: QuantizedPosition,
        /// Heading, in 256ths of a turn.
        heading: u8,
    },
    /// The controlled object turns on the spot.
    Face {
        /// Heading, in 256ths of a turn.
        heading: u8,
    },
    /// The first message of a connection instead of *Login*: resumes a session of another connection. A further message says that the client
    /// has received its new token with *Welcome*; until then the server also accepts this one.
    Resume {
        /// The player of the session.
        player: u64,
        /// The token of *Welcome*.
        token: ResumeToken,
        /// Bytes of messages received on the reliable channel of the previous connection, since its last *Resume*, modulo 2³²; `None` if
        /// the client has no state any more.
        received: Option<u32>,
    },
    /// The client has loaded the scene of the last *Loading* and can receive its messages.
    Ready {
        /// Scene id.
        scene: u32,
    },
    /// The server replies at once with *Pong*.
    Ping {
        /// Repeated in the reply.
        number: u32,
    },
    /// The input of a player in one of the client's ticks. Packets name the last one that was handled.
    Input(ClientInput),
    /// The server moves the controlled object to a position along a path.
    MoveTo {
        /// Target, in units of 1/64 m.
        to: QuantizedPosition,
    },
    /// The controlled object stops.
    Stop,
    /// Maximum number of players that the client wants to receive. The game's own limit also applies.
    ViewCap {
        /// Number of players.
        players: u16,
    },
    /// An action on an object that the client sees.
    Interact {
        /// Object id in the client's scene.
        id: u32,
        /// Generation: how often that id was assigned before.
        generation: u32,
        /// Number of the action, as the game defines it.
        verb: u16,
    },
    /// The player's party queues for a match.
    QueueFor {
        /// Number of the mode.
        mode: u16,
    },
    /// The player's party leaves the queue.
    CancelQueue,
    /// Reply to a proposed match.
    AnswerMatch {
        /// Whether the player accepts.
        accept: bool,
    },
    /// A chat message.
    Chat {
        /// Its recipients.
        scope: ChatScope,
        /// Its text.
        text: &'a str,
    },
    /// A message defined by the game.
    Custom {
        /// Number of its registered type.
        kind: u16,
        /// Its bytes, in the format of its type.
        bytes: &'a [u8],
    },
}

/// The input of a player in one tick of its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientInput {
    /// Sequence number, modulo 65,536.
    pub seq: u16,
    /// Server tick, modulo 65,536, as the client estimates it.
    pub client_tick: u16,
    /// Motion of the controlled object.
    pub motion: InputMotion,
    /// Heading, in 256ths of a turn.
    pub heading: u8,
    /// Pressed buttons, one bit each, as the game defines them.
    pub buttons: u32,
}

/// The motion of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputMotion {
    /// No motion.
    #[default]
    Stand,
    /// To a position; the server validates it.
    To(QuantizedPosition),
    /// For one tick in this direction, at the object's speed: 256ths of a turn.
    Towards(u8),
}

/// Recipients of a chat message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChatScope {
    /// All players who see the speaker.
    Near,
    /// All players in its scene.
    Scene,
    /// Its party.
    Party,
    /// Its team.
    Team,
}

impl ChatScope {
    const ALL: [Self; 4] = [Self::Near, Self::Scene, Self::Party, Self::Team];
}

/// Class of a message, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageClass {
    /// *Login* and *Resume*.
    Login,
    /// *Move*, *Face* and *Input*: of several waiting ones the newest counts.
    Input,
    /// All others, including unknown kinds.
    Other,
}

const LOGIN: u8 = 1;
const LOGOUT: u8 = 2;
const MOVE: u8 = 3;
const FACE: u8 = 4;
const RESUME: u8 = 5;
const READY: u8 = 6;
const PING: u8 = 7;
const INPUT: u8 = 8;
const MOVE_TO: u8 = 9;
const STOP: u8 = 10;
const VIEW_CAP: u8 = 11;
const INTERACT: u8 = 12;
const QUEUE_FOR: u8 = 13;
const CANCEL_QUEUE: u8 = 14;
const ANSWER_MATCH: u8 = 15;
const CHAT: u8 = 16;
const CUSTOM: u8 = 17;

impl MessageClass {
    /// The class of a message; [`Other`](Self::Other) if it is empty.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        match bytes.first() {
            Some(&(LOGIN | RESUME)) => Self::Login,
            Some(&(MOVE | FACE | INPUT)) => Self::Input,
            _ => Self::Other,
        }
    }
}

impl<'a> ClientMessage<'a> {
    /// A login as the player of the connection's token.
    #[must_use]
    pub const fn login_by_token() -> Self {
        Self::login(0)
    }

    /// A login without credential, for connections whose transport has verified the player.
    #[must_use]
    pub const fn login(player: u64) -> Self {
        let credential = &[];
        Self::Login { player, credential }
    }

    /// A move to a position in metres.
    #[must_use]
    pub fn move_to(position: Vec2, heading: u8) -> Self {
        Self::Move {
            to: quantise(position),
            heading,
        }
    }

    /// Encodes the message.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Appends the encoded message. The caller has to limit credential and text; the receiver refuses longer ones.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match *self {
            Self::Login { player, credential } => {
                write_varints(bytes, LOGIN, &[player]);
                bytes.extend_from_slice(credential);
            }
            Self::Logout => bytes.push(LOGOUT),
            Self::Move { to, heading } => {
                bytes.push(MOVE);
                write_position(bytes, to);
                bytes.push(heading);
            }
            Self::Face { heading } => bytes.extend([FACE, heading]),
            Self::Resume {
                player,
                token,
                received,
            } => {
                write_varints(bytes, RESUME, &[player]);
                bytes.extend(token.0);
                bytes.push(u8::from(received.is_some()));
                if let Some(received) = received {
                    write_varint(bytes, u64::from(received));
                }
            }
            Self::Ready { scene } => write_varints(bytes, READY, &[u64::from(scene)]),
            Self::Ping { number } => write_varints(bytes, PING, &[u64::from(number)]),
            Self::Input(input) => input.write(bytes),
            Self::MoveTo { to } => {
                bytes.push(MOVE_TO);
                write_position(bytes, to);
            }
            Self::Stop => bytes.push(STOP),
            Self::ViewCap { players } => write_varints(bytes, VIEW_CAP, &[u64::from(players)]),
            Self::Interact {
                id,
                generation,
                verb,
            } => {
                let numbers = [u64::from(id), u64::from(generation), u64::from(verb)];
                write_varints(bytes, INTERACT, &numbers);
            }
            Self::QueueFor { mode } => write_varints(bytes, QUEUE_FOR, &[u64::from(mode)]),
            Self::CancelQueue => bytes.push(CANCEL_QUEUE),
            Self::AnswerMatch { accept } => bytes.extend([ANSWER_MATCH, u8::from(accept)]),
            Self::Chat { scope, text } => {
                bytes.extend([CHAT, scope as u8]);
                bytes.extend_from_slice(text.as_bytes());
            }
            Self::Custom {
                kind,
                bytes: of_game,
            } => {
                write_varints(bytes, CUSTOM, &[u64::from(kind)]);
                bytes.extend_from_slice(of_game);
            }
        }
    }

    /// Decodes one message, which must fill `bytes`.
    ///
    /// # Errors
    /// [`WireError`] with the offset of the first invalid byte.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = WireReader::new(bytes);
        let message = match reader.byte()? {
            LOGIN => Self::Login {
                player: reader.varint_u64()?,
                credential: read_remaining(&mut reader, CREDENTIAL_BYTES_MAX)?,
            },
            LOGOUT => Self::Logout,
            MOVE => Self::Move {
                to: read_position(&mut reader)?,
                heading: reader.byte()?,
            },
            FACE => Self::Face {
                heading: reader.byte()?,
            },
            RESUME => Self::Resume {
                player: reader.varint_u64()?,
                token: ResumeToken(reader.array()?),
                received: match read_choice(&mut reader, 2)? {
                    1 => Some(reader.varint_u32()?),
                    _ => None,
                },
            },
            READY => Self::Ready {
                scene: reader.varint_u32()?,
            },
            PING => Self::Ping {
                number: reader.varint_u32()?,
            },
            INPUT => Self::Input(ClientInput::read(&mut reader)?),
            MOVE_TO => Self::MoveTo {
                to: read_position(&mut reader)?,
            },
            STOP => Self::Stop,
            VIEW_CAP => Self::ViewCap {
                players: read_u16(&mut reader)?,
            },
            INTERACT => Self::Interact {
                id: reader.varint_u32()?,
                generation: reader.varint_u32()?,
                verb: read_u16(&mut reader)?,
            },
            QUEUE_FOR => Self::QueueFor {
                mode: read_u16(&mut reader)?,
            },
            CANCEL_QUEUE => Self::CancelQueue,
            ANSWER_MATCH => {
                let accept = read_choice(&mut reader, 2)? == 1;
                Self::AnswerMatch { accept }
            }
            CHAT => Self::read_chat(&mut reader)?,
            CUSTOM => Self::Custom {
                kind: read_u16(&mut reader)?,
                bytes: reader.remaining(),
            },
            found => return Err(WireError::UnknownKind { at: 0, found }),
        };
        reader.expect_end()?;
        Ok(message)
    }

    fn read_chat(reader: &mut WireReader<'a>) -> Result<Self, WireError> {
        let scope = ChatScope::ALL[usize::from(read_choice(reader, ChatScope::ALL.len() as u8)?)];
        let at = reader.at();
        let text = str::from_utf8(read_remaining(reader, CHAT_BYTES_MAX)?);
        let text = text.map_err(|error| WireError::InvalidUtf8 {
            at: at + error.valid_up_to(),
        })?;
        Ok(Self::Chat { scope, text })
    }
}

/// Values of the motion byte of an input.
const MOTION_STAND: u8 = 0;
const MOTION_TO: u8 = 1;
const MOTION_TOWARDS: u8 = 2;

impl ClientInput {
    fn write(self, bytes: &mut Vec<u8>) {
        bytes.push(INPUT);
        bytes.extend(self.seq.to_le_bytes());
        bytes.extend(self.client_tick.to_le_bytes());
        bytes.push(self.heading);
        write_varint(bytes, u64::from(self.buttons));
        match self.motion {
            InputMotion::Stand => bytes.push(MOTION_STAND),
            InputMotion::To(to) => {
                bytes.push(MOTION_TO);
                write_position(bytes, to);
            }
            InputMotion::Towards(direction) => bytes.extend([MOTION_TOWARDS, direction]),
        }
    }

    fn read(reader: &mut WireReader) -> Result<Self, WireError> {
        let seq = u16::from_le_bytes(reader.array()?);
        let client_tick = u16::from_le_bytes(reader.array()?);
        let heading = reader.byte()?;
        let buttons = reader.varint_u32()?;
        let motion = match read_choice(reader, 3)? {
            MOTION_TO => InputMotion::To(read_position(reader)?),
            MOTION_TOWARDS => InputMotion::Towards(reader.byte()?),
            _ => InputMotion::Stand,
        };
        Ok(Self {
            seq,
            client_tick,
            motion,
            heading,
            buttons,
        })
    }
}

fn write_varints(bytes: &mut Vec<u8>, kind: u8, numbers: &[u64]) {
    bytes.push(kind);
    numbers
        .iter()
        .for_each(|&number| write_varint(bytes, number));
}

/// A varint of at most 16 bits.
fn read_u16(reader: &mut WireReader) -> Result<u16, WireError> {
    let at = reader.at();
    u16::try_from(reader.varint_u32()?).map_err(|_| WireError::VarintOverflow { at, bits: 16 })
}

/// A byte below `choices`.
fn read_choice(reader: &mut WireReader, choices: u8) -> Result<u8, WireError> {
    let at = reader.at();
    let found = reader.byte()?;
    if found < choices {
        Ok(found)
    } else {
        Err(WireError::UnknownKind { at, found })
    }
}

/// All remaining bytes, if they are not more than allowed.
fn read_remaining<'a>(reader: &mut WireReader<'a>, max: usize) -> Result<&'a [u8], WireError> {
    let at = reader.at();
    let rest = reader.remaining();
    if rest.len() <= max {
        return Ok(rest);
    }
    Err(WireError::TooLong {
        at,
        found: u32::try_from(rest.len()).unwrap_or(u32::MAX),
        max: max as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn motions() -> impl Strategy<Value = InputMotion> {
        prop_oneof![
            Just(InputMotion::Stand),
            (any::<u32>(), any::<u32>())
                .prop_map(|(x, y)| InputMotion::To(QuantizedPosition { x, y })),
            any::<u8>().prop_map(InputMotion::Towards),
        ]
    }

    /// Messages of all kinds: those whose length follows from their content, then those that extend to the end.
    fn for_each_message(check: impl Fn(ClientMessage, bool) -> Result<(), TestCaseError>) {
        let fixed = prop_oneof![
            Just(ClientMessage::Logout),
            Just(ClientMessage::Stop),
            Just(ClientMessage::CancelQueue),
            (any::<u32>(), any::<u32>(), any::<u8>()).prop_map(|(x, y, heading)| {
                ClientMessage::Move {
                    to: QuantizedPosition { x, y },
                    heading,
                }
            }),
            any::<u8>().prop_map(|heading| ClientMessage::Face { heading }),
            (any::<u64>(), any::<[u8; 16]>(), any::<Option<u32>>()).prop_map(
                |(player, token, received)| {
                    ClientMessage::Resume {
                        player,
                        token: ResumeToken(token),
                        received,
                    }
                }
            ),
            any::<u32>().prop_map(|scene| ClientMessage::Ready { scene }),
            any::<u32>().prop_map(|number| ClientMessage::Ping { number }),
            (any::<[u16; 2]>(), motions(), any::<u8>(), any::<u32>()).prop_map(
                |([seq, client_tick], motion, heading, buttons)| {
                    ClientMessage::Input(ClientInput {
                        seq,
                        client_tick,
                        motion,
                        heading,
                        buttons,
                    })
                }
            ),
            any::<[u32; 2]>().prop_map(|[x, y]| ClientMessage::MoveTo {
                to: QuantizedPosition { x, y }
            }),
            any::<u16>().prop_map(|players| ClientMessage::ViewCap { players }),
            (any::<[u32; 2]>(), any::<u16>()).prop_map(|([id, generation], verb)| {
                ClientMessage::Interact {
                    id,
                    generation,
                    verb,
                }
            }),
            any::<u16>().prop_map(|mode| ClientMessage::QueueFor { mode }),
            any::<bool>().prop_map(|accept| ClientMessage::AnswerMatch { accept }),
        ];
        let config = draws!();
        proptest!(config.clone(), |(message in fixed)| check(message, true)?);
        proptest!(config, |(player: u64, kind: u16, bytes in prop::collection::vec(any::<u8>(), 0..99), text: String, scope in 0..4_usize)| {
            check(ClientMessage::Login { player, credential: &bytes }, false)?;
            check(ClientMessage::Custom { kind, bytes: &bytes }, false)?;
            if text.len() <= CHAT_BYTES_MAX {
                check(ClientMessage::Chat { scope: ChatScope::ALL[scope], text: &text }, false)?;
            }
        });
    }

    #[test]
    fn encoded_message_decodes_to_itself() {
        for_each_message(|message, is_fixed| {
            let mut bytes = message.to_bytes();
            prop_assert_eq!(ClientMessage::decode(&bytes), Ok(message));
            for cut in 0..bytes.len() {
                let read = ClientMessage::decode(&bytes[..cut]);
                prop_assert!(!is_fixed || read.is_err());
                prop_assert!(read != Ok(message));
            }
            bytes.push(0);
            prop_assert!(!is_fixed || ClientMessage::decode(&bytes).is_err());
            Ok(())
        });
    }

    #[test]
    fn oversized_or_non_utf8_text_is_an_error() {
        let credential = [7; CREDENTIAL_BYTES_MAX + 1];
        let long = ClientMessage::Login {
            player: 1,
            credential: &credential,
        };
        let expected = WireError::TooLong {
            at: 2,
            found: 513,
            max: 512,
        };
        assert_eq!(ClientMessage::decode(&long.to_bytes()), Err(expected));
        let text = ClientMessage::decode(&[CHAT, 1, b'a', 0xff]);
        assert_eq!(text, Err(WireError::InvalidUtf8 { at: 3 }));
        let scope = ClientMessage::decode(&[CHAT, 4]);
        assert_eq!(scope, Err(WireError::UnknownKind { at: 1, found: 4 }));
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn any_bytes_decode_or_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = ClientMessage::decode(&bytes);
        }
    }
}
