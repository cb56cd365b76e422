//! Players queue for matches at boards, play in an instance, and return to the place where they were.
//!
//! ```text
//! at a board ─▶ MatchTicket … MatchOpened ─▶ an instance ─▶ MatchAssigned ─▶ MatchGuest: on the way, or in the instance
//!                             time is over ─▶ MatchReport ─▶ MatchEnded ─▶ Destination: the place before the match
//! ```

use std::collections::BTreeMap;

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_cluster::{
    ClusterModeSettings, ClusterPlayer, ClusterPlayers, FrozenPlayer, MatchAssigned, MatchClosed,
    MatchEnded, MatchEntry, MatchId, MatchNode, MatchOpened, MatchReport, MatchStep, MatchTicket,
    MatcherSettings, NoMatchElsewhere, TicketRating,
};
use throng_matchmaking::{MatchModeSettings, ModeError};

use super::ClusterWorld;
use super::player_record::PLACE_MATCH;
use super::players::Place;
use super::scenes::{ClosingScene, open_empty_scene};
use super::whereabouts::{Destination, MatchGuest, SILENCE_S, whereabouts};
use super::world_file::WorldFile;

/// Time after which a player may queue again, in seconds. A ticket that still waits is not replaced.
const QUEUE_AGAIN_S: f64 = 10.0;

/// A player that has queued for a match.
#[derive(Component)]
pub(super) struct QueuedPlayer {
    /// The tick from which on it may queue again.
    again_at: u64,
}

/// The matches of this node.
#[derive(Resource, Default)]
pub(in crate::cluster) struct OpenMatches(BTreeMap<MatchId, OpenMatch>);

struct OpenMatch {
    scene: Entity,
    ends_at: u64,
}

impl WorldFile {
    /// This node's part in the matches of the world; `None` if it has no modes.
    pub fn match_node(&self) -> Result<Option<MatchNode>, ModeError> {
        if self.modes.is_empty() {
            return Ok(None);
        }
        let settings = self.modes.iter().map(|mode| ClusterModeSettings {
            is_requeued: true,
            ..ClusterModeSettings::new(MatchModeSettings::groups(&mode.name, mode.team_players))
        });
        let settings: Vec<ClusterModeSettings> = settings.collect();
        MatchNode::new(&settings, MatcherSettings::default()).map(Some)
    }
}

/// Opens and ends the matches of this node.
pub(super) fn run_matches(
    world: &mut World,
    mut opened: Local<MessageCursor<MatchOpened>>,
    mut closed: Local<MessageCursor<MatchClosed>>,
) {
    let opened = opened.read(world.resource::<Messages<MatchOpened>>());
    let opened: Vec<MatchEntry> = opened.map(|opened| opened.0.clone()).collect();
    let closed = closed.read(world.resource::<Messages<MatchClosed>>());
    let closed: Vec<MatchId> = closed.map(|closed| closed.0).collect();
    for entry in opened {
        let step = match open_match(world, &entry) {
            Ok(()) => MatchStep::Opened,
            Err(error) => {
                tracing::error!(mode = entry.mode, %error, "match not opened");
                MatchStep::Failed
            }
        };
        let id = entry.id;
        world.write_message(MatchReport { id, step });
    }
    closed.into_iter().for_each(|id| close_match(world, id));
    let tick = world.resource::<SimTick>().0;
    let open = world.resource::<OpenMatches>().0.iter();
    let over = open.filter(|(_, open)| open.ends_at <= tick);
    let over: Vec<MatchId> = over.map(|(id, _)| *id).collect();
    for id in over {
        close_match(world, id);
        let step = MatchStep::Ended(Vec::new());
        world.write_message(MatchReport { id, step });
    }
}

fn open_match(world: &mut World, entry: &MatchEntry) -> Result<(), Box<dyn std::error::Error>> {
    let tick = world.resource::<SimTick>().0;
    let file = world.resource::<ClusterWorld>().0.clone();
    let mode = file.mode(&entry.mode).ok_or("no mode has this name")?;
    let scene = open_empty_scene(world, &mode.name, mode.size_m)?;
    let ends_at = tick + file.ticks(mode.duration_s);
    let mut open = world.resource_mut::<OpenMatches>();
    open.0.insert(entry.id, OpenMatch { scene, ends_at });
    Ok(())
}

/// Closes an instance. Its players stay in it until they know where to go.
fn close_match(world: &mut World, id: MatchId) {
    let closing = world.resource_mut::<OpenMatches>().0.remove(&id);
    if let Some(mut scene) = closing.and_then(|open| world.get_entity_mut(open.scene).ok()) {
        scene.insert(ClosingScene);
    }
}

