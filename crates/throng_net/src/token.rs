//! Connect tokens of netcode 1.02. A token states which player may connect, to which servers, until when, and with which keys.
//!
//! The service that authenticates players issues a token and sends it to the player over a secure channel. The server verifies it with its
//! private key. Until then it makes no request to the issuer and stores nothing for the client.
//!
//! A token has 2,048 public bytes. 1,024 of them are the private part, sealed by XChaCha20-Poly1305 with the private key. The layout is
//! that of the standard. The nonce (bytes 37–60) may name the key, so that a server can have several. All integers are little endian; times
//! are seconds since 1970.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use thiserror::Error;
use throng_protocol::wire::PROTOCOL_VERSION;

use super::cipher::{
    KEY_BYTES, LONG_NONCE_BYTES, RandomnessUnavailable, SecretKey, TAG_BYTES, open_extended,
    seal_extended,
};
use super::token_keys::{TokenKey, key_id};

/// First bytes of a token, and authenticated with its private part.
const TOKEN_VERSION: &[u8; 13] = b"NETCODE 1.02\0";

/// Length of a token, in bytes.
pub const CONNECT_TOKEN_BYTES: usize = 2_048;

/// Length of the sealed private part, in bytes.
pub(super) const PRIVATE_BYTES: usize = 1_024;

/// Length of the user data in a token, in bytes: from the issuer to the server, encrypted, so the client cannot read it.
pub const USER_DATA_BYTES: usize = 256;

/// The most server addresses that a token can contain.
pub const TOKEN_ADDRESSES_MAX: usize = 32;

/// Why a token is invalid, or cannot be issued.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenError {
    /// No server address, or too many of them.
    #[error("the token has {found} server addresses, expected 1 to {TOKEN_ADDRESSES_MAX}")]
    Addresses {
        /// The number of addresses.
        found: usize,
    },
    /// The token expires before it is created.
    #[error(
        "the token expires at {expires_s} s, expected later than its creation at {created_s} s"
    )]
    Times {
        /// Creation time, in seconds since 1970.
        created_s: u64,
        /// Expiry time, in seconds since 1970.
        expires_s: u64,
    },
    /// The bytes end too early.
    #[error("the token ends at byte {at}, expected {CONNECT_TOKEN_BYTES} bytes")]
    Truncated {
        /// Offset of the byte.
        at: usize,
    },
    /// The token has another protocol or version.
    #[error("the token is not of version NETCODE 1.02")]
    Version,
    /// An address of an unknown kind.
    #[error("the token has an address of the unknown kind {found} at byte {at}")]
    AddressKind {
        /// Offset of the byte.
        at: usize,
        /// The kind found.
        found: u8,
    },
    /// The token was sealed with another key, or for another protocol or expiry time, or was changed.
    #[error("the token was sealed with another key, or was changed")]
    Forged,
    /// The token names a key that the server does not have.
    #[error("the token was sealed with the key {id}, which this server does not have")]
    UnknownKeyId {
        /// Id of the key.
        id: u32,
    },
    /// The token names no key, and the server has no key without an id.
    #[error("the token names no key, and all keys of this server have ids")]
    NoKeyId,
    /// The operating system provides no random bytes.
    #[error(transparent)]
    NoRandomness(#[from] RandomnessUnavailable),
}

impl TokenError {
    /// The error of a token whose key the server does not have.
    pub(super) fn unknown_key(nonce: &[u8; LONG_NONCE_BYTES]) -> Self {
        key_id(nonce).map_or(Self::NoKeyId, |id| Self::UnknownKeyId { id })
    }
}

/// The content of a token.
#[derive(Clone, Debug)]
pub struct TokenClaims {
    /// Number of the game and its version. Client and server must have the same.
    pub protocol: u64,
    /// Id of the player.
    pub client: u64,
    /// Creation time, in seconds since 1970.
    pub created_s: u64,
    /// Expiry time, in seconds since 1970.
    pub expires_s: u64,
    /// The connection ends after this many seconds without a packet. Negative: never.
    pub timeout_s: i32,
    /// The server addresses for which the token is valid. The client tries them in this order.
    pub servers: Vec<SocketAddr>,
    /// Data that only the server can read. Its authenticator and the entity of the session receive it, see [`TokenUserData`].
    pub user_data: [u8; USER_DATA_BYTES],
}

