//! The address under which browsers open the pages of a port.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use hyper::Uri;
use thiserror::Error;

/// The origin of a server's pages as browsers see it, such as `https://play.example.com`. It differs from the address of the port if a
/// proxy forwards the pages, or if the certificate is for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicOrigin {
    /// Scheme, host and port as browsers send them: in lower case, without the scheme's default port.
    text: String,
}

/// The text is not an origin.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "expected an origin, such as https://play.example.com or https://play.example.com:8443 (no path; names with other letters in their \
     `xn--` form), found `{0}`"
)]
pub struct InvalidOrigin(String);

impl PublicOrigin {
    /// The origin, as in the header `Origin`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same for WebSockets: `wss://play.example.com`.
    #[must_use]
    pub fn websocket(&self) -> String {
        // http becomes ws, and https becomes wss.
        self.text.replacen("http", "ws", 1)
    }

    /// Whether a header `Host` names it.
    #[must_use]
    pub fn has_host(&self, host: &str) -> bool {
        let own = self.text.split_once("://").map(|(_, own)| own);
        own.is_some_and(|own| own.eq_ignore_ascii_case(host))
    }
}

impl fmt::Display for PublicOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for PublicOrigin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        parse(text).ok_or_else(|| InvalidOrigin(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<PublicOrigin> {
    let uri: Uri = text.parse().ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let authority = uri.authority()?;
    let host = authority.host().to_ascii_lowercase();
    let is_name = host
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_ipv6 = bare.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    // The rest is what was written: neither a user, a path nor a query.
    let rest = text.get(scheme.len()..)?.strip_prefix("://")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if !(is_name && !host.is_empty() || is_ipv6) || !rest.eq_ignore_ascii_case(authority.as_str()) {
        return None;
    }
    let port = match rest.get(host.len()..)? {
        "" => default_port,
        written => written.strip_prefix(':')?.parse::<u16>().ok()?,
    };
    let text = if port == default_port {
        format!("{scheme}://{host}")
    } else {
        format!("{scheme}://{host}:{port}")
    };
    Some(PublicOrigin { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_has_the_form_that_browsers_send() {
        for (text, origin, websocket) in [
            (
                "https://play.example.com",
                "https://play.example.com",
                "wss://play.example.com",
            ),
            (
                "HTTPS://Play.Example.com:443/",
                "https://play.example.com",
                "wss://play.example.com",
            ),
            ("http://localhost:80", "http://localhost", "ws://localhost"),
            (
                "http://http.example:8000",
                "http://http.example:8000",
                "ws://http.example:8000",
            ),
            (
                "https://[2001:DB8::1]:8443",
                "https://[2001:db8::1]:8443",
                "wss://[2001:db8::1]:8443",
            ),
        ] {
            let parsed: PublicOrigin = text.parse().unwrap();
            assert_eq!(parsed.as_str(), origin);
            assert_eq!(parsed.websocket(), websocket);
        }
        let parsed: PublicOrigin = "https://play.example.com".parse().unwrap();
        assert!(parsed.has_host("Play.example.com") && !parsed.has_host("play.example.com:8000"));
    }

    #[test]
    fn other_text_is_no_origin() {
        for text in [
            "",
            "play.example.com",
            "//play.example.com",
            "wss://play.example.com",
            "https://",
            "https:///",
            "https://play.example.com/game",
            "https://play.example.com//",
            "https://play.example.com?x=1",
            "https://play.example.com#x",
            "https://user@play.example.com",
            "https://play.example.com:",
            "https://play.example.com:99999",
            "https://[::1",
            "https://[junk]",
            "https://a\"b",
            "https://a;b",
            "https://a'b",
            "https://a b",
            "https://spiel.exämple",
            " https://play.example.com",
        ] {
            assert!(text.parse::<PublicOrigin>().is_err(), "{text}");
        }
    }
}
