//! The sending end of a stream.
//!
//! Bytes pushed between two packets form a *chunk*, or several if they are long. A chunk is the unit of retransmission and always fits into
//! the smallest packet. Neighbouring chunks of a packet are merged into few stream frames.
//!
//! Cost: two copies per byte, and one visit per chunk and packet. Memory: the unacknowledged bytes, and 16 bytes per chunk.

use std::collections::VecDeque;

use throng_core::memory::MemoryUse;

use super::RETAINED_BYTES;
use crate::acks::CarriedRange;
use crate::packet::{FRAME_HEADER_BYTES, FRAMES_MAX, length_bytes, write_frame_header};

/// The longest chunk. A packet of 508 bytes has room for it, with encryption and headers.
const CHUNK_BYTES_MAX: usize = 448;

/// Maximum number of chunks that are sent and not acknowledged. Later bytes wait.
const CHUNKS_MAX: usize = 512;

/// A split does not make chunks shorter than this.
const CHUNK_BYTES_MIN: usize = 64;

/// Bytes that are sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    last_sent_us: u64,
    start: u32,
    length: u16,
    /// How often it was sent; saturates at 255.
    send_count: u8,
    is_acknowledged: bool,
    /// It is part of the packet that is being built.
    is_chosen: bool,
}

const _: () = assert!(size_of::<Chunk>() <= 24);

/// When a chunk is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetransmitRules {
    pub now_us: u64,
    /// It is unacknowledged for this time after it was last sent.
    pub pto_us: u64,
    /// It is unacknowledged, and a packet that was sent later is acknowledged. This is the time of the newest such packet, minus the
    /// reordering time.
    pub newest_acknowledged_us: Option<u64>,
    /// Number of consecutive packets that carry it, whatever is acknowledged.
    pub copies: u8,
}

impl RetransmitRules {
    /// Whether a chunk has to be sent again.
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

    /// Whether a chunk is sent again as a redundant copy.
    const fn wants_copy(&self, chunk: &Chunk) -> bool {
        chunk.send_count > 0 && chunk.last_sent_us < self.now_us && chunk.send_count < self.copies
    }
}

/// Room for stream frames in a packet that is being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRoom {
    pub bytes: usize,
    pub frames: usize,
}

impl FrameRoom {
    /// Reserves room for bytes that join this many frames. Returns whether there was room.
    const fn reserve(&mut self, length: usize, joined: usize) -> bool {
        // Each merge of two frames frees a header.
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

/// The sending end of a stream.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct OutgoingStream {
    /// Starting at `base`.
    bytes: VecDeque<u8>,
    /// Offset of the first byte. All bytes before it are acknowledged.
    base: u32,
    /// Contiguous from `base` on. Bytes after the last chunk were never sent.
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

    /// Appends a message after its length.
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

    /// Bytes that are not acknowledged, including those not sent yet.
    pub fn pending_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Number of bytes from `base` to the end of the last chunk.
    fn sent_bytes(&self) -> usize {
        let end = self
            .chunks
            .back()
            .map(|last| last.start.wrapping_add(u32::from(last.length)));
        end.map_or(0, |end| end.wrapping_sub(self.base) as usize)
    }

    /// Chooses chunks that have to be sent again. Returns how many of them because of a timeout.
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

    /// Chooses redundant copies, up to a number of bytes, from which it subtracts theirs.
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

    /// Chooses bytes that were never sent, as new chunks, within the room and the other end's window. If they do not all fit, a chunk is
    /// split only if that fills the packet well.
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

    /// Writes the chosen chunks, and passes each frame to `carry`. Returns the number of bytes sent for the first time and sent again.
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

    /// Marks the bytes of a packet as acknowledged. Repeating it changes nothing.
    pub fn acknowledge(&mut self, carried: CarriedRange) {
        let from = carried.start.wrapping_sub(self.base);
        let key = |chunk: &Chunk| chunk.start.wrapping_sub(self.base);
        // Bytes before the base wrap to a large offset, after the last chunk.
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

    /// Marks everything that was sent as acknowledged.
    pub fn acknowledge_all(&mut self) {
        for chunk in &mut self.chunks {
            chunk.is_acknowledged = true;
        }
        self.release();
    }

    /// Removes acknowledged chunks from the front.
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
