//! Commands for objects: `commands.entity(player).teleport(to)`.

use bevy_ecs::prelude::*;
use glam::Vec2;
use throng_core::ids::{PartyId, PlayerId};
use tracing::warn;

use super::error::PartyError;
use super::objects::{change_scene, teleport};
use super::parties::{join_party, leave_party};

/// Commands for an object. They are applied with the other commands of the system. A command that fails changes nothing and
/// logs a warning with the entity and the error. It never panics, even if the entity was despawned in the meantime.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use glam::Vec2;
/// use throng::prelude::*;
///
/// #[derive(Component)]
/// struct UsesPortal {
///     to_scene: Entity,
///     at: Vec2,
/// }
///
/// fn use_portals(travellers: Query<(Entity, &UsesPortal)>, mut commands: Commands) {
///     for (entity, portal) in &travellers {
///         commands
///             .entity(entity)
///             .change_scene(portal.to_scene, portal.at)
///             .remove::<UsesPortal>();
///     }
/// }
/// ```
pub trait ObjectEntityCommandsExt {
    /// Moves the object to another position in its scene, at rest, as the function [`teleport`](super::teleport) does.
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// # use glam::Vec2;
    /// # use throng::prelude::*;
    /// # fn f(mut commands: Commands, player: Entity) {
    /// commands.entity(player).teleport(Vec2::new(10.0, 20.0));
    /// # }
    /// ```
    fn teleport(&mut self, to: Vec2) -> &mut Self;

    /// Moves the object to another scene, as the function [`change_scene`](super::change_scene) does.
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// # use glam::Vec2;
    /// # use throng::prelude::*;
    /// # fn f(mut commands: Commands, player: Entity, dungeon: Entity) {
    /// commands.entity(player).change_scene(dungeon, Vec2::new(10.0, 20.0));
    /// # }
    /// ```
    fn change_scene(&mut self, scene: Entity, at: Vec2) -> &mut Self;

    /// Adds the player of this entity to a party, as the function [`join_party`](super::join_party) does. It fails when the
    /// entity has no [`PlayerId`].
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// # use throng::prelude::*;
    /// # use throng::world::Parties;
    /// # fn f(mut commands: Commands, mut parties: ResMut<Parties>, leader: Entity, friend: Entity) -> Result {
    /// let party = parties.create()?;
    /// commands.entity(leader).join_party(party);
    /// commands.entity(friend).join_party(party);
    /// # Ok(())
    /// # }
    /// ```
    fn join_party(&mut self, party: PartyId) -> &mut Self;

    /// Removes the player of this entity from its party, as the function [`leave_party`](super::leave_party) does. It does nothing
    /// when the player is in no party. It fails when the entity has no [`PlayerId`].
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// # use throng::prelude::*;
    /// # fn f(mut commands: Commands, player: Entity) {
    /// commands.entity(player).leave_party();
    /// # }
    /// ```
    fn leave_party(&mut self) -> &mut Self;
}

impl ObjectEntityCommandsExt for EntityCommands<'_> {
    fn teleport(&mut self, to: Vec2) -> &mut Self {
        let entity = self.id();
        self.commands_mut().queue(move |world: &mut World| {
            if let Err(error) = teleport(world, entity, to) {
                warn!(%entity, %error, "teleport failed");
            }
        });
        self
    }

    fn change_scene(&mut self, scene: Entity, at: Vec2) -> &mut Self {
        let entity = self.id();
        self.commands_mut().queue(move |world: &mut World| {
            if let Err(error) = change_scene(world, entity, scene, at) {
                warn!(%entity, %scene, %error, "scene change failed");
            }
        });
        self
    }

    fn join_party(&mut self, party: PartyId) -> &mut Self {
        let entity = self.id();
        self.commands_mut().queue(move |world: &mut World| {
            let player = player_of(world, entity);
            if let Err(error) = player.and_then(|player| join_party(world, party, player)) {
                warn!(%entity, party = party.0, %error, "party not joined");
            }
        });
        self
    }

    fn leave_party(&mut self) -> &mut Self {
        let entity = self.id();
        self.commands_mut()
            .queue(move |world: &mut World| match player_of(world, entity) {
                Ok(player) => drop(leave_party(world, player)),
                Err(error) => warn!(%entity, %error, "party not left"),
            });
        self
    }
}

