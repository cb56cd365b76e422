//! The thread: the socket, and one request per connection.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::future::select;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::AUTHORIZATION;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use throng::sim::clock::unix_ms;
use throng_net::http::{HttpResponse, typed_response};
use tokio::sync::{Mutex, Semaphore, mpsc, oneshot, watch};

use super::api::{AdminRequest, ApiError, OPENAPI, parse_request, reply};
use super::protocol::{AdminAction, AdminCommand, AdminOutcome};
use super::storage::AdminFiles;
use super::tokens::AdminTokens;
use crate::audit::AuditRecord;

/// Maximum number of open connections; more are closed at once.
const CONNECTIONS_MAX: usize = 32;

/// Timeout of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// Timeout for the tick to execute a command.
const TICK_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a request's head and of its body, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
const BODY_BYTES_MAX: usize = 16 << 10;

/// Pause after the system failed to accept a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The thread; it ends when this is dropped.
pub(super) struct AdminThread {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// Shared by all connections, those of the live page included.
pub(crate) struct AdminShared {
    tokens: AdminTokens,
    files: Mutex<AdminFiles>,
    commands: mpsc::Sender<AdminCommand>,
}

/// The API for requests that come in at the address of the live page; empty until it is open.
#[derive(Clone, Default)]
pub(crate) struct AdminAccess(Arc<RwLock<Option<Arc<AdminShared>>>>);

impl AdminAccess {
    pub fn set(&self, shared: Arc<AdminShared>) {
        let mut access = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *access = Some(shared);
    }

    /// The API, if it is open.
    pub fn get(&self) -> Option<Arc<AdminShared>> {
        let access = self.0.read().unwrap_or_else(PoisonError::into_inner);
        access.clone()
    }
}

impl AdminShared {
    /// The operator with this token.
    pub fn operator(&self, token: &str) -> Option<&str> {
        self.tokens.operator(token)
    }
}

impl AdminThread {
    /// Starts to serve on this non-blocking socket. The second value answers requests from elsewhere.
    pub fn start(
        socket: TcpListener,
        tokens: AdminTokens,
        files: AdminFiles,
        commands: mpsc::Sender<AdminCommand>,
    ) -> io::Result<(Self, Arc<AdminShared>)> {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_io().enable_time().build()?;
        let shared = Arc::new(AdminShared {
            tokens,
            files: Mutex::new(files),
            commands,
        });
        let (stop, stopped) = watch::channel(false);
        let thread = thread::Builder::new().name("admin".into());
        let served = shared.clone();
        let thread = thread.spawn(move || runtime.block_on(serve(socket, served, stopped)))?;
        let thread = Self {
            stop,
            thread: Some(thread),
        };
        Ok((thread, shared))
    }
}

impl Drop for AdminThread {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("administration thread panicked: the API is unavailable");
        }
    }
}

/// Serves until the process drops its [`AdminThread`].
async fn serve(socket: TcpListener, shared: Arc<AdminShared>, mut stopped: watch::Receiver<bool>) {
    let accepting = pin!(accept_connections(socket, shared));
    let stopped = pin!(stopped.changed());
    select(accepting, stopped).await;
}

async fn accept_connections(socket: TcpListener, shared: Arc<AdminShared>) {
    let socket = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(%error, "administration API not started");
            return;
        }
    };
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, peer)) = socket.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let Ok(permit) = permits.clone().try_acquire_owned() else {
            continue;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let respond = service_fn(move |request| {
                let shared = shared.clone();
                async move { Ok::<_, Infallible>(respond(request, peer, &shared).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .max_buf_size(HEAD_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), respond);
            let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
            drop(permit);
        });
    }
}

/// The reply to a request to the API, from whichever address it came in: the token in the header decides. A page of another site cannot
/// set this header, since no reply allows it to.
pub(crate) async fn respond(
    request: Request<Incoming>,
    peer: SocketAddr,
    shared: &AdminShared,
) -> HttpResponse {
    if request.uri().path() == "/openapi.json" && request.method() == "GET" {
        let body = Bytes::from_static(OPENAPI.as_bytes());
        return typed_response(StatusCode::OK, JSON, body);
    }
    match handle(request, peer, shared).await {
        Ok((status, body)) => json_response(status, &body),
        Err(error) => json_response(error.0, &error.body()),
    }
}

const JSON: &str = "application/json";

