//! A simulated network path that delays, loses, duplicates and reorders packets, reproducibly for a seed.
//!
//! Losses are independent, or come in bursts: the Gilbert-Elliott model, a path with two states of exponentially distributed lengths, which
//! loses every packet in one of them. What happens to a packet depends on the seed, on its time of sending and on the number of packets
//! sent before it at the same time. So all senders whose paths have the same seed have identical loss patterns, however much each of them
//! sends. Times are microseconds, as in [`ReliableEndpoint`](super::ReliableEndpoint).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// How a path loses packets. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet is lost with this probability.
    Independent(f64),
    /// All packets are lost during bursts of this mean length in microseconds, which take this share of the time.
    Bursts {
        /// The share of the time.
        share: f64,
        /// Mean length of a burst, in microseconds.
        mean_us: f64,
    },
}

/// How a path treats packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkConditioner {
    /// The shortest delay of a packet, in microseconds.
    pub delay_us: u64,
    /// The most that is added to the delay, in microseconds, drawn per packet. So packets of the same moment overtake each other.
    pub jitter_us: u64,
    /// Packet loss.
    pub loss: LossModel,
    /// Share of the packets that arrive twice.
    pub duplicated: f64,
    /// Share of the packets that are delayed by up to `extra_delay_us_max` more.
    pub delayed: f64,
    /// The most that these are delayed longer, in microseconds.
    pub extra_delay_us_max: u64,
    /// The longest packet that arrives, in bytes.
    pub bytes_max: usize,
}

impl NetworkConditioner {
    /// A path with 55 ms delay one way, 4 ms jitter, and this loss.
    #[must_use]
    pub const fn with_loss(loss: LossModel) -> Self {
        Self {
            delay_us: 55_000,
            jitter_us: 4_000,
            loss,
            duplicated: 0.0,
            delayed: 0.0,
            extra_delay_us_max: 0,
            bytes_max: usize::MAX,
        }
    }
}

/// One direction of a simulated path.
#[derive(Clone, Debug)]
pub struct ConditionedPath {
    model: NetworkConditioner,
    seed: u64,
    /// Time at which the newest packet was sent, and how many were sent before it at the same time.
    newest: (u64, u64),
    /// By time of arrival and order of sending.
    in_flight: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    /// Buffers of packets that have arrived, for reuse.
    spare: Vec<Vec<u8>>,
    /// Packets sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Draws the lengths of bursts.
    random: Pcg64Mcg,
    is_in_burst: bool,
    burst_changes_at_us: f64,
}

impl ConditionedPath {
    /// A path without packets in flight.
    #[must_use]
    pub fn new(model: NetworkConditioner, seed: u64) -> Self {
        Self {
            model,
            seed,
            newest: (u64::MAX, 0),
            in_flight: BinaryHeap::new(),
            spare: Vec::new(),
            packets: 0,
            bytes: 0,
            random: Pcg64Mcg::seed_from_u64(seed),
            is_in_burst: false,
            burst_changes_at_us: 0.0,
        }
    }

    /// Changes the conditions from now on.
    pub const fn set_model(&mut self, model: NetworkConditioner) {
        self.model = model;
    }

    /// Sends a packet.
    pub fn send(&mut self, now_us: u64, packet: &[u8]) {
        self.packets += 1;
        self.bytes += packet.len() as u64;
        let mut random = self.random_for(now_us);
        if self.drops(now_us, &mut random) || packet.len() > self.model.bytes_max {
            return;
        }
        self.transmit(now_us, packet, &mut random);
        if self.model.duplicated > 0.0 && random.random_bool(self.model.duplicated) {
            self.transmit(now_us, packet, &mut random);
        }
    }

    /// The random numbers of the next packet of this moment.
    fn random_for(&mut self, now_us: u64) -> Pcg64Mcg {
        let before = if self.newest.0 == now_us {
            self.newest.1 + 1
        } else {
            0
        };
        self.newest = (now_us, before);
        // Odd multipliers, so that no two moments have the same seed.
        let moment = now_us.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = before.wrapping_mul(0xd1b5_4a32_d192_ed03);
        Pcg64Mcg::seed_from_u64(self.seed ^ moment ^ place)
    }

