//! The load for benchmarks of the whole tick: any number of players, with a constant mix of behaviours and a constant density.
//!
//! 80 % of the players walk to goals up to 200 m from home, 10 % gather in the square, 5 % wander near home and 5 % stand still.
//! Each is a synthetic client that sends ten messages per second and for which packets are encoded, has two attribute changes per
//! second, and sees at most 100 players. For every four players there is an NPC, which chases players.
//!
//! Invariant: density does not depend on the size. A town of 1 km² holds up to 2,500 players; for more, its sides grow with the
//! square root of their number, up to the largest square map; above that, density rises. Walking distances do not grow with the
//! town, so that path costs per player stay constant.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use glam::Vec2;
use thiserror::Error;

use super::area::CrowdArea;
use super::behaviour::{Behaviour, Chase, Gather, Idle, Wander};
use super::crowds::{CrowdSpec, STAGGER_S};
use super::spawn::add_crowd;
use throng::aoi::{SceneInterest, ViewCaps, Viewer};
use throng::inbox::InboxSettings;
use throng::map::{MapError, MapRecipe, SceneMap, TownRecipe, generate};
use throng::nav::NavPath;
use throng::session::SessionSettings;
use throng::world::{KindId, ObjectKinds, SceneSpec, WorldError, open_scene};

/// Maximum number of players of a load.
pub const LOAD_PLAYERS_MAX: u32 = 500_000;

/// Number of ticks over which the players log in.
const LOGIN_TICKS: u32 = 20;

/// Warm-up, in ticks at 20 Hz: after it, all players have logged in and started to walk, and their first searches are done.
pub const LOAD_WARM_UP_TICKS: u64 = (STAGGER_S as u64 + 2) * 20 + LOGIN_TICKS as u64;

/// Density of a town: players per km².
const PLAYERS_PER_KM2: f64 = 2_500.0;

const TILE_M: f32 = 0.5;

/// Maximum side of a square map, in tiles.
const SIDE_TILES_MAX: u32 = 16_384;

/// The seed of the town.
const TOWN_SEED: u64 = 1;

/// The side of the square of [`LoadLayout::Square`], in metres: two interest cells.
pub const LOAD_SQUARE_M: f32 = 100.0;

/// The distribution of a load in its town.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadLayout {
    /// Spread over the town with equal density.
    #[default]
    Spread,
    /// In one square of [`LOAD_SQUARE_M`] in the middle of the town, where each can see all others.
    Square,
}

