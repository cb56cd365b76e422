//! The thread of the token service: authentication, counters, one request per connection.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use throng::sim::clock::unix_ms;
use throng_net::http::{HttpResponse, text_response, typed_response};

use super::api::{BODY_BYTES_MAX, OPENAPI, issue, parse_request};
use super::settings::TokenServiceSettings;
use crate::exposition::{MetricFamily, MetricType, exposition};
use crate::http_listener::{
    ApiError, HttpLimits, HttpThread, bearer_token, json_response, openapi_response, read_body,
    wrong_method,
};

/// Limits of the connections. The login service is one peer.
const LIMITS: HttpLimits = HttpLimits {
    connections_max: 128,
    connections_per_peer_max: 96,
    timeout: Duration::from_secs(5),
};

/// Counters of a token service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenServiceStats {
    /// Tokens issued.
    pub issued: u64,
    /// Requests without a valid secret.
    pub unauthorized: u64,
    /// Requests with a valid secret that are malformed, too long, or of another path or method.
    pub invalid: u64,
    /// Connections closed at once, because too many are open.
    pub too_many: u64,
}

/// The settings, and the counters as atomics; all connections share it.
#[derive(Debug)]
pub(super) struct IssuerShared {
    settings: TokenServiceSettings,
    issued: AtomicU64,
    unauthorized: AtomicU64,
    invalid: AtomicU64,
    too_many: AtomicU64,
    /// The second in which a refusal was logged last.
    logged_s: AtomicU64,
}

/// Starts to serve on this socket, until the returned thread is dropped.
pub(super) fn start(
    socket: TcpListener,
    settings: TokenServiceSettings,
) -> io::Result<(Arc<IssuerShared>, HttpThread)> {
    let port = settings.port.clone();
    let shared = Arc::new(IssuerShared {
        settings,
        issued: AtomicU64::new(0),
        unauthorized: AtomicU64::new(0),
        invalid: AtomicU64::new(0),
        too_many: AtomicU64::new(0),
        logged_s: AtomicU64::new(0),
    });
    let (of_requests, of_refusals) = (shared.clone(), shared.clone());
    let answer = move |request, peer| {
        let shared = of_requests.clone();
        async move { respond(request, peer, &shared).await }
    };
    let refused = move |peer| {
        of_refusals.refuse(&of_refusals.too_many, peer, "too many connections are open");
    };
    let socket = (socket, port);
    let thread = HttpThread::start("tokens", socket, LIMITS, answer, refused)?;
    Ok((shared, thread))
}

impl IssuerShared {
    pub fn stats(&self) -> TokenServiceStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TokenServiceStats {
            issued: read(&self.issued),
            unauthorized: read(&self.unauthorized),
            invalid: read(&self.invalid),
            too_many: read(&self.too_many),
        }
    }

    /// Counts a refusal, and logs it unless another one was logged in this second.
    fn refuse(&self, counter: &AtomicU64, peer: SocketAddr, cause: &str) {
        counter.fetch_add(1, Ordering::Relaxed);
        let now_s = unix_ms() / 1_000;
        if self.logged_s.swap(now_s, Ordering::Relaxed) != now_s {
            let refused = self.stats();
            tracing::warn!(%peer, ?refused, "token request refused: {cause}");
        }
    }
}

async fn respond(
    request: Request<Incoming>,
    peer: SocketAddr,
    shared: &IssuerShared,
) -> HttpResponse {
    let line = (request.method().as_str(), request.uri().path());
    match line {
        ("GET", "/openapi.json") => return openapi_response(OPENAPI),
        ("GET", "/healthz") => return text_response(StatusCode::OK, "ok\n".to_owned()),
        _ => {}
    }
    let given = bearer_token(request.headers());
    let caller = given.and_then(|given| shared.settings.callers.operator(given));
    let Some(caller) = caller.map(str::to_owned) else {
        shared.refuse(&shared.unauthorized, peer, "invalid secret");
        let expected = "expected the header `Authorization: Bearer SECRET` with the secret of the token service";
        let error = ApiError(StatusCode::UNAUTHORIZED, expected.to_owned());
        return json_response(error.0, &error.body());
    };
    match handle(request, &caller, shared).await {
        Ok(response) => response,
        Err(error) => {
            shared.refuse(&shared.invalid, peer, &error.1);
            json_response(error.0, &error.body())
        }
    }
}

async fn handle(
    request: Request<Incoming>,
    caller: &str,
    shared: &IssuerShared,
) -> Result<HttpResponse, ApiError> {
    let (head, body) = request.into_parts();
    match (head.method.as_str(), head.uri.path()) {
        ("POST", "/tokens") => {}
        ("GET", "/metrics") => return Ok(metrics(shared.stats())),
        (_, "/tokens") => return Err(wrong_method("POST")),
        (_, "/metrics" | "/healthz" | "/openapi.json") => return Err(wrong_method("GET")),
        (_, path) => {
            return Err(ApiError(
                StatusCode::NOT_FOUND,
                format!("no such path `{path}`: GET /openapi.json lists all"),
            ));
        }
    }
    let body = read_body(body, BODY_BYTES_MAX).await.ok_or_else(|| {
        let expected = format!("expected a body of at most {BODY_BYTES_MAX} bytes");
        ApiError(StatusCode::PAYLOAD_TOO_LARGE, expected)
    })?;
    let settings = &shared.settings;
    let claims = parse_request(&body, settings, unix_ms() / 1_000)?;
    let reply = issue(&claims, settings.keys.first())?;
    shared.issued.fetch_add(1, Ordering::Relaxed);
    tracing::debug!(caller, player = claims.client, "token issued");
    Ok(json_response(StatusCode::OK, &reply))
}

fn metrics(stats: TokenServiceStats) -> HttpResponse {
    let issued = MetricFamily::new(
        "throng_tokens_issued_total",
        MetricType::Counter,
        "Connect tokens issued.",
    );
    let refused = MetricFamily::new(
        "throng_token_requests_refused_total",
        MetricType::Counter,
        "Refused requests for tokens by reason.",
    );
    let refusals = [
        ("unauthorized", stats.unauthorized as f64),
        ("invalid", stats.invalid as f64),
        ("too_many_connections", stats.too_many as f64),
    ];
    let families = [
        issued.value(stats.issued as f64),
        refused.by_label("reason", refusals),
    ];
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    typed_response(StatusCode::OK, kind, exposition(&families).into())
}
