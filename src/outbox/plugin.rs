//! The outbox as a resource, emptied in `Send`.

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::prelude::*;

use super::frames::{CountingSink, Frames, Sink};
use crate::sim::{self, SimSystems};

/// Hands the tick's frames to a [`Sink`].
#[derive(Clone, Copy, Debug, Default)]
pub struct OutboxPlugin;

impl Plugin for OutboxPlugin {
    /// Plugins that need this one add it, so it may come more than once.
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        if app.is_plugin_added::<Self>() {
            return;
        }
        sim::install(app);
        app.init_resource::<Outbox>()
            .init_resource::<OutboxStats>()
            .add_systems(FixedUpdate, send.in_set(SimSystems::Send));
    }
}

/// What leaves the server.
#[derive(Resource)]
pub struct Outbox {
    frames: Frames,
    sink: Box<dyn Sink>,
}

impl Default for Outbox {
    /// An outbox whose frames are counted and forgotten.
    fn default() -> Self {
        Self {
            frames: Frames::default(),
            sink: Box::new(CountingSink::default()),
        }
    }
}

impl Outbox {
    /// Sends what comes from now on to another sink.
    pub fn set_sink(&mut self, sink: Box<dyn Sink>) {
        self.sink = sink;
    }

    /// The frames of this tick that are not sent yet; Replicate appends.
    pub const fn frames_mut(&mut self) -> &mut Frames {
        &mut self.frames
    }
}

/// What was sent.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxStats {
    /// Frames handed to the sink.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

fn send(mut outbox: ResMut<Outbox>, mut stats: ResMut<OutboxStats>) {
    let Outbox { frames, sink } = &mut *outbox;
    for (client, frame) in frames.iter() {
        sink.deliver(client, frame);
        stats.frames += 1;
        stats.bytes += frame.len() as u64;
    }
    frames.clear();
}
