//! A running mode, of either kind.

use throng_core::memory::MemoryUse;

use super::match_mode_settings::MatchModeSettings;
use super::matches::Match;
use super::mode::{GroupModeTickSettings, ModeError};
use super::pack::groups::GroupMode;
use super::pack::wait_reason::WaitReason;
use super::queue::ticket_queue::TicketQueue;
use super::rooms::mode::RoomMode;
use super::stats::ModeStats;
use super::ticket::{ModeId, Ticket, TicketPlayer};

/// A running mode.
#[derive(Clone, Debug, MemoryUse)]
pub enum MatchMode {
    /// Matches between two groups of exactly K players.
    Groups(Box<GroupMode>),
    /// Rooms of 1v1, 2v2 or 3v3 in which parties gather over time.
    Rooms(Box<RoomMode>),
}

impl MatchMode {
    /// Creates a mode without tickets.
    ///
    /// # Errors
    /// [`ModeError`] when a setting is out of its range.
    pub fn new(id: ModeId, mode: &MatchModeSettings, tick_hz: f64) -> Result<Self, ModeError> {
        Ok(match mode {
            MatchModeSettings::Groups(settings) => Self::Groups(Box::new(GroupMode::new(
                id,
                settings.tick_settings(tick_hz)?,
            ))),
            MatchModeSettings::Rooms(settings) => Self::Rooms(Box::new(RoomMode::new(
                id,
                settings.tick_settings(tick_hz)?,
            ))),
        })
    }

    /// The waiting parties, longest-waiting first, without those in proposed matches.
    #[must_use]
    pub fn queue(&self) -> &TicketQueue {
        match self {
            Self::Groups(groups) => groups.queue(),
            Self::Rooms(rooms) => rooms.queue(),
        }
    }

    /// The counters of the mode.
    #[must_use]
    pub fn stats(&self) -> &ModeStats {
        match self {
            Self::Groups(groups) => groups.stats(),
            Self::Rooms(rooms) => rooms.stats(),
        }
    }

    /// Whether the counters are consistent: queued = matched + cancelled + expired + waiting, counted in parties. O(1).
    #[must_use]
    pub fn tickets_conserved(&self) -> bool {
        let stats = self.stats();
        let gone = stats.matched_parties + stats.cancelled + stats.expired;
        stats.queued == gone + self.waiting_parties()
    }

    /// The number of waiting parties, those in proposed matches included. O(1).
    #[must_use]
    pub fn waiting_parties(&self) -> u64 {
        self.queue().len() as u64 + self.stats().proposed
    }

    /// The settings in ticks that both kinds share; in rooms the window applies to the leaders' strength.
    #[must_use]
    pub fn tick_settings(&self) -> &GroupModeTickSettings {
        match self {
            Self::Groups(groups) => groups.tick_settings(),
            Self::Rooms(rooms) => &rooms.tick_settings().mode,
        }
    }

    pub(super) fn stats_mut(&mut self) -> &mut ModeStats {
        match self {
            Self::Groups(groups) => &mut groups.stats,
            Self::Rooms(rooms) => &mut rooms.stats,
        }
    }

    pub(super) fn insert(&mut self, ticket: Ticket) -> u32 {
        match self {
            Self::Groups(groups) => groups.insert(ticket),
            Self::Rooms(rooms) => rooms.insert(ticket),
        }
    }

    pub(super) fn remove(&mut self, slot: u32) -> Option<Ticket> {
        match self {
            Self::Groups(groups) => groups.remove(slot),
            Self::Rooms(rooms) => rooms.remove(slot),
        }
    }

    /// Removes a player as a spectator of all rooms of the mode; returns whether it was one.
    pub(super) fn stop_spectating(&mut self, player: TicketPlayer) -> bool {
        match self {
            Self::Groups(_) => false,
            Self::Rooms(rooms) => rooms.stop_spectating(player),
        }
    }

    pub(super) fn record_match(&mut self, found: &Match, now_tick: u64) {
        match self {
            Self::Groups(groups) => groups.record_match(found, now_tick),
            Self::Rooms(rooms) => rooms.record_match(found, now_tick),
        }
    }

    pub(super) fn run_heartbeat(
        &mut self,
        now_tick: u64,
        next_match: &mut u64,
        matches: &mut Vec<Match>,
        expired: &mut Vec<Ticket>,
    ) {
        match self {
            Self::Groups(groups) => groups.run_heartbeat(now_tick, next_match, matches, expired),
            Self::Rooms(rooms) => rooms.run_heartbeat(now_tick, next_match, matches, expired),
        }
    }

    pub(super) fn wait_reason(&self, slot: u32, now_tick: u64) -> Option<WaitReason> {
        match self {
            Self::Groups(groups) => groups.wait_reason(slot, now_tick),
            Self::Rooms(rooms) => rooms.wait_reason(slot),
        }
    }

    /// Hashes everything that can influence later matches or counters. O(n).
    pub(super) fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        let stats = self.stats();
        let counters = [
            stats.queued,
            stats.refused,
            stats.cancelled,
            stats.expired,
            stats.matched_parties,
        ];
        counters.into_iter().for_each(&mut *feed);
        feed(self.queue().len() as u64);
        for (_, ticket) in self.queue().iter() {
            ticket.hash_state(feed);
        }
        match self {
            Self::Groups(groups) => groups.hash_state(feed),
            Self::Rooms(rooms) => rooms.hash_state(feed),
        }
    }
}
