//! A gateway: a handler for its endpoints, and a thread between them and the bus.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use throng_core::clock::Stopwatch;
use throng_core::ids::PlayerId;
use throng_net::ConnectionHandler;
use throng_net::inbox::{ConnectionInfo, DisconnectReason};
use throng_net::outbox::PacketSink;
use throng_protocol::wire::{ClientId, CloseReason};

use super::buffered_packets::BufferedPackets;
use super::counted_times::CountedTimes;
use super::gateway_settings::GatewaySettings;
use super::gateway_state::{GatewayState, GatewayStats};
use super::login_nodes::LoginNodes;
use crate::bus::{BusPeer, BusStats, MessageBus};
use crate::ids::ClusterNodeId;
use crate::link::{LinkSet, LinkStats};
use crate::presence::{KnownPeer, PeerClash, PeerDirectory, PeerPresence};
use crate::routes::PlayerRoute;

/// How long the thread sleeps if nothing arrives.
const IDLE: Duration = Duration::from_millis(10);

struct SharedGateway {
    state: Mutex<GatewayState>,
    thread: OnceLock<Thread>,
    ends: AtomicBool,
    /// All clients were closed, and the endpoints know it.
    is_closed: AtomicBool,
    clock: Stopwatch,
    batch_time: Duration,
}

impl SharedGateway {
    fn state(&self) -> MutexGuard<'_, GatewayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

impl Wake for SharedGateway {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }
}

impl ConnectionHandler for SharedGateway {
    fn connect(&self, connected: ConnectionInfo) -> Option<ClientId> {
        let client = self.state().connect(connected);
        self.unpark();
        client
    }

    fn receive(&self, client: ClientId, message: &[u8]) {
        self.state().receive(self.now_ms(), client, message);
        self.unpark();
    }

    fn disconnect(&self, client: ClientId, reason: DisconnectReason) {
        self.state().end(client, reason);
        self.unpark();
    }
}

/// A gateway. Dropping it ends its thread. Its clients are then lost at their nodes.
pub struct ClientGateway {
    shared: Arc<SharedGateway>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for ClientGateway {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ClientGateway")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl ClientGateway {
    /// A gateway with this end of the bus. `run` is the number with which that end was created. Clients may connect at once, but nothing is
    /// sent before [`start`](Self::start).
    #[must_use]
    pub fn new(settings: GatewaySettings, mut bus: MessageBus, run: u64) -> Self {
        let shared = Arc::new_cyclic(|shared: &std::sync::Weak<SharedGateway>| {
            let shared = shared.clone();
            bus.set_waker(Waker::from(Arc::new(WeakWaker(shared))));
            let links = LinkSet::new(run, settings.links);
            let presence = PeerPresence {
                name: settings.name.clone(),
                protocol_id: settings.protocol_id,
                ..PeerPresence::default()
            };
            let directory = PeerDirectory::new(bus.own(), run, presence);
            let nodes = LoginNodes::new(directory, settings.login_nodes.clone());
            SharedGateway {
                batch_time: Duration::from_millis(settings.batch_ms),
                state: Mutex::new(GatewayState::new(bus, links, nodes, settings)),
                thread: OnceLock::new(),
                ends: AtomicBool::new(false),
                is_closed: AtomicBool::new(false),
                clock: Stopwatch::start(),
            }
        });
        Self {
            shared,
            thread: None,
        }
    }

    /// The handler for endpoints, such as [`UdpServer`](throng_net::UdpServer). They pass clients and messages to it.
    #[must_use]
    pub fn handler(&self) -> Arc<dyn ConnectionHandler> {
        self.shared.clone()
    }

    /// Starts the thread. It passes packets of nodes to `sink`, which is the sink of the endpoints. Call it once.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(&mut self, mut sink: Box<dyn PacketSink>) -> std::io::Result<()> {
        let shared = self.shared.clone();
        let thread = thread::Builder::new().name("throng gateway".to_owned());
        let thread = thread.spawn(move || {
            let mut buffer = BufferedPackets::default();
            while !shared.ends.load(Ordering::Acquire) {
                let now_ms = shared.now_ms();
                // An endpoint locks its clients while it calls the handler, and its sink needs the same lock. So the sink is not called
                // under the lock of the state.
                let mut state = shared.state();
                state.step(now_ms, &mut buffer);
                let is_closed = state.is_closed();
                drop(state);
                buffer.pass_on(&mut *sink);
                shared.is_closed.store(is_closed, Ordering::Release);
                // What arrives meanwhile is handled together.
                thread::sleep(shared.batch_time);
                thread::park_timeout(IDLE);
            }
        })?;
        let _ = self.shared.thread.set(thread.thread().clone());
        self.thread = Some(thread);
        Ok(())
    }

