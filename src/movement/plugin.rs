//! Movement in the tick.

mod follow;

pub use follow::Follows;

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemState;
use bevy_time::{Fixed, Time};
use glam::Vec2;
use serde::{Deserialize, Serialize};
use tracing::debug;

use self::follow::{follow, has_followers, hash_followers};
use super::{Credit, Ground, MoveRules, PlayerStep, Refusal, WalkEnd, advance, step_m};
use crate::map::{MapEdited, SceneMap, TileRect};
use crate::memory::MemoryAppExt;
use crate::nav::{NavPlugin, NavSystems, Navigator, Path, PathRequest, ask_again};
use crate::sim::{self, HashAppExt, SimSystems, SimTick, StateHasher, Workers};
use crate::wire::{tick_millihertz, told_tick_s};
use crate::world::{
    Heading, MoveInput, Npc, Object, ObjectHashAppExt, Player, PlayerMotion, Position, Scene,
    StateHashed, Velocity, teleport,
};

/// Moves walkers and players. Adds [`NavPlugin`] when it is missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct MovementPlugin;

impl Plugin for MovementPlugin {
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        if !sim::begin::<Self, _>(app, NavPlugin) {
            return;
        }
        use MovementSystems::{Follow, Players, Push, Rest, Walkers};
        #[cfg(feature = "reflect")]
        app.register_type::<Speed>()
            .register_type::<Walker>()
            .register_type::<MovementSettings>()
            .register_type::<MovementStats>();
        app.register_required_components_with::<Player, Speed>(|| Speed::WALK);
        app.register_required_components_with::<Npc, Speed>(|| Speed::WALK);
        app.register_required_components::<Npc, Walker>();
        app.init_resource::<MovementSettings>()
            .init_resource::<MovementStats>()
            .add_message::<Arrived>()
            .add_message::<MoveRefused>()
            .count_message_memory::<Arrived>("movement")
            .count_message_memory::<MoveRefused>("movement")
            .configure_sets(
                FixedUpdate,
                (Push, Players, Walkers, Rest, Follow)
                    .chain()
                    .after(NavSystems::ClearStale)
                    .in_set(SimSystems::Move),
            )
            .add_systems(
                FixedUpdate,
                (
                    push_out.in_set(Push),
                    move_players.in_set(Players),
                    walk.in_set(Walkers),
                    rest_players.in_set(Rest),
                    follow.in_set(Follow).run_if(has_followers),
                ),
            )
            .hash_component::<Speed>("speed")
            .hash_component::<Walker>("walker")
            .hash_component::<LastMove>("last_move")
            .hash_part("followers", hash_followers);
    }

    fn finish(&self, app: &mut App) {
        sim::finish(app);
    }
}

/// What happens within [`SimSystems::Move`], in this order.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MovementSystems {
    /// Whoever stands on a blocked tile is put on a free one.
    Push,
    /// Players' moves are checked and applied.
    Players,
    /// Walkers follow their paths.
    Walkers,
    /// Players that sent nothing for a while stand still.
    Rest,
    /// Who [`Follows`] another goes to where that is.
    Follow,
}

/// How strictly players' moves are checked, and how much work walkers may make. A `Resource`; all may change while the
/// server runs and holds from the next tick on.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct MovementSettings {
    /// By what share a player may be faster than its speed: clocks differ.
    pub tolerance: f32,
    /// For how long a player can save up time without moving, in seconds.
    pub burst_s_max: f32,
    /// What rounding of positions on the wire may add to a move, in metres: one quantum.
    pub slack_m: f32,
    /// Ticks without an accepted move after which a player stands still; 0 counts as 1.
    pub rest_after_ticks: u32,
    /// Lines of sight that a walker tries at a waypoint; 0 turns smoothing off.
    pub looks_max: u32,
    /// How far, in tiles, somebody on a blocked tile is put at most. Without a free tile within it stays where it is, and
    /// is counted.
    pub push_radius_tiles_max: u32,
}

impl Default for MovementSettings {
    fn default() -> Self {
        Self {
            tolerance: 0.1,
            burst_s_max: 1.0,
            slack_m: 1.0 / 64.0,
            rest_after_ticks: 4,
            looks_max: 8,
            push_radius_tiles_max: 256,
        }
    }
}

