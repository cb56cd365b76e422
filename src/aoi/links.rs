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
//! smallest key.
//!
//! Invariant: link ⇔ an entry at each end, and each entry knows the other's place.
//! Cost: add and remove are O(1); 16 bytes a link, 8 each of a mutual pair's two (plus the slack of growing
//! arrays), 120 bytes an object; [`contains`](ViewLinks::contains) looks through one list, at most the
//! viewer's cap. A bit for each pair of ids would answer in O(1) but take objects²/8 bytes (0.5 MB at 2,048
//! objects, 312 MB at 50,000); sweeps mark ids instead and need neither, so there is no size at which this
//! changes over.

use crate::world::kinds::KindClass;

/// The lists a viewer has: one for each [`KindClass`], and [`UNCAPPED`].
pub const LISTS: usize = 4;

/// The list of those that lie outside caps (`Visibility::Far`, `Visibility::Scene`).
pub const UNCAPPED: usize = 3;

const _: () = assert!(KindClass::ALL.len() == UNCAPPED && UNCAPPED < LISTS);

/// Ids must lie below this, so that an id and a class fit in a key.
pub const IDS_MAX: u32 = 1 << 24;

/// From how many links on what is removed is fetched before: 2 MB.
const FETCH_LINKS_MIN: usize = 1 << 17;

/// A pair as its viewer ranks it: of two keys the larger is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkKey(u32);

impl LinkKey {
    /// The key of a target of this rank; the id must lie below [`IDS_MAX`].
    #[must_use]
    pub fn new(rank: u8, target: u32) -> Self {
        debug_assert!(target < IDS_MAX);
        Self(u32::from(rank) << 24 | (IDS_MAX - 1 - target))
    }

    /// The pair's rank; a higher one wins.
    #[must_use]
    pub const fn rank(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// The id of the one that is seen.
    #[must_use]
    pub const fn target(self) -> u32 {
        IDS_MAX - 1 - (self.0 & (IDS_MAX - 1))
    }

    /// The key of these [`bits`](Self::bits).
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The whole key as a number, for state hashes.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// A viewer's end of a link.
#[derive(Clone, Copy, Debug)]
struct Seen {
    key: LinkKey,
    /// The place of the other end in the target's watchers; of a mutual pair [`MUTUAL`], the target's list,
    /// and the place in it.
    twin: u32,
}

/// The other end is an entry in one of the target's own lists.
const MUTUAL: u32 = 1 << 31;
/// Where the list's number stands in the twin of a mutual pair.
const LIST_SHIFT: u32 = 29;

impl Seen {
    /// The target's list and the place in it, of a mutual pair.
    const fn partner(self) -> Option<(usize, u32)> {
        if self.twin & MUTUAL == 0 {
            return None;
        }
        let list = self.twin >> LIST_SHIFT & 3;
        Some((list as usize, self.twin & ((1 << LIST_SHIFT) - 1)))
    }
}

const fn mutual_twin(list: usize, place: u32) -> u32 {
    MUTUAL | (list as u32) << LIST_SHIFT | place
}

/// A target's end of a link.
#[derive(Clone, Copy, Debug)]
struct Watcher {
    /// The viewer's id, shifted left by two, and which of its lists.
    viewer_list: u32,
    /// The place of the other end in that list.
    place: u32,
}

impl Watcher {
    const fn new(viewer: u32, list: usize, place: u32) -> Self {
        Self {
            viewer_list: viewer << 2 | list as u32,
            place,
        }
    }

    const fn viewer(self) -> u32 {
        self.viewer_list >> 2
    }

    const fn list(self) -> usize {
        (self.viewer_list & 3) as usize
    }
}

const _: () = assert!(size_of::<Seen>() + size_of::<Watcher>() == 16);

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
    lists: Vec<[Vec<Seen>; LISTS]>,
    watchers: Vec<Vec<Watcher>>,
    /// How many mutual pairs each object is in.
    partners: Vec<u32>,
    len: usize,
}

impl ViewLinks {
    /// Makes room for the ids below `ids`.
    pub fn grow(&mut self, ids: usize) {
        if ids > self.lists.len() {
            self.lists.resize_with(ids, Default::default);
            self.watchers.resize_with(ids, Vec::new);
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
    pub fn list_len(&self, viewer: u32, list: usize) -> usize {
        self.list(viewer, list).len()
    }

    /// How many see a target, mutual pairs apart.
    #[must_use]
    pub fn watchers_len(&self, target: u32) -> usize {
        self.watchers.get(target as usize).map_or(0, Vec::len)
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
            .map(|seen| seen.key.target())
    }

    /// The place of the other end of the link at a place of a viewer's list, if it is a mutual pair's: the
    /// target's list, and the place in it.
    #[must_use]
    pub fn partner_at(&self, viewer: u32, list: usize, place: usize) -> Option<(usize, usize)> {
        let (list, place) = self.list(viewer, list).get(place)?.partner()?;
        Some((list, place as usize))
    }

    /// The keys of one of a viewer's lists, in place order.
    pub fn keys(
        &self,
        viewer: u32,
        list: usize,
    ) -> impl DoubleEndedIterator<Item = LinkKey> + ExactSizeIterator + '_ {
        self.list(viewer, list).iter().map(|seen| seen.key)
    }

    /// The key at a place of a viewer's list; `None` past its end.
    #[must_use]
    pub fn key_at(&self, viewer: u32, list: usize, place: usize) -> Option<LinkKey> {
        self.list(viewer, list).get(place).map(|seen| seen.key)
    }

    /// Who sees a target without being seen by it through the same link, in place order.
    pub fn watchers(
        &self,
        target: u32,
    ) -> impl DoubleEndedIterator<Item = WatchedBy> + ExactSizeIterator + '_ {
        let watchers = self
            .watchers
            .get(target as usize)
            .map_or(&[][..], Vec::as_slice);
        watchers.iter().map(|&watcher| watcher.into())
    }

