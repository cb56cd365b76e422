//! Objects that clients keep out of view, compared with a plain model in every tick.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::aoi::{
    SceneInterest, ViewException, ViewExceptions, ViewRules, ViewTag, clear_view_exception,
    hide_from, show_to,
};
use crate::session::controlling_client;
use crate::sync::kept_objects::KeptObjects;
use crate::world::{Generation, ObjectId, SceneIds};

/// A viewer sees a target whose tag is not above its own.
const BY_TAG: ViewRules = ViewRules {
    allows: Some(|viewer, target| viewer.tag[0] >= target.tag[0]),
    ..ViewRules::NONE
};

/// Id and generation.
type Ids = (u32, u32);

/// What the client of a player has to keep.
#[derive(Default)]
struct ModelClient {
    /// The scene and the object that it controls; a start of another scene begins anew.
    scene: Option<(u32, Ids, usize)>,
    /// The objects that it had after the last tick.
    held: BTreeSet<Ids>,
    /// Those of them that were out of view, the first that left it first.
    kept: Vec<Ids>,
}

/// A server with players and things.
struct KeptRig {
    rig: Rig,
    things: Vec<Entity>,
    model: BTreeMap<ClientId, ModelClient>,
}

impl KeptRig {
    fn new(cap: u16, things: u32) -> Self {
        let mut town = Self {
            rig: Rig::new(cap),
            things: Vec::new(),
            model: BTreeMap::new(),
        };
        (0..things).for_each(|nth| town.build(nth as f32 * 70.0, nth % 4 > 0));
        town
    }

    fn world(&mut self) -> &mut World {
        self.rig.app.world_mut()
    }

    fn build(&mut self, x: f32, keep: bool) {
        let scene = self.rig.scenes[0];
        let viewable = Viewable {
            keep,
            ..Viewable::default()
        };
        let values = (viewable, Health(3), Mana(5), Stance(1), TeamId(1));
        let at = Vec2::new(x, 45.0);
        let thing = spawn_object(self.world(), scene, KindId::DOOR, at, values);
        self.things.push(thing.unwrap());
    }

    /// One of the players and things.
    fn pick(&self, nth: usize) -> Option<Entity> {
        let all = self.rig.players.len() + self.things.len();
        let all_of = self.rig.players.iter().chain(&self.things);
        all_of.copied().nth(nth % all.max(1))
    }

    fn player(&self, nth: usize) -> Option<Entity> {
        let players = &self.rig.players;
        players.get(nth % players.len().max(1)).copied()
    }

    fn component<C: Component<Mutability = bevy_ecs::component::Mutable>>(
        &mut self,
        entity: Option<Entity>,
        change: impl FnOnce(&mut C),
    ) {
        if let Some(mut component) = entity.and_then(|of| self.world().get_mut::<C>(of)) {
            change(&mut component);
        }
    }

    fn tick(&mut self) {
        self.rig.app.update();
        for player in self.rig.players.clone() {
            if self.rig.app.world().get::<ControlledBy>(player).is_some() {
                self.check(player);
            }
        }
    }

