//! Messages to players on any node, and announcements to all nodes.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use throng_core::ids::PlayerId;

use super::cluster_players::ClusterPlayers;
use crate::messenger::MessengerEvent;

/// Sends a message of the game's systems to players on any node. It arrives as [`PlayerMessageReceived`]: for players of this node in the same
/// tick, in [`ClusterSystems::Collect`](super::ClusterSystems::Collect). A message to a player that moves to another node
/// follows it there. It may be lost, and is dropped for players who are logged out. Limits: [`MessengerSettings`](crate::MessengerSettings).
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerMessageRequest;
/// use throng_core::ids::PlayerId;
///
/// const CHAT: u16 = 1;
///
/// fn say(party: &[PlayerId], text: &str, mut requests: MessageWriter<PlayerMessageRequest>) {
///     requests.write(PlayerMessageRequest { to: party.to_vec(), channel: CHAT, bytes: text.into() });
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerMessageRequest {
    /// The players, in any order.
    pub to: Vec<PlayerId>,
    /// The kind of the message, a number of the game.
    pub channel: u16,
    /// The content.
    pub bytes: Vec<u8>,
}

/// A message to a player of this node has arrived.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerMessageReceived;
///
/// fn log(mut received: MessageReader<PlayerMessageReceived>) {
///     for it in received.read() {
///         println!("player {}: {} bytes", it.player.0, it.bytes.len());
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerMessageReceived {
    /// The player.
    pub player: PlayerId,
    /// The kind of the message.
    pub channel: u16,
    /// The content.
    pub bytes: Arc<[u8]>,
}

/// Sends a message to all nodes. It arrives as [`ClusterAnnounced`], on this node in the same tick. It may be lost on its way to other nodes.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::ClusterAnnouncement;
///
/// fn warn(mut announcements: MessageWriter<ClusterAnnouncement>) {
///     announcements.write(ClusterAnnouncement { channel: 2, bytes: b"restart at noon".to_vec() });
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct ClusterAnnouncement {
    /// The kind of the message, a number of the game.
    pub channel: u16,
    /// The content.
    pub bytes: Vec<u8>,
}

/// An announcement to all nodes has arrived.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::ClusterAnnounced;
///
/// fn log(mut announced: MessageReader<ClusterAnnounced>) {
///     for it in announced.read() {
///         println!("channel {}: {} bytes", it.channel, it.bytes.len());
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct ClusterAnnounced {
    /// The kind of the message.
    pub channel: u16,
    /// The content.
    pub bytes: Arc<[u8]>,
}

/// Emits the messages that have arrived from other nodes.
pub(super) fn deliver_messages(
    players: Res<ClusterPlayers>,
    mut received: MessageWriter<PlayerMessageReceived>,
    mut announced: MessageWriter<ClusterAnnounced>,
) {
    let Some(driver) = &players.driver else {
        return;
    };
    let events = driver.with_messages(|messenger, now_ms, _| {
        messenger.deliver(now_ms, |player| players.takes_messages(player))
    });
    for event in events {
        match event {
            MessengerEvent::ToPlayers {
                players,
                channel,
                bytes,
            } => {
                let each = players.into_iter().map(|player| PlayerMessageReceived {
                    player,
                    channel,
                    bytes: bytes.clone(),
                });
                received.write_batch(each);
            }
            MessengerEvent::ToAll { channel, bytes } => {
                announced.write(ClusterAnnounced { channel, bytes });
            }
        }
    }
}