    /// The watcher at a place; `None` past the end.
    #[must_use]
    pub fn watcher_at(&self, target: u32, place: usize) -> Option<WatchedBy> {
        self.watchers
            .get(target as usize)?
            .get(place)
            .map(|&watcher| watcher.into())
    }

    /// Whether a viewer sees a target in one of its lists. Looks at the shorter of that list and the
    /// watchers.
    #[must_use]
    pub fn contains(&self, viewer: u32, list: usize, target: u32) -> bool {
        if self.partners_len(target) > 0 || self.list_len(viewer, list) <= self.watchers_len(target)
        {
            self.keys(viewer, list).any(|key| key.target() == target)
        } else {
            self.watchers(target)
                .any(|watcher| watcher.viewer == viewer && watcher.list == list)
        }
    }

    /// The place and the key of the one to evict first: the lowest rank, and of these the largest id.
    /// O(list).
    #[must_use]
    pub fn lowest(&self, viewer: u32, list: usize) -> Option<(usize, LinkKey)> {
        let seen = self.list(viewer, list);
        let lowest = seen.iter().map(|seen| seen.key).min()?;
        let place = seen.iter().position(|seen| seen.key == lowest)?;
        Some((place, lowest))
    }

    /// The lowest rank in a list; `None` when it is empty. O(list), cheaper than [`lowest`](Self::lowest).
    #[must_use]
    pub fn lowest_rank(&self, viewer: u32, list: usize) -> Option<u8> {
        self.list(viewer, list)
            .iter()
            .map(|seen| seen.key)
            .min()
            .map(LinkKey::rank)
    }

    /// Links a pair. The caller knows that it is not linked yet and has called [`grow`](Self::grow) for both
    /// ids.
    pub fn add(&mut self, viewer: u32, list: usize, key: LinkKey) {
        let target = key.target();
        debug_assert!(
            !self.contains(viewer, list, target),
            "{viewer} sees {target} already"
        );
        let seen = &mut self.lists[viewer as usize][list];
        let watchers = &mut self.watchers[target as usize];
        let place = seen.len() as u32;
        seen.push(Seen {
            key,
            twin: watchers.len() as u32,
        });
        watchers.push(Watcher::new(viewer, list, place));
        self.len += 1;
    }

