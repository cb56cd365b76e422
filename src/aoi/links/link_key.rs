//! The two ends of a link, four bytes each.

/// Ids must lie below this, so that an id, a class and how a link came about fit in four bytes.
pub const IDS_MAX: u32 = 1 << 23;

/// The bits of an id in a key; the highest of them is free, since ids lie below [`IDS_MAX`].
const ID_MASK: u32 = 2 * IDS_MAX - 1;

/// A pair as its viewer ranks it: of two keys the larger is served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkKey(u32);

impl LinkKey {
    /// The key of a target of this rank; the id must lie below [`IDS_MAX`].
    #[must_use]
    #[inline]
    pub const fn new(rank: u8, target: u32) -> Self {
        debug_assert!(target < IDS_MAX);
        Self((rank as u32) << 24 | (!target & ID_MASK))
    }

    /// The pair's rank; a higher one wins.
    #[must_use]
    #[inline]
    pub const fn rank(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// The id of the one that is seen.
    #[must_use]
    #[inline]
    pub const fn target(self) -> u32 {
        !self.0 & ID_MASK
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

/// A viewer's end of a link: its key, in which the free bit of the id is cleared if the pair is mutual.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenEntry(u32);

impl SeenEntry {
    #[inline]
    pub(super) const fn new(key: LinkKey, mutual: bool) -> Self {
        Self(key.0 & !if mutual { IDS_MAX } else { 0 })
    }

    #[inline]
    pub(super) const fn key(self) -> LinkKey {
        LinkKey(self.0 | IDS_MAX)
    }

    /// Whether the other end is an entry in one of the target's own lists.
    #[inline]
    pub(super) const fn is_mutual(self) -> bool {
        self.0 & IDS_MAX == 0
    }
}

/// A target's end of a link: the viewer's id, shifted left by two, and which of its lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WatcherEntry(u32);

impl WatcherEntry {
    #[inline]
    pub(super) const fn new(viewer: u32, list: usize) -> Self {
        Self(viewer << 2 | list as u32)
    }

    #[inline]
    pub(super) const fn viewer(self) -> u32 {
        self.0 >> 2
    }

    #[inline]
    pub(super) const fn list(self) -> usize {
        (self.0 & 3) as usize
    }
}

const _: () = assert!(size_of::<SeenEntry>() + size_of::<WatcherEntry>() == 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_by_rank_then_by_the_smaller_id() {
        let served = [(3, 9), (1, 0), (1, 7), (0, 2), (0, IDS_MAX - 1)];
        let keys = served.map(|(class, target)| LinkKey::new(class, target));
        assert!(keys.is_sorted_by(|a, b| a > b));
        assert_eq!(keys.map(|key| (key.rank(), key.target())), served);
        for mutual in [false, true] {
            let entries = keys.map(|key| SeenEntry::new(key, mutual));
            assert_eq!(entries.map(SeenEntry::key), keys);
            assert!(entries.iter().all(|seen| seen.is_mutual() == mutual));
        }
    }
}
