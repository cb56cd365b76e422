//! A socket that sends from any address of this machine.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};

/// A socket that sends each datagram from another address of this machine: every address of 127.0.0.0/8, or of a network that is routed to
/// the loopback interface.
#[derive(Debug)]
pub struct AnySource {
    socket: UdpSocket,
    to: SocketAddr,
}

impl AnySource {
    /// A socket that sends to a server.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(to: SocketAddr) -> io::Result<Self> {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any)?;
        Ok(Self { socket, to })
    }

    /// Sends a datagram from this address, which must be of the same family as the server's. One system call.
    ///
    /// # Errors
    /// The error of the system, if this machine does not have the address.
    pub fn send(&self, from: IpAddr, datagram: &[u8]) -> io::Result<()> {
        let parts = [IoSlice::new(datagram)];
        let to = SockaddrStorage::from(self.to);
        let socket = self.socket.as_raw_fd();
        let none = MsgFlags::empty();
        match from {
            IpAddr::V4(from) => {
                let source = in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: in_addr {
                        s_addr: u32::from_ne_bytes(from.octets()),
                    },
                    ipi_addr: in_addr { s_addr: 0 },
                };
                let source = [ControlMessage::Ipv4PacketInfo(&source)];
                sendmsg(socket, &parts, &source, none, Some(&to))?;
            }
            IpAddr::V6(from) => {
                let source = in6_pktinfo {
                    ipi6_addr: in6_addr {
                        s6_addr: from.octets(),
                    },
                    ipi6_ifindex: 0,
                };
                let source = [ControlMessage::Ipv6PacketInfo(&source)];
                sendmsg(socket, &parts, &source, none, Some(&to))?;
            }
        }
        Ok(())
    }
}
