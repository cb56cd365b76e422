//! Relations of objects in columns, so that a search for related objects reads memory in order and compares eight at once.
//!
//! ```text
//! id     [ a  b  c  …      ]
//! team   [ .  .  .  …      ]   one column for each kind of relation that occurs here, all in one allocation
//! party  [ .  .  .  …      ]
//! …
//! ```
//! Most objects that meet are unrelated, and the default ranking puts only related ones above unrelated ones. So the targets
//! around a full list are compared by columns, and the object is read only on a hit.
//!
//! In a cell with many targets each column is indexed, so that a search for one kind of relation, for example a team, reads
//! no other entries.
//!
//! Invariant: an entry holds the traits of its last write; a free entry matches nothing.
//! Cost: a search takes a few instructions for eight entries and each kind of relation that occurs here. Memory: 4 bytes per
//! entry, plus 4 for each kind, 12 if it is indexed. A write to an indexed column moves half an index.

use std::ops::Range;

use throng_core::memory::MemoryUse;

use super::bits::{bit, ones};
use super::object::NONE;
use crate::priority::{
    ATTACKER as ATTACKER_CLASS, GUILD as GUILD_CLASS, OWN_OR_TARGET as OWN_CLASS,
    PARTY as PARTY_CLASS, TEAM as TEAM_CLASS, UNRELATED, ViewTraits,
};

/// The number of entries that a search compares at once.
const LANES: usize = 8;

/// From this many entries on, columns are indexed: the values of a query are then in few words of them.
const INDEXED_ROWS_MIN: usize = if cfg!(test) { 24 } else { 1 << 10 };

/// After this many writes an index is rebuilt instead of updated: each write moves half of it.
const INDEX_WRITES_MAX: u32 = if cfg!(test) { 9 } else { 256 };

/// The number of bits of half a word.
const HALF: usize = 32;

const COLUMNS: usize = 6;
const ID: usize = 0;
const TEAM: usize = 1;
const PARTY: usize = 2;
const GUILD: usize = 3;
const TARGET: usize = 4;
const OWNER: usize = 5;

/// A query for related objects: columns, and the values to find in them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RelationQuery {
    terms: [(usize, u32); 7],
    len: usize,
}

impl RelationQuery {
    /// Objects whose class may be above this one for an object of these traits, in either direction.
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

    /// Objects of this class or a higher one for a viewer of these traits, by the default ranking.
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

    /// Zero is no relation, and [`NONE`] marks a free entry; neither is added.
    const fn add_term(&mut self, column: usize, value: u32) {
        let is_free = column == ID && value == NONE;
        if value != 0 && !is_free {
            self.terms[self.len] = (column, value);
            self.len += 1;
        }
    }

    /// Whether it matches no objects.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The relations of objects, by slot.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct RelationColumns {
    /// Ids, then the columns in use, in the order of their first use, each of `capacity` numbers. Usually there is one: unused
    /// kinds of relations take no memory.
    columns: Vec<u32>,
    /// A multiple of the lanes.
    capacity: usize,
    /// The column of each kind of relation; 0 for none.
    column_of: [u8; COLUMNS],
    /// In a large cell, for each column but the ids: its values with their slots, sorted. Empty if no query needs them, or if
    /// there were too many writes since they were built.
    #[memory(each)]
    indices: Vec<Vec<(u32, u32)>>,
    has_index: bool,
    /// The number of writes to indices since they were built.
    writes: u32,
}

impl RelationColumns {
    /// Creates empty columns that are indexed once there are many entries.
    pub(crate) fn with_index() -> Self {
        Self {
            has_index: true,
            ..Self::default()
        }
    }

    /// The ids by slot, [`NONE`] for free ones.
    #[inline]
    pub(crate) fn ids(&self) -> &[u32] {
        &self.columns[..self.capacity]
    }

    /// The column of a kind of relation, if it is in use.
    #[inline]
    fn column(&self, kind: usize) -> Option<&[u32]> {
        let at = usize::from(self.column_of[kind]);
        (kind == ID || at != 0).then(|| &self.columns[at * self.capacity..][..self.capacity])
    }

    /// Makes room for this many slots.
    pub(crate) fn grow(&mut self, places: usize) {
        if places > self.capacity {
            self.resize(places.next_multiple_of(LANES));
        }
    }

    /// Shrinks to this many slots; those beyond are free.
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

