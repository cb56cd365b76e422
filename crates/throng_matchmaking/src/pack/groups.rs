//! One mode that makes matches between two groups of exactly K players: its queue and its heartbeat.
//!
//! ```text
//! queue ─▶ expire ─▶ 1 priority ────▶ 2 pack ────────────────────▶ 3 left over ─▶ matches
//!                    oldest first,    up to 14 parties: exactly    oldest first,
//!                    no limits        up to thousands: by skill    own window
//!                                     more: none
//! ```
//! A match is *allowed* when its parties make two groups of K, their skills and levels are within the window
//! and the band of the longest-waiting party, no player is avoided, all share a region, and there is a split that
//! fills the roles, repeats no recent match, and has a gap within that party's limit.
//!
//! Invariants after a heartbeat that no limit stopped (matches, search steps, the bounds in `partner_search.rs`), and in
//! which no party is paused:
//! - no allowed match is left among the waiting parties;
//! - no priority party is in a composition of all waiting parties, regions, roles and rematches aside;
//! - if every window held the whole pool, there were no priority parties, no preferences and no limit on
//!   gaps, then as many players were matched as sizes allow.
//!
//! The wait bound is documented at [`GroupMode`].
//!
//! Cost: O(log n) per request. A heartbeat of n waiting parties: O(n) while they are few enough to be packed, at
//! most [`PACKED_MIN`] or [`PACKED_PER_MATCH`] per match; O(matches) with more, since the oldest then fill it.

use throng_core::memory::MemoryUse;

use super::arrival::ArrivalPacker;
use super::backfill::{self, Backfill};
use super::balance::GroupSplit;
use super::exact;
use super::packer::Packer;
use super::partner_search::PartnerSearch;
use super::terms::Terms;
use super::wait_reason::WaitReason;
use crate::matches::{Match, MatchWriter};
use crate::mode::{GroupModeTickSettings, Packing, UNLIMITED};
use crate::quality::MatchQuality;
use crate::queue::compositions::{CompositionTable, Counts, single_party};
use crate::queue::pool::{Pool, SkillMeasure};
use crate::queue::search_backoff::SearchBackoff;
use crate::queue::skill_index::SkillEntry;
use crate::queue::ticket_queue::{TicketAge, TicketQueue};
use crate::rematch::Rematches;
use crate::stats::ModeStats;
use crate::ticket::{ModeId, Ticket};

/// The number of parties that are packed, whatever the limit on matches.
pub const PACKED_MIN: usize = 20_000;

/// Parties that are packed for each match that a heartbeat may make.
pub const PACKED_PER_MATCH: usize = 64;

/// A running mode of groups: its queue and its heartbeat.
///
/// **The wait bound.** A party that has waited `priority_after_s` is a *priority party*. Priority parties are served in step
/// 1, oldest first, before all parties that have waited less, whatever the skills, levels, powers and avoid
/// lists. At each heartbeat at which the waiting parties hold a composition with it, either it is matched, or a
/// party that has waited longer is: only matches of such parties can take the players that it needs. So it is
/// matched at the latest at the (r + 1)-th such heartbeat. Here r is the number of parties that wait longer when it becomes a
/// priority party, plus those that return from a declined match with more waiting time. `matches_per_heartbeat_max`
/// (at least 1) cannot delay it further, since each such heartbeat matches one of these parties. For a
/// party of s players it is enough, for instance, that 2K − s single players wait; for a party of K, any other group of K. No
/// size is at a disadvantage.
///
/// Not waived: regions, roles, rematches, and `expire_after_s` if it is shorter. Search steps are limited too: a party
/// whose search uses up its share pauses and gets a larger share at the next try, up to half of
/// `candidates_per_heartbeat_max`. A party that needs more than that is not covered.
#[derive(Clone, Debug, MemoryUse)]
pub struct GroupMode {
    id: ModeId,
    rules: GroupModeTickSettings,
    pool: Pool,
    /// The counters so far.
    pub(crate) stats: ModeStats,
    rematches: Rematches,
    table: CompositionTable,
    packer: Packer,
    arrival: ArrivalPacker,
    partner_search: PartnerSearch,
    search_backoff: SearchBackoff,
    chosen: Vec<SkillEntry>,
}