    /// Updates the model of a player's client from the world, and compares its mirror with it.
    fn check(&mut self, player: Entity) {
        let client = self.rig.client_of(player);
        let world = self.rig.app.world();
        let end = self.rig.mirrors.0.lock().unwrap();
        let Some((mirror, _)) = end.mirrors.get(&client) else {
            return;
        };
        let model = self.model.entry(client).or_default();
        let own = world.get::<Object>(player).unwrap();
        let scene = mirror.scene().zip(mirror.controlled_object());
        let scene = scene.map(|(scene, own)| (scene, own, end.epochs[&client].len()));
        if scene != model.scene {
            *model = ModelClient {
                scene,
                ..ModelClient::default()
            };
        }
        let interest = world.get::<SceneInterest>(own.scene_entity()).unwrap();
        let ids = |id: u32| (id, interest.generation(ObjectId(id)).0);
        let seen = interest.views().seen_by(own.id().0);
        let mut view: BTreeSet<Ids> = seen.map(|(id, _)| ids(id)).collect();
        view.insert((own.id().0, own.generation().0));
        let held = mirror.ids().into_iter();
        let held: BTreeSet<Ids> = held
            .map(|id| (id, mirror.object(id).unwrap().generation))
            .collect();
        let mut kept: Vec<Ids> = model.kept.clone();
        kept.extend(model.held.iter().filter(|of| !model.kept.contains(of)));
        kept.retain(|of| !view.contains(of) && may_keep(world, player, *of));
        let max = world.resource::<SyncSettings>().kept_objects_max as usize;
        kept.drain(..kept.len().saturating_sub(max));
        let out_of_view: BTreeSet<Ids> = held.difference(&view).copied().collect();
        assert_eq!(
            out_of_view,
            kept.iter().copied().collect(),
            "{client:?} out of view"
        );
        let stays: BTreeSet<Ids> = model.held.intersection(&view).copied().collect();
        assert!(stays.is_subset(&held), "{stays:?} of {held:?}");
        (model.held, model.kept) = (held, kept);
    }

    fn rest_and_compare(&mut self) {
        (0..14).for_each(|_| self.tick());
        self.rig.rest_and_compare();
        let stats = *self.rig.app.world().resource::<SyncStats>();
        let controlled = self.rig.players.iter().filter_map(|&player| {
            let client = controlling_client(self.rig.app.world(), player)?;
            self.model.get(&client)
        });
        let kept = controlled.map(|model| model.kept.len() as u64);
        assert_eq!(stats.kept, kept.sum::<u64>());
    }

    fn knows(&self, player: usize, thing: usize) -> bool {
        let (by, of) = (self.rig.players[player], self.things[thing]);
        self.rig.known(by, of, 1).is_some()
    }

    fn teleport(&mut self, entity: Entity, x: f32) {
        teleport(self.world(), entity, Vec2::new(x, 50.0)).unwrap();
    }
}

/// Whether the client of a player keeps an object out of view, from the components of both.
fn may_keep(world: &World, player: Entity, (id, generation): Ids) -> bool {
    let own = world.get::<Object>(player).unwrap();
    let objects = world.get::<SceneIds>(own.scene_entity()).unwrap();
    let target = objects.resolve(ObjectId(id), Generation(generation));
    let Some(target) = target.filter(|&target| target != player) else {
        return false;
    };
    let (Some(viewable), Some(viewer)) =
        (world.get::<Viewable>(target), world.get::<Viewer>(player))
    else {
        return false;
    };
    let exceptions = world.get::<ViewExceptions>(player);
    let tag = |entity| world.get::<ViewTag>(entity).map_or(0, |tag| tag.0[0]);
    let is_allowed = match exceptions.and_then(|of| of.get(target)) {
        Some(ViewException::Show) => true,
        Some(ViewException::Hide) => false,
        None => {
            let has_rules = world.get::<ViewRules>(own.scene_entity()).is_some();
            viewer.sees & viewable.layers != 0 && (!has_rules || tag(player) >= tag(target))
        }
    };
    viewable.keep && !viewable.hidden && is_allowed
}

#[derive(Clone, Debug)]
enum KeptStep {
    Tick,
    /// A player or thing jumps.
    Jump(usize, f32),
    /// A player walks on.
    Walk(usize, f32),
    Pace(usize, f32),
    Health(usize, u32),
    Stance(usize, u32),
    Team(usize, u32),
    Score(usize, u32),
    Keep(usize, bool),
    Hidden(usize, bool),
    Layers(usize, u32),
    Sees(usize, u32),
    Tag(usize, u32),
    Rules(bool),
    /// A player is shown an object, does not see it, or sees it as others do.
    Exception(usize, usize, u8),
    Viewer(usize, bool),
    Cap(usize, u16),
    KeptMax(u32),
    Build(f32, bool),
    Raze(usize),
    Scene(usize, usize),
    Control(usize),
    Announce(usize),
}

