//! A gateway between simulated nodes and clients: no sockets, no clock.

use throng_net::inbox::ContinuedConnection;
use throng_net::outbox::MemorySink;
use throng_protocol::wire::{
    ClientInput, ClientMessage, PacketHeader, QuantizedPosition, ResumeToken, SessionNotice,
    WireReader, write_controlled_object,
};

use super::*;
use crate::bus::{ClusterKey, LocalBus};
use crate::ids::{ClusterNodeId, GatewayId};
use crate::link::LinkSettings;
use crate::presence::{PeerDirectory, PeerPresence};
use crate::routes::PlayerRoute;

const GATEWAY: BusPeer = BusPeer::Gateway(GatewayId(1));
const STEP_MS: u64 = 5;

fn links() -> LinkSettings {
    LinkSettings {
        silence_max_ms: 400,
        resend_after_ms: 20,
        ..LinkSettings::default()
    }
}

fn bus(local: &LocalBus, own: BusPeer, run: u64) -> MessageBus {
    let transport = Box::new(local.join(own));
    MessageBus::new(transport, ClusterKey::new(&[7; 32]), own, run)
}

/// The end of a node.
struct NodeEnd {
    bus: MessageBus,
    links: LinkSet,
    received: Vec<(LinkClient, Vec<u8>)>,
}

impl NodeEnd {
    fn step(&mut self, now_ms: u64) {
        while let Some(event) = self.bus.receive() {
            if let BusEvent::Message { from, bytes, .. } = event {
                self.links.receive(now_ms, from, &bytes);
            }
        }
        while let Some(event) = self.links.next_event() {
            if let LinkEvent::Message { client, bytes, .. } = event {
                self.received.push((client, bytes));
            }
        }
        let bus = &mut self.bus;
        self.links
            .poll(now_ms, |peer, piece| bus.send(peer, &piece).unwrap());
    }

    fn send(&mut self, client: LinkClient, message: RelayedMessage<'_>) {
        let mut bytes = Vec::new();
        message.write(&mut bytes);
        self.links.push(GATEWAY, client, &bytes).unwrap();
    }

    fn packet(&mut self, client: LinkClient, epoch: u8, sequence: u16, body: &[u8]) {
        let header = PacketHeader {
            epoch,
            sequence,
            ..PacketHeader::default()
        };
        let packet = [&header.to_bytes()[..], body].concat();
        self.send(client, RelayedMessage::Packet(Channel::Reliable, &packet));
    }

    fn welcome(&mut self, client: LinkClient) {
        let mut body = Vec::new();
        let token = ResumeToken([1; 16]);
        SessionNotice::Welcome { player: 7, token }.write(&mut body);
        self.packet(client, 0, 0, &body);
    }

    fn says_route(&mut self, epoch: u64, node: u32) {
        self.says_route_after(epoch, node, None);
    }

    /// A route from the former node of a player has how long it has been frozen.
    fn says_route_after(&mut self, epoch: u64, node: u32, frozen_ms: Option<u32>) {
        let route = PlayerRoute {
            player: PlayerId(7),
            epoch,
            node: ClusterNodeId(node),
        };
        let message = BusMessage::Route { route, frozen_ms };
        self.bus.send(GATEWAY, &message.to_bytes()).unwrap();
    }

    /// Takes what has arrived.
    fn take(&mut self) -> Vec<(LinkClient, Vec<u8>)> {
        std::mem::take(&mut self.received)
    }

    /// Takes the only connection that has arrived, and the messages after it.
    fn take_connection(&mut self) -> (LinkClient, ConnectionInfo, Vec<Vec<u8>>) {
        let received = self.take();
        let Some(((client, first), messages)) = received.split_first() else {
            panic!("nothing has arrived");
        };
        let Some(RelayedMessage::Connected(info)) = RelayedMessage::read(first) else {
            panic!("{first:?} is no connection");
        };
        let messages = messages.iter().map(|(of, bytes)| {
            assert_eq!(of, client);
            match RelayedMessage::read(bytes) {
                Some(RelayedMessage::Input(message)) => message.to_vec(),
                other => panic!("{other:?}"),
            }
        });
        (*client, info, messages.collect())
    }
}

