//! Promise: an embedder without crowds and scenarios can run its matches in separate scenes, and all players return home.

use bevy_app::{App, TaskPoolPlugin};
use bevy_ecs::prelude::*;
use bevy_time::TimePlugin;
use glam::Vec2;
use throng::instance::{
    DepartureReason, EndInstanceRequest, EndReason, InstanceEnded, InstanceError, InstanceId,
    InstanceModes, InstanceOpened, InstancePartyJoined, InstancePlayerEntered, InstancePlayerLeft,
    InstancePlayerReturned, InstancePlugin, InstanceRefused, InstanceRules, InstanceSettings,
    InstanceStats, Instances, LeaveInstanceRequest, Leaver, PlayerAlreadyInInstance,
};
use throng::matchmaking::{
    BackfillResult, GroupModeSettings, MatchModeSettings, MatchmakingSettings, QueueRequest,
    Ticket, TicketPreferences,
};
use throng::sim::{SimPlugin, SimTick, clock, state_hash};
use throng::world::{
    KindId, Object, PartyId, PlayerId, Players, Position, SceneSpec, SimScene, change_scene,
    close_scene, despawn_object, open_scene, spawn_object,
};

/// A game with duels: a lobby, and an arena for each match.
struct Game {
    app: App,
    lobby: Entity,
}

impl Game {
    fn new(rules: InstanceRules) -> Self {
        let mut app = App::new();
        app.add_plugins((
            TaskPoolPlugin::default(),
            TimePlugin,
            SimPlugin {
                tick_hz: Some(20.0),
            },
            InstancePlugin,
        ));
        app.insert_resource(MatchmakingSettings {
            modes: vec![MatchModeSettings::Groups(GroupModeSettings {
                name: "duel".to_owned(),
                group_size: 1,
                ..GroupModeSettings::default()
            })],
        });
        let arena = SceneSpec {
            name: "arena".to_owned(),
            size_m: Vec2::splat(60.0),
            max_objects: 8,
        };
        let mut modes = app.world_mut().resource_mut::<InstanceModes>();
        modes.host("duel", rules, arena);
        clock::one_tick_per_update(&mut app);
        let lobby = open_scene(app.world_mut(), SceneSpec::default(), ()).unwrap();
        Self { app, lobby }
    }

    fn step(&mut self, ticks: u32) {
        (0..ticks).for_each(|_| self.app.update());
    }

    /// Gives a player an object in the lobby, as after a login.
    fn spawn(&mut self, player: u64) -> Entity {
        let at = Vec2::splat(player as f32);
        let (world, lobby) = (self.app.world_mut(), self.lobby);
        spawn_object(world, lobby, KindId(0), at, PlayerId(player)).unwrap()
    }

    fn ticket(player: u64) -> Ticket {
        let ticket = Ticket::new(PartyId(player as u32), [PlayerId(player)]);
        ticket.power(10).skill(1500).level(50).waiting_since(0)
    }

    fn queue(&mut self, player: u64) {
        self.queue_with(Self::ticket(player));
    }

    fn queue_with(&mut self, ticket: Ticket) {
        self.app.world_mut().write_message(QueueRequest { ticket });
    }

    /// All messages of a type since the last call.
    fn read_messages<M: Message>(&mut self) -> Vec<M> {
        let world = self.app.world_mut();
        world.resource_mut::<Messages<M>>().drain().collect()
    }

    /// Runs ticks until a message of a type is written; messages live for two ticks.
    fn step_until<M: Message>(&mut self, ticks_max: u32) -> Vec<M> {
        for _ in 0..ticks_max {
            self.step(1);
            let messages = self.read_messages();
            if !messages.is_empty() {
                return messages;
            }
        }
        panic!("no message in {ticks_max} ticks");
    }

    /// The names of the scenes that players are in.
    fn scene_names<const N: usize>(&mut self, players: [u64; N]) -> [String; N] {
        let world = self.app.world();
        players.map(|player| {
            let entity = world.resource::<Players>().entity(PlayerId(player));
            let object = entity.and_then(|entity| world.get::<Object>(entity));
            let scene = object.and_then(|object| world.get::<SimScene>(object.scene_entity()));
            scene.map_or("nowhere", SimScene::name).to_owned()
        })
    }

    fn stats(&self) -> InstanceStats {
        *self.app.world().resource::<InstanceStats>()
    }

