//! The receiver: routes datagrams of clients to their shard, and all others to the handshake.
//!
//! A datagram of a client costs an address lookup and a copy; the shard decrypts it. Each client has a bucket of datagrams, so a flood in
//! its name uses at most that much of a shard.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;
use throng_core::clock::unix_ms;
use throng_protocol::wire::ClientId;

use super::batch::{DATAGRAM_BYTES_MAX, ReceiveBatch};
use super::handler::SharedIntake;
use super::settings::UdpCounters;
use super::shared::{RouteChange, UdpShared};
use super::socket::RECEIVE_TIMEOUT;
use crate::cipher::SealedKind;
use crate::handshake::{AcceptedClient, ServerHandshake, ServerHandshakeError, network_of};
use crate::inbox::ConnectionInfo;
use crate::path::read_numbered;
use crate::token::TokenUserData;

/// Number of buckets for numbered packets from unknown addresses.
const UNKNOWN_ADDRESS_BUCKETS: usize = 1_024;

/// After this many consecutive errors of the socket, the receiver pauses between them.
const ERRORS_IN_A_ROW_MAX: u32 = 100;

/// Where datagrams of an address go.
#[derive(Clone, Copy, Debug)]
struct ClientRoute {
    client: ClientId,
    allowance: DatagramAllowance,
}

/// A token bucket of datagrams.
#[derive(Clone, Copy, Debug, Default)]
struct DatagramAllowance {
    /// Thousandths of datagrams, and the time up to which they were added.
    allowed: u32,
    counted_us: u64,
}

/// The receiving thread.
pub(super) struct DatagramRouter {
    shared: Arc<UdpShared>,
    handshake: ServerHandshake,
    transport: SharedIntake,
    routes: HashMap<SocketAddr, ClientRoute, RandomState>,
    route_changes: Vec<RouteChange>,
    /// For numbered packets from unknown addresses, by address.
    unknown_address_allowances: Vec<DatagramAllowance>,
    hasher: RandomState,
    answer: Vec<u8>,
    now_us: u64,
}

impl DatagramRouter {
    pub fn new(shared: Arc<UdpShared>, gate: ServerHandshake, transport: SharedIntake) -> Self {
        Self {
            shared,
            handshake: gate,
            transport,
            routes: HashMap::default(),
            route_changes: Vec::new(),
            unknown_address_allowances: vec![DatagramAllowance::default(); UNKNOWN_ADDRESS_BUCKETS],
            hasher: RandomState::default(),
            answer: Vec::new(),
            now_us: 0,
        }
    }

    /// Receives until the server stops.
    pub fn run(mut self) {
        let mut batch = ReceiveBatch::new();
        let mut errors_in_a_row = 0;
        let shared = self.shared.clone();
        while !shared.is_stopping.load(Ordering::Acquire) {
            let received = batch.receive(&shared.socket);
            self.now_us = shared.now_us();
            self.apply_route_changes();
            match received {
                Ok(()) => {
                    errors_in_a_row = 0;
                    for (datagram, from) in batch.datagrams() {
                        self.route(datagram, from);
                    }
                    for mailbox in &shared.mailboxes {
                        mailbox.wake_if_filled();
                    }
                }
                Err(error) if is_timeout(error.kind()) => {}
                Err(error) => {
                    tracing::debug!(%error, "receiving from the UDP socket failed");
                    errors_in_a_row += 1;
                    if errors_in_a_row > ERRORS_IN_A_ROW_MAX {
                        std::thread::sleep(RECEIVE_TIMEOUT);
                    }
                }
            }
        }
    }

    fn apply_route_changes(&mut self) {
        self.shared.take_route_changes(&mut self.route_changes);
        for news in self.route_changes.drain(..) {
            let (RouteChange::Gone(at, client) | RouteChange::Moved(at, _, client)) = news;
            let route = self.routes.get(&at).copied();
            let route = route.filter(|route| route.client == client);
            if route.is_some() {
                self.routes.remove(&at);
            }
            if let (RouteChange::Moved(_, to, _), Some(route)) = (news, route) {
                // The client that was at this address is not there any more.
                if let Some(before) = self.routes.insert(to, route) {
                    replace_connection(&self.shared, before.client);
                }
            }
        }
    }

