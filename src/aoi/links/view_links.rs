//! View links: who sees whom, kept at both ends.
//!
//! ```text
//! viewer's list        [Seen, …]       rank and target, one array for each of LISTS lists
//! target's watchers    [Watcher, …]    viewer and list
//! ```
//! A *mutual* pair is two entries, one in each other's list; it stands in no watchers. So it takes half of
//! what two links take.
//!
//! The ends do not know each other's place. Whoever removes a link at one end searches the other end's array,
//! many entries at once: most are about as long as a cap, so this reads a few cache lines in a row, where places
//! kept on both sides would have to be corrected, at random, for each entry that moves. Only what all see has
//! more watchers: a viewer that leaves one of 5,000 compares up to 625 times eight, about a microsecond.
//!
//! A list has no gaps: what is removed is replaced by the list's last entry. The key of an entry holds the
//! pair's rank and the target's id so that a plain comparison of two keys says which is served first: the
//! higher rank, then the lower id. Hence the one to evict is the smallest key. Of each list is counted how
//! many have its lowest class, so that a full one knows at once whom it would take.
//!
//! All lists lie in one allocation, and so do all watchers (list_arena.rs).
//!
//! Invariant: link ⇔ an entry at each end; a target stands in one list of a viewer at most.
//! Cost: add is O(1), remove O(length of the other end's array ÷ 8); 8 bytes a link, 4 each of a mutual
//! pair's two, plus up to two fifths of slack, and 64 bytes a viewer and 12 an object and shard;
//! [`contains`](ViewLinks::contains) searches the shorter of two arrays. A bit for each pair of ids would
//! answer in O(1) but take objects²/8 bytes (0.5 MB at 2,048 objects, 312 MB at 50,000); sweeps mark ids
//! instead and need neither, so there is no size at which this changes over.

use super::link_key::LinkKey;
use super::link_key::{SeenEntry, WatcherEntry};
use super::list_arena::{ListArena, ListRange};
use crate::aoi::priority::class_of;
use crate::aoi::share::Share;
use crate::world::KindClass;

/// The lists a viewer has: one for each [`KindClass`], and [`UNCAPPED`].
pub const LISTS: usize = 4;

/// The list of those that lie outside caps (`Visibility::Far`, `Visibility::Scene`).
pub const UNCAPPED: usize = 3;

const _: () = assert!(KindClass::ALL.len() == UNCAPPED && UNCAPPED < LISTS);

/// How many entries a search compares at once.
const LANES: usize = 8;

/// The place of the entry that is meant, sought from the end: who empties an array from there finds each at
/// once.
#[inline]
fn find<T: Copy>(entries: &[T], is_meant: impl Fn(T) -> bool) -> Option<usize> {
    let (rest, chunks) = entries.as_rchunks::<LANES>();
    for (nth, chunk) in chunks.iter().enumerate().rev() {
        // Without an early end and in numbers, not in truth values, so that they are compared at once.
        let hits = chunk.map(|entry| u32::from(is_meant(entry)));
        if hits.iter().fold(0, |any, hit| any | hit) != 0 {
            let lane = chunk.iter().position(|&entry| is_meant(entry))?;
            return Some(rest.len() + nth * LANES + lane);
        }
    }
    rest.iter().position(|&entry| is_meant(entry))
}

/// The place of a target in a list.
#[inline]
fn find_target(entries: &[SeenEntry], target: u32) -> Option<usize> {
    find(entries, |seen| seen.key().target() == target)
}

const BOTH_ENDS: &str = "a link has two ends";

/// Collects the places of the chosen at the front, without a branch that depends on them; says how many.
#[inline]
fn choose<T: Copy>(entries: &[T], places: &mut Vec<u32>, is_chosen: impl Fn(T) -> bool) -> usize {
    if places.len() < entries.len() {
        places.resize(entries.len(), 0);
    }
    let mut count = 0;
    for (place, &entry) in (0..).zip(entries) {
        places[count] = place;
        count += usize::from(is_chosen(entry));
    }
    count
}

/// One of a viewer's lists: where it lies, and how many have the lowest class in it.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    run: ListRange,
    /// The lowest class, shifted left by 24, and how many members have it. None: not known.
    low: u32,
}

/// All lists of a viewer, a cache line.
#[derive(Clone, Copy, Debug, Default)]
struct Lists([List; LISTS]);

const _: () = assert!(size_of::<Lists>() == 64);
const COUNT_MASK: u32 = (1 << 24) - 1;

