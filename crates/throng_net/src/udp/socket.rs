//! The server's UDP socket and its options.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::fragments::forbid_fragments;

/// Timeout of a receive, after which the receiver checks whether it has to stop.
pub(super) const RECEIVE_TIMEOUT: Duration = Duration::from_millis(20);

/// Size of the system's receive and send buffers, if the system allows it.
const BUFFER_BYTES: usize = 4 << 20;

/// A bound socket that is not used yet.
#[derive(Debug)]
pub struct ServerSocket {
    pub(super) socket: UdpSocket,
    address: SocketAddr,
}

impl ServerSocket {
    /// Binds to an address. Port 0 selects a free port.
    ///
    /// # Errors
    /// If the address does not exist on this machine or is in use.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(RECEIVE_TIMEOUT))?;
        forbid_fragments(&socket);
        let options = socket2::SockRef::from(&socket);
        // The system may limit the size.
        let _ = options.set_recv_buffer_size(BUFFER_BYTES);
        let _ = options.set_send_buffer_size(BUFFER_BYTES);
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// The bound address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}
