//! Players queue on one app, play a match on any app, and go home afterwards.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use bevy_app::{App, FixedMain};
use bevy_ecs::prelude::*;
use throng_cluster::{
    BusPeer, ClusterKey, ClusterModeSettings, ClusterPlayers, ClusterPlugin, ClusterRecord,
    ClusterStore, DriverSettings, DriverStartError, FrozenPlayer, LocalBus, MatchAssigned,
    MatchClosed, MatchEnded, MatchId, MatchNode, MatchOpened, MatchReport, MatchState, MatchStep,
    MatchTicket, MatchTicketChanged, MatchTicketInvalid, MatcherSettings, MessageBus, NodeDriver,
    PlayerHooks, TicketOutcome, TicketRating,
};
use throng_core::ids::PlayerId;
use throng_matchmaking::MatchModeSettings;

use crate::patience::RowClock;
use crate::play::nodes::SwitchedStore;

/// Rounds of 2 ms or more after which a condition counts as never met.
const ROUNDS_MAX: u32 = 30_000;

#[derive(Component)]
struct Gold(u8);

struct Game;

impl PlayerHooks for Game {
    fn on_collect(&self, world: &World, player: Entity) -> Vec<u8> {
        vec![world.get::<Gold>(player).unwrap().0]
    }

    fn on_receive(&self, world: &mut World, _: PlayerId, record: &ClusterRecord) -> Entity {
        let gold = record.bytes.first().copied().unwrap_or(3);
        world.spawn(Gold(gold)).id()
    }
}

/// The messages that an app received.
#[derive(Resource, Default)]
struct MatchDiary {
    changes: Vec<(Option<PlayerId>, TicketOutcome)>,
    invalid: usize,
    opened: Vec<MatchId>,
    entered: Vec<(PlayerId, MatchId)>,
    ended: Vec<(PlayerId, String)>,
    closed: Vec<MatchId>,
}

fn note_tickets(
    mut diary: ResMut<MatchDiary>,
    mut changes: MessageReader<MatchTicketChanged>,
    mut invalid: MessageReader<MatchTicketInvalid>,
) {
    let changes = changes.read().map(|it| (it.leader, it.outcome));
    diary.changes.extend(changes);
    diary.invalid += invalid.read().count();
}

/// The game: it opens instances at once. Each player that enters an instance gets a coin.
fn play(
    mut diary: ResMut<MatchDiary>,
    mut opened: MessageReader<MatchOpened>,
    mut assigned: MessageReader<MatchAssigned>,
    mut ended: MessageReader<MatchEnded>,
    mut closed: MessageReader<MatchClosed>,
    mut reports: MessageWriter<MatchReport>,
    players: Res<ClusterPlayers>,
    mut gold: Query<&mut Gold, Without<FrozenPlayer>>,
) {
    for MatchOpened(entry) in opened.read() {
        diary.opened.push(entry.id);
        let (id, step) = (entry.id, MatchStep::Opened);
        reports.write(MatchReport { id, step });
    }
    for it in assigned.read().filter(|it| it.moves_to.is_none()) {
        diary.entered.push((it.player, it.id));
        let entity = players.entity(it.player).unwrap();
        gold.get_mut(entity).unwrap().0 += 1;
    }
    let homes = ended.read().map(|it| (it.player, it.home.scene.clone()));
    diary.ended.extend(homes);
    diary.closed.extend(closed.read().map(|it| it.0));
}

fn start(name: &str, rows: &SwitchedStore, bus: &LocalBus) -> App {
    let open = || Box::new(rows.clone()) as Box<dyn ClusterStore>;
    let mut settings = DriverSettings::new(name);
    settings.nodes_interval = Duration::from_millis(50);
    let driver = NodeDriver::start(&settings, open, |run| {
        let own = BusPeer::Node(run.node);
        let key = ClusterKey::new(&[7; 32]);
        let transport = Box::new(bus.join(own));
        Ok::<_, DriverStartError>(MessageBus::new(transport, key, own, run.run))
    });
    let driver = driver.unwrap();
    let duel = ClusterModeSettings {
        is_requeued: true,
        ..ClusterModeSettings::new(MatchModeSettings::groups("duel", 1))
    };
    driver.open_matches(MatchNode::new(&[duel], MatcherSettings::default()).unwrap());
    let mut app = App::new();
    app.init_resource::<MatchDiary>();
    app.add_plugins(ClusterPlugin::new(Game));
    app.add_systems(bevy_app::FixedUpdate, (note_tickets, play));
    app.world_mut()
        .resource_mut::<ClusterPlayers>()
        .open(driver);
    app
}

/// Apps on the same rows, ticked until a condition holds.
struct Apps {
    apps: Vec<App>,
    rows: SwitchedStore,
    clock: RowClock,
}

impl Apps {
    fn new(count: usize) -> Self {
        let (rows, bus) = (SwitchedStore::default(), LocalBus::default());
        let names = (0..count).map(|nth| format!("n{nth}"));
        Self {
            apps: names.map(|name| start(&name, &rows, &bus)).collect(),
            rows,
            clock: RowClock::start(),
        }
    }

    fn tick(&mut self) {
        for app in &mut self.apps {
            app.world_mut().run_schedule(FixedMain);
        }
    }

