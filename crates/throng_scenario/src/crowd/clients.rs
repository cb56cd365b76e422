//! Synthetic clients: they log in, send messages and apply packets, as the programs of players do.

use std::collections::HashMap;

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use bevy_time::{Fixed, Time};
use foldhash::fast::FixedState;
use glam::Vec2;
use rand::RngExt;

use super::crowds::{CrowdId, Crowds, individual_random};
use super::network_conditions::{CrowdNetworkConditions, InFlightPackets};
use super::synthetic::{FIRST_PLAYER, SyntheticClient};
use throng::map::SceneMap;
use throng::memory::MemoryUse;
use throng::movement::MaxSpeed;
use throng::nav::NavPath;
use throng::outbox::{MemorySink, Outbox, PacketBuffer, PacketSink};
use throng::session::{Session, SessionClosed, SessionState, Sessions, TransportHandle};
use throng::sim::{RandomStreams, SimTick, StateHasher, Workers};
use throng::store::PlayerStore;
use throng::sync::{Mirror, compare_mirror};
use throng::wire::{ClientId, ClientMessage, quantise};
use throng::world::{Heading, Object, PlayerId, Position};

/// Maximum number of messages that one client sends per tick.
const MESSAGES_PER_TICK_MAX: u64 = 16;

/// Number of ticks until a player that logged out logs in again.
const AWAY_TICKS: std::ops::Range<u64> = 40..200;

/// What synthetic clients received and sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyntheticClientStats {
    /// Packets that mirrors applied.
    pub packets: u64,
    /// Mirrors that rejected a packet.
    pub decode_errors: u64,
    /// Messages sent to the server.
    pub sent: u64,
    /// Session ends for which a receiving client got the close reason, once per end.
    pub end_notices: u64,
    /// Sessions of receiving clients that were resumed by token.
    pub resumed: u64,
}

/// All synthetic clients, by ascending player.
#[derive(Resource, Debug, Default, MemoryUse)]
pub struct SyntheticClients {
    #[memory(each)]
    clients: Vec<SyntheticClient>,
    by_client: HashMap<ClientId, usize, FixedState>,
    pending_churn: Vec<f64>,
    /// Delivers packets to the mirrors.
    mirror_sink: MemorySink,
    in_flight: InFlightPackets,
    stats: SyntheticClientStats,
    buffer: Vec<u8>,
}

impl SyntheticClients {
    /// Drops the clients' copies of the world; used when the clients do not return.
    pub fn clear_mirrors(&mut self) {
        for client in &mut self.clients {
            client.mirror = Mirror::default();
            client.drop_previous();
        }
    }

    /// A sink that delivers packets to the mirrors, for the outbox.
    #[must_use]
    pub fn sink(&self) -> Box<dyn PacketSink> {
        Box::new(self.mirror_sink.clone())
    }

    /// Whether packets to mirrors are still in flight.
    #[must_use]
    pub fn has_packets_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// The statistics so far.
    #[must_use]
    pub const fn stats(&self) -> SyntheticClientStats {
        self.stats
    }

