//! Players that log in, change and log out, with a working store and with a failing one.

mod health;
mod outage;
mod peers;
#[cfg(feature = "sqlite")]
mod store_faults;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use glam::Vec2;
use throng_store::testing::HookedSource;

use super::*;
use crate::inbox::ConnectionInfo;
use crate::session::{ControlledBy, Sessions, TransportHandle, connect};
use crate::sim::{clock, single_threaded};
use crate::store::{
    ClaimTerms, FaultShares, FaultySource, LeaseTableSettings, MemoryDisk, PlayerStoreError,
    RegistrationTerms, StoreBackend, StoreError, StoreFactory,
};
use crate::sync::{AttributeSpec, Audience, ReplicateAppExt, SyncSettings};
use crate::wire::{ClientId, ClientMessage, Encoding};
use crate::world::{InScene, Player, PlayerId, Players, Position, SceneSpec, open_scene};

#[derive(Component)]
struct Purse(u32);

/// Disables the game's default purse for new players.
#[derive(Resource)]
struct Forgetful;

const PURSE: u16 = 2;
const MINUTE: Duration = Duration::from_secs(60);

/// A game whose players have a purse, in a scene; replies of the store arrive in the next tick.
fn game(source: impl StoreFactory + 'static) -> App {
    game_with(
        source,
        PlayerStoreSettings {
            reply_mode: StoreReplyMode::NextTick,
            ..PlayerStoreSettings::default()
        },
    )
}

fn game_with(source: impl StoreFactory + 'static, settings: PlayerStoreSettings) -> App {
    let mut app = App::new();
    app.add_plugins((bevy_time::TimePlugin, PlayerStorePlugin));
    // Some tests simulate outages of ten minutes.
    app.insert_resource(Time::<Fixed>::from_hz(4.0));
    let purse = AttributeSpec::new("purse", PURSE, Encoding::Varint).to(Audience::OWNER);
    app.replicate_field(purse.persistent(), |purse: &Purse| purse.0);
    // Periodic saves are disabled.
    app.insert_resource(SyncSettings {
        save_every_ticks: 1_000_000,
        ..SyncSettings::default()
    });
    app.insert_resource(settings);
    let scene = open_scene(app.world_mut(), SceneSpec::default(), ()).unwrap();
    let welcome = move |mut loaded: MessageReader<PlayerLoaded>,
                        forgetful: Option<Res<Forgetful>>,
                        mut commands: Commands| {
        for PlayerLoaded {
            client_entity,
            record,
            ..
        } in loaded.read()
        {
            let purse = record.count(PURSE, Encoding::Varint).unwrap_or(100) as u32;
            let place = (InScene(scene), Position(Vec2::ONE));
            let control = ControlledBy(*client_entity);
            let mut object = commands.spawn((Player, record.player, control, place));
            if forgetful.is_none() {
                object.insert(Purse(purse));
            }
        }
    };
    app.add_systems(FixedUpdate, welcome.in_set(SimSystems::Think));
    app.world_mut()
        .resource_mut::<PlayerStore>()
        .open(source)
        .unwrap();
    app.finish();
    app.cleanup();
    // In a small world, waking threads for each system would take most of the time.
    single_threaded(&mut app);
    clock::one_tick_per_update(&mut app);
    app
}

fn log_in(app: &mut App, player: u64) -> ClientId {
    let client = connect(
        app.world_mut(),
        ConnectionInfo::player(player).without_loading(),
    )
    .unwrap();
    send(app, client, ClientMessage::login(player));
    client
}

/// Why the login of a player is refused, or `None` once it is admitted.
fn login_error(app: &mut App, player: u64) -> Option<PlayerStoreError> {
    log_in(app, player);
    loop {
        app.update();
        if let Some(refused) = messages_of::<PlayerLoadFailed>(app).pop() {
            return Some(refused.error);
        }
        if purse(app, player).is_some() {
            return None;
        }
        std::thread::yield_now();
    }
}

/// Logs in players 1 to `last`.
fn log_in_up_to(app: &mut App, last: u64) {
    for player in 1..=last {
        log_in(app, player);
    }
}

fn send(app: &mut App, client: ClientId, message: ClientMessage) {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    let transport = app.world().resource::<TransportHandle>();
    transport.receive(client, &bytes).unwrap();
}

