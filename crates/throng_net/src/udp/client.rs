//! A client with its own socket.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use throng_core::clock::Stopwatch;

use super::fragments::forbid_fragments;
use crate::cipher::SEALING_BYTES;
use crate::client::{ClientConnection, ConnectionError};
#[cfg(any(test, feature = "bench"))]
use crate::conditioner::{ConditionedPath, NetworkConditioner};
use crate::endpoint::{EndpointSettings, SendError};
use crate::packet::PACKET_BYTES_MAX;
use crate::token::ConnectToken;

/// Traffic of a client's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketTotals {
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
}

/// A client over UDP: a [`ClientConnection`], a socket and a clock.
#[derive(Debug)]
pub struct UdpClient {
    connection: ClientConnection,
    sockets: ClientSockets,
    clock: Stopwatch,
    totals: SocketTotals,
    /// To the server and from it, before the socket.
    #[cfg(any(test, feature = "bench"))]
    conditioners: Option<Box<[ConditionedPath; 2]>>,
}

impl UdpClient {
    /// Starts to connect with an unused token; [`update`](Self::update) continues.
    ///
    /// # Errors
    /// If no socket can be opened for any address of the token.
    pub fn connect(token: ConnectToken, settings: EndpointSettings) -> io::Result<Self> {
        let sockets = ClientSockets::open(&token.servers)?;
        Ok(Self {
            connection: ClientConnection::new(token, settings),
            sockets,
            clock: Stopwatch::start(),
            totals: SocketTotals::default(),
            #[cfg(any(test, feature = "bench"))]
            conditioners: None,
        })
    }

    /// Adds a simulated path between the client and its sockets, the same in both directions.
    #[cfg(any(test, feature = "bench"))]
    #[must_use]
    pub fn with_conditioner(mut self, model: NetworkConditioner, seed: u64) -> Self {
        let link = |nth| ConditionedPath::new(model, seed.wrapping_mul(2).wrapping_add(nth));
        self.conditioners = Some(Box::new([link(0), link(1)]));
        self
    }

    /// The connection: its state, loss and round trip.
    #[must_use]
    pub const fn connection(&self) -> &ClientConnection {
        &self.connection
    }

    /// Time since the last packet of the server arrived; zero while there is no connection.
    #[must_use]
    pub fn silence(&self) -> Duration {
        Duration::from_micros(self.connection.silent_us(self.now_us()))
    }

    /// Continues from another port, as after a change of network.
    ///
    /// # Errors
    /// If no socket can be opened; then the old one stays in use.
    pub fn rebind(&mut self) -> io::Result<()> {
        self.sockets = ClientSockets::open(self.connection.server().as_slice())?;
        self.connection.rebind();
        Ok(())
    }

    /// Traffic of its sockets.
    #[must_use]
    pub const fn totals(&self) -> SocketTotals {
        self.totals
    }

    /// Sends a reliable message; see [`ClientConnection::send`].
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.connection.send(message)
    }

    /// Microseconds since the client was created.
    fn now_us(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Receives what has arrived and calls `deliver` with each packet.
    ///
    /// # Errors
    /// Why the connection ended.
    pub fn receive(&mut self, mut deliver: impl FnMut(&[u8])) -> Result<(), ConnectionError> {
        let now_us = self.now_us();
        let mut buffer = [0; PACKET_BYTES_MAX + SEALING_BYTES + 1];
        while let Some((length, from)) = self.sockets.receive(&mut buffer) {
            if self.connection.server() != Some(from) {
                continue;
            }
            self.totals.datagrams_in += 1;
            self.totals.bytes_in += length as u64;
            let datagram = &mut buffer[..length];
            #[cfg(any(test, feature = "bench"))]
            if let Some([_, down]) = self.conditioners.as_deref_mut() {
                down.send(now_us, datagram);
                continue;
            }
            // A refused datagram may be forged, so ignore it.
            let _ = self.connection.receive(now_us, datagram, &mut deliver);
        }
        #[cfg(any(test, feature = "bench"))]
        if let Some([up, down]) = self.conditioners.as_deref_mut() {
            let connection = &mut self.connection;
            while down.receive(now_us, |_, arrived| {
                let datagram = &mut buffer[..arrived.len()];
                datagram.copy_from_slice(arrived);
                let _ = connection.receive(now_us, datagram, &mut deliver);
            }) {}
            let server = self.connection.server();
            let (sockets, totals) = (&self.sockets, &mut self.totals);
            while up.receive(now_us, |_, datagram| sockets.send(totals, server, datagram)) {}
        }
        self.connection.is_open().map(drop)
    }

    /// Receives what has arrived, calls `deliver` with each packet, and sends pending packets. Call it about once per tick.
    ///
    /// # Errors
    /// Why the connection ended.
    pub fn update(&mut self, deliver: impl FnMut(&[u8])) -> Result<(), ConnectionError> {
        self.receive(deliver)?;
        let now_us = self.now_us();
        let (sockets, totals) = (&self.sockets, &mut self.totals);
        #[cfg(any(test, feature = "bench"))]
        let links = &mut self.conditioners;
        self.connection.update(now_us, |to, datagram| {
            #[cfg(any(test, feature = "bench"))]
            if let Some([up, _]) = links.as_deref_mut() {
                up.send(now_us, datagram);
                return;
            }
            sockets.send(totals, Some(to), datagram);
        });
        self.connection.is_open().map(drop)
    }

    /// Closes the connection and notifies the server.
    pub fn leave(&mut self) {
        let (sockets, totals) = (&self.sockets, &mut self.totals);
        self.connection
            .leave(|to, datagram| sockets.send(totals, Some(to), datagram));
    }
}

