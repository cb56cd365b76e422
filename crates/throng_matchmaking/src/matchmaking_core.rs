//! All modes together: tickets, proposals, and one heartbeat over all modes.
//!
//! ```text
//! enqueue · cancel · remove_player ──▶ index of parties and players ──▶ one queue per mode
//! run_heartbeat ──▶ each mode in order ──▶ matches ──▶ proposals ──▶ accepted by all ──▶ started
//!                                                     └▶ declined, left, timed out ──▶ back into the queue
//! ```
//! Invariants: a party and a player are in at most one ticket, over all modes, waiting or in a proposal; a refused request
//! changes nothing; the same calls give the same matches. The maps from ids to locations are never iterated. A player who
//! declines, leaves or does not reply in time removes the own party, whose players may not queue for a while. The other
//! parties of the match keep their queue position, and their waiting time includes the time of the proposal.
//!
//! Cost: O(log n) per request; a heartbeat as in `pack/groups.rs` and `rooms/mode.rs`.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use throng_core::memory::MemoryUse;

use super::match_mode::MatchMode;
use super::match_mode_settings::MatchModeSettings;
use super::matches::{HeartbeatOutcome, Match};
use super::mode::ModeError;
use super::pack::backfill::Backfill;
use super::pack::wait_reason::WaitReason;
use super::penalties::Penalties;
use super::proposals::Proposals;
use super::stats::ModeStats;
use super::ticket::{ModeId, Ticket, TicketError, TicketParty, TicketPlayer};

/// The waiting parties of all modes.
#[derive(Clone, Debug, MemoryUse)]
pub struct MatchmakingCore {
    #[memory(each)]
    names: Vec<String>,
    #[memory(each)]
    modes: Vec<MatchMode>,
    parties: HashMap<TicketParty, TicketLocation, FixedState>,
    players: HashMap<TicketPlayer, TicketParty, FixedState>,
    proposals: Proposals,
    penalties: Penalties,
    /// The tick of the latest heartbeat or acceptance.
    now_tick: u64,
    next_match: u64,
}

/// Where a party's ticket is.
#[derive(Clone, Copy, Debug)]
enum TicketLocation {
    Waiting { mode: ModeId, slot: u32 },
    Proposed { id: u64 },
}

impl MatchmakingCore {
    /// Creates the modes, in this order; their ids count from 0. A tick lasts `1 / tick_hz` seconds.
    ///
    /// # Errors
    /// [`ModeError`] when a mode's settings are out of range or two have the same name.
    pub fn new(modes: &[MatchModeSettings], tick_hz: f64) -> Result<Self, ModeError> {
        if modes.len() > usize::from(u16::MAX) + 1 {
            return Err(ModeError::TooManyModes(modes.len()));
        }
        let mut names: Vec<String> = Vec::new();
        let mut opened = Vec::new();
        for (id, mode) in modes.iter().enumerate() {
            opened.push(MatchMode::new(ModeId(id as u16), mode, tick_hz)?);
            if names.iter().any(|known| known == mode.name()) {
                return Err(ModeError::DuplicateName(mode.name().to_owned()));
            }
            names.push(mode.name().to_owned());
        }
        Ok(Self {
            names,
            modes: opened,
            parties: HashMap::default(),
            players: HashMap::default(),
            proposals: Proposals::default(),
            penalties: Penalties::default(),
            now_tick: 0,
            next_match: 0,
        })
    }

    /// The mode of this name. O(modes).
    #[must_use]
    pub fn mode_by_name(&self, name: &str) -> Option<ModeId> {
        self.names
            .iter()
            .position(|known| known == name)
            .map(|at| ModeId(at as u16))
    }

    /// The modes' names, by id.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The running modes, by id.
    #[must_use]
    pub fn modes(&self) -> &[MatchMode] {
        &self.modes
    }

    /// The counters of a mode. O(1).
    #[must_use]
    pub fn stats(&self, mode: ModeId) -> Option<&ModeStats> {
        self.modes.get(usize::from(mode.0)).map(MatchMode::stats)
    }

    /// The number of waiting parties, those in proposals included, over all modes. O(1).
    #[must_use]
    pub fn waiting_parties(&self) -> usize {
        self.parties.len()
    }

    /// The number of waiting players, those in proposals included, over all modes. O(1).
    #[must_use]
    pub fn waiting_players(&self) -> usize {
        self.players.len()
    }

    /// The ticket of a waiting party. O(1), or O(parties) in a proposal.
    #[must_use]
    pub fn ticket(&self, party: impl Into<TicketParty>) -> Option<&Ticket> {
        let party = party.into();
        match *self.parties.get(&party)? {
            TicketLocation::Waiting { mode, slot } => {
                self.modes.get(usize::from(mode.0))?.queue().ticket(slot)
            }
            TicketLocation::Proposed { id } => {
                let groups = &self.proposals.get(id)?.match_info.groups;
                groups.iter().flatten().find(|ticket| ticket.party == party)
            }
        }
    }

