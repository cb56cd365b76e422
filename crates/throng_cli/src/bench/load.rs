//! `throng bench load`: map files of every format, loaded and prepared for searches, and several ways to read a file.
//!
//! The files are in the system's temporary folder and in the page cache, so disk time is not included. All formats contain the same map,
//! and each loaded map is compared with it.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::PathBuf;

use super::CliError;
use super::rows::BenchRow;
use throng::map::{self, CaveRecipe, MapFormat, MapRecipe, TileMap};
use throng::nav::{Algorithm, Diagonal, NavMap};
use throng::sim::clock::Stopwatch;

const SYSTEM: &str = "load";

/// Tiles per side.
const SIDE: u32 = 4_096;

/// The files, removed when dropped.
struct BenchFiles {
    folder: PathBuf,
}

impl BenchFiles {
    fn new(map: &TileMap) -> Result<Self, CliError> {
        let folder = std::env::temp_dir().join(format!("throng-load-{}", std::process::id()));
        let made = fs::create_dir_all(&folder);
        made.map_err(|error| {
            CliError::new(format!("could not create `{}`: {error}", folder.display()))
        })?;
        let files = Self { folder };
        for format in MapFormat::ALL {
            map::save(files.path(format), map)?;
        }
        Ok(files)
    }

    fn path(&self, format: MapFormat) -> PathBuf {
        self.folder.join(format!("map.{}", format.extension()))
    }
}

impl Drop for BenchFiles {
    fn drop(&mut self) {
        // A file that cannot be removed is left to the system.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(super) fn measure(quick: bool) -> Result<Vec<BenchRow>, CliError> {
    let rounds = if quick { 5 } else { 15 };
    rows(SIDE, rounds, if quick { 1 << 20 } else { u64::MAX })
}

fn rows(side: u32, rounds: usize, bytes_max: u64) -> Result<Vec<BenchRow>, CliError> {
    let recipe = MapRecipe::Cave(CaveRecipe {
        width_tiles: side,
        height_tiles: side,
        ..CaveRecipe::default()
    });
    let map = map::generate(&recipe, 1)?;
    let files = BenchFiles::new(&map)?;
    let mut rows = reads(&files, rounds, bytes_max)?;
    for format in MapFormat::ALL {
        rows.push(load(&files, format, &map, rounds)?);
    }
    for algorithm in [
        Algorithm::JpsBitPrune,
        Algorithm::JpsBitPrunePre,
        Algorithm::JpsGraph,
    ] {
        rows.push(prepare(algorithm, &map, rounds));
    }
    rows.extend(load_prepared(&files, map, rounds)?);
    Ok(rows)
}

fn unreadable(error: std::io::Error) -> CliError {
    CliError::new(format!("could not read the file just written: {error}"))
}

/// The sum of the bytes, so that the compiler cannot remove a read.
fn sum(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.map(u64::from).sum()
}

/// A file with a byte per tile: read as a whole, through a buffer, and byte by byte.
#[expect(
    clippy::unbuffered_bytes,
    reason = "measures the cost of one read per byte"
)]
fn reads(files: &BenchFiles, rounds: usize, bytes_max: u64) -> Result<Vec<BenchRow>, CliError> {
    let path = files.path(MapFormat::Raw);
    let mut times = [const { Vec::new() }; 2];
    let (mut whole, mut buffered) = (0, 0);
    for _ in 0..rounds {
        let mut watch = Stopwatch::start();
        whole = sum(fs::read(&path).map_err(unreadable)?.into_iter());
        times[0].push(watch.lap_ns() as f64 / 1e6);
        let file = File::open(&path).map_err(unreadable)?;
        buffered = sum(BufReader::new(file).bytes().map_while(Result::ok));
        times[1].push(watch.lap_ns() as f64 / 1e6);
    }
    let [at_once, by_buffer] = &times;
    // Only one round: it takes longer than all of the above.
    let file = File::open(&path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    let read = bytes.min(bytes_max);
    let mut watch = Stopwatch::start();
    let single = sum(file.take(read).bytes().map_while(Result::ok));
    let single_ns = watch.lap_ns() as f64 / read as f64;
    let first = fs::read(&path).map_err(unreadable)?;
    let is_same = sum(first.into_iter().take(read as usize)) == single;
    let at_once_ns: Vec<f64> = at_once.iter().map(|ms| ms * 1e6 / bytes as f64).collect();
    Ok(vec![
        BenchRow::repeated(SYSTEM, "read, at once", at_once, "ms")
            .with_repeated_reference("BufReader", by_buffer)
            .about(format!(
                "Reading a file of {} MB with a byte per tile, in one read; compared with byte by byte through a buffer of 8 KiB.",
                bytes / 1_000_000
            ))
            .with_comparison("the same sum", whole == buffered),
        BenchRow::repeated(SYSTEM, "read, a byte", &at_once_ns, "ns")
            .with_reference("a byte a read", single_ns)
            .about("Time per byte in one read of the same file, compared with a system call per byte.")
            .with_comparison("the same sum", is_same)
            .with_target_ratio(50.0),
    ])
}

/// Loads a file into a map with regions; checks that it equals the written map.
fn load(
    files: &BenchFiles,
    format: MapFormat,
    expected: &TileMap,
    rounds: usize,
) -> Result<BenchRow, CliError> {
    let path = files.path(format);
    let mut times = Vec::new();
    let mut is_same = true;
    for _ in 0..rounds {
        let mut watch = Stopwatch::start();
        let found = map::load(&path)?;
        times.push(watch.lap_ns() as f64 / 1e6);
        is_same &= found == *expected;
    }
    let side = expected.width();
    let row = BenchRow::repeated(
        SYSTEM,
        format!("load .{}", format.extension()),
        &times,
        "ms",
    )
    .about(format!(
        "Loading a file of {side} × {side} tiles into bit planes and regions."
    ))
    .with_comparison("the map that was written", is_same);
    Ok(match format {
        MapFormat::Raw => row.with_target_below(60.0, "ms"),
        _ => row,
    })
}

/// Prepares a loaded map for searches.
fn prepare(algorithm: Algorithm, map: &TileMap, rounds: usize) -> BenchRow {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let mut prepared = NavMap::new(Diagonal::default());
        let mut watch = Stopwatch::start();
        prepared.prepare(map, algorithm);
        times.push(watch.lap_ns() as f64 / 1e6);
    }
    BenchRow::repeated(
        SYSTEM,
        format!("prepare {}", algorithm.name()),
        &times,
        "ms",
    )
    .about("Building the search data of this algorithm for a loaded map.")
}

