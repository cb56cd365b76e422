//! One mode of rooms: 1v1, 2v2 or 3v3, in which the parties of both sides gather over time.
//!
//! ```text
//! new party ─▶ a room that lacks exactly its size ──▶ full ─▶ sides ─▶ match
//!           └▶ else a room of its own ─▶ heartbeat: rooms merge, 1 + 1 + 2 → 4 ──┘
//! ```
//! In a room only the strength of the leaders counts, weighted by rank: all of them are within the tolerance of
//! the party that has waited longest. With `equal_size`, a room is two parties of one size. Rooms merge into a full
//! one only if its sides can be made without recent opponents and within the limit on the gap. Up to [`SPECTATORS_MAX`]
//! players watch a room, each only one room; if rooms merge, spectators beyond that number are removed.
//!
//! Invariants: a party is in exactly one room after a heartbeat; every room can become full with other
//! parties; a full room waits only for the limit on matches.
//!
//! **The wait bound** is that of [`GroupMode`](crate::GroupMode): a party that has waited `priority_after_s` is matched
//! with any parties that fit, from any rooms (with `equal_size`: with the nearest of its size that its
//! regions and rematches allow), before rooms of younger parties are filled.
//!
//! Cost: O(log n) per request. A heartbeat searches for rooms for O(new parties + waiting parties, up to
//! `candidates_per_heartbeat_max`), each examining at most [`NEIGHBOURS_MAX`] rooms of each number of players; with
//! `equal_size`, a party past the wait bound examines all rooms of its size, within the limit of search steps.

use std::collections::{BTreeSet, HashMap};

use arrayvec::ArrayVec;
use foldhash::fast::FixedState;
use throng_core::memory::MemoryUse;

use super::settings::{RoomModeTickSettings, SIDE_SIZE_MAX};
use crate::matches::{Match, MatchWriter};
use crate::mode::UNLIMITED;
use crate::pack::balance::GroupSplit;
use crate::pack::partner_search::PartnerSearch;
use crate::pack::terms::{Limits, Terms};
use crate::pack::wait_reason::WaitReason;
use crate::quality::MatchQuality;
use crate::queue::compositions::{CompositionTable, Counts};
use crate::queue::pool::{Pool, SkillMeasure};
use crate::queue::search_backoff::SearchBackoff;
use crate::queue::skill_index::SkillEntry;
use crate::queue::ticket_queue::{TicketAge, TicketQueue};
use crate::rematch::Rematches;
use crate::stats::ModeStats;
use crate::ticket::{ModeId, Ticket, TicketError, TicketParty, TicketPlayer};

/// The maximum number of spectators of a room.
pub const SPECTATORS_MAX: usize = 4;

/// The number of rooms with a given number of players that are examined on each side of a strength.
pub const NEIGHBOURS_MAX: usize = 16;

/// Players in a full room.
const PLAYERS_MAX: usize = 2 * SIDE_SIZE_MAX as usize;

/// Parties that gather for a match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Room {
    /// The slots of its parties.
    parties: ArrayVec<u32, PLAYERS_MAX>,
    players: u8,
    /// The lowest and the highest strength of a leader.
    low: i32,
    high: i32,
    spectators: ArrayVec<TicketPlayer, SPECTATORS_MAX>,
}

/// A running mode of rooms.
#[derive(Clone, Debug, MemoryUse)]
pub struct RoomMode {
    id: ModeId,
    rules: RoomModeTickSettings,
    pool: Pool,
    /// The counters so far.
    pub(crate) stats: ModeStats,
    rooms: Vec<Room>,
    free: Vec<u32>,
    /// The room of each slot; [`NONE`] before the first heartbeat.
    room_of: Vec<u32>,
    /// Rooms that are not full, by their players, then by strength.
    open: [BTreeSet<(i32, u32)>; PLAYERS_MAX],
    /// Slots taken since the last heartbeat, with their age, since a slot can be freed meanwhile.
    new_slots: Vec<(TicketAge, u32)>,
    /// The room that each spectator watches; never iterated.
    spectated_rooms: HashMap<TicketPlayer, u32, FixedState>,
    rematches: Rematches,
    table: CompositionTable,
    partner_search: PartnerSearch,
    search_backoff: SearchBackoff,
    examined: u64,
}

