//! Components for scenes and objects, and the part of them that is in the state hash.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;

use crate::aoi::{DistanceRules, ViewCaps, ViewFilter, ViewLinkMode, ViewPriority, is_same_team};
use crate::sim::StateHasher;
use crate::world::{ObjectRef, StateHashed};

/// A scene's own grid, in place of the one in [`AoiSettings`](super::AoiSettings). Read when the scene opens.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// use throng::aoi::{SceneAoiSettings, ViewLinkMode};
///
/// // Inside a dungeon, players see less far than outside.
/// fn open_dungeon(mut commands: Commands) {
///     let grid = SceneAoiSettings { cell_m: 15.0, margin_m: 2.0, view_link_mode: ViewLinkMode::Directed };
///     commands.spawn((SceneSpec::new("dungeon", Vec2::splat(100.0)), grid));
/// }
/// ```
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
/// Rules by distance are declared with their distance, see [`beyond`](Self::beyond) and [`team_beyond`](Self::team_beyond): such
/// a rule applies in the tick in which two objects cross that distance, without a change of cell or tag.
///
/// Cost: without rules, one branch per pair; with rules, one call. New rules evaluate every pair of the scene again. With a
/// custom `class`, full viewers compare all candidates, where by default they compare related objects only: expect a few times
/// the work in a crowd.
///
/// The rules are not part of the state hash; like settings they must be the same in a replay.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// // Ghosts, with the first bit of their tag, are seen by ghosts only.
/// const GHOSTS: ViewRules = ViewRules {
///     allows: Some(|viewer, target| target.tag[0] & 1 == 0 || viewer.tag[0] & 1 == 1),
///     ..ViewRules::NONE
/// };
///
/// fn open_crypt(mut commands: Commands) {
///     commands.spawn((SceneSpec::new("crypt", Vec2::splat(100.0)), GHOSTS));
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default)]
pub struct ViewRules {
    /// Whether a viewer may see a target that its layers let it see; `None` if always.
    pub allows: Option<ViewFilter>,
    /// The class of a pair, from 0 to [`CLASS_MAX`](crate::aoi::CLASS_MAX); a higher class has priority and evicts a lower one.
    /// `None` for [`by_relationship`](crate::aoi::by_relationship).
    pub class: Option<ViewPriority>,
    /// What has to hold for pairs that are farther apart than a distance, in addition to `allows`.
    ///
    /// While there is any such rule, every viewer of the scene is examined as one with [`Viewer::range_m`] is: it tests the
    /// objects around it in each tick in which it or one of them moved, up to
    /// [`exact_scans_per_tick_max`](super::AoiSettings::exact_scans_per_tick_max) viewers a tick. In a scene with mutual links,
    /// links are one-way meanwhile.
    pub by_distance: DistanceRules,
}

impl ViewRules {
    /// No rules: every pair may see each other, ranked by relationship. For constants.
    pub const NONE: Self = Self {
        allows: None,
        class: None,
        by_distance: DistanceRules::NONE,
    };

    /// Adds a rule: at more than this distance in metres, a viewer sees a target only if `allows` returns true. Several rules
    /// apply together, for example the team beyond 20 m and only the party beyond 60 m.
    ///
    /// ```
    /// use throng::prelude::*;
    ///
    /// /// Beyond 30 m, only objects that carry a light (a bit of their tag) are seen.
    /// const NIGHT: ViewRules = ViewRules::NONE.beyond(30.0, |_, target| target.tag[0] & 1 != 0);
    /// ```
    ///
    /// # Panics
    /// If the distance is negative or NaN, or if there are four such rules already.
    #[must_use]
    pub const fn beyond(mut self, distance_m: f32, allows: ViewFilter) -> Self {
        self.by_distance = self.by_distance.beyond(distance_m, allows);
        self
    }

    /// The rule "beyond this distance in metres, only my team".
    ///
    /// # Panics
    /// If the distance is negative or NaN.
    #[must_use]
    pub const fn team_beyond(distance_m: f32) -> Self {
        Self::NONE.beyond(distance_m, is_same_team)
    }
}

/// Two words of an object that only [`ViewRules`] read; 0 without this component. Inserting, replacing or removing it writes a
/// [`ViewRerankRequest`].
///
/// It is immutable: `Query<&mut ViewTag>` does not compile (`ViewTag` is no `Component<Mutability = Mutable>`). To change it, insert it
/// again: `commands.entity(thief).insert(ViewTag([0, 3]))`.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// fn die(player: Entity, mut commands: Commands) {
///     commands.entity(player).insert(ViewTag([1, 0]));
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, StateHashed)]
#[component(immutable, on_insert = write_rerank_request, on_discard = write_rerank_request)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct ViewTag(pub [u32; 2]);

