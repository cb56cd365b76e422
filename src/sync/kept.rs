//! What a client was told on the reliable channel of late, kept for the case that its connection is lost.
//!
//! ```text
//! a line's reliable messages ─▶ keep ─▶ of who is there: as long as they may be under way
//!                                       of who is away: all of them; when they are too many, announcements alone
//! ```
//! A *position* counts the bytes of a connection's reliable messages, from those of the tick of its *Welcome* on and modulo 2³².
//! What is about the session itself counts and is not kept: of that the next connection is told anew.
//!
//! A client's messages lie behind one another in one ring, each behind a head of a byte or a few: this is memory that nothing
//! else needs in the tick, so that what a tick costs is how many lines of it are touched, which is one. As a list of messages beside
//! their bytes it was three, and twice the room.
//!
//! Cost: one copy of a client's reliable messages, and room for a quarter more: it is the largest part of what replication keeps of a
//! client, so the ring does not double. No allocation while about as much is told as before.

use std::collections::VecDeque;

use prefetch_index::prefetch_index;

use crate::memory::MemoryUse;
use crate::wire::{HELLO, ServerMessage, SessionNotice};

/// How much is kept for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLimits {
    /// Bytes of messages.
    pub bytes_max: usize,
    /// Ticks after which what was sent has arrived, or the connection is known to be lost.
    pub ticks: u64,
}

/// Ticks that messages may be old for a client to go on with them: motions name the last eight bits of theirs.
const GAP_TICKS_MAX: u64 = 200;

/// The longest head.
const HEAD_BYTES_MAX: usize = 3 * 10;

/// A log of so few bytes stays as large as it is.
const LOG_BYTES_MIN: usize = 1 << 10;

/// A tick, and a position in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct LogPlace {
    tick: u64,
    at: u32,
}

/// What stands before a message.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Head {
    /// Where the message begins.
    place: LogPlace,
    length: u32,
    is_announce: bool,
}

impl Head {
    const ANNOUNCE: u32 = 1;
    /// It does not follow the message before at once: ticks and bytes that lie between are told.
    const APART: u32 = 2;

    fn write(self, behind: LogPlace, log: &mut VecDeque<u8>) {
        let is_apart = self.place != behind;
        let flags = u32::from(self.is_announce) | u32::from(is_apart) << 1;
        // A tick's messages are below 2 GiB, a client's all the more.
        write_varint(log, u64::from(self.length) << 2 | u64::from(flags));
        if is_apart {
            write_varint(log, self.place.tick.wrapping_sub(behind.tick));
            write_varint(log, u64::from(self.place.at.wrapping_sub(behind.at)));
        }
    }

    /// The next head, if there is one.
    fn read(behind: LogPlace, log: &mut impl Iterator<Item = u8>) -> Option<Self> {
        let first = read_varint(log)?;
        let mut place = behind;
        if first & u64::from(Self::APART) != 0 {
            place.tick = place.tick.wrapping_add(read_varint(log)?);
            place.at = place.at.wrapping_add(read_varint(log)? as u32);
        }
        Some(Self {
            place,
            length: (first >> 2) as u32,
            is_announce: first & u64::from(Self::ANNOUNCE) != 0,
        })
    }

    /// Behind the message.
    const fn behind(self) -> LogPlace {
        LogPlace {
            tick: self.place.tick,
            at: self.place.at.wrapping_add(self.length),
        }
    }
}

fn write_varint(log: &mut VecDeque<u8>, mut value: u64) {
    while value >= 0x80 {
        log.push_back(value as u8 | 0x80);
        value >>= 7;
    }
    log.push_back(value as u8);
}

/// What [`write_varint`] wrote; nothing else is ever read.
fn read_varint(log: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = log.next()?;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return Some(value);
        }
    }
}

/// What was told of late, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptMessages {
    /// Heads and messages.
    log: VecDeque<u8>,
    /// Bytes of the messages in it.
    kept: usize,
    /// Behind the last message that is no more in the log, and behind the last one in it.
    ends: [LogPlace; 2],
    /// The position behind the last message.
    end: u32,
    /// From here on everything is kept.
    whole_from: u32,
    /// From here on all announcements are.
    announced_from: u32,
    /// Where the connection was found to be lost.
    lost_at: Option<u32>,
    /// Of what comes announcements alone are kept.
    announces_only: bool,
    /// Whether the connection began with nothing of what was known before it.
    is_anew: bool,
}

/// What is told to who comes back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Missed {
    /// The messages side by side.
    pub bytes: Vec<u8>,
    /// Where each of them ends.
    pub ends: Vec<usize>,
    /// Whether they are all that was missed, or the announcements of it.
    pub is_whole: bool,
}

impl Missed {
    /// Adds a message.
    pub fn push(&mut self, message: &[u8]) {
        self.bytes.extend_from_slice(message);
        self.ends.push(self.bytes.len());
    }

    /// The messages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.bytes[start..end])
    }
}

