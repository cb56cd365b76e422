//! How a node handles replies, and requests without a reply.

use std::collections::BTreeMap;

use throng_core::ids::PlayerId;

use super::held_player::{HeldPlayer, HeldState};
use super::requests::{RequestWork, WrittenGroup};
use super::{ClusterNode, NodeOutput, RequestId};
use crate::ids::{ClusterNodeId, ClusterRecord};
use crate::request::{Arrival, ClusterReply, PlayerEntry, QuietNode, RefusedWrite};

/// Players that wait at other nodes to be adopted.
type ArrivalHints = BTreeMap<ClusterNodeId, Vec<Arrival>>;

fn outputs_of(hints: ArrivalHints) -> Vec<NodeOutput> {
    let outputs = hints.into_iter();
    outputs
        .map(|(node, arrivals)| NodeOutput::Arrivals(node, arrivals))
        .collect()
}

/// Maximum number of refused logins that wait to be taken.
const REFUSED_LOGINS_MAX: usize = 4_096;

impl ClusterNode {
    /// Handles a request with an unknown outcome. It may still be executed later.
    pub(super) fn on_unknown(&mut self, work: RequestWork) {
        match work {
            RequestWork::HandOff(group) | RequestWork::Release(group) => {
                for moved in group.moved {
                    self.set_state(moved, HeldState::Uncertain);
                }
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
            RequestWork::ReadArrivals | RequestWork::ClaimLate | RequestWork::TakeBack(..) => {
                self.next_arrivals_ms = 0;
            }
            RequestWork::Save(_) => self.save_again(0),
            // The next list of scenes shows whether a request about scenes was executed.
            RequestWork::Heartbeat
            | RequestWork::ReadOwners(_)
            | RequestWork::Scene(_)
            | RequestWork::Report => {}
        }
    }

    /// Saves all unsaved players from this time on.
    const fn save_again(&mut self, next_ms: u64) {
        (self.next_save_ms, self.saved_up_to) = (next_ms, None);
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

    /// Handles the reply to a request. Returns what has to be sent.
    pub fn on_reply(&mut self, now_ms: u64, id: RequestId, reply: ClusterReply) -> Vec<NodeOutput> {
        let Some((sent_ms, work)) = self.requests.take(id) else {
            return Vec::new();
        };
        if reply == ClusterReply::Away {
            let next_ms = now_ms + self.settings.busy_read_interval_ms;
            self.requests.delay(work.kind(), next_ms);
        }
        match work {
            RequestWork::Heartbeat => self.on_heartbeat(sent_ms, &reply),
            RequestWork::Save(saved) => match reply {
                ClusterReply::Done => self.players.mark_saved(&saved),
                ClusterReply::Refused(_) => self.end_run(),
                _ => self.save_again(now_ms + self.settings.busy_read_interval_ms),
            },
            RequestWork::HandOff(group) => return self.on_hand_off(now_ms, &group, &reply),
            RequestWork::Release(group) => self.on_release(&group, &reply),
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
            RequestWork::ReadOwners(players) => return self.on_owners(now_ms, &players, &reply),
            RequestWork::ReadArrivals => match reply {
                ClusterReply::Arrivals(arrivals) => self.queue_arrivals(&arrivals),
                // Not only after the time without hints.
                ClusterReply::Away => self.next_arrivals_ms = now_ms,
                _ => {}
            },
            RequestWork::Adopt(arrivals) => return self.on_adopted(&arrivals, reply),
            RequestWork::Scene(work) => self.on_scene_reply(now_ms, work, reply),
            // Heartbeats show whether the run has ended, and the next report follows in any case.
            RequestWork::Report => {}
            RequestWork::ClaimLate => {
                if let ClusterReply::Claimed { arrivals, quiet } = reply {
                    return self.on_claimed(now_ms, &arrivals, &quiet);
                }
            }
        }
        Vec::new()
    }

    /// Handles claimed players. Their node is dead, so its scenes are free, too.
    fn on_claimed(
        &mut self,
        now_ms: u64,
        arrivals: &[Arrival],
        quiet: &[QuietNode],
    ) -> Vec<NodeOutput> {
        let mut outputs = Vec::new();
        if self.quiet_nodes.set(quiet) {
            self.scenes.read_soon(self.settings.busy_read_interval_ms);
            outputs.push(NodeOutput::ReadNodes);
        }
        if arrivals.is_empty() {
            return outputs;
        }
        if arrivals.len() >= self.settings.claimed_players_max {
            // Probably there are more to claim.
            self.next_claim_ms = now_ms;
        }
        self.queue_arrivals(arrivals);
        self.scenes.read_soon(self.settings.busy_read_interval_ms);
        outputs.push(NodeOutput::NodeDeath);
        outputs
    }

    /// Handles the rows of players. Unknown players have none.
    fn on_owners(
        &mut self,
        now_ms: u64,
        players: &[PlayerId],
        reply: &ClusterReply,
    ) -> Vec<NodeOutput> {
        let ClusterReply::Players(entries) = reply else {
            self.next_login_ms = now_ms + self.settings.busy_read_interval_ms;
            return Vec::new();
        };
        let mut hints = ArrivalHints::new();
        for &player in players {
            let entry = entries.iter().find(|entry| entry.player == player);
            self.on_login_owner(now_ms, player, entry);
            if let Some(entry) = entry
                && let Some(node) = self.on_owner(entry)
            {
                let epoch = entry.epoch;
                hints
                    .entry(node)
                    .or_default()
                    .push(Arrival { player, epoch });
            }
        }
        outputs_of(hints)
    }

    /// Handles the row of a player that logs in; `None`: the player is unknown.
    fn on_login_owner(&mut self, now_ms: u64, player: PlayerId, entry: Option<&PlayerEntry>) {
        if self.logins.get(&player) != Some(&None) {
            return;
        }
        let epoch = entry.map_or(0, |entry| entry.epoch);
        let Some(owner) = entry.and_then(|entry| entry.owner) else {
            self.logins.insert(player, Some(epoch));
            return;
        };
        self.logins.remove(&player);
        if owner == self.run {
            // An earlier request was executed.
            self.next_arrivals_ms = now_ms;
            return;
        }
        if owner.node != self.run.node {
            // The gateway of its client has no route to it, for example after a restart of the gateway.
            self.route_to(player, (epoch, owner.node), None);
        }
        if self.refused_logins.len() < REFUSED_LOGINS_MAX {
            let refused = (player, RefusedWrite::NotOwner);
            self.refused_logins.push(refused);
        }
    }

    fn on_heartbeat(&mut self, sent_ms: u64, reply: &ClusterReply) {
        match reply {
            ClusterReply::Done => self.validity.on_heartbeat(sent_ms),
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
    ) -> Vec<NodeOutput> {
        match reply {
            ClusterReply::Done => {
                self.players.mark_saved(&group.saved);
                let mut hints = ArrivalHints::new();
                for &(player, epoch) in &group.moved {
                    if let Some(node) = self.set_moved((player, epoch), now_ms) {
                        let epoch = epoch + 1;
                        hints
                            .entry(node)
                            .or_default()
                            .push(Arrival { player, epoch });
                    }
                }
                outputs_of(hints)
            }
            ClusterReply::Refused(RefusedWrite::TargetLate) | ClusterReply::Away => {
                // The target may have died, and its scenes have other owners soon.
                self.scenes.read_soon(self.settings.busy_read_interval_ms);
                for &(player, epoch) in &group.moved {
                    self.set_state((player, epoch), self.resting_state(player));
                }
                Vec::new()
            }
            _ => {
                self.end_run();
                Vec::new()
            }
        }
    }

    /// A hand-off was executed. Returns the new node of the player, unless it has left and come back since then.
    fn set_moved(
        &mut self,
        (player, epoch): (PlayerId, u64),
        now_ms: u64,
    ) -> Option<ClusterNodeId> {
        let held = self.players.get_mut_at(player, epoch)?;
        let (to, frozen_since_ms) = (held.state.target()?, held.frozen_since_ms);
        held.state = HeldState::Moved {
            epoch: epoch + 1,
            since_ms: now_ms,
            next_read_ms: now_ms + self.settings.busy_read_interval_ms,
        };
        self.stats.handed_off += 1;
        self.end_route(player);
        // The new node sends it, too, once it has the player. With this one, clients and their players arrive there at about the same time.
        self.route_to(player, (epoch + 1, to.node), frozen_since_ms);
        Some(to.node)
    }

    fn on_release(&mut self, group: &WrittenGroup, reply: &ClusterReply) {
        match reply {
            ClusterReply::Done => {
                self.players.mark_saved(&group.saved);
                for &(player, epoch) in &group.moved {
                    if self.players.get_mut_at(player, epoch).is_some() {
                        self.remove(player);
                        self.stats.released += 1;
                    }
                }
            }
            ClusterReply::Away => {}
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

    /// Handles the row of a player that this node holds. Returns the node of the new owner if that has not adopted the player.
    fn on_owner(&mut self, entry: &PlayerEntry) -> Option<ClusterNodeId> {
        let (player, owner, epoch) = (entry.player, entry.owner, entry.epoch);
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
                let (new, frozen_since_ms) = (owner.map(|owner| owner.node), held.frozen_since_ms);
                self.remove(player);
                if let Some(node) = new {
                    self.stats.handed_off += 1;
                    self.route_to(player, (epoch, node), frozen_since_ms);
                } else {
                    self.stats.released += 1;
                }
                return new.filter(|node| !entry.is_adopted && *node != self.run.node);
            }
            HeldState::Moved { epoch: given, .. }
                if is_own || epoch > given || entry.is_adopted =>
            {
                self.remove(player);
            }
            _ => {}
        }
        None
    }

    pub(super) fn queue_arrivals(&mut self, arrivals: &[Arrival]) {
        for &arrival in arrivals {
            let held = self.players.0.get(&arrival.player);
            let is_held = held.is_some_and(|held| held.epoch >= arrival.epoch);
            let is_known = self.arrivals.contains(&arrival) || self.requests.adopts(&arrival);
            if !is_held && !is_known {
                self.arrivals.push_back(arrival);
            }
        }
    }

    fn on_adopted(&mut self, requested: &[Arrival], reply: ClusterReply) -> Vec<NodeOutput> {
        match reply {
            ClusterReply::Adopted(adopted) if !adopted.is_empty() => {
                for (arrival, record) in adopted {
                    // A player that has left since then was removed from the requested ones.
                    if requested.contains(&arrival) {
                        self.adopt(arrival, record);
                    }
                }
                return vec![NodeOutput::Adopted];
            }
            ClusterReply::Away => self.arrivals.extend(requested),
            _ => {}
        }
        Vec::new()
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
