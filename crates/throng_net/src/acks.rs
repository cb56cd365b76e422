//! Acknowledgements: which packets were received, and the outcome of the packets sent.
//!
//! Packets of a direction are numbered modulo 65,536; *a* is newer than *b* if it is 1 to 32,767 ahead. Before the first packet, all
//! earlier numbers count as received. So the first acknowledgement needs no special case and acknowledges no packet that was sent.
//!
//! Cost: O(1) per packet; an acknowledgement also visits, once, each packet whose outcome it decides. No allocation after the first packet.

use throng_core::memory::MemoryUse;
use throng_protocol::wire::is_newer;

use super::packet::FRAMES_MAX;

/// Number of sent packets that are stored. Data of older packets is sent again.
const TRACKED_PACKETS: usize = 128;

/// A packet counts as lost when a packet this much newer was acknowledged and it was not.
const REORDER_THRESHOLD: u16 = 3;

/// The packets received from the other end: the newest, and which of the 32 before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceivedPackets {
    pub newest: u16,
    /// Bit 0 is the packet just before the newest.
    pub before: u32,
}

impl ReceivedPackets {
    /// Nothing was received yet; the first packet will have this number.
    pub const fn starting_at(first: u16) -> Self {
        Self {
            newest: first.wrapping_sub(1),
            before: u32::MAX,
        }
    }

    /// Whether a packet is new and not too old for the bitmap.
    pub const fn expects(self, number: u16) -> bool {
        let behind = self.newest.wrapping_sub(number);
        is_newer(number, self.newest)
            || (behind >= 1 && behind <= 32 && self.before >> (behind - 1) & 1 == 0)
    }

    /// Records a received packet.
    pub const fn record(&mut self, number: u16) {
        if is_newer(number, self.newest) {
            let ahead = number.wrapping_sub(self.newest) as u32;
            // The previous newest packet is bit `ahead - 1`.
            self.before = match ahead {
                1..32 => (self.before << ahead) | 1 << (ahead - 1),
                32 => 1 << 31,
                _ => 0,
            };
            self.newest = number;
        } else {
            let behind = self.newest.wrapping_sub(number) as u32;
            if behind >= 1 && behind <= 32 {
                self.before |= 1 << (behind - 1);
            }
        }
    }
}

/// A range of bytes of a stream that a packet carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CarriedRange {
    /// Full stream offset of the first byte.
    pub start: u32,
    pub length: u16,
    pub stream: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PacketStatus {
    /// The packet was not sent, or is too old to be stored.
    #[default]
    Unsent,
    InFlight,
    Lost,
    Acknowledged,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SentPacket {
    pub at_us: u64,
    pub carried: [CarriedRange; FRAMES_MAX],
    pub frames: u8,
    pub is_probe: bool,
    /// Its length in bytes.
    pub bytes: u16,
}

/// A stored packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TrackedPacket {
    packet: SentPacket,
    number: u16,
    status: PacketStatus,
}

impl SentPacket {
    /// The stream ranges that it carried.
    pub fn carried(&self) -> &[CarriedRange] {
        &self.carried[..usize::from(self.frames)]
    }
}

/// Outcome of a sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketOutcome {
    /// It arrived. `is_newest`: it is the newest packet that has arrived, so its delay is a round trip. `was_lost`: it counted as lost
    /// before.
    Arrived { is_newest: bool, was_lost: bool },
    /// It counts as lost. `after_another`: so does the packet before it.
    Lost { after_another: bool },
}

/// The packets that were sent.
#[derive(Clone, Debug, MemoryUse)]
pub(super) struct SentPackets {
    /// By number modulo [`TRACKED_PACKETS`]; empty before the first packet.
    packets: Vec<TrackedPacket>,
    /// Number of the next packet.
    next: u16,
    /// The newest acknowledged packet, and which packets before it are acknowledged: bit *i* is the one *i* before.
    acknowledged: u16,
    acknowledged_bitmap: u64,
    /// The oldest packet that is neither acknowledged nor lost.
    oldest_undecided: u16,
}

impl SentPackets {
    pub const fn starting_at(first: u16) -> Self {
        Self {
            packets: Vec::new(),
            next: first,
            acknowledged: first.wrapping_sub(1),
            acknowledged_bitmap: u64::MAX,
            oldest_undecided: first,
        }
    }

