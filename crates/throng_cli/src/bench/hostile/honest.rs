//! Honest clients over real sockets: a crowd that stays, and a steady stream of newcomers. Each delay is stored under the phase in which it
//! was measured.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::phases::{PhaseSamples, TrialState};
use super::server_process::TokenIssuer;
use crate::{CliError, is_interrupted};
use throng::net::{ClientConnection, ConnectToken, EndpointSettings};
use throng::sim::clock::Pacer;
use throng::wire::{ClientMessage, PacketHeader, WireReader, expand_counter};
use throng_net::bot_client::BotClient;

/// Time between two polls of the sockets, which is the resolution of all delays.
const POLL_INTERVAL: Duration = Duration::from_millis(4);

/// Time between two inputs of a client, in microseconds.
const INPUT_US: u64 = 50_000;

/// Clients of the crowd that connect per second; and newcomers per second once the crowd is in the world.
const ARRIVALS_PER_S: f64 = 100.0;
pub(super) const NEWCOMERS_PER_S: f64 = 20.0;

/// Maximum time for the crowd to enter the world, in microseconds.
const ARRIVAL_US_MAX: u64 = 90_000_000;

/// How long a newcomer stays, and the time after which its login counts as failed, in microseconds.
const STAY_US: u64 = 1_000_000;
pub(super) const LOGIN_US_MAX: u64 = 5_000_000;

/// Maximum number of inputs of a client that wait for an acknowledgement; older ones are dropped.
const INPUTS_MAX: usize = 256;

/// Number of the first client's datagrams that are captured for the attacker to replay.
const CAPTURED: usize = 64;

/// The first player ids of the crowd, of newcomers and of attackers.
const CROWD_PLAYERS: u64 = 1_000_000;
const NEW_PLAYERS: u64 = 2_000_000;
pub(super) const HOSTILE_PLAYERS: u64 = 3_000_000;

/// The longest datagram, in bytes.
const DATAGRAM_BYTES_MAX: usize = 2_100;

/// A client and its player.
struct HonestClient {
    socket: UdpSocket,
    connection: ClientConnection,
    bot: BotClient,
    started_us: u64,
    next_input_us: u64,
    in_world_us: Option<u64>,
    /// Numbers and send times of inputs that the server has not acknowledged.
    inputs: VecDeque<(u16, u64)>,
    tick: u64,
    /// The phase in which it connected.
    phase: usize,
    has_ended: bool,
}

/// The measurements of a client in one poll.
struct ClientTimes<'a> {
    clock: &'a Instant,
    samples: Option<&'a mut PhaseSamples>,
    is_victim: bool,
}

fn microseconds(clock: &Instant) -> u64 {
    u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl HonestClient {
    /// Connects a client from this loopback address.
    fn connect(
        token: ConnectToken,
        player: u64,
        (address, server): (Ipv4Addr, SocketAddr),
        now_us: u64,
        phase: usize,
    ) -> std::io::Result<Self> {
        let socket = UdpSocket::bind((address, 0))?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            connection: ClientConnection::new(token, EndpointSettings::default()),
            bot: BotClient::new(player, 1),
            started_us: now_us,
            next_input_us: now_us,
            in_world_us: None,
            inputs: VecDeque::new(),
            tick: 0,
            phase,
            has_ended: false,
        })
    }

    /// Receives what has arrived, and sends what is due. `sent` gets each sent datagram.
    fn poll(&mut self, mut times: ClientTimes<'_>, mut sent: impl FnMut(&[u8])) {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let now_us = microseconds(times.clock);
            let datagram = &mut buffer[..length];
            let (bot, inputs, tick) = (&mut self.bot, &mut self.inputs, &mut self.tick);
            let is_inside = self.in_world_us.is_some();
            // Invalid datagrams are ignored.
            let _ = self.connection.receive(now_us, datagram, |packet| {
                bot.receive(packet);
                if is_inside {
                    record_times(
                        packet,
                        (now_us, bot.mirror().tick_s()),
                        tick,
                        inputs,
                        &mut times,
                    );
                }
            });
        }
        let now_us = microseconds(times.clock);
        if self.in_world_us.is_none() && self.bot.mirror().controlled_object().is_some() {
            self.in_world_us = Some(now_us);
        }
        let is_open = match self.connection.is_open() {
            Ok(is_open) => is_open,
            Err(_) => {
                self.has_ended = true;
                return;
            }
        };
        let is_due = now_us >= self.next_input_us;
        if is_due {
            self.next_input_us = (self.next_input_us + INPUT_US).max(now_us);
            if is_open {
                let (connection, inputs) = (&mut self.connection, &mut self.inputs);
                self.bot.update(|message| {
                    if let Ok(ClientMessage::Input(input)) = ClientMessage::decode(message) {
                        inputs.truncate(INPUTS_MAX - 1);
                        inputs.push_back((input.seq, now_us));
                    }
                    // If too much is pending, the connection ends by itself.
                    let _ = connection.send(message);
                });
            }
        }
        if is_due || self.in_world_us.is_none() {
            let socket = &self.socket;
            self.connection.update(now_us, |_, datagram| {
                if socket.send(datagram).is_ok() {
                    sent(datagram);
                }
            });
        }
    }

    /// Logs out and disconnects. Returns the number of datagrams sent.
    fn leave(&mut self, now_us: u64) -> u64 {
        let mut count = 0;
        let socket = &self.socket;
        let mut send = |_, datagram: &[u8]| count += u64::from(socket.send(datagram).is_ok());
        let _ = self.connection.send(&ClientMessage::Logout.to_bytes());
        self.connection.update(now_us, &mut send);
        self.connection.leave(send);
        count
    }
}