fn ticks(app: &mut App, count: u32) {
    (0..count).for_each(|_| app.update());
}

fn purse(app: &mut App, player: u64) -> Option<Mut<'_, Purse>> {
    let entity = app.world().resource::<Players>().entity(PlayerId(player))?;
    app.world_mut().get_mut::<Purse>(entity)
}

/// Transfers coins between two players and writes the request.
fn transfer(app: &mut App, from: u64, to: u64, coins: u32) {
    purse(app, from).unwrap().0 -= coins;
    purse(app, to).unwrap().0 += coins;
    let players = [PlayerId(from), PlayerId(to)];
    app.world_mut().write_message(AtomicSaveRequest { players });
}

/// The stored coins of a player and the tick.
fn stored_coins(disk: &MemoryDisk, player: u64) -> Option<(u64, u64)> {
    let mut store = disk.clone().open().unwrap();
    let looked = store.lookup(&[PlayerId(player)]).unwrap().pop();
    let record = looked?.into_record()?;
    Some((record.count(PURSE, Encoding::Varint)?, record.tick))
}

fn messages_of<M: Message + Clone>(app: &App) -> Vec<M> {
    let messages = app.world().resource::<Messages<M>>();
    messages.iter_current_update_messages().cloned().collect()
}

#[test]
fn player_is_loaded_at_login_and_saved_at_logout() {
    let disk = MemoryDisk::default();
    let mut app = game(disk.clone());
    let client = log_in(&mut app, 7);
    app.update();
    assert!(purse(&mut app, 7).is_none(), "its record is not here yet");
    app.update();
    let loaded = messages_of::<PlayerLoaded>(&app);
    assert!(loaded.len() == 1 && loaded[0].client == client && loaded[0].record.is_new());
    purse(&mut app, 7).unwrap().0 = 42;
    send(&mut app, client, ClientMessage::Logout);
    ticks(&mut app, 2);
    assert_eq!(stored_coins(&disk, 7).map(|(coins, _)| coins), Some(42));
    assert!(!app.world().resource::<PlayerStore>().is_live(PlayerId(7)));
    // Its lease was released, so another server gets it at once.
    let mut other = game_with(
        disk.clone(),
        PlayerStoreSettings {
            server: "other".to_owned(),
            reply_mode: StoreReplyMode::NextTick,
            ..PlayerStoreSettings::default()
        },
    );
    log_in(&mut other, 7);
    ticks(&mut other, 2);
    assert_eq!(purse(&mut other, 7).map(|purse| purse.0), Some(42));
    // And the first one does not get it in the meantime.
    log_in(&mut app, 7);
    ticks(&mut app, 2);
    let refused = messages_of::<PlayerLoadFailed>(&app);
    let [
        PlayerLoadFailed {
            error: PlayerStoreError::Leased { server, .. },
            ..
        },
    ] = &refused[..]
    else {
        panic!("{refused:?}");
    };
    assert_eq!(server, "other");
    assert!(app.world().resource::<Sessions>().is_empty());
}

#[test]
fn immediate_relogin_loads_the_last_values() {
    let disk = MemoryDisk::default();
    let mut app = game(disk.clone());
    log_in(&mut app, 7);
    ticks(&mut app, 2);
    for coins in 1..20 {
        purse(&mut app, 7).unwrap().0 = coins;
        log_in(&mut app, 7);
        ticks(&mut app, 4);
        assert_eq!(purse(&mut app, 7).map(|purse| purse.0), Some(coins));
    }
}

#[test]
fn login_replacing_a_loading_one_spawns_one_object() {
    for wait in 0..4 {
        let mut app = game(MemoryDisk::default());
        log_in(&mut app, 7);
        ticks(&mut app, wait);
        log_in(&mut app, 7);
        let mut most = 0;
        for _ in 0..6 {
            app.update();
            let mut purses = app.world_mut().query::<&Purse>();
            most = most.max(purses.iter(app.world()).count());
        }
        assert_eq!(most, 1, "{wait} ticks between them");
        assert!(app.world().resource::<PlayerStore>().is_live(PlayerId(7)));
    }
}