    /// Number of the next packet.
    pub const fn next(&self) -> u16 {
        self.next
    }

    /// Whether an acknowledgement names only packets that were sent, or the one before the first.
    pub const fn may_acknowledge(&self, newest: u16) -> bool {
        !is_newer(newest, self.next.wrapping_sub(1))
    }

    /// Records a sent packet and returns its number.
    pub fn record(&mut self, packet: SentPacket) -> u16 {
        if self.packets.is_empty() {
            self.packets
                .resize(TRACKED_PACKETS, TrackedPacket::default());
        }
        let number = self.next;
        self.packets[usize::from(number) % TRACKED_PACKETS] = TrackedPacket {
            packet,
            number,
            status: PacketStatus::InFlight,
        };
        self.next = number.wrapping_add(1);
        number
    }

    fn get_mut(&mut self, number: u16) -> Option<&mut TrackedPacket> {
        let sent = self
            .packets
            .get_mut(usize::from(number) % TRACKED_PACKETS)?;
        (sent.number == number && sent.status != PacketStatus::Unsent).then_some(sent)
    }

    /// Handles an acknowledgement, and reports the outcome of each packet that it decides: first those that arrived, then the lost ones.
    /// Packets sent within `reorder_us` may have been reordered and do not count as lost yet.
    pub fn acknowledge(
        &mut self,
        newest: u16,
        before: u32,
        reorder_us: u64,
        mut tell: impl FnMut(&SentPacket, PacketOutcome),
    ) {
        debug_assert!(self.may_acknowledge(newest), "the caller checks it");
        let named = u64::from(before) << 1 | 1;
        let is_newer_than_all = is_newer(newest, self.acknowledged);
        let mut fresh = if is_newer_than_all {
            let ahead = u32::from(newest.wrapping_sub(self.acknowledged));
            self.acknowledged = newest;
            self.acknowledged_bitmap = self.acknowledged_bitmap.checked_shl(ahead).unwrap_or(0);
            named & !self.acknowledged_bitmap
        } else {
            let behind = u32::from(self.acknowledged.wrapping_sub(newest));
            named.checked_shl(behind).unwrap_or(0) & !self.acknowledged_bitmap
        };
        self.acknowledged_bitmap |= fresh;
        let top = self.acknowledged;
        while fresh != 0 {
            let back = fresh.trailing_zeros() as u16;
            fresh &= fresh - 1;
            if let Some(sent) = self.get_mut(top.wrapping_sub(back))
                && sent.status != PacketStatus::Acknowledged
            {
                let was_lost = sent.status == PacketStatus::Lost;
                sent.status = PacketStatus::Acknowledged;
                let is_newest = back == 0;
                tell(
                    &sent.packet,
                    PacketOutcome::Arrived {
                        is_newest,
                        was_lost,
                    },
                );
            }
        }
        if is_newer_than_all {
            self.detect_losses(reorder_us, tell);
        }
    }