    /// How many clients receive packets.
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        self.clients
            .iter()
            .filter(|synthetic| synthetic.receives_packets && synthetic.client.is_some())
            .count()
    }

    /// Number of players, online and offline.
    pub(super) const fn player_count(&self) -> usize {
        self.clients.len()
    }

    /// Creates the clients of a crowd's players; `receiving` of them, evenly spread, have mirrors. Returns the first player.
    pub(super) fn add_players(&mut self, crowd: CrowdId, count: u32, receiving: u32) -> PlayerId {
        let first = PlayerId(FIRST_PLAYER + self.clients.len() as u64);
        let share = |nth: u32| u64::from(nth) * u64::from(receiving) / u64::from(count.max(1));
        self.clients.extend((0..count).map(|nth| {
            let player = PlayerId(first.0 + u64::from(nth));
            SyntheticClient::new(player, crowd, share(nth + 1) > share(nth))
        }));
        first
    }

    /// The crowd of the synthetic player behind a client; `None` for a client that is not synthetic, even if its player has the id
    /// of a synthetic one.
    pub(super) fn crowd_of(&self, client: ClientId) -> Option<CrowdId> {
        let nth = *self.by_client.get(&client)?;
        self.clients.get(nth).map(|synthetic| synthetic.crowd)
    }

    /// The players of a crowd, online or not.
    pub(super) fn players_of(&self, crowd: CrowdId) -> std::ops::Range<u64> {
        let first = self.clients.partition_point(|s| s.crowd < crowd);
        let end = self.clients.partition_point(|s| s.crowd <= crowd);
        FIRST_PLAYER + first as u64..FIRST_PLAYER + end as u64
    }

    /// The clients of a crowd's online players, with their players.
    pub(super) fn clients_of(&self, crowd: CrowdId) -> impl Iterator<Item = (ClientId, PlayerId)> {
        let of_crowd = self.clients.iter().filter(move |s| s.crowd == crowd);
        of_crowd.filter_map(|s| Some((s.client?, s.player)))
    }

    /// How many players of a crowd are offline, and how many are online.
    #[must_use]
    pub fn presence(&self, crowd: CrowdId) -> (u64, u64) {
        let of_crowd = self.clients.iter().filter(|s| s.crowd == crowd);
        let (online, offline): (Vec<_>, Vec<_>) = of_crowd.partition(|s| s.client.is_some());
        (offline.len() as u64, online.len() as u64)
    }

    /// Schedules the login of up to `count` offline players of a crowd for the next tick. Returns their number.
    pub(super) fn schedule_logins(&mut self, crowd: CrowdId, count: u32) -> u32 {
        let absent = self
            .clients
            .iter_mut()
            .filter(|s| s.crowd == crowd && s.client.is_none());
        let called = absent.take(count as usize);
        called
            .map(|synthetic| synthetic.reconnect_at = Some(0))
            .count() as u32
    }

    /// Marks up to `count` players of a crowd as offline, with no later login. Returns their clients.
    pub(super) fn log_out_players(&mut self, crowd: CrowdId, count: u32) -> Vec<ClientId> {
        let present = self
            .clients
            .iter_mut()
            .filter(|s| s.crowd == crowd && s.client.is_some());
        let mut leaving = Vec::new();
        for synthetic in present.take(count as usize) {
            leaving.extend(synthetic.disconnect(None));
        }
        for client in &leaving {
            self.by_client.remove(client);
        }
        leaving
    }

    fn get_mut(&mut self, client: ClientId) -> Option<&mut SyntheticClient> {
        let synthetic = self.clients.get_mut(*self.by_client.get(&client)?)?;
        (synthetic.client == Some(client)).then_some(synthetic)
    }

    /// Drops the connection of a client and the packets in flight to it. It reconnects at tick `back_at` from its other address,
    /// with its resume token if it has one. Returns `false` if the client is not synthetic.
    pub(super) fn disconnect(&mut self, client: ClientId, back_at: u64) -> bool {
        let Some(synthetic) = self.get_mut(client) else {
            return false;
        };
        synthetic.disconnect(Some(back_at));
        synthetic.resuming_with = synthetic.resume_token;
        synthetic.uses_second_address ^= true;
        self.by_client.remove(&client);
        true
    }

    /// Makes the player of a client log in a second time, from its other address, before the next tick. Returns `false` if the
    /// client is not synthetic.
    pub(super) fn duplicate_login(&mut self, client: ClientId) -> bool {
        let found = self.get_mut(client);
        found
            .map(|synthetic| synthetic.logs_in_twice = true)
            .is_some()
    }

    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        for synthetic in &self.clients {
            hasher.write_u64(synthetic.client.map_or(0, |client| u64::from(client.0)));
            hasher.write_u64(synthetic.reconnect_at.unwrap_or(u64::MAX));
            let flags = [
                synthetic.receives_packets,
                synthetic.uses_second_address,
                synthetic.is_resume_refused,
                synthetic.logs_in_twice,
                synthetic.resuming_with.is_some(),
            ];
            let flags = flags
                .iter()
                .fold(0, |all, &flag| all << 1 | u64::from(flag));
            hasher.write_u64(
                u64::from(synthetic.crowd.0) << 21 | u64::from(synthetic.seq) << 5 | flags,
            );
            if let Some(token) = synthetic.resuming_with {
                hasher.write_bytes(&token.0);
                hasher.write_u64(u64::from(synthetic.mirror.received_bytes()));
            }
        }
        self.pending_churn
            .iter()
            .for_each(|due| hasher.write_u64(due.to_bits()));
    }
}