fn steps() -> impl Strategy<Value = Vec<KeptStep>> {
    let some = || 0..20_usize;
    let x = || 0.0..700.0_f32;
    let places = || prop::sample::select(vec![20.0_f32, 60.0, 240.0, 500.0, 690.0]);
    let frequent = prop_oneof![
        8 => Just(KeptStep::Tick),
        6 => (some(), places()).prop_map(|(of, to)| KeptStep::Jump(of, to)),
        3 => (some(), -60.0..60.0_f32).prop_map(|(of, by)| KeptStep::Walk(of, by)),
        1 => (some(), -3.0..3.0_f32).prop_map(|(of, pace)| KeptStep::Pace(of, pace)),
        3 => (some(), 0..3_u32).prop_map(|(of, value)| KeptStep::Health(of, value)),
        1 => (some(), 0..3_u32).prop_map(|(of, value)| KeptStep::Stance(of, value)),
        1 => (some(), 0..2_u32).prop_map(|(of, team)| KeptStep::Team(of, team)),
        1 => (some(), 0..3_u32).prop_map(|(of, value)| KeptStep::Score(of, value)),
        1 => some().prop_map(KeptStep::Announce),
    ];
    let rights = prop_oneof![
        2 => (some(), prop::bool::weighted(0.7)).prop_map(|(of, keep)| KeptStep::Keep(of, keep)),
        2 => (some(), prop::bool::weighted(0.3)).prop_map(|(of, hidden)| KeptStep::Hidden(of, hidden)),
        1 => (some(), 1..4_u32).prop_map(|(of, layers)| KeptStep::Layers(of, layers)),
        1 => (some(), 1..4_u32).prop_map(|(of, layers)| KeptStep::Sees(of, layers)),
        2 => (some(), 0..2_u32).prop_map(|(of, tag)| KeptStep::Tag(of, tag)),
        1 => prop::bool::ANY.prop_map(KeptStep::Rules),
        2 => (some(), some(), 0..3_u8).prop_map(|(by, of, what)| KeptStep::Exception(by, of, what)),
        1 => (some(), prop::bool::weighted(0.8)).prop_map(|(of, sees)| KeptStep::Viewer(of, sees)),
    ];
    let lists = prop_oneof![
        2 => (some(), 0..5_u16).prop_map(|(of, cap)| KeptStep::Cap(of, cap)),
        1 => (0..6_u32).prop_map(KeptStep::KeptMax),
        2 => (x(), prop::bool::ANY).prop_map(|(x, keep)| KeptStep::Build(x, keep)),
        3 => some().prop_map(KeptStep::Raze),
        1 => (some(), 0..2_usize).prop_map(|(of, to)| KeptStep::Scene(of, to)),
        1 => some().prop_map(KeptStep::Control),
    ];
    let step = prop_oneof![6 => frequent, 2 => rights, 2 => lists];
    prop::collection::vec(step, 0..120)
}

