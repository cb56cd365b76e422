//! The governor: measures the load of ticks and applies the overload level.
//!
//! ```text
//! tick time by the clock ─────────┐
//! or estimated work units of ─────┴▶ load ─▶ Overload ─▶ read by modules with a budget: sync, aoi, nav, sessions, the pacer
//! the plugins                                    └─────▶ OverloadChanged, OverloadStats
//! ```
//! It evaluates the previous tick before any other system of a tick, so a level holds for a whole tick. Measured by the clock, levels
//! depend on the machine. Estimated by the cost model, they depend only on the state and are part of it.

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use serde::{Deserialize, Serialize};

use super::clock::Stopwatch;
use super::hash::HashAppExt;
use super::overload::{
    LOAD_FULL, LOAD_MAX, Overload, OverloadChange, OverloadEffects, OverloadLevel,
    OverloadTickSettings,
};

/// The source of a tick's cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(super::Reflect))]
pub enum LoadMeasure {
    /// The clock if a [`Server`](crate::server::Server) keeps real time, otherwise `Off`.
    #[default]
    Auto,
    /// None: the level stays normal.
    Off,
    /// The clock, at any pace: for an embedder's own loop. Which tick reduces its work then depends on the machine.
    Clock,
    /// The cost model, [`WorkCosts`]: the same in every run.
    Work,
}

/// When a server that cannot keep up reduces its work, and by how much. The defaults are meant for 20 to 30 ticks per second.
///
/// For shares, 1 is the length of a tick. Times are rounded to whole ticks.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::sim::OverloadSettings;
///
/// // Under load, time never runs slower than at half speed.
/// app.insert_resource(OverloadSettings { time_share_min: 0.5, ..OverloadSettings::default() });
/// ```
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(super::Reflect), reflect(Resource))]
pub struct OverloadSettings {
    /// The source of a tick's cost; [`LoadMeasure::Off`] disables overload control.
    pub measure: LoadMeasure,
    /// The time constant of the smoothed load, in seconds.
    pub smoothing_s: f32,
    /// The smoothed load at which each level is entered, as shares of the tick.
    #[serde(alias = "rise_at")]
    pub enter_at: OverloadThresholds,
    /// The smoothed load below which each level is left, as shares of the tick; never above `enter_at`. The difference between the
    /// two must exceed the load that the level saves, or a server at the threshold alternates between levels, though no faster than
    /// `leave_after_s`.
    #[serde(alias = "fall_at")]
    pub leave_at: OverloadThresholds,
    /// The minimum duration of a level before the next is entered, in seconds.
    #[serde(alias = "rise_s")]
    pub enter_after_s: f32,
    /// The minimum duration of a level before it is left, in seconds.
    #[serde(alias = "fall_s")]
    pub leave_after_s: f32,
    /// How often the time between two updates of the same object doubles for a client, at most 3: motion, its repetitions and
    /// attributes. The motion of the client's controlled object is still sent at once.
    pub update_doublings: u8,
    /// The remaining share of budgets for work that can wait: enters and scans of views, new objects for a client, path searches.
    /// At least one item of each remains, and deferred work keeps its order.
    #[serde(alias = "deferred_share")]
    pub deferred_budget_share: f32,
    /// The slowest rate of simulated time, as a share of real time. If ticks take even longer, the server skips ticks.
    pub time_share_min: f32,
    /// Estimated costs of work, used if no clock is read.
    pub costs: WorkCosts,
}

impl Default for OverloadSettings {
    fn default() -> Self {
        Self {
            measure: LoadMeasure::default(),
            smoothing_s: 0.5,
            enter_at: OverloadThresholds {
                stretch: 0.8,
                defer: 0.9,
                refuse: 0.95,
                dilate: 1.0,
            },
            leave_at: OverloadThresholds {
                stretch: 0.5,
                defer: 0.6,
                refuse: 0.65,
                dilate: 0.7,
            },
            enter_after_s: 1.0,
            leave_after_s: 5.0,
            update_doublings: 1,
            deferred_budget_share: 0.25,
            time_share_min: 0.25,
            costs: WorkCosts::default(),
        }
    }
}

/// A share of the tick for each step of [`OverloadLevel`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "reflect", derive(super::Reflect))]
pub struct OverloadThresholds {
    /// For reduced updates.
    pub stretch: f32,
    /// For deferred enters and paths.
    pub defer: f32,
    /// For queued logins.
    pub refuse: f32,
    /// For dilated time.
    pub dilate: f32,
}

