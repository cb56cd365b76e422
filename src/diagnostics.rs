//! The statistics of the plugins as Bevy diagnostics, with the feature `diagnostics`.
//!
//! They appear wherever Bevy diagnostics do: `LogDiagnosticsPlugin`, an overlay, an inspector. Counters of plugins that are not
//! added are left out.

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_diagnostic::{Diagnostic, DiagnosticPath, Diagnostics, RegisterDiagnostic};
use bevy_ecs::prelude::*;

use crate::aoi::AoiStats;
use crate::inbox::Inbox;
use crate::nav::NavStats;
use crate::outbox::OutboxStats;
use crate::session::Sessions;
use crate::sim::{AfterTick, Overload};
use crate::world::SceneIds;

/// Live objects of all scenes.
pub const OBJECTS: DiagnosticPath = DiagnosticPath::const_new("throng/objects");
/// Open sessions.
pub const SESSIONS: DiagnosticPath = DiagnosticPath::const_new("throng/sessions");
/// Links of all views: [`AoiStats::links`].
pub const VIEW_LINKS: DiagnosticPath = DiagnosticPath::const_new("throng/view_links");
/// Viewers that are queued for a scan: [`AoiStats::queued`].
pub const VIEWS_QUEUED: DiagnosticPath = DiagnosticPath::const_new("throng/views_queued");
/// Path requests that are pending.
pub const PATHS_WAITING: DiagnosticPath = DiagnosticPath::const_new("throng/paths_waiting");
/// Messages that are queued in the inbox.
pub const INBOX_BACKLOG: DiagnosticPath = DiagnosticPath::const_new("throng/inbox_backlog");
/// The overload level: [`OverloadLevel::number`](crate::sim::OverloadLevel::number).
pub const OVERLOAD_LEVEL: DiagnosticPath = DiagnosticPath::const_new("throng/overload_level");
/// Bytes sent since the app started.
pub const SENT_BYTES: DiagnosticPath = DiagnosticPath::const_new("throng/sent_bytes");

/// Updates the diagnostics after every tick; reads each scene and seven resources. Bevy's `DiagnosticsPlugin` is not required.
#[derive(Clone, Copy, Debug, Default)]
pub struct TickDiagnosticsPlugin;

impl Plugin for TickDiagnosticsPlugin {
    fn build(&self, app: &mut App) {
        for path in [
            OBJECTS,
            SESSIONS,
            VIEW_LINKS,
            VIEWS_QUEUED,
            PATHS_WAITING,
            INBOX_BACKLOG,
            OVERLOAD_LEVEL,
        ] {
            app.register_diagnostic(Diagnostic::new(path));
        }
        app.register_diagnostic(Diagnostic::new(SENT_BYTES).with_suffix(" B"))
            .add_systems(FixedUpdate, record_diagnostics.in_set(AfterTick));
    }
}

fn record_diagnostics(
    mut diagnostics: Diagnostics,
    scenes: Query<&SceneIds>,
    sessions: Option<Res<Sessions>>,
    aoi: Option<Res<AoiStats>>,
    nav: Option<Res<NavStats>>,
    inbox: Option<Res<Inbox>>,
    outbox: Option<Res<OutboxStats>>,
    overload: Res<Overload>,
) {
    let objects = scenes.iter().map(|objects| u64::from(objects.len())).sum();
    let values = [
        (OBJECTS, Some(objects)),
        (SESSIONS, sessions.map(|sessions| sessions.len() as u64)),
        (VIEW_LINKS, aoi.as_ref().map(|aoi| aoi.links)),
        (VIEWS_QUEUED, aoi.map(|aoi| aoi.queued)),
        (PATHS_WAITING, nav.map(|nav| nav.waiting)),
        (INBOX_BACKLOG, inbox.map(|inbox| inbox.backlog() as u64)),
        (OVERLOAD_LEVEL, Some(overload.level().number() as u64)),
        (SENT_BYTES, outbox.map(|outbox| outbox.bytes)),
    ];
    for (path, value) in values {
        if let Some(value) = value {
            diagnostics.add_measurement(&path, || value as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use bevy_diagnostic::DiagnosticsStore;
    use glam::Vec2;

    use super::*;
    use crate::server::Server;
    use crate::world::{InScene, Npc, Position, SceneSpec, open_scene};

    #[test]
    fn plugin_counters_are_recorded_after_every_tick() {
        let mut server = Server::builder().plugins(TickDiagnosticsPlugin).build();
        let world = server.world_mut();
        let scene = open_scene(world, SceneSpec::default(), ()).unwrap();
        for _ in 0..3 {
            world.spawn((Npc, InScene(scene), Position(Vec2::ONE)));
        }
        server.step(2);
        let store = server.world().resource::<DiagnosticsStore>();
        let value = |path| store.get(&path).and_then(Diagnostic::value);
        assert_eq!(value(OBJECTS), Some(3.0));
        assert_eq!(value(SESSIONS), Some(0.0));
        assert_eq!(store.get(&OBJECTS).unwrap().history_len(), 2);
    }
}