impl KeptStep {
    fn apply(self, town: &mut KeptRig, loose: &mut Vec<(ClientId, Entity)>) {
        match self {
            Self::Tick => town.tick(),
            Self::Jump(of, x) => {
                if let Some(entity) = town.pick(of) {
                    town.teleport(entity, x);
                }
            }
            Self::Walk(of, by) => town.component(town.player(of), |at: &mut Position| {
                at.0.x = (at.0.x + by).clamp(0.0, 700.0);
            }),
            Self::Pace(of, x) => town.component(town.pick(of), |v: &mut Velocity| v.0.x = x),
            Self::Health(of, value) => {
                town.component(town.pick(of), |health: &mut Health| health.0 = value);
            }
            Self::Stance(of, value) => {
                if let Some(entity) = town.pick(of) {
                    town.rig.set_stance(entity, value);
                }
            }
            Self::Team(of, team) => {
                if let Some(entity) = town.pick(of) {
                    town.world().entity_mut(entity).insert(TeamId(team));
                }
            }
            Self::Score(of, value) => {
                if let Some(entity) = town.pick(of) {
                    town.world().entity_mut(entity).insert(Score(value));
                }
            }
            Self::Announce(of) => {
                if let Some(entity) = town.pick(of) {
                    let of = reference(&town.rig, entity);
                    town.world().write_message(AnnouncementRequest {
                        about: Some(of),
                        scope: AnnouncementScope::Viewers(of),
                        channel: Channel::Reliable,
                        ttl_ticks: 20,
                        bytes: vec![1],
                    });
                }
            }
            step => step.apply_to_rights(town, loose),
        }
    }

    /// The same for what may be seen and kept.
    fn apply_to_rights(self, town: &mut KeptRig, loose: &mut Vec<(ClientId, Entity)>) {
        match self {
            Self::Keep(of, keep) => {
                town.component(town.pick(of), |it: &mut Viewable| it.keep = keep);
            }
            Self::Hidden(of, hidden) => {
                town.component(town.pick(of), |it: &mut Viewable| it.hidden = hidden);
            }
            Self::Layers(of, layers) => {
                town.component(town.pick(of), |it: &mut Viewable| it.layers = layers);
            }
            Self::Sees(of, layers) => {
                town.component(town.player(of), |it: &mut Viewer| it.sees = layers);
            }
            Self::Tag(of, tag) => {
                if let Some(entity) = town.pick(of) {
                    town.world().entity_mut(entity).insert(ViewTag([tag, 0]));
                }
            }
            Self::Rules(has_any) => {
                let scene = town.rig.scenes[0];
                let mut scene = town.world().entity_mut(scene);
                if has_any {
                    scene.insert(BY_TAG);
                } else {
                    scene.remove::<ViewRules>();
                }
            }
            Self::Exception(by, of, what) => {
                let (Some(by), Some(of)) = (town.player(by), town.pick(of)) else {
                    return;
                };
                // An object has no exception for itself.
                let _ = match what {
                    0 => show_to(town.world(), of, by),
                    1 => hide_from(town.world(), of, by),
                    _ => clear_view_exception(town.world(), of, by),
                };
            }
            Self::Viewer(of, sees) => {
                if let Some(entity) = town.player(of) {
                    let mut player = town.world().entity_mut(entity);
                    if sees {
                        player.insert(Viewer::new(ViewCaps::all(4)));
                    } else {
                        player.remove::<Viewer>();
                    }
                }
            }
            step => step.apply_to_lists(town, loose),
        }
    }