    /// The waiting party of a player. O(1).
    #[must_use]
    pub fn party_of(&self, player: impl Into<TicketPlayer>) -> Option<TicketParty> {
        let player = player.into();
        self.players.get(&player).copied()
    }

    /// The match that is proposed to a player. O(1).
    #[must_use]
    pub fn proposed_match(&self, player: impl Into<TicketPlayer>) -> Option<&Match> {
        let player = player.into();
        let TicketLocation::Proposed { id } = *self.parties.get(&self.party_of(player)?)? else {
            return None;
        };
        self.proposals.get(id).map(|proposal| &proposal.match_info)
    }

    /// Queues a party; its members no longer watch a room. O(size · modes + log n).
    ///
    /// # Errors
    /// [`TicketError`] when the ticket is not valid for its mode, the party or a member waits already, or the
    /// mode's queue is full. Nothing is changed then.
    pub fn enqueue(&mut self, ticket: Ticket) -> Result<(), TicketError> {
        let (party, id, modes) = (ticket.party, ticket.mode, self.modes.len());
        let mode = self.modes.get_mut(usize::from(id.0));
        let mode = mode.ok_or(TicketError::UnknownMode {
            party,
            mode: id,
            modes,
        })?;
        ticket.check(mode.tick_settings().party_size_max)?;
        if self.parties.contains_key(&party) {
            return Err(TicketError::PartyAlreadyQueued { party });
        }
        for &player in &ticket.members {
            if let Some(&queued_in) = self.players.get(&player) {
                return Err(TicketError::PlayerAlreadyQueued {
                    party,
                    player,
                    queued_in,
                });
            }
            if let Some(until_tick) = self.penalties.until_tick(player) {
                return Err(TicketError::DeclinePenalty {
                    party,
                    player,
                    until_tick,
                });
            }
        }
        let tickets_max = mode.tick_settings().tickets_max;
        if mode.queue().len() as u64 + mode.stats().proposed >= u64::from(tickets_max) {
            mode.stats_mut().refused += 1;
            return Err(TicketError::QueueFull { party, tickets_max });
        }
        for &player in &ticket.members {
            self.stop_spectating(player);
        }
        let mode = &mut self.modes[usize::from(id.0)];
        self.players
            .extend(ticket.members.iter().map(|&player| (player, party)));
        let slot = mode.insert(ticket);
        self.parties
            .insert(party, TicketLocation::Waiting { mode: id, slot });
        mode.stats_mut().queued += 1;
        Ok(())
    }

    /// Removes a party from its queue or its proposed match. O(log n), or O(players of the match).
    ///
    /// # Errors
    /// [`TicketError::NotQueued`].
    pub fn cancel(&mut self, party: impl Into<TicketParty>) -> Result<Ticket, TicketError> {
        let party = party.into();
        let missing = TicketError::NotQueued { party };
        let ticket = match self.parties.get(&party) {
            Some(&TicketLocation::Waiting { mode, slot }) => {
                self.modes[usize::from(mode.0)].remove(slot)
            }
            Some(&TicketLocation::Proposed { id }) => {
                let gone = self.dissolve(id, |ticket| ticket.party == party);
                gone.into_iter().next()
            }
            None => None,
        };
        let ticket = ticket.ok_or(missing)?;
        self.modes[usize::from(ticket.mode.0)].stats_mut().cancelled += 1;
        self.remove_from_index(&ticket);
        Ok(ticket)
    }

    /// Removes a party at the request of `player`, who must be a member. Cost as in [`cancel`](Self::cancel).
    ///
    /// # Errors
    /// [`TicketError::NotQueued`], [`TicketError::NotAMember`].
    pub fn cancel_by_member(
        &mut self,
        party: impl Into<TicketParty>,
        player: impl Into<TicketPlayer>,
    ) -> Result<Ticket, TicketError> {
        let (party, player) = (party.into(), player.into());
        let ticket = self.ticket(party).ok_or(TicketError::NotQueued { party })?;
        if !ticket.members.contains(&player) {
            return Err(TicketError::NotAMember { party, player });
        }
        self.cancel(party)
    }

    /// Cancels and returns the ticket of a player who leaves, since a party is never split; also frees a spectator seat
    /// of the player. Cost as in [`cancel`](Self::cancel).
    pub fn remove_player(&mut self, player: impl Into<TicketPlayer>) -> Option<Ticket> {
        let player = player.into();
        self.stop_spectating(player);
        let party = self.party_of(player)?;
        self.cancel(party).ok()
    }