/// Why a load cannot be created.
#[derive(Debug, Error)]
pub enum LoadError {
    /// More players than [`LOAD_PLAYERS_MAX`].
    #[error("expected at most {LOAD_PLAYERS_MAX} players, found {0}")]
    Players(u32),
    /// The town could not be built.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The scene could not be opened, or an object could not be spawned.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// The side of the town for a number of players, in tiles of half a metre.
#[must_use]
pub fn load_side_tiles(players: u32) -> u32 {
    let side_m = 1_000.0 * (f64::from(players) / PLAYERS_PER_KM2).max(1.0).sqrt();
    ((side_m / f64::from(TILE_M)).ceil() as u32).min(SIDE_TILES_MAX)
}

/// The number of NPCs for a number of players.
#[must_use]
pub const fn load_npcs(players: u32) -> u32 {
    players / 4
}

/// Adds the load to a server that has the crowd plugins and has run no tick, and returns the town's scene. The players log in
/// from the next tick on, within a second. Limits of sessions and inbox are raised where the load would reach them.
///
/// # Errors
/// [`LoadError`].
pub fn add_load(world: &mut World, players: u32) -> Result<Entity, LoadError> {
    add_load_as(world, players, LoadLayout::Spread)
}

/// As [`add_load`], with a layout.
///
/// # Errors
/// [`LoadError`].
pub fn add_load_as(
    world: &mut World,
    players: u32,
    layout: LoadLayout,
) -> Result<Entity, LoadError> {
    if players > LOAD_PLAYERS_MAX {
        return Err(LoadError::Players(players));
    }
    let mut sessions = world.resource_mut::<SessionSettings>();
    sessions.sessions_max = sessions.sessions_max.max(players);
    sessions.players_max = sessions.players_max.max(players);
    sessions.sessions_opened_per_tick_max = sessions.sessions_opened_per_tick_max.max(players);
    sessions.admitted_per_tick_max = sessions
        .admitted_per_tick_max
        .max(players.div_ceil(LOGIN_TICKS));
    let mut inbox = world.resource_mut::<InboxSettings>();
    inbox.messages_per_tick_max = inbox.messages_per_tick_max.max(2 * players);
    inbox.backlog_max = inbox.backlog_max.max(4 * players);
    inbox.unauthenticated_backlog_max = inbox.unauthenticated_backlog_max.max(players);

    let side = load_side_tiles(players);
    let recipe = TownRecipe {
        width_tiles: side,
        height_tiles: side,
        ..TownRecipe::default()
    };
    let map = SceneMap::new(
        Arc::new(generate(&MapRecipe::Town(recipe), TOWN_SEED)?),
        TILE_M,
    );
    let size_m = map.size_m();
    let max_objects = players + load_npcs(players) + 1;
    let scene = open_scene(
        world,
        SceneSpec {
            name: "load".into(),
            size_m,
            max_objects,
        },
        map,
    )?;
    for spec in load_crowds(world, scene, players, (size_m, layout)) {
        add_crowd(world, spec)?;
    }
    Ok(scene)
}

fn load_crowds(
    world: &World,
    scene: Entity,
    players: u32,
    (size_m, layout): (Vec2, LoadLayout),
) -> [CrowdSpec; 5] {
    let kinds = world.resource::<ObjectKinds>();
    let kind = |name: &str| kinds.find(name).unwrap_or_default();
    let (player, npc): (KindId, KindId) = (kind("player"), kind("npc"));
    let (everywhere, walk_m) = match layout {
        LoadLayout::Spread => (
            CrowdArea::Rect {
                min: Vec2::ZERO,
                max: size_m,
            },
            200.0,
        ),
        LoadLayout::Square => (
            CrowdArea::Rect {
                min: (size_m - LOAD_SQUARE_M) / 2.0,
                max: (size_m + LOAD_SQUARE_M) / 2.0,
            },
            20.0,
        ),
    };
    let square = CrowdArea::Ring {
        center: size_m / 2.0,
        radius: 10.0,
        width: 20.0,
    };
    let of_players = |tag: &str, count: u32, behaviour: Behaviour| CrowdSpec {
        behaviour,
        speed_m_s: 3.0,
        attributes_per_s: 2.0,
        client_share: 1.0,
        caps: ViewCaps {
            players: 100,
            npcs: 50,
            things: 50,
        },
        ..CrowdSpec::new(tag, player, count, scene, everywhere)
    };
    let tenth = players / 10;
    let idle = tenth / 2;
    [
        of_players(
            "walking",
            players - 2 * tenth,
            Wander { radius_m: walk_m }.into(),
        ),
        of_players("gathering", tenth, Gather { at: square }.into()),
        of_players("pottering", tenth - idle, Wander { radius_m: 20.0 }.into()),
        of_players("idle", idle, Idle.into()),
        CrowdSpec {
            behaviour: Chase {
                kind: player,
                sight_m: 15.0,
            }
            .into(),
            speed_m_s: 2.0,
            ..CrowdSpec::new("hunters", npc, load_npcs(players), scene, everywhere)
        },
    ]
}

/// Counts the players with an object, the players on a path, and the view links.
#[must_use]
pub fn load_census(world: &mut World) -> LoadCensus {
    let mut players = world.query_filtered::<Option<&NavPath>, With<Viewer>>();
    let mut census = LoadCensus::default();
    for path in players.iter(world) {
        census.players += 1;
        census.walking += u32::from(path.is_some_and(|path| !path.remaining().is_empty()));
    }
    let mut scenes = world.query::<&SceneInterest>();
    census.links = scenes
        .iter(world)
        .map(|interest| interest.views().link_count() as u64)
        .sum();
    census
}

/// See [`load_census`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadCensus {
    /// Players with an object.
    pub players: u32,
    /// Players on a path.
    pub walking: u32,
    /// View links, each direction counted.
    pub links: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crowd::SyntheticClients;
    use crate::testing::TestServer;
    use throng::outbox::OutboxStats;
    use throng::world::Position;

