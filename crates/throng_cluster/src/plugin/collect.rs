//! Collects the states of players; handles moves, exchanges and log-outs.

use std::collections::BTreeSet;

use bevy_ecs::prelude::*;
use throng_core::ids::PlayerId;

use super::cluster_players::{ClusterPlayers, PresentPlayer, set_frozen};
use super::hooks::{LeaveReason, PlayerHooks, SharedHooks};
use crate::ids::NodeRun;
use crate::node::ClusterNode;
use crate::request::RefusedWrite;

/// A player moves to another node. It is frozen until it leaves or the move fails. Nothing happens if the target is not alive, the player is not
/// here, or this node pauses. Send it again in that case.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerMove;
/// use throng_core::ids::PlayerId;
///
/// fn enter_portal(player: PlayerId, mut moves: MessageWriter<PlayerMove>) {
///     moves.write(PlayerMove { player, to: "dungeon-1".to_owned() });
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerMove {
    /// The player.
    pub player: PlayerId,
    /// The name of the node.
    pub to: String,
}

/// A player logs out: it is saved and given up. While the node pauses, this waits.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerLogOut;
/// use throng_core::ids::PlayerId;
///
/// fn log_out(player: PlayerId, mut log_outs: MessageWriter<PlayerLogOut>) {
///     log_outs.write(PlayerLogOut(player));
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerLogOut(
    /// The player.
    pub PlayerId,
);

/// The login of a player was refused: it is on another node, or its node is late or dead, so another node may claim it soon.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerLoginRefused;
///
/// fn log(mut refused: MessageReader<PlayerLoginRefused>) {
///     for it in refused.read() {
///         println!("player {} cannot log in here: {:?}", it.player.0, it.reason);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerLoginRefused {
    /// The player.
    pub player: PlayerId,
    /// Why.
    pub reason: RefusedWrite,
}

/// Two players have exchanged something in this tick. Both are saved together.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerExchange;
/// use throng_core::ids::PlayerId;
///
/// /// Send this in the tick of the trade. A failure then keeps both sides of it or none.
/// fn trade(seller: PlayerId, buyer: PlayerId, mut exchanges: MessageWriter<PlayerExchange>) {
///     exchanges.write(PlayerExchange([seller, buyer]));
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerExchange(
    /// The players.
    pub [PlayerId; 2],
);

/// The requests of a tick.
struct TickRequests {
    exchanges: Vec<[PlayerId; 2]>,
    moves: Vec<(PlayerId, NodeRun)>,
    log_outs: Vec<PlayerId>,
}

/// Writes the states of players into their records, and begins moves and log-outs.
pub(super) fn collect_players(world: &mut World) {
    let SharedHooks {
        hooks,
        collect_interval_ticks,
    } = world.resource::<SharedHooks>().clone();
    let requests = take_requests(world);
    let players = world.resource::<ClusterPlayers>();
    let Some(driver) = &players.driver else {
        return;
    };
    let interval = u64::from(collect_interval_ticks);
    let is_due = |player: PlayerId| (player.0 % interval) == players.ticks % interval;
    let exchanging = requests.exchanges.iter().flatten().copied();
    let moving = requests.moves.iter().map(|(player, _)| *player);
    let leaving = requests.log_outs.iter().copied();
    let due = players.players().filter(|player| is_due(*player));
    let collected: BTreeSet<PlayerId> =
        exchanging.chain(moving).chain(leaving).chain(due).collect();
    let mut records = Vec::new();
    for player in collected {
        let present = players.present.get(&player);
        records.extend(present.and_then(|present| collect(world, &*hooks, player, present)));
    }
    let mut leaving = Vec::new();
    let is_paused = driver.with_node(|node, now_ms| {
        if !node.is_valid(now_ms) {
            return true;
        }
        // A player may have left since the start of the tick, and be back with an older state: then its entity has nothing to do with it.
        let is_same_stay = |node: &ClusterNode, player: &PlayerId| {
            let present = players.present.get(player);
            present.is_some_and(|present| node.arrival(*player) == Some(present.arrival))
        };
        records.retain(|(player, _)| is_same_stay(node, player));
        for &exchanging in &requests.exchanges {
            // Their states are written below. From now on, they are saved together.
            if exchanging.iter().all(|player| is_same_stay(node, player)) {
                node.exchange(exchanging, now_ms, |_| ());
            }
        }
        for (player, bytes) in records {
            if node
                .state(player, now_ms)
                .is_some_and(|known| known != bytes)
                && let Some(record) = node.edit(player, now_ms)
            {
                *record = bytes;
            }
        }
        for &(player, to) in &requests.moves {
            if is_same_stay(node, &player) && node.begin_move(player, to, now_ms) {
                leaving.push((player, LeaveReason::Moved, Some(to)));
            }
        }
        for &player in &requests.log_outs {
            if node.log_out(player) {
                leaving.push((player, LeaveReason::LoggedOut, None));
            }
        }
        false
    });
    if is_paused {
        return postpone(world, requests);
    }
    for (player, reason, to) in leaving {
        set_frozen(world, player, true);
        let mut players = world.resource_mut::<ClusterPlayers>();
        if let Some(present) = players.present.get_mut(&player) {
            (present.leaves, present.moves_to) = (Some(reason), to);
        }
    }
}

