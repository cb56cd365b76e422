//! Sets of attributes, one bit each.

use super::masks::WORD_BITS;

/// The number of words of an [`AttributeSet`].
pub const ATTRIBUTE_WORDS: usize = 4;

/// The maximum number of attributes.
pub const ATTRIBUTES_MAX: usize = ATTRIBUTE_WORDS * WORD_BITS;

/// A set of attributes, one bit each.
pub type AttributeSet = [u64; ATTRIBUTE_WORDS];

/// Whether no attribute is in the set.
pub fn is_empty(set: &AttributeSet) -> bool {
    set.iter().all(|&word| word == 0)
}

/// The attributes that are in both sets.
pub fn intersection(a: AttributeSet, b: AttributeSet) -> AttributeSet {
    std::array::from_fn(|word| a[word] & b[word])
}
