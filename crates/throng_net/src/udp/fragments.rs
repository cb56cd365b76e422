//! Forbids IP fragmentation.

use std::net::UdpSocket;

/// Makes the system send datagrams unfragmented or not at all; the connection measures the path MTU itself (RFC 8899). Linux only:
/// elsewhere this does nothing, and a path may seem to carry longer datagrams than it does.
pub(super) fn forbid_fragments(socket: &UdpSocket) {
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
        use rustix::net::sockopt::{set_ip_mtu_discover, set_ipv6_mtu_discover};
        // A socket of one family refuses the option of the other; a dual-stack socket accepts both.
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
