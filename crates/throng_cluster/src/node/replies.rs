//! How a node handles replies, and requests without a reply.

use throng_core::ids::PlayerId;

use super::held_player::{HeldPlayer, HeldState};
use super::requests::{RequestWork, WrittenGroup};
use super::{ClusterNode, NODE_VALID_MS, NodeOutput, RequestId};
use crate::ids::ClusterRecord;
use crate::request::{Arrival, ClusterReply, RefusedWrite};

/// Maximum number of refused logins that wait to be taken.
const REFUSED_LOGINS_MAX: usize = 4_096;

impl ClusterNode {
    /// Handles a request with an unknown outcome. It may still be executed later.
    pub(super) fn on_unknown(&mut self, work: RequestWork) {
        match work {
            RequestWork::HandOff(group) | RequestWork::Release(group) => {
                self.set_state(group.moved, HeldState::Uncertain);
            }
            RequestWork::RaiseEpoch(player, epoch) => {
                self.set_state((player, epoch), HeldState::Uncertain);
            }
            // Repeat it. A player that was adopted is not listed as an arrival any more, so another read would not find it.
            RequestWork::Adopt(arrivals) => {
                for arrival in arrivals.into_iter().rev() {
                    self.arrivals.push_front(arrival);
                }
            }
            RequestWork::LogIn(player) => {
                self.logins.insert(player, None);
                self.next_arrivals_ms = 0;
            }
            RequestWork::ClaimLate | RequestWork::TakeBack(..) => self.next_arrivals_ms = 0,
            RequestWork::Save(_) => self.next_save_ms = 0,
            // The next list of scenes shows whether a request about scenes was executed.
            RequestWork::Heartbeat
            | RequestWork::ReadOwner(_)
            | RequestWork::ReadArrivals
            | RequestWork::Scene(_) => {}
        }
    }

    /// Sets the state of a player that is held with this epoch. It may have left and come back since a request was sent.
    fn set_state(&mut self, (player, epoch): (PlayerId, u64), state: HeldState) {
        if let Some(held) = self.players.get_mut_at(player, epoch) {
            held.state = state;
        }
    }

    /// Marks the outcome of a request as unknown: there will be no reply. Without this call, that happens after the timeout.
    pub fn on_lost_reply(&mut self, id: RequestId) {
        if let Some((_, work)) = self.requests.take(id) {
            self.stats.unknown_outcomes += 1;
            self.on_unknown(work);
        }
    }

    /// Handles the reply to a request. Returns a wake-up to send, if there is one.
    pub fn on_reply(
        &mut self,
        now_ms: u64,
        id: RequestId,
        reply: ClusterReply,
    ) -> Option<NodeOutput> {
        let (sent_ms, work) = self.requests.take(id)?;
        match work {
            RequestWork::Heartbeat => self.on_heartbeat(sent_ms, &reply),
            RequestWork::Save(saved) => match reply {
                ClusterReply::Done => self.players.mark_saved(&saved),
                ClusterReply::Refused(_) => self.end_run(),
                _ => self.next_save_ms = now_ms + self.settings.busy_read_interval_ms,
            },
            RequestWork::HandOff(group) => return self.on_hand_off(now_ms, &group, &reply),
            RequestWork::Release(group) => self.on_release(now_ms, &group, &reply),
            RequestWork::RaiseEpoch(player, epoch) => match reply {
                ClusterReply::Done => self.go_on((player, epoch), epoch + 1),
                ClusterReply::Refused(_) => self.set_state((player, epoch), HeldState::Checking),
                _ => {}
            },
            RequestWork::TakeBack(player, given) => {
                if reply == ClusterReply::Done {
                    self.stats.taken_back += 1;
                    self.players.remove_moved(player, given);
                    self.next_arrivals_ms = now_ms;
                }
            }
            RequestWork::LogIn(player) => match reply {
                ClusterReply::Done => self.next_arrivals_ms = now_ms,
                // Its row has changed, an earlier request was executed, or the store is away.
                _ => {
                    self.logins.insert(player, None);
                    self.next_login_ms = now_ms + self.settings.busy_read_interval_ms;
                }
            },
            RequestWork::ReadOwner(player) => {
                self.on_login_owner(now_ms, player, &reply);
                return self.on_owner(player, &reply);
            }
            RequestWork::ReadArrivals => {
                if let ClusterReply::Arrivals(arrivals) = reply {
                    if arrivals.len() >= self.settings.claimed_players_max {
                        // Probably there are more to claim.
                        self.next_claim_ms = now_ms;
                    }
                    self.queue_arrivals(&arrivals);
                }
            }
            RequestWork::Adopt(arrivals) => self.on_adopted(now_ms, &arrivals, reply),
            RequestWork::Scene(work) => self.on_scene_reply(now_ms, work, reply),
            RequestWork::ClaimLate => {
                if reply == ClusterReply::Done {
                    self.next_arrivals_ms = now_ms;
                }
            }
        }
        None
    }

