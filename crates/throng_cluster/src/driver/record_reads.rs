//! Reads of the records of players on other nodes, for the tick: one at a time.

use throng_core::ids::PlayerId;

use crate::request::PlayerEntry;

/// The time after which a read has failed, in milliseconds: its reply may be late.
const READ_TIMEOUT_MS: u64 = 1_000;

/// The result of a read: the requested players, and the known ones among them; `None` if it failed.
pub(crate) type RecordsRead = (Vec<PlayerId>, Option<Vec<PlayerEntry>>);

/// The pending read, or its result until that is taken.
#[derive(Debug, Default)]
pub(crate) struct RecordReads {
    number: u64,
    players: Vec<PlayerId>,
    /// `None` before it is sent.
    sent_ms: Option<u64>,
    result: Option<RecordsRead>,
}

#[cfg_attr(
    not(feature = "bevy"),
    allow(dead_code, reason = "only the tick of an app reads records")
)]
impl RecordReads {
    /// Requests the records of players. Call it again only after the result was taken.
    pub fn request(&mut self, players: Vec<PlayerId>) {
        self.number += 1;
        (self.players, self.sent_ms) = (players, None);
    }

    /// Takes the result of the read, if there is one.
    pub const fn take(&mut self) -> Option<RecordsRead> {
        self.result.take()
    }

    /// The number and the players of the read to send, if it is not sent yet. Fails a read that is overdue.
    pub fn poll(&mut self, now_ms: u64) -> Option<(u64, Vec<PlayerId>)> {
        if self.players.is_empty() {
            return None;
        }
        match self.sent_ms {
            None => {
                self.sent_ms = Some(now_ms);
                let mut players = self.players.clone();
                players.sort_unstable();
                players.dedup();
                Some((self.number, players))
            }
            Some(sent_ms) => {
                if now_ms >= sent_ms + READ_TIMEOUT_MS {
                    self.on_reply(self.number, None);
                }
                None
            }
        }
    }

    /// Handles a reply. A reply to a read that has failed already is ignored.
    pub fn on_reply(&mut self, number: u64, found: Option<Vec<PlayerEntry>>) {
        if number == self.number && !self.players.is_empty() {
            self.result = Some((std::mem::take(&mut self.players), found));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_that_is_late_belongs_to_no_later_read() {
        let mut reads = RecordReads::default();
        assert_eq!(reads.poll(0), None);
        let players = vec![PlayerId(2), PlayerId(1), PlayerId(2)];
        reads.request(players.clone());
        let sorted = vec![PlayerId(1), PlayerId(2)];
        assert_eq!(reads.poll(5), Some((1, sorted)));
        assert_eq!((reads.poll(1_004), reads.take()), (None, None));
        assert_eq!(reads.poll(1_005), None);
        assert_eq!(reads.take(), Some((players, None)));
        reads.request(vec![PlayerId(3)]);
        assert_eq!(reads.poll(1_006), Some((2, vec![PlayerId(3)])));
        reads.on_reply(1, Some(Vec::new()));
        assert_eq!(reads.take(), None);
        reads.on_reply(2, Some(Vec::new()));
        assert_eq!(reads.take(), Some((vec![PlayerId(3)], Some(Vec::new()))));
        reads.on_reply(2, None);
        assert_eq!(reads.take(), None);
    }
}
