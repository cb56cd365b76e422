//! Throng compared with published crates: the same work, in one process, on one thread, with the same results. Prints a JSON
//! array, a row per line, like `throng bench --json`.
//!
//! ```text
//! THRONG_MOVINGAI=FOLDER cargo run --release --manifest-path benches/peers/Cargo.toml
//! cargo run --release --ignore-rust-version --features replicon --manifest-path benches/peers/Cargo.toml -- sync
//! cargo run --release --features net --manifest-path benches/peers/Cargo.toml -- net
//! ```
//! Names of systems after `--` select them; without any, all are measured.
//!
//! `nav`: the same queries on the same maps, alternating, and the same lengths to the last step. Throng's preparation of a map is
//! not timed: it is done once. With the folder of the MovingAI files four of its maps are measured, on queries taken by stride
//! from their `.scen` files; without it a generated town. Peers:
//! - `pathfinding` 4: its A* as its documentation shows it, a node a tile, with the octile distance as the estimate. Its
//!   costs are integers in the ratio 2378 : 3363, a convergent of √2 that keeps the order of paths exact on these maps,
//!   and it reads the same bitmap as throng does.
//! - `grid_pathfinding` is left out: it cuts corners, and no setting makes its rule that of throng, so it would answer
//!   other questions.
//!
//! `aoi`: views compared with a k-d tree and a difference of lists, `kiddo` 6; its module documents what is comparable.
//!
//! `directory`: the cache of players on other nodes compared with `moka` 0.12; its module documents what is comparable.
//!
//! `pool`: throng's arrays of numbered items compared with a pool of the reference's kind, `slotmap` and `slab`.
//!
//! `sync`: replication of a walking crowd compared with `bevy_replicon` 0.45; its module documents what is comparable. It needs
//! the feature `replicon`, which is off by default: that crate depends on an umbrella crate which declares rustc 1.97.1.
//!
//! `net`: the transport compared with `renet` 2.0, `aeronet_transport` 0.22 and `quinn-proto` 0.11, over the same simulated
//! networks; its module documents what is comparable. It needs the feature `net`, which is off by default because it counts
//! allocations.

mod aoi;
mod directory;
#[cfg(any(feature = "net", feature = "replicon"))]
mod heap;
#[cfg(feature = "net")]
mod net;
mod peer;
mod pool;
#[cfg(feature = "replicon")]
mod sync;

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use glam::IVec2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;
use throng::map::{self, MapRecipe, TileMap, TownRecipe};
use throng::nav::{Algorithm, NavMap, PathQuery, PathSearch, SearchOutcome, Steps, parse_scen};

/// Throng's algorithms: the one for maps that are edited, and the fastest.
const ALGORITHMS: [Algorithm; 2] = [Algorithm::JpsBitPrune, Algorithm::JpsGraph];

/// The maps, and the target speed-up over the peer of each of the two algorithms.
const MAPS: [(&str, [f64; 2]); 4] = [
    ("orz900d", [185.0, 300.0]),
    ("TheFrozenSea", [320.0, 390.0]),
    ("16room_000", [165.0, 280.0]),
    ("Berlin_0_1024", [1_500.0, 2_280.0]),
];

/// Queries per map, by stride.
const QUERIES: usize = 40;

/// Repetitions of each query; the minimum time counts, for throng and for the peer.
const ROUNDS: usize = 3;

/// One piece of work, compared with a peer's.
#[derive(Serialize)]
struct Row {
    system: &'static str,
    case: String,
    /// The meaning of the figure, if the case does not make it clear.
    about: String,
    /// Throng's mean.
    value: f64,
    unit: &'static str,
    reference: &'static str,
    /// The peer's mean.
    reference_value: f64,
    more_is_better: bool,
    /// The peer's by throng's, or the other way round if more is better: above 1, throng is better. None if one is 0.
    ratio: Option<f64>,
    target: Option<String>,
    meets: Option<bool>,
}

impl Row {
    /// Throng's value and the peer's, without a target.
    fn beside(
        system: &'static str,
        case: String,
        [value, reference_value]: [f64; 2],
        unit: &'static str,
        reference: &'static str,
    ) -> Self {
        Self {
            system,
            case,
            about: String::new(),
            value,
            unit,
            reference,
            reference_value,
            more_is_better: false,
            ratio: (value > 0.0).then_some(reference_value / value),
            target: None,
            meets: None,
        }
    }

    /// A value that is better when it is larger.
    fn more_is_better(self) -> Self {
        let ratio = (self.reference_value > 0.0).then_some(self.value / self.reference_value);
        Self {
            more_is_better: true,
            ratio,
            ..self
        }
    }
}

#[cfg(feature = "net")]
impl Row {
    /// With a sentence that explains the figure.
    fn about(self, about: impl Into<String>) -> Self {
        Self {
            about: about.into(),
            ..self
        }
    }

    /// With a target of at most this value for throng.
    fn aiming_below(self, most: f64) -> Self {
        Self {
            target: Some(format!("<= {most} {}", self.unit)),
            meets: Some(self.value <= most),
            ..self
        }
    }