/// Logs players out at the rate of their crowd, and connects players whose return is due. While crowds are halted, nobody logs out,
/// and only players whose return was due before the halt connect.
pub(super) fn log_players_in_and_out(
    mut synthetics: ResMut<SyntheticClients>,
    crowds: Res<Crowds>,
    (transport, mut closed): (Res<TransportHandle>, MessageReader<SessionClosed>),
    mut streams: ResMut<RandomStreams>,
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
) {
    let SyntheticClients {
        clients,
        by_client,
        pending_churn: churn_due,
        stats,
        buffer,
        ..
    } = &mut *synthetics;
    let mut post = |client, message: ClientMessage| {
        buffer.clear();
        message.encode(buffer);
        stats.sent += 1;
        transport.receive(client, buffer).is_ok()
    };
    churn_due.resize(crowds.crowds.len(), 0.0);
    let active = if crowds.is_halted() {
        &[]
    } else {
        &crowds.crowds[..]
    };
    for (nth, crowd) in active.iter().enumerate() {
        churn_due[nth] += f64::from(crowd.spec.churn_per_s) * time.timestep().as_secs_f64();
        while churn_due[nth] >= 1.0 {
            churn_due[nth] -= 1.0;
            let id = CrowdId(nth as u32);
            let random = streams.stream("churn");
            let first = clients.partition_point(|synthetic| synthetic.crowd < id);
            let count = clients[first..].partition_point(|synthetic| synthetic.crowd == id);
            if count == 0 {
                break;
            }
            let synthetic = &mut clients[first + random.random_range(0..count)];
            // Every pick draws both numbers, so that offline players do not shift later draws.
            let away = random.random_range(AWAY_TICKS);
            if let Some(client) = synthetic
                .client
                .take_if(|client| post(*client, ClientMessage::Logout))
            {
                by_client.remove(&client);
                synthetic.reconnect_at = Some(tick.0 + away);
            }
        }
    }
    // Sessions that the server ended or refused. Connections that no tick has processed yet are not among them.
    for client in closed.read().map(|closed| closed.client) {
        let synthetic = by_client.get(&client).map(|&nth| &mut clients[nth]);
        if let Some(synthetic) = synthetic.filter(|it| it.client == Some(client)) {
            synthetic.disconnect(Some(tick.0 + AWAY_TICKS.start));
        }
    }
    let due_tick = crowds.halted_tick.unwrap_or(tick.0);
    for (nth, synthetic) in clients.iter_mut().enumerate() {
        if let Some(unused) = synthetic.update(&transport, due_tick) {
            by_client.remove(&unused);
        }
        if synthetic.client.is_some() || synthetic.reconnect_at.is_none_or(|at| at > due_tick) {
            continue;
        }
        let Ok(client) = transport.connect(synthetic.connection_info()) else {
            // Too many logins at once: the client retries later, as a person would. It also retries when the server is full,
            // which shows in the next tick.
            synthetic.reconnect_at = Some(tick.0 + AWAY_TICKS.start);
            continue;
        };
        if let Some(before) = synthetic.mirror_client.replace(client) {
            by_client.remove(&before);
        }
        by_client.insert(client, nth);
        synthetic.client = Some(client);
        post(client, synthetic.first_message());
    }
}

/// Sets the bandwidth limit of receiving clients from the network conditions.
pub(super) fn limit_client_bandwidth(
    synthetics: Res<SyntheticClients>,
    spec: Res<CrowdNetworkConditions>,
    time: Res<Time<Fixed>>,
    mut outbox: ResMut<Outbox>,
) {
    if spec.bytes_per_s == 0 && !spec.is_changed() {
        return;
    }
    let tick_s = time.timestep().as_secs_f64();
    for synthetic in synthetics.clients.iter().filter(|s| s.receives_packets) {
        if let Some(client) = synthetic.client {
            outbox.limit_bandwidth(client, spec.bytes_per_tick(client, tick_s));
        }
    }
}

type MirroredRow = (
    &'static Object,
    &'static Position,
    &'static Heading,
    &'static MaxSpeed,
    Option<&'static NavPath>,
);

/// The state that clients read while they create messages.
#[derive(SystemParam)]
pub(super) struct ClientSendParams<'w, 's> {
    crowds: Res<'w, Crowds>,
    sessions: Res<'w, Sessions>,
    streams: Res<'w, RandomStreams>,
    tick: Res<'w, SimTick>,
    time: Res<'w, Time<Fixed>>,
    objects: Query<'w, 's, MirroredRow>,
    maps: Query<'w, 's, &'static SceneMap>,
}

impl ClientSendParams<'_, '_> {
    /// The number of messages that a client with this index sends in this tick.
    fn message_count(&self, nth: usize, messages_per_s: f32) -> u64 {
        let rate = f64::from(messages_per_s) * self.time.timestep().as_secs_f64();
        // Each client has its own phase, so that they do not all send in the same tick.
        let due = |tick: u64| ((tick as f64 + nth as f64 * 0.618_034) * rate) as u64;
        let messages = due(self.tick.0 + 1).saturating_sub(due(self.tick.0));
        messages.min(MESSAGES_PER_TICK_MAX)
    }

