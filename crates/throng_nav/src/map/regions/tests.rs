//! Regions against a flood tile by tile, after a build and after random edits.

use std::collections::{BTreeMap, BTreeSet};

use glam::IVec2;
use proptest::prelude::*;

use super::*;
use crate::map::{TileEdit, TileMap, TilePattern, TileRect};

/// Labels by a flood tile by tile, numbered by first tile; 0 = blocked.
fn flood_all(map: &TileMap) -> Vec<u32> {
    let (width, height) = (map.width() as i32, map.height() as i32);
    let mut labels = vec![0; (width * height) as usize];
    let mut count = 0;
    for first in 0..width * height {
        if labels[first as usize] != 0 || map.is_blocked((first % width, first / width).into()) {
            continue;
        }
        count += 1;
        labels[first as usize] = count;
        let mut queue = vec![first];
        while let Some(at) = queue.pop() {
            for (dx, dy) in [(1, 0), (-1, 0), (0, 1), (0, -1)] {
                let (x, y) = (at % width + dx, at / width + dy);
                if !map.is_blocked((x, y).into()) && labels[(y * width + x) as usize] == 0 {
                    labels[(y * width + x) as usize] = count;
                    queue.push(y * width + x);
                }
            }
        }
    }
    labels
}

/// Checks every invariant of the regions against the flood tile by tile; `exact` when all ids must agree, too.
fn check(map: &TileMap, exact: bool) -> Result<(), TestCaseError> {
    let expected = flood_all(map);
    let width = map.width();
    let tile = |i: u32| IVec2::new((i % width) as i32, (i / width) as i32);
    let mut tiles_of = BTreeMap::new();
    for (i, label) in (0..).zip(&expected) {
        tiles_of.entry(*label).or_insert(Vec::new()).push(i);
    }
    tiles_of.remove(&0);
    let blocked = (0..).zip(&expected).filter(|(_, label)| **label == 0);
    for (i, _) in blocked {
        prop_assert_eq!(map.region(tile(i)), None);
    }
    let mut large_next = LARGE_FIRST;
    let mut firsts = Vec::new();
    let mut ids = BTreeSet::new();
    for tiles in tiles_of.values() {
        let first = tile(tiles[0]);
        let id = map.region(first).unwrap();
        prop_assert!(ids.insert(id), "two regions have one number");
        for i in tiles {
            prop_assert_eq!(map.region(tile(*i)), Some(id), "a region has two numbers");
            prop_assert!(map.is_in_region(tile(*i), id) && map.are_connected(first, tile(*i)));
        }
        prop_assert_eq!(map.region_size(id), tiles.len() as u64);
        let is_small = tiles.len() <= SMALL_TILES_MAX as usize;
        prop_assert_eq!(
            map.regions.label(first.x as u32, first.y as u32) == SMALL,
            is_small
        );
        if is_small {
            prop_assert_eq!(id, RegionId(1 << 31 | tiles[0]));
        } else if exact {
            prop_assert_eq!(id, RegionId(large_next));
            large_next += 1;
        }
        firsts.push((first, id));
    }
    for pair in firsts.windows(2) {
        prop_assert!(!map.are_connected(pair[0].0, pair[1].0));
        prop_assert!(!map.is_in_region(pair[0].0, pair[1].1));
    }
    prop_assert_eq!(map.region_count() as usize, ids.len());
    prop_assert_eq!(
        map.free_count() as usize,
        tiles_of.values().map(Vec::len).sum::<usize>()
    );
    let largest = firsts
        .iter()
        .map(|(_, id)| (map.region_size(*id), Reverse(*id)));
    prop_assert_eq!(
        map.largest_region(),
        largest.max().map(|(tiles, Reverse(id))| (id, tiles))
    );
    let regions = &map.regions;
    let ids = LARGE_FIRST as usize..regions.sizes.len();
    let unused = ids
        .filter(|id| regions.sizes[*id] == 0)
        .map(|id| id as u32)
        .collect();
    prop_assert_eq!(&regions.free_ids, &unused);
    prop_assert_eq!(regions.sizes[..2].iter().max(), Some(&0));
    prop_assert!(
        !regions.free_ids.contains(&(regions.sizes.len() as u32 - 1)),
        "the last number is not in use"
    );
    Ok(())
}

fn random_map(width: u32, height: u32, percent: u32, seed: u64) -> TileMap {
    let hash = |x: u32, y: u32| crate::map::tiles::mix(seed ^ u64::from(y) << 32 ^ u64::from(x));
    TileMap::from_fn(width, height, |x, y| hash(x, y) % 100 < u64::from(percent)).unwrap()
}

