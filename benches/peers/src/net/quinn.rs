//! `quinn-proto`: QUIC without sockets, as `quinn` drives it. Unreliable messages are separate datagrams, ordered ones follow a
//! length byte on one stream.

use std::cell::RefCell;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamId,
};

use super::end::{End, Transport};

/// The delay of a packet during the handshake, without loss.
const ONE_WAY: Duration = Duration::from_millis(55);

/// Number of half round trips in the handshake; and when the bench starts, after the handshake.
const HANDSHAKE_TURNS: u32 = 20;
const HANDSHAKE: Duration = Duration::from_secs(2);

/// The transport with its default settings.
pub struct Quinn {
    server: Arc<ServerConfig>,
    client: ClientConfig,
}

impl Quinn {
    /// Makes a certificate for itself.
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let certificate = certified.cert.der().clone();
        let key =
            rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let server = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate)?;
        Ok(Self {
            server: Arc::new(server),
            client: ClientConfig::with_root_certificates(Arc::new(roots))?,
        })
    }
}

impl Transport for Quinn {
    type End = QuinnEnd;

    fn name(&self) -> &'static str {
        "quinn-proto 0.11"
    }

    fn datagram_bytes(&self) -> u64 {
        28
    }

    fn connect(&self, connections: usize) -> (Vec<QuinnEnd>, Vec<QuinnEnd>) {
        let endpoint = |server, seed| {
            let config = Arc::new(EndpointConfig::default());
            let endpoint = Endpoint::new(config, server, true, Some([seed; 32]));
            Rc::new(RefCell::new(endpoint))
        };
        let server = endpoint(Some(Arc::clone(&self.server)), 1);
        let client = endpoint(None, 2);
        let began = Instant::now();
        let ends = (0..connections).map(|nth| {
            let config = self.client.clone();
            connection(began, [&server, &client], config, nth)
        });
        ends.unzip()
    }
}

/// Opens a connection over a network without loss.
fn connection(
    began: Instant,
    [server, client]: [&Rc<RefCell<Endpoint>>; 2],
    config: ClientConfig,
    nth: usize,
) -> (QuinnEnd, QuinnEnd) {
    let server_address = SocketAddr::from((Ipv4Addr::LOCALHOST, 4_433));
    let client_address = SocketAddr::from((
        Ipv4Addr::from(0x0a00_0001 + (nth / 50_000) as u32),
        10_000 + (nth % 50_000) as u16,
    ));
    let connected = client
        .borrow_mut()
        .connect(began, config, server_address, "localhost");
    let connected = connected.expect("a client that may connect");
    let end = |endpoint: &Rc<RefCell<Endpoint>>, other, (handle, connection)| QuinnEnd {
        endpoint: Rc::clone(endpoint),
        connection,
        handle,
        other,
        zero: began + HANDSHAKE,
        send_stream: None,
        receive_stream: None,
        stream: Vec::new(),
    };
    let mut client_end = end(client, server_address, connected);
    let mut server_end: Option<QuinnEnd> = None;
    let mut scratch = Vec::new();
    for turn in (0..HANDSHAKE_TURNS).step_by(2) {
        let (sent_at, received_at) = (began + ONE_WAY * turn, began + ONE_WAY * (turn + 1));
        for packet in client_end.sent(sent_at) {
            if let Some(server_end) = &mut server_end {
                server_end.receive_datagram(received_at, &packet, &mut scratch);
                continue;
            }
            let mut endpoint = server.borrow_mut();
            let data = BytesMut::from(&packet[..]);
            let received =
                endpoint.handle(received_at, client_address, None, None, data, &mut scratch);
            let Some(DatagramEvent::NewConnection(incoming)) = received else {
                panic!("the server expected a new connection");
            };
            scratch.clear();
            let accepted = endpoint.accept(incoming, received_at, &mut scratch, None);
            let accepted = accepted.expect("a client that is accepted");
            server_end = Some(end(server, client_address, accepted));
        }
        for packet in server_end.iter_mut().flat_map(|end| end.sent(received_at)) {
            client_end.receive_datagram(received_at + ONE_WAY, &packet, &mut scratch);
        }
    }
    let server_end = server_end.expect("a server that received the connect request");
    for end in [&server_end, &client_end] {
        assert!(
            !end.connection.is_handshaking(),
            "quinn: the handshake is incomplete"
        );
    }
    (server_end, client_end)
}