fn json_response(status: StatusCode, body: &Value) -> HttpResponse {
    typed_response(status, JSON, format!("{body}\n").into())
}

async fn handle(
    request: Request<Incoming>,
    peer: SocketAddr,
    shared: &AdminShared,
) -> Result<(StatusCode, Value), ApiError> {
    let authorization = request.headers().get(AUTHORIZATION);
    let given = authorization.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let operator = given.and_then(|given| shared.tokens.operator(given.trim()));
    let Some(who) = operator else {
        tracing::warn!(%peer, "administration request refused: invalid token");
        let expected =
            "expected the header `Authorization: Bearer TOKEN` with the token of an operator";
        return Err(ApiError(StatusCode::UNAUTHORIZED, expected.to_owned()));
    };
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|_| {
        let expected = format!("expected a body of at most {BODY_BYTES_MAX} bytes");
        ApiError(StatusCode::PAYLOAD_TOO_LARGE, expected)
    })?;
    let line = (
        head.method.as_str(),
        head.uri.path(),
        head.uri.query().unwrap_or_default(),
    );
    let parsed = parse_request(line, &body.to_bytes(), (who, unix_ms() / 1000))?;
    let is_read = matches!(
        parsed.action,
        AdminAction::ListPlayers { .. } | AdminAction::ShowPlayer(_) | AdminAction::ListBans { .. }
    );
    if is_read {
        return execute(&parsed.action, shared).await.map(|it| reply(&it));
    }
    // One change at a time, so that the ban file is written in the order of the changes.
    let mut files = shared.files.lock().await;
    let outcome = execute(&parsed.action, shared).await?;
    store(&parsed, &outcome, (who, peer), &mut files)?;
    Ok(reply(&outcome))
}

/// Executes a command in the tick.
async fn execute(action: &AdminAction, shared: &AdminShared) -> Result<AdminOutcome, ApiError> {
    let unavailable = |message: &str| ApiError(StatusCode::SERVICE_UNAVAILABLE, message.to_owned());
    let (sender, outcome) = oneshot::channel();
    let command = AdminCommand {
        action: action.clone(),
        reply: sender,
    };
    shared
        .commands
        .try_send(command)
        .map_err(|_| unavailable("too many requests are pending, or the server is stopping"))?;
    match tokio::time::timeout(TICK_TIMEOUT, outcome).await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(_)) => Err(unavailable("the server is stopping")),
        Err(_) => Err(ApiError(
            StatusCode::GATEWAY_TIMEOUT,
            format!(
                "no tick within {} s; the request may still be executed",
                TICK_TIMEOUT.as_secs()
            ),
        )),
    }
}

/// Writes the ban file and the audit log. The change itself is in effect already.
fn store(
    request: &AdminRequest,
    outcome: &AdminOutcome,
    (who, from): (&str, SocketAddr),
    files: &mut AdminFiles,
) -> Result<(), ApiError> {
    let (action, target) = match &request.action {
        AdminAction::ListPlayers { .. }
        | AdminAction::ShowPlayer(_)
        | AdminAction::ListBans { .. } => return Ok(()),
        AdminAction::Kick(player) => ("kick", format!("player {}", player.0)),
        AdminAction::Ban(ban) => ("ban", ban.target.to_string()),
        AdminAction::Lift(target) => ("lift", target.to_string()),
    };
    let written = match (&request.action, outcome) {
        (AdminAction::Ban(ban), AdminOutcome::Banned(Ok(_))) => files.add_ban(ban.clone()),
        (AdminAction::Lift(target), AdminOutcome::Lifted(true)) => files.lift_ban(*target),
        _ => Ok(()),
    };
    let outcome = match &written {
        Ok(()) => reply(outcome).1.to_string(),
        Err(error) => format!("in effect, but not in the ban file: {error}"),
    };
    tracing::info!(who, %from, action, %target, reason = request.reason, %outcome, "administration request executed");
    let record = AuditRecord {
        target,
        reason: request.reason.clone(),
        outcome,
        ..AuditRecord::now(who, Some(from), action)
    };
    let audited = files.append_audit(&record);
    let failed = |what: &str, error: io::Error| {
        tracing::error!(%error, "{what} not written");
        let message =
            format!("the change is in effect, but the {what} could not be written: {error}");
        ApiError(StatusCode::INTERNAL_SERVER_ERROR, message)
    };
    written.map_err(|error| failed("ban file", error))?;
    audited.map_err(|error| failed("audit log", error))
}
