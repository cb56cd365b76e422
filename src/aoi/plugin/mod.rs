//! Interest management in the tick: objects and positions in, [`Entered`] and [`Left`] out.

use std::cmp::Reverse;

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use glam::Vec2;
use serde::{Deserialize, Serialize};
use tracing::error;

use crate::aoi::grid::GridError;
use crate::aoi::priority::ViewTraits;
use crate::aoi::views::{
    LeaveReason, Profile, RERANK_TICKS, Removal, SceneViews, Sight, ViewCaps, ViewCounters,
    ViewEvent,
};
use crate::sim::{self, HashAppExt, SimSystems, StateHasher, Workers};
use crate::world::{
    Despawned, Generation, GuildId, KindClass, Object, ObjectHashAppExt, ObjectId, ObjectKinds,
    ObjectRef, PartyId, Position, Scene, SceneChanged, SceneId, SceneObjects, SceneOpened, Scenes,
    Spawned, StandingChanged, StateHashed, TeamId, Teleported, WorldPlugin,
};

/// Keeps everybody's view list right. Adds [`WorldPlugin`] when it is missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct AoiPlugin;

impl Plugin for AoiPlugin {
    /// Plugins that need this one add it, so it may come more than once.
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        if app.is_plugin_added::<Self>() {
            return;
        }
        sim::install(app);
        app.add_plugins(WorldPlugin);
        app.init_resource::<AoiSettings>()
            .init_resource::<AoiStats>()
            .add_message::<PriorityChanged>()
            .add_message::<Entered>()
            .add_message::<Left>()
            .add_systems(
                FixedUpdate,
                (
                    (open_grids, follow_objects, locate)
                        .chain()
                        .in_set(SimSystems::Locate),
                    update_views.in_set(SimSystems::View),
                ),
            )
            .hash_component::<Ties>("ties")
            .hash_part("views", |world, hasher| {
                let scenes: Vec<Entity> = world
                    .resource::<Scenes>()
                    .iter()
                    .map(|(_, entity)| entity)
                    .collect();
                for interest in scenes
                    .into_iter()
                    .filter_map(|scene| world.get::<SceneInterest>(scene))
                {
                    interest.views.digest(&mut |word| hasher.write_u64(word));
                }
            });
    }
}

/// What holds for scenes and viewers that say nothing else.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AoiSettings {
    /// Side of a grid cell, in metres. Nine cells should be one to two client screens: 50 m suits 150 m × 100 m. See
    /// [`cell_m_for_screen`](super::grid::cell_m_for_screen).
    pub cell_m: f32,
    /// How far beyond its cell an object may go before the cell changes, in metres; at most a quarter of the cell.
    pub margin_m: f32,
    /// Sweeps a tick and scene for viewers that wait in the queue: a place fell free, or somebody was refused who might be
    /// let in now. The rest waits for the next tick.
    ///
    /// It bounds nothing else: see `sweeps_per_tick_max` for those who move, and `rerank_ticks`. Leaving is never put off.
    pub looks_per_tick_max: u32,
    /// How many of the viewers that came or changed their cell look around in the same tick, in each scene, the lower ids
    /// first. When there are more, as after a mass teleport or login, the rest waits in the queue and sees nobody new until
    /// its look.
    pub sweeps_per_tick_max: u32,
    /// Each viewer with a full list looks at distances anew every so many ticks; 0 for never. Costs as many looks a
    /// tick as there are such viewers, divided by this.
    pub rerank_ticks: u32,
    /// Whether a link needs the other end's consent. Read when a scene opens.
    pub sight: Sight,
}

impl Default for AoiSettings {
    fn default() -> Self {
        Self {
            cell_m: 50.0,
            margin_m: 5.0,
            looks_per_tick_max: 1024,
            sweeps_per_tick_max: 4096,
            rerank_ticks: RERANK_TICKS,
            sight: Sight::Directed,
        }
    }
}

/// Totals over all scenes, closed ones included.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AoiStats {
    /// What was counted.
    pub counters: ViewCounters,
    /// Links that there are now; a link is one direction.
    pub links: u64,
    /// Viewers that wait for a look.
    pub queued: u64,
}

/// A scene's own grid, in place of the one in [`AoiSettings`]. Read when the scene opens.
#[derive(Component, Clone, Copy, Debug, PartialEq)]
pub struct InterestSpec {
    /// Side of a grid cell, in metres.
    pub cell_m: f32,
    /// How far beyond its cell an object may go before the cell changes, in metres.
    pub margin_m: f32,
    /// Whether a link needs the other end's consent.
    pub sight: Sight,
}

