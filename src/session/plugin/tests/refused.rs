//! Messages that a client may not send are refused and counted, and change nothing.

use super::*;
use crate::aoi::{AoiPlugin, ViewCaps, Viewable, Viewer};
use crate::session::{ClientMessageRefused, REFUSALS_PER_TICK_MAX, SessionState, SessionStats};
use crate::wire::{ClientInput, InputMotion, QuantizedPosition};
use crate::world::{Object, change_scene};

/// Bad messages, and late inputs.
fn counted(app: &App) -> [u64; 2] {
    let stats = app.world().resource::<SessionStats>();
    [stats.bad_messages, stats.late_inputs]
}

fn bad_messages(app: &App) -> u64 {
    counted(app)[0]
}

/// Sends a message and returns by how much the counters of refused messages grow in a tick.
fn refused(app: &mut App, client: ClientId, message: ClientMessage) -> u64 {
    let before = bad_messages(app);
    send(app, client, message);
    app.update();
    bad_messages(app) - before
}

fn logged_in(app: &mut App, player: u64) -> (ClientId, Entity) {
    let client = connect_as(app, player);
    send(app, client, ClientMessage::login(player));
    app.update();
    let session = app.world().resource::<Sessions>().get(client);
    (client, session.unwrap().controlled_entity.unwrap())
}

fn input(seq: u16, motion: InputMotion) -> ClientMessage<'static> {
    ClientMessage::Input(ClientInput {
        seq,
        motion,
        ..ClientInput::default()
    })
}

#[test]
fn duplicate_or_outdated_inputs_change_nothing() {
    let (mut app, _) = app_with_characters();
    let (client, _) = logged_in(&mut app, 7);
    let number = |app: &App| inputs(app, client);
    // The first input may have any number.
    let script = [
        (65_530, true),
        (65_530, false),
        (65_529, false),
        (3, true),
        (65_531, false),
        (2, false),
        (4, true),
        (4_u16.wrapping_add(1 << 15), false),
        (4 + 32_767, true),
    ];
    let mut last = number(&app);
    for (seq, is_taken) in script {
        let message = input(seq, InputMotion::Towards(9));
        let before = counted(&app);
        send(&mut app, client, message);
        app.update();
        let late = before[1] + u64::from(!is_taken);
        assert_eq!(counted(&app), [before[0], late], "{seq}");
        let moved = written::<MoveInput>(&app).len() + written::<PlayerInput>(&app).len();
        assert_eq!(moved, if is_taken { 2 } else { 0 }, "{seq}");
        last = if is_taken { seq } else { last };
        assert_eq!(number(&app), last);
    }
}

#[test]
fn login_while_loading_and_second_ready_are_refused() {
    let (mut app, scene) = app_with_characters();
    let client = connect_client(app.world_mut(), ConnectionInfo::player(7)).unwrap();
    send(&mut app, client, ClientMessage::login(7));
    app.update();
    let scene = app
        .world()
        .get::<crate::world::SimScene>(scene)
        .unwrap()
        .id();
    let session = |app: &App| {
        let session = app.world().resource::<Sessions>().get(client).unwrap();
        (session.state, session.controlled_entity, session.player)
    };
    let before = session(&app);
    assert_eq!(before.0, SessionState::Loading);
    for player in [7, 8] {
        let login = ClientMessage::login(player);
        assert_eq!(refused(&mut app, client, login), 1);
        assert_eq!((session(&app), objects(&mut app)), (before, 1));
        assert!(written::<LoggedIn>(&app).is_empty() && written::<LoggedOut>(&app).is_empty());
    }
    let ready = ClientMessage::Ready { scene: scene.0 };
    assert_eq!(refused(&mut app, client, ready), 0);
    let before = session(&app);
    assert_eq!(before.0, SessionState::InWorld);
    assert_eq!(refused(&mut app, client, ready), 1);
    assert_eq!(session(&app), before);
}

/// A custom message that names an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heal(u8);

impl ClientMessageType for Heal {
    fn read(bytes: &[u8]) -> Option<Self> {
        <[u8; 1]>::try_from(bytes).ok().map(|[id]| Self(id))
    }

    fn target(&self) -> Option<(u32, u32)> {
        Some((u32::from(self.0), 0))
    }
}

/// An app with views and a client that controls an object: itself, one near it, one far away, and one that left the scene.
fn app_with_neighbours() -> (App, ClientId, [(Entity, u32); 4]) {
    let mut app = App::new();
    app.add_plugins((bevy_time::TimePlugin, SessionPlugin, AoiPlugin));
    crate::sim::clock::one_tick_per_update(&mut app);
    app.register_client_message::<Heal>(3);
    let spec = || SceneSpec {
        size_m: Vec2::splat(1_000.0),
        ..SceneSpec::default()
    };
    let scene = open_scene(app.world_mut(), spec(), ()).unwrap();
    let elsewhere = open_scene(app.world_mut(), spec(), ()).unwrap();
    let objects = [100.0, 110.0, 900.0, 120.0].map(|at| {
        let sight = (Viewer::new(ViewCaps::all(9)), Viewable::default());
        let at = Vec2::splat(at);
        let entity = spawn_object(app.world_mut(), scene, KindId(0), at, sight).unwrap();
        let id = app.world().get::<Object>(entity).unwrap().id().0;
        (entity, id)
    });
    let client = connect(&mut app);
    send(&mut app, client, ClientMessage::login(7));
    app.update();
    assert!(control(app.world_mut(), client, objects[0].0));
    app.update();
    change_scene(app.world_mut(), objects[3].0, elsewhere, Vec2::ONE).unwrap();
    app.update();
    (app, client, objects)
}

fn heal(id: &[u8; 1]) -> ClientMessage<'_> {
    ClientMessage::Custom { kind: 3, bytes: id }
}

