//! One connection: a request and its reply.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};

use super::{InspectShared, STUCK_S, pages};
use crate::exposition::exposition;
use crate::protocol::{InspectCounters, InspectRequest};
use crate::routes::{
    ADMIN_PREFIX, InspectAccess, InspectRoute, PAGE_PATHS, RequestHead, RouteDenied,
};
use throng_net::AddressRange;
use throng_net::http::{
    HttpResponse, PortStream, client_address, text_response, typed_response, websocket_key,
    websocket_response,
};

/// Timeout of a request's arrival.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for the tick to gather metrics; after it the last ones are sent.
const METRICS_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum length of a request head, in bytes, and the maximum number of fields in it.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEAD_FIELDS_MAX: usize = 64;

/// The files of the page, in the order of [`PAGE_PATHS`].
const FILES: [(&str, &str); PAGE_PATHS.len()] = [
    (HTML, include_str!("../../page/page.html")),
    (CSS, include_str!("../../page/page.css")),
    (SCRIPT, include_str!("../../page/page.js")),
    (SCRIPT, include_str!("../../page/map.js")),
    (SCRIPT, include_str!("../../page/picture.js")),
    (SCRIPT, include_str!("../../page/ticks.js")),
    (SCRIPT, include_str!("../../page/dom.js")),
    (SCRIPT, include_str!("../../page/search.js")),
    (SCRIPT, include_str!("../../page/sessions.js")),
    (SCRIPT, include_str!("../../page/matches.js")),
    (SCRIPT, include_str!("../../page/picked.js")),
    (SCRIPT, include_str!("../../page/operator.js")),
];
const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Reads a request and replies.
pub(super) async fn handle_connection(
    (stream, client): (PortStream, SocketAddr),
    trusted_proxies: &[AddressRange],
    access: Arc<InspectAccess>,
    shared: Arc<InspectShared>,
) -> Result<(), hyper::Error> {
    let respond = service_fn(|request: Request<Incoming>| {
        let (access, shared) = (access.clone(), shared.clone());
        // The address is for the audit log only.
        let client = client_address(client, request.headers(), trusted_proxies).unwrap_or(client);
        async move { Ok::<_, Infallible>(respond(request, client, &access, &shared).await) }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEAD_FIELDS_MAX)
        .serve_connection(TokioIo::new(stream), respond)
        .with_upgrades()
        .await
}

async fn respond(
    mut request: Request<Incoming>,
    peer: SocketAddr,
    access: &InspectAccess,
    shared: &Arc<InspectShared>,
) -> HttpResponse {
    let field = |name: &str| request.headers().get(name)?.to_str().ok();
    let route = access.route(RequestHead {
        method: request.method().as_str(),
        path: request.uri().path(),
        query: request.uri().query().unwrap_or_default(),
        host: field("host"),
        origin: field("origin"),
    });
    let counters = &shared.counters;
    let route = match route {
        Ok(route) => route,
        Err(denied) => {
            InspectCounters::increment(&counters.denied);
            return deny(denied);
        }
    };
    InspectCounters::increment(&counters.answered);
    let mut answer = match route {
        InspectRoute::Metrics => metrics(shared).await,
        InspectRoute::Health => health(shared),
        InspectRoute::Ready => ready(shared),
        InspectRoute::Page(place) => {
            let (what, text) = FILES[place];
            typed_response(StatusCode::OK, what, Bytes::from_static(text.as_bytes()))
        }
        InspectRoute::Live => upgrade_to_websocket(&mut request, peer, shared),
        InspectRoute::Admin => return administer(request, peer, shared).await,
    };
    if request.method() == Method::HEAD {
        *answer.body_mut() = Full::default();
    }
    answer
}

/// The reply to a request that is refused.
pub(crate) fn deny(denied: RouteDenied) -> HttpResponse {
    let (status, word) = match denied {
        RouteDenied::Unknown => (StatusCode::NOT_FOUND, "there is no such page\n"),
        RouteDenied::Busy => (
            StatusCode::SERVICE_UNAVAILABLE,
            "too many connections are open\n",
        ),
        RouteDenied::Method => (
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD are answered\n",
        ),
        RouteDenied::Token => (
            StatusCode::UNAUTHORIZED,
            "expected the token that the server printed\n",
        ),
        RouteDenied::ForeignOrigin => (StatusCode::FORBIDDEN, "expected a page of this server\n"),
    };
    let mut answer = text_response(status, word.to_owned());
    if denied == RouteDenied::Method {
        let allowed = HeaderValue::from_static("GET, HEAD");
        answer.headers_mut().insert(ALLOW, allowed);
    }
    answer
}

/// Passes a request of a page to the administration API.
async fn administer(
    mut request: Request<Incoming>,
    peer: SocketAddr,
    shared: &InspectShared,
) -> HttpResponse {
    let target = request.uri().path_and_query();
    let target = target.and_then(|target| target.as_str().strip_prefix(ADMIN_PREFIX));
    let target = target.and_then(|target| target.parse().ok());
    let (Some(admin), Some(target)) = (shared.admin.get(), target) else {
        let text = "the server has no administration API: see `--admin`\n";
        return text_response(StatusCode::NOT_FOUND, text.to_owned());
    };
    *request.uri_mut() = target;
    crate::admin::respond(request, peer, &admin).await
}

/// Upgrades to a WebSocket.
fn upgrade_to_websocket(
    request: &mut Request<Incoming>,
    peer: SocketAddr,
    shared: &Arc<InspectShared>,
) -> HttpResponse {
    let Some(key) = websocket_key(request) else {
        return text_response(
            StatusCode::BAD_REQUEST,
            "expected a WebSocket, version 13\n".into(),
        );
    };
    let Some(line) = shared.pages.open() else {
        InspectCounters::increment(&shared.counters.refused);
        return text_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many pages are open\n".into(),
        );
    };
    let (upgrade, answer) = websocket_response(request, key);
    tokio::spawn(pages::serve_page(upgrade, (line, peer), shared.clone()));
    answer
}