fn maps() -> impl Strategy<Value = TileMap> {
    (
        1u32..140,
        1u32..40,
        prop::sample::select(vec![0, 10, 30, 40, 50, 70, 100]),
        any::<u64>(),
    )
        .prop_map(|(width, height, percent, seed)| random_map(width, height, percent, seed))
}

#[derive(Clone, Debug)]
struct EditOp {
    corner: (u32, u32),
    size: (u32, u32),
    kind: u8,
    seed: u64,
}

impl EditOp {
    /// The edit, moved onto the map.
    fn on(&self, map: &TileMap) -> (TileRect, TileEdit) {
        let (x, y) = (self.corner.0 % map.width(), self.corner.1 % map.height());
        let (width, height) = (
            self.size.0.min(map.width() - x),
            self.size.1.min(map.height() - y),
        );
        let edit = match self.kind {
            0 => TileEdit::Block,
            1 => TileEdit::Free,
            2 => TileEdit::Toggle,
            _ => TileEdit::Write(TilePattern::from(&random_map(width, height, 40, self.seed))),
        };
        (TileRect::new(x, y, width, height), edit)
    }
}

fn edits() -> impl Strategy<Value = Vec<EditOp>> {
    let sizes = prop_oneof![
        (1u32..4, 1u32..4),
        (1u32..140, 1u32..2),
        (1u32..2, 1u32..40),
        (1u32..140, 1u32..40)
    ];
    let edit = (any::<(u32, u32)>(), sizes, 0u8..4, any::<u64>()).prop_map(
        |(corner, size, kind, seed)| EditOp {
            corner,
            size,
            kind,
            seed,
        },
    );
    prop::collection::vec(edit, 1..24)
}

proptest! {
    #![proptest_config(draws!(192))]

    #[test]
    fn built_regions_match_a_flood_fill_in_tile_order(map in maps()) {
        check(&map, true)?;
    }
}

proptest! {
    #![proptest_config(draws!(80))]

    #[test]
    fn edited_regions_match_a_flood_fill(map in maps(), edits in edits()) {
        let (mut map, mut twin) = (map.clone(), map);
        for op in &edits {
            let (rect, edit) = op.on(&map);
            let before = map.clone();
            let changed = map.edit(rect, &edit).unwrap();
            check(&map, false)?;

            // The tiles are right, and nothing outside the changed rectangle differs.
            let rebuilt = TileMap::from_fn(map.width(), map.height(), |x, y| {
                let tile = IVec2::new(x as i32, y as i32);
                let old = before.is_blocked(tile);
                match &edit {
                    _ if !rect.contains(tile) => old,
                    TileEdit::Block => true,
                    TileEdit::Free => false,
                    TileEdit::Toggle => !old,
                    TileEdit::Write(pattern) => {
                        pattern.is_blocked(((x - rect.x) as i32, (y - rect.y) as i32).into())
                    }
                }
            })
            .unwrap();
            prop_assert_eq!(&map, &rebuilt);
            prop_assert_eq!(&map.columns, &rebuilt.columns);
            prop_assert_eq!(map.fingerprint(), rebuilt.fingerprint());
            let differing: Vec<(u32, u32)> = (0..map.height())
                .flat_map(|y| (0..map.width()).map(move |x| (x, y)))
                .filter(|(x, y)| map.is_blocked((*x as i32, *y as i32).into()) != before.is_blocked((*x as i32, *y as i32).into()))
                .collect();
            let bounds = differing.iter().fold(None, |bounds: Option<(u32, u32, u32, u32)>, (x, y)| {
                let (left, top, right, bottom) = bounds.unwrap_or((*x, *y, *x, *y));
                Some((left.min(*x), top.min(*y), right.max(*x), bottom.max(*y)))
            });
            let bounds = bounds.map(|(left, top, right, bottom)| {
                TileRect::new(left, top, right - left + 1, bottom - top + 1)
            });
            prop_assert_eq!(changed, bounds);
            twin.edit(rect, &edit).unwrap();
        }
        // Same edits, same ids.
        prop_assert_eq!(format!("{:?}", map.regions), format!("{:?}", twin.regions));
    }
}