    fn route(&mut self, datagram: &mut [u8], from: SocketAddr) {
        let counters = &self.shared.counters;
        UdpCounters::one(&counters.datagrams_in);
        UdpCounters::add(&counters.bytes_in, datagram.len() as u64);
        let kind = datagram.first().map(|first| first & 0xf);
        // The handshake handles new connections, whatever the address was used for before.
        if matches!(kind, Some(0)) || kind == Some(SealedKind::Response as u8) {
            return self.handle_unauthenticated(datagram, from);
        }
        let run = self.handshake.run();
        let numbered = read_numbered(datagram);
        let rate = self.shared.settings.datagrams_per_s;
        let (client, sealed) = match (self.routes.get_mut(&from), numbered) {
            (Some(route), numbered) => {
                if !route.allowance.try_consume(self.now_us, rate) {
                    return UdpCounters::one(&counters.throttled);
                }
                match numbered {
                    Some(packet) if (packet.client, packet.run) == (route.client, run) => {
                        (packet.client, packet.sealed)
                    }
                    Some(_) => return UdpCounters::one(&counters.refused),
                    None => (route.client, datagram),
                }
            }
            (None, Some(packet))
                if packet.run == run && self.shared.clients().contains(&packet.client) =>
            {
                let at =
                    self.hasher.hash_one(network_of(from.ip())) as usize % UNKNOWN_ADDRESS_BUCKETS;
                if !self.unknown_address_allowances[at].try_consume(self.now_us, rate) {
                    return UdpCounters::one(&counters.throttled);
                }
                (packet.client, packet.sealed)
            }
            (None, _) => return self.handle_unauthenticated(datagram, from),
        };
        if sealed.len() > DATAGRAM_BYTES_MAX {
            return UdpCounters::one(&counters.refused);
        }
        let max = self.shared.settings.inbound_bytes_max;
        let is_put = self.shared.mailbox_of(client).update_quietly(|work| {
            let fits = work.inbound.bytes.len() + sealed.len() <= max;
            if fits {
                work.inbound.push((client, from), sealed);
            }
            fits
        });
        if !is_put {
            UdpCounters::one(&counters.inbound_dropped);
        }
    }

    fn handle_unauthenticated(&mut self, datagram: &mut [u8], from: SocketAddr) {
        let shared = self.shared.clone();
        let counters = &shared.counters;
        UdpCounters::add(&counters.unauthenticated_bytes_in, datagram.len() as u64);
        let is_full = self.routes.len() >= shared.settings.clients_max;
        let times = (self.now_us, unix_ms() / 1_000);
        let received = self
            .handshake
            .receive(times, from, datagram, is_full, &mut self.answer);
        match received {
            // The keep-alive packet comes from its shard.
            Ok(Some(admitted)) => self.accept(admitted),
            Ok(None) if self.answer.is_empty() => {}
            Ok(None) => self.send_answer(from),
            Err(refused) => {
                tracing::trace!(address = %from, error = %refused, "datagram of an unknown address refused");
                UdpCounters::one(&counters.unauthenticated);
                UdpCounters::one(reason_counter(counters, refused));
                if refused.is_unknown_key() {
                    UdpCounters::one(&counters.unknown_keys);
                }
                if !self.answer.is_empty() {
                    UdpCounters::one(match refused {
                        ServerHandshakeError::UnknownConnection => &counters.resets,
                        _ => &counters.versions_refused,
                    });
                    self.send_answer(from);
                }
            }
        }
    }

    /// Sends a reply to an address without a connection.
    fn send_answer(&self, to: SocketAddr) {
        let counters = &self.shared.counters;
        UdpCounters::one(&counters.answers_out);
        UdpCounters::add(&counters.answer_bytes_out, self.answer.len() as u64);
        self.shared.send(&self.answer, to);
    }

    /// Admits a client. The server may send packets to it before this returns; they wait for the lock on the connected clients.
    fn accept(&mut self, mut admitted: AcceptedClient) {
        let shared = self.shared.clone();
        let counters = &shared.counters;
        let address = admitted.address;
        let mut roster = shared.clients_mut();
        let connected = ConnectionInfo {
            requires_ready: shared.settings.requires_ready,
            ..ConnectionInfo::player(admitted.client).with_address(address)
        }
        .resuming_only(admitted.token.resumes_only)
        .with_user_data(TokenUserData::new(&admitted.user_data));
        let Some(client) = self.transport.connect(connected) else {
            drop(roster);
            UdpCounters::one(&counters.tick_full);
            self.handshake
                .deny(unix_ms() / 1_000, admitted, &mut self.answer);
            shared.send(&self.answer, address);
            return;
        };
        UdpCounters::one(&counters.clients_accepted);
        admitted.reset = self.handshake.reset_grant(client);
        roster.insert(client);
        shared.mailbox_of(client).update(|work| {
            work.accepted.push((client, Box::new(admitted)));
        });
        drop(roster);
        let route = ClientRoute {
            client,
            allowance: DatagramAllowance::default(),
        };
        if let Some(before) = self.routes.insert(address, route) {
            replace_connection(&shared, before.client);
        }
    }
}

