//! The players of a server: leases, unsaved changes, and requests to the store. Never waits for the store.
//!
//! ```text
//! claim ─▶ pending ─▶ requested ─▶ live ── save … ── release ─▶ leaving ── saved and released ─▶ removed
//!                       │            ├─ not renewed in time ──────┘
//!                       └─ timed out └─ another server has the lease ─▶ void: nothing more is saved
//! ```
//!
//! At most one request of each kind is pending; later ones are merged into the next. So a slow store gets fewer and larger requests, and
//! everything that waits is bounded: claims by their timeout, saves by one copy of the changes of each player, and players by
//! [`players_max`](LeaseTableSettings::players_max), including those who have left and are not saved yet.
//!
//! If the store does not keep up, saves wait. If more than [`unsaved_players_max`](LeaseTableSettings::unsaved_players_max) players wait to
//! be saved, logins are refused. If leases cannot be renewed before they expire, each player has to leave when its own expires, or
//! [`unsaved_play_ms`](LeaseTableSettings::unsaved_play_ms) later; a lease that nobody has taken meanwhile is renewed. Its unsaved
//! changes are stored in memory until the store accepts them, which it does unless another server has claimed the player by then.
//!
//! Invariants: each player has one epoch at a time, since it is claimed only if nothing of it waits. A batch keeps its number until it is
//! done. Batches are done in order.

use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use throng_core::ids::PlayerId;
use throng_core::memory::MemoryUse;
use tracing::{error, warn};

use super::error::{PlayerStoreError, StoreError, StoreErrorKind};
use super::record::PlayerRecord;
use super::save_batch::SaveBatch;
use super::store::{ClaimResult, ClaimTerms, Renewal, SaveOutcome};
use super::supervisor::{StoreReply, StoreRequest};

/// Maximum number of players per claim.
const CLAIMS_PER_REQUEST: usize = 4_096;

/// Time until a failed renewal is retried, in milliseconds.
const RENEW_RETRY_MS: u64 = 1_000;

/// Limits and times of a [`LeaseTable`].
///
/// ```
/// use throng_store::LeaseTableSettings;
///
/// // Players stay through an outage of the store of 100 s; after a crash of the server they wait for two minutes.
/// let settings = LeaseTableSettings { lease_ms: 120_000, ..LeaseTableSettings::default() };
/// assert!(settings.renew_after_ms < settings.lease_ms);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LeaseTableSettings {
    /// Maximum number of players that are here, being loaded, or gone and not saved yet; more are refused.
    pub players_max: u32,
    /// Maximum number of unsaved players before logins are refused.
    pub unsaved_players_max: u32,
    /// Timeout for the record of a player, in milliseconds.
    #[serde(alias = "deadline_ms")]
    pub load_timeout_ms: u64,
    /// Duration of a lease, in milliseconds: after a crash, no other server gets the players for so long. By default players
    /// stay through an outage of the store of 40 s.
    pub lease_ms: u64,
    /// Time after which leases are renewed, in milliseconds; well below [`lease_ms`](Self::lease_ms).
    pub renew_after_ms: u64,
    /// How long a lease of another server must be expired, by the clock of the store, before it is taken over, in milliseconds: for clocks
    /// that run at different speeds or are set forward.
    pub clock_grace_ms: u64,
    /// How long a player plays on after the end of its lease while the store cannot renew it, in milliseconds. With 0 it has to leave at
    /// once. Its changes are saved when the store is back, unless another server has taken the player; then they are lost. A server that
    /// alone has lost the store may then have a player whom another server has, too.
    pub unsaved_play_ms: u64,
}

impl Default for LeaseTableSettings {
    fn default() -> Self {
        Self {
            players_max: 20_000,
            unsaved_players_max: 10_000,
            load_timeout_ms: 5_000,
            lease_ms: 60_000,
            renew_after_ms: 20_000,
            clock_grace_ms: 5_000,
            unsaved_play_ms: 0,
        }
    }
}