    /// Builds the missing indices of columns that should have one.
    pub(crate) fn refresh_index(&mut self) {
        self.writes = 0;
        if self.has_index && self.capacity >= INDEXED_ROWS_MIN && self.indices.is_empty() {
            self.indices = (1..=self.column_count()).map(|at| self.index(at)).collect();
        }
    }

    /// Writes a value of a column other than the ids.
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

    /// The number of columns, without the ids.
    fn column_count(&self) -> usize {
        (self.columns.len() / self.capacity.max(1)).saturating_sub(1)
    }

    /// Moves an entry to a free slot.
    pub(crate) fn relocate(&mut self, from: usize, to: usize) {
        self.columns[to] = self.columns[from];
        for at in 1..=self.column_count() {
            self.set(at, to, self.columns[at * self.capacity + from]);
        }
        self.free(from);
    }

    /// Writes the relations of a slot.
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
                // It is rebuilt with all others.
                self.indices.clear();
            }
            if self.column_of[kind] != 0 {
                self.set(self.column_of[kind].into(), place, value);
            }
        }
    }

    /// Clears the relations of a slot; its id stays.
    pub(crate) fn clear_relations(&mut self, place: usize) {
        for at in 1..=self.column_count() {
            self.set(at, place, 0);
        }
    }

    /// Frees a slot.
    pub(crate) fn free(&mut self, place: usize) {
        self.clear_relations(place);
        self.columns[place] = NONE;
    }

    /// Calls `found` with the slots that the default ranking may put above unrelated ones, ascending. Some of them may have no
    /// relation that counts; none that has one is missed.
    pub(crate) fn find(&self, asked: &RelationQuery, mut found: impl FnMut(usize)) {
        for (word, mask) in self.words(asked, 0) {
            ones(mask).for_each(|place| found(word * 64 + place));
        }
    }

    /// The same by words of 64 slots, starting at a word.
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

    /// The entries of an index from a word on, if the query needs only this one column and the others are empty.
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

    /// Whether any kind of relation of the query is in use here.
    #[inline]
    pub(crate) fn may_have(&self, asked: &RelationQuery) -> bool {
        let mut kinds = asked.terms[..asked.len].iter().map(|&(kind, _)| kind);
        kinds.any(|kind| kind == ID || self.column_of[kind] != 0)
    }

    /// The same as a bit for each of the 64 slots of a word.
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

    /// Whether a slot matches the query.
    pub(crate) fn matches(&self, place: usize, asked: &RelationQuery) -> bool {
        let mut wanted = asked.terms[..asked.len].iter();
        wanted.any(|&(kind, value)| self.has(place, kind, value))
    }

    /// Whether a slot has a relation of this kind and value, which is not 0.
    #[inline]
    fn has(&self, place: usize, kind: usize, value: u32) -> bool {
        self.column(kind)
            .is_some_and(|column| column[place] == value)
    }

    /// The class by the default ranking of a target with these traits (not scenery) for the object in a slot.
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

    /// Whether indices agree with columns, for checks.
    pub(crate) fn is_consistent(&self) -> bool {
        let indices = (1..).zip(&self.indices);
        let are_all = self.indices.is_empty() || self.indices.len() == self.column_count();
        are_all
            && indices
                .into_iter()
                .all(|(at, index)| *index == self.index(at))
    }
}

/// The words with matching slots, with a bit for each.
#[derive(Clone, Debug)]
pub(crate) struct RelatedWords<'a> {
    columns: &'a RelationColumns,
    query: &'a RelationQuery,
    /// If the query needs one indexed column: the value, and the remaining entries.
    index: Option<(u32, &'a [(u32, u32)])>,
    /// The words that are left.
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

/// A bit for each lane that is equal; there are at most 32, and a multiple of the number that is compared at once.
#[inline]
fn equal_bits(lanes: &[u32], value: u32) -> u32 {
    // Each lane has its own bit, so that they are combined once, at the end.
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
                // An entry from the end takes its slot, and slots beyond the last are freed.
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
            // All objects of a class, and none of a lower one.
            let query = RelationQuery::of_class(&me, above);
            let mut found = Vec::new();
            lines.find(&query, |place| found.push(place));
            for (place, line) in model.iter().enumerate() {
                // An object without relations is still an object.
                let Some(line) = line else { continue };
                let class = by_relationship(&me, line);
                prop_assert_eq!(found.contains(&place), lines.matches(place, &query));
                prop_assert!(class != above || above <= UNRELATED || found.contains(&place));
                prop_assert!(class >= above || !found.contains(&place));
            }
        }
    }
}