#[test]
fn objects_out_of_sight_cannot_be_named() {
    let (mut app, client, [own, near, far, moved]) = app_with_neighbours();
    let cases = [
        (near.1, 0, Some(near.0)),
        (own.1, 0, Some(own.0)),
        (far.1, 0, None),
        (near.1, 1, None),
        (moved.1, 0, None),
        (999, 0, None),
        (u32::MAX, u32::MAX, None),
        (0, 0, None),
    ];
    for (id, generation, target) in cases {
        let interact = ClientMessage::Interact {
            id,
            generation,
            verb: 2,
        };
        let count = refused(&mut app, client, interact);
        assert_eq!(count, u64::from(target.is_none()), "{id} of {generation}");
        let asked = app.world().resource::<Messages<PlayerRequestReceived>>();
        let asked = asked.iter_current_update_messages();
        let targets: Vec<Entity> = asked
            .filter_map(|asked| match asked.request {
                PlayerRequest::Interact { target, verb: 2 } => Some(target),
                _ => None,
            })
            .collect();
        assert_eq!(targets, Vec::from_iter(target));
        // The same applies to objects that custom messages name.
        let Some(byte) = u8::try_from(id).ok().filter(|_| generation == 0) else {
            continue;
        };
        let count = refused(&mut app, client, heal(&[byte]));
        assert_eq!(count, u64::from(target.is_none()), "{id}");
        let healed = app.world().resource::<Messages<FromClient<Heal>>>();
        let healed = healed.iter_current_update_messages();
        let healed: Vec<Entity> = healed.filter_map(|it| it.target).collect();
        assert_eq!(healed, Vec::from_iter(target));
    }
}

#[test]
fn client_without_object_cannot_move_or_name_objects() {
    let (mut app, client, [own, near, ..]) = app_with_neighbours();
    app.world_mut().entity_mut(own.0).remove::<ControlledBy>();
    app.update();
    assert_eq!(refused(&mut app, client, heal(&[near.1 as u8])), 1);
    let unknown = ClientMessage::Custom {
        kind: 4,
        bytes: &[],
    };
    assert_eq!(refused(&mut app, client, unknown), 1);
    refused(&mut app, client, input(1, InputMotion::Towards(0)));
    refused(&mut app, client, ClientMessage::move_to(Vec2::ONE, 0));
    assert!(written::<MoveInput>(&app).is_empty());
}

#[test]
fn client_moves_only_its_own_object() {
    let (mut app, scene) = app_with_characters();
    let (first, object) = logged_in(&mut app, 7);
    let (second, other) = logged_in(&mut app, 8);
    let far = QuantizedPosition {
        x: u32::MAX,
        y: u32::MAX,
    };
    send(&mut app, second, input(1, InputMotion::To(far)));
    send(&mut app, second, ClientMessage::Logout);
    app.update();
    let moved = written::<MoveInput>(&app);
    assert!(moved.iter().all(|input| input.entity == other));
    assert!(app.world().get_entity(other).is_err());
    // It no longer controls its former object, and never controlled that of another client.
    let session = app.world().resource::<Sessions>().get(first).unwrap();
    assert_eq!(session.controlled_entity, Some(object));
    assert!(app.world().get_entity(scene).is_ok());
    let transport = app.world().resource::<TransportHandle>().clone();
    let late = input(2, InputMotion::Towards(0)).to_bytes();
    assert_eq!(
        transport.receive(second, &late),
        Err(ReceiveError::UnknownClient(second))
    );
}

#[test]
fn refused_messages_are_reported_up_to_a_limit() {
    let (mut app, _) = app_with_characters();
    let (client, _) = logged_in(&mut app, 7);
    let (other, _) = logged_in(&mut app, 8);
    let before = bad_messages(&app);
    // More than one client may have waiting.
    let sent = REFUSALS_PER_TICK_MAX + 6;
    for _ in 0..sent / 2 {
        send_bytes(&mut app, client, &[255, 1, 2]);
        send_bytes(&mut app, other, &[255, 1, 2]);
    }
    let mut reported = 0;
    while bad_messages(&app) < before + sent {
        app.update();
        let found = written::<ClientMessageRefused>(&app);
        assert!(found.len() as u64 <= REFUSALS_PER_TICK_MAX);
        assert!(
            found
                .iter()
                .all(|one| [client, other].contains(&one.client))
        );
        assert!(found.iter().all(|one| one.reason == "malformed message"));
        reported += found.len() as u64;
    }
    assert!(
        (REFUSALS_PER_TICK_MAX..=sent).contains(&reported),
        "{reported}"
    );
    // One that is refused by a rule of the world is reported in its tick.
    let verb = ClientMessage::Interact {
        id: 9_999,
        generation: 0,
        verb: 1,
    };
    send(&mut app, client, verb);
    app.update();
    let found = written::<ClientMessageRefused>(&app);
    assert_eq!(found.len(), 1);
    assert!(found[0].reason.contains("neither sees"), "{found:?}");
}

#[test]
fn client_that_returned_with_a_used_token_resumes_only() {
    let (mut app, _) = app_with_characters();
    let (_, own) = logged_in(&mut app, 7);
    let returned = ConnectionInfo::player(7)
        .without_loading()
        .resuming_only(true);
    let client = connect_client(app.world_mut(), returned).unwrap();
    // The token may have expired, and the player may be banned since.
    assert_eq!(refused(&mut app, client, ClientMessage::login(7)), 1);
    let sessions = app.world().resource::<Sessions>();
    assert!(sessions.get(client).is_none());
    let ends = app.world().resource::<SessionStats>().ends;
    assert_eq!(ends.authentication_failed, 1);
    assert!(app.world().get_entity(own).is_ok(), "the session goes on");
}