/// Records the arrival of a packet from the server, and the delays of the inputs that it acknowledges.
fn record_times(
    packet: &[u8],
    (now_us, tick_s): (u64, f32),
    tick: &mut u64,
    inputs: &mut VecDeque<(u16, u64)>,
    times: &mut ClientTimes<'_>,
) {
    let Ok(header) = PacketHeader::read(&mut WireReader::new(packet)) else {
        return;
    };
    let of_packet = expand_counter(*tick, header.tick);
    *tick = (*tick).max(of_packet);
    let arrival_us = now_us as f64 - of_packet as f64 * f64::from(tick_s) * 1e6;
    let mut answered = None;
    while let Some(&(number, at_us)) = inputs.front()
        && header.input.wrapping_sub(number) < 1 << 15
    {
        answered = Some((now_us - at_us) as f64 / 1e3);
        inputs.pop_front();
    }
    if let Some(samples) = times.samples.as_deref_mut() {
        samples.arrivals_us.push(arrival_us);
        samples.input_ms.extend(answered);
        if times.is_victim {
            samples.victim_ms.extend(answered);
        }
    }
}

/// The crowd and the newcomers.
pub(super) struct HonestCrowd {
    issuer: TokenIssuer,
    server: SocketAddr,
    clock: Instant,
    size: usize,
    clients: Vec<HonestClient>,
    newcomers: Vec<HonestClient>,
    newcomers_started: u64,
    newcomers_since_us: Option<u64>,
    /// By phase; index 0 is the time between phases.
    pub samples: Vec<PhaseSamples>,
    /// Number of crowd clients whose connection ended.
    pub ended: usize,
}

impl HonestCrowd {
    pub fn new(issuer: TokenIssuer, server: SocketAddr, size: usize, phases: usize) -> Self {
        Self {
            issuer,
            server,
            clock: Instant::now(),
            size,
            clients: Vec::new(),
            newcomers: Vec::new(),
            newcomers_started: 0,
            newcomers_since_us: None,
            samples: (0..=phases).map(|_| PhaseSamples::default()).collect(),
            ended: 0,
        }
    }

    /// Runs until the trial is over.
    pub fn run(&mut self, state: &TrialState) -> Result<(), CliError> {
        let mut pacer = Pacer::new(POLL_INTERVAL);
        while !state.is_over.load(Ordering::Acquire) && !is_interrupted() {
            self.add_clients(state)?;
            self.poll(state);
            pacer.wait();
        }
        let now_us = microseconds(&self.clock);
        let all = self.clients.iter_mut().chain(&mut self.newcomers);
        let sent: u64 = all.map(|client| client.leave(now_us)).sum();
        state.honest_sent.fetch_add(sent, Ordering::Relaxed);
        Ok(())
    }

    fn connect(
        &self,
        player: u64,
        address: Ipv4Addr,
        phase: usize,
    ) -> Result<HonestClient, CliError> {
        let token = self.issuer.token(player)?;
        let now_us = microseconds(&self.clock);
        HonestClient::connect(token, player, (address, self.server), now_us, phase)
            .map_err(|error| CliError::new(format!("could not open a socket: {error}")))
    }

