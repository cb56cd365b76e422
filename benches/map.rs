//! Obstacle maps: building bit planes and regions, edits, reading words.

use std::hint::black_box;
use std::path::Path;

use criterion::Criterion;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng::map::{MapRecipe, TileEdit, TileMap, TileRect, TownRecipe, generate, load};

pub fn bench(criterion: &mut Criterion) {
    for side in [1_024, 2_048] {
        let map = town(side);
        let is_blocked = |x: u32, y: u32| map.rows().is_blocked(x as i32, y as i32);
        criterion.bench_function(&format!("map::build/{side}"), |bencher| {
            bencher.iter(|| {
                let built =
                    TileMap::from_fn(side, side, is_blocked).expect("the size is within limits");
                assert_eq!(built.region_count(), map.region_count());
                built
            });
        });
    }
    edit(criterion);
    edit_tile(criterion, "town", town(1_024));
    let berlin = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/movingai"));
    if let Ok(map) = load(berlin.join("Berlin_0_1024.map")) {
        edit_tile(criterion, "Berlin", map);
    }
    words(criterion);
}

fn town(side: u32) -> TileMap {
    let recipe = TownRecipe {
        width_tiles: side,
        height_tiles: side,
        ..TownRecipe::default()
    };
    generate(&MapRecipe::Town(recipe), 1).expect("the recipe makes a map")
}

/// Blocks the tiles of a gate and frees them again.
fn edit(criterion: &mut Criterion) {
    let mut map = town(1_024);
    let before = map.fingerprint();
    let gate = TileRect::new(502, 502, 20, 4);
    criterion.bench_function("map::edit_gate/1024", |bencher| {
        bencher.iter(|| {
            let closed = map
                .edit(gate, &TileEdit::Block)
                .expect("the gate is on the map");
            let opened = map
                .edit(gate, &TileEdit::Free)
                .expect("the gate is on the map");
            assert!(closed.is_some() && opened.is_some());
        });
    });
    assert_eq!(
        map.fingerprint(),
        before,
        "both edits change all tiles of the gate"
    );
}

/// Blocks a free tile and frees it again: on open ground, where all eight neighbours are free, and next to a wall.
fn edit_tile(criterion: &mut Criterion, name: &str, mut map: TileMap) {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let around = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy)));
    for (ground, free_range) in [("open", 9..=9), ("wall", 1..=8)] {
        let mut tiles = Vec::new();
        while tiles.len() < 256 {
            let (x, y) = (
                random.random_range(0..map.width()),
                random.random_range(0..map.height()),
            );
            let is_free = |dx, dy| !map.is_blocked((x as i32 + dx, y as i32 + dy).into());
            let free = around.clone().filter(|(dx, dy)| is_free(*dx, *dy)).count();
            if is_free(0, 0) && free_range.contains(&free) {
                tiles.push(TileRect::new(x, y, 1, 1));
            }
        }
        let before = map.fingerprint();
        let (mut tiles, toggle) = (tiles.into_iter().cycle(), TileEdit::Toggle);
        criterion.bench_function(
            &format!("map::edit_tile_twice/{name}_{ground}"),
            |bencher| {
                bencher.iter(|| {
                    let tile = tiles.next().expect("a cycle never ends");
                    for _ in 0..2 {
                        let changed = map.edit(tile, &toggle).expect("the tile is on the map");
                        assert_eq!(changed, Some(tile));
                    }
                });
            },
        );
        assert_eq!(map.fingerprint(), before);
    }
}

/// Counts blocked tiles, 64 per word, at every bit offset of a word.
fn words(criterion: &mut Criterion) {
    let map = town(1_024);
    let blocked = u64::from(map.width()) * u64::from(map.height()) - map.free_count();
    criterion.bench_function("map::word_at/1024", |bencher| {
        let mut offset = 0;
        bencher.iter(|| {
            offset = (offset + 1) % 64;
            let rows = black_box(map.rows());
            // Tiles outside the map count as blocked. The leftmost word starts outside, so each row adds exactly 64 blocked tiles.
            let count: u64 = (0..map.height() as i32)
                .flat_map(|y| {
                    (0..=map.width() as i32 / 64).map(move |word| (word * 64 - offset, y))
                })
                .map(|(x, y)| u64::from(rows.word_at(x, y).count_ones()))
                .sum();
            assert_eq!(count, blocked + 64 * u64::from(map.height()));
        });
    });
}
