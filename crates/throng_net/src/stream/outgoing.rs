//! The sending end of a stream.
//!
//! What is pushed between two packets is a *chunk*, or several where it is long: the unit that is sent again. Chunks lie side
//! by side, so that what goes into a packet is merged into few pieces; one is never longer than fits into the smallest packet.
//!
//! Cost: two copies a byte and a visit a chunk and packet. Memory: the bytes that are not acknowledged, and 16 bytes a chunk.

use std::collections::VecDeque;

use throng_core::memory::MemoryUse;

use super::RETAINED_BYTES;
use crate::acks::CarriedRange;
use crate::packet::{FRAME_HEADER_BYTES, FRAMES_MAX, length_bytes, write_frame_header};

/// The longest chunk: a packet of 508 bytes has room for it, sealed and with its heads.
const CHUNK_BYTES_MAX: usize = 448;

/// The most chunks that are sent and not acknowledged; what comes after them waits.
const CHUNKS_MAX: usize = 512;

/// What is cut is not cut shorter than this.
const CHUNK_BYTES_MIN: usize = 64;

/// Bytes that are sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    last_sent_us: u64,
    start: u32,
    length: u16,
    /// How often it was sent, up to 255.
    send_count: u8,
    is_acknowledged: bool,
    /// In the packet that is being made.
    is_chosen: bool,
}

const _: () = assert!(size_of::<Chunk>() <= 24);

/// When a chunk that was sent before is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetransmitRules {
    pub now_us: u64,
    /// It is not acknowledged so long after it was last sent.
    pub pto_us: u64,
    /// It is not acknowledged, and a packet is that was sent after this: the time of the newest of those, less by how much
    /// packets overtake each other.
    pub newest_acknowledged_us: Option<u64>,
    /// So many times in following packets, whatever is acknowledged.
    pub copies: u8,
}

impl RetransmitRules {
    /// Whether a chunk has to be sent again, as far as one can tell.
    fn must_retransmit(&self, chunk: &Chunk) -> bool {
        chunk.send_count > 0
            && chunk.last_sent_us < self.now_us
            && (self.has_timed_out(chunk)
                || self
                    .newest_acknowledged_us
                    .is_some_and(|passed| chunk.last_sent_us <= passed))
    }

    const fn has_timed_out(&self, chunk: &Chunk) -> bool {
        chunk.last_sent_us.saturating_add(self.pto_us) <= self.now_us
    }

    /// Whether it is sent again to be on the safe side.
    const fn wants_copy(&self, chunk: &Chunk) -> bool {
        chunk.send_count > 0 && chunk.last_sent_us < self.now_us && chunk.send_count < self.copies
    }
}

/// The room for pieces in a packet that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRoom {
    pub bytes: usize,
    pub frames: usize,
}

impl FrameRoom {
    /// Takes room for bytes that join so many pieces; whether there was.
    const fn reserve(&mut self, length: usize, joined: usize) -> bool {
        // Two pieces that become one give a head back.
        let bytes = self.bytes + joined * FRAME_HEADER_BYTES;
        let needed = length + FRAME_HEADER_BYTES;
        if self.frames + 1 > FRAMES_MAX + joined || needed > bytes {
            return false;
        }
        self.bytes = bytes - needed;
        self.frames = self.frames + 1 - joined;
        true
    }
}

/// The sending end.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct OutgoingStream {
    /// From `base` on.
    bytes: VecDeque<u8>,
    /// The first byte that is not acknowledged, or before such a one.
    base: u32,
    /// Side by side from `base` on; what is behind the last one was never sent.
    chunks: VecDeque<Chunk>,
}

impl OutgoingStream {
    /// An empty stream whose next byte has this offset.
    pub fn starting_at(base: u32) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    /// Appends a message behind its length.
    pub fn push(&mut self, message: &[u8]) {
        debug_assert!(!message.is_empty(), "a message has at least a byte");
        let mut length = message.len();
        let count = length_bytes(length);
        for nth in 1..=count {
            let more = if nth < count { 0x80 } else { 0 };
            self.bytes.push_back((length & 0x7f) as u8 | more);
            length >>= 7;
        }
        self.bytes.extend(message);
    }

    /// What is not acknowledged or not even sent, in bytes.
    pub fn pending_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// From `base` to the end of the last chunk.
    fn sent_bytes(&self) -> usize {
        let end = self
            .chunks
            .back()
            .map(|last| last.start.wrapping_add(u32::from(last.length)));
        end.map_or(0, |end| end.wrapping_sub(self.base) as usize)
    }

    /// Chooses chunks that have to be sent again; how many of them for want of any acknowledgement.
    pub fn choose_retransmissions(
        &mut self,
        rules: &RetransmitRules,
        room: &mut FrameRoom,
    ) -> usize {
        let mut late = 0;
        self.choose(room, |chunk| {
            let needs = rules.must_retransmit(chunk);
            late += usize::from(needs && rules.has_timed_out(chunk));
            needs
        });
        late
    }

    /// Chooses chunks that are sent again to be on the safe side, up to so many bytes, which it takes away.
    pub fn choose_copies(
        &mut self,
        rules: &RetransmitRules,
        room: &mut FrameRoom,
        bytes: &mut usize,
    ) {
        self.choose(room, |chunk| {
            let length = usize::from(chunk.length);
            let is_due = rules.wants_copy(chunk) && length <= *bytes;
            *bytes -= if is_due { length } else { 0 };
            is_due
        });
    }