/// Players at a board queue for its mode.
pub(super) fn queue_at_boards(
    world: Res<ClusterWorld>,
    tick: Res<SimTick>,
    players: Query<
        (
            Entity,
            &ClusterPlayer,
            &Position,
            &Place,
            Option<&QueuedPlayer>,
        ),
        (
            Without<FrozenPlayer>,
            Without<Destination>,
            Without<MatchGuest>,
        ),
    >,
    mut tickets: MessageWriter<MatchTicket>,
    mut commands: Commands,
) {
    for (entity, player, at, place, queued) in &players {
        let Some(scene) = world.0.scenes.get(usize::from(place.0)) else {
            continue;
        };
        let mut boards = scene.boards.iter();
        let board = boards.find(|board| board.at_m.distance(at.0) <= board.radius_m);
        let Some(board) = board.filter(|_| queued.is_none_or(|queued| queued.again_at <= tick.0))
        else {
            continue;
        };
        tickets.write(MatchTicket {
            mode: board.mode.clone(),
            players: vec![player.0],
            scene: scene.name.clone(),
            rating: TicketRating::default(),
        });
        let again_at = tick.0 + world.0.ticks(QUEUE_AGAIN_S);
        commands.entity(entity).insert(QueuedPlayer { again_at });
    }
}

/// Players set out for their match, and enter it.
pub(super) fn enter_matches(world: &mut World, mut cursor: Local<MessageCursor<MatchAssigned>>) {
    let assigned = cursor.read(world.resource::<Messages<MatchAssigned>>());
    let assigned: Vec<MatchAssigned> = assigned.copied().collect();
    let tick = world.resource::<SimTick>().0;
    let file = world.resource::<ClusterWorld>().0.clone();
    for MatchAssigned {
        player,
        id,
        moves_to,
    } in assigned
    {
        let entity = world.resource::<ClusterPlayers>().entity(player);
        let is_free = |entity: &Entity| {
            let entity = world.get_entity(*entity);
            entity.is_ok_and(|entity| !entity.contains::<FrozenPlayer>())
        };
        let Some(entity) = entity.filter(is_free) else {
            continue;
        };
        let home = whereabouts(world, entity);
        let mut guest = MatchGuest::on_its_way(id, home, &file, tick);
        let instance = world.resource::<OpenMatches>().0.get(&id);
        let instance = instance.filter(|_| moves_to.is_none());
        let instance = instance.map(|open| (open.scene, open.ends_at));
        if moves_to.is_none() && instance.is_none() {
            // It is over already: the player hears of that, too.
            continue;
        }
        if let Some((scene, ends_at)) = instance {
            guest.until = ends_at + file.ticks(SILENCE_S);
            let size_m = world.get::<SimScene>(scene).map(SimScene::size_m);
            let at_m = size_m.unwrap_or_default() / 2.0;
            let place = (InScene(scene), Position(at_m), Place(PLACE_MATCH));
            world.entity_mut(entity).insert(place);
        }
        let mut player = world.entity_mut(entity);
        player.insert(guest).remove::<(Destination, QueuedPlayer)>();
    }
}

/// Players whose match is over return to their scene, and so do those that have heard nothing of their match for too long.
pub(super) fn leave_matches(
    (tick, open): (Res<SimTick>, Res<OpenMatches>),
    cluster: Res<ClusterPlayers>,
    mut ended: MessageReader<MatchEnded>,
    mut elsewhere: MessageReader<NoMatchElsewhere>,
    mut guests: Query<(Entity, &mut MatchGuest, Has<FrozenPlayer>)>,
    mut commands: Commands,
) {
    // A frozen player returns later.
    for entity in ended.read().filter_map(|it| cluster.entity(it.player)) {
        if let Ok((_, mut guest, _)) = guests.get_mut(entity) {
            guest.until = tick.0;
        }
    }
    for entity in elsewhere.read().filter_map(|it| cluster.entity(it.0)) {
        if let Ok((_, mut guest, _)) = guests.get_mut(entity)
            && !open.0.contains_key(&guest.id)
        {
            guest.until = tick.0;
        }
    }
    for (entity, guest, is_frozen) in &guests {
        if guest.until <= tick.0 && !is_frozen {
            let mut player = commands.entity(entity);
            player.insert(guest.home.clone()).remove::<MatchGuest>();
        }
    }
}

#[cfg(test)]
mod tests;
