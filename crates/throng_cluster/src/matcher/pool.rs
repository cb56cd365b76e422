//! The waiting tickets, in the memory of the matcher.

use std::collections::BTreeMap;

use throng_core::ids::PartyId;
use throng_matchmaking::{
    HeartbeatOutcome, MatchmakingCore, ModeError, ModeId, Ticket, TicketError, TicketParty,
    TicketPreferences,
};

use super::settings::ClusterModeSettings;
use crate::request::{ClusterTicket, TicketId};

/// A tick of the matchmaking, in milliseconds of the store.
const TICK_MS: u64 = 50;

/// The two sides of a match that was found.
#[derive(Clone, Debug)]
pub(super) struct PooledMatch {
    pub mode: ModeId,
    pub sides: [Vec<(TicketId, Ticket)>; 2],
}

/// The waiting tickets. A ticket of a match that was found stays known until it is removed or put back.
#[derive(Clone, Debug)]
pub(super) struct TicketPool {
    core: MatchmakingCore,
    /// Without tickets.
    empty: MatchmakingCore,
    parties: BTreeMap<TicketId, PartyId>,
    tickets: BTreeMap<PartyId, TicketId>,
    last_party: u32,
}

impl TicketPool {
    pub fn new(modes: &[ClusterModeSettings]) -> Result<Self, ModeError> {
        let tick_hz = 1_000.0 / TICK_MS as f64;
        let modes: Vec<_> = modes.iter().map(|mode| mode.mode.clone()).collect();
        let core = MatchmakingCore::new(&modes, tick_hz)?;
        for mode in core.modes() {
            let ticks = mode.tick_settings().accept_timeout_ticks;
            if ticks > 0 {
                return Err(ModeError::Range {
                    mode: core.names().join(", "),
                    field: "accept_timeout_s",
                    low: 0.0,
                    high: 0.0,
                    found: (ticks * TICK_MS) as f64 / 1_000.0,
                });
            }
        }
        Ok(Self {
            empty: core.clone(),
            core,
            parties: BTreeMap::new(),
            tickets: BTreeMap::new(),
            last_party: 0,
        })
    }

    pub fn clear(&mut self) {
        self.core = self.empty.clone();
        self.parties.clear();
        self.tickets.clear();
    }

    pub fn name(&self, mode: ModeId) -> &str {
        let name = self.core.names().get(usize::from(mode.0));
        name.map_or("", String::as_str)
    }

    pub fn knows(&self, id: TicketId) -> bool {
        self.parties.contains_key(&id)
    }

    /// The number of waiting tickets, without those of matches that were found.
    pub fn waiting(&self) -> usize {
        self.core.waiting_parties()
    }

    /// Whether a ticket fits its mode.
    pub fn check(&self, ticket: &ClusterTicket) -> Result<(), TicketError> {
        let (converted, mode) = (self.convert(PartyId(0), ticket, 0), ticket.mode.as_str());
        let mode = self.core.mode_by_name(mode).unwrap_or(ModeId(u16::MAX));
        let settings = self.core.modes().get(usize::from(mode.0));
        let settings = settings.ok_or(TicketError::UnknownMode {
            party: converted.party,
            mode,
            modes: self.core.modes().len(),
        })?;
        converted.check(settings.tick_settings().party_size_max)
    }

    /// Adds a ticket that is not known.
    pub fn insert(&mut self, ticket: &ClusterTicket, since_ms: u64) -> Result<(), TicketError> {
        let party = self.new_party();
        self.core.enqueue(self.convert(party, ticket, since_ms))?;
        self.parties.insert(ticket.id, party);
        self.tickets.insert(party, ticket.id);
        Ok(())
    }

    /// A number that no ticket has.
    fn new_party(&mut self) -> PartyId {
        loop {
            self.last_party = self.last_party.wrapping_add(1);
            if !self.tickets.contains_key(&PartyId(self.last_party)) {
                return PartyId(self.last_party);
            }
        }
    }

    fn convert(&self, party: PartyId, ticket: &ClusterTicket, since_ms: u64) -> Ticket {
        let rating = &ticket.rating;
        let mode = self.core.mode_by_name(&ticket.mode);
        let preferences = TicketPreferences {
            avoid: rating
                .avoid
                .iter()
                .take(throng_matchmaking::AVOIDED_MAX)
                .map(|player| (*player).into())
                .collect(),
            regions: rating.regions,
            roles: rating.roles,
        };
        Ticket::new(party, ticket.members.iter().map(|member| member.player))
            .in_mode(mode.unwrap_or(ModeId(u16::MAX)))
            .power(rating.power)
            .skill(rating.skill)
            .level(rating.level)
            .leader_strength(rating.leader_strength)
            .waiting_since(since_ms / TICK_MS)
            .preferences(preferences)
    }

    /// Removes a ticket.
    pub fn remove(&mut self, id: TicketId) {
        if let Some(party) = self.parties.remove(&id) {
            self.tickets.remove(&party);
            // It is in no queue if it was found.
            let _ = self.core.cancel(party);
        }
    }

