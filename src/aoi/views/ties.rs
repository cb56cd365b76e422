//! What ties objects to each other, in columns, so that a search for ties reads memory in order and compares eight at once.
//!
//! ```text
//! id     [ a  b  c  …      ]
//! team   [ .  .  .  …      ]   one column for each kind of tie that anybody here had, all in one allocation
//! party  [ .  .  .  …      ]
//! …
//! ```
//! Most who meet have no tie, and the default ranking puts nobody but ties above strangers: so whoever meets a full list is
//! compared by columns, and its object is read only on a hit.
//!
//! Invariant: a line holds what its traits said when it was written last; a line that is free matches nothing.
//! Cost: a search is a few instructions for eight lines and a kind of tie that somebody here has; 4 bytes a line, and 4 for
//! each kind.

use super::bits::ones;
use super::object::NONE;
use crate::aoi::priority::{
    ATTACKER as ATTACKER_CLASS, GUILD as GUILD_CLASS, OTHER, OWN as OWN_CLASS,
    PARTY as PARTY_CLASS, TEAM as TEAM_CLASS, ViewTraits,
};

/// How many lines a search compares at once.
const LANES: usize = 8;

/// How many have a bit in half a word.
const HALF: usize = 32;

const COLUMNS: usize = 6;
const ID: usize = 0;
const TEAM: usize = 1;
const PARTY: usize = 2;
const GUILD: usize = 3;
const TARGET: usize = 4;
const OWNER: usize = 5;

/// What somebody's ties are found by: columns, and what stands in them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TieQuery {
    wanted: [(usize, u32); 7],
    len: usize,
}

impl TieQuery {
    /// Those of somebody of these traits whose class may be above this one, in either direction.
    pub(super) fn of(traits: &ViewTraits, above: u8) -> Self {
        let asked = [
            (TEAM, traits.team, TEAM_CLASS),
            (GUILD, traits.guild, GUILD_CLASS),
            (PARTY, traits.party, PARTY_CLASS),
            (ID, traits.target, u8::MAX),
            (ID, traits.owner, u8::MAX),
            (TARGET, traits.id, u8::MAX),
            (OWNER, traits.id, u8::MAX),
        ];
        let mut ties = Self::default();
        for (column, value, _) in asked.into_iter().filter(|&(.., class)| class > above) {
            ties.ask(column, value);
        }
        ties
    }

    /// Those who are of a class to a viewer of these traits, or of a higher one, by the default ranking.
    pub(super) fn of_class(traits: &ViewTraits, class: u8) -> Self {
        let mut ties = Self::default();
        match class {
            OWN_CLASS => {
                ties.ask(ID, traits.target);
                ties.ask(OWNER, traits.id);
            }
            ATTACKER_CLASS => ties.ask(TARGET, traits.id),
            PARTY_CLASS => ties.ask(PARTY, traits.party),
            GUILD_CLASS => ties.ask(GUILD, traits.guild),
            TEAM_CLASS => ties.ask(TEAM, traits.team),
            _ => {}
        }
        ties
    }

    /// Nobody is tied by having nothing, nor to a place where nobody is.
    const fn ask(&mut self, column: usize, value: u32) {
        let is_free = column == ID && value == NONE;
        if value != 0 && !is_free {
            self.wanted[self.len] = (column, value);
            self.len += 1;
        }
    }

    /// Whether it finds nobody.
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Lines of ties, by place.
#[derive(Clone, Debug, Default)]
pub(super) struct TieColumns {
    /// Ids, then the columns in which anything ever stood, in the order in which they were first needed, each of `capacity`
    /// numbers. Mostly that is one: what nobody has costs no room.
    columns: Vec<u32>,
    /// A multiple of the lanes.
    capacity: usize,
    /// Which of the columns is that of a kind of tie; 0 for none.
    at: [u8; COLUMNS],
}

impl TieColumns {
    /// The ids by place, [`NONE`] where there is nobody.
    #[inline]
    pub(super) fn ids(&self) -> &[u32] {
        &self.columns[..self.capacity]
    }

    /// The column of a kind of tie, if anybody ever had one.
    #[inline]
    fn column(&self, kind: usize) -> Option<&[u32]> {
        let at = usize::from(self.at[kind]);
        (kind == ID || at != 0).then(|| &self.columns[at * self.capacity..][..self.capacity])
    }

