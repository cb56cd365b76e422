//! The keys of connect tokens, and how a token names its key.
//!
//! A server accepts tokens of several keys at once, so that a key can be replaced while old tokens are still valid. A token names its key in
//! the nonce of its sealed part. The standard leaves the nonce to the issuer, so other implementations read such tokens, too.
//!
//! | bytes of the nonce | content |
//! |---|---|
//! | 0–3 | `key` and a zero byte |
//! | 4–7 | id of the key, little endian |
//! | 8–23 | random |
//!
//! A nonce of 24 random bytes names no key: the token was sealed with the key without an id. One in 2³² of them begins like one with an id;
//! such a token is refused.
//!
//! Invariants: two keys of a server have different ids, and at most one has none. A token whose id is unknown costs a lookup and no
//! decryption.

use std::sync::{Arc, PoisonError, RwLock};

use thiserror::Error;

use super::cipher::{LONG_NONCE_BYTES, RandomnessUnavailable, SecretKey, random_bytes};

/// The most keys that a server accepts at once.
pub const TOKEN_KEYS_MAX: usize = 16;

/// First bytes of a nonce that names a key.
const NAMED: [u8; 4] = *b"key\0";

/// Random bytes after the id.
const RANDOM_BYTES: usize = LONG_NONCE_BYTES - NAMED.len() - size_of::<u32>();

/// A secret key that seals connect tokens, and the id by which tokens name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenKey {
    /// The id. `None`: its tokens name no key, as those of other implementations of netcode.
    pub id: Option<u32>,
    /// The key.
    pub secret: SecretKey,
}

impl TokenKey {
    /// A key with an id.
    #[must_use]
    pub const fn with_id(id: u32, secret: SecretKey) -> Self {
        Self {
            id: Some(id),
            secret,
        }
    }

    /// A nonce for one token.
    pub(super) fn nonce(&self) -> Result<[u8; LONG_NONCE_BYTES], RandomnessUnavailable> {
        let Some(id) = self.id else {
            return random_bytes();
        };
        let random: [u8; RANDOM_BYTES] = random_bytes()?;
        let mut nonce = [0; LONG_NONCE_BYTES];
        let (name, rest) = nonce.split_at_mut(LONG_NONCE_BYTES - RANDOM_BYTES);
        name[..NAMED.len()].copy_from_slice(&NAMED);
        name[NAMED.len()..].copy_from_slice(&id.to_le_bytes());
        rest.copy_from_slice(&random);
        Ok(nonce)
    }
}

impl From<SecretKey> for TokenKey {
    /// A key without an id.
    fn from(secret: SecretKey) -> Self {
        Self { id: None, secret }
    }
}

impl From<&SecretKey> for TokenKey {
    fn from(secret: &SecretKey) -> Self {
        Self::from(*secret)
    }
}

impl From<&Self> for TokenKey {
    fn from(key: &Self) -> Self {
        *key
    }
}

/// The id of the key that a nonce names.
pub(super) fn key_id(nonce: &[u8; LONG_NONCE_BYTES]) -> Option<u32> {
    let id = nonce.strip_prefix(&NAMED)?.first_chunk()?;
    Some(u32::from_le_bytes(*id))
}

/// Why keys cannot be used together.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidTokenKeys {
    /// There is no key.
    #[error("expected at least one key")]
    Empty,
    /// There are too many.
    #[error("expected at most {TOKEN_KEYS_MAX} keys, found {found}")]
    TooMany {
        /// Their number.
        found: usize,
    },
    /// Two keys have the same id.
    #[error("two keys have the id {id}: give each key an id of its own")]
    DuplicateId {
        /// The id.
        id: u32,
    },
    /// Two keys have no id.
    #[error("two keys have no id: give at least one of them an id")]
    SeveralWithoutId,
    /// One of the new keys is the public test key.
    #[error("expected secret keys, found the public test key")]
    Insecure,
}

/// The keys of a server: tokens of all of them are accepted. Clones share the keys, so one can be kept to
/// [replace](Self::replace) them while the server runs.
///
/// ```
/// use throng_net::{SecretKey, TokenKey, TokenKeys};
///
/// let old = TokenKey::with_id(1, SecretKey::random()?);
/// let keys = TokenKeys::new(vec![old])?;
/// // Later: another key is accepted, too, and at last it alone.
/// let new = TokenKey::with_id(2, SecretKey::random()?);
/// keys.replace(vec![old, new])?;
/// keys.replace(vec![new])?;
/// assert_eq!(keys.ids(), [Some(2)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TokenKeys(Arc<RwLock<Vec<TokenKey>>>);

impl From<SecretKey> for TokenKeys {
    /// One key, without an id.
    fn from(secret: SecretKey) -> Self {
        Self::from(TokenKey::from(secret))
    }
}

