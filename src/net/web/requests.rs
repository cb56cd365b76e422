//! A connection: a request and its answer.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};

use super::play::play;
use super::settings::WebCounters;
use super::shared::{StrangerPlace, WebShared};
use crate::net::http::{Answer, text_answer, websocket_answer, websocket_key};

/// The longest head of a request, in bytes, and the most fields in it.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEAD_FIELDS_MAX: usize = 64;

/// A connection, until it is answered; what goes on as a WebSocket goes on by itself.
pub(super) async fn answer(
    stream: tokio::net::TcpStream,
    from: SocketAddr,
    place: StrangerPlace,
    shared: Arc<WebShared>,
) {
    let place = Arc::new(place);
    let respond = service_fn(|request| {
        let answer = respond(request, from, &place, &shared);
        async move { Ok::<_, Infallible>(answer) }
    });
    let patience = Duration::from_micros(shared.settings.patience_us);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEAD_FIELDS_MAX)
        .serve_connection(TokioIo::new(stream), respond)
        .with_upgrades();
    match tokio::time::timeout(patience, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) if !error.is_timeout() => WebCounters::one(&shared.counters.refused),
        Ok(Err(_)) | Err(_) => WebCounters::one(&shared.counters.late),
    }
}

fn respond(
    mut request: Request<Incoming>,
    from: SocketAddr,
    place: &Arc<StrangerPlace>,
    shared: &Arc<WebShared>,
) -> Answer {
    let counters = &shared.counters;
    let refuse = |status, word: &str| {
        WebCounters::one(&counters.refused);
        text_answer(status, word.to_owned())
    };
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/play") => {
            let Some(key) = websocket_key(&request) else {
                return refuse(
                    StatusCode::BAD_REQUEST,
                    "expected a WebSocket, version 13\n",
                );
            };
            let (upgrade, answer) = websocket_answer(&mut request, key);
            tokio::spawn(play(upgrade, from, place.clone(), shared.clone()));
            WebCounters::one(&counters.answered);
            answer
        }
        (_, "/play") => refuse(StatusCode::METHOD_NOT_ALLOWED, "expected GET\n"),
        _ => refuse(StatusCode::NOT_FOUND, "there is no such page\n"),
    }
}
