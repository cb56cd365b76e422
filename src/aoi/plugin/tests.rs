//! The plugin alone in an app.

use super::*;
use crate::world::{
    KindId, SceneSpec, change_scene, close_scene, open_scene, spawn_object, teleport,
};

const PLAYER: KindId = KindId(0);
const BOSS: KindId = KindId(3);

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((bevy_time::TimePlugin, AoiPlugin));
    sim::clock::one_tick_an_update(&mut app);
    app
}

fn scene(app: &mut App) -> Entity {
    open_scene(app.world_mut(), SceneSpec::default(), ()).unwrap()
}

fn player(app: &mut App, scene: Entity, x: f32) -> Entity {
    let sight = (Viewer::new(ViewCaps::all(10)), Viewable::default());
    spawn_object(app.world_mut(), scene, PLAYER, Vec2::new(x, 500.0), sight).unwrap()
}

/// (viewer, target) of this tick's enters, and of its leaves with their reasons.
fn changes(app: &App) -> (Vec<(u32, u32)>, Vec<(u32, u32, LeaveReason)>) {
    let entered = app
        .world()
        .resource::<Messages<Entered>>()
        .iter_current_update_messages();
    let left = app
        .world()
        .resource::<Messages<Left>>()
        .iter_current_update_messages();
    (
        entered.map(|e| (e.viewer.0, e.target.0)).collect(),
        left.map(|l| (l.viewer.0, l.target.0, l.reason)).collect(),
    )
}

#[test]
fn neighbours_see_each_other_and_a_walk_or_teleport_away_ends_it() {
    let mut app = app();
    let scene = scene(&mut app);
    let a = player(&mut app, scene, 100.0);
    let b = player(&mut app, scene, 140.0);
    app.update();
    assert_eq!(changes(&app), (vec![(1, 2), (2, 1)], vec![]));
    app.world_mut().get_mut::<Position>(a).unwrap().0.x = 400.0;
    app.update();
    assert_eq!(
        changes(&app).1,
        [(1, 2, LeaveReason::Range), (2, 1, LeaveReason::Range)]
    );
    teleport(app.world_mut(), b, Vec2::new(401.0, 500.0)).unwrap();
    app.update();
    assert_eq!(changes(&app).0.len(), 2);
}

#[test]
fn a_despawn_and_a_change_of_scene_end_links_with_their_reasons() {
    let mut app = app();
    let (here, there) = (scene(&mut app), scene(&mut app));
    let [a, b, _c] = [100.0, 101.0, 102.0].map(|x| player(&mut app, here, x));
    app.update();
    app.world_mut().despawn(a);
    change_scene(app.world_mut(), b, there, Vec2::ONE).unwrap();
    app.update();
    let left = changes(&app).1;
    let reasons_of = |target| {
        left.iter()
            .filter(move |l| l.0 == 3 && l.1 == target)
            .map(|l| l.2)
    };
    assert_eq!(reasons_of(1).collect::<Vec<_>>(), [LeaveReason::Despawn]);
    assert_eq!(reasons_of(2).collect::<Vec<_>>(), [LeaveReason::Scene]);
}

#[test]
fn a_boss_is_seen_in_the_whole_scene_and_a_spectator_by_nobody() {
    let mut app = app();
    let scene = scene(&mut app);
    let spectator = Viewer::new(ViewCaps::all(10));
    spawn_object(app.world_mut(), scene, PLAYER, Vec2::ONE, spectator).unwrap();
    spawn_object(
        app.world_mut(),
        scene,
        BOSS,
        Vec2::splat(999.0),
        Viewable::default(),
    )
    .unwrap();
    player(&mut app, scene, 2.0);
    app.update();
    assert_eq!(changes(&app).0, [(1, 2), (3, 2)]);
}

