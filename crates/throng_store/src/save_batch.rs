//! Unsaved changes: the newest value of each changed attribute, per player.
//!
//! ```text
//! save requests ──▶ [`SaveBatch::add`] ── join, release ──▶ sent as a whole ──▶ one transaction
//! ```
//!
//! Changes during a transaction are collected for the next one, and newer values replace older ones. So however long a store is
//! unavailable, at most one copy of the changed values waits. Values are in one byte buffer, so a tick's saves allocate nothing per player.
//!
//! Cost: one hash table lookup per player, and the copy of its values: `throng bench store`.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use throng_core::ids::PlayerId;
use throng_core::memory::MemoryUse;

/// The length that marks a removed attribute.
const REMOVED: u16 = u16::MAX;

/// Bytes before each value: its attribute and its length.
const HEADER_BYTES: usize = 4;

/// The buffer is compacted when more bytes than this are unused, and more than are in use.
const COMPACT_SLACK_BYTES: usize = 4_096;

/// Saves of many players that form one transaction.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct SaveBatch {
    /// Number of the batch among those of the process, from 1.
    pub number: u64,
    /// The newest tick in it.
    pub tick: u64,
    saves: Vec<PlayerSave>,
    /// Index of each player in `saves`.
    indices: HashMap<PlayerId, u32, FixedState>,
    /// All values: the attribute, the length or [`REMOVED`], the bytes.
    bytes: Vec<u8>,
    used_bytes: usize,
    /// Leases that are released after the saves, with their epochs.
    releases: Vec<(PlayerId, u64)>,
}

/// The save of one player.
#[derive(Clone, Debug)]
pub struct PlayerSave {
    /// Player id.
    pub player: PlayerId,
    /// The lease under which it is saved.
    pub epoch: u64,
    /// The tick of the values.
    pub tick: u64,
    /// Another save of its group (disjoint-set parent), or itself.
    group_parent: u32,
    start: usize,
    end: usize,
}

impl SaveBatch {
    /// An empty batch with a number and a tick, for tests of a store.
    #[must_use]
    pub fn new(number: u64, tick: u64) -> Self {
        Self {
            number,
            tick,
            ..Self::default()
        }
    }

