//! A server ready to run. The program, tests, benches and examples all build it, so that tests run the code that is deployed.
//!
//! ```text
//! Server::builder() ─▶ plugins, seed, rate, workers, pace ─▶ build() ─▶ step(n), run() ─▶ world(), state_hash()
//!                                                              │
//!                                  finish, clean up, one update is one tick
//! ```
//! Invariant: after [`ServerBuilder::build`] every step is exactly one tick, whatever the wall clock says. The number of
//! workers and the timing of sets never change a result. Nor does the pace, while ticks and background builds for maps finish
//! in time; [`OverloadSettings`](crate::sim::OverloadSettings) defines what a real-time server reduces when they do not. The
//! builder's caller opens scenes, spawns objects and sends data.
//!
//! ```
//! use throng::prelude::*;
//!
//! let mut server = Server::builder().seed(7).tick_hz(30.0).build();
//! server.world_mut().spawn(SceneSpec::default());
//! server.step(60);
//! assert_eq!(server.tick(), 60);
//! ```

use std::time::Duration;

use bevy_app::{
    App, AppExit, FixedPostUpdate, FixedPreUpdate, FixedUpdate, Plugins, TaskPoolOptions,
    TaskPoolPlugin,
};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{LogLevel, ScheduleBuildSettings, ScheduleLabel, SingleThreadedExecutor};
use bevy_time::{Fixed, Time, TimePlugin};

use crate::ThrongPlugins;
use crate::outbox::{Outbox, PacketSink};
use crate::sim::clock::{self, Pacer};
use crate::sim::{
    Heartbeat, LoadMeter, Overload, RandomStreams, SimTick, TICK_HZ_DEFAULT, TimingPlugin, Workers,
    state_hash,
};

/// A headless server that runs ticks on request.
pub struct Server {
    app: App,
    tick: Duration,
    pace: Pace,
    /// Keeps real time, from the first real-time tick on.
    pacer: Option<Pacer>,
}

/// How fast a server runs the requested ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// One after the other, without a pause: for tests, benches and scenarios.
    #[default]
    AsFastAsPossible,
    /// Each at its scheduled time. A server that is late catches up by [`clock::CATCH_UP_TICKS_MAX`] ticks at once and skips the
    /// rest; if ticks keep taking too long, it reduces its work according to [`OverloadSettings`](crate::sim::OverloadSettings).
    RealTime,
}

/// The builder of a [`Server`]; see [`Server::builder`].
pub struct ServerBuilder {
    seed: u64,
    tick_hz: f64,
    workers: usize,
    pace: Pace,
    use_clock: bool,
    is_strict: bool,
    plugins: Vec<AppChange>,
    configure: Vec<AppChange>,
}

type AppChange = Box<dyn FnOnce(&mut App)>;

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            seed: 1,
            tick_hz: TICK_HZ_DEFAULT,
            workers: 1,
            pace: Pace::default(),
            use_clock: false,
            is_strict: false,
            plugins: Vec::new(),
            configure: Vec::new(),
        }
    }
}

impl ServerBuilder {
    /// The seed of all randomness; 1 by default.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Ticks per second of simulated time; [`TICK_HZ_DEFAULT`] by default, which is 20. Must be finite and more than 0, or [`build`](Self::build) panics.
    #[must_use]
    pub const fn tick_hz(mut self, tick_hz: f64) -> Self {
        self.tick_hz = tick_hz;
        self
    }

    /// The number of threads for the work of a tick; 1 by default, and 0 counts as 1. Never changes a result. The first server of a
    /// process creates Bevy's task pools; later ones share them, whatever their number of workers is.
    #[must_use]
    pub const fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// How fast ticks follow each other; [`Pace::AsFastAsPossible`] by default. Does not change a result while ticks finish in
    /// time, and background builds for opened or edited maps do, too: in real time no tick waits for them.
    #[must_use]
    pub const fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Measures every set of the tick, for [`TickTimings`](crate::sim::TickTimings).
    #[must_use]
    pub const fn timing(mut self) -> Self {
        self.use_clock = true;
        self
    }