impl OverloadThresholds {
    /// In millionths; a negative value or NaN is 0.
    fn loads(self) -> [u32; 4] {
        let load = |share: f32| (f64::from(share) * f64::from(LOAD_FULL)).round() as u32;
        [self.stretch, self.defer, self.refuse, self.dilate].map(load)
    }
}

/// Estimated costs of work, in nanoseconds each, used if no clock is read. Messages have their own costs in the settings of the
/// inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(super::Reflect))]
pub struct WorkCosts {
    /// An object in a scene, per tick: its decisions, movement and tracking.
    pub object_ns: u32,
    /// An expansion of a path search.
    pub expansion_ns: u32,
    /// A scan of a viewer.
    #[serde(alias = "look_ns")]
    pub scan_ns: u32,
    /// A view link that begins or ends.
    pub link_change_ns: u32,
    /// An object that a client knows, per tick.
    pub known_object_ns: u32,
    /// A message to a client.
    pub sent_message_ns: u32,
    /// Each byte of it.
    pub sent_byte_ns: u32,
}

impl Default for WorkCosts {
    fn default() -> Self {
        Self {
            object_ns: 250,
            expansion_ns: 100,
            scan_ns: 1_000,
            link_change_ns: 150,
            known_object_ns: 12,
            sent_message_ns: 50,
            sent_byte_ns: 1,
        }
    }
}

impl OverloadSettings {
    /// Converts the settings to ticks of this length; a time that is not 0 is at least one tick.
    fn to_tick_settings(&self, tick_ns: u64) -> OverloadTickSettings {
        let ticks = |seconds: f32| {
            let ticks = (f64::from(seconds) * 1e9 / tick_ns.max(1) as f64).round() as u32;
            ticks.max(u32::from(seconds > 0.0))
        };
        let percent = |share: f32| (share * 100.0).round().clamp(1.0, 100.0) as u8;
        OverloadTickSettings {
            enter_at: self.enter_at.loads(),
            leave_at: self.leave_at.loads(),
            smoothing_ticks: ticks(self.smoothing_s),
            enter_ticks: ticks(self.enter_after_s),
            leave_ticks: ticks(self.leave_after_s),
            time_percent_min: percent(self.time_share_min),
            effects: OverloadEffects {
                update_doublings: self.update_doublings.min(UPDATE_DOUBLINGS_MAX),
                deferred_percent: percent(self.deferred_budget_share),
            },
        }
    }
}

/// With more doublings, a motion could arrive so late that a client derives the wrong tick from it.
const UPDATE_DOUBLINGS_MAX: u8 = 3;

/// The overload level or the rate of simulated time changed, from this tick on.
///
/// An app with its own loop instead of a [`Server`](crate::server::Server) has to slow that loop down to `time_percent`.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::sim::OverloadChanged;
///
/// fn report(mut changes: MessageReader<OverloadChanged>) {
///     for changed in changes.read() {
///         println!("load {:.2}: {:?}", changed.load, changed.change);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct OverloadChanged {
    /// What changed.
    pub change: OverloadChange,
    /// The smoothed load at the change, as a share of the tick.
    pub load: f32,
}

/// Statistics of overload control since the app started.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverloadStats {
    /// Steps to a higher level.
    pub rises: u64,
    /// Steps to a lower one.
    pub falls: u64,
    /// Ticks at each level or a higher one, by [`OverloadLevel::number`]; the first counts all ticks with overload control.
    pub ticks: [u64; OverloadLevel::ALL.len()],
    /// The highest level that was reached.
    pub highest: OverloadLevel,
}

type CostEstimator = Box<dyn FnMut(&World, &WorkCosts) -> u64 + Send + Sync>;

/// The cost of the last tick.
#[derive(Resource, Default)]
pub(crate) struct LoadMeter {
    estimators: Vec<CostEstimator>,
    running: Option<Stopwatch>,
    measured_ns: Option<u64>,
    /// Whether ticks are scheduled in real time.
    pub(crate) keeps_real_time: bool,
}

/// Registers cost estimators, for runs without a clock.
pub trait WorkAppExt {
    /// Adds an estimator: called once per tick, it returns the cost of the work that its systems did since the last call, in
    /// nanoseconds. It must be the same in every run, and is called only with [`LoadMeasure::Work`].
    fn add_cost_estimator(
        &mut self,
        reckoner: impl FnMut(&World, &WorkCosts) -> u64 + Send + Sync + 'static,
    ) -> &mut Self;
}

