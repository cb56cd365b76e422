//! Tokens that resume a session over another connection.
//!
//! A token is 128 bits of SipHash-2-4 over a number that is never used twice, under keys that never leave the process. Tokens reveal
//! nothing about other tokens. They are not part of the game state or its hash: two runs with the same seed may issue different ones.

#[expect(
    deprecated,
    reason = "its successor takes no key, and a keyed function is what is wanted"
)]
use std::hash::SipHasher;
use std::hash::{BuildHasher, Hasher, RandomState};

use bevy_ecs::prelude::*;

use crate::wire::{ClientId, ResumeToken};

/// The key of tokens. By default it comes from the operating system's randomness.
#[derive(Resource, Clone)]
pub struct SessionKey {
    keys: [u64; 4],
    issued: u64,
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SessionKey").finish_non_exhaustive()
    }
}

impl Default for SessionKey {
    fn default() -> Self {
        Self::from_entropy()
    }
}

impl SessionKey {
    /// A secret random key.
    #[must_use]
    pub fn from_entropy() -> Self {
        // The standard library seeds its hash maps from the system's randomness, which cannot be predicted.
        let word = |nth: u64| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u64(nth);
            hasher.finish()
        };
        Self {
            keys: [0, 1, 2, 3].map(word),
            issued: 0,
        }
    }

    /// A key that is known to everyone with the seed. Only for runs whose packets must be reproducible.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self {
            keys: [seed, 1, seed, 2],
            issued: 0,
        }
    }

    /// A new token.
    pub(super) fn issue(&mut self, client: ClientId) -> ResumeToken {
        self.issued += 1;
        let [a, b, c, d] = self.keys;
        let half = |one, other| {
            #[expect(deprecated, reason = "as above")]
            let mut hasher = SipHasher::new_with_keys(one, other);
            hasher.write_u64(self.issued);
            hasher.write_u32(client.0);
            hasher.finish().to_le_bytes()
        };
        let mut token = [0; 16];
        token[..8].copy_from_slice(&half(a, b));
        token[8..].copy_from_slice(&half(c, d));
        ResumeToken(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn tokens_differ_unless_the_seed_is_equal() {
        let (mut one, mut other) = (SessionKey::from_entropy(), SessionKey::from_entropy());
        let (mut seeded, mut again) = (SessionKey::seeded(7), SessionKey::seeded(7));
        let mut all = BTreeSet::new();
        for client in (0..500).map(ClientId) {
            let token = seeded.issue(client);
            assert_eq!(token, again.issue(client));
            assert!(
                all.insert(token)
                    && all.insert(one.issue(client))
                    && all.insert(other.issue(client))
            );
        }
    }
}
