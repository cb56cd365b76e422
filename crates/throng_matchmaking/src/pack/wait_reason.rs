//! Why a party is not matched yet.

use super::partner_search::PartnerSearch;
use super::terms::{Limits, Terms};
use crate::mode::UNLIMITED;
use crate::queue::compositions::{CompositionTable, Counts, single_party};
use crate::ticket::regions;

/// Search steps that a query may use, twice; when they are used up, the result is that no match is known.
const CANDIDATES_MAX: u64 = 50_000;

/// Why a party has no match yet, according to its own limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Fewer players wait than a match needs.
    TooFewPlayers {
        /// The number of waiting players, its own included.
        waiting: u64,
        /// Players in a match.
        needed: u64,
    },
    /// Enough players wait, but the sizes of their parties make no two full groups with this one.
    SizesDoNotFit,
    /// The parties that share a region with it are too few, or their sizes do not fit.
    OutsideRegions,
    /// There are matches for it, but outside its level band.
    OutsideLevels {
        /// Its current band.
        band: u32,
        /// Ticks until its limits are off.
        opens_in_ticks: u64,
    },
    /// There are matches for it, but outside its skill window.
    OutsideWindow {
        /// Its current window: skill points.
        window: u32,
        /// Ticks until its limits are off.
        opens_in_ticks: u64,
    },
    /// The parties within its limits avoid each other, met recently, or lack a role, as far as a bounded search
    /// finds.
    PreferencesConflict {
        /// Ticks until its avoid list is ignored.
        opens_in_ticks: u64,
    },
    /// The match within its limits is too uneven.
    PowerGap {
        /// The gap in power.
        gap: u64,
        /// Its current limit.
        limit: u32,
        /// Ticks until its limits are off.
        opens_in_ticks: u64,
    },
    /// Its room is not full, or was filled after the limit of matches of a heartbeat was reached.
    InRoom {
        /// Players in its room.
        players: u8,
        /// Players that are missing.
        missing: u8,
    },
    /// Its match is proposed, and not all of its players have accepted yet.
    Proposed {
        /// The number of the match.
        id: u64,
        /// The number of players who have not replied.
        missing: usize,
    },
    /// It has an allowed match: it arrived since the last heartbeat, or longer-waiting parties used up the limits of
    /// a heartbeat.
    NextHeartbeat,
}

impl WaitReason {
    /// Why the party in `slot` has no match yet; `None` when the slot is empty. O(n) and a bounded search.
    pub(crate) fn of(terms: &Terms, slot: u32) -> Option<Self> {
        let ticket = terms.ticket(slot)?;
        let entry = terms.pool.entry(slot)?;
        let limits = terms.limits(slot);
        let mut table = CompositionTable::new(terms.rules.group_size);
        let (waiting, needed) = (
            terms.pool.queue().players(),
            2 * u64::from(terms.rules.group_size),
        );
        if waiting < needed {
            return Some(Self::TooFewPlayers { waiting, needed });
        }
        let opens_in_ticks = terms
            .rules
            .limits_off_after_ticks
            .saturating_sub(terms.waited_ticks(slot));
        let me = single_party(entry.size);
        // The counts of the other parties, with one limit after the other.
        let (mut all, mut region, mut level, mut window): (Counts, Counts, Counts, Counts) =
            Default::default();
        for (other, found) in terms.pool.queue().iter() {
            let at = usize::from(found.size) - 1;
            let skill = terms.pool.entry(other).map_or(0, |other| other.skill());
            let here = regions(ticket) & regions(found) != 0;
            let peers = here && u32::from(ticket.level.abs_diff(found.level)) <= limits.level_band;
            let near = peers && skill.abs_diff(entry.skill()) <= limits.window;
            let others = u32::from(other != slot);
            all[at] += others;
            region[at] += others * u32::from(here);
            level[at] += others * u32::from(peers);
            window[at] += others * u32::from(near);
        }
        if !table.fits(&me, &all) {
            return Some(Self::SizesDoNotFit);
        }
        if !table.fits(&me, &region) {
            return Some(Self::OutsideRegions);
        }
        if !table.fits(&me, &level) {
            let band = limits.level_band;
            return Some(Self::OutsideLevels {
                band,
                opens_in_ticks,
            });
        }
        let outside = Self::OutsideWindow {
            window: limits.window,
            opens_in_ticks,
        };
        if !table.fits(&me, &window) {
            return Some(outside);
        }
        Some(Self::inside_limits(
            terms,
            &mut table,
            slot,
            outside,
            opens_in_ticks,
        ))
    }

    /// Why a party has no match although enough others are within its limits: `outside`, unless preferences or the gap are
    /// the cause.
    fn inside_limits(
        terms: &Terms,
        table: &mut CompositionTable,
        slot: u32,
        outside: Self,
        opens_in_ticks: u64,
    ) -> Self {
        let limits = terms.limits(slot);
        let plain = terms
            .pool
            .skill_index()
            .iter()
            .all(|other| !other.has_preferences);
        let mut seeker = PartnerSearch::default();
        let terms = if terms.waited_ticks(slot) < terms.rules.priority_after_ticks {
            *terms
        } else {
            terms.without_avoid_lists()
        };
        let mut found = |limits| seeker.find_match(&terms, table, slot, limits, CANDIDATES_MAX);
        if found(limits).is_some() {
            return Self::NextHeartbeat;
        }
        let limit = limits.power_gap;
        let power_gap = UNLIMITED;
        let split = found(Limits {
            power_gap,
            ..limits
        });
        let free = plain && terms.rematches.is_empty() && terms.rules.roles == [0; _];
        match split {
            Some(split) if limit != UNLIMITED => {
                let gap = split.gap();
                Self::PowerGap {
                    gap,
                    limit,
                    opens_in_ticks,
                }
            }
            _ if free => outside,
            _ => Self::PreferencesConflict { opens_in_ticks },
        }
    }
}
