//! Sets of one band swap parties of equal size, so that uneven matches become even.
//!
//! In a match of one party of K against small ones, no other split helps, but another small party does. For
//! each party of an uneven set, the party of the same size in the band is found whose power closes the gap best. The
//! other set, if it is made of small parties, finds an even split with or without it.
//!
//! Invariants: the sum of gaps falls with each swap; all sets of a band are within the target spread, so no set gets wider
//! than that.
//!
//! Cost: O(parties of the band · log) to sort, then [`OFFERS_MAX`] splits per uneven set.

use super::balance::{GroupSplit, Weight, balance};
use super::sweep::{Sets, SweepSeat, within_limits};
use crate::queue::compositions::CompositionTable;

/// The number of swaps that are tried for a set: those that close its gap best.
pub const OFFERS_MAX: usize = 4;

/// A gap up to this fraction of a group's power is even: 1/4096.
const EVEN_SHIFT: u32 = 12;

/// A possible swap: the new gap of the uneven set, and the seats.
type SwapOffer = (u64, u32, u32);

/// The parties of a band; reuses its buffers.
#[derive(Clone, Debug, Default)]
pub struct PartySwapper {
    /// For each size, (power, seat), sorted.
    by_size: [Vec<(u32, u32)>; 5],
    /// (seat, set) of the whole band, sorted.
    owners: Vec<(u32, usize)>,
    gaps: Vec<u64>,
    offers: Vec<SwapOffer>,
}

impl PartySwapper {
    /// Swaps parties between the sets of a band.
    pub fn swap_parties(
        &mut self,
        seats: &[SweepSeat],
        sets: &mut Sets,
        table: &mut CompositionTable,
        band: std::ops::Range<usize>,
    ) {
        self.start_band(seats, sets, table, band.clone());
        for set in band.clone() {
            let Some((split, by_size)) = split_of(seats, sets.get(set), table) else {
                continue;
            };
            if split.gap() <= split.power[0] >> EVEN_SHIFT {
                continue;
            }
            self.collect_offers(seats, set, &split, &by_size);
            for (_, mine, theirs) in std::mem::take(&mut self.offers) {
                if self.try_swap(
                    seats,
                    sets,
                    table,
                    band.start,
                    [(set, mine), (self.owner(theirs), theirs)],
                ) {
                    break;
                }
            }
        }
    }

    fn start_band(
        &mut self,
        seats: &[SweepSeat],
        sets: &Sets,
        table: &mut CompositionTable,
        band: std::ops::Range<usize>,
    ) {
        self.by_size.iter_mut().for_each(Vec::clear);
        self.owners.clear();
        self.gaps.clear();
        for set in band {
            for &at in sets.get(set) {
                let seat = &seats[at as usize];
                self.by_size[usize::from(seat.entry.size) - 1].push((seat.power, at));
                self.owners.push((at, set));
            }
            let gap = split_of(seats, sets.get(set), table).map_or(0, |(split, _)| split.gap());
            self.gaps.push(gap);
        }
        self.by_size
            .iter_mut()
            .for_each(|market| market.sort_unstable());
        self.owners.sort_unstable();
    }

    fn owner(&self, seat: u32) -> usize {
        let found = self.owners.binary_search_by_key(&seat, |owner| owner.0);
        found.map_or(usize::MAX, |at| self.owners[at].1)
    }

    fn set_owner(&mut self, seat: u32, set: usize) {
        if let Ok(at) = self.owners.binary_search_by_key(&seat, |owner| owner.0) {
            self.owners[at].1 = set;
        }
    }

    /// The swaps that would close the gap of a set best.
    fn collect_offers(
        &mut self,
        seats: &[SweepSeat],
        set: usize,
        split: &GroupSplit,
        by_size: &[u32],
    ) {
        let lead = split.power[0] as i64 - split.power[1] as i64;
        let mut offers = std::mem::take(&mut self.offers);
        offers.clear();
        for (at, &mine) in by_size.iter().enumerate() {
            let seat = &seats[mine as usize];
            // The stronger group needs a weaker party, the weaker group a stronger one.
            let change = if split.first >> at & 1 == 1 {
                -lead
            } else {
                lead
            };
            let wanted = i64::from(seat.power) + change;
            let market = &self.by_size[usize::from(seat.entry.size) - 1];
            let from = market.partition_point(|offer| i64::from(offer.0) < wanted);
            let foreign = |&&(_, theirs): &&(u32, u32)| self.owner(theirs) != set;
            let above = market[from..].iter().filter(foreign).take(2);
            let below = market[..from].iter().rev().filter(foreign).take(2);
            for &(power, theirs) in above.chain(below) {
                offers.push((i64::from(power).abs_diff(wanted), mine, theirs));
            }
        }
        offers.sort_unstable();
        offers.truncate(OFFERS_MAX);
        self.offers = offers;
    }

    /// Swaps two seats between their sets, if that makes the gaps smaller and the windows allow it.
    fn try_swap(
        &mut self,
        seats: &[SweepSeat],
        sets: &mut Sets,
        table: &mut CompositionTable,
        first: usize,
        sides: [(usize, u32); 2],
    ) -> bool {
        let [(one, mine), (other, theirs)] = sides;
        let traded = |set: usize, out: u32, into: u32| {
            let kept = sets.get(set).iter().copied().filter(move |&at| at != out);
            let mut members: Vec<u32> = kept.chain([into]).collect();
            members.sort_unstable();
            members
        };
        let (ours, others) = (traded(one, mine, theirs), traded(other, theirs, mine));
        if !within_limits(seats, &ours) || !within_limits(seats, &others) {
            return false;
        }
        let mut gap = |set: &[u32]| split_of(seats, set, table).map(|(split, _)| split.gap());
        let (Some(our_gap), Some(their_gap)) = (gap(&ours), gap(&others)) else {
            return false;
        };
        if our_gap + their_gap >= self.gaps[one - first] + self.gaps[other - first] {
            return false;
        }
        (self.gaps[one - first], self.gaps[other - first]) = (our_gap, their_gap);
        sets.replace(one, ours);
        sets.replace(other, others);
        self.set_owner(theirs, one);
        self.set_owner(mine, other);
        true
    }
}

/// The most even split of a set, and its seats in the order of the split.
pub(crate) fn split_of(
    seats: &[SweepSeat],
    set: &[u32],
    table: &mut CompositionTable,
) -> Option<(GroupSplit, Vec<u32>)> {
    let mut by_size = set.to_vec();
    by_size.sort_by_key(|&at| seats[at as usize].entry.size);
    let weight = |&at: &u32| (seats[at as usize].entry.size, seats[at as usize].power);
    let weights: Vec<Weight> = by_size.iter().map(weight).collect();
    let split = balance(table, &weights)?;
    Some((split, by_size))
}
