//! One mode that makes battles between two groups of exactly K players: its queue and its heartbeat.
//!
//! ```text
//! queue ─▶ expire ─▶ pool ─▶ 1 overdue ─▶ 2 pack ─▶ pair ─▶ 3 left over ─▶ matches
//!                            oldest first,  inside windows,    oldest first,
//!                            no limits      O(n)               own window
//! ```
//! A match is *allowed* when its parties make two groups of K, their skill spread is within the window of the
//! longest-waiting of them, and the smallest gap found is within that party's gap limit.
//!
//! Invariants after a heartbeat in which neither matches, looks nor a gap limit stopped it:
//! - no allowed match is left among those that wait;
//! - parties waiting since longer than `open_after_s` are in no composition of all that wait.
//!
//! **The wait bound.** Once a party has waited `open_after_s`, it is served in step 1, before everybody who has
//! waited less and after the r parties that are overdue and have waited longer. If at its turn the parties then
//! waiting hold a composition with it, it is matched, whatever the skills and powers. Up to
//! `matches_per_heartbeat_max` parties are served a heartbeat, those that nothing fits cost none of that. So it
//! is matched at the latest at the ⌈(r + 1) / `matches_per_heartbeat_max`⌉-th heartbeat after `open_after_s`
//! at which there are enough players for it. Enough for a party of s players are, for instance, 2K − s single
//! players; for a party of K, any other group of K. No size is worse off: nothing younger can take the players
//! that an overdue party needs. (A mode whose `expire_after_s` is the shorter lets its parties go before.)
//!
//! Cost: O(n log n) a heartbeat for the pool, O(n) for packing, O(g log g) for g groups, O(`looks`) for those
//! left over, and K-bounded work a match; step 1 costs at most n looks a match.

use super::balance::{Weight, balance};
use super::compositions::{CompositionTable, Counts};
use super::leftovers::{Seeker, only};
use super::matcher::Match;
use super::mode::{ModeId, ModeRules, OPEN, Packing};
use super::packing::Packer;
use super::pairing::Pairer;
use super::pool::Pool;
use super::quality::Quality;
use super::queue::Queue;
use super::stats::ModeStats;
use super::ticket::Ticket;

/// Players that may pass in the order of skill before a bucket is closed, in groups of K. Fewer leave more
/// parties over; more widen the spread, since a bucket then waits long for the size that it lacks.
const REACH_GROUPS: u64 = 4;

/// A mode at work.
#[derive(Clone, Debug)]
pub struct Groups {
    id: ModeId,
    rules: ModeRules,
    /// Who waits. Who is allowed in is the matcher's business.
    pub(super) queue: Queue,
    /// What happened so far.
    pub(super) stats: ModeStats,
    table: CompositionTable,
    pool: Pool,
    packer: Packer,
    seeker: Seeker,
    pairer: Pairer,
    ids: Vec<u32>,
    weights: Vec<Weight>,
    prefix: Vec<Counts>,
}

/// Why a party has no match yet, as far as its own limits go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyWaiting {
    /// Fewer players wait than a match takes.
    TooFewPlayers {
        /// Players who wait, its own included.
        waiting: u64,
        /// Players in a match.
        needed: u64,
    },
    /// Enough players wait, but the sizes of their parties make no two full groups with this one.
    SizesDoNotFit,
    /// There are matches for it, but outside its skill window.
    OutsideWindow {
        /// Its window now: skill points.
        window: u32,
        /// Ticks until it has no limits any more.
        opens_in_ticks: u64,
    },
    /// The match within its window is too uneven.
    PowerGap {
        /// The gap in power.
        gap: u64,
        /// Its limit now.
        limit: u32,
        /// Ticks until it has no limits any more.
        opens_in_ticks: u64,
    },
    /// It has a match that is allowed: it came since the last heartbeat, or longer-waiting parties used up what
    /// a heartbeat may do.
    NextHeartbeat,
}

impl Groups {
    /// An empty mode. O(1).
    #[must_use]
    pub fn new(id: ModeId, rules: ModeRules) -> Self {
        Self {
            id,
            rules,
            queue: Queue::default(),
            stats: ModeStats::default(),
            table: CompositionTable::new(rules.group_size),
            pool: Pool::default(),
            packer: Packer::default(),
            seeker: Seeker::default(),
            pairer: Pairer::default(),
            ids: Vec::new(),
            weights: Vec::new(),
            prefix: Vec::new(),
        }
    }

    /// The mode's rules.
    #[must_use]
    pub const fn rules(&self) -> &ModeRules {
        &self.rules
    }