    /// Panics in the first tick when the order of two systems of a tick is ambiguous and could affect the result. For tests, and
    /// for users who depend on the state hash; plugins of other authors may not meet this requirement.
    #[must_use]
    pub const fn strict_order(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Adds plugins in addition to [`ThrongPlugins`], such as `CrowdPlugin` and the game's own. They are added in the order of
    /// these calls.
    #[must_use]
    pub fn plugins<M>(mut self, plugins: impl Plugins<M> + 'static) -> Self {
        self.plugins.push(Box::new(|app| {
            app.add_plugins(plugins);
        }));
        self
    }

    /// Changes the app after all plugins were added and before it starts: adds systems and resources, registers attributes and
    /// behaviours. The functions run in the order of these calls.
    #[must_use]
    pub fn configure(mut self, configure: impl FnOnce(&mut App) + 'static) -> Self {
        self.configure.push(Box::new(configure));
        self
    }

    /// Builds and starts the server: plugins are finished and cleaned up, startup systems have run, and no tick has.
    ///
    /// # Panics
    /// When [`tick_hz`](Self::tick_hz) is not finite or not more than 0.
    #[must_use]
    pub fn build(self) -> Server {
        let tick_hz = self.tick_hz;
        assert!(
            tick_hz > 0.0 && tick_hz.is_finite(),
            "expected a number of ticks a second that is finite and more than 0, found {tick_hz}"
        );
        let mut app = App::new();
        app.add_plugins((
            TaskPoolPlugin {
                task_pool_options: task_pools(self.workers),
            },
            TimePlugin,
            ThrongPlugins,
        ));
        self.plugins.into_iter().for_each(|add| add(&mut app));
        if self.use_clock {
            app.add_plugins(TimingPlugin);
        }
        app.insert_resource(Time::<Fixed>::from_hz(self.tick_hz))
            .insert_resource(RandomStreams::new(self.seed))
            .insert_resource(Workers::new(self.workers));
        configure_schedule(&mut app, FixedPreUpdate, self.is_strict);
        configure_schedule(&mut app, FixedUpdate, self.is_strict);
        configure_schedule(&mut app, Heartbeat, self.is_strict);
        configure_schedule(&mut app, FixedPostUpdate, self.is_strict);
        self.configure
            .into_iter()
            .for_each(|change| change(&mut app));
        app.finish();
        app.cleanup();
        clock::one_tick_per_update(&mut app);
        prepare_schedules(&mut app);
        let mut server = Server {
            app,
            tick: Duration::from_secs_f64(1.0 / self.tick_hz),
            pace: Pace::default(),
            pacer: None,
        };
        server.set_pace(self.pace);
        server
    }
}

/// Runs a schedule's systems on the calling thread, and makes ambiguous orders an error if requested.
fn configure_schedule(app: &mut App, label: impl ScheduleLabel, is_strict: bool) {
    app.edit_schedule(label, |schedule| {
        if is_strict {
            let settings = schedule.get_build_settings();
            schedule.set_build_settings(ScheduleBuildSettings {
                ambiguity_detection: LogLevel::Error,
                ..settings
            });
        }
        // The sets of a tick are a chain: parallel work is inside the systems, which use the workers themselves. So systems are not
        // moved to other threads, which would cost more than it gains.
        schedule.set_executor(SingleThreadedExecutor::new());
    });
}

/// Initializes the schedules of a tick, which would delay the first one otherwise.
fn prepare_schedules(app: &mut App) {
    let labels = [
        FixedPreUpdate.intern(),
        FixedUpdate.intern(),
        Heartbeat.intern(),
        FixedPostUpdate.intern(),
    ];
    for label in labels {
        // An error in a schedule is reported by the tick that runs it.
        let _ = app
            .world_mut()
            .try_schedule_scope(label, |world, schedule| {
                let _ = schedule.initialize(world);
            });
    }
}

/// Creates task pools with this many threads for the tick, the calling one included, and one each for the rest. Only the first
/// app of a process creates them.
#[doc(hidden)]
pub fn task_pools(workers: usize) -> TaskPoolOptions {
    let mut options = TaskPoolOptions::default();
    let helpers = workers.saturating_sub(1).max(1);
    for (pool, threads) in [
        (&mut options.io, 1),
        (&mut options.async_compute, 1),
        (&mut options.compute, helpers),
    ] {
        (pool.min_threads, pool.max_threads) = (threads, threads);
    }
    options
}

impl Server {
    /// A builder with default settings.
    #[must_use]
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Runs exactly `ticks` ticks; with [`Pace::RealTime`] each at its scheduled time.
    pub fn step(&mut self, ticks: u64) {
        for _ in 0..ticks {
            if self.pace == Pace::RealTime {
                let apart = self.real_tick();
                let pacer = self.pacer.get_or_insert_with(|| Pacer::new(apart));
                pacer.set_tick(apart);
                clock::warn_of_standstill(pacer.wait(), apart);
            }
            self.app.update();
        }
    }