/// Sends the messages of this tick.
pub(super) fn send_messages(
    players: Res<ClusterPlayers>,
    mut requests: MessageReader<PlayerMessageRequest>,
    mut announcements: MessageReader<ClusterAnnouncement>,
    mut received: MessageWriter<PlayerMessageReceived>,
    mut announced: MessageWriter<ClusterAnnounced>,
) {
    let Some(driver) = &players.driver else {
        requests.clear();
        announcements.clear();
        return;
    };
    if requests.is_empty() && announcements.is_empty() {
        return;
    }
    driver.with_messages(|messenger, now_ms, nodes| {
        for PlayerMessageRequest { to, channel, bytes } in requests.read() {
            if !messenger.accepts(to.len(), bytes.len()) {
                continue;
            }
            let mut to = to.clone();
            to.sort_unstable();
            to.dedup();
            let is_here = |player: &PlayerId| players.takes_messages(*player);
            let (here, elsewhere): (Vec<_>, Vec<_>) = to.into_iter().partition(is_here);
            let content: Arc<[u8]> = bytes.as_slice().into();
            received.write_batch(here.into_iter().map(|player| PlayerMessageReceived {
                player,
                channel: *channel,
                bytes: content.clone(),
            }));
            messenger.send(elsewhere, *channel, bytes, now_ms, nodes);
        }
        for ClusterAnnouncement { channel, bytes } in announcements.read() {
            if messenger.accepts(0, bytes.len()) {
                messenger.announce(*channel, bytes);
                announced.write(ClusterAnnounced {
                    channel: *channel,
                    bytes: bytes.as_slice().into(),
                });
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use bevy_app::{App, FixedMain, FixedPostUpdate};

    use super::*;
    use crate::bus::{BusPeer, ClusterKey, LocalBus, MessageBus};
    use crate::driver::{DriverSettings, NodeDriver};
    use crate::ids::ClusterRecord;
    use crate::plugin::{ClusterPlugin, PlayerHooks, PlayerMove};
    use crate::store::{ClusterStore, SharedRows};

    const PLAYER: PlayerId = PlayerId(7);

    struct Game;

    impl PlayerHooks for Game {
        fn on_collect(&self, _: &World, _: Entity) -> Vec<u8> {
            Vec::new()
        }

        fn on_receive(&self, world: &mut World, _: PlayerId, _: &ClusterRecord) -> Entity {
            world.spawn_empty().id()
        }
    }

    fn start(name: &str, rows: &SharedRows, bus: &LocalBus) -> NodeDriver {
        let open = || Box::new(rows.clone()) as Box<dyn ClusterStore>;
        let mut settings = DriverSettings::new(name);
        // No message is dropped because the machine is busy.
        settings.messages.hold_ms = 60_000;
        settings.messages.read_timeout_ms = 60_000;
        let driver = NodeDriver::start(&settings, open, |run| {
            let (own, key) = (BusPeer::Node(run.node), ClusterKey::new(&[7; 32]));
            let transport = Box::new(bus.join(own));
            Ok(MessageBus::new(transport, key, own, run.run))
        });
        driver.unwrap()
    }

    fn until(mut holds: impl FnMut() -> bool) {
        for _ in 0..30_000 {
            if holds() {
                return;
            }
            thread::park_timeout(Duration::from_millis(2));
        }
        panic!("the condition was never met");
    }

    /// Another node has the player already, and this app has not had its next tick.
    #[test]
    fn message_does_not_reach_the_app_that_its_player_leaves() {
        let (rows, bus) = (SharedRows::default(), LocalBus::default());
        let other = start("n2", &rows, &bus);
        let mut app = App::new();
        app.add_plugins(ClusterPlugin::new(Game));
        let mut players = app.world_mut().resource_mut::<ClusterPlayers>();
        players.open(start("n1", &rows, &bus));
        players.log_in(PLAYER);
        let players = |app: &App| app.world().resource::<ClusterPlayers>().entity(PLAYER);
        until(|| {
            app.world_mut().run_schedule(FixedMain);
            let here = app.world().resource::<ClusterPlayers>();
            here.driver().unwrap().node_named("n2").is_some() && players(&app).is_some()
        });
        until(|| {
            let (player, to) = (PLAYER, "n2".to_owned());
            app.world_mut().write_message(PlayerMove { player, to });
            app.world_mut().run_schedule(FixedPostUpdate);
            other.with_node(|node, now_ms| node.is_live(PLAYER, now_ms))
        });
        assert!(players(&app).is_some());
        app.world_mut().write_message(PlayerMessageRequest {
            to: vec![PLAYER],
            channel: 1,
            bytes: b"hello".to_vec(),
        });
        app.world_mut().run_schedule(FixedPostUpdate);
        let received = app.world().resource::<Messages<PlayerMessageReceived>>();
        assert!(received.is_empty());
        let mut events = Vec::new();
        until(|| {
            app.world_mut().run_schedule(FixedMain);
            events.extend(other.with_messages(|messenger, now_ms, _| {
                messenger.deliver(now_ms, |player| player == PLAYER)
            }));
            !events.is_empty()
        });
        let expected = MessengerEvent::ToPlayers {
            players: vec![PLAYER],
            channel: 1,
            bytes: b"hello".as_slice().into(),
        };
        assert_eq!(events, [expected]);
    }
}