/// No room.
const NONE: u32 = u32::MAX;

impl RoomMode {
    /// Creates a mode without tickets. O(1).
    #[must_use]
    pub fn new(id: ModeId, rules: RoomModeTickSettings) -> Self {
        let RoomModeTickSettings {
            rank_weight_percent,
            ..
        } = rules;
        Self {
            id,
            rules,
            pool: Pool::new(SkillMeasure::Leader {
                rank_weight_percent,
            }),
            stats: ModeStats::default(),
            rooms: Vec::new(),
            free: Vec::new(),
            room_of: Vec::new(),
            open: Default::default(),
            new_slots: Vec::new(),
            spectated_rooms: HashMap::default(),
            rematches: Rematches::default(),
            table: CompositionTable::new(rules.mode.group_size),
            partner_search: PartnerSearch::default(),
            search_backoff: SearchBackoff::default(),
            examined: 0,
        }
    }

    /// The mode's settings in ticks.
    #[must_use]
    pub const fn tick_settings(&self) -> &RoomModeTickSettings {
        &self.rules
    }

    /// The waiting parties, longest-waiting first.
    #[must_use]
    pub const fn queue(&self) -> &TicketQueue {
        self.pool.queue()
    }

    /// The counters so far.
    #[must_use]
    pub const fn stats(&self) -> &ModeStats {
        &self.stats
    }

    /// The parties that share a room with the one in `slot`, itself included; empty before its first heartbeat.
    pub fn room_of(&self, slot: u32) -> impl Iterator<Item = &Ticket> {
        let parties = self.room(slot).into_iter().flat_map(|room| &room.parties);
        parties.filter_map(|&slot| self.queue().ticket(slot))
    }

    /// Adds a ticket and returns its slot.
    pub(crate) fn insert(&mut self, ticket: Ticket) -> u32 {
        let slot = self.pool.insert(ticket);
        if self.room_of.len() <= slot as usize {
            self.room_of.resize(slot as usize + 1, NONE);
        }
        self.room_of[slot as usize] = NONE;
        self.new_slots.push((self.pool.age(slot), slot));
        slot
    }

