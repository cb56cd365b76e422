//! A link between two peers, with both directions.

use std::collections::{BTreeMap, VecDeque};

use thiserror::Error;

use super::piece::{
    ENTRY_HEADER_BYTES, LinkClient, PIECE_HEADER_BYTES, PieceEntry, PieceHeader, PieceWish,
    WAITED_MS_MAX, write_entry, write_header,
};
use crate::bus::MESSAGE_BYTES_MAX;

/// The time between two measurements of the round trip.
const PROBE_INTERVAL_MS: u64 = 250;

/// Times and limits of links. Times are in milliseconds.
///
/// ```
/// use throng_cluster::LinkSettings;
///
/// // Slow clients are closed sooner than by default.
/// let settings = LinkSettings { client_bytes_max: 256 << 10, ..LinkSettings::default() };
/// assert!(settings.client_bytes_max < settings.link_bytes_max);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// The target length of a piece, in bytes. A longer message gets a piece of its own.
    pub piece_bytes: usize,
    /// Maximum number of bytes per client that the other end has not acknowledged. Beyond it, the client is behind and has to be closed.
    pub client_bytes_max: usize,
    /// The same for all clients of a link.
    pub link_bytes_max: usize,
    /// Maximum number of bytes that were sent and are not acknowledged. Further messages wait.
    pub window_bytes: usize,
    /// How long an acknowledgement waits for a message that goes the same way. Much shorter than `resend_after_ms` of the other end.
    pub acknowledge_after_ms: u64,
    /// The time after which messages without an acknowledgement are sent again.
    pub resend_after_ms: u64,
    /// The time after which the link is lost if nothing is received or acknowledged. After a quarter of it, this end sends a probe.
    pub silence_max_ms: u64,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self {
            piece_bytes: 30_000,
            client_bytes_max: 1 << 20,
            link_bytes_max: 64 << 20,
            window_bytes: 8 << 20,
            acknowledge_after_ms: 20,
            resend_after_ms: 250,
            silence_max_ms: 8_000,
        }
    }
}

/// Counters of links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Pieces sent.
    pub pieces_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
    /// Reliable messages that were sent again.
    pub resent: u64,
    /// Reliable messages received in order.
    pub received: u64,
    /// Reliable messages received again, or after a gap.
    pub not_in_order: u64,
    /// Pieces that could not be read, or came from an old link.
    pub refused: u64,
}

/// Too much waits for a client, or the message is longer than [`MESSAGE_BYTES_MAX`](crate::MESSAGE_BYTES_MAX) with the headers of its piece.
/// The client has to be closed. The message was not queued.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("client {} is behind: {waiting} bytes wait for it", client.0)]
pub struct ClientBehind {
    /// The client.
    pub client: LinkClient,
    /// The number of bytes that wait for it.
    pub waiting: usize,
}

/// A reliable message that is not acknowledged. The bytes are `None` if the client was forgotten.
#[derive(Debug)]
struct KeptMessage {
    client: LinkClient,
    queued_ms: u64,
    bytes: Option<Vec<u8>>,
}

/// An unreliable message that was not sent yet.
#[derive(Debug)]
struct UnsentMessage {
    client: LinkClient,
    bytes: Vec<u8>,
    /// The number of the first reliable message that was queued after it.
    before: u64,
}

/// The time that a message has waited, as pieces contain it.
fn waited_ms(queued_ms: u64, now_ms: u64) -> u16 {
    let waited = u16::try_from(now_ms.saturating_sub(queued_ms)).unwrap_or(WAITED_MS_MAX);
    waited.min(WAITED_MS_MAX)
}

impl KeptMessage {
    fn len(&self) -> usize {
        self.bytes.as_ref().map_or(0, Vec::len) + ENTRY_HEADER_BYTES
    }
}

/// A received message, for the owner of a link.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LinkMessage {
    pub client: LinkClient,
    pub waited_ms: u16,
    pub bytes: Vec<u8>,
}

