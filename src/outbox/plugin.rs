//! The outbox as a resource, emptied in `Send`.

use std::sync::{Arc, Mutex, PoisonError};

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};
use throng_core::hash::StateHashed;
use throng_net::outbox::{
    Assembler, BandwidthLimits, CountingSink, OutgoingBatch, PacketSink, SenderCounters,
    SenderSpec, Senders, SharedSink, SpillLimits,
};
use tracing::{error, warn};

use crate::memory::{MemoryAppExt, MemoryUse};
use crate::sim::{HashAppExt, SimSystems, SimTick, Workers};
use crate::wire::{ClientId, MESSAGE_BYTES_MAX, MTU_DEFAULT_BYTES, PacketTotals};

/// The maximum number of sender threads.
const SHARDS_MAX: u32 = 64;

/// The minimum size of a ring: the longest message and its header fit.
const RING_BYTES_MIN: usize = 2 * MESSAGE_BYTES_MAX;

/// Assembles the messages of a tick to packets, and passes them to a [`PacketSink`] in [`SimSystems::Send`].
///
/// Set the sink with [`Server::set_sink`](crate::server::Server::set_sink) or [`Outbox::set_sink`]; [`listen`](crate::net::listen) sets
/// the one of the UDP transport. Without a sink packets are counted and dropped.
///
/// [`OutboxSettings`] has the packet size, the sender threads and the limit after which a slow client is disconnected. No tick waits for a
/// client or a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutboxPlugin;

crate::sim::sim_plugin!(OutboxPlugin, ());

impl OutboxPlugin {
    fn add_to(app: &mut App) {
        #[cfg(feature = "reflect")]
        app.register_type::<OutboxSettings>();
        app.init_resource::<OutboxSettings>()
            .init_resource::<Outbox>()
            .count_memory::<Outbox>("outbox")
            .init_resource::<OutboxStats>()
            .add_message::<SlowConsumerDetected>()
            .add_systems(FixedUpdate, send.in_set(SimSystems::Send))
            .hash_part("lines", |world, hasher| {
                world.resource::<Outbox>().bandwidth_limits.hash(hasher);
            });
    }
}

/// How packets are sent: number of threads, packet length, limits of waiting data. A change takes effect at the next Send; a
/// change of the threads waits until they have delivered everything.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::outbox::OutboxSettings;
///
/// // Two threads assemble and send packets, beside the tick.
/// app.insert_resource(OutboxSettings { sender_threads: 2, ..OutboxSettings::default() });
/// ```
#[derive(Resource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct OutboxSettings {
    /// Sender threads, each for a range of clients; at most 64. 0 assembles packets in the tick, as a deterministic run requires.
    #[serde(alias = "shards")]
    pub sender_threads: u32,
    /// Size of each thread's ring, in bytes, at least 2 MiB.
    pub ring_bytes: usize,
    /// The maximum size of reliable messages that wait for space in the rings, in bytes, of all clients together.
    #[serde(alias = "spill_bytes_max")]
    pub spill_queue_bytes_max: usize,
    /// The maximum size of reliable messages that wait for one client, in bytes; a client that exceeds it is closed.
    pub spill_client_bytes_max: usize,
    /// The longest packet, in bytes; clamped to 500 to 65,507.
    pub mtu_bytes: usize,
}

impl Default for OutboxSettings {
    fn default() -> Self {
        Self {
            sender_threads: 0,
            ring_bytes: 8 << 20,
            spill_queue_bytes_max: 64 << 20,
            spill_client_bytes_max: 2 << 20,
            mtu_bytes: MTU_DEFAULT_BYTES,
        }
    }
}

impl OutboxSettings {
    fn spec(&self) -> SenderSpec {
        let shards = self.sender_threads.min(SHARDS_MAX);
        SenderSpec {
            shards,
            ring_bytes: self.ring_bytes.max(RING_BYTES_MIN),
            spill: SpillLimits {
                client_bytes_max: self.spill_client_bytes_max,
                bytes_max: self.spill_queue_bytes_max / shards.max(1) as usize,
            },
            mtu_bytes: self.mtu_bytes,
        }
    }
}

