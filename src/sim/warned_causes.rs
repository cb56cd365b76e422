//! Warnings that are logged once for each cause.

use std::collections::BTreeSet;

use crate::memory::MemoryUse;

/// The causes that were logged: a mistake that happens again in every tick is logged once, at the first time. Later causes than
/// [`CAUSES_MAX`] are not logged; they are counted like all others.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct WarnedCauses(BTreeSet<(u8, u64)>);

/// The maximum number of causes of one system.
const CAUSES_MAX: usize = 64;

impl WarnedCauses {
    /// Whether this cause has to be logged: it is new, and notes it. `kind` tells causes of different kinds apart, `of` those of
    /// one kind, such as the number of a scene.
    pub(crate) fn is_new(&mut self, kind: u8, of: u64) -> bool {
        self.0.len() < CAUSES_MAX && self.0.insert((kind, of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_new_once_and_bounded() {
        let mut causes = WarnedCauses::default();
        assert_eq!(
            [(0, 1), (0, 1), (1, 1)].map(|(kind, of)| causes.is_new(kind, of)),
            [true, false, true]
        );
        let new = (0..1000).filter(|of| causes.is_new(7, *of));
        assert_eq!(new.count(), CAUSES_MAX - 2);
    }
}