/// Keeps the requests of players of this node until the node goes on. Moves are dropped: the game sends them again.
fn postpone(world: &mut World, requests: TickRequests) {
    let mut players = world.resource_mut::<ClusterPlayers>();
    let ClusterPlayers {
        present, postponed, ..
    } = &mut *players;
    let is_here = |player: &PlayerId| present.contains_key(player);
    let exchanges = requests.exchanges.into_iter();
    postponed
        .exchanges
        .extend(exchanges.filter(|players| players.iter().all(is_here)));
    let log_outs = requests.log_outs.into_iter();
    postponed.log_outs.extend(log_outs.filter(is_here));
}

/// The requests of this tick, after those that were postponed.
fn take_requests(world: &mut World) -> TickRequests {
    let postponed = std::mem::take(&mut world.resource_mut::<ClusterPlayers>().postponed);
    let moves = take::<PlayerMove>(world);
    let log_outs = take::<PlayerLogOut>(world).into_iter();
    let exchanges = take::<PlayerExchange>(world).into_iter();
    let players = world.resource::<ClusterPlayers>();
    let run_of = |to: &str| {
        let run = players.driver.as_ref()?.node_named(to);
        if run.is_none() {
            tracing::warn!(to, "player not moved: no node of that name is alive");
        }
        run
    };
    let moves = moves
        .iter()
        .filter_map(|request| Some((request.player, run_of(&request.to)?)));
    let exchanges = exchanges.map(|exchange| exchange.0);
    let log_outs = log_outs.map(|log_out| log_out.0);
    TickRequests {
        exchanges: postponed.exchanges.into_iter().chain(exchanges).collect(),
        log_outs: postponed.log_outs.into_iter().chain(log_outs).collect(),
        moves: moves.collect(),
    }
}

fn take<M: Message>(world: &mut World) -> Vec<M> {
    world.resource_mut::<Messages<M>>().drain().collect()
}

