//! Players that connect over the network: each is spawned like the players of the scenario's first player crowd.

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use serde_json::json;
use throng::aoi::Viewer;
use throng::map::{MapEdited, SceneMap};
use throng::net::{UdpListener, WebListener};
use throng::session::{LoggedIn, PlayerRequest, PlayerRequestReceived, Sessions, control};
use throng::store::{PlayerLoaded, PlayerStore};
use throng::sync::{AnnouncementRequest, AnnouncementScope, Attributes};
use throng::wire::{Channel, ChatScope, ClientId, Encoding};
use throng::world::{Object, ObjectCategory, ObjectKinds, PartyId, PlayerId, TeamId};
use throng_scenario::crowd::{CrowdId, CrowdSpec, Crowds, Idle, spawn_individual};

use crate::CliError;

/// Maximum number of chat messages per tick; further ones are dropped.
const CHATS_PER_TICK_MAX: usize = 64;

/// Ticks that a chat message may wait until a client knows its speaker.
const CHAT_TTL_TICKS: u32 = 20;

/// Spawns the objects of players that connect over the network.
pub(super) struct ExternalPlayers {
    pub spec: CrowdSpec,
    logged_in: MessageCursor<LoggedIn>,
    loaded: MessageCursor<PlayerLoaded>,
    edited: MessageCursor<MapEdited>,
    player_requests: MessageCursor<PlayerRequestReceived>,
    /// Whether any player has logged in so far.
    pub has_had_player: bool,
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
                "the scenario has no crowd of players: connected players are spawned like those of the first player crowd",
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
            has_had_player: false,
        })
    }

    /// Applies view caps that clients requested, up to the scenario's cap, and delivers chat messages.
    pub fn handle_requests(&mut self, world: &mut World) {
        let requests = self
            .player_requests
            .read(world.resource::<Messages<PlayerRequestReceived>>());
        let (mut caps, mut chats) = (Vec::<(Entity, u16)>::new(), Vec::new());
        for request in requests {
            match &request.request {
                PlayerRequest::ViewCap(players) => caps.push((request.entity, *players)),
                PlayerRequest::Chat(scope, text) if chats.len() < CHATS_PER_TICK_MAX => {
                    chats.push((request.entity, *scope, text.clone()));
                }
                _ => {}
            }
        }
        for (speaker, scope, text) in chats {
            deliver_chat(world, speaker, scope, text);
        }
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

    /// Spawns an object for each player that logged in; with a store, once its record is loaded.
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
            self.has_had_player = true;
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

/// Sends a chat message to its recipients, as an announcement about the speaker.
fn deliver_chat(world: &mut World, speaker: Entity, scope: ChatScope, text: String) {
    let Some(about) = world.get::<Object>(speaker).map(Object::reference) else {
        return;
    };
    let scopes = match scope {
        ChatScope::Near => vec![AnnouncementScope::Viewers(about)],
        ChatScope::Scene => vec![AnnouncementScope::Scene(about.scene)],
        ChatScope::Party => {
            let party = world.get::<PartyId>(speaker);
            party
                .map(|&party| AnnouncementScope::Party(party))
                .into_iter()
                .collect()
        }
        ChatScope::Team => {
            let team = world.get::<TeamId>(speaker).copied();
            let sessions = world.resource::<Sessions>().iter();
            let members = sessions.filter(|(_, session)| {
                let object = session.controlled_entity;
                team.is_some()
                    && object.and_then(|object| world.get::<TeamId>(object)) == team.as_ref()
            });
            members
                .map(|(client, _)| AnnouncementScope::Client(client))
                .collect()
        }
    };
    for scope in scopes {
        world.write_message(AnnouncementRequest {
            // Only recipients who see the speaker know the object.
            about: matches!(scope, AnnouncementScope::Viewers(_)).then_some(about),
            scope,
            channel: Channel::Reliable,
            ttl_ticks: CHAT_TTL_TICKS,
            bytes: text.clone().into_bytes(),
        });
    }
}

/// The names of kinds, and the names, ids and encodings of attributes, as JSON for the page.
pub(super) fn names_json(world: &World) -> String {
    let kinds = world.get_resource::<ObjectKinds>().into_iter();
    let kinds = kinds.flat_map(ObjectKinds::iter);
    let kinds: Vec<_> = kinds.map(|kind| kind.name.as_str()).collect();
    let attributes = world.get_resource::<Attributes>().into_iter();
    let attributes = attributes.flat_map(Attributes::specs).map(|spec| {
        let encoding = match spec.encoding {
            Encoding::U8 => "u8",
            Encoding::U16 => "u16",
            Encoding::U32 => "u32",
            Encoding::Varint => "varint",
            Encoding::Zigzag => "zigzag",
            Encoding::F32 => "f32",
            Encoding::Bytes { .. } => "bytes",
        };
        json!({"id": spec.id, "name": spec.name, "encoding": encoding})
    });
    let attributes: Vec<_> = attributes.collect();
    json!({"kinds": kinds, "attributes": attributes}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Vec2;
    use throng::prelude::*;
    use throng::session::{ConnectionInfo, TransportHandle};
    use throng::wire::ClientMessage;
    use throng_scenario::crowd::CrowdArea;

    /// A server with four players: the first two in a team, the last two in a party.
    fn server_with_players() -> (Server, Vec<(ClientId, Entity)>) {
        let mut server = Server::builder().build();
        let scene = open_scene(server.world_mut(), SceneSpec::default(), ()).unwrap();
        let transport = server.world().resource::<TransportHandle>().clone();
        let players = (1..=4).map(|player| {
            let connected = ConnectionInfo::player(player).without_loading();
            let client = transport.connect(connected).unwrap();
            let mut login = Vec::new();
            ClientMessage::login(player).encode(&mut login);
            transport.receive(client, &login).unwrap();
            server.step(1);
            let place = (InScene(scene), Position(Vec2::splat(9.0)));
            let session = server.world().resource::<Sessions>().client_entity(client);
            let control = ControlledBy(session.unwrap());
            let body = (Player, PlayerId(player), control, place);
            let entity = server.world_mut().spawn(body).id();
            (client, entity)
        });
        let players: Vec<_> = players.collect();
        server.step(2);
        for (nth, &(_, entity)) in players.iter().enumerate() {
            let mut body = server.world_mut().entity_mut(entity);
            match nth {
                0 | 1 => body.insert(TeamId(7)),
                _ => body.insert(PartyId(3)),
            };
        }
        (server, players)
    }

    #[test]
    fn chat_reaches_the_recipients_of_its_scope() {
        let (mut server, players) = server_with_players();
        let world = server.world_mut();
        let sent = |world: &mut World, speaker, scope| {
            deliver_chat(world, speaker, scope, "hello".to_owned());
            let mut written = world.resource_mut::<Messages<AnnouncementRequest>>();
            let written: Vec<AnnouncementRequest> = written.drain().collect();
            assert!(written.iter().all(|one| one.bytes == b"hello"));
            written.into_iter().map(|one| one.scope).collect::<Vec<_>>()
        };
        let [(first, one), (second, _), _, (_, four)] = players[..] else {
            panic!("four players");
        };
        let object = *world.get::<Object>(one).unwrap();
        assert_eq!(
            sent(world, one, ChatScope::Near),
            [AnnouncementScope::Viewers(object.reference())]
        );
        assert_eq!(
            sent(world, one, ChatScope::Scene),
            [AnnouncementScope::Scene(object.scene())]
        );
        let team = [first, second].map(AnnouncementScope::Client);
        assert_eq!(sent(world, one, ChatScope::Team), team);
        assert_eq!(sent(world, one, ChatScope::Party), []);
        assert_eq!(
            sent(world, four, ChatScope::Party),
            [AnnouncementScope::Party(PartyId(3))]
        );
        assert_eq!(sent(world, four, ChatScope::Team), []);
        // A despawned speaker says nothing.
        world.despawn(one);
        assert_eq!(sent(world, one, ChatScope::Near), []);
    }

    #[test]
    fn requested_view_cap_is_at_most_that_of_the_scenario() {
        let (mut server, players) = server_with_players();
        let world = server.world_mut();
        let (client, entity) = players[0];
        world.entity_mut(entity).insert(Viewer::default());
        let scene = world.get::<Object>(entity).unwrap().scene_entity();
        let at = CrowdArea::Rect {
            min: Vec2::ZERO,
            max: Vec2::splat(9.0),
        };
        let spec = CrowdSpec::new("crowd", KindId::PLAYER, 1, scene, at);
        let cap = spec.caps.players;
        let mut external = ExternalPlayers {
            spec,
            logged_in: MessageCursor::default(),
            loaded: MessageCursor::default(),
            edited: MessageCursor::default(),
            player_requests: MessageCursor::default(),
            has_had_player: false,
        };
        for (requested, expected) in [(7, 7), (cap, cap), (cap + 1, cap), (u16::MAX, cap), (0, 0)] {
            world.write_message(PlayerRequestReceived {
                client,
                player: PlayerId(1),
                entity,
                request: PlayerRequest::ViewCap(requested),
            });
            external.handle_requests(world);
            let found = world.get::<Viewer>(entity).unwrap().caps.players;
            assert_eq!(found, expected, "{requested} requested");
        }
    }

    #[test]
    fn names_have_kinds_and_attributes_with_their_encodings() {
        let (server, _) = server_with_players();
        let names: serde_json::Value = serde_json::from_str(&names_json(server.world())).unwrap();
        assert!(
            names["kinds"]
                .as_array()
                .unwrap()
                .contains(&"player".into()),
            "{names}"
        );
        assert!(names["attributes"].is_array(), "{names}");
    }
}