    fn choose(&mut self, room: &mut FrameRoom, mut is_due: impl FnMut(&Chunk) -> bool) {
        let mut is_before_chosen = false;
        for nth in 0..self.chunks.len() {
            let chunk = &self.chunks[nth];
            if chunk.is_acknowledged || chunk.is_chosen || !is_due(chunk) {
                is_before_chosen = chunk.is_chosen;
                continue;
            }
            let is_after_chosen = self.chunks.get(nth + 1).is_some_and(|next| next.is_chosen);
            let joined = usize::from(is_before_chosen) + usize::from(is_after_chosen);
            if !room.reserve(usize::from(chunk.length), joined) {
                return;
            }
            self.chunks[nth].is_chosen = true;
            is_before_chosen = true;
        }
    }

    /// Chooses what was never sent, in new chunks, as far as there is room and the other end's window reaches. With less room
    /// than for all of it, it is cut only where that fills the packet well.
    pub fn choose_new(&mut self, room: &mut FrameRoom, window_bytes: usize) {
        loop {
            let sent = self.sent_bytes();
            let left = self.bytes.len().min(window_bytes).saturating_sub(sent);
            if left == 0 || self.chunks.len() >= CHUNKS_MAX {
                return;
            }
            let joined = usize::from(self.chunks.back().is_some_and(|last| last.is_chosen));
            let free =
                (room.bytes + joined * FRAME_HEADER_BYTES).saturating_sub(FRAME_HEADER_BYTES);
            let length = left.min(CHUNK_BYTES_MAX).min(free);
            let is_scrap = length < CHUNK_BYTES_MIN && length < left.min(CHUNK_BYTES_MAX);
            if length == 0 || is_scrap || !room.reserve(length, joined) {
                return;
            }
            self.chunks.push_back(Chunk {
                last_sent_us: 0,
                start: self.base.wrapping_add(sent as u32),
                length: length as u16,
                send_count: 0,
                is_acknowledged: false,
                is_chosen: true,
            });
        }
    }

    /// Writes what was chosen, and gives each piece to `carry`; how many bytes were sent for the first time, and again.
    pub fn write(
        &mut self,
        now_us: u64,
        stream: usize,
        packet: &mut Vec<u8>,
        mut carry: impl FnMut(CarriedRange),
    ) -> (usize, usize) {
        let (mut new, mut again) = (0, 0);
        let mut nth = 0;
        while nth < self.chunks.len() {
            if !self.chunks[nth].is_chosen {
                nth += 1;
                continue;
            }
            let start = self.chunks[nth].start;
            let mut length = 0;
            while let Some(chunk) = self.chunks.get_mut(nth).filter(|chunk| chunk.is_chosen) {
                let bytes = usize::from(chunk.length);
                *(if chunk.send_count == 0 {
                    &mut new
                } else {
                    &mut again
                }) += bytes;
                chunk.is_chosen = false;
                chunk.send_count = chunk.send_count.saturating_add(1);
                chunk.last_sent_us = now_us;
                length += bytes;
                nth += 1;
            }
            write_frame_header(packet, stream, start, length);
            let from = start.wrapping_sub(self.base) as usize;
            let (front, back) = self.bytes.as_slices();
            let split = front.len();
            packet.extend_from_slice(&front[from.min(split)..(from + length).min(split)]);
            packet.extend_from_slice(
                &back[from.saturating_sub(split)..(from + length).saturating_sub(split)],
            );
            carry(CarriedRange {
                start,
                length: length as u16,
                stream: stream as u8,
            });
        }
        (new, again)
    }

    /// What a packet carried has arrived. What was acknowledged before is so again.
    pub fn acknowledge(&mut self, carried: CarriedRange) {
        let from = carried.start.wrapping_sub(self.base);
        let key = |chunk: &Chunk| chunk.start.wrapping_sub(self.base);
        // What lies before the base is far ahead when it wraps, and then behind the last chunk.
        let first = if from > i32::MAX as u32 {
            0
        } else {
            self.chunks.partition_point(|chunk| key(chunk) < from)
        };
        let end = from.wrapping_add(u32::from(carried.length));
        if end > i32::MAX as u32 {
            return;
        }
        let base = self.base;
        for chunk in self.chunks.range_mut(first..) {
            if chunk.start.wrapping_sub(base) + u32::from(chunk.length) > end {
                break;
            }
            chunk.is_acknowledged = true;
        }
        self.release();
    }

    /// Everything that was sent counts as arrived.
    pub fn acknowledge_all(&mut self) {
        for chunk in &mut self.chunks {
            chunk.is_acknowledged = true;
        }
        self.release();
    }

    /// Forgets what is acknowledged, from the front on.
    fn release(&mut self) {
        let mut freed = 0;
        while let Some(chunk) = self.chunks.front().filter(|chunk| chunk.is_acknowledged) {
            freed += usize::from(chunk.length);
            self.chunks.pop_front();
        }
        if freed > 0 {
            self.bytes.drain(..freed);
            self.base = self.base.wrapping_add(freed as u32);
            if self.bytes.is_empty() && self.bytes.capacity() > RETAINED_BYTES {
                self.bytes = VecDeque::new();
                self.chunks.shrink_to(16);
            }
        }
    }
}