    /// Accepts the proposed match of a player. Returns the match if it starts now, at `now_tick`.
    /// O(players of the match).
    ///
    /// # Errors
    /// [`TicketError::NoProposedMatch`].
    pub fn accept(
        &mut self,
        player: impl Into<TicketPlayer>,
        now_tick: u64,
    ) -> Result<Option<Match>, TicketError> {
        let player = player.into();
        let nothing = TicketError::NoProposedMatch { player };
        let id = self.proposed_match(player).ok_or(nothing)?.id;
        self.now_tick = self.now_tick.max(now_tick);
        let found = self.proposals.accept(id, player);
        if let Some(found) = &found {
            self.start_match(found, now_tick);
        }
        Ok(found)
    }

    /// Declines the proposed match of a player. This cancels and returns the ticket of the own party, and its players may not
    /// queue for a while, counted from the latest heartbeat or acceptance. The other parties keep waiting as
    /// if there had been no proposal. O(players of the match · log n).
    ///
    /// # Errors
    /// [`TicketError::NoProposedMatch`].
    pub fn decline(&mut self, player: impl Into<TicketPlayer>) -> Result<Ticket, TicketError> {
        let player = player.into();
        let nothing = TicketError::NoProposedMatch { player };
        self.proposed_match(player).ok_or(nothing.clone())?;
        self.remove_player(player).ok_or(nothing)
    }

    /// Lets a player watch the room of a party until its match starts. A player watches at most one room.
    ///
    /// # Errors
    /// [`TicketError::NotQueued`], [`TicketError::PlayerAlreadyQueued`] when the player waits too,
    /// [`TicketError::NoSpectatorSeat`] when four players watch already or the party is in no room (yet).
    pub fn spectate(
        &mut self,
        party: impl Into<TicketParty>,
        player: impl Into<TicketPlayer>,
    ) -> Result<(), TicketError> {
        let (party, player) = (party.into(), player.into());
        if let Some(queued_in) = self.party_of(player) {
            return Err(TicketError::PlayerAlreadyQueued {
                party,
                player,
                queued_in,
            });
        }
        let (at, slot) = match self.parties.get(&party) {
            None => return Err(TicketError::NotQueued { party }),
            Some(&TicketLocation::Waiting { mode, slot }) => (usize::from(mode.0), slot),
            Some(TicketLocation::Proposed { .. }) => {
                return Err(TicketError::NoSpectatorSeat { party });
            }
        };
        match &mut self.modes[at] {
            MatchMode::Rooms(rooms) => rooms.spectate(party, slot, player)?,
            MatchMode::Groups(_) => return Err(TicketError::NoSpectatorSeat { party }),
        }
        self.proposals.stop_spectating(player);
        for (other, mode) in self.modes.iter_mut().enumerate() {
            if other != at {
                mode.stop_spectating(player);
            }
        }
        Ok(())
    }

    /// Removes a player as a spectator; returns whether it was one. O(modes).
    pub fn stop_spectating(&mut self, player: impl Into<TicketPlayer>) -> bool {
        let player = player.into();
        let proposed = self.proposals.stop_spectating(player);
        let modes = self.modes.iter_mut();
        modes.fold(proposed, |seated, mode| {
            mode.stop_spectating(player) || seated
        })
    }

    /// Removes and returns parties that join a running match of a mode of groups at `now_tick`: exactly as many players as are
    /// missing, near it in skill. Empty when there are none. Cost as in `pack/backfill.rs`.
    pub fn backfill(&mut self, mode: ModeId, wanted: &Backfill, now_tick: u64) -> Vec<Ticket> {
        let Some(MatchMode::Groups(groups)) = self.modes.get_mut(usize::from(mode.0)) else {
            return Vec::new();
        };
        let joined = groups.backfill(wanted, now_tick);
        joined
            .iter()
            .for_each(|ticket| self.remove_from_index(ticket));
        joined
    }

    /// Runs one heartbeat over all modes and appends the results to `outcome`. Cost as in `pack/groups.rs` and `rooms/mode.rs`.
    pub fn run_heartbeat(&mut self, now_tick: u64, outcome: &mut HeartbeatOutcome) {
        self.now_tick = self.now_tick.max(now_tick);
        self.penalties.expire(self.now_tick);
        self.expire_proposals(now_tick, &mut outcome.expired);
        let mut found = Vec::new();
        for at in 0..self.modes.len() {
            let expired = outcome.expired.len();
            self.modes[at].run_heartbeat(
                now_tick,
                &mut self.next_match,
                &mut found,
                &mut outcome.expired,
            );
            for ticket in &outcome.expired[expired..] {
                self.parties.remove(&ticket.party);
                for player in &ticket.members {
                    self.players.remove(player);
                }
            }
            let accept_within_ticks = self.modes[at].tick_settings().accept_timeout_ticks;
            for found in found.drain(..) {
                if accept_within_ticks == 0 {
                    self.start_match(&found, now_tick);
                    outcome.matches.push(found);
                } else {
                    outcome.proposed.push(found.clone());
                    self.propose(found, now_tick.saturating_add(accept_within_ticks));
                }
            }
        }
    }