fn player_of(world: &World, entity: Entity) -> Result<PlayerId, PartyError> {
    let player = world.get::<PlayerId>(entity).copied();
    player.ok_or(PartyError::NoPlayer { entity })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::logged_warnings;
    use crate::world::{
        KindId, Object, Parties, Position, SceneSpec, WorldPlugin, open_scene, spawn_object,
    };
    use bevy_app::App;

    const AT: Vec2 = Vec2::splat(10.0);

    fn app() -> (App, [Entity; 2], Entity) {
        let mut app = App::new();
        app.add_plugins((bevy_time::TimePlugin, WorldPlugin));
        let world = app.world_mut();
        let scenes = [(); 2].map(|()| open_scene(world, SceneSpec::default(), ()).unwrap());
        let player = PlayerId(7);
        let entity = spawn_object(world, scenes[0], KindId::PLAYER, Vec2::ONE, player).unwrap();
        (app, scenes, entity)
    }

    fn place(app: &App, entity: Entity) -> (Entity, Vec2) {
        let object = app.world().get::<Object>(entity).unwrap();
        let position = app.world().get::<Position>(entity).unwrap();
        (object.scene_entity(), position.0)
    }

    #[test]
    fn chained_commands_move_an_object_in_their_order() {
        let (mut app, [here, there], entity) = app();
        let warnings = logged_warnings(|| {
            let mut commands = app.world_mut().commands();
            commands.entity(entity).teleport(AT);
            app.world_mut().flush();
            assert_eq!(place(&app, entity), (here, AT));
            let mut commands = app.world_mut().commands();
            let mut commands = commands.entity(entity);
            commands
                .teleport(AT)
                .change_scene(there, AT)
                .teleport(Vec2::ZERO);
            app.world_mut().flush();
        });
        assert_eq!(place(&app, entity), (there, Vec2::ZERO));
        assert_eq!(warnings, [""; 0]);
    }

    #[test]
    fn party_commands_use_the_player_of_the_entity() {
        let (mut app, _, entity) = app();
        let party = app.world_mut().resource_mut::<Parties>().create().unwrap();
        app.world_mut().commands().entity(entity).join_party(party);
        app.world_mut().flush();
        assert_eq!(app.world().get::<PartyId>(entity), Some(&party));
        let warnings = logged_warnings(|| {
            let mut commands = app.world_mut().commands();
            commands.entity(entity).leave_party().leave_party();
            app.world_mut().flush();
        });
        assert_eq!(app.world().get::<PartyId>(entity), None);
        assert_eq!(
            warnings, [""; 0],
            "a player without a party has nothing to leave"
        );
    }

    #[test]
    fn failed_commands_are_logged_and_change_nothing() {
        let (mut app, [here, _], entity) = app();
        let gone = app.world_mut().spawn_empty().id();
        app.world_mut().despawn(gone);
        let warnings = logged_warnings(|| {
            let mut commands = app.world_mut().commands();
            let mut object = commands.entity(entity);
            object
                .teleport(-AT)
                .change_scene(entity, AT)
                .join_party(PartyId(9));
            let mut nothing = commands.entity(gone);
            nothing.teleport(AT).change_scene(here, AT).leave_party();
            app.world_mut().flush();
        });
        assert_eq!(place(&app, entity), (here, Vec2::ONE));
        let starts = warnings
            .iter()
            .map(|warning| warning.split(';').next().unwrap());
        let messages = [
            "teleport failed",
            "scene change failed",
            "party not joined",
            "teleport failed",
            "scene change failed",
            "party not left",
        ];
        assert!(starts.eq(messages), "{warnings:?}");
        for (warning, entity) in warnings.iter().zip([[entity; 3], [gone; 3]].as_flattened()) {
            assert!(warning.contains(&format!("; entity={entity}")), "{warning}");
            assert!(warning.contains("; error="), "{warning}");
        }
    }
}
