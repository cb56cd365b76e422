//! Packets as UDP datagrams.
//!
//! A datagram is one packet, sent once. Nothing is acknowledged or sent again, so packets of the reliable channel can be lost. Use this
//! sink on networks without loss, in tests, and as an example.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, PoisonError, RwLock};

use throng_protocol::wire::CloseReason;
use throng_protocol::wire::{Channel, ClientId};
use tracing::warn;

use super::sink::PacketSink;

/// Addresses of clients. Clones share one table.
#[derive(Clone, Debug, Default)]
pub struct ClientAddresses(Arc<RwLock<BTreeMap<ClientId, SocketAddr>>>);

impl ClientAddresses {
    /// Sets a client's address, and returns the previous one.
    pub fn set(&self, client: ClientId, address: SocketAddr) -> Option<SocketAddr> {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.insert(client, address)
    }

    /// Removes a client, as the sink does when the client is closed.
    pub fn remove(&self, client: ClientId) -> Option<SocketAddr> {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.remove(&client)
    }

    /// A client's address.
    #[must_use]
    pub fn get(&self, client: ClientId) -> Option<SocketAddr> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.get(&client).copied()
    }
}

/// Sends packets from a socket. Never blocks: datagrams that the system does not take at once are dropped and counted.
#[derive(Debug)]
pub struct UdpSink {
    socket: UdpSocket,
    addresses: ClientAddresses,
    errors: u64,
}

impl UdpSink {
    /// Sends from this socket, which becomes non-blocking, to the clients in the table.
    ///
    /// # Errors
    /// If the socket cannot be made non-blocking.
    pub fn new(socket: UdpSocket, addresses: ClientAddresses) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            addresses,
            errors: 0,
        })
    }

    /// Another sink on the same socket and table, for another shard.
    ///
    /// # Errors
    /// If the system has no more handles.
    pub fn try_clone(&self) -> io::Result<Self> {
        Self::new(self.socket.try_clone()?, self.addresses.clone())
    }

    fn count_error(&mut self, client: ClientId, error: &dyn std::fmt::Display) {
        self.errors += 1;
        if self.errors.is_power_of_two() {
            warn!(client = client.0, %error, errors = self.errors, "sending a packet failed");
        }
    }
}

impl PacketSink for UdpSink {
    fn deliver(&mut self, client: ClientId, _channel: Channel, packet: &[u8]) {
        match self.addresses.get(client) {
            None => self.count_error(client, &"no address is known"),
            Some(address) => {
                if let Err(error) = self.socket.send_to(packet, address) {
                    self.count_error(client, &error);
                }
            }
        }
    }

    fn close(&mut self, client: ClientId, _reason: CloseReason) {
        self.addresses.remove(client);
    }

    fn errors(&self) -> u64 {
        self.errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_arrives_and_send_errors_are_counted() {
        let (server, client) = ["127.0.0.1:0"; 2]
            .map(|any| UdpSocket::bind(any).unwrap())
            .into();
        let addresses = ClientAddresses::default();
        let mut sink = UdpSink::new(server, addresses.clone()).unwrap();
        sink.deliver(ClientId(1), Channel::Reliable, b"nowhere");
        assert_eq!(sink.errors(), 1);
        addresses.set(ClientId(1), client.local_addr().unwrap());
        sink.try_clone()
            .unwrap()
            .deliver(ClientId(1), Channel::Reliable, b"packet");
        let mut buffer = [0; 20];
        let (length, _) = client.recv_from(&mut buffer).unwrap();
        assert_eq!(buffer[..length], b"packet"[..]);
        sink.deliver(ClientId(1), Channel::Reliable, &[0; 70_000]);
        assert_eq!(sink.errors(), 2);
        sink.close(ClientId(1), CloseReason::Ended);
        assert_eq!(addresses.get(ClientId(1)), None);
    }
}