impl GroupMode {
    /// Creates a mode without tickets. O(1).
    #[must_use]
    pub fn new(id: ModeId, rules: GroupModeTickSettings) -> Self {
        Self {
            id,
            rules,
            pool: Pool::new(match rules.packing {
                Packing::Windows => SkillMeasure::Skill,
                Packing::Arrival => SkillMeasure::None,
            }),
            stats: ModeStats::default(),
            rematches: Rematches::default(),
            table: CompositionTable::new(rules.group_size),
            packer: Packer::default(),
            arrival: ArrivalPacker::default(),
            partner_search: PartnerSearch::default(),
            search_backoff: SearchBackoff::default(),
            chosen: Vec::new(),
        }
    }

    /// The mode's settings in ticks.
    #[must_use]
    pub const fn tick_settings(&self) -> &GroupModeTickSettings {
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

    /// The recent opponents.
    #[must_use]
    pub const fn rematches(&self) -> &Rematches {
        &self.rematches
    }

    /// Search steps of the last step of the latest heartbeat.
    #[cfg(test)]
    pub(crate) const fn examined(&self) -> u64 {
        self.partner_search.examined()
    }

    /// Adds a ticket and returns its slot.
    pub(crate) fn insert(&mut self, ticket: Ticket) -> u32 {
        self.pool.insert(ticket)
    }

    /// Removes the party in `slot`.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Ticket> {
        self.pool.remove(slot)
    }

    /// Counts a match that starts, and records the opponents if the mode limits rematches.
    pub(crate) fn record_match(&mut self, found: &Match, now_tick: u64) {
        self.stats.record_match(found, now_tick);
        if self.rules.rematch_cooldown_ticks > 0 {
            self.rematches.record_match(found, now_tick);
        }
    }

    /// Removes the parties that join a running match.
    pub(crate) fn backfill(&mut self, wanted: &Backfill, now_tick: u64) -> Vec<Ticket> {
        let terms = Terms::new(&self.pool, &self.rules, &self.rematches, now_tick);
        let joined = backfill::find_parties(&terms, &mut self.table, wanted).unwrap_or_default();
        let taken = joined
            .iter()
            .filter_map(|entry| self.pool.remove(entry.slot));
        let taken: Vec<Ticket> = taken.collect();
        for ticket in &taken {
            self.stats.record_party(ticket, now_tick);
            self.stats.backfilled += 1;
        }
        taken
    }

    /// Runs one heartbeat: appends the new matches and the expired tickets. Match ids count from
    /// `next_match`. Cost as the module describes.
    pub fn run_heartbeat(
        &mut self,
        now_tick: u64,
        next_match: &mut u64,
        matches: &mut Vec<Match>,
        expired: &mut Vec<Ticket>,
    ) {
        self.expire(now_tick, expired);
        if let Some(tick) = now_tick.checked_sub(self.rules.rematch_cooldown_ticks) {
            self.rematches.prune_before(tick.saturating_add(1));
        }
        let mut heartbeat = MatchWriter {
            now_tick,
            next_match,
            matches_max: matches.len().saturating_add(self.rules.matches_max),
            matches,
        };
        let uneven = self.partner_search.gap_refusals();
        self.search_backoff.next_heartbeat(self.pool.queue());
        self.match_oldest(&mut heartbeat, true);
        self.match_packed(&mut heartbeat);
        self.match_oldest(&mut heartbeat, false);
        self.stats.gap_refusals += self.partner_search.gap_refusals() - uneven;
        self.stats.matches_exhausted += u64::from(heartbeat.is_full());
        self.stats.left_over_players = self.queue().players();
    }

