//! View links: who sees whom, kept at both ends.
//!
//! ```text
//! viewer's list   [Seen { key, twin }, …]        one for each of LISTS lists
//!                           │    ▲
//!                      twin ▼    │ place
//! target's watchers  [Watcher { viewer and list, place }, …]
//! ```
//! A *mutual* pair is two links with an entry in each other's list, which are twins; it stands in no
//! watchers. So it takes half of what two links take.
//!
//! A list has no gaps: what is removed is replaced by the list's last entry, and that entry's twin is told
//! its new place. The key of an entry holds the pair's rank and the target's id so that a plain comparison
//! of two keys says which is served first: the higher rank, then the lower id. Hence the one to evict is the
//! smallest key. Of each list is counted how many have its lowest class, so that a full one knows at once
//! whom it would take.
//!
//! All lists lie in one allocation, and so do all watchers (slab.rs).
//!
//! Invariant: link ⇔ an entry at each end, and each entry knows the other's place.
//! Cost: add and remove are O(1) (in lists beyond the 32,768 places that an end can tell apart, O(length ÷
//! 32,768), in mutual pairs O(length ÷ 8,192)); 12 bytes a link, 6 each of a mutual pair's two, plus an
//! eighth to a fourth of slack, and 80 bytes an object; [`contains`](ViewLinks::contains) looks through one
//! list, at most the viewer's cap. A bit for each pair of ids would answer in O(1) but take objects²/8 bytes
//! (0.5 MB at 2,048 objects, 312 MB at 50,000); sweeps mark ids instead and need neither, so there is no
//! size at which this changes over.

pub use super::ends::{IDS_MAX, LinkKey};
use super::{
    ends::{LIST_PLACES, PARTNER_PLACES, Seen, WATCHER_PLACES, Watcher, mutual_twin, watcher_twin},
    priority::class_of,
    slab::{Run, Slab},
};
use crate::world::kinds::KindClass;

/// The lists a viewer has: one for each [`KindClass`], and [`UNCAPPED`].
pub const LISTS: usize = 4;

/// The list of those that lie outside caps (`Visibility::Far`, `Visibility::Scene`).
pub const UNCAPPED: usize = 3;

const _: () = assert!(KindClass::ALL.len() == UNCAPPED && UNCAPPED < LISTS);

/// From how many links on what is removed is fetched before: 1.5 MB.
const FETCH_LINKS_MIN: usize = 1 << 17;

/// The place of the entry that is meant, of which the lowest bits are known. Lists are hardly ever long enough
/// for a second try.
#[inline]
fn find<T: Copy>(entries: &[T], known: usize, step: usize, is_meant: impl Fn(T) -> bool) -> usize {
    if is_meant(entries[known]) {
        return known;
    }
    let later = (known + step..entries.len()).step_by(step);
    let mut meant = later.filter(|&place| is_meant(entries[place]));
    meant.next().expect("both ends of a link know each other")
}

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
    run: Run,
    /// The lowest class, shifted left by 24, and how many members have it. None: not known.
    low: u32,
}

const _: () = assert!(size_of::<[List; LISTS]>() == 64);
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
    lists: Vec<[List; LISTS]>,
    watchers: Vec<Run>,
    /// How many mutual pairs each object is in.
    partners: Vec<u32>,
    seen_entries: Slab<Seen>,
    watcher_entries: Slab<Watcher>,
    len: usize,
}

impl ViewLinks {
    /// Makes room for the ids below `ids`.
    pub fn grow(&mut self, ids: usize) {
        if ids > self.lists.len() {
            self.lists.resize(ids, Default::default());
            self.watchers.resize(ids, Run::default());
            self.partners.resize(ids, 0);
        }
    }

    /// How many links there are; "A sees B" is one.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nobody sees anybody.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many a viewer sees in one of its lists.
    #[must_use]
    #[inline]
    pub fn list_len(&self, viewer: u32, list: usize) -> usize {
        let lists = self.lists.get(viewer as usize);
        lists.map_or(0, |lists| lists[list].run.len())
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
            .filter(|seen| seen.partner().is_some())
            .map(|seen| seen.key().target())
    }