#[test]
fn value_restored_after_a_transfer_is_saved() {
    let disk = MemoryDisk::default();
    let mut app = game(disk.clone());
    log_in_up_to(&mut app, 2);
    ticks(&mut app, 30);
    app.insert_resource(SyncSettings {
        save_every_ticks: 20,
        ..SyncSettings::default()
    });
    transfer(&mut app, 1, 2, 30);
    app.update();
    // Before clients are notified: for them nothing has changed.
    purse(&mut app, 1).unwrap().0 = 100;
    ticks(&mut app, 60);
    assert_eq!(stored_coins(&disk, 1).map(|(coins, _)| coins), Some(100));
}

#[test]
fn stored_attributes_stay_unless_the_game_removes_them() {
    let disk = MemoryDisk::default();
    let coins = || stored_coins(&disk, 7).map(|(coins, _)| coins);
    let mut app = game(disk.clone());
    log_in(&mut app, 7);
    ticks(&mut app, 2);
    purse(&mut app, 7).unwrap().0 = 42;
    assert!(close_player_store(app.world_mut(), MINUTE));
    let object = |app: &App| app.world().resource::<Players>().entity(PlayerId(7));
    for stays in 0..4 {
        let mut app = game(disk.clone());
        app.insert_resource(Forgetful);
        app.insert_resource(SyncSettings {
            save_every_ticks: 1,
            ..SyncSettings::default()
        });
        let client = log_in(&mut app, 7);
        ticks(&mut app, 2 + stays * 10);
        assert!(object(&app).is_some() && purse(&mut app, 7).is_none());
        match stays {
            0 => send(&mut app, client, ClientMessage::Logout),
            1 => {
                let gone = object(&app).unwrap();
                app.world_mut().despawn(gone);
            }
            2 => assert!(close_player_store(app.world_mut(), MINUTE)),
            _ => {
                let players = [PlayerId(7); 2];
                app.world_mut().write_message(AtomicSaveRequest { players });
            }
        }
        ticks(&mut app, 3);
        assert_eq!(coins(), Some(42), "{stays}");
        assert!(close_player_store(app.world_mut(), MINUTE));
    }
    // A component that is added and removed before any system reads it.
    let mut app = game(disk.clone());
    log_in(&mut app, 7);
    ticks(&mut app, 2);
    let entity = object(&app).unwrap();
    app.world_mut().entity_mut(entity).remove::<Purse>();
    assert!(close_player_store(app.world_mut(), MINUTE));
    assert_eq!(coins(), None);
}

#[test]
fn removals_are_saved_when_a_player_loses_its_object() {
    let disk = MemoryDisk::default();
    let mut app = game(disk.clone());
    let coins = |player| stored_coins(&disk, player).map(|(coins, _)| coins);
    for player in 1..=3 {
        log_in(&mut app, player);
    }
    ticks(&mut app, 2);
    let objects = [1, 2, 3].map(|player| {
        let players = app.world().resource::<Players>();
        players.entity(PlayerId(player)).unwrap()
    });
    // In the same tick in which the coins are taken, with no other message; and the removal on the third one.
    for (player, object) in (1..).zip(objects) {
        purse(&mut app, player).unwrap().0 = 40 + player as u32;
        let mut object = app.world_mut().entity_mut(object);
        if player == 3 {
            object.remove::<Purse>();
        }
        object.remove::<PlayerId>();
    }
    assert!(close_player_store(app.world_mut(), MINUTE));
    assert_eq!([coins(1), coins(2), coins(3)], [Some(41), Some(42), None]);
}

#[test]
fn transfer_is_saved_in_one_transaction_in_its_tick() {
    let disk = MemoryDisk::default();
    let mut app = game(disk.clone());
    log_in_up_to(&mut app, 3);
    ticks(&mut app, 3);
    assert_eq!(stored_coins(&disk, 1), None, "nothing was to be saved yet");
    transfer(&mut app, 1, 2, 30);
    ticks(&mut app, 2);
    let (one, other) = (
        stored_coins(&disk, 1).unwrap(),
        stored_coins(&disk, 2).unwrap(),
    );
    assert_eq!((one.0, other.0, one.1), (70, 130, other.1));
    assert_eq!(stored_coins(&disk, 3), None);
    // One of them leaves in the same tick as the transfer.
    transfer(&mut app, 2, 3, 130);
    let gone = app
        .world()
        .resource::<Players>()
        .entity(PlayerId(2))
        .unwrap();
    app.world_mut().despawn(gone);
    ticks(&mut app, 2);
    let (one, other) = (
        stored_coins(&disk, 2).unwrap(),
        stored_coins(&disk, 3).unwrap(),
    );
    assert_eq!((one.0, other.0), (0, 230));
}