struct GatewayRig {
    local: LocalBus,
    gateway: GatewayState,
    sink: MemorySink,
    now_ms: u64,
}

impl GatewayRig {
    fn new() -> Self {
        let local = LocalBus::default();
        let settings = GatewaySettings {
            login_nodes: [ClusterNodeId(1)].into(),
            links: links(),
            node_wait_ms: 1_000,
            waiting_messages_max: 4,
            waiting_bytes_max: 100,
            ..GatewaySettings::default()
        };
        let gateway = bus(&local, GATEWAY, 1_000);
        let directory = PeerDirectory::new(GATEWAY, 1_000, PeerPresence::default());
        let nodes = LoginNodes::new(directory, settings.login_nodes.clone());
        Self {
            gateway: GatewayState::new(gateway, LinkSet::new(1_000, links()), nodes, settings),
            local,
            sink: MemorySink::default(),
            now_ms: 0,
        }
    }

    fn node(&self, id: u32) -> NodeEnd {
        let run = 1_000 * (self.now_ms + 1);
        NodeEnd {
            bus: bus(&self.local, BusPeer::Node(ClusterNodeId(id)), run),
            links: LinkSet::new(run, links()),
            received: Vec::new(),
        }
    }

    fn run(&mut self, ms: u64, nodes: &mut [&mut NodeEnd]) {
        for _ in 0..ms / STEP_MS {
            self.now_ms += STEP_MS;
            self.gateway.step(self.now_ms, &mut self.sink);
            nodes.iter_mut().for_each(|node| node.step(self.now_ms));
        }
    }

    /// A client of player 7 at this node, which has welcomed it.
    fn welcome_client(&mut self, node: &mut NodeEnd) -> (ClientId, LinkClient) {
        self.run(100, &mut [node]);
        let client = self.gateway.connect(ConnectionInfo::player(7)).unwrap();
        self.gateway.receive(0, client, b"\x01\x00");
        self.run(50, &mut [node]);
        let (link_client, info, messages) = node.take_connection();
        assert_eq!(
            (info.continues, messages),
            (None, vec![b"\x01\x00".to_vec()])
        );
        node.welcome(link_client);
        self.run(50, &mut [node]);
        (client, link_client)
    }

    fn closed(&self) -> Vec<(ClientId, CloseReason)> {
        self.sink.take().closed
    }

    /// Epoch and sequence of the packets that have arrived at clients.
    fn packets(&self) -> Vec<(u8, u16)> {
        let sent = self.sink.take();
        let packets = sent.packets.iter().map(|(_, packet)| {
            let header = PacketHeader::read(&mut WireReader::new(packet)).unwrap();
            (header.epoch, header.sequence)
        });
        packets.collect()
    }
}

fn input(seq: u16) -> Vec<u8> {
    let input = ClientInput {
        seq,
        ..ClientInput::default()
    };
    ClientMessage::Input(input).to_bytes()
}

fn read(received: &[(LinkClient, Vec<u8>)]) -> Vec<RelayedMessage<'_>> {
    let messages = received.iter();
    messages
        .map(|(_, bytes)| RelayedMessage::read(bytes).unwrap())
        .collect()
}

#[test]
fn client_follows_its_player_to_a_node_that_is_linked_later() {
    let mut rig = GatewayRig::new();
    let [mut for_logins, mut owner] = [1, 2].map(|id| rig.node(id));
    rig.run(100, &mut [&mut for_logins]);
    // The gateway knows where the player is before it can reach that node.
    for_logins.says_route(2, 2);
    rig.run(20, &mut [&mut for_logins]);
    let client = rig.gateway.connect(ConnectionInfo::player(7)).unwrap();
    rig.gateway.receive(0, client, b"\x01\x00");
    rig.run(50, &mut [&mut for_logins]);
    let (link_client, ..) = for_logins.take_connection();
    rig.run(100, &mut [&mut for_logins, &mut owner]);
    let (_, info, messages) = owner.take_connection();
    assert_eq!(
        (info.continues, messages),
        (None, vec![b"\x01\x00".to_vec()])
    );
    let left = for_logins.take();
    let expected = [RelayedMessage::Disconnected(DisconnectReason::Moved)];
    assert_eq!((left[0].0, &read(&left)[..]), (link_client, &expected[..]));
    assert_eq!(rig.closed(), []);
}

