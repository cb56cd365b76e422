//! Parties for a running match in which players are missing.
//!
//! Parties join nearest in skill first, as long as each is within its own window of the match, until some of
//! them make up exactly the players that are missing; of these, the nearest are chosen. Whom one of them avoids
//! is not in the match, nor among those chosen with it.
//!
//! Cost: O(parties looked at · players missing), at most [`LOOKS_MAX`] parties.

use super::by_skill::Entry;
use super::terms::{Terms, regions};

/// Parties looked at for one match.
pub const LOOKS_MAX: usize = 256;

/// A running match in which players are missing on one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backfill {
    /// Players that are missing, up to a group of the mode.
    pub missing: u8,
    /// The skill that the match is played at.
    pub skill: i32,
    /// The level that the match is played at.
    pub level: u16,
    /// Where it is played, a bit a region; 0 means anywhere.
    pub regions: u32,
    /// The players in the match.
    pub players: Vec<u64>,
}

/// The parties that join, nearest first; `None` when none make up exactly what is missing.
pub(super) fn join(terms: &Terms, wanted: &Backfill) -> Option<Vec<Entry>> {
    let order = terms.pool.by_skill();
    let missing = wanted.missing;
    if missing == 0 || missing > terms.rules.group_size {
        return None;
    }
    let (mut low, mut high) = order.around(wanted.skill);
    let mut joined: Vec<Entry> = Vec::new();
    // Bit s of entry i: some of the first i make up s players.
    let mut sums = vec![1u64];
    for _ in 0..LOOKS_MAX {
        let distance = |place| order.at(place).skill().abs_diff(wanted.skill);
        let (place, next) = match (low, high) {
            (Some(below), Some(above)) if distance(below) < distance(above) => (below, &mut low),
            (_, Some(above)) => (above, &mut high),
            (Some(below), None) => (below, &mut low),
            (None, None) => return None,
        };
        let entry = order.at(place);
        *next = if entry.skill() < wanted.skill {
            order.previous(place)
        } else {
            order.next(place)
        };
        let level_band = terms.limits(entry.slot).level_band;
        let gets_on = |other: &Entry| terms.together(other, &entry, level_band);
        if !may_join(terms, wanted, &entry) || !joined.iter().all(gets_on) {
            continue;
        }
        joined.push(entry);
        let before = sums.last().copied().unwrap_or(1);
        sums.push(before | before << entry.size);
        if sums[joined.len()] >> missing & 1 == 1 {
            return Some(chosen(&joined, &sums, missing));
        }
    }
    None
}

/// Whether a party may be in the match.
fn may_join(terms: &Terms, wanted: &Backfill, entry: &Entry) -> bool {
    let limits = terms.limits(entry.slot);
    let region = if wanted.regions == 0 {
        u32::MAX
    } else {
        wanted.regions
    };
    let Some(ticket) = terms.ticket(entry.slot) else {
        return false;
    };
    entry.size <= wanted.missing
        && entry.skill().abs_diff(wanted.skill) <= limits.window
        && u32::from(entry.level.abs_diff(wanted.level)) <= limits.level_band
        && regions(ticket) & region != 0
        && !terms.avoids_any(ticket, &wanted.players)
}

/// The nearest that make up what is missing: from the farthest back, one is left out where the others do.
fn chosen(joined: &[Entry], sums: &[u64], mut missing: u8) -> Vec<Entry> {
    let mut chosen = Vec::new();
    for (at, entry) in joined.iter().enumerate().rev() {
        if sums[at] >> missing & 1 == 0 {
            chosen.push(*entry);
            missing -= entry.size;
        }
    }
    chosen.reverse();
    chosen
}
