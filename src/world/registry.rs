//! Object kinds: a registered name with category and view range.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};
use throng_core::hash::StateHashed;
use throng_core::kinds::{ObjectCategory, ViewRange};

/// A registered kind of object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectKind {
    /// Its name in scenarios and clients.
    pub name: String,
    /// The view cap that it counts against.
    #[serde(default)]
    pub class: ObjectCategory,
    /// Its view range.
    #[serde(default)]
    pub visibility: ViewRange,
}

/// The index of a kind in [`ObjectKinds`]. As a component, the kind that an entity has in its scene, spawned together with
/// [`InScene`](super::InScene); [`Player`](super::Player) and [`Npc`](super::Npc) add theirs. The world reads it when the entity
/// becomes an object, and not again; [`Object::kind`](super::Object::kind) returns it.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// fn spawn_dragon(scene: Entity, mut commands: Commands) {
///     commands.spawn((KindId::BOSS, Viewable::default(), InScene(scene), Position(Vec2::splat(30.0))));
/// }
/// ```
#[derive(
    Component, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, StateHashed,
)]
#[component(immutable)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct KindId(pub u16);

/// The built-in kinds. A kind is never removed, so these ids are fixed.
impl KindId {
    /// `player`: a character that a player controls.
    pub const PLAYER: Self = Self(0);
    /// `npc`: a character that the server controls.
    pub const NPC: Self = Self(1);
    /// `pet`: counts as an NPC.
    pub const PET: Self = Self(2);
    /// `boss`: counts as an NPC, and is seen in the whole scene.
    pub const BOSS: Self = Self(3);
    /// `door`: a thing, not a character.
    pub const DOOR: Self = Self(4);
}

/// The registered kinds, in the order of registration.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// # app.add_plugins(throng::world::WorldPlugin);
/// use throng::world::{ObjectCategory, ObjectKind, ObjectKinds, ViewRange};
///
/// let ship = ObjectKind { name: "ship".to_owned(), class: ObjectCategory::Thing, visibility: ViewRange::default() };
/// let kind = app.world_mut().resource_mut::<ObjectKinds>().register(ship).expect("fewer kinds than ids");
/// assert_eq!(app.world().resource::<ObjectKinds>().find("ship"), Some(kind));
/// ```
#[derive(Resource, Clone, Debug)]
pub struct ObjectKinds(Vec<ObjectKind>);

impl Default for ObjectKinds {
    /// `player`, `npc`, `pet`, `boss` (seen in the whole scene) and `door` (a thing).
    fn default() -> Self {
        let kind = |name: &str, class, visibility| ObjectKind {
            name: name.into(),
            class,
            visibility,
        };
        Self(vec![
            kind("player", ObjectCategory::Player, ViewRange::Near),
            kind("npc", ObjectCategory::Npc, ViewRange::Near),
            kind("pet", ObjectCategory::Npc, ViewRange::Near),
            kind("boss", ObjectCategory::Npc, ViewRange::Scene),
            kind("door", ObjectCategory::Thing, ViewRange::Near),
        ])
    }
}

impl ObjectKinds {
    /// Registers a kind, or replaces the one of that name for objects spawned from now on. `None` when 65,536 kinds exist.
    pub fn register(&mut self, kind: ObjectKind) -> Option<KindId> {
        if let Some(id) = self.find(&kind.name) {
            self.0[usize::from(id.0)] = kind;
            return Some(id);
        }
        let id = KindId(u16::try_from(self.0.len()).ok()?);
        self.0.push(kind);
        Some(id)
    }

    /// The kind of this name. O(kinds).
    #[must_use]
    pub fn find(&self, name: &str) -> Option<KindId> {
        let place = self.0.iter().position(|kind| kind.name == name)?;
        u16::try_from(place).ok().map(KindId)
    }

    /// The settings of a kind.
    #[must_use]
    pub fn get(&self, id: KindId) -> Option<&ObjectKind> {
        self.0.get(usize::from(id.0))
    }

    /// All kinds, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &ObjectKind> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_kinds_have_their_constant_ids() {
        let kinds = ObjectKinds::default();
        let ids = ["player", "npc", "pet", "boss", "door"].map(|name| kinds.find(name).unwrap());
        let known = [
            KindId::PLAYER,
            KindId::NPC,
            KindId::PET,
            KindId::BOSS,
            KindId::DOOR,
        ];
        assert_eq!((ids, kinds.iter().count()), (known, known.len()));
    }

    #[test]
    fn registering_a_known_name_keeps_its_id() {
        let mut kinds = ObjectKinds::default();
        let boss = kinds.find("boss");
        let changed = ObjectKind {
            name: "boss".into(),
            class: ObjectCategory::Npc,
            visibility: ViewRange::Far(4),
        };
        assert_eq!(kinds.register(changed), boss);
        assert_eq!(
            boss.and_then(|id| kinds.get(id))
                .map(|kind| kind.visibility),
            Some(ViewRange::Far(4))
        );
    }
}