#[test]
fn client_follows_the_route_of_its_player() {
    let mut rig = GatewayRig::new();
    let mut first = rig.node(1);
    let (client, at_first) = rig.welcome_client(&mut first);
    first.packet(at_first, 1, 1, &[]);
    rig.gateway.receive(0, client, &input(u16::MAX));
    rig.gateway.receive(0, client, &input(5));
    rig.gateway.receive(0, client, b"\x0a");
    rig.run(50, &mut [&mut first]);
    assert_eq!(first.take().len(), 3);
    assert_eq!(rig.packets(), [(0, 0), (1, 1)]);
    // The route arrives before the link to the node.
    first.says_route(2, 2);
    first.packet(at_first, 1, 2, &[]);
    rig.run(20, &mut [&mut first]);
    rig.gateway.receive(0, client, &input(6));
    rig.gateway.receive(0, client, b"\x0a");
    rig.run(50, &mut [&mut first]);
    let ended = first.take();
    assert_eq!(
        read(&ended),
        [RelayedMessage::Disconnected(DisconnectReason::Moved)]
    );
    let mut second = rig.node(2);
    rig.run(50, &mut [&mut first, &mut second]);
    let (at_second, info, messages) = second.take_connection();
    let continued = ContinuedConnection {
        last_message: 4,
        last_input: Some(5),
    };
    assert_eq!(info, ConnectionInfo::player(7).continuing(continued));
    assert_eq!(messages, [input(6), b"\x0a".to_vec()]);
    // Packets of the former node are late now, those of the other one go on with the numbers.
    rig.packets();
    first.packet(at_first, 1, 3, &[]);
    second.welcome(at_second);
    second.packet(at_second, 1, 1, &[]);
    rig.run(50, &mut [&mut first, &mut second]);
    assert_eq!(rig.packets(), [(2, 2), (3, 3)]);
    assert_eq!(rig.gateway.stats.late, 2);
    rig.gateway.receive(0, client, &input(7));
    rig.run(50, &mut [&mut first, &mut second]);
    assert_eq!(
        read(&second.take()),
        [RelayedMessage::Input(&input(7))],
        "messages go to the new node"
    );
    assert_eq!(rig.gateway.stats.taken_over, 1);
    assert_eq!(rig.closed(), []);
}

#[test]
fn hand_offs_are_measured_to_the_first_packet_of_the_scene() {
    let mut rig = GatewayRig::new();
    let (mut first, mut second) = (rig.node(1), rig.node(2));
    let (_, at_first) = rig.welcome_client(&mut first);
    let (mut start, mut request) = (Vec::new(), Vec::new());
    write_controlled_object(&mut start, 3, 0);
    let (scene, size) = (5, QuantizedPosition::default());
    SessionNotice::Loading { scene, size }.write(&mut request);
    first.packet(at_first, 1, 1, &start);
    rig.run(100, &mut [&mut first, &mut second]);
    assert_eq!(rig.gateway.hand_off_times.count(), 0);
    let routed_ms = rig.now_ms;
    first.says_route_after(2, 2, Some(40));
    rig.run(50, &mut [&mut first, &mut second]);
    let (at_second, ..) = second.take_connection();
    second.says_route(2, 2);
    second.welcome(at_second);
    rig.run(50, &mut [&mut first, &mut second]);
    // Not in its new scene yet.
    assert_eq!(rig.gateway.hand_off_times.count(), 0);
    second.packet(at_second, 0, 1, &request);
    rig.run(10, &mut [&mut first, &mut second]);
    let times = rig.gateway.hand_off_times;
    let elapsed_ms = rig.now_ms - routed_ms;
    assert_eq!(times.count(), 1);
    let measured_ms = (times.sum_s() * 1_000.0).round() as u64;
    // The route and the last packet were handled within two steps each.
    let expected_ms = 40 + elapsed_ms;
    assert!(
        (expected_ms - 4 * STEP_MS..=expected_ms).contains(&measured_ms),
        "{measured_ms} {expected_ms}"
    );
    second.packet(at_second, 1, 2, &start);
    rig.run(50, &mut [&mut first, &mut second]);
    assert_eq!(rig.gateway.hand_off_times, times, "it is measured once");
}