    /// With a target of at least this value for throng.
    fn aiming_above(self, least: f64) -> Self {
        Self {
            target: Some(format!(">= {least} {}", self.unit)),
            meets: Some(self.value >= least),
            ..self
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let is_chosen = |system: &str| chosen.is_empty() || chosen.iter().any(|name| name == system);
    let mut systems = vec!["nav", "aoi", "store", "pool"];
    if cfg!(feature = "replicon") {
        systems.push("sync");
    }
    if cfg!(feature = "net") {
        systems.push("net");
    }
    if let Some(name) = chosen.iter().find(|name| !systems.contains(&name.as_str())) {
        return Err(format!("expected systems of {systems:?}, found {name:?}").into());
    }
    let mut rows = Vec::new();
    if is_chosen("nav") {
        rows.extend(nav()?);
    }
    if is_chosen("aoi") {
        rows.extend(aoi::measure());
    }
    if is_chosen("store") {
        rows.extend(directory::measure());
    }
    if is_chosen("pool") {
        rows.extend(pool::measure());
    }
    #[cfg(feature = "replicon")]
    if is_chosen("sync") {
        rows.extend(sync::measure());
    }
    #[cfg(feature = "net")]
    if is_chosen("net") {
        rows.extend(net::measure()?);
    }
    let lines: Result<Vec<String>, _> = rows.iter().map(serde_json::to_string).collect();
    println!("[{}]", lines?.join(",\n "));
    Ok(())
}

fn nav() -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    if let Some(folder) = std::env::var_os("THRONG_MOVINGAI") {
        for (name, ratios_min) in MAPS {
            let file = Path::new(&folder).join(format!("{name}.map"));
            let map = map::load(&file)?;
            let queries = scen_queries(&file.with_extension("map.scen"))?;
            for (algorithm, ratio_min) in ALGORITHMS.into_iter().zip(ratios_min) {
                rows.push(compare(name, &map, algorithm, &queries, Some(ratio_min)));
            }
        }
    } else {
        let town = TownRecipe {
            width_tiles: 1_024,
            height_tiles: 1_024,
            ..TownRecipe::default()
        };
        let map = map::generate(&MapRecipe::Town(town), 1)?;
        let queries = random_queries(&map);
        for algorithm in ALGORITHMS {
            rows.push(compare("town", &map, algorithm, &queries, None));
        }
    }
    Ok(rows)
}

/// Queries of a `.scen` file by stride: they are sorted by length.
fn scen_queries(file: &Path) -> Result<Vec<(IVec2, IVec2)>, Box<dyn Error>> {
    let scen = parse_scen(&file.display().to_string(), &std::fs::read_to_string(file)?)?;
    let stride = (scen.queries().count() / QUERIES).max(1);
    let queries = scen.queries().skip(stride / 2).step_by(stride);
    Ok(queries
        .take(QUERIES)
        .map(|query| (query.from, query.to))
        .collect())
}

/// Pairs of tiles that are connected.
fn random_queries(map: &TileMap) -> Vec<(IVec2, IVec2)> {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut tile = || {
        let mut axis = |tiles: u32| random.random_range(0..tiles as i32);
        IVec2::new(axis(map.width()), axis(map.height()))
    };
    let pairs = std::iter::repeat_with(|| (tile(), tile()));
    pairs
        .filter(|(from, to)| map.are_connected(*from, *to))
        .take(QUERIES)
        .collect()
}

fn compare(
    name: &str,
    map: &TileMap,
    algorithm: Algorithm,
    queries: &[(IVec2, IVec2)],
    ratio_min: Option<f64>,
) -> Row {
    let mut nav_map = NavMap::default();
    nav_map.prepare(map, algorithm);
    let (mut search, mut waypoints) = (PathSearch::new(), Vec::new());
    let mut throng = |(from, to)| -> Option<Steps> {
        let query = PathQuery::new(from, to);
        match search.find(map, &nav_map, algorithm, query, &mut waypoints) {
            SearchOutcome::Found(path) => Some(path.steps),
            _ => None,
        }
    };
    let mut times = vec![[Duration::MAX; 2]; queries.len()];
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // Each runs all queries before the other: alternating per query, the peer's tables of many megabytes would empty the
        // caches for throng.
        let with_times = queries.iter().zip(&mut times);
        found = with_times
            .map(|(query, [least, _])| timed(least, || throng(*query)))
            .collect();
        let with_times = queries.iter().zip(&mut times);
        expected = with_times
            .map(|(query, [_, least])| timed(least, || peer::find(map, query.0, query.1)))
            .collect();
    }
    assert!(found.iter().all(Option::is_some), "{name}: {found:?}");
    assert_eq!(found, expected, "{name}: both find shortest paths");
    let mean_us = |who: usize| {
        let sum: Duration = times.iter().map(|time| time[who]).sum();
        sum.as_secs_f64() * 1e6 / queries.len() as f64
    };
    let (value, reference_value) = (mean_us(0), mean_us(1));
    let case = format!("{algorithm} {name}");
    let row = Row::beside(
        "nav",
        case,
        [value, reference_value],
        "us",
        "pathfinding A*",
    );
    Row {
        target: ratio_min.map(|least| format!("at least {least} times as fast")),
        meets: ratio_min.map(|least| row.ratio.is_some_and(|ratio| ratio >= least)),
        ..row
    }
}

/// The result of a query. `least` becomes its time, if that is less.
fn timed(least: &mut Duration, find: impl FnOnce() -> Option<Steps>) -> Option<Steps> {
    let start = Instant::now();
    let answer = find();
    *least = start.elapsed().min(*least);
    answer
}
