//! The state hash: 128 bits over all game state, the same on every run with the same seed and inputs.
//!
//! Every type with state adds it to a [`StateHasher`]. Parts with many objects hash each object separately and add the results
//! up, so that the order of storage does not matter.

/// 128 bits of state hash; [`fold`](Self::fold) is the displayed form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateHash(pub u128);

impl StateHash {
    /// The 64 bits that are printed and compared in files: the exclusive-or of both halves.
    #[must_use]
    pub const fn fold(self) -> u64 {
        (self.0 >> 64) as u64 ^ self.0 as u64
    }
}

/// Mixes words into 128 bits: two lanes of multiply-and-fold with different constants.
///
/// Not cryptographic. The result is the same on every platform; it is only compared, and stored only as a hash.
#[derive(Clone, Copy, Debug)]
pub struct StateHasher {
    low: u64,
    high: u64,
}

impl Default for StateHasher {
    fn default() -> Self {
        Self {
            low: 0x243f_6a88_85a3_08d3,
            high: 0x1319_8a2e_0370_7344,
        }
    }
}

impl StateHasher {
    /// Adds one word.
    #[inline]
    pub const fn write_u64(&mut self, word: u64) {
        self.low = folded_product(self.low ^ word, 0x9e37_79b9_7f4a_7c15);
        self.high = folded_product(self.high.rotate_left(23) ^ word, 0xd6e8_feb8_6659_fd93);
    }

    /// Adds a float by its bits, both zeros alike.
    #[inline]
    pub fn write_f32(&mut self, value: f32) {
        self.write_u64(u64::from((value + 0.0).to_bits()));
    }

    /// Adds bytes, their number first.
    pub fn write_bytes(&mut self, bytes: &[u8]) {
        self.write_u64(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    /// The hash of everything added so far.
    #[must_use]
    pub const fn finish(&self) -> u128 {
        // A last round each, so that the final word reaches every bit.
        let low = folded_product(self.low ^ self.high.rotate_left(32), 0xa076_1d64_78bd_642f);
        let high = folded_product(self.high ^ self.low.rotate_left(17), 0xe703_7ed1_a0b4_28db);
        (high as u128) << 64 | low as u128
    }

    /// [`finish`](Self::finish), folded to 64 bits.
    #[must_use]
    pub const fn finish_u64(&self) -> u64 {
        StateHash(self.finish()).fold()
    }
}

/// Combines the halves of the 128-bit product and the value by exclusive-or; never stuck at zero, since the factor is odd and large.
const fn folded_product(value: u64, factor: u64) -> u64 {
    let product = (value ^ 0x5851_f42d_4c95_7f2d) as u128 * factor as u128;
    (product >> 64) as u64 ^ (product as u64).rotate_left(11) ^ value
}

/// A value that can be part of the state hash.
pub trait StateHashed {
    /// Adds everything that a later tick may depend on. No address or time of day, and no `Entity` of an ECS.
    fn hash(&self, hasher: &mut StateHasher);
}

/// Implements [`StateHashed`] for a struct or enum: all fields in the order of their declaration, the variant's index first.
pub use throng_derive::StateHashed;

macro_rules! impl_hash_as_word {
    ($($number:ty),*) => {
        $(impl StateHashed for $number {
            #[inline]
            fn hash(&self, hasher: &mut StateHasher) {
                hasher.write_u64(*self as u64);
            }
        })*
    };
}
impl_hash_as_word!(u8, u16, u32, u64, usize, i8, i16, i32, i64, bool);

impl StateHashed for f32 {
    #[inline]
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_f32(*self);
    }
}

impl StateHashed for f64 {
    #[inline]
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64((self + 0.0).to_bits());
    }
}

impl StateHashed for glam::Vec2 {
    #[inline]
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_f32(self.x);
        hasher.write_f32(self.y);
    }
}

impl StateHashed for glam::IVec2 {
    #[inline]
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.x as u32) << 32 | u64::from(self.y as u32));
    }
}

impl StateHashed for str {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_bytes(self.as_bytes());
    }
}

impl StateHashed for String {
    fn hash(&self, hasher: &mut StateHasher) {
        self.as_str().hash(hasher);
    }
}

/// Its length, then each element.
impl<T: StateHashed> StateHashed for [T] {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.len() as u64);
        self.iter().for_each(|element| element.hash(hasher));
    }
}

impl<T: StateHashed> StateHashed for Vec<T> {
    fn hash(&self, hasher: &mut StateHasher) {
        self.as_slice().hash(hasher);
    }
}

impl<T: StateHashed> StateHashed for std::sync::Arc<[T]> {
    fn hash(&self, hasher: &mut StateHasher) {
        (**self).hash(hasher);
    }
}

