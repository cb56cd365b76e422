//! Passes the resume tokens of sessions on to the nodes that get their players.
//!
//! A client gets the token of its new node through its gateway. If the gateway dies before, the client has only the token of a former node,
//! so the new node accepts the tokens of former nodes as well. A lost message costs nothing unless the gateway dies at the same time; then the
//! client logs in.

use std::collections::BTreeMap;
use std::time::Duration;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use throng::session::Sessions;
use throng::sim::SimTick;
use throng_core::ids::PlayerId;

use super::{ClusterSessionsSettings, ticks};
use crate::gateway::{GatewayPort, MovedSession};
use crate::plugin::ClusterPlayers;

/// The time after which the token of a player that still moves is sent again.
const REPEAT: Duration = Duration::from_millis(250);

/// The node's end of the links.
#[derive(Resource, Clone, Debug)]
pub(super) struct NodePort(pub GatewayPort);

/// Sends the tokens of the players that move: at the start of a move, and again while it takes long.
pub(super) fn send_tokens(
    players: Res<ClusterPlayers>,
    sessions: Res<Sessions>,
    port: Option<Res<NodePort>>,
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
    mut last: Local<BTreeMap<PlayerId, u64>>,
) {
    let Some(port) = port else {
        return;
    };
    let repeat = ticks(REPEAT.as_secs_f32(), time.timestep());
    let is_due = |sent: Option<&u64>| sent.is_none_or(|sent| tick.0 >= sent + repeat);
    let mut moving = BTreeMap::new();
    let mut due = Vec::new();
    for (player, to) in players.moving() {
        let sent = last.get(&player);
        if !is_due(sent) {
            moving.extend(sent.map(|sent| (player, *sent)));
            continue;
        }
        moving.insert(player, tick.0);
        let tokens = sessions.resume_tokens(player).into_iter();
        due.extend(tokens.map(|token| (to.node, MovedSession { player, token })));
    }
    *last = moving;
    if !due.is_empty() {
        port.0.send_sessions(&due);
    }
}

/// Accepts the tokens of other nodes for as long as a client without its player stays.
pub(super) fn receive_tokens(
    port: Option<Res<NodePort>>,
    mut sessions: ResMut<Sessions>,
    settings: Res<ClusterSessionsSettings>,
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
) {
    let Some(port) = port else {
        return;
    };
    let until_tick = tick.0 + ticks(settings.client_wait_s, time.timestep());
    for MovedSession { player, token } in port.0.take_sessions() {
        sessions.allow_resume(player, token, until_tick);
    }
}