pub struct QuinnEnd {
    endpoint: Rc<RefCell<Endpoint>>,
    connection: Connection,
    handle: ConnectionHandle,
    other: SocketAddr,
    zero: Instant,
    /// The stream that it sends on, and the one that it receives from.
    send_stream: Option<StreamId>,
    receive_stream: Option<StreamId>,
    /// Received bytes that do not make a complete message yet.
    stream: Vec<u8>,
}

impl QuinnEnd {
    fn at(&self, now_us: u64) -> Instant {
        self.zero + Duration::from_micros(now_us)
    }

    /// Pending datagrams, each in its own buffer.
    fn sent(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let (mut packets, mut scratch) = (Vec::new(), Vec::new());
        self.transmit(now, &mut scratch, |packet| packets.push(packet.to_vec()));
        packets
    }

    fn transmit(&mut self, now: Instant, scratch: &mut Vec<u8>, mut send: impl FnMut(&[u8])) {
        let connection = &mut self.connection;
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        loop {
            scratch.clear();
            let Some(transmit) = connection.poll_transmit(now, 1, scratch) else {
                break;
            };
            send(&scratch[..transmit.size]);
        }
        self.exchange_events();
    }

    fn receive_datagram(&mut self, now: Instant, datagram: &[u8], scratch: &mut Vec<u8>) {
        let data = BytesMut::from(datagram);
        scratch.clear();
        let mut endpoint = self.endpoint.borrow_mut();
        let received = endpoint.handle(now, self.other, None, None, data, scratch);
        drop(endpoint);
        if let Some(DatagramEvent::ConnectionEvent(handle, event)) = received {
            assert_eq!(handle, self.handle, "quinn: a packet of this connection");
            self.connection.handle_event(event);
        }
        self.exchange_events();
    }

    fn exchange_events(&mut self) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            let answer = self.endpoint.borrow_mut().handle_event(self.handle, event);
            if let Some(event) = answer {
                self.connection.handle_event(event);
            }
        }
        while let Some(event) = self.connection.poll() {
            if let Event::ConnectionLost { reason } = event {
                panic!("quinn: the connection was lost: {reason}");
            }
        }
    }

    /// Appends the received bytes of the stream to `stream`.
    fn read(&mut self) {
        let connection = &mut self.connection;
        self.receive_stream = self
            .receive_stream
            .or_else(|| connection.streams().accept(Dir::Uni));
        let Some(id) = self.receive_stream else {
            return;
        };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.stream.extend_from_slice(&chunk.bytes);
        }
        let _ = chunks.finalize();
    }
}

impl End for QuinnEnd {
    fn push_unreliable(&mut self, _: u64, message: &[u8]) {
        let message = Bytes::copy_from_slice(message);
        // A refused message shows up in the count of received ones.
        let _ = self.connection.datagrams().send(message, true);
    }

    fn push_ordered(&mut self, _: u64, message: &[u8]) {
        let connection = &mut self.connection;
        let open = || connection.streams().open(Dir::Uni);
        let Some(id) = self.send_stream.or_else(open) else {
            return;
        };
        self.send_stream = Some(id);
        let mut stream = self.connection.send_stream(id);
        let length = u8::try_from(message.len()).expect("a short message");
        let mut framed = [0; 256];
        framed[0] = length;
        framed[1..=message.len()].copy_from_slice(message);
        let framed = &framed[..=message.len()];
        let written = stream.write(framed);
        assert_eq!(
            written.ok(),
            Some(framed.len()),
            "quinn: the stream has room"
        );
    }

    fn flush(&mut self, now_us: u64, scratch: &mut Vec<u8>, send: impl FnMut(&[u8])) {
        self.transmit(self.at(now_us), scratch, send);
    }

    fn receive(
        &mut self,
        now_us: u64,
        datagram: &[u8],
        scratch: &mut Vec<u8>,
        mut deliver: impl FnMut(bool, &[u8]),
    ) {
        self.receive_datagram(self.at(now_us), datagram, scratch);
        while let Some(message) = self.connection.datagrams().recv() {
            deliver(false, &message);
        }
        self.read();
        let mut taken = 0;
        while let Some((length, rest)) = self.stream[taken..].split_first()
            && let Some(message) = rest.get(..usize::from(*length))
        {
            deliver(true, message);
            taken += 1 + message.len();
        }
        self.stream.drain(..taken);
    }

    fn wakes_us(&mut self) -> Option<u64> {
        let passed = self.connection.poll_timeout()? - self.zero;
        // Rounds up, so that it is never before the timer.
        Some(passed.as_nanos().div_ceil(1_000) as u64)
    }

    fn answers_at_once(&self) -> bool {
        true
    }
}
