//! Exceptions from view rules by commands: `commands.entity(thief).hide_from(guard)`.

use bevy_ecs::prelude::*;
use tracing::warn;

use super::exceptions::{ViewError, clear_view_exception, hide_from, show_to};

/// Commands that show an object to one viewer, or hide it from one. They are applied with the other commands of the system. A
/// command that fails changes nothing and logs a warning with the entity, the viewer and the error. It never panics, even if
/// one of the two entities was despawned in the meantime.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use throng::prelude::*;
///
/// #[derive(Message)]
/// struct PlayerBlocked {
///     player: Entity,
///     blocked: Entity,
/// }
///
/// fn hide_blocked(mut blocks: MessageReader<PlayerBlocked>, mut commands: Commands) {
///     for &PlayerBlocked { player, blocked } in blocks.read() {
///         commands.entity(blocked).hide_from(player);
///         commands.entity(player).hide_from(blocked);
///     }
/// }
/// ```
pub trait ViewEntityCommandsExt {
    /// Shows this object to a viewer, whatever the rules say, as the function [`show_to`](super::show_to) does.
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// # use throng::prelude::*;
    /// # fn f(mut commands: Commands, ghost: Entity, medium: Entity) {
    /// commands.entity(ghost).show_to(medium);
    /// # }
    /// ```
    fn show_to(&mut self, viewer: Entity) -> &mut Self;

    /// Hides this object from a viewer, whatever the rules say, as the function [`hide_from`](super::hide_from) does. It stays
    /// hidden when either of the two changes the scene.
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// # use throng::prelude::*;
    /// # fn f(mut commands: Commands, thief: Entity, guards: [Entity; 2]) {
    /// let [first, second] = guards;
    /// commands.entity(thief).hide_from(first).hide_from(second);
    /// # }
    /// ```
    fn hide_from(&mut self, viewer: Entity) -> &mut Self;

    /// Ends the exception of this object for a viewer, as the function [`clear_view_exception`](super::clear_view_exception) does:
    /// the rules apply again. Without an exception it does nothing.
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// # use throng::prelude::*;
    /// # fn f(mut commands: Commands, thief: Entity, guard: Entity) {
    /// commands.entity(thief).clear_view_exception(guard);
    /// # }
    /// ```
    fn clear_view_exception(&mut self, viewer: Entity) -> &mut Self;
}

impl ViewEntityCommandsExt for EntityCommands<'_> {
    fn show_to(&mut self, viewer: Entity) -> &mut Self {
        queue(self, viewer, show_to, "object not shown")
    }

    fn hide_from(&mut self, viewer: Entity) -> &mut Self {
        queue(self, viewer, hide_from, "object not hidden")
    }

    fn clear_view_exception(&mut self, viewer: Entity) -> &mut Self {
        let message = "view exception not cleared";
        queue(self, viewer, clear_view_exception, message)
    }
}

fn queue<'a, 'w>(
    commands: &'a mut EntityCommands<'w>,
    viewer: Entity,
    work: fn(&mut World, Entity, Entity) -> Result<(), ViewError>,
    message: &'static str,
) -> &'a mut EntityCommands<'w> {
    let entity = commands.id();
    commands.commands_mut().queue(move |world: &mut World| {
        if let Err(error) = work(world, entity, viewer) {
            warn!(%entity, %viewer, %error, "{message}");
        }
    });
    commands
}
