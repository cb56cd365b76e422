//! Exceptions of single viewers: they last while both objects live, in any scenes.

use std::collections::BTreeMap;

use super::*;
use crate::aoi::ViewException::{Hide, Show};
use crate::sim::logged_warnings;

/// No pair is allowed, so that only exceptions show an object.
const NOBODY: ViewRules = ViewRules {
    allows: Some(|_, _| false),
    ..ViewRules::NONE
};

fn sees(app: &App, viewer: Entity, target: Entity) -> bool {
    let [viewer, target] =
        [viewer, target].map(|entity| *app.world().get::<Object>(entity).unwrap());
    let interest = app
        .world()
        .get::<SceneInterest>(viewer.scene_entity())
        .unwrap();
    let is_here = viewer.scene() == target.scene();
    is_here && interest.views().visible(viewer.id().0, target.id().0)
}

fn go(app: &mut App, entity: Entity, scene: Entity) {
    change_scene(app.world_mut(), entity, scene, Vec2::new(100.0, 500.0)).unwrap();
}

/// Two scenes, and two players in the first: a viewer, and an object that is hidden from it.
fn hidden_pair() -> (App, [Entity; 2], [Entity; 2]) {
    let mut app = app();
    let scenes = [scene(&mut app), scene(&mut app)];
    let [viewer, target] = [100.0, 101.0].map(|x| player(&mut app, scenes[0], x));
    hide_from(app.world_mut(), target, viewer).unwrap();
    app.update();
    assert!(!sees(&app, viewer, target) && sees(&app, target, viewer));
    (app, scenes, [viewer, target])
}

fn check(app: &App, scenes: [Entity; 2]) {
    for scene in scenes {
        assert_eq!(validate_views(app.world(), scene), Ok(()));
    }
}

#[test]
fn hiding_survives_a_viewer_that_leaves_and_returns() {
    let (mut app, [here, there], [viewer, target]) = hidden_pair();
    for scene in [there, here] {
        go(&mut app, viewer, scene);
        app.update();
        assert!(!sees(&app, viewer, target));
        check(&app, [here, there]);
    }
    assert!(
        sees(&app, target, viewer),
        "the other direction has no exception"
    );
    clear_view_exception(app.world_mut(), target, viewer).unwrap();
    app.update();
    assert!(sees(&app, viewer, target));
}

#[test]
fn hiding_survives_a_target_that_leaves_and_returns() {
    let (mut app, [here, there], [viewer, target]) = hidden_pair();
    for scene in [there, here, here] {
        go(&mut app, target, scene);
        app.update();
        assert!(!sees(&app, viewer, target));
        check(&app, [here, there]);
    }
    assert!(
        sees(&app, target, viewer),
        "the other direction has no exception"
    );
}

#[test]
fn hiding_survives_both_entering_the_same_scene() {
    for order in [[0, 1], [1, 0]] {
        for ticks_between in [0, 1, 3] {
            let (mut app, [here, there], pair) = hidden_pair();
            go(&mut app, pair[order[0]], there);
            (0..ticks_between).for_each(|_| app.update());
            go(&mut app, pair[order[1]], there);
            app.update();
            let [viewer, target] = pair;
            assert!(!sees(&app, viewer, target), "{order:?}, {ticks_between}");
            assert!(sees(&app, target, viewer), "{order:?}, {ticks_between}");
            check(&app, [here, there]);
        }
    }
}

#[test]
fn object_shown_to_a_viewer_stays_shown_after_scene_changes() {
    let mut app = app();
    let [here, there] = [(); 2].map(|()| scene(&mut app));
    for scene in [here, there] {
        app.world_mut().entity_mut(scene).insert(NOBODY);
    }
    let [viewer, target] = [100.0, 101.0].map(|x| player(&mut app, here, x));
    show_to(app.world_mut(), target, viewer).unwrap();
    app.update();
    assert!(sees(&app, viewer, target));
    go(&mut app, target, there);
    app.update();
    go(&mut app, viewer, there);
    app.update();
    assert!(sees(&app, viewer, target) && !sees(&app, target, viewer));
    check(&app, [here, there]);
}

