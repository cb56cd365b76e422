//! Unreliable messages that wait for the next packets. The newest are sent first; those without room are dropped.

use throng_core::memory::MemoryUse;

use super::packet::{framed_bytes, write_message};

/// Unreliable messages pushed since the last flush.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(super) struct UnreliableQueue {
    bytes: Vec<u8>,
    /// End offset of each message.
    ends: Vec<u32>,
}

impl UnreliableQueue {
    /// Appends a message. If the queue would have more than `most` bytes, drops the oldest messages, half of all at a time. Returns the
    /// number dropped.
    pub fn push(&mut self, message: &[u8], most: usize) -> u64 {
        let mut dropped = 0;
        if self.bytes.len() + message.len() > most {
            let half = most.saturating_sub(message.len()) / 2;
            let excess = self.bytes.len().saturating_sub(half);
            dropped = self
                .ends
                .partition_point(|&end| (end as usize) < excess)
                .min(self.ends.len().saturating_sub(1))
                + 1;
            dropped = dropped.min(self.ends.len());
            let start = self.start(dropped);
            self.bytes.drain(..start);
            self.ends.drain(..dropped);
            self.ends.iter_mut().for_each(|end| *end -= start as u32);
        }
        self.bytes.extend_from_slice(message);
        self.ends.push(self.bytes.len() as u32);
        dropped as u64
    }

    fn start(&self, nth: usize) -> usize {
        nth.checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize)
    }

    /// Bytes of a message in a packet.
    fn framed_bytes_of(&self, nth: usize) -> usize {
        framed_bytes(self.ends[nth] as usize - self.start(nth))
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Upper bound of the bytes that all messages take in packets.
    pub fn framed_bytes(&self) -> usize {
        self.bytes.len() + 2 * self.ends.len()
    }

    /// Writes the newest messages that fit into `room`, in the order in which they were pushed, and removes them. Drops the next message if
    /// it fits no packet (`room_max`). Returns the number dropped.
    pub fn write(&mut self, packet: &mut Vec<u8>, room: usize, room_max: usize) -> u64 {
        let count = self.ends.len();
        while let Some(last) = self.ends.len().checked_sub(1)
            && self.framed_bytes_of(last) > room_max
        {
            self.truncate(last);
        }
        let dropped = count - self.ends.len();
        let (mut first, mut left) = (self.ends.len(), room);
        while first > 0 && self.framed_bytes_of(first - 1) <= left {
            first -= 1;
            left -= self.framed_bytes_of(first);
        }
        for nth in first..self.ends.len() {
            write_message(
                packet,
                &self.bytes[self.start(nth)..self.ends[nth] as usize],
            );
        }
        self.truncate(first);
        dropped as u64
    }

    /// Removes all but the oldest `count` messages.
    fn truncate(&mut self, count: usize) {
        self.bytes.truncate(self.start(count));
        self.ends.truncate(count);
    }

    /// Removes all messages. Returns their number.
    pub fn clear(&mut self) -> u64 {
        let count = self.ends.len();
        self.truncate(0);
        count as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use crate::packet::{PacketStamp, ParsedPacket, TransportHeader};

    fn written(tail: &mut UnreliableQueue, room: usize) -> Vec<Vec<u8>> {
        let mut packet = Vec::new();
        let head = TransportHeader {
            frames: 0,
            wants_ack: false,
            stamp: PacketStamp::default(),
            number: 0,
            newest: 0,
            before: u32::MAX,
            has_long_bitmap: false,
        };
        head.write(&mut packet);
        let head_bytes = packet.len();
        tail.write(&mut packet, room, 1_000);
        assert!(packet.len() <= head_bytes + room);
        let read = ParsedPacket::read(&packet).unwrap();
        read.unreliable().map(<[u8]>::to_vec).collect()
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn newest_messages_are_sent_first_and_once(
            messages in vec(vec(any::<u8>(), 1..60), 0..40),
            most in 60_usize..2_000,
            rooms in vec(0_usize..200, 1..10),
        ) {
            let (mut tail, mut dropped) = (UnreliableQueue::default(), 0);
            for message in &messages {
                dropped += tail.push(message, most);
                prop_assert!(tail.bytes.len() <= most);
            }
            let mut left = &messages[dropped as usize..];
            for room in rooms {
                let found = written(&mut tail, room);
                let (rest, newest) = left.split_at(left.len() - found.len());
                prop_assert_eq!(&found, newest);
                let next = rest.last().map_or(usize::MAX, |next| framed_bytes(next.len()));
                let used: usize = found.iter().map(|found| framed_bytes(found.len())).sum();
                prop_assert!(next > room - used, "there was room for another");
                left = rest;
            }
            prop_assert_eq!(tail.clear() as usize, left.len());
            prop_assert!(tail.is_empty());
        }
    }
}