    /// Handles the row of a player that logs in.
    fn on_login_owner(&mut self, now_ms: u64, player: PlayerId, reply: &ClusterReply) {
        if self.logins.get(&player) != Some(&None) {
            return;
        }
        match *reply {
            ClusterReply::Owner(None, epoch, _) => _ = self.logins.insert(player, Some(epoch)),
            // The player is unknown.
            ClusterReply::Refused(_) => _ = self.logins.insert(player, Some(0)),
            ClusterReply::Owner(Some(owner), epoch, _) => {
                self.logins.remove(&player);
                if owner == self.run {
                    // An earlier request was executed.
                    self.next_arrivals_ms = now_ms;
                    return;
                }
                if owner.node != self.run.node {
                    // The gateway of its client has no route to it, for example after a restart of the gateway.
                    self.route_to(player, epoch, owner.node);
                }
                if self.refused_logins.len() < REFUSED_LOGINS_MAX {
                    let refused = (player, RefusedWrite::NotOwner);
                    self.refused_logins.push(refused);
                }
            }
            _ => self.next_login_ms = now_ms + self.settings.busy_read_interval_ms,
        }
    }

    fn on_heartbeat(&mut self, sent_ms: u64, reply: &ClusterReply) {
        match reply {
            ClusterReply::Done => {
                let until_ms = sent_ms + NODE_VALID_MS;
                self.valid_until_ms = self.valid_until_ms.max(until_ms);
            }
            ClusterReply::Refused(refused) => {
                self.is_superseded = *refused == RefusedWrite::NewerRun;
                self.end_run();
            }
            _ => {}
        }
    }

    fn on_hand_off(
        &mut self,
        now_ms: u64,
        group: &WrittenGroup,
        reply: &ClusterReply,
    ) -> Option<NodeOutput> {
        let (player, epoch) = group.moved;
        match reply {
            ClusterReply::Done => {
                self.players.mark_saved(&group.saved);
                let held = self.players.get_mut_at(player, epoch)?;
                let HeldState::Moving(to) = held.state else {
                    return None;
                };
                held.state = HeldState::Moved {
                    epoch: epoch + 1,
                    since_ms: now_ms,
                    next_read_ms: now_ms + self.settings.busy_read_interval_ms,
                };
                self.stats.handed_off += 1;
                self.end_route(player);
                Some(NodeOutput::Wake(to.node))
            }
            ClusterReply::Refused(RefusedWrite::TargetLate) | ClusterReply::Away => {
                // The target may have died, and its scenes have other owners soon.
                self.scenes.read_soon(self.settings.busy_read_interval_ms);
                self.set_state((player, epoch), self.resting_state(player));
                None
            }
            _ => {
                self.end_run();
                None
            }
        }
    }

    fn on_release(&mut self, now_ms: u64, group: &WrittenGroup, reply: &ClusterReply) {
        let (player, epoch) = group.moved;
        match reply {
            ClusterReply::Done => {
                self.players.mark_saved(&group.saved);
                if self.players.get_mut_at(player, epoch).is_some() {
                    self.remove(player);
                    self.stats.released += 1;
                }
            }
            ClusterReply::Away => {
                self.next_release_ms = now_ms + self.settings.busy_read_interval_ms;
            }
            _ => self.end_run(),
        }
    }