    /// The same for limits, and for objects that come and go.
    fn apply_to_lists(self, town: &mut KeptRig, loose: &mut Vec<(ClientId, Entity)>) {
        match self {
            Self::Cap(of, cap) => town.component(town.player(of), |it: &mut Viewer| {
                it.caps = ViewCaps::all(cap);
            }),
            Self::KeptMax(max) => {
                let mut settings = town.world().resource_mut::<SyncSettings>();
                settings.kept_objects_max = max;
            }
            Self::Build(x, keep) => town.build(x, keep),
            Self::Raze(of) => {
                if let Some(nth) = of.checked_rem(town.things.len()) {
                    let thing = town.things.swap_remove(nth);
                    town.world().despawn(thing);
                }
            }
            Self::Scene(of, to) => {
                if let Some(entity) = town.pick(of) {
                    let to = town.rig.scenes[to];
                    change_scene(town.world(), entity, to, Vec2::splat(50.0)).unwrap();
                }
            }
            Self::Control(of) => {
                if let Some((client, entity)) = loose.pop() {
                    control(town.world(), client, entity);
                } else if let Some(entity) = town.player(of) {
                    loose.push((town.rig.client_of(entity), entity));
                    let mut player = town.world().entity_mut(entity);
                    player.remove::<ControlledBy>();
                }
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(draws!(48))]
    #[test]
    fn clients_keep_what_a_plain_model_keeps(
        cap in 1..6_u16,
        kept_objects_max in prop_oneof![Just(256_u32), 0..5_u32],
        workers in 1..4_usize,
        bad in prop_oneof![Just(0_u64), Just(40)],
        enters in 1..5_u32,
        bytes in prop_oneof![Just(8000_u32), Just(400)],
        steps in steps(),
    ) {
        let mut town = KeptRig::new(cap, 10);
        town.rig.mirrors.0.lock().unwrap().bad = bad;
        town.world().insert_resource(SyncSettings {
            enters_per_tick_max: enters,
            bytes_per_client_s: bytes,
            kept_objects_max,
            ..SyncSettings::default()
        });
        town.world().insert_resource(Workers::new(workers));
        let mut loose: Vec<(ClientId, Entity)> = Vec::new();
        for step in steps {
            step.apply(&mut town, &mut loose);
        }
        for entity in (0..20).filter_map(|nth| town.pick(nth)).collect::<Vec<_>>() {
            town.component(Some(entity), |velocity: &mut Velocity| velocity.0 = Vec2::ZERO);
        }
        town.rest_and_compare();
    }
}

/// A town whose first player stands at the first two things, and things far away; all of them are kept.
fn small_town() -> KeptRig {
    let mut town = KeptRig::new(20, 0);
    [20.0, 30.0, 500.0, 510.0]
        .into_iter()
        .for_each(|x| town.build(x, true));
    town.rest_and_compare();
    assert_eq!(
        [0, 1, 2, 3].map(|thing| town.knows(0, thing)),
        [true, true, false, false]
    );
    town
}

#[test]
fn kept_object_stays_out_of_range_with_current_values() {
    let mut town = small_town();
    let (player, thing) = (town.rig.players[0], town.things[0]);
    town.teleport(player, 500.0);
    town.rest_and_compare();
    assert_eq!([0, 1, 2, 3].map(|thing| town.knows(0, thing)), [true; 4]);
    town.rig.set_stance(thing, 7);
    let before = town.rig.sent();
    town.tick();
    assert_eq!(
        town.rig.known(player, thing, 4),
        Some(vec![7]),
        "in its tick"
    );
    town.teleport(player, 20.0);
    town.rest_and_compare();
    let sent = town.rig.sent();
    let snapshots = sent.snapshots.messages - before.snapshots.messages;
    assert_eq!(
        snapshots, 10,
        "it and the five other players see each other again"
    );
    assert_eq!(sent.despawns, before.despawns);
    town.world().despawn(thing);
    town.things.swap_remove(0);
    town.rest_and_compare();
}

#[test]
fn kept_object_stays_when_it_loses_its_place() {
    let mut town = small_town();
    let player = town.rig.players[0];
    town.component(Some(player), |viewer: &mut Viewer| {
        viewer.caps = ViewCaps::all(1)
    });
    town.rest_and_compare();
    assert!(town.knows(0, 0) && town.knows(0, 1));
}

#[test]
fn kept_object_is_despawned_when_destroyed_or_hidden() {
    let mut town = small_town();
    let player = town.rig.players[0];
    town.teleport(player, 500.0);
    town.rest_and_compare();
    town.component(Some(town.things[0]), |viewable: &mut Viewable| {
        viewable.hidden = true
    });
    let gone = reference(&town.rig, town.things[1]).id.0;
    let thing = town.things.pop().unwrap();
    assert!(town.knows(0, 1));
    let razed = town.things[1];
    town.world().despawn(razed);
    town.things[1] = thing;
    town.tick();
    assert!(!town.knows(0, 0), "hidden");
    let end = town.rig.mirrors.0.lock().unwrap();
    let mirror = &end.mirrors[&town.rig.client_of(player)].0;
    assert!(mirror.object(gone).is_none(), "destroyed");
    drop(end);
    town.rest_and_compare();
}

#[test]
fn object_without_the_mark_is_despawned_as_before() {
    let mut town = small_town();
    let player = town.rig.players[0];
    town.component(Some(town.things[1]), |viewable: &mut Viewable| {
        viewable.keep = false
    });
    town.teleport(player, 500.0);
    town.rest_and_compare();
    assert!(town.knows(0, 0) && !town.knows(0, 1));
    town.component(Some(town.things[0]), |viewable: &mut Viewable| {
        viewable.keep = false
    });
    town.tick();
    assert!(!town.knows(0, 0), "it loses its mark out of view");
}

#[test]
fn oldest_kept_object_is_evicted_at_the_limit() {
    let mut town = small_town();
    let player = town.rig.players[0];
    town.world().resource_mut::<SyncSettings>().kept_objects_max = 3;
    town.teleport(player, 500.0);
    town.rest_and_compare();
    town.teleport(player, 900.0);
    town.rest_and_compare();
    // The other players are no things to keep; of the things the first two left first, in the order of their ids.
    assert_eq!(
        [0, 1, 2, 3].map(|thing| town.knows(0, thing)),
        [false, true, true, true]
    );
    assert_eq!(town.rig.sent().kept_evicted, 1);
}

#[test]
fn kept_object_despawned_within_a_tick_is_removed() {
    let within = [
        (SyncSystems::Mark, SyncSystems::UpdateClients),
        (SyncSystems::UpdateClients, SyncSystems::Collect),
        (SyncSystems::Encode, SyncSystems::Assemble),
    ];
    for (after, before) in within {
        let mut town = small_town();
        let systems = despawn_doomed.after(after).before(before);
        town.rig.app.add_systems(FixedUpdate, systems);
        let player = town.rig.players[0];
        for x in [500.0, 20.0, 500.0] {
            // It leaves the view, or comes back, in the tick in which it is destroyed.
            town.teleport(player, x);
            let thing = town.things.remove(0);
            town.world().entity_mut(thing).insert(Doomed);
            town.rig.app.update();
            town.build(20.0, true);
            town.rig.app.update();
            town.build(500.0, true);
        }
        town.model.clear();
        town.rig.rest_and_compare();
    }
}

#[test]
fn announcements_about_kept_objects_are_for_viewers() {
    let mut town = small_town();
    let player = town.rig.players[0];
    town.teleport(player, 500.0);
    town.rest_and_compare();
    let heard = |town: &KeptRig, player: Entity| {
        let end = town.rig.mirrors.0.lock().unwrap();
        end.mirrors[&town.rig.client_of(player)].0.announcements()
    };
    KeptStep::Announce(town.rig.players.len()).apply(&mut town, &mut Vec::new());
    town.tick();
    assert_eq!(
        (heard(&town, player), heard(&town, town.rig.players[1])),
        (0, 1)
    );
}

#[test]
fn state_without_kept_objects_hashes_as_before() {
    let mut words = Vec::new();
    KeptObjects::default().hash_state(&mut |word| words.push(word));
    assert!(words.is_empty(), "{words:?}");
    use crate::sim::StateHasher;
    let hash = |viewable: Viewable| {
        let mut hasher = StateHasher::default();
        crate::world::StateHashed::hash(&viewable, &mut hasher);
        hasher.finish_u64()
    };
    let mut plain = StateHasher::default();
    plain.write_u64(1 << 1);
    assert_eq!(hash(Viewable::default()), plain.finish_u64());
    let kept = Viewable {
        keep: true,
        ..Viewable::default()
    };
    assert_ne!(hash(kept), hash(Viewable::default()));
}