    /// Writes the messages of a client: moves along its route, or its facing.
    fn write_messages(
        &self,
        nth: usize,
        synthetic: &mut SyntheticClient,
        outgoing: &mut PacketBuffer,
    ) {
        let tick = self.tick.0;
        let Some(client) = synthetic.client else {
            return;
        };
        let Some(spec) = self.crowds.spec(synthetic.crowd) else {
            return;
        };
        let messages = self.message_count(nth, spec.messages_per_s);
        // Most clients send nothing in a tick, and looking up the controlled object is most of the work.
        if messages == 0 {
            return;
        }
        let session = self.sessions.get(client);
        let controls = session.and_then(|session| session.controlled_entity);
        let own = controls.and_then(|entity| self.objects.get(entity).ok());
        let Some((object, position, heading, speed, path)) = own else {
            // A spectator has nothing to move, and sends a keep-alive.
            if controls.is_some() {
                let number = tick as u32;
                outgoing.push(client, |bytes| ClientMessage::Ping { number }.encode(bytes));
            }
            return;
        };
        let route = path.filter(|path| !path.is_empty());
        let step_m = (f64::from(speed.0) / f64::from(spec.messages_per_s.max(0.01)))
            .min(f64::from(speed.0)) as f32;
        let (mut at, mut passed) = (position.0, 0);
        for _ in 0..messages {
            let next = route
                .zip(self.maps.get(object.scene_entity()).ok())
                .map(|(path, map)| next_position(at, &mut passed, path, map, step_m));
            let message = match next {
                Some(to) => {
                    let heading = Heading::from_direction(to - at).unwrap_or(*heading);
                    at = to;
                    synthetic.move_message(quantise(to), heading, spec.sends_inputs.then_some(tick))
                }
                None => {
                    let turn = individual_random(self.streams.seed(), 3 << 32, nth as u64, tick)
                        .random_range(0..40u8);
                    ClientMessage::Face {
                        heading: heading.0.wrapping_add(u8::from(turn == 0) * 32),
                    }
                }
            };
            outgoing.push(client, |bytes| message.encode(bytes));
        }
    }
}

/// Sends the messages of all clients for this tick, in the order of the players.
pub(super) fn send_client_messages(
    mut synthetics: ResMut<SyntheticClients>,
    transport: Res<TransportHandle>,
    workers: Res<Workers>,
    params: ClientSendParams,
    mut outgoing: Local<Vec<PacketBuffer>>,
) {
    let SyntheticClients { clients, stats, .. } = &mut *synthetics;
    workers.for_each_chunk(clients, 256, &mut outgoing, |outgoing, first, chunk| {
        for (place, synthetic) in chunk.iter_mut().enumerate() {
            params.write_messages(first + place, synthetic, outgoing);
        }
    });
    for outgoing in outgoing.iter_mut() {
        for (client, message) in outgoing.iter() {
            stats.sent += 1;
            // A refused message is lost, as on a real network; the inbox counts it.
            let _ = transport.receive(client, message);
        }
        outgoing.clear();
    }
}

/// The next position on a route: at most `step_m` further, and never past a turning point. `passed` counts the turning points
/// already passed.
fn next_position(
    at: Vec2,
    passed: &mut usize,
    path: &NavPath,
    map: &SceneMap,
    step_m: f32,
) -> Vec2 {
    let Some(target) = path
        .remaining()
        .get(*passed)
        .map(|&tile| map.centre_of(tile))
    else {
        return at;
    };
    let distance = target.distance(at);
    if distance <= step_m {
        *passed += 1;
        target
    } else {
        at + (target - at) / distance * step_m
    }
}