/// A link between two peers, with both directions, from one handshake to the next.
#[derive(Debug)]
pub(super) struct PeerLink {
    /// The ids of the link here and at the other end.
    pub own_id: u64,
    pub peer_id: u64,
    /// The other end knows both ids.
    pub is_established: bool,
    settings: LinkSettings,
    kept: VecDeque<KeptMessage>,
    kept_bytes: usize,
    /// The number of the first kept message.
    first: u64,
    /// The number of the kept messages that were sent, and their bytes.
    sent: usize,
    sent_bytes: usize,
    /// The number of messages that were sent at least once.
    sent_most: u64,
    unreliable: VecDeque<UnsentMessage>,
    /// The time now, as far as the owner has passed it.
    pub now_ms: u64,
    /// The number of a message whose acknowledgement measures the round trip, and the time when it was sent.
    probe: Option<(u64, u64)>,
    /// When the next such message may be sent.
    next_probe_ms: u64,
    pub round_trip_ms: Option<u64>,
    waiting: BTreeMap<LinkClient, usize>,
    /// The time of the last acknowledgement, or when the first of the kept messages was sent.
    progress_ms: u64,
    /// The times when the other end sent something last, and when it was greeted last.
    received_ms: u64,
    greeted_ms: u64,
    /// The time when messages were sent again last.
    resent_ms: u64,
    /// The number of reliable messages of the other end that have arrived.
    arrived: u64,
    /// The other end waits for a piece.
    pub replies_now: bool,
    /// The time at which messages that have arrived are acknowledged, if no piece is sent before.
    acknowledges_ms: Option<u64>,
    is_missing: bool,
}

impl PeerLink {
    pub const fn new(own_id: u64, peer_id: u64, settings: LinkSettings) -> Self {
        Self {
            own_id,
            peer_id,
            is_established: false,
            settings,
            kept: VecDeque::new(),
            kept_bytes: 0,
            first: 0,
            sent: 0,
            sent_bytes: 0,
            sent_most: 0,
            unreliable: VecDeque::new(),
            now_ms: 0,
            probe: None,
            next_probe_ms: 0,
            round_trip_ms: None,
            waiting: BTreeMap::new(),
            progress_ms: 0,
            received_ms: 0,
            greeted_ms: 0,
            resent_ms: 0,
            arrived: 0,
            replies_now: false,
            acknowledges_ms: None,
            is_missing: false,
        }
    }

    /// Queues the last reliable message for a client, without a limit.
    pub fn push_last(&mut self, client: LinkClient, bytes: &[u8]) {
        let length = bytes.len() + ENTRY_HEADER_BYTES;
        *self.waiting.entry(client).or_insert(0) += length;
        self.kept_bytes += length;
        let bytes = Some(bytes.to_vec());
        self.kept.push_back(KeptMessage {
            client,
            queued_ms: self.now_ms,
            bytes,
        });
    }

    /// Queues a reliable message.
    pub fn push(&mut self, client: LinkClient, bytes: &[u8]) -> Result<(), ClientBehind> {
        let waiting = self.waiting.get(&client).copied().unwrap_or(0);
        let length = bytes.len() + ENTRY_HEADER_BYTES;
        if PIECE_HEADER_BYTES + length > MESSAGE_BYTES_MAX
            || waiting + length > self.settings.client_bytes_max
            || self.kept_bytes + length > self.settings.link_bytes_max
        {
            return Err(ClientBehind { client, waiting });
        }
        self.push_last(client, bytes);
        Ok(())
    }

    /// Queues an unreliable message. It is sent after the reliable messages that were queued before it, and near to them: the other end can
    /// then pass all messages for a client on together.
    pub fn push_unreliable(&mut self, client: LinkClient, bytes: &[u8]) {
        let (bytes, before) = (bytes.to_vec(), self.first + self.kept.len() as u64);
        self.unreliable.push_back(UnsentMessage {
            client,
            bytes,
            before,
        });
    }

    /// Drops the queued messages of a client. O(messages of the link).
    pub fn forget(&mut self, client: LinkClient) {
        self.unreliable.retain(|message| message.client != client);
        if self.waiting.remove(&client).is_none() {
            return;
        }
        for (nth, message) in self.kept.iter_mut().enumerate() {
            if message.client != client {
                continue;
            }
            let dropped = message.bytes.take().map_or(0, |bytes| bytes.len());
            self.kept_bytes -= dropped;
            if nth < self.sent {
                self.sent_bytes -= dropped;
            }
        }
    }

    /// Whether the other end sends or acknowledges nothing any more.
    pub fn is_silent(&self, now_ms: u64) -> bool {
        let is_over = |since_ms| now_ms.saturating_sub(since_ms) > self.settings.silence_max_ms;
        let is_waiting = self.sent_most > self.first;
        self.is_established
            && (is_over(self.received_ms) || is_waiting && is_over(self.progress_ms))
    }

