//! Crowds, and who belongs to them.

use bevy_ecs::prelude::*;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::behaviour::{Behaviour, Idle};
use super::place::CrowdArea;
use crate::aoi::ViewCaps;
use crate::nav::Path;
use crate::sim::StateHasher;
use crate::world::{GuildId, KindId, TeamId};

/// Ticks after which an individual looks whether it has arrived, or sees somebody.
pub(super) const LOOK_TICKS: u64 = 10;

/// Seconds over which a new crowd begins to move.
pub(super) const STAGGER_S: f64 = 10.0;

/// What a crowd is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct CrowdSpec {
    /// What scripts call it; several crowds may share a tag.
    pub tag: String,
    /// The kind of its individuals; of class `Player`, each is a synthetic player with a session.
    pub kind: KindId,
    /// How many.
    pub count: u32,
    /// The scene's entity.
    pub scene: Entity,
    /// Where they appear.
    pub at: CrowdArea,
    /// Their team.
    pub team: Option<TeamId>,
    /// Their guild.
    pub guild: Option<GuildId>,
    /// Players a party, up to five; 0 and 1 make none.
    pub party_size: u8,
    /// What they do.
    pub behaviour: Behaviour,
    /// How fast they walk, in metres a second.
    pub speed_m_s: f32,
    /// How often each of them changes an attribute, a second.
    pub attributes_per_s: f32,
    /// The share of its players that receive packets and hold a mirror.
    pub clients: f32,
    /// How many messages each of its players sends, a second.
    pub messages_per_s: f32,
    /// How many of its players log out a second, to come back a little later.
    pub churn_per_s: f32,
    /// How many its players see.
    pub caps: ViewCaps,
}

impl CrowdSpec {
    /// A crowd that stands about.
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
            attributes_per_s: 0.0,
            clients: 0.0,
            messages_per_s: 10.0,
            churn_per_s: 0.0,
            caps: ViewCaps {
                players: 100,
                npcs: 50,
                things: 50,
            },
        }
    }
}

/// The place of a crowd in [`Crowds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrowdId(pub u32);

/// Which crowd an individual belongs to.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member(pub CrowdId);

/// All crowds, in the order in which they came.
#[derive(Resource, Debug, Default)]
pub struct Crowds {
    pub(super) all: Vec<CrowdState>,
    /// Nobody does anything any more, see [`rest`].
    pub(super) resting: bool,
}

/// A crowd and those of it who live.
#[derive(Debug)]
pub(super) struct CrowdState {
    pub spec: CrowdSpec,
    pub members: Vec<Entity>,
    /// Changes of attributes that are due; below 1 after each tick.
    pub activity_due: f64,
}

impl Crowds {
    /// The crowds of a tag.
    pub fn tagged(&self, tag: &str) -> impl Iterator<Item = CrowdId> {
        let tagged = self
            .all
            .iter()
            .enumerate()
            .filter(move |(_, crowd)| crowd.spec.tag == tag);
        tagged.map(|(place, _)| CrowdId(place as u32))
    }

    /// What a crowd is made of.
    #[must_use]
    pub fn spec(&self, id: CrowdId) -> Option<&CrowdSpec> {
        self.all.get(id.0 as usize).map(|crowd| &crowd.spec)
    }
}

/// A generator for one individual at one time: depends on the seed, the individual and the time, and on nothing else.
pub(super) fn individual_random(seed: u64, purpose: u64, who: u64, when: u64) -> Pcg64Mcg {
    let mut hasher = StateHasher::default();
    [seed, purpose, who, when]
        .into_iter()
        .for_each(|word| hasher.write_u64(word));
    Pcg64Mcg::seed_from_u64(hasher.finish_u64())
}

/// Brings individuals to rest, for good: nobody thinks, sends, comes, goes or changes, and whoever walks stops. Call it again
/// while searches are waiting. Parties that queue are not individuals, and go on.
pub fn rest(world: &mut World) {
    world.resource_mut::<Crowds>().resting = true;
    let mut paths = world.query::<&mut Path>();
    paths.iter_mut(world).for_each(|mut path| path.clear());
}