/// An event of a [`LeaseTable`].
#[derive(Clone, Debug)]
pub enum LeaseEvent {
    /// The record of a player is loaded, and this server holds its lease.
    Loaded(PlayerRecord),
    /// The record of a player is not available.
    LoadFailed(PlayerId, PlayerStoreError),
    /// Another server has the player: its unsaved changes are discarded.
    Lost {
        /// The player.
        player: PlayerId,
        /// Whether it is still here and has to leave; otherwise it has left, and its last values were not saved.
        is_here: bool,
        /// Whether its own lease was lost; otherwise its save, or that of a player joined with it, was refused.
        is_taken: bool,
    },
    /// A player's lease has expired because it could not be renewed, and the time for [unsaved play](LeaseTableSettings::unsaved_play_ms)
    /// is over: the player has to leave, and is saved when possible.
    Expired(PlayerId),
    /// A transaction is on disk.
    Saved {
        /// The newest tick in it: everything up to this tick is saved.
        tick: u64,
        /// The players in it, with their new revisions.
        revisions: Vec<(PlayerId, u64)>,
        /// Players who have left, and whose leases are released.
        left: Vec<PlayerId>,
    },
    /// The store rejected a value of this player. The player is no longer saved. The store itself works.
    SaveRejected(PlayerId),
    /// The store failed.
    StoreFailed(StoreError),
}

/// State of a player's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HoldState {
    /// The player is here.
    Live,
    /// It has left, and its last values wait to be saved.
    Leaving,
    /// Another server has the lease, or a save of the player was refused: nothing more is saved.
    Void,
}

/// The error of requests after the store thread has ended.
pub fn thread_ended_error() -> StoreError {
    StoreError {
        store: "of this server".to_owned(),
        kind: StoreErrorKind::Unreachable,
        cause: "its thread has ended".to_owned(),
    }
}

#[derive(Clone, Copy, Debug)]
struct LeaseHold {
    epoch: u64,
    /// Expiry, by this server's monotonic clock.
    until_ms: u64,
    state: HoldState,
}

/// The players of a server: leases, unsaved changes, and requests to the store. At most one request of each kind is pending, and the
/// [settings](LeaseTableSettings) bound what waits. A batch keeps its number until it is done.
#[derive(Debug, Default, MemoryUse)]
pub struct LeaseTable {
    #[memory(skip)]
    settings: LeaseTableSettings,
    holds: BTreeMap<PlayerId, LeaseHold>,
    /// Claims that were not sent yet, with their start times.
    pending_claims: BTreeMap<PlayerId, u64>,
    /// Claims that were sent. The time is `None` if the claim was cancelled.
    requested_claims: BTreeMap<PlayerId, Option<u64>>,
    claims_timeout_ms: u64,
    /// What the next transaction saves.
    unsaved: SaveBatch,
    /// The current transaction.
    #[memory(with = shared_batch_bytes)]
    saving: Option<Arc<SaveBatch>>,
    batches: u64,
    /// The newest tick from which anything was saved.
    saved_tick: u64,
    /// Leases that are being renewed, with their new expiry.
    renewing: Option<(Vec<(PlayerId, u64)>, u64)>,
    renew_at_ms: u64,
    /// Number of players who play on after the end of their leases.
    overdue: usize,
    /// Whether another process has taken over the name of this one: then nobody plays on after the end of a lease.
    is_superseded: bool,
}