/// Whom an object is tied to, beside its team, party and guild, as far as the ranking of views asks. Inserting, replacing
/// or removing it writes [`PriorityChanged`].
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[component(immutable, on_insert = ties_changed, on_discard = ties_changed)]
pub struct Ties {
    /// Who owns it, as a player owns a pet.
    pub owner: Option<ObjectRef>,
    /// Whom it has picked as its target, or attacks.
    pub target: Option<ObjectRef>,
    /// A word that only an embedder's own [`ViewPriority`](super::priority::ViewPriority) reads.
    pub tag: u32,
}

impl StateHashed for Ties {
    fn hash(&self, hasher: &mut StateHasher) {
        for tie in [self.owner, self.target] {
            hasher.write_u64(tie.map_or(0, |tie| 1 + u64::from(tie.id.0)));
            hasher.write_u64(tie.map_or(0, |tie| {
                u64::from(tie.scene.0) << 32 | u64::from(tie.generation.0)
            }));
        }
        hasher.write_u64(u64::from(self.tag));
    }
}

/// Something changed that the ranking of views reads; its lists are ranked anew in this tick's View. [`Ties`] write it;
/// so does whoever knows that a tie means something else now, as when the target of an object respawned.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityChanged {
    /// Whose.
    pub entity: Entity,
}

fn ties_changed(mut world: DeferredWorld, context: HookContext) {
    world.write_message(PriorityChanged {
        entity: context.entity,
    });
}

/// An object that keeps a view list, with its caps.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewer {
    /// How many of each class it sees at most.
    pub caps: ViewCaps,
    /// A target is seen when its [`Viewable::layers`] and these share a bit.
    pub sees: u32,
}

impl Viewer {
    /// A viewer with these caps that sees all layers.
    #[must_use]
    pub const fn new(caps: ViewCaps) -> Self {
        Self {
            caps,
            sees: u32::MAX,
        }
    }
}

/// An object that can be in view lists. How far it is seen is its kind's.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewable {
    /// The layers it is in: phases, stealth, what only game masters see.
    pub layers: u32,
    /// Nobody sees it.
    pub hidden: bool,
}

impl Default for Viewable {
    fn default() -> Self {
        Self {
            layers: 1,
            hidden: false,
        }
    }
}

/// Who sees whom in a scene; on the scene's entity from the scene's first Locate on.
#[derive(Component, Debug)]
pub struct SceneInterest {
    views: SceneViews,
    /// The generation of each id's bearer, kept until the next one comes.
    generations: Vec<Generation>,
    counted: ViewCounters,
    /// What the last update changed.
    events: Vec<ViewEvent>,
}

impl SceneInterest {
    /// Grid, lists and links.
    #[must_use]
    pub const fn views(&self) -> &SceneViews {
        &self.views
    }

    /// What the last tick changed, in order, for those who keep something in arrays beside the lists; see
    /// [`ViewEvent`]. Told as [`Entered`] and [`Left`] as well.
    #[must_use]
    pub fn events(&self) -> &[ViewEvent] {
        &self.events
    }

    /// The generation of the object that has, or had last, this id.
    #[must_use]
    pub fn generation(&self, id: ObjectId) -> Generation {
        self.generations
            .get(id.0 as usize)
            .copied()
            .unwrap_or_default()
    }
}

/// A viewer sees a target from this tick on.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// In which scene.
    pub scene: SceneId,
    /// Who sees.
    pub viewer: ObjectId,
    /// Who is seen.
    pub target: ObjectId,
    /// The class of the pair; a higher one wins.
    pub priority: u8,
}

/// A viewer sees a target no more. Every `Left` follows exactly one [`Entered`] of the same pair; when a scene closes, its
/// links end without.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// In which scene.
    pub scene: SceneId,
    /// Who saw.
    pub viewer: ObjectId,
    /// Who was seen.
    pub target: ObjectId,
    /// Which bearer of that id.
    pub target_generation: Generation,
    /// Why.
    pub reason: LeaveReason,
}

/// Gives each new scene its grid.
fn open_grids(
    mut opened: MessageReader<SceneOpened>,
    settings: Res<AoiSettings>,
    scenes: Query<(&Scene, &SceneObjects, Option<&InterestSpec>)>,
    mut commands: Commands,
) {
    for scene_entity in opened.read().map(|message| message.entity) {
        let Ok((scene, objects, spec)) = scenes.get(scene_entity) else {
            continue;
        };
        let spec = spec.copied().unwrap_or(InterestSpec {
            cell_m: settings.cell_m,
            margin_m: settings.margin_m,
            sight: settings.sight,
        });
        match interest(scene.size_m(), spec, objects.max_objects()) {
            Ok(interest) => {
                commands.entity(scene_entity).insert(interest);
            }
            // The scene plays on without views; what is wrong with its numbers is the embedder's to mend.
            Err(reason) => {
                error!(scene = scene.id().0, name = scene.name(), %reason, "scene without views")
            }
        }
    }
}

