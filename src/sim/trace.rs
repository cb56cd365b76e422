//! A span for each set of a tick, with the feature `trace`. The feature also enables Bevy's spans for systems and schedules. The spans go
//! to the subscriber of the process; without one each costs a check of a flag.
//!
//! The span of a set is entered by a system before it and left by one after it, on the thread that runs the tick. With a multi-threaded
//! schedule executor the spans of sets are meaningless.

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use tracing::subscriber::{NoSubscriber, with_default};
use tracing::{Span, info_span};

/// The span of the current set.
#[derive(Resource)]
struct SetSpan(Span);

/// Adds a span for each set of the tick, given in order with their names.
pub(super) fn install<S: SystemSet + Copy>(app: &mut App, sets: &[(S, &'static str)]) {
    app.insert_resource(SetSpan(Span::none()));
    // Bevy creates the span of a system when it is added, for the subscriber at that time. The spans of the two systems around a
    // set would overlap with the set's own.
    with_default(NoSubscriber::default(), || {
        for (nth, &(set, name)) in sets.iter().enumerate() {
            let enter = move |mut running: ResMut<SetSpan>| {
                running.0 = info_span!("set", name);
                running.0.with_subscriber(|(id, to)| to.enter(id));
            };
            // An exclusive system between two sets may be inside a span or outside.
            let enter = enter.before(set).ambiguous_with_all();
            match nth.checked_sub(1) {
                Some(before) => app.add_systems(FixedUpdate, enter.after(LeaveSet(before))),
                None => app.add_systems(FixedUpdate, enter),
            };
            let leave = |mut running: ResMut<SetSpan>| {
                running.0.with_subscriber(|(id, to)| to.exit(id));
                running.0 = Span::none();
            };
            app.add_systems(
                FixedUpdate,
                leave.after(set).in_set(LeaveSet(nth)).ambiguous_with_all(),
            );
        }
    });
}

/// The systems that leave the span of the set.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LeaveSet(usize);
