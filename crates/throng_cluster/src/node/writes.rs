//! The writes about the players of a node: saves, hand-offs, log-outs, logins. One is pending at a time.

use throng_core::ids::PlayerId;

use super::held_player::HeldState;
use super::requests::{RequestKind, RequestWork, WrittenGroup};
use super::{ClusterNode, NodeOutput};
use crate::ids::NodeRun;
use crate::request::ClusterRequest;

impl ClusterNode {
    /// Sends the next write about the players of this node. Only one is pending at a time, so each one contains the newest state. Saves and
    /// players that are taken back get every second write: neither they nor the others wait for the end of a long queue.
    pub(super) fn write(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        if !self.requests.is_free(RequestKind::Write, now_ms) {
            return;
        }
        let run = self.run;
        let mut held = self.players.0.values();
        let target = held.find_map(|held| held.state.target());
        let others_first = std::mem::take(&mut self.others_write_first);
        if let Some(player) = self.players.find(|state| state == HeldState::Uncertain) {
            let epoch = self.players.0.get(&player).map_or(0, |held| held.epoch);
            let request = ClusterRequest::RaiseEpoch { run, player, epoch };
            self.send(
                RequestWork::RaiseEpoch(player, epoch),
                request,
                now_ms,
                outputs,
            );
        } else if self
            .players
            .find(|state| state == HeldState::Checking)
            .is_some()
        {
            // Nothing is written before the owner of this player is known.
        } else if !others_first && self.save_or_take_back(now_ms, outputs) {
            self.others_write_first = true;
        } else if let Some(to) = target {
            self.write_hand_off(to, now_ms, outputs);
        } else if let Some(player) = self.players.find(|state| state == HeldState::Leaving) {
            self.write_release(player, now_ms, outputs);
        } else if let Some((player, epoch)) = self.take_login() {
            let request = ClusterRequest::LogIn { run, player, epoch };
            self.send(RequestWork::LogIn(player), request, now_ms, outputs);
        } else {
            self.save_or_take_back(now_ms, outputs);
        }
    }

    /// Saves the next players, or takes one back. `false` if nothing was sent.
    fn save_or_take_back(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) -> bool {
        let run = self.run;
        if now_ms >= self.next_save_ms || self.saved_up_to.is_some() {
            if self.saved_up_to.is_none() {
                self.next_save_ms = now_ms + self.settings.save_interval_ms;
            }
            let after = self.saved_up_to.take();
            let players_max = self.settings.saved_players_max;
            let (saves, last) = self.players.unsaved(after, players_max);
            self.saved_up_to = last;
            if !saves.is_empty() {
                let saved = saves.iter().map(|save| (save.player, save.record.revision));
                let work = RequestWork::Save(saved.collect());
                self.send(work, ClusterRequest::Save { run, saves }, now_ms, outputs);
                return true;
            }
        }
        let Some((player, epoch)) = self.overdue_move(now_ms) else {
            return false;
        };
        // Refused while the target is alive. The next attempt must not delay those of other players.
        self.players.restart_move(player, now_ms);
        let request = ClusterRequest::TakeBack { run, player, epoch };
        let work = RequestWork::TakeBack(player, epoch);
        self.send(work, request, now_ms, outputs);
        true
    }

    /// The next login whose epoch is known.
    fn take_login(&mut self) -> Option<(PlayerId, u64)> {
        let mut logins = self.logins.iter();
        let (player, epoch) = logins.find_map(|(player, epoch)| Some((*player, (*epoch)?)))?;
        self.logins.remove(&player);
        Some((player, epoch))
    }

    /// A player that was handed off at least `take_back_after_ms` ago, and its epoch at the new owner.
    fn overdue_move(&self, now_ms: u64) -> Option<(PlayerId, u64)> {
        let after_ms = self.settings.take_back_after_ms;
        self.players
            .0
            .iter()
            .find_map(|(player, held)| match held.state {
                HeldState::Moved {
                    epoch, since_ms, ..
                } if now_ms >= since_ms + after_ms => Some((*player, epoch)),
                _ => None,
            })
    }

    /// Hands off the first player that moves, and others that move to the same node.
    fn write_hand_off(&mut self, to: NodeRun, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        let players_max = self.settings.handed_off_players_max.max(1);
        let moving = self.players.all(|state| state == HeldState::Moving(to));
        let moving: Vec<PlayerId> = moving.take(players_max).collect();
        let (players, saves) = self.players.joined_saves(&moving);
        let work = RequestWork::HandOff(WrittenGroup::new(&players, &saves));
        let request = ClusterRequest::HandOff {
            run: self.run,
            players,
            to,
            saves,
        };
        self.send(work, request, now_ms, outputs);
    }

    fn write_release(&mut self, player: PlayerId, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        let (mut players, saves) = self.players.joined_saves(&[player]);
        let work = RequestWork::Release(WrittenGroup::new(&players, &saves));
        let Some(player) = players.pop() else {
            return;
        };
        let run = self.run;
        let request = ClusterRequest::Release { run, player, saves };
        self.send(work, request, now_ms, outputs);
    }
}
