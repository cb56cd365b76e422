//! Ordered byte streams: messages, each after its length, which packets may split at any byte.
//!
//! | file | contents |
//! |---|---|
//! | `outgoing` | unacknowledged bytes, in chunks that are sent and sent again |
//! | `incoming` | bytes in order, early bytes, and the messages in them |
//!
//! Offsets count a stream's bytes, lengths included, from its start, and wrap at 2³². A packet contains the lowest 24 bits of an offset.
//! The rest follows, because the two ends are never 2²³ bytes apart.

mod incoming;
mod outgoing;

pub(super) use incoming::{IncomingStream, StreamLimits};
pub(super) use outgoing::{FrameRoom, OutgoingStream, RetransmitRules};

/// The most that a sender may be ahead of the last acknowledged byte, and bytes at the receiver ahead of the last byte in order.
pub const WINDOW_BYTES_MAX: usize = 1 << 20;

/// Larger buffers are freed when they are empty.
const RETAINED_BYTES: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use crate::acks::CarriedRange;
    use crate::packet::{FRAMES_MAX, PACKET_BYTES_MAX};
    use throng_core::memory::MemoryUse;

    const LIMITS: StreamLimits = StreamLimits {
        window_bytes: 600,
        message_bytes_max: 1 << 20,
    };

    fn start() -> impl Strategy<Value = u32> {
        prop_oneof![
            Just(0),
            any::<u32>(),
            Just(u32::MAX - 150),
            Just((1 << 24) - 150)
        ]
    }

    /// The bytes of a stream, and the end offset of each message.
    fn framed(messages: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for message in messages {
            throng_protocol::wire::write_varint(&mut bytes, message.len() as u64);
            bytes.extend(message);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    proptest! {
        #![proptest_config(draws!())]

        /// Compares with a flag per byte: frames overlap, repeat and overtake each other in any way.
        #[test]
        fn messages_are_delivered_as_soon_as_they_are_in_order(
            start in start(),
            messages in vec(prop_oneof![vec(any::<u8>(), 1..30), vec(any::<u8>(), 120..300)], 1..20),
            pieces in vec((0.0..1.0, 0_usize..150), 1..120),
        ) {
            let (bytes, ends) = framed(&messages);
            let mut stream = IncomingStream::starting_at(start);
            let mut came = vec![false; bytes.len()];
            let mut found: Vec<Vec<u8>> = Vec::new();
            let in_order = |came: &[bool]| came.iter().take_while(|came| **came).count();
            for (at, length) in pieces {
                // Mostly around the first missing byte.
                let next = in_order(&came);
                let from = (next.saturating_sub(100) + (at * 800.0) as usize).min(bytes.len());
                let until = (from + length).min(bytes.len());
                let low = start.wrapping_add(from as u32) & 0xff_ffff;
                let kept = stream.receive(low, &bytes[from..until], &LIMITS, &mut |message| {
                    found.push(message.to_vec());
                });
                let fits = from == until || from <= next || until <= next + LIMITS.window_bytes;
                prop_assert!(kept == Ok(fits) || (fits && stream.heap_bytes() > 64 * 8), "{:?}", kept);
                if kept == Ok(true) {
                    came[from..until].fill(true);
                }
                let whole = ends.partition_point(|end| *end <= in_order(&came));
                prop_assert_eq!(&found, &messages[..whole]);
            }
        }

        /// Chosen chunks are written in exactly the reserved room, however they merge.
        #[test]
        fn chosen_chunks_fit_and_are_merged(
            start in start(),
            rounds in vec((vec(1_usize..700, 0..4), 30_usize..1_400, vec(any::<bool>(), 1..10)), 1..20),
        ) {
            let mut stream = OutgoingStream::starting_at(start);
            let mut sent: Vec<CarriedRange> = Vec::new();
            for (nth, (pushed, bytes, lost)) in rounds.into_iter().enumerate() {
                pushed.iter().for_each(|length| stream.push(&vec![1; *length]));
                let rules = RetransmitRules {
                    now_us: nth as u64 + 1,
                    pto_us: 3,
                    newest_acknowledged_us: nth.checked_sub(2).map(|passed| passed as u64),
                    copies: 2,
                };
                let whole = FrameRoom { bytes, frames: 0 };
                let mut room = whole;
                stream.choose_retransmissions(&rules, &mut room);
                stream.choose_new(&mut room, 5_000);
                stream.choose_copies(&rules, &mut room, &mut 10_000);
                let (mut packet, mut pieces) = (Vec::new(), Vec::new());
                stream.write(rules.now_us, 1, &mut packet, |carried| pieces.push(carried));
                prop_assert_eq!(packet.len(), whole.bytes - room.bytes);
                prop_assert_eq!(pieces.len(), room.frames);
                prop_assert!(pieces.len() <= FRAMES_MAX && packet.len() <= PACKET_BYTES_MAX);
                for pair in pieces.windows(2) {
                    let end = pair[0].start.wrapping_add(u32::from(pair[0].length));
                    prop_assert_ne!(end, pair[1].start, "two that touch are one");
                }
                sent.extend(pieces);
                let mut lost = lost.into_iter().cycle();
                sent.retain(|carried| {
                    let is_lost = lost.next() == Some(true);
                    if !is_lost {
                        stream.acknowledge(*carried);
                    }
                    is_lost
                });
            }
        }
    }

    #[test]
    fn early_bytes_are_limited_by_window_and_number_of_spans() {
        for start in [0, u32::MAX - 150] {
            let low = |ahead: u32| start.wrapping_add(ahead) & 0xff_ffff;
            let receive = |stream: &mut IncomingStream, ahead, length| {
                stream.receive(low(ahead), &vec![1; length], &LIMITS, &mut |_| {})
            };
            let mut stream = IncomingStream::starting_at(start);
            assert_eq!(receive(&mut stream, 501, 100), Ok(false));
            assert_eq!(receive(&mut stream, 500, 100), Ok(true));
            let mut stream = IncomingStream::starting_at(start);
            for nth in 1..=64 {
                assert_eq!(receive(&mut stream, 2 * nth, 1), Ok(true));
            }
            assert_eq!(receive(&mut stream, 130, 1), Ok(false));
            assert_eq!(receive(&mut stream, 129, 1), Ok(true), "no span of its own");
        }
    }

    #[test]
    fn overlapping_acknowledgements_release_bytes_once() {
        let mut stream = OutgoingStream::default();
        let write = |stream: &mut OutgoingStream, now_us: u64, length: usize| {
            stream.push(&vec![1; length]);
            let rules = RetransmitRules {
                now_us,
                pto_us: 1_000,
                newest_acknowledged_us: None,
                copies: 2,
            };
            let mut room = FrameRoom {
                bytes: 1_000,
                frames: 0,
            };
            stream.choose_new(&mut room, 1_000);
            stream.choose_copies(&rules, &mut room, &mut 1_000);
            let mut pieces = Vec::new();
            stream.write(now_us, 0, &mut Vec::new(), |carried| pieces.push(carried));
            assert_eq!(pieces.len(), 1);
            pieces[0]
        };
        let first = write(&mut stream, 1, 10);
        let both = write(&mut stream, 2, 20);
        stream.acknowledge(first);
        assert_eq!(stream.pending_bytes(), 21);
        stream.acknowledge(both);
        assert_eq!(stream.pending_bytes(), 0);
        stream.acknowledge(first);
        assert_eq!(stream.pending_bytes(), 0);
    }
}
