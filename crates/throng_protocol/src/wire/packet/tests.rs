use super::*;
use proptest::prelude::*;

const HEADER: PacketHeader = PacketHeader {
    channel: Channel::Reliable,
    epoch: 7,
    sequence: 0,
    tick: 513,
    input: 65_535,
};

fn packets(
    mtu: usize,
    header: PacketHeader,
    state: &mut ChannelState,
    messages: &[Vec<u8>],
) -> (Vec<Vec<u8>>, PacketTotals) {
    let mut packets = Vec::new();
    let written = PacketWriter::new(mtu).write(
        header,
        state,
        messages.iter().map(Vec::as_slice),
        |packet| packets.push(packet.to_vec()),
    );
    (packets, written)
}

/// A message of this length that does not start like a fragment.
fn message(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|nth| 16 + (nth as u8).wrapping_mul(31).wrapping_add(seed) % 200)
        .collect()
}

/// Lengths near the boundaries: small, about one packet, and many packets.
fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 1..200_usize,
        2 => 400..1_300_usize,
        1 => 1_300..20_000_usize,
    ]
}

#[test]
fn a_header_has_the_documented_bytes() {
    let header = PacketHeader {
        channel: Channel::Unreliable,
        epoch: 2,
        sequence: 0x0403,
        tick: 0x0605,
        input: 0x0807,
    };
    assert_eq!(header.to_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
    let bytes = header.to_bytes();
    assert_eq!(PacketHeader::read(&mut WireReader::new(&bytes)), Ok(header));
    for flags in 2..=255 {
        let bytes = [flags, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(
            PacketHeader::read(&mut WireReader::new(&bytes)),
            Err(WireError::UnknownFlags { found: flags })
        );
    }
}

#[test]
fn fragment_has_the_documented_bytes() {
    let long = message(1_000, 3);
    let mut state = ChannelState {
        sequence: 9,
        long_message: 0x0102,
    };
    let (packets, _) = packets(500, HEADER, &mut state, &[vec![20, 21], long.clone()]);
    assert_eq!(packets[0][..], [0, 7, 9, 0, 1, 2, 255, 255, 20, 21]);
    // 1,000 is e8 07 as a varint, and 483 is e3 03.
    assert_eq!(packets[1][8..14], [8, 2, 1, 0xe8, 7, 0]);
    assert_eq!(packets[1][14..], long[..483]);
    assert_eq!(packets[2][8..15], [8, 2, 1, 0xe8, 7, 0xe3, 3]);
    assert_eq!(packets[2][15..], long[483..966]);
    assert_eq!(packets[3][15..], long[966..]);
    assert_eq!(
        state,
        ChannelState {
            sequence: 13,
            long_message: 0x0103
        }
    );
}

#[test]
fn small_messages_share_a_packet_and_none_make_no_packet() {
    let mut state = ChannelState::default();
    let messages = vec![message(29, 1); 41];
    let (made, written) = packets(1_200, HEADER, &mut state, &messages);
    assert_eq!((made.len(), made[0].len()), (1, 8 + 29 * 41));
    assert_eq!((written.messages, written.bytes), (41, 8 + 29 * 41));
    let (made, written) = packets(1_200, HEADER, &mut state, &[Vec::new()]);
    assert!(made.is_empty());
    assert_eq!(written, PacketTotals::default());
}

#[test]
fn oversized_message_is_counted_and_others_are_sent() {
    let unreliable = PacketHeader {
        channel: Channel::Unreliable,
        ..HEADER
    };
    let mut state = ChannelState::default();
    let messages = [message(10, 1), message(1_193, 1), message(1_192, 2)];
    let (made, written) = packets(1_200, unreliable, &mut state, &messages);
    assert_eq!((made.len(), written.too_long, written.messages), (2, 1, 2));
    assert_eq!(made[1].len(), 1_200);
    let messages = [message(MESSAGE_BYTES_MAX + 1, 1), message(1, 1)];
    let (made, written) = packets(1_200, HEADER, &mut state, &messages);
    assert_eq!((made.len(), written.too_long), (1, 1));
    let (made, written) = packets(1_200, HEADER, &mut state, &[message(MESSAGE_BYTES_MAX, 1)]);
    assert_eq!((made.len(), written.too_long), (887, 0));
}

#[test]
fn sequence_numbers_wrap() {
    assert!(is_newer(1, 65_535) && !is_newer(65_535, 1) && !is_newer(5, 5));
    assert_eq!(expand_counter(65_530, 3), 65_539);
    assert_eq!(expand_counter(65_539, 65_530), 65_530);
    assert_eq!(expand_counter(3, 65_530), 65_530);
    assert_eq!(expand_counter(1 << 40, 0), 1 << 40);
    let mut state = ChannelState {
        sequence: 65_535,
        long_message: 65_535,
    };
    let (made, _) = packets(500, HEADER, &mut state, &[message(900, 1)]);
    assert_eq!((made[1][2], made[1][3]), (0, 0));
    assert_eq!(
        state,
        ChannelState {
            sequence: 1,
            long_message: 0
        }
    );
}

#[test]
fn hello_reads_back_and_another_version_is_refused() {
    let hello = Hello {
        client: 300,
        tick_millihertz: 20_000,
        tick: u64::MAX,
        mtu_bytes: 1_200,
    };
    let mut bytes = Vec::new();
    hello.write(&mut bytes);
    assert_eq!(bytes[..2], [HELLO, 4]);
    let mut reader = WireReader::new(&bytes[1..]);
    assert_eq!(Hello::read(&mut reader), Ok(hello));
    assert!(reader.is_empty());
    for cut in 1..bytes.len() {
        assert!(Hello::read(&mut WireReader::new(&bytes[1..cut])).is_err());
    }
    let expected = WireError::VersionMismatch {
        found: 5,
        expected: 4,
    };
    assert_eq!(Hello::read(&mut WireReader::new(&[5, 255])), Err(expected));
}

#[test]
fn misplaced_fragments_are_errors_and_leave_no_state() {
    let mut state = ChannelState::default();
    let long = message(1_400, 1);
    let (first, _) = packets(500, HEADER, &mut state, &[long.clone(), vec![30]]);
    let (second, _) = packets(500, HEADER, &mut state, std::slice::from_ref(&long));
    let mut unreliable = first[0].clone();
    unreliable[0] = 1;
    let mut longer = first[2].clone();
    longer.push(0);
    let empty = first[1][..15].to_vec();
    let cases: [(&[&[u8]], WireError); 6] = [
        (
            &[&first[1]],
            WireError::FragmentOffset {
                at: 8,
                found: 483,
                expected: 0,
            },
        ),
        (
            &[&first[0], &first[2]],
            WireError::FragmentOffset {
                at: 8,
                found: 966,
                expected: 483,
            },
        ),
        (
            &[&first[0], &second[1]],
            WireError::FragmentMissing { number: 0 },
        ),
        (
            &[&first[0], &first[3]],
            WireError::FragmentMissing { number: 0 },
        ),
        (&[&unreliable], WireError::FragmentUnreliable { at: 8 }),
        (
            &[&first[0], &empty],
            WireError::Truncated { at: 15, wanted: 1 },
        ),
    ];
    for (packets, error) in cases {
        let mut reassembler = Reassembler::default();
        let (last, before) = packets.split_last().unwrap();
        for packet in before {
            assert!(reassembler.accept(packet).unwrap().messages.is_empty());
        }
        assert_eq!(reassembler.accept(last), Err(error));
        for (nth, packet) in second.iter().enumerate() {
            let whole: &[u8] = if nth + 1 == second.len() { &long } else { &[] };
            // An unreliable packet does not affect the pending message; here there is none.
            assert_eq!(reassembler.accept(packet).unwrap().messages, whole);
        }
    }
    let mut reassembler = Reassembler::default();
    for packet in &first[..2] {
        reassembler.accept(packet).unwrap();
    }
    assert_eq!(
        reassembler.accept(&longer),
        Err(WireError::Trailing {
            at: longer.len() - 1,
            found: 1
        })
    );
}

#[test]
fn new_epoch_drops_the_pending_message() {
    let mut state = ChannelState::default();
    let long = message(1_400, 1);
    let (old, _) = packets(500, HEADER, &mut state, std::slice::from_ref(&long));
    let header = PacketHeader { epoch: 8, ..HEADER };
    let (new, _) = packets(500, header, &mut state, &[long.clone(), vec![30]]);
    for resumes_at in [0, 3] {
        let mut reassembler = Reassembler::default();
        reassembler.accept(&old[0]).unwrap();
        let received = reassembler.accept(&new[resumes_at]).unwrap();
        assert_eq!(received.header.epoch, 8);
        assert_eq!(reassembler.pending.is_some(), resumes_at == 0);
    }
}

proptest! {
    #![proptest_config(draws!())]

    #[test]
    fn messages_survive_packets_of_any_size(
        mtu in prop_oneof![Just(500_usize), Just(1_200), Just(65_507), 500..2_000_usize],
        lengths in prop::collection::vec(lengths(), 0..40),
        sequence: u16,
        unreliable: bool,
    ) {
        let channel = if unreliable { Channel::Unreliable } else { Channel::Reliable };
        let header = PacketHeader { channel, ..HEADER };
        let messages: Vec<Vec<u8>> =
            lengths.iter().zip(0..).map(|(&length, seed)| message(length, seed)).collect();
        let mut state = ChannelState { sequence, long_message: 3 };
        let (packets, written) = packets(mtu, header, &mut state, &messages);
        let fits = |message: &&Vec<u8>| !unreliable || message.len() <= mtu - 8;
        let kept: Vec<u8> = messages.iter().filter(fits).flatten().copied().collect();
        prop_assert_eq!(written.messages as usize, messages.iter().filter(fits).count());
        prop_assert_eq!(written.too_long as usize, messages.len() - written.messages as usize);
        prop_assert_eq!(written.packets as usize, packets.len());
        prop_assert_eq!(written.bytes as usize, packets.iter().map(Vec::len).sum::<usize>());
        let mut reassembler = Reassembler::default();
        let mut read = Vec::new();
        let mut came = 0;
        for (packet, nth) in packets.iter().zip(sequence as usize..) {
            prop_assert!(packet.len() <= mtu);
            came += packet.len();
            let received = reassembler.accept(packet).unwrap();
            prop_assert_eq!(received.header, PacketHeader { sequence: nth as u16, ..header });
            read.extend_from_slice(received.messages);
            prop_assert!(reassembler.buffer_bytes() <= came + GROWTH_BYTES);
        }
        prop_assert_eq!(read, kept);
        prop_assert_eq!(state.sequence, sequence.wrapping_add(packets.len() as u16));
    }

    /// The first message of a packet would never have fitted into the packet before.
    #[test]
    fn packets_are_filled_before_the_next_begins(lengths in prop::collection::vec(1..600_usize, 1..60)) {
        let messages: Vec<Vec<u8>> = lengths.iter().map(|&length| message(length, 0)).collect();
        let (packets, _) = packets(600, HEADER, &mut ChannelState::default(), &messages);
        let mut next = messages.iter().map(Vec::len).peekable();
        for (nth, packet) in packets.iter().enumerate() {
            let mut left = packet.len() - PACKET_HEADER_BYTES;
            if packet[PACKET_HEADER_BYTES] == FRAGMENT {
                continue;
            }
            while left > 0 {
                // Messages that are split have packets of their own.
                let length = next.find(|length| *length <= 592).unwrap();
                left -= length;
            }
            if nth + 1 < packets.len() && packets[nth + 1][PACKET_HEADER_BYTES] != FRAGMENT {
                let following = next.clone().find(|length| *length <= 592).unwrap();
                prop_assert!(packet.len() + following > 600);
            }
        }
    }

    #[test]
    fn any_packets_are_accepted_or_an_error_in_bounded_memory(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..12),
        parts in prop::collection::vec((0..3_u8, 0..2_u8, 0..4_000_000_u64, 0..200_u64, 0..300_usize), 0..12),
    ) {
        let mut reassembler = Reassembler::default();
        let mut came = 0;
        let mut accept = |packet: &[u8]| {
            came += packet.len();
            let _ = reassembler.accept(packet);
            assert!(reassembler.buffer_bytes() <= came + GROWTH_BYTES);
        };
        for packet in &packets {
            accept(packet);
        }
        // Nearly valid fragments pass more checks.
        for (number, epoch, total, offset, length) in parts {
            let mut packet = PacketHeader { epoch, ..HEADER }.to_bytes().to_vec();
            packet.extend([FRAGMENT, number, 0]);
            write_varint(&mut packet, total);
            write_varint(&mut packet, offset);
            packet.resize(packet.len() + length, 1);
            accept(&packet);
        }
    }

    #[test]
    fn truncated_packet_is_never_taken_for_a_whole_one(length in 1_300..6_000_usize, cut: prop::sample::Index) {
        let (packets, _) = packets(1_200, HEADER, &mut ChannelState::default(), &[message(length, 0)]);
        let cut = cut.index(packets.len());
        let mut reassembler = Reassembler::default();
        let mut whole = false;
        for (nth, packet) in packets.iter().enumerate() {
            let packet = if nth == cut { &packet[..packet.len() - 1] } else { &packet[..] };
            match reassembler.accept(packet) {
                Ok(received) => whole |= !received.messages.is_empty(),
                Err(_) => break,
            }
        }
        prop_assert!(!whole);
    }
}
