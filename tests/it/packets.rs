//! Invariants of any packet input; used by the fuzzer, and by the test that replays its corpus.
//!
//! The first byte selects the target. Even: packets for a reassembler and a mirror, each preceded by its length (2 bytes, little endian).
//! Odd: two bytes for the longest packet, then two bytes for the length of each message that goes through writer and reassembler.

use crate::sync::Mirror;
use crate::wire::{
    Channel, ChannelState, ClientMessage, HELLO, Hello, MESSAGE_BYTES_MAX, PACKET_HEADER_BYTES,
    PacketHeader, PacketWriter, Reassembler, ServerMessage, WireReader,
};

/// Memory that a reassembler may hold in addition to the received bytes.
const MEMORY_SLACK_BYTES: usize = 1 << 16;

pub fn check(input: &[u8]) {
    let Some((&choice, rest)) = input.split_first() else {
        return;
    };
    if choice % 2 == 0 {
        any_packets(rest);
    } else {
        any_lengths(rest);
    }
}

/// Any packets give an error or a value without a panic, and take little memory.
fn any_packets(input: &[u8]) {
    let mut reader = WireReader::new(input);
    let (mut reassembler, mut mirror) = (Reassembler::default(), Mirror::default());
    let mut received_bytes = 0;
    while let Ok(length) = reader.bytes(2) {
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let Ok(packet) = reader.bytes(length) else {
            // The remaining bytes are also decoded as a client message.
            let _ = ClientMessage::decode(reader.remaining());
            return;
        };
        received_bytes += packet.len();
        if mirror.receive(packet).is_ok() {
            let known = mirror.ids().len() + mirror.unseen_objects().count();
            assert!(
                known <= received_bytes,
                "a known object takes at least one received byte"
            );
        }
        if let Ok(received) = reassembler.accept(packet) {
            any_messages(received.messages);
        }
        assert!(
            reassembler.buffer_bytes()
                <= received_bytes.min(MESSAGE_BYTES_MAX) + MEMORY_SLACK_BYTES
        );
    }
}

fn any_messages(messages: &[u8]) {
    let mut reader = WireReader::new(messages);
    while !reader.is_empty() {
        let mut greeting = reader.clone();
        if greeting.byte() == Ok(HELLO) {
            if Hello::read(&mut greeting).is_err() {
                return;
            }
            reader = greeting;
        } else if ServerMessage::read(&mut reader).is_err() {
            return;
        }
    }
}

/// Messages written into packets are reassembled unchanged.
fn any_lengths(input: &[u8]) {
    let (numbers, _) = input.as_chunks::<2>();
    let mut numbers = numbers
        .iter()
        .map(|&bytes| usize::from(u16::from_le_bytes(bytes)));
    let Some(mtu_bytes) = numbers.next() else {
        return;
    };
    // No message begins like a fragment, and the total is small enough for many rounds per second.
    let mut left = 1 << 18;
    let messages: Vec<Vec<u8>> = numbers
        .zip(0..200_u8)
        .take_while(|&(length, _)| {
            let fits = length <= left;
            left -= length.min(left);
            fits
        })
        .map(|(length, nth)| vec![20 + nth; length])
        .collect();
    let mut writer = PacketWriter::new(mtu_bytes);
    let mut state = ChannelState {
        sequence: 65_530,
        long_message: 65_530,
    };
    let header = PacketHeader {
        channel: Channel::Reliable,
        epoch: 1,
        sequence: 0,
        tick: 2,
        input: 3,
    };
    let mtu_bytes = writer.mtu_bytes();
    let (mut reassembler, mut read, mut next) = (Reassembler::default(), Vec::new(), 65_530_u16);
    let written = writer.write(
        header,
        &mut state,
        messages.iter().map(Vec::as_slice),
        |packet| {
            assert!(packet.len() <= mtu_bytes && packet.len() > PACKET_HEADER_BYTES);
            let received = reassembler.accept(packet).expect("a packet of the writer");
            assert_eq!(
                received.header,
                PacketHeader {
                    sequence: next,
                    ..header
                }
            );
            next = next.wrapping_add(1);
            read.extend_from_slice(received.messages);
        },
    );
    assert_eq!(read, messages.concat());
    assert_eq!((written.too_long, state.sequence), (0, next));
}