    /// Removes parties that waited too long. O(expired).
    fn expire(&mut self, now_tick: u64, expired: &mut Vec<Ticket>) {
        let Some(expire_after_ticks) = self.rules.expire_after_ticks else {
            return;
        };
        while let Some(slot) = self.queue().first() {
            let ticket = self.queue().ticket(slot);
            if ticket.is_none_or(|ticket| ticket.waited_ticks(now_tick) < expire_after_ticks) {
                break;
            }
            expired.extend(self.pool.remove(slot));
            self.stats.expired += 1;
        }
    }

    /// Steps 1 and 3: matches parties oldest first, in step 1 (`first`) only priority parties, each with partners within its
    /// limits.
    fn match_oldest(&mut self, heartbeat: &mut MatchWriter, first: bool) {
        self.partner_search.reset_examined();
        let sight_tests_max = self.rules.sight_tests_max;
        let waits_ticks = if first {
            self.rules.priority_after_ticks
        } else {
            0
        };
        let mut again_looks = 0;
        let (mut walk, mut sizes) = (self.queue().cursor(), self.fitting_sizes());
        while let Some(anchor) = walk.next(self.pool.queue(), sizes) {
            let terms = Terms::new(&self.pool, &self.rules, &self.rematches, heartbeat.now_tick);
            if heartbeat.is_full() || terms.waited_ticks(anchor) < waits_ticks {
                break;
            }
            let age = self.pool.age(anchor);
            if self.partner_search.examined() >= sight_tests_max {
                self.stats.candidates_exhausted += 1;
                self.search_backoff.mark_exhausted(first, Some(age));
                return;
            }
            let share = self.search_backoff.candidate_share(age, sight_tests_max);
            let again = self.search_backoff.was_tried(first, age);
            if self.search_backoff.is_paused(age)
                || again && again_looks + share > sight_tests_max / 2
            {
                self.partner_search.count_candidate();
                continue;
            }
            let limits = terms.limits(anchor);
            let begun = self.partner_search.examined();
            let table = &mut self.table;
            let mut found = self
                .partner_search
                .find_match(&terms, table, anchor, limits, share);
            let mut used_up = self.partner_search.examined() - begun >= share;
            if found.is_none() && first && self.pool.has_avoid_lists() {
                let terms = terms.without_avoid_lists();
                let before = self.partner_search.examined();
                found = self
                    .partner_search
                    .find_match(&terms, table, anchor, limits, share);
                used_up |= self.partner_search.examined() - before >= share;
            }
            again_looks += if again {
                self.partner_search.examined() - begun
            } else {
                0
            };
            let Some(split) = found else {
                if used_up {
                    self.stats.searches_capped += 1;
                    self.search_backoff.pause(age, anchor);
                }
                continue;
            };
            self.chosen.clear();
            self.chosen.extend_from_slice(self.partner_search.chosen());
            walk.skip_leaving(self.pool.queue(), |slot| {
                self.chosen.iter().any(|entry| entry.slot == slot)
            });
            self.make_match(heartbeat, &split);
            sizes = self.fitting_sizes();
        }
        if !heartbeat.is_full() {
            self.search_backoff.mark_exhausted(first, None);
        }
    }

