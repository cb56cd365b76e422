//! One mode that makes battles between two groups of exactly K players: its queue and its heartbeat.
//!
//! ```text
//! queue ─▶ expire ─▶ 1 first in line ─▶ 2 pack ────────────────────────▶ 3 left over ─▶ matches
//!                    oldest first,      up to 14 parties: exactly        oldest first,
//!                    no limits          up to thousands: by skill        own window
//!                                       more: nobody
//! ```
//! A match is *allowed* when its parties make two groups of K, their skills and levels are within the window
//! and the band of the longest-waiting of them, nobody is avoided, all share a region, and there is a split that
//! fills the roles, repeats no match of late, and has a gap within that party's limit.
//!
//! Invariants after a heartbeat in which neither matches, looks nor the bounds in `seek.rs` stopped
//! anything, and in which nobody pauses:
//! - no allowed match is left among those that wait;
//! - parties that are first in line are in no composition of all that wait, regions, roles and rematches aside;
//! - if every window held the whole pool, nobody was first in line, nobody had wishes and there was no limit on
//!   gaps, as many players were matched as sizes allow.
//!
//! The wait bound is described where users find it: at [`GroupMode`].
//!
//! Cost: O(log n) a request. A heartbeat of n waiting parties: O(n) while they are few enough to be packed, at
//! most [`PACKED_MIN`] or [`PACKED_PER_MATCH`] a match; O(matches) with more, since the oldest then fill it.

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

/// Parties that are packed, whatever the limit on matches.
pub const PACKED_MIN: usize = 20_000;

/// Parties that are packed for each match that a heartbeat may make.
pub const PACKED_PER_MATCH: usize = 64;

/// A mode of groups at work: its queue and its heartbeat.
///
/// **The wait bound.** A party that has waited `priority_after_s` is *first in line*: such parties are served in step
/// 1, oldest first, before everybody who has waited less, whatever the skills, levels and powers and whoever would
/// avoid whom. At each heartbeat at which the parties then waiting hold a composition with it, it is matched, or a
/// party that has waited longer is: only matches of such parties can take the players that it needs. So it is
/// matched at the latest at the (r + 1)-th such heartbeat, r being how many wait longer than it does when it gets
/// first in line, and those who come back from a declined match with more waiting time; `matches_per_heartbeat_max`
/// (at least 1) cannot make it later, since at each such heartbeat somebody of these is matched. Enough for a
/// party of s players are, for instance, 2K − s single players; for a party of K, any other group of K. No size is
/// worse off.
///
/// What is not waived: regions, roles, rematches and `expire_after_s`, if it is shorter. And the looks: a party
/// whose search uses up its share pauses and has a larger one when it is tried again, up to half of
/// `candidates_per_heartbeat_max`. A party that needs more looks than that is not covered.
#[derive(Clone, Debug, MemoryUse)]
pub struct GroupMode {
    id: ModeId,
    rules: GroupModeTickSettings,
    pool: Pool,
    /// What happened so far.
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
    /// An empty mode. O(1).
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

    /// The mode's rules.
    #[must_use]
    pub const fn tick_settings(&self) -> &GroupModeTickSettings {
        &self.rules
    }

    /// The parties that wait, longest-waiting first.
    #[must_use]
    pub const fn queue(&self) -> &TicketQueue {
        self.pool.queue()
    }

    /// What the mode has done so far.
    #[must_use]
    pub const fn stats(&self) -> &ModeStats {
        &self.stats
    }

    /// Who fought against whom of late.
    #[must_use]
    pub const fn rematches(&self) -> &Rematches {
        &self.rematches
    }

    /// Looks of the latest heartbeat's last step.
    #[cfg(test)]
    pub(crate) const fn examined(&self) -> u64 {
        self.partner_search.examined()
    }

    /// Lets a party wait and returns its slot.
    pub(crate) fn insert(&mut self, ticket: Ticket) -> u32 {
        self.pool.insert(ticket)
    }

    /// Takes the party in `slot` out.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Ticket> {
        self.pool.remove(slot)
    }

    /// Counts a match that is on, and remembers who fights whom if the mode minds rematches.
    pub(crate) fn record_match(&mut self, found: &Match, now_tick: u64) {
        self.stats.record_match(found, now_tick);
        if self.rules.rematch_cooldown_ticks > 0 {
            self.rematches.record_match(found, now_tick);
        }
    }

    /// Takes out the parties that join a running match.
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

    /// One heartbeat: appends the matches made and the tickets that expired. Match ids count on from
    /// `next_match`. Cost as the module says.
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

    /// Takes out who has waited too long. O(expired).
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

    /// Steps 1 and 3: parties, in step 1 only those that are `first` in line, oldest first, each with whomever its
    /// limits allow.
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

    /// Step 2: all that wait at once, if they are not too many; the matches of the longest-waiting first.
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

    /// The sizes of parties that have a match among the sizes of all that wait.
    fn fitting_sizes(&mut self) -> [bool; 5] {
        let all = self.pool.skill_index().counts();
        std::array::from_fn(|at| {
            let me = single_party(at as u8 + 1);
            let others: Counts = std::array::from_fn(|size| all[size].saturating_sub(me[size]));
            all[at] > 0 && self.table.fits(&me, &others)
        })
    }

    /// Makes the match of the chosen parties, unless its gap is above the limit; whether it did.
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
        // The first group is the one of the longest-waiting party, and each is listed by age.
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

    /// Feeds what is remembered beside the tickets to a hash. O(entries).
    pub(crate) fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        self.rematches.hash_state(feed);
        self.search_backoff.hash_state(feed);
    }

    /// Why the party in `slot` has no match yet; `None` when nobody is there. A question by a person now and
    /// then: O(n), and the state stays as it is.
    #[must_use]
    pub fn wait_reason(&self, slot: u32, now_tick: u64) -> Option<WaitReason> {
        WaitReason::of(
            &Terms::new(&self.pool, &self.rules, &self.rematches, now_tick),
            slot,
        )
    }
}
