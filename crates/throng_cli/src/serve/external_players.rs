//! Players who connect over the network: each is spawned like the players of the scenario's first crowd.

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use throng::aoi::Viewer;
use throng::map::{MapEdited, SceneMap};
use throng::net::{UdpListener, WebListener};
use throng::session::{LoggedIn, PlayerRequest, PlayerRequestReceived, Sessions, control};
use throng::store::{PlayerLoaded, PlayerStore};
use throng::wire::ClientId;
use throng::world::{ObjectCategory, ObjectKinds, PlayerId};
use throng_scenario::crowd::{CrowdId, CrowdSpec, Crowds, Idle, spawn_individual};

use crate::CliError;

/// Spawns players who connect over the network.
pub(super) struct ExternalPlayers {
    pub spec: CrowdSpec,
    logged_in: MessageCursor<LoggedIn>,
    loaded: MessageCursor<PlayerLoaded>,
    edited: MessageCursor<MapEdited>,
    player_requests: MessageCursor<PlayerRequestReceived>,
}

impl ExternalPlayers {
    pub fn new(world: &World) -> Result<Self, CliError> {
        let (crowds, kinds) = (world.resource::<Crowds>(), world.resource::<ObjectKinds>());
        let is_player = |spec: &&CrowdSpec| {
            let kind = kinds.get(spec.kind);
            kind.is_some_and(|kind| kind.class == ObjectCategory::Player)
        };
        let mut specs = (0..).map_while(|nth| crowds.spec(CrowdId(nth)));
        let Some(spec) = specs.find(is_player) else {
            return Err(CliError::new(
                "the scenario has no crowd of players: connected players are spawned like those of the first one",
            ));
        };
        let spec = CrowdSpec {
            behaviour: Idle.into(),
            ..spec.clone()
        };
        Ok(Self {
            spec,
            logged_in: MessageCursor::default(),
            loaded: MessageCursor::default(),
            edited: MessageCursor::default(),
            player_requests: MessageCursor::default(),
        })
    }

    /// Applies the view caps that clients requested, up to the cap of the scenario.
    pub fn apply_view_caps(&mut self, world: &mut World) {
        let asked = self
            .player_requests
            .read(world.resource::<Messages<PlayerRequestReceived>>());
        let caps: Vec<(Entity, u16)> = asked
            .filter_map(|asked| match asked.request {
                PlayerRequest::ViewCap(players) => Some((asked.entity, players)),
                _ => None,
            })
            .collect();
        for (entity, players) in caps {
            if let Some(mut viewer) = world.get_mut::<Viewer>(entity) {
                viewer.caps.players = players.min(self.spec.caps.players);
            }
        }
    }

    /// Sends map edits to the web page.
    pub fn send_map_edits(&mut self, world: &World) {
        let Some(web) = world.get_resource::<WebListener>() else {
            return;
        };
        for edit in self.edited.read(world.resource::<Messages<MapEdited>>()) {
            if let Some(map) = world.get::<SceneMap>(edit.scene_entity) {
                web.edit_map(edit.scene.0, map.tiles(), edit.rect);
            }
        }
    }

    /// Spawns an object for each player who logged in; with a store, after the record was loaded.
    pub fn spawn_characters(&mut self, world: &mut World) {
        let new = self.logged_in.read(world.resource::<Messages<LoggedIn>>());
        let mut new: Vec<(ClientId, PlayerId)> = new.map(|new| (new.client, new.player)).collect();
        if world
            .get_resource::<PlayerStore>()
            .is_some_and(PlayerStore::has_store)
        {
            let records = self.loaded.read(world.resource::<Messages<PlayerLoaded>>());
            new = records.map(|new| (new.client, new.record.player)).collect();
        }
        for (client, player) in new {
            let udp = world.get_resource::<UdpListener>();
            let web = world.get_resource::<WebListener>();
            let is_visitor = udp.is_some_and(|udp| udp.is_connected(client))
                || web.is_some_and(|web| web.is_connected(client));
            if !is_visitor || world.resource::<Sessions>().get(client).is_none() {
                continue;
            }
            let body = spawn_individual(world, &self.spec, player.0, player);
            match body {
                Ok(entity) => {
                    control(world, client, entity);
                }
                Err(error) => {
                    tracing::warn!(player = player.0, %error, "player not spawned");
                }
            }
        }
    }
}