    /// Whether a node is linked, so that it can take clients.
    #[must_use]
    pub fn is_linked(&self, node: ClusterNodeId) -> bool {
        self.shared.state().links.is_linked(BusPeer::Node(node))
    }

    /// The nodes and gateways whose presence this gateway receives. O(peers).
    #[must_use]
    pub fn peers(&self) -> Vec<(BusPeer, KnownPeer)> {
        let state = self.shared.state();
        let peers = state.nodes.directory.peers();
        peers.map(|(peer, known)| (peer, known.clone())).collect()
    }

    /// A newer process with the id of this gateway, if there is one. Then stop this one.
    #[must_use]
    pub fn clash(&self) -> Option<PeerClash> {
        self.shared.state().nodes.directory.clash().cloned()
    }

    /// Closes all clients with this reason, accepts no more, and notifies nodes and other gateways. Stop the endpoints after
    /// [`is_closed`](Self::is_closed), so that clients receive the reason. O(clients).
    pub fn close(&self, reason: CloseReason) {
        self.shared.state().close_all(reason);
        self.shared.unpark();
    }

    /// Whether all closes of [`close`](Self::close) were passed to the endpoints.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    /// The number of clients that are connected now.
    #[must_use]
    pub fn client_count(&self) -> usize {
        self.shared.state().client_count()
    }

    /// The newest route of a player; `None` before the first.
    #[must_use]
    pub fn route(&self, player: PlayerId) -> Option<PlayerRoute> {
        self.shared.state().routes.get(player)
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> GatewayStats {
        self.shared.state().stats
    }

    /// How long hand-offs of the players of connected clients took: from the freeze at the former node to the first packet of the scene at the new
    /// one, which is the request to load it, or its start. Without the time of the former node's message to this gateway.
    #[must_use]
    pub fn hand_off_times(&self) -> CountedTimes {
        self.shared.state().hand_off_times
    }

    /// Counters of its links.
    #[must_use]
    pub fn link_stats(&self) -> LinkStats {
        self.shared.state().links.stats()
    }

    /// Counters of its end of the bus.
    #[must_use]
    pub fn bus_stats(&self) -> BusStats {
        self.shared.state().bus.stats()
    }
}

impl Drop for ClientGateway {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        self.shared.unpark();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Wakes the thread of a gateway, while there is one.
struct WeakWaker(std::sync::Weak<SharedGateway>);

impl Wake for WeakWaker {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.0.upgrade() {
            shared.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use throng_net::outbox::PacketSink;
    use throng_protocol::wire::Channel;

    use super::*;
    use crate::bus::{ClusterKey, LocalBus};
    use crate::ids::GatewayId;

    /// A sink that waits for its endpoint, as that of a socket does.
    struct EndpointSink {
        handler: Arc<dyn ConnectionHandler>,
        closed: Sender<ClientId>,
    }

    impl PacketSink for EndpointSink {
        fn deliver(&mut self, _: ClientId, _: Channel, _: &[u8]) {}

        fn close(&mut self, client: ClientId, _: CloseReason) {
            let handler = self.handler.clone();
            let endpoint = thread::spawn(move || {
                let other = ConnectionInfo::player(8);
                handler.connect(other)
            });
            endpoint.join().unwrap();
            self.closed.send(client).unwrap();
        }
    }

    #[test]
    fn sink_may_wait_for_an_endpoint_that_calls_the_handler() {
        let own = BusPeer::Gateway(GatewayId::of_name("g1"));
        let transport = Box::new(LocalBus::default().join(own));
        let bus = MessageBus::new(transport, ClusterKey::new(&[7; 32]), own, 1);
        let mut gateway = ClientGateway::new(GatewaySettings::default(), bus, 1);
        // A client waits for the node of its player.
        gateway.shared.state().routes.on_route(PlayerRoute {
            player: PlayerId(7),
            epoch: 1,
            node: ClusterNodeId(1),
        });
        let (closed, closes) = channel();
        let handler = gateway.handler();
        let client = handler.connect(ConnectionInfo::player(7)).unwrap();
        gateway
            .start(Box::new(EndpointSink { handler, closed }))
            .unwrap();
        gateway.close(CloseReason::Stopping);
        // The limit only ends a failed test.
        let first = closes.recv_timeout(Duration::from_secs(60));
        assert_eq!(
            first,
            Ok(client),
            "the gateway and its endpoint wait for each other"
        );
    }
}