    /// Why a party has no match yet, as of the latest heartbeat; `None` when it is not queued. O(n) in the parties of its mode.
    #[must_use]
    pub fn wait_reason(&self, party: impl Into<TicketParty>) -> Option<WaitReason> {
        let party = party.into();
        match *self.parties.get(&party)? {
            TicketLocation::Waiting { mode, slot } => self
                .modes
                .get(usize::from(mode.0))?
                .wait_reason(slot, self.now_tick),
            TicketLocation::Proposed { id } => {
                let missing = self.proposals.get(id)?.unanswered.len();
                Some(WaitReason::Proposed { id, missing })
            }
        }
    }

    /// Hashes everything that can influence later matches or counters, in a fixed order. O(n).
    pub fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        feed(self.next_match);
        if !self.modes.is_empty() {
            feed(self.now_tick);
            self.penalties.hash_state(feed);
        }
        feed(self.modes.len() as u64);
        for mode in &self.modes {
            mode.hash_state(feed);
        }
        for proposal in self.proposals.iter() {
            feed(proposal.match_info.id);
            feed(proposal.until_tick);
            proposal
                .unanswered
                .iter()
                .for_each(|player| player.hash_state(feed));
            let spectators = proposal.match_info.spectators.iter();
            spectators.for_each(|player| player.hash_state(feed));
            for group in &proposal.match_info.groups {
                group.iter().for_each(|ticket| ticket.hash_state(feed));
            }
        }
    }

    /// Proposes a match to its players.
    fn propose(&mut self, found: Match, until_tick: u64) {
        let id = found.id;
        for ticket in found.groups.iter().flatten() {
            self.parties
                .insert(ticket.party, TicketLocation::Proposed { id });
            self.modes[usize::from(ticket.mode.0)].stats_mut().proposed += 1;
        }
        self.proposals.propose(found, until_tick);
    }

    /// Ends a proposal: its parties wait again, except those that are `out`, which are returned.
    fn dissolve(&mut self, id: u64, out: impl Fn(&Ticket) -> bool) -> Vec<Ticket> {
        let mut gone = Vec::new();
        let Some(proposal) = self.proposals.remove(id) else {
            return gone;
        };
        let mode = &mut self.modes[usize::from(proposal.match_info.mode.0)];
        mode.stats_mut().dissolved += 1;
        mode.stats_mut().spectators_dropped += proposal.match_info.spectators.len() as u64;
        let bar_ticks = mode.tick_settings().decline_penalty_ticks;
        let until_tick = self.now_tick.saturating_add(bar_ticks);
        for ticket in proposal.match_info.groups.into_iter().flatten() {
            mode.stats_mut().proposed -= 1;
            if out(&ticket) {
                let barred = ticket.members.iter().filter(|_| bar_ticks > 0);
                barred.for_each(|&player| self.penalties.add(player, until_tick));
                gone.push(ticket);
                continue;
            }
            let (party, id) = (ticket.party, ticket.mode);
            let slot = mode.insert(ticket);
            self.parties
                .insert(party, TicketLocation::Waiting { mode: id, slot });
        }
        gone
    }

    /// Ends the proposals that timed out: parties with a player who has not replied are removed.
    fn expire_proposals(&mut self, now_tick: u64, expired: &mut Vec<Ticket>) {
        for id in self.proposals.expired(now_tick) {
            let missing = self
                .proposals
                .get(id)
                .map(|proposal| proposal.unanswered.clone());
            let missing = missing.unwrap_or_default();
            let silent =
                |ticket: &Ticket| ticket.members.iter().any(|player| missing.contains(player));
            for ticket in self.dissolve(id, silent) {
                self.modes[usize::from(ticket.mode.0)].stats_mut().expired += 1;
                self.remove_from_index(&ticket);
                expired.push(ticket);
            }
        }
    }

    /// Starts a match: its parties no longer wait.
    fn start_match(&mut self, found: &Match, now_tick: u64) {
        for ticket in found.groups.iter().flatten() {
            let stats = self.modes[usize::from(ticket.mode.0)].stats_mut();
            if let Some(TicketLocation::Proposed { .. }) = self.parties.get(&ticket.party) {
                stats.proposed -= 1;
            }
            self.remove_from_index(ticket);
        }
        self.modes[usize::from(found.mode.0)].record_match(found, now_tick);
    }

    fn remove_from_index(&mut self, ticket: &Ticket) {
        self.parties.remove(&ticket.party);
        for player in &ticket.members {
            self.players.remove(player);
        }
    }
}
