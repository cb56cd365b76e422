//! Encoded records of a scene's objects: written once a tick, copied into every packet that needs them.

use std::cmp::Ordering;

use fixedbitset::FixedBitSet;

/// Records up to this length are copied with a fixed length: motions and most deltas.
const SHORT_BYTES: usize = 32;

/// One record an object, valid for the tick in which it was written.
#[derive(Clone, Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    /// Where in the bytes each record lies; of those only that are written.
    spans: Vec<Span>,
    /// A bit an id, so that asking for what is not there, as is mostly done, stays in the nearest cache.
    written: FixedBitSet,
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    end: u32,
}

impl Records {
    /// Forgets all records and keeps the buffers. O(largest id / 64).
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.written.clear();
    }

    /// Writes the record of an object, once until the next [`clear`](Self::clear).
    pub fn write(&mut self, id: u32, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len() as u32;
        write(&mut self.bytes);
        let (id, end) = (id as usize, self.bytes.len() as u32);
        if self.spans.len() <= id {
            self.spans.resize(id + 1, Span::default());
            self.written.grow(id + 1);
        }
        debug_assert!(end > start, "a record says something");
        debug_assert!(!self.written.contains(id), "a record is written once");
        self.spans[id] = Span { start, end };
        self.written.insert(id);
    }

    /// Appends the records of those of `ids` that have one, in their order, and counts them. `found` is scratch.
    ///
    /// O(ids), cheap for those without, and one short copy for each with a record.
    pub fn copy(&self, ids: &[u32], found: &mut Vec<u32>, packet: &mut Vec<u8>) -> u64 {
        if self.bytes.is_empty() {
            return 0;
        }
        // Whether an object has a record is as good as a toss of a coin, which no processor predicts: nothing branches on
        // it here.
        found.clear();
        found.resize(ids.len(), 0);
        let mut count = 0;
        for &id in ids {
            found[count] = id;
            count += usize::from(self.written.contains(id as usize));
        }
        for &id in &found[..count] {
            self.copy_one(self.spans[id as usize], packet);
        }
        count as u64
    }

    /// Nearly all records are short, and a copy of a fixed length is a few instructions where one of any length is a call:
    /// what was copied too much is cut off again. The last records of the buffer have nothing behind them.
    #[inline]
    fn copy_one(&self, span: Span, packet: &mut Vec<u8>) {
        let (start, end) = (span.start as usize, span.end as usize);
        match self.bytes[start..].first_chunk::<SHORT_BYTES>() {
            Some(chunk) if end - start <= SHORT_BYTES => {
                let length = packet.len() + (end - start);
                packet.extend_from_slice(chunk);
                packet.truncate(length);
            }
            _ => packet.extend_from_slice(&self.bytes[start..end]),
        }
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
    /// Pairs (viewer, target) that began in the last tick with a target that was gone before its snapshot, ascending.
    pub unborn: Vec<(u32, u32)>,
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

    /// Those who came to see a target. O(changes).
    pub fn viewers_of_new(&self, target: u32) -> impl Iterator<Item = u32> {
        let new = move |pair: &&PairChange| pair.target == target && pair.change == Change::Entered;
        self.pairs.iter().filter(new).map(|pair| pair.viewer)
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

    /// What is appended to a packet for these objects, and how many records that is.
    fn copied(records: &Records, ids: &[u32]) -> (u64, Vec<u8>) {
        let mut packet = vec![9];
        let count = records.copy(ids, &mut vec![77], &mut packet);
        assert_eq!(packet.remove(0), 9, "what was there stays");
        (count, packet)
    }

    #[test]
    fn a_record_lasts_until_all_are_cleared() {
        let mut records = Records::default();
        records.clear();
        assert_eq!(copied(&records, &[3]), (0, vec![]));
        records.write(3, |bytes| bytes.extend([1, 2]));
        records.write(1, |bytes| bytes.push(3));
        assert_eq!(copied(&records, &[3, 2, 1, 99]), (2, vec![1, 2, 3]));
        assert_eq!(copied(&records, &[1, 3]), (2, vec![3, 1, 2]));
        records.clear();
        assert_eq!(copied(&records, &[3, 1]), (0, vec![]));
        records.write(1, |bytes| bytes.push(4));
        assert_eq!(copied(&records, &[3, 1]), (1, vec![4]));
    }

    #[test]
    fn records_of_every_length_are_copied_whole_and_alone() {
        let mut records = Records::default();
        let record = |id: u32| vec![id as u8; id as usize * 7 % 80];
        (1..60).for_each(|id| records.write(id, |bytes| bytes.extend(record(id))));
        for id in 1..60 {
            assert_eq!(copied(&records, &[id]), (1, record(id)), "{id}");
        }
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