fn interest(
    size_m: Vec2,
    spec: InterestSpec,
    max_objects: u32,
) -> Result<SceneInterest, GridError> {
    // Ids begin at 1, so the largest is `max_objects` itself.
    let views = SceneViews::with_size(
        (size_m.x, size_m.y),
        spec.cell_m,
        spec.margin_m,
        max_objects + 1,
    )?
    .with_sight(spec.sight);
    Ok(SceneInterest {
        views,
        generations: Vec::new(),
        counted: ViewCounters::default(),
        events: Vec::new(),
    })
}

type Profiled = (
    &'static Object,
    &'static Position,
    Option<&'static Viewer>,
    Option<&'static Viewable>,
    Option<&'static TeamId>,
    Option<&'static PartyId>,
    Option<&'static GuildId>,
    Option<&'static Ties>,
);

/// Objects that came, went, were put elsewhere, or count differently than before.
fn follow_objects(
    mut gone: MessageReader<Despawned>,
    mut moved_on: MessageReader<SceneChanged>,
    mut came: MessageReader<Spawned>,
    mut put: MessageReader<Teleported>,
    mut traits: MessageReader<StandingChanged>,
    mut priority: MessageReader<PriorityChanged>,
    mut stopped_viewing: RemovedComponents<Viewer>,
    mut stopped_showing: RemovedComponents<Viewable>,
    altered: Query<Entity, Or<(Changed<Viewer>, Changed<Viewable>)>>,
    objects: Query<Profiled>,
    kinds: Res<ObjectKinds>,
    mut scenes: Query<&mut SceneInterest>,
) {
    let mut moved_on: Vec<ObjectRef> = moved_on
        .read()
        .map(|change| change.from.reference())
        .collect();
    moved_on.sort_unstable();
    for Despawned { object, .. } in gone.read() {
        let Ok(mut interest) = scenes.get_mut(object.scene_entity()) else {
            continue;
        };
        let removal = if moved_on.binary_search(&object.reference()).is_ok() {
            Removal::Scene
        } else {
            Removal::Despawn
        };
        interest.views.remove(object.id().0, removal);
    }
    for spawned in came.read() {
        let Ok(profiled) = objects.get(spawned.entity) else {
            continue;
        };
        let object = profiled.0;
        // A later message of this tick may have taken it elsewhere already.
        if object.reference() != spawned.object.reference() {
            continue;
        }
        let Ok(mut interest) = scenes.get_mut(object.scene_entity()) else {
            continue;
        };
        let id = object.id().0;
        let Some(kind) = kinds.get(object.kind()) else {
            continue;
        };
        let profile = Profile {
            class: kind.class,
            visibility: kind.visibility,
            traits: traits_of(&profiled, &kinds, &interest),
            // Without `Viewable` it is in no layer, which keeps it unseen until the component comes.
            viewable: true,
        };
        match interest.views.insert(
            id,
            profiled.1.0,
            profile,
            profiled.2.map(|viewer| viewer.caps),
        ) {
            Ok(()) => {
                if interest.generations.len() <= id as usize {
                    interest
                        .generations
                        .resize(id as usize + 1, Generation::default());
                }
                interest.generations[id as usize] = object.generation();
            }
            Err(reason) => error!(id, %reason, "object without views"),
        }
    }
    for teleported in put.read() {
        let Ok(profiled) = objects.get(teleported.entity) else {
            continue;
        };
        if let Ok(mut interest) = scenes.get_mut(profiled.0.scene_entity()) {
            interest.views.teleport(profiled.0.id().0, profiled.1.0);
        }
    }
    let changed = traits.read().map(|message| message.entity);
    for entity in changed
        .chain(priority.read().map(|message| message.entity))
        .chain(&altered)
        .chain(stopped_viewing.read())
        .chain(stopped_showing.read())
    {
        let Ok(profiled) = objects.get(entity) else {
            continue;
        };
        let Ok(mut interest) = scenes.get_mut(profiled.0.scene_entity()) else {
            continue;
        };
        let id = profiled.0.id().0;
        let traits = traits_of(&profiled, &kinds, &interest);
        interest.views.set_traits(id, traits);
        let caps = profiled.2.map(|viewer| viewer.caps);
        if interest.views.caps(id) != caps {
            interest.views.set_caps(id, caps);
        }
    }
}

