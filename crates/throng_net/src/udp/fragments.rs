//! Datagrams are not cut up on the way.

use std::net::UdpSocket;

/// Has the system send datagrams whole or not at all: how long they may be, the connection finds out itself (RFC 8899). On Linux; elsewhere
/// nothing happens, and a path may seem wider than it is.
pub(super) fn forbid_fragments(socket: &UdpSocket) {
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
        use rustix::net::sockopt::{set_ip_mtu_discover, set_ipv6_mtu_discover};
        // A socket of one family refuses the other's, and one of both takes both.
        let _ = set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE);
        let _ = set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery, ip_mtu_discover};

    use super::*;

    #[test]
    fn a_socket_sends_datagrams_whole() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        forbid_fragments(&socket);
        assert_eq!(ip_mtu_discover(&socket), Ok(Ipv4PathMtuDiscovery::PROBE));
    }
}