#[test]
fn exception_is_set_and_cleared_across_scenes() {
    let mut app = app();
    let [here, there] = [(); 2].map(|()| scene(&mut app));
    let viewer = player(&mut app, here, 100.0);
    let target = player(&mut app, there, 100.0);
    app.update();
    hide_from(app.world_mut(), target, viewer).unwrap();
    app.update();
    go(&mut app, target, here);
    app.update();
    assert!(!sees(&app, viewer, target));
    go(&mut app, viewer, there);
    clear_view_exception(app.world_mut(), target, viewer).unwrap();
    app.update();
    go(&mut app, viewer, here);
    app.update();
    assert!(sees(&app, viewer, target));
    check(&app, [here, there]);
}

#[test]
fn exceptions_in_other_scenes_count_towards_the_limit() {
    let (mut app, [here, there], [viewer, target]) = hidden_pair();
    let mut settings = app.world_mut().resource_mut::<AoiSettings>();
    settings.exceptions_per_viewer_max = 1;
    go(&mut app, target, there);
    app.update();
    let other = player(&mut app, here, 102.0);
    let world = app.world_mut();
    let full = hide_from(world, other, viewer);
    assert!(matches!(full, Err(ViewError::TooMany { max: 1, .. })));
    world.despawn(target);
    assert_eq!(hide_from(world, other, viewer), Ok(()));
}

#[test]
fn exception_in_another_scene_is_in_the_state_hash() {
    let hash = |exception: Option<ViewException>| {
        let (mut app, [_, there], [viewer, target]) = hidden_pair();
        go(&mut app, target, there);
        match exception {
            Some(Hide) => {}
            Some(Show) => show_to(app.world_mut(), target, viewer).unwrap(),
            None => clear_view_exception(app.world_mut(), target, viewer).unwrap(),
        }
        app.update();
        state_hash(app.world_mut())
    };
    let [hidden, shown, cleared] = [Some(Hide), Some(Show), None].map(hash);
    assert_ne!(hidden, shown);
    assert_ne!(hidden, cleared);
    assert_ne!(shown, cleared);
    assert_eq!(hidden, hash(Some(Hide)));
}

#[test]
fn hash_of_exceptions_is_independent_of_entity_numbers() {
    let hash = |freed: &[usize]| {
        let mut app = app();
        let spare = [(); 8].map(|()| app.world_mut().spawn_empty().id());
        for &nth in freed {
            app.world_mut().despawn(spare[nth]);
        }
        let scenes = [(); 2].map(|()| scene(&mut app));
        let [a, b, c] = [100.0, 101.0, 102.0].map(|x| player(&mut app, scenes[0], x));
        for (target, viewer) in [(b, a), (c, a), (a, c)] {
            hide_from(app.world_mut(), target, viewer).unwrap();
        }
        go(&mut app, b, scenes[1]);
        app.update();
        state_hash(app.world_mut())
    };
    assert_eq!(hash(&[]), hash(&[6, 1, 4, 0, 3]));
}

#[test]
fn closed_scene_ends_the_exceptions_of_its_objects() {
    let (mut app, [here, there], [viewer, target]) = hidden_pair();
    go(&mut app, target, there);
    app.update();
    close_scene(app.world_mut(), there).unwrap();
    app.update();
    assert!(
        app.world()
            .get::<ViewExceptions>(viewer)
            .unwrap()
            .is_empty()
    );
    assert_eq!(validate_views(app.world(), here), Ok(()));
}

#[test]
fn removed_object_component_ends_exceptions_in_both_directions() {
    let (mut app, [here, _], [viewer, target]) = hidden_pair();
    hide_from(app.world_mut(), viewer, target).unwrap();
    app.world_mut().entity_mut(target).remove::<Object>();
    app.world_mut().flush();
    app.world_mut()
        .entity_mut(target)
        .insert((InScene(here), PLAYER));
    app.update();
    assert!(sees(&app, viewer, target) && sees(&app, target, viewer));
}

/// What exceptions there are, as a plain map of pairs.
type ExceptionModel = BTreeMap<(Entity, Entity), ViewException>;

