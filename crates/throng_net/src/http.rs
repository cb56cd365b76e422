//! Helpers of the HTTP servers.

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
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
        ),
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

/// Whether the request comes from a page of another site, according to its origin.
pub fn is_cross_site(host: Option<&str>, origin: Option<&str>) -> bool {
    let of_page = origin.and_then(|origin| origin.split_once("://"));
    origin.is_some() && of_page.map(|(_, host)| host) != host
}
