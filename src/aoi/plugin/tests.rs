//! The plugin alone in an app.

mod by_entity;
mod exceptions;
mod ranges;

use glam::Vec2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::aoi::{
    DistanceRules, OWN_OR_TARGET, UNRELATED, ViewCaps, ViewEvent, ViewException, ViewLeaveReason,
    ViewTraits, is_same_team,
};
use crate::sim::{StateHash, state_hash};
use crate::world::{
    GuildId, InScene, KindId, Object, ObjectRef, Position, SceneSpec, TeamId, change_scene,
    close_scene, open_scene, spawn_object, teleport,
};

const PLAYER: KindId = KindId(0);
const BOSS: KindId = KindId(3);

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((bevy_time::TimePlugin, AoiPlugin));
    crate::sim::clock::one_tick_per_update(&mut app);
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
fn changes(app: &App) -> (Vec<(u32, u32)>, Vec<(u32, u32, ViewLeaveReason)>) {
    let entered = app
        .world()
        .resource::<Messages<ViewEntered>>()
        .iter_current_update_messages();
    let left = app
        .world()
        .resource::<Messages<ViewLeft>>()
        .iter_current_update_messages();
    (
        entered.map(|e| (e.viewer.0, e.target.0)).collect(),
        left.map(|l| (l.viewer.0, l.target.0, l.reason)).collect(),
    )
}

#[test]
fn neighbours_are_linked_until_one_walks_or_teleports_away() {
    let mut app = app();
    let scene = scene(&mut app);
    let a = player(&mut app, scene, 100.0);
    let b = player(&mut app, scene, 140.0);
    app.update();
    assert_eq!(changes(&app), (vec![(1, 2), (2, 1)], vec![]));
    app.world_mut().get_mut::<Position>(a).unwrap().0.x = 400.0;
    app.update();
    // Cell by cell: the first object is in another cell by now.
    assert_eq!(
        changes(&app).1,
        [
            (2, 1, ViewLeaveReason::Range),
            (1, 2, ViewLeaveReason::Range)
        ]
    );
    teleport(app.world_mut(), b, Vec2::new(401.0, 500.0)).unwrap();
    app.update();
    assert_eq!(changes(&app).0.len(), 2);
}

#[test]
fn despawn_and_scene_change_end_links_with_their_reasons() {
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
    assert_eq!(
        reasons_of(1).collect::<Vec<_>>(),
        [ViewLeaveReason::Despawn]
    );
    assert_eq!(reasons_of(2).collect::<Vec<_>>(), [ViewLeaveReason::Scene]);
}