#[test]
fn standing_hiding_and_caps_take_effect_through_their_components() {
    let mut app = app();
    let scene = scene(&mut app);
    let [a, b, c] = [100.0, 101.0, 102.0].map(|x| player(&mut app, scene, x));
    app.update();
    app.world_mut().get_mut::<Viewer>(a).unwrap().caps = ViewCaps::all(1);
    app.update();
    assert_eq!(changes(&app).1, [(1, 3, LeaveReason::Evicted)]);
    app.world_mut().entity_mut(a).insert(TeamId(1));
    app.world_mut().entity_mut(c).insert(TeamId(1));
    app.update();
    assert_eq!(
        changes(&app),
        (vec![(1, 3)], vec![(1, 2, LeaveReason::Evicted)])
    );
    app.world_mut().get_mut::<Viewable>(b).unwrap().hidden = true;
    app.update();
    assert_eq!(changes(&app).1, [(3, 2, LeaveReason::Hidden)]);
    app.world_mut().entity_mut(c).remove::<Viewer>();
    app.update();
    assert_eq!(changes(&app).1.len(), 1, "it saw only the first by then");
}

#[test]
fn a_target_and_who_attacks_go_before_all_others_as_long_as_they_live() {
    let mut app = app();
    let scene = scene(&mut app);
    let [a, b, c] = [100.0, 101.0, 102.0].map(|x| player(&mut app, scene, x));
    app.world_mut().get_mut::<Viewer>(a).unwrap().caps = ViewCaps::all(1);
    app.update();
    let reference = |app: &App, entity| app.world().get::<Object>(entity).unwrap().reference();
    let sees = |app: &App, id| {
        let interest = app.world().get::<SceneInterest>(scene).unwrap();
        interest.views().visible(1, id)
    };
    assert!(sees(&app, 2) && !sees(&app, 3));
    let ties = Ties {
        target: Some(reference(&app, c)),
        ..Ties::default()
    };
    app.world_mut().entity_mut(a).insert(ties);
    app.update();
    assert!(!sees(&app, 2) && sees(&app, 3), "the own target");
    let ties = Ties {
        target: Some(reference(&app, a)),
        ..Ties::default()
    };
    app.world_mut().entity_mut(b).insert(ties);
    app.world_mut().entity_mut(a).remove::<Ties>();
    app.update();
    assert!(sees(&app, 2) && !sees(&app, 3), "who attacks");
    app.world_mut().despawn(b);
    app.update();
    assert!(!sees(&app, 2));
    app.update();
    assert!(sees(&app, 3), "who is left");
}

#[test]
fn who_becomes_viewable_later_is_seen_until_it_no_longer_is() {
    let mut app = app();
    let scene = scene(&mut app);
    player(&mut app, scene, 100.0);
    let ghost = spawn_object(app.world_mut(), scene, PLAYER, Vec2::new(101.0, 500.0), ()).unwrap();
    app.update();
    assert_eq!(changes(&app).0, []);
    app.world_mut()
        .entity_mut(ghost)
        .insert(Viewable::default());
    app.update();
    assert_eq!(changes(&app).0, [(1, 2)]);
    app.world_mut().entity_mut(ghost).remove::<Viewable>();
    app.update();
    assert_eq!(changes(&app).1, [(1, 2, LeaveReason::Hidden)]);
}

#[test]
fn of_those_who_come_at_once_so_many_look_around_as_the_settings_say() {
    let mut app = app();
    let scene = scene(&mut app);
    app.world_mut()
        .resource_mut::<AoiSettings>()
        .sweeps_per_tick_max = 1;
    app.world_mut()
        .resource_mut::<AoiSettings>()
        .looks_per_tick_max = 1;
    let _players = [100.0, 101.0, 102.0].map(|x| player(&mut app, scene, x));
    for links in [4, 6] {
        app.update();
        assert_eq!(app.world().resource::<AoiStats>().links, links);
        let interest = app.world().get::<SceneInterest>(scene).unwrap();
        let count = interest.events().len();
        assert_eq!(count, changes(&app).0.len(), "of this tick only");
    }
}

#[test]
fn a_scene_that_closes_takes_its_links_along() {
    let mut app = app();
    let scene = scene(&mut app);
    let _players = [100.0, 101.0].map(|x| player(&mut app, scene, x));
    app.update();
    assert_eq!(app.world().resource::<AoiStats>().links, 2);
    close_scene(app.world_mut(), scene).unwrap();
    app.update();
    assert_eq!(app.world().resource::<AoiStats>().links, 0);
    assert_eq!(app.world().resource::<AoiStats>().counters.enters, 2);
}
