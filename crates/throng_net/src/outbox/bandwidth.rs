//! Simulated connections with a fixed number of bytes per tick, for runs that assemble packets in the tick. Which messages are delayed,
//! dropped or too many is then the same in every run, whatever the speed of the machine.

use std::collections::{BTreeMap, VecDeque};

use throng_core::hash::{StateHashed, StateHasher};
use throng_core::memory::MemoryUse;
use throng_protocol::wire::CloseReason;
use throng_protocol::wire::{ClientId, PacketTotals};

use super::assemble::Assembler;
use super::batch::{ClientUpdate, ClientUpdateHeader};
use super::feed::{FeedCounters, SpillLimits};
use super::frame::{Frame, FrameUpdate, begin_updates, write_reliable};
use super::sink::PacketSink;

/// The limits of all simulated connections.
#[derive(Debug, Default, MemoryUse)]
pub struct BandwidthLimits {
    #[memory(each_value)]
    limits: BTreeMap<ClientId, BandwidthLimit>,
    /// Bytes that wait for all connections.
    pending_bytes: usize,
    /// What the simulated connections dropped or delayed.
    pub counters: FeedCounters,
}

/// The limit of one connection.
#[derive(Debug, Default, MemoryUse)]
struct BandwidthLimit {
    bytes_per_tick: u32,
    /// Bytes that it can send in this tick. Below 0, it is busy with earlier ones.
    budget_bytes: i64,
    /// Frames of one update each, with reliable messages only.
    #[memory(each)]
    pending: VecDeque<Vec<u8>>,
    pending_bytes: usize,
    /// It was closed because its queue was full, and the simulation has not handled that yet.
    closed: bool,
}

impl BandwidthLimits {
    /// Limits a client's connection to this many bytes per tick from now on; `None`: no limit.
    pub fn set(&mut self, client: ClientId, bytes_per_tick: Option<u32>) {
        match bytes_per_tick {
            Some(bytes) => self.limits.entry(client).or_default().bytes_per_tick = bytes.max(1),
            // Waiting messages are sent in the next tick.
            None => {
                if let Some(line) = self.limits.get_mut(&client) {
                    line.bytes_per_tick = u32::MAX;
                }
            }
        }
    }

    /// Whether no connection is limited.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// Bytes of messages that wait for their connections.
    pub const fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Removes all limits and all waiting messages.
    pub fn clear(&mut self) {
        debug_assert_eq!(self.pending_bytes, 0, "what waits was sent");
        self.limits.clear();
        self.pending_bytes = 0;
    }

    /// Starts a tick: sends waiting messages within the limits. Connections without a limit send all of them, at once.
    pub fn begin_tick(
        &mut self,
        limits: bool,
        assembler: &mut Assembler,
        sink: &mut dyn PacketSink,
    ) -> PacketTotals {
        let mut written = PacketTotals::default();
        let waiting_bytes = &mut self.pending_bytes;
        self.limits.retain(|_, line| {
            if limits {
                let rate = i64::from(line.bytes_per_tick);
                line.budget_bytes = (line.budget_bytes + rate).min(rate);
            }
            while !limits || line.budget_bytes > 0 {
                let Some(frame) = line.pending.pop_front() else {
                    break;
                };
                line.pending_bytes -= frame.len();
                *waiting_bytes -= frame.len();
                let (sent, ended) = send_frame(&frame, assembler, sink);
                if limits {
                    line.budget_bytes -= sent.bytes as i64;
                }
                written.add(sent);
                if ended {
                    return false;
                }
            }
            // A connection without a limit is like one that is not simulated.
            line.closed || line.bytes_per_tick < u32::MAX || !line.pending.is_empty()
        });
        written
    }

    /// Sends an update of the batch within the client's limit; `None` if the client has none. If more bytes would wait than allowed, for a
    /// client or in total, the client is closed and passed to `tell`.
    pub fn send(
        &mut self,
        (tick, line, shared): (u64, ClientUpdate, &[u8]),
        limits: SpillLimits,
        assembler: &mut Assembler,
        sink: &mut dyn PacketSink,
        tell: impl FnOnce(ClientId),
    ) -> Option<PacketTotals> {
        let ClientUpdateHeader { client, close, .. } = line.header;
        let model = self.limits.get_mut(&client)?;
        if model.closed {
            self.counters.refused += 1;
            if close.is_some() {
                self.limits.remove(&client);
            }
            return Some(PacketTotals::default());
        }
        if model.pending.is_empty() && model.budget_bytes > 0 {
            let written = assembler.write_update(tick, line, shared, sink);
            model.budget_bytes -= written.bytes as i64;
            if close.is_some() {
                self.limits.remove(&client);
            }
            return Some(written);
        }
        self.counters.stalls += 1;
        self.counters.dropped += line.unreliable.len() as u64;
        let spans = line.reliable.iter();
        let messages: Vec<&[u8]> = spans.map(|span| span.bytes(shared, line.private)).collect();
        if messages.is_empty() && close.is_none() {
            return Some(PacketTotals::default());
        }
        let mut frame = Vec::new();
        begin_updates(&mut frame, tick);
        write_reliable(&mut frame, line.header, &messages);
        let fits = model.pending_bytes + frame.len() <= limits.client_bytes_max
            && self.pending_bytes + frame.len() <= limits.bytes_max;
        if fits || close.is_some() {
            self.counters.spilled += messages.len() as u64;
            model.pending_bytes += frame.len();
            self.pending_bytes += frame.len();
            model.pending.push_back(frame);
            return Some(PacketTotals::default());
        }
        self.counters.disconnected += 1;
        self.pending_bytes -= std::mem::take(&mut model.pending_bytes);
        model.closed = true;
        model.pending.clear();
        let head = ClientUpdateHeader {
            close: Some(CloseReason::SlowConsumer),
            ..line.header
        };
        let nothing = std::iter::empty::<&[u8]>;
        let written = assembler.write_messages(tick, head, nothing(), nothing(), sink);
        tell(client);
        Some(written)
    }
}