/// Applies the packets of this tick to the mirrors.
pub(super) fn receive_client_packets(
    mut synthetics: ResMut<SyntheticClients>,
    workers: Res<Workers>,
    (spec, tick, time): (Res<CrowdNetworkConditions>, Res<SimTick>, Res<Time<Fixed>>),
    streams: Res<RandomStreams>,
    mut scratch: Local<Vec<u64>>,
    mut order: Local<Vec<(usize, usize)>>,
) {
    let sink = synthetics.mirror_sink.clone();
    let mut delivered = sink.delivered();
    let frames = &mut delivered.packets;
    let SyntheticClients {
        clients,
        by_client,
        stats,
        in_flight,
        ..
    } = &mut *synthetics;
    let tick_s = time.timestep().as_secs_f64();
    // Not a stream of `RandomStreams`: this system runs after the tick and must not change the state.
    let mut random = individual_random(streams.seed(), 7 << 32, 0, tick.0);
    in_flight.transfer(&spec, tick.0, tick_s, &mut random, frames);
    let packets: Vec<(ClientId, &[u8])> = frames
        .iter()
        .enumerate()
        .map(|(place, (client, packet))| {
            order.extend(by_client.get(&client).map(|&nth| (nth, place)));
            (client, packet)
        })
        .collect();
    // Stable order: the packets of a client stay in sequence.
    order.sort_unstable();
    let order_ref = &*order;
    workers.for_each_chunk(clients, 64, &mut scratch, |taken, first, chunk| {
        let start = order_ref.partition_point(|&(nth, _)| nth < first);
        let end = first + chunk.len();
        for &(nth, place) in order_ref[start..].iter().take_while(|&&(nth, _)| nth < end) {
            let synthetic = &mut chunk[nth - first];
            if synthetic.mirror_error.is_none() {
                *taken += 1;
                let (client, packet) = packets[place];
                synthetic.receive(client, packet);
            }
        }
    });
    stats.packets += scratch.iter_mut().map(std::mem::take).sum::<u64>();
    order.clear();
    delivered.clear();
    (stats.decode_errors, stats.end_notices, stats.resumed) = (0, 0, 0);
    for synthetic in clients.iter() {
        stats.decode_errors += u64::from(synthetic.mirror_error.is_some());
        stats.end_notices += synthetic.end_notices;
        stats.resumed += synthetic.resume_count;
    }
}

/// Whether the mirror of a client in this session state can be compared with the server's state.
const fn is_inside(state: SessionState) -> bool {
    matches!(state, SessionState::InWorld | SessionState::Entering)
}

/// Whether any synthetic client is connected but not logged in, or logged in but not loaded. O(clients).
pub(crate) fn has_logins_under_way(world: &World) -> bool {
    use SessionState::{Authenticated, Authenticating, Connecting, Entering};
    let sessions = world.resource::<Sessions>();
    let store = world.get_resource::<PlayerStore>();
    let is_loading = |session: &Session| {
        let store = store.filter(|store| store.has_store());
        let player = session.player;
        store.is_some_and(|store| player.is_some_and(|player| !store.is_live(player)))
    };
    let clients = world.resource::<SyntheticClients>().clients.iter();
    let mut connected = clients.filter_map(|synthetic| synthetic.client);
    connected.any(|client| match sessions.get(client) {
        Some(session) if session.state == Entering => is_loading(session),
        Some(session) => matches!(session.state, Connecting | Authenticating | Authenticated),
        // No tick has processed the connection yet, or the client has not processed the end of its session.
        None => true,
    })
}

/// A hash of the states of all sessions and of the objects that they control. O(sessions).
pub(crate) fn session_states(world: &World) -> u128 {
    let mut hasher = StateHasher::default();
    for (client, session) in world.resource::<Sessions>().iter() {
        hasher.write_u64(u64::from(client.0) << 8 | session.state as u64);
        hasher.write_u64(session.controlled_entity.map_or(0, Entity::to_bits));
    }
    hasher.finish()
}

/// Returns the number of compared mirrors and at most `max` errors: packets that a mirror rejected at any time, and values that
/// differ from the server's (expected only while state still changes). Only clients that are in the world or enter it are compared.
#[must_use]
pub fn mirror_errors(world: &World, max: usize) -> (usize, Vec<String>) {
    let Some(synthetics) = world.get_resource::<SyntheticClients>() else {
        return (0, Vec::new());
    };
    let sessions = world.resource::<Sessions>();
    let is_open = |client| sessions.get(client).is_some_and(|it| is_inside(it.state));
    let compared = || {
        let receiving = synthetics
            .clients
            .iter()
            .filter(|synthetic| synthetic.receives_packets);
        receiving.filter_map(|s| Some((s, s.client.filter(|&client| is_open(client))?)))
    };
    let faults = synthetics
        .clients
        .iter()
        .filter_map(|s| Some((s.player, s.mirror_error.clone()?)));
    let differences = compared().filter_map(|(s, client)| {
        Some((s.player, compare_mirror(world, client, &s.mirror).err()?))
    });
    let errors = faults
        .chain(differences)
        .map(|(player, what)| format!("the mirror of player {}: {what}", player.0));
    (compared().count(), errors.take(max).collect())
}