impl List {
    #[inline]
    fn note_added(&mut self, rank: u8) {
        let class = u32::from(class_of(rank));
        let lowest = self.low >> 24;
        let is_known = self.low & COUNT_MASK > 0;
        if is_known && class == lowest {
            self.low += 1;
        } else if self.run.len() == 1 || is_known && class < lowest {
            self.low = class << 24 | 1;
        }
    }

    #[inline]
    fn note_removed(&mut self, rank: u8) {
        if self.low & COUNT_MASK > 0 && u32::from(class_of(rank)) == self.low >> 24 {
            self.low -= 1;
        }
    }
}

/// One end of a link as its target sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedBy {
    /// Who sees the target.
    pub viewer: u32,
    /// In which of its lists the target stands.
    pub list: usize,
    /// At which place of that list.
    pub place: usize,
}

/// All links of one scene, indexed by object id.
#[derive(Clone, Debug, Default)]
pub struct ViewLinks {
    share: Share,
    lists: Vec<Lists>,
    watchers: Vec<ListRange>,
    /// How many mutual pairs each object is in.
    partners: Vec<u32>,
    seen_entries: ListArena<SeenEntry>,
    watcher_entries: ListArena<WatcherEntry>,
    len: usize,
}

impl ViewLinks {
    /// Links of these viewers.
    #[must_use]
    pub fn of(share: Share) -> Self {
        Self {
            share,
            ..Self::default()
        }
    }

    /// Makes room for the ids below `ids`.
    pub fn grow(&mut self, ids: usize) {
        if ids > self.watchers.len() {
            self.lists.resize(self.share.len_of(ids), Lists::default());
            self.watchers.resize(ids, ListRange::default());
        }
    }

    /// How many links there are; "A sees B" is one.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// How many a viewer sees in one of its lists.
    #[must_use]
    #[inline]
    pub fn list_len(&self, viewer: u32, list: usize) -> usize {
        let lists = self.lists.get(self.share.place(viewer));
        lists.map_or(0, |lists| lists.0[list].run.len())
    }

    /// How many see a target, mutual pairs apart.
    #[must_use]
    pub fn watchers_len(&self, target: u32) -> usize {
        let run = self.watchers.get(target as usize);
        run.map_or(0, |run| run.len())
    }

    /// In how many mutual pairs an object is.
    #[must_use]
    pub fn partners_len(&self, id: u32) -> usize {
        self.partners
            .get(id as usize)
            .map_or(0, |&count| count as usize)
    }

    /// With whom an object is in mutual pairs, list by list, in place order.
    pub fn partners(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        let lists = if self.partners_len(id) > 0 { LISTS } else { 0 };
        (0..lists)
            .flat_map(move |list| self.list(id, list))
            .filter(|seen| seen.is_mutual())
            .map(|seen| seen.key().target())
    }

    /// The place of the other end of the link at a place of a viewer's list, if it is a mutual pair's: the
    /// target's list, and the place in it.
    #[must_use]
    pub fn partner_at(&self, viewer: u32, list: usize, place: usize) -> Option<(usize, usize)> {
        let seen = self.list(viewer, list).get(place)?;
        let target = seen.key().target();
        let mut lists = 0..if seen.is_mutual() { LISTS } else { 0 };
        lists.find_map(|list| Some((list, find_target(self.list(target, list), viewer)?)))
    }