impl MovementSettings {
    /// The rules for players; what is negative or no number counts as 0.
    #[must_use]
    pub fn rules(&self) -> MoveRules {
        MoveRules {
            tolerance: self.tolerance.max(0.0),
            burst_s_max: self.burst_s_max.max(0.0),
            slack_m: self.slack_m.max(0.0),
        }
    }
}

/// What movement has done since the server began: counters that only grow.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct MovementStats {
    /// Steps of walkers, one a walker and tick.
    pub walked: u64,
    /// Walkers that came to the end of their path.
    pub arrived: u64,
    /// Steps that the map did not let through; a new path is asked for.
    pub blocked: u64,
    /// Objects that stood on a blocked tile and were put on a free one.
    pub pushed: u64,
    /// Objects that stood on a blocked tile, and there was no free one near enough.
    pub stranded: u64,
    /// Players' moves that were applied, mere turns not counted.
    pub moves_accepted: u64,
    /// Players' moves that were not allowed.
    pub moves_refused: u64,
}

/// How fast an object may walk, in metres a second. What has no speed is never moved, nor pushed out of a wall.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq)]
#[require(LastMove)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Speed(pub f32);

impl Speed {
    /// A person who walks: 1.5 m/s. What [`Player`] and [`Npc`] have where nothing else stands beside them.
    pub const WALK: Self = Self(1.5);

    /// The speed; 0 for what is negative or not finite.
    #[must_use]
    pub fn m_s(self) -> f32 {
        if self.0.is_finite() {
            self.0.max(0.0)
        } else {
            0.0
        }
    }
}

/// The server walks this object along its [`Path`]. An object with [`Speed`] and without this is moved by its player.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Walker;

/// When a player's object was last moved, and how far it could have gone on.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq)]
pub struct LastMove {
    tick: u64,
    credit: Credit,
}

impl LastMove {
    /// The tick of the last accepted move; 0 for none.
    #[must_use]
    pub const fn tick(&self) -> u64 {
        self.tick
    }
}

impl StateHashed for Speed {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_f32(self.0);
    }
}

impl StateHashed for Walker {
    fn hash(&self, _: &mut StateHasher) {}
}

impl StateHashed for LastMove {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.tick);
        hasher.write_f32(self.credit.0);
    }
}

/// A walker came to the end of its path.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The entity of the walker.
    pub entity: Entity,
}

/// A player's move was not allowed; its object is where it was, and looks where it was told to.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveRefused {
    /// The entity of the object that was to move.
    pub entity: Entity,
    /// Why it was refused.
    pub reason: Refusal,
}

type Maps<'w, 's> = Query<'w, 's, &'static SceneMap>;

/// Remembers the ground of one scene: objects of a scene mostly come one after the other.
struct Grounds<'a, 'w, 's> {
    maps: &'a Maps<'w, 's>,
    last: Option<(Entity, Option<Ground<'a>>)>,
}

impl<'a, 'w, 's> Grounds<'a, 'w, 's> {
    fn new(maps: &'a Maps<'w, 's>) -> Self {
        Self { maps, last: None }
    }

    fn of(&mut self, scene: Entity) -> Option<Ground<'a>> {
        match self.last {
            Some((last, ground)) if last == scene => ground,
            _ => {
                let map = self.maps.get(scene).ok();
                let ground = map.map(|map| Ground {
                    tiles: map.tiles(),
                    tile_m: map.tile_m(),
                });
                self.last = Some((scene, ground));
                ground
            }
        }
    }

    /// The ground of a scene for bodies that need so many tiles free around theirs.
    fn with_clearance(
        &mut self,
        navigator: &'a Navigator,
        scene: Entity,
        clearance: u8,
    ) -> Option<Ground<'a>> {
        if clearance == 0 {
            return self.of(scene);
        }
        let map = self.maps.get(scene).ok()?;
        Some(Ground {
            tiles: navigator.tiles(map, scene, clearance)?,
            tile_m: map.tile_m(),
        })
    }
}

type Placed = (Entity, &'static Object, &'static Position);

/// What [`push_out`] reads.
type PushQuery<'w, 's> = (
    MessageReader<'w, 's, MapEdited>,
    Query<'w, 's, Placed, With<Speed>>,
    Query<
        'w,
        's,
        Placed,
        (
            With<Speed>,
            Or<(Changed<Position>, Changed<Object>, Added<Speed>)>,
        ),
    >,
    Maps<'w, 's>,
    Res<'w, MovementSettings>,
);

