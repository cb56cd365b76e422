//! Requests to navigation and their results: the components and messages.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use glam::{IVec2, Vec2};
use throng_core::Variants;

use crate::memory::MemoryUse;
use crate::sim::StateHasher;
use crate::world::{Object, StateHashed};

/// How much a search may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect))]
pub enum SearchBudgetClass {
    /// A short path, limited to [`NavSettings::short_nodes_max`](super::NavSettings::short_nodes_max) nodes.
    #[default]
    Short,
    /// A path of any length, searched in slices over ticks if it is long. Its object should not move meanwhile: the
    /// path begins at its position.
    Long,
}

/// Requests a path from an object's position, when its turn comes, to a goal. Removed with the result.
///
/// An object is queued at most once: a newer request replaces the older one, which fails as `cancelled`, and keeps its queue position
/// if both are of the same class. Removing the component withdraws the request; one that is withdrawn before the next Navigate has no
/// result. Until the result comes, the object keeps its current path.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// fn flee(npc: Entity, mut commands: Commands) {
///     let goal = Vec2::new(5.0, 5.0);
///     // If the goal is blocked, the nearest free tile within 4 tiles will do.
///     commands.entity(npc).insert(PathRequest { snap_tiles: 4, ..PathRequest::to(goal) });
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq)]
#[component(storage = "SparseSet", on_insert = on_request_inserted, clone_behavior = Ignore)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct PathRequest {
    /// The goal, in metres; the path ends at the centre of that tile.
    pub goal: Vec2,
    /// How much the search may spend.
    pub class: SearchBudgetClass,
    /// A start or goal on a blocked tile is moved to the nearest free one within this number of tiles; with 0 the request fails as
    /// `blocked`.
    pub snap_tiles: u32,
    /// A goal that cannot be reached is moved to the nearest reachable tile within this number of tiles; with 0 the request fails as
    /// `unreachable`.
    pub nearest_tiles: u32,
    /// The number of free tiles that the walker needs on every side of its own: 0 for a width of one tile, c for 2c + 1 tiles. The
    /// first request of a clearance in a scene takes a tick or two longer than others.
    pub clearance: u8,
    /// Whether a search that reaches its limit returns the path to the tile nearest to the goal that it reached.
    pub partial: bool,
}

impl PathRequest {
    /// A request for a short path to a goal, in metres.
    pub const fn to(goal: Vec2) -> Self {
        Self::with_class(goal, SearchBudgetClass::Short)
    }

    /// A request for a path of any length to a goal, in metres.
    pub const fn long_to(goal: Vec2) -> Self {
        Self::with_class(goal, SearchBudgetClass::Long)
    }

    /// A request of a class for a path to a goal, in metres.
    pub const fn with_class(goal: Vec2, class: SearchBudgetClass) -> Self {
        Self {
            goal,
            class,
            snap_tiles: 0,
            nearest_tiles: 0,
            clearance: 0,
            partial: false,
        }
    }
}

impl PathRequest {
    /// Whether both are equal to the last bit; a NaN goal is equal to itself.
    pub(super) fn is_same(&self, other: &PathRequest) -> bool {
        let goal = |request: &PathRequest| request.goal.to_array().map(f32::to_bits);
        let same_goal = PathRequest {
            goal: other.goal,
            ..*self
        };
        goal(self) == goal(other) && (same_goal == *other || other.goal.is_nan())
    }
}

impl StateHashed for PathRequest {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_f32(self.goal.x);
        hasher.write_f32(self.goal.y);
        hasher.write_u64(u64::from(self.snap_tiles) << 32 | u64::from(self.nearest_tiles));
        let flags = u64::from(self.partial) << 1 | self.class as u64;
        hasher.write_u64(u64::from(self.clearance) << 2 | flags);
    }
}

fn on_request_inserted(mut world: DeferredWorld, context: HookContext) {
    if let Some(mut asked) = world.get_resource_mut::<NewPathRequests>() {
        asked.0.push(context.entity);
    }
}

