//! The cost of building search data, and of following an edit of one tile: on open ground and next to walls, separately.

use crate::CliError;
use crate::bench::rows::BenchRow;
use throng::map::{TileEdit, TileMap, TileRect};
use throng::nav::{Algorithm, NavMap};
use throng::sim::clock::Stopwatch;
use throng_nav::workload;

use glam::IVec2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The size of the map that has targets for building.
const SIDE_TILES: u32 = 2_048;

pub(super) fn measure(quick: bool) -> Result<Vec<BenchRow>, CliError> {
    let mut map = workload::town(SIDE_TILES)?;
    let mut rows = vec![
        build(&map, "planes", Algorithm::JpsBitPrune),
        build(&map, "table", Algorithm::JpsBitPrunePre).with_target_below(28.0, "ms"),
        build(&map, "planes + graph", Algorithm::JpsGraph),
    ];
    let edits = if quick { 200 } else { 2_000 };
    for is_beside_wall in [false, true] {
        let ground = if is_beside_wall { "wall" } else { "open" };
        let times_us = time_edits(&mut map, is_beside_wall, edits)?;
        let p99 = times_us.get(edits * 99 / 100).copied().unwrap_or_default();
        let place = if is_beside_wall {
            "next to a wall"
        } else {
            "on open ground"
        };
        let median =
            BenchRow::repeated("nav", format!("edit planes {ground} p50"), &times_us, "us").about(
                format!("Updating prepared planes after the edit of one tile {place}: the median."),
            );
        let p99 = BenchRow::new("nav", format!("edit planes {ground} p99"), p99, "us")
            .about("The same edits: the 99th percentile.");
        rows.extend([
            median.with_target_below(5.0, "us"),
            p99.with_target_below(50.0, "us"),
        ]);
    }
    Ok(rows)
}

/// Repeated builds of the search data.
fn build(map: &TileMap, what: &str, algorithm: Algorithm) -> BenchRow {
    let build_ms = || {
        let stopwatch = Stopwatch::start();
        NavMap::default().prepare(map, algorithm);
        stopwatch.elapsed().as_secs_f64() * 1e3
    };
    let ms: Vec<f64> = (0..5).map(|_| build_ms()).collect();
    BenchRow::repeated("nav", format!("build {what}"), &ms, "ms").about(format!(
        "Building search data for a town of {SIDE_TILES}² tiles from scratch: {what}."
    ))
}

/// Times to follow edits of one tile, in µs, sorted.
fn time_edits(map: &mut TileMap, is_beside_wall: bool, edits: usize) -> Result<Vec<f64>, CliError> {
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let mut nav_map = NavMap::default();
    let mut times_us = Vec::new();
    while times_us.len() < edits {
        let mut axis = |tiles: u32| random.random_range(0..tiles as i32);
        let tile = IVec2::new(axis(map.width()), axis(map.height()));
        let around = (-1..=1).flat_map(|y| (-1..=1).map(move |x| IVec2::new(x, y)));
        let walls = around.filter(|step| !map.is_free(tile + *step)).count();
        // On open ground no tile around is blocked; next to a wall the tile itself may be blocked.
        if (walls > 0) != is_beside_wall || walls == 9 {
            continue;
        }
        let rect = TileRect::new(tile.x as u32, tile.y as u32, 1, 1);
        for use_clock in [true, false] {
            nav_map.prepare(map, Algorithm::JpsBitPrune);
            let changed = map.edit(rect, &TileEdit::Toggle)?;
            let stopwatch = Stopwatch::start();
            nav_map.apply_edit(map, changed.as_slice());
            if use_clock {
                times_us.push(stopwatch.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    times_us.sort_by(f64::total_cmp);
    Ok(times_us)
}
