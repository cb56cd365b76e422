//! What an embedder puts on scenes and objects, and what of it is state.

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
    /// How far beyond its cell an object may go before the cell changes, in metres.
    pub margin_m: f32,
    /// Whether a link needs the other end's consent.
    pub view_link_mode: ViewLinkMode,
}

/// A scene's own rules: who may see whom, and who goes first when a list is full. On the scene's entity; inserted,
/// replaced or removed at any time.
///
/// Both are functions of the two [`ViewTraits`](crate::aoi::ViewTraits), the viewer's first, and of nothing else: they see
/// neither the world nor each other's answers, are called from several threads, in no order, for every pair that is
/// compared, and must answer the same for the same traits. They are plain functions, not closures, so that nothing that
/// changes unseen can be captured; a table that never changes may be a `static`. What they should know of an object beyond
/// its team, party, guild, [`ViewRelations`], layers and class is put into its [`ViewTag`]: quests as bits, a phase, the patch of fog
/// that it stands in. Whatever changes these announces itself with [`ViewRerankRequest`], and the pairs of that object are
/// judged anew in the same tick.
///
/// When `allows` becomes false a link ends in that tick, with [`ViewLeaveReason::Hidden`](crate::aoi::ViewLeaveReason::Hidden).
/// When it becomes true the link begins in that tick, unless more change at once than
/// [`full_scans_per_tick_max`](super::AoiSettings::full_scans_per_tick_max). Range, caps, layers and hiding hold beside it, and
/// [`show_to`](super::show_to) and [`hide_from`](super::hide_from) before it.
///
/// Cost: without rules a branch for each pair; with them a call. New rules judge every pair of the scene anew. With a
/// `class` of its own a scene passes nobody over, where by default full viewers compare ties alone: expect a few times the
/// work in a crowd.
///
/// The rules themselves are no part of the state hash; like settings they are to be the same in a replay.
#[derive(Component, Clone, Copy, Debug, Default)]
pub struct ViewRules {
    /// Whether a viewer may see a target that its layers let it see; `None` for always.
    pub allows: Option<ViewFilter>,
    /// The class of a pair, from 0 to [`CLASS_MAX`](crate::aoi::CLASS_MAX); a higher one goes first and evicts a lower
    /// one. `None` for [`by_relationship`](crate::aoi::by_relationship).
    pub class: Option<ViewPriority>,
}

/// Two words of an object that only [`ViewRules`] read; without it they are 0. Inserting, replacing or removing it writes
/// [`ViewRerankRequest`].
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, StateHashed)]
#[component(immutable, on_insert = write_rerank_request, on_discard = write_rerank_request)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct ViewTag(pub [u32; 2]);

/// Whom an object is tied to, beside its team, party and guild, as far as the ranking of views asks. A tie ends with the
/// object that it leads to; it says nothing of the next object of that id. Inserting, replacing or removing it writes
/// [`ViewRerankRequest`].
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[component(immutable, on_insert = write_rerank_request, on_discard = write_rerank_request)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct ViewRelations {
    /// Who owns it, as a player owns a pet.
    pub owner: Option<ObjectRef>,
    /// Whom it has picked as its target, or attacks.
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

/// Something changed that the rules of a scene read of an object; its pairs are judged anew in this tick's View. [`ViewRelations`]
/// and [`ViewTag`] write it by themselves, and of [`Viewer`], [`Viewable`], teams, parties and guilds the views learn
/// without; so an embedder writes it only for a change that went past all of these.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewRerankRequest {
    /// The object whose pairs may count differently.
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

/// An object that can be in view lists. How far it is seen is its kind's.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
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

impl StateHashed for Viewable {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.layers) << 1 | u64::from(self.hidden));
    }
}
