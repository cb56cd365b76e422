//! The thread: the socket, and one request per connection.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde_json::Value;
use throng::sim::clock::unix_ms;
use throng_net::PortSettings;
use throng_net::http::HttpResponse;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::api::{AdminRequest, OPENAPI, parse_request, reply};
use super::protocol::{AdminAction, AdminCommand, AdminOutcome};
use super::storage::AdminFiles;
use super::tokens::AdminTokens;
use crate::audit::AuditRecord;
use crate::http_listener::{
    ApiError, HttpLimits, HttpThread, bearer_token, json_response, openapi_response, read_body,
};

/// Maximum number of open connections; more are closed at once.
const CONNECTIONS_MAX: usize = 32;

/// Maximum number of open connections of a client, so that one who sends nothing does not lock out the others.
const CONNECTIONS_PER_PEER_MAX: usize = 8;

/// Timeout of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// Timeout for the tick to execute a command.
const TICK_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a request's body, in bytes.
const BODY_BYTES_MAX: usize = 16 << 10;

/// Limits of the connections.
const LIMITS: HttpLimits = HttpLimits {
    connections_max: CONNECTIONS_MAX,
    connections_per_peer_max: CONNECTIONS_PER_PEER_MAX,
    timeout: CONNECTION_TIMEOUT,
};

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

/// Starts to serve on this socket, until the first returned value is dropped. The second one answers requests from elsewhere.
pub(super) fn start(
    socket: (TcpListener, PortSettings),
    tokens: AdminTokens,
    files: AdminFiles,
    commands: mpsc::Sender<AdminCommand>,
) -> io::Result<(HttpThread, Arc<AdminShared>)> {
    let shared = Arc::new(AdminShared {
        tokens,
        files: Mutex::new(files),
        commands,
    });
    let served = shared.clone();
    let answer = move |request, peer| {
        let shared = served.clone();
        async move { respond(request, peer, &shared).await }
    };
    let thread = HttpThread::start("admin", socket, LIMITS, answer, |_| ())?;
    Ok((thread, shared))
}

/// The reply to a request to the API, from whichever address it came in: the token in the header decides. A page of another site cannot
/// set this header, since no reply allows it to.
pub(crate) async fn respond(
    request: Request<Incoming>,
    peer: SocketAddr,
    shared: &AdminShared,
) -> HttpResponse {
    if request.uri().path() == "/openapi.json" && request.method() == "GET" {
        return openapi_response(OPENAPI);
    }
    match handle(request, peer, shared).await {
        Ok((status, body)) => json_response(status, &body),
        Err(error) => json_response(error.0, &error.body()),
    }
}

async fn handle(
    request: Request<Incoming>,
    peer: SocketAddr,
    shared: &AdminShared,
) -> Result<(StatusCode, Value), ApiError> {
    let given = bearer_token(request.headers());
    let operator = given.and_then(|given| shared.tokens.operator(given));
    let Some(who) = operator else {
        tracing::warn!(%peer, "administration request refused: invalid token");
        let expected =
            "expected the header `Authorization: Bearer TOKEN` with the token of an operator";
        return Err(ApiError(StatusCode::UNAUTHORIZED, expected.to_owned()));
    };
    let (head, body) = request.into_parts();
    let body = read_body(body, BODY_BYTES_MAX).await.ok_or_else(|| {
        let expected = format!("expected a body of at most {BODY_BYTES_MAX} bytes");
        ApiError(StatusCode::PAYLOAD_TOO_LARGE, expected)
    })?;
    let line = (
        head.method.as_str(),
        head.uri.path(),
        head.uri.query().unwrap_or_default(),
    );
    let parsed = parse_request(line, &body, (who, unix_ms() / 1000))?;
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
