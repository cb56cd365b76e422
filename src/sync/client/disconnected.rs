//! A client whose connection is lost, and that may reconnect.
//!
//! The server continues to assemble its updates, which determines what it has to receive, and stores them instead of sending them. On
//! return the client receives either what it missed, or a full state and the announcements that it missed, whichever is smaller.

use super::{ClientState, MOTION_BYTES, SNAPSHOT_BYTES};
use crate::outbox::BatchPart;
use crate::sync::client_objects::ClientObject;
use crate::sync::resume_buffer::{RecentlySent, ResumeBufferLimits};
use crate::sync::scene_messages::SceneMessages;
use crate::sync::sent_log::{SentLog, SentPart};
use crate::wire::SessionNotice;

impl ClientState {
    /// The client, of which its new connection knows so much, goes on with the session that this is of, with what the connection
    /// before told it, by its own word. Nothing stays of the connection before but what its last line needs.
    pub fn resume(
        &mut self,
        at: &mut Self,
        records: Option<&SceneMessages>,
        received: Option<u32>,
        tick: u64,
        (log, limits): (&SentLog, ResumeBufferLimits),
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
        // Motions of what rests or jumped are among what was missed; of what moves they may have been lost.
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
            // They are told again, each as it is now.
            for link in at.objects.as_mut_slice() {
                if is_moving(link) && link.turns_missed() == 0 {
                    link.mark_missed();
                }
            }
        } else {
            // What waits for a snapshot would go with what is forgotten.
            for held in at
                .pending_announcements
                .iter()
                .filter(|held| held.announced.reliable)
            {
                missed
                    .messages
                    .push(|bytes| bytes.extend_from_slice(&held.bytes));
            }
            at.end_scene();
            // What begins for it counts the epoch.
            at.epoch = before.epoch;
            at.sent_controlled = None;
        }
        at.restarts = Some(!keeps);
        at.missed = (!missed.messages.is_empty()).then(|| Box::new(missed));
        at.notices
            .push(SessionNotice::Resumed { keeps_state: keeps });
    }

    /// Whether its connection is lost.
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

    /// Keeps its line, the last of a part, if it got one; of one that is away it is not sent.
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

    /// Announcements that it was told up to a position are not kept any more.
    pub const fn drop_announcements(&mut self, end: u32) {
        self.resume_buffer.drop_announcements(end);
    }

    /// Counts what it was sent as snapshots.
    pub const fn count_snapshots(&mut self, bytes: u64, messages: u64) {
        // Of late ones more than of old ones.
        if self.snapshot_totals[1] > 1_000 {
            self.snapshot_totals = [self.snapshot_totals[0] / 2, self.snapshot_totals[1] / 2];
        }
        self.snapshot_totals[0] = self.snapshot_totals[0].saturating_add(bytes as u32);
        self.snapshot_totals[1] = self.snapshot_totals[1].saturating_add(messages as u32);
    }

    /// Tells what was missed: all of it before anything else, announcements alone behind what begins.
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

    /// Whether it missed something that it is to be told whatever it controls.
    pub fn has_missed(&self) -> bool {
        self.missed
            .as_ref()
            .is_some_and(|missed| missed.is_complete)
    }
}