    /// A game in which two players from the lobby are in their arena.
    fn new_with_duel(rules: InstanceRules) -> (Self, InstanceOpened) {
        let mut game = Self::new(rules);
        for player in [1, 2] {
            game.spawn(player);
            game.queue(player);
        }
        let opened = game.step_until::<InstanceOpened>(12)[0];
        assert_eq!(game.scene_names([1, 2]), ["arena", "arena"]);
        (game, opened)
    }
}

fn rules_with_duration(duration_s: f64) -> InstanceRules {
    InstanceRules {
        duration_s,
        ..InstanceRules::default()
    }
}

#[test]
fn queued_players_get_a_scene_and_return_when_time_is_up() {
    let (mut game, opened) = Game::new_with_duel(rules_with_duration(1.0));
    let entered = game.read_messages::<InstancePlayerEntered>();
    assert_eq!(
        entered
            .iter()
            .map(|entered| (entered.player.0, entered.side, entered.is_return))
            .collect::<Vec<_>>(),
        [(1, 0, false), (2, 1, false)]
    );
    assert_eq!(game.app.world().resource::<Instances>().inside_count(), 2);
    game.step(19);
    assert_eq!(game.scene_names([1, 2]), ["arena", "arena"]);
    game.step(1);
    assert_eq!(game.read_messages::<InstancePlayerReturned>().len(), 2);
    let ended = game.read_messages::<InstanceEnded>();
    assert_eq!(
        (ended[0].instance, ended[0].reason),
        (opened.instance, EndReason::TimeLimit)
    );
    let world = game.app.world();
    assert!(world.get::<SimScene>(opened.scene).is_none());
    for entered in entered {
        let object = world
            .get::<Object>(entered.entity)
            .expect("the player keeps its object");
        assert_eq!(object.scene_entity(), game.lobby);
        let at = world.get::<Position>(entered.entity).unwrap().0;
        assert_eq!(at, Vec2::splat(entered.player.0 as f32));
    }
    let stats = game.stats();
    assert_eq!((stats.entered, stats.returned, stats.lost), (2, 2, 0));
    assert!(game.app.world().resource::<Instances>().is_empty());
}

#[test]
fn respawned_player_is_moved_back_to_its_seat() {
    let rules = InstanceRules {
        seat_reserved_s: 1.0,
        ..rules_with_duration(60.0)
    };
    let (mut game, opened) = Game::new_with_duel(rules);
    let object = game.read_messages::<InstancePlayerEntered>()[0].entity;
    despawn_object(game.app.world_mut(), object).unwrap();
    game.step(1);
    let left = game.read_messages::<InstancePlayerLeft>();
    assert!(matches!(left[0].reason, DepartureReason::Gone { .. }));
    game.step(10);
    game.spawn(1);
    game.step(1);
    let entered = game.read_messages::<InstancePlayerEntered>();
    assert_eq!((entered[0].player.0, entered[0].is_return), (1, true));
    assert_eq!(game.scene_names([1, 2]), ["arena", "arena"]);
    let request = EndInstanceRequest {
        instance: opened.instance,
    };
    game.app.world_mut().write_message(request);
    game.step(1);
    assert_eq!(
        game.read_messages::<InstanceEnded>()[0].reason,
        EndReason::Requested
    );
    assert_eq!(game.scene_names([1, 2]), ["", ""], "the lobby has no name");
    let stats = game.stats();
    assert_eq!((stats.entered, stats.returned, stats.lost), (3, 2, 1));
    assert_eq!(stats.left, 0);
}

#[test]
fn missing_player_is_backfilled_on_the_same_side() {
    let rules = InstanceRules {
        seat_reserved_s: 0.5,
        backfill_interval_s: 0.5,
        ..rules_with_duration(60.0)
    };
    let (mut game, opened) = Game::new_with_duel(rules);
    let loser = game.read_messages::<InstancePlayerEntered>()[1];
    despawn_object(game.app.world_mut(), loser.entity).unwrap();
    // No party waits yet, so the backfill request is repeated.
    game.step(25);
    assert!(game.stats().backfills_requested >= 1);
    game.spawn(3);
    game.queue(3);
    let joined = game.step_until::<InstancePartyJoined>(15);
    assert_eq!(
        (joined[0].instance, joined[0].side),
        (opened.instance, loser.side)
    );
    assert_eq!(game.scene_names([1, 3]), ["arena", "arena"]);
    let stats = game.stats();
    assert_eq!((stats.left, stats.joined, stats.lost), (1, 1, 1));
}

