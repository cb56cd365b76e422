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
//! Where many can be seen each column is indexed, so that a search for one kind of tie, a team say, looks at nobody else.
//!
//! Invariant: a line holds what its traits said when it was written last; a line that is free matches nothing.
//! Cost: a search is a few instructions for eight lines and a kind of tie that somebody here has; 4 bytes a line, and 4 for
//! each kind, 12 where it is indexed; writing one moves half an index then.

use std::ops::Range;

use throng_core::memory::MemoryUse;

use super::bits::{bit, ones};
use super::object::NONE;
use crate::priority::{
    ATTACKER as ATTACKER_CLASS, GUILD as GUILD_CLASS, OWN_OR_TARGET as OWN_CLASS,
    PARTY as PARTY_CLASS, TEAM as TEAM_CLASS, UNRELATED, ViewTraits,
};

/// How many lines a search compares at once.
const LANES: usize = 8;

/// So many places are indexed by what stands in a column: who is asked for is in few words of them.
const INDEXED_ROWS_MIN: usize = if cfg!(test) { 24 } else { 1 << 10 };

/// After so many writes an index is made anew rather than written to: each moves half of it.
const INDEX_WRITES_MAX: u32 = if cfg!(test) { 9 } else { 256 };

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
pub(crate) struct RelationQuery {
    terms: [(usize, u32); 7],
    len: usize,
}

impl RelationQuery {
    /// Those of somebody of these traits whose class may be above this one, in either direction.
    pub(crate) fn of(traits: &ViewTraits, above: u8) -> Self {
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
            ties.add_term(column, value);
        }
        ties
    }

    /// Those who are of a class to a viewer of these traits, or of a higher one, by the default ranking.
    pub(crate) fn of_class(traits: &ViewTraits, class: u8) -> Self {
        let mut ties = Self::default();
        match class {
            OWN_CLASS => {
                ties.add_term(ID, traits.target);
                ties.add_term(OWNER, traits.id);
            }
            ATTACKER_CLASS => ties.add_term(TARGET, traits.id),
            PARTY_CLASS => ties.add_term(PARTY, traits.party),
            GUILD_CLASS => ties.add_term(GUILD, traits.guild),
            TEAM_CLASS => ties.add_term(TEAM, traits.team),
            _ => {}
        }
        ties
    }

    /// Nobody is tied by having nothing, nor to a place where nobody is.
    const fn add_term(&mut self, column: usize, value: u32) {
        let is_free = column == ID && value == NONE;
        if value != 0 && !is_free {
            self.terms[self.len] = (column, value);
            self.len += 1;
        }
    }

    /// Whether it finds nobody.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Lines of ties, by place.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct RelationColumns {
    /// Ids, then the columns in which anything ever stood, in the order in which they were first needed, each of `capacity`
    /// numbers. Mostly that is one: what nobody has costs no room.
    columns: Vec<u32>,
    /// A multiple of the lanes.
    capacity: usize,
    /// Which of the columns is that of a kind of tie; 0 for none.
    column_of: [u8; COLUMNS],
    /// Where there are many places, of each column but that of ids what stands in it, with its places, in order.
    /// None at all where nobody wants them, or too much was written since they were made.
    #[memory(each)]
    indices: Vec<Vec<(u32, u32)>>,
    has_index: bool,
    /// How often indices were written to since they were made.
    writes: u32,
}

impl RelationColumns {
    /// Without a line; indexed once there are many.
    pub(crate) fn with_index() -> Self {
        Self {
            has_index: true,
            ..Self::default()
        }
    }

    /// The ids by place, [`NONE`] where there is nobody.
    #[inline]
    pub(crate) fn ids(&self) -> &[u32] {
        &self.columns[..self.capacity]
    }

    /// The column of a kind of tie, if anybody ever had one.
    #[inline]
    fn column(&self, kind: usize) -> Option<&[u32]> {
        let at = usize::from(self.column_of[kind]);
        (kind == ID || at != 0).then(|| &self.columns[at * self.capacity..][..self.capacity])
    }

    /// Makes room for so many places.
    pub(crate) fn grow(&mut self, places: usize) {
        if places > self.capacity {
            self.resize(places.next_multiple_of(LANES));
        }
    }

    /// Gives back the room for more places than so many, at which there is nobody.
    pub(crate) fn shrink(&mut self, places: usize) {
        let places = places.next_multiple_of(LANES);
        if places < self.capacity {
            self.resize(places);
        }
    }

    fn resize(&mut self, new: usize) {
        let old = self.capacity;
        let count = 1 + self
            .column_of
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
        self.indices.clear();
    }

    /// The index of a column.
    fn index(&self, at: usize) -> Vec<(u32, u32)> {
        let column = &self.columns[at * self.capacity..][..self.capacity];
        let values = column.iter().copied().zip(0..);
        let mut index: Vec<(u32, u32)> = values.filter(|value| value.0 != 0).collect();
        index.sort_unstable();
        index.shrink_to_fit();
        index
    }