impl WorkAppExt for App {
    fn add_cost_estimator(
        &mut self,
        reckoner: impl FnMut(&World, &WorkCosts) -> u64 + Send + Sync + 'static,
    ) -> &mut Self {
        let mut meter = self.world_mut().get_resource_or_init::<LoadMeter>();
        meter.estimators.push(Box::new(reckoner));
        self
    }
}

/// The increase of a monotonic counter since the last call.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterDelta(u64);

impl CounterDelta {
    /// Reads the counter.
    pub const fn update(&mut self, now: u64) -> u64 {
        let grown = now.saturating_sub(self.0);
        self.0 = now;
        grown
    }
}

pub(super) fn install(app: &mut App) {
    #[cfg(feature = "reflect")]
    app.register_type::<OverloadSettings>();
    app.init_resource::<OverloadSettings>()
        .init_resource::<Overload>()
        .init_resource::<OverloadStats>()
        .init_resource::<LoadMeter>()
        .add_message::<OverloadChanged>()
        .hash_part("overload", |world, hasher| {
            let overload = world.resource::<Overload>();
            overload.hash_state(|word| hasher.write_u64(word));
        });
}

/// Changes the level if the cost of the last tick requires it.
pub(super) fn update_overload(world: &mut World) {
    let measure = world.resource::<OverloadSettings>().measure;
    let meter = world.resource::<LoadMeter>();
    let use_clock = match measure {
        LoadMeasure::Off => false,
        LoadMeasure::Auto => meter.keeps_real_time,
        LoadMeasure::Clock => true,
        LoadMeasure::Work => {
            let cost_ns = estimate_cost(world);
            observe(world, cost_ns);
            return;
        }
    };
    if !use_clock {
        if world.resource::<Overload>().level() != OverloadLevel::Normal {
            while let Some(change) = world.resource_mut::<Overload>().lower_level() {
                write_change(world, change);
            }
        }
        return;
    }
    let mut meter = world.resource_mut::<LoadMeter>();
    let measured = meter.measured_ns.take();
    meter.running = Some(Stopwatch::start());
    if let Some(cost_ns) = measured {
        observe(world, cost_ns);
    }
}

/// After the tick: measures how long it took.
pub(super) fn stop_clock(mut meter: ResMut<LoadMeter>) {
    if let Some(mut running) = meter.bypass_change_detection().running.take() {
        meter.measured_ns = Some(running.lap_ns());
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "reckoners read the world and cannot change it"
)]
fn estimate_cost(world: &mut World) -> u64 {
    world.resource_scope(|world, mut meter: Mut<LoadMeter>| {
        let costs = world.resource::<OverloadSettings>().costs;
        let costs_ns = meter.estimators.iter_mut();
        costs_ns
            .map(|reckoner| reckoner(world, &costs))
            .fold(0, u64::saturating_add)
    })
}

fn observe(world: &mut World, cost_ns: u64) {
    let tick_ns = world.resource::<Time<Fixed>>().timestep().as_nanos();
    let load = u128::from(cost_ns) * u128::from(LOAD_FULL) / tick_ns.max(1);
    let load = u32::try_from(load).unwrap_or(LOAD_MAX);
    let tick_ns = u64::try_from(tick_ns).unwrap_or(u64::MAX);
    let rules = world
        .resource::<OverloadSettings>()
        .to_tick_settings(tick_ns);
    let change = world.resource_mut::<Overload>().observe(load, &rules);
    if let Some(change) = change {
        write_change(world, change);
    }
    let level = world.resource::<Overload>().level();
    let mut stats = world.resource_mut::<OverloadStats>();
    stats.ticks[..=level.number()]
        .iter_mut()
        .for_each(|ticks| *ticks += 1);
}

