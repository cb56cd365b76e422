//! Custom audiences: registration, and updates of their members.

use std::sync::Arc;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use thiserror::Error;

use super::attributes::Attributes;
use super::audience::Audience;
use super::order::SyncSystems;
use super::replicator::Replicator;
use super::unseen::update_affiliations;
use super::views::update_client_views;
use crate::sync::membership::{AUDIENCES_MAX, Membership, Memberships};
use crate::world::{Object, ObjectSpawned};

/// Why an audience cannot be registered.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AudienceError {
    /// The name is another's.
    #[error("audience `{0}` is already registered")]
    Taken(&'static str),
    /// There are as many as there may be.
    #[error("audience `{0}` not registered: limit of {AUDIENCES_MAX} custom audiences reached")]
    TooMany(&'static str),
}

/// Registers audiences of an embedder's own with an app.
pub trait AudienceAppExt {
    /// Makes an audience out of a component: `membership` says what an object that has it tells and learns. Attributes that
    /// are told to it ([`AttributeSpec::to`](crate::sync::AttributeSpec::to)) reach those clients of it that see the object.
    ///
    /// An object without the component is in no circle. Writes through `&mut C`, insertions and removals are found by
    /// change detection and take effect in the same tick; what a client learnt before it left, it keeps. Costs a look at
    /// every object that has the component, each tick; without any audience registered, nothing.
    ///
    /// ```
    /// # use bevy_app::App;
    /// # use bevy_ecs::prelude::*;
    /// # use throng::sync::*;
    /// # use throng::wire::Encoding;
    /// #[derive(Component)]
    /// struct Raid {
    ///     number: u32,
    ///     leads: bool,
    /// }
    /// #[derive(Component)]
    /// struct Threat(u32);
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut app = App::new();
    /// app.add_plugins((bevy_time::TimePlugin, SyncPlugin));
    /// // Members tell of themselves, and only those who lead learn it.
    /// let leaders = app.register_audience("raid leaders", |raid: &Raid| Membership {
    ///     publishes: Some(raid.number),
    ///     subscribes: raid.leads.then_some(raid.number),
    /// })?;
    /// let threat = AttributeSpec::new("threat", 40, Encoding::Varint).to(leaders);
    /// app.replicate_field(threat, |threat: &Threat| threat.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AudienceError`]; nothing is registered then.
    fn register_audience<C: Component>(
        &mut self,
        name: &'static str,
        membership: impl Fn(&C) -> Membership + Send + Sync + 'static,
    ) -> Result<Audience, AudienceError>;
}

/// What of an entity says its membership.
type MembershipOf = Arc<dyn Fn(EntityRef) -> Membership + Send + Sync>;

/// The registered audiences, in their order.
#[derive(Resource, Clone, Default)]
pub(super) struct Audiences(Vec<(&'static str, MembershipOf)>);

impl Audiences {
    /// What an entity is in each of them, by its components.
    pub fn memberships(&self, entity: EntityRef) -> Memberships {
        let mut memberships = Memberships::default();
        for (membership, (_, of)) in memberships.iter_mut().zip(&self.0) {
            *membership = of(entity);
        }
        memberships
    }
}

/// The component that says what an entity is in an audience changed.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MembershipChanged {
    entity: Entity,
}

impl AudienceAppExt for App {
    fn register_audience<C: Component>(
        &mut self,
        name: &'static str,
        membership: impl Fn(&C) -> Membership + Send + Sync + 'static,
    ) -> Result<Audience, AudienceError> {
        let mut audiences = self.world_mut().get_resource_or_init::<Audiences>();
        let nth = audiences.0.len();
        if audiences.0.iter().any(|&(other, _)| other == name) {
            return Err(AudienceError::Taken(name));
        }
        if nth == AUDIENCES_MAX {
            return Err(AudienceError::TooMany(name));
        }
        let of = move |entity: EntityRef| entity.get::<C>().map_or(Membership::NONE, &membership);
        audiences.0.push((name, Arc::new(of)));
        let mut attributes = self.world_mut().get_resource_or_init::<Attributes>();
        attributes.add_audience();
        if nth == 0 {
            self.add_message::<MembershipChanged>().add_systems(
                FixedUpdate,
                update_memberships
                    .in_set(SyncSystems::UpdateClients)
                    .after(update_affiliations)
                    .before(update_client_views),
            );
        }
        // Each says of entities that they are to be looked at, and the order of that cannot show.
        let mark = mark_members::<C>
            .in_set(SyncSystems::Mark)
            .ambiguous_with(SyncSystems::Mark);
        self.add_systems(FixedUpdate, mark);
        Ok(Audience::custom(nth))
    }
}

fn mark_members<C: Component>(
    changed: Query<Entity, Changed<C>>,
    mut removed: RemovedComponents<C>,
    mut marked: MessageWriter<MembershipChanged>,
) {
    let entities = changed.iter().chain(removed.read());
    marked.write_batch(entities.map(|entity| MembershipChanged { entity }));
}

/// Takes over what objects are in audiences, of those that came and of those of which that may have changed.
#[expect(
    clippy::disallowed_methods,
    reason = "reads the world and writes buffers; runs no command or hook"
)]
fn update_memberships(
    world: &mut World,
    mut spawned: Local<MessageCursor<ObjectSpawned>>,
    mut changed: Local<MessageCursor<MembershipChanged>>,
    mut touched: Local<Vec<Entity>>,
) {
    touched.clear();
    let came = spawned.read(world.resource::<Messages<ObjectSpawned>>());
    touched.extend(came.map(|message| message.entity));
    let marked = changed.read(world.resource::<Messages<MembershipChanged>>());
    touched.extend(marked.map(|message| message.entity));
    world.resource_scope(|world, mut replicator: Mut<Replicator>| {
        let audiences = world.resource::<Audiences>();
        for &entity in &*touched {
            let Ok(entity) = world.get_entity(entity) else {
                continue;
            };
            let Some(object) = entity.get::<Object>() else {
                continue;
            };
            if let Some(records) = replicator.scenes.get_mut(&object.scene()) {
                records.set_memberships(object.id().0, audiences.memberships(entity));
            }
        }
    });
}