    /// Step 2: packs all waiting parties at once, if they are not too many; matches of the longest-waiting first.
    fn match_packed(&mut self, heartbeat: &mut MatchWriter) {
        let most = PACKED_PER_MATCH.saturating_mul(self.rules.matches_max);
        let nothing = !self.table.fits(&[0; 5], &self.pool.skill_index().counts());
        if heartbeat.is_full() || nothing || self.queue().len() > most.max(PACKED_MIN) {
            return;
        }
        let terms = Terms::new(&self.pool, &self.rules, &self.rematches, heartbeat.now_tick);
        let mut sets: Vec<(TicketAge, Vec<SkillEntry>)> = Vec::new();
        let mut keep = |mut parties: Vec<SkillEntry>| {
            parties.sort_unstable_by_key(|entry| (entry.size, self.pool.age(entry.slot)));
            let oldest = parties.iter().map(|entry| self.pool.age(entry.slot)).min();
            sets.extend(oldest.map(|oldest| (oldest, parties)));
        };
        if self.rules.packing == Packing::Arrival {
            let queue = self.pool.queue();
            let parties = queue.iter().map(|(_, ticket)| (ticket.size, ticket.power));
            let slots: Vec<u32> = queue.iter().map(|(slot, _)| slot).collect();
            let entry = |id: u32| self.pool.entry(*slots.get(id as usize)?);
            let pairs = self.arrival.pack(parties, self.rules.group_size);
            (0..pairs)
                .for_each(|pair| keep(self.arrival.pair_parties(pair).filter_map(entry).collect()));
        } else if self.queue().len() <= exact::PARTIES_MAX {
            let parties: Vec<SkillEntry> = self.pool.skill_index().iter().collect();
            let best = exact::best_matches(&terms, &mut self.table, &parties);
            best.into_iter().for_each(keep);
        } else {
            let sets = self.packer.pack(&terms, &mut self.table);
            (0..sets).for_each(|set| keep(self.packer.parties(set).collect()));
        }
        sets.sort_unstable_by_key(|set| set.0);
        for (_, parties) in sets {
            if heartbeat.is_full() {
                break;
            }
            let terms = Terms::new(&self.pool, &self.rules, &self.rematches, heartbeat.now_tick);
            let bands = parties
                .iter()
                .map(|entry| terms.limits(entry.slot).level_band);
            if !terms.all_compatible(&parties, bands.max().unwrap_or(0)) {
                continue;
            }
            if let Some(split) = terms.split(&mut self.table, &parties, &mut 0) {
                self.chosen = parties;
                self.make_match(heartbeat, &split);
            }
        }
    }

    /// The party sizes that have a match among the sizes of all waiting parties.
    fn fitting_sizes(&mut self) -> [bool; 5] {
        let all = self.pool.skill_index().counts();
        std::array::from_fn(|at| {
            let me = single_party(at as u8 + 1);
            let others: Counts = std::array::from_fn(|size| all[size].saturating_sub(me[size]));
            all[at] > 0 && self.table.fits(&me, &others)
        })
    }

    /// Makes the match of the chosen parties, unless its gap is above the limit; returns whether it did.
    fn make_match(&mut self, heartbeat: &mut MatchWriter, split: &GroupSplit) -> bool {
        let ages = self.chosen.iter().map(|entry| self.pool.age(entry.slot));
        let Some((_, oldest_at)) = ages.zip(0..).min() else {
            return false;
        };
        let oldest = self.chosen[oldest_at];
        let limit = Terms::new(&self.pool, &self.rules, &self.rematches, heartbeat.now_tick)
            .limits(oldest.slot)
            .power_gap;
        if limit != UNLIMITED && split.gap() > u64::from(limit) {
            self.stats.gap_refusals += 1;
            return false;
        }
        // The first group is the one with the longest-waiting party, and each is sorted by age.
        let mirrored = split.first >> oldest_at & 1 == 0;
        let side = |at: usize| usize::from((split.first >> at & 1 == 0) != mirrored);
        let mut sides: Vec<(TicketAge, u32, usize)> = self
            .chosen
            .iter()
            .enumerate()
            .map(|(at, entry)| (self.pool.age(entry.slot), entry.slot, side(at)))
            .collect();
        sides.sort_unstable();
        let mut groups = [Vec::new(), Vec::new()];
        for (_, slot, side) in sides {
            groups[side].extend(self.pool.remove(slot));
        }
        let quality = MatchQuality::of(&groups, heartbeat.now_tick);
        heartbeat.add_match(self.id, groups, quality, Vec::new());
        true
    }

    /// Hashes the state apart from the tickets. O(entries).
    pub(crate) fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        self.rematches.hash_state(feed);
        self.search_backoff.hash_state(feed);
    }

    /// Why the party in `slot` has no match yet; `None` when the slot is empty. For occasional manual queries: O(n), and the
    /// state is not changed.
    #[must_use]
    pub fn wait_reason(&self, slot: u32, now_tick: u64) -> Option<WaitReason> {
        WaitReason::of(
            &Terms::new(&self.pool, &self.rules, &self.rematches, now_tick),
            slot,
        )
    }
}
