//! A tick in which 10,000 NPCs request paths of up to 80 tiles.

use std::sync::Arc;

use glam::Vec2;

use super::TOWN_TILES;
use crate::CliError;
use crate::bench::rows::BenchRow;
use throng::map::SceneMap;
use throng::nav::{NavSettings, NavStats, PathQuery, PathRequest};
use throng::sim::{SimSystems, TickTimings};
use throng::world::{KindId, SceneSpec, open_scene, spawn_object};
use throng_nav::workload;
use throng_scenario::testing::TestServer;

const REQUESTS: usize = 10_000;
const TILES_APART_MAX: u32 = 80;
const AIM_MS: f64 = 20.0;
/// Measured ticks, after one warm-up tick.
const REPEATS: usize = 5;

pub(super) fn measure(threads: usize) -> Result<BenchRow, CliError> {
    let map = workload::town(TOWN_TILES)?;
    let queries: Vec<PathQuery> = (1..=4)
        .flat_map(|quarter| {
            let apart = TILES_APART_MAX * quarter / 4;
            workload::queries_at_distance(&map, REQUESTS / 4, apart * 20 / 21, u64::from(quarter))
        })
        .collect();
    let mut server = TestServer::builder().workers(threads).timing().build();
    let scene_map = SceneMap::new(Arc::new(map), 1.0);
    let spec = SceneSpec {
        size_m: scene_map.size_m(),
        max_objects: REQUESTS as u32,
        ..SceneSpec::default()
    };
    let centre = |tile: glam::IVec2| tile.as_vec2() + Vec2::splat(0.5);
    let failed = |error: throng::world::WorldError| CliError::new(error.to_string());
    let world = server.world_mut();
    let scene = open_scene(world, spec, scene_map).map_err(failed)?;
    let mut npcs = Vec::new();
    for query in &queries {
        let npc = spawn_object(world, scene, KindId(1), centre(query.from), ());
        npcs.push(npc.map_err(failed)?);
    }
    *world.resource_mut::<NavSettings>() = NavSettings {
        searches_per_tick_max: u32::MAX,
        expansions_per_tick_max: u64::MAX,
        ..NavSettings::default()
    };
    // Runs until all search data is built and in use, and the scratch memory is warm.
    server.step(30);
    let mut taken_ms = Vec::new();
    for _ in 0..=REPEATS {
        for (npc, query) in npcs.iter().zip(&queries) {
            let request = PathRequest::to(centre(query.to));
            server.world_mut().entity_mut(*npc).insert(request);
        }
        server.world_mut().resource_mut::<TickTimings>().reset();
        server.step(1);
        taken_ms.push(navigate_ms(&server));
    }
    let answered = server.stats::<NavStats>().found + server.stats::<NavStats>().capped;
    let is_whole = answered == (REPEATS as u64 + 1) * queries.len() as u64;
    Ok(
        BenchRow::repeated("nav", "10,000 in a tick", &taken_ms[1..], "ms")
            .about(format!(
                "A tick in which {REQUESTS} NPCs request paths of up to {TILES_APART_MAX} tiles, \
                 on {threads} threads."
            ))
            .with_comparison("all requests are answered", is_whole)
            .with_target_below(AIM_MS, "ms"),
    )
}

/// The time of path searches in the last tick.
fn navigate_ms(server: &TestServer) -> f64 {
    let timings = server.stats::<TickTimings>();
    timings.set(SimSystems::Navigate).max_ms
}
