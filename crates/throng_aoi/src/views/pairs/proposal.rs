//! Possible links where both ends have to agree.

/// A possible link. Sorted, the highest rank comes first, then the lower ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MutualProposal(u64);

const ID_MASK: u64 = (1 << 24) - 1;
const PAIR: u64 = 1 << 48;

impl MutualProposal {
    /// A viewer would see a target that sees nothing.
    pub(crate) fn one_way(rank: u8, viewer: u32, target: u32) -> Self {
        Self(u64::from(!rank) << 49 | u64::from(viewer) << 24 | u64::from(target))
    }

    /// Two objects would see each other.
    pub(crate) fn pair(rank: u8, a: u32, b: u32) -> Self {
        Self(Self::one_way(rank, a.min(b), a.max(b)).0 | PAIR)
    }

    pub(crate) fn rank(self) -> u8 {
        !((self.0 >> 49) as u8)
    }

    pub(crate) fn ids(self) -> (u32, u32) {
        ((self.0 >> 24 & ID_MASK) as u32, (self.0 & ID_MASK) as u32)
    }

    /// Whether two objects would see each other.
    pub(crate) const fn is_pair(self) -> bool {
        self.0 & PAIR != 0
    }
}