    /// Indexes columns that are to be indexed and are not.
    pub(crate) fn refresh_index(&mut self) {
        self.writes = 0;
        if self.has_index && self.capacity >= INDEXED_ROWS_MIN && self.indices.is_empty() {
            self.indices = (1..=self.column_count()).map(|at| self.index(at)).collect();
        }
    }

    /// Writes a number of a column that is not that of ids.
    fn set(&mut self, at: usize, place: usize, value: u32) {
        let line = &mut self.columns[at * self.capacity + place];
        let old = std::mem::replace(line, value);
        if self.indices.is_empty() || old == value {
            return;
        }
        self.writes += 1;
        if self.writes > INDEX_WRITES_MAX {
            self.indices.clear();
            return;
        }
        let (index, place) = (&mut self.indices[at - 1], place as u32);
        if let Ok(nth) = index.binary_search(&(old, place)) {
            index.remove(nth);
        }
        if value != 0
            && let Err(nth) = index.binary_search(&(value, place))
        {
            index.insert(nth, (value, place));
        }
    }

    /// How many columns there are beside that of ids.
    fn column_count(&self) -> usize {
        (self.columns.len() / self.capacity.max(1)).saturating_sub(1)
    }

    /// Whoever is at a place stands at another, which is free, from now on.
    pub(crate) fn relocate(&mut self, from: usize, to: usize) {
        self.columns[to] = self.columns[from];
        for at in 1..=self.column_count() {
            self.set(at, to, self.columns[at * self.capacity + from]);
        }
        self.free(from);
    }

    /// Writes what ties the one at a place to others.
    pub(crate) fn write(&mut self, place: usize, traits: &ViewTraits) {
        self.columns[place] = traits.id;
        for (kind, value) in [
            (TEAM, traits.team),
            (PARTY, traits.party),
            (GUILD, traits.guild),
            (TARGET, traits.target),
            (OWNER, traits.owner),
        ] {
            if self.column_of[kind] == 0 && value != 0 {
                self.column_of[kind] = (self.columns.len() / self.capacity) as u8;
                self.columns.reserve_exact(self.capacity);
                self.columns.resize(self.columns.len() + self.capacity, 0);
                // It is made with all others.
                self.indices.clear();
            }
            if self.column_of[kind] != 0 {
                self.set(self.column_of[kind].into(), place, value);
            }
        }
    }

    /// Nobody at a place is tied to anybody from now on; its id stays.
    pub(crate) fn clear_relations(&mut self, place: usize) {
        for at in 1..=self.column_count() {
            self.set(at, place, 0);
        }
    }

    /// Nobody is at a place from now on.
    pub(crate) fn free(&mut self, place: usize) {
        self.clear_relations(place);
        self.columns[place] = NONE;
    }

    /// Calls with the places of those that the default ranking may put above strangers, ascending. Some of them may have no
    /// tie that counts; nobody who has is missed.
    pub(crate) fn find(&self, asked: &RelationQuery, mut found: impl FnMut(usize)) {
        for (word, mask) in self.words(asked, 0) {
            ones(mask).for_each(|place| found(word * 64 + place));
        }
    }

    /// The same by words of 64 places, from one word on.
    #[inline(always)]
    pub(crate) fn words<'a>(&'a self, asked: &'a RelationQuery, from: usize) -> RelatedWords<'a> {
        let index = if self.indices.is_empty() {
            None
        } else {
            self.index_lines(asked, from)
        };
        let words = if self.may_have(asked) {
            from..self.capacity.div_ceil(64)
        } else {
            0..0
        };
        RelatedWords {
            columns: self,
            query: asked,
            index,
            words,
        }
    }

    /// The lines from a word on of the index of the one column that is asked for, if all others are empty.
    fn index_lines(&self, asked: &RelationQuery, from: usize) -> Option<(u32, &[(u32, u32)])> {
        let wanted = asked.terms[..asked.len].iter();
        let mut present = wanted.filter(|&&(kind, _)| kind == ID || self.column_of[kind] != 0);
        let &(kind, value) = present.next()?;
        let at = usize::from(self.column_of[kind]).checked_sub(1)?;
        if present.next().is_some() {
            return None;
        }
        let (index, first) = (&self.indices[at], (value, (from * 64) as u32));
        let lines = &index[index.partition_point(|line| *line < first)..];
        Some((value, lines))
    }

    /// Whether anybody ever had a tie of a kind that is asked for.
    #[inline]
    pub(crate) fn may_have(&self, asked: &RelationQuery) -> bool {
        let mut kinds = asked.terms[..asked.len].iter().map(|&(kind, _)| kind);
        kinds.any(|kind| kind == ID || self.column_of[kind] != 0)
    }

