//! An HTTP connection: a request and its response.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_SECURITY_POLICY, ETAG, HeaderValue, IF_NONE_MATCH};
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use throng_core::clock::unix_ms;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::client_loop::run_websocket;
use super::page::{HTML, IndexPage, page_file};
use super::settings::WebCounters;
use super::shared::{UnauthenticatedSlot, WebShared};
use super::transfer::{CountedStream, TransferLimits};
use crate::cipher::random_bytes;
use crate::handshake::network_of;
use crate::http::{
    HttpResponse, OpenError, client_address, is_cross_site, is_loopback, text_response,
    typed_response, websocket_key, websocket_response,
};

/// The longest header of a request, in bytes, and the most fields in it.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEAD_FIELDS_MAX: usize = 64;

/// Player ids of guests: far from the ids that games use, and exact in JavaScript.
const GUEST_PLAYER_IDS: std::ops::Range<u64> = 1 << 48..(1 << 48) + (1 << 32);

/// Opens a connection, and handles it until the response is sent.
pub(super) async fn open_connection(
    mut stream: TcpStream,
    peer: SocketAddr,
    place: UnauthenticatedSlot,
    shared: Arc<WebShared>,
) {
    let (opener, counters) = (&shared.opener, &shared.counters);
    let patience = Duration::from_micros(shared.settings.handshake_timeout_us);
    let opened = timeout(patience, async {
        let client = opener.read_client_address(&mut stream, peer).await?;
        // Behind a proxy that speaks HTTP, the request contains the client's address.
        let is_known = !opener.is_trusted(client.ip());
        if is_known && !place.assign(network_of(client.ip())) {
            return Ok(None);
        }
        let stream = opener.encrypt(stream, client.ip()).await?;
        Ok(Some((stream, client)))
    });
    match opened.await {
        Ok(Ok(Some((stream, client)))) => {
            handle_connection(stream, client, place, shared).await;
        }
        Ok(Ok(None)) => WebCounters::one(&counters.refused_unauthenticated),
        Ok(Err(OpenError::ProxyHeader(_))) => WebCounters::one(&counters.proxy_header_refused),
        Ok(Err(_)) => WebCounters::one(&counters.tls_failed),
        Err(_) => WebCounters::one(&counters.timed_out),
    }
}

/// Handles a connection until the response is sent. A WebSocket continues in its own task.
async fn handle_connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    from: SocketAddr,
    place: UnauthenticatedSlot,
    shared: Arc<WebShared>,
) {
    let place = Arc::new(place);
    let respond = service_fn(|request| {
        let answer = respond(request, from, &place, &shared);
        async move { Ok::<_, Infallible>(answer) }
    });
    let settings = &shared.settings;
    let patience = Duration::from_micros(settings.handshake_timeout_us);
    let limits = TransferLimits {
        request: patience,
        bytes_per_s_min: settings.response_bytes_per_s_min,
        total: Duration::from_micros(settings.response_timeout_us).max(patience),
    };
    let (stream, written) = CountedStream::new(stream);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEAD_FIELDS_MAX)
        .serve_connection(TokioIo::new(stream), respond)
        .with_upgrades();
    match limits.run(&written, connection).await {
        Some(Ok(())) => {}
        Some(Err(error)) if !error.is_timeout() => WebCounters::one(&shared.counters.refused),
        Some(Err(_)) | None => WebCounters::one(&shared.counters.timed_out),
    }
}

