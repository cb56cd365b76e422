//! Queues of clients, and their waiting messages: lists through one slab of nodes, which are reused.

use prefetch_index::prefetch_index;
use smallvec::SmallVec;
use throng_core::memory::MemoryUse;
use throng_protocol::wire::{ClientId, MessageClass};

use super::{DisconnectReason, InboundMessage, InboxLimits, ReceiveError};
use crate::inbox::quota::QuotaBucket;

/// No node.
const NONE: u32 = u32::MAX;

/// A waiting message and the next one of its queue, or a free node and the next free one.
#[derive(Clone, Debug, MemoryUse)]
struct QueueNode {
    message: InboundMessage,
    next: u32,
}

/// The queue of a client.
#[derive(Clone, Debug)]
pub(super) struct ClientQueue {
    head: u32,
    tail: u32,
    /// Number of waiting messages.
    pub waiting: u32,
    /// Number of messages received, modulo 65,536.
    pub received: u16,
    pub is_player: bool,
    /// Whether the tick has handled its connection. Before that no message is taken.
    pub is_acknowledged: bool,
    /// Whether its messages wait until the tick releases them: it comes from another process.
    pub is_held: bool,
    /// Whether it is in the ring of clients with waiting messages.
    pub is_scheduled: bool,
    /// Whether it is in the list of clients with a refused message.
    pub is_in_refused: bool,
    pub is_flooding: bool,
    /// Whether its *Login* or *Resume* found no room. Then its connection is closed, and no more messages are accepted.
    pub is_shut_out: bool,
    /// Set when its connection has ended.
    pub ended: Option<DisconnectReason>,
    pub quota: QuotaBucket,
}

impl ClientQueue {
    /// The empty queue of an unauthenticated client.
    pub const fn new(tokens: QuotaBucket) -> Self {
        Self {
            head: NONE,
            tail: NONE,
            waiting: 0,
            received: 0,
            is_player: false,
            is_acknowledged: false,
            is_held: false,
            is_scheduled: false,
            is_in_refused: false,
            is_flooding: false,
            is_shut_out: false,
            ended: None,
            quota: tokens,
        }
    }
}

/// All waiting messages.
#[derive(Clone, Debug, MemoryUse)]
pub(super) struct Backlog {
    #[memory(each)]
    nodes: Vec<QueueNode>,
    free: u32,
    total: usize,
    of_unauthenticated: usize,
    /// Messages of clients whose connection the tick has not handled.
    of_unknown: usize,
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            free: NONE,
            total: 0,
            of_unauthenticated: 0,
            of_unknown: 0,
        }
    }
}

impl Backlog {
    pub const fn len(&self) -> usize {
        self.total
    }

    pub const fn has_players(&self) -> bool {
        self.total > self.of_unauthenticated + self.of_unknown
    }

    pub const fn has_unauthenticated(&self) -> bool {
        self.of_unauthenticated > 0
    }

    /// Counts messages added to a queue, by its current state.
    pub const fn add(&mut self, lane: &ClientQueue, messages: u32) {
        self.total += messages as usize;
        if !lane.is_acknowledged {
            self.of_unknown += messages as usize;
        } else if !lane.is_player {
            self.of_unauthenticated += messages as usize;
        }
    }

    /// Counts messages removed from a queue.
    pub const fn subtract(&mut self, lane: &ClientQueue, messages: u32) {
        self.total -= messages as usize;
        if !lane.is_acknowledged {
            self.of_unknown -= messages as usize;
        } else if !lane.is_player {
            self.of_unauthenticated -= messages as usize;
        }
    }

