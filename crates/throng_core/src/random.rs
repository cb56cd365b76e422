//! Seeded randomness: one named stream per system, so that adding a system does not change the values of another.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::hash::{StateHashed, StateHasher};

/// The random streams of a simulation, all derived from one seed.
///
/// A stream is `Pcg64Mcg`, whose output is documented and the same on every platform and in every version.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "bevy", derive(bevy_ecs::prelude::Resource))]
pub struct RandomStreams {
    seed: u64,
    streams: BTreeMap<&'static str, Pcg64Mcg>,
}

impl RandomStreams {
    /// Streams derived from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            streams: BTreeMap::new(),
        }
    }

    /// The seed that all streams are derived from.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The stream of this name; its first value depends on the seed and the name alone. O(log streams).
    pub fn stream(&mut self, name: &'static str) -> &mut Pcg64Mcg {
        self.streams.entry(name).or_insert_with(|| {
            let mut hasher = StateHasher::default();
            hasher.write_u64(self.seed);
            hasher.write_bytes(name.as_bytes());
            Pcg64Mcg::seed_from_u64(hasher.finish_u64())
        })
    }
}

impl StateHashed for RandomStreams {
    /// Adds every stream's state, in the order of the names.
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.seed);
        for (name, stream) in &self.streams {
            hasher.write_bytes(name.as_bytes());
            // The state itself is private; the next values distinguish two states as well.
            let mut ahead = stream.clone();
            hasher.write_u64(ahead.next_u64());
            hasher.write_u64(ahead.next_u64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(streams: &mut RandomStreams, name: &'static str) -> u64 {
        streams.stream(name).next_u64()
    }

    #[test]
    fn streams_are_independent() {
        let (mut alone, mut beside) = (RandomStreams::new(7), RandomStreams::new(7));
        draw(&mut beside, "other");
        assert_eq!(draw(&mut alone, "crowd"), draw(&mut beside, "crowd"));
        draw(&mut beside, "other");
        assert_eq!(draw(&mut alone, "crowd"), draw(&mut beside, "crowd"));
    }

    #[test]
    fn streams_differ_by_seed_and_name() {
        let mut seven = RandomStreams::new(7);
        let values = [
            draw(&mut seven, "a"),
            draw(&mut seven, "b"),
            draw(&mut RandomStreams::new(8), "a"),
            draw(&mut RandomStreams::new(8), "b"),
        ];
        assert!((0..4).all(|i| (0..i).all(|j| values[i] != values[j])));
    }

    #[test]
    fn hash_covers_the_state_of_every_stream() {
        let hash = |streams: &RandomStreams| {
            let mut hasher = StateHasher::default();
            streams.hash(&mut hasher);
            hasher.finish()
        };
        let names = ["first", "middle", "the last"];
        let mut streams = RandomStreams::new(7);
        for name in names {
            draw(&mut streams, name);
        }
        let before = hash(&streams);
        assert_eq!(hash(&streams.clone()), before);
        for name in names {
            let mut ahead = streams.clone();
            draw(&mut ahead, name);
            assert_ne!(hash(&ahead), before, "{name}");
        }
    }
}
