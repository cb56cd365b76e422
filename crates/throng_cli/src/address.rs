//! Addresses of other machines, as host names or IP addresses.

use std::net::{SocketAddr, ToSocketAddrs};

/// `HOST:PORT`: an IP address, or a name that is resolved now.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    if !text.contains(':') {
        return Err("expected HOST:PORT, such as 203.0.113.5:7000".to_owned());
    }
    let found = text.to_socket_addrs().map_err(|error| {
        format!("{error}; expected HOST:PORT, such as 203.0.113.5:7000 or [2001:db8::5]:7000")
    })?;
    let found: Vec<SocketAddr> = found.collect();
    // Prefers IPv4 for a name with both, because most servers listen on IPv4 only.
    let chosen = found.iter().find(|address| address.is_ipv4());
    let chosen = chosen.or(found.first()).copied();
    chosen.ok_or_else(|| "the name has no address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_are_parsed_and_names_resolved() {
        for (text, expected) in [
            ("203.0.113.5:7000", "203.0.113.5:7000"),
            ("[2001:db8::5]:7000", "[2001:db8::5]:7000"),
            ("localhost:7000", "127.0.0.1:7000"),
        ] {
            assert_eq!(
                address(text).map(|it| it.to_string()).as_deref(),
                Ok(expected)
            );
        }
        for text in [
            "",
            "7000",
            "203.0.113.5",
            "203.0.113.5:",
            ":7000",
            "203.0.113.5:70000",
            "no host:1",
        ] {
            let refused = address(text);
            assert!(
                refused
                    .as_ref()
                    .is_err_and(|why| why.contains("expected HOST:PORT")),
                "{text}: {refused:?}"
            );
        }
    }
}