#[test]
fn leaving_player_returns_and_the_last_one_ends_the_match() {
    let rules = InstanceRules {
        backfill_attempts_max: 0,
        ..rules_with_duration(60.0)
    };
    let (mut game, opened) = Game::new_with_duel(rules);
    for (player, home) in [(1, ["", "arena"]), (2, ["", ""])] {
        game.app.world_mut().write_message(LeaveInstanceRequest {
            instance: opened.instance,
            leaver: Leaver::Player(PlayerId(player).into()),
        });
        game.step(1);
        assert_eq!(game.scene_names([1, 2]), home);
    }
    game.step(1);
    assert_eq!(
        game.read_messages::<InstanceEnded>()[0].reason,
        EndReason::Empty
    );
    assert_eq!((game.stats().returned, game.stats().left), (2, 2));
    assert_eq!(game.stats().backfills_requested, 0);
}

#[test]
fn matches_over_the_limit_are_refused_and_counted() {
    let mut game = Game::new(rules_with_duration(60.0));
    game.app.insert_resource(InstanceSettings {
        instances_max: 1,
        ..InstanceSettings::default()
    });
    for player in 1..=4 {
        game.spawn(player);
        game.queue(player);
    }
    let refused = game.step_until::<InstanceRefused>(12);
    assert_eq!(
        refused
            .iter()
            .map(|refused| refused.error.clone())
            .collect::<Vec<_>>(),
        [InstanceError::TooMany { max: 1 }]
    );
    let stats = game.stats();
    assert_eq!((stats.opened, stats.refused, stats.entered), (1, 1, 2));
    let away = game.scene_names([1, 2, 3, 4]);
    assert_eq!(away.iter().filter(|name| *name == "arena").count(), 2);
}

#[test]
fn instances_over_the_tick_limit_open_in_the_next_tick() {
    let mut game = Game::new(rules_with_duration(60.0));
    game.app.insert_resource(InstanceSettings {
        opened_per_tick_max: 1,
        ..InstanceSettings::default()
    });
    for player in 1..=6 {
        game.spawn(player);
        game.queue(player);
    }
    let mut opened = Vec::new();
    for _ in 0..16 {
        game.step(1);
        opened.push(game.read_messages::<InstanceOpened>().len());
    }
    assert!(opened.iter().all(|&opened| opened <= 1));
    assert_eq!(opened.iter().sum::<usize>(), 3);
}

#[test]
fn scene_closed_or_left_otherwise_frees_its_seats() {
    let (mut game, opened) = Game::new_with_duel(rules_with_duration(60.0));
    let moved = game.read_messages::<InstancePlayerEntered>()[0].entity;
    let lobby = game.lobby;
    change_scene(game.app.world_mut(), moved, lobby, Vec2::ONE).unwrap();
    game.step(1);
    assert_eq!(
        game.read_messages::<InstancePlayerLeft>()[0].reason,
        DepartureReason::Moved
    );
    close_scene(game.app.world_mut(), opened.scene).unwrap();
    game.step(1);
    assert_eq!(
        game.read_messages::<InstanceEnded>()[0].reason,
        EndReason::SceneClosed
    );
    let instances = game.app.world().resource::<Instances>();
    assert!(instances.is_empty() && instances.instance_of(PlayerId(2)).is_none());
    let stats = game.stats();
    assert_eq!((stats.entered, stats.returned, stats.lost), (2, 0, 2));
}

#[test]
fn match_duration_is_in_the_state_hash() {
    let hash = |duration_s| {
        let (mut game, _) = Game::new_with_duel(rules_with_duration(duration_s));
        state_hash(game.app.world_mut())
    };
    assert_eq!(hash(60.0), hash(60.0));
    assert_ne!(hash(60.0), hash(61.0));
}

#[test]
fn player_spawned_in_its_match_keeps_its_home() {
    let (mut game, opened) = Game::new_with_duel(rules_with_duration(60.0));
    let (lobby, arena) = (game.lobby, opened.scene);
    let world = game.app.world_mut();
    let despawned = world.resource::<Players>().entity(PlayerId(1)).unwrap();
    despawn_object(world, despawned).unwrap();
    game.step(1);
    let world = game.app.world_mut();
    let at = Vec2::splat(5.0);
    let back = spawn_object(world, arena, KindId(0), at, PlayerId(1)).unwrap();
    game.step(1);
    let request = EndInstanceRequest {
        instance: opened.instance,
    };
    game.app.world_mut().write_message(request);
    let ended = game.step_until::<InstanceEnded>(3);
    assert_eq!(ended[0].reason, EndReason::Requested);
    let object = game.app.world().get::<Object>(back).unwrap();
    assert_eq!(object.scene_entity(), lobby);
    assert_eq!(game.stats().returned, 2);
}