fn change_exceptions(
    app: &mut App,
    random: &mut Pcg64Mcg,
    scenes: [Entity; 2],
    live: &mut Vec<Entity>,
    model: &mut ExceptionModel,
) {
    let scene = scenes[random.random_range(0..2usize)];
    if live.len() < 3 || live.len() < 6 && random.random_range(0..4) == 0 {
        live.push(player(app, scene, 100.0));
        return;
    }
    let [nth, other] = [(); 2].map(|()| random.random_range(0..live.len()));
    let (viewer, target) = (live[nth], live[other]);
    let world = app.world_mut();
    match random.random_range(0..9) {
        0 => {
            world.despawn(live.swap_remove(nth));
            model.retain(|&(v, t), _| v != viewer && t != viewer);
        }
        1 => {
            world.entity_mut(viewer).remove::<ViewExceptions>();
            model.retain(|&(v, _), _| v != viewer);
        }
        2..=4 => go(app, viewer, scene),
        5 | 6 if viewer != target => {
            hide_from(world, target, viewer).unwrap();
            model.insert((viewer, target), Hide);
        }
        7 if viewer != target => {
            show_to(world, target, viewer).unwrap();
            model.insert((viewer, target), Show);
        }
        8 if viewer != target => {
            clear_view_exception(world, target, viewer).unwrap();
            model.remove(&(viewer, target));
        }
        _ => {}
    }
}

#[test]
fn exceptions_match_a_model_over_random_scene_changes() {
    for seed in 0..12 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut app = app();
        // In the first scene all objects see each other, in the second none do, apart from exceptions.
        let scenes = [(); 2].map(|()| scene(&mut app));
        app.world_mut().entity_mut(scenes[1]).insert(NOBODY);
        let (mut live, mut model) = (Vec::new(), ExceptionModel::new());
        let mut applied = 0;
        for tick in 0..150 {
            for _ in 0..random.random_range(1..5) {
                change_exceptions(&mut app, &mut random, scenes, &mut live, &mut model);
            }
            app.update();
            check(&app, scenes);
            for (&viewer, &target) in live.iter().flat_map(|v| live.iter().map(move |t| (v, t))) {
                let place = |entity| app.world().get::<Object>(entity).unwrap().scene_entity();
                let is_here = viewer != target && place(viewer) == place(target);
                let by_rules = place(viewer) == scenes[0];
                let exception = model.get(&(viewer, target));
                let expected = is_here && exception.map_or(by_rules, |&e| e == Show);
                let pair = format!("seed {seed}, tick {tick}: {viewer} and {target}");
                assert_eq!(sees(&app, viewer, target), expected, "{pair}");
                applied += usize::from(is_here && exception.is_some());
            }
            let mut all = app.world_mut().query::<&ViewExceptions>();
            let total: usize = all.iter(app.world()).map(ViewExceptions::len).sum();
            assert_eq!(total, model.len(), "seed {seed}, tick {tick}");
        }
        assert!(
            applied > 100,
            "hardly any exception was in force: {applied}"
        );
    }
}

#[test]
fn commands_set_and_clear_exceptions() {
    let mut app = app();
    let scene = scene(&mut app);
    app.world_mut().entity_mut(scene).insert(NOBODY);
    let [a, b, c] = [100.0, 101.0, 102.0].map(|x| player(&mut app, scene, x));
    let exception = |app: &App, object, viewer| {
        let exceptions = app.world().get::<ViewExceptions>(viewer);
        exceptions.and_then(|all| all.get(object))
    };
    let warnings = logged_warnings(|| {
        let mut commands = app.world_mut().commands();
        let mut commands = commands.entity(a);
        commands.show_to(b).hide_from(c).clear_view_exception(c);
        app.update();
    });
    assert_eq!(warnings, [""; 0]);
    assert_eq!(
        [b, c].map(|viewer| exception(&app, a, viewer)),
        [Some(Show), None]
    );
    assert!(sees(&app, b, a) && !sees(&app, c, a));
}

#[test]
fn failed_exception_commands_are_logged() {
    let mut app = app();
    let scene = scene(&mut app);
    let [a, b] = [100.0, 101.0].map(|x| player(&mut app, scene, x));
    app.world_mut().despawn(b);
    let warnings = logged_warnings(|| {
        let mut commands = app.world_mut().commands();
        commands.entity(a).show_to(b).hide_from(a);
        commands.entity(b).clear_view_exception(a);
        app.world_mut().flush();
    });
    let messages = [
        "object not shown",
        "object not hidden",
        "view exception not cleared",
    ];
    assert_eq!(warnings.len(), messages.len(), "{warnings:?}");
    for ((warning, message), entity) in warnings.iter().zip(messages).zip([a, a, b]) {
        assert!(
            warning.starts_with(&format!("{message}; entity={entity}; viewer=")),
            "{warning}"
        );
        assert!(warning.contains("; error="), "{warning}");
    }
}
