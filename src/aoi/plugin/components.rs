//! Components for scenes and objects, and the part of them that is in the state hash.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;

use crate::aoi::{ViewCaps, ViewFilter, ViewLinkMode, ViewPriority};
use crate::sim::StateHasher;
use crate::world::{ObjectRef, StateHashed};

/// A scene's own grid, in place of the one in [`AoiSettings`](super::AoiSettings). Read when the scene opens.
#[derive(Component, Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct SceneAoiSettings {
    /// Side of a grid cell, in metres.
    pub cell_m: f32,
    /// Distance by which an object may leave its cell before the cell changes, in metres.
    pub margin_m: f32,
    /// Whether a view link is one-way or needs both ends.
    pub view_link_mode: ViewLinkMode,
}

/// A scene's own rules: which pairs may see each other, and their priority when a list is full. On the scene's entity; can be
/// inserted, replaced or removed at any time.
///
/// Both rules are functions of two [`ViewTraits`](crate::aoi::ViewTraits), the viewer's first, and of nothing else. They see
/// neither the world nor each other's results. They are called for every pair that is compared, from several threads, in no
/// order, and must return the same result for the same traits. They are plain functions, not closures, so that they cannot
/// capture state that changes; a table that never changes may be a `static`. Data of an object beyond its team, party, guild,
/// [`ViewRelations`], layers and class goes into its [`ViewTag`]: quests as bits, a phase, its area in the fog of war. When
/// such data changes, write a [`ViewRerankRequest`]: the pairs of that object are evaluated again in the same tick.
///
/// When `allows` becomes false, a link ends in that tick, with
/// [`ViewLeaveReason::Hidden`](crate::aoi::ViewLeaveReason::Hidden). When it becomes true, the link begins in that tick, unless
/// more objects change at once than [`full_scans_per_tick_max`](super::AoiSettings::full_scans_per_tick_max). Range, caps,
/// layers and hiding apply as well; [`show_to`](super::show_to) and [`hide_from`](super::hide_from) take precedence.
///
/// Cost: without rules, one branch per pair; with rules, one call. New rules evaluate every pair of the scene again. With a
/// custom `class`, full viewers compare all candidates, where by default they compare related objects only: expect a few times
/// the work in a crowd.
///
/// The rules are not part of the state hash; like settings they must be the same in a replay.
#[derive(Component, Clone, Copy, Debug, Default)]
pub struct ViewRules {
    /// Whether a viewer may see a target that its layers let it see; `None` if always.
    pub allows: Option<ViewFilter>,
    /// The class of a pair, from 0 to [`CLASS_MAX`](crate::aoi::CLASS_MAX); a higher class has priority and evicts a lower one.
    /// `None` for [`by_relationship`](crate::aoi::by_relationship).
    pub class: Option<ViewPriority>,
}

/// Two words of an object that only [`ViewRules`] read; 0 without this component. Inserting, replacing or removing it writes a
/// [`ViewRerankRequest`].
///
/// It is immutable: `Query<&mut ViewTag>` does not compile (`ViewTag` is no `Component<Mutability = Mutable>`). To change it, insert it
/// again: `commands.entity(thief).insert(ViewTag([0, 3]))`.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, StateHashed)]
#[component(immutable, on_insert = write_rerank_request, on_discard = write_rerank_request)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct ViewTag(pub [u32; 2]);

/// Related objects, in addition to team, party and guild, for the ranking of views. A relation ends with the object that it
/// names; it does not apply to the next object with that id. Inserting, replacing or removing it writes a
/// [`ViewRerankRequest`].
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[component(immutable, on_insert = write_rerank_request, on_discard = write_rerank_request)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct ViewRelations {
    /// The owner, for example the player who owns a pet.
    pub owner: Option<ObjectRef>,
    /// The object that it has selected as its target, or attacks.
    pub target: Option<ObjectRef>,
}

impl StateHashed for ViewRelations {
    fn hash(&self, hasher: &mut StateHasher) {
        for tie in [self.owner, self.target] {
            hasher.write_u64(tie.map_or(0, |tie| 1 + u64::from(tie.id.0)));
            hasher.write_u64(tie.map_or(0, |tie| {
                u64::from(tie.scene.0) << 32 | u64::from(tie.generation.0)
            }));
        }
    }
}

/// A value that the view rules of a scene read of an object has changed; its pairs are evaluated again in this tick's View.
/// [`ViewRelations`] and [`ViewTag`] write it themselves, and changes of [`Viewer`], [`Viewable`], teams, parties and guilds
/// are detected without it. Write it only for other changes.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewRerankRequest {
    /// The object whose pairs are ranked again.
    pub entity: Entity,
}

fn write_rerank_request(mut world: DeferredWorld, context: HookContext) {
    world.write_message(ViewRerankRequest {
        entity: context.entity,
    });
}

/// An object that keeps a view list, with its caps.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Viewer {
    /// The maximum number of objects that it sees, per class.
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

impl Default for Viewer {
    /// All layers, with the caps of [`ViewCaps::default`].
    fn default() -> Self {
        Self::new(ViewCaps::default())
    }
}

impl StateHashed for Viewer {
    fn hash(&self, hasher: &mut StateHasher) {
        let caps = self.caps.by_class();
        caps.iter().for_each(|&cap| hasher.write_u64(cap.into()));
        hasher.write_u64(self.sees.into());
    }
}

/// An object that can be in view lists. Its kind defines the range at which it is seen.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Viewable {
    /// The layers it is in, for example phases, stealth, or game masters only.
    pub layers: u32,
    /// No viewer sees it.
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

impl StateHashed for Viewable {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.layers) << 1 | u64::from(self.hidden));
    }
}
