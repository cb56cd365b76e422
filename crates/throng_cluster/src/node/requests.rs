//! The pending requests of a node: at most one of each kind.

use throng_core::ids::PlayerId;

use super::RequestId;
use crate::request::{Arrival, ClusterSave};

/// The kinds of requests. Requests of one kind are sent one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Heartbeat,
    /// Saves, hand-offs, releases and logins.
    Write,
    Owner,
    Arrivals,
    Adopt,
    Claim,
    Scene,
    Report,
}

impl RequestKind {
    const COUNT: usize = 8;
}

/// Players that are handed off or released, and the players that are saved with them.
#[derive(Clone, Debug)]
pub(super) struct WrittenGroup {
    /// The players that leave, and the epochs with which this node owns them.
    pub moved: Vec<(PlayerId, u64)>,
    /// All saved players, and their revisions.
    pub saved: Vec<(PlayerId, u64)>,
}

impl WrittenGroup {
    pub fn new(moved: &[ClusterSave], saves: &[ClusterSave]) -> Self {
        let all = moved.iter().chain(saves);
        Self {
            moved: moved.iter().map(|save| (save.player, save.epoch)).collect(),
            saved: all
                .map(|save| (save.player, save.record.revision))
                .collect(),
        }
    }
}

/// What a pending request about scenes does.
#[derive(Clone, Debug)]
pub(super) enum SceneWork {
    /// With the number of scenes.
    Declare(usize),
    SetDraining(bool),
    Read,
    Claim(String, u64),
    GiveUp(String, u64),
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
    /// With the epoch of the node that has not adopted it.
    TakeBack(PlayerId, u64),
    LogIn(PlayerId),
    ReadOwners(Vec<PlayerId>),
    ReadArrivals,
    Adopt(Vec<Arrival>),
    ClaimLate,
    Scene(SceneWork),
    Report,
}

impl RequestWork {
    pub const fn kind(&self) -> RequestKind {
        match self {
            Self::Heartbeat => RequestKind::Heartbeat,
            Self::Save(_)
            | Self::HandOff(_)
            | Self::Release(_)
            | Self::RaiseEpoch(..)
            | Self::TakeBack(..)
            | Self::LogIn(_) => RequestKind::Write,
            Self::ReadOwners(_) => RequestKind::Owner,
            Self::ReadArrivals => RequestKind::Arrivals,
            Self::Adopt(_) => RequestKind::Adopt,
            Self::ClaimLate => RequestKind::Claim,
            Self::Scene(_) => RequestKind::Scene,
            Self::Report => RequestKind::Report,
        }
    }
}

#[derive(Clone, Debug)]
struct PendingRequest {
    id: RequestId,
    sent_ms: u64,
    work: RequestWork,
}

/// The pending requests of a node, and the time before which none of a kind is sent.
#[derive(Clone, Debug)]
pub(super) struct PendingRequests {
    pending: [Option<PendingRequest>; RequestKind::COUNT],
    next_ms: [u64; RequestKind::COUNT],
    last_id: u64,
}

impl PendingRequests {
    pub const fn new() -> Self {
        Self {
            pending: [const { None }; RequestKind::COUNT],
            next_ms: [0; RequestKind::COUNT],
            last_id: 0,
        }
    }

    /// Whether the next request of a kind may be sent now.
    pub const fn is_free(&self, kind: RequestKind, now_ms: u64) -> bool {
        self.pending[kind as usize].is_none() && now_ms >= self.next_ms[kind as usize]
    }

    /// Sends no request of a kind before a time: the store is away.
    pub const fn delay(&mut self, kind: RequestKind, next_ms: u64) {
        self.next_ms[kind as usize] = next_ms;
    }

    /// Registers a request whose kind is free.
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

    /// Removes a request whose reply has arrived, and returns the time when it was sent; `None` if it is not pending.
    pub fn take(&mut self, id: RequestId) -> Option<(u64, RequestWork)> {
        let mut slots = self.pending.iter_mut();
        let slot = slots.find(|slot| slot.as_ref().is_some_and(|pending| pending.id == id))?;
        slot.take().map(|pending| (pending.sent_ms, pending.work))
    }

    /// Whether the pending adoption contains this arrival.
    pub fn adopts(&self, arrival: &Arrival) -> bool {
        let pending = self.pending[RequestKind::Adopt as usize].as_ref();
        let work = pending.map(|pending| &pending.work);
        matches!(work, Some(RequestWork::Adopt(arrivals)) if arrivals.contains(arrival))
    }

    /// The player of a pending login.
    pub fn login(&self) -> Option<PlayerId> {
        match self.pending[RequestKind::Write as usize].as_ref()?.work {
            RequestWork::LogIn(player) => Some(player),
            _ => None,
        }
    }

    /// Removes a player from the pending adoption if its epoch there is not higher than this one. The reply for it is then ignored.
    pub fn cancel_adoption(&mut self, player: PlayerId, epoch: u64) {
        let slot = &mut self.pending[RequestKind::Adopt as usize];
        if let Some(RequestWork::Adopt(arrivals)) = slot.as_mut().map(|pending| &mut pending.work) {
            arrivals.retain(|arrival| arrival.player != player || arrival.epoch > epoch);
        }
    }

    /// Removes and returns the requests that have waited for at least `timeout_ms`.
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
        self.next_ms = [0; RequestKind::COUNT];
    }
}

#[cfg(test)]
mod tests;
