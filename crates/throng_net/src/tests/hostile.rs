//! Malformed and malicious packets.

use proptest::collection::vec;
use proptest::prelude::*;
use throng_protocol::wire::WireError;

use super::Talk;
use crate::conditioner::{LossModel, NetworkConditioner};
use crate::packet::{TransportHeader, set_frames, write_frame_header};
use crate::{
    CountersStart, EndpointSettings, PacketError, PacketStamp, ReliableEndpoint, StreamId,
};

/// A header with this number and no acknowledgement.
fn header(number: u16) -> TransportHeader {
    TransportHeader {
        frames: 0,
        wants_ack: false,
        stamp: PacketStamp::default(),
        number,
        newest: u16::MAX,
        before: u32::MAX,
        has_long_bitmap: false,
    }
}

/// A packet with one stream frame.
fn packet_with_frame(number: u16, stream: usize, offset: u32, bytes: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    header(number).write(&mut packet);
    write_frame_header(&mut packet, stream, offset, bytes.len());
    packet.extend_from_slice(bytes);
    set_frames(&mut packet, 1);
    packet
}

/// Two endpoints after some traffic over a path that loses a fifth of the packets.
fn after_traffic(ticks: usize) -> Talk {
    let model = NetworkConditioner::with_loss(LossModel::Independent(0.2));
    let mut talk = Talk::new(
        EndpointSettings::default(),
        CountersStart::default(),
        model,
        4,
    );
    for nth in 0..ticks {
        talk.down
            .push(&mut talk.duplex.server, StreamId::World, 1 + nth % 90);
        talk.up
            .push(&mut talk.duplex.client, StreamId::Game, 1 + nth % 30);
        talk.down.push_unreliable(&mut talk.duplex.server, 40);
        talk.tick().unwrap();
    }
    talk
}

proptest! {
    #![proptest_config(draws!())]

    /// Random packets cause no panic, and memory stays bounded.
    #[test]
    fn random_packets_are_accepted_or_refused(
        packets in vec((any::<u16>(), any::<[u8; 6]>(), vec(any::<u8>(), 0..60)), 1..60),
    ) {
        let mut end = ReliableEndpoint::new(EndpointSettings::default());
        let mut out = Vec::new();
        for (nth, (flags, rest, body)) in packets.into_iter().enumerate() {
            // Mostly valid flags and numbers, so that it passes the first checks.
            let mut packet = vec![(flags & 0x1f) as u8, rest[0]];
            packet.extend_from_slice(&(nth as u16).to_le_bytes());
            packet.extend([rest[1], rest[2], if flags & 0x100 == 0 { 255 } else { rest[3] }, 255]);
            packet.extend(body);
            let _ = end.receive(nth as u64 * 1_000, &packet, |_| ());
            end.flush(nth as u64 * 1_000, PacketStamp::default(), usize::MAX, &mut out, |_| ());
        }
        prop_assert!(throng_core::memory::MemoryUse::heap_bytes(&end) < 100_000);
    }

    /// A truncated or altered packet harms at most its own connection.
    #[test]
    fn truncated_or_altered_packet_causes_no_panic(
        ticks in 1_usize..40,
        cut in 0.0..1.0,
        changes in vec((0.0..1.0, any::<u8>()), 0..4),
    ) {
        let mut talk = after_traffic(ticks);
        let now_us = talk.duplex.now_us();
        let _ = talk.duplex.server.endpoint.push_unreliable(&[1; 30]);
        let mut sent = Vec::new();
        let stamp = PacketStamp::default();
        talk.duplex.server.endpoint.flush(now_us, stamp, usize::MAX, &mut Vec::new(), |packet| {
            sent.push(packet.to_vec());
        });
        for mut packet in sent {
            for &(at, byte) in &changes {
                let at = (packet.len() as f64 * at) as usize;
                packet[at] = byte;
            }
            packet.truncate((packet.len() as f64 * cut) as usize);
            let _ = talk.duplex.client.endpoint.receive(now_us, &packet, |_| ());
        }
    }
}