#[test]
fn fenced_player_and_its_trade_partner_are_not_saved() {
    let disk = MemoryDisk::default();
    let mut app = game(disk.clone());
    log_in_up_to(&mut app, 3);
    ticks(&mut app, 3);
    transfer(&mut app, 1, 2, 10);
    ticks(&mut app, 2);
    // Another server takes one of the leases, as if the clock of this server had stopped.
    let mut store = disk.clone().open().unwrap();
    let thief = store
        .register_server("thief", RegistrationTerms::default())
        .unwrap();
    let terms = ClaimTerms {
        at_ms: Some(u64::MAX - 1),
        lease_ms: 1,
        grace_ms: 0,
    };
    store.claim(&thief, &[PlayerId(1)], terms).unwrap();
    transfer(&mut app, 1, 2, 50);
    app.update();
    transfer(&mut app, 2, 3, 5);
    ticks(&mut app, 2);
    for player in 1..=3 {
        assert!(
            purse(&mut app, player).is_none(),
            "{player} has what 1 gave away"
        );
    }
    assert_eq!(app.world().resource::<PlayerStoreStats>().lost, 3);
    let coins = |player| stored_coins(&disk, player).map(|(coins, _)| coins);
    assert_eq!((coins(1), coins(2), coins(3)), (Some(90), Some(110), None));
    log_in(&mut app, 2);
    ticks(&mut app, 3);
    assert_eq!(
        purse(&mut app, 2).map(|purse| purse.0),
        Some(110),
        "it comes back"
    );
}

