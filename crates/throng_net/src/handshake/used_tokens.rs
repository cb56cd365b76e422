//! Tokens that were seen, until they expire: none lets in twice, whichever of a server's gates it comes to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cipher::TAG_BYTES;

/// The tokens. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct UsedTokens(Arc<Mutex<BTreeMap<[u8; TAG_BYTES], UsedToken>>>);

/// How long a token stays bound to an address before another one may use it, in seconds. It limits the answers to a request that is
/// repeated from many forged addresses.
const REBIND_S: u64 = 2;

/// Why a token lets nobody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsedTokenError {
    /// It has admitted a client, or another address uses it since less than [`REBIND_S`].
    Used,
    /// More are remembered than may be.
    TableFull { waiting: usize },
}

#[derive(Clone, Copy, Debug)]
struct UsedToken {
    address: SocketAddr,
    /// When this address used it first, in seconds since 1970.
    since_s: u64,
    expires_s: u64,
    is_spent: bool,
}

impl UsedTokens {
    /// How many are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Takes note of a token, unless it let somebody in already. A client whose address changes during its handshake may go on with the
    /// same token: then this gives the address before. With `most` of them those are forgotten that have expired.
    pub(super) fn record(
        &self,
        mac: [u8; TAG_BYTES],
        address: SocketAddr,
        (unix_s, expires_s): (u64, u64),
        most: usize,
    ) -> Result<Option<SocketAddr>, UsedTokenError> {
        let mut seen = self.lock();
        let before = seen.get(&mac).copied();
        let elsewhere = before.filter(|before| before.address != address);
        let is_early = |it: UsedToken| unix_s < it.since_s.saturating_add(REBIND_S);
        if before.is_some_and(|before| before.is_spent) || elsewhere.is_some_and(is_early) {
            return Err(UsedTokenError::Used);
        }
        if seen.len() >= most && before.is_none() {
            seen.retain(|_, seen| seen.expires_s > unix_s);
            let waiting = seen.len();
            if waiting >= most {
                return Err(UsedTokenError::TableFull { waiting });
            }
        }
        let token = UsedToken {
            address,
            since_s: before.map_or(unix_s, |before| match elsewhere {
                Some(_) => unix_s,
                None => before.since_s,
            }),
            expires_s,
            is_spent: false,
        };
        seen.insert(mac, token);
        Ok(elsewhere.map(|before| before.address))
    }

    /// A token lets its bearer in now; whether it may: not where it did before.
    pub(super) fn spend(&self, mac: &[u8; TAG_BYTES]) -> bool {
        match self.lock().get_mut(mac) {
            Some(token) => !std::mem::replace(&mut token.is_spent, true),
            // Forgotten since it has expired, and nobody can ask with it any more.
            None => true,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<[u8; TAG_BYTES], UsedToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