/// The default protocol number: `throng`, a zero byte and [`PROTOCOL_VERSION`]. A game with its own versions uses its own numbers.
pub const PROTOCOL_ID: u64 = u64::from_le_bytes(*b"throng\0\0") | (PROTOCOL_VERSION as u64) << 56;

impl TokenClaims {
    /// A token for a player, valid for 30 seconds, with a connection timeout of 10 seconds.
    #[must_use]
    pub const fn new(player: u64, servers: Vec<SocketAddr>, unix_s: u64) -> Self {
        Self {
            protocol: PROTOCOL_ID,
            client: player,
            created_s: unix_s,
            expires_s: unix_s + 30,
            timeout_s: 10,
            servers,
            user_data: [0; USER_DATA_BYTES],
        }
    }
}

/// The user data of a connect token: [`USER_DATA_BYTES`] bytes that its issuer wrote and that only the server can read. Clones share it.
///
/// The format is that of the game. Unused bytes at the end are zero.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenUserData(Arc<[u8; USER_DATA_BYTES]>);

impl std::fmt::Debug for TokenUserData {
    /// Without the bytes, which may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenUserData(…)")
    }
}

impl TokenUserData {
    /// The user data of a token; `None` if it has none: all bytes are zero.
    #[must_use]
    pub fn new(bytes: &[u8; USER_DATA_BYTES]) -> Option<Self> {
        bytes
            .iter()
            .any(|&byte| byte != 0)
            .then(|| Self(Arc::new(*bytes)))
    }

    /// All of its bytes, with the zeros at the end.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; USER_DATA_BYTES] {
        &self.0
    }
}

/// A connect token as the client has it. It contains the keys of the connection, so send it to the client over an encrypted channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectToken {
    /// Number of the game and its version. Client and server must have the same.
    pub protocol: u64,
    /// Creation time, in seconds since 1970.
    pub created_s: u64,
    /// Expiry time, in seconds since 1970.
    pub expires_s: u64,
    /// The connection ends after this many seconds without a packet. Negative: never.
    pub timeout_s: i32,
    /// The server addresses for which the token is valid. The client tries them in this order.
    pub servers: Vec<SocketAddr>,
    pub(super) nonce: [u8; LONG_NONCE_BYTES],
    pub(super) private: Vec<u8>,
    pub(super) to_server: SecretKey,
    pub(super) to_client: SecretKey,
}

/// The private part of a token, as the server reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrivateToken {
    pub client: u64,
    pub timeout_s: i32,
    pub servers: Vec<SocketAddr>,
    pub to_server: SecretKey,
    pub to_client: SecretKey,
    pub user_data: [u8; USER_DATA_BYTES],
}

/// The data that authenticates with the private part.
fn associated_data(protocol: u64, expires_s: u64) -> [u8; 29] {
    let mut bound = [0; 29];
    bound[..13].copy_from_slice(TOKEN_VERSION);
    bound[13..21].copy_from_slice(&protocol.to_le_bytes());
    bound[21..].copy_from_slice(&expires_s.to_le_bytes());
    bound
}

impl ConnectToken {
    /// Issues a token for servers with this private key: a [`TokenKey`], or a [`SecretKey`] without an id.
    ///
    /// # Errors
    /// [`TokenError`] if it has no address or too many, expires before it is created, or the system provides no random bytes.
    pub fn issue(
        claims: &TokenClaims,
        private_key: impl Into<TokenKey>,
    ) -> Result<Self, TokenError> {
        let private_key = private_key.into();
        let found = claims.servers.len();
        if found == 0 || found > TOKEN_ADDRESSES_MAX {
            return Err(TokenError::Addresses { found });
        }
        if claims.created_s >= claims.expires_s {
            return Err(TokenError::Times {
                created_s: claims.created_s,
                expires_s: claims.expires_s,
            });
        }
        let (to_server, to_client) = (SecretKey::random()?, SecretKey::random()?);
        let nonce = private_key.nonce()?;
        let mut private = Vec::with_capacity(PRIVATE_BYTES);
        private.extend_from_slice(&claims.client.to_le_bytes());
        private.extend_from_slice(&claims.timeout_s.to_le_bytes());
        write_addresses(&mut private, &claims.servers);
        private.extend_from_slice(&to_server.0);
        private.extend_from_slice(&to_client.0);
        private.extend_from_slice(&claims.user_data);
        private.resize(PRIVATE_BYTES - TAG_BYTES, 0);
        let bound = associated_data(claims.protocol, claims.expires_s);
        seal_extended(&private_key.secret, &nonce, &bound, &mut private, 0);
        Ok(Self {
            protocol: claims.protocol,
            created_s: claims.created_s,
            expires_s: claims.expires_s,
            timeout_s: claims.timeout_s,
            servers: claims.servers.clone(),
            nonce,
            private,
            to_server,
            to_client,
        })
    }