/// Related objects, in addition to team, party and guild, for the ranking of views. A relation ends with the object that it
/// names; it does not apply to the next object with that id. Inserting, replacing or removing it writes a
/// [`ViewRerankRequest`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::aoi::ViewRelations;
///
/// /// A full view of the player keeps the target, whatever else comes near.
/// fn select(player: Entity, target: &Object, mut commands: Commands) {
///     let relations = ViewRelations { target: Some(target.reference()), ..ViewRelations::default() };
///     commands.entity(player).insert(relations);
/// }
/// ```
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
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::aoi::ViewRerankRequest;
///
/// /// A rule of the scene reads a table that has changed for this object.
/// fn on_table_changed(entity: Entity, mut requests: MessageWriter<ViewRerankRequest>) {
///     requests.write(ViewRerankRequest { entity });
/// }
/// ```
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
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// /// A tower sees exactly 80 m far. It is no player, and nobody sees it.
/// fn build_tower(scene: Entity, mut commands: Commands) {
///     let sight = Viewer { range_m: Some(80.0), ..Viewer::default() };
///     commands.spawn((Npc, sight, InScene(scene), Position(Vec2::splat(50.0))));
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Viewer {
    /// The maximum number of objects that it sees, per class.
    pub caps: ViewCaps,
    /// A target is seen when its [`Viewable::layers`] and these share a bit.
    pub sees: u32,
    /// A range of its own, in metres: a scope, a tower, a game master. `None`, the default, for the cells around it.
    ///
    /// With a range it sees exactly the objects whose distance is at most the range, instead of those in the cells around it and
    /// those of kinds that are visible from afar. Caps, layers, hiding, rules and exceptions apply as without. It may be smaller or
    /// larger than the cells, may change at any time, and applies in the same tick; [`f32::INFINITY`] is the whole scene. How
    /// others see this object does not change. In a scene with mutual links, links from and to such a viewer are one-way.
    ///
    /// A negative range and NaN count as `None`; they are counted in [`AoiStats::invalid_ranges`](super::AoiStats), and a warning
    /// names the first.
    ///
    /// Cost: in each tick in which it moved, or anything in the cells that the circle touches moved, it tests all objects in these
    /// cells, within [`exact_scans_per_tick_max`](super::AoiSettings::exact_scans_per_tick_max). While a scene has any such viewer,
    /// each tick compares the positions of all its objects with those of the last tick.
    pub range_m: Option<f32>,
}

impl Viewer {
    /// A viewer with these caps that sees all layers in the cells around it.
    #[must_use]
    pub const fn new(caps: ViewCaps) -> Self {
        Self {
            caps,
            sees: u32::MAX,
            range_m: None,
        }
    }

    /// The range, if it has one that is valid.
    pub(super) fn valid_range_m(&self) -> Option<f32> {
        self.range_m.filter(|&range_m| range_m >= 0.0)
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
        if let Some(range_m) = self.range_m {
            hasher.write_u64(range_m.to_bits().into());
        }
    }
}

/// An object that can be in view lists. Its kind defines the range at which it is seen.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// /// Clients keep a gate that they have seen, until it is destroyed.
/// fn build_gate(scene: Entity, mut commands: Commands) {
///     let gate = Viewable { keep: true, ..Viewable::default() };
///     commands.spawn((KindId::DOOR, gate, InScene(scene), Position(Vec2::splat(50.0))));
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Viewable {
    /// The layers it is in, for example phases, stealth, or game masters only.
    pub layers: u32,
    /// No viewer sees it.
    pub hidden: bool,
    /// Clients keep it once they have received it: for static things such as buildings. When it goes out of range, or loses its place in a
    /// full view, it stays at the client, and the client still receives its changes. It is despawned there when it is destroyed or goes to
    /// another scene; when the client may not see it any more at any distance (hidden, layers, exceptions, rules); when this is set to
    /// `false` while it is out of view; when the client changes its scene or controlled object; and when the client keeps more than
    /// [`kept_objects_max`](crate::sync::SyncSettings::kept_objects_max) objects out of view: then those that left the view first. Views
    /// and their events are the same with and without it.
    ///
    /// Cost: an object that is kept out of view costs a client as much as one in view.
    pub keep: bool,
}

impl Default for Viewable {
    fn default() -> Self {
        Self {
            layers: 1,
            hidden: false,
            keep: false,
        }
    }
}

impl StateHashed for Viewable {
    fn hash(&self, hasher: &mut StateHasher) {
        let flags = u64::from(self.keep) << 33 | u64::from(self.hidden);
        hasher.write_u64(u64::from(self.layers) << 1 | flags);
    }
}