/// The entities that got a request since the queue was last updated, in that order.
#[derive(Resource, Debug, Default)]
pub(super) struct NewPathRequests(pub(super) Vec<Entity>);

/// Why there is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Variants)]
pub enum PathFailure {
    /// Start and goal are free, but not connected.
    Unreachable,
    /// The search reached its node limit.
    Capped,
    /// Start or goal is blocked.
    Blocked,
    /// Start or goal is outside the map, or there is no map.
    OutOfBounds,
    /// A newer request replaced it, it was withdrawn, the queue was full, or its object despawned.
    Cancelled,
}

/// A path was found; the object's [`NavPath`] holds it now. Messages of a tick are in the order of the queue.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// fn report(mut found: MessageReader<PathFound>) {
///     for path in found.read() {
///         println!("{}: {:.1} tiles", path.entity, path.length_tiles);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct PathFound {
    /// The entity of the request.
    pub entity: Entity,
    /// Its object.
    pub object: Object,
    /// The tile where the path starts.
    pub from: IVec2,
    /// The tile where it ends.
    pub to: IVec2,
    /// Length of the path in tiles.
    pub length_tiles: f64,
    /// The nodes that the search expanded; 0 if it was shared with an earlier request.
    pub nodes: u32,
    /// The class of the request.
    pub class: SearchBudgetClass,
}

/// No path was found; messages of a tick are in the order of the queue.
///
/// `Cancelled` leaves the object's [`NavPath`] unchanged; the other reasons clear it, unless it holds the partial path that was
/// requested.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// fn report(mut failed: MessageReader<PathFailed>) {
///     for path in failed.read() {
///         println!("{}: no path, {:?}", path.entity, path.reason);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct PathFailed {
    /// The entity of the request.
    pub entity: Entity,
    /// Its object.
    pub object: Object,
    /// Why there is no path.
    pub reason: PathFailure,
    /// The start tile of the search; for a cancelled request, the object's tile when it was queued.
    pub from: IVec2,
    /// The goal's tile; [`IVec2::MIN`] for a goal that is not finite, or a scene without a map.
    pub to: IVec2,
    /// The class of the request.
    pub class: SearchBudgetClass,
}

/// The path that an object follows; empty if there is none. Inserted with the first result if it is missing.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// fn show(paths: Query<(Entity, &NavPath)>) {
///     for (entity, path) in &paths {
///         println!("{entity} has {} waypoints left", path.remaining().len());
///     }
/// }
/// ```
#[derive(Component, Clone, Debug, Default, PartialEq, MemoryUse, StateHashed)]
pub struct NavPath {
    pub(super) waypoints: Vec<IVec2>,
    pub(super) next: usize,
    pub(super) map_version: u64,
    pub(super) request: PathRequest,
}

impl NavPath {
    /// Whether there is no path.
    pub const fn is_empty(&self) -> bool {
        self.waypoints.is_empty()
    }

    /// The turning points as found, both ends included; between two the path is straight or diagonal.
    pub fn waypoints(&self) -> &[IVec2] {
        &self.waypoints
    }

    /// The index of the next waypoint; 0 right after the result.
    pub const fn next(&self) -> usize {
        self.next
    }

    /// The remaining waypoints, starting with the next one.
    pub fn remaining(&self) -> &[IVec2] {
        self.waypoints.get(self.next..).unwrap_or_default()
    }

    /// The last tile of the path.
    pub fn goal(&self) -> Option<IVec2> {
        self.waypoints.last().copied()
    }

    /// The request of this path, to repeat it when the path is blocked.
    pub const fn request(&self) -> PathRequest {
        self.request
    }

    /// The [`SceneMap::version`](crate::map::SceneMap::version) it was found on.
    pub const fn map_version(&self) -> u64 {
        self.map_version
    }

    /// Advances to a later waypoint. The caller has to know that the line to it is free.
    pub const fn advance_to(&mut self, next: usize) {
        self.next = next;
    }

    /// Ends the path; keeps its buffer.
    pub fn clear(&mut self) {
        self.waypoints.clear();
        self.next = 0;
    }
}
