//! Throng's transport: the core, and the core with the encryption of its sockets.

use std::cell::RefCell;
use std::rc::Rc;

use throng::net::{
    ClientHandshake, ConnectionCipher, EndpointSettings, PacketStamp, ReliableEndpoint, SealedKind,
    SecretKey, ServerHandshake, ServerHandshakeSettings, StreamId,
};

use super::end::{End, NETCODE_DATAGRAM_BYTES, Transport};

/// The core with its default settings.
pub struct Ours;

impl Transport for Ours {
    type End = OurEnd;

    fn name(&self) -> &'static str {
        "throng"
    }

    fn datagram_bytes(&self) -> u64 {
        NETCODE_DATAGRAM_BYTES
    }

    fn connect(&self, connections: usize) -> (Vec<OurEnd>, Vec<OurEnd>) {
        let settings = EndpointSettings::default();
        let ends = |settings| {
            let ends = (0..connections).map(|_| OurEnd(ReliableEndpoint::new(settings)));
            ends.collect()
        };
        (ends(settings), ends(settings.for_client()))
    }
}

pub struct OurEnd(ReliableEndpoint);

impl End for OurEnd {
    fn push_unreliable(&mut self, _: u64, message: &[u8]) {
        // A refused message shows up in the count of received ones.
        let _ = self.0.push_unreliable(message);
    }

    fn push_ordered(&mut self, _: u64, message: &[u8]) {
        let _ = self.0.push(StreamId::World, message);
    }

    fn flush(&mut self, now_us: u64, scratch: &mut Vec<u8>, mut send: impl FnMut(&[u8])) {
        let stamp = PacketStamp::default();
        self.0
            .flush(now_us, stamp, usize::MAX, scratch, |packet| send(packet));
    }

    fn receive(
        &mut self,
        now_us: u64,
        datagram: &[u8],
        _: &mut Vec<u8>,
        mut deliver: impl FnMut(bool, &[u8]),
    ) {
        // Late packets are dropped, as intended.
        let _ = self.0.receive(now_us, datagram, |delivery| {
            deliver(delivery.stream.is_some(), delivery.bytes);
        });
    }
}

/// The core with every packet encrypted and decrypted.
pub struct OursSealed;

impl Transport for OursSealed {
    type End = SealedEnd;

    fn name(&self) -> &'static str {
        "throng, sealed"
    }

    fn datagram_bytes(&self) -> u64 {
        28
    }

    fn connect(&self, connections: usize) -> (Vec<SealedEnd>, Vec<SealedEnd>) {
        let address = "127.0.0.1:7000".parse().expect("an address");
        let settings = ServerHandshakeSettings::new(1, vec![address]);
        let mut gate = ServerHandshake::new(settings, SecretKey([5; 32])).expect("randomness");
        let (servers, clients) = Ours.connect(connections);
        let shared = Rc::new(RefCell::new(Vec::new()));
        let (mut sealed_servers, mut sealed_clients) = (Vec::new(), Vec::new());
        for (nth, (server, client)) in servers.into_iter().zip(clients).enumerate() {
            let (at_server, at_client) = ciphers(&mut gate, nth as u64);
            let end = |end, cipher| SealedEnd {
                end,
                cipher,
                sealed: Rc::clone(&shared),
            };
            sealed_servers.push(end(server, at_server));
            sealed_clients.push(end(client, at_client));
        }
        (sealed_servers, sealed_clients)
    }
}

/// Both ends' ciphers of a connection, from a token and a handshake.
fn ciphers(gate: &mut ServerHandshake, client: u64) -> (ConnectionCipher, ConnectionCipher) {
    let token = gate.issue(client, 0).expect("a token");
    let mut handshake = ClientHandshake::new(token);
    let from = ([10, 0, 0, 1], 1_024 + client as u16).into();
    let (mut packet, mut answer) = (Vec::new(), Vec::new());
    for step in 0..20 {
        // Clients connect one after the other, because requests are limited per second.
        let (client_us, now_us) = (step * 500_000, client * 10_000_000 + step * 500_000);
        handshake.update(client_us, &mut packet);
        if packet.is_empty() {
            continue;
        }
        let admitted = gate
            .receive((now_us, 1), from, &mut packet, false, &mut answer)
            .expect("a client with a valid token");
        handshake
            .receive(client_us, &mut answer)
            .expect("an answer");
        if let Some(admitted) = admitted {
            let cipher = handshake.into_cipher().expect("an admitted client");
            return (admitted.cipher, cipher);
        }
    }
    panic!("a client with a valid token was not admitted");
}

pub struct SealedEnd {
    end: OurEnd,
    cipher: ConnectionCipher,
    /// The buffer for encrypted packets, shared by all ends.
    sealed: Rc<RefCell<Vec<u8>>>,
}

impl End for SealedEnd {
    fn push_unreliable(&mut self, now_us: u64, message: &[u8]) {
        self.end.push_unreliable(now_us, message);
    }

    fn push_ordered(&mut self, now_us: u64, message: &[u8]) {
        self.end.push_ordered(now_us, message);
    }

    fn flush(&mut self, now_us: u64, scratch: &mut Vec<u8>, mut send: impl FnMut(&[u8])) {
        let Self {
            end,
            cipher,
            sealed,
        } = self;
        let mut sealed = sealed.borrow_mut();
        end.flush(now_us, scratch, |packet| {
            cipher.seal(SealedKind::Payload, packet, &mut sealed);
            send(&sealed);
        });
    }

    fn receive(
        &mut self,
        now_us: u64,
        datagram: &[u8],
        scratch: &mut Vec<u8>,
        deliver: impl FnMut(bool, &[u8]),
    ) {
        let mut sealed = self.sealed.borrow_mut();
        sealed.clear();
        sealed.extend_from_slice(datagram);
        if let Ok((SealedKind::Payload, packet)) = self.cipher.open(&mut sealed) {
            self.end.receive(now_us, packet, scratch, deliver);
        }
    }
}
