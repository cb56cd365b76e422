//! The receiving end of a stream.
//!
//! Bytes in order are read in place from the packet; only incomplete messages are copied. Bytes that arrive early wait in a ring, as spans
//! of offsets, until the bytes before them have arrived.
//!
//! Bounds: the ring by the window, the spans by their number, a message by the longest allowed. Early bytes that do not fit are refused,
//! and their packet is not acknowledged. Bytes in order always fit, so the stream always makes progress.

use throng_core::memory::MemoryUse;

use super::RETAINED_BYTES;

/// Maximum number of early spans.
const SPANS_MAX: usize = 64;

/// Limits of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// How far ahead of the last byte in order other bytes may arrive.
    pub window_bytes: usize,
    /// The longest message, in bytes.
    pub message_bytes_max: usize,
}

/// Early bytes, from one offset to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
}

/// The receiving end of a stream.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct IncomingStream {
    /// Offset of the first byte that has not arrived.
    next: u32,
    /// The start of an incomplete message, including its length.
    partial: Vec<u8>,
    /// Its complete length, once known.
    whole_bytes: Option<usize>,
    /// Ordered by offset; they touch neither each other nor `next`.
    early: Vec<Span>,
    /// The bytes of the spans, each at its offset modulo the ring length, which is a power of two.
    ring: Vec<u8>,
}

impl IncomingStream {
    /// A stream whose first byte has this offset.
    pub fn starting_at(next: u32) -> Self {
        Self {
            next,
            ..Self::default()
        }
    }

    /// Handles a stream frame, and passes on the messages that it completes. Returns whether all bytes of the frame were in order or could
    /// be stored.
    ///
    /// # Errors
    /// The length of a message, if it is 0 or above the limit. Then the rest of the stream cannot be read.
    pub fn receive(
        &mut self,
        low_offset: u32,
        bytes: &[u8],
        limits: &StreamLimits,
        deliver: &mut impl FnMut(&[u8]),
    ) -> Result<bool, u32> {
        // The nearest offset with these 24 low bits, in either direction.
        let ahead = (low_offset.wrapping_sub(self.next) << 8) as i32 >> 8;
        if ahead > 0 {
            return Ok(self.store_early(ahead as usize, bytes, limits));
        }
        let known = ahead.unsigned_abs() as usize;
        if known < bytes.len() {
            self.advance(&bytes[known..], limits, deliver)?;
            self.catch_up(limits, deliver)?;
        }
        Ok(true)
    }