#[test]
fn player_that_respawns_elsewhere_returns_there() {
    let (mut game, opened) = Game::new_with_duel(rules_with_duration(60.0));
    let world = game.app.world_mut();
    let despawned = world.resource::<Players>().entity(PlayerId(1)).unwrap();
    despawn_object(world, despawned).unwrap();
    game.step(1);
    let world = game.app.world_mut();
    let inn = open_scene(world, SceneSpec::default(), ()).unwrap();
    let at = Vec2::splat(5.0);
    let back = spawn_object(world, inn, KindId(0), at, PlayerId(1)).unwrap();
    game.step(1);
    assert_eq!(game.scene_names([1]), ["arena"]);
    throng::instance::end_instance(game.app.world_mut(), opened.instance);
    let object = game.app.world().get::<Object>(back).unwrap();
    assert_eq!(object.scene_entity(), inn);
    let position = game.app.world().get::<Position>(back).unwrap();
    assert_eq!(position.0, at);
}

#[test]
fn leaver_without_a_home_does_not_stay_in_the_match() {
    let (mut game, opened) = Game::new_with_duel(rules_with_duration(60.0));
    let (lobby, arena) = (game.lobby, opened.scene);
    close_scene(game.app.world_mut(), lobby).unwrap();
    let request = LeaveInstanceRequest {
        instance: opened.instance,
        leaver: Leaver::Player(PlayerId(1).into()),
    };
    game.app.world_mut().write_message(request);
    game.step(2);
    let mut objects = game.app.world_mut().query::<&Object>();
    let there = objects
        .iter(game.app.world())
        .filter(|object| object.scene_entity() == arena);
    assert_eq!(there.count(), 1);
    assert_eq!(game.stats().lost, 1);
}

fn rules_with_retries() -> InstanceRules {
    InstanceRules {
        backfill_interval_s: 0.5,
        ends_when_empty: false,
        ..rules_with_duration(60.0)
    }
}

fn leave(game: &mut Game, instance: InstanceId, player: u64) {
    let leaver = Leaver::Player(PlayerId(player).into());
    let world = game.app.world_mut();
    world.write_message(LeaveInstanceRequest { instance, leaver });
}

#[test]
fn player_seated_in_another_match_is_reported_and_replaced() {
    let (mut game, first) = Game::new_with_duel(rules_with_retries());
    game.spawn(3);
    game.queue(1);
    game.queue(3);
    let seated = game.step_until::<PlayerAlreadyInInstance>(12)[0];
    assert_eq!(
        (seated.player, seated.seated_in),
        (PlayerId(1), first.instance)
    );
    assert_ne!(seated.instance, first.instance);
    game.spawn(4);
    game.queue(4);
    let joined = game.step_until::<InstancePartyJoined>(20);
    assert_eq!(joined[0].instance, seated.instance);
    assert_eq!(game.scene_names([1, 3, 4]), ["arena"; 3]);
    let stats = game.stats();
    assert_eq!((stats.never_entered, stats.left, stats.joined), (1, 0, 1));
}

#[test]
fn emptied_match_is_backfilled_at_its_level() {
    let (mut game, opened) = Game::new_with_duel(rules_with_retries());
    (1..=2).for_each(|player| leave(&mut game, opened.instance, player));
    game.step(1);
    game.spawn(3);
    game.queue(3);
    let joined = game.step_until::<InstancePartyJoined>(20);
    assert_eq!(joined[0].instance, opened.instance);
}

#[test]
fn two_backfills_at_once_do_not_avoid_each_other() {
    let (mut game, opened) = Game::new_with_duel(rules_with_retries());
    let avoid = |player: u64, other: u64| {
        let mut wishes = TicketPreferences::default();
        wishes.avoid.push(PlayerId(other).into());
        Game::ticket(player).preferences(wishes)
    };
    for player in [3, 4] {
        game.spawn(player);
    }
    game.queue_with(avoid(3, 4));
    game.queue(4);
    game.step(2);
    (1..=2).for_each(|player| leave(&mut game, opened.instance, player));
    game.step(8);
    assert_eq!(game.stats().joined, 1, "the second party keeps waiting");
    game.spawn(5);
    game.queue(5);
    game.step(20);
    assert_eq!(game.stats().joined, 2);
}

