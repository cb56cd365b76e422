//! The order of a tick and its heartbeat.

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleLabel;
use bevy_ecs::schedule::SingleThreadedExecutor;
use serde::{Deserialize, Serialize};
use throng_core::Variants;
use throng_core::hash::StateHashed;

use super::governor;
use super::{HashAppExt, RandomStreams, Workers};

/// The steps of a tick, in order, all within [`FixedUpdate`].
///
/// `First` and `Last` are hooks for embedders. This crate has no systems in `First`, and in `Last` those that despawn the entities of ended sessions
/// and warn of stalled ones.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Variants)]
pub enum SimSystems {
    /// Empty by default: before anything else of the tick.
    #[serde(skip)]
    First,
    /// Inbound messages are drained; sessions open, resume and close.
    Ingest,
    /// Scripts and behaviours decide goals.
    Think,
    /// Path requests are processed.
    Navigate,
    /// Walkers follow their paths; players' moves are checked and applied.
    Move,
    /// Positions become cells of the interest grid.
    Locate,
    /// View lists are updated from the cells.
    View,
    /// The [`Heartbeat`] schedule, and per-object work phased over its ticks.
    Heartbeat,
    /// Changes are collected, and the changes for each client are listed.
    Replicate,
    /// Packets are passed to the sink or the sender threads.
    Send,
    /// After everything else of the tick.
    #[serde(skip)]
    Last,
}

impl SimSystems {
    /// All but `First` and `Last`.
    pub const STEPS: &'static [Self] = Self::ALL.split_at(10).0.split_at(1).1;
}

/// Observers of the tick: runs after [`SimSystems::Last`] and after all timings were taken.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AfterTick;

/// Runs every [`SimSettings::heartbeat_ticks`] ticks, within [`SimSystems::Heartbeat`].
#[derive(ScheduleLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heartbeat;

/// The steps of a heartbeat, in this order.
///
/// The sets are in the [`Heartbeat`] schedule. For an embedder's per-object work that is spread over the ticks of the
/// heartbeat, they are also in [`FixedUpdate`] after it: a system there handles the objects whose id falls on
/// [`HeartbeatPhase`]. Work that runs in every tick is not part of it.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeartbeatSystems {
    /// Matches are formed from waiting parties.
    Match,
    /// Data that is collected once per heartbeat, after the matches; empty by default. Replication is not part of it: it collects
    /// changed attributes in every tick, those of the heartbeat's cadence phased by object, within [`SimSystems::Replicate`].
    Collect,
}

/// Settings of the tick that do not belong to a plugin.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::sim::SimSettings;
///
/// // At 20 Hz, matches are formed once a second.
/// app.insert_resource(SimSettings { heartbeat_ticks: 20, ..SimSettings::default() });
/// ```
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct SimSettings {
    /// Ticks from one [`Heartbeat`] to the next; 0 counts as 1.
    pub heartbeat_ticks: u32,
}

impl Default for SimSettings {
    fn default() -> Self {
        Self {
            heartbeat_ticks: 10,
        }
    }
}

/// The number of the tick that is running, or ran last; the first is 1.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SimTick(pub u64);

/// The share of objects that the phased heartbeat work of this tick covers: those with `id % period == phase`.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatPhase {
    /// From 0 to `period - 1`, one step per tick.
    pub phase: u32,
    /// Ticks per heartbeat.
    pub period: u32,
}

impl Default for HeartbeatPhase {
    fn default() -> Self {
        Self {
            phase: 0,
            period: 1,
        }
    }
}

impl HeartbeatPhase {
    /// Whether this tick covers the object with this id.
    #[must_use]
    pub const fn covers(self, id: u32) -> bool {
        id % self.period == self.phase
    }
}

/// Runs the systems of a tick and of the heartbeat one after the other, on the thread that updates the app.
///
/// The sets are a chain, and parallel work is inside the systems, which distribute it over the [`Workers`](super::Workers)
/// themselves. Bevy's executor then mostly moves a system to another thread, whose caches are cold: without it, the replication
/// of `throng bench sync` went from 15.5 to 11.4 ns per link and tick. Not for an app with systems of its own that should run
/// in parallel with those of the tick.
pub fn single_threaded(app: &mut App) {
    fn set(schedule: &mut Schedule) {
        schedule.set_executor(SingleThreadedExecutor::new());
    }
    app.edit_schedule(FixedUpdate, set)
        .edit_schedule(Heartbeat, set);
}

