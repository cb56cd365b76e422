//! Where players are, and where they go to.

use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::prelude::*;
use throng_cluster::MatchId;

use super::world_file::WorldFile;

/// Time after which a player goes home by itself if it hears nothing of its match, in seconds.
pub(super) const SILENCE_S: f64 = 5.0;

/// Where a player is on its way to.
#[derive(Component, Clone, Debug)]
pub(super) struct Destination {
    pub scene: String,
    pub at_m: Vec2,
}

/// A player in a match, or on its way to it.
#[derive(Component, Clone, Debug)]
pub(super) struct MatchGuest {
    pub id: MatchId,
    /// The place that it returns to.
    pub home: Destination,
    /// The tick at which it returns by itself.
    pub until: u64,
}

impl MatchGuest {
    /// A player that is on its way to a match.
    pub fn on_its_way(id: MatchId, home: Destination, world: &WorldFile, tick: u64) -> Self {
        let until = tick + world.ticks(SILENCE_S);
        Self { id, home, until }
    }
}

/// The scene of a player and its place there. Of a player on its way, those that it goes to; of one in a match, those that it returns to.
pub(super) fn whereabouts(world: &World, player: Entity) -> Destination {
    if let Some(guest) = world.get::<MatchGuest>(player) {
        return guest.home.clone();
    }
    if let Some(destination) = world.get::<Destination>(player) {
        return destination.clone();
    }
    let scene = world.get::<InScene>(player).map(|scene| scene.0);
    let name = scene.and_then(|scene| world.get::<SimScene>(scene));
    let at_m = world.get::<Position>(player).map(|at| at.0);
    Destination {
        scene: name.map_or_else(String::new, |scene| scene.name().to_owned()),
        at_m: at_m.unwrap_or_default(),
    }
}
