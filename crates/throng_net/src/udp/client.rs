//! A client with a socket of its own.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use throng_core::clock::Stopwatch;

use super::fragments::forbid_fragments;
use crate::client::{ClientConnection, ConnectionEnd};
use crate::endpoint::{EndpointSettings, PushRefused};
#[cfg(any(test, feature = "bench"))]
use crate::link::{LinkModel, SimulatedLink};
use crate::packet::PACKET_BYTES_MAX;
use crate::seal::SEALING_BYTES;
use crate::token::ConnectToken;

/// What went through a client's socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketTotals {
    /// Datagrams that came.
    pub datagrams_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Datagrams that were sent.
    pub datagrams_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
}

/// A client over UDP: a [`ClientConnection`], a socket and a clock.
#[derive(Debug)]
pub struct UdpClient {
    connection: ClientConnection,
    socket: UdpSocket,
    clock: Stopwatch,
    totals: SocketTotals,
    /// Up and down, in front of the socket.
    #[cfg(any(test, feature = "bench"))]
    links: Option<Box<[SimulatedLink; 2]>>,
}

impl UdpClient {
    /// Begins to connect by a token that was not used before; [`update`](Self::update) goes on with it.
    ///
    /// # Errors
    /// Where the system has no socket.
    pub fn connect(token: ConnectToken, settings: EndpointSettings) -> io::Result<Self> {
        let socket = any_socket(token.servers.first().copied())?;
        Ok(Self {
            connection: ClientConnection::new(token, settings),
            socket,
            clock: Stopwatch::start(),
            totals: SocketTotals::default(),
            #[cfg(any(test, feature = "bench"))]
            links: None,
        })
    }

    /// From now on it is behind a simulated link, which is as good in both directions.
    #[cfg(any(test, feature = "bench"))]
    #[must_use]
    pub fn behind(mut self, model: LinkModel, seed: u64) -> Self {
        let link = |nth| SimulatedLink::new(model, seed.wrapping_mul(2).wrapping_add(nth));
        self.links = Some(Box::new([link(0), link(1)]));
        self
    }

    /// The connection: how it is, and how good the link.
    #[must_use]
    pub const fn connection(&self) -> &ClientConnection {
        &self.connection
    }

    /// Goes on from another port, as a phone does that changes its network.
    ///
    /// # Errors
    /// Where the system has no socket; it goes on from the one that it has then.
    pub fn rebind(&mut self) -> io::Result<()> {
        self.socket = any_socket(self.connection.server())?;
        self.connection.rebind();
        Ok(())
    }

    /// What went through its socket.
    #[must_use]
    pub const fn totals(&self) -> SocketTotals {
        self.totals
    }

    /// Sends a message that arrives once and in order; see [`ClientConnection::send`].
    ///
    /// # Errors
    /// [`PushRefused`].
    pub fn send(&mut self, message: &[u8]) -> Result<(), PushRefused> {
        self.connection.send(message)
    }

    /// Microseconds since it was made.
    fn now_us(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Takes what came, and hands its packets over.
    ///
    /// # Errors
    /// Why there is no connection any more.
    pub fn receive(&mut self, mut deliver: impl FnMut(&[u8])) -> Result<(), ConnectionEnd> {
        let now_us = self.now_us();
        let mut buffer = [0; PACKET_BYTES_MAX + SEALING_BYTES + 1];
        while let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            if self.connection.server() != Some(from) {
                continue;
            }
            self.totals.datagrams_in += 1;
            self.totals.bytes_in += length as u64;
            let datagram = &mut buffer[..length];
            #[cfg(any(test, feature = "bench"))]
            if let Some([_, down]) = self.links.as_deref_mut() {
                down.send(now_us, datagram);
                continue;
            }
            // What is refused anybody may have sent.
            let _ = self.connection.receive(now_us, datagram, &mut deliver);
        }
        #[cfg(any(test, feature = "bench"))]
        if let Some([up, down]) = self.links.as_deref_mut() {
            let connection = &mut self.connection;
            while down.take(now_us, |_, arrived| {
                let datagram = &mut buffer[..arrived.len()];
                datagram.copy_from_slice(arrived);
                let _ = connection.receive(now_us, datagram, &mut deliver);
            }) {}
            let server = self.connection.server();
            let (socket, totals) = (&self.socket, &mut self.totals);
            while up.take(now_us, |_, datagram| send(socket, totals, server, datagram)) {}
        }
        self.connection.is_open().map(drop)
    }

    /// Takes what came, hands its packets over, and sends what is due. To be called about every tick.
    ///
    /// # Errors
    /// Why there is no connection any more.
    pub fn update(&mut self, deliver: impl FnMut(&[u8])) -> Result<(), ConnectionEnd> {
        self.receive(deliver)?;
        let now_us = self.now_us();
        let (socket, totals) = (&self.socket, &mut self.totals);
        #[cfg(any(test, feature = "bench"))]
        let links = &mut self.links;
        self.connection.update(now_us, |to, datagram| {
            #[cfg(any(test, feature = "bench"))]
            if let Some([up, _]) = links.as_deref_mut() {
                up.send(now_us, datagram);
                return;
            }
            send(socket, totals, Some(to), datagram);
        });
        self.connection.is_open().map(drop)
    }

    /// Says that it leaves.
    pub fn leave(&mut self) {
        let (socket, totals) = (&self.socket, &mut self.totals);
        self.connection
            .leave(|to, datagram| send(socket, totals, Some(to), datagram));
    }
}

/// A socket for who speaks to this address.
fn any_socket(server: Option<SocketAddr>) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(match server {
        Some(SocketAddr::V6(_)) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        _ => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
    })?;
    socket.set_nonblocking(true)?;
    forbid_fragments(&socket);
    Ok(socket)
}

/// What the system does not take is lost like anything else.
fn send(socket: &UdpSocket, totals: &mut SocketTotals, to: Option<SocketAddr>, datagram: &[u8]) {
    if let Some(to) = to {
        totals.datagrams_out += 1;
        totals.bytes_out += datagram.len() as u64;
        let _ = socket.send_to(datagram, to);
    }
}