    /// Removes the party in `slot`, also from its room.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Ticket> {
        self.leave_room(slot);
        self.pool.remove(slot)
    }

    /// Lets a player watch the room of the party in `slot`, and no other.
    pub(crate) fn spectate(
        &mut self,
        party: TicketParty,
        slot: u32,
        player: TicketPlayer,
    ) -> Result<(), TicketError> {
        let room = self.room_of.get(slot as usize).copied().unwrap_or(NONE);
        let seats = self
            .rooms
            .get_mut(room as usize)
            .map(|room| &mut room.spectators);
        match seats {
            Some(seats) if seats.contains(&player) => Ok(()),
            Some(seats) if !seats.is_full() => {
                seats.push(player);
                if let Some(before) = self.spectated_rooms.insert(player, room) {
                    self.free_seat(player, before);
                }
                Ok(())
            }
            _ => Err(TicketError::NoSpectatorSeat { party }),
        }
    }

    /// Removes a player as a spectator of all rooms; returns whether it was one.
    pub(crate) fn stop_spectating(&mut self, player: TicketPlayer) -> bool {
        let room = self.spectated_rooms.remove(&player);
        room.is_some_and(|room| {
            self.free_seat(player, room);
            true
        })
    }

    fn free_seat(&mut self, player: TicketPlayer, room: u32) {
        if let Some(room) = self.rooms.get_mut(room as usize) {
            room.spectators.retain(|seated| *seated != player);
        }
    }

    /// Counts a match that starts, and records the opponents if the mode limits rematches.
    pub(crate) fn record_match(&mut self, found: &Match, now_tick: u64) {
        self.stats.record_match(found, now_tick);
        if self.rules.mode.rematch_cooldown_ticks > 0 {
            self.rematches.record_match(found, now_tick);
        }
    }

    /// Runs one heartbeat: appends the new matches and the expired tickets. Match ids count from
    /// `next_match`. Cost as the module describes.
    pub(crate) fn run_heartbeat(
        &mut self,
        now_tick: u64,
        next_match: &mut u64,
        matches: &mut Vec<Match>,
        expired: &mut Vec<Ticket>,
    ) {
        while let Some(slot) = self.queue().first() {
            let ticket = self.queue().ticket(slot);
            let waited = ticket.map_or(0, |ticket| ticket.waited_ticks(now_tick));
            if self
                .rules
                .mode
                .expire_after_ticks
                .is_none_or(|after| waited < after)
            {
                break;
            }
            expired.extend(self.remove(slot));
            self.stats.expired += 1;
        }
        if let Some(tick) = now_tick.checked_sub(self.rules.mode.rematch_cooldown_ticks) {
            self.rematches.prune_before(tick.saturating_add(1));
        }
        let mut heartbeat = MatchWriter {
            now_tick,
            next_match,
            matches_max: matches.len().saturating_add(self.rules.mode.matches_max),
            matches,
        };
        self.examined = 0;
        self.partner_search.reset_examined();
        for (age, slot) in std::mem::take(&mut self.new_slots) {
            if self.pool.age(slot) == age && self.queue().ticket(slot).is_some() {
                self.open_room(slot);
            }
        }
        self.search_backoff.next_heartbeat(self.pool.queue());
        self.fill_rooms(&mut heartbeat, true);
        self.fill_rooms(&mut heartbeat, false);
        self.stats.candidates_exhausted +=
            u64::from(self.examined >= self.rules.mode.sight_tests_max);
        self.stats.matches_exhausted += u64::from(heartbeat.is_full());
        self.stats.left_over_players = self.queue().players();
    }

    /// Fills the rooms of all parties, or of priority parties only (`first`), oldest first, and makes matches of full
    /// rooms.
    fn fill_rooms(&mut self, heartbeat: &mut MatchWriter, first: bool) {
        let waited_ticks = if first {
            self.rules.mode.priority_after_ticks
        } else {
            0
        };
        let oldest: Vec<(TicketAge, u32)> = self
            .queue()
            .iter()
            .take_while(|(_, ticket)| ticket.waited_ticks(heartbeat.now_tick) >= waited_ticks)
            .map(|(slot, _)| (self.pool.age(slot), slot))
            .take(self.rules.mode.sight_tests_max as usize)
            .collect();
        for (age, slot) in oldest {
            if heartbeat.is_full() || self.examined >= self.rules.mode.sight_tests_max {
                break;
            }
            // The party was matched meanwhile.
            if self.pool.age(slot) != age {
                continue;
            }
            self.examined += 1;
            let mut full = self.room(slot).is_some_and(|room| self.is_full(room));
            if !full && first && !self.rules.equal_size {
                full = self.fill_room(slot, heartbeat.now_tick);
            } else if !full {
                full = self.merge(slot, heartbeat.now_tick, first);
            }
            if full {
                self.make_match(heartbeat, slot);
            }
        }
    }

    /// Gathers any parties that fit in a room with the one in `slot`; returns whether it is full then.
    fn fill_room(&mut self, slot: u32, now_tick: u64) -> bool {
        let age = self.pool.age(slot);
        if self.search_backoff.is_paused(age) {
            return false;
        }
        let mut terms = Terms::new(&self.pool, &self.rules.mode, &self.rematches, now_tick);
        let share = self
            .search_backoff
            .candidate_share(age, self.rules.mode.sight_tests_max);
        let limits = terms.limits(slot);
        let mut found = None;
        for _ in 0..1 + u8::from(self.pool.has_avoid_lists()) {
            let begun = self.partner_search.examined();
            found = self
                .partner_search
                .find_match(&terms, &mut self.table, slot, limits, share);
            let used = self.partner_search.examined() - begun;
            self.examined += used;
            if found.is_some() {
                break;
            }
            if used >= share {
                self.stats.searches_capped += 1;
                self.search_backoff.pause(age, slot);
            }
            terms = terms.without_avoid_lists();
        }
        if found.is_none() {
            return false;
        }
        let chosen = self.partner_search.chosen().iter();
        let found: Vec<u32> = chosen.map(|entry| entry.slot).collect();
        for &other in found.iter().filter(|&&other| other != slot) {
            self.leave_room(other);
        }
        if self.room(slot).is_some_and(|room| room.parties.len() > 1) {
            // The other parties of its room leave in favour of the chosen ones.
            self.leave_room(slot);
            self.open_room(slot);
        }
        let room = self.room_of[slot as usize];
        for other in found.into_iter().filter(|&other| other != slot) {
            self.open_room(other);
            self.merge_into(room, self.room_of[other as usize]);
        }
        true
    }

    /// Merges the room of the party in `slot` with others while they fit, first with those that fill it; returns whether
    /// it is full then.
    fn merge(&mut self, slot: u32, now_tick: u64, first: bool) -> bool {
        loop {
            let at = self.room_of.get(slot as usize).copied().unwrap_or(NONE);
            let Some(room) = self.rooms.get(at as usize) else {
                return false;
            };
            if self.is_full(room) {
                return true;
            }
            let missing = 2 * self.rules.mode.group_size - room.players;
            let sizes = if self.rules.equal_size {
                room.players..=room.players
            } else {
                1..=missing
            };
            let fitting = sizes
                .rev()
                .find_map(|players| self.nearest_room(at, players, now_tick, first));
            let Some(other) = fitting else { return false };
            self.merge_into(at, other);
        }
    }

    /// The room with this many players, nearest in strength, that can merge with a room; for a priority party (`first`), it
    /// examines as many as there are search steps.
    fn nearest_room(&mut self, at: u32, players: u8, now_tick: u64, first: bool) -> Option<u32> {
        let found = self.nearest_room_of(at, players, now_tick, first, NEIGHBOURS_MAX);
        let looks = self
            .rules
            .mode
            .sight_tests_max
            .saturating_sub(self.examined) as usize
            / 2;
        if found.is_some() || !first || looks <= NEIGHBOURS_MAX {
            return found;
        }
        self.nearest_room_of(at, players, now_tick, first, looks)
    }

    /// The nearest out of at most `most` on each side.
    fn nearest_room_of(
        &mut self,
        at: u32,
        players: u8,
        now_tick: u64,
        first: bool,
        most: usize,
    ) -> Option<u32> {
        let low = self.rooms[at as usize].low;
        let rooms = self.open.get(usize::from(players))?;
        let above = rooms.range((low, 0)..).take(most);
        let below = rooms.range(..(low, 0)).rev().take(most);
        let mut nearby: Vec<(u32, u32)> = above
            .chain(below)
            .filter(|&&(_, other)| other != at)
            .map(|&(strength, other)| (strength.abs_diff(low), other))
            .collect();
        nearby.sort_unstable_by_key(|&(distance, other)| (distance, self.oldest_age(other)));
        self.examined += nearby.len() as u64;
        let found = nearby
            .into_iter()
            .find(|&(_, other)| self.can_merge(at, other, now_tick, first));
        found.map(|(_, other)| other)
    }

    /// Whether two rooms can merge.
    fn can_merge(&mut self, one: u32, other: u32, now_tick: u64, first: bool) -> bool {
        let (one, other) = (&self.rooms[one as usize], &self.rooms[other as usize]);
        let mut terms = Terms::new(&self.pool, &self.rules.mode, &self.rematches, now_tick);
        if first {
            terms = terms.without_avoid_lists();
        }
        let slots = || one.parties.iter().chain(&other.parties).copied();
        // The oldest party has the widest limits.
        let widest = |of: fn(&Limits) -> u32| {
            let limits = slots().map(|slot| of(&terms.limits(slot)));
            limits.max().unwrap_or(0)
        };
        let tolerance = widest(|limits| limits.window);
        let level_band = widest(|limits| limits.level_band);
        let gap_max = widest(|limits| limits.power_gap);
        let spread = one.high.max(other.high).abs_diff(one.low.min(other.low));
        let entries: ArrayVec<SkillEntry, { 2 * PLAYERS_MAX }> =
            slots().filter_map(|slot| self.pool.entry(slot)).collect();
        let mut counts: Counts = [0; 5];
        entries
            .iter()
            .for_each(|entry| counts[usize::from(entry.size) - 1] += 1);
        let sizes_fit = self.rules.equal_size || self.table.fits(&counts, &[PLAYERS_MAX as u32; 5]);
        let full =
            self.rules.equal_size || one.players + other.players == 2 * self.rules.mode.group_size;
        sizes_fit
            && spread <= tolerance
            && terms.all_compatible(&entries, level_band)
            && (!full || {
                let split = self.split_sides(&mut entries.to_vec(), now_tick);
                let even =
                    |split: GroupSplit| gap_max == UNLIMITED || split.gap() <= u64::from(gap_max);
                split.is_some_and(even)
            })
    }

    /// The most even sides, in the leaders' strength, of the parties of a full room, which it sorts by size.
    fn split_sides(&mut self, parties: &mut [SkillEntry], now_tick: u64) -> Option<GroupSplit> {
        parties.sort_unstable_by_key(|entry| (entry.size, self.pool.age(entry.slot)));
        let terms = Terms::new(&self.pool, &self.rules.mode, &self.rematches, now_tick);
        if self.rules.equal_size {
            return terms.duel(parties);
        }
        let strength = |entry: &SkillEntry| entry.skill().unsigned_abs();
        terms.split_by(&mut self.table, parties, strength, &mut self.examined)
    }

    fn is_full(&self, room: &Room) -> bool {
        if self.rules.equal_size {
            room.parties.len() == 2
        } else {
            room.players == 2 * self.rules.mode.group_size
        }
    }

    fn room(&self, slot: u32) -> Option<&Room> {
        self.rooms.get(*self.room_of.get(slot as usize)? as usize)
    }

    /// The age of the longest-waiting party of a room.
    fn oldest_age(&self, room: u32) -> Option<TicketAge> {
        let parties = self.rooms[room as usize].parties.iter();
        parties.map(|&slot| self.pool.age(slot)).min()
    }

    /// Opens a room for a party that is in none.
    fn open_room(&mut self, slot: u32) {
        let Some(entry) = self.pool.entry(slot) else {
            return;
        };
        let room = Room {
            parties: [slot].into_iter().collect(),
            players: entry.size,
            low: entry.skill(),
            high: entry.skill(),
            spectators: ArrayVec::new(),
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.rooms[at as usize] = room;
                at
            }
            None => {
                self.rooms.push(room);
                self.rooms.len() as u32 - 1
            }
        };
        self.room_of[slot as usize] = at;
        self.add_to_open(at);
    }

    /// Removes a party from its room, if it is in one.
    fn leave_room(&mut self, slot: u32) {
        let at = std::mem::replace(&mut self.room_of[slot as usize], NONE);
        if at == NONE {
            return;
        }
        self.remove_from_open(at);
        let room = &mut self.rooms[at as usize];
        room.parties.retain(|party| *party != slot);
        let left = room
            .parties
            .iter()
            .filter_map(|&slot| self.pool.entry(slot));
        let left: ArrayVec<SkillEntry, PLAYERS_MAX> = left.collect();
        room.players = left.iter().map(|entry| entry.size).sum();
        room.low = left.iter().map(SkillEntry::skill).min().unwrap_or(0);
        room.high = left.iter().map(SkillEntry::skill).max().unwrap_or(0);
        if left.is_empty() {
            for player in std::mem::take(&mut room.spectators) {
                self.spectated_rooms.remove(&player);
            }
            self.free.push(at);
        } else {
            self.add_to_open(at);
        }
    }

    /// Moves all parties of a room into another.
    fn merge_into(&mut self, into: u32, from: u32) {
        self.remove_from_open(into);
        self.remove_from_open(from);
        let gone = std::mem::take(&mut self.rooms[from as usize]);
        self.free.push(from);
        let room = &mut self.rooms[into as usize];
        room.players += gone.players;
        (room.low, room.high) = (room.low.min(gone.low), room.high.max(gone.high));
        for slot in gone.parties {
            self.room_of[slot as usize] = into;
            room.parties.push(slot);
        }
        for player in gone.spectators {
            if room.spectators.try_push(player).is_ok() {
                self.spectated_rooms.insert(player, into);
            } else {
                self.spectated_rooms.remove(&player);
                self.stats.spectators_dropped += 1;
            }
        }
        self.add_to_open(into);
    }

    fn add_to_open(&mut self, at: u32) {
        let room = &self.rooms[at as usize];
        if !self.is_full(room) {
            self.open[usize::from(room.players)].insert((room.low, at));
        }
    }

    fn remove_from_open(&mut self, at: u32) {
        let room = &self.rooms[at as usize];
        if let Some(rooms) = self.open.get_mut(usize::from(room.players)) {
            rooms.remove(&(room.low, at));
        }
    }

    /// Makes the match of a full room, its sides as even in the leaders' strength as possible.
    fn make_match(&mut self, heartbeat: &mut MatchWriter, slot: u32) {
        let Some(room) = self.room(slot).cloned() else {
            return;
        };
        let mut parties: Vec<SkillEntry> = room
            .parties
            .iter()
            .filter_map(|&slot| self.pool.entry(slot))
            .collect();
        // A full room whose parties met elsewhere meanwhile has no allowed split, and waits until that match expires.
        let Some(GroupSplit { first, .. }) = self.split_sides(&mut parties, heartbeat.now_tick)
        else {
            return;
        };
        let mut sides: Vec<(TicketAge, u32, bool)> = (0..parties.len())
            .map(|at| {
                (
                    self.pool.age(parties[at].slot),
                    parties[at].slot,
                    first >> at & 1 == 1,
                )
            })
            .collect();
        sides.sort_unstable();
        let first_side = sides.first().is_some_and(|oldest| oldest.2);
        let mut groups = [Vec::new(), Vec::new()];
        for (_, slot, side) in sides {
            groups[usize::from(side != first_side)].extend(self.remove(slot));
        }
        let quality = MatchQuality {
            spread: room.high.abs_diff(room.low),
            ..MatchQuality::of(&groups, heartbeat.now_tick)
        };
        heartbeat.add_match(self.id, groups, quality, room.spectators.to_vec());
    }

    /// Why the party in `slot` has no match yet; `None` when the slot is empty. O(1).
    #[must_use]
    pub fn wait_reason(&self, slot: u32) -> Option<WaitReason> {
        let size = self.queue().ticket(slot)?.size;
        let players = self.room(slot).map_or(size, |room| room.players);
        let needed = if self.rules.equal_size {
            2 * size
        } else {
            2 * self.rules.mode.group_size
        };
        Some(WaitReason::InRoom {
            players,
            missing: needed.saturating_sub(players),
        })
    }

    /// Hashes the parties of each room. O(rooms).
    pub(crate) fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        self.rematches.hash_state(feed);
        self.search_backoff.hash_state(feed);
        for room in self.rooms.iter().filter(|room| !room.parties.is_empty()) {
            room.parties.iter().for_each(|&slot| feed(u64::from(slot)));
            room.spectators
                .iter()
                .for_each(|player| player.hash_state(feed));
        }
    }
}