    fn add_clients(&mut self, state: &TrialState) -> Result<(), CliError> {
        let now_us = microseconds(&self.clock);
        let due = (now_us as f64 / 1e6 * ARRIVALS_PER_S) as usize + 1;
        while self.clients.len() < due.min(self.size) {
            let nth = self.clients.len();
            // Two clients per address.
            let address = Ipv4Addr::new(127, 0, 1 + (nth / 500) as u8, 1 + (nth / 2 % 250) as u8);
            self.clients
                .push(self.connect(CROWD_PLAYERS + nth as u64, address, 0)?);
        }
        let Some(since_us) = self.newcomers_since_us else {
            let is_complete = self.clients.len() == self.size
                && self
                    .clients
                    .iter()
                    .all(|client| client.in_world_us.is_some());
            if is_complete {
                self.newcomers_since_us = Some(now_us);
                state.is_ready.store(true, Ordering::Release);
            } else if now_us > ARRIVAL_US_MAX {
                let inside = self.clients.iter();
                let inside = inside.filter(|client| client.in_world_us.is_some()).count();
                return Err(CliError::new(format!(
                    "{inside} of {} honest clients entered the town in 90 s: the machine is too slow for this trial",
                    self.size
                )));
            }
            return Ok(());
        };
        let due = ((now_us - since_us) as f64 / 1e6 * NEWCOMERS_PER_S) as u64;
        while self.newcomers_started < due {
            let nth = self.newcomers_started;
            self.newcomers_started += 1;
            let address = Ipv4Addr::new(127, 0, 100, 1 + (nth % 250) as u8);
            let phase = state.phase.load(Ordering::Acquire);
            self.newcomers
                .push(self.connect(NEW_PLAYERS + nth, address, phase)?);
        }
        Ok(())
    }

    fn poll(&mut self, state: &TrialState) {
        let phase = state.phase.load(Ordering::Acquire);
        let mut count = 0;
        for (nth, client) in self.clients.iter_mut().enumerate() {
            if client.has_ended {
                continue;
            }
            let times = ClientTimes {
                clock: &self.clock,
                samples: (phase > 0).then(|| &mut self.samples[phase]),
                is_victim: nth == 0,
            };
            let mut first = Vec::new();
            client.poll(times, |datagram| {
                count += 1;
                if nth == 0 {
                    first.push(datagram.to_vec());
                }
            });
            self.ended += usize::from(client.has_ended);
            for datagram in first {
                capture(client, datagram, state);
            }
        }
        let mut newcomers = std::mem::take(&mut self.newcomers);
        newcomers.retain_mut(|client| {
            let times = ClientTimes {
                clock: &self.clock,
                samples: (phase > 0).then(|| &mut self.samples[phase]),
                is_victim: false,
            };
            let was_inside = client.in_world_us.is_some();
            client.poll(times, |_| count += 1);
            let now_us = microseconds(&self.clock);
            let waited_us = now_us - client.started_us;
            let samples = &mut self.samples[client.phase];
            match client.in_world_us {
                Some(since_us) => {
                    if !was_inside {
                        samples
                            .login_ms
                            .push((since_us - client.started_us) as f64 / 1e3);
                    }
                    let stays = now_us - since_us < STAY_US && !client.has_ended;
                    if !stays {
                        count += client.leave(now_us);
                    }
                    stays
                }
                None if waited_us >= LOGIN_US_MAX || client.has_ended => {
                    samples.login_ms.push(LOGIN_US_MAX as f64 / 1e3);
                    samples.failed_logins += 1;
                    count += client.leave(now_us);
                    false
                }
                None => true,
            }
        });
        self.newcomers = newcomers;
        state.honest_sent.fetch_add(count, Ordering::Relaxed);
    }
}

/// Stores a datagram of the client whose address the attacker forges.
fn capture(client: &HonestClient, datagram: Vec<u8>, state: &TrialState) {
    let mut captured = state.captured();
    if datagram.first() == Some(&0) {
        captured.request = datagram;
        return;
    }
    if client.in_world_us.is_none() || captured.datagrams.len() >= 2 * CAPTURED {
        return;
    }
    if captured.socket.is_none() {
        captured.socket = client.socket.try_clone().ok();
    }
    let mut numbered = Vec::new();
    client.connection.number_datagram(&datagram, &mut numbered);
    captured.datagrams.extend([datagram, numbered]);
}