impl From<TokenKey> for TokenKeys {
    fn from(key: TokenKey) -> Self {
        Self(Arc::new(RwLock::new(vec![key])))
    }
}

impl TokenKeys {
    /// These keys. The first one seals the tokens that the server issues itself, and is the source of the key for resets.
    ///
    /// # Errors
    /// [`InvalidTokenKeys`] if there are none or too many, or two have the same id.
    pub fn new(keys: Vec<TokenKey>) -> Result<Self, InvalidTokenKeys> {
        check(&keys)?;
        Ok(Self(Arc::new(RwLock::new(keys))))
    }

    /// Replaces the keys, from the next connect request on. Connections stay open, and handshakes whose challenge was sent can be completed.
    /// A client that was connected with a token of a removed key cannot return with it.
    ///
    /// # Errors
    /// [`InvalidTokenKeys`] as in [`new`](Self::new), or if one is the public test key. Then nothing changes.
    pub fn replace(&self, keys: Vec<TokenKey>) -> Result<(), InvalidTokenKeys> {
        check(&keys)?;
        if keys.iter().any(|key| key.secret == SecretKey::INSECURE) {
            return Err(InvalidTokenKeys::Insecure);
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    /// The ids, in the order of the keys.
    #[must_use]
    pub fn ids(&self) -> Vec<Option<u32>> {
        self.with(|keys| keys.iter().map(|key| key.id).collect())
    }

    /// Whether one of the keys is the public test key.
    #[must_use]
    pub fn has_test_key(&self) -> bool {
        self.with(|keys| keys.iter().any(|key| key.secret == SecretKey::INSECURE))
    }

    /// The key that seals new tokens.
    #[must_use]
    pub fn first(&self) -> TokenKey {
        self.with(|keys| keys.first().copied())
            .unwrap_or_else(|| unreachable!("there is at least one key"))
    }

    /// The key of a token, by the nonce of its sealed part; `None` if the server does not have it.
    pub(super) fn of_token(&self, nonce: &[u8; LONG_NONCE_BYTES]) -> Option<SecretKey> {
        let id = key_id(nonce);
        self.with(|keys| keys.iter().find(|key| key.id == id).map(|key| key.secret))
    }

    fn with<R>(&self, read: impl FnOnce(&[TokenKey]) -> R) -> R {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn check(keys: &[TokenKey]) -> Result<(), InvalidTokenKeys> {
    let found = keys.len();
    if found == 0 {
        return Err(InvalidTokenKeys::Empty);
    }
    if found > TOKEN_KEYS_MAX {
        return Err(InvalidTokenKeys::TooMany { found });
    }
    for (nth, key) in keys.iter().enumerate() {
        if keys[..nth].iter().any(|other| other.id == key.id) {
            return Err(match key.id {
                Some(id) => InvalidTokenKeys::DuplicateId { id },
                None => InvalidTokenKeys::SeveralWithoutId,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: Option<u32>, byte: u8) -> TokenKey {
        let secret = SecretKey([byte; 32]);
        TokenKey { id, secret }
    }

    #[test]
    fn key_is_found_by_the_nonce_of_its_tokens() {
        let all = [None, Some(0), Some(7), Some(u32::MAX)];
        let all = all.map(|id| key(id, id.map_or(9, |id| id as u8 | 1)));
        let keys = TokenKeys::new(all.to_vec()).unwrap();
        for key in all {
            let [one, other] = [(); 2].map(|()| key.nonce().unwrap());
            assert_ne!(one, other);
            assert_eq!(key_id(&one), key.id);
            assert_eq!(keys.of_token(&one), Some(key.secret));
        }
        let stranger = key(Some(8), 1).nonce().unwrap();
        assert_eq!(keys.of_token(&stranger), None);
        keys.replace(all[1..].to_vec()).unwrap();
        let unnamed = all[0].nonce().unwrap();
        assert_eq!(keys.of_token(&unnamed), None);
        assert_eq!(keys.first(), all[1]);
    }

    #[test]
    fn invalid_keys_replace_nothing() {
        let keys = TokenKeys::from(key(Some(1), 1));
        let twice = vec![key(Some(2), 2), key(Some(2), 3)];
        let without = vec![key(None, 2), key(Some(2), 3), key(None, 4)];
        let many = (0..17).map(|id| key(Some(id), 1)).collect();
        for (invalid, expected) in [
            (Vec::new(), InvalidTokenKeys::Empty),
            (many, InvalidTokenKeys::TooMany { found: 17 }),
            (twice, InvalidTokenKeys::DuplicateId { id: 2 }),
            (without, InvalidTokenKeys::SeveralWithoutId),
            (vec![key(Some(2), 0)], InvalidTokenKeys::Insecure),
        ] {
            assert_eq!(keys.replace(invalid), Err(expected));
        }
        assert_eq!(keys.ids(), [Some(1)]);
    }
}