    fn until(&mut self, what: &str, condition: impl Fn(&[App]) -> bool) {
        for _ in 0..ROUNDS_MAX {
            self.clock.advance(&self.rows.rows);
            self.tick();
            if condition(&self.apps) {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
        panic!("{what}");
    }

    /// Waits without ticks.
    fn until_without_ticks(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        for _ in 0..ROUNDS_MAX {
            if condition(self) {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
        panic!("{what}");
    }
}

fn is_here(app: &App, player: u64) -> bool {
    let players = app.world().resource::<ClusterPlayers>();
    players.entity(PlayerId(player)).is_some()
}

fn diary(app: &App) -> &MatchDiary {
    app.world().resource::<MatchDiary>()
}

fn log_in(apps: &mut Apps, players: &[(usize, u64)]) {
    for (nth, player) in players {
        let world = apps.apps[*nth].world();
        world.resource::<ClusterPlayers>().log_in(PlayerId(*player));
    }
    apps.until("players log in", |apps| {
        players
            .iter()
            .all(|(nth, player)| is_here(&apps[*nth], *player))
    });
}

fn ticket(player: u64, mode: &str) -> MatchTicket {
    MatchTicket {
        mode: mode.to_owned(),
        players: vec![PlayerId(player)],
        scene: format!("house {player}"),
        rating: TicketRating::default(),
    }
}

#[test]
fn players_of_two_apps_play_a_match_and_go_home() {
    let mut apps = Apps::new(2);
    log_in(&mut apps, &[(0, 7), (1, 8)]);
    apps.apps[0].world_mut().write_message(ticket(7, "chess"));
    apps.apps[0].world_mut().write_message(ticket(7, "duel"));
    apps.apps[1].world_mut().write_message(ticket(8, "duel"));
    apps.until("both enter the same instance", |apps| {
        let entered = apps.iter().map(|app| diary(app).entered.len());
        entered.sum::<usize>() == 2
    });
    let host = apps
        .apps
        .iter()
        .position(|app| !diary(app).opened.is_empty());
    let host = host.unwrap();
    assert_eq!(diary(&apps.apps[host]).entered.len(), 2);
    assert!(is_here(&apps.apps[host], 7) && is_here(&apps.apps[host], 8));
    assert_eq!(diary(&apps.apps[0]).invalid, 1);
    let added = (Some(PlayerId(7)), TicketOutcome::Added);
    assert_eq!(diary(&apps.apps[0]).changes, [added]);
    let id = diary(&apps.apps[host]).opened[0];
    let step = MatchStep::Ended(b"2:1".to_vec());
    apps.apps[host]
        .world_mut()
        .write_message(MatchReport { id, step });
    apps.until("both are at home", |apps| {
        let home = |nth: usize, player: u64| {
            let ended = [(PlayerId(player), format!("house {player}"))];
            diary(&apps[nth]).ended == ended && is_here(&apps[nth], player)
        };
        home(0, 7) && home(1, 8)
    });
    for (nth, player) in [(0, 7), (1, 8)] {
        let world = apps.apps[nth].world();
        let entity = world.resource::<ClusterPlayers>().entity(PlayerId(player));
        // The player has kept the coin from the instance.
        assert_eq!(world.get::<Gold>(entity.unwrap()).unwrap().0, 4);
    }
}

#[test]
fn players_of_an_app_that_dies_in_a_match_play_another_one() {
    let mut apps = Apps::new(3);
    log_in(&mut apps, &[(0, 7), (1, 8)]);
    apps.apps[0].world_mut().write_message(ticket(7, "duel"));
    apps.apps[1].world_mut().write_message(ticket(8, "duel"));
    apps.until("both enter the same instance", |apps| {
        apps.iter().any(|app| diary(app).entered.len() == 2)
    });
    let host = apps
        .apps
        .iter()
        .position(|app| diary(app).entered.len() == 2);
    let host = host.unwrap();
    let first = diary(&apps.apps[host]).opened[0];
    // The driver stops without notice, as in a crash.
    drop(apps.apps.remove(host));
    apps.until("both enter another instance", |apps| {
        let entered = apps.iter().flat_map(|app| &diary(app).entered);
        entered.filter(|(_, id)| *id != first).count() == 2
    });
    let dead = apps.rows.rows.with_rows(|rows| rows.match_state(first));
    assert_eq!(dead.unwrap().0, MatchState::Aborted);
}

#[test]
fn player_that_arrives_during_a_pause_enters_its_match_after_it() {
    let mut apps = Apps::new(1);
    log_in(&mut apps, &[(0, 7), (0, 8)]);
    for player in [7, 8] {
        apps.apps[0]
            .world_mut()
            .write_message(ticket(player, "duel"));
    }
    apps.until("the instance opens", |apps| {
        !diary(&apps[0]).opened.is_empty()
    });
    let id = diary(&apps.apps[0]).opened[0];
    apps.until_without_ticks("both have arrived", |apps| {
        apps.rows.rows.with_rows(|rows| {
            let is_ready = rows.match_state(id).unwrap().0 == MatchState::Ready;
            is_ready && rows.match_players().all(|(.., travels)| !travels)
        })
    });
    let is_valid = |apps: &Apps| {
        let players = apps.apps[0].world().resource::<ClusterPlayers>();
        let driver = players.driver().unwrap();
        driver.with_node(|node, now_ms| node.is_valid(now_ms))
    };
    apps.rows.is_away.store(true, Ordering::Relaxed);
    apps.until_without_ticks("the node pauses", |apps| !is_valid(apps));
    apps.tick();
    assert_eq!(diary(&apps.apps[0]).entered, []);
    apps.rows.is_away.store(false, Ordering::Relaxed);
    apps.until("both enter the instance", |apps| {
        diary(&apps[0]).entered.len() == 2
    });
}