    /// The id of the key with which it was sealed; `None` if it names none.
    #[must_use]
    pub fn key_id(&self) -> Option<u32> {
        key_id(&self.nonce)
    }

    /// Encodes the token as 2,048 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(CONNECT_TOKEN_BYTES);
        bytes.extend_from_slice(TOKEN_VERSION);
        for number in [self.protocol, self.created_s, self.expires_s] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.nonce);
        bytes.extend_from_slice(&self.private);
        bytes.extend_from_slice(&self.timeout_s.to_le_bytes());
        write_addresses(&mut bytes, &self.servers);
        bytes.extend_from_slice(&self.to_server.0);
        bytes.extend_from_slice(&self.to_client.0);
        bytes.resize(CONNECT_TOKEN_BYTES, 0);
        bytes
    }

    /// Decodes a token.
    ///
    /// # Errors
    /// [`TokenError`] if the bytes are not a token.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TokenError> {
        let mut fields = TokenFields { bytes, at: 0 };
        if fields.read(13)? != TOKEN_VERSION {
            return Err(TokenError::Version);
        }
        let [protocol, created_s, expires_s] = [fields.u64()?, fields.u64()?, fields.u64()?];
        if created_s >= expires_s {
            return Err(TokenError::Times {
                created_s,
                expires_s,
            });
        }
        Ok(Self {
            protocol,
            created_s,
            expires_s,
            nonce: fields.array()?,
            private: fields.read(PRIVATE_BYTES)?.to_vec(),
            timeout_s: fields.i32()?,
            servers: fields.addresses()?,
            to_server: fields.key()?,
            to_client: fields.key()?,
        })
    }
}

impl PrivateToken {
    /// Decrypts the private part in place.
    pub fn open(
        sealed: &mut [u8],
        (protocol, expires_s): (u64, u64),
        nonce: &[u8; LONG_NONCE_BYTES],
        private_key: &SecretKey,
    ) -> Result<Self, TokenError> {
        let opened = open_extended(
            private_key,
            nonce,
            &associated_data(protocol, expires_s),
            sealed,
        );
        let bytes = &*opened.map_err(|_| TokenError::Forged)?;
        let mut fields = TokenFields { bytes, at: 0 };
        Ok(Self {
            client: fields.u64()?,
            timeout_s: fields.i32()?,
            servers: fields.addresses()?,
            to_server: fields.key()?,
            to_client: fields.key()?,
            user_data: fields.array()?,
        })
    }
}

fn write_addresses(bytes: &mut Vec<u8>, addresses: &[SocketAddr]) {
    bytes.extend_from_slice(&(addresses.len() as u32).to_le_bytes());
    for address in addresses {
        match address.ip() {
            IpAddr::V4(ip) => {
                bytes.push(1);
                bytes.extend_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                bytes.push(2);
                bytes.extend_from_slice(&ip.octets());
            }
        }
        bytes.extend_from_slice(&address.port().to_le_bytes());
    }
}