    /// Reports the packets that are lost, after newer ones arrived.
    fn detect_losses(&mut self, reorder_us: u64, mut tell: impl FnMut(&SentPacket, PacketOutcome)) {
        let top = self.acknowledged;
        let Some(top_at_us) = self.get_mut(top).map(|sent| sent.packet.at_us) else {
            return;
        };
        let oldest = self.next.wrapping_sub(TRACKED_PACKETS as u16);
        if is_newer(oldest, self.oldest_undecided) {
            self.oldest_undecided = oldest;
        }
        while is_newer(
            top.wrapping_sub(REORDER_THRESHOLD - 1),
            self.oldest_undecided,
        ) {
            let number = self.oldest_undecided;
            let before = self.get_mut(number.wrapping_sub(1));
            let after_another = before.is_some_and(|sent| sent.status == PacketStatus::Lost);
            if let Some(sent) = self.get_mut(number)
                && sent.status == PacketStatus::InFlight
            {
                if top_at_us < sent.packet.at_us.saturating_add(reorder_us) {
                    break;
                }
                sent.status = PacketStatus::Lost;
                tell(&sent.packet, PacketOutcome::Lost { after_another });
            }
            self.oldest_undecided = number.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(draws!())]

        /// Compares with a set of whole numbers, from a start near the wrap of the counter.
        #[test]
        fn received_packets_match_a_set_model(
            start in prop_oneof![Just(0_u16), 65_400..=65_535_u16, any::<u16>()],
            steps in vec(-50_i64..60, 1..200),
        ) {
            let mut received = ReceivedPackets::starting_at(start);
            let first = i64::from(start) + (1 << 20);
            let mut came: BTreeSet<i64> = (first - 40..first).collect();
            let mut newest = first - 1;
            for step in steps {
                let number = newest + step;
                let is_expected = number > newest - 33 && !came.contains(&number);
                prop_assert_eq!(received.expects(number as u16), is_expected);
                if is_expected {
                    received.record(number as u16);
                    came.insert(number);
                    newest = newest.max(number);
                }
                prop_assert_eq!(received.newest, newest as u16);
                for back in 0..32 {
                    let bit = received.before >> back & 1 == 1;
                    prop_assert_eq!(bit, came.contains(&(newest - 1 - back)), "{} back", back + 1);
                }
            }
        }

        /// A packet is reported as arrived at most once and only if it was acknowledged, and as lost only before that.
        #[test]
        fn packet_outcome_is_reported_once(
            start in prop_oneof![Just(0_u16), 65_400..=65_535_u16],
            packets in vec((any::<bool>(), 1_usize..4), 1..300),
        ) {
            let mut sent = SentPackets::starting_at(start);
            let mut received = ReceivedPackets::starting_at(start);
            let (mut arrived, mut lost, mut came) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            for (nth, (gets_through, acks_every)) in packets.into_iter().enumerate() {
                let at_us = nth as u64 * 33_000;
                let number = sent.record(SentPacket { at_us, ..SentPacket::default() });
                if gets_through {
                    received.record(number);
                    came.insert(at_us);
                }
                if nth % acks_every == 0 {
                    sent.acknowledge(received.newest, received.before, 10_000, |packet, fate| {
                        let at = packet.at_us;
                        match fate {
                            PacketOutcome::Arrived { .. } => assert!(arrived.insert(at), "twice"),
                            PacketOutcome::Lost { .. } => assert!(!arrived.contains(&at) && lost.insert(at)),
                        }
                    });
                    prop_assert!(arrived.is_subset(&came));
                    prop_assert!(lost.is_disjoint(&came));
                    let newest = came.last().copied().unwrap_or(0);
                    let is_recent = |at: &&u64| **at + 32 * 33_000 >= newest;
                    prop_assert!(came.iter().filter(is_recent).all(|at| arrived.contains(at)));
                }
            }
        }
    }

    #[test]
    fn unsent_packet_is_not_acknowledged() {
        let mut sent = SentPackets::starting_at(0);
        assert!(sent.may_acknowledge(65_535) && !sent.may_acknowledge(0));
        sent.acknowledge(65_535, u32::MAX, 0, |_, _| panic!("nothing was sent"));
        sent.record(SentPacket::default());
        assert!(sent.may_acknowledge(0) && !sent.may_acknowledge(1));
        let mut reported = 0;
        sent.acknowledge(0, u32::MAX, 0, |_, _| reported += 1);
        sent.acknowledge(0, u32::MAX, 0, |_, _| reported += 1);
        assert_eq!(reported, 1);
    }

    #[test]
    fn packet_is_lost_after_three_newer_ones_and_a_delay() {
        let mut sent = SentPackets::starting_at(0);
        let lost = |sent: &mut SentPackets, newest, before| {
            let mut lost = Vec::new();
            sent.acknowledge(newest, before, 10, |packet, outcome| {
                if matches!(outcome, PacketOutcome::Lost { .. }) {
                    lost.push(packet.at_us);
                }
            });
            lost
        };
        for at_us in [100, 101, 102, 103, 110] {
            sent.record(SentPacket {
                at_us,
                ..SentPacket::default()
            });
        }
        // Packet 0 is missing: two newer ones arrived, then three, then one that was sent 10 us later.
        assert_eq!(lost(&mut sent, 2, 0b01), []);
        assert_eq!(lost(&mut sent, 3, 0b011), []);
        assert_eq!(lost(&mut sent, 4, 0b0111), [100]);
        // However much later they were sent, two newer ones are not enough.
        let mut sent = SentPackets::starting_at(0);
        for at_us in [100, 200, 300, 400] {
            sent.record(SentPacket {
                at_us,
                ..SentPacket::default()
            });
        }
        assert_eq!(lost(&mut sent, 2, 0b01), []);
        assert_eq!(lost(&mut sent, 3, 0b011), [100]);
    }
}