    /// Links a mutual pair: `b` stands in `list_of_b` of `a`, and `a` in `list_of_a` of `b`. The caller knows
    /// that neither sees the other yet.
    pub fn add_pair(
        &mut self,
        rank: u8,
        (a, list_of_a): (u32, usize),
        (b, list_of_b): (u32, usize),
    ) {
        debug_assert!(!self.contains(a, list_of_b, b) && !self.contains(b, list_of_a, a));
        let places = [
            self.lists[a as usize][list_of_b].len() as u32,
            self.lists[b as usize][list_of_a].len() as u32,
        ];
        self.lists[a as usize][list_of_b].push(Seen {
            key: LinkKey::new(rank, b),
            twin: mutual_twin(list_of_a, places[1]),
        });
        self.lists[b as usize][list_of_a].push(Seen {
            key: LinkKey::new(rank, a),
            twin: mutual_twin(list_of_b, places[0]),
        });
        self.partners[a as usize] += 1;
        self.partners[b as usize] += 1;
        self.len += 2;
    }

    /// Reads what removing these links will touch, so that the processor fetches it all at once rather than
    /// link by link. Does nothing while all links fit into the nearer caches anyway.
    pub fn fetch(&self, links: &[WatchedBy]) {
        if self.len < FETCH_LINKS_MIN {
            return;
        }
        let read = |link: &WatchedBy| {
            let list = self.list(link.viewer, link.list);
            let word = |seen: Option<&Seen>| seen.map_or(0, |seen| seen.twin);
            word(list.get(link.place)) ^ word(list.last())
        };
        std::hint::black_box(links.iter().map(read).fold(0, u32::wrapping_add));
        let read = |link: &WatchedBy| {
            let list = self.list(link.viewer, link.list);
            [list.get(link.place), list.last()]
                .into_iter()
                .flatten()
                .filter(|seen| seen.twin & MUTUAL == 0)
                .map(|seen| {
                    let watchers = &self.watchers[seen.key.target() as usize];
                    let twin = watchers.get(seen.twin as usize);
                    twin.map_or(0, |twin| twin.place) ^ watchers.last().map_or(0, |last| last.place)
                })
                .fold(0, u32::wrapping_add)
        };
        std::hint::black_box(links.iter().map(read).fold(0, u32::wrapping_add));
    }

    /// Removes the link at a place of a viewer's list and returns its key and whether it was a mutual pair's:
    /// then both links are gone. Last entries move to the free places. `None` past the list's end.
    pub fn remove(&mut self, viewer: u32, list: usize, place: usize) -> Option<(LinkKey, bool)> {
        let Seen { key, twin } = self.remove_entry(viewer, list, place)?;
        let target = key.target();
        self.len -= 1;
        if let Some((list, place)) = (Seen { key, twin }).partner() {
            self.remove_entry(target, list, place as usize);
            self.partners[viewer as usize] -= 1;
            self.partners[target as usize] -= 1;
            self.len -= 1;
            return Some((key, true));
        }
        let watchers = &mut self.watchers[target as usize];
        watchers.swap_remove(twin as usize);
        if let Some(&moved) = watchers.get(twin as usize) {
            self.lists[moved.viewer() as usize][moved.list()][moved.place as usize].twin = twin;
        }
        Some((key, false))
    }

    /// Takes an entry out of a list and tells the one that moves to its place.
    fn remove_entry(&mut self, viewer: u32, list: usize, place: usize) -> Option<Seen> {
        let seen = self.lists.get_mut(viewer as usize)?.get_mut(list)?;
        if place >= seen.len() {
            return None;
        }
        let removed = seen.swap_remove(place);
        if let Some(&moved) = seen.get(place) {
            let target = moved.key.target() as usize;
            match moved.partner() {
                Some((theirs, at)) => {
                    self.lists[target][theirs][at as usize].twin = mutual_twin(list, place as u32);
                }
                None => self.watchers[target][moved.twin as usize].place = place as u32,
            }
        }
        Some(removed)
    }

