//! A store that is unreachable for longer than a lease, and leases that another server takes over: players are logged out with
//! the reason, and game code that reacts to it can access the player store.

use super::*;
use crate::session::{LoggedOut, LogoutReason};

/// Players whose object was despawned while the player store was available, and whether they still counted as live.
#[derive(Resource, Default)]
struct ObservedRemovals(Vec<(u64, bool)>);

/// Every logout of a session, over all ticks.
#[derive(Resource, Default)]
struct Logouts(Vec<(u64, LogoutReason)>);

/// A game that queries the player store for each player whose purse is removed, as a trade does, and ends another session by a
/// command.
fn observed_game(source: impl StoreFactory + 'static) -> App {
    observed_game_with(source, Duration::ZERO)
}

/// The same, with this duration of unsaved play.
fn observed_game_with(source: impl StoreFactory + 'static, unsaved_play: Duration) -> App {
    let settings = PlayerStoreSettings {
        reply_mode: StoreReplyMode::NextTick,
        ..PlayerStoreSettings::default()
    };
    let mut app = game_with(source, settings.unsaved_play(unsaved_play));
    app.init_resource::<ObservedRemovals>()
        .init_resource::<Logouts>()
        .add_observer(
            |gone: On<Remove<Purse>>,
             players: Query<&PlayerId>,
             directory: Res<PlayerStore>,
             mut observed: ResMut<ObservedRemovals>,
             mut commands: Commands| {
                if let Ok(&player) = players.get(gone.entity) {
                    observed.0.push((player.0, directory.is_live(player)));
                }
                commands.queue(|world: &mut World| {
                    assert!(world.contains_resource::<PlayerStore>());
                });
            },
        )
        .add_systems(
            FixedUpdate,
            (|mut ended: MessageReader<LoggedOut>, mut all: ResMut<Logouts>| {
                all.0
                    .extend(ended.read().map(|end| (end.player.0, end.reason)));
            })
            .in_set(SimSystems::Last),
        );
    app
}

fn logouts(app: &App) -> Vec<(u64, LogoutReason)> {
    let mut all = app.world().resource::<Logouts>().0.clone();
    all.sort_unstable_by_key(|&(player, _)| player);
    all
}

const DOWN: FaultShares = FaultShares {
    failing: 1.0,
    reply_lost: 0.0,
    slow: 0.0,
    slow_ms: 0,
    full: 0.0,
    closed: 1.0,
};

/// The number of ticks of ten minutes.
fn ten_minutes(app: &App) -> u32 {
    let time = app.world().resource::<bevy_time::Time<bevy_time::Fixed>>();
    (600.0 / time.timestep().as_secs_f64()) as u32
}

/// Ticks until this holds; the store thread tries again by its own time.
fn ticks_until(app: &mut App, is_over: impl Fn(&App) -> bool) {
    while !is_over(app) {
        app.update();
        std::thread::yield_now();
    }
}

