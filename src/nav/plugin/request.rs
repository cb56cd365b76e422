//! What is asked of navigation and what it answers: the components and messages of the tick.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use glam::{IVec2, Vec2};
use throng_core::Variants;

use crate::memory::MemoryUse;
use crate::sim::StateHasher;
use crate::world::{Object, StateHashed};

/// Who asks: decides how much may be spent on the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect))]
pub enum SearchBudgetClass {
    /// A short way, given up after [`NavSettings::short_nodes_max`](super::NavSettings::short_nodes_max) nodes.
    #[default]
    Short,
    /// A way of any length, searched in slices over ticks where it is long. Its object had better stand still meanwhile: the
    /// way begins where it stood.
    Long,
}

/// Asks for a path from where an object stands, when its turn comes, to a goal. Removed with the answer.
///
/// An object waits at most once: a newer request keeps the older's turn if it is of its class, and that is answered
/// `cancelled`. Removing the
/// component withdraws the request; one withdrawn before the next Navigate was never asked. Until the answer comes, the object keeps the path it has.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq)]
#[component(storage = "SparseSet", on_insert = on_request_inserted, clone_behavior = Ignore)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct PathRequest {
    /// Where it wants to be, in metres; the path ends in the middle of that tile.
    pub goal: Vec2,
    /// How much may be spent.
    pub class: SearchBudgetClass,
    /// A start or goal on a blocked tile stands for the nearest free one at most so many tiles away; with 0 it fails as
    /// `blocked`.
    pub snap_tiles: u32,
    /// A goal that cannot be reached stands for the nearest tile at most so many tiles away that can; with 0 it fails as
    /// `unreachable`.
    pub nearest_tiles: u32,
    /// Tiles that the body needs free on every side of its own: 0 for one of a single tile, c for 2c + 1 tiles a side. The
    /// first request of a clearance in a scene is answered a tick or two later than others.
    pub clearance: u8,
    /// Whether a search that gives up leaves the way to the tile nearest to the goal that it had reached.
    pub partial: bool,
}

impl PathRequest {
    /// A short way to a goal, in metres.
    pub const fn to(goal: Vec2) -> Self {
        Self::with_class(goal, SearchBudgetClass::Short)
    }

    /// A way of any length to a goal, in metres.
    pub const fn long_to(goal: Vec2) -> Self {
        Self::with_class(goal, SearchBudgetClass::Long)
    }

    /// A way of a class to a goal, in metres.
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
    /// Whether all is the same to the last bit; a goal that is no number is the same as itself.
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

/// Who was given a request since the queue was last looked at, in that order.
#[derive(Resource, Debug, Default)]
pub(super) struct NewPathRequests(pub(super) Vec<Entity>);

/// Why there is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Variants)]
pub enum PathFailure {
    /// Start and goal are free, and no walk joins them.
    Unreachable,
    /// The search gave up at its node limit.
    Capped,
    /// Start or goal is blocked.
    Blocked,
    /// Start or goal lies outside the map, or there is no map.
    OutOfBounds,
    /// A newer request replaced it, it was withdrawn, the queue was full, or its object went away.
    Cancelled,
}

/// A request was answered with a path, which the object's [`NavPath`] holds now; those of a tick in the order of the queue.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct PathFound {
    /// The entity that asked.
    pub entity: Entity,
    /// The object it is.
    pub object: Object,
    /// The tile where the path starts.
    pub from: IVec2,
    /// The tile where it ends.
    pub to: IVec2,
    /// Length of the path in tiles.
    pub length_tiles: f64,
    /// Nodes that the search for it expanded; 0 where it was shared with a request before it.
    pub nodes: u32,
    /// As it was asked.
    pub class: SearchBudgetClass,
}

/// A request was answered without a path; those of a tick in the order of the queue.
///
/// `Cancelled` has left the object's [`NavPath`] alone; the others have emptied it, unless it holds the part of a way that was
/// asked for.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct PathFailed {
    /// The entity that asked.
    pub entity: Entity,
    /// The object it was.
    pub object: Object,
    /// Why there is no path.
    pub reason: PathFailure,
    /// The tile from which was searched; for a cancelled request, where the object stood when it was taken in.
    pub from: IVec2,
    /// The goal's tile; [`IVec2::MIN`] for a goal that is no point, or a scene without a map.
    pub to: IVec2,
    /// As it was asked.
    pub class: SearchBudgetClass,
}

/// The way an object is on; empty where it is on none. Who has none yet is given one with its first answer.
#[derive(Component, Clone, Debug, Default, PartialEq, MemoryUse, StateHashed)]
pub struct NavPath {
    pub(super) waypoints: Vec<IVec2>,
    pub(super) next: usize,
    pub(super) map_version: u64,
    pub(super) request: PathRequest,
}

impl NavPath {
    /// Whether there is no way to go.
    pub const fn is_empty(&self) -> bool {
        self.waypoints.is_empty()
    }

    /// The turning points as they were found, both ends included; between two the way is straight or diagonal.
    pub fn waypoints(&self) -> &[IVec2] {
        &self.waypoints
    }

    /// Which waypoint the object is heading for; 0 right after the answer.
    pub const fn next(&self) -> usize {
        self.next
    }

    /// The waypoints still to come, the one it is heading for first.
    pub fn remaining(&self) -> &[IVec2] {
        self.waypoints.get(self.next..).unwrap_or_default()
    }

    /// The tile where the way ends.
    pub fn goal(&self) -> Option<IVec2> {
        self.waypoints.last().copied()
    }

    /// What was asked for: to ask for it again when the way is blocked.
    pub const fn request(&self) -> PathRequest {
        self.request
    }

    /// The [`SceneMap::version`](crate::map::SceneMap::version) it was found on.
    pub const fn map_version(&self) -> u64 {
        self.map_version
    }

    /// Heads for a later waypoint. Whether the way there is free is the caller's to know.
    pub const fn advance_to(&mut self, next: usize) {
        self.next = next;
    }

    /// Ends the way; its buffer is kept.
    pub fn clear(&mut self) {
        self.waypoints.clear();
        self.next = 0;
    }
}