/// Invariants that hold even while regions are not final: tiles in different regions are not connected, and no tile is lost.
fn check_unsettled(map: &TileMap) -> Result<(), TestCaseError> {
    let expected = flood_all(map);
    let width = map.width();
    let tile = |i: u32| IVec2::new((i % width) as i32, (i / width) as i32);
    let mut region_of = BTreeMap::new();
    let mut tiles_in = BTreeMap::new();
    for (i, label) in (0..).zip(&expected).filter(|(_, label)| **label > 0) {
        let id = map.region(tile(i));
        prop_assert!(id.is_some_and(|id| map.is_in_region(tile(i), id)));
        let id_of_piece = *region_of.entry(*label).or_insert(id);
        prop_assert_eq!(id, id_of_piece, "a piece has two numbers");
        *tiles_in.entry(id).or_insert(0) += 1;
    }
    for (id, tiles) in &tiles_in {
        prop_assert_eq!(map.region_size(id.unwrap()), *tiles);
    }
    prop_assert_eq!(map.region_count() as usize, tiles_in.len());
    prop_assert_eq!(map.free_count(), tiles_in.values().sum::<u64>());
    let largest = tiles_in
        .iter()
        .map(|(id, tiles)| (*tiles, Reverse(id.unwrap())));
    let expected = largest.max().map(|(tiles, Reverse(id))| (id, tiles));
    prop_assert_eq!(map.largest_region(), expected);
    Ok(())
}

proptest! {
    #![proptest_config(draws!(96))]

    #[test]
    fn interleaved_edits_and_splits_match_built_regions(
        map in maps(),
        edits in edits(),
        runs_at_once in 0usize..40,
        slices in prop::collection::vec(0usize..60, 1..8),
    ) {
        let mut map = map;
        map.regions.pending_splits.runs_per_edit_max = runs_at_once;
        let mut twin = map.clone();
        for (op, slice) in edits.iter().zip(slices.iter().cycle()) {
            let (rect, edit) = op.on(&map);
            map.edit(rect, &edit).unwrap();
            check_unsettled(&map)?;
            prop_assert_eq!(map.finish_splits(*slice), map.has_final_regions());
            if map.has_final_regions() {
                check(&map, false)?;
            } else {
                check_unsettled(&map)?;
            }
            twin.edit(rect, &edit).unwrap();
            twin.finish_splits(*slice);
        }
        prop_assert_eq!(format!("{:?}", map.regions), format!("{:?}", twin.regions));
        let mut slices = 0;
        while !map.finish_splits(3) {
            check_unsettled(&map)?;
            slices += 1;
            prop_assert!(slices < 60_000, "it never ends");
        }
        check(&map, false)?;
        prop_assert!(map.regions.pending_splits.work.is_none());
    }
}

/// A comb with its back on top: split in the middle of the back, each half has far more runs than an edit may process.
fn comb() -> (TileMap, TileRect, [IVec2; 2]) {
    let map = TileMap::from_fn(600, 400, |x, y| y > 0 && x % 2 == 1).unwrap();
    let ends = [0, 598].map(|x| IVec2::new(x, 399));
    (map, TileRect::new(301, 0, 1, 1), ends)
}

#[test]
fn large_cut_may_stay_one_region_until_splits_finish() {
    let (mut map, middle, [left, right]) = comb();
    assert!(map.finish_splits(1), "nothing to do");
    map.edit(middle, &TileEdit::Block).unwrap();
    assert!(!map.has_final_regions() && map.are_connected(left, right));
    assert_eq!(map.region_count(), 1);
    let (mut slices, copy) = (0, map.clone());
    while !map.finish_splits(1_000) {
        slices += 1;
    }
    assert!(!map.are_connected(left, right) && slices > 100, "{slices}");
    assert_eq!(
        (map.region_count(), map.region_size(RegionId(2))),
        (2, 60_400 + 150)
    );
    check(&map, false).unwrap();
    // Joined again at once; only the labels remain to be changed.
    map.edit(middle, &TileEdit::Free).unwrap();
    assert!(!map.has_final_regions() && map.are_connected(left, right));
    assert_eq!(map.region_count(), 1);
    assert!(map.finish_splits(usize::MAX));
    check(&map, true).unwrap();
    // A split that is undone before it was detected.
    let mut map = copy;
    map.edit(middle, &TileEdit::Free).unwrap();
    assert!(map.finish_splits(usize::MAX));
    check(&map, true).unwrap();
}

#[test]
fn splits_finish_under_edits_in_every_tick() {
    let (mut map, middle, [left, right]) = comb();
    map.edit(middle, &TileEdit::Block).unwrap();
    let (mut ticks, mut ids_max) = (0, 0);
    while map.are_connected(left, right) {
        map.edit(TileRect::new(4, 399, 1, 1), &TileEdit::Toggle)
            .unwrap();
        map.finish_splits(1_000);
        ids_max = ids_max.max(map.regions.sizes.len());
        ticks += 1;
    }
    assert!(
        ticks < 20 && ids_max < 60,
        "{ticks} ticks, {ids_max} numbers"
    );
    map.finish_splits(usize::MAX);
    check(&map, false).unwrap();
}