    /// The keys of one of a viewer's lists, in place order.
    pub fn keys(
        &self,
        viewer: u32,
        list: usize,
    ) -> impl DoubleEndedIterator<Item = LinkKey> + ExactSizeIterator + '_ {
        self.list(viewer, list).iter().map(|seen| seen.key())
    }

    /// The key at a place of a viewer's list; `None` past its end.
    #[must_use]
    pub fn key_at(&self, viewer: u32, list: usize, place: usize) -> Option<LinkKey> {
        self.list(viewer, list).get(place).map(|seen| seen.key())
    }

    /// Who sees a target, mutual pairs apart, in place order.
    pub fn watching(
        &self,
        target: u32,
    ) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        let watchers = self.watchers_of(target).iter();
        watchers.map(|watcher| watcher.viewer())
    }

    /// The watcher at a place; `None` past the end.
    #[must_use]
    pub fn watcher_at(&self, target: u32, place: usize) -> Option<WatchedBy> {
        let watcher = self.watchers_of(target).get(place)?;
        let (viewer, list) = (watcher.viewer(), watcher.list());
        let place = find_target(self.list(viewer, list), target)?;
        Some(WatchedBy {
            viewer,
            list,
            place,
        })
    }

    /// Whether a viewer sees a target in one of its lists. O(the shorter of that list and the watchers ÷ 8);
    /// the list if the target is in a mutual pair.
    #[must_use]
    pub fn contains(&self, viewer: u32, list: usize, target: u32) -> bool {
        if self.partners_len(target) > 0 || self.list_len(viewer, list) <= self.watchers_len(target)
        {
            find_target(self.list(viewer, list), target).is_some()
        } else {
            let watcher = WatcherEntry::new(viewer, list);
            find(self.watchers_of(target), |other| other == watcher).is_some()
        }
    }

    /// The place and the key of the one to evict first: the lowest rank, and of these the largest id.
    /// O(list).
    #[must_use]
    pub fn lowest(&self, viewer: u32, list: usize) -> Option<(usize, LinkKey)> {
        let lowest = self.keys(viewer, list).min()?;
        let place = self.keys(viewer, list).position(|key| key == lowest)?;
        Some((place, lowest))
    }

    /// The lowest rank in a list; `None` when it is empty. O(list), cheaper than [`lowest`](Self::lowest).
    #[must_use]
    pub fn lowest_rank(&self, viewer: u32, list: usize) -> Option<u8> {
        self.keys(viewer, list).min().map(LinkKey::rank)
    }

    /// Whether somebody in a list has a lower rank. O(list).
    #[must_use]
    pub fn has_lower(&self, viewer: u32, list: usize, rank: u8) -> bool {
        self.lowest_rank(viewer, list)
            .is_some_and(|lowest| lowest < rank)
    }

    /// The lowest class in a list; `None` when it is empty. O(1), but O(list) after the last of a class left.
    #[inline]
    pub fn lowest_class(&mut self, viewer: u32, list: usize) -> Option<u8> {
        let head = self.lists.get(self.share.place(viewer))?.0[list];
        if head.run.is_empty() {
            return None;
        }
        if head.low & COUNT_MASK > 0 {
            return Some((head.low >> 24) as u8);
        }
        let lowest = class_of(self.lowest_rank(viewer, list)?);
        let keys = self.keys(viewer, list);
        let count = keys.filter(|key| class_of(key.rank()) == lowest).count();
        self.lists[self.share.place(viewer)].0[list].low = u32::from(lowest) << 24 | count as u32;
        Some(lowest)
    }

    /// Writes the places of a viewer's list whose keys are chosen to the front of `places`, ascending, and says
    /// how many they are.
    #[inline]
    pub fn choose_seen(
        &self,
        viewer: u32,
        list: usize,
        places: &mut Vec<u32>,
        is_chosen: impl Fn(LinkKey) -> bool,
    ) -> usize {
        let entries = self.list(viewer, list);
        choose(entries, places, |seen| is_chosen(seen.key()))
    }

    /// Writes the places of a target's watchers whose viewers are chosen to the front of `places`, ascending,
    /// and says how many they are.
    #[inline]
    pub fn choose_watchers(
        &self,
        target: u32,
        places: &mut Vec<u32>,
        is_chosen: impl Fn(u32) -> bool,
    ) -> usize {
        let watchers = self.watchers_of(target);
        choose(watchers, places, |watcher| is_chosen(watcher.viewer()))
    }

    /// Reads where removing the links at these places of a viewer's list will search, so that the processor
    /// fetches it all at once rather than link by link.
    pub fn fetch_seen(&self, viewer: u32, list: usize, places: &[u32]) {
        let entries = self.list(viewer, list);
        let ends = places.iter().map(|&place| {
            let seen = entries[place as usize];
            let target = seen.key().target();
            if seen.is_mutual() {
                let last = self.list(target, list).last();
                last.map_or(0, |seen| seen.key().bits())
            } else {
                let last = self.watchers_of(target).last();
                last.map_or(0, |watcher| watcher.viewer())
            }
        });
        std::hint::black_box(ends.fold(0, u32::wrapping_add));
    }

    /// The same for the links at these places of a target's watchers.
    pub fn fetch_watchers(&self, target: u32, places: &[u32]) {
        let watchers = self.watchers_of(target);
        let ends = places.iter().map(|&place| {
            let watcher = watchers[place as usize];
            let last = self.list(watcher.viewer(), watcher.list()).last();
            last.map_or(0, |seen| seen.key().bits())
        });
        std::hint::black_box(ends.fold(0, u32::wrapping_add));
    }

    /// Links a pair and returns how many the viewer has in this list now. The caller knows that it is not
    /// linked yet and has called [`grow`](Self::grow) for both ids.
    #[inline]
    pub fn add(&mut self, viewer: u32, list: usize, key: LinkKey) -> usize {
        let target = key.target();
        debug_assert!(
            !self.contains(viewer, list, target),
            "{viewer} sees {target} already"
        );
        if ListArena::<WatcherEntry>::is_full(self.watchers[target as usize]) {
            self.enlarge_watchers(target);
        }
        let watchers = &mut self.watchers[target as usize];
        self.watcher_entries
            .push(watchers, WatcherEntry::new(viewer, list));
        let place = self.push_seen(viewer, list, SeenEntry::new(key, false));
        self.len += 1;
        place + 1
    }

    /// Links a mutual pair: `b` will stand in this list of `a`, and `a` in that of `b`. The caller knows that
    /// neither sees the other yet, and that all viewers are of one share.
    pub fn add_pair(&mut self, rank: u8, (a, in_a): (u32, usize), (b, in_b): (u32, usize)) {
        debug_assert!(!self.contains(a, in_a, b) && !self.contains(b, in_b, a));
        self.push_seen(a, in_a, SeenEntry::new(LinkKey::new(rank, b), true));
        self.push_seen(b, in_b, SeenEntry::new(LinkKey::new(rank, a), true));
        // Made when first needed: where sight is directed there are none.
        if self.partners.len() < self.watchers.len() {
            self.partners.resize(self.watchers.len(), 0);
        }
        self.partners[a as usize] += 1;
        self.partners[b as usize] += 1;
        self.len += 2;
    }

    /// Removes the link at a place of a viewer's list. Of a mutual pair both links are gone then, and it says
    /// where the other one was: which of the target's lists, and the place in it. Last entries move to the free
    /// places. `None` past the list's end.
    pub fn remove(
        &mut self,
        viewer: u32,
        list: usize,
        place: usize,
    ) -> Option<(LinkKey, Option<(usize, usize)>)> {
        if place >= self.list_len(viewer, list) {
            return None;
        }
        let partner = self.partner_at(viewer, list, place);
        let key = self.take_seen(viewer, list, place).key();
        let target = key.target();
        self.len -= 1;
        if let Some((theirs, place)) = partner {
            self.take_seen(target, theirs, place);
            self.partners[viewer as usize] -= 1;
            self.partners[target as usize] -= 1;
            self.len -= 1;
        } else {
            let watcher = WatcherEntry::new(viewer, list);
            let place = find(self.watchers_of(target), |other| other == watcher);
            let run = &mut self.watchers[target as usize];
            self.watcher_entries
                .swap_remove(run, place.expect(BOTH_ENDS));
        }
        Some((key, partner))
    }

    /// Removes the link at a place of a target's watchers and returns where its other end was. Last entries
    /// move to the free places. `None` past the end.
    #[inline]
    pub fn remove_watcher(&mut self, target: u32, place: usize) -> Option<WatchedBy> {
        let watcher = *self.watchers_of(target).get(place)?;
        let (viewer, list) = (watcher.viewer(), watcher.list());
        let run = &mut self.watchers[target as usize];
        self.watcher_entries.swap_remove(run, place);
        let place = find_target(self.list(viewer, list), target).expect(BOTH_ENDS);
        self.take_seen(viewer, list, place);
        self.len -= 1;
        Some(WatchedBy {
            viewer,
            list,
            place,
        })
    }

    /// Takes an entry out of a list.
    #[inline]
    fn take_seen(&mut self, viewer: u32, list: usize, place: usize) -> SeenEntry {
        let head = &mut self.lists[self.share.place(viewer)].0[list];
        let seen = self.seen_entries.swap_remove(&mut head.run, place);
        head.note_removed(seen.key().rank());
        seen
    }

    /// Changes the rank of the link at a place, of a mutual pair at both ends; false past the list's end.
    pub fn set_rank(&mut self, viewer: u32, list: usize, place: usize, rank: u8) -> bool {
        let Some(key) = self.key_at(viewer, list, place) else {
            return false;
        };
        let partner = self.partner_at(viewer, list, place);
        self.set_rank_of(viewer, list, place, rank);
        if let Some((theirs, at)) = partner {
            self.set_rank_of(key.target(), theirs, at, rank);
        }
        true
    }

    fn set_rank_of(&mut self, viewer: u32, list: usize, place: usize, rank: u8) {
        let head = &mut self.lists[self.share.place(viewer)].0[list];
        let seen = &mut self.seen_entries.list_mut(head.run)[place];
        let before = seen.key();
        *seen = SeenEntry::new(LinkKey::new(rank, before.target()), seen.is_mutual());
        if class_of(before.rank()) != class_of(rank) {
            // Rare enough to count anew.
            head.low = 0;
        }
    }

    /// The bytes that all lists hold, slack included.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        let heads = self.lists.capacity() * size_of::<Lists>()
            + self.watchers.capacity() * size_of::<ListRange>()
            + self.partners.capacity() * size_of::<u32>();
        self.seen_entries.allocated_bytes() + self.watcher_entries.allocated_bytes() + heads
    }

    /// Checks that every link has both its ends. O(links × their length).
    ///
    /// # Errors
    /// Says which link is broken.
    pub fn validate(&self) -> Result<(), String> {
        let (mut seen_count, mut mutual_count) = (0, 0);
        for viewer in (0..self.lists.len()).map(|place| self.share.id(place)) {
            let mut partners = 0;
            for list in 0..LISTS {
                let entries = self.list(viewer, list);
                seen_count += entries.len();
                for (place, seen) in entries.iter().enumerate() {
                    let target = seen.key().target();
                    let known = if seen.is_mutual() {
                        partners += 1;
                        self.partner_at(viewer, list, place)
                            .and_then(|(theirs, at)| self.list(target, theirs).get(at))
                            .is_some_and(|twin| {
                                twin.is_mutual()
                                    && twin.key() == LinkKey::new(seen.key().rank(), viewer)
                            })
                    } else {
                        let watcher = WatcherEntry::new(viewer, list);
                        self.watchers_of(target).contains(&watcher)
                    };
                    if !known {
                        return Err(format!("the other end of {viewer} → {target} is lost"));
                    }
                }
                let low = self.lists[self.share.place(viewer)].0[list].low;
                let lowest = self.lowest_rank(viewer, list).map_or(0, class_of);
                let keys = self.keys(viewer, list);
                let count = keys.filter(|key| class_of(key.rank()) == lowest).count() as u32;
                if low & COUNT_MASK > 0 && low != u32::from(lowest) << 24 | count {
                    return Err(format!("{viewer} counts its lowest in {list} wrongly"));
                }
            }
            if partners != self.partners_len(viewer) {
                return Err(format!(
                    "{viewer} is in {partners} pairs, counted otherwise"
                ));
            }
            mutual_count += partners;
        }
        let watcher_count: usize = self.watchers.iter().map(|run| run.len()).sum();
        if seen_count != watcher_count + mutual_count || seen_count != self.len {
            return Err(format!(
                "{} links counted, {seen_count} seen, {watcher_count} watchers, {mutual_count} mutual",
                self.len
            ));
        }
        Ok(())
    }

    #[inline]
    fn list(&self, viewer: u32, list: usize) -> &[SeenEntry] {
        let lists = self.lists.get(self.share.place(viewer));
        lists.map_or(&[], |lists| self.seen_entries.list(lists.0[list].run))
    }

    #[inline]
    fn watchers_of(&self, target: u32) -> &[WatcherEntry] {
        let run = self.watchers.get(target as usize);
        run.map_or(&[], |&run| self.watcher_entries.list(run))
    }

    #[inline]
    fn push_seen(&mut self, viewer: u32, list: usize, seen: SeenEntry) -> usize {
        if ListArena::<SeenEntry>::is_full(self.lists[self.share.place(viewer)].0[list].run) {
            self.enlarge_list(viewer, list);
        }
        let head = &mut self.lists[self.share.place(viewer)].0[list];
        let place = self.seen_entries.push(&mut head.run, seen);
        head.note_added(seen.key().rank());
        place
    }

    #[cold]
    fn enlarge_list(&mut self, viewer: u32, list: usize) {
        let run = &mut self.lists[self.share.place(viewer)].0[list].run;
        if !self.seen_entries.reserve(run) {
            let lists = self.lists.iter_mut().flat_map(|lists| &mut lists.0);
            self.seen_entries.compact(lists.map(|list| &mut list.run));
            // It had no block yet; now there is room for one.
            if ListArena::<SeenEntry>::is_full(self.lists[self.share.place(viewer)].0[list].run) {
                self.enlarge_list(viewer, list);
            }
        }
    }

    #[cold]
    fn enlarge_watchers(&mut self, target: u32) {
        let run = &mut self.watchers[target as usize];
        if !self.watcher_entries.reserve(run) {
            self.watcher_entries.compact(self.watchers.iter_mut());
            if ListArena::<WatcherEntry>::is_full(self.watchers[target as usize]) {
                self.enlarge_watchers(target);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_lowest_is_the_largest_id_of_the_lowest_rank() {
        let mut links = ViewLinks::default();
        links.grow(10);
        for (class, target) in [(1, 9), (0, 3), (0, 7), (2, 8)] {
            links.add(0, 0, LinkKey::new(class, target));
        }
        assert_eq!(links.lowest(0, 0), Some((2, LinkKey::new(0, 7))));
        assert_eq!(links.lowest_rank(0, 0), Some(0));
        assert_eq!(links.lowest(0, 1), None);
    }

    #[test]
    fn each_entry_is_found_in_lists_of_any_length() {
        for len in 0..40 {
            let entries: Vec<usize> = (0..len).collect();
            for place in 0..len {
                assert_eq!(find(&entries, |entry| entry == place), Some(place));
            }
            assert_eq!(find(&entries, |entry| entry == len), None);
        }
    }

    #[test]
    fn unknown_ids_see_nobody() {
        let mut links = ViewLinks::default();
        assert_eq!(links.list_len(5, 0), 0);
        assert!(!links.contains(5, 0, 6));
        assert_eq!(links.remove(5, 0, 0), None);
        assert!(!links.set_rank(5, 0, 0, 1));
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn both_ends_follow_a_plain_set_of_pairs(
            ops in prop::collection::vec((0u32..6, 0u32..6, 0u8..4, 0usize..5), 0..120),
        ) {
            let list_of = |id: u32| id as usize % 3;
            let mut links = ViewLinks::default();
            links.grow(6);
            let mut model: BTreeMap<(u32, u32), u8> = BTreeMap::new();
            for (viewer, target, class, what) in ops {
                let list = list_of(target);
                let place = links.keys(viewer, list).position(|key| key.target() == target);
                match (what, place) {
                    (0, None) => {
                        links.add(viewer, list, LinkKey::new(class, target));
                        model.insert((viewer, target), class);
                    }
                    (3, None) if viewer != target && !model.contains_key(&(target, viewer)) => {
                        links.add_pair(class, (viewer, list), (target, list_of(viewer)));
                        model.insert((viewer, target), class);
                        model.insert((target, viewer), class);
                    }
                    (1, Some(place)) => {
                        prop_assert!(links.set_rank(viewer, list, place, class));
                        model.insert((viewer, target), class);
                        if links.partner_at(viewer, list, place).is_some() {
                            model.insert((target, viewer), class);
                        }
                    }
                    (2, Some(place)) => {
                        let removed = links.remove(viewer, list, place);
                        let class = model.remove(&(viewer, target));
                        prop_assert_eq!(removed.map(|(key, _)| key.rank()), class);
                        if removed.is_some_and(|(_, twin)| twin.is_some()) {
                            prop_assert_eq!(model.remove(&(target, viewer)), class);
                        }
                    }
                    (4, _) => {
                        if let Some(place) = links.watchers_len(target).checked_sub(1) {
                            let place = place.min(class.into());
                            let watcher = links.watcher_at(target, place);
                            let removed = links.remove_watcher(target, place);
                            prop_assert_eq!(removed, watcher);
                            prop_assert!(removed.is_some_and(|w| model.remove(&(w.viewer, target)).is_some()));
                        }
                    }
                    _ => {}
                }
                prop_assert_eq!(links.validate(), Ok(()));
                prop_assert_eq!(links.len(), model.len());
                for viewer in 0..6 {
                    for target in 0..6 {
                        let rank = model.get(&(viewer, target)).copied();
                        prop_assert_eq!(links.contains(viewer, list_of(target), target), rank.is_some());
                        let mut keys = links.keys(viewer, list_of(target));
                        prop_assert_eq!(
                            keys.find(|key| key.target() == target).map(LinkKey::rank),
                            rank
                        );
                    }
                }
            }
        }
    }
}