impl KeptMessages {
    /// A connection begins: positions are counted anew, and nothing is kept of before.
    pub fn restart(&mut self, is_anew: bool) {
        self.log.clear();
        *self = Self {
            log: std::mem::take(&mut self.log),
            is_anew,
            ..Self::default()
        };
    }

    /// The connection is lost: whatever is told from now on has not arrived.
    pub const fn lose_link(&mut self) {
        if self.lost_at.is_none() {
            self.lost_at = Some(self.end);
        }
    }

    /// Asks for the memory that the next message comes to.
    pub fn prefetch_end(&self) {
        let (first, second) = self.log.as_slices();
        let end = if second.is_empty() { first } else { second };
        prefetch_index(end, end.len());
    }

    /// Keeps a message of this tick, or several that stay together.
    pub fn keep(&mut self, message: &[u8], tick: u64) {
        let Some(&kind) = message.first() else {
            return;
        };
        let at = self.end;
        self.end = self.end.wrapping_add(message.len() as u32);
        let is_announce = ServerMessage::is_announce(kind);
        if kind == HELLO || SessionNotice::is_notice(kind) || (self.announces_only && !is_announce)
        {
            return;
        }
        let head = Head {
            place: LogPlace { tick, at },
            length: message.len() as u32,
            is_announce,
        };
        self.push(head, message);
    }

    fn push(&mut self, head: Head, message: &[u8]) {
        let needed = HEAD_BYTES_MAX + message.len();
        if self.log.capacity() - self.log.len() < needed {
            self.log.reserve_exact(needed.max(self.log.len() / 4));
        }
        let [_, last] = &mut self.ends;
        head.write(*last, &mut self.log);
        *last = head.behind();
        self.log.extend(message);
        self.kept += message.len();
    }

    /// Brings what is kept within the limits; `false` when that cannot be without a loss. What is too old may stay for a quarter
    /// longer: a look at it every tick is one at memory that nothing else needs. `nth` says which tick of those it is, so that
    /// not all clients have the same.
    pub fn trim(&mut self, tick: u64, limits: KeptLimits, nth: u32) -> bool {
        let is_due = (tick + u64::from(nth)).is_multiple_of((limits.ticks / 4).max(1));
        if !is_due && self.kept <= limits.bytes_max {
            return true;
        }
        if self.lost_at.is_none() {
            self.drop_oldest(tick, limits);
        } else if self.kept > limits.bytes_max {
            self.keep_announces_only();
        }
        self.kept <= limits.bytes_max
    }

    fn drop_oldest(&mut self, tick: u64, limits: KeptLimits) {
        let mut log = self.log.iter().copied();
        let mut left = log.len();
        while let Some(first) = Head::read(self.ends[0], &mut log)
            && (self.kept > limits.bytes_max || first.place.tick + limits.ticks < tick)
        {
            if first.length > 0 {
                log.nth(first.length as usize - 1);
            }
            left = log.len();
            self.kept -= first.length as usize;
            let behind = first.behind();
            (self.ends[0], self.whole_from) = (behind, behind.at);
            if first.is_announce {
                self.announced_from = behind.at;
            }
        }
        self.log.drain(..self.log.len() - left);
        // What a first sight of everybody took is not needed any more.
        if self.log.capacity() > 3 * left + LOG_BYTES_MIN {
            self.log.shrink_to(left + left / 4);
        }
    }

    /// The messages behind their heads, oldest first.
    fn messages(&mut self) -> impl Iterator<Item = (Head, &[u8])> {
        let mut behind = self.ends[0];
        let mut log = &*self.log.make_contiguous();
        std::iter::from_fn(move || {
            let mut bytes = log.iter().copied();
            let head = Head::read(behind, &mut bytes)?;
            let start = log.len() - bytes.len();
            behind = head.behind();
            let (message, rest) = log.get(start..)?.split_at_checked(head.length as usize)?;
            log = rest;
            Some((head, message))
        })
    }

    fn keep_announces_only(&mut self) {
        let mut kept = Self {
            announces_only: true,
            log: VecDeque::new(),
            kept: 0,
            ends: [self.ends[0]; 2],
            ..*self
        };
        for (head, message) in self.messages().filter(|(head, _)| head.is_announce) {
            kept.push(head, message);
        }
        *self = kept;
    }

    /// What was missed by who has all up to a position of the last connection, or has nothing any more; all of it where that is,
    /// without announcements, no more than `bytes_max`. `None` where some of it is kept no more, or the position never was.
    pub fn missed(&mut self, received: Option<u32>, tick: u64, bytes_max: usize) -> Option<Missed> {
        let from = received.or(self.lost_at).unwrap_or(self.end);
        let end = self.end;
        let back = |position: u32| end.wrapping_sub(position);
        if back(from) > back(self.announced_from) {
            return None;
        }
        let is_kept = !self.announces_only && back(from) <= back(self.whole_from);
        let mut missed = Missed::default();
        let (mut whole, mut oldest) = (Missed::default(), tick);
        for (head, message) in self.messages() {
            if back(head.place.at) <= back(from) {
                oldest = oldest.min(head.place.tick);
                whole.push(message);
                if head.is_announce {
                    missed.push(message);
                }
            }
        }
        // Announcements are told either way.
        let more = whole.bytes.len() - missed.bytes.len();
        let is_short = oldest + GAP_TICKS_MAX >= tick && more <= bytes_max;
        if received.is_some() && is_kept && is_short {
            whole.is_whole = true;
            return Some(whole);
        }
        Some(missed)
    }