    /// The place of the other end of the link at a place of a viewer's list, if it is a mutual pair's: the
    /// target's list, and the place in it.
    #[must_use]
    pub fn partner_at(&self, viewer: u32, list: usize, place: usize) -> Option<(usize, usize)> {
        let seen = self.list(viewer, list).get(place)?;
        let (theirs, known) = seen.partner()?;
        let entries = self.list(seen.key().target(), theirs);
        let is_meant = |seen: Seen| seen.key().target() == viewer;
        Some((theirs, find(entries, known, PARTNER_PLACES, is_meant)))
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

    /// Who sees a target without being seen by it through the same link, in place order.
    pub fn watchers(
        &self,
        target: u32,
    ) -> impl DoubleEndedIterator<Item = WatchedBy> + ExactSizeIterator + '_ {
        let watchers = self.watchers_of(target).iter();
        watchers.map(move |&watcher| self.watched_by(target, watcher))
    }

    /// The viewers of the same, without their places, which cost an access each.
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
        Some(self.watched_by(target, *watcher))
    }

    /// Whether a viewer sees a target in one of its lists. Looks at the shorter of that list and the
    /// watchers.
    #[must_use]
    pub fn contains(&self, viewer: u32, list: usize, target: u32) -> bool {
        if self.partners_len(target) > 0 || self.list_len(viewer, list) <= self.watchers_len(target)
        {
            self.keys(viewer, list).any(|key| key.target() == target)
        } else {
            let word = viewer << 2 | list as u32;
            let mut watchers = self.watchers_of(target).iter();
            watchers.any(|watcher| watcher.word() == word)
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
        let head = self.lists.get(viewer as usize)?[list];
        if head.run.is_empty() {
            return None;
        }
        if head.low & COUNT_MASK > 0 {
            return Some((head.low >> 24) as u8);
        }
        let lowest = class_of(self.lowest_rank(viewer, list)?);
        let keys = self.keys(viewer, list);
        let count = keys.filter(|key| class_of(key.rank()) == lowest).count();
        self.lists[viewer as usize][list].low = u32::from(lowest) << 24 | count as u32;
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

    /// Reads what removing the links at these places of a viewer's list will touch, so that the processor
    /// fetches it all at once rather than link by link. Does nothing while all links fit into the nearer
    /// caches anyway.
    pub fn fetch_seen(&self, viewer: u32, list: usize, places: &[u32]) {
        if self.len < FETCH_LINKS_MIN {
            return;
        }
        let entries = self.list(viewer, list);
        let touch = |place: &u32| self.touch_twin(entries[*place as usize]);
        std::hint::black_box(places.iter().map(touch).fold(0, u32::wrapping_add));
        let touch = |place: &u32| {
            let seen = entries[*place as usize];
            if seen.partner().is_some() {
                return self.touch_last(seen);
            }
            let watchers = self.watchers_of(seen.key().target());
            watchers.last().map_or(0, |moved| {
                let entries = self.list(moved.viewer(), moved.list());
                let at = entries.get(usize::from(moved.place));
                at.map_or(0, |seen| seen.twin.into())
            })
        };
        std::hint::black_box(places.iter().map(touch).fold(0, u32::wrapping_add));
    }

    /// The same for the links at these places of a target's watchers.
    pub fn fetch_watchers(&self, target: u32, places: &[u32]) {
        if self.len < FETCH_LINKS_MIN {
            return;
        }
        let watchers = self.watchers_of(target);
        let touch = |place: &u32| {
            let watcher = watchers[*place as usize];
            let entries = self.list(watcher.viewer(), watcher.list());
            let word = |seen: Option<&Seen>| seen.map_or(0, |seen| seen.twin.into());
            word(entries.get(usize::from(watcher.place))) ^ word(entries.last())
        };
        std::hint::black_box(places.iter().map(touch).fold(0_u32, u32::wrapping_add));
        let touch = |place: &u32| {
            let watcher = watchers[*place as usize];
            let entries = self.list(watcher.viewer(), watcher.list());
            entries.last().map_or(0, |&last| self.touch_twin(last))
        };
        std::hint::black_box(places.iter().map(touch).fold(0, u32::wrapping_add));
    }

    /// Reads the other end of a link.
    fn touch_twin(&self, seen: Seen) -> u32 {
        let target = seen.key().target();
        if let Some((theirs, known)) = seen.partner() {
            let entries = self.list(target, theirs);
            let word = |seen: Option<&Seen>| seen.map_or(0, |seen| seen.twin.into());
            return word(entries.get(known)) ^ word(entries.last());
        }
        let watchers = self.watchers_of(target);
        let word = |watcher: Option<&Watcher>| watcher.map_or(0, |watcher| watcher.place.into());
        word(watchers.get(usize::from(seen.twin))) ^ word(watchers.last())
    }

    /// Reads the other end of the link that will move when one end of a mutual pair is removed.
    fn touch_last(&self, seen: Seen) -> u32 {
        let (theirs, _) = seen.partner().unwrap_or_default();
        let last = self.list(seen.key().target(), theirs).last();
        last.map_or(0, |&last| self.touch_twin(last))
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
        if Slab::<Watcher>::is_full(self.watchers[target as usize]) {
            self.enlarge_watchers(target);
        }
        let watchers = &mut self.watchers[target as usize];
        let twin = watcher_twin(watchers.len());
        let head = &self.lists[viewer as usize][list];
        let watcher = Watcher::new(viewer, list, head.run.len());
        self.watcher_entries.push(watchers, watcher);
        let place = self.push_seen(viewer, list, Seen::new(key, twin));
        self.len += 1;
        place + 1
    }

    /// Links a mutual pair: `b` will stand in this list of `a`, and `a` in that of `b`. The caller knows that
    /// neither sees the other yet.
    pub fn add_pair(&mut self, rank: u8, (a, in_a): (u32, usize), (b, in_b): (u32, usize)) {
        debug_assert!(!self.contains(a, in_a, b) && !self.contains(b, in_b, a));
        let twin = mutual_twin(in_b, self.list_len(b, in_b));
        let place = self.push_seen(a, in_a, Seen::new(LinkKey::new(rank, b), twin));
        let twin = mutual_twin(in_a, place);
        self.push_seen(b, in_b, Seen::new(LinkKey::new(rank, a), twin));
        self.partners[a as usize] += 1;
        self.partners[b as usize] += 1;
        self.len += 2;
    }

    /// Removes the link at a place of a viewer's list and returns its key and whether it was a mutual pair's:
    /// then both links are gone. Last entries move to the free places. `None` past the list's end.
    pub fn remove(&mut self, viewer: u32, list: usize, place: usize) -> Option<(LinkKey, bool)> {
        if place >= self.list_len(viewer, list) {
            return None;
        }
        let seen = self.remove_entry(viewer, list, place);
        let target = seen.key().target();
        self.len -= 1;
        if let Some((theirs, known)) = seen.partner() {
            let entries = self.list(target, theirs);
            let is_meant = |seen: Seen| seen.key().target() == viewer;
            let place = find(entries, known, PARTNER_PLACES, is_meant);
            self.remove_entry(target, theirs, place);
            self.partners[viewer as usize] -= 1;
            self.partners[target as usize] -= 1;
            self.len -= 1;
            return Some((seen.key(), true));
        }
        let word = viewer << 2 | list as u32;
        let run = &mut self.watchers[target as usize];
        let entries = self.watcher_entries.list(*run);
        let known = usize::from(seen.twin);
        let place = find(entries, known, WATCHER_PLACES, |other| other.word() == word);
        self.watcher_entries.swap_remove(run, place);
        if let Some(&moved) = self.watcher_entries.list(*run).get(place) {
            let head = self.lists[moved.viewer() as usize][moved.list()];
            let entries = self.seen_entries.list_mut(head.run);
            let is_meant = |seen: Seen| seen.key().target() == target;
            let at = find(entries, usize::from(moved.place), LIST_PLACES, is_meant);
            entries[at].twin = watcher_twin(place);
        }
        Some((seen.key(), false))
    }

    /// Takes an entry out of a list and tells the other end of the one that moves to its place.
    fn remove_entry(&mut self, viewer: u32, list: usize, place: usize) -> Seen {
        let head = &mut self.lists[viewer as usize][list];
        let removed = self.seen_entries.swap_remove(&mut head.run, place);
        head.note_removed(removed.key().rank());
        if let Some(&moved) = self.seen_entries.list(head.run).get(place) {
            let target = moved.key().target();
            if let Some((theirs, known)) = moved.partner() {
                let head = self.lists[target as usize][theirs];
                let entries = self.seen_entries.list_mut(head.run);
                let is_meant = |seen: Seen| seen.key().target() == viewer;
                let at = find(entries, known, PARTNER_PLACES, is_meant);
                entries[at].twin = mutual_twin(list, place);
            } else {
                let word = viewer << 2 | list as u32;
                let run = self.watchers[target as usize];
                let entries = self.watcher_entries.list_mut(run);
                let known = usize::from(moved.twin);
                let at = find(entries, known, WATCHER_PLACES, |other| other.word() == word);
                entries[at].place = place as u16;
            }
        }
        removed
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
        let head = &mut self.lists[viewer as usize][list];
        let seen = &mut self.seen_entries.list_mut(head.run)[place];
        let before = seen.key();
        *seen = Seen::new(LinkKey::new(rank, before.target()), seen.twin);
        if class_of(before.rank()) != class_of(rank) {
            // Rare enough to count anew.
            head.low = 0;
        }
    }

    /// The bytes that all lists hold, slack included.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        let heads = self.lists.capacity() * size_of::<[List; LISTS]>()
            + self.watchers.capacity() * (size_of::<Run>() + size_of::<u32>());
        self.seen_entries.allocated_bytes() + self.watcher_entries.allocated_bytes() + heads
    }

    /// Checks that the two ends of every link know each other. O(links).
    ///
    /// # Errors
    /// Says which link is broken.
    pub fn validate(&self) -> Result<(), String> {
        let (mut seen_count, mut mutual_count) = (0, 0);
        for viewer in 0..self.lists.len() as u32 {
            let mut partners = 0;
            for list in 0..LISTS {
                let entries = self.list(viewer, list);
                seen_count += entries.len();
                for (place, seen) in entries.iter().enumerate() {
                    let (target, mut known) = (seen.key().target(), false);
                    if let Some((theirs, low)) = seen.partner() {
                        partners += 1;
                        let others = self.list(target, theirs).iter();
                        for twin in others.skip(low).step_by(PARTNER_PLACES) {
                            known |= twin.key() == LinkKey::new(seen.key().rank(), viewer)
                                && twin.twin == mutual_twin(list, place);
                        }
                    } else {
                        let watchers = self.watchers_of(target).iter();
                        for twin in watchers.skip(seen.twin.into()).step_by(WATCHER_PLACES) {
                            known |= twin.viewer() == viewer
                                && twin.list() == list
                                && twin.place == place as u16;
                        }
                    }
                    if !known {
                        return Err(format!("the other end of {viewer} → {target} is lost"));
                    }
                }
                let low = self.lists[viewer as usize][list].low;
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
    fn list(&self, viewer: u32, list: usize) -> &[Seen] {
        let lists = self.lists.get(viewer as usize);
        lists.map_or(&[], |lists| self.seen_entries.list(lists[list].run))
    }

    #[inline]
    fn watchers_of(&self, target: u32) -> &[Watcher] {
        let run = self.watchers.get(target as usize);
        run.map_or(&[], |&run| self.watcher_entries.list(run))
    }

    fn watched_by(&self, target: u32, watcher: Watcher) -> WatchedBy {
        let (viewer, list) = (watcher.viewer(), watcher.list());
        let is_meant = |seen: Seen| seen.key().target() == target;
        let known = usize::from(watcher.place);
        WatchedBy {
            viewer,
            list,
            place: find(self.list(viewer, list), known, LIST_PLACES, is_meant),
        }
    }

    #[inline]
    fn push_seen(&mut self, viewer: u32, list: usize, seen: Seen) -> usize {
        if Slab::<Seen>::is_full(self.lists[viewer as usize][list].run) {
            self.enlarge_list(viewer, list);
        }
        let head = &mut self.lists[viewer as usize][list];
        let place = self.seen_entries.push(&mut head.run, seen);
        head.note_added(seen.key().rank());
        place
    }

    #[cold]
    fn enlarge_list(&mut self, viewer: u32, list: usize) {
        let run = &mut self.lists[viewer as usize][list].run;
        if !self.seen_entries.reserve(run) {
            let lists = self.lists.iter_mut().flatten();
            self.seen_entries.compact(lists.map(|list| &mut list.run));
            self.enlarge_list(viewer, list);
        }
    }

    #[cold]
    fn enlarge_watchers(&mut self, target: u32) {
        let run = &mut self.watchers[target as usize];
        if !self.watcher_entries.reserve(run) {
            self.watcher_entries.compact(self.watchers.iter_mut());
            self.enlarge_watchers(target);
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
    fn unknown_ids_see_nobody() {
        let mut links = ViewLinks::default();
        assert_eq!(links.list_len(5, 0), 0);
        assert!(!links.contains(5, 0, 6));
        assert_eq!(links.remove(5, 0, 0), None);
        assert!(!links.set_rank(5, 0, 0, 1));
    }

    proptest! {
        #[test]
        fn both_ends_follow_a_plain_set_of_pairs(
            ops in prop::collection::vec((0u32..6, 0usize..LISTS, 0u32..6, 0u8..4, 0usize..4), 0..120),
        ) {
            let mut links = ViewLinks::default();
            links.grow(6);
            let mut model: BTreeMap<(u32, usize, u32), u8> = BTreeMap::new();
            for (viewer, list, target, class, what) in ops {
                let place = links.keys(viewer, list).position(|key| key.target() == target);
                match (what, place) {
                    (0, None) => {
                        links.add(viewer, list, LinkKey::new(class, target));
                        model.insert((viewer, list, target), class);
                    }
                    (3, None) if viewer != target && !links.contains(target, list, viewer) => {
                        links.add_pair(class, (viewer, list), (target, list));
                        model.insert((viewer, list, target), class);
                        model.insert((target, list, viewer), class);
                    }
                    (1, Some(place)) => {
                        prop_assert!(links.set_rank(viewer, list, place, class));
                        model.insert((viewer, list, target), class);
                        if links.partner_at(viewer, list, place).is_some() {
                            model.insert((target, list, viewer), class);
                        }
                    }
                    (2, Some(place)) => {
                        let removed = links.remove(viewer, list, place);
                        let class = model.remove(&(viewer, list, target));
                        prop_assert_eq!(removed.map(|(key, _)| key.rank()), class);
                        if removed.is_some_and(|(_, mutual)| mutual) {
                            prop_assert_eq!(model.remove(&(target, list, viewer)), class);
                        }
                    }
                    _ => {}
                }
                prop_assert_eq!(links.validate(), Ok(()));
                prop_assert_eq!(links.len(), model.len());
                for viewer in 0..6 {
                    for list in 0..LISTS {
                        for target in 0..6 {
                            let linked = model.contains_key(&(viewer, list, target));
                            prop_assert_eq!(links.contains(viewer, list, target), linked);
                        }
                        for key in links.keys(viewer, list) {
                            prop_assert_eq!(model.get(&(viewer, list, key.target())), Some(&key.rank()));
                        }
                    }
                }
            }
        }
    }
}
