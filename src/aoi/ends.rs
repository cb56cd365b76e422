//! The two ends of a link, six bytes each.
//!
//! Each end remembers the lowest bits of the place of the other one. In a list no longer than those bits can
//! tell apart, which is nearly every list, that is the place; in a longer one the few places with the same
//! bits are tried in turn.

/// Ids must lie below this, so that an id and a class fit in a key.
pub const IDS_MAX: u32 = 1 << 24;

/// A pair as its viewer ranks it: of two keys the larger is served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkKey(u32);

impl LinkKey {
    /// The key of a target of this rank; the id must lie below [`IDS_MAX`].
    #[must_use]
    #[inline]
    pub const fn new(rank: u8, target: u32) -> Self {
        debug_assert!(target < IDS_MAX);
        Self((rank as u32) << 24 | (IDS_MAX - 1 - target))
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
        !self.0 & (IDS_MAX - 1)
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

/// A viewer's end of a link. Packed, so that the key is one read and entries need no padding.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(2))]
pub(super) struct Seen {
    key: LinkKey,
    /// The lowest bits of the place of the other end in the target's watchers; of a mutual pair [`MUTUAL`],
    /// the target's list, and the lowest bits of the place in it.
    pub(super) twin: u16,
}

/// The other end is an entry in one of the target's own lists.
const MUTUAL: u16 = 1 << 15;
/// Where the list's number stands in the twin of a mutual pair.
const LIST_SHIFT: u32 = 13;

/// After how many places the remembered bits repeat: of a place among watchers,
pub(super) const WATCHER_PLACES: usize = 1 << 15;
/// of one in the list of a partner,
pub(super) const PARTNER_PLACES: usize = 1 << LIST_SHIFT;
/// and of one that a watcher remembers.
pub(super) const LIST_PLACES: usize = 1 << 16;

impl Seen {
    #[inline]
    pub(super) const fn new(key: LinkKey, twin: u16) -> Self {
        Self { key, twin }
    }

    #[inline]
    pub(super) const fn key(self) -> LinkKey {
        self.key
    }

    /// The target's list and what is known of the place in it, of a mutual pair.
    #[inline]
    pub(super) const fn partner(self) -> Option<(usize, usize)> {
        let twin = self.twin as usize;
        if self.twin & MUTUAL == 0 {
            return None;
        }
        Some((twin >> LIST_SHIFT & 3, twin % PARTNER_PLACES))
    }
}

#[inline]
pub(super) const fn watcher_twin(place: usize) -> u16 {
    (place % WATCHER_PLACES) as u16
}

#[inline]
pub(super) const fn mutual_twin(list: usize, place: usize) -> u16 {
    MUTUAL | (list as u16) << LIST_SHIFT | (place % PARTNER_PLACES) as u16
}

/// A target's end of a link.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(2))]
pub(super) struct Watcher {
    /// The viewer's id, shifted left by two, and which of its lists.
    word: u32,
    /// The lowest bits of the place of the other end in that list.
    pub(super) place: u16,
}

impl Watcher {
    #[inline]
    pub(super) const fn new(viewer: u32, list: usize, place: usize) -> Self {
        Self {
            word: viewer << 2 | list as u32,
            place: place as u16,
        }
    }

    #[inline]
    pub(super) const fn word(self) -> u32 {
        self.word
    }

    #[inline]
    pub(super) const fn viewer(self) -> u32 {
        self.word >> 2
    }

    #[inline]
    pub(super) const fn list(self) -> usize {
        (self.word & 3) as usize
    }
}

const _: () = assert!(size_of::<Seen>() + size_of::<Watcher>() == 12);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_by_rank_then_by_the_smaller_id() {
        let served = [(3, 9), (1, 0), (1, 7), (0, 2), (0, IDS_MAX - 1)];
        let keys = served.map(|(class, target)| LinkKey::new(class, target));
        assert!(keys.is_sorted_by(|a, b| a > b));
        assert_eq!(keys.map(|key| (key.rank(), key.target())), served);
    }
}
