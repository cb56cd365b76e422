//! Crowds and their members.

use std::collections::BTreeSet;

use bevy_ecs::prelude::*;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::area::CrowdArea;
use super::behaviour::{Behaviour, Idle};
use throng::aoi::ViewCaps;
use throng::memory::MemoryUse;
use throng::nav::NavPath;
use throng::session::AdmissionClass;
use throng::sim::{SimTick, StateHasher};
use throng::world::{GuildId, KindId, Object, SimScene, StateHashed, TeamId};

/// Ticks between two checks whether an individual has arrived or sees a target.
pub(super) const PERCEPTION_INTERVAL_TICKS: u64 = 10;

/// Seconds over which a new crowd starts to move.
pub(super) const STAGGER_S: f64 = 10.0;

/// The definition of a crowd.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// use throng_scenario::crowd::{CrowdArea, CrowdSpec, add_crowd};
///
/// /// A hundred wolves around the den.
/// fn add_wolves(world: &mut World, scene: Entity, wolf: KindId) -> Result<(), Box<dyn std::error::Error>> {
///     let den = CrowdArea::Ring { center: Vec2::splat(50.0), radius: 10.0, width: 5.0 };
///     let wolves = CrowdSpec { speed_m_s: 3.0, ..CrowdSpec::new("wolves", wolf, 100, scene, den) };
///     add_crowd(world, wolves)?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CrowdSpec {
    /// The tag in scripts; several crowds may share a tag.
    pub tag: String,
    /// The kind of its individuals. With class `Player`, each is a synthetic player with a session.
    pub kind: KindId,
    /// The number of individuals; for players, the maximum number that is online.
    pub count: u32,
    /// The scene entity.
    pub scene: Entity,
    /// The area where they spawn.
    pub at: CrowdArea,
    /// The team of all its individuals.
    pub team: Option<TeamId>,
    /// The guild of all its individuals.
    pub guild: Option<GuildId>,
    /// Players per party, up to five; 0 and 1 make no parties.
    pub party_size: u8,
    /// Their behaviour.
    pub behaviour: Behaviour,
    /// Walking speed, in metres per second.
    pub speed_m_s: f32,
    /// Whether clients keep its individuals once they have received them: [`Viewable::keep`](throng::aoi::Viewable::keep).
    pub keep: bool,
    /// Attribute changes of each individual, per second.
    pub attributes_per_s: f32,
    /// The share of its players that receive packets and hold a mirror.
    pub client_share: f32,
    /// Messages that each of its players sends, per second.
    pub messages_per_s: f32,
    /// Players that log out per second; they return a little later.
    pub churn_per_s: f32,
    /// Whether its players send moves as numbered inputs and receive their position with each.
    pub sends_inputs: bool,
    /// The admission class of its players on a full server, by the [`CrowdAuthenticator`](super::CrowdAuthenticator).
    pub admission_class: AdmissionClass,
    /// View caps of its players.
    pub caps: ViewCaps,
    /// The range at which its players see, in metres; `None` for the cells around them.
    pub view_range_m: Option<f32>,
}

impl CrowdSpec {
    /// A crowd that stands still.
    #[must_use]
    pub fn new(
        tag: impl Into<String>,
        kind: KindId,
        count: u32,
        scene: Entity,
        at: CrowdArea,
    ) -> Self {
        Self {
            tag: tag.into(),
            kind,
            count,
            scene,
            at,
            team: None,
            guild: None,
            party_size: 0,
            behaviour: Idle.into(),
            speed_m_s: 1.5,
            keep: false,
            attributes_per_s: 0.0,
            client_share: 0.0,
            messages_per_s: 10.0,
            churn_per_s: 0.0,
            sends_inputs: false,
            admission_class: AdmissionClass::Standard,
            caps: ViewCaps {
                players: 100,
                npcs: 50,
                things: 50,
            },
            view_range_m: None,
        }
    }
}

/// The number of tags for which a placement outside the area is logged.
pub(super) const PLACEMENT_WARNINGS_MAX: usize = 64;

/// The index of a crowd in [`Crowds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrowdId(pub u32);

/// The crowd of an individual.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_scenario::crowd::{CrowdId, CrowdMember};
///
/// fn count(members: Query<&CrowdMember>) {
///     let first = members.iter().filter(|member| member.0 == CrowdId(0));
///     println!("{} individuals of the first crowd", first.count());
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrowdMember(pub CrowdId);

/// All crowds, in the order of their creation.
#[derive(Resource, Debug, Default, MemoryUse)]
pub struct Crowds {
    #[memory(each)]
    pub(super) crowds: Vec<CrowdState>,
    /// The tags of crowds whose placement outside their area was logged, up to [`PLACEMENT_WARNINGS_MAX`].
    #[memory(skip)]
    pub(super) misplaced: BTreeSet<String>,
    /// The tick after which all activity stopped, see [`halt_crowds`].
    pub(super) halted_tick: Option<u64>,
}

/// A crowd and its living members.
#[derive(Debug, MemoryUse)]
pub(super) struct CrowdState {
    #[memory(skip)]
    pub spec: CrowdSpec,
    pub members: Vec<Entity>,
    /// Members that were placed outside the area, and how far the farthest is from it, in metres.
    pub outside: (u32, f32),
    /// Pending attribute changes; below 1 after each tick.
    pub pending_attribute_changes: f64,
}