/// One socket per address family of a token: a server may be reachable over only one of them.
#[derive(Debug)]
struct ClientSockets {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl ClientSockets {
    fn open(servers: &[SocketAddr]) -> io::Result<Self> {
        let mut failed = io::Error::new(io::ErrorKind::InvalidInput, "the token names no server");
        let mut open = |is_used: bool, any: SocketAddr| {
            let socket = is_used.then(|| open_socket(any))?;
            socket.map_err(|error| failed = error).ok()
        };
        let (v4, v6) = (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
        let sockets = Self {
            v4: open(servers.iter().any(SocketAddr::is_ipv4), (v4, 0).into()),
            v6: open(servers.iter().any(SocketAddr::is_ipv6), (v6, 0).into()),
        };
        match sockets {
            Self { v4: None, v6: None } => Err(failed),
            sockets => Ok(sockets),
        }
    }

    /// Receives a datagram, if one has arrived.
    fn receive(&self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let both = [&self.v4, &self.v6].into_iter().flatten();
        both.into_iter()
            .find_map(|socket| socket.recv_from(buffer).ok())
    }

    /// Sends a datagram. If the system refuses it, it counts as lost.
    fn send(&self, totals: &mut SocketTotals, to: Option<SocketAddr>, datagram: &[u8]) {
        let Some(to) = to else { return };
        let socket = if to.is_ipv4() { &self.v4 } else { &self.v6 };
        if let Some(socket) = socket {
            totals.datagrams_out += 1;
            totals.bytes_out += datagram.len() as u64;
            let _ = socket.send_to(datagram, to);
        }
    }
}

fn open_socket(any: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(any)?;
    socket.set_nonblocking(true)?;
    forbid_fragments(&socket);
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::SecretKey;
    use crate::token::TokenClaims;

    /// The servers that a client tries within a number of seconds, in order.
    fn servers_asked(servers: &[&str], seconds: u64) -> Vec<SocketAddr> {
        let servers: Vec<SocketAddr> = servers.iter().map(|it| it.parse().unwrap()).collect();
        let claims = TokenClaims::new(1, servers, 1_000);
        let token = ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap();
        let mut connection = ClientConnection::new(token, EndpointSettings::default());
        let mut asked = Vec::new();
        for ms in (0..seconds * 1_000).step_by(100) {
            connection.update(ms * 1_000, |to, _| asked.push(to));
        }
        asked.dedup();
        asked
    }

    #[test]
    fn servers_of_both_address_families_are_tried() {
        let servers = ["[::1]:7", "10.0.0.1:7", "[::2]:7", "10.0.0.2:7"];
        let expected: Vec<SocketAddr> = servers.iter().map(|it| it.parse().unwrap()).collect();
        assert_eq!(servers_asked(&servers, 25), expected);
    }

    #[test]
    fn a_client_has_a_socket_for_each_family_of_its_token() {
        let [v4, v6] = ["127.0.0.1:7", "[::1]:7"].map(|it| it.parse::<SocketAddr>().unwrap());
        let both = ClientSockets::open(&[v6, v4]).unwrap();
        assert!(both.v4.is_some(), "every machine has IPv4");
        let one = ClientSockets::open(&[v4]).unwrap();
        assert!(one.v4.is_some() && one.v6.is_none());
        assert!(ClientSockets::open(&[]).is_err());
        // A datagram is sent and received by the socket of its address family.
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (mut totals, to) = (SocketTotals::default(), server.local_addr().unwrap());
        both.send(&mut totals, Some(to), b"hello");
        let mut buffer = [0; 16];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(
            (&buffer[..length], totals.datagrams_out),
            (&b"hello"[..], 1)
        );
        server.send_to(b"back", from).unwrap();
        let received = std::iter::repeat_with(|| both.receive(&mut buffer)).flatten();
        assert_eq!(received.take(1).next(), Some((4, to)));
    }
}
