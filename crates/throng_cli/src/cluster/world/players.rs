//! Players arrive and leave.

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_cluster::{ClusterRecord, PlayerHooks};

use super::ClusterWorld;
use super::player_record::{PLACE_WAITING, TravellerRecord};
use super::scenes::OpenScenes;
use super::whereabouts::{Destination, MatchGuest, whereabouts};

/// Coins of a player.
#[derive(Component, Clone, Copy, Debug, Replicate)]
#[replicate(audience = Audience::OWNER)]
pub(in crate::cluster) struct Coins(pub u32);

/// In which scene of the world file a player is, by number; [`PLACE_WAITING`] in a waiting room. For its client.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Replicate)]
#[replicate(audience = Audience::OWNER)]
pub(in crate::cluster) struct Place(pub u16);

/// A record that this program cannot read, such as one of a newer version. It is saved as it was, and its player stays in the waiting room.
#[derive(Component)]
struct UnreadRecord(Vec<u8>);

/// How players become records and the other way round.
pub(super) struct WorldHooks(pub ClusterWorld);

impl WorldHooks {
    fn new_player(&self, player: PlayerId) -> TravellerRecord {
        let world = &self.0.0;
        TravellerRecord {
            gold: world.gold,
            scene: world.start_of(player).to_owned(),
            at_m: world.start_at_m,
            in_match: None,
        }
    }
}

impl PlayerHooks for WorldHooks {
    fn on_collect(&self, world: &World, player: Entity) -> Vec<u8> {
        if let Some(unread) = world.get::<UnreadRecord>(player) {
            return unread.0.clone();
        }
        let gold = world.get::<Coins>(player).map_or(0, |gold| gold.0);
        let Destination { scene, at_m } = whereabouts(world, player);
        let in_match = world.get::<MatchGuest>(player).map(|guest| guest.id);
        let record = TravellerRecord {
            gold,
            scene,
            at_m,
            in_match,
        };
        record.to_bytes()
    }

    fn on_receive(&self, world: &mut World, player: PlayerId, record: &ClusterRecord) -> Entity {
        let state = if record.revision == 0 {
            self.new_player(player)
        } else {
            match TravellerRecord::from_bytes(&record.bytes) {
                Some(state) => state,
                None => return keep_unread(world, player, record),
            }
        };
        let open = world.resource::<OpenScenes>();
        let here = open.get(&state.scene).zip(self.0.0.number_of(&state.scene));
        let here = here.filter(|_| state.in_match.is_none());
        let (scene, place) = here.unwrap_or((open.waiting_room(), PLACE_WAITING));
        let at_m = if here.is_some() {
            state.at_m
        } else {
            OpenScenes::WAITING_AT_M
        };
        let own = (
            Player,
            player,
            MaxSpeed(self.0.0.speed_m_s),
            Coins(state.gold),
            Place(place),
        );
        let entity = world.spawn((own, InScene(scene), Position(at_m), Viewer::default()));
        let entity = entity.id();
        if here.is_none() {
            let (scene, at_m) = (state.scene, state.at_m);
            let destination = Destination { scene, at_m };
            match state.in_match {
                Some(id) => {
                    let tick = world.resource::<SimTick>().0;
                    let guest = MatchGuest::on_its_way(id, destination, &self.0.0, tick);
                    world.entity_mut(entity).insert(guest);
                }
                None => _ = world.entity_mut(entity).insert(destination),
            }
        }
        entity
    }
}

/// A player whose record cannot be read.
fn keep_unread(world: &mut World, player: PlayerId, record: &ClusterRecord) -> Entity {
    tracing::error!(
        player = player.0,
        bytes = record.bytes.len(),
        "record unreadable: the player stays in the waiting room, and its record is kept; run a version that can read it"
    );
    let room = world.resource::<OpenScenes>().waiting_room();
    let place = (InScene(room), Position(OpenScenes::WAITING_AT_M));
    let own = (
        Player,
        player,
        Place(PLACE_WAITING),
        UnreadRecord(record.bytes.clone()),
    );
    world.spawn((own, place, Viewer::default())).id()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::cluster::world::WorldFile;

    #[test]
    fn record_that_cannot_be_read_is_saved_as_it_was() {
        let mut server = Server::builder().build();
        let world = server.world_mut();
        world.init_resource::<OpenScenes>();
        OpenScenes::open_waiting_room(world).unwrap();
        let hooks = WorldHooks(ClusterWorld(Arc::new(
            WorldFile::load("three_towns").unwrap(),
        )));
        for bytes in [vec![9; 20], Vec::new()] {
            let record = ClusterRecord { revision: 3, bytes };
            let player = hooks.on_receive(world, PlayerId(7), &record);
            assert_eq!(hooks.on_collect(world, player), record.bytes);
        }
    }
}