impl Crowds {
    /// Whether all activity has stopped.
    pub(super) const fn is_halted(&self) -> bool {
        self.halted_tick.is_some()
    }

    /// The crowds of a tag.
    pub fn with_tag(&self, tag: &str) -> impl Iterator<Item = CrowdId> {
        let tagged = self
            .crowds
            .iter()
            .enumerate()
            .filter(move |(_, crowd)| crowd.spec.tag == tag);
        tagged.map(|(place, _)| CrowdId(place as u32))
    }

    /// The definition of a crowd.
    #[must_use]
    pub fn spec(&self, id: CrowdId) -> Option<&CrowdSpec> {
        self.crowds.get(id.0 as usize).map(|crowd| &crowd.spec)
    }
}

/// A generator for one individual at one time. It depends on the seed, the individual and the time only.
pub(super) fn individual_random(seed: u64, purpose: u64, who: u64, when: u64) -> Pcg64Mcg {
    let mut hasher = StateHasher::default();
    [seed, purpose, who, when]
        .into_iter()
        .for_each(|word| hasher.write_u64(word));
    Pcg64Mcg::seed_from_u64(hasher.finish_u64())
}

impl CrowdSpec {
    fn hash(&self, world: &World, hasher: &mut StateHasher) {
        let scene = world.get::<SimScene>(self.scene);
        let team = self.team.map(|team| team.0);
        let guild = self.guild.map(|guild| guild.0);
        for word in [
            u64::from(self.kind.0),
            u64::from(self.count),
            scene.map_or(u64::MAX, |scene| u64::from(scene.id().0)),
            team.map_or(u64::MAX, u64::from),
            guild.map_or(u64::MAX, u64::from),
            u64::from(self.party_size),
            u64::from(self.keep) << 8
                | (self.admission_class as u64) << 1
                | u64::from(self.sends_inputs),
            u64::from(self.caps.players),
            u64::from(self.caps.npcs),
            u64::from(self.caps.things),
        ] {
            hasher.write_u64(word);
        }
        for float in [
            self.speed_m_s,
            self.attributes_per_s,
            self.client_share,
            self.messages_per_s,
            self.churn_per_s,
        ] {
            hasher.write_f32(float);
        }
        if let Some(range_m) = self.view_range_m {
            hasher.write_f32(range_m);
        }
        self.at.hash(hasher);
        self.behaviour.hash(hasher);
    }
}

impl Crowds {
    /// Adds to the state hash what determines later members and the targets of activity: members are drawn by their index in the
    /// list.
    pub(super) fn hash(&self, world: &World, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.is_halted()));
        for crowd in &self.crowds {
            crowd.spec.hash(world, hasher);
            hasher.write_u64(crowd.pending_attribute_changes.to_bits());
            hasher.write_u64(crowd.members.len() as u64);
            for &member in &crowd.members {
                let object = world.get::<Object>(member);
                hasher.write_u64(object.map_or(u64::MAX, Object::key));
            }
        }
    }
}

/// Stops individuals for good: no decisions, logouts or attribute changes, no messages but those that complete a login, and walkers
/// stop. Players whose return is due log in, later ones stay away. Call it again while searches are pending. Queued parties are
/// not individuals, and go on.
pub fn halt_crowds(world: &mut World) {
    let tick = world.resource::<SimTick>().0;
    world
        .resource_mut::<Crowds>()
        .halted_tick
        .get_or_insert(tick);
    let mut paths = world.query::<&mut NavPath>();
    paths.iter_mut(world).for_each(|mut path| path.clear());
}

#[cfg(test)]
mod tests {
    use glam::Vec2;

    use super::*;
    use crate::crowd::behaviour::Wander;
    use crate::crowd::commands::{despawn_some, members, set_behaviour_of};
    use crate::crowd::spawn::add_crowd;
    use crate::testing::TestServer;
    use throng::map::TileMap;
    use throng::world::ObjectKinds;

    fn server(count: u32) -> TestServer {
        let map = TileMap::new(40, 40, false).unwrap();
        let mut server = TestServer::builder().map(map, 0.5).build();
        let kind = server.stats::<ObjectKinds>().find("npc").unwrap();
        let (scene, at) = (server.scene().unwrap(), CrowdArea::Point(Vec2::splat(5.0)));
        let spec = CrowdSpec::new("crowd", kind, count, scene, at);
        add_crowd(server.world_mut(), spec).unwrap();
        server
    }

    #[test]
    fn crowd_specs_are_in_the_state_hash() {
        let mut server = server(0);
        let before = server.state_hash();
        set_behaviour_of(
            server.world_mut(),
            "crowd",
            &Wander { radius_m: 5.0 }.into(),
        );
        assert_ne!(server.state_hash(), before);
    }

    #[test]
    fn halted_crowds_are_in_the_state_hash() {
        let mut server = server(0);
        let before = server.state_hash();
        halt_crowds(server.world_mut());
        assert_ne!(server.state_hash(), before);
    }

    #[test]
    fn order_of_members_is_in_the_state_hash() {
        // Activity draws a member by its index in the list.
        let mut server = server(3);
        let before = server.state_hash();
        server.world_mut().resource_mut::<Crowds>().crowds[0]
            .members
            .swap(0, 2);
        assert_ne!(server.state_hash(), before);
        let all = members(server.world(), "crowd", None);
        despawn_some(server.world_mut(), &all);
        assert_eq!(members(server.world(), "crowd", None), []);
    }
}
