//! The members of a cell, with what ties objects to each other in columns beside their ids.
//!
//! ```text
//! ids    [ a  b  c  …      ]
//! team   [ .  .  .  …      ]   one column for each kind of tie, all in one allocation,
//! party  [ .  .  .  …      ]   so that a sweep for ties reads memory in order and compares
//! …                            eight members at once
//! ```
//! Most who meet have no tie. A full viewer takes only those of a class above that of strangers, which the
//! default ranking gives to ties alone: so the sweep of a full viewer reads columns, not objects.
//!
//! Invariant: a member's row holds what its traits said when it was written last.
//! Cost: push, swap-remove and write O(1); a sweep for ties a few instructions a member and kind of tie; 24
//! bytes a member before slack.

use crate::aoi::priority::ViewTraits;

/// How many members a sweep compares at once.
const LANES: usize = 8;

/// Columns beside the ids.
const COLUMNS: usize = 6;
const ID: usize = 0;
const TEAM: usize = 1;
const PARTY: usize = 2;
const GUILD: usize = 3;
const TARGET: usize = 4;
const OWNER: usize = 5;

/// What somebody's ties are found by: columns, and what stands in them.
#[derive(Clone, Copy, Debug, Default)]
pub struct TieQuery {
    wanted: [(usize, u32); 7],
    len: usize,
}

impl TieQuery {
    /// Those of somebody of this traits.
    #[must_use]
    pub fn of(traits: &ViewTraits) -> Self {
        let asked = [
            (TEAM, traits.team),
            (PARTY, traits.party),
            (GUILD, traits.guild),
            (ID, traits.target),
            (ID, traits.owner),
            (TARGET, traits.id),
            (OWNER, traits.id),
        ];
        let mut ties = Self::default();
        for (column, value) in asked {
            // Nobody is tied by having nothing.
            if value != 0 {
                ties.wanted[ties.len] = (column, value);
                ties.len += 1;
            }
        }
        ties
    }
}

/// The members of one cell.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// One column after the other, each of `capacity` numbers.
    columns: Vec<u32>,
    capacity: u32,
    len: u32,
}

impl Members {
    /// Nobody yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            columns: Vec::new(),
            capacity: 0,
            len: 0,
        }
    }

    /// Their ids, in place order.
    #[must_use]
    #[inline]
    pub fn ids(&self) -> &[u32] {
        &self.columns[..self.len as usize]
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one at the end; returns its place.
    pub fn push(&mut self, id: u32, traits: &ViewTraits) -> u32 {
        if self.len == self.capacity {
            self.enlarge();
        }
        let place = self.len;
        self.len += 1;
        self.columns[place as usize] = id;
        self.write(place, traits);
        place
    }

    /// Writes what ties the member at a place to others.
    pub fn write(&mut self, place: u32, traits: &ViewTraits) {
        debug_assert!(place < self.len);
        let row = [
            (TEAM, traits.team),
            (PARTY, traits.party),
            (GUILD, traits.guild),
            (TARGET, traits.target),
            (OWNER, traits.owner),
        ];
        for (column, value) in row {
            self.columns[column * self.capacity as usize + place as usize] = value;
        }
    }

    /// Removes the member at a place; the last one moves there, and its id is returned unless it was the
    /// removed one.
    pub fn swap_remove(&mut self, place: u32) -> Option<u32> {
        debug_assert!(place < self.len);
        self.len -= 1;
        let (place, last) = (place as usize, self.len as usize);
        for column in self.columns.chunks_exact_mut(self.capacity as usize) {
            column[place] = column[last];
        }
        (place != last).then(|| self.columns[place])
    }

    /// Collects those that the default ranking may put above strangers, seen from whoever asks or seeing it.
    /// Some of them may have no tie that counts; nobody who has is missed.
    pub fn tied_to(&self, asked: &TieQuery, out: &mut Vec<u32>) {
        let capacity = self.capacity as usize;
        for first in (0..self.len as usize).step_by(LANES) {
            // The capacity is a multiple of the lanes.
            let mut hits = [0_u32; LANES];
            for &(column, value) in &asked.wanted[..asked.len] {
                let lanes = &self.columns[column * capacity + first..][..LANES];
                for (hit, &lane) in hits.iter_mut().zip(lanes) {
                    *hit |= u32::from(lane == value);
                }
            }
            if hits.iter().fold(0, |any, hit| any | hit) == 0 {
                continue;
            }
            let end = (self.len as usize - first).min(LANES);
            for (lane, &hit) in hits[..end].iter().enumerate() {
                if hit != 0 {
                    out.push(self.columns[first + lane]);
                }
            }
        }
    }

    /// The bytes held, slack included.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        size_of::<Self>() + self.columns.capacity() * size_of::<u32>()
    }

    fn enlarge(&mut self) {
        let old = self.capacity as usize;
        let new = (old + old / 2 + LANES).next_multiple_of(LANES);
        let mut columns = vec![0; new * COLUMNS];
        if old > 0 {
            let rows = self.columns.chunks_exact(old);
            for (to, from) in columns.chunks_exact_mut(new).zip(rows) {
                to[..old].copy_from_slice(from);
            }
        }
        self.columns = columns;
        self.capacity = new as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn traits(id: u32, ties: [u32; 5]) -> ViewTraits {
        let [team, party, guild, target, owner] = ties;
        ViewTraits {
            id,
            team,
            party,
            guild,
            target,
            owner,
            ..ViewTraits::default()
        }
    }

    fn is_tied(a: &ViewTraits, b: &ViewTraits) -> bool {
        use crate::aoi::priority::{OTHER, by_relationship};
        by_relationship(a, b) > OTHER || by_relationship(b, a) > OTHER
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn ties_are_found_among_members_that_come_go_and_change(
            ops in prop::collection::vec((0u32..40, 0u8..4, prop::array::uniform5(0u32..6)), 0..120),
            me in (0u32..40, prop::array::uniform5(0u32..6)),
        ) {
            let mut members = Members::default();
            let mut model: Vec<ViewTraits> = Vec::new();
            for (id, what, ties) in ops {
                let row = traits(id, ties);
                match (what, model.iter().position(|other| other.id == id)) {
                    (0, Some(place)) => {
                        let moved = members.swap_remove(place as u32);
                        model.swap_remove(place);
                        prop_assert_eq!(moved, model.get(place).map(|moved| moved.id));
                    }
                    (_, Some(place)) => {
                        members.write(place as u32, &row);
                        model[place] = row;
                    }
                    (_, None) => {
                        prop_assert_eq!(members.push(id, &row) as usize, model.len());
                        model.push(row);
                    }
                }
                prop_assert!(model.iter().map(|row| row.id).eq(members.ids().iter().copied()));
            }
            let me = traits(me.0, me.1);
            let mut found = Vec::new();
            members.tied_to(&TieQuery::of(&me), &mut found);
            for row in model {
                prop_assert!(found.contains(&row.id) || !is_tied(&me, &row));
            }
        }
    }
}