    #[test]
    fn towns_grow_with_their_players_and_keep_their_density() {
        assert_eq!([1, 2_500].map(load_side_tiles), [2_000; 2]);
        assert_eq!(load_side_tiles(10_000), 4_000);
        assert_eq!(load_side_tiles(LOAD_PLAYERS_MAX), SIDE_TILES_MAX);
    }

    #[test]
    fn all_players_are_in_and_most_walk_after_the_warm_up() {
        let mut server = TestServer::builder().build();
        add_load(server.world_mut(), 40).unwrap();
        server.step(LOAD_WARM_UP_TICKS);
        let census = load_census(server.world_mut());
        assert_eq!(census.players, 40);
        assert!(census.walking >= 28, "{census:?}");
        let before = *server.stats::<OutboxStats>();
        server.step(20);
        let now = server.stats::<OutboxStats>();
        // Within a second, every player sees some object turn or stop; a client gets at most one packet per tick and channel.
        let frames = now.packets - before.packets;
        assert!((40..=40 * 20 * 2).contains(&frames), "{frames} frames");
        assert_eq!(
            server.stats::<SyntheticClients>().stats().packets,
            0,
            "packets are counted by the sink and decoded by no mirror"
        );
    }

    #[test]
    fn crowd_in_one_square_stays_there_and_has_fuller_views() {
        let links = [LoadLayout::Spread, LoadLayout::Square].map(|layout| {
            let mut server = TestServer::builder().build();
            add_load_as(server.world_mut(), 60, layout).unwrap();
            server.step(LOAD_WARM_UP_TICKS);
            let world = server.world_mut();
            let census = load_census(world);
            assert_eq!(census.players, 60);
            let mut players = world.query_filtered::<&Position, With<Viewer>>();
            // Half the square, plus the distance that a player can walk since its login.
            let near = |at: Vec2| (at - 500.0).abs().max_element() <= LOAD_SQUARE_M / 2.0 + 36.0;
            let all_near = players.iter(world).all(|position| near(position.0));
            assert_eq!(all_near, layout == LoadLayout::Square);
            census.links
        });
        assert!(links[1] > 5 * links[0], "{links:?}");
    }

    #[test]
    fn players_at_their_goal_choose_another() {
        let mut server = TestServer::builder().build();
        add_load(server.world_mut(), 40).unwrap();
        // A path of 200 m takes 67 s: nearly every player has reached a goal by then.
        server.step(100 * 20);
        let positions = |server: &mut TestServer| -> Vec<Vec2> {
            let world = server.world_mut();
            let mut players = world.query_filtered::<&Position, With<Viewer>>();
            players.iter(world).map(|position| position.0).collect()
        };
        let before = positions(&mut server);
        server.step(20);
        let moved = before
            .iter()
            .zip(positions(&mut server))
            .filter(|(a, b)| **a != *b)
            .count();
        assert!(moved >= 28, "{moved} of 40");
    }

    #[test]
    fn too_many_players_are_refused() {
        let mut server = TestServer::builder().build();
        let refused = add_load(server.world_mut(), LOAD_PLAYERS_MAX + 1);
        assert!(matches!(refused, Err(LoadError::Players(_))));
    }
}