/// Loads a map with its search data, compared with loading the tiles and building the data, and with reading and copying the bytes of the
/// file.
fn load_prepared(
    files: &BenchFiles,
    map: TileMap,
    rounds: usize,
) -> Result<Vec<BenchRow>, CliError> {
    let algorithm = Algorithm::JpsGraph;
    let mut built = NavMap::new(Diagonal::default());
    built.prepare(&map, algorithm);
    let (plain, path) = (
        files.path(MapFormat::Tmap),
        files.folder.join("prepared.tmap"),
    );
    let parts = built.to_sections(&map);
    map::save(&path, &map.with_sections(parts.clone()))?;
    let bytes = fs::metadata(&path).map_err(unreadable)?.len();
    let [mut load, mut ready, mut all, mut build, mut copy] = [const { Vec::new() }; 5];
    let mut is_same = true;
    for _ in 0..rounds {
        let mut watch = Stopwatch::start();
        let loaded = map::load(&path)?;
        load.push(watch.lap_ns() as f64 / 1e6);
        let (nav_map, refused) = NavMap::from_sections(Diagonal::default(), &loaded);
        ready.push(watch.lap_ns() as f64 / 1e6);
        is_same &= refused.is_empty() && nav_map.to_sections(&loaded) == parts;
        drop((loaded, nav_map));

        let mut watch = Stopwatch::start();
        let tiles = map::load(&plain)?;
        let mut nav_map = NavMap::new(Diagonal::default());
        nav_map.prepare(&tiles, algorithm);
        build.push(watch.lap_ns() as f64 / 1e6);
        drop((tiles, nav_map));

        let mut watch = Stopwatch::start();
        let read = fs::read(&path).map_err(unreadable)?;
        std::hint::black_box(read.clone());
        copy.push(watch.lap_ns() as f64 / 1e6);
    }
    all.extend(load.iter().zip(&ready).map(|(load, ready)| load + ready));
    let megabytes = bytes / 1_000_000;
    Ok(vec![
        BenchRow::repeated(SYSTEM, "load prepared", &load, "ms").about(format!(
            "Loading a .tmap of {megabytes} MB that contains planes and graph: into bit planes and regions, with all checksums."
        )),
        BenchRow::repeated(SYSTEM, "planes, graph", &ready, "ms")
            .about("Checking the search data of the same file until it is ready for searches.")
            .with_comparison("the data equals a new build", is_same),
        BenchRow::repeated(SYSTEM, "prepared, in all", &all, "ms")
            .with_repeated_reference("built", &build)
            .about("Both together, compared with loading a file of tiles only and building the search data."),
        BenchRow::repeated(SYSTEM, "prepared / copy", &all, "ms")
            .with_repeated_reference("read, copied", &copy)
            .about("The same, compared with reading the bytes of the file at once and copying them."),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_restores_the_map() {
        let rows = rows(128, 1, 1_000).unwrap();
        let agree = rows.iter().filter_map(|row| row.results_agree);
        assert!(agree.clone().all(|agrees| agrees));
        assert_eq!(agree.count(), 3 + MapFormat::ALL.len());
    }
}
