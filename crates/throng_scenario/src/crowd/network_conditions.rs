//! Simulated network conditions between the server and some of the synthetic clients.
//!
//! Packets of the unreliable channel are lost, duplicated, delayed or reordered. Packets of the reliable channel are delayed, but
//! each arrives once and in order, as a transport guarantees. The seed determines all outcomes.

use std::collections::{BTreeMap, HashMap};

use bevy_ecs::prelude::*;
use foldhash::fast::FixedState;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use throng::memory::MemoryUse;
use throng::outbox::PacketBuffer;
use throng::sim::StateHasher;
use throng::wire::{Channel, ClientId, PacketHeader, WireReader};

/// The largest delay and the largest jitter, in milliseconds.
pub const DELAY_MS_MAX: u32 = 10_000;

/// The simulated network conditions of a client.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "NetworkConditions", default, deny_unknown_fields)]
pub struct CrowdNetworkConditions {
    /// The share of unreliable packets that are lost, 0 to 1.
    pub loss: f32,
    /// The share of unreliable packets that are duplicated, 0 to 1.
    pub duplicate: f32,
    /// The share of unreliable packets that arrive after later ones, 0 to 1.
    pub reorder: f32,
    /// The delay of packets, in milliseconds.
    pub delay_ms: u32,
    /// The largest additional delay, in milliseconds.
    pub jitter_ms: u32,
    /// The bandwidth in bytes per second, packet headers included; 0 means unlimited. Excess unreliable packets are dropped, reliable ones
    /// wait. A client with too many waiting bytes is logged out and logs in again.
    pub bytes_per_s: u32,
    /// The share of clients with these conditions, 0 to 1; the others have a perfect network.
    pub share: f32,
}

impl CrowdNetworkConditions {
    /// Adds the part that affects the server to the state hash: bandwidth, and the clients that have it. Packets in flight are not part of the
    /// state.
    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.bytes_per_s));
        hasher.write_f32(self.share);
    }

    /// The bandwidth of a client, in bytes per tick; `None` if it is unlimited.
    pub(super) fn bytes_per_tick(&self, client: ClientId, tick_s: f64) -> Option<u32> {
        let is_limited = self.bytes_per_s > 0 && self.applies_to(client);
        is_limited.then(|| (f64::from(self.bytes_per_s) * tick_s).ceil() as u32)
    }

    fn applies_to(&self, client: ClientId) -> bool {
        // The golden ratio spreads any share evenly over the clients.
        (f64::from(client.0) * 0.618_033_988_749_895).fract() < f64::from(self.share)
    }
}

/// Packets in flight.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct InFlightPackets {
    /// By arrival tick and sending order.
    #[memory(each_value)]
    in_flight: BTreeMap<(u64, u64), (ClientId, Vec<u8>)>,
    /// The arrival tick of the last reliable packet of each client.
    last_reliable_arrival: HashMap<ClientId, u64, FixedState>,
    sent: u64,
}

impl InFlightPackets {
    /// Whether no packet is in flight.
    pub fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Replaces the packets that were sent in this tick by those that arrive in it.
    pub fn transfer(
        &mut self,
        spec: &CrowdNetworkConditions,
        tick: u64,
        tick_s: f64,
        random: &mut impl Rng,
        frames: &mut PacketBuffer,
    ) {
        if spec.share <= 0.0 && self.is_empty() {
            return;
        }
        let mut arriving = PacketBuffer::default();
        for (client, packet) in frames.iter() {
            if spec.applies_to(client) {
                self.send(spec, (tick, tick_s), random, client, packet);
            } else if self.last_reliable_arrival.contains_key(&client) {
                // No conditions apply to this client any more, but its reliable packets in flight must arrive first.
                self.send(
                    &CrowdNetworkConditions::default(),
                    (tick, tick_s),
                    random,
                    client,
                    packet,
                );
            } else {
                arriving.push(client, |bytes| bytes.extend_from_slice(packet));
            }
        }
        let later = self.in_flight.split_off(&(tick + 1, 0));
        for (client, packet) in std::mem::replace(&mut self.in_flight, later).into_values() {
            arriving.push(client, |bytes| bytes.extend_from_slice(&packet));
        }
        self.last_reliable_arrival.retain(|_, until| *until > tick);
        *frames = arriving;
    }

