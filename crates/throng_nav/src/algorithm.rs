//! The search algorithms by name, and the prepared data that each one reads.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use throng_core::Variants;

/// A search algorithm. All are exact; they differ in speed, in the prepared data that they need and, among equally short
/// paths, in the path that they return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Variants)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
#[variants(kebab)]
pub enum Algorithm {
    /// Textbook A* over single steps, the reference for the others.
    #[variants("astar")]
    AStar,
    /// Jump Point Search, one tile at a time.
    Jps,
    /// The same, 64 tiles at a time.
    JpsBit,
    /// The same without opening diagonal jump points: successors of their straight scans belong to the expanded node. It reads
    /// sign planes if the map has them, and otherwise only the bitmaps.
    JpsBitPrune,
    /// Jump Point Search over a table of steps to the next jump point or wall.
    JpsBitPre,
    /// The same without opening diagonal jump points.
    JpsBitPrunePre,
    /// Search over the graph of jump points, with precomputed successors and precomputed distances from
    /// landmarks.
    #[default]
    JpsGraph,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| UnknownAlgorithm(name.into()))
    }
}

/// The name of no [`Algorithm`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unknown algorithm `{0}`, expected one of `astar`, `jps`, `jps-bit`, `jps-bit-prune`, `jps-bit-pre`, \
     `jps-bit-prune-pre`, `jps-graph`"
)]
pub struct UnknownAlgorithm(
    /// The given name.
    pub String,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithm_names_round_trip() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let error = "dijkstra".parse::<Algorithm>().unwrap_err();
        for algorithm in Algorithm::ALL {
            assert!(
                error
                    .to_string()
                    .contains(&format!("`{}`", algorithm.name()))
            );
        }
    }
}