#[test]
fn packet_with_an_impossible_ack_has_no_effect() {
    let mut talk = after_traffic(20);
    let end = &mut talk.duplex.server.endpoint;
    let before = *end.stats();
    let mut packet = Vec::new();
    let forged = TransportHeader {
        newest: 30_000,
        ..header(500)
    };
    forged.write(&mut packet);
    packet.extend([1, 7]);
    let refused = end.receive(0, &packet, |_| panic!("nothing is handed over"));
    assert!(matches!(
        refused,
        Err(PacketError::AckOfUnsent { found: 30_000, .. })
    ));
    assert_eq!(end.stats().packets_arrived, before.packets_arrived);
    assert_eq!(end.stats().packets_refused, before.packets_refused + 1);
    // The number is still unused.
    packet[6..8].copy_from_slice(&[0, 0]);
    assert_eq!(end.receive(0, &packet, |_| ()), Ok(()));
}

#[test]
fn replayed_packets_are_delivered_once() {
    let mut end = ReliableEndpoint::new(EndpointSettings::default());
    let mut came = Vec::new();
    let packets: Vec<Vec<u8>> = (0..40_u16)
        .map(|nth| {
            let mut packet = packet_with_frame(nth, 0, u32::from(nth) * 3, &[2, nth as u8, 9]);
            packet.extend([1, nth as u8]);
            packet
        })
        .collect();
    for _ in 0..3 {
        for packet in &packets {
            let _ = end.receive(0, packet, |delivery| {
                came.push((delivery.stream.is_some(), delivery.bytes[0]));
            });
        }
    }
    let expected: Vec<_> = (0..40)
        .flat_map(|nth| [(true, nth), (false, nth)])
        .collect();
    assert_eq!(came, expected);
    let refused = end.receive(0, &packets[3], |_| ());
    assert_eq!(
        refused,
        Err(PacketError::Duplicate {
            number: 3,
            newest: 39
        })
    );
}

#[test]
fn invalid_message_length_ends_the_connection() {
    for (bytes, found) in [
        (&[0_u8, 1, 2][..], 0),
        (&[0x81, 0x80, 0x40, 1], 1 << 20 | 1),
        (&[0x80, 0x80, 0x80, 0x80, 0x80], 0),
    ] {
        let mut end = ReliableEndpoint::new(EndpointSettings::default().for_client());
        let broken = PacketError::InvalidLength {
            stream: StreamId::Game,
            found,
            most: 1 << 20,
        };
        let refused = end.receive(0, &packet_with_frame(0, 2, 0, bytes), |_| ());
        assert_eq!(refused, Err(broken));
        let refused = end.receive(0, &packet_with_frame(1, 1, 0, &[1, 1]), |_| ());
        assert!(refused.is_err_and(PacketError::is_fatal));
    }
}

#[test]
fn bytes_beyond_the_window_are_not_acknowledged() {
    let settings = EndpointSettings::default();
    let mut end = ReliableEndpoint::new(settings);
    let far = settings.receive_window_bytes as u32;
    let full = PacketError::WindowExceeded {
        stream: StreamId::World,
    };
    assert_eq!(
        end.receive(0, &packet_with_frame(0, 0, far, &[1]), |_| ()),
        Err(full)
    );
    // Every second byte, until no more spans are stored.
    let mut refused = 0;
    for nth in 0..200 {
        let packet = packet_with_frame(nth + 1, 0, u32::from(nth) * 2 + 2, &[1]);
        refused += usize::from(end.receive(0, &packet, |_| ()) == Err(full));
    }
    assert!(refused > 100);
    let mut came = 0;
    for nth in 0..400 {
        let packet = packet_with_frame(nth + 1_000, 0, u32::from(nth), &[1]);
        let _ = end.receive(0, &packet, |_| came += 1);
    }
    // All bytes are 1: a length, a message, a length and so on.
    assert_eq!(came, 200);
}

#[test]
fn errors_name_place_and_value() {
    let mut end = ReliableEndpoint::new(EndpointSettings::default());
    let refused = end.receive(0, &[1, 0, 0], |_| ());
    let truncated = WireError::Truncated { at: 3, wanted: 5 };
    assert_eq!(refused, Err(PacketError::Malformed(truncated)));
    assert_eq!(end.stats().packets_refused, 1);
}
