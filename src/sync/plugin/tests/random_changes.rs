//! Mirrors follow random changes.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum SyncStep {
    Tick,
    Walk(usize, f32),
    Teleport(usize, f32),
    Health(usize, u32),
    Gold(usize, u32),
    Mana(usize, u32),
    Stance(usize, u32),
    Team(usize, u32),
    Party(usize, u32),
    Vigour(usize, u32),
    Score(usize, u32),
    /// Removes an attribute's component, or inserts it again.
    Toggle(usize, u32),
    SceneScore(usize, u32),
    Pace(usize, f32),
    Change(usize, usize),
    Despawn(usize),
    Join,
    Cap(usize, u16),
    /// Takes the control of an object away from its client, or gives it back.
    Control(usize),
    /// The second scene closes, and another opens in its place.
    Close,
}

fn steps() -> impl Strategy<Value = Vec<SyncStep>> {
    let who = 0..8usize;
    let step = prop_oneof![
        6 => Just(SyncStep::Tick),
        4 => (who.clone(), -30.0..30.0f32).prop_map(|(w, x)| SyncStep::Walk(w, x)),
        1 => (who.clone(), 0.0..900.0f32).prop_map(|(w, x)| SyncStep::Teleport(w, x)),
        3 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Health(w, v)),
        2 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Gold(w, v)),
        2 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Mana(w, v)),
        2 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Stance(w, v)),
        1 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Team(w, v)),
        2 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Party(w, v)),
        2 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Vigour(w, v)),
        1 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Score(w, v)),
        3 => (who.clone(), 0..6u32).prop_map(|(w, v)| SyncStep::Toggle(w, v)),
        1 => (0..2usize, 0..3u32).prop_map(|(s, v)| SyncStep::SceneScore(s, v)),
        2 => (who.clone(), -3.0..3.0f32).prop_map(|(w, v)| SyncStep::Pace(w, v)),
        1 => (who.clone(), 0..2usize).prop_map(|(w, s)| SyncStep::Change(w, s)),
        1 => who.clone().prop_map(SyncStep::Despawn),
        1 => Just(SyncStep::Join),
        1 => (who.clone(), 0..4u16).prop_map(|(w, c)| SyncStep::Cap(w, c)),
        1 => who.prop_map(SyncStep::Control),
        1 => Just(SyncStep::Close),
    ];
    prop::collection::vec(step, 0..80)
}

impl SyncStep {
    /// Whether it may make an object leave a team, party or guild.
    const fn changes_affiliation(&self) -> bool {
        matches!(self, Self::Team(..) | Self::Party(..))
    }

