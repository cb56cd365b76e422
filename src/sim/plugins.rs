//! Common rules of the plugins.
//!
//! A plugin adds what it needs of this crate, so each works alone and can be added again, in any order. The app must provide what the
//! plugin needs of Bevy. If it is missing, the app panics at startup with a message that names it.

use bevy_app::{App, Plugin, Plugins};
use bevy_time::{Fixed, Time, Virtual};

use super::schedule::install_tick;

/// Ticks per second of a [`Server`](crate::server::Server) and of a scenario that do not set them.
///
/// 20 is a compromise: a client waits at most 50 ms for the next tick, less than a common round trip, and the server's work and the
/// clients' bandwidth are a third of those at 60 Hz. The defaults of settings that count ticks are chosen for it.
pub const TICK_HZ_DEFAULT: f64 = 20.0;

/// The sets of a tick, its heartbeat and its counter. Every plugin of the crate installs them, too.
///
/// By default the tick rate is that of the app's [`Time<Fixed>`]: 64 Hz, Bevy's default, unless the app sets another one. To set it here,
/// use `ThrongPlugins.set(SimPlugin { tick_hz: Some(30.0) })`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimPlugin {
    /// Ticks per second; `None` leaves [`Time<Fixed>`] as it is.
    pub tick_hz: Option<f64>,
}

impl Plugin for SimPlugin {
    fn build(&self, app: &mut App) {
        install_tick(app);
        if let Some(hz) = self.tick_hz {
            app.insert_resource(Time::<Fixed>::from_hz(hz));
        }
    }

    fn finish(&self, app: &mut App) {
        finish_plugin(app);
    }
}

/// Implements `Plugin` for a type with a function `add_to(app)`. The plugin can be added again; `start_plugin` adds the plugins
/// that it needs first, and `finish_plugin` checks for the clock.
#[doc(hidden)]
#[macro_export]
macro_rules! sim_plugin {
    ($plugin:ty, $needs:expr) => {
        impl ::bevy_app::Plugin for $plugin {
            fn is_unique(&self) -> bool {
                false
            }

            fn build(&self, app: &mut ::bevy_app::App) {
                if $crate::sim::start_plugin::<Self, _>(app, $needs) {
                    Self::add_to(app);
                }
            }

            fn finish(&self, app: &mut ::bevy_app::App) {
                $crate::sim::finish_plugin(app);
            }
        }
    };
}
#[doc(hidden)]
pub use sim_plugin;

/// Starts building the plugin `P`: installs the tick and adds the plugins of this crate that `P` needs. Returns `false` if `P`
/// is added already and nothing is left to build. For plugins with `is_unique() == false`.
#[must_use]
pub fn start_plugin<P: Plugin, M>(app: &mut App, needs: impl Plugins<M>) -> bool {
    if app.is_plugin_added::<P>() {
        return false;
    }
    install_tick(app);
    app.add_plugins(needs);
    true
}

/// Finishes building a plugin that [`start_plugin`] started.
///
/// # Panics
/// When the app has no clock, without which no tick would ever run: the message names the plugin that adds it.
pub fn finish_plugin(app: &App) {
    let world = app.world();
    let has_clock =
        world.contains_resource::<Time<Virtual>>() && world.contains_resource::<Time<Fixed>>();
    assert!(
        has_clock,
        "throng needs `bevy_time::TimePlugin`: add it to the app, no tick runs without it"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy_app::PluginGroup;
    use bevy_ecs::prelude::*;

    #[derive(Default)]
    struct NeededPlugin;

    #[derive(Resource, Default)]
    struct Built(u32);

    sim_plugin!(NeededPlugin, ());

    impl NeededPlugin {
        fn add_to(app: &mut App) {
            app.world_mut().get_resource_or_init::<Built>().0 += 1;
        }
    }

    #[test]
    fn shared_plugin_is_built_once() {
        let mut app = App::new();
        assert!(start_plugin::<crate::sim::SimPlugin, _>(
            &mut app,
            NeededPlugin
        ));
        app.add_plugins(NeededPlugin).add_plugins(NeededPlugin);
        assert_eq!(app.world().resource::<Built>().0, 1);
    }

    #[test]
    fn tick_rate_of_the_app_stays_unless_the_plugin_has_one() {
        let app_at_30_hz = || {
            let mut app = App::new();
            app.add_plugins((bevy_app::TaskPoolPlugin::default(), bevy_time::TimePlugin))
                .insert_resource(Time::<Fixed>::from_hz(30.0));
            app
        };
        let tick = |app: &App| app.world().resource::<Time<Fixed>>().timestep();
        let mut app = app_at_30_hz();
        app.add_plugins(crate::ThrongPlugins);
        assert_eq!(tick(&app), Time::<Fixed>::from_hz(30.0).timestep());
        let mut app = app_at_30_hz();
        let tick_hz = Some(25.0);
        app.add_plugins(crate::ThrongPlugins.set(SimPlugin { tick_hz }));
        assert_eq!(tick(&app), Time::<Fixed>::from_hz(25.0).timestep());
    }

    #[test]
    fn app_without_a_clock_panics_and_names_the_plugin() {
        let start = |with_time: bool| {
            std::panic::catch_unwind(move || {
                let mut app = App::new();
                app.add_plugins(NeededPlugin);
                if with_time {
                    app.add_plugins(bevy_time::TimePlugin);
                }
                app.finish();
            })
        };
        assert!(start(true).is_ok());
        let message = start(false).unwrap_err();
        let message = message.downcast_ref::<&str>().unwrap();
        assert!(message.contains("bevy_time::TimePlugin"), "{message}");
    }
}