    /// A piece that requests a reply.
    pub fn greeting(&self) -> Vec<u8> {
        let mut piece = Vec::with_capacity(PIECE_HEADER_BYTES);
        let header = PieceHeader {
            from: self.own_id,
            to: self.peer_id,
            first: self.first,
            acknowledged: self.arrived,
            wish: PieceWish::Reply,
        };
        write_header(header, &mut piece);
        piece
    }

    /// Passes the pieces that are due to `send`.
    pub fn poll(&mut self, now_ms: u64, stats: &mut LinkStats, mut send: impl FnMut(Vec<u8>)) {
        self.now_ms = now_ms;
        let last_ms = self.progress_ms.max(self.resent_ms);
        if self.sent > 0 && now_ms >= last_ms + self.settings.resend_after_ms {
            self.go_back(now_ms, stats);
        }
        let pause_ms = self.settings.silence_max_ms / 4;
        if now_ms >= self.received_ms.max(self.greeted_ms) + pause_ms {
            self.greeted_ms = now_ms;
            send(self.greeting());
        }
        let acknowledges = self.acknowledges_ms.is_some_and(|at_ms| now_ms >= at_ms);
        self.replies_now |= acknowledges || self.is_missing;
        while self.replies_now || !self.unreliable.is_empty() || self.may_send() {
            let piece = self.next_piece(now_ms);
            stats.pieces_sent += 1;
            stats.bytes_sent += piece.len() as u64;
            send(piece);
        }
    }

    fn may_send(&self) -> bool {
        self.sent < self.kept.len() && self.sent_bytes < self.settings.window_bytes
    }

    /// Marks all messages without an acknowledgement to be sent again.
    fn go_back(&mut self, now_ms: u64, stats: &mut LinkStats) {
        stats.resent += self.sent as u64;
        (self.sent, self.sent_bytes) = (0, 0);
        self.resent_ms = now_ms;
        // It would be unknown which of the two was acknowledged.
        self.probe = None;
    }

    fn next_piece(&mut self, now_ms: u64) -> Vec<u8> {
        let most = self.settings.piece_bytes;
        let mut piece = Vec::with_capacity(most.min(self.kept_bytes + 2_048));
        let is_probe = self.may_send()
            && self.probe.is_none()
            && self.sent_most == self.first + self.sent as u64
            && now_ms >= self.next_probe_ms;
        let header = PieceHeader {
            from: self.own_id,
            to: self.peer_id,
            first: self.first + self.sent as u64,
            acknowledged: self.arrived,
            wish: if self.is_missing {
                PieceWish::Missing
            } else if is_probe {
                PieceWish::Reply
            } else {
                PieceWish::Nothing
            },
        };
        write_header(header, &mut piece);
        (self.replies_now, self.is_missing) = (false, false);
        self.acknowledges_ms = None;
        if self.sent_most == self.first {
            // Nothing is waiting for an acknowledgement yet.
            self.progress_ms = self.progress_ms.max(now_ms);
        }
        let fits = |piece: &Vec<u8>, length: usize| {
            piece.len() == PIECE_HEADER_BYTES || piece.len() + length <= most
        };
        loop {
            let number = self.first + self.sent as u64;
            let may_send = self.may_send();
            let is_next = |message: &UnsentMessage| message.before <= number || !may_send;
            if let Some(message) = self.unreliable.front().filter(|message| is_next(message)) {
                if !fits(&piece, message.bytes.len() + ENTRY_HEADER_BYTES) {
                    break;
                }
                let entry = PieceEntry {
                    client: message.client,
                    is_reliable: false,
                    waited_ms: 0,
                    bytes: &message.bytes,
                };
                write_entry(entry, &mut piece);
                self.unreliable.pop_front();
                continue;
            }
            if !may_send || !fits(&piece, self.kept[self.sent].len()) {
                break;
            }
            let message = &self.kept[self.sent];
            let entry = PieceEntry {
                client: message.client,
                is_reliable: true,
                waited_ms: waited_ms(message.queued_ms, now_ms),
                bytes: message.bytes.as_deref().unwrap_or(&[]),
            };
            write_entry(entry, &mut piece);
            self.sent_bytes += message.len();
            self.sent += 1;
        }
        let sent = self.first + self.sent as u64;
        if is_probe && header.wish == PieceWish::Reply {
            self.probe = Some((sent, now_ms));
            self.next_probe_ms = now_ms + PROBE_INTERVAL_MS;
        }
        self.sent_most = self.sent_most.max(sent);
        piece
    }