impl StateHashed for BandwidthLimits {
    fn hash(&self, hasher: &mut StateHasher) {
        for (client, line) in &self.limits {
            hasher.write_u64(u64::from(client.0));
            hasher.write_u64(line.budget_bytes as u64);
            hasher.write_u64(line.pending_bytes as u64);
        }
    }
}

/// Sends a waiting frame. Returns whether it was the last of its client.
fn send_frame(
    frame: &[u8],
    assembler: &mut Assembler,
    sink: &mut dyn PacketSink,
) -> (PacketTotals, bool) {
    let (mut written, mut ended) = (PacketTotals::default(), false);
    if let Some(Frame::Updates { tick, mut lines }) = Frame::read(frame) {
        while let Some(line) = FrameUpdate::read(&mut lines) {
            let nothing = std::iter::empty();
            written.add(assembler.write_messages(
                tick,
                line.header,
                line.reliable(&[]),
                nothing,
                sink,
            ));
            ended |= line.header.close.is_some();
        }
    }
    (written, ended)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::outbox::batch::OutgoingBatch;
    use crate::outbox::sink::MemorySink;
    use throng_protocol::wire::{Reassembler, WireReader};

    const CLIENT: ClientId = ClientId(3);

    /// A batch with reliable messages of these lengths, numbered from `first` on, and one unreliable message.
    fn batch(tick: u64, first: u8, lengths: &[usize], close: bool) -> OutgoingBatch {
        let mut batch = OutgoingBatch {
            tick,
            ..OutgoingBatch::default()
        };
        let part = batch.part(0);
        part.begin_client(CLIENT, 1, 0);
        for (nth, &length) in (0..).zip(lengths) {
            part.write_reliable(|bytes| bytes.extend(vec![first + nth; length]));
        }
        part.write_unreliable(|bytes| bytes.push(250));
        if close {
            part.close(CloseReason::Ended);
        }
        part.end_client();
        batch
    }

    struct LineRig {
        models: BandwidthLimits,
        assembler: Assembler,
        sink: MemorySink,
        closed_clients: Vec<ClientId>,
    }

    impl LineRig {
        fn new(bytes_per_tick: u32) -> Self {
            let mut models = BandwidthLimits::default();
            models.set(CLIENT, Some(bytes_per_tick));
            Self {
                models,
                assembler: Assembler::default(),
                sink: MemorySink::default(),
                closed_clients: Vec::new(),
            }
        }

        /// Runs a tick. Returns the bytes sent.
        fn tick(&mut self, batch: &OutgoingBatch, client_bytes_max: usize) -> u64 {
            let limits = SpillLimits {
                client_bytes_max,
                bytes_max: usize::MAX,
            };
            let mut written = self
                .models
                .begin_tick(true, &mut self.assembler, &mut self.sink);
            let line = batch.parts[0].update(0).unwrap();
            let closed_clients = &mut self.closed_clients;
            let sent = self.models.send(
                (batch.tick, line, &batch.shared),
                limits,
                &mut self.assembler,
                &mut self.sink,
                |client| closed_clients.push(client),
            );
            written.add(sent.unwrap_or_else(|| {
                self.assembler
                    .write_update(batch.tick, line, &batch.shared, &mut self.sink)
            }));
            written.bytes
        }

        /// The bytes of all messages that arrived, by channel. Checks the order of packets.
        fn arrived(&self) -> [Vec<u8>; 2] {
            let (mut reassembler, mut arrived) = (Reassembler::default(), [Vec::new(), Vec::new()]);
            for (_, packet) in self.sink.take().packets.iter() {
                let received = reassembler.accept(packet).unwrap();
                let channel = usize::from(
                    received.header.channel == throng_protocol::wire::Channel::Unreliable,
                );
                arrived[channel].extend_from_slice(received.messages);
            }
            arrived
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn reliable_messages_arrive_in_order_at_the_limited_bandwidth(
            rate in 20..400u32,
            ticks in prop::collection::vec(prop::collection::vec(1..200usize, 0..4), 1..40),
        ) {
            let mut rig = LineRig::new(rate);
            let (mut expected, mut sent, mut first) = (Vec::new(), 0, 20);
            for (tick, lengths) in (1..).zip(&ticks) {
                for (nth, &length) in (0..).zip(lengths) {
                    expected.extend(vec![first + nth; length]);
                }
                sent += rig.tick(&batch(tick, first, lengths, false), usize::MAX);
                first = 20 + (first - 20 + lengths.len() as u8) % 200;
                // An update is never split, so it may exceed the limit once.
                prop_assert!(sent <= u64::from(rate) * tick + 4 * 200 + 100);
            }
            let end = rig.models.begin_tick(false, &mut rig.assembler, &mut rig.sink);
            prop_assert_eq!(rig.models.pending_bytes(), 0);
            let [reliable, unreliable] = rig.arrived();
            prop_assert_eq!(reliable, expected);
            prop_assert_eq!(unreliable.len() as u64 + rig.models.counters.dropped, ticks.len() as u64);
            prop_assert!(end.bytes > 0 || sent > 0);
        }
    }

    #[test]
    fn slow_consumer_is_closed_and_reported_once() {
        let mut rig = LineRig::new(10);
        for tick in 1..=20 {
            rig.tick(&batch(tick, 30, &[100], false), 1_000);
        }
        assert_eq!(rig.closed_clients, [CLIENT]);
        assert_eq!(
            rig.sink.take().closed,
            [(CLIENT, CloseReason::SlowConsumer)]
        );
        assert_eq!(rig.models.counters.disconnected, 1);
        assert!(rig.models.counters.refused > 0);
        // The simulation ends its session; the client id can be used again.
        rig.tick(&batch(21, 30, &[], true), 1_000);
        assert!(rig.models.limits.is_empty());
    }

    #[test]
    fn closing_client_receives_accepted_messages_first() {
        let mut rig = LineRig::new(50);
        rig.tick(&batch(1, 30, &[120], false), 1_000);
        rig.tick(&batch(2, 40, &[120], false), 1_000);
        rig.tick(&batch(3, 50, &[1], true), 1_000);
        for _ in 0..10 {
            rig.models
                .begin_tick(true, &mut rig.assembler, &mut rig.sink);
        }
        assert!(rig.models.limits.is_empty());
        let kept = rig.sink.take();
        assert_eq!(kept.closed, [(CLIENT, CloseReason::Ended)]);
        let last = kept.packets.iter().last().unwrap().1;
        assert_eq!(WireReader::new(&last[8..]).remaining(), [50]);
    }

    #[test]
    fn lifted_bandwidth_limit_sends_all_pending_messages() {
        let mut rig = LineRig::new(10);
        for tick in 1..=5 {
            rig.tick(&batch(tick, 30, &[100], false), 10_000);
        }
        assert!(rig.models.pending_bytes() > 0);
        rig.models.set(CLIENT, None);
        rig.tick(&batch(6, 30, &[100], false), 10_000);
        assert_eq!(rig.arrived()[0].len(), 600);
        rig.models
            .begin_tick(true, &mut rig.assembler, &mut rig.sink);
        assert!(rig.models.limits.is_empty());
    }

    #[test]
    fn unused_bandwidth_is_not_saved_up() {
        let mut rig = LineRig::new(200);
        for tick in 1..=20 {
            rig.tick(&batch(tick, 30, &[], false), usize::MAX);
        }
        let mut sent = 0;
        for tick in 21..=30 {
            sent += rig.tick(&batch(tick, 30, &[190], false), usize::MAX);
            // An update is never split, so it may exceed the limit once.
            assert!(sent <= 200 * (tick - 20) + 210, "{sent} bytes by {tick}");
        }
        assert!(rig.models.pending_bytes() <= 200);
        let burst = rig.tick(&batch(31, 30, &[190; 4], false), usize::MAX);
        let next = rig.tick(&batch(32, 30, &[190; 4], false), usize::MAX);
        assert!(burst + next <= 1_200, "{burst} and {next} bytes");
    }

    #[test]
    fn closed_slow_consumer_leaves_no_pending_bytes() {
        let mut rig = LineRig::new(10);
        for tick in 1..=20 {
            rig.tick(&batch(tick, 30, &[100], false), 1_000);
            let of_client = rig.models.limits.values().map(|line| line.pending_bytes);
            assert_eq!(rig.models.pending_bytes(), of_client.sum::<usize>());
        }
        assert_eq!(rig.closed_clients, [CLIENT]);
        assert_eq!(rig.models.pending_bytes(), 0);
    }
}