#[test]
fn packets_of_an_earlier_stay_are_late() {
    let mut rig = GatewayRig::new();
    let (mut first, mut second) = (rig.node(1), rig.node(2));
    let (_, at_first) = rig.welcome_client(&mut first);
    for (epoch, node) in [(2, 2), (3, 1)] {
        second.says_route(epoch, node);
        rig.run(100, &mut [&mut first, &mut second]);
    }
    let received = first.take();
    let (again, _) = received.last().unwrap();
    assert_ne!(*again, at_first);
    rig.packets();
    first.packet(at_first, 1, 1, &[]);
    first.welcome(*again);
    rig.run(50, &mut [&mut first, &mut second]);
    assert_eq!(rig.packets(), [(1, 1)]);
}

#[test]
fn client_of_a_dead_node_waits_for_a_route() {
    let mut rig = GatewayRig::new();
    let (mut first, mut second) = (rig.node(1), rig.node(2));
    second.says_route(1, 1);
    let (client, _) = rig.welcome_client(&mut first);
    rig.run(50, &mut [&mut second]);
    drop(first);
    rig.run(600, &mut [&mut second]);
    rig.gateway.receive(0, client, &input(1));
    second.says_route(2, 2);
    rig.run(200, &mut [&mut second]);
    let (_, info, messages) = second.take_connection();
    let continued = ContinuedConnection {
        last_message: 1,
        last_input: None,
    };
    assert_eq!(info.continues, Some(continued));
    assert_eq!(messages, [input(1)]);
    assert_eq!((rig.closed(), rig.gateway.stats.lost), (vec![], 0));
}

#[test]
fn client_of_a_dead_node_is_closed_without_a_route() {
    let mut rig = GatewayRig::new();
    let mut first = rig.node(1);
    let (client, _) = rig.welcome_client(&mut first);
    drop(first);
    rig.run(900, &mut []);
    assert_eq!(rig.closed(), []);
    rig.run(1_000, &mut []);
    assert_eq!(rig.closed(), [(client, CloseReason::Lost)]);
    assert_eq!(rig.gateway.stats.lost, 1);
    assert!(rig.gateway.clients.is_empty() && rig.gateway.by_player.is_empty());
}

#[test]
fn client_returns_to_its_node_when_that_is_linked_again() {
    let mut rig = GatewayRig::new();
    let mut first = rig.node(1);
    rig.welcome_client(&mut first);
    // The node drops the link, such as after a long pause.
    let mut again = rig.node(1);
    rig.run(600, &mut [&mut again]);
    let (_, info, _) = again.take_connection();
    assert!(info.continues.is_some());
    assert_eq!(rig.closed(), []);
}

#[test]
fn client_that_leaves_while_it_waits_is_forgotten() {
    let mut rig = GatewayRig::new();
    let mut first = rig.node(1);
    let (client, _) = rig.welcome_client(&mut first);
    first.says_route(2, 2);
    rig.run(50, &mut [&mut first]);
    rig.gateway.end(client, DisconnectReason::Closed);
    let mut second = rig.node(2);
    rig.run(1_500, &mut [&mut first, &mut second]);
    assert_eq!((second.take(), rig.closed()), (vec![], vec![]));
    assert!(rig.gateway.waiting.is_empty() && rig.gateway.at_nodes.is_empty());
}