/// Reads the fields of a token from front to back.
struct TokenFields<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> TokenFields<'t> {
    fn read(&mut self, count: usize) -> Result<&'t [u8], TokenError> {
        let end = self.at + count;
        let taken = self.bytes.get(self.at..end);
        self.at = end;
        taken.ok_or(TokenError::Truncated {
            at: self.bytes.len(),
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], TokenError> {
        let mut array = [0; N];
        array.copy_from_slice(self.read(N)?);
        Ok(array)
    }

    fn u64(&mut self) -> Result<u64, TokenError> {
        self.array().map(u64::from_le_bytes)
    }

    fn i32(&mut self) -> Result<i32, TokenError> {
        self.array().map(i32::from_le_bytes)
    }

    fn key(&mut self) -> Result<SecretKey, TokenError> {
        self.array::<KEY_BYTES>().map(SecretKey)
    }

    fn addresses(&mut self) -> Result<Vec<SocketAddr>, TokenError> {
        let found = self.array().map(u32::from_le_bytes)? as usize;
        if found == 0 || found > TOKEN_ADDRESSES_MAX {
            return Err(TokenError::Addresses { found });
        }
        let mut addresses = Vec::with_capacity(found);
        for _ in 0..found {
            let at = self.at;
            let ip = match self.array()? {
                [1] => IpAddr::from(self.array::<4>()?),
                [2] => IpAddr::from(self.array::<16>()?),
                [found] => return Err(TokenError::AddressKind { at, found }),
            };
            let port = self.array().map(u16::from_le_bytes)?;
            addresses.push(SocketAddr::new(ip, port));
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn claims() -> TokenClaims {
        TokenClaims {
            protocol: 0x7468_726f_6e67,
            client: 42,
            created_s: 1_000,
            expires_s: 1_030,
            timeout_s: 10,
            servers: vec![
                "127.0.0.1:7000".parse().unwrap(),
                "[::1]:7001".parse().unwrap(),
            ],
            user_data: std::array::from_fn(|nth| nth as u8),
        }
    }

    #[test]
    fn token_reads_back_and_its_private_part_only_at_the_server() {
        let key = SecretKey::random().unwrap();
        let claims = claims();
        let token = ConnectToken::issue(&claims, key).unwrap();
        let bytes = token.to_bytes();
        assert_eq!(bytes.len(), CONNECT_TOKEN_BYTES);
        assert_eq!(ConnectToken::from_bytes(&bytes), Ok(token.clone()));
        let open = |key: &SecretKey, bound_to| {
            PrivateToken::open(&mut token.private.clone(), bound_to, &token.nonce, key)
        };
        let private = open(&key, (claims.protocol, 1_030)).unwrap();
        assert_eq!((private.client, private.timeout_s), (42, 10));
        assert_eq!(private.servers, claims.servers);
        assert_eq!(private.user_data, claims.user_data);
        assert_eq!(
            (private.to_server, private.to_client),
            (token.to_server, token.to_client)
        );
        let other = SecretKey::random().unwrap();
        for refused in [
            open(&other, (claims.protocol, 1_030)),
            open(&key, (claims.protocol, 1_031)),
            open(&key, (1, 1_030)),
        ] {
            assert_eq!(refused, Err(TokenError::Forged));
        }
    }

    #[test]
    fn unusable_token_is_not_issued() {
        let key = SecretKey([3; KEY_BYTES]);
        let issue = |claims: TokenClaims| ConnectToken::issue(&claims, key).map(drop);
        let nowhere = TokenClaims {
            servers: Vec::new(),
            ..claims()
        };
        assert_eq!(issue(nowhere), Err(TokenError::Addresses { found: 0 }));
        let everywhere = TokenClaims {
            servers: vec!["[::1]:1".parse().unwrap(); 33],
            ..claims()
        };
        assert_eq!(issue(everywhere), Err(TokenError::Addresses { found: 33 }));
        let late = TokenClaims {
            expires_s: 1_000,
            ..claims()
        };
        let (created_s, expires_s) = (1_000, 1_000);
        let times = TokenError::Times {
            created_s,
            expires_s,
        };
        assert_eq!(issue(late), Err(times));
        let most = TokenClaims {
            servers: vec!["[::1]:1".parse().unwrap(); TOKEN_ADDRESSES_MAX],
            ..claims()
        };
        let token = ConnectToken::issue(&most, key).unwrap();
        assert_eq!(token.to_bytes().len(), CONNECT_TOKEN_BYTES);
        assert_eq!(token.private.len(), PRIVATE_BYTES);
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn truncated_or_altered_token_is_an_error_or_another_token(
            cut in 0..CONNECT_TOKEN_BYTES,
            changes in vec((0..CONNECT_TOKEN_BYTES, any::<u8>()), 1..5),
        ) {
            let mut bytes = ConnectToken::issue(&claims(), SecretKey([3; KEY_BYTES])).unwrap().to_bytes();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            let _ = ConnectToken::from_bytes(&bytes);
            let _ = ConnectToken::from_bytes(&bytes[..cut]);
        }
    }
}
