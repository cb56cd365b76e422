//! A client whose connection is lost, and that may reconnect.
//!
//! The server continues to assemble its updates, which determines what it has to receive, and stores them instead of sending them. On
//! return the client receives either what it missed, or a full state and the announcements that it missed, whichever is smaller.

use super::{ClientState, MOTION_BYTES, SNAPSHOT_BYTES};
use crate::outbox::BatchPart;
use crate::sync::client_objects::ClientObject;
use crate::sync::resume_buffer::{MissedMessages, RecentlySent, ResumeBufferLimits};
use crate::sync::scene_messages::SceneMessages;
use crate::sync::sent_log::{SentLog, SentPart};
use crate::wire::SessionNotice;

impl ClientState {
    /// Resumes the session over a new connection: moves the state to `at`, the state of the new connection. `received` is the position
    /// that the client reports for the old connection. `self` keeps only what the last update of the old connection needs. `is_marked` is
    /// whether clients keep an object out of view.
    pub fn resume(
        &mut self,
        at: &mut Self,
        records: Option<&SceneMessages>,
        received: Option<u32>,
        tick: u64,
        (log, limits): (&SentLog, ResumeBufferLimits),
        is_marked: impl Fn(u32) -> bool,
    ) {
        let before_client = self.client;
        let before = std::mem::replace(
            self,
            Self {
                epoch: self.epoch,
                is_hello_sent: self.is_hello_sent,
                ..Self::new(self.client)
            },
        );
        let (client, greeted) = (at.client, at.is_hello_sent);
        let notices = std::mem::take(&mut at.notices);
        *at = Self {
            client,
            is_hello_sent: greeted,
            notices,
            is_disconnected: false,
            epoch: before.epoch.wrapping_add(1),
            ..before
        };
        let snapshot = at.snapshot_totals[0].checked_div(at.snapshot_totals[1]);
        let snapshot = snapshot.map_or(SNAPSHOT_BYTES as usize, |bytes| bytes as usize);
        // Motions of objects at rest or after a jump are among the missed messages; those of moving objects may have been lost.
        let base =
            |link: &ClientObject| records.and_then(|records| records.bases.get(link.id as usize));
        let is_moving = |link: &ClientObject| base(link).is_some_and(|base| !base.is_reliable());
        let moving = at
            .objects
            .as_slice()
            .iter()
            .filter(|link| is_moving(link))
            .count();
        let fresh = SNAPSHOT_BYTES as usize + at.objects.len() * snapshot;
        let fresh = fresh.saturating_sub(moving * MOTION_BYTES as usize);
        let sent = RecentlySent {
            log,
            client: before_client,
            limits,
        };
        let missed = at.resume_buffer.missed(received, tick, fresh, sent);
        at.is_slow_consumer = missed.is_none();
        let mut missed = missed.unwrap_or_default();
        let keeps = missed.is_complete && !(received == Some(0) && at.resume_buffer.is_anew());
        if missed.is_complete {
            // They are sent again, each with its current state.
            for link in at.objects.as_mut_slice() {
                if is_moving(link) && link.turns_missed() == 0 {
                    link.mark_missed();
                }
            }
        } else {
            at.discard_known(&mut missed, is_marked, |id| {
                records.map_or(0, |records| records.known_generation(id))
            });
            // The scene start increments the epoch.
            at.epoch = before.epoch;
            at.sent_controlled = None;
        }
        at.restarts = Some(!keeps);
        at.missed = (!missed.messages.is_empty()).then(|| Box::new(missed));
        at.notices
            .push(SessionNotice::Resumed { keeps_state: keeps });
    }

    /// Forgets what the client knows, since it receives fresh snapshots; notes what has to be sent again beyond its view.
    fn discard_known(
        &mut self,
        missed: &mut MissedMessages,
        is_marked: impl Fn(u32) -> bool,
        known: impl Fn(u32) -> u32,
    ) {
        // A message that waits for a snapshot would be lost with the objects that are removed.
        let held = self.pending_announcements.iter();
        for held in held.filter(|held| held.announced.reliable) {
            missed
                .messages
                .push(|bytes| bytes.extend_from_slice(&held.bytes));
        }
        let kept = self.kept_to_resend(is_marked, known);
        self.end_scene();
        self.kept = kept;
    }

    /// Sets whether its connection is lost.
    pub fn set_disconnected(&mut self, is_away: bool, log: &SentLog, limits: ResumeBufferLimits) {
        self.is_disconnected = is_away;
        if is_away {
            let client = self.client;
            self.resume_buffer.on_disconnect(RecentlySent {
                log,
                client,
                limits,
            });
        }
    }

    /// Stores its update, the last of a part, if it has one; the update of a disconnected client is not sent.
    pub fn store_update(
        &mut self,
        (part, sent): (&mut BatchPart, &mut SentPart),
        before: usize,
        shared: &[u8],
        (tick, limits): (u64, ResumeBufferLimits),
    ) {
        if let Some(is_anew) = self.restarts.take() {
            self.resume_buffer.restart(is_anew, tick);
        }
        if part.len() <= before {
            return;
        }
        let Some(line) = part.update(before) else {
            return;
        };
        if self.is_disconnected {
            for span in line.reliable {
                self.resume_buffer
                    .store(span.bytes(shared, line.private), tick);
            }
            part.drop_last();
            self.is_slow_consumer |= !self.resume_buffer.trim(limits);
        } else {
            self.resume_buffer
                .count_sent(sent.append(line, shared, self.resume_buffer.end()));
        }
    }

    /// Announcements up to a position are not stored any more.
    pub const fn drop_announcements(&mut self, end: u32) {
        self.resume_buffer.drop_announcements(end);
    }

    /// Counts the snapshots that it was sent.
    pub const fn count_snapshots(&mut self, bytes: u64, messages: u64) {
        // Recent snapshots count more than old ones.
        if self.snapshot_totals[1] > 1_000 {
            self.snapshot_totals = [self.snapshot_totals[0] / 2, self.snapshot_totals[1] / 2];
        }
        self.snapshot_totals[0] = self.snapshot_totals[0].saturating_add(bytes as u32);
        self.snapshot_totals[1] = self.snapshot_totals[1].saturating_add(messages as u32);
    }

    /// Writes the missed messages: a complete list before anything else, announcements alone after the scene start.
    pub(super) fn write_missed(&mut self, part: &mut BatchPart, is_whole: bool) {
        if self
            .missed
            .as_ref()
            .is_none_or(|missed| missed.is_complete != is_whole)
        {
            return;
        }
        let missed = self.missed.take();
        for message in missed.iter().flat_map(|missed| missed.messages.iter()) {
            part.write_reliable(|bytes| bytes.extend_from_slice(message));
        }
    }

    /// Whether it missed messages that have to be sent, whatever it controls.
    pub fn has_missed(&self) -> bool {
        self.missed
            .as_ref()
            .is_some_and(|missed| missed.is_complete)
    }
}