/// Installs the sets, the heartbeat and what all systems share. Idempotent: only the first call has an effect.
///
/// Adds no Bevy plugin: the app adds `TimePlugin`, and `TaskPoolPlugin` if work should run on several threads.
pub fn install_tick(app: &mut App) {
    if app.world().contains_resource::<SimTick>() {
        return;
    }
    #[cfg(feature = "reflect")]
    app.register_type::<SimSettings>();
    app.init_resource::<SimTick>()
        .init_resource::<SimSettings>()
        .init_resource::<HeartbeatPhase>()
        .init_resource::<RandomStreams>()
        .init_resource::<Workers>()
        .init_schedule(Heartbeat)
        .configure_sets(FixedUpdate, {
            use SimSystems::*;
            (
                First, Ingest, Think, Navigate, Move, Locate, View, Heartbeat, Replicate, Send,
                Last,
            )
                .chain()
        })
        .configure_sets(FixedUpdate, AfterTick.after(SimSystems::Last))
        .configure_sets(
            self::Heartbeat,
            (HeartbeatSystems::Match, HeartbeatSystems::Collect).chain(),
        )
        .configure_sets(
            FixedUpdate,
            (HeartbeatSystems::Match, HeartbeatSystems::Collect)
                .chain()
                .after(run_heartbeat)
                .in_set(SimSystems::Heartbeat),
        )
        .add_systems(
            FixedUpdate,
            (
                (advance_tick, governor::update_overload)
                    .chain()
                    .before(SimSystems::First),
                governor::stop_clock
                    .after(SimSystems::Last)
                    .before(AfterTick),
                run_heartbeat.in_set(SimSystems::Heartbeat),
            ),
        )
        .hash_part("tick", |world, hasher| {
            hasher.write_u64(world.resource::<SimTick>().0)
        })
        .hash_part("random", |world, hasher| {
            world.resource::<RandomStreams>().hash(hasher)
        });
    #[cfg(feature = "trace")]
    super::trace::install(app, &SimSystems::ALL.map(|set| (set, set.name())));
    governor::install(app);
}

fn advance_tick(
    mut tick: ResMut<SimTick>,
    mut phase: ResMut<HeartbeatPhase>,
    settings: Res<SimSettings>,
) {
    tick.0 += 1;
    phase.period = settings.heartbeat_ticks.max(1);
    phase.phase = (tick.0 % u64::from(phase.period)) as u32;
}

fn run_heartbeat(world: &mut World) {
    if world.resource::<HeartbeatPhase>().phase == 0 {
        world.run_schedule(Heartbeat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{SimPlugin, clock};

    #[derive(Resource, Default)]
    struct SetsSeen(Vec<(u64, &'static str)>);

    fn record(name: &'static str) -> impl FnMut(ResMut<SetsSeen>, Res<SimTick>) {
        move |mut seen, tick| seen.0.push((tick.0, name))
    }

    fn app() -> App {
        let mut app = App::new();
        app.add_plugins((
            bevy_time::TimePlugin,
            SimPlugin {
                tick_hz: Some(20.0),
            },
        ))
        .init_resource::<SetsSeen>();
        clock::one_tick_per_update(&mut app);
        app
    }

    #[test]
    fn sets_run_in_order_every_tick() {
        let mut app = app();
        for set in SimSystems::ALL.into_iter().rev() {
            app.add_systems(FixedUpdate, record(set.name()).in_set(set));
        }
        app.update();
        app.update();
        let expected: Vec<_> = (1..=2)
            .flat_map(|tick| SimSystems::ALL.map(|set| (tick, set.name())))
            .collect();
        assert_eq!(app.world().resource::<SetsSeen>().0, expected);
    }

    #[test]
    fn heartbeat_runs_every_n_ticks() {
        let mut app = app();
        app.insert_resource(SimSettings { heartbeat_ticks: 3 });
        app.add_systems(Heartbeat, record("beat").in_set(HeartbeatSystems::Match));
        (0..7).for_each(|_| app.update());
        assert_eq!(
            app.world().resource::<SetsSeen>().0,
            [(3, "beat"), (6, "beat")]
        );
    }

    #[test]
    fn installing_twice_changes_nothing() {
        let mut app = app();
        install_tick(&mut app);
        app.add_systems(Heartbeat, record("beat"));
        (0..10).for_each(|_| app.update());
        assert_eq!(app.world().resource::<SimTick>().0, 10);
        assert_eq!(app.world().resource::<SetsSeen>().0, [(10, "beat")]);
    }

    #[test]
    fn objects_are_covered_once_per_heartbeat() {
        let turns = |id| {
            (0..10)
                .filter(|&phase| HeartbeatPhase { phase, period: 10 }.covers(id))
                .count()
        };
        assert!((0..100).all(|id| turns(id) == 1));
    }
}