/// The counter of the reason for a refusal.
const fn reason_counter(counters: &UdpCounters, refused: ServerHandshakeError) -> &AtomicU64 {
    match refused {
        ServerHandshakeError::UnexpectedPacket { .. } => &counters.no_request,
        ServerHandshakeError::UnknownConnection => &counters.unknown_connection,
        ServerHandshakeError::Version { .. } | ServerHandshakeError::ProtocolId { .. } => {
            &counters.other_version
        }
        ServerHandshakeError::Expired { .. } => &counters.expired,
        ServerHandshakeError::RateLimited => &counters.requests_throttled,
        ServerHandshakeError::Token(_) => &counters.invalid_token,
        ServerHandshakeError::WrongServer => &counters.other_server,
        ServerHandshakeError::TokenUsed => &counters.token_used,
        ServerHandshakeError::TableFull { .. } | ServerHandshakeError::NoRandomness(_) => {
            &counters.no_room
        }
        ServerHandshakeError::Decrypt(_) | ServerHandshakeError::InvalidChallengeResponse => {
            &counters.invalid_response
        }
    }
}

/// Ends a connection whose address another connection has now.
fn replace_connection(shared: &UdpShared, client: ClientId) {
    shared
        .mailbox_of(client)
        .update(|work| work.replaced.push(client));
}

impl DatagramAllowance {
    /// Takes a datagram out of the bucket; `false` if it is empty.
    fn try_consume(&mut self, now_us: u64, rate: u32) -> bool {
        let rate = u64::from(rate.max(1));
        // In thousandths: one datagram per second is one thousandth per millisecond.
        let more = now_us.saturating_sub(self.counted_us).saturating_mul(rate) / 1_000;
        if more > 0 {
            self.counted_us = now_us;
            let most = (rate * 500).max(1_000);
            self.allowed = u64::from(self.allowed).saturating_add(more).min(most) as u32;
        }
        let is_allowed = self.allowed >= 1_000;
        self.allowed -= if is_allowed { 1_000 } else { 0 };
        is_allowed
    }
}

/// Whether the error is only a timeout.
fn is_timeout(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::handshake::ServerHandshakeSettings;
    use crate::inbox::DisconnectReason;
    use crate::path::write_numbered;
    use crate::udp::{ConnectionHandler, UdpSettings};
    use crate::{PROTOCOL_ID, SecretKey};

    struct NoGame;

    impl ConnectionHandler for NoGame {
        fn connect(&self, _: ConnectionInfo) -> Option<ClientId> {
            None
        }

        fn receive(&self, _: ClientId, _: &[u8]) {}

        fn disconnect(&self, _: ClientId, _: DisconnectReason) {}
    }

    #[test]
    fn unknown_addresses_of_one_network_share_a_rate() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let addresses = vec![socket.local_addr().unwrap()];
        let settings = ServerHandshakeSettings::new(PROTOCOL_ID, addresses);
        let handshake = ServerHandshake::new(settings, SecretKey::INSECURE).unwrap();
        let shared = Arc::new(UdpShared::new(socket, UdpSettings::default()));
        shared.clients_mut().insert(ClientId(1));
        let mut router = DatagramRouter::new(shared.clone(), handshake, Arc::new(NoGame));
        router.now_us = 10_000_000;
        let mut datagram = Vec::new();
        write_numbered(1, router.handshake.run(), &[7; 40], &mut datagram);
        // How many of 1,000 datagrams for a client get to its shard.
        let mut passed = |network: u16, addresses: u16| {
            let before = shared.counters.read().throttled;
            for nth in 0..1_000 {
                let from = [0x2001, 0xdb8, 0, network, 0, 0, 0, nth % addresses];
                router.route(&mut datagram.clone(), (from, 9).into());
            }
            1_000 - (shared.counters.read().throttled - before)
        };
        // Half a second of the rate of a client, as of one address.
        assert_eq!(passed(1, 1), 256);
        assert_eq!(passed(1, 1_000), 0);
        // By chance two networks share a bucket.
        let others = [2, 3, 4, 5].map(|network| passed(network, 1_000));
        assert!(others.iter().all(|&passed| passed <= 256), "{others:?}");
        assert!(others.contains(&256), "{others:?}");
    }

    #[test]
    fn address_gets_its_datagram_rate_and_a_half_second_burst() {
        let mut route = DatagramAllowance::default();
        let mut burst = |now_us| {
            (0..1_000)
                .filter(|_| route.try_consume(now_us, 100))
                .count()
        };
        assert_eq!(burst(10_000_000), 50);
        assert_eq!(burst(10_000_000), 0);
        assert_eq!(burst(10_100_000), 10);
        assert_eq!(
            (0..10_000)
                .filter(|ms| route.try_consume(11_000_000 + ms * 1_000, 100))
                .count(),
            1_049
        );
    }
}