    /// Runs in real time until a system or another part of the app writes [`AppExit`], and returns it. Blocks the calling thread and
    /// sleeps between ticks; sets [`Pace::RealTime`]. The tick in which the message is written is completed.
    ///
    /// Players inside are not saved by this: drain the sessions first ([`Sessions::drain`](crate::session::Sessions::drain)), and write
    /// the message when there are none. `throng serve` does so after SIGTERM.
    ///
    /// ```
    /// use bevy_app::{AppExit, FixedUpdate};
    /// use bevy_ecs::prelude::*;
    /// use throng::prelude::*;
    ///
    /// fn stop(tick: Res<SimTick>, mut exit: MessageWriter<AppExit>) {
    ///     if tick.0 == 3 {
    ///         exit.write(AppExit::Success);
    ///     }
    /// }
    ///
    /// let mut server = Server::builder().configure(|app| { app.add_systems(FixedUpdate, stop); }).build();
    /// assert!(server.run().is_success());
    /// ```
    pub fn run(&mut self) -> AppExit {
        self.set_pace(Pace::RealTime);
        loop {
            self.step(1);
            if let Some(exit) = self.app.should_exit() {
                // Otherwise the next call would find it again.
                if let Some(mut exits) = self.world_mut().get_resource_mut::<Messages<AppExit>>() {
                    exits.clear();
                }
                return exit;
            }
        }
    }

    /// Sets the pace of ticks. In [`Pace::RealTime`] the next one is due at once.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
        self.pacer = None;
        let mut meter = self.app.world_mut().resource_mut::<LoadMeter>();
        meter.keeps_real_time = pace == Pace::RealTime;
    }

    /// The real time between two ticks: more than in simulated time while that is dilated.
    fn real_tick(&self) -> Duration {
        let percent = self.world().resource::<Overload>().time_percent();
        self.tick * 100 / u32::from(percent.max(1))
    }

