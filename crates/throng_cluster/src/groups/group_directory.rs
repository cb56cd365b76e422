//! The state machine of the groups of a node, without a clock or a socket.

use std::collections::{BTreeSet, VecDeque};

use throng_core::ids::PlayerId;

use super::group_event::{GroupEvent, GroupNotChanged};
use super::hint::{hint_from_bytes, hint_to_bytes};
use super::known_groups::KnownGroups;
use super::settings::{GroupSettings, GroupStats};
use crate::ids::NodeRun;
use crate::request::{GroupChange, GroupId, GroupReply, GroupRequest, RefusedGroup};

/// An output of a [`GroupDirectory`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupOutput {
    /// A request to the store, with its number. The reply goes to [`GroupDirectory::on_reply`].
    Store(u64, GroupRequest),
    /// A message to all other nodes. It may be lost.
    Hint(Vec<u8>),
}

/// Kinds of requests. One of each is pending at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupWork {
    Change,
    Read,
    Changes,
}

#[derive(Clone, Debug)]
struct PendingGroupRequest {
    number: u64,
    sent_ms: u64,
    /// The players of a read.
    players: Vec<PlayerId>,
}

#[derive(Clone, Copy, Debug)]
struct WaitingChange {
    player: PlayerId,
    change: GroupChange,
    /// The revision with which it was sent, for repetitions.
    revision: Option<u64>,
}

/// The parties and guilds of the players of a node. It has no clock: all times are those of its caller, in milliseconds of a monotonic clock.
#[derive(Clone, Debug)]
pub struct GroupDirectory {
    settings: GroupSettings,
    run: Option<NodeRun>,
    known: KnownGroups,
    to_read: BTreeSet<PlayerId>,
    waiting: VecDeque<WaitingChange>,
    finished: Vec<GroupEvent>,
    /// All changes up to this revision were found; `None` before the first read.
    after: Option<u64>,
    pending: [Option<PendingGroupRequest>; 3],
    next_ms: [u64; 3],
    last_number: u64,
    stats: GroupStats,
}

impl GroupDirectory {
    /// The groups of a node without players.
    #[must_use]
    pub fn new(settings: GroupSettings) -> Self {
        Self {
            settings,
            run: None,
            known: KnownGroups::default(),
            to_read: BTreeSet::new(),
            waiting: VecDeque::new(),
            finished: Vec::new(),
            after: None,
            pending: [const { None }; 3],
            next_ms: [0; 3],
            last_number: 0,
            stats: GroupStats::default(),
        }
    }

    /// Its counters.
    #[must_use]
    pub const fn stats(&self) -> GroupStats {
        self.stats
    }

    /// Sets the players of the node, in ascending order, each with the run of the node and the epoch of its arrival. Call it once per tick.
    /// O(players).
    pub fn set_players(&mut self, present: impl Iterator<Item = (PlayerId, (u64, u64))> + Clone) {
        self.to_read.extend(self.known.set_players(present));
        if self.known.is_empty() {
            self.after = None;
        }
    }

    /// Changes the group of a player of this node, or removes a player of any node from a group with a member on this node. The outcome follows
    /// as [`GroupEvent::Finished`].
    ///
    /// # Errors
    /// [`GroupNotChanged::NotRunning`] and [`GroupNotChanged::Busy`].
    pub fn change(&mut self, player: PlayerId, change: GroupChange) -> Result<(), GroupNotChanged> {
        self.run.ok_or(GroupNotChanged::NotRunning)?;
        if self.waiting.len() >= self.settings.changes_max {
            return Err(GroupNotChanged::Busy(self.waiting.len()));
        }
        self.waiting.push_back(WaitingChange {
            player,
            change,
            revision: None,
        });
        Ok(())
    }

    /// Takes the events since the last call: first the changes of groups, then the outcomes of requests.
    pub fn take_events(&mut self) -> Vec<GroupEvent> {
        let mut events = self.known.take_events();
        events.append(&mut self.finished);
        events
    }

    /// Reads the changes soon: a hint may be missing.
    pub const fn on_wake(&mut self, now_ms: u64) {
        self.next_ms[GroupWork::Changes as usize] = now_ms;
    }

    /// Handles a message of another node. `false` if it is no hint.
    pub fn receive(&mut self, bytes: &[u8]) -> bool {
        let Some(players) = hint_from_bytes(bytes) else {
            return false;
        };
        self.stats.hints += 1;
        self.read_soon(players);
        true
    }

    fn read_soon(&mut self, players: impl IntoIterator<Item = PlayerId>) {
        let here = players.into_iter();
        let here = here.filter(|player| self.known.is_here(*player));
        self.to_read.extend(here);
    }

    /// Does the work that is due at this time. `run` is the run of the node; with `None`, because the node is paused, nothing happens. Call it at
    /// least once per tick.
    pub fn poll(&mut self, now_ms: u64, run: Option<NodeRun>) -> Vec<GroupOutput> {
        let mut outputs = Vec::new();
        let Some(run) = run else {
            return outputs;
        };
        if self.run != Some(run) {
            self.end_run();
            self.run = Some(run);
        }
        for work in [GroupWork::Change, GroupWork::Read, GroupWork::Changes] {
            let timeout_ms = self.settings.request_timeout_ms;
            let slot = &mut self.pending[work as usize];
            if let Some(lost) = slot.take_if(|it| now_ms >= it.sent_ms + timeout_ms) {
                self.on_unknown(work, lost, now_ms);
            }
        }
        if self.is_due(GroupWork::Change, now_ms)
            && let Some(request) = self.next_change(run)
        {
            self.send(GroupWork::Change, request, now_ms, &mut outputs);
        }
        if self.known.is_empty() {
            return outputs;
        }
        // The players are read after the first revision is known, so that no later change is missed.
        if self.after.is_some() && self.is_due(GroupWork::Read, now_ms) && !self.to_read.is_empty()
        {
            let players: Vec<PlayerId> = (0..self.settings.players_per_read.max(1))
                .map_while(|_| self.to_read.pop_first())
                .collect();
            self.stats.reads += 1;
            let request = GroupRequest::Read { players };
            self.send(GroupWork::Read, request, now_ms, &mut outputs);
        }
        if self.is_due(GroupWork::Changes, now_ms) {
            let interval_ms = self.settings.read_interval_ms;
            self.next_ms[GroupWork::Changes as usize] = now_ms + interval_ms;
            let request = GroupRequest::ReadChanged {
                run,
                after: self.after,
                changes_max: self.settings.changes_per_read.max(1),
            };
            self.send(GroupWork::Changes, request, now_ms, &mut outputs);
        }
        outputs
    }

