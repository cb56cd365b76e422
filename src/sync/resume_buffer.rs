//! What a client missed on the reliable channel while its connection was lost.
//!
//! ```text
//! reliable messages of an update ─▶ connected client: counted; SentLog has those that may be in flight
//!                                   absent client:    all stored; if they are too many, only announcements
//! ```
//! A *position* counts the bytes of a connection's reliable messages, starting with the tick of its *Welcome*, modulo 2³². Messages about
//! the session itself are counted but not stored: the next connection receives them again.
//!
//! The messages of an absent client are stored in one ring, each with a header of one or a few bytes.
//!
//! Cost: for a connected client one addition per update, and 12 bytes. Nothing is searched before a connection is lost or resumed.

use std::collections::VecDeque;

use super::message_list::MessageList;
use super::sent_log::SentLog;
use crate::memory::MemoryUse;
use crate::wire::{ClientId, HELLO, ServerMessage, SessionNotice};

/// The limits of what is stored for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeBufferLimits {
    /// Bytes of messages.
    pub bytes_max: usize,
    /// Ticks after which a message has arrived, or the connection is known to be lost.
    pub ticks: u64,
}

/// The maximum age in ticks of messages with which a client can continue: motions contain the last eight bits of their tick.
const GAP_TICKS_MAX: u64 = 200;

/// The longest header.
const HEAD_BYTES_MAX: usize = 3 * 10;

/// A tick, and a position in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct LogPosition {
    tick: u64,
    position: u32,
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LogHeader {
    /// Where the message begins.
    position: LogPosition,
    length: u32,
    is_announce: bool,
}

impl LogHeader {
    const ANNOUNCE: u32 = 1;
    /// It does not directly follow the message before: the ticks and bytes between are written.
    const APART: u32 = 2;

    fn write(self, behind: LogPosition, log: &mut VecDeque<u8>) {
        let is_apart = self.position != behind;
        let flags = u32::from(self.is_announce) | u32::from(is_apart) << 1;
        // A tick's messages are below 2 GiB, and so are a client's.
        write_varint(log, u64::from(self.length) << 2 | u64::from(flags));
        if is_apart {
            write_varint(log, self.position.tick.wrapping_sub(behind.tick));
            write_varint(
                log,
                u64::from(self.position.position.wrapping_sub(behind.position)),
            );
        }
    }

    /// Reads the next header, if there is one.
    fn read(behind: LogPosition, log: &mut impl Iterator<Item = u8>) -> Option<Self> {
        let first = read_varint(log)?;
        let mut place = behind;
        if first & u64::from(Self::APART) != 0 {
            place.tick = place.tick.wrapping_add(read_varint(log)?);
            place.position = place.position.wrapping_add(read_varint(log)? as u32);
        }
        Some(Self {
            position: place,
            length: (first >> 2) as u32,
            is_announce: first & u64::from(Self::ANNOUNCE) != 0,
        })
    }