    /// The state of a player whose hand-off has failed.
    fn resting_state(&self, player: PlayerId) -> HeldState {
        if self.log_outs.contains(&player) {
            HeldState::Leaving
        } else {
            HeldState::Live
        }
    }

    /// Removes a player that this node does not own any more. If its adoption was repeated because the reply was late, a second reply may still
    /// arrive, which must not bring the player back.
    fn remove(&mut self, player: PlayerId) {
        if let Some(held) = self.players.0.get(&player) {
            let epoch = held.epoch;
            self.requests.cancel_adoption(player, epoch);
            self.arrivals
                .retain(|arrival| arrival.player != player || arrival.epoch > epoch);
        }
        self.end_route(player);
        self.log_outs.remove(&player);
        self.players.remove(player);
    }

    fn end_route(&mut self, player: PlayerId) {
        self.routes.retain(|(_, of), _| *of != player);
    }

    /// Continues with a player that stays on this node, with its new epoch.
    fn go_on(&mut self, (player, epoch): (PlayerId, u64), new_epoch: u64) {
        let state = self.resting_state(player);
        if let Some(held) = self.players.get_mut_at(player, epoch) {
            held.epoch = new_epoch;
            held.state = state;
            self.route(player, new_epoch);
        }
    }

    /// Handles the row of a player that this node holds. Returns a wake-up for the new owner if the hand-off was executed.
    fn on_owner(&mut self, player: PlayerId, reply: &ClusterReply) -> Option<NodeOutput> {
        let ClusterReply::Owner(owner, epoch, is_adopted) = *reply else {
            return None;
        };
        let held = self.players.0.get(&player);
        // The reply to a read before the player was adopted has an older epoch.
        let held = held.filter(|held| epoch > held.epoch)?;
        let is_own = owner == Some(self.run);
        match held.state {
            // An earlier request has raised the epoch. It would be higher if the player had left and come back.
            HeldState::Checking if is_own && epoch == held.epoch + 1 => {
                let held_epoch = held.epoch;
                self.go_on((player, held_epoch), epoch);
            }
            // Its hand-off or log-out was executed. If it is back already, it must be adopted again: it may have changed.
            HeldState::Checking => {
                if owner.is_some() {
                    self.stats.handed_off += 1;
                } else {
                    self.stats.released += 1;
                }
                self.remove(player);
                // The new owner has received no wake-up.
                let waiting = owner.filter(|owner| !is_adopted && owner.node != self.run.node);
                return waiting.map(|owner| NodeOutput::Wake(owner.node));
            }
            HeldState::Moved { epoch: given, .. } if is_own || epoch > given || is_adopted => {
                self.remove(player);
            }
            _ => {}
        }
        None
    }

    fn queue_arrivals(&mut self, arrivals: &[Arrival]) {
        for &arrival in arrivals {
            let held = self.players.0.get(&arrival.player);
            let is_held = held.is_some_and(|held| held.epoch >= arrival.epoch);
            if !is_held && !self.arrivals.contains(&arrival) {
                self.arrivals.push_back(arrival);
            }
        }
    }

    fn on_adopted(&mut self, now_ms: u64, requested: &[Arrival], reply: ClusterReply) {
        match reply {
            ClusterReply::Adopted(adopted) => {
                for (arrival, record) in adopted {
                    // A player that has left since then was removed from the requested ones.
                    if requested.contains(&arrival) {
                        self.adopt(arrival, record);
                    }
                }
            }
            ClusterReply::Away => {
                self.arrivals.extend(requested);
                self.next_arrivals_ms = now_ms + self.settings.busy_read_interval_ms;
            }
            _ => {}
        }
    }

    fn adopt(&mut self, Arrival { player, epoch }: Arrival, record: ClusterRecord) {
        let known = self.players.0.get(&player);
        if known.is_some_and(|held| held.epoch >= epoch) {
            return;
        }
        // Its client logged out during a hand-off that was then taken back.
        let leaves = self.log_outs.contains(&player);
        self.remove(player);
        let held = HeldPlayer::adopted(epoch, record);
        self.players.0.insert(player, held);
        if leaves {
            self.log_out(player);
        }
        self.stats.adopted += 1;
        self.route(player, epoch);
    }
}
