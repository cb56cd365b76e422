//! Bit indices in words of 64.

/// The bit of an index in its word.
#[inline]
pub(crate) const fn bit(place: usize) -> u64 {
    1 << (place % 64)
}

/// The indices of the set bits of a word.
#[inline]
pub(crate) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (place < 64).then_some(place)
    })
}

/// The same from the highest down.
#[inline]
pub(crate) fn ones_down(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = word.checked_ilog2()? as usize;
        word &= !(1 << place);
        Some(place)
    })
}
