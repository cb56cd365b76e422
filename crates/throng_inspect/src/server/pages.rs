//! An open page: its updates and its requests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::InspectShared;
use crate::frames::map_frame;
use crate::protocol::{
    ANY_PAGE, InspectCounters, InspectRequest, PAGES_MAX, PageAction, PagePaceRequest, PageQuery,
    PageSearch, PageUpdate, Requester, SEARCH_CHARS_MAX,
};

/// Maximum number of updates pending for a page; further ones are dropped.
const PAGE_QUEUE_MAX: usize = 16;

/// Updates that a page may miss in a row before it is closed: some seconds of them.
const DROPPED_IN_A_ROW_MAX: u32 = 40;

/// Timeout of a write to a page.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of the start of a page.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum time between two requests of a page.
const REQUEST_INTERVAL_MIN: Duration = Duration::from_millis(20);

/// Maximum length of a page's message, in bytes.
const MESSAGE_BYTES_MAX: usize = 2 << 10;

/// Number of malformed messages after which a page is closed.
const INVALID_MESSAGES_MAX: u32 = 8;

/// The queues of all pages.
#[derive(Default)]
pub(super) struct PageConnections {
    opened_count: AtomicU64,
    connections: Mutex<BTreeMap<u64, PageConnection>>,
}

/// The queue of a page.
struct PageConnection {
    queue: mpsc::Sender<Message>,
    dropped_in_a_row: u32,
    /// The newest map without room in the queue: other updates are repeated, a map is not, so it is kept until there is room.
    pending_map: Option<Message>,
}

impl PageConnection {
    /// Whether there was room for the pending map and for this update.
    fn send(&mut self, message: Message, is_map: bool) -> bool {
        if let Some(owed) = self.pending_map.take().filter(|_| !is_map)
            && let Err(unsent) = self.queue.try_send(owed)
        {
            self.pending_map = Some(unsent.into_inner());
            return false;
        }
        match self.queue.try_send(message) {
            Ok(()) => true,
            Err(unsent) => {
                self.pending_map = Some(unsent.into_inner()).filter(|_| is_map);
                false
            }
        }
    }
}

impl PageConnections {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, PageConnection>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a queue, unless there are too many.
    pub fn open(&self) -> Option<(u64, mpsc::Receiver<Message>)> {
        let mut lines = self.lock();
        if lines.len() >= PAGES_MAX {
            return None;
        }
        let page = self.opened_count.fetch_add(1, Ordering::Relaxed);
        let (news, messages) = mpsc::channel(PAGE_QUEUE_MAX);
        let line = PageConnection {
            queue: news,
            dropped_in_a_row: 0,
            pending_map: None,
        };
        lines.insert(page, line);
        Some((page, messages))
    }

    /// Removes a queue; returns whether it still existed.
    fn close(&self, page: u64) -> bool {
        self.lock().remove(&page).is_some()
    }

    /// Sends an update to pages; pages that have missed too many are closed, and counted.
    pub fn send(&self, pages: &[u64], news: PageUpdate, counters: &InspectCounters) {
        let is_map = matches!(news, PageUpdate::Map { .. });
        let message = match news {
            PageUpdate::Hello(text) | PageUpdate::Text(text) => Message::text(text),
            PageUpdate::Frame(bytes) => Message::binary(bytes),
            PageUpdate::Map {
                scene,
                tiles,
                tile_m,
            } => Message::binary(map_frame(scene, &tiles, tile_m)),
        };
        let mut lines = self.lock();
        for page in pages {
            let Some(line) = lines.get_mut(page) else {
                continue;
            };
            if line.send(message.clone(), is_map) {
                line.dropped_in_a_row = 0;
                continue;
            }
            line.dropped_in_a_row += 1;
            if line.dropped_in_a_row > DROPPED_IN_A_ROW_MAX {
                lines.remove(page);
                InspectCounters::increment(&counters.pages_slow);
            }
        }
    }
}

