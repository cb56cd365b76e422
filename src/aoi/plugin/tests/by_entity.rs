//! Views by entity: messages, observers, queries; and entities that are not objects.

use std::collections::BTreeSet;

use bevy_ecs::system::RunSystemOnce;

use super::*;
use crate::world::{InScene, Npc, Player, SceneIds};

/// The events that observers received: enters and leaves.
#[derive(Resource, Default)]
struct Observed(Vec<(Entity, Entity, bool)>);

fn record_enter(entered: On<ViewEntered>, mut observed: ResMut<Observed>) {
    let pair = (entered.viewer_entity, entered.target_entity);
    observed.0.push((pair.0, pair.1, true));
}

fn record_leave(left: On<ViewLeft>, mut observed: ResMut<Observed>) {
    let pair = (left.viewer_entity, left.target_entity);
    observed.0.push((pair.0, pair.1, false));
}

fn observed(app: &mut App) -> Vec<(Entity, Entity, bool)> {
    std::mem::take(&mut app.world_mut().resource_mut::<Observed>().0)
}

#[test]
fn messages_name_both_entities_including_despawned_ones() {
    let mut app = app();
    let scene = scene(&mut app);
    let [a, b] = [100.0, 101.0].map(|x| player(&mut app, scene, x));
    app.update();
    let pairs = |app: &App| -> BTreeSet<(Entity, Entity)> {
        let messages = app.world().resource::<Messages<ViewEntered>>();
        let messages = messages.iter_current_update_messages();
        messages
            .map(|e| (e.viewer_entity, e.target_entity))
            .collect()
    };
    assert_eq!(pairs(&app), BTreeSet::from([(a, b), (b, a)]));
    app.world_mut().despawn(b);
    app.update();
    let heir = player(&mut app, scene, 101.0);
    assert_eq!(reference(&app, heir).id.0, 2, "the id is used again");
    let left = app.world().resource::<Messages<ViewLeft>>();
    let left: BTreeSet<_> = left
        .iter_current_update_messages()
        .map(|left| (left.viewer_entity, left.target_entity))
        .collect();
    assert_eq!(left, BTreeSet::from([(a, b), (b, a)]));
    app.update();
    assert_eq!(pairs(&app), BTreeSet::from([(a, heir), (heir, a)]));
}

#[test]
fn viewer_observer_receives_only_its_events_in_order() {
    let mut app = app();
    app.init_resource::<Observed>();
    let scene = scene(&mut app);
    let [a, b, c] = [100.0, 101.0, 102.0].map(|x| player(&mut app, scene, x));
    let mut viewer = app.world_mut().entity_mut(a);
    viewer.observe(record_enter).observe(record_leave);
    app.update();
    let events: BTreeSet<_> = observed(&mut app).into_iter().collect();
    assert_eq!(events, BTreeSet::from([(a, b, true), (a, c, true)]));
    app.world_mut().despawn(b);
    app.update();
    assert_eq!(observed(&mut app), [(a, b, false)]);
    app.world_mut().despawn(a);
    app.update();
    assert_eq!(observed(&mut app), [], "its observers are gone with it");
}

#[test]
fn global_observer_receives_the_same_as_the_messages() {
    let mut app = app();
    app.init_resource::<Observed>();
    let scene = scene(&mut app);
    let [a, b] = [100.0, 101.0].map(|x| player(&mut app, scene, x));
    app.update();
    let observer = app.world_mut().add_observer(record_leave).id();
    assert_eq!(observed(&mut app), []);
    app.world_mut().despawn(a);
    app.update();
    assert_eq!(observed(&mut app), [(a, b, false), (b, a, false)]);
    app.world_mut().despawn(observer);
    app.world_mut().despawn(b);
    app.update();
    assert_eq!(observed(&mut app), []);
}

#[test]
fn observer_that_despawns_targets_leaves_views_valid() {
    let mut app = app();
    let scene = scene(&mut app);
    let _all = [100.0, 101.0, 102.0].map(|x| player(&mut app, scene, x));
    app.add_observer(|entered: On<ViewEntered>, mut commands: Commands| {
        commands.entity(entered.target_entity).try_despawn();
    });
    (0..3).for_each(|_| app.update());
    assert_eq!(validate_views(app.world(), scene), Ok(()));
    assert_eq!(app.world().resource::<AoiStats>().links, 0);
}

