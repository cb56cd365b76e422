//! Disconnects of synthetic players: lost connections, second logins, kicks, bans.
//!
//! Each function takes objects and acts on the clients that control them. It skips objects without a client, and returns the
//! number of affected clients.

use bevy_ecs::prelude::*;

use super::authenticator::CrowdAuthenticator;
use super::clients::SyntheticClients;
use throng::inbox::DisconnectReason;
use throng::session::{
    AwaitingReconnect, LogoutReason, Sessions, TransportHandle, controlling_client, disconnect,
};
use throng::sim::SimTick;
use throng::wire::ClientId;

/// The client that controls an object and has an open connection.
#[must_use]
pub fn client_of(world: &World, entity: Entity) -> Option<ClientId> {
    let is_there = world.get::<AwaitingReconnect>(entity).is_none();
    controlling_client(world, entity).filter(|_| is_there)
}

/// The connected clients that control these objects.
fn clients_of(world: &World, individuals: &[Entity]) -> Vec<ClientId> {
    let all = individuals.iter();
    all.filter_map(|&entity| client_of(world, entity)).collect()
}

/// Drops the connections of clients for `ticks` ticks. Then each reconnects from its other address: clients with a mirror resume by
/// token, the others log in.
pub fn disconnect_some(world: &mut World, individuals: &[Entity], ticks: u64) -> usize {
    let back_at = world.resource::<SimTick>().0.saturating_add(ticks.max(1));
    let transport = world.resource::<TransportHandle>().clone();
    let clients = clients_of(world, individuals);
    let mut synthetics = world.resource_mut::<SyntheticClients>();
    let lost = clients.into_iter().filter(|&client| {
        let is_ours = synthetics.disconnect(client, back_at);
        if is_ours {
            transport.disconnect(client, DisconnectReason::Lost);
        }
        is_ours
    });
    lost.count()
}

/// Makes the players of clients log in a second time, from their other addresses, before the next tick.
pub fn duplicate_login_some(world: &mut World, individuals: &[Entity]) -> usize {
    let clients = clients_of(world, individuals);
    let mut synthetics = world.resource_mut::<SyntheticClients>();
    let again = clients.into_iter();
    again
        .filter(|&client| synthetics.duplicate_login(client))
        .count()
}

/// Disconnects clients with the close reason "kicked". Synthetic players log in again 40 ticks later.
pub fn kick_some(world: &mut World, individuals: &[Entity]) -> usize {
    let clients = clients_of(world, individuals);
    for &client in &clients {
        disconnect(world, client, LogoutReason::Kicked);
    }
    clients.len()
}

/// Bans the addresses of clients in the [`CrowdAuthenticator`]: disconnects the clients with the close reason "banned", and refuses
/// connections from their addresses from then on.
pub fn ban_some(world: &mut World, individuals: &[Entity]) -> usize {
    let mut banned = 0;
    for client in clients_of(world, individuals) {
        let session = world.resource::<Sessions>().get(client);
        let Some(address) = session.and_then(|session| session.address) else {
            continue;
        };
        world.resource::<CrowdAuthenticator>().ban(address);
        disconnect(world, client, LogoutReason::Banned);
        banned += 1;
    }
    banned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crowd::members;
    use crate::testing::TestServer;
    use throng::session::Authentication;

    /// The state hash after an action on a crowd of five players.
    fn hash(act: impl Fn(&mut World, &[Entity]) -> usize) -> u64 {
        let mut server = TestServer::builder().crowd(5).build();
        let authenticator = server.stats::<CrowdAuthenticator>().clone();
        let world = server.world_mut();
        world.insert_resource(Authentication::new(authenticator));
        server.step(5);
        let all = members(server.world(), "crowd", None);
        act(server.world_mut(), &all);
        server.state_hash()
    }

    #[test]
    fn disconnects_kicks_and_bans_are_in_the_state_hash() {
        let hashes = [
            hash(|_, _| 0),
            hash(|world, all| disconnect_some(world, &all[..1], 5)),
            hash(|world, all| disconnect_some(world, &all[..1], 6)),
            hash(|world, all| duplicate_login_some(world, &all[..1])),
            hash(|world, all| kick_some(world, &all[..1])),
            // Like a kick, but the address cannot reconnect.
            hash(|world, all| ban_some(world, &all[..1])),
        ];
        let mut different = hashes.to_vec();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), hashes.len());
    }

    #[test]
    fn objects_without_a_connected_client_are_skipped() {
        let mut server = TestServer::builder().crowd(5).build();
        server.step(5);
        let all = members(server.world(), "crowd", None);
        let world = server.world_mut();
        assert_eq!(disconnect_some(world, &all[..2], 100), 2);
        server.step(2);
        let world = server.world_mut();
        assert_eq!(disconnect_some(world, &all, 100), 3);
        server.step(2);
        let world = server.world_mut();
        assert_eq!(
            kick_some(world, &all) + duplicate_login_some(world, &all),
            0
        );
    }

    #[test]
    fn kicked_and_banned_players_are_counted() {
        let mut server = TestServer::builder().crowd(5).build();
        let authenticator = server.stats::<CrowdAuthenticator>().clone();
        let world = server.world_mut();
        world.insert_resource(Authentication::new(authenticator));
        server.step(5);
        let all = members(server.world(), "crowd", None);
        let world = server.world_mut();
        assert_eq!(kick_some(world, &all[..2]), 2);
        assert_eq!(ban_some(world, &all[2..]), 3);
    }
}