/// What [`push_out`] keeps between ticks to save allocations.
#[derive(Default)]
struct PushBuffers {
    edits: Vec<(Entity, TileRect)>,
    /// Key, entity, and the middle of the tile to go to.
    pushed: Vec<(u64, Entity, Option<Vec2>)>,
}

/// Puts whoever stands on a blocked tile on the nearest free one, be it that the tile was blocked or that the object was
/// put there. A walker asks for a new way to where it was going.
fn push_out(
    world: &mut World,
    push_query: &mut SystemState<PushQuery>,
    mut buffers: Local<PushBuffers>,
) {
    let PushBuffers { edits, pushed } = &mut *buffers;
    let Ok((mut edited, all, moved, maps, settings)) = push_query.get_mut(world) else {
        return;
    };
    edits.clear();
    edits.extend(edited.read().map(|edit| (edit.scene_entity, edit.rect)));
    pushed.clear();
    let mut grounds = Grounds::new(&maps);
    let mut look = |(entity, object, position): (Entity, &Object, &Position),
                    edits: Option<&[(Entity, TileRect)]>| {
        let scene = object.scene_entity();
        let Some(ground) = grounds.of(scene) else {
            return;
        };
        let tile = ground.tile_at(position.0);
        let is_edited = |edits: &[(Entity, TileRect)]| {
            edits
                .iter()
                .any(|edit| edit.0 == scene && edit.1.contains(tile))
        };
        if !ground.tiles.is_free(tile) && edits.is_none_or(is_edited) {
            let free = ground
                .tiles
                .nearest_free(tile, settings.push_radius_tiles_max);
            pushed.push((
                object.key(),
                entity,
                free.map(|tile| ground.centre_of(tile)),
            ));
        }
    };
    moved.iter().for_each(|placed| look(placed, None));
    if !edits.is_empty() {
        all.iter().for_each(|placed| look(placed, Some(edits)));
    }
    pushed.sort_unstable_by_key(|&(key, ..)| key);
    pushed.dedup_by_key(|&mut (key, ..)| key);
    for &(_, entity, to) in &*pushed {
        let is_pushed = to.is_some_and(|to| teleport(world, entity, to).is_ok());
        let mut stats = world.resource_mut::<MovementStats>();
        *(if is_pushed {
            &mut stats.pushed
        } else {
            &mut stats.stranded
        }) += 1;
        if is_pushed {
            renew_path(world, entity);
        }
    }
}

/// Ends the path of an object that was pushed; a walker asks for the way from where it is now, unless it has already asked
/// for another.
fn renew_path(world: &mut World, entity: Entity) {
    let Some(mut path) = world.get_mut::<Path>(entity) else {
        return;
    };
    if path.is_empty() {
        return;
    }
    let request = path.request();
    path.clear();
    if world.get::<Walker>(entity).is_some() {
        ask_again(&mut world.entity_mut(entity), request);
    }
}

type Played = (
    &'static Object,
    (
        &'static mut Position,
        &'static mut Velocity,
        &'static mut Heading,
    ),
    Option<(&'static Speed, &'static mut LastMove)>,
);

type PlayedAt<'a> = (Mut<'a, Position>, Mut<'a, Velocity>, Mut<'a, Heading>);

/// Checks and applies what players sent, in the order of the messages.
fn move_players(
    mut inputs: MessageReader<MoveInput>,
    settings: Res<MovementSettings>,
    tick: Res<SimTick>,
    time: Res<Time<Fixed>>,
    mut stats: ResMut<MovementStats>,
    mut objects: Query<Played, Without<Walker>>,
    scenes: Query<&Scene>,
    maps: Maps,
    mut refused: MessageWriter<MoveRefused>,
) {
    let clock = MoveClock {
        tick: tick.0,
        tick_s: time.timestep().as_secs_f32(),
        rest_after: u64::from(settings.rest_after_ticks.max(1)),
        rules: settings.rules(),
    };
    let mut grounds = Grounds::new(&maps);
    for input in inputs.read() {
        let entity = input.entity;
        let is_turn = matches!(input.motion, PlayerMotion::Stand | PlayerMotion::Turn);
        let moved = match objects.get_mut(entity) {
            Ok((object, at, walks)) => {
                let scene = object.scene_entity();
                let size_m = scenes.get(scene).map_or(Vec2::ZERO, Scene::size_m);
                let on = PlayerStep {
                    ground: grounds.of(scene),
                    size_m,
                    step_m: 0.0,
                };
                move_player(on, (at, walks), input, &clock)
            }
            Err(_) if is_turn => continue,
            Err(_) => Err(Refusal::NotMovable),
        };
        match moved {
            Ok(()) => stats.moves_accepted += u64::from(!is_turn),
            Err(reason) => {
                debug!(?entity, %reason, "move refused");
                stats.moves_refused += 1;
                refused.write(MoveRefused { entity, reason });
            }
        }
    }
}

