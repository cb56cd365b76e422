//! Used tokens. A token admits one client once, at whichever of the server's transports it is used. The same client may use it again to
//! return to its session after its connection was lost, over a transport with the same kind of [proof](TokenProof).

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

/// While the client of a token is connected, it may return at any time: the server may not know yet that the connection is lost.
const CONNECTED: u64 = u64::MAX;

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsedTokenError {
    /// It has admitted a client, or another address has used it for less than [`REBIND_S`].
    Used,
    /// The table is full.
    TableFull { waiting: usize },
}

/// How the client of a token proves that the token is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenProof {
    /// It answers a challenge with the keys of the token (UDP), so its request may be seen on the way. It may return even while the server
    /// still counts it as connected.
    Keys,
    /// It shows its request, and the transport keeps that secret (TLS). A request that was seen on the way over UDP is no such proof. It
    /// returns after its connection has ended, and never logs in again.
    Request,
}

/// One use of a token: it has admitted a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenUse {
    mac: [u8; TAG_BYTES],
    /// 1 for the first use.
    nth: u32,
    /// The client has used an earlier connection with this token, or the token has expired: the client may only resume its session.
    pub resumes_only: bool,
}

#[derive(Clone, Copy, Debug)]
struct UsedToken {
    address: SocketAddr,
    /// Time of the first use from this address, in seconds since 1970.
    since_s: u64,
    expires_s: u64,
    /// How often it has admitted its client.
    uses: u32,
    /// How its client proved it at the last use.
    proof: TokenProof,
    /// Whether the client has used such a connection. If not, the end of its handshake was lost, and it tries again.
    is_confirmed: bool,
    /// Until when its client may return.
    returns_until_s: u64,
}

impl UsedToken {
    /// Whether its client may return by this proof.
    fn may_return(&self, proof: TokenProof, unix_s: u64) -> bool {
        let is_connected = self.returns_until_s == CONNECTED;
        let is_free = proof == TokenProof::Keys || !is_connected;
        self.proof == proof && is_free && self.awaits_client(unix_s)
    }

    /// Whether its client is connected or may return.
    const fn awaits_client(&self, unix_s: u64) -> bool {
        self.uses > 0 && unix_s < self.returns_until_s
    }
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

    /// Records a use of a token, unless it has admitted a client that may not return. A client whose address changes during its handshake
    /// may continue with the same token; then this returns the previous address. A table with `most` tokens first removes those that have
    /// expired.
    pub(super) fn record(
        &self,
        (mac, proof): ([u8; TAG_BYTES], TokenProof),
        address: SocketAddr,
        (unix_s, expires_s): (u64, u64),
        most: usize,
    ) -> Result<Option<SocketAddr>, UsedTokenError> {
        let mut seen = self.lock();
        let before = seen.get(&mac).copied();
        let elsewhere = before.filter(|before| before.address != address);
        let returns = before.is_some_and(|it| it.may_return(proof, unix_s));
        // A client that returns by its request has a proven address.
        let is_proven = returns && proof == TokenProof::Request;
        let is_early = |it: UsedToken| !is_proven && unix_s < it.since_s.saturating_add(REBIND_S);
        let is_spent = before.is_some_and(|it| it.uses > 0 && !returns);
        if is_spent || elsewhere.is_some_and(is_early) {
            return Err(UsedTokenError::Used);
        }
        if seen.len() >= most && before.is_none() {
            seen.retain(|_, seen| seen.expires_s > unix_s || seen.awaits_client(unix_s));
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
            uses: before.map_or(0, |before| before.uses),
            proof,
            is_confirmed: before.is_some_and(|before| before.is_confirmed),
            returns_until_s: before.map_or(0, |before| before.returns_until_s),
        };
        seen.insert(mac, token);
        Ok(elsewhere.map(|before| before.address))
    }