    /// Whether it contains nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.saves.is_empty() && self.releases.is_empty()
    }

    /// Number of players in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.saves.len()
    }

    /// Whether it contains a player.
    #[must_use]
    pub fn contains(&self, player: PlayerId) -> bool {
        self.indices.contains_key(&player)
    }

    /// The lease under which a player is saved, if it is in the batch.
    #[must_use]
    pub fn epoch_of(&self, player: PlayerId) -> Option<u64> {
        let place = *self.indices.get(&player)?;
        Some(self.saves.get(place as usize)?.epoch)
    }

    /// The saves of all players.
    #[must_use]
    pub fn saves(&self) -> &[PlayerSave] {
        &self.saves
    }

    /// The attributes of a save with their values; `None` for a removed one.
    pub fn values(&self, save: &PlayerSave) -> impl Iterator<Item = (u16, Option<&[u8]>)> {
        read(&self.bytes[save.start..save.end])
    }

    /// Leases that are released after the saves, with their epochs.
    #[must_use]
    pub fn releases(&self) -> &[(PlayerId, u64)] {
        &self.releases
    }

    /// Adds changes of a player; of two values of an attribute the later one counts. O(values of the player).
    pub fn add<'a>(
        &mut self,
        (player, epoch, tick): (PlayerId, u64, u64),
        changes: impl Iterator<Item = (u16, Option<&'a [u8]>)>,
    ) {
        self.tick = self.tick.max(tick);
        let start = self.bytes.len();
        changes.for_each(|(id, value)| write(&mut self.bytes, id, value));
        let place = self.saves.len() as u32;
        let place = *self.indices.entry(player).or_insert(place);
        if let Some(save) = self.saves.get_mut(place as usize) {
            // Older values that stay are moved after the newer ones.
            let older = save.start..save.end;
            self.used_bytes -= older.len();
            let newer_end = self.bytes.len();
            let mut at = older.start;
            while at < older.end {
                let length = length(&self.bytes[at..older.end]);
                let id = &self.bytes[at..at + 2];
                let is_newer =
                    read(&self.bytes[start..newer_end]).any(|(other, _)| other.to_le_bytes() == id);
                if !is_newer {
                    self.bytes.extend_from_within(at..at + length);
                }
                at += length;
            }
            (save.epoch, save.tick) = (epoch, tick);
            (save.start, save.end) = (start, self.bytes.len());
        } else {
            self.saves.push(PlayerSave {
                player,
                epoch,
                tick,
                group_parent: place,
                start,
                end: self.bytes.len(),
            });
        }
        self.used_bytes += self.bytes.len() - start;
        if self.bytes.len() > 2 * self.used_bytes + COMPACT_SLACK_BYTES {
            self.compact();
        }
    }

    /// Joins two players: both are saved, or neither. `false` if one of them is not in the batch.
    pub fn join(&mut self, one: PlayerId, other: PlayerId) -> bool {
        let (Some(&one), Some(&other)) = (self.indices.get(&one), self.indices.get(&other)) else {
            return false;
        };
        let (one, other) = (self.root(one), self.root(other));
        // The smaller index is the root, so that roots do not depend on the order of joins.
        self.saves[one.max(other) as usize].group_parent = one.min(other);
        true
    }

    /// Releases a lease after the saves.
    pub fn release(&mut self, player: PlayerId, epoch: u64) {
        self.releases.push((player, epoch));
    }

    /// Removes a player and all that are joined with it, directly or indirectly, and returns them in ascending order; only the player
    /// itself if it is not in the batch. O(players), for the rare loss of a lease.
    pub fn remove(&mut self, player: PlayerId) -> Vec<PlayerId> {
        let Some(&place) = self.indices.get(&player) else {
            return vec![player];
        };
        let root = self.root(place);
        let mut out: Vec<PlayerId> = Vec::new();
        let mut kept = Self {
            number: self.number,
            tick: self.tick,
            releases: std::mem::take(&mut self.releases),
            ..Self::default()
        };
        for (place, save) in (0..).zip(&self.saves) {
            if self.root(place) == root {
                out.push(save.player);
            } else {
                kept.add((save.player, save.epoch, save.tick), self.values(save));
            }
        }
        for (place, save) in (0..).zip(&self.saves) {
            let root = &self.saves[self.root(place) as usize];
            kept.join(save.player, root.player);
        }
        *self = kept;
        out.sort_unstable();
        out
    }

    /// Indices of the refused saves, given those that `is_fenced` refuses: all that are joined with one of them.
    pub fn refused_saves<E>(
        &self,
        mut is_fenced: impl FnMut(&PlayerSave) -> Result<bool, E>,
    ) -> Result<Vec<bool>, E> {
        let mut fenced = vec![false; self.saves.len()];
        for (place, save) in (0..).zip(&self.saves) {
            if is_fenced(save)? {
                fenced[self.root(place) as usize] = true;
            }
        }
        Ok((0..self.saves.len() as u32)
            .map(|place| fenced[self.root(place) as usize])
            .collect())
    }

    /// Indices of joined saves, group by group, each ascending.
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut of_root: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for place in 0..self.saves.len() as u32 {
            let group = of_root.entry(self.root(place)).or_default();
            group.push(place as usize);
        }
        of_root.into_values().collect()
    }

    fn root(&self, mut place: u32) -> u32 {
        while self.saves[place as usize].group_parent != place {
            place = self.saves[place as usize].group_parent;
        }
        place
    }

    /// Removes unused bytes.
    fn compact(&mut self) {
        let mut bytes = Vec::with_capacity(2 * self.used_bytes);
        for save in &mut self.saves {
            let start = bytes.len();
            bytes.extend_from_slice(&self.bytes[save.start..save.end]);
            (save.start, save.end) = (start, bytes.len());
        }
        self.bytes = bytes;
    }
}

fn write(bytes: &mut Vec<u8>, id: u16, value: Option<&[u8]>) {
    bytes.extend(id.to_le_bytes());
    let value = match value {
        // Values have 255 bytes at most.
        Some(value) => {
            let value = &value[..value.len().min(usize::from(REMOVED) - 1)];
            bytes.extend((value.len() as u16).to_le_bytes());
            value
        }
        None => {
            bytes.extend(REMOVED.to_le_bytes());
            &[]
        }
    };
    bytes.extend_from_slice(value);
}

/// Length of the first entry, including its header.
fn length(bytes: &[u8]) -> usize {
    match u16::from_le_bytes([bytes[2], bytes[3]]) {
        REMOVED => HEADER_BYTES,
        length => HEADER_BYTES + usize::from(length),
    }
}