    fn send(
        &mut self,
        spec: &CrowdNetworkConditions,
        (tick, tick_s): (u64, f64),
        random: &mut impl Rng,
        client: ClientId,
        packet: &[u8],
    ) {
        let jitter_ms = random.random_range(0..=spec.jitter_ms.min(DELAY_MS_MAX));
        let transit_ms = spec.delay_ms.min(DELAY_MS_MAX) + jitter_ms;
        let mut arrives = tick + (f64::from(transit_ms) / 1e3 / tick_s).round() as u64;
        let header = PacketHeader::read(&mut WireReader::new(packet));
        if header.is_ok_and(|header| header.channel == Channel::Unreliable) {
            // The number of draws is constant, so that the outcome for one packet does not shift the draws for the next.
            let [lost, twice, late] = [spec.loss, spec.duplicate, spec.reorder]
                .map(|share| random.random_bool(f64::from(share.clamp(0.0, 1.0))));
            let behind = random.random_range(1..=3);
            if late {
                arrives += behind;
            }
            if twice {
                self.schedule(arrives + behind, client, packet);
            }
            if lost {
                return;
            }
        } else {
            let until = self.last_reliable_arrival.entry(client).or_insert(0);
            arrives = arrives.max(*until);
            *until = arrives;
        }
        self.schedule(arrives, client, packet);
    }

    fn schedule(&mut self, arrives: u64, client: ClientId, packet: &[u8]) {
        self.sent += 1;
        self.in_flight
            .insert((arrives, self.sent), (client, packet.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    fn packet(channel: Channel, sequence: u16) -> Vec<u8> {
        let header = PacketHeader {
            channel,
            epoch: 0,
            sequence,
            tick: 0,
            input: 0,
        };
        header.to_bytes().to_vec()
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn reliable_packets_all_arrive_in_order(
            seed: u64, loss in 0.0..1.0f32, duplicate in 0.0..1.0f32, delay_ms in 0..300u32, jitter_ms in 0..300u32,
        ) {
            let bad = CrowdNetworkConditions { loss, duplicate, reorder: 0.5, delay_ms, jitter_ms, bytes_per_s: 0, share: 1.0 };
            let (mut in_flight, mut random) = (InFlightPackets::default(), Pcg64Mcg::seed_from_u64(seed));
            let mut arrived: [Vec<u16>; 2] = Default::default();
            for tick in 0..200u64 {
                let mut frames = PacketBuffer::default();
                if tick < 100 {
                    for channel in [Channel::Reliable, Channel::Unreliable] {
                        frames.push(ClientId(7), |bytes| bytes.extend(packet(channel, tick as u16)));
                    }
                }
                // The conditions are removed in between, with packets in flight.
                let spec = if (40..60).contains(&tick) { CrowdNetworkConditions::default() } else { bad };
                in_flight.transfer(&spec, tick, 0.05, &mut random, &mut frames);
                for (_, packet) in frames.iter() {
                    let header = PacketHeader::read(&mut WireReader::new(packet)).unwrap();
                    arrived[usize::from(header.channel == Channel::Unreliable)].push(header.sequence);
                    let good = (40..60).contains(&header.sequence);
                    let delay = if good { 0 } else { u64::from(delay_ms / 50) };
                    prop_assert!(u64::from(header.sequence) + delay <= tick);
                }
            }
            prop_assert!(in_flight.is_empty());
            prop_assert_eq!(&arrived[0], &(0..100).collect::<Vec<u16>>());
            prop_assert!(arrived[1].len() <= 200);
        }
    }

    #[test]
    fn network_conditions_apply_to_their_share_of_clients() {
        let spec = CrowdNetworkConditions {
            share: 0.3,
            ..CrowdNetworkConditions::default()
        };
        let bad = (0..1000)
            .filter(|&client| spec.applies_to(ClientId(client)))
            .count();
        assert!((295..=305).contains(&bad), "{bad}");
        assert!(!CrowdNetworkConditions::default().applies_to(ClientId(0)));
    }
}
