//! Which requests of a node are pending: at most one of each kind.

use throng_core::ids::PlayerId;

use super::RequestId;
use super::scenes::SceneWork;
use crate::request::{Arrival, ClusterSave};

/// Kinds of requests. Those of one kind follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Heartbeat,
    /// Changes of players that the node holds, and of their owners.
    Write,
    Owner,
    Arrivals,
    Adopt,
    Claim,
    Scene,
}

impl RequestKind {
    const COUNT: usize = 7;
}

/// A player that is given away, and what is saved with it.
#[derive(Clone, Debug)]
pub(super) struct WrittenGroup {
    /// The player, and the epoch with which this node owns it.
    pub moved: (PlayerId, u64),
    /// All saved players, and their revisions.
    pub saved: Vec<(PlayerId, u64)>,
}

impl WrittenGroup {
    pub fn new(moved: &ClusterSave, saves: &[ClusterSave]) -> Self {
        let all = std::iter::once(moved).chain(saves);
        Self {
            moved: (moved.player, moved.epoch),
            saved: all
                .map(|save| (save.player, save.record.revision))
                .collect(),
        }
    }
}

/// What a pending request does, for its reply.
#[derive(Clone, Debug)]
pub(super) enum RequestWork {
    Heartbeat,
    Save(Vec<(PlayerId, u64)>),
    HandOff(WrittenGroup),
    Release(WrittenGroup),
    /// With the epoch that is raised.
    RaiseEpoch(PlayerId, u64),
    /// With the epoch of the node that it is taken from.
    TakeBack(PlayerId, u64),
    LogIn(PlayerId),
    ReadOwner(PlayerId),
    ReadArrivals,
    Adopt(Vec<Arrival>),
    ClaimLate,
    Scene(SceneWork),
}

impl RequestWork {
    const fn kind(&self) -> RequestKind {
        match self {
            Self::Heartbeat => RequestKind::Heartbeat,
            Self::Save(_)
            | Self::HandOff(_)
            | Self::Release(_)
            | Self::RaiseEpoch(..)
            | Self::TakeBack(..)
            | Self::LogIn(_) => RequestKind::Write,
            Self::ReadOwner(_) => RequestKind::Owner,
            Self::ReadArrivals => RequestKind::Arrivals,
            Self::Adopt(_) => RequestKind::Adopt,
            Self::ClaimLate => RequestKind::Claim,
            Self::Scene(_) => RequestKind::Scene,
        }
    }
}

#[derive(Clone, Debug)]
struct PendingRequest {
    id: RequestId,
    sent_ms: u64,
    work: RequestWork,
}

/// The pending requests of a node.
#[derive(Clone, Debug)]
pub(super) struct PendingRequests {
    pending: [Option<PendingRequest>; RequestKind::COUNT],
    last_id: u64,
}

impl PendingRequests {
    pub const fn new() -> Self {
        Self {
            pending: [const { None }; RequestKind::COUNT],
            last_id: 0,
        }
    }

    pub const fn is_free(&self, kind: RequestKind) -> bool {
        self.pending[kind as usize].is_none()
    }

    /// Notes a request of a kind that is free.
    pub fn send(&mut self, work: RequestWork, now_ms: u64) -> RequestId {
        self.last_id += 1;
        let id = RequestId(self.last_id);
        let kind = work.kind();
        self.pending[kind as usize] = Some(PendingRequest {
            id,
            sent_ms: now_ms,
            work,
        });
        id
    }

    /// Removes a request whose reply has arrived, and returns when it was sent; `None` if it is not pending any more.
    pub fn take(&mut self, id: RequestId) -> Option<(u64, RequestWork)> {
        let mut slots = self.pending.iter_mut();
        let slot = slots.find(|slot| slot.as_ref().is_some_and(|pending| pending.id == id))?;
        slot.take().map(|pending| (pending.sent_ms, pending.work))
    }

    /// Forgets the pending adoption of a player with this epoch or an earlier one: it is ignored in the reply.
    pub fn cancel_adoption(&mut self, player: PlayerId, epoch: u64) {
        let slot = &mut self.pending[RequestKind::Adopt as usize];
        if let Some(RequestWork::Adopt(arrivals)) = slot.as_mut().map(|pending| &mut pending.work) {
            arrivals.retain(|arrival| arrival.player != player || arrival.epoch > epoch);
        }
    }

    /// Removes the requests that wait for longer than this.
    pub fn take_overdue(&mut self, now_ms: u64, timeout_ms: u64) -> Vec<RequestWork> {
        let is_overdue = |pending: &PendingRequest| now_ms - pending.sent_ms >= timeout_ms;
        let overdue = self
            .pending
            .iter_mut()
            .filter_map(|slot| slot.take_if(|it| is_overdue(it)));
        overdue.map(|pending| pending.work).collect()
    }

    /// Forgets all requests: their replies are ignored.
    pub fn clear(&mut self) {
        self.pending = [const { None }; RequestKind::COUNT];
    }
}