    /// Applies it. `loose` are the clients whose control was taken away, with their objects.
    fn apply(self, rig: &mut Rig, cap: u16, loose: &mut Vec<(ClientId, Entity)>) {
        let pick = |nth: usize| rig.players.get(nth % rig.players.len().max(1)).copied();
        match self {
            SyncStep::Tick => rig.app.update(),
            SyncStep::Join => rig.join(cap, 3),
            SyncStep::Walk(nth, by) => {
                if let Some(mut position) =
                    pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Position>(e))
                {
                    position.0.x = (position.0.x + by).clamp(0.0, 1000.0);
                }
            }
            SyncStep::Teleport(nth, x) => {
                if let Some(entity) = pick(nth) {
                    teleport(rig.app.world_mut(), entity, Vec2::new(x, 50.0)).unwrap();
                }
            }
            SyncStep::Health(nth, value) => {
                if let Some(mut health) =
                    pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Health>(e))
                {
                    health.0 = value;
                }
            }
            SyncStep::Gold(nth, value) => {
                if let Some(mut gold) =
                    pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Gold>(e))
                {
                    gold.0 = value;
                }
            }
            SyncStep::Mana(nth, value) => {
                if let Some(mut mana) =
                    pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Mana>(e))
                {
                    mana.0 = value;
                }
            }
            SyncStep::Stance(nth, value) => {
                if let Some(entity) = pick(nth) {
                    rig.set_stance(entity, value);
                }
            }
            SyncStep::Vigour(nth, value) => {
                if let Some(mut vigour) =
                    pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Vigour>(e))
                {
                    vigour.0 = value;
                }
            }
            SyncStep::Pace(nth, pace) => {
                if let Some(mut velocity) =
                    pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Velocity>(e))
                {
                    velocity.0.x = pace;
                }
            }
            step => step.apply_to_lists(rig, loose),
        }
    }

    /// The same for affiliations and for objects that come and go.
    fn apply_to_lists(self, rig: &mut Rig, loose: &mut Vec<(ClientId, Entity)>) {
        let pick = |nth: usize| rig.players.get(nth % rig.players.len().max(1)).copied();
        match self {
            SyncStep::Team(nth, team) => {
                if let Some(entity) = pick(nth) {
                    match team {
                        2 => rig.app.world_mut().entity_mut(entity).remove::<TeamId>(),
                        team => rig.app.world_mut().entity_mut(entity).insert(TeamId(team)),
                    };
                }
            }
            SyncStep::Party(nth, party) => {
                if let Some(entity) = pick(nth) {
                    match party {
                        2 => rig.app.world_mut().entity_mut(entity).remove::<PartyId>(),
                        party => rig
                            .app
                            .world_mut()
                            .entity_mut(entity)
                            .insert(PartyId(party)),
                    };
                }
            }
            SyncStep::Score(nth, value) => {
                if let Some(entity) = pick(nth) {
                    rig.app.world_mut().entity_mut(entity).insert(Score(value));
                }
            }
            SyncStep::Toggle(nth, which) => {
                if let Some(entity) = pick(nth) {
                    toggle_one(&mut rig.app.world_mut().entity_mut(entity), which);
                }
            }
            SyncStep::SceneScore(scene, value) => {
                let scene = rig.scenes[scene];
                rig.app.world_mut().entity_mut(scene).insert(Score(value));
            }
            SyncStep::Change(nth, scene) => {
                if let Some(entity) = pick(nth) {
                    let to = rig.scenes[scene];
                    change_scene(rig.app.world_mut(), entity, to, Vec2::splat(50.0)).unwrap();
                }
            }
            SyncStep::Despawn(nth) => {
                if let Some(entity) = pick(nth) {
                    rig.app.world_mut().despawn(entity);
                    rig.players.retain(|&other| other != entity);
                }
            }
            SyncStep::Control(nth) => {
                if let Some((client, entity)) = loose.pop() {
                    control(rig.app.world_mut(), client, entity);
                } else if let Some(entity) = pick(nth) {
                    loose.push((rig.client_of(entity), entity));
                    rig.app
                        .world_mut()
                        .entity_mut(entity)
                        .remove::<ControlledBy>();
                }
            }
            SyncStep::Close => {
                close_scene(rig.app.world_mut(), rig.scenes[1]).unwrap();
                rig.scenes[1] = open_scene(rig.app.world_mut(), SceneSpec::default(), ()).unwrap();
                rig.players
                    .retain(|&entity| rig.app.world().get_entity(entity).is_ok());
            }
            SyncStep::Cap(nth, cap) => {
                if let Some(mut viewer) =
                    pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Viewer>(e))
                {
                    viewer.caps = ViewCaps::all(cap);
                }
            }
            _ => {}
        }
    }
}

/// Removes one of the attributes, or inserts it again.
fn toggle_one(object: &mut EntityWorldMut, which: u32) {
    match which {
        0 => toggle(object, Health(7)),
        1 => toggle(object, Gold(7)),
        2 => toggle(object, Mana(7)),
        3 => toggle(object, Stance(7)),
        4 => toggle(object, Vigour(7)),
        _ => toggle(object, Score(7)),
    }
}

fn toggle<C: Component>(object: &mut EntityWorldMut, component: C) {
    if object.contains::<C>() {
        object.remove::<C>();
    } else {
        object.insert(component);
    }
}

proptest! {
    #![proptest_config(draws!(48))]
    #[test]
    fn mirrors_converge_after_any_changes(
        cap in 1..6u16,
        workers in 1..4usize,
        bad in prop_oneof![Just(0u64), Just(40)],
        enters in 1..5u32,
        bytes in prop_oneof![Just(8000u32), Just(400)],
        same_affiliation: bool,
        steps in steps(),
    ) {
        let mut rig = Rig::new(cap);
        rig.mirrors.0.lock().unwrap().bad = bad;
        rig.app.insert_resource(SyncSettings {
            enters_per_tick_max: enters,
            bytes_per_client_s: bytes,
            ..SyncSettings::default()
        });
        rig.app.insert_resource(Workers::new(workers));
        let mut loose: Vec<(ClientId, Entity)> = Vec::new();
        let steps = steps.into_iter().filter(|step| !(same_affiliation && step.changes_affiliation()));
        for step in steps {
            step.apply(&mut rig, cap, &mut loose);
        }
        for &entity in &rig.players {
            if let Some(mut velocity) = rig.app.world_mut().get_mut::<Velocity>(entity) {
                velocity.0 = Vec2::ZERO;
            }
        }
        if same_affiliation {
            rig.rest_and_compare_exactly();
        } else {
            rig.rest_and_compare();
        }
    }
}
