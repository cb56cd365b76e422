//! Used tokens, until they expire. A token admits one client once, at whichever of the server's transports it is used.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cipher::TAG_BYTES;

/// The table of used tokens. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct UsedTokens(Arc<Mutex<BTreeMap<[u8; TAG_BYTES], UsedToken>>>);

/// How long a token stays bound to an address before another address may use it, in seconds. It limits the replies to a request that is
/// repeated from many forged addresses.
const REBIND_S: u64 = 2;

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsedTokenError {
    /// It has admitted a client, or another address has used it for less than [`REBIND_S`].
    Used,
    /// The table is full.
    TableFull { waiting: usize },
}

#[derive(Clone, Copy, Debug)]
struct UsedToken {
    address: SocketAddr,
    /// Time of the first use from this address, in seconds since 1970.
    since_s: u64,
    expires_s: u64,
    is_spent: bool,
}

impl UsedTokens {
    /// Number of stored tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Records a use of a token, unless it has admitted a client. A client whose address changes during its handshake may continue with the
    /// same token; then this returns the previous address. A table with `most` tokens first removes those that have expired.
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

    /// Marks the token as having admitted a client. Returns false if it had done so before.
    pub(super) fn spend(&self, mac: &[u8; TAG_BYTES]) -> bool {
        match self.lock().get_mut(mac) {
            Some(token) => !std::mem::replace(&mut token.is_spent, true),
            // Removed because it has expired, so no other request can use it.
            None => true,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<[u8; TAG_BYTES], UsedToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