#[test]
fn outage_of_ten_minutes_logs_players_out_with_a_reason() {
    let disk = MemoryDisk::default();
    let source = FaultySource::new(disk.clone(), 1, FaultShares::default());
    let mut app = observed_game(source.clone());
    log_in_up_to(&mut app, 3);
    ticks(&mut app, 3);
    transfer(&mut app, 1, 2, 30);
    ticks(&mut app, 3);
    source.set_shares(DOWN);
    // Not saved before the leases end, so it is lost with them.
    transfer(&mut app, 2, 3, 5);
    let ticks_of_outage = ten_minutes(&app);
    let lease_ticks = ticks_of_outage / 10;
    ticks(&mut app, lease_ticks / 2);
    assert_eq!(logouts(&app), [], "a lease outlives a short outage");
    ticks(&mut app, ticks_of_outage - lease_ticks / 2);
    let gone = [1, 2, 3].map(|player| (player, LogoutReason::PlayerUnavailable));
    assert_eq!(logouts(&app), gone);
    let mut observed = app.world().resource::<ObservedRemovals>().0.clone();
    observed.sort_unstable();
    assert_eq!(
        observed
            .iter()
            .map(|&(player, _)| player)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
    // Still unreachable: logins are refused, and the server continues.
    log_in(&mut app, 4);
    while messages_of::<PlayerLoadFailed>(&app).is_empty() {
        app.update();
    }
    source.set_shares(FaultShares::default());
    // The retry waits by the time of the store thread.
    let back = |app: &mut App, player| {
        while purse(app, player).is_none() {
            let is_known = app
                .world()
                .resource::<Sessions>()
                .client_of(PlayerId(player));
            if is_known.is_none() {
                log_in(app, player);
            }
            app.update();
            std::thread::yield_now();
        }
        purse(app, player).map(|purse| purse.0)
    };
    let coins = [1, 2, 3].map(|player| back(&mut app, player));
    assert_eq!(
        coins.map(|coins| coins.unwrap_or(0)).iter().sum::<u32>(),
        300
    );
    assert_eq!(coins[0], Some(70));
}

#[test]
fn unsaved_play_ends_in_the_tick_of_its_limit() {
    let source = FaultySource::new(MemoryDisk::default(), 1, FaultShares::default());
    let play = Duration::from_secs(300);
    let mut app = observed_game_with(source.clone(), play);
    log_in_up_to(&mut app, 3);
    ticks(&mut app, 3);
    source.set_shares(DOWN);
    ticks(&mut app, 1);
    let until_ms = |app: &App, player| {
        let open = app.world().resource::<PlayerStore>().open.as_ref();
        open.unwrap().ledger.lease_valid_until(PlayerId(player))
    };
    let lease_end_ms = until_ms(&app, 1).unwrap();
    let end_ms = lease_end_ms + play.as_millis() as u64;
    let gone = [1, 2, 3].map(|player| (player, LogoutReason::PlayerUnavailable));
    let mut unsaved_ticks = 0;
    for _ in 0..ten_minutes(&app) {
        ticks(&mut app, 1);
        let world = app.world();
        let now = world.resource::<bevy_time::Time<bevy_time::Fixed>>();
        let store = world.resource::<PlayerStore>();
        let now_ms = store.open.as_ref().unwrap().now_ms(now.elapsed());
        let expected = if now_ms < end_ms { &[][..] } else { &gone };
        assert_eq!(logouts(&app), expected, "at {now_ms}, limit {end_ms}");
        let is_unsaved_play = (lease_end_ms..end_ms).contains(&now_ms);
        let playing = if is_unsaved_play { 3 } else { 0 };
        assert_eq!(store.unsaved_play_count(), playing, "at {now_ms}");
        unsaved_ticks += u32::from(is_unsaved_play);
    }
    assert_eq!(unsaved_ticks, ten_minutes(&app) / 2);
}

#[test]
fn players_play_on_through_an_outage_and_are_saved() {
    let disk = MemoryDisk::default();
    let source = FaultySource::new(disk.clone(), 1, FaultShares::default());
    // Many ticks may run before the store's thread has opened the store again.
    let mut app = observed_game_with(source.clone(), 60_000 * MINUTE);
    log_in_up_to(&mut app, 3);
    ticks(&mut app, 3);
    source.set_shares(DOWN);
    transfer(&mut app, 1, 2, 30);
    let ticks_of_outage = ten_minutes(&app);
    ticks(&mut app, ticks_of_outage);
    assert_eq!(logouts(&app), []);
    transfer(&mut app, 2, 3, 5);
    source.set_shares(FaultShares::default());
    ticks_until(&mut app, |app| {
        let store = app.world().resource::<PlayerStore>();
        store.unsaved() == 0 && store.unsaved_play_count() == 0
    });
    assert_eq!(logouts(&app), []);
    let coins = [1, 2, 3].map(|player| stored_coins(&disk, player).map(|(coins, _)| coins));
    assert_eq!(coins, [70, 125, 105].map(Some));
}

#[test]
fn players_taken_in_an_outage_are_logged_out_as_taken() {
    let disk = MemoryDisk::default();
    let source = FaultySource::new(disk.clone(), 1, FaultShares::default());
    let mut app = observed_game_with(source.clone(), 600 * MINUTE);
    log_in_up_to(&mut app, 7);
    ticks(&mut app, 3);
    source.set_shares(DOWN);
    ticks(&mut app, 3);
    let mut store = disk.clone().open().unwrap();
    let other = store
        .register_server("other", RegistrationTerms::default())
        .unwrap();
    let terms = ClaimTerms {
        at_ms: Some(u64::MAX - 1),
        lease_ms: 1,
        grace_ms: 0,
    };
    // Player 1 has no unsaved changes, player 4 has some together with player 5.
    let taken = [PlayerId(1), PlayerId(4)];
    store.claim(&other, &taken, terms).unwrap();
    transfer(&mut app, 4, 5, 50);
    transfer(&mut app, 2, 3, 20);
    let ticks_of_outage = ten_minutes(&app);
    ticks(&mut app, ticks_of_outage);
    assert_eq!(logouts(&app), []);
    source.set_shares(FaultShares::default());
    ticks_until(&mut app, |app| {
        let store = app.world().resource::<PlayerStore>();
        store.unsaved() == 0 && store.unsaved_play_count() == 0 && logouts(app).len() > 2
    });
    use LogoutReason::{PlayerTaken, PlayerUnavailable};
    let gone = [(1, PlayerTaken), (4, PlayerTaken), (5, PlayerUnavailable)];
    assert_eq!(logouts(&app), gone);
    let live = [2, 3, 6, 7].map(|player| is_live(&app, player));
    assert_eq!(live, [true; 4]);
    let coins = [2, 3].map(|player| stored_coins(&disk, player).map(|(coins, _)| coins));
    assert_eq!(coins, [80, 120].map(Some));
    let lost = app.world().resource::<PlayerStoreStats>().lost;
    assert_eq!(lost, 3);
}

#[test]
fn takeover_by_another_server_logs_players_out() {
    let disk = MemoryDisk::default();
    let mut app = observed_game(disk.clone());
    log_in_up_to(&mut app, 2);
    ticks(&mut app, 3);
    let mut store = disk.clone().open().unwrap();
    let thief = store
        .register_server("thief", RegistrationTerms::default())
        .unwrap();
    let terms = ClaimTerms {
        at_ms: Some(u64::MAX - 1),
        lease_ms: 1,
        grace_ms: 0,
    };
    let both = [PlayerId(1), PlayerId(2)];
    store.claim(&thief, &both, terms).unwrap();
    transfer(&mut app, 1, 2, 50);
    ticks(&mut app, 3);
    let gone = [1, 2].map(|player| (player, LogoutReason::PlayerTaken));
    assert_eq!(logouts(&app), gone);
    assert_eq!(app.world().resource::<ObservedRemovals>().0.len(), 2);
    assert_eq!(app.world().resource::<PlayerStoreStats>().lost, 2);
}

#[test]
fn server_whose_clock_is_ahead_takes_no_live_player() {
    let disk = MemoryDisk::default();
    let mut app = game(disk.clone());
    log_in(&mut app, 7);
    ticks(&mut app, 2);
    let settings = PlayerStoreSettings {
        server: "ahead".to_owned(),
        reply_mode: StoreReplyMode::NextTick,
        ..PlayerStoreSettings::default()
    };
    let lease_ms = u128::from(settings.leases.lease_ms + settings.leases.clock_grace_ms);
    let mut ahead = game_with(disk, settings);
    // Its own clock is that of its ticks, which come faster than time. By this clock the lease has expired.
    let tick_ms = ahead
        .world()
        .resource::<Time<Fixed>>()
        .timestep()
        .as_millis();
    ticks(&mut ahead, (2 * lease_ms / tick_ms) as u32);
    log_in(&mut ahead, 7);
    ticks(&mut ahead, 2);
    let refused = messages_of::<PlayerLoadFailed>(&ahead);
    let error = refused.first().map(|refused| &refused.error);
    assert!(
        matches!(error, Some(PlayerStoreError::Leased { .. })),
        "{error:?}"
    );
    ticks(&mut app, 2);
    assert!(is_live(&app, 7) && !is_live(&ahead, 7));
}

#[test]
fn refused_transfer_saves_neither_side() {
    let disk = MemoryDisk::default();
    let mut app = game(disk.clone());
    log_in_up_to(&mut app, 3);
    ticks(&mut app, 2);
    transfer(&mut app, 2, 3, 1);
    ticks(&mut app, 2);
    let before = stored_coins(&disk, 2);
    assert_eq!(before.map(|(coins, _)| coins), Some(99));
    // The giver is not here: its stored coins do not change.
    purse(&mut app, 2).unwrap().0 += 50;
    let players = [PlayerId(9), PlayerId(2)];
    app.world_mut().write_message(AtomicSaveRequest { players });
    ticks(&mut app, 3);
    assert_eq!(stored_coins(&disk, 2), before);
    assert_eq!(
        app.world().resource::<PlayerStoreStats>().transfers_refused,
        1
    );
    // Nor is it saved when it leaves, or at the end.
    assert!(purse(&mut app, 2).is_none() && purse(&mut app, 3).is_some());
    assert!(close_player_store(app.world_mut(), MINUTE));
    assert_eq!(stored_coins(&disk, 2), before);
}

#[test]
fn duplicate_server_name_refuses_logins_until_takeover() {
    let disk = MemoryDisk::default();
    let mut first = game(disk.clone());
    log_in_up_to(&mut first, 2);
    ticks(&mut first, 2);
    let mut second = game(disk.clone());
    log_in(&mut second, 7);
    ticks(&mut second, 2);
    let refused = messages_of::<PlayerLoadFailed>(&second);
    let error = refused[0].error.to_string();
    for part in [
        "in memory: server name in use",
        "`throng` (process 1) was last seen at",
        "--take-over",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert!(is_live(&first, 1), "nothing happened to the first one");
    // It never owned the name, so its end does not release it.
    drop(second);
    let settings = PlayerStoreSettings {
        reply_mode: StoreReplyMode::NextTick,
        ..PlayerStoreSettings::default()
    };
    let mut third = game_with(disk, settings.take_over());
    log_in(&mut third, 1);
    ticks(&mut third, 2);
    assert!(is_live(&third, 1));
    transfer(&mut first, 1, 2, 5);
    ticks(&mut first, 2);
    assert!(!is_live(&first, 1));
    log_in(&mut first, 9);
    ticks(&mut first, 2);
    let error = messages_of::<PlayerLoadFailed>(&first)[0].error.to_string();
    assert!(
        error.contains("process 2 has taken over the name `throng`"),
        "{error}"
    );
}