/// The encoded state of a player; `None` if it leaves or its entity is gone.
fn collect(
    world: &World,
    hooks: &dyn PlayerHooks,
    player: PlayerId,
    present: &PresentPlayer,
) -> Option<(PlayerId, Vec<u8>)> {
    world.get_entity(present.entity).ok()?;
    // A player that is frozen by a pause is collected: the node may go on before it handles the requests of this tick.
    let is_leaving = present.leaves.is_some();
    (!is_leaving).then(|| (player, hooks.on_collect(world, present.entity)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use bevy_app::{App, FixedMain, FixedPostUpdate, FixedPreUpdate};

    use super::*;
    use crate::bus::{BusPeer, ClusterKey, LocalBus, MessageBus};
    use crate::driver::{DriverSettings, NodeDriver};
    use crate::ids::ClusterRecord;
    use crate::plugin::ClusterPlugin;
    use crate::request::{ClusterReply, ClusterRequest};
    use crate::store::{ClusterStore, ClusterStoreError, SharedRows};

    const SELLER: PlayerId = PlayerId(1_000);
    const BUYER: PlayerId = PlayerId(1_001);
    const LEAVER: PlayerId = PlayerId(1_002);

    #[derive(Component)]
    struct Gold(u8);

    struct Game;

    impl PlayerHooks for Game {
        fn on_collect(&self, world: &World, player: Entity) -> Vec<u8> {
            vec![world.get::<Gold>(player).unwrap().0]
        }

        fn on_receive(&self, world: &mut World, _: PlayerId, _: &ClusterRecord) -> Entity {
            world.spawn(Gold(1)).id()
        }
    }

    /// Rows that cannot be reached while `is_away` is set.
    struct DistantRows {
        rows: SharedRows,
        is_away: Arc<AtomicBool>,
    }

    impl ClusterStore for DistantRows {
        fn execute(&mut self, request: &ClusterRequest) -> Result<ClusterReply, ClusterStoreError> {
            if self.is_away.load(Ordering::Acquire) {
                return Err(ClusterStoreError::NotExecuted("away".to_owned()));
            }
            self.rows.execute(request)
        }
    }

    fn open_app(rows: &SharedRows, is_away: &Arc<AtomicBool>) -> App {
        let open = || -> Box<dyn ClusterStore> {
            let (rows, is_away) = (rows.clone(), is_away.clone());
            Box::new(DistantRows { rows, is_away })
        };
        let driver = NodeDriver::start(&DriverSettings::new("n1"), open, |run| {
            let (own, key) = (BusPeer::Node(run.node), ClusterKey::new(&[7; 32]));
            let transport = LocalBus::default().join(own);
            Ok(MessageBus::new(Box::new(transport), key, own, run.run))
        });
        let mut app = App::new();
        let mut plugin = ClusterPlugin::new(Game);
        // No player is collected by time.
        plugin.collect_interval_ticks = u32::MAX;
        app.add_plugins(plugin);
        let mut players = app.world_mut().resource_mut::<ClusterPlayers>();
        players.open(driver.unwrap());
        for player in [SELLER, BUYER, LEAVER] {
            players.log_in(player);
        }
        app
    }

    /// Waits for a condition, with a tick before each check if `ticks` is set.
    fn until(app: &mut App, ticks: bool, condition: impl Fn(&ClusterPlayers) -> bool) {
        for _ in 0..30_000 {
            if ticks {
                app.world_mut().run_schedule(FixedMain);
            }
            if condition(app.world().resource::<ClusterPlayers>()) {
                return;
            }
            thread::park_timeout(Duration::from_millis(2));
        }
        panic!("the condition was never met");
    }

    fn is_valid(players: &ClusterPlayers) -> bool {
        let driver = players.driver().unwrap();
        driver.with_node(|node, now_ms| node.is_valid(now_ms))
    }

    /// A node that is paused before the end of a tick in which two players traded and one logs out.
    fn paused_app(rows: &SharedRows, is_away: &Arc<AtomicBool>) -> App {
        let mut app = open_app(rows, is_away);
        until(&mut app, true, |players| players.players().count() == 3);
        is_away.store(true, Ordering::Release);
        until(&mut app, false, |players| !is_valid(players));
        let mut all = app.world_mut().query::<&mut Gold>();
        for mut gold in all.iter_mut(app.world_mut()) {
            gold.0 = 2;
        }
        app.world_mut()
            .write_message(PlayerExchange([SELLER, BUYER]));
        app.world_mut().write_message(PlayerLogOut(LEAVER));
        app.world_mut().run_schedule(FixedPostUpdate);
        app
    }

    /// The states of the traders in the records of the node.
    fn states_of_traders(app: &App) -> [Vec<u8>; 2] {
        let driver = &app.world().resource::<ClusterPlayers>().driver;
        let driver = driver.as_ref().unwrap();
        [SELLER, BUYER]
            .map(|player| driver.with_node(|node, _| node.record(player).unwrap().bytes.clone()))
    }

    /// Waits until the player that logs out is released with this state.
    fn assert_released(app: &mut App, rows: &SharedRows, state: u8) {
        until(app, true, |players| players.entity(LEAVER).is_none());
        drop(app.world_mut().resource_mut::<ClusterPlayers>().close());
        let released = rows.with_rows(|rows| {
            let mut records = rows.records();
            let (_, record) = records.find(|(player, _)| *player == LEAVER).unwrap();
            (rows.owner(LEAVER).unwrap().0, record.bytes.clone())
        });
        assert_eq!(released, (None, vec![state]));
    }

    #[test]
    fn requests_at_the_start_of_a_pause_are_handled_after_it() {
        let (rows, is_away) = (SharedRows::default(), Arc::new(AtomicBool::new(false)));
        let mut app = paused_app(&rows, &is_away);
        is_away.store(false, Ordering::Release);
        until(&mut app, false, is_valid);
        app.world_mut().run_schedule(FixedMain);
        assert_eq!(states_of_traders(&app), [[2], [2]]);
        assert_released(&mut app, &rows, 2);
    }

    #[test]
    fn pause_that_ends_within_a_tick_loses_no_state() {
        let (rows, is_away) = (SharedRows::default(), Arc::new(AtomicBool::new(false)));
        let mut app = paused_app(&rows, &is_away);
        // At the start of the next tick all players are frozen, and at its end the node goes on.
        app.world_mut().run_schedule(FixedPreUpdate);
        is_away.store(false, Ordering::Release);
        until(&mut app, false, is_valid);
        app.world_mut().run_schedule(FixedPostUpdate);
        assert_eq!(states_of_traders(&app), [[2], [2]]);
        assert_released(&mut app, &rows, 2);
    }

    /// The run ends within a tick, and the next one has its players back, as they were saved, before the end of the tick.
    #[test]
    fn state_of_a_former_stay_is_not_written() {
        let (rows, is_away) = (SharedRows::default(), Arc::new(AtomicBool::new(false)));
        let mut app = open_app(&rows, &is_away);
        until(&mut app, true, |players| players.players().count() == 3);
        app.world_mut().run_schedule(FixedPreUpdate);
        let players = app.world().resource::<ClusterPlayers>();
        let run = players.driver().unwrap().with_node(|node, _| node.run());
        let ended = rows.clone().execute(&ClusterRequest::EndRun { run });
        assert_eq!(ended, Ok(ClusterReply::Done));
        until(&mut app, false, |players| {
            let driver = players.driver().unwrap();
            driver.with_node(|node, now_ms| {
                let is_back = |player| node.is_live(player, now_ms);
                node.run() != run && [SELLER, BUYER, LEAVER].into_iter().all(is_back)
            })
        });
        let mut all = app.world_mut().query::<&mut Gold>();
        for mut gold in all.iter_mut(app.world_mut()) {
            gold.0 = 2;
        }
        app.world_mut()
            .write_message(PlayerExchange([SELLER, BUYER]));
        app.world_mut().run_schedule(FixedPostUpdate);
        assert_eq!(states_of_traders(&app), [[0; 0], [0; 0]]);
    }
}
