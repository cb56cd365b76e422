//! Helpers of the HTTP servers.
//!
//! ```text
//! TCP ─▶ PROXY header, from a trusted proxy ─▶ limits ─▶ TLS handshake ─▶ request ─▶ X-Forwarded-For, from a trusted proxy ─▶ response
//! ```

// | file | contents |
// | `port` | settings of a TCP port, and how its connections are opened |
// | `proxy_header` | the header of the PROXY protocol |
// | `handshake_limits` | limits of TLS handshakes |
// | `certificate`, `reloader` | the certificate, and its reload |
// | `stream` | a connection with or without TLS |
// | `forwarded` | clients behind a trusted proxy, by the headers of requests |
// | `origin` | the address under which browsers open the pages of a port |

mod certificate;
mod forwarded;
mod handshake_limits;
mod origin;
mod port;
mod proxy_header;
mod reloader;
mod stream;
#[cfg(test)]
mod test_certificates;

pub use certificate::{TlsCertificate, TlsError, TlsFiles};
pub use forwarded::{ForgedAddress, client_address};
#[cfg(feature = "webtransport")]
pub(crate) use handshake_limits::HandshakeLimits;
pub use origin::{InvalidOrigin, PublicOrigin};
pub use port::{ConnectionOpener, OpenError, PortSettings};
pub use proxy_header::{PROXY_HEADER_BYTES_MAX, ProxyHeaderError, decode_proxy_header};
pub use reloader::TlsReloader;
pub use stream::PortStream;

use std::net::IpAddr;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// What a page may load: nothing from other sites.
pub(crate) const CONTENT_POLICY: &str =
    "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'";

/// A complete HTTP response.
pub type HttpResponse = Response<Full<Bytes>>;

/// A plain text response.
pub fn text_response(status: StatusCode, text: String) -> HttpResponse {
    typed_response(status, "text/plain; charset=utf-8", text.into())
}

/// A body of this type. The browser does not cache it and loads nothing for it from other sites.
pub fn typed_response(status: StatusCode, what: &'static str, body: Bytes) -> HttpResponse {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, what),
        (CACHE_CONTROL, "no-store"),
        // One request per connection, which bounds the work of a connection.
        (CONNECTION, "close"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    ] {
        answer
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// The key for the response to a WebSocket upgrade request. `None` if the request is no such upgrade, or not of version 13.
pub fn websocket_key(request: &Request<Incoming>) -> Option<HeaderValue> {
    let fields = request.headers();
    let has = |name, wanted: &str| {
        let value = fields.get(name).and_then(|value| value.to_str().ok());
        let mut words = value.unwrap_or_default().split(',');
        words.any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    let is_upgrade = has(UPGRADE, "websocket") && has(SEC_WEBSOCKET_VERSION, "13");
    let key = fields.get(SEC_WEBSOCKET_KEY).filter(|_| is_upgrade)?;
    HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok()
}

/// The response that upgrades a request to a WebSocket.
pub fn websocket_response(
    request: &mut Request<Incoming>,
    key: HeaderValue,
) -> (OnUpgrade, HttpResponse) {
    let upgrade = hyper::upgrade::on(request);
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    for (name, value) in [
        (UPGRADE, HeaderValue::from_static("websocket")),
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (SEC_WEBSOCKET_ACCEPT, key),
    ] {
        answer.headers_mut().insert(name, value);
    }
    (upgrade, answer)
}

/// Whether a `Host` names the loopback interface.
pub fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let address: Option<IpAddr> = name.parse().ok();
    name == "localhost" || address.is_some_and(|address| address.is_loopback())
}

/// Whether the request comes from a page of another site, according to its origin. With a public origin, pages of that origin are the
/// server's own, and of others only those that this machine opened under a name of its own.
pub fn is_cross_site(
    host: Option<&str>,
    origin: Option<&str>,
    public: Option<&PublicOrigin>,
) -> bool {
    let Some(origin) = origin else { return false };
    let of_page = origin.split_once("://").map(|(_, host)| host);
    match public {
        Some(public) if public.as_str() == origin => false,
        Some(_) => of_page != host || !host.is_some_and(is_loopback),
        None => of_page != host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_origin_replaces_the_host_name() {
        let public: PublicOrigin = "https://play.example.com".parse().unwrap();
        let is_foreign = |host, origin| is_cross_site(Some(host), Some(origin), Some(&public));
        assert!(!is_foreign("10.0.0.5:8000", "https://play.example.com"));
        assert!(!is_foreign("127.0.0.1:8000", "http://127.0.0.1:8000"));
        for (host, origin) in [
            ("play.example.com", "http://play.example.com"),
            ("play.example.com", "https://play.example.com:8443"),
            ("play.example.com", "https://play.example.com.evil.example"),
            ("evil.example", "https://evil.example"),
            ("10.0.0.5:8000", "http://10.0.0.5:8000"),
            ("127.0.0.1:8000", "https://evil.example"),
            ("127.0.0.1:8000", "null"),
        ] {
            assert!(is_foreign(host, origin), "{host} {origin}");
        }
        assert!(!is_cross_site(Some("evil.example"), None, Some(&public)));
    }
}