    /// Makes room for so many places.
    pub(super) fn grow(&mut self, places: usize) {
        if places > self.capacity {
            self.resize(places.next_multiple_of(LANES));
        }
    }

    /// Gives back the room for more places than so many, at which there is nobody.
    pub(super) fn shrink(&mut self, places: usize) {
        let places = places.next_multiple_of(LANES);
        if places < self.capacity {
            self.resize(places);
        }
    }

    fn resize(&mut self, new: usize) {
        let old = self.capacity;
        let count = 1 + self
            .at
            .iter()
            .fold(0, |last, &at| last.max(usize::from(at)));
        let mut columns = vec![0; new * count];
        columns[..new].fill(NONE);
        let both = old.min(new);
        if both > 0 {
            let lines = self.columns.chunks_exact(old);
            for (to, from) in columns.chunks_exact_mut(new).zip(lines) {
                to[..both].copy_from_slice(&from[..both]);
            }
        }
        (self.columns, self.capacity) = (columns, new);
    }

    /// Whoever is at a place stands at another, which is free, from now on.
    pub(super) fn relocate(&mut self, from: usize, to: usize) {
        for column in self.columns.chunks_exact_mut(self.capacity) {
            column[to] = column[from];
        }
        self.free(from);
    }

    /// Writes what ties the one at a place to others.
    pub(super) fn write(&mut self, place: usize, traits: &ViewTraits) {
        self.columns[place] = traits.id;
        for (kind, value) in [
            (TEAM, traits.team),
            (PARTY, traits.party),
            (GUILD, traits.guild),
            (TARGET, traits.target),
            (OWNER, traits.owner),
        ] {
            if self.at[kind] == 0 && value != 0 {
                self.at[kind] = (self.columns.len() / self.capacity) as u8;
                self.columns.reserve_exact(self.capacity);
                self.columns.resize(self.columns.len() + self.capacity, 0);
            }
            if self.at[kind] != 0 {
                self.columns[usize::from(self.at[kind]) * self.capacity + place] = value;
            }
        }
    }

    /// Nobody at a place is tied to anybody from now on; its id stays.
    pub(super) fn untie(&mut self, place: usize) {
        for column in self.columns.chunks_exact_mut(self.capacity).skip(1) {
            column[place] = 0;
        }
    }

    /// Nobody is at a place from now on.
    pub(super) fn free(&mut self, place: usize) {
        self.untie(place);
        self.columns[place] = NONE;
    }

    /// Calls with the places of those that the default ranking may put above strangers, ascending. Some of them may have no
    /// tie that counts; nobody who has is missed.
    pub(super) fn find(&self, asked: &TieQuery, mut found: impl FnMut(usize)) {
        for word in 0..self.capacity.div_ceil(64) {
            ones(self.mask(word, asked)).for_each(|place| found(word * 64 + place));
        }
    }

    /// The same as a bit for each of the 64 places of a word.
    #[inline]
    pub(super) fn mask(&self, word: usize, asked: &TieQuery) -> u64 {
        let mut mask = 0;
        let first = (word * 64).min(self.capacity);
        let last = (first + 64).min(self.capacity);
        for &(kind, value) in &asked.wanted[..asked.len] {
            let column = self
                .column(kind)
                .map_or(&[][..], |column| &column[first..last]);
            for (nth, lanes) in column.chunks(HALF).enumerate() {
                mask |= u64::from(equal_bits(lanes, value)) << (nth * HALF);
            }
        }
        mask
    }

    /// Whether the one at a place is among those that are asked for.
    pub(super) fn is_any(&self, place: usize, asked: &TieQuery) -> bool {
        let mut wanted = asked.wanted[..asked.len].iter();
        wanted.any(|&(kind, value)| self.has(place, kind, value))
    }

    /// Whether the one at a place has a tie of this kind and value, which is not 0.
    #[inline]
    fn has(&self, place: usize, kind: usize, value: u32) -> bool {
        self.column(kind)
            .is_some_and(|column| column[place] == value)
    }