/// What all moves of a tick are measured by.
struct MoveClock {
    tick: u64,
    tick_s: f32,
    rest_after: u64,
    rules: MoveRules,
}

/// Turns an object, and moves it where it may go.
fn move_player(
    on: PlayerStep,
    ((position, mut velocity, mut heading), walks): (PlayedAt, Option<(&Speed, Mut<LastMove>)>),
    input: &MoveInput,
    clock: &MoveClock,
) -> Result<(), Refusal> {
    heading.set_if_neq(Heading(input.heading));
    match input.motion {
        PlayerMotion::Stand => {
            velocity.set_if_neq(Velocity::default());
            return Ok(());
        }
        PlayerMotion::Turn => return Ok(()),
        PlayerMotion::To(_) | PlayerMotion::Towards(_) => {}
    }
    let (speed, mut last) = walks.ok_or(Refusal::NotMovable)?;
    let (speed, rules) = (speed.m_s(), &clock.rules);
    let on = PlayerStep {
        // By the tick as clients know it, so that they come to the same place.
        step_m: step_m(speed, told_tick_s(tick_millihertz(clock.tick_s))),
        ..on
    };
    let since = clock.tick.saturating_sub(last.tick);
    let elapsed_s = since as f32 * clock.tick_s;
    let credit = last.credit.after(elapsed_s, speed, rules);
    let (to, way_m) = on.walk(position.0, input.motion, credit, rules)?;
    *last = LastMove {
        tick: clock.tick,
        credit: credit.spent(way_m),
    };
    let ticks = match input.motion {
        PlayerMotion::Towards(_) => 1,
        // Whoever rested began to move at some time since; whoever catches up is no faster than it may be.
        _ => since.clamp(1, clock.rest_after),
    };
    let pace = (to - position.0) / (ticks as f32 * clock.tick_s);
    let pace = pace.clamp_length_max(speed * (1.0 + rules.tolerance));
    put(position, velocity, to, pace);
    Ok(())
}

fn put(mut position: Mut<Position>, mut velocity: Mut<Velocity>, to: Vec2, pace: Vec2) {
    position.set_if_neq(Position(to));
    velocity.set_if_neq(Velocity(pace));
}

type WalkerRow = (
    Entity,
    &'static Object,
    &'static Speed,
    &'static mut Position,
    &'static mut Velocity,
    &'static mut Heading,
    &'static mut Path,
);

type WalkerItem<'a> = (
    Entity,
    &'a Object,
    &'a Speed,
    Mut<'a, Position>,
    Mut<'a, Velocity>,
    Mut<'a, Heading>,
    Mut<'a, Path>,
);

/// What a walker has to tell at the end of a step.
#[derive(Clone, Copy)]
enum Told {
    Arrived,
    Blocked(PathRequest),
}

/// What one chunk of the walkers did.
#[derive(Default)]
struct WalkedChunk {
    walked: u64,
    told: Vec<(u64, Entity, Told)>,
}

/// So few walkers are not worth another thread.
const WALKERS_MIN: usize = 256;