    /// Changes the rank of the link at a place, of a mutual pair at both ends; false past the list's end.
    pub fn set_rank(&mut self, viewer: u32, list: usize, place: usize, rank: u8) -> bool {
        let seen = self
            .lists
            .get_mut(viewer as usize)
            .and_then(|lists| lists.get_mut(list)?.get_mut(place));
        let Some(seen) = seen else {
            return false;
        };
        let target = seen.key.target();
        seen.key = LinkKey::new(rank, target);
        if let Some((list, place)) = seen.partner() {
            self.lists[target as usize][list][place as usize].key = LinkKey::new(rank, viewer);
        }
        true
    }

    /// The bytes that all lists hold, slack included.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        let lists: usize = self
            .lists
            .iter()
            .flatten()
            .map(|list| list.capacity() * size_of::<Seen>())
            .sum();
        let watchers: usize = self
            .watchers
            .iter()
            .map(|list| list.capacity() * size_of::<Watcher>())
            .sum();
        let heads = self.lists.capacity() * size_of::<[Vec<Seen>; LISTS]>()
            + self.watchers.capacity() * (size_of::<Vec<Watcher>>() + size_of::<u32>());
        lists + watchers + heads
    }

    /// Checks that the two ends of every link know each other. O(links).
    ///
    /// # Errors
    /// Says which link is broken.
    pub fn validate(&self) -> Result<(), String> {
        let (mut seen_count, mut mutual_count) = (0, 0);
        for (viewer, lists) in self.lists.iter().enumerate() {
            let viewer = viewer as u32;
            let mut partners = 0;
            for (list, seen) in lists.iter().enumerate() {
                seen_count += seen.len();
                for (place, seen) in seen.iter().enumerate() {
                    let target = seen.key.target();
                    let known = if let Some((theirs, at)) = seen.partner() {
                        partners += 1;
                        let twin = self.list(target, theirs).get(at as usize);
                        twin.is_some_and(|twin| {
                            twin.key == LinkKey::new(seen.key.rank(), viewer)
                                && twin.partner() == Some((list, place as u32))
                        })
                    } else {
                        let here = WatchedBy {
                            viewer,
                            list,
                            place,
                        };
                        self.watcher_at(target, seen.twin as usize) == Some(here)
                    };
                    if !known {
                        return Err(format!("the other end of {viewer} → {target} is lost"));
                    }
                }
            }
            if partners != self.partners_len(viewer) {
                return Err(format!(
                    "{viewer} is in {partners} pairs, counted otherwise"
                ));
            }
            mutual_count += partners;
        }
        let watcher_count: usize = self.watchers.iter().map(Vec::len).sum();
        if seen_count != watcher_count + mutual_count || seen_count != self.len {
            return Err(format!(
                "{} links counted, {seen_count} seen, {watcher_count} watchers, {mutual_count} mutual",
                self.len
            ));
        }
        Ok(())
    }

    fn list(&self, viewer: u32, list: usize) -> &[Seen] {
        self.lists
            .get(viewer as usize)
            .and_then(|lists| lists.get(list))
            .map_or(&[], Vec::as_slice)
    }
}

impl From<Watcher> for WatchedBy {
    fn from(watcher: Watcher) -> Self {
        Self {
            viewer: watcher.viewer(),
            list: watcher.list(),
            place: watcher.place as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_order_by_rank_then_by_the_smaller_id() {
        let served = [(3, 9), (1, 0), (1, 7), (0, 2), (0, IDS_MAX - 1)];
        let keys = served.map(|(class, target)| LinkKey::new(class, target));
        assert!(keys.is_sorted_by(|a, b| a > b));
        assert_eq!(keys.map(|key| (key.rank(), key.target())), served);
    }

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