fn write_change(world: &mut World, change: OverloadChange) {
    let load = world.resource::<Overload>().load();
    let mut stats = world.resource_mut::<OverloadStats>();
    stats.rises += u64::from(change.to > change.from);
    stats.falls += u64::from(change.to < change.from);
    stats.highest = stats.highest.max(change.to);
    world.write_message(OverloadChanged { change, load });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{SimPlugin, clock};

    /// The estimated cost of the next ticks, in milliseconds.
    #[derive(Resource, Default)]
    struct TickPrice(u64);

    fn app(settings: OverloadSettings) -> App {
        let mut app = App::new();
        app.add_plugins((
            bevy_time::TimePlugin,
            SimPlugin {
                tick_hz: Some(20.0),
            },
        ))
        .init_resource::<TickPrice>()
        .insert_resource(settings)
        .add_cost_estimator(|world, _| world.resource::<TickPrice>().0 * 1_000_000);
        clock::one_tick_per_update(&mut app);
        app
    }

    fn levels_after(app: &mut App, cost_ms: u64, ticks: u32) -> Vec<OverloadLevel> {
        app.world_mut().resource_mut::<TickPrice>().0 = cost_ms;
        let mut levels = Vec::new();
        for _ in 0..ticks {
            app.update();
            levels.push(app.world().resource::<Overload>().level());
        }
        levels.dedup();
        levels
    }

    #[test]
    fn cost_model_levels_follow_the_estimate() {
        let mut app = app(OverloadSettings {
            measure: LoadMeasure::Work,
            ..OverloadSettings::default()
        });
        assert_eq!(levels_after(&mut app, 39, 200), [OverloadLevel::Normal]);
        assert_eq!(levels_after(&mut app, 80, 200), OverloadLevel::ALL[1..]);
        assert_eq!(app.world().resource::<Overload>().time_percent(), 60);
        let mut down = levels_after(&mut app, 10, 600);
        down.reverse();
        assert_eq!(down, OverloadLevel::ALL);
        let stats = *app.world().resource::<OverloadStats>();
        assert_eq!((stats.rises, stats.falls), (4, 4));
        assert_eq!(stats.highest, OverloadLevel::TimeDilated);
        assert_eq!(stats.ticks[0], 1000);
        assert!(stats.ticks.is_sorted_by(|a, b| a > b) && stats.ticks[4] > 50);
    }

    #[test]
    fn overload_level_stays_normal_without_real_time_or_when_off() {
        for measure in [LoadMeasure::Auto, LoadMeasure::Off] {
            let mut app = app(OverloadSettings {
                measure,
                ..OverloadSettings::default()
            });
            assert_eq!(levels_after(&mut app, 500, 100), [OverloadLevel::Normal]);
        }
        let mut app = app(OverloadSettings {
            measure: LoadMeasure::Work,
            ..OverloadSettings::default()
        });
        levels_after(&mut app, 500, 200);
        let mut settings = app.world_mut().resource_mut::<OverloadSettings>();
        settings.measure = LoadMeasure::Off;
        assert_eq!(levels_after(&mut app, 500, 1), [OverloadLevel::Normal]);
        assert_eq!(app.world().resource::<OverloadStats>().falls, 4);
    }

    #[test]
    fn clock_measure_counts_a_slow_tick() {
        let mut app = app(OverloadSettings {
            measure: LoadMeasure::Clock,
            smoothing_s: 0.0,
            enter_after_s: 0.0,
            ..OverloadSettings::default()
        });
        // A tick that always takes longer than its budget.
        app.insert_resource(Time::<Fixed>::from_duration(
            std::time::Duration::from_nanos(1),
        ));
        (0..20).for_each(|_| app.update());
        let overload = app.world().resource::<Overload>();
        assert_eq!(overload.level(), OverloadLevel::TimeDilated);
        assert_eq!(overload.time_percent(), 25);
    }

    #[test]
    fn settings_are_read_by_name_and_invalid_ones_do_not_panic() {
        let text = "(measure: Work, enter_at: (stretch: 1, defer: 2, refuse: 3, dilate: 4))";
        let settings: OverloadSettings = ron::from_str(text).unwrap();
        assert_eq!(settings.measure, LoadMeasure::Work);
        assert_eq!(settings.to_tick_settings(50_000_000).enter_at[3], 4_000_000);
        let defaults = OverloadSettings::default().to_tick_settings(50_000_000);
        assert_eq!(
            (
                defaults.smoothing_ticks,
                defaults.enter_ticks,
                defaults.leave_ticks
            ),
            (10, 20, 100)
        );
        let all = OverloadThresholds {
            stretch: f32::NAN,
            defer: -1.0,
            refuse: f32::INFINITY,
            dilate: f32::MIN,
        };
        let rules = OverloadSettings {
            enter_at: all,
            leave_at: all,
            smoothing_s: f32::NAN,
            enter_after_s: f32::INFINITY,
            leave_after_s: -1.0,
            update_doublings: 255,
            deferred_budget_share: f32::NAN,
            time_share_min: -4.0,
            ..OverloadSettings::default()
        }
        .to_tick_settings(0);
        let mut overload = Overload::default();
        for load in [0, u32::MAX, 7] {
            overload.observe(load, &rules);
        }
        assert_eq!(rules.effects.update_doublings, 3);
    }
}