/// A client exceeded its limit of waiting messages: it receives nothing more, and its session has to be ended.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::outbox::SlowConsumerDetected;
///
/// fn report(mut slow: MessageReader<SlowConsumerDetected>) {
///     for slow in slow.read() {
///         println!("client {} is too slow and is disconnected", slow.client.0);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowConsumerDetected {
    /// The client whose session has to be ended.
    pub client: ClientId,
}

/// Packets of the server. When it is dropped, everything that was accepted is delivered.
#[derive(Resource)]
pub struct Outbox {
    batch: OutgoingBatch,
    /// For clients that no thread serves.
    assembler: Assembler,
    bandwidth_limits: BandwidthLimits,
    /// Totals of packets sent without threads.
    inline: PacketTotals,
    sink: SinkSource,
    /// Whether a sink was set, or the warning that there is none was logged.
    is_sink_set: bool,
    threads: Option<SenderThreads>,
    /// Counters of threads that have ended.
    ended_counters: SenderCounters,
    /// Settings with which no thread could be started: not tried again until they change.
    failed_spec: Option<SenderSpec>,
}

/// Threads and the settings that they were started with.
struct SenderThreads {
    senders: Senders,
    spec: SenderSpec,
    /// The sink that all of them share, if any.
    shared: Option<Arc<Mutex<Box<dyn PacketSink>>>>,
}

/// The source of sinks.
enum SinkSource {
    /// One for all. While threads share it, a sink that discards packets is stored here.
    One(Box<dyn PacketSink>),
    /// One for each thread.
    Each {
        make: Box<dyn FnMut(usize) -> Box<dyn PacketSink> + Send + Sync>,
        /// For packets that are sent without threads.
        inline: Option<Box<dyn PacketSink>>,
    },
}

impl SinkSource {
    fn inline(&mut self) -> &mut dyn PacketSink {
        match self {
            Self::One(sink) => &mut **sink,
            Self::Each { make, inline } => &mut **inline.get_or_insert_with(|| make(0)),
        }
    }
}

impl Default for Outbox {
    /// An outbox that counts and discards its packets.
    fn default() -> Self {
        Self {
            batch: OutgoingBatch::default(),
            assembler: Assembler::default(),
            bandwidth_limits: BandwidthLimits::default(),
            inline: PacketTotals::default(),
            sink: SinkSource::One(Box::new(CountingSink::default())),
            is_sink_set: false,
            threads: None,
            ended_counters: SenderCounters::default(),
            failed_spec: None,
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.stop_threads();
        self.send_deferred();
    }
}

impl Outbox {
    /// Sends packets to another sink from now on; the previous one has received all earlier packets. Several threads share it
    /// behind a lock. In an app of your own:
    ///
    /// ```
    /// use throng::outbox::{MemorySink, Outbox};
    ///
    /// # let mut app = bevy_app::App::new();
    /// # app.add_plugins(throng::outbox::OutboxPlugin);
    /// let sent = MemorySink::default();
    /// app.world_mut().resource_mut::<Outbox>().set_sink(sent.clone());
    /// ```
    pub fn set_sink(&mut self, sink: impl PacketSink + 'static) {
        self.stop_threads();
        self.send_deferred();
        self.sink = SinkSource::One(Box::new(sink));
        self.is_sink_set = true;
    }

    /// Sends packets from now on to sinks that `make` creates, one per thread, without sharing. The number is that of the thread,
    /// from 0 on; the thread serves the clients whose id modulo the number of threads is this number.
    pub fn set_sink_per_thread(
        &mut self,
        make: impl FnMut(usize) -> Box<dyn PacketSink> + Send + Sync + 'static,
    ) {
        self.stop_threads();
        self.send_deferred();
        let make = Box::new(make);
        self.sink = SinkSource::Each { make, inline: None };
        self.is_sink_set = true;
    }

