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
    /// The name is already in use.
    #[error("audience `{0}` is already registered")]
    Taken(&'static str),
    /// The maximum number of audiences is reached.
    #[error("audience `{0}` not registered: limit of {AUDIENCES_MAX} custom audiences reached")]
    TooMany(&'static str),
}

/// Registers custom audiences with an app.
pub trait AudienceAppExt {
    /// Creates an audience from a component: `membership` returns the membership of an object that has it. Attributes
    /// with this audience ([`AttributeSpec::to`](crate::sync::AttributeSpec::to)) reach those clients of it that see the object.
    ///
    /// An object without the component is in no circle. Writes through `&mut C`, insertions and removals are found by
    /// change detection and take effect in the same tick; a client keeps the values that it received before it left. Costs a test of
    /// every object with the component, each tick; nothing if no audience is registered.
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
    /// // All members publish, and only leaders receive.
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

/// Returns the membership of an entity.
type MembershipOf = Arc<dyn Fn(EntityRef) -> Membership + Send + Sync>;

/// The registered audiences, in their order.
#[derive(Resource, Clone, Default)]
pub(super) struct Audiences(Vec<(&'static str, MembershipOf)>);

impl Audiences {
    /// The memberships of an entity in all audiences, by its components.
    pub fn memberships(&self, entity: EntityRef) -> Memberships {
        let mut memberships = Memberships::default();
        for (membership, (_, of)) in memberships.iter_mut().zip(&self.0) {
            *membership = of(entity);
        }
        memberships
    }
}

/// The component with the membership of an entity in an audience changed.
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
        // Each marks entities for a check, and the order has no effect.
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

/// Updates the memberships of objects that are new or may have changed.
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
