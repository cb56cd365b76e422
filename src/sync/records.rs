//! Encoded records of a scene's objects: written once a tick, copied into every packet that needs them.

use std::cmp::Ordering;

/// Records up to this length are copied with a fixed length: motions and most deltas.
const SHORT_BYTES: usize = 32;

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

    /// Appends the record of an object to a packet; `false` when none was written in this round. O(1).
    #[inline]
    pub fn copy_to(&self, id: u32, packet: &mut Vec<u8>) -> bool {
        let Some(span) = self
            .spans
            .get(id as usize)
            .filter(|span| span.round == self.round)
        else {
            return false;
        };
        let (start, end) = (span.start as usize, span.end as usize);
        // Nearly all records are short, and a copy of a fixed length is a few instructions where one of any length is a
        // call: what was copied too much is cut off again. The last records of the buffer have nothing behind them.
        match self.bytes[start..].first_chunk::<SHORT_BYTES>() {
            Some(chunk) if end - start <= SHORT_BYTES => {
                let length = packet.len() + (end - start);
                packet.extend_from_slice(chunk);
                packet.truncate(length);
            }
            _ => packet.extend_from_slice(&self.bytes[start..end]),
        }
        true
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

    /// What changed for one viewer, by ascending target. O(log n + its changes).
    pub fn of(&self, viewer: u32) -> &[PairChange] {
        let start = self.pairs.partition_point(|pair| pair.viewer < viewer);
        // A viewer's changes are few, mostly none.
        let length = self.pairs[start..]
            .iter()
            .take_while(|pair| pair.viewer == viewer)
            .count();
        &self.pairs[start..start + length]
    }
}

/// Those among a viewer's changes whom it came to see.
pub fn new_targets(changes: &[PairChange]) -> impl Iterator<Item = u32> {
    let new = changes.iter().filter(|pair| pair.change == Change::Entered);
    new.map(|pair| pair.target)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a packet that begins with a 9 has after the record of an object; `None` when it has none.
    fn copied(records: &Records, id: u32) -> Option<Vec<u8>> {
        let mut packet = vec![9];
        let is_there = records.copy_to(id, &mut packet);
        assert_eq!(packet.remove(0), 9, "what was there stays");
        assert!(is_there || packet.is_empty());
        is_there.then_some(packet)
    }

    #[test]
    fn a_record_lasts_for_one_round() {
        let mut records = Records::default();
        records.clear();
        assert_eq!(copied(&records, 3), None);
        records.write(3, |bytes| bytes.extend([1, 2]));
        records.write(1, |bytes| bytes.push(3));
        assert_eq!(
            [3, 1, 2].map(|id| copied(&records, id)),
            [Some(vec![1, 2]), Some(vec![3]), None]
        );
        records.clear();
        assert_eq!(copied(&records, 3), None);
    }

    #[test]
    fn records_of_every_length_are_copied_whole_and_alone() {
        let mut records = Records::default();
        records.clear();
        let record = |id: u32| vec![id as u8; id as usize * 7 % 80];
        (0..60).for_each(|id| records.write(id, |bytes| bytes.extend(record(id))));
        (0..60).for_each(|id| assert_eq!(copied(&records, id), Some(record(id)), "{id}"));
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
        assert_eq!(new_targets(changes.of(1)).collect::<Vec<_>>(), [8]);
    }
}