/// Each element; the length is part of the type.
impl<T: StateHashed, const N: usize> StateHashed for [T; N] {
    fn hash(&self, hasher: &mut StateHasher) {
        self.iter().for_each(|element| element.hash(hasher));
    }
}

/// 0, or 1 and the value.
impl<T: StateHashed> StateHashed for Option<T> {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.is_some()));
        if let Some(value) = self {
            value.hash(hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(value: &impl StateHashed) -> u128 {
        let mut hasher = StateHasher::default();
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[derive(StateHashed)]
    struct Fighter<T> {
        health: u16,
        #[state(skip)]
        _is_shown: bool,
        #[state(with = hash_doubled)]
        rage: u32,
        weapons: T,
    }

    fn hash_doubled(value: &u32, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(*value) * 2);
    }

    #[derive(StateHashed)]
    enum Stance {
        Ready,
        Guarding { seconds: f32 },
        Struck(i8, bool),
    }

    #[test]
    fn derived_hash_equals_the_fields_in_order() {
        let fighter = Fighter {
            health: 7,
            _is_shown: true,
            rage: 4,
            weapons: vec![Some(1_u8), None],
        };
        let mut expected = StateHasher::default();
        for word in [7, 8, 2, 1, 1, 0] {
            expected.write_u64(word);
        }
        assert_eq!(hash_of(&fighter), expected.finish());
    }

    #[test]
    fn derived_hash_of_an_enum_begins_with_its_variant() {
        let mut expected = StateHasher::default();
        expected.write_u64(2);
        expected.write_u64(-3_i8 as u64);
        expected.write_u64(1);
        assert_eq!(hash_of(&Stance::Struck(-3, true)), expected.finish());
        let mut expected = StateHasher::default();
        expected.write_u64(1);
        expected.write_f32(0.5);
        assert_eq!(
            hash_of(&Stance::Guarding { seconds: 0.5 }),
            expected.finish()
        );
        assert_ne!(hash_of(&Stance::Ready), hash_of(&0_u64.to_string()));
    }
    use std::collections::BTreeSet;

    #[test]
    fn hash_depends_on_words_bytes_and_order() {
        let hash = |words: &[u64]| {
            let mut hasher = StateHasher::default();
            words.iter().for_each(|&word| hasher.write_u64(word));
            hasher.finish()
        };
        let inputs: [&[u64]; 7] = [
            &[],
            &[0],
            &[0, 0],
            &[1, 2],
            &[2, 1],
            &[u64::MAX],
            &[1 << 63],
        ];
        let hashes: BTreeSet<u128> = inputs.iter().map(|words| hash(words)).collect();
        assert_eq!(hashes.len(), inputs.len());
    }

    #[test]
    fn every_bit_of_a_float_counts_and_both_zeros_are_one() {
        let hash = |bits| {
            let mut hasher = StateHasher::default();
            hasher.write_f32(f32::from_bits(bits));
            hasher.finish()
        };
        for value in [0.15_f32, 1000.5, -3.0e-7] {
            let bits = value.to_bits();
            let hashes: BTreeSet<u128> = (0..32).map(|bit| hash(bits ^ 1 << bit)).collect();
            assert!(
                hashes.len() == 32 && !hashes.contains(&hash(bits)),
                "{value}"
            );
        }
        assert_eq!(hash(0.0_f32.to_bits()), hash((-0.0_f32).to_bits()));
    }

    #[test]
    fn one_flipped_bit_changes_about_half_of_the_hash() {
        let hash = |word| {
            let mut hasher = StateHasher::default();
            hasher.write_u64(word);
            hasher.write_u64(0);
            hasher.finish()
        };
        let flipped: u32 = (0..64)
            .map(|bit| (hash(5) ^ hash(5 ^ (1 << bit))).count_ones())
            .sum();
        assert!(
            (60..68).contains(&(flipped / 64)),
            "{} bits of 128 change on average",
            flipped / 64
        );
    }

    #[test]
    fn byte_strings_of_different_lengths_hash_differently() {
        let hash = |strings: &[&str]| {
            let mut hasher = StateHasher::default();
            strings.iter().for_each(|string| string.hash(&mut hasher));
            hasher.finish()
        };
        // The last chunk is padded with zeros, and an empty string has no chunk.
        assert_ne!(hash(&["a"]), hash(&["a\0"]));
        assert_ne!(hash(&["12345678"]), hash(&["12345678", ""]));
        assert_ne!(hash(&["12345678", "9"]), hash(&["123456789"]));
    }

    #[test]
    fn both_zeros_of_a_double_hash_equally() {
        assert_eq!(hash_of(&0.0_f64), hash_of(&-0.0_f64));
        assert_ne!(hash_of(&0.0_f64), hash_of(&f64::MIN_POSITIVE));
        assert_ne!(hash_of(&1.0_f64), hash_of(&-1.0_f64));
    }
}