    /// The class by the default ranking of somebody of these traits, no scenery, to the one at a place.
    pub(super) fn class_at(&self, place: usize, target: &ViewTraits) -> u8 {
        let has = |kind: usize, value: u32| value != 0 && self.has(place, kind, value);
        if has(TARGET, target.id) || has(ID, target.owner) {
            OWN_CLASS
        } else if has(ID, target.target) {
            ATTACKER_CLASS
        } else if has(PARTY, target.party) {
            PARTY_CLASS
        } else if has(GUILD, target.guild) {
            GUILD_CLASS
        } else if has(TEAM, target.team) {
            TEAM_CLASS
        } else {
            OTHER
        }
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.columns.capacity() * size_of::<u32>()
    }
}

/// A bit for each lane that is equal; there are at most 32, and a multiple of those that are compared at once.
#[inline]
fn equal_bits(lanes: &[u32], value: u32) -> u32 {
    // Each lane has its own bit, so that they are joined once, at the end.
    let mut equal = [0; LANES];
    for (lanes, bits) in lanes.as_chunks::<LANES>().0.iter().zip(&BITS) {
        for ((equal, &lane), &bit) in equal.iter_mut().zip(lanes).zip(bits) {
            *equal |= if lane == value { bit } else { 0 };
        }
    }
    equal.iter().fold(0, |all, bits| all | bits)
}

/// The bits of half a word, by lanes.
const BITS: [[u32; LANES]; HALF / LANES] = {
    let mut bits = [[0; LANES]; HALF / LANES];
    let mut place = 0;
    while place < HALF {
        bits[place / LANES][place % LANES] = 1 << place;
        place += 1;
    }
    bits
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::aoi::priority::by_relationship;

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

    /// The higher class of the two directions.
    fn class(a: &ViewTraits, b: &ViewTraits) -> u8 {
        by_relationship(a, b).max(by_relationship(b, a))
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn ties_are_found_among_lines_that_come_go_and_change(
            ops in prop::collection::vec((0usize..40, 0u8..4, prop::array::uniform5(0u32..6)), 0..120),
            me in (0u32..40, prop::array::uniform5(0u32..6)),
            above in 1u8..7,
        ) {
            let mut lines = TieColumns::default();
            let mut model: [Option<ViewTraits>; 40] = [None; 40];
            for (place, what, ties) in ops {
                let line = traits(place as u32, ties);
                lines.grow(place + 1);
                match what {
                    0 => lines.free(place),
                    1 => lines.untie(place),
                    _ => lines.write(place, &line),
                }
                model[place] = (what > 1).then_some(line);
                // Somebody from the end takes its place, and what is beyond the last is given back.
                let last = model.iter().rposition(Option::is_some);
                if let Some(last) = last.filter(|&last| what == 0 && place < last) {
                    lines.relocate(last, place);
                    model.swap(last, place);
                }
                if what == 0 {
                    lines.shrink(model.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
                }
            }
            let me = traits(me.0, me.1);
            let mut found = Vec::new();
            lines.find(&TieQuery::of(&me, above), |place| found.push(place));
            prop_assert!(found.is_sorted());
            let mask = lines.mask(0, &TieQuery::of(&me, above));
            let places = (0..64).filter(|place| mask >> place & 1 != 0);
            prop_assert_eq!(&found, &places.collect::<Vec<usize>>());
            prop_assert_eq!(lines.mask(1, &TieQuery::of(&me, above)), 0);
            for (place, line) in model.iter().enumerate() {
                if let Some(line) = line {
                    prop_assert!(found.contains(&place) || class(&me, line) <= above);
                    prop_assert_eq!(lines.class_at(place, &me), by_relationship(line, &me));
                }
            }
            // All who are of a class, and none of a lower one.
            let query = TieQuery::of_class(&me, above);
            let mut found = Vec::new();
            lines.find(&query, |place| found.push(place));
            for (place, line) in model.iter().enumerate() {
                // Who was untied is somebody still.
                let Some(line) = line else { continue };
                let class = by_relationship(&me, line);
                prop_assert_eq!(found.contains(&place), lines.is_any(place, &query));
                prop_assert!(class != above || above <= OTHER || found.contains(&place));
                prop_assert!(class >= above || !found.contains(&place));
            }
        }
    }
}
