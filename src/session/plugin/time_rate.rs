//! Notifies clients of the rate of simulated time.

use bevy_ecs::prelude::*;

use super::messages::SessionNoticeRequest;
use crate::session::Sessions;
use crate::sim::Overload;
use crate::wire::{ClientId, SessionNotice};

/// The rate that was sent, and to which clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeRateSent {
    percent: u8,
    /// The newest client that received it; ids only grow.
    newest: Option<ClientId>,
}

impl Default for TimeRateSent {
    fn default() -> Self {
        Self {
            percent: 100,
            newest: None,
        }
    }
}

/// Notifies all clients when the rate changes, and new clients while it is not real time. O(1) in real time.
pub(super) fn notify_time_rate(
    overload: Res<Overload>,
    sessions: Res<Sessions>,
    mut notices: MessageWriter<SessionNoticeRequest>,
    mut last: Local<TimeRateSent>,
) {
    let percent = overload.time_percent();
    let has_changed = percent != last.percent;
    if percent == 100 && !has_changed {
        return;
    }
    let since = last.newest.filter(|_| !has_changed);
    for client in sessions.clients_after(since) {
        let notice = SessionNotice::TimeRate { percent };
        notices.write(SessionNoticeRequest { client, notice });
        last.newest = Some(client);
    }
    last.percent = percent;
}
