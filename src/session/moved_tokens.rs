//! Resume tokens that other server processes have issued, for players that were handed over to this one.
//!
//! A client gets a new token when this process takes it over. If its connection is lost before, it has only a former one. If its player
//! was handed over several times meanwhile, that is not the newest of them. Former tokens are accepted until the client resumes with a token
//! of this process, its session ends here for good, or their time has passed. A token of this process is kept here, too, if its session
//! continues over a connection from another process before the client has used it.

use std::collections::BTreeMap;

use arrayvec::ArrayVec;

use crate::memory::MemoryUse;
use crate::wire::ResumeToken;
use crate::world::PlayerId;

/// Maximum number of players with tokens. Tokens of further ones are ignored: their clients log in again.
const PLAYERS_MAX: usize = 65_536;

/// Maximum number of tokens of a player. The oldest one is dropped for a further one.
pub(super) const MOVED_TOKENS_MAX: usize = 4;

/// A token, and the tick until which it is accepted.
type MovedToken = (ResumeToken, u64);

/// The tokens by player, oldest first.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct MovedTokens(BTreeMap<PlayerId, ArrayVec<MovedToken, MOVED_TOKENS_MAX>>);

impl MovedTokens {
    /// Accepts a token until a tick. O(log players).
    pub fn insert(&mut self, now: u64, player: PlayerId, token: ResumeToken, until_tick: u64) {
        if self.0.len() >= PLAYERS_MAX && !self.0.contains_key(&player) {
            self.0
                .retain(|_, tokens| tokens.iter().any(|(_, until_tick)| *until_tick > now));
            if self.0.len() >= PLAYERS_MAX {
                return;
            }
        }
        let tokens = self.0.entry(player).or_default();
        if let Some((_, until)) = tokens.iter_mut().find(|(known, _)| *known == token) {
            *until = until_tick;
            return;
        }
        if tokens.is_full() {
            tokens.remove(0);
        }
        tokens.push((token, until_tick));
    }

    /// The accepted tokens of a player, oldest first.
    pub fn get(&self, now: u64, player: PlayerId) -> impl Iterator<Item = ResumeToken> {
        let tokens = self.0.get(&player).into_iter().flatten();
        let accepted = tokens.filter(move |(_, until_tick)| *until_tick > now);
        accepted.map(|(token, _)| *token)
    }

    pub fn remove(&mut self, player: PlayerId) {
        self.0.remove(&player);
    }
}