    /// The messages of this tick that are not sent yet. Replicate fills the batch; Send sets its tick and empties it.
    pub const fn batch_mut(&mut self) -> &mut OutgoingBatch {
        &mut self.batch
    }

    /// Simulates a client's connection that takes this many bytes per tick, packet headers included; `None` for no limit, as by
    /// default. Data above the limit waits, is dropped or closes the client as with a full ring, but the same in every run. Only
    /// without threads, and removed when those start; ends with the client.
    pub fn limit_bandwidth(&mut self, client: ClientId, bytes_per_tick: Option<u32>) {
        if self.threads.is_none() {
            self.bandwidth_limits.set(client, bytes_per_tick);
        }
    }

    /// Bytes of messages that wait for simulated connections.
    #[must_use]
    pub fn deferred_bytes(&self) -> usize {
        self.bandwidth_limits.pending_bytes()
    }

    /// Sends everything that waits for simulated connections.
    fn send_deferred(&mut self) {
        let sink = self.sink.inline();
        let written = self
            .bandwidth_limits
            .begin_tick(false, &mut self.assembler, sink);
        self.inline.add(written);
        sink.flush();
    }

    /// Waits until everything that was sent has reached the sinks, if there are threads. Do not call it in a tick.
    pub fn flush(&mut self) {
        if let Some(threads) = &mut self.threads {
            threads.senders.flush();
        }
    }

    /// Starts and ends threads to match the settings.
    fn apply_settings(&mut self, settings: &OutboxSettings) {
        let spec = settings.spec();
        let running = self.threads.as_ref().map(|threads| threads.spec);
        if running.is_some_and(|running| running != spec) {
            self.stop_threads();
        }
        if spec.shards > 0 && self.threads.is_none() && self.failed_spec != Some(spec) {
            self.start_threads(spec);
        }
        self.assembler.set_mtu_bytes(spec.mtu_bytes);
    }

    fn start_threads(&mut self, spec: SenderSpec) {
        self.send_deferred();
        self.bandwidth_limits.clear();
        let (started, shared) = match &mut self.sink {
            SinkSource::One(sink) => {
                let one = std::mem::replace(sink, Box::new(CountingSink::default()));
                let shared = Arc::new(Mutex::new(one));
                let started = Senders::start(spec, &mut self.assembler, |_| {
                    Box::new(SharedSink(shared.clone()))
                });
                (started, Some(shared))
            }
            SinkSource::Each { make, .. } => {
                (Senders::start(spec, &mut self.assembler, make), None)
            }
        };
        match started {
            Ok(senders) => {
                self.failed_spec = None;
                self.threads = Some(SenderThreads {
                    senders,
                    spec,
                    shared,
                });
            }
            Err(error) => {
                error!(%error, "starting sender threads failed: packets are assembled in the tick");
                self.failed_spec = Some(spec);
                self.restore_sink(shared);
            }
        }
    }

    /// Ends the threads, after they have delivered everything.
    fn stop_threads(&mut self) {
        let Some(SenderThreads {
            mut senders,
            shared,
            ..
        }) = self.threads.take()
        else {
            return;
        };
        senders.flush();
        self.ended_counters.add(senders.counters());
        senders.stop(&mut self.assembler);
        self.restore_sink(shared);
    }

