//! The server's socket, set up.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::fragments::forbid_fragments;

/// How long the socket is waited for, before it is looked whether the receiver is to end.
pub(super) const RECEIVE_TIMEOUT: Duration = Duration::from_millis(20);

/// Bytes of datagrams that the system keeps for the receiver, and of those that it takes from the shards, if it lets us.
const BUFFER_BYTES: usize = 4 << 20;

/// A socket that is bound and not used yet.
#[derive(Debug)]
pub struct ServerSocket {
    pub(super) socket: UdpSocket,
    address: SocketAddr,
}

impl ServerSocket {
    /// Binds to an address; with the port 0 to any that is free.
    ///
    /// # Errors
    /// Where there is no such address here, or another process has it.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(RECEIVE_TIMEOUT))?;
        forbid_fragments(&socket);
        let options = socket2::SockRef::from(&socket);
        // As large as the system lets them be.
        let _ = options.set_recv_buffer_size(BUFFER_BYTES);
        let _ = options.set_send_buffer_size(BUFFER_BYTES);
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// Where it is bound.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}