fn respond(
    mut request: Request<Incoming>,
    from: SocketAddr,
    place: &Arc<UnauthenticatedSlot>,
    shared: &Arc<WebShared>,
) -> HttpResponse {
    let counters = &shared.counters;
    let refuse = |status, word: &str| {
        WebCounters::one(&counters.refused);
        text_response(status, word.to_owned())
    };
    let from = match assign_place(&request, from, place, shared) {
        Ok(client) => client,
        Err(refusal) => return *refusal,
    };
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/play") => {
            let Some(key) = websocket_key(&request) else {
                return refuse(
                    StatusCode::BAD_REQUEST,
                    "expected a WebSocket, version 13\n",
                );
            };
            let (upgrade, answer) = websocket_response(&mut request, key);
            tokio::spawn(run_websocket(upgrade, from, place.clone(), shared.clone()));
            WebCounters::one(&counters.answered);
            answer
        }
        (_, "/play") => refuse(StatusCode::METHOD_NOT_ALLOWED, "expected GET\n"),
        (&Method::POST, "/token") => match guest_token(&request, shared) {
            Ok(token) => {
                WebCounters::one(&counters.answered);
                typed_response(StatusCode::OK, "application/json", token.into())
            }
            Err(word) => refuse(StatusCode::FORBIDDEN, word),
        },
        (&Method::GET, "/webtransport") => {
            WebCounters::one(&counters.answered);
            let (status, body) = match shared.certificate() {
                Some(sha256) => (
                    StatusCode::OK,
                    format!("{{\"path\": \"/play\", \"sha256\": \"{}\"}}", hex(&sha256)),
                ),
                // A browser would report 404 as an error of the page.
                None => (StatusCode::NO_CONTENT, String::new()),
            };
            typed_response(status, "application/json", body.into())
        }
        (&Method::GET, "/names") => match shared.names().clone() {
            Some(names) => {
                WebCounters::one(&counters.answered);
                typed_response(StatusCode::OK, "application/json", names)
            }
            None => refuse(StatusCode::NOT_FOUND, "there are no names\n"),
        },
        (&Method::GET, "/map") => match map_of(&request, shared) {
            Some((bytes, tag)) => {
                WebCounters::one(&counters.answered);
                map_response(&request, bytes, &tag)
            }
            None => refuse(StatusCode::NOT_FOUND, "there is no such map\n"),
        },
        (method, "/") if is_read && shared.settings.serve_demo_page => {
            WebCounters::one(&counters.answered);
            let is_head = method == Method::HEAD;
            index_response(&shared.index, is_head)
        }
        (method, path) => match page_file(path).filter(|_| shared.settings.serve_demo_page) {
            Some((what, text)) if is_read => {
                WebCounters::one(&counters.answered);
                let text = if method == Method::HEAD { "" } else { text };
                typed_response(StatusCode::OK, what, Bytes::from_static(text.as_bytes()))
            }
            Some(_) => refuse(StatusCode::METHOD_NOT_ALLOWED, "expected GET\n"),
            None => refuse(StatusCode::NOT_FOUND, "there is no such page\n"),
        },
    }
}

/// Counts a connection for the address of its client, which a proxy may have forwarded. The error is the refusal.
fn assign_place(
    request: &Request<Incoming>,
    from: SocketAddr,
    place: &UnauthenticatedSlot,
    shared: &WebShared,
) -> Result<SocketAddr, Box<HttpResponse>> {
    let counters = &shared.counters;
    let client = client_address(from, request.headers(), shared.opener.trusted_proxies());
    let client = client.map_err(|_| {
        WebCounters::one(&counters.refused);
        let found = "X-Forwarded-For and Forwarded name different clients\n";
        Box::new(text_response(StatusCode::BAD_REQUEST, found.to_owned()))
    })?;
    if !place.assign(network_of(client.ip())) {
        WebCounters::one(&counters.refused_unauthenticated);
        let found = "too many connections of this address\n";
        let refusal = text_response(StatusCode::TOO_MANY_REQUESTS, found.to_owned());
        return Err(Box::new(refusal));
    }
    Ok(client)
}

/// The demo page itself.
fn index_response(index: &IndexPage, is_head: bool) -> HttpResponse {
    let html = if is_head {
        Bytes::new()
    } else {
        index.html.clone()
    };
    let mut answer = typed_response(StatusCode::OK, HTML, html);
    if let Some(policy) = &index.policy {
        answer
            .headers_mut()
            .insert(CONTENT_SECURITY_POLICY, policy.clone());
    }
    answer
}

/// The walls of the requested scene, and an entity tag that changes with each edit.
fn map_of(request: &Request<Incoming>, shared: &WebShared) -> Option<(Bytes, String)> {
    let scene = request.uri().query()?.strip_prefix("scene=")?;
    let maps = shared.maps();
    let map = maps.get(&scene.parse().ok()?)?;
    Some((map.bytes.clone(), format!("\"{}\"", map.edits)))
}

/// A map, or "not modified" if the browser has this version.
fn map_response(request: &Request<Incoming>, bytes: Bytes, tag: &str) -> HttpResponse {
    let known = request.headers().get(IF_NONE_MATCH);
    let is_known = known.is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let (status, bytes) = if is_known {
        (StatusCode::NOT_MODIFIED, Bytes::new())
    } else {
        (StatusCode::OK, bytes)
    };
    let mut answer = typed_response(status, "application/octet-stream", bytes);
    if let Ok(tag) = HeaderValue::from_str(tag) {
        answer.headers_mut().insert(ETAG, tag);
    }
    answer
}

