//! Which request about matches is pending: at most one of each kind.

use throng_core::ids::PlayerId;

use crate::node::RequestId;

/// The lowest id of a request about matches. Ids of a [`ClusterNode`](crate::ClusterNode) are lower.
const FIRST_ID: u64 = 1 << 63;

/// Kinds of requests. Requests of one kind are sent one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchKind {
    /// Adds or cancels the next ticket.
    Ticket,
    /// Reads, takes or renews the role of the matcher.
    Role,
    /// Reads tickets.
    Read,
    /// Forms the next match.
    Form,
    /// Aborts matches of dead nodes.
    Abort,
    /// Reads the matches to open.
    Matches,
    /// Opens, ends or aborts the next match of this node.
    Instance,
    /// Reads the travelling players.
    Travels,
    /// Reports players that have arrived.
    Arrive,
    /// Reports players that return to their match.
    Rejoin,
}

impl MatchKind {
    pub const COUNT: usize = 10;
}

/// The work of a pending request. A request that writes is for the first entry of its queue.
#[derive(Clone, Debug)]
pub(super) enum MatchWork {
    Ticket,
    ReadRole,
    /// The epoch that the role gets.
    TakeRole(u64),
    RenewRole,
    Read,
    Form,
    Abort,
    Matches,
    Instance,
    /// The player after which the list begins.
    Travels(Option<PlayerId>),
    EndTravels,
    Rejoin(Vec<PlayerId>),
}

impl MatchWork {
    pub const fn kind(&self) -> MatchKind {
        match self {
            Self::Ticket => MatchKind::Ticket,
            Self::ReadRole | Self::TakeRole(_) | Self::RenewRole => MatchKind::Role,
            Self::Read => MatchKind::Read,
            Self::Form => MatchKind::Form,
            Self::Abort => MatchKind::Abort,
            Self::Matches => MatchKind::Matches,
            Self::Instance => MatchKind::Instance,
            Self::Travels(_) => MatchKind::Travels,
            Self::EndTravels => MatchKind::Arrive,
            Self::Rejoin(_) => MatchKind::Rejoin,
        }
    }
}

#[derive(Clone, Debug)]
struct PendingMatchRequest {
    id: RequestId,
    sent_ms: u64,
    work: MatchWork,
}

/// The pending requests, and the time at which the next one of each kind may be sent.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingMatchRequests {
    pending: [Option<PendingMatchRequest>; MatchKind::COUNT],
    next_ms: [u64; MatchKind::COUNT],
    last_id: u64,
}

impl PendingMatchRequests {
    /// Whether the next request of a kind may be sent now.
    pub fn is_due(&self, kind: MatchKind, now_ms: u64) -> bool {
        self.pending[kind as usize].is_none() && now_ms >= self.next_ms[kind as usize]
    }

    pub const fn set_next(&mut self, kind: MatchKind, next_ms: u64) {
        self.next_ms[kind as usize] = next_ms;
    }

    /// Adds a request of a kind that is due.
    pub fn send(&mut self, work: MatchWork, now_ms: u64) -> RequestId {
        self.last_id += 1;
        let id = RequestId(FIRST_ID + self.last_id);
        let kind = work.kind();
        self.pending[kind as usize] = Some(PendingMatchRequest {
            id,
            sent_ms: now_ms,
            work,
        });
        id
    }

    /// Removes a request whose reply has arrived; `None` if it is no longer pending.
    pub fn take(&mut self, id: RequestId) -> Option<MatchWork> {
        let mut slots = self.pending.iter_mut();
        let slot = slots.find(|slot| slot.as_ref().is_some_and(|pending| pending.id == id))?;
        slot.take().map(|pending| pending.work)
    }

    /// Removes the requests whose timeout is over.
    pub fn take_overdue(&mut self, now_ms: u64, timeout_ms: u64) -> Vec<MatchWork> {
        let is_overdue =
            |pending: &PendingMatchRequest| now_ms.saturating_sub(pending.sent_ms) >= timeout_ms;
        let slots = self.pending.iter_mut();
        let overdue = slots.filter_map(|slot| slot.take_if(|it| is_overdue(it)));
        overdue.map(|pending| pending.work).collect()
    }

    /// Forgets the pending request of a kind: its reply is ignored.
    pub fn cancel(&mut self, kind: MatchKind) {
        self.pending[kind as usize] = None;
    }

    /// Forgets all requests: their replies are ignored.
    pub fn clear(&mut self) {
        self.pending = Default::default();
        self.next_ms = [0; MatchKind::COUNT];
    }
}