    /// Whether the client of a token may return with it by this proof, even if the token has expired.
    pub(super) fn may_return(&self, mac: &[u8; TAG_BYTES], proof: TokenProof, unix_s: u64) -> bool {
        self.lock()
            .get(mac)
            .is_some_and(|token| token.may_return(proof, unix_s))
    }

    /// Marks the token as having admitted its client by this proof. `None` if it had done so before, and the client may not return.
    pub(super) fn spend(
        &self,
        mac: &[u8; TAG_BYTES],
        proof: TokenProof,
        (unix_s, expires_s): (u64, u64),
    ) -> Option<TokenUse> {
        let is_expired = unix_s >= expires_s;
        let mut tokens = self.lock();
        let Some(token) = tokens.get_mut(mac) else {
            // Removed because it has expired.
            return Some(TokenUse {
                mac: *mac,
                nth: 1,
                resumes_only: is_expired,
            });
        };
        if token.uses > 0 && !token.may_return(proof, unix_s) {
            return None;
        }
        let resumes_only = is_expired || (token.uses > 0 && token.is_confirmed);
        token.uses += 1;
        token.proof = proof;
        // A request is the first packet of its connection.
        token.is_confirmed |= proof == TokenProof::Request;
        token.returns_until_s = CONNECTED;
        Some(TokenUse {
            mac: *mac,
            nth: token.uses,
            resumes_only,
        })
    }

    /// Records that the client uses its connection.
    pub(crate) fn confirm(&self, of: TokenUse) {
        if let Some(token) = self.lock().get_mut(&of.mac) {
            token.is_confirmed = true;
        }
    }

    /// Records that the connection of a use has ended, and until when its client may return. Does nothing if it has returned already. Of
    /// several ends the earliest time counts: a client that was disconnected on purpose may not return because it is lost later.
    pub(crate) fn end(&self, of: TokenUse, returns_until_s: u64) {
        if let Some(token) = self.lock().get_mut(&of.mac)
            && token.uses == of.nth
        {
            token.returns_until_s = token.returns_until_s.min(returns_until_s);
        }
    }

    /// Takes a use back: its client was not admitted after all. It may use the token again; a client that returned, until this time.
    pub(super) fn release(&self, of: TokenUse, returns_until_s: u64) {
        if of.nth > 1 {
            self.end(of, returns_until_s);
        } else {
            self.lock().remove(&of.mac);
        }
    }

