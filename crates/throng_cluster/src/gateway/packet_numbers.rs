//! The numbers of packets to a client. Every node counts from 0; the client needs numbers that continue when another node takes it over.

use throng_protocol::wire::{
    Channel, FRAGMENT, PACKET_HEADER_BYTES, PacketHeader, ServerMessage, SessionNotice, WireReader,
    is_newer,
};

/// Translates the packets of one node after another into those of one connection.
#[derive(Debug, Default)]
pub(super) struct PacketNumbers {
    /// The next numbers for the client: packets by channel, and split messages.
    next: [u16; 2],
    next_long: u16,
    /// The epoch of its last reliable packet; `None` before the first.
    epoch: Option<u8>,
    /// Added to the numbers of the current node.
    added: [u16; 2],
    added_long: u16,
    /// `None` before the first reliable packet of the node.
    added_epoch: Option<u8>,
}

impl PacketNumbers {
    /// The next packets come from another connection to a node, whose numbers begin at 0.
    pub const fn begin_node(&mut self) {
        (self.added, self.added_long) = (self.next, self.next_long);
        self.added_epoch = None;
    }

    /// Replaces the numbers of a packet by those for the client. `false`: drop the packet, because it is invalid, or because it precedes the first
    /// reliable packet of its node and is about a scene that the client does not know.
    pub fn translate(&mut self, packet: &mut [u8]) -> bool {
        let Ok(mut header) = PacketHeader::read(&mut WireReader::new(packet)) else {
            return false;
        };
        let is_reliable = header.channel == Channel::Reliable;
        let added_epoch = match (self.added_epoch, self.epoch) {
            (Some(added), _) => added,
            (None, _) if !is_reliable => return false,
            (None, None) => 0,
            // Higher than the epochs of all packets of former nodes, including late ones.
            (None, Some(last)) => last.wrapping_add(1).wrapping_sub(header.epoch),
        };
        self.added_epoch = Some(added_epoch);
        header.epoch = header.epoch.wrapping_add(added_epoch);
        let nth = usize::from(header.channel.bit());
        header.sequence = header.sequence.wrapping_add(self.added[nth]);
        let after = header.sequence.wrapping_add(1);
        if is_reliable || is_newer(after, self.next[nth]) {
            self.next[nth] = after;
        }
        packet[..PACKET_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        if is_reliable {
            self.epoch = Some(header.epoch);
            self.translate_fragment(&mut packet[PACKET_HEADER_BYTES..]);
        }
        true
    }

    fn translate_fragment(&mut self, body: &mut [u8]) {
        if let [FRAGMENT, low, high, ..] = body {
            let number = u16::from_le_bytes([*low, *high]).wrapping_add(self.added_long);
            self.next_long = number.wrapping_add(1);
            [*low, *high] = number.to_le_bytes();
        }
    }
}

/// Whether a reliable packet welcomes its client: the session has begun or is resumed. O(bytes).
pub(super) fn is_welcome(packet: &[u8]) -> bool {
    contains(packet, |message| {
        matches!(
            message,
            ServerMessage::Notice(SessionNotice::Welcome { .. })
        )
    })
}

/// Whether a reliable packet is the first of a scene: the request to load it, or its start. O(bytes).
pub(super) fn begins_scene(packet: &[u8]) -> bool {
    contains(packet, |message| {
        matches!(
            message,
            ServerMessage::Notice(SessionNotice::Loading { .. })
                | ServerMessage::ControlledObject { .. }
        )
    })
}

fn contains(packet: &[u8], is_wanted: impl Fn(&ServerMessage<'_>) -> bool) -> bool {
    let mut reader = WireReader::new(packet.get(PACKET_HEADER_BYTES..).unwrap_or_default());
    while !reader.is_empty() {
        match ServerMessage::read(&mut reader) {
            Ok(message) if is_wanted(&message) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use throng_protocol::wire::{ChannelState, PacketWriter, Reassembler, ResumeToken};

    use super::*;

    /// The packets of a node with one reliable and one unreliable message per epoch.
    fn packets(epochs: &[u8], long: usize) -> Vec<Vec<u8>> {
        let (mut writer, mut packets) = (PacketWriter::new(500), Vec::new());
        let mut states = [ChannelState::default(); 2];
        for &epoch in epochs {
            for channel in [Channel::Reliable, Channel::Unreliable] {
                let header = PacketHeader {
                    channel,
                    epoch,
                    ..PacketHeader::default()
                };
                let length = if channel == Channel::Reliable {
                    long
                } else {
                    9
                };
                let message = vec![20; length];
                let state = &mut states[usize::from(channel.bit())];
                writer.write(header, state, [&message[..]], |packet| {
                    packets.push(packet.to_vec());
                });
            }
        }
        packets
    }

    fn header(packet: &[u8]) -> PacketHeader {
        PacketHeader::read(&mut WireReader::new(packet)).unwrap()
    }

    #[test]
    fn first_node_keeps_its_numbers() {
        let mut numbers = PacketNumbers::default();
        for packet in packets(&[0, 0, 1, 7], 600) {
            let mut translated = packet.clone();
            assert!(numbers.translate(&mut translated));
            assert_eq!(translated, packet);
        }
    }

    #[test]
    fn numbers_go_on_with_every_node() {
        let (mut numbers, mut reassembler) = (PacketNumbers::default(), Reassembler::default());
        let (mut expected, mut last_epoch, mut fragments) = ([0_u16; 2], None, Vec::new());
        for node in 0..300_u32 {
            numbers.begin_node();
            // One begins with a high epoch, as after many resumes.
            let first = (node * 37) as u8;
            let sent = packets(&[first, first, first.wrapping_add(1)], 600);
            for mut packet in sent {
                assert!(numbers.translate(&mut packet));
                let header = header(&packet);
                let nth = usize::from(header.channel.bit());
                assert_eq!(header.sequence, expected[nth], "node {node}");
                expected[nth] = expected[nth].wrapping_add(1);
                if header.channel == Channel::Reliable {
                    let ahead = last_epoch.map(|last| header.epoch.wrapping_sub(last));
                    assert!(ahead.is_none_or(|ahead| ahead <= 1), "node {node}");
                    last_epoch = Some(header.epoch);
                    fragments.push(u16::from_le_bytes([packet[9], packet[10]]));
                }
                reassembler.accept(&packet).unwrap();
            }
        }
        fragments.dedup();
        assert_eq!(fragments, Vec::from_iter(0..900));
    }

    #[test]
    fn former_epochs_are_older_than_those_of_the_next_node() {
        let mut numbers = PacketNumbers::default();
        let mut epoch_of = |packet: &[u8]| {
            let mut packet = packet.to_vec();
            numbers
                .translate(&mut packet)
                .then(|| header(&packet).epoch)
        };
        let former = packets(&[200, 201], 10);
        assert_eq!(epoch_of(&former[0]), Some(200));
        assert_eq!(epoch_of(&former[2]), Some(201));
        numbers.begin_node();
        // The unreliable packet overtakes the reliable ones.
        let next = packets(&[255, 0], 10);
        let mut epoch_of = |packet: &[u8]| {
            let mut packet = packet.to_vec();
            numbers
                .translate(&mut packet)
                .then(|| header(&packet).epoch)
        };
        assert_eq!(epoch_of(&next[3]), None);
        assert_eq!(epoch_of(&next[0]), Some(202));
        assert_eq!(epoch_of(&next[3]), Some(203));
        assert_eq!(epoch_of(&[1; 7]), None);
        assert_eq!(epoch_of(&[9; 12]), None);
    }

    #[test]
    fn welcome_is_found_behind_other_messages() {
        let mut packet = PacketHeader::default().to_bytes().to_vec();
        SessionNotice::Queued { position: 3 }.write(&mut packet);
        assert!(!is_welcome(&packet));
        SessionNotice::Resumed { keeps_state: true }.write(&mut packet);
        let token = ResumeToken([1; 16]);
        SessionNotice::Welcome { player: 1, token }.write(&mut packet);
        assert!(is_welcome(&packet));
        for cut in 0..packet.len() {
            assert!(!is_welcome(&packet[..cut]));
        }
    }
}