/// Serves a page until it disconnects, is too slow, or is malformed.
pub(super) async fn serve_page(
    upgrade: OnUpgrade,
    ((page, messages), peer): ((u64, mpsc::Receiver<Message>), SocketAddr),
    shared: Arc<InspectShared>,
) {
    let counters = &shared.counters;
    InspectCounters::increment(&counters.pages);
    if let Ok(Ok(upgraded)) = tokio::time::timeout(UPGRADE_TIMEOUT, upgrade).await {
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let stream = TokioIo::new(upgraded);
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        if shared
            .requests
            .send(InspectRequest::Opened(page))
            .await
            .is_ok()
        {
            run(&mut socket, (page, peer), messages, &shared).await;
            // The page may be gone; otherwise it receives a close message, if that can be sent at once.
            let _ = tokio::time::timeout(REQUEST_INTERVAL_MIN, socket.close(None)).await;
            let _ = shared.requests.send(InspectRequest::Closed(page)).await;
        }
    }
    shared.pages.close(page);
    InspectCounters::decrement(&counters.pages);
}

async fn run<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    (page, peer): (u64, SocketAddr),
    mut messages: mpsc::Receiver<Message>,
    shared: &InspectShared,
) {
    let mut junk = 0;
    // Without a queue it was closed as too slow; the updates left for it would keep it open.
    while !messages.is_closed() {
        let next = {
            // Requests first: on a slow connection there is always an update to send.
            let (asked, messages) = (pin!(socket.next()), pin!(messages.recv()));
            match select(asked, messages).await {
                Either::Left((asked, _)) => Either::Left(asked),
                Either::Right((news, _)) => Either::Right(news),
            }
        };
        match next {
            Either::Right(Some(news)) => {
                let written = tokio::time::timeout(WRITE_TIMEOUT, socket.send(news)).await;
                if written.is_err() && shared.pages.close(page) {
                    InspectCounters::increment(&shared.counters.pages_slow);
                }
                if !matches!(written, Ok(Ok(()))) {
                    return;
                }
            }
            Either::Left(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
            Either::Left(Some(Ok(message @ (Message::Text(_) | Message::Binary(_))))) => {
                let text = message.to_text().unwrap_or_default();
                if let Some(wish) = parse_request((page, peer), text, shared) {
                    // A request without room is dropped; the page may repeat it.
                    let _ = shared.requests.try_send(wish);
                } else {
                    junk += 1;
                    InspectCounters::increment(&shared.counters.junk);
                }
                if junk > INVALID_MESSAGES_MAX {
                    return;
                }
                tokio::time::sleep(REQUEST_INTERVAL_MIN).await;
            }
            Either::Left(Some(Err(_))) => {
                InspectCounters::increment(&shared.counters.junk);
                return;
            }
            Either::Left(_) | Either::Right(None) => return,
        }
    }
}

/// The request in a page's message, if it is valid and allowed.
fn parse_request(
    (page, peer): (u64, SocketAddr),
    text: &str,
    shared: &InspectShared,
) -> Option<InspectRequest> {
    let takes = shared.permissions;
    if let Ok(look) = serde_json::from_str::<PageQuery>(text) {
        return Some(InspectRequest::Query(page, look));
    }
    if let Ok(search) = serde_json::from_str::<PageSearch>(text) {
        let is_short = search.find.chars().count() <= SEARCH_CHARS_MAX;
        return is_short.then_some(InspectRequest::Search(page, search.find));
    }
    if let (true, Ok(asked)) = (takes.actions, serde_json::from_str::<PageAction>(text)) {
        let who = match &asked.operator {
            Some(token) => shared.admin.get()?.operator(token)?.to_owned(),
            None => ANY_PAGE.to_owned(),
        };
        tracing::info!(who, from = %peer, action = asked.action, "action of a page requested");
        let requester = Requester { who, from: peer };
        return Some(InspectRequest::Action(asked.action, requester));
    }
    let asked = serde_json::from_str::<PagePaceRequest>(text);
    asked
        .ok()
        .filter(|_| takes.pace)
        .map(|asked| InspectRequest::Pace(asked.pace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsent_map_goes_before_the_next_update() {
        let (news, mut messages) = mpsc::channel(2);
        let mut line = PageConnection {
            queue: news,
            dropped_in_a_row: 0,
            pending_map: None,
        };
        let mut send = |text: &'static str, is_map| line.send(Message::text(text), is_map);
        assert!(send("a", false) && send("b", false));
        assert!(!send("old map", true) && !send("map", true) && !send("missed", false));
        let mut next_text = || messages.try_recv().ok().map(|message| message.to_string());
        assert_eq!(next_text().as_deref(), Some("a"));
        assert!(!send("also missed", false), "the map took the room");
        assert_eq!([next_text(), next_text()].map(Option::unwrap), ["b", "map"]);
        assert!(send("c", false));
        assert_eq!([next_text(), next_text()], [Some("c".into()), None]);
    }
}