    /// Removes the record of a token: its client was refused before it was admitted.
    pub(super) fn forget_unused(&self, mac: &[u8; TAG_BYTES]) {
        let mut tokens = self.lock();
        if tokens.get(mac).is_some_and(|token| token.uses == 0) {
            tokens.remove(mac);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<[u8; TAG_BYTES], UsedToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::TokenProof::{Keys, Request};
    use super::*;

    const MAC: [u8; TAG_BYTES] = [7; TAG_BYTES];

    fn address() -> SocketAddr {
        ([127, 0, 0, 1], 9).into()
    }

    /// A token that expires at 10 s, and its first use.
    fn used_once() -> (UsedTokens, TokenUse) {
        let tokens = UsedTokens::default();
        assert_eq!(tokens.record((MAC, Keys), address(), (0, 10), 1), Ok(None));
        let first = tokens.spend(&MAC, Keys, (0, 10)).unwrap();
        (tokens, first)
    }

    #[test]
    fn end_of_a_former_connection_does_not_end_the_next() {
        let (tokens, first) = used_once();
        let second = tokens.spend(&MAC, Keys, (1, 10)).unwrap();
        assert_eq!((first.nth, second.nth), (1, 2));
        // The server notices only now that the first one was closed. While the second one lasts, its client may return.
        tokens.end(first, 0);
        assert!(tokens.may_return(&MAC, Keys, 1_000));
        tokens.end(second, 60);
        assert!(tokens.may_return(&MAC, Keys, 59) && !tokens.may_return(&MAC, Keys, 60));
        tokens.end(first, 90);
        assert_eq!(tokens.spend(&MAC, Keys, (60, 10)), None);
    }

    #[test]
    fn closed_client_cannot_return_when_it_is_lost_later() {
        for ends in [[0, 60], [60, 0]] {
            let (tokens, first) = used_once();
            for returns_until_s in ends {
                tokens.end(first, returns_until_s);
            }
            assert!(!tokens.may_return(&MAC, Keys, 1), "{ends:?}");
        }
    }

    #[test]
    fn full_table_keeps_tokens_whose_clients_may_return() {
        let (tokens, first) = used_once();
        tokens.end(first, 30);
        let other = [8; TAG_BYTES];
        let full = Err(UsedTokenError::TableFull { waiting: 1 });
        for unix_s in [9, 10, 29] {
            let recorded = tokens.record((other, Keys), address(), (unix_s, 90), 1);
            assert_eq!(recorded, full, "at {unix_s} s");
        }
        assert!(tokens.may_return(&MAC, Keys, 29) && !tokens.may_return(&MAC, Keys, 30));
        assert_eq!(
            tokens.record((other, Keys), address(), (30, 90), 1),
            Ok(None)
        );
    }

    #[test]
    fn return_resumes_only_once_the_token_expired_or_was_confirmed() {
        for (unix_s, is_confirmed, resumes_only) in [
            (9, false, false),
            (9, true, true),
            (10, false, true),
            (11, true, true),
        ] {
            let (tokens, first) = used_once();
            assert!(!first.resumes_only);
            if is_confirmed {
                tokens.confirm(first);
            }
            tokens.end(first, 30);
            let again = tokens.spend(&MAC, Keys, (unix_s, 10)).unwrap();
            assert_eq!(again.resumes_only, resumes_only, "at {unix_s} s");
        }
    }

    #[test]
    fn return_by_request_is_accepted_after_the_connection_has_ended() {
        let tokens = UsedTokens::default();
        let elsewhere = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let mut port = 9;
        // From another port each time, since each is another connection.
        let mut admit = |proof, unix_s| {
            port += 1;
            let recorded = tokens.record((MAC, proof), elsewhere(port), (unix_s, 10), 1);
            recorded.ok()?;
            tokens.spend(&MAC, proof, (unix_s, 10))
        };
        let first = admit(Request, 0).unwrap();
        assert!(!first.resumes_only);
        // While the connection is open, nobody else gets in, also by the keys.
        for unix_s in [0, 5, 1_000] {
            assert_eq!(admit(Request, unix_s), None);
            assert_eq!(admit(Keys, unix_s), None);
        }
        tokens.end(first, 31);
        assert_eq!(admit(Keys, 1), None, "by another proof");
        let second = admit(Request, 1).unwrap();
        assert!(second.resumes_only);
        assert_eq!(admit(Request, 2), None);
        tokens.end(second, 40);
        assert_eq!(admit(Request, 40), None, "too late");
        let third = admit(Request, 39).unwrap();
        // Refused because the server is full: it may try again.
        tokens.release(third, 50);
        let fourth = admit(Request, 49).unwrap();
        assert!(fourth.resumes_only);
        tokens.end(fourth, 0);
        assert_eq!(admit(Request, 49), None, "it has left");
    }

    #[test]
    fn request_seen_over_udp_does_not_return_over_another_transport() {
        let (tokens, first) = used_once();
        assert_eq!(tokens.spend(&MAC, Request, (0, 10)), None);
        tokens.end(first, 30);
        assert!(!tokens.may_return(&MAC, Request, 1));
        let recorded = tokens.record((MAC, Request), address(), (5, 10), 1);
        assert_eq!(recorded, Err(UsedTokenError::Used));
        assert_eq!(tokens.spend(&MAC, Request, (5, 10)), None);
        assert!(tokens.spend(&MAC, Keys, (5, 10)).is_some());
    }
}