#[test]
fn boss_is_visible_scene_wide_and_spectator_is_invisible() {
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
fn affiliation_hiding_and_cap_components_take_effect() {
    let mut app = app();
    let scene = scene(&mut app);
    let [a, b, c] = [100.0, 101.0, 102.0].map(|x| player(&mut app, scene, x));
    app.update();
    app.world_mut().get_mut::<Viewer>(a).unwrap().caps = ViewCaps::all(1);
    app.update();
    assert_eq!(changes(&app).1, [(1, 3, ViewLeaveReason::Evicted)]);
    app.world_mut().entity_mut(a).insert(TeamId(1));
    app.world_mut().entity_mut(c).insert(TeamId(1));
    app.update();
    assert_eq!(
        changes(&app),
        (vec![(1, 3)], vec![(1, 2, ViewLeaveReason::Evicted)])
    );
    app.world_mut().get_mut::<Viewable>(b).unwrap().hidden = true;
    app.update();
    assert_eq!(changes(&app).1, [(3, 2, ViewLeaveReason::Hidden)]);
    app.world_mut().entity_mut(c).remove::<Viewer>();
    app.update();
    assert_eq!(changes(&app).1.len(), 1, "it saw only the first by then");
}

#[test]
fn target_and_attacker_outrank_others_while_alive() {
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
    let ties = ViewRelations {
        target: Some(reference(&app, c)),
        ..ViewRelations::default()
    };
    app.world_mut().entity_mut(a).insert(ties);
    app.update();
    assert!(!sees(&app, 2) && sees(&app, 3), "the own target");
    let ties = ViewRelations {
        target: Some(reference(&app, a)),
        ..ViewRelations::default()
    };
    app.world_mut().entity_mut(b).insert(ties);
    app.world_mut().entity_mut(a).remove::<ViewRelations>();
    app.update();
    assert!(sees(&app, 2) && !sees(&app, 3), "who attacks");
    app.world_mut().despawn(b);
    app.update();
    assert!(!sees(&app, 2));
    app.update();
    assert!(sees(&app, 3), "who is left");
}

#[test]
fn viewable_added_later_is_seen_until_it_is_removed() {
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
    assert_eq!(changes(&app).1, [(1, 2, ViewLeaveReason::Hidden)]);
}

#[test]
fn scans_per_tick_are_limited_by_the_settings() {
    let mut app = app();
    let scene = scene(&mut app);
    app.world_mut()
        .resource_mut::<AoiSettings>()
        .full_scans_per_tick_max = 1;
    app.world_mut()
        .resource_mut::<AoiSettings>()
        .scans_per_tick_max = 1;
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
fn closed_scene_removes_its_links() {
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

fn reference(app: &App, entity: Entity) -> ObjectRef {
    app.world().get::<Object>(entity).unwrap().reference()
}

/// The objects that a viewer sees, with their class.
fn seen_by(app: &App, scene: Entity, viewer: u32) -> Vec<(u32, u8)> {
    let interest = app.world().get::<SceneInterest>(scene).unwrap();
    let mut seen: Vec<_> = interest.views().seen_by(viewer).collect();
    seen.sort_unstable();
    seen
}

#[test]
fn despawned_target_id_is_not_inherited() {
    let mut app = app();
    let scene = scene(&mut app);
    let [a, b] = [100.0, 101.0].map(|x| player(&mut app, scene, x));
    let (target, owner) = (Some(reference(&app, b)), None);
    app.world_mut()
        .entity_mut(a)
        .insert(ViewRelations { target, owner });
    app.update();
    assert_eq!(seen_by(&app, scene, 1), [(2, OWN_OR_TARGET)]);
    app.world_mut().despawn(b);
    app.update();
    let heir = player(&mut app, scene, 102.0);
    assert_eq!(reference(&app, heir).id.0, 2, "the id is used again");
    app.update();
    assert_eq!(seen_by(&app, scene, 1), [(2, UNRELATED)]);
    assert_eq!(validate_views(app.world(), scene), Ok(()));
}

#[test]
fn relation_to_a_target_despawned_unseen_is_dropped() {
    let mut app = app();
    let scene = scene(&mut app);
    let [a, b] = [100.0, 101.0].map(|x| player(&mut app, scene, x));
    let ties = ViewRelations {
        target: Some(reference(&app, b)),
        owner: None,
    };
    app.world_mut().despawn(b);
    app.world_mut().entity_mut(a).insert(ties);
    app.update();
    player(&mut app, scene, 102.0);
    app.update();
    assert_eq!(seen_by(&app, scene, 1), [(2, UNRELATED)]);
}

/// The state hash of an object alone in its scene with these components, after a tick.
fn hash_with(bundle: impl Bundle) -> StateHash {
    let mut app = app();
    let scene = scene(&mut app);
    let entity = player(&mut app, scene, 100.0);
    app.world_mut().entity_mut(entity).insert(bundle);
    app.update();
    state_hash(app.world_mut())
}

#[test]
fn view_inputs_are_in_the_state_hash() {
    let viewer = Viewer::new(ViewCaps::all(10));
    let viewable = Viewable::default();
    let ordinary = hash_with((viewer, viewable));
    assert_eq!(ordinary, hash_with((viewer, viewable)));
    let hidden = true;
    assert_ne!(
        ordinary,
        hash_with(Viewable { hidden, ..viewable }),
        "hidden"
    );
    let layers = 2;
    assert_ne!(
        ordinary,
        hash_with(Viewable { layers, ..viewable }),
        "layers"
    );
    assert_ne!(ordinary, hash_with(Viewer { sees: 1, ..viewer }), "sees");
    let range_m = Some(30.0);
    let short = hash_with(Viewer { range_m, ..viewer });
    assert_ne!(ordinary, short, "range");
    let range_m = Some(31.0);
    assert_ne!(short, hash_with(Viewer { range_m, ..viewer }), "range");
    assert_ne!(hash_with(ViewTag([1, 0])), hash_with(ViewTag([0, 1])));
}

/// Only targets with the viewer's bits; a target with the same second word has priority.
const BY_TAG: ViewRules = ViewRules {
    allows: Some(|a, b| b.tag[0] == 0 || a.tag[0] & b.tag[0] != 0),
    class: Some(|a, b| if a.tag[1] == b.tag[1] { 7 } else { 3 }),
    by_distance: DistanceRules::NONE,
};

#[test]
fn scene_rules_apply_a_tag_change_in_the_same_tick() {
    let mut app = app();
    let scene = scene(&mut app);
    app.world_mut().entity_mut(scene).insert(BY_TAG);
    let [a, b, _c] = [100.0, 101.0, 102.0].map(|x| player(&mut app, scene, x));
    app.world_mut().entity_mut(b).insert(ViewTag([0b10, 1]));
    app.update();
    assert_eq!(seen_by(&app, scene, 1), [(3, 7)], "without the quest");
    app.world_mut().entity_mut(a).insert(ViewTag([0b11, 1]));
    app.update();
    assert_eq!(seen_by(&app, scene, 1), [(2, 7), (3, 3)]);
    assert_eq!(changes(&app).0, [(1, 2)]);
    app.world_mut().get_mut::<Viewer>(a).unwrap().caps = ViewCaps::all(1);
    app.update();
    assert_eq!(seen_by(&app, scene, 1), [(2, 7)], "the lower class goes");
    app.world_mut().entity_mut(a).insert(ViewTag([0b01, 1]));
    app.update();
    assert!(changes(&app).1.contains(&(1, 2, ViewLeaveReason::Hidden)));
    app.world_mut().entity_mut(scene).remove::<ViewRules>();
    app.world_mut().get_mut::<Viewer>(a).unwrap().caps = ViewCaps::all(9);
    app.update();
    assert_eq!(seen_by(&app, scene, 1), [(2, UNRELATED), (3, UNRELATED)]);
    assert_eq!(validate_views(app.world(), scene), Ok(()));
}

#[test]
fn object_can_be_hidden_from_or_shown_to_one_viewer() {
    let mut app = app();
    let scene = scene(&mut app);
    let nobody = ViewRules {
        allows: Some(|_, b| b.tag[0] == 0),
        ..ViewRules::NONE
    };
    app.world_mut().entity_mut(scene).insert(nobody);
    let [a, b, c] = [100.0, 101.0, 102.0].map(|x| player(&mut app, scene, x));
    app.world_mut().entity_mut(c).insert(ViewTag([1, 0]));
    let far = player(&mut app, scene, 900.0);
    app.update();
    let ids = |app: &App| -> Vec<u32> {
        let seen = seen_by(app, scene, 1);
        seen.into_iter().map(|seen| seen.0).collect()
    };
    assert_eq!(ids(&app), [2]);
    hide_from(app.world_mut(), b, a).unwrap();
    show_to(app.world_mut(), c, a).unwrap();
    show_to(app.world_mut(), far, a).unwrap();
    app.update();
    assert_eq!(
        ids(&app),
        [3],
        "the range applies to objects that are shown"
    );
    assert_eq!(seen_by(&app, scene, 2).len(), 1, "others see as before");
    app.world_mut().get_mut::<Viewable>(c).unwrap().hidden = true;
    app.update();
    assert_eq!(
        ids(&app),
        [0u32; 0],
        "an object that hides from all is seen by no viewer"
    );
    app.world_mut().get_mut::<Viewable>(c).unwrap().hidden = false;
    clear_view_exception(app.world_mut(), b, a).unwrap();
    app.update();
    assert_eq!(ids(&app), [2, 3]);
    app.world_mut().entity_mut(a).remove::<ViewExceptions>();
    app.update();
    assert_eq!(ids(&app), [2]);
    assert_eq!(validate_views(app.world(), scene), Ok(()));
}

#[test]
fn exceptions_end_with_their_objects_and_are_not_inherited() {
    let mut app = app();
    let scene = scene(&mut app);
    let [a, b] = [100.0, 101.0].map(|x| player(&mut app, scene, x));
    hide_from(app.world_mut(), b, a).unwrap();
    app.update();
    assert_eq!(seen_by(&app, scene, 1), []);
    app.world_mut().despawn(b);
    app.update();
    assert!(app.world().get::<ViewExceptions>(a).unwrap().is_empty());
    let heir = player(&mut app, scene, 101.0);
    app.update();
    assert_eq!(seen_by(&app, scene, 1), [(2, UNRELATED)]);
    hide_from(app.world_mut(), heir, a).unwrap();
    app.update();
    app.world_mut().despawn(a);
    app.update();
    player(&mut app, scene, 100.0);
    app.update();
    assert_eq!(seen_by(&app, scene, 1), [(2, UNRELATED)]);
    assert_eq!(validate_views(app.world(), scene), Ok(()));
}

#[test]
fn exceptions_are_limited_and_errors_name_both_objects() {
    let mut app = app();
    let here = scene(&mut app);
    let mut settings = app.world_mut().resource_mut::<AoiSettings>();
    settings.exceptions_per_viewer_max = 1;
    let [a, b, c] = [100.0, 101.0, 102.0].map(|x| player(&mut app, here, x));
    let world = app.world_mut();
    assert_eq!(hide_from(world, b, a), Ok(()));
    assert_eq!(show_to(world, b, a), Ok(()), "in place of the other");
    let full = show_to(world, c, a).unwrap_err();
    assert!(full.to_string().contains("viewer 1 of scene 0"), "{full}");
    let itself = hide_from(world, a, a).unwrap_err();
    assert!(
        itself.to_string().contains("object 1 of scene 0"),
        "{itself}"
    );
    let none = hide_from(world, here, a);
    assert_eq!(none, Err(ViewError::NoSuchObject { entity: here }));
    world.despawn(b);
    assert_eq!(show_to(world, c, a), Ok(()), "the dead do not count");
}

#[test]
fn events_match_the_messages_and_name_the_entity_of_each_id() {
    let mut app = app();
    let scene = scene(&mut app);
    let [_a, b] = [100.0, 101.0].map(|x| player(&mut app, scene, x));
    app.update();
    app.world_mut().despawn(b);
    app.update();
    let heir = player(&mut app, scene, 102.0);
    app.update();
    let interest = app.world().get::<SceneInterest>(scene).unwrap();
    assert_eq!(interest.object_ref(2), reference(&app, heir));
    app.world_mut().despawn(heir);
    app.update();
    let interest = app.world().get::<SceneInterest>(scene).unwrap();
    assert_eq!(interest.object_ref(2).generation.0, 1, "of who is gone");
    let pairs: Vec<_> = interest.events().iter().map(ViewEvent::pair).collect();
    let left = changes(&app).1;
    assert_eq!(pairs, left.iter().map(|l| (l.0, l.1)).collect::<Vec<_>>());
    assert_eq!(left.len(), 2);
}

#[test]
fn world_check_finds_faults_that_views_cannot_see() {
    let mut app = app();
    let scene = scene(&mut app);
    player(&mut app, scene, 100.0);
    player(&mut app, scene, 101.0);
    app.update();
    let mut interest = app.world_mut().get_mut::<SceneInterest>(scene).unwrap();
    let traits = interest.views.traits(1).unwrap();
    let stale = ViewTraits {
        target: 2,
        ..traits
    };
    interest.views.set_traits(1, stale);
    interest.views.update(9, &mut Vec::new());
    assert_eq!(
        interest.views.validate(),
        Ok(()),
        "right by its own account"
    );
    let fault = validate_views(app.world(), scene).unwrap_err();
    assert!(fault.to_string().contains("wrong target of 1"), "{fault}");
}

/// One random change to a world with few ids, so that they are used again soon.
fn change_world(
    app: &mut App,
    random: &mut Pcg64Mcg,
    scenes: [Entity; 2],
    live: &mut Vec<Entity>,
    known: &mut Vec<ObjectRef>,
) {
    let scene = scenes[random.random_range(0..2usize)];
    let at = Vec2::splat(random.random_range(100.0..220.0));
    let world = app.world_mut();
    live.retain(|&entity| world.get::<Object>(entity).is_some());
    if live.is_empty() || random.random_range(0..5) == 0 {
        let sight = (Viewer::new(ViewCaps::all(3)), Viewable::default());
        if let Ok(entity) = spawn_object(world, scene, PLAYER, at, sight) {
            known.push(world.get::<Object>(entity).unwrap().reference());
            live.push(entity);
        }
        return;
    }
    let entity = live[random.random_range(0..live.len())];
    let other = live[random.random_range(0..live.len())];
    let mut tie = || {
        let tie = known[random.random_range(0..known.len())];
        (random.random_range(0..3) > 0).then_some(tie)
    };
    let ties = ViewRelations {
        owner: tie(),
        target: tie(),
    };
    let word = random.random_range(0..3u32);
    match random.random_range(0..14) {
        0 => drop(world.despawn(entity)),
        1 => drop(change_scene(world, entity, scene, at)),
        2 => drop(teleport(world, entity, at)),
        3 => world.get_mut::<Position>(entity).unwrap().0 = at,
        4 | 5 => drop(world.entity_mut(entity).insert(ties)),
        6 => drop(world.entity_mut(entity).remove::<ViewRelations>()),
        7 => drop(
            world
                .entity_mut(entity)
                .insert((TeamId(word), GuildId(word))),
        ),
        8 => drop(world.entity_mut(entity).insert(ViewTag([word, 1]))),
        9 => drop(hide_from(world, other, entity)),
        10 => drop(show_to(world, other, entity)),
        11 => drop(world.entity_mut(entity).remove::<Viewable>()),
        12 => {
            let caps = ViewCaps::all(word as u16);
            let (sees, layers, hidden) = (word, 3, false);
            let ranges = [None, Some(40.0), Some(f32::INFINITY), Some(-1.0)];
            let range_m = ranges[random.random_range(0..ranges.len())];
            let viewer = Viewer {
                caps,
                sees,
                range_m,
            };
            let viewable = Viewable {
                layers,
                hidden,
                ..Viewable::default()
            };
            let bundle = (viewer, viewable);
            world.entity_mut(entity).insert(bundle);
        }
        _ if word == 0 => drop(world.entity_mut(scene).remove::<ViewRules>()),
        _ if word == 1 => drop(world.entity_mut(scene).insert(BY_TAG)),
        _ => drop(
            world
                .entity_mut(scene)
                .insert(BY_TAG.beyond(60.0, is_same_team)),
        ),
    }
}

#[test]
fn views_match_a_randomly_changing_world() {
    for seed in 0..12 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut app = app();
        let small = SceneSpec {
            max_objects: 10,
            ..SceneSpec::default()
        };
        let scenes = [(); 2].map(|()| open_scene(app.world_mut(), small.clone(), ()).unwrap());
        let (mut live, mut known) = (Vec::new(), Vec::new());
        let (mut excepted, mut ranged) = (0, 0);
        for tick in 0..150 {
            for _ in 0..random.random_range(1..6) {
                change_world(&mut app, &mut random, scenes, &mut live, &mut known);
            }
            app.update();
            for scene in scenes {
                let checked = validate_views(app.world(), scene);
                assert_eq!(checked, Ok(()), "seed {seed}, tick {tick}");
            }
            let mut ranges = app.world_mut().query::<&Viewer>();
            ranged += ranges
                .iter(app.world())
                .filter(|viewer| viewer.range_m == Some(40.0))
                .count();
            let mut all = app.world_mut().query::<&ViewExceptions>();
            let all = all.iter(app.world()).flat_map(ViewExceptions::iter);
            excepted += all.filter(|e| e.1 == ViewException::Hide).count();
        }
        assert!(ranged > 0, "no viewer had a range, so nothing was tested");
        assert!(excepted > 0, "nothing was excepted, so nothing was tested");
    }
}
