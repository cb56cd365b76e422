//! Attributes of party members on other nodes: publishes those of this node's players, and shows the others to the replication of the server.

use bevy_ecs::prelude::*;
use throng::sync::{Attributes, ForeignMembers, party_values};
use throng::world::KindId;
use throng_core::ids::{PartyId, PlayerId};

use crate::driver::NodeDriver;
use crate::ids::{ClusterNodeId, NodeRun};
use crate::party_values::{MemberHere, PartyExchange};
use crate::plugin::{ClusterGroups, ClusterPlayers, GroupMembersChanged};
use crate::request::{GroupKind, NodeEntry};

/// Takes the members of parties that are on other nodes. A player that has arrived here is not among them any more.
pub(super) fn receive_members(
    players: Res<ClusterPlayers>,
    groups: Res<ClusterGroups>,
    mut changed: MessageReader<GroupMembersChanged>,
    attributes: Option<Res<Attributes>>,
    foreign: Option<ResMut<ForeignMembers>>,
    mut last_run: Local<Option<NodeRun>>,
) {
    let (Some(attributes), Some(mut foreign)) = (attributes, foreign) else {
        changed.clear();
        return;
    };
    let driver = players.driver();
    let run = driver.map(|driver| driver.with_node(|node, _| node.run()));
    let is_new_run = *last_run != run;
    if is_new_run {
        *last_run = run;
        foreign.clear();
    }
    let Some(driver) = driver else {
        changed.clear();
        return;
    };
    driver.with_party_values(|exchange, now_ms, _| {
        for &GroupMembersChanged(group) in changed.read() {
            if group.kind == GroupKind::Party && attributes.has_party_attributes() {
                exchange.set_party(PartyId(group.id), groups.members(group));
            }
        }
        exchange.begin_tick(now_ms, |player| players.entity(player).is_some());
        if is_new_run {
            exchange.set_all_changed();
        }
        for player in exchange.take_changed() {
            match exchange.member(player) {
                Some((party, kind, values)) => {
                    foreign.set(&attributes, player, party, KindId(kind), values);
                }
                None => _ = foreign.remove(player),
            }
        }
    });
}

/// Publishes the attributes of the members that are here, as clients were sent them in this tick.
pub(super) fn publish_members(world: &World) {
    let players = world.resource::<ClusterPlayers>();
    if let Some(driver) = players.driver() {
        publish(world, players, driver);
    }
}

fn publish(world: &World, players: &ClusterPlayers, driver: &NodeDriver) {
    driver.with_party_values(|exchange, _, nodes| {
        for (player, party) in shared_members(exchange, players) {
            let place = players.entity(player).zip(players.stay(player));
            let Some((entity, (epoch, moves_to))) = place else {
                continue;
            };
            if let Some((kind, values)) = party_values(world, entity) {
                let member = MemberHere {
                    player,
                    party,
                    epoch,
                    kind: kind.0,
                    moves_to,
                };
                exchange.publish(member, values);
            }
        }
        exchange.end_tick(|node| is_alive(node, nodes));
    });
}

fn shared_members(
    exchange: &mut PartyExchange,
    players: &ClusterPlayers,
) -> Vec<(PlayerId, PartyId)> {
    let is_here = |player| players.entity(player).is_some();
    exchange.shared_members(players.version(), is_here).to_vec()
}

/// Whether a node is alive by the newest list. One that is newer than the list is.
fn is_alive(node: ClusterNodeId, nodes: &[NodeEntry]) -> bool {
    let mut runs = nodes
        .iter()
        .filter(|entry| entry.run.node == node)
        .peekable();
    runs.peek().is_none() || runs.any(|entry| entry.is_alive)
}