impl LeaseTable {
    /// An empty table.
    #[must_use]
    pub fn new(settings: LeaseTableSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Whether a player is here: its record is loaded, it has not left, and this server holds its lease as far as it knows.
    #[must_use]
    pub fn is_live(&self, player: PlayerId) -> bool {
        let hold = self.holds.get(&player);
        hold.is_some_and(|hold| hold.state == HoldState::Live)
    }

    /// Expiry of a player's lease, by this server's clock; `None` if the player is not here.
    #[must_use]
    pub fn lease_valid_until(&self, player: PlayerId) -> Option<u64> {
        let hold = self.holds.get(&player);
        let hold = hold.filter(|hold| hold.state == HoldState::Live);
        hold.map(|hold| hold.until_ms)
    }

    /// Number of players who play on after the end of their leases, as of the last call of [`expire`](Self::expire).
    #[must_use]
    pub const fn unsaved_play_count(&self) -> usize {
        self.overdue
    }

    /// Players who are here, in ascending order.
    pub fn live_players(&self) -> impl Iterator<Item = PlayerId> {
        let live = self.holds.iter();
        live.filter(|(_, hold)| hold.state == HoldState::Live)
            .map(|(&player, _)| player)
    }

    /// Number of players that are here, being loaded, or gone and not saved yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.holds.len() + self.pending_claims.len() + self.requested_claims.len()
    }