#[test]
fn label_width_follows_the_number_of_large_regions() {
    // Two rows of rooms of 8 × 8 tiles, 64 each, and two rows of rock below.
    let rooms = |across: u32| {
        let is_wall = |x: u32, y: u32| x % 9 == 8 || y % 9 == 8 || y > 17;
        TileMap::from_fn(across * 9, 20, is_wall).unwrap()
    };
    let bytes_a_tile =
        |map: &TileMap| map.regions.labels.bytes() as u32 / (map.width() * map.height());
    let mut map = rooms(127);
    assert_eq!((map.region_count(), bytes_a_tile(&map)), (254, 1));
    assert_eq!(bytes_a_tile(&rooms(128)), 2);
    for (width, bytes) in [(63, 1), (64, 2)] {
        map.edit(TileRect::new(0, 19, width, 1), &TileEdit::Free)
            .unwrap();
        assert_eq!((map.region_count(), bytes_a_tile(&map)), (255, bytes));
    }
    check(&map, false).unwrap();
    // Small regions share one label, whatever their number.
    let dotted = TileMap::from_fn(512, 512, |x, y| x % 2 + y % 2 > 0).unwrap();
    assert_eq!((dotted.region_count(), bytes_a_tile(&dotted)), (65_536, 1));
}

#[test]
fn regions_become_large_at_64_tiles() {
    let mut map = TileMap::from_fn(70, 3, |x, y| y != 1 || x == 68).unwrap();
    let kinds = |map: &TileMap| (map.regions.label(0, 1) == SMALL, map.region_count());
    assert_eq!(kinds(&map), (false, 2));
    for (x, edit, expected) in [
        (64, TileEdit::Block, (false, 3)),
        (63, TileEdit::Block, (true, 3)),
        (63, TileEdit::Free, (false, 3)),
        (30, TileEdit::Block, (true, 4)),
        (64, TileEdit::Free, (true, 3)),
        (30, TileEdit::Free, (false, 2)),
        (68, TileEdit::Free, (false, 1)),
    ] {
        map.edit(TileRect::new(x, 1, 1, 1), &edit).unwrap();
        assert_eq!(kinds(&map), expected, "{edit:?} {x}");
        check(&map, false).unwrap();
    }
}

#[test]
fn small_region_may_have_one_run_per_tile() {
    // Columns of 62, 63 and 64 tiles, and a staircase of 63.
    let map = TileMap::from_fn(80, 64, |x, y| match x {
        0 => y >= 62,
        2 => y >= 63,
        4 => false,
        _ => x < 20 || y >= 32 || !(x - 20 == y || x - 20 == y + 1) || x == 52,
    })
    .unwrap();
    let sizes = [0, 2, 4, 20].map(|x| map.region_size(map.region(IVec2::new(x, 0)).unwrap()));
    assert_eq!(sizes, [62, 63, 64, 63]);
    check(&map, true).unwrap();
}

#[test]
fn region_ids_stay_bounded_under_endless_toggling() {
    let mut map = random_map(60, 60, 35, 1);
    let mut ids_max = 0;
    for i in 0..2_000u32 {
        let rect = TileRect::new(i * 7 % 50, i * 11 % 50, 1 + i % 10, 1 + i % 7);
        map.edit(rect, &TileEdit::Toggle).unwrap();
        ids_max = ids_max.max(map.regions.sizes.len());
    }
    check(&map, false).unwrap();
    // A map cannot have more regions than half its tiles, and an edit splits off no more than its outline touches.
    assert!(ids_max < 60 * 60 / 2 + 40, "{ids_max} numbers");
}

#[test]
fn joined_regions_take_the_id_of_the_largest() {
    let mut map = TileMap::from_fn(60, 4, |x, _| x == 20).unwrap();
    map.edit(TileRect::new(20, 0, 1, 1), &TileEdit::Free)
        .unwrap();
    assert_eq!(map.region(IVec2::ZERO), Some(RegionId(3)));
    assert_eq!(
        (map.region_count(), map.region_size(RegionId(3))),
        (1, 59 * 4 + 1)
    );
    // The smaller fragment of a split takes the smallest free id.
    map.edit(TileRect::new(20, 0, 1, 1), &TileEdit::Block)
        .unwrap();
    assert_eq!(map.region_count(), 2);
    assert_eq!(map.region(IVec2::ZERO), Some(RegionId(2)));
    assert!(!map.are_connected(IVec2::ZERO, IVec2::new(22, 0)));
}

#[test]
fn a_blocked_seed_of_a_cut_is_replaced() {
    let (mut map, _, [left, right]) = comb();
    // The right fragment begins at 301, where there is no tooth, and has its seed there.
    for x in [300, 301] {
        map.edit(TileRect::new(x, 0, 1, 1), &TileEdit::Block)
            .unwrap();
        assert!(!map.has_final_regions() && map.are_connected(left, right));
    }
    assert!(map.finish_splits(usize::MAX));
    assert!(!map.are_connected(left, right));
    check(&map, false).unwrap();
}
