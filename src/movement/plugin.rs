//! The movement plugin.
//!
//! | file | contents |
//! |---|---|
//! | `settings`, `stats` | [`MovementSettings`], [`MovementStats`] |
//! | `components` | [`MaxSpeed`], [`Walker`], [`LastMove`]: components of objects that move |
//! | `ground_cache` | the grounds of scenes |
//! | `change_ticks` | distinguishes movement's own changes of positions from others |
//! | `push`, `players`, `walkers`, `attach` | the systems, in run order |

mod attach;
mod change_ticks;
mod components;
mod ground_cache;
mod players;
mod push;
mod settings;
mod stats;
mod walkers;

pub use attach::AttachedTo;
pub use components::{LastMove, MaxSpeed, Walker};
pub use players::MoveRefused;
pub use settings::MovementSettings;
pub use stats::MovementStats;
pub use walkers::WalkerArrived;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;

use self::attach::{has_attached, hash_attached, update_attached};
use self::change_ticks::{MovementChangeTicks, separate_system_tick};
use self::players::{move_players, stop_idle_players};
use self::push::push_off_blocked;
use self::walkers::move_walkers;
use crate::memory::MemoryAppExt;
use crate::nav::{NavPlugin, NavSystems};
use crate::sim::{HashAppExt, SimSystems};
use crate::world::{Npc, ObjectHashAppExt, Player};

/// Moves NPCs along their paths, and players by their validated inputs.
///
/// An object with [`Walker`] follows its [`NavPath`](crate::nav::NavPath). An object with [`MaxSpeed`] is moved by the
/// [`MoveInput`](crate::world::MoveInput)s of its client, within its speed and around obstacles; other moves are refused with
/// [`MoveRefused`]. Leave the plugin out, or do not insert these components, to move objects yourself by writing
/// [`Position`](crate::world::Position).
///
/// The systems are the sets of [`MovementSystems`], in [`SimSystems::Move`]. [`MovementSettings`] has the tolerances. Cost:
/// O(walkers + moves). Adds [`NavPlugin`] when it is missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct MovementPlugin;

crate::sim::sim_plugin!(MovementPlugin, NavPlugin);

impl MovementPlugin {
    fn add_to(app: &mut App) {
        use MovementSystems::{Attach, Players, Push, StopIdle, Walkers};
        #[cfg(feature = "reflect")]
        app.register_type::<MaxSpeed>()
            .register_type::<Walker>()
            .register_type::<MovementSettings>()
            .register_type::<MovementStats>();
        app.register_required_components_with::<Player, MaxSpeed>(|| MaxSpeed::WALK);
        app.register_required_components_with::<Npc, MaxSpeed>(|| MaxSpeed::WALK);
        app.register_required_components::<Npc, Walker>();
        app.init_resource::<MovementSettings>()
            .init_resource::<MovementStats>()
            .init_resource::<MovementChangeTicks>()
            .add_counted_message::<WalkerArrived>("movement")
            .add_counted_message::<MoveRefused>("movement")
            .configure_sets(
                FixedUpdate,
                (Push, Players, Walkers, StopIdle, Attach)
                    .chain()
                    .after(NavSystems::ClearStale)
                    .in_set(SimSystems::Move),
            )
            .add_systems(
                FixedUpdate,
                (
                    push_off_blocked.in_set(Push),
                    separate_system_tick.pipe(move_players).in_set(Players),
                    separate_system_tick.pipe(move_walkers).in_set(Walkers),
                    stop_idle_players.in_set(StopIdle),
                    update_attached.in_set(Attach).run_if(has_attached),
                ),
            )
            .hash_component::<MaxSpeed>("speed")
            .hash_component::<Walker>("walker")
            .hash_component::<LastMove>("last_move")
            .hash_part("followers", hash_attached);
    }
}

/// The steps within [`SimSystems::Move`], in this order.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MovementSystems {
    /// Objects on a blocked tile are moved to a free one.
    Push,
    /// Players' moves are checked and applied.
    Players,
    /// Walkers follow their paths.
    Walkers,
    /// Players without moves for some time stand still.
    StopIdle,
    /// Objects with [`AttachedTo`] are moved to their target.
    Attach,
}