    /// The parties that wait, longest-waiting first.
    #[must_use]
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }

    /// What the mode has done so far.
    #[must_use]
    pub const fn stats(&self) -> &ModeStats {
        &self.stats
    }

    /// One heartbeat: appends the matches made and the tickets that expired. Match ids count on from
    /// `next_match`. Cost as the module says.
    pub fn run(
        &mut self,
        now_tick: u64,
        next_match: &mut u64,
        matches: &mut Vec<Match>,
        expired: &mut Vec<Ticket>,
    ) {
        self.expire(now_tick, expired);
        self.pool.fill(&self.queue, &self.rules, now_tick);
        let made_before = matches.len();
        let mut heartbeat = Heartbeat {
            now_tick,
            next_match,
            full_at: made_before + self.rules.matches_max,
            matches,
        };
        self.match_overdue(&mut heartbeat);
        self.match_packed(&mut heartbeat);
        self.match_leftovers(&mut heartbeat);
        self.stats.matches_exhausted += u64::from(heartbeat.is_full());
    }

    /// Takes out who has waited too long. O(expired).
    fn expire(&mut self, now_tick: u64, expired: &mut Vec<Ticket>) {
        let Some(expire_after_ticks) = self.rules.expire_after_ticks else {
            return;
        };
        while let Some(slot) = self.queue.first() {
            let waited = self
                .queue
                .ticket(slot)
                .map_or(0, |ticket| ticket.waited_ticks(now_tick));
            if waited < expire_after_ticks {
                break;
            }
            expired.extend(self.queue.remove(slot));
            self.stats.expired += 1;
        }
    }

    /// Step 1: parties past the wait bound, oldest first, with whomever fits.
    fn match_overdue(&mut self, heartbeat: &mut Heartbeat) {
        for anchor in 0..self.pool.overdue() as u32 {
            if heartbeat.is_full() || !self.anything_fits() {
                break;
            }
            if !self.pool.is_taken(anchor) && self.fits_with(anchor, self.pool.counts()) {
                self.seek_and_make(heartbeat, anchor, u64::MAX);
            }
        }
    }

    /// Step 2: full groups inside windows, longest-waiting pairs first.
    fn match_packed(&mut self, heartbeat: &mut Heartbeat) {
        if heartbeat.is_full() || !self.anything_fits() {
            return;
        }
        let k = self.rules.group_size;
        let reach = match self.rules.packing {
            Packing::Arrival => u64::MAX,
            Packing::Windows => REACH_GROUPS * u64::from(k),
        };
        let full = self.packer.pack(&self.pool, k, reach);
        self.pairer.pair(full, &self.pool, self.rules.packing);
        for at in 0..self.pairer.pairs().len() {
            if heartbeat.is_full() {
                break;
            }
            self.ids.clear();
            for group in self.pairer.pairs()[at].groups {
                self.ids
                    .extend(self.packer.members(&self.packer.full()[group as usize]));
            }
            self.make(heartbeat);
        }
    }

    /// Step 3: those left over, longest-waiting first, each with whomever its window holds.
    fn match_leftovers(&mut self, heartbeat: &mut Heartbeat) {
        if heartbeat.is_full() || !self.anything_fits() {
            return;
        }
        self.count_places();
        self.seeker.reset_looks();
        for anchor in 0..self.pool.end() {
            if heartbeat.is_full() || !self.anything_fits() {
                break;
            }
            if self.pool.is_taken(anchor) {
                continue;
            }
            if self.seeker.looks() >= self.rules.looks_max {
                self.stats.looks_exhausted += 1;
                break;
            }
            let me = *self.pool.candidate(anchor);
            let (low, high) = self.pool.places_within(me.skill, me.window);
            let (below, upto) = (self.prefix[low as usize], self.prefix[high as usize]);
            if self.fits_with(anchor, std::array::from_fn(|at| upto[at] - below[at])) {
                self.seek_and_make(heartbeat, anchor, self.rules.looks_max);
            }
        }
    }

    /// Counts the parties not taken before each place. Parties taken later stay counted: what does not fit by
    /// these counts does not fit then either.
    fn count_places(&mut self) {
        let mut counts = [0; 5];
        self.prefix.clear();
        self.prefix.push(counts);
        for place in 0..self.pool.end() {
            let id = self.pool.at(place);
            if !self.pool.is_taken(id) {
                counts[usize::from(self.pool.candidate(id).size) - 1] += 1;
            }
            self.prefix.push(counts);
        }
    }

    /// Whether all that wait hold any match.
    fn anything_fits(&mut self) -> bool {
        self.table.fits(&[0; 5], &self.pool.counts())
    }

    /// Whether a party has a match among parties of these counts, in which it is included.
    fn fits_with(&mut self, anchor: u32, mut counts: Counts) -> bool {
        let size = self.pool.candidate(anchor).size;
        counts[usize::from(size) - 1] -= 1;
        self.table.fits(&only(size), &counts)
    }

    fn seek_and_make(&mut self, heartbeat: &mut Heartbeat, anchor: u32, looks_max: u64) {
        let found = self
            .seeker
            .seek(&self.pool, &mut self.table, anchor, looks_max);
        self.ids.clear();
        self.ids.extend_from_slice(found);
        if !self.ids.is_empty() {
            self.make(heartbeat);
        }
    }

    /// Balances the parties in `ids` and makes their match, unless the gap is above the limit.
    fn make(&mut self, heartbeat: &mut Heartbeat) {
        let (pool, ids) = (&self.pool, &mut self.ids);
        ids.sort_unstable_by_key(|&id| (pool.candidate(id).size, id));
        self.weights.clear();
        self.weights.extend(
            ids.iter()
                .map(|&id| (pool.candidate(id).size, pool.candidate(id).power)),
        );
        let Some(oldest) = ids.iter().copied().min() else {
            return;
        };
        let Some(split) = balance(&mut self.table, &self.weights) else {
            debug_assert!(false, "parties of a match can be split");
            return;
        };
        let limit = pool.candidate(oldest).power_gap;
        if limit != OPEN && split.gap() > u64::from(limit) {
            self.stats.gap_refusals += 1;
            return;
        }
        // The first group is the one of the longest-waiting party, and each is listed by age.
        let place = |oldest_at: &u32| *oldest_at == oldest;
        let mirrored = ids
            .iter()
            .position(place)
            .is_some_and(|at| split.first >> at & 1 == 0);
        let mut sides: Vec<(u32, usize)> = ids
            .iter()
            .enumerate()
            .map(|(at, &id)| (id, usize::from((split.first >> at & 1 == 0) != mirrored)))
            .collect();
        sides.sort_unstable();
        let mut groups = [Vec::new(), Vec::new()];
        for (id, side) in sides {
            groups[side].extend(self.queue.remove(self.pool.candidate(id).slot));
            self.pool.take(id);
        }
        self.record(heartbeat, groups);
    }

    fn record(&mut self, heartbeat: &mut Heartbeat, groups: [Vec<Ticket>; 2]) {
        let quality = Quality::of(&groups, heartbeat.now_tick);
        let parties = groups.iter().map(Vec::len).sum::<usize>() as u64;
        self.stats
            .record_match(&quality, parties, 2 * u64::from(self.rules.group_size));
        for ticket in groups.iter().flatten() {
            self.stats
                .wait_ticks
                .record(ticket.waited_ticks(heartbeat.now_tick));
        }
        let power = std::array::from_fn(|side: usize| {
            groups[side].iter().map(|t| u64::from(t.power)).sum()
        });
        heartbeat.matches.push(Match {
            id: *heartbeat.next_match,
            mode: self.id,
            groups,
            power,
            quality,
        });
        *heartbeat.next_match += 1;
    }

    /// Why the party in `slot` has no match yet; `None` when nobody is there. A question by a person now and
    /// then: O(n log n), and the state stays as it is.
    #[must_use]
    pub fn why_waiting(&self, slot: u32, now_tick: u64) -> Option<WhyWaiting> {
        let ticket = self.queue.ticket(slot)?;
        let mut asked = Self::new(self.id, self.rules);
        asked.pool.fill(&self.queue, &self.rules, now_tick);
        let (waiting, needed) = (self.queue.players(), 2 * u64::from(self.rules.group_size));
        if waiting < needed {
            return Some(WhyWaiting::TooFewPlayers { waiting, needed });
        }
        let anchor = asked
            .pool
            .candidates()
            .iter()
            .position(|candidate| candidate.slot == slot)? as u32;
        if !asked.fits_with(anchor, asked.pool.counts()) {
            return Some(WhyWaiting::SizesDoNotFit);
        }
        let opens_in_ticks = self
            .rules
            .open_after_ticks
            .saturating_sub(ticket.waited_ticks(now_tick));
        let me = *asked.pool.candidate(anchor);
        let mut ids = asked
            .seeker
            .seek(&asked.pool, &mut asked.table, anchor, u64::MAX)
            .to_vec();
        if ids.is_empty() {
            return Some(WhyWaiting::OutsideWindow {
                window: me.window,
                opens_in_ticks,
            });
        }
        ids.sort_unstable_by_key(|&id| (asked.pool.candidate(id).size, id));
        let weights: Vec<Weight> = ids
            .iter()
            .map(|&id| asked.pool.candidate(id))
            .map(|party| (party.size, party.power))
            .collect();
        let gap = balance(&mut asked.table, &weights)?.gap();
        let limit = me.power_gap;
        let uneven = limit != OPEN && gap > u64::from(limit);
        Some(if uneven {
            WhyWaiting::PowerGap {
                gap,
                limit,
                opens_in_ticks,
            }
        } else {
            WhyWaiting::NextHeartbeat
        })
    }
}

/// What the steps of one heartbeat share.
struct Heartbeat<'a> {
    now_tick: u64,
    next_match: &'a mut u64,
    matches: &'a mut Vec<Match>,
    full_at: usize,
}

impl Heartbeat<'_> {
    /// Whether no further match may be made.
    const fn is_full(&self) -> bool {
        self.matches.len() >= self.full_at
    }
}
