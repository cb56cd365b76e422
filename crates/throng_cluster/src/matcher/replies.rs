//! How a node handles replies about matches, and requests without one.

use super::match_node::{MatchNode, MatchOutput, TicketOutcome, TicketWrite};
use super::requests::{MatchKind, MatchWork};
use crate::node::RequestId;
use crate::request::{ClusterReply, MatchReply, PlayerTravel, RefusedMatch};

impl MatchNode {
    /// The outcome of a request is not known: it may also be executed later. All of them may be repeated.
    pub(super) fn on_unknown(&mut self, work: MatchWork) {
        self.stats.unknown_outcomes += 1;
        let kind = work.kind();
        match work {
            MatchWork::Rejoin(players) => self.rejoins.extend(players),
            // Perhaps it has the role now: it reads that.
            MatchWork::TakeRole(_) => self.free_epoch = None,
            _ => {}
        }
        self.requests.set_next(kind, 0);
    }

    /// There will be no reply to a request, and its outcome is unknown. Without this, the node notices it after the timeout.
    pub fn on_lost_reply(&mut self, id: RequestId) {
        if let Some(work) = self.requests.take(id) {
            self.on_unknown(work);
        }
    }

    /// Handles the reply to a request.
    pub fn on_reply(
        &mut self,
        now_ms: u64,
        id: RequestId,
        reply: ClusterReply,
    ) -> Vec<MatchOutput> {
        let Some(work) = self.requests.take(id) else {
            return Vec::new();
        };
        let ClusterReply::Match(reply) = reply else {
            let kind = work.kind();
            self.on_unknown(work);
            self.requests
                .set_next(kind, now_ms + self.settings.retry_interval_ms);
            return Vec::new();
        };
        match work {
            MatchWork::Ticket => self.on_ticket(&reply),
            MatchWork::ReadRole => self.on_role(now_ms, &reply),
            MatchWork::TakeRole(epoch) => self.on_taken(now_ms, epoch, &reply),
            MatchWork::RenewRole => self.on_renewed(now_ms, &reply),
            MatchWork::Read => self.on_tickets(now_ms, reply),
            MatchWork::Form => self.on_formed(now_ms, &reply),
            MatchWork::Abort | MatchWork::EndTravels | MatchWork::Rejoin(_) => Vec::new(),
            MatchWork::Matches => self.on_matches(now_ms, reply),
            MatchWork::Instance => self.on_instance(now_ms, &reply),
            MatchWork::Travels => self.on_travels(reply),
        }
    }

    fn on_ticket(&mut self, reply: &MatchReply) -> Vec<MatchOutput> {
        let (id, outcome) = match (self.tickets.pop_front(), reply) {
            (Some(TicketWrite::Add(ticket)), MatchReply::Refused(refused)) => {
                (ticket.id, TicketOutcome::Refused(*refused))
            }
            (Some(TicketWrite::Add(ticket)), _) => (ticket.id, TicketOutcome::Added),
            (Some(TicketWrite::Cancel(id)), MatchReply::Refused(RefusedMatch::InMatch)) => {
                (id, TicketOutcome::InMatch)
            }
            (Some(TicketWrite::Cancel(id)), MatchReply::Done) => (id, TicketOutcome::Cancelled),
            _ => return Vec::new(),
        };
        vec![MatchOutput::Ticket(id, outcome)]
    }

    fn on_role(&mut self, now_ms: u64, reply: &MatchReply) -> Vec<MatchOutput> {
        let &MatchReply::Role(owner, epoch, is_held) = reply else {
            return Vec::new();
        };
        if is_held && owner.is_some() && owner == self.run {
            // An earlier request has taken it.
            self.become_matcher(now_ms, epoch);
        } else if is_held {
            let next_ms = now_ms + self.settings.role_interval_ms;
            self.requests.set_next(MatchKind::Role, next_ms);
        } else {
            self.free_epoch = Some(epoch);
        }
        Vec::new()
    }

    fn on_taken(&mut self, now_ms: u64, epoch: u64, reply: &MatchReply) -> Vec<MatchOutput> {
        if *reply == MatchReply::Done {
            self.become_matcher(now_ms, epoch);
        } else {
            let next_ms = now_ms + self.settings.retry_interval_ms;
            self.requests.set_next(MatchKind::Role, next_ms);
        }
        Vec::new()
    }

    fn become_matcher(&mut self, now_ms: u64, epoch: u64) {
        self.stats.roles_taken += 1;
        self.matcher.set_epoch(Some(epoch));
        self.requests.set_next(MatchKind::Read, now_ms);
        let next_ms = now_ms + self.settings.renew_interval_ms;
        self.requests.set_next(MatchKind::Role, next_ms);
    }