    /// The same as a bit for each of the 64 places of a word.
    #[inline]
    pub(crate) fn mask(&self, word: usize, asked: &RelationQuery) -> u64 {
        let mut mask = 0;
        let first = (word * 64).min(self.capacity);
        let last = (first + 64).min(self.capacity);
        for &(kind, value) in &asked.terms[..asked.len] {
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
    pub(crate) fn matches(&self, place: usize, asked: &RelationQuery) -> bool {
        let mut wanted = asked.terms[..asked.len].iter();
        wanted.any(|&(kind, value)| self.has(place, kind, value))
    }

    /// Whether the one at a place has a tie of this kind and value, which is not 0.
    #[inline]
    fn has(&self, place: usize, kind: usize, value: u32) -> bool {
        self.column(kind)
            .is_some_and(|column| column[place] == value)
    }

    /// The class by the default ranking of somebody of these traits, no scenery, to the one at a place.
    pub(crate) fn class_at(&self, place: usize, target: &ViewTraits) -> u8 {
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
            UNRELATED
        }
    }

    /// Whether indices say what columns do, for checks.
    pub(crate) fn is_consistent(&self) -> bool {
        let indices = (1..).zip(&self.indices);
        let are_all = self.indices.is_empty() || self.indices.len() == self.column_count();
        are_all
            && indices
                .into_iter()
                .all(|(at, index)| *index == self.index(at))
    }
}

/// The words in which somebody is found, with a bit for each.
#[derive(Clone, Debug)]
pub(crate) struct RelatedWords<'a> {
    columns: &'a RelationColumns,
    query: &'a RelationQuery,
    /// Where the one column that is asked for is indexed, what stands in it and the lines that are left.
    index: Option<(u32, &'a [(u32, u32)])>,
    /// Those that were not looked at.
    words: Range<usize>,
}

impl Iterator for RelatedWords<'_> {
    type Item = (usize, u64);

    #[inline]
    fn next(&mut self) -> Option<(usize, u64)> {
        let Some((value, index)) = &mut self.index else {
            let (ties, asked) = (self.columns, self.query);
            let mut words = self
                .words
                .by_ref()
                .map(|word| (word, ties.mask(word, asked)));
            return words.find(|word| word.1 != 0);
        };
        let word = index.first().filter(|line| line.0 == *value)?.1 / 64;
        let is_here = |line: &&(u32, u32)| line.0 == *value && line.1 / 64 == word;
        let here = index.iter().take_while(is_here);
        let (count, mask) = here.fold((0, 0), |(count, mask), line| {
            (count + 1, mask | bit(line.1 as usize))
        });
        *index = &index[count..];
        Some((word as usize, mask))
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
    use crate::priority::by_relationship;

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
        fn relations_are_found_while_rows_change(
            ops in prop::collection::vec((0usize..40, 0u8..4, prop::array::uniform5(0u32..6)), 0..120),
            me in (0u32..40, prop::array::uniform5(0u32..6)),
            above in 1u8..7,
        ) {
            let mut lines = RelationColumns::with_index();
            let mut model: [Option<ViewTraits>; 40] = [None; 40];
            for (place, what, ties) in ops {
                let line = traits(place as u32, ties);
                lines.grow(place + 1);
                if ties[0] == 0 {
                    lines.refresh_index();
                }
                match what {
                    0 => lines.free(place),
                    1 => lines.clear_relations(place),
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
            prop_assert!(lines.is_consistent());
            if above % 2 == 0 {
                lines.refresh_index();
            }
            let me = traits(me.0, me.1);
            let mut found = Vec::new();
            lines.find(&RelationQuery::of(&me, above), |place| found.push(place));
            prop_assert!(found.is_sorted());
            let mask = lines.mask(0, &RelationQuery::of(&me, above));
            let places = (0..64).filter(|place| mask >> place & 1 != 0);
            prop_assert_eq!(&found, &places.collect::<Vec<usize>>());
            prop_assert_eq!(lines.mask(1, &RelationQuery::of(&me, above)), 0);
            for (place, line) in model.iter().enumerate() {
                if let Some(line) = line {
                    prop_assert!(found.contains(&place) || class(&me, line) <= above);
                    prop_assert_eq!(lines.class_at(place, &me), by_relationship(line, &me));
                }
            }
            // All who are of a class, and none of a lower one.
            let query = RelationQuery::of_class(&me, above);
            let mut found = Vec::new();
            lines.find(&query, |place| found.push(place));
            for (place, line) in model.iter().enumerate() {
                // Who was untied is somebody still.
                let Some(line) = line else { continue };
                let class = by_relationship(&me, line);
                prop_assert_eq!(found.contains(&place), lines.matches(place, &query));
                prop_assert!(class != above || above <= UNRELATED || found.contains(&place));
                prop_assert!(class >= above || !found.contains(&place));
            }
        }
    }
}