    /// The number of completed ticks.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.world().resource::<SimTick>().0
    }

    /// The current state hash, folded to the 64 bits that are shown. Equal for equal states; O(state).
    pub fn state_hash(&mut self) -> u64 {
        state_hash(self.world_mut()).fold()
    }

    /// The real time that the server has skipped since [`Pace::RealTime`] began; zero at other paces.
    #[must_use]
    pub fn time_lost(&self) -> Duration {
        self.pacer.as_ref().map_or(Duration::ZERO, Pacer::time_lost)
    }

    /// Sets the sink that receives the packets, in place of the previous one: [`Outbox::set_sink`].
    ///
    /// ```
    /// use throng::outbox::MemorySink;
    /// use throng::prelude::*;
    ///
    /// let sent = MemorySink::default();
    /// let mut server = Server::builder().build();
    /// server.set_sink(sent.clone());
    /// ```
    pub fn set_sink(&mut self, sink: impl PacketSink + 'static) {
        let mut outbox = self.app.world_mut().resource_mut::<Outbox>();
        outbox.set_sink(sink);
    }

    /// The world, to read.
    #[must_use]
    pub fn world(&self) -> &World {
        self.app.world()
    }

    /// The world, to change between ticks.
    pub fn world_mut(&mut self) -> &mut World {
        self.app.world_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{LoadMeasure, OverloadSettings, WorkAppExt};

    #[test]
    fn tick_schedules_are_prepared_before_the_first_tick() {
        let server = Server::builder().build();
        let schedules = server.world().resource::<Schedules>();
        let labels = [
            FixedPreUpdate.intern(),
            FixedUpdate.intern(),
            Heartbeat.intern(),
            FixedPostUpdate.intern(),
        ];
        let is_laid_out = |label| schedules.get(label).is_some_and(|it| it.systems().is_ok());
        assert!(labels.into_iter().all(is_laid_out));
    }

    #[test]
    fn step_is_one_tick_and_startup_is_none() {
        let mut server = Server::builder().tick_hz(50.0).build();
        assert_eq!(server.tick(), 0);
        server.step(3);
        assert_eq!(server.tick(), 3);
        let time = server.world().resource::<Time<Fixed>>();
        assert_eq!(time.elapsed(), Duration::from_millis(60));
    }

    #[cfg(feature = "reflect")]
    #[test]
    fn components_and_settings_can_be_reflected() {
        use std::any::TypeId;

        use crate::aoi::{AoiSettings, Viewer};
        use crate::movement::MaxSpeed;
        use crate::world::Position;

        let server = Server::builder().build();
        let registry = server.world().resource::<AppTypeRegistry>().read();
        for component in [
            TypeId::of::<Position>(),
            TypeId::of::<Viewer>(),
            TypeId::of::<MaxSpeed>(),
        ] {
            let data = registry.get_type_data::<ReflectComponent>(component);
            assert!(data.is_some());
        }
        let settings = TypeId::of::<AoiSettings>();
        assert!(
            registry
                .get_type_data::<ReflectResource>(settings)
                .is_some()
        );
    }

    #[test]
    fn plugins_are_added_before_configure_runs() {
        #[derive(Resource, Default)]
        struct Told(u32);
        let server = Server::builder()
            .configure(|app| app.world_mut().resource_mut::<Told>().0 = 5)
            .plugins(|app: &mut App| {
                app.init_resource::<Told>();
            })
            .build();
        assert_eq!(server.world().resource::<Told>().0, 5);
    }

    #[test]
    fn dilated_time_lengthens_the_real_time_between_ticks() {
        let mut server = Server::builder()
            .tick_hz(20.0)
            .configure(|app| {
                app.insert_resource(OverloadSettings {
                    measure: LoadMeasure::Work,
                    ..OverloadSettings::default()
                })
                .add_cost_estimator(|_, _| 100_000_000);
            })
            .build();
        assert_eq!(server.real_tick(), Duration::from_millis(50));
        server.step(200);
        assert_eq!(server.real_tick(), Duration::from_millis(100));
        let time = server.world().resource::<Time<Fixed>>();
        assert_eq!(time.timestep(), Duration::from_millis(50), "simulated");
    }

    #[test]
    fn run_stops_after_the_tick_that_writes_an_exit() {
        let stop = |tick: Res<SimTick>, mut exit: MessageWriter<AppExit>| {
            if tick.0.is_multiple_of(4) {
                exit.write(if tick.0 == 4 {
                    AppExit::Success
                } else {
                    AppExit::from_code(3)
                });
            }
        };
        let mut server = Server::builder()
            .tick_hz(1000.0)
            .configure(move |app| {
                app.add_systems(FixedPostUpdate, stop);
            })
            .build();
        assert_eq!((server.run(), server.tick()), (AppExit::Success, 4));
        // A second call goes on: it does not find the first message.
        assert_eq!((server.run(), server.tick()), (AppExit::from_code(3), 8));
        let meter = server.world().resource::<LoadMeter>();
        assert!(meter.keeps_real_time);
    }

    #[test]
    fn real_time_server_does_not_run_ahead_of_the_clock() {
        let clock = clock::Stopwatch::start();
        let mut server = Server::builder()
            .tick_hz(100.0)
            .pace(Pace::RealTime)
            .build();
        // The first tick is due at once.
        server.step(6);
        assert!(clock.elapsed() >= Duration::from_millis(50));
    }
}