/// Metrics after the next tick; the last ones if it does not come in time.
async fn metrics(shared: &InspectShared) -> HttpResponse {
    let mut newest = shared.metrics.subscribe();
    // If there is no room, another request for the same metrics is pending.
    let _ = shared.requests.try_send(InspectRequest::Metrics);
    let _ = tokio::time::timeout(METRICS_TIMEOUT, newest.changed()).await;
    let families = newest.borrow().clone();
    if families.is_empty() {
        return text_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "no tick is done yet\n".into(),
        );
    }
    let text = exposition(families.iter());
    typed_response(
        StatusCode::OK,
        "text/plain; version=0.0.4; charset=utf-8",
        text.into(),
    )
}

/// Liveness: whether ticks go on.
fn health(shared: &InspectShared) -> HttpResponse {
    let stuck_s = *shared.stuck_s.borrow();
    if stuck_s >= STUCK_S && shared.status.tick.load(Ordering::Relaxed) > 0 {
        let word = format!("stuck: no tick for {stuck_s} s\n");
        return text_response(StatusCode::SERVICE_UNAVAILABLE, word);
    }
    text_response(StatusCode::OK, "ok\n".into())
}

/// Readiness: whether players can play.
fn ready(shared: &InspectShared) -> HttpResponse {
    let is_stopping = shared.status.is_stopping.load(Ordering::Relaxed);
    let fault = shared.status.not_ready_reason();
    let word = if is_stopping {
        "stopping: new players are refused soon\n"
    } else if shared.status.is_draining.load(Ordering::Relaxed) {
        "draining: new logins are refused\n"
    } else if shared.status.tick.load(Ordering::Relaxed) == 0 {
        "starting: no tick is done yet\n"
    } else if let Some(fault) = fault {
        return text_response(StatusCode::SERVICE_UNAVAILABLE, format!("{fault}\n"));
    } else {
        return text_response(StatusCode::OK, "ready\n".into());
    };
    text_response(StatusCode::SERVICE_UNAVAILABLE, word.into())
}