    /// Handles a piece of the other end. `None` if it acknowledges messages that were never sent.
    pub fn receive(
        &mut self,
        now_ms: u64,
        (header, entries): (PieceHeader, Vec<PieceEntry<'_>>),
        stats: &mut LinkStats,
    ) -> Option<Vec<LinkMessage>> {
        (self.received_ms, self.now_ms) = (now_ms, now_ms);
        if header.acknowledged > self.sent_most {
            return None;
        }
        self.acknowledge(now_ms, header.acknowledged);
        self.replies_now |= header.wish == PieceWish::Reply;
        // At most every 20 ms: the repeated messages need a round trip.
        if header.wish == PieceWish::Missing && self.sent > 0 && now_ms >= self.resent_ms + 20 {
            self.go_back(now_ms, stats);
        }
        let mut number = header.first;
        let mut messages = Vec::new();
        for entry in entries {
            if entry.is_reliable {
                let at_ms = now_ms + self.settings.acknowledge_after_ms;
                self.acknowledges_ms.get_or_insert(at_ms);
                let is_next = number == self.arrived;
                self.is_missing |= number > self.arrived;
                number += 1;
                if !is_next {
                    stats.not_in_order += 1;
                    continue;
                }
                self.arrived += 1;
                stats.received += 1;
                // The sender has forgotten this client.
                if entry.bytes.is_empty() {
                    continue;
                }
            }
            messages.push(LinkMessage {
                client: entry.client,
                waited_ms: entry.waited_ms,
                bytes: entry.bytes.to_vec(),
            });
        }
        Some(messages)
    }

    fn acknowledge(&mut self, now_ms: u64, count: u64) {
        if let Some((_, sent_ms)) = self.probe.take_if(|(number, _)| count >= *number) {
            self.round_trip_ms = Some(now_ms.saturating_sub(sent_ms));
        }
        while self.first < count
            && let Some(message) = self.kept.pop_front()
        {
            let length = message.len();
            self.first += 1;
            self.progress_ms = now_ms;
            self.kept_bytes -= length;
            if self.sent > 0 {
                self.sent -= 1;
                self.sent_bytes -= length;
            }
            if let Some(waiting) = self.waiting.get_mut(&message.client) {
                *waiting = waiting.saturating_sub(length);
                if *waiting == 0 {
                    self.waiting.remove(&message.client);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::piece::read as read_piece;
    use super::*;

    #[test]
    fn message_that_no_piece_can_carry_is_refused() {
        let mut link = PeerLink::new(1, 1, LinkSettings::default());
        let longest = vec![7; MESSAGE_BYTES_MAX - PIECE_HEADER_BYTES - ENTRY_HEADER_BYTES];
        link.push(LinkClient(1), &longest).unwrap();
        let mut pieces = Vec::new();
        link.poll(0, &mut LinkStats::default(), |piece| {
            pieces.push(piece.len())
        });
        assert_eq!(pieces.last(), Some(&MESSAGE_BYTES_MAX));
        let longer = [&longest[..], &[7]].concat();
        let behind = ClientBehind {
            client: LinkClient(2),
            waiting: 0,
        };
        assert_eq!(link.push(LinkClient(2), &longer), Err(behind));
    }

    /// The messages that a link receives from another one at a time of its own clock.
    fn carry(
        (from, from_ms): (&mut PeerLink, u64),
        (to, to_ms): (&mut PeerLink, u64),
    ) -> Vec<LinkMessage> {
        let (mut pieces, mut messages) = (Vec::new(), Vec::new());
        let stats = &mut LinkStats::default();
        from.poll(from_ms, stats, |piece| pieces.push(piece));
        for piece in pieces {
            let read = read_piece(&piece).unwrap();
            messages.extend(to.receive(to_ms, read, stats).unwrap());
        }
        messages
    }

    #[test]
    fn message_says_how_long_it_waited_until_it_was_sent() {
        let settings = LinkSettings::default();
        let mut gateway = PeerLink::new(1, 2, settings);
        // The clock of the node is far ahead.
        let (mut node, ahead_ms) = (PeerLink::new(2, 1, settings), 1 << 40);
        let waits = |messages: Vec<LinkMessage>| -> Vec<u16> {
            messages.iter().map(|message| message.waited_ms).collect()
        };
        gateway.now_ms = 10_000;
        gateway.push(LinkClient(1), &[1]).unwrap();
        gateway.now_ms = 10_020;
        gateway.push(LinkClient(2), &[1]).unwrap();
        // The first piece is lost.
        gateway.poll(10_025, &mut LinkStats::default(), |_| ());
        assert_eq!(gateway.round_trip_ms, None);
        let again = 10_025 + settings.resend_after_ms;
        let carried = carry((&mut gateway, again), (&mut node, ahead_ms));
        assert_eq!(waits(carried), [275, 255]);
        gateway.push(LinkClient(1), &[1]).unwrap();
        let acknowledged_ms = ahead_ms + settings.acknowledge_after_ms;
        carry((&mut node, acknowledged_ms), (&mut gateway, again + 22));
        // The acknowledgement of a repeated message measures nothing.
        assert_eq!(gateway.round_trip_ms, None);
        let carried = carry((&mut gateway, again + 4_000), (&mut node, ahead_ms + 4_000));
        assert_eq!(waits(carried), [WAITED_MS_MAX]);
        carry((&mut node, ahead_ms + 4_001), (&mut gateway, again + 4_006));
        assert_eq!(gateway.round_trip_ms, Some(6));
    }

    #[test]
    fn messages_for_a_client_are_near_to_each_other() {
        let settings = LinkSettings {
            piece_bytes: 400,
            ..LinkSettings::default()
        };
        let mut node = PeerLink::new(1, 2, settings);
        for client in 0..4 {
            node.push(LinkClient(client), &[1; 100]).unwrap();
            node.push_unreliable(LinkClient(client), &[2; 50]);
        }
        let mut pieces = Vec::new();
        node.poll(0, &mut LinkStats::default(), |piece| pieces.push(piece));
        let entries = pieces.iter().map(|piece| read_piece(piece).unwrap().1);
        let clients: Vec<Vec<_>> = entries
            .map(|entries| {
                entries
                    .iter()
                    .map(|it| (it.client.0, it.is_reliable))
                    .collect()
            })
            .collect();
        let both = |client| [(client, true), (client, false)];
        assert_eq!(
            clients,
            [[both(0), both(1)].concat(), [both(2), both(3)].concat()]
        );
        assert!(node.unreliable.is_empty());
        // Without room in the window, reliable messages wait, and unreliable ones do not.
        node.sent_bytes = settings.window_bytes;
        node.push(LinkClient(0), &[1]).unwrap();
        node.push_unreliable(LinkClient(0), &[2]);
        pieces.clear();
        node.poll(1, &mut LinkStats::default(), |piece| pieces.push(piece));
        let (_, entries) = read_piece(&pieces[0]).unwrap();
        assert_eq!(
            (pieces.len(), entries.len(), entries[0].is_reliable),
            (1, 1, false)
        );
    }

    #[test]
    fn acknowledgement_waits_for_a_piece_unless_it_is_measured() {
        let settings = LinkSettings::default();
        let mut gateway = PeerLink::new(1, 2, settings);
        let mut node = PeerLink::new(2, 1, settings);
        let unacknowledged = |link: &PeerLink| link.kept.len();
        let pieces = |link: &mut PeerLink, now_ms: u64| {
            let mut stats = LinkStats::default();
            link.poll(now_ms, &mut stats, |_| ());
            stats.pieces_sent
        };
        // The first message measures the round trip.
        gateway.push(LinkClient(1), &[1]).unwrap();
        carry((&mut gateway, 100), (&mut node, 100));
        carry((&mut node, 101), (&mut gateway, 101));
        assert_eq!(unacknowledged(&gateway), 0);
        // The next ones do not. They are acknowledged together after a while.
        for now_ms in [110, 114, 118] {
            gateway.push(LinkClient(1), &[1]).unwrap();
            carry((&mut gateway, now_ms), (&mut node, now_ms));
            assert_eq!(pieces(&mut node, now_ms + 1), 0);
        }
        let due_ms = 110 + settings.acknowledge_after_ms;
        assert_eq!(pieces(&mut node, due_ms - 1), 0);
        carry((&mut node, due_ms), (&mut gateway, due_ms));
        assert_eq!(unacknowledged(&gateway), 0);
        assert_eq!(pieces(&mut node, due_ms + 100), 0);
        // Or at once with a message in the other direction.
        gateway.push(LinkClient(1), &[1]).unwrap();
        carry((&mut gateway, 140), (&mut node, 140));
        node.push_unreliable(LinkClient(1), &[2]);
        carry((&mut node, 141), (&mut gateway, 141));
        assert_eq!(unacknowledged(&gateway), 0);
    }
}