    /// Makes a ticket of a match that was found wait again. Its waiting time continues.
    pub fn put_back(&mut self, id: TicketId, ticket: Ticket) {
        if self.core.enqueue(ticket).is_err() {
            self.remove(id);
        }
    }

    /// Searches for matches at a time of the store. Returns them, and the tickets whose waiting time is over.
    pub fn find(&mut self, now_ms: u64) -> (Vec<PooledMatch>, Vec<TicketId>) {
        let mut outcome = HeartbeatOutcome::default();
        self.core.run_heartbeat(now_ms / TICK_MS, &mut outcome);
        let id_of = |party: TicketParty| {
            let party = party.real()?;
            self.tickets.get(&party).copied()
        };
        let side = |tickets: Vec<Ticket>| {
            let tickets = tickets.into_iter();
            tickets.filter_map(|ticket| Some((id_of(ticket.party)?, ticket)))
        };
        let found = outcome.matches.into_iter().map(|found| PooledMatch {
            mode: found.mode,
            sides: found.groups.map(|tickets| side(tickets).collect()),
        });
        let found = found.collect();
        let expired = outcome.expired.iter();
        let expired: Vec<TicketId> = expired.filter_map(|ticket| id_of(ticket.party)).collect();
        for id in &expired {
            self.remove(*id);
        }
        (found, expired)
    }
}

#[cfg(test)]
mod tests {
    use throng_core::ids::PlayerId;
    use throng_matchmaking::{GroupModeSettings, MatchModeSettings};

    use super::*;
    use crate::ids::{ClusterNodeId, NodeRun};
    use crate::request::{TicketHome, TicketMember, TicketRating};

    fn ticket(nth: u64, skill: i32) -> ClusterTicket {
        let run = NodeRun {
            node: ClusterNodeId(1),
            run: 1,
        };
        let home = TicketHome {
            node: ClusterNodeId(1),
            scene: "town".to_owned(),
        };
        ClusterTicket {
            id: TicketId { run, nth },
            mode: "duel".to_owned(),
            members: vec![TicketMember {
                player: PlayerId(nth),
                home,
            }],
            rating: TicketRating {
                skill,
                ..TicketRating::default()
            },
        }
    }

    fn pool() -> TicketPool {
        let duel = GroupModeSettings {
            name: "duel".to_owned(),
            group_size: 1,
            skill_window_start: 100,
            skill_window_widen_per_s: 10,
            expire_after_s: 100.0,
            ..GroupModeSettings::default()
        };
        TicketPool::new(&[ClusterModeSettings::new(MatchModeSettings::Groups(duel))]).unwrap()
    }

    #[test]
    fn windows_widen_by_the_waiting_time_of_the_rows() {
        let mut pool = pool();
        pool.insert(&ticket(1, 0), 1_000).unwrap();
        pool.insert(&ticket(2, 300), 20_000).unwrap();
        assert!(pool.find(20_900).0.is_empty());
        // 100 + 10 points per second since the first one waits.
        let (found, expired) = pool.find(21_000);
        assert_eq!((found.len(), expired.len()), (1, 0));
        assert!(pool.knows(ticket(1, 0).id) && pool.waiting() == 0);
    }

    #[test]
    fn ticket_that_was_put_back_has_waited_as_long_as_before() {
        let mut pool = pool();
        pool.insert(&ticket(1, 0), 1_000).unwrap();
        pool.insert(&ticket(2, 0), 20_000).unwrap();
        let (mut found, _) = pool.find(20_000);
        for (id, ticket) in found.remove(0).sides.into_iter().flatten() {
            pool.put_back(id, ticket);
        }
        pool.remove(ticket(2, 0).id);
        assert!(pool.find(100_950).1.is_empty());
        assert_eq!(pool.find(101_000).1, [ticket(1, 0).id]);
        assert!(!pool.knows(ticket(1, 0).id));
    }

    #[test]
    fn tickets_that_do_not_fit_are_refused() {
        let pool = pool();
        assert!(pool.check(&ticket(1, 0)).is_ok());
        let mode = "chess".to_owned();
        let unknown = ClusterTicket {
            mode,
            ..ticket(1, 0)
        };
        assert!(matches!(
            pool.check(&unknown),
            Err(TicketError::UnknownMode { .. })
        ));
        let members = [ticket(1, 0).members, ticket(2, 0).members].concat();
        let large = ClusterTicket {
            members,
            ..ticket(1, 0)
        };
        assert!(matches!(
            pool.check(&large),
            Err(TicketError::LargerThanGroup { .. })
        ));
    }

    #[test]
    fn modes_with_an_accept_time_are_refused() {
        let accepting = GroupModeSettings {
            accept_timeout_s: 10.0,
            ..GroupModeSettings::default()
        };
        let modes = [ClusterModeSettings::new(MatchModeSettings::Groups(
            accepting,
        ))];
        let error = TicketPool::new(&modes).unwrap_err().to_string();
        assert!(error.contains("accept_timeout_s"), "{error}");
    }
}
