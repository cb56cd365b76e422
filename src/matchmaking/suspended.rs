//! Suspended tickets: parties with a member whose connection is lost.
//!
//! Such a party leaves the queue, so that it cannot be matched with an absent player. When all members are back it queues again and
//! keeps the time that it waited.
//!
//! Invariant: a player is in at most one suspended ticket. A ticket is dropped when the session of the absent member ends. Cost:
//! O(log n) per player.

use std::collections::BTreeMap;

use super::{Ticket, TicketParty, TicketPlayer};
use crate::memory::MemoryUse;
use crate::wire::ClientId;

/// Disconnected players and their suspended tickets.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(super) struct SuspendedTickets {
    /// By the id of the connection, which grows from one to the next.
    disconnected: BTreeMap<TicketPlayer, ClientId>,
    #[memory(each_value)]
    tickets: BTreeMap<TicketParty, Ticket>,
    parties: BTreeMap<TicketPlayer, TicketParty>,
}

impl SuspendedTickets {
    /// A player's connection is lost.
    pub fn on_disconnect(&mut self, player: TicketPlayer, client: ClientId) {
        let lost = self.disconnected.entry(player).or_insert(client);
        *lost = client.max(*lost);
    }

    /// Whether a member of a party is disconnected.
    pub fn has_absent_member(&self, ticket: &Ticket) -> bool {
        let mut members = ticket.members.iter();
        members.any(|member| self.disconnected.contains_key(member))
    }

    /// Stores a ticket until its players are back, and replaces those that any of them had here.
    pub fn suspend(&mut self, ticket: Ticket) {
        for &member in &ticket.members {
            self.remove_by_player(member);
        }
        let party = ticket.party;
        let members = ticket.members.iter();
        self.parties.extend(members.map(|&member| (member, party)));
        self.tickets.insert(party, ticket);
    }

    /// The suspended ticket of a party.
    pub fn get(&self, party: TicketParty) -> Option<&Ticket> {
        self.tickets.get(&party)
    }

    /// A player is back over this connection: returns the party's ticket if no other member is disconnected.
    pub fn resume(&mut self, player: TicketPlayer, client: ClientId) -> Option<Ticket> {
        // It may have been lost again since.
        if self
            .disconnected
            .get(&player)
            .is_none_or(|&lost| lost >= client)
        {
            return None;
        }
        self.disconnected.remove(&player);
        let ticket = self.tickets.get(self.parties.get(&player)?)?;
        if self.has_absent_member(ticket) {
            return None;
        }
        self.remove_by_player(player)
    }

    /// A player's session ended; drops its party's ticket.
    pub fn on_logout(&mut self, player: TicketPlayer, client: ClientId) {
        self.remove_by_player(player);
        if self
            .disconnected
            .get(&player)
            .is_some_and(|&lost| lost <= client)
        {
            self.disconnected.remove(&player);
        }
    }

    /// Removes the ticket of a player's party.
    pub fn remove_by_player(&mut self, player: TicketPlayer) -> Option<Ticket> {
        let ticket = self.tickets.remove(self.parties.get(&player)?)?;
        for member in &ticket.members {
            self.parties.remove(member);
        }
        Some(ticket)
    }

    /// Adds all of it to a hash, as words.
    pub fn hash_state(&self, word: &mut impl FnMut(u64)) {
        for (player, client) in &self.disconnected {
            player.hash_state(word);
            word(u64::from(client.0));
        }
        for (party, ticket) in &self.tickets {
            party.hash_state(word);
            word(u64::from(ticket.mode.0));
            word(ticket.since_tick);
            ticket
                .members
                .iter()
                .for_each(|member| member.hash_state(word));
        }
    }
}