    /// Whether there are no players and no pending requests.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.unsaved.is_empty() && self.saving.is_none()
    }

    /// Number of unsaved players.
    #[must_use]
    pub fn unsaved(&self) -> usize {
        self.unsaved.len() + self.saving.as_ref().map_or(0, |saving| saving.len())
    }

    /// Whether changes of a player wait to be saved or may still follow, because the player has just left.
    #[must_use]
    pub fn is_unsaved(&self, player: PlayerId) -> bool {
        let hold = self.holds.get(&player);
        if hold.is_some_and(|hold| hold.state == HoldState::Leaving) {
            return true;
        }
        let saving = self.saving.as_ref();
        self.unsaved.contains(player) || saving.is_some_and(|saving| saving.contains(player))
    }

    /// Whether a reply of the store is pending.
    #[must_use]
    pub fn has_pending_request(&self) -> bool {
        self.saving.is_some() || !self.requested_claims.is_empty() || self.renewing.is_some()
    }

    /// Claims a player. The result follows as [`LeaseEvent::Loaded`] or [`LeaseEvent::LoadFailed`].
    ///
    /// # Errors
    /// [`PlayerStoreError::SaveBacklogFull`] and [`PlayerStoreError::PlayerLimitReached`]; then no event follows.
    pub fn claim(&mut self, player: PlayerId, now_ms: u64) -> Result<(), PlayerStoreError> {
        let (unsaved, max) = (self.unsaved(), self.settings.unsaved_players_max as usize);
        if unsaved > max {
            return Err(PlayerStoreError::SaveBacklogFull {
                player,
                unsaved,
                max,
            });
        }
        let (held, max) = (self.len(), self.settings.players_max as usize);
        if held >= max {
            return Err(PlayerStoreError::PlayerLimitReached { player, held, max });
        }
        self.pending_claims.insert(player, now_ms);
        Ok(())
    }

    /// Adds changes of a player at some tick to the next transaction. `false` if this server does not hold the player.
    pub fn save<'a>(
        &mut self,
        player: PlayerId,
        tick: u64,
        changes: impl Iterator<Item = (u16, Option<&'a [u8]>)>,
    ) -> bool {
        match self.holds.get(&player) {
            Some(hold) if hold.state != HoldState::Void => {
                self.unsaved.add((player, hold.epoch, tick), changes);
                true
            }
            _ => false,
        }
    }

    /// Joins the next saves of two players who traded at some tick: both are saved, or neither. `false` if this server does not hold one of
    /// them. [Save](Self::save) the values after the trade before the next [`next_save_request`](Self::next_save_request).
    pub fn join_saves(&mut self, one: PlayerId, other: PlayerId, tick: u64) -> bool {
        let both = self.is_live(one) && self.is_live(other);
        if both {
            // Added before its values, so that losing one of the players from now on also removes the other's save.
            self.save(one, tick, std::iter::empty());
            self.save(other, tick, std::iter::empty());
            self.unsaved.join(one, other);
        }
        both
    }

    /// A trade was refused: nothing more is saved of those of the two who are here, because their values may include what the other one has
    /// lost.
    pub fn void_joined_saves(&mut self, players: [PlayerId; 2], mut tell: impl FnMut(LeaseEvent)) {
        for player in players {
            if self.is_live(player) {
                self.revoke(player, &[], &mut tell);
            }
        }
    }

    /// A player leaves: its lease is released with the next save, and an unanswered claim is cancelled.
    pub fn release(&mut self, player: PlayerId) {
        self.pending_claims.remove(&player);
        if let Some(since) = self.requested_claims.get_mut(&player) {
            *since = None;
        }
        if let Some(hold) = self.holds.get_mut(&player)
            && hold.state == HoldState::Live
        {
            hold.state = HoldState::Leaving;
            self.unsaved.release(player, hold.epoch);
        }
    }

    /// All unsaved changes, unless a transaction is pending. Call it at the end of a tick.
    pub fn next_save_request(&mut self) -> Option<StoreRequest> {
        if self.saving.is_some() || self.unsaved.is_empty() {
            return None;
        }
        self.batches += 1;
        let mut batch = std::mem::take(&mut self.unsaved);
        // A batch that only releases leases has no tick of its own.
        self.saved_tick = self.saved_tick.max(batch.tick);
        (batch.number, batch.tick) = (self.batches, self.saved_tick);
        let batch = Arc::new(batch);
        self.saving = Some(batch.clone());
        Some(StoreRequest::Save { batch })
    }

    /// Releases all players, including those that are being loaded.
    pub fn release_all(&mut self) {
        self.pending_claims.clear();
        self.requested_claims
            .values_mut()
            .for_each(|since| *since = None);
        let live: Vec<PlayerId> = self.live_players().collect();
        live.into_iter()
            .for_each(|player| self.release_lease(player));
    }

    /// Whether everything is saved and released, and no reply is pending.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.unsaved.is_empty() && !self.has_pending_request()
    }

    /// The other requests to the store, at most one of each kind. Call it at any time.
    pub fn next_requests(&mut self, now_ms: u64, mut order: impl FnMut(StoreRequest)) {
        // Measured from before the request; the store counts from later on.
        let until_ms = now_ms.saturating_add(self.settings.lease_ms);
        let terms = ClaimTerms {
            at_ms: None,
            lease_ms: self.settings.lease_ms,
            grace_ms: self.settings.clock_grace_ms,
        };
        if self.requested_claims.is_empty() && !self.pending_claims.is_empty() {
            let is_free = |player: &&PlayerId| {
                !self.holds.contains_key(player) && !self.unsaved.contains(**player)
            };
            let players = self
                .pending_claims
                .keys()
                .filter(is_free)
                .take(CLAIMS_PER_REQUEST);
            let players: Vec<PlayerId> = players.copied().collect();
            for player in &players {
                self.requested_claims
                    .insert(*player, self.pending_claims.remove(player));
            }
            self.claims_timeout_ms = until_ms;
            if !players.is_empty() {
                order(StoreRequest::Claim { players, terms });
            }
        }
        // Also without players: it marks the server as alive, and keeps its name.
        if self.renewing.is_none() && now_ms >= self.renew_at_ms {
            let held = self.holds.iter();
            let held = held.filter(|(_, hold)| hold.state != HoldState::Void);
            let leases: Vec<_> = held.map(|(&player, hold)| (player, hold.epoch)).collect();
            self.renew_at_ms = now_ms.saturating_add(self.settings.renew_after_ms);
            self.renewing = Some((leases.clone(), until_ms));
            order(StoreRequest::Renew { leases, terms });
        }
    }

    /// Handles a reply of the store.
    pub fn receive(&mut self, report: StoreReply, now_ms: u64, mut tell: impl FnMut(LeaseEvent)) {
        match &report {
            StoreReply::Renewed(Ok(_)) => self.is_superseded = false,
            StoreReply::Renewed(Err(error))
            | StoreReply::Claimed(_, Err(error))
            | StoreReply::SaveFailed(error) => {
                self.is_superseded |= error.kind == StoreErrorKind::NameInUse;
            }
            _ => {}
        }
        match report {
            StoreReply::Claimed(players, Ok(claimed)) => {
                for (player, claimed) in players.into_iter().zip(claimed) {
                    self.on_claimed(player, claimed, &mut tell);
                }
            }
            StoreReply::Claimed(players, Err(error)) => {
                for player in players {
                    if self.requested_claims.remove(&player).flatten().is_some() {
                        tell(LeaseEvent::LoadFailed(player, error.clone().into()));
                    }
                }
                tell(LeaseEvent::StoreFailed(error));
            }
            StoreReply::Saved(outcome) => self.on_saved(outcome, &mut tell),
            StoreReply::Renewed(Ok(renewal)) => self.on_renewed(&renewal, now_ms, &mut tell),
            StoreReply::Renewed(Err(error)) => {
                self.renewing = None;
                self.renew_at_ms = now_ms.saturating_add(RENEW_RETRY_MS);
                tell(LeaseEvent::StoreFailed(error));
            }
            StoreReply::SaveFailed(error) => tell(LeaseEvent::StoreFailed(error)),
            // Lookups do not concern leases.
            StoreReply::LookedUp(..) => {}
        }
    }

    fn on_claimed(
        &mut self,
        player: PlayerId,
        claimed: ClaimResult,
        tell: &mut impl FnMut(LeaseEvent),
    ) {
        let is_wanted = self.requested_claims.remove(&player).flatten().is_some();
        match claimed {
            ClaimResult::Granted { epoch, record } => {
                let hold = LeaseHold {
                    epoch,
                    until_ms: self.claims_timeout_ms,
                    state: HoldState::Live,
                };
                self.holds.insert(player, hold);
                if is_wanted {
                    tell(LeaseEvent::Loaded(record));
                } else {
                    self.release_lease(player);
                }
            }
            ClaimResult::Refused { refusal, .. } if is_wanted => {
                let error = PlayerStoreError::Leased {
                    player,
                    server: refusal.holder.name,
                    left_ms: refusal.left_ms,
                };
                tell(LeaseEvent::LoadFailed(player, error));
            }
            ClaimResult::Unreadable { error, .. } if is_wanted => {
                tell(LeaseEvent::LoadFailed(player, error.into()));
            }
            ClaimResult::Refused { .. } | ClaimResult::Unreadable { .. } => {}
        }
    }

    /// Like [`release`](Self::release) without cancelling claims: the player may be logging in again.
    fn release_lease(&mut self, player: PlayerId) {
        if let Some(hold) = self.holds.get_mut(&player) {
            hold.state = HoldState::Leaving;
            self.unsaved.release(player, hold.epoch);
        }
    }

    fn on_saved(&mut self, outcome: SaveOutcome, tell: &mut impl FnMut(LeaseEvent)) {
        let Some(batch) = self.saving.take() else {
            return;
        };
        for (player, error) in outcome.errors {
            error!(
                player = player.0,
                %error,
                "player not saved: the store rejected a value"
            );
            tell(LeaseEvent::SaveRejected(player));
        }
        for player in outcome.refused {
            let epoch = batch.epoch_of(player);
            // It may have left and logged in again since.
            if self.holds.get(&player).map(|hold| hold.epoch) == epoch {
                self.revoke(player, &outcome.taken, tell);
            }
        }
        let mut left = Vec::new();
        for &(player, epoch) in batch.releases() {
            let Entry::Occupied(hold) = self.holds.entry(player) else {
                continue;
            };
            if hold.get().epoch == epoch && hold.remove().state == HoldState::Leaving {
                left.push(player);
            }
        }
        tell(LeaseEvent::Saved {
            tick: batch.tick,
            revisions: outcome.revisions,
            left,
        });
    }

    fn on_renewed(&mut self, renewal: &Renewal, now_ms: u64, tell: &mut impl FnMut(LeaseEvent)) {
        if !renewal.skipped.is_empty() {
            self.renew_at_ms = now_ms.saturating_add(RENEW_RETRY_MS);
        }
        let Some((leases, until_ms)) = self.renewing.take() else {
            return;
        };
        for (player, epoch) in leases {
            let Some(hold) = self.holds.get_mut(&player) else {
                continue;
            };
            // It may have left and logged in again since.
            if hold.epoch != epoch {
                continue;
            }
            if renewal.lost.binary_search(&player).is_ok() {
                self.revoke(player, &renewal.lost, tell);
            } else if renewal.skipped.binary_search(&player).is_err() {
                hold.until_ms = hold.until_ms.max(until_ms);
            }
        }
    }

    /// Discards the saves of a player, and of those whose saves are joined with its own: their values may come from it. `taken`: all
    /// players whose own lease is lost, in ascending order.
    fn revoke(&mut self, player: PlayerId, taken: &[PlayerId], tell: &mut impl FnMut(LeaseEvent)) {
        for player in self.unsaved.remove(player) {
            let Some(hold) = self.holds.get_mut(&player) else {
                continue;
            };
            if hold.state == HoldState::Void {
                continue;
            }
            error!(
                player = player.0,
                epoch = hold.epoch,
                "player no longer saved: its lease was lost, or its save or one tied to it was rejected"
            );
            let is_here = hold.state == HoldState::Live;
            if is_here {
                self.unsaved.release(player, hold.epoch);
            }
            hold.state = HoldState::Void;
            let is_taken = taken.binary_search(&player).is_ok();
            tell(LeaseEvent::Lost {
                player,
                is_here,
                is_taken,
            });
        }
    }

    /// Handles what has expired: unanswered claims, and leases that could not be renewed. O(players).
    pub fn expire(&mut self, now_ms: u64, mut tell: impl FnMut(LeaseEvent)) {
        let load_timeout_ms = self.settings.load_timeout_ms;
        let is_late = |since: u64| now_ms.saturating_sub(since) > load_timeout_ms;
        let mut late = Vec::new();
        self.pending_claims.retain(|&player, since| {
            let is_late = is_late(*since);
            late.extend(is_late.then_some(player));
            !is_late
        });
        for (&player, since) in &mut self.requested_claims {
            late.extend(since.take_if(|since| is_late(*since)).map(|_| player));
        }
        for player in late {
            let error = PlayerStoreError::TimedOut {
                player,
                load_timeout_ms,
            };
            tell(LeaseEvent::LoadFailed(player, error));
        }
        let play_ms = if self.is_superseded {
            0
        } else {
            self.settings.unsaved_play_ms
        };
        let (mut over, mut overdue) = (Vec::new(), 0);
        for (&player, hold) in &self.holds {
            if hold.state == HoldState::Live && now_ms >= hold.until_ms {
                if now_ms >= hold.until_ms.saturating_add(play_ms) {
                    over.push(player);
                } else {
                    overdue += 1;
                }
            }
        }
        if (self.overdue == 0) != (overdue == 0) {
            let unsaved_play_ms = play_ms;
            if overdue > 0 {
                warn!(
                    players = overdue,
                    unsaved_play_ms,
                    "leases ended while the store is away: players play on unsaved"
                );
            } else {
                warn!("no player plays on unsaved any more");
            }
        }
        self.overdue = overdue;
        for player in over {
            self.release_lease(player);
            tell(LeaseEvent::Expired(player));
        }
    }
}

/// The store thread shares it.
fn shared_batch_bytes(batch: &Option<Arc<SaveBatch>>) -> usize {
    let batch = batch.iter();
    batch
        .map(|batch| size_of::<SaveBatch>() + batch.heap_bytes())
        .sum()
}

#[cfg(test)]
mod tests;
