//! Which packets came, and what became of those that were sent.
//!
//! Packets of a direction are numbered modulo 65,536; *a* is newer than *b* when it is 1 to 32,767 ahead. Before the first
//! packet the one before it, and all before that, count as received: so the first acknowledgement needs no case of its own,
//! and names nothing that was sent.
//!
//! Cost: O(1) a packet; an acknowledgement also looks at each packet once that it settles. No allocation after the first packet.

use throng_core::memory::MemoryUse;
use throng_protocol::wire::is_newer;

use super::packet::FRAMES_MAX;

/// How many sent packets are remembered: what is acknowledged later than that is sent again.
const TRACKED_PACKETS: usize = 128;

/// A packet counts as lost when one this much newer was acknowledged and it was not.
const REORDER_THRESHOLD: u16 = 3;

/// The packets that came from the other end: the newest, and which of the 32 before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceivedPackets {
    pub newest: u16,
    /// Bit 0 is the packet just before the newest.
    pub before: u32,
}

impl ReceivedPackets {
    /// Nothing came yet, and the first will have this number.
    pub const fn starting_at(first: u16) -> Self {
        Self {
            newest: first.wrapping_sub(1),
            before: u32::MAX,
        }
    }

    /// Whether a packet is one that has not come yet and is not too old to tell.
    pub const fn expects(self, number: u16) -> bool {
        let behind = self.newest.wrapping_sub(number);
        is_newer(number, self.newest)
            || (behind >= 1 && behind <= 32 && self.before >> (behind - 1) & 1 == 0)
    }

    /// Takes note of a packet.
    pub const fn record(&mut self, number: u16) {
        if is_newer(number, self.newest) {
            let ahead = number.wrapping_sub(self.newest) as u32;
            // The newest so far goes to the place `ahead - 1`.
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

/// Bytes of a stream that a packet carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CarriedRange {
    /// The whole offset of the first.
    pub start: u32,
    pub length: u16,
    pub stream: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PacketStatus {
    /// No such packet was sent, or it is forgotten.
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
    /// Its length.
    pub bytes: u16,
}

/// One that is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TrackedPacket {
    packet: SentPacket,
    number: u16,
    status: PacketStatus,
}

impl SentPacket {
    /// What it carried of streams.
    pub fn carried(&self) -> &[CarriedRange] {
        &self.carried[..usize::from(self.frames)]
    }
}

/// What became of a sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketOutcome {
    /// It arrived; `is_newest` where it is the newest that has, so that the time since it was sent is a round trip. `was_lost`
    /// where it was taken for lost before.
    Arrived { is_newest: bool, was_lost: bool },
    /// It seems to be lost; `after_another` where the one before it does, too.
    Lost { after_another: bool },
}

/// The packets that were sent.
#[derive(Clone, Debug, MemoryUse)]
pub(super) struct SentPackets {
    /// By number modulo [`REMEMBERED`]; empty before the first.
    packets: Vec<TrackedPacket>,
    /// The number of the next.
    next: u16,
    /// The newest that was acknowledged, and which before it were: bit *i* is the one *i* before.
    acknowledged: u16,
    acknowledged_bitmap: u64,
    /// The oldest of which it is not settled whether it is lost.
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

    /// The number that the next packet has.
    pub const fn next(&self) -> u16 {
        self.next
    }

    /// Whether an acknowledgement names only what was sent, or the packet before the first.
    pub const fn may_acknowledge(&self, newest: u16) -> bool {
        !is_newer(newest, self.next.wrapping_sub(1))
    }

    /// Takes note of a packet, and gives its number.
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

    /// Takes an acknowledgement, and tells what became of each packet that it settles: first those that arrived, then those
    /// that are lost. Packets that were sent within `reorder_us` may have overtaken each other, and are not lost yet.
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

    /// Tells which packets are lost, now that newer ones arrived.
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

        /// Beside a set of whole numbers, from a start that the counter wraps behind.
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

        /// Every packet is told to have arrived at most once, only if it was acknowledged, and lost only before that.
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
        let mut told = 0;
        sent.acknowledge(0, u32::MAX, 0, |_, _| told += 1);
        sent.acknowledge(0, u32::MAX, 0, |_, _| told += 1);
        assert_eq!(told, 1);
    }
}