/// Walkers follow their paths: side by side, since none is in another's way. What they tell is put in the order of their keys.
fn walk(
    mut walkers: Query<WalkerRow, With<Walker>>,
    maps: Maps,
    settings: Res<MovementSettings>,
    time: Res<Time<Fixed>>,
    navigator: Res<Navigator>,
    workers: Res<Workers>,
    mut stats: ResMut<MovementStats>,
    mut chunks: Local<Vec<WalkedChunk>>,
    mut told: Local<Vec<(u64, Entity, Told)>>,
    mut arrived: MessageWriter<Arrived>,
    mut commands: Commands,
) {
    let (tick_s, looks_max) = (time.timestep().as_secs_f32(), settings.looks_max as usize);
    let navigator = &*navigator;
    if chunks.is_empty() {
        chunks.push(WalkedChunk::default());
    }
    if workers.count() == 1 || walkers.iter().len() < 2 * WALKERS_MIN {
        let mut grounds = Grounds::new(&maps);
        for mut row in &mut walkers {
            walk_one(
                &mut row,
                (&mut grounds, navigator),
                (tick_s, looks_max),
                &mut chunks[0],
            );
        }
    } else {
        // Borrows of this tick, so no room for them can be kept: one allocation where thousands walk.
        let mut rows: Vec<_> = walkers.iter_mut().collect();
        workers.for_each_chunk(&mut rows, WALKERS_MIN, &mut chunks, |chunk, _, rows| {
            let mut grounds = Grounds::new(&maps);
            for row in rows {
                walk_one(row, (&mut grounds, navigator), (tick_s, looks_max), chunk);
            }
        });
    }
    for chunk in &mut *chunks {
        stats.walked += std::mem::take(&mut chunk.walked);
        told.append(&mut chunk.told);
    }
    tell(&mut told, &mut stats, &mut arrived, &mut commands);
    told.clear();
}

/// One walker's step.
fn walk_one<'a>(
    row: &mut WalkerItem,
    (grounds, navigator): (&mut Grounds<'a, '_, '_>, &'a Navigator),
    (tick_s, looks_max): (f32, usize),
    chunk: &mut WalkedChunk,
) {
    let (entity, object, speed, position, velocity, heading, path) = row;
    if path.is_empty() {
        velocity.set_if_neq(Velocity::default());
        return;
    }
    let clearance = path.request().clearance;
    let Some(ground) = grounds.with_clearance(navigator, object.scene_entity(), clearance) else {
        return;
    };
    let speed = speed.m_s();
    let step = advance(
        ground,
        position.0,
        path.waypoints(),
        path.next(),
        speed * tick_s,
        looks_max,
    );
    chunk.walked += 1;
    position.set_if_neq(Position(step.position));
    if let Some(towards) = Heading::of(step.direction) {
        heading.set_if_neq(towards);
    }
    let pace = match step.end {
        WalkEnd::Going => {
            if step.next != path.next() {
                path.advance_to(step.next);
            }
            step.direction * speed
        }
        WalkEnd::Arrived => {
            chunk.told.push((object.key(), *entity, Told::Arrived));
            Vec2::ZERO
        }
        WalkEnd::Blocked => {
            let request = path.request();
            chunk
                .told
                .push((object.key(), *entity, Told::Blocked(request)));
            Vec2::ZERO
        }
    };
    velocity.set_if_neq(Velocity(pace));
    if step.end != WalkEnd::Going {
        path.clear();
    }
}

/// Tells who has arrived, and asks anew for those whose way is blocked.
fn tell(
    told: &mut [(u64, Entity, Told)],
    stats: &mut MovementStats,
    arrived: &mut MessageWriter<Arrived>,
    commands: &mut Commands,
) {
    // Storage order must not show in the order of the messages.
    told.sort_unstable_by_key(|&(key, ..)| key);
    for &(_, entity, told) in &*told {
        match told {
            Told::Arrived => {
                stats.arrived += 1;
                arrived.write(Arrived { entity });
            }
            Told::Blocked(request) => {
                stats.blocked += 1;
                commands
                    .entity(entity)
                    .queue_silenced(move |mut entity: EntityWorldMut| {
                        ask_again(&mut entity, request);
                    });
            }
        }
    }
}

/// Players that sent no move for a while stand still.
fn rest_players(
    settings: Res<MovementSettings>,
    tick: Res<SimTick>,
    mut players: Query<(&LastMove, &mut Velocity), (With<Speed>, Without<Walker>)>,
) {
    let rest_after = u64::from(settings.rest_after_ticks.max(1));
    for (last, mut velocity) in &mut players {
        if tick.0.saturating_sub(last.tick) >= rest_after {
            velocity.set_if_neq(Velocity::default());
        }
    }
}