    /// The position after the message.
    const fn end(self) -> LogPosition {
        LogPosition {
            tick: self.position.tick,
            position: self.position.position.wrapping_add(self.length),
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

/// Reads the output of [`write_varint`]; nothing else is ever read.
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

/// Recent messages to one client, oldest first.
#[derive(Clone, Debug, Default, PartialEq, MemoryUse)]
struct ResumeLog {
    /// Headers and messages.
    log: VecDeque<u8>,
    /// The number of bytes of the messages in it.
    message_bytes: usize,
    /// The position after the last message that is no longer in the log, and after the last one in it.
    ends: [LogPosition; 2],
    /// From here on the log is complete.
    complete_from: u32,
    /// From here on all announcements are in the log.
    announced_from: u32,
    /// Only announcements are stored from now on.
    announcements_only: bool,
}

/// The state of a client's connection for resuming it.
#[derive(Clone, Debug, Default, PartialEq, MemoryUse)]
pub struct ResumeBuffer {
    /// The position after the last message.
    end: u32,
    /// The position after the last announcement that is no longer stored.
    announced_from: u32,
    /// The tick whose update began the connection.
    since_tick: u64,
    /// Whether the connection began without the state known before.
    is_fresh: bool,
    /// For a disconnected client: the position where the connection was lost, and the messages since.
    disconnected: Option<Box<(u32, ResumeLog)>>,
}

/// Recent messages to one client.
#[derive(Clone, Copy, Debug)]
pub struct RecentlySent<'a> {
    /// The messages to all clients.
    pub log: &'a SentLog,
    /// The client.
    pub client: ClientId,
    /// The limits for one client.
    pub limits: ResumeBufferLimits,
}

/// The messages for a client that reconnects.
#[derive(Clone, Debug, Default, PartialEq, MemoryUse)]
pub struct MissedMessages {
    /// The messages, oldest first.
    pub messages: MessageList,
    /// Whether they are all that it missed, or only the announcements.
    pub is_complete: bool,
}

impl ResumeBuffer {
    /// Begins a connection in a tick: positions start again, and nothing stored before is kept.
    pub fn restart(&mut self, is_anew: bool, tick: u64) {
        *self = Self {
            is_fresh: is_anew,
            since_tick: tick,
            ..Self::default()
        };
    }

    /// The position after the last message.
    pub const fn end(&self) -> u32 {
        self.end
    }

    /// Counts bytes sent to a connected client.
    pub const fn count_sent(&mut self, bytes: u32) {
        self.end = self.end.wrapping_add(bytes);
    }

    /// Announcements up to a position are not stored any more.
    pub const fn drop_announcements(&mut self, end: u32) {
        self.announced_from = end;
    }

    /// The connection is lost: nothing sent from now on arrives.
    pub fn on_disconnect(&mut self, sent: RecentlySent) {
        if self.disconnected.is_none() {
            self.disconnected = Some(Box::new((self.end, self.recent_log(sent))));
        }
    }

    /// The messages to a connected client that may be in flight.
    fn recent_log(&self, sent: RecentlySent) -> ResumeLog {
        let RecentlySent {
            log: sent,
            client,
            limits,
        } = sent;
        let mut messages = sent.messages_of(client, self.since_tick).peekable();
        let length = sent
            .messages_of(client, self.since_tick)
            .fold(0_u32, |all, (_, message)| {
                all.wrapping_add(message.len() as u32)
            });
        let mut at = self.end.wrapping_sub(length);
        let first = LogPosition {
            tick: messages.peek().map_or(0, |&(tick, _)| tick),
            position: at,
        };
        let mut log = ResumeLog {
            ends: [first; 2],
            complete_from: at,
            announced_from: self.announced_from,
            ..ResumeLog::default()
        };
        for (tick, message) in messages {
            log.store(message, LogPosition { tick, position: at });
            at = at.wrapping_add(message.len() as u32);
        }
        log.drop_oldest(limits.bytes_max);
        log
    }

    /// Stores a message of this tick to a disconnected client, or several that stay together.
    pub fn store(&mut self, message: &[u8], tick: u64) {
        let at = self.end;
        self.count_sent(message.len() as u32);
        if let Some((_, log)) = self.disconnected.as_deref_mut() {
            log.store(message, LogPosition { tick, position: at });
        }
    }

    /// Trims what is stored for a disconnected client to the limits; `false` when that is impossible without a loss.
    pub fn trim(&mut self, limits: ResumeBufferLimits) -> bool {
        self.disconnected.as_deref_mut().is_none_or(|(_, log)| {
            if log.message_bytes > limits.bytes_max {
                log.retain_announcements();
            }
            log.message_bytes <= limits.bytes_max
        })
    }

    /// The messages missed by a client that has everything up to a position of the last connection, or has nothing any more; complete if
    /// that is, without announcements, at most `bytes_max`. `None` if some are not stored any more, or the position never existed.
    pub fn missed(
        &mut self,
        received: Option<u32>,
        tick: u64,
        bytes_max: usize,
        sent: RecentlySent,
    ) -> Option<MissedMessages> {
        let end = self.end;
        match self.disconnected.as_deref_mut() {
            Some((lost_at, log)) => log.missed(received, (end, *lost_at), tick, bytes_max),
            None => self
                .recent_log(sent)
                .missed(received, (end, end), tick, bytes_max),
        }
    }

    /// Whether a client that has nothing of the last connection has to discard what it knew before.
    pub const fn is_anew(&self) -> bool {
        self.is_fresh
    }

    /// Adds it to a hash as words: its positions and, for a disconnected client, the stored messages.
    pub fn hash_state(&self, word: &mut impl FnMut(u64)) {
        word(u64::from(self.end) << 32 | u64::from(self.announced_from));
        word(self.since_tick << 1 | u64::from(self.is_fresh));
        if let Some((lost_at, log)) = self.disconnected.as_deref() {
            word(u64::from(*lost_at) << 32 | log.message_bytes as u64);
            word(u64::from(log.complete_from) << 32 | u64::from(log.announced_from));
            word(u64::from(log.announcements_only));
            let mut bytes = log.log.iter();
            while bytes.len() > 0 {
                let eight = bytes.by_ref().take(8);
                word(eight.fold(0, |all, &byte| all << 8 | u64::from(byte)));
            }
        }
    }
}

impl ResumeLog {
    /// Stores a message, unless it is about the session itself.
    fn store(&mut self, message: &[u8], place: LogPosition) {
        let Some(&kind) = message.first() else {
            return;
        };
        let is_announce = ServerMessage::is_announce(kind);
        if kind == HELLO
            || SessionNotice::is_notice(kind)
            || (self.announcements_only && !is_announce)
        {
            return;
        }
        let head = LogHeader {
            position: place,
            length: message.len() as u32,
            is_announce,
        };
        self.push(head, message);
    }

    fn push(&mut self, head: LogHeader, message: &[u8]) {
        let needed = HEAD_BYTES_MAX + message.len();
        if self.log.capacity() - self.log.len() < needed {
            self.log.reserve_exact(needed.max(self.log.len() / 4));
        }
        let [_, last] = &mut self.ends;
        head.write(*last, &mut self.log);
        *last = head.end();
        self.log.extend(message);
        self.message_bytes += message.len();
    }

    /// Drops the oldest messages until the rest is within this number of bytes.
    fn drop_oldest(&mut self, bytes_max: usize) {
        let mut log = self.log.iter().copied();
        let mut left = log.len();
        while self.message_bytes > bytes_max
            && let Some(first) = LogHeader::read(self.ends[0], &mut log)
        {
            if first.length > 0 {
                log.nth(first.length as usize - 1);
            }
            left = log.len();
            self.message_bytes -= first.length as usize;
            let behind = first.end();
            (self.ends[0], self.complete_from) = (behind, behind.position);
            if first.is_announce {
                self.announced_from = behind.position;
            }
        }
        self.log.drain(..self.log.len() - left);
    }

    /// The messages after their headers, oldest first.
    fn messages(&mut self) -> impl Iterator<Item = (LogHeader, &[u8])> {
        let mut behind = self.ends[0];
        let mut log = &*self.log.make_contiguous();
        std::iter::from_fn(move || {
            let mut bytes = log.iter().copied();
            let head = LogHeader::read(behind, &mut bytes)?;
            let start = log.len() - bytes.len();
            behind = head.end();
            let (message, rest) = log.get(start..)?.split_at_checked(head.length as usize)?;
            log = rest;
            Some((head, message))
        })
    }

    /// Drops all but announcements, and stores nothing else from now on.
    fn retain_announcements(&mut self) {
        let mut kept = Self {
            announcements_only: true,
            log: VecDeque::new(),
            message_bytes: 0,
            ends: [self.ends[0]; 2],
            ..*self
        };
        for (head, message) in self.messages().filter(|(head, _)| head.is_announce) {
            kept.push(head, message);
        }
        *self = kept;
    }

    fn missed(
        &mut self,
        received: Option<u32>,
        (end, lost_at): (u32, u32),
        tick: u64,
        bytes_max: usize,
    ) -> Option<MissedMessages> {
        let from = received.unwrap_or(lost_at);
        let back = |position: u32| end.wrapping_sub(position);
        if back(from) > back(self.announced_from) {
            return None;
        }
        let is_kept = !self.announcements_only && back(from) <= back(self.complete_from);
        let mut missed = MissedMessages::default();
        let (mut whole, mut oldest) = (MissedMessages::default(), tick);
        for (head, message) in self.messages() {
            if back(head.position.position) <= back(from) {
                oldest = oldest.min(head.position.tick);
                let write = |bytes: &mut Vec<u8>| bytes.extend_from_slice(message);
                whole.messages.push(write);
                if head.is_announce {
                    missed.messages.push(write);
                }
            }
        }
        // Announcements are sent either way.
        let more = whole.messages.bytes().len() - missed.messages.bytes().len();
        let is_short = oldest + GAP_TICKS_MAX >= tick && more <= bytes_max;
        if received.is_some() && is_kept && is_short {
            whole.is_complete = true;
            return Some(whole);
        }
        Some(missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::OutgoingBatch;
    use crate::sim::InlineExecutor;
    use crate::sync::sent_log::SentPart;
    use crate::wire::{write_announce, write_despawn};

    const LIMITS: ResumeBufferLimits = ResumeBufferLimits {
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

    fn all(missed: &MissedMessages) -> Vec<Vec<u8>> {
        missed.messages.iter().map(<[u8]>::to_vec).collect()
    }

    const CLIENT: ClientId = ClientId(4);

    /// Sends these messages to a connected client in a tick, and drops those that are too old.
    fn send_messages(log: &mut SentLog, kept: &mut ResumeBuffer, tick: u64, messages: &[Vec<u8>]) {
        let (mut batch, mut part) = (OutgoingBatch::default(), SentPart::default());
        let own = batch.part(0);
        own.begin_client(CLIENT, 0, 0);
        for message in messages {
            own.write_reliable(|bytes| bytes.extend_from_slice(message));
        }
        own.end_client();
        if let Some(line) = batch.parts[0].update(0) {
            kept.count_sent(part.append(line, &batch.shared, kept.end()));
        }
        log.push(
            tick,
            (&batch.shared, &batch.shared_starts),
            [&mut part].into_iter(),
            InlineExecutor,
        );
        log.trim(tick.saturating_sub(LIMITS.ticks), usize::MAX, |announce| {
            assert_eq!(announce.client, CLIENT);
            kept.drop_announcements(announce.end);
        });
    }

    const fn recently_sent(log: &SentLog) -> RecentlySent<'_> {
        RecentlySent {
            log,
            client: CLIENT,
            limits: LIMITS,
        }
    }

    #[test]
    fn resume_position_yields_the_rest_or_its_announcements() {
        let (mut log, mut kept) = (SentLog::default(), ResumeBuffer::default());
        let messages = [despawn(1), announce(1), despawn(2), announce(2)];
        let mut ends = vec![0];
        for message in &messages {
            ends.push(ends[ends.len() - 1] + message.len() as u32);
        }
        send_messages(&mut log, &mut kept, 5, &messages);
        for is_lost in [false, true] {
            if is_lost {
                kept.on_disconnect(recently_sent(&log));
            }
            for (nth, &end) in ends.iter().enumerate() {
                let mut missed =
                    |bytes_max| kept.missed(Some(end), 6, bytes_max, recently_sent(&log));
                let whole = missed(100).unwrap();
                assert_eq!(
                    (all(&whole), whole.is_complete),
                    (messages[nth..].to_vec(), true)
                );
                let announces = messages[nth..].iter().filter(|of| of.len() > 4).cloned();
                // An empty list is complete and short.
                assert_eq!(all(&missed(0).unwrap()), announces.collect::<Vec<_>>());
            }
            let mut missed = |end, tick| kept.missed(Some(end), tick, 100, recently_sent(&log));
            assert_eq!(missed(ends[4] + 1, 6), None);
            assert!(!missed(0, 5 + GAP_TICKS_MAX + 1).unwrap().is_complete);
        }
    }

    #[test]
    fn delivered_messages_expire_and_undelivered_ones_stay() {
        let (mut log, mut kept) = (SentLog::default(), ResumeBuffer::default());
        send_messages(&mut log, &mut kept, 1, &[announce(1)]);
        send_messages(&mut log, &mut kept, 8, &[despawn(1)]);
        send_messages(&mut log, &mut kept, 12, &[]);
        assert_eq!(
            kept.missed(Some(0), 12, 100, recently_sent(&log)),
            None,
            "an announcement is gone"
        );
        kept.on_disconnect(recently_sent(&log));
        let (_, of_late_kept) = kept.disconnected.as_deref().unwrap();
        assert_eq!(of_late_kept.message_bytes, despawn(1).len());
        let lost_at = kept.end;
        for id in 0..40 {
            kept.store(&despawn(id), 30);
            assert!(kept.trim(LIMITS));
        }
        kept.store(&announce(2), 31);
        kept.store(&despawn(9), 31);
        for received in [None, Some(lost_at)] {
            let missed = kept
                .missed(received, 60, 1_000, recently_sent(&log))
                .unwrap();
            assert_eq!(
                (all(&missed), missed.is_complete),
                (vec![announce(2)], false)
            );
        }
        // Exceeding the limit is reported.
        let fits = (3..20).take_while(|&text| {
            kept.store(&announce(text), 40);
            kept.trim(LIMITS)
        });
        assert_eq!(fits.count(), 60 / announce(3).len() - 1);
    }

    #[test]
    fn resume_buffer_keeps_the_newest_messages() {
        let (mut log, mut kept) = (SentLog::default(), ResumeBuffer::default());
        let messages: Vec<_> = (0..30).map(despawn).collect();
        send_messages(&mut log, &mut kept, 3, &messages);
        kept.on_disconnect(recently_sent(&log));
        let (_, of_late_kept) = kept.disconnected.as_deref().unwrap();
        let fit = LIMITS.bytes_max / despawn(0).len();
        assert_eq!(of_late_kept.message_bytes, fit * despawn(0).len());
        let from = (30 - fit) * despawn(0).len();
        let missed = kept
            .missed(Some(from as u32), 3, 100, recently_sent(&log))
            .unwrap();
        assert_eq!(
            (all(&missed), missed.is_complete),
            (messages[30 - fit..].to_vec(), true)
        );
        let missed = kept
            .missed(Some(from as u32 - 1), 3, 100, recently_sent(&log))
            .unwrap();
        assert_eq!((all(&missed), missed.is_complete), (vec![], false));
    }

    #[test]
    fn missed_messages_up_to_the_limit_are_sent_again() {
        let (mut log, mut kept) = (SentLog::default(), ResumeBuffer::default());
        let messages = [despawn(1), announce(1), despawn(2)];
        send_messages(&mut log, &mut kept, 5, &messages);
        // Announcements do not count.
        let bytes = 2 * despawn(1).len();
        for (bytes_max, is_complete) in [(bytes, true), (bytes - 1, false)] {
            let missed = kept.missed(Some(0), 6, bytes_max, recently_sent(&log));
            assert_eq!(missed.unwrap().is_complete, is_complete, "{bytes_max}");
        }
    }

    #[test]
    fn position_before_a_dropped_announcement_is_refused() {
        let (mut log, mut kept) = (SentLog::default(), ResumeBuffer::default());
        let mut messages = vec![despawn(1), announce(1)];
        messages.extend((2..30).map(despawn));
        send_messages(&mut log, &mut kept, 3, &messages);
        kept.on_disconnect(recently_sent(&log));
        let behind = (despawn(1).len() + announce(1).len()) as u32;
        let mut missed = |from| kept.missed(Some(from), 3, 1_000, recently_sent(&log));
        assert_eq!(missed(behind - 1), None);
        let rest = missed(behind).unwrap();
        assert_eq!((all(&rest), rest.is_complete), (vec![], false));
    }

    #[test]
    fn session_notices_are_counted_but_not_stored() {
        let (mut log, mut kept) = (SentLog::default(), ResumeBuffer::default());
        let mut notice = Vec::new();
        SessionNotice::ResumeRefused.write(&mut notice);
        send_messages(&mut log, &mut kept, 1, &[notice.clone(), despawn(1)]);
        kept.on_disconnect(recently_sent(&log));
        let (lost_at, of_late_kept) = kept.disconnected.as_deref().unwrap();
        assert_eq!(
            (*lost_at as usize, of_late_kept.message_bytes),
            (notice.len() + 3, 3)
        );
        kept.restart(true, 2);
        assert_eq!(
            (kept.end, kept.disconnected.is_none(), kept.is_anew()),
            (0, true, true)
        );
    }
}