/// A token for a guest. A guest who had an id before and sends it receives the same one.
fn guest_token(request: &Request<Incoming>, shared: &WebShared) -> Result<String, &'static str> {
    let field = |name: &str| request.headers().get(name)?.to_str().ok();
    let speed_m_s = shared.settings.guest_speed_m_s;
    let speed_m_s = speed_m_s.ok_or("guests are let in on loopback alone, without a key\n")?;
    // Refuses host names that only resolve to this machine (DNS rebinding), and pages of other sites.
    let (host, public) = (field("host"), shared.settings.public_origin.as_ref());
    if !host.is_some_and(is_loopback) || is_cross_site(host, field("origin"), public) {
        return Err("expected a page of this server\n");
    }
    let said = request.uri().query().unwrap_or_default();
    let said = said.strip_prefix("player=").map(str::parse::<u64>);
    let player = match said {
        Some(Ok(player)) if GUEST_PLAYER_IDS.contains(&player) => player,
        Some(_) => return Err("expected the number of a guest\n"),
        None => {
            let random = random_bytes().map(u32::from_le_bytes);
            GUEST_PLAYER_IDS.start + u64::from(random.map_err(|_| "there is no randomness\n")?)
        }
    };
    let token = shared.handshake().issue(player, unix_ms() / 1_000);
    let token = token.map_err(|_| "no token could be made\n")?.to_bytes();
    Ok(format!(
        "{{\"player\": \"{player}\", \"token\": \"{}\", \"speed_m_s\": {speed_m_s}}}",
        hex(&token)
    ))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::handshake::{ServerHandshake, ServerHandshakeSettings};
    use crate::inbox::{ConnectionInfo, DisconnectReason};
    use crate::udp::ConnectionHandler;
    use crate::web::settings::WebSettings;
    use crate::web::shared::PageMap;
    use crate::{PROTOCOL_ID, SecretKey};
    use throng_protocol::wire::ClientId;

    const MAP_BYTES: usize = 2 << 20;

    struct Nobody;

    impl ConnectionHandler for Nobody {
        fn connect(&self, _: ConnectionInfo) -> Option<ClientId> {
            None
        }

        fn receive(&self, _: ClientId, _: &[u8]) {}

        fn disconnect(&self, _: ClientId, _: DisconnectReason) {}
    }

    fn server() -> Arc<WebShared> {
        let address: SocketAddr = "127.0.0.1:7000".parse().unwrap();
        let gate = ServerHandshakeSettings::new(PROTOCOL_ID, vec![address]);
        let gate = ServerHandshake::new(gate, SecretKey([3; 32])).unwrap();
        let shared = WebShared::new(WebSettings::default(), gate, Arc::new(Nobody));
        let bytes = Bytes::from(vec![7; MAP_BYTES]);
        shared.maps().insert(1, PageMap { bytes, edits: 0 });
        Arc::new(shared)
    }

    /// Requests a map and reads at most `bytes_per_step` bytes every 100 ms of simulated time. Returns the received bytes, the simulated
    /// time and the number of requests that timed out.
    fn read_map(bytes_per_step: usize, request: &'static [u8]) -> (usize, Duration, u64) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (shared, from) = (server(), ([10, 0, 0, 1], 5_000).into());
            // The buffers of the network.
            let (mut client, stream): (DuplexStream, _) = duplex(64 << 10);
            let place = UnauthenticatedSlot::acquire(&shared, None).unwrap();
            let started = Instant::now();
            let served = tokio::spawn(handle_connection(stream, from, place, shared.clone()));
            client.write_all(request).await.unwrap();
            let (mut received, mut buffer) = (0, vec![0; bytes_per_step]);
            while let Ok(length @ 1..) = client.read(&mut buffer).await {
                received += length;
                sleep(Duration::from_millis(100)).await;
            }
            served.await.unwrap();
            (
                received,
                started.elapsed(),
                shared.counters.read().timed_out,
            )
        })
    }

    const REQUEST: &[u8] = b"GET /map?scene=1 HTTP/1.1\r\nHost: a\r\n\r\n";

    #[test]
    fn slow_phone_receives_a_whole_map() {
        // 3 Mbit/s, and a network as slow as the limit allows.
        for bytes_per_step in [37_500, 2_000] {
            let (received, took, timed_out) = read_map(bytes_per_step, REQUEST);
            assert!(received > MAP_BYTES, "{received} bytes in {took:?}");
            assert!(took > Duration::from_secs(5));
            assert_eq!(timed_out, 0);
        }
    }

    #[test]
    fn client_that_hardly_reads_is_cut_off() {
        for bytes_per_step in [1, 1_000] {
            let (received, _, timed_out) = read_map(bytes_per_step, REQUEST);
            assert!(received < MAP_BYTES / 4, "{received}");
            assert_eq!(timed_out, 1);
        }
        let (received, took, timed_out) = read_map(100, b"GET /map?scene=1 HTT");
        assert_eq!((received, timed_out), (0, 1), "after {took:?}");
    }
}