    fn on_renewed(&mut self, now_ms: u64, reply: &MatchReply) -> Vec<MatchOutput> {
        if *reply == MatchReply::Done {
            let next_ms = now_ms + self.settings.renew_interval_ms;
            self.requests.set_next(MatchKind::Role, next_ms);
        } else {
            self.lose_role(now_ms);
        }
        Vec::new()
    }

    /// Another node has the role.
    fn lose_role(&mut self, now_ms: u64) {
        self.matcher.set_epoch(None);
        for kind in [
            MatchKind::Role,
            MatchKind::Read,
            MatchKind::Form,
            MatchKind::Abort,
        ] {
            self.requests.cancel(kind);
            self.requests.set_next(kind, now_ms);
        }
        self.tickets
            .retain(|write| !matches!(write, TicketWrite::Reject(_)));
        self.requests.cancel(MatchKind::Ticket);
    }

    fn on_tickets(&mut self, now_ms: u64, reply: MatchReply) -> Vec<MatchOutput> {
        let MatchReply::Tickets {
            changes,
            revision,
            now_ms: store_now_ms,
        } = reply
        else {
            self.lose_role(now_ms);
            return Vec::new();
        };
        let mut rejected = Vec::new();
        for change in &changes {
            rejected.extend(self.matcher.on_change(change));
        }
        self.matcher.after = revision;
        if changes.len() >= self.settings.read_tickets_max.max(1) {
            self.requests.set_next(MatchKind::Read, now_ms);
        } else {
            let (hosts, settings) = (&self.hosts, &self.settings);
            let expired = self.matcher.find(store_now_ms, now_ms, hosts, settings);
            rejected.extend(expired);
        }
        self.stats.rejected += rejected.len() as u64;
        let rejected = rejected.into_iter().map(TicketWrite::Reject);
        self.tickets.extend(rejected);
        Vec::new()
    }

    fn on_formed(&mut self, now_ms: u64, reply: &MatchReply) -> Vec<MatchOutput> {
        match reply {
            MatchReply::Done => {
                self.stats.formed += 1;
                let node = self.matcher.on_formed();
                let own = self.run.map(|run| run.node);
                match node.filter(|node| Some(node.node) != own) {
                    Some(node) => return vec![MatchOutput::Wake(node.node)],
                    None => self.requests.set_next(MatchKind::Matches, now_ms),
                }
            }
            MatchReply::Unavailable(missing) => {
                self.stats.unavailable += 1;
                self.matcher.on_unavailable(missing);
            }
            MatchReply::Refused(RefusedMatch::HostLate) => {
                self.stats.host_late += 1;
                let (hosts, settings) = (&self.hosts, &self.settings);
                self.matcher.on_host_late(now_ms, hosts, settings);
            }
            _ => self.lose_role(now_ms),
        }
        Vec::new()
    }

    fn on_matches(&mut self, now_ms: u64, reply: MatchReply) -> Vec<MatchOutput> {
        let MatchReply::Matches(entries) = reply else {
            return Vec::new();
        };
        let new = self.instances.on_list(now_ms, entries);
        self.stats.opened += new.len() as u64;
        new.into_iter().map(MatchOutput::Open).collect()
    }

    fn on_instance(&mut self, now_ms: u64, reply: &MatchReply) -> Vec<MatchOutput> {
        // Longer than a list of matches can be on its way.
        let known_until_ms = now_ms + 4 * self.settings.request_timeout_ms;
        if *reply == MatchReply::Done {
            if self.instances.on_written(known_until_ms).is_some() {
                self.requests.set_next(MatchKind::Travels, now_ms);
            }
            return Vec::new();
        }
        let over = self.instances.on_refused(known_until_ms);
        over.into_iter().map(MatchOutput::Close).collect()
    }

    fn on_travels(&mut self, reply: MatchReply) -> Vec<MatchOutput> {
        let MatchReply::Travels(travels) = reply else {
            return Vec::new();
        };
        let mut outputs = Vec::new();
        let mut arrived = std::collections::BTreeMap::new();
        for travel in travels {
            let PlayerTravel { player, goal, to } = &travel;
            if to.is_some() {
                self.stats.moves += 1;
                outputs.push(MatchOutput::Move(travel));
                continue;
            }
            if self.arrived.get(player) != Some(goal) {
                outputs.push(MatchOutput::Arrived(*player, goal.clone()));
            }
            arrived.insert(*player, travel.goal);
        }
        // Those that are not listed any more are known to the store.
        self.arrived = arrived;
        outputs
    }
}