    /// Reads bytes in order.
    fn advance(
        &mut self,
        mut bytes: &[u8],
        limits: &StreamLimits,
        deliver: &mut impl FnMut(&[u8]),
    ) -> Result<(), u32> {
        self.next = self.next.wrapping_add(bytes.len() as u32);
        while !self.partial.is_empty() && !bytes.is_empty() {
            let missing = self.whole_bytes.map_or(1, |all| all - self.partial.len());
            let (first, rest) = bytes.split_at(missing.min(bytes.len()));
            self.partial.extend_from_slice(first);
            bytes = rest;
            let Some((head, length)) = read_length(&self.partial, limits.message_bytes_max)? else {
                continue;
            };
            self.whole_bytes = Some(head + length);
            if self.partial.len() == head + length {
                deliver(&self.partial[head..]);
                self.partial.clear();
                self.partial.shrink_to(RETAINED_BYTES);
                self.whole_bytes = None;
            }
        }
        while !bytes.is_empty() {
            let found = read_length(bytes, limits.message_bytes_max)?;
            let whole = found.and_then(|(head, length)| {
                let message = bytes.get(head..head + length)?;
                Some((message, head + length))
            });
            let Some((message, taken)) = whole else {
                self.partial.extend_from_slice(bytes);
                self.whole_bytes = found.map(|(head, length)| head + length);
                break;
            };
            deliver(message);
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Stores early bytes. Returns whether there was room.
    fn store_early(&mut self, ahead: usize, bytes: &[u8], limits: &StreamLimits) -> bool {
        if bytes.is_empty() {
            return true;
        }
        if ahead + bytes.len() > limits.window_bytes {
            return false;
        }
        let start = self.next.wrapping_add(ahead as u32);
        let end = start.wrapping_add(bytes.len() as u32);
        let from_next = |offset: u32| offset.wrapping_sub(self.next);
        // Merges the spans that touch it.
        let first = self
            .early
            .partition_point(|span| from_next(span.end) < from_next(start));
        let behind = self
            .early
            .partition_point(|span| from_next(span.start) <= from_next(end));
        if first == behind && self.early.len() >= SPANS_MAX {
            return false;
        }
        self.grow(ahead + bytes.len());
        self.write_to_ring(start, bytes);
        if first == behind {
            self.early.insert(first, Span { start, end });
        } else {
            let (least, most) = (self.early[first].start, self.early[behind - 1].end);
            let next = self.next;
            self.early[first] = Span {
                start: next.wrapping_add(least.wrapping_sub(next).min(ahead as u32)),
                end: next.wrapping_add(most.wrapping_sub(next).max(end.wrapping_sub(next))),
            };
            self.early.drain(first + 1..behind);
        }
        true
    }

    fn write_to_ring(&mut self, start: u32, bytes: &[u8]) {
        let at = start as usize & (self.ring.len() - 1);
        let (first, rest) = bytes.split_at(bytes.len().min(self.ring.len() - at));
        self.ring[at..at + first.len()].copy_from_slice(first);
        self.ring[..rest.len()].copy_from_slice(rest);
    }

    /// Grows the ring for this many bytes from `next` on.
    fn grow(&mut self, bytes: usize) {
        if bytes <= self.ring.len() {
            return;
        }
        let longer = vec![0; bytes.next_power_of_two().max(256)];
        let ring = std::mem::replace(&mut self.ring, longer);
        for nth in 0..self.early.len() {
            let span = self.early[nth];
            let (first, rest) = slices(&ring, span);
            self.write_to_ring(span.start, first);
            self.write_to_ring(span.start.wrapping_add(first.len() as u32), rest);
        }
    }

    /// Reads early bytes that are in order now.
    fn catch_up(
        &mut self,
        limits: &StreamLimits,
        deliver: &mut impl FnMut(&[u8]),
    ) -> Result<(), u32> {
        while let Some(&span) = self.early.first() {
            let known = self.next.wrapping_sub(span.start);
            if known > i32::MAX as u32 {
                break;
            }
            self.early.remove(0);
            if known < span.end.wrapping_sub(span.start) {
                let ring = std::mem::take(&mut self.ring);
                let start = self.next;
                let (first, rest) = slices(&ring, Span { start, ..span });
                let read = self
                    .advance(first, limits, deliver)
                    .and_then(|()| self.advance(rest, limits, deliver));
                self.ring = ring;
                read?;
            }
        }
        if self.early.is_empty() && self.ring.len() > RETAINED_BYTES {
            self.ring = Vec::new();
        }
        Ok(())
    }
}

/// The bytes of a span in the ring. It may wrap around the end.
fn slices(ring: &[u8], span: Span) -> (&[u8], &[u8]) {
    let length = span.end.wrapping_sub(span.start) as usize;
    let at = span.start as usize & (ring.len() - 1);
    let first = length.min(ring.len() - at);
    (&ring[at..at + first], &ring[..length - first])
}

/// The length of the next message, and the number of bytes that encode it. `None` if they are incomplete.
fn read_length(bytes: &[u8], most: usize) -> Result<Option<(usize, usize)>, u32> {
    let mut length = 0_usize;
    for (nth, &byte) in bytes.iter().take(4).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * nth);
        if length > most {
            break;
        }
        if byte < 0x80 {
            return match length {
                0 => Err(0),
                _ => Ok(Some((nth + 1, length))),
            };
        }
    }
    if length > most || bytes.len() >= 4 {
        return Err(length as u32);
    }
    Ok(None)
}
