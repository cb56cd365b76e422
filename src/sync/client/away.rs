//! A client whose connection is lost, and that may reconnect.
//!
//! The server continues to assemble its updates, which determines what it has to receive, and stores them instead of sending them. On
//! return the client receives either what it missed, or a full state and the announcements that it missed, whichever is smaller.

use super::{ClientState, MOTION_BYTES, SNAPSHOT_BYTES};
use crate::outbox::BatchPart;
use crate::sync::kept::{KeptLimits, SentOfLate};
use crate::sync::links::ClientObject;
use crate::sync::records::SceneMessages;
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
        (log, limits): (&SentLog, KeptLimits),
    ) {
        let before_client = self.client;
        let before = std::mem::replace(
            self,
            Self {
                epoch: self.epoch,
                greeted: self.greeted,
                ..Self::new(self.client)
            },
        );
        let (client, greeted) = (at.client, at.greeted);
        let notices = std::mem::take(&mut at.notices);
        *at = Self {
            client,
            greeted,
            notices,
            is_away: false,
            epoch: before.epoch.wrapping_add(1),
            ..before
        };
        let snapshot = at.snapshots[0].checked_div(at.snapshots[1]);
        let snapshot = snapshot.map_or(SNAPSHOT_BYTES as usize, |bytes| bytes as usize);
        // Motions of what rests or jumped are among what was missed; of what moves they may have been lost.
        let base =
            |link: &ClientObject| records.and_then(|records| records.bases.get(link.id as usize));
        let is_moving = |link: &ClientObject| base(link).is_some_and(|base| !base.is_reliable());
        let moving = at
            .links
            .as_slice()
            .iter()
            .filter(|link| is_moving(link))
            .count();
        let fresh = SNAPSHOT_BYTES as usize + at.links.len() * snapshot;
        let fresh = fresh.saturating_sub(moving * MOTION_BYTES as usize);
        let sent = SentOfLate {
            log,
            client: before_client,
            limits,
        };
        let missed = at.kept.missed(received, tick, fresh, sent);
        at.is_behind = missed.is_none();
        let mut missed = missed.unwrap_or_default();
        let keeps = missed.is_whole && !(received == Some(0) && at.kept.is_anew());
        if missed.is_whole {
            // They are told again, each as it is now.
            for link in at.links.as_mut_slice() {
                if is_moving(link) && link.turns_missed() == 0 {
                    link.miss();
                }
            }
        } else {
            // What waits for a snapshot would go with what is forgotten.
            for held in at.held.iter().filter(|held| held.announced.reliable) {
                missed
                    .messages
                    .push(|bytes| bytes.extend_from_slice(&held.bytes));
            }
            at.end();
            // What begins for it counts the epoch.
            at.epoch = before.epoch;
            at.told_own = None;
        }
        at.restarts = Some(!keeps);
        at.missed = (!missed.messages.is_empty()).then(|| Box::new(missed));
        at.notices
            .tell(SessionNotice::Resumed { keeps_state: keeps });
    }

    /// Whether its connection is lost.
    pub fn set_away(&mut self, is_away: bool, log: &SentLog, limits: KeptLimits) {
        self.is_away = is_away;
        if is_away {
            let client = self.client;
            self.kept.lose_link(SentOfLate {
                log,
                client,
                limits,
            });
        }
    }

    /// Keeps its line, the last of a part, if it got one; of one that is away it is not sent.
    pub fn keep_line(
        &mut self,
        (part, sent): (&mut BatchPart, &mut SentPart),
        before: usize,
        shared: &[u8],
        (tick, limits): (u64, KeptLimits),
    ) {
        if let Some(is_anew) = self.restarts.take() {
            self.kept.restart(is_anew, tick);
        }
        if part.len() <= before {
            return;
        }
        let Some(line) = part.update(before) else {
            return;
        };
        if self.is_away {
            for span in line.reliable {
                self.kept.keep(span.bytes(shared, line.private), tick);
            }
            part.drop_last();
            self.is_behind |= !self.kept.trim(limits);
        } else {
            self.kept.tell(sent.keep(line, shared, self.kept.end()));
        }
    }

    /// Announcements that it was told up to a position are not kept any more.
    pub const fn forget_announces(&mut self, end: u32) {
        self.kept.forget_announces(end);
    }

    /// Counts what it was sent as snapshots.
    pub const fn count_snapshots(&mut self, bytes: u64, messages: u64) {
        // Of late ones more than of old ones.
        if self.snapshots[1] > 1_000 {
            self.snapshots = [self.snapshots[0] / 2, self.snapshots[1] / 2];
        }
        self.snapshots[0] = self.snapshots[0].saturating_add(bytes as u32);
        self.snapshots[1] = self.snapshots[1].saturating_add(messages as u32);
    }

    /// Tells what was missed: all of it before anything else, announcements alone behind what begins.
    pub(super) fn fill_missed(&mut self, part: &mut BatchPart, is_whole: bool) {
        if self
            .missed
            .as_ref()
            .is_none_or(|missed| missed.is_whole != is_whole)
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
        self.missed.as_ref().is_some_and(|missed| missed.is_whole)
    }
}