    fn transmit(&mut self, now_us: u64, packet: &[u8], random: &mut Pcg64Mcg) {
        let NetworkConditioner {
            delay_us,
            jitter_us,
            delayed: late,
            extra_delay_us_max: late_us,
            ..
        } = self.model;
        let mut at_us = now_us + delay_us + random.random_range(0..=jitter_us);
        if late > 0.0 && random.random_bool(late) {
            at_us += random.random_range(0..=late_us);
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(packet);
        self.in_flight.push(Reverse((at_us, self.packets, bytes)));
    }

    fn drops(&mut self, now_us: u64, random: &mut Pcg64Mcg) -> bool {
        match self.model.loss {
            LossModel::Independent(share) => share > 0.0 && random.random_bool(share.min(1.0)),
            LossModel::Bursts { share, mean_us } => {
                while now_us as f64 >= self.burst_changes_at_us {
                    self.is_in_burst = !self.is_in_burst;
                    let mean_us = if self.is_in_burst {
                        mean_us
                    } else {
                        mean_us * (1.0 - share) / share.max(1e-9)
                    };
                    let draw: f64 = self.random.random();
                    self.burst_changes_at_us += 1.0 - mean_us * libm::log(1.0 - draw);
                }
                self.is_in_burst
            }
        }
    }

    /// Number of packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// When the next packet arrives.
    #[must_use]
    pub fn next_arrival_us(&self) -> Option<u64> {
        self.in_flight.peek().map(|Reverse((at_us, ..))| *at_us)
    }

    /// Passes the next packet that has arrived by `now_us` to `receive`, with its time of arrival. Returns whether there was one.
    pub fn receive(&mut self, now_us: u64, receive: impl FnOnce(u64, &[u8])) -> bool {
        if self.next_arrival_us().is_none_or(|at_us| at_us > now_us) {
            return false;
        }
        let Some(Reverse((at_us, _, packet))) = self.in_flight.pop() else {
            return false;
        };
        receive(at_us, &packet);
        self.spare.push(packet);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measured share of packets that arrive, and of lost packets that follow a lost packet.
    fn shares(loss: LossModel) -> (f64, f64) {
        let mut link = ConditionedPath::new(NetworkConditioner::with_loss(loss), 1);
        let came = (0..20_000_u64).map(|nth| {
            link.send(nth * 33_000, &[0]);
            link.receive(u64::MAX, |_, _| ())
        });
        let came: Vec<bool> = came.collect();
        let lost = came.iter().filter(|came| !**came).count() as f64;
        let in_a_row = came.windows(2).filter(|pair| *pair == [false, false]);
        (lost / 20_000.0, in_a_row.count() as f64 / lost)
    }

    #[test]
    fn conditioner_loses_the_configured_share() {
        let (lost, in_a_row) = shares(LossModel::Independent(0.1));
        assert!((0.09..0.11).contains(&lost) && in_a_row < 0.13, "{lost}");
        let (lost, in_a_row) = shares(LossModel::Bursts {
            share: 0.1,
            mean_us: 50_000.0,
        });
        assert!((0.08..0.12).contains(&lost) && in_a_row > 0.4, "{lost}");
    }

    #[test]
    fn loss_pattern_is_independent_of_packet_count() {
        for loss in [
            LossModel::Independent(0.3),
            LossModel::Bursts {
                share: 0.3,
                mean_us: 50_000.0,
            },
        ] {
            let arrivals = |packets: u8| {
                let mut link = ConditionedPath::new(NetworkConditioner::with_loss(loss), 1);
                for tick in 0..1_000 {
                    (0..packets).for_each(|nth| link.send(tick * 33_000, &[nth]));
                }
                let mut first = Vec::new();
                while link.receive(u64::MAX, |at_us, packet| {
                    if packet == [0] {
                        first.push(at_us);
                    }
                }) {}
                first
            };
            assert_eq!(arrivals(1), arrivals(3));
        }
    }
}