#[test]
fn observers_of_an_ending_instance_read_and_end_instances() {
    #[derive(Component)]
    struct Fighter;
    #[derive(Resource, Default)]
    struct Running(Vec<usize>);
    let (mut game, first) = Game::new_with_duel(rules_with_duration(60.0));
    for player in [3, 4] {
        game.spawn(player);
        game.queue(player);
    }
    let second = game.step_until::<InstanceOpened>(12)[0];
    let world = game.app.world_mut();
    world.init_resource::<Running>();
    world.add_observer(
        move |_: On<Remove<Fighter>>,
              instances: Res<Instances>,
              mut running: ResMut<Running>,
              mut commands: Commands| {
            running.0.push(instances.len());
            commands.queue(move |world: &mut World| {
                throng::instance::end_instance(world, second.instance);
            });
        },
    );
    // Left in the arena, so that it is despawned with the scene while instances end.
    spawn_object(world, first.scene, KindId(0), Vec2::ONE, Fighter).unwrap();
    for opened in [first, second] {
        let request = EndInstanceRequest {
            instance: opened.instance,
        };
        game.app.world_mut().write_message(request);
    }
    game.step(1);
    let world = game.app.world();
    assert_eq!(
        world.resource::<Running>().0,
        [1],
        "the second instance still runs"
    );
    assert!(world.resource::<Instances>().is_empty());
    assert_eq!(game.read_messages::<InstanceEnded>().len(), 2);
    assert_eq!(
        game.scene_names([1, 2, 3, 4]),
        [""; 4],
        "all players are in the lobby"
    );
}

#[test]
fn party_of_an_ended_match_keeps_waiting() {
    let rules = InstanceRules {
        seat_reserved_s: 0.0,
        ..rules_with_duration(60.0)
    };
    let (mut game, opened) = Game::new_with_duel(rules);
    let loser = game.read_messages::<InstancePlayerEntered>()[1];
    game.spawn(3);
    game.queue(3);
    despawn_object(game.app.world_mut(), loser.entity).unwrap();
    // The match is found in the heartbeat, before the next tick handles that it has ended.
    for _ in 0..40 {
        game.step(1);
        let filled = game.app.world().resource::<Messages<BackfillResult>>();
        let filled = filled.iter_current_update_messages();
        if filled.flat_map(|filled| &filled.tickets).next().is_some() {
            throng::instance::end_instance(game.app.world_mut(), opened.instance);
            break;
        }
    }
    assert!(
        game.app
            .world()
            .resource::<Instances>()
            .get(opened.instance)
            .is_none()
    );
    game.read_messages::<InstanceOpened>();
    game.spawn(4);
    game.queue(4);
    let next = game.step_until::<InstanceOpened>(40);
    assert_eq!(next.len(), 1);
    let players = game.read_messages::<InstancePlayerEntered>();
    let mut players: Vec<u64> = players.iter().map(|entered| entered.player.0).collect();
    players.sort_unstable();
    assert_eq!(players, [3, 4], "the matched party is queued again");
}

#[test]
fn backfill_is_given_up_after_the_configured_attempts() {
    let rules = InstanceRules {
        backfill_attempts_max: 3,
        ..rules_with_retries()
    };
    let (mut game, opened) = Game::new_with_duel(rules);
    leave(&mut game, opened.instance, 1);
    game.step(60);
    let stats = game.stats();
    assert_eq!(
        (stats.backfills_requested, stats.backfills_unfilled),
        (3, 1)
    );
    game.spawn(3);
    game.queue(3);
    game.step(30);
    assert_eq!(game.stats().joined, 0);
}

#[test]
fn seat_is_freed_in_the_tick_until_which_it_was_reserved() {
    let rules = InstanceRules {
        seat_reserved_s: 0.5,
        ..rules_with_retries()
    };
    let (mut game, _) = Game::new_with_duel(rules);
    let object = game.read_messages::<InstancePlayerEntered>()[0].entity;
    despawn_object(game.app.world_mut(), object).unwrap();
    game.step(1);
    let DepartureReason::Gone {
        reserved_until_tick,
    } = game.read_messages::<InstancePlayerLeft>()[0].reason
    else {
        panic!("expected the reason `Gone`");
    };
    let tick = |game: &Game| game.app.world().resource::<SimTick>().0;
    assert_eq!(reserved_until_tick, tick(&game) + 10);
    while game.stats().left == 0 && tick(&game) < reserved_until_tick + 5 {
        game.step(1);
    }
    assert_eq!(tick(&game), reserved_until_tick);
}