#[test]
fn login_that_was_not_answered_is_sent_to_the_next_node() {
    let mut rig = GatewayRig::new();
    let (mut first, mut second) = (rig.node(1), rig.node(2));
    rig.run(100, &mut [&mut first, &mut second]);
    let client = rig.gateway.connect(ConnectionInfo::player(7)).unwrap();
    rig.gateway.receive(0, client, b"\x01\x00");
    rig.gateway.receive(0, client, b"\x07\x01");
    first.says_route(2, 2);
    rig.run(100, &mut [&mut first, &mut second]);
    let (at_second, info, messages) = second.take_connection();
    assert_eq!(info, ConnectionInfo::player(7));
    assert_eq!(messages, [b"\x01\x00", b"\x07\x01"]);
    // From its welcome on, it goes on without a login.
    second.welcome(at_second);
    rig.run(50, &mut [&mut first, &mut second]);
    second.says_route(3, 1);
    first.take();
    rig.run(100, &mut [&mut first, &mut second]);
    let (_, info, messages) = first.take_connection();
    let continued = ContinuedConnection {
        last_message: 2,
        last_input: None,
    };
    assert_eq!((info.continues, messages), (Some(continued), vec![]));
}

#[test]
fn login_with_the_route_of_a_dead_node_goes_to_another_node() {
    let mut rig = GatewayRig::new();
    let mut first = rig.node(1);
    let mut dead = rig.node(2);
    rig.run(100, &mut [&mut first, &mut dead]);
    // The player was on the node before, and has logged out.
    first.says_route(2, 2);
    rig.run(20, &mut [&mut first, &mut dead]);
    drop(dead);
    let client = rig.gateway.connect(ConnectionInfo::player(7)).unwrap();
    rig.gateway.receive(0, client, b"\x01\x00");
    // The link is lost after 400 ms of silence.
    rig.run(600, &mut [&mut first]);
    let (_, info, messages) = first.take_connection();
    assert_eq!(
        (info.continues, messages),
        (None, vec![b"\x01\x00".to_vec()])
    );
    assert_eq!(rig.closed(), []);
}

#[test]
fn messages_of_a_waiting_client_are_limited() {
    let mut rig = GatewayRig::new();
    let mut first = rig.node(1);
    let (client, _) = rig.welcome_client(&mut first);
    first.says_route(2, 2);
    rig.run(50, &mut [&mut first]);
    rig.gateway.receive(0, client, b"\x0a");
    (1..=9).for_each(|seq| rig.gateway.receive(0, client, &input(seq)));
    rig.gateway.receive(0, client, b"\x07\x02");
    let mut second = rig.node(2);
    rig.run(50, &mut [&mut first, &mut second]);
    let (_, info, messages) = second.take_connection();
    assert_eq!(info.continues.map(|of| of.last_message), Some(1));
    // Older inputs have made room.
    let kept = [b"\x0a".to_vec(), input(8), input(9), b"\x07\x02".to_vec()];
    assert_eq!(messages, kept);
    // Without inputs there is nothing to drop.
    second.welcome(LinkClient(2));
    second.says_route(3, 3);
    rig.run(50, &mut [&mut first, &mut second]);
    for nth in 0..5_u8 {
        assert_eq!(rig.gateway.stats.stuck, 0, "{nth}");
        rig.gateway.receive(0, client, &[7, nth]);
    }
    rig.run(50, &mut [&mut first, &mut second]);
    assert_eq!(rig.closed(), [(client, CloseReason::SlowConsumer)]);
    assert_eq!(rig.gateway.stats.stuck, 1);
}

#[test]
fn newer_client_of_a_player_replaces_the_older() {
    let mut rig = GatewayRig::new();
    let mut first = rig.node(1);
    let (older, _) = rig.welcome_client(&mut first);
    let newer = rig.gateway.connect(ConnectionInfo::player(7)).unwrap();
    rig.run(50, &mut [&mut first]);
    assert_eq!(rig.closed(), [(older, CloseReason::Replaced)]);
    let received = first.take();
    let lost = RelayedMessage::Disconnected(DisconnectReason::Lost);
    assert_eq!(
        read(&received),
        [lost, RelayedMessage::Connected(ConnectionInfo::player(7))]
    );
    assert_eq!(rig.gateway.by_player[&PlayerId(7)], newer);
    assert_eq!(rig.gateway.clients.len(), 1);
}

#[test]
fn client_without_a_player_is_refused() {
    let mut rig = GatewayRig::new();
    let mut first = rig.node(1);
    rig.run(100, &mut [&mut first]);
    assert_eq!(rig.gateway.connect(ConnectionInfo::unknown()), None);
    assert_eq!((rig.gateway.stats.refused, first.take()), (1, vec![]));
}