    /// Returns the shared sink of the threads to the tick.
    fn restore_sink(&mut self, shared: Option<Arc<Mutex<Box<dyn PacketSink>>>>) {
        let sink = shared.and_then(|shared| Arc::try_unwrap(shared).ok());
        if let (Some(sink), SinkSource::One(place)) = (sink, &mut self.sink) {
            *place = sink.into_inner().unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Counters of sent packets. With threads: as last reported by the threads.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxStats {
    /// Packets handed to the sink.
    pub packets: u64,
    /// The bytes of those packets, headers included.
    pub bytes: u64,
    /// Messages in them.
    pub messages: u64,
    /// Messages that were dropped because they are longer than their channel allows.
    pub too_long: u64,
    /// Packets that the sink failed to send.
    pub sink_errors: u64,
    /// How often a thread's ring, or a simulated connection, could not take the data of a tick at once.
    pub stalls: u64,
    /// Unreliable messages that were dropped as a result.
    pub dropped: u64,
    /// Reliable messages that had to wait as a result.
    pub spilled: u64,
    /// Clients that were closed because their waiting messages exceeded the limit.
    pub disconnected: u64,
    /// Messages and updates for clients that were closed before, and messages that fit into no ring.
    pub refused: u64,
    /// The maximum fill of a ring, in bytes.
    pub ring_high_water_bytes: usize,
}

impl OutboxStats {
    fn of(inline: PacketTotals, threads: SenderCounters, sink_errors: u64) -> Self {
        let mut written = inline;
        written.add(threads.written);
        Self {
            packets: written.packets,
            bytes: written.bytes,
            messages: written.messages,
            too_long: written.too_long,
            sink_errors: sink_errors + threads.sink_errors,
            stalls: threads.feed.stalls,
            dropped: threads.feed.dropped,
            spilled: threads.feed.spilled,
            disconnected: threads.feed.disconnected,
            refused: threads.feed.refused,
            ring_high_water_bytes: threads.feed.ring_high_water_bytes,
        }
    }
}

fn send(
    mut outbox: ResMut<Outbox>,
    mut stats: ResMut<OutboxStats>,
    mut behind: MessageWriter<SlowConsumerDetected>,
    settings: Res<OutboxSettings>,
    tick: Res<SimTick>,
    pool: Res<Workers>,
) {
    outbox.apply_settings(&settings);
    if !outbox.is_sink_set && !outbox.batch.is_empty() {
        outbox.is_sink_set = true;
        warn!(
            "packets for clients are discarded: no sink is set; use `Server::set_sink`, `Outbox::set_sink` or `throng::net::listen`"
        );
    }
    let Outbox {
        batch,
        assembler,
        bandwidth_limits: models,
        inline,
        sink,
        threads,
        ended_counters: before,
        ..
    } = &mut *outbox;
    batch.finish();
    batch.tick = tick.0;
    let mut tell = |client| {
        behind.write(SlowConsumerDetected { client });
    };
    if let Some(threads) = threads {
        threads.senders.push_batch(batch, tell);
        let mut counters = *before;
        counters.add(threads.senders.counters());
        counters.feed.add(models.counters);
        *stats = OutboxStats::of(*inline, counters, 0);
    } else {
        let sink = sink.inline();
        inline.add(models.begin_tick(true, assembler, sink));
        if models.is_empty() {
            inline.add(assembler.assemble_batch(batch, *pool, sink));
        } else {
            let limits = settings.spec().spill;
            for line in batch.updates_in(0..batch.len()) {
                let news = (batch.tick, line, &*batch.shared);
                let sent = models.send(news, limits, assembler, sink, &mut tell);
                inline.add(sent.unwrap_or_else(|| {
                    assembler.write_update(batch.tick, line, &batch.shared, sink)
                }));
            }
        }
        sink.flush();
        let mut counters = *before;
        counters.feed.add(models.counters);
        *stats = OutboxStats::of(*inline, counters, sink.errors());
    }
    batch.clear();
}

impl MemoryUse for Outbox {
    fn heap_bytes(&self) -> usize {
        self.batch.heap_bytes()
            + self.assembler.heap_bytes()
            + self.bandwidth_limits.heap_bytes()
            + self
                .threads
                .as_ref()
                .map_or(0, |threads| threads.senders.heap_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::outbox::MemorySink;
    use crate::wire::CloseReason;

    /// An app whose Replicate sends a message to some clients every tick.
    fn app(settings: OutboxSettings) -> App {
        fn write_hello(mut outbox: ResMut<Outbox>, tick: Res<SimTick>) {
            let batch = outbox.batch_mut();
            let all = batch.push_shared(|bytes| bytes.extend([20, tick.0 as u8]));
            for client in 1..=20 {
                let part = batch.part(client as usize / 8);
                part.begin_client(ClientId(client), 0, 0);
                part.reliable(all);
                part.write_unreliable(|bytes| bytes.extend([21, client as u8]));
                if client == 20 && tick.0 == 5 {
                    part.close(CloseReason::Ended);
                }
            }
        }
        let mut app = App::new();
        app.add_plugins((bevy_time::TimePlugin, OutboxPlugin))
            .insert_resource(settings)
            .add_systems(FixedUpdate, write_hello.in_set(SimSystems::Replicate));
        crate::sim::clock::one_tick_per_update(&mut app);
        app
    }

    fn sharded(shards: u32) -> OutboxSettings {
        OutboxSettings {
            sender_threads: shards,
            ..OutboxSettings::default()
        }
    }

    /// The packets of each client.
    fn packets(sink: &MemorySink) -> BTreeMap<u32, Vec<Vec<u8>>> {
        let mut packets: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
        for (client, packet) in sink.take().packets.iter() {
            packets.entry(client.0).or_default().push(packet.to_vec());
        }
        packets
    }

    fn run(settings: &[OutboxSettings], each: bool) -> BTreeMap<u32, Vec<Vec<u8>>> {
        let sink = MemorySink::default();
        let mut app = app(settings[0].clone());
        let mut outbox = app.world_mut().resource_mut::<Outbox>();
        if each {
            let sink = sink.clone();
            outbox.set_sink_per_thread(move |_| Box::new(sink.clone()));
        } else {
            outbox.set_sink(sink.clone());
        }
        for settings in settings {
            app.insert_resource(settings.clone());
            (0..6).for_each(|_| app.update());
        }
        app.world_mut().resource_mut::<Outbox>().flush();
        let expected = 6 * settings.len() as u64 * 40;
        let packets = packets(&sink);
        assert_eq!(
            packets.values().map(Vec::len).sum::<usize>() as u64,
            expected
        );
        app.update();
        if settings
            .last()
            .is_some_and(|settings| settings.sender_threads == 0)
        {
            let stats = app.world().resource::<OutboxStats>();
            assert_eq!(
                (stats.packets, stats.messages),
                (expected + 40, expected + 40)
            );
        }
        // Accepted packets are delivered when the app is dropped.
        drop(app);
        assert_eq!(
            self::packets(&sink).values().map(Vec::len).sum::<usize>(),
            40
        );
        packets
    }

    #[test]
    fn packets_without_a_sink_are_a_warning_once() {
        let warnings_of = |sink: Option<MemorySink>| {
            let mut app = app(sharded(0));
            crate::sim::single_threaded(&mut app);
            if let Some(sink) = sink {
                app.world_mut().resource_mut::<Outbox>().set_sink(sink);
            }
            crate::sim::logged_warnings(|| (0..3).for_each(|_| app.update()))
        };
        let warnings = warnings_of(None);
        assert!(
            warnings.len() == 1 && warnings[0].contains("set_sink"),
            "{warnings:?}"
        );
        assert_eq!(
            warnings_of(Some(MemorySink::default())),
            Vec::<String>::new()
        );
    }

    #[test]
    fn sender_threads_send_the_same_packets_as_the_tick() {
        let inline = run(&[sharded(0)], false);
        for each in [false, true] {
            for shards in [1, 3] {
                assert_eq!(run(&[sharded(shards)], each), inline);
            }
        }
    }

    #[test]
    fn packet_numbers_continue_when_settings_change() {
        let (changing, inline) = ([0, 2, 3, 0].map(sharded), [0; 4].map(sharded));
        assert_eq!(run(&changing, false), run(&inline, false));
        assert_eq!(run(&changing, true), run(&inline, true));
    }
}