fn read(mut bytes: &[u8]) -> impl Iterator<Item = (u16, Option<&[u8]>)> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let (first, rest) = bytes.split_at(length(bytes));
        bytes = rest;
        let id = u16::from_le_bytes([first[0], first[1]]);
        let is_removed = first[2..4] == REMOVED.to_le_bytes();
        Some((id, (!is_removed).then_some(&first[HEADER_BYTES..])))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// One step: adds values, joins players, or removes a player.
    #[derive(Clone, Debug)]
    enum Step {
        Add(u64, Vec<(u16, Option<Vec<u8>>)>),
        Tie(u64, u64),
        TakeOut(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..6));
        let values = prop::collection::vec((0..4u16, value), 0..4);
        let step = prop_oneof![
            6 => (0..8u64, values).prop_map(|(player, values)| Step::Add(player, values)),
            2 => (0..8u64, 0..8u64).prop_map(|(one, other)| Step::Tie(one, other)),
            1 => (0..8u64).prop_map(Step::TakeOut),
        ];
        prop::collection::vec(step, 0..60)
    }

    type Model = BTreeMap<u64, BTreeMap<u16, Option<Vec<u8>>>>;

    fn group(of: u64, ties: &BTreeSet<(u64, u64)>) -> BTreeSet<u64> {
        let mut group = BTreeSet::from([of]);
        loop {
            let before = group.len();
            for &(one, other) in ties {
                if group.contains(&one) || group.contains(&other) {
                    group.extend([one, other]);
                }
            }
            if group.len() == before {
                return group;
            }
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn batch_holds_newest_values_and_joined_players(steps in steps()) {
            let (mut batch, mut model, mut ties) = (SaveBatch::default(), Model::new(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Add(player, values) => {
                        // The result of setting an attribute twice in one request is unspecified.
                        let values: BTreeMap<_, _> = values.into_iter().collect();
                        let changes = values.iter().map(|(&id, value)| (id, value.as_deref()));
                        batch.add((PlayerId(player), 1, 1), changes);
                        model.entry(player).or_default().extend(values);
                    }
                    Step::Tie(one, other) => {
                        let both = model.contains_key(&one) && model.contains_key(&other);
                        prop_assert_eq!(batch.join(PlayerId(one), PlayerId(other)), both);
                        if both {
                            ties.insert((one, other));
                        }
                    }
                    Step::TakeOut(player) => {
                        let out = group(player, &ties);
                        let expected: Vec<PlayerId> = out.iter().copied().map(PlayerId).collect();
                        prop_assert_eq!(batch.remove(PlayerId(player)), expected);
                        model.retain(|player, _| !out.contains(player));
                        ties.retain(|(one, _)| !out.contains(one));
                    }
                }
                let mut found = Model::new();
                for save in batch.saves() {
                    let values = batch.values(save);
                    let values: Vec<_> = values.map(|(id, value)| (id, value.map(<[u8]>::to_vec))).collect();
                    let count = values.len();
                    let values: BTreeMap<_, _> = values.into_iter().collect();
                    prop_assert_eq!(values.len(), count);
                    prop_assert!(found.insert(save.player.0, values).is_none());
                }
                prop_assert_eq!(&found, &model);
                for fenced in 0..8 {
                    let refused = batch.refused_saves::<()>(|save| Ok(save.player.0 == fenced)).unwrap();
                    let out = group(fenced, &ties);
                    for (save, refused) in batch.saves().iter().zip(refused) {
                        let tied = model.contains_key(&fenced) && out.contains(&save.player.0);
                        prop_assert_eq!(refused, tied);
                    }
                }
            }
        }
    }

    #[test]
    fn repeated_saves_of_a_player_use_bounded_memory() {
        let mut batch = SaveBatch::default();
        for tick in 0..100_000_u64 {
            let value = tick.to_le_bytes();
            batch.add(
                (PlayerId(1), 1, tick),
                std::iter::once((7, Some(&value[..]))),
            );
        }
        assert!(batch.bytes.len() <= 2 * 12 + COMPACT_SLACK_BYTES + 12);
        let values: Vec<_> = batch.values(&batch.saves()[0]).collect();
        assert_eq!(values, [(7, Some(&99_999_u64.to_le_bytes()[..]))]);
        assert_eq!((batch.len(), batch.tick), (1, 99_999));
    }
}
