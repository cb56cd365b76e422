//! Resume tokens that another server process has issued, for players that it has handed over to this one.
//!
//! A client gets a new token when this process takes it over. If its connection is lost before, it has only the former one. That token
//! is accepted until the client resumes with its new one, its session ends, or its time has passed.

use std::collections::BTreeMap;

use crate::memory::MemoryUse;
use crate::wire::ResumeToken;
use crate::world::PlayerId;

/// Maximum number of tokens. Further ones are ignored: their clients log in again.
const TOKENS_MAX: usize = 65_536;

/// The tokens, with the ticks until which they are accepted. At most one for each player.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct MovedTokens(BTreeMap<PlayerId, (ResumeToken, u64)>);

impl MovedTokens {
    pub fn insert(&mut self, now: u64, player: PlayerId, token: ResumeToken, until_tick: u64) {
        if self.0.len() >= TOKENS_MAX {
            self.0.retain(|_, (_, until_tick)| *until_tick > now);
        }
        if self.0.len() < TOKENS_MAX {
            self.0.insert(player, (token, until_tick));
        }
    }

    pub fn get(&self, now: u64, player: PlayerId) -> Option<ResumeToken> {
        let (token, until_tick) = *self.0.get(&player)?;
        (until_tick > now).then_some(token)
    }

    pub fn remove(&mut self, player: PlayerId) {
        self.0.remove(&player);
    }
}