    fn is_due(&self, work: GroupWork, now_ms: u64) -> bool {
        self.pending[work as usize].is_none() && now_ms >= self.next_ms[work as usize]
    }

    /// Drops the changes of the former run. All groups are read again.
    fn end_run(&mut self) {
        for WaitingChange { player, change, .. } in std::mem::take(&mut self.waiting) {
            let result = Err(GroupNotChanged::NotRunning);
            self.finish(player, change, result);
        }
        self.pending = [const { None }; 3];
        self.next_ms = [0; 3];
        self.to_read = self.known.players().collect();
    }

    fn send(
        &mut self,
        work: GroupWork,
        request: GroupRequest,
        sent_ms: u64,
        outputs: &mut Vec<GroupOutput>,
    ) {
        self.last_number += 1;
        let players = match &request {
            GroupRequest::Read { players } => players.clone(),
            _ => Vec::new(),
        };
        self.pending[work as usize] = Some(PendingGroupRequest {
            number: self.last_number,
            sent_ms,
            players,
        });
        outputs.push(GroupOutput::Store(self.last_number, request));
    }

    /// The next change to write. Changes of unknown players are refused.
    fn next_change(&mut self, run: NodeRun) -> Option<GroupRequest> {
        while let Some(waiting) = self.waiting.front_mut() {
            let WaitingChange { player, change, .. } = *waiting;
            let known = || self.known.revision(player, change.kind());
            waiting.revision = waiting.revision.or_else(known);
            if let Some(revision) = waiting.revision {
                return Some(GroupRequest::Change {
                    run,
                    player,
                    change,
                    revision,
                });
            }
            if self.known.is_here(player) {
                // Its groups are read soon.
                return None;
            }
            self.waiting.pop_front();
            self.finish(player, change, Err(GroupNotChanged::UnknownPlayer));
        }
        None
    }

    fn finish(
        &mut self,
        player: PlayerId,
        change: GroupChange,
        result: Result<Option<GroupId>, GroupNotChanged>,
    ) {
        match result {
            Ok(_) => self.stats.changed += 1,
            Err(_) => self.stats.refused += 1,
        }
        self.finished.push(GroupEvent::Finished {
            player,
            change,
            result,
        });
    }

    /// Repeats a request whose outcome is unknown, or that was not executed.
    fn on_unknown(&mut self, work: GroupWork, lost: PendingGroupRequest, next_ms: u64) {
        self.stats.unknown_outcomes += 1;
        self.read_soon(lost.players);
        self.next_ms[work as usize] = next_ms;
    }

    /// Handles the reply to a request; `None`: the outcome is unknown, or the request was not executed.
    pub fn on_reply(
        &mut self,
        now_ms: u64,
        number: u64,
        reply: Option<GroupReply>,
    ) -> Vec<GroupOutput> {
        let works = [GroupWork::Change, GroupWork::Read, GroupWork::Changes];
        let found = works.into_iter().find_map(|work| {
            let slot = &mut self.pending[work as usize];
            let pending = slot.take_if(|pending| pending.number == number)?;
            Some((work, pending))
        });
        let Some((work, pending)) = found else {
            return Vec::new();
        };
        match (work, reply) {
            // A node that is only late may be alive again after its next heartbeat.
            (_, None | Some(GroupReply::Refused(RefusedGroup::RunEnded))) => {
                let next_ms = now_ms + self.settings.retry_interval_ms;
                self.on_unknown(work, pending, next_ms);
            }
            (GroupWork::Change, Some(reply)) => return self.on_changed(reply),
            (GroupWork::Read, Some(GroupReply::Groups { players, groups })) => {
                self.known.on_read(&pending.players, &players, groups);
            }
            (GroupWork::Changes, Some(GroupReply::ChangedPlayers { players, revision })) => {
                let max = self.settings.changes_per_read.max(1);
                if self.after.is_some_and(|after| revision >= after + max) {
                    self.on_wake(now_ms);
                }
                self.after = Some(revision);
                self.stats.found += players.len() as u64;
                self.read_soon(players);
            }
            _ => {}
        }
        Vec::new()
    }

    fn on_changed(&mut self, reply: GroupReply) -> Vec<GroupOutput> {
        let Some(WaitingChange { player, change, .. }) = self.waiting.pop_front() else {
            return Vec::new();
        };
        self.read_soon([player]);
        match reply {
            GroupReply::Changed(new, others) => {
                self.known.set_player(new);
                self.read_soon(others.iter().copied());
                self.finish(player, change, Ok(new.group));
                let hint = hint_to_bytes([player].into_iter().chain(others));
                vec![GroupOutput::Hint(hint)]
            }
            GroupReply::Refused(refused) => {
                self.finish(player, change, Err(GroupNotChanged::Refused(refused)));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