    /// Whether who has nothing of the last connection is to forget what it knew before.
    pub const fn is_anew(&self) -> bool {
        self.is_anew
    }

    /// Shows it as words, for a hash: how much is kept, and of who is away what.
    pub fn digest(&self, word: &mut impl FnMut(u64)) {
        word(u64::from(self.end) << 32 | self.kept as u64);
        word(u64::from(self.whole_from) << 32 | u64::from(self.announced_from));
        let flags = u64::from(self.announces_only) << 1 | u64::from(self.is_anew);
        word(self.lost_at.map_or(u64::MAX, u64::from) ^ flags << 40);
        if self.lost_at.is_some() {
            let mut bytes = self.log.iter();
            while bytes.len() > 0 {
                let eight = bytes.by_ref().take(8);
                word(eight.fold(0, |all, &byte| all << 8 | u64::from(byte)));
            }
        }
    }
}

impl MemoryUse for KeptMessages {
    fn heap_bytes(&self) -> usize {
        self.log.heap_bytes()
    }
}

impl MemoryUse for Missed {
    fn heap_bytes(&self) -> usize {
        self.bytes.heap_bytes() + self.ends.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{write_announce, write_despawn};

    const LIMITS: KeptLimits = KeptLimits {
        bytes_max: 60,
        ticks: 10,
    };

    fn announce(text: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_announce(&mut bytes, None, &[text; 4]);
        bytes
    }

    fn despawn(id: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_despawn(&mut bytes, id, 0);
        bytes
    }

    fn all(missed: &Missed) -> Vec<Vec<u8>> {
        missed.iter().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn who_says_how_far_it_got_is_told_the_rest_or_the_announcements_of_it() {
        let mut kept = KeptMessages::default();
        let messages = [despawn(1), announce(1), despawn(2), announce(2)];
        let mut ends = vec![0];
        for message in &messages {
            kept.keep(message, 5);
            ends.push(kept.end);
        }
        assert!(kept.trim(5, LIMITS, 0));
        for (nth, &end) in ends.iter().enumerate() {
            let missed = kept.missed(Some(end), 6, 100).unwrap();
            assert_eq!(
                (all(&missed), missed.is_whole),
                (messages[nth..].to_vec(), true)
            );
            let missed = kept.missed(Some(end), 6, 0).unwrap();
            let announces = messages[nth..].iter().filter(|of| of.len() > 4).cloned();
            // Nothing at all is whole and short.
            assert_eq!(all(&missed), announces.collect::<Vec<_>>());
        }
        assert_eq!(kept.missed(Some(kept.end + 1), 6, 100), None);
        assert!(
            !kept
                .missed(Some(0), 5 + GAP_TICKS_MAX + 1, 100)
                .unwrap()
                .is_whole
        );
    }

    #[test]
    fn what_arrived_long_ago_goes_and_of_who_is_away_all_that_must_not_be_lost_stays() {
        let mut kept = KeptMessages::default();
        kept.keep(&announce(1), 1);
        kept.keep(&despawn(1), 8);
        assert!(kept.trim(12, LIMITS, 0));
        assert_eq!(kept.kept, despawn(1).len());
        assert_eq!(
            kept.missed(Some(0), 12, 100),
            None,
            "an announcement is gone"
        );
        kept.lose_link();
        let lost_at = kept.end;
        for id in 0..40 {
            kept.keep(&despawn(id), 30);
            assert!(kept.trim(30, LIMITS, 0));
        }
        kept.keep(&announce(2), 31);
        kept.keep(&despawn(9), 31);
        for received in [None, Some(lost_at)] {
            let missed = kept.missed(received, 60, 1_000).unwrap();
            assert_eq!((all(&missed), missed.is_whole), (vec![announce(2)], false));
        }
        // What is more than may be kept is said to be.
        let fits = (3..20).take_while(|&text| {
            kept.keep(&announce(text), 40);
            kept.trim(40, LIMITS, 0)
        });
        assert_eq!(fits.count(), 60 / announce(3).len() - 1);
    }

    #[test]
    fn what_is_about_the_session_counts_and_is_not_kept() {
        let mut kept = KeptMessages::default();
        let mut notice = Vec::new();
        SessionNotice::NotResumed.write(&mut notice);
        kept.keep(&notice, 1);
        kept.keep(&despawn(1), 1);
        assert_eq!((kept.end as usize, kept.kept), (notice.len() + 3, 3));
        kept.restart(true);
        assert_eq!((kept.end, kept.kept, kept.is_anew()), (0, 0, true));
    }
}