#[test]
fn failing_store_refuses_logins_and_loses_no_save() {
    let disk = MemoryDisk::default();
    let source = FaultySource::new(disk.clone(), 1, FaultShares::default());
    let mut app = game(source.clone());
    log_in_up_to(&mut app, 2);
    ticks(&mut app, 3);
    source.set_shares(FaultShares {
        failing: 1.0,
        closed: 1.0,
        ..FaultShares::default()
    });
    for coins in 1..=50 {
        transfer(&mut app, 1, 2, 1);
        app.update();
        assert_eq!(purse(&mut app, 2).map(|purse| purse.0), Some(100 + coins));
    }
    // Ticks do not wait for a store that fails, so that a login may also time out.
    let error = loop {
        match login_error(&mut app, 3) {
            Some(PlayerStoreError::Store(error)) => break error,
            Some(PlayerStoreError::TimedOut { .. }) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(error.store, "with faults");
    assert_eq!(
        (
            stored_coins(&disk, 1),
            app.world().resource::<PlayerStore>().unsaved()
        ),
        (None, 4)
    );
    source.set_shares(FaultShares::default());
    assert!(close_player_store(app.world_mut(), MINUTE));
    assert_eq!(stored_coins(&disk, 1).map(|(coins, _)| coins), Some(50));
    assert_eq!(stored_coins(&disk, 2).map(|(coins, _)| coins), Some(150));
}

#[test]
fn invalid_store_file_is_reported_at_login_and_server_runs_on() {
    #[derive(Debug)]
    struct NoStore;
    impl StoreFactory for NoStore {
        fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
            Err(StoreError {
                store: "players.db".to_owned(),
                kind: crate::store::StoreErrorKind::NotAPlayerStore,
                cause: "file is not a database".to_owned(),
            })
        }
    }
    let mut app = game(NoStore);
    log_in(&mut app, 7);
    ticks(&mut app, 2);
    let refused = messages_of::<PlayerLoadFailed>(&app);
    let error = refused[0].error.to_string();
    assert!(
        error.contains("players.db") && error.contains("not a database"),
        "{error}"
    );
    assert!(app.world().resource::<Sessions>().is_empty());
    ticks(&mut app, 10);
}

fn is_live(app: &App, player: u64) -> bool {
    app.world()
        .resource::<PlayerStore>()
        .is_live(PlayerId(player))
}

/// A store whose saves wait for a lock.
fn gated_source(disk: &MemoryDisk, gate: &Arc<Mutex<()>>) -> HookedSource {
    let gate = gate.clone();
    HookedSource::new(disk.clone(), move |saving| {
        drop(gate.lock());
        saving()
    })
}

#[test]
fn stalled_store_delays_no_tick_and_its_queues_are_bounded() {
    let (disk, gate) = (MemoryDisk::default(), Arc::new(Mutex::new(())));
    let settings = PlayerStoreSettings {
        leases: LeaseTableSettings {
            unsaved_players_max: 1,
            load_timeout_ms: 60_000,
            ..LeaseTableSettings::default()
        },
        ..PlayerStoreSettings::default()
    };
    let mut app = game_with(gated_source(&disk, &gate), settings);
    log_in_up_to(&mut app, 2);
    while !(1..=2).all(|player| purse(&mut app, player).is_some()) {
        app.update();
    }
    let closed = gate.lock().unwrap();
    for _ in 0..100 {
        transfer(&mut app, 1, 2, 1);
        // If the tick waited for the store, this would never end.
        app.update();
        assert!(app.world().resource::<PlayerStore>().unsaved() <= 4);
    }
    log_in(&mut app, 3);
    app.update();
    let refused = messages_of::<PlayerLoadFailed>(&app);
    assert!(
        matches!(refused[0].error, PlayerStoreError::SaveBacklogFull { .. }),
        "{refused:?}"
    );
    drop(closed);
    assert!(close_player_store(app.world_mut(), MINUTE));
    assert_eq!(stored_coins(&disk, 1).map(|(coins, _)| coins), Some(0));
    assert_eq!(stored_coins(&disk, 2).map(|(coins, _)| coins), Some(200));
}

#[test]
fn close_saves_all_players_and_releases_their_leases() {
    let disk = MemoryDisk::default();
    let mut app = game(disk.clone());
    log_in_up_to(&mut app, 20);
    ticks(&mut app, 2);
    purse(&mut app, 20).unwrap().0 = 5;
    // One more logs in.
    log_in(&mut app, 21);
    app.update();
    assert!(close_player_store(app.world_mut(), MINUTE));
    assert_eq!(stored_coins(&disk, 20).map(|(coins, _)| coins), Some(5));
    let mut other = game_with(
        disk,
        PlayerStoreSettings {
            server: "other".to_owned(),
            reply_mode: StoreReplyMode::NextTick,
            ..PlayerStoreSettings::default()
        },
    );
    log_in_up_to(&mut other, 21);
    ticks(&mut other, 2);
    assert_eq!(messages_of::<PlayerLoaded>(&other).len(), 21);
}

#[test]
fn lookup_returns_live_values_here_and_saved_ones_elsewhere() {
    let disk = MemoryDisk::default();
    let mut other = game(disk.clone());
    log_in(&mut other, 7);
    ticks(&mut other, 2);
    purse(&mut other, 7).unwrap().0 = 70;
    assert!(close_player_store(other.world_mut(), MINUTE));
    let mut app = game(disk);
    log_in(&mut app, 1);
    ticks(&mut app, 2);
    purse(&mut app, 1).unwrap().0 = 10;
    let mut look = |player: u64, number| {
        let player = PlayerId(player);
        app.world_mut().write_message(PlayerLookup {
            player,
            request_id: number,
        });
        for tick in 1..=2 {
            app.update();
            if let Some(PlayerLookupResult {
                request_id: n,
                result: answer,
                ..
            }) = messages_of(&app).pop()
            {
                assert_eq!(n, number);
                let known = answer.unwrap().record;
                let coins = known.map(|record| record.count(PURSE, Encoding::Varint).unwrap());
                return (tick, coins);
            }
        }
        panic!("no answer");
    };
    assert_eq!(look(1, 1), (1, Some(10)), "who is here");
    assert_eq!(look(7, 2), (2, Some(70)), "from the store");
    assert_eq!(look(7, 3), (1, Some(70)), "from the cache");
    assert_eq!(look(8, 4), (2, None), "there is no such player");
    assert_eq!(look(8, 5), (1, None));
}

fn request_lookup(app: &mut App, player: u64, number: u64) {
    let player = PlayerId(player);
    let request = PlayerLookup {
        player,
        request_id: number,
    };
    app.world_mut().write_message(request);
}

/// The lookup results of this tick: id, and the coins if the player exists.
fn lookup_results(app: &App) -> Vec<(u64, Result<Option<u64>, PlayerStoreError>)> {
    let coins = |answer: PlayerLookupResult| {
        let known = answer.result.map(|known| {
            let record = known.record?;
            record.count(PURSE, Encoding::Varint)
        });
        (answer.request_id, known)
    };
    messages_of(app).into_iter().map(coins).collect()
}

#[test]
fn lookup_of_a_departed_player_waits_for_its_last_save() {
    let disk = MemoryDisk::default();
    let mut before = game(disk.clone());
    log_in(&mut before, 7);
    ticks(&mut before, 2);
    assert!(close_player_store(before.world_mut(), MINUTE));
    let mut app = game(disk);
    request_lookup(&mut app, 7, 0);
    ticks(&mut app, 2);
    assert_eq!(
        lookup_results(&app),
        [(0, Ok(Some(100)))],
        "known from before"
    );
    let client = log_in(&mut app, 7);
    ticks(&mut app, 3);
    purse(&mut app, 7).unwrap().0 = 42;
    send(&mut app, client, ClientMessage::Logout);
    let mut found = Vec::new();
    for number in 1..8 {
        request_lookup(&mut app, 7, number);
        app.update();
        found.extend(lookup_results(&app).into_iter().map(|(_, coins)| coins));
    }
    assert!(found.len() >= 5, "{found:?}");
    assert!(
        found.iter().all(|coins| *coins == Ok(Some(42))),
        "{found:?}"
    );
}

#[test]
fn corrupt_record_fails_only_its_own_lookup() {
    let disk = MemoryDisk::default();
    let mut other = game(disk.clone());
    log_in_up_to(&mut other, 3);
    ticks(&mut other, 2);
    assert!(close_player_store(other.world_mut(), MINUTE));
    disk.corrupt_record(PlayerId(2));
    let mut app = game(disk);
    (1..=3).for_each(|player| request_lookup(&mut app, player, player));
    ticks(&mut app, 2);
    let found = lookup_results(&app);
    assert!(
        matches!(found[1].1, Err(PlayerStoreError::Store(_))),
        "{found:?}"
    );
    assert_eq!((&found[0].1, &found[2].1), (&Ok(Some(100)), &Ok(Some(100))));
    assert_eq!(app.world().resource::<PlayerStoreStats>().failures, 0);
}

#[test]
fn lookups_time_out_when_the_store_stalls() {
    let (disk, gate) = (MemoryDisk::default(), Arc::new(Mutex::new(())));
    let mut settings = PlayerStoreSettings::default();
    settings.leases.load_timeout_ms = 60_000;
    settings.cache.load_timeout_ms = 20;
    settings.cache.pending_lookups_max = 3;
    let mut app = game_with(gated_source(&disk, &gate), settings);
    log_in(&mut app, 1);
    while purse(&mut app, 1).is_none() {
        app.update();
    }
    let closed = gate.lock().unwrap();
    purse(&mut app, 1).unwrap().0 = 1;
    let gone = app.world().resource::<Players>().entity(PlayerId(1));
    app.world_mut().despawn(gone.unwrap());
    app.update();
    // The store is busy with that save.
    (0..4).for_each(|number| request_lookup(&mut app, 9, number));
    app.update();
    let mut found = lookup_results(&app);
    assert!(matches!(
        found[..],
        [(3, Err(PlayerStoreError::TooManyLookups { waiting: 3, .. }))]
    ));
    while found.len() < 4 {
        app.update();
        found.extend(lookup_results(&app));
    }
    let is_late = |error: &Result<_, _>| matches!(error, Err(PlayerStoreError::TimedOut { .. }));
    assert!(
        found[1..].iter().all(|(_, error)| is_late(error)),
        "{found:?}"
    );
    drop(closed);
}