#[test]
fn views_by_entity_match_views_by_id() {
    let mut app = app();
    let (here, there) = (scene(&mut app), scene(&mut app));
    let all: Vec<Entity> = (0..12)
        .map(|nth| player(&mut app, here, 100.0 + 15.0 * nth as f32))
        .collect();
    let far = player(&mut app, there, 100.0);
    app.update();
    // One was despawned and one spawned since the last View.
    app.world_mut().despawn(all[3]);
    let new = player(&mut app, here, 101.0);
    let links = |views: Views, all: Query<Entity, With<Object>>| {
        let mut links = BTreeSet::new();
        for viewer in &all {
            for target in views.seen_by(viewer) {
                assert!(views.sees(viewer, target));
                assert!(views.watchers(target).any(|watcher| watcher == viewer));
                links.insert((viewer, target));
            }
            for target in &all {
                assert_eq!(
                    views.sees(viewer, target),
                    links.contains(&(viewer, target))
                );
            }
            assert!(views.watchers_len(viewer) >= views.watchers(viewer).count());
        }
        links
    };
    let found = app.world_mut().run_system_once(links).unwrap();
    let interest = app.world().get::<SceneInterest>(here).unwrap();
    let objects = app.world().get::<SceneIds>(here).unwrap();
    let entity = |id: u32| objects.entity(crate::world::ObjectId(id));
    let by_id = interest.views().links();
    let by_id = by_id.filter_map(|(a, b, _)| Some((entity(a)?, entity(b)?)));
    let by_id: BTreeSet<_> = by_id.collect();
    assert!(by_id.len() > 20, "{}", by_id.len());
    assert_eq!(found, by_id);
    assert!(
        !found
            .iter()
            .any(|&(a, b)| [a, b].contains(&far) || [a, b].contains(&new))
    );
}

#[test]
fn player_and_npc_bundles_need_no_further_components_to_be_seen() {
    let mut app = app();
    let scene = scene(&mut app);
    let at = Position(Vec2::splat(500.0));
    let world = app.world_mut();
    let player = world.spawn((Player, InScene(scene), at)).id();
    let npc = world.spawn((Npc, InScene(scene), at)).id();
    app.update();
    let seen = move |views: Views| {
        let of = |entity| views.seen_by(entity).collect::<Vec<_>>();
        (of(player), of(npc))
    };
    let seen = app.world_mut().run_system_once(seen).unwrap();
    assert_eq!(seen, (vec![npc], vec![]));
    assert_eq!(app.world().resource::<AoiStats>().non_objects, 0);
}

#[test]
fn viewer_without_object_is_counted_unless_spawn_is_pending() {
    let mut app = app();
    let scene = scene(&mut app);
    let unplaced = |app: &App| app.world().resource::<AoiStats>().non_objects;
    app.world_mut().spawn(Viewer::default());
    app.world_mut().spawn(Viewable::default());
    app.update();
    assert_eq!(unplaced(&app), 2);
    let refused = (Player, InScene(scene));
    app.world_mut().spawn(refused);
    player(&mut app, scene, 100.0);
    (0..3).for_each(|_| app.update());
    assert_eq!(unplaced(&app), 2);
    app.world_mut().spawn(Player);
    app.update();
    assert_eq!(unplaced(&app), 3, "a player without a scene");
}

#[test]
fn position_outside_its_scene_is_counted_each_time() {
    let mut app = app();
    let scene = scene(&mut app);
    let player = player(&mut app, scene, 100.0);
    let outside = |app: &App| app.world().resource::<AoiStats>().outside_scene;
    let mut put = |x: f32| {
        app.world_mut().get_mut::<Position>(player).unwrap().0.x = x;
        app.update();
        outside(&app)
    };
    // A scene of 1 km; its far border belongs to it.
    assert_eq!([0.0, 500.0, 1000.0].map(&mut put), [0; 3]);
    assert_eq!([-0.1, 1e9, f32::NAN, f32::NAN].map(&mut put), [1, 2, 3, 4]);
    assert_eq!(put(3.0), 4);
}