    /// Checks the limits of the queue and of all queues: `true` if there is room, or if the queue's oldest input is dropped for it.
    pub fn make_room(
        &mut self,
        limits: &InboxLimits,
        lane: &mut ClientQueue,
        client: ClientId,
        bytes: &[u8],
    ) -> Result<bool, ReceiveError> {
        let waiting = lane.waiting;
        let (lane_max, all, all_max) = if lane.is_player {
            (limits.client_backlog_max, self.total, limits.backlog_max)
        } else {
            let max = limits.unauthenticated_backlog_max.min(limits.backlog_max);
            let all = self.of_unauthenticated + self.of_unknown;
            (limits.unauthenticated_client_backlog_max, all, max)
        };
        let is_lane_full = waiting >= lane_max;
        // A player's first waiting message is always accepted, whatever the others have waiting. So at most one message per player exceeds
        // the total limit.
        let is_first = lane.is_player && waiting == 0;
        let is_full = !is_first && (all >= all_max || self.total >= limits.backlog_max);
        if !is_lane_full && !is_full {
            return Ok(false);
        }
        // A client's older inputs are worth less than its newer ones. Messages of others are never dropped for it.
        if MessageClass::of(bytes) == MessageClass::Input && self.drop_stale(lane) {
            return Ok(true);
        }
        Err(if is_lane_full {
            ReceiveError::ClientQueueFull { client, waiting }
        } else {
            ReceiveError::QueueFull(all)
        })
    }

    /// Drops the oldest waiting input of a queue, if there is one.
    fn drop_stale(&mut self, lane: &mut ClientQueue) -> bool {
        let (mut before, mut at) = (NONE, lane.head);
        while at != NONE {
            let node = &self.nodes[at as usize];
            let next = node.next;
            if MessageClass::of(&node.message.bytes) == MessageClass::Input {
                if before == NONE {
                    lane.head = next;
                } else {
                    self.nodes[before as usize].next = next;
                }
                if lane.tail == at {
                    lane.tail = before;
                }
                lane.waiting -= 1;
                self.subtract(lane, 1);
                self.free_node(at);
                return true;
            }
            (before, at) = (at, next);
        }
        false
    }

    /// Appends a message to its queue.
    pub fn push(&mut self, lane: &mut ClientQueue, message: InboundMessage) {
        let node = QueueNode {
            message,
            next: NONE,
        };
        let place = if self.free == NONE {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        } else {
            let place = self.free;
            self.free = self.nodes[place as usize].next;
            self.nodes[place as usize] = node;
            place
        };
        if lane.tail == NONE {
            lane.head = place;
        } else {
            self.nodes[lane.tail as usize].next = place;
        }
        lane.tail = place;
        lane.waiting += 1;
        self.add(lane, 1);
    }

    /// Prefetches a queue's oldest message.
    #[inline]
    pub fn prefetch(&self, lane: &ClientQueue) {
        if lane.head != NONE {
            prefetch_index(&self.nodes, lane.head as usize);
        }
    }

    /// Takes a queue's oldest message.
    pub fn pop(&mut self, lane: &mut ClientQueue) -> Option<InboundMessage> {
        let place = lane.head;
        let node = self.nodes.get_mut(place as usize)?;
        let message = InboundMessage {
            bytes: std::mem::take(&mut node.message.bytes),
            ..node.message
        };
        lane.head = node.next;
        if lane.head == NONE {
            lane.tail = NONE;
        }
        lane.waiting -= 1;
        self.subtract(lane, 1);
        self.free_node(place);
        Some(message)
    }

    /// Drops all waiting messages of a removed queue.
    pub fn clear_client(&mut self, lane: &ClientQueue) {
        let mut at = lane.head;
        while at != NONE {
            let next = self.nodes[at as usize].next;
            self.free_node(at);
            at = next;
        }
        self.subtract(lane, lane.waiting);
    }

    /// The messages of a queue, oldest first.
    pub fn messages(&self, lane: &ClientQueue) -> impl Iterator<Item = &InboundMessage> {
        let node = |at: u32| self.nodes.get(at as usize);
        let all = std::iter::successors(node(lane.head), move |before| node(before.next));
        all.map(|node| &node.message)
    }

    fn free_node(&mut self, place: u32) {
        let node = &mut self.nodes[place as usize];
        // Frees the bytes of a long message; most are short and stored in the node.
        node.message.bytes = SmallVec::new();
        node.next = self.free;
        self.free = place;
    }
}
