//! Encoded records of a scene's objects: written once a tick, copied into every packet that needs them.

use std::cmp::Ordering;

/// One record an object, valid for the tick in which it was written.
#[derive(Clone, Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    round: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    round: u32,
    start: u32,
    end: u32,
}

impl Records {
    /// Forgets all records and keeps the buffers. O(1).
    pub fn clear(&mut self) {
        self.bytes.clear();
        // Rounds begin at 1, so that a new span is of none; 2³² ticks are six years at 20 Hz.
        self.round = self.round.wrapping_add(1).max(1);
    }

    /// Writes the record of an object, once a round.
    pub fn write(&mut self, id: u32, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.round > 0, "clear begins the first round");
        let start = self.bytes.len() as u32;
        write(&mut self.bytes);
        let id = id as usize;
        if self.spans.len() <= id {
            self.spans.resize(id + 1, Span::default());
        }
        self.spans[id] = Span {
            round: self.round,
            start,
            end: self.bytes.len() as u32,
        };
    }

    /// The record of an object, if it was written in this round. O(1).
    #[inline]
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let span = self
            .spans
            .get(id as usize)
            .filter(|span| span.round == self.round)?;
        Some(&self.bytes[span.start as usize..span.end as usize])
    }
}

/// All that a scene has to tell this tick.
#[derive(Clone, Debug, Default)]
pub struct SceneRecords {
    /// Objects that came into somebody's sight, as everybody sees them.
    pub snapshots: Records,
    /// Changed attributes, as everybody sees them.
    pub deltas: Records,
    /// Changed attributes, as the owner sees them; only of objects that somebody controls.
    pub own_deltas: Records,
    /// Motions that changed.
    pub motions: Records,
    /// What changed in view lists, by viewer.
    pub changes: ViewChanges,
}

impl SceneRecords {
    /// Begins a tick.
    pub fn clear(&mut self) {
        self.snapshots.clear();
        self.deltas.clear();
        self.own_deltas.clear();
        self.motions.clear();
        self.changes.clear();
    }
}

/// A pair that is different at the end of the tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairChange {
    /// Who sees, or saw.
    pub viewer: u32,
    /// Who is, or was, seen.
    pub target: u32,
    /// What happened.
    pub change: Change,
}

/// How a pair is different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The viewer came to see the target.
    Entered,
    /// The viewer lost the target, which was of this generation.
    Left(u32),
}

/// Enters and leaves of a tick, folded to what is different at its end.
#[derive(Clone, Debug, Default)]
pub struct ViewChanges {
    events: Vec<PairChange>,
    pairs: Vec<PairChange>,
}

impl ViewChanges {
    fn clear(&mut self) {
        self.events.clear();
        self.pairs.clear();
    }

    /// Adds an event; the order of a tick's events does not matter.
    pub fn add(&mut self, viewer: u32, target: u32, change: Change) {
        self.events.push(PairChange {
            viewer,
            target,
            change,
        });
    }

    /// Folds the events of each pair; call it once, after the last event. O(n log n).
    ///
    /// Enters and leaves of a pair alternate, and an id has one bearer a tick: as many of the one as of the other leave
    /// the viewer with what it had.
    pub fn fold(&mut self) {
        self.events.sort_unstable_by_key(|event| {
            (event.viewer, event.target, event.change == Change::Entered)
        });
        for run in self
            .events
            .chunk_by(|a, b| (a.viewer, a.target) == (b.viewer, b.target))
        {
            let enters = run
                .iter()
                .filter(|event| event.change == Change::Entered)
                .count();
            let leaves = run.len() - enters;
            debug_assert!(enters.abs_diff(leaves) <= 1, "enters and leaves alternate");
            // Leaves are sorted before enters.
            match enters.cmp(&leaves) {
                Ordering::Less => self.pairs.push(run[0]),
                Ordering::Greater => self.pairs.push(run[run.len() - 1]),
                Ordering::Equal => {}
            }
        }
    }

    /// What changed for one viewer, by ascending target. O(log n).
    pub fn of(&self, viewer: u32) -> &[PairChange] {
        let start = self.pairs.partition_point(|pair| pair.viewer < viewer);
        let length = self.pairs[start..].partition_point(|pair| pair.viewer == viewer);
        &self.pairs[start..start + length]
    }

    /// Those whom a viewer came to see, ascending.
    pub fn entered(&self, viewer: u32) -> impl Iterator<Item = u32> {
        self.of(viewer)
            .iter()
            .filter(|pair| pair.change == Change::Entered)
            .map(|pair| pair.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_lasts_for_one_round() {
        let mut records = Records::default();
        records.clear();
        assert_eq!(records.get(3), None);
        records.write(3, |bytes| bytes.extend([1, 2]));
        records.write(1, |bytes| bytes.push(3));
        assert_eq!(
            (records.get(3), records.get(1), records.get(2)),
            (Some(&[1, 2][..]), Some(&[3][..]), None)
        );
        records.clear();
        assert_eq!(records.get(3), None);
    }

    #[test]
    fn events_of_a_pair_fold_to_what_is_different() {
        let mut changes = ViewChanges::default();
        for (viewer, target, change) in [
            (2, 9, Change::Entered),
            (1, 5, Change::Left(0)),
            (1, 5, Change::Entered),
            (1, 6, Change::Entered),
            (1, 6, Change::Left(3)),
            (1, 7, Change::Left(4)),
            (1, 8, Change::Entered),
            (1, 8, Change::Left(0)),
            (1, 8, Change::Entered),
        ] {
            changes.add(viewer, target, change);
        }
        changes.fold();
        let pair = |viewer, target, change| PairChange {
            viewer,
            target,
            change,
        };
        assert_eq!(
            changes.of(1),
            [pair(1, 7, Change::Left(4)), pair(1, 8, Change::Entered)]
        );
        assert_eq!(changes.of(2), [pair(2, 9, Change::Entered)]);
        assert_eq!(changes.of(3), []);
        assert_eq!(changes.entered(1).collect::<Vec<_>>(), [8]);
    }
}
