//! `throng bench memory`: memory per player and module; the cost of measuring it; and the cost of allocating and freeing blocks of a few
//! sizes.
//!
//! `bench tick` reports the memory that a process needs for one crowd.

use std::hint::black_box;

use super::CliError;
use super::rows::BenchRow;
use crate::is_interrupted;
use throng::memory::{allocated, memory_by_module};
use throng::outbox::{CountingSink, Outbox};
use throng::sim::clock::Stopwatch;
use throng_scenario::crowd::{LOAD_WARM_UP_TICKS, LoadLayout, add_load_as, load_npcs};
use throng_scenario::testing::TestServer;

const SYSTEM: &str = "memory";

const CROWDS: [u32; 3] = [2_000, 5_000, 10_000];

/// Ticks after all players started to move.
const TICKS: u64 = 100;

/// Modules that are not memory of players: the town's map, its search data, and synthetic clients, which would run elsewhere.
const NON_PLAYER_MODULES: [&str; 3] = ["map", "nav_maps", "crowd"];

/// The modules must account for at least this share of the allocated memory.
const ATTRIBUTED_MIN: f64 = 0.8;

pub(super) fn measure(quick: bool, threads: usize) -> Result<Vec<BenchRow>, CliError> {
    let mut rows = Vec::new();
    for players in &CROWDS[..if quick { 1 } else { CROWDS.len() }] {
        rows.extend(crowd(*players, threads)?);
        if is_interrupted() {
            return Ok(rows);
        }
    }
    let rounds = if quick { 11 } else { 101 };
    rows.extend([48, 1_024, 65_536].map(|bytes| blocks(bytes, rounds)));
    Ok(rows)
}

/// The memory of a crowd in motion.
fn crowd(players: u32, threads: usize) -> Result<Vec<BenchRow>, CliError> {
    let allocated_before = allocated().bytes;
    let mut server = TestServer::builder().workers(threads).build();
    let mut outbox = server.world_mut().resource_mut::<Outbox>();
    outbox.set_sink(CountingSink::default());
    add_load_as(server.world_mut(), players, LoadLayout::Spread)
        .map_err(|error| CliError::new(error.to_string()))?;
    for _ in 0..LOAD_WARM_UP_TICKS + TICKS {
        server.step(1);
        if is_interrupted() {
            return Ok(Vec::new());
        }
    }
    let asking: Vec<f64> = (0..5)
        .map(|_| {
            let watch = Stopwatch::start();
            black_box(memory_by_module(server.world()));
            watch.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let modules = memory_by_module(server.world());
    let a_player = |bytes: usize| bytes as f64 / f64::from(players);
    let row = |case: &str, bytes: usize| {
        BenchRow::new(
            SYSTEM,
            format!("{case}/{players}"),
            a_player(bytes),
            "B/player",
        )
    };
    let is_of_players = |module: &str| !NON_PLAYER_MODULES.contains(&module);
    let all: usize = modules.values().sum();
    let of_players = modules.iter().filter(|(module, _)| is_of_players(module));
    let of_players: usize = of_players.map(|(_, bytes)| bytes).sum();
    let whole = row("a player", of_players)
        .about(format!(
            "Memory of all modules per player, without the map, its search data and synthetic clients; includes {} NPCs.",
            load_npcs(players)
        ))
        .with_target_below(8_000.0, "B");
    let mut rows = vec![whole];
    let mut by_size: Vec<(&str, usize)> = modules.into_iter().collect();
    by_size.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    // A module with less than a byte per player belongs to the server.
    by_size.retain(|&(_, bytes)| a_player(bytes) >= 1.0);
    rows.extend(by_size.into_iter().map(|(module, bytes)| {
        row(&format!("of {module}"), bytes).about(format!(
            "Memory of the module `{module}` per player, from the capacities of its data structures."
        ))
    }));
    let row_of_total = BenchRow::repeated(SYSTEM, format!("asking/{players}"), &asking, "ms")
        .about("Adding up the memory of all modules.");
    let counted = allocated().bytes.saturating_sub(allocated_before);
    rows.push(if counted > 0 {
        let share = all as f64 / counted as f64;
        row_of_total.with_comparison(
            format!(
                "modules account for {:.0} % to 100 % of the allocated memory",
                ATTRIBUTED_MIN * 100.0
            ),
            (ATTRIBUTED_MIN..=1.0).contains(&share),
        )
    } else {
        row_of_total
    });
    Ok(rows)
}

/// Blocks that are allocated and freed in a mixed order, as those of messages and parties are.
fn blocks(bytes: usize, rounds: usize) -> BenchRow {
    /// Number of live blocks.
    const LIVE: usize = 1_024;
    /// Coprime to `LIVE`: each block is freed once per round, far away from the block freed before.
    const STRIDE: usize = 389;
    let mut live: Vec<Vec<u8>> = (0..LIVE).map(|_| Vec::with_capacity(bytes)).collect();
    let times: Vec<f64> = (0..rounds)
        .map(|_| {
            let watch = Stopwatch::start();
            for nth in 0..LIVE {
                live[nth * STRIDE % LIVE] = black_box(Vec::with_capacity(bytes));
            }
            watch.elapsed().as_secs_f64() * 1e9 / LIVE as f64
        })
        .collect();
    BenchRow::repeated(SYSTEM, format!("block of {bytes} B"), &times, "ns").about(
        "Allocating one block of this size and freeing another, with 1,024 in use. With the feature \
         `count-alloc`, allocations are counted.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_by_module_is_reported_per_player() {
        let rows = crowd(100, 1).unwrap();
        let value = |case: &str| {
            let row = rows.iter().find(|row| row.case == case);
            row.map(|row| row.value)
        };
        let (whole, sync) = (
            value("a player/100").unwrap(),
            value("of sync/100").unwrap(),
        );
        assert!(whole > sync && sync > 0.0, "{rows:?}");
        assert!(!blocks(48, 3).has_failed());
    }
}