fn traits_of(
    profiled: &<Profiled as bevy_ecs::query::QueryData>::Item<'_, '_>,
    kinds: &ObjectKinds,
    interest: &SceneInterest,
) -> ViewTraits {
    let &(object, _, viewer, viewable, team, party, guild, ties) = profiled;
    // A tie to somebody who is gone, or in another scene, ranks nobody. Ids begin at 1, so 0 says "none".
    let id_of = |tie: Option<ObjectRef>| {
        tie.filter(|tie| {
            tie.scene == object.scene() && interest.generation(tie.id) == tie.generation
        })
        .map_or(0, |tie| tie.id.0)
    };
    let kind = kinds.get(object.kind());
    ViewTraits {
        id: object.id().0,
        owner: ties.map_or(0, |ties| id_of(ties.owner)),
        target: ties.map_or(0, |ties| id_of(ties.target)),
        tag: ties.map_or(0, |ties| ties.tag),
        scenery: kind.is_some_and(|kind| kind.class == KindClass::Thing),
        // 0 says "none" there, so teams and guilds move up by one.
        team: team.map_or(0, |team| team.0.wrapping_add(1)),
        party: party.map_or(0, |party| party.0),
        guild: guild.map_or(0, |guild| guild.0.wrapping_add(1)),
        layers: viewable.map_or(0, |viewable| viewable.layers),
        sees: viewer.map_or(0, |viewer| viewer.sees),
        hidden: viewable.is_some_and(|viewable| viewable.hidden),
    }
}

/// Positions that changed become cells.
fn locate(
    moved: Query<(&Object, &Position), Changed<Position>>,
    mut scenes: Query<&mut SceneInterest>,
    mut by_scene: Local<Vec<(Entity, u32, Vec2)>>,
) {
    by_scene.clear();
    by_scene.extend(
        moved
            .iter()
            .map(|(object, position)| (object.scene_entity(), object.id().0, position.0)),
    );
    for run in by_scene.chunk_by(|a, b| a.0 == b.0) {
        let Ok(mut interest) = scenes.get_mut(run[0].0) else {
            continue;
        };
        for &(_, id, position) in run {
            interest.views.locate(id, position);
        }
    }
}

/// View lists follow the cells: scenes side by side, messages scene by scene.
fn update_views(
    settings: Res<AoiSettings>,
    workers: Res<Workers>,
    mut scenes: Query<(&Scene, &mut SceneInterest)>,
    mut stats: ResMut<AoiStats>,
    mut entered: MessageWriter<Entered>,
    mut left: MessageWriter<Left>,
) {
    let mut by_id: Vec<_> = scenes
        .iter_mut()
        .map(|(scene, interest)| (scene.id(), interest))
        .collect();
    by_id.sort_unstable_by_key(|&(scene, _)| scene);
    let mut by_size: Vec<_> = by_id
        .iter_mut()
        .map(|(_, interest)| &mut **interest)
        .collect();
    by_size.sort_unstable_by_key(|interest| Reverse(interest.views.link_count()));
    workers.for_each_in_turn(&mut by_size, |SceneInterest { views, events, .. }| {
        events.clear();
        views.set_rerank_ticks(settings.rerank_ticks);
        views.set_sweeps_max(settings.sweeps_per_tick_max);
        views.update_with(*workers, settings.looks_per_tick_max, events);
    });
    (stats.links, stats.queued) = (0, 0);
    for (scene, mut interest) in by_id {
        let SceneInterest {
            views,
            generations,
            counted,
            events,
        } = &mut *interest;
        for &event in &*events {
            match event {
                ViewEvent::Enter {
                    viewer,
                    target,
                    priority,
                    ..
                } => {
                    entered.write(Entered {
                        scene,
                        viewer: ObjectId(viewer),
                        target: ObjectId(target),
                        priority,
                    });
                }
                ViewEvent::Leave {
                    viewer,
                    target,
                    reason,
                    ..
                } => {
                    let target_generation = generations
                        .get(target as usize)
                        .copied()
                        .unwrap_or_default();
                    left.write(Left {
                        scene,
                        viewer: ObjectId(viewer),
                        target: ObjectId(target),
                        target_generation,
                        reason,
                    });
                }
            }
        }
        let counters = views.counters();
        add_since(&mut stats.counters, counters, *counted);
        *counted = counters;
        stats.links += views.link_count() as u64;
        stats.queued += views.queue_len() as u64;
    }
}

/// Adds what a scene counted since the last tick.
fn add_since(total: &mut ViewCounters, now: ViewCounters, before: ViewCounters) {
    total.enters += now.enters - before.enters;
    total.leaves += now.leaves - before.leaves;
    total.evictions += now.evictions - before.evictions;
    total.refills += now.refills - before.refills;
    total.refused += now.refused - before.refused;
    total.looks += now.looks - before.looks;
    total.max_list = total.max_list.max(now.max_list);
}

#[cfg(test)]
mod tests;
