//! Why a server refuses a login.

use thiserror::Error;

use super::codec::{WireError, WireReader, write_varint};

/// Why a login was refused: the cause in a *Closed* with [`CloseReason::Refused`](super::CloseReason::Refused). Its text is for the log of
/// either end.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoginRefusal {
    /// The game's login rule does not accept the player.
    #[error("the server's login rule does not accept this player")]
    ByGame,
    /// The transport has verified no player: the connection was made without a token.
    #[error("this connection proves no identity: connect with a token")]
    Unverified,
    /// The login names another player than the token.
    #[error("this token is for player {token}, the login names player {login}")]
    WrongPlayer {
        /// The player of the token.
        token: u64,
        /// The player that the login names.
        login: u64,
    },
}

const BY_GAME: u8 = 0;
const UNVERIFIED: u8 = 1;
const WRONG_PLAYER: u8 = 2;

impl LoginRefusal {
    pub(super) fn write(self, bytes: &mut Vec<u8>) {
        match self {
            Self::ByGame => bytes.push(BY_GAME),
            Self::Unverified => bytes.push(UNVERIFIED),
            Self::WrongPlayer { token, login } => {
                bytes.push(WRONG_PLAYER);
                write_varint(bytes, token);
                write_varint(bytes, login);
            }
        }
    }

    pub(super) fn read(reader: &mut WireReader) -> Result<Self, WireError> {
        let at = reader.at();
        match reader.byte()? {
            BY_GAME => Ok(Self::ByGame),
            UNVERIFIED => Ok(Self::Unverified),
            WRONG_PLAYER => Ok(Self::WrongPlayer {
                token: reader.varint_u64()?,
                login: reader.varint_u64()?,
            }),
            found => Err(WireError::UnknownKind { at, found }),
        }
    }
}
