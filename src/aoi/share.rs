//! Which of a scene's viewers belong together.
//!
//! ```text
//! id   … 0 1 0 1 1 │ 0 1 0      the low bits say whose it is, the others its place there
//! ```
//! Invariant: of all shares of one division, an id belongs to exactly one, and `id(place(id)) == id` there.

/// One of a power of two of equal shares of all ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    index: u32,
    bits: u32,
}

impl Share {
    /// The shares of a division into `count`, rounded up to a power of two.
    pub fn all(count: usize) -> impl Iterator<Item = Self> {
        let bits = count.max(1).next_power_of_two().ilog2();
        (0..1 << bits).map(move |index| Self { index, bits })
    }

    /// Which share of a division into so many an id belongs to.
    #[must_use]
    #[inline]
    pub const fn index_of(id: u32, count: usize) -> usize {
        id as usize & (count - 1)
    }

    /// Whether an id belongs to it.
    #[must_use]
    #[inline]
    pub const fn owns(self, id: u32) -> bool {
        id & ((1 << self.bits) - 1) == self.index
    }

    /// The place of one of its ids.
    #[must_use]
    #[inline]
    pub const fn place(self, id: u32) -> usize {
        debug_assert!(self.owns(id), "an id of another share");
        (id >> self.bits) as usize
    }

    /// The id at a place.
    #[must_use]
    #[inline]
    pub const fn id(self, place: usize) -> u32 {
        (place as u32) << self.bits | self.index
    }

    /// How many places the ids below `ids` need.
    #[must_use]
    pub const fn len_of(self, ids: usize) -> usize {
        ids.div_ceil(1 << self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_has_one_place_in_one_share() {
        for count in [1, 2, 3, 8] {
            let shares: Vec<Share> = Share::all(count).collect();
            assert_eq!(shares.len(), count.next_power_of_two());
            for id in 0..100 {
                let owner = shares[Share::index_of(id, shares.len())];
                assert_eq!(owner.id(owner.place(id)), id);
                assert!(owner.place(id) < owner.len_of(id as usize + 1));
                assert_eq!(shares.iter().filter(|share| share.owns(id)).count(), 1);
            }
        }
    }
}
