//! Requests of parties and players, and the matchmaker's messages.

use bevy_ecs::prelude::*;

use crate::matchmaking::{Backfill, Match, ModeId, Ticket, TicketError, TicketParty, TicketPlayer};

/// The ticket of a party that is an entity: inserting it queues the party, removing or despawning it cancels. That is the
/// same as writing the messages, with the same replies: a party that is not queued cannot cancel. To
/// change a ticket, remove it in one tick and insert another in the next.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::matchmaking::PartyTicket;
/// use throng::world::PartyId;
///
/// /// On the entity of the party's leader. Removing the component cancels.
/// fn queue(leader: Entity, commands: &mut Commands) {
///     let ticket = Ticket::new(PartyId(3), [PlayerId(7), PlayerId(8)]);
///     commands.entity(leader).insert(PartyTicket(ticket));
/// }
/// ```
#[derive(Component, Clone, Debug, PartialEq, Eq)]
#[component(immutable)]
pub struct PartyTicket(pub Ticket);

/// Request: queue a party. Answered in the same tick by [`TicketQueued`] or [`TicketRefused`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::world::PartyId;
///
/// fn queue(mut requests: MessageWriter<QueueRequest>) {
///     let ticket = Ticket::new(PartyId(3), [PlayerId(7), PlayerId(8)]);
///     requests.write(QueueRequest { ticket });
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct QueueRequest {
    /// Its ticket. A `since_tick` in the future counts as now.
    pub ticket: Ticket,
}

/// Request: remove a party from the queue. Answered in the same tick by [`TicketCancelled`] or [`TicketRefused`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::matchmaking::CancelRequest;
/// use throng::world::PartyId;
///
/// fn cancel(mut requests: MessageWriter<CancelRequest>) {
///     requests.write(CancelRequest { party: PartyId(3).into(), player: None });
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelRequest {
    /// The party to remove.
    pub party: TicketParty,
    /// The player who requests it, and must be a member; `None` for a request of the server itself.
    pub player: Option<TicketPlayer>,
}

/// A player accepts or declines a proposed match. Declining cancels the party's ticket and is
/// answered by [`TicketCancelled`]; the last acceptance by [`MatchFormed`], both in the same tick. A response
/// that comes too late is counted and otherwise ignored.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::matchmaking::MatchResponse;
///
/// fn accept(mut responses: MessageWriter<MatchResponse>) {
///     responses.write(MatchResponse { player: PlayerId(7).into(), accept: true });
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchResponse {
    /// The player, a member of a party of the match.
    pub player: TicketPlayer,
    /// Whether the player accepts.
    pub accept: bool,
}

/// Request: a player watches the room of a party, or stops watching. A refused request is counted and
/// otherwise ignored.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::matchmaking::SpectateRequest;
/// use throng::world::PartyId;
///
/// fn watch(mut requests: MessageWriter<SpectateRequest>) {
///     requests.write(SpectateRequest { player: PlayerId(9).into(), party: Some(PartyId(3).into()) });
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpectateRequest {
    /// The spectator.
    pub player: TicketPlayer,
    /// The party whose room is watched; `None` to stop watching.
    pub party: Option<TicketParty>,
}

/// Request: find players for a running match. Answered in the same tick by [`BackfillResult`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::matchmaking::{Backfill, BackfillRequest, ModeId};
///
/// /// The first group of a match of the first mode lacks a player. `InstancePlugin` writes such requests itself.
/// fn replace(mut requests: MessageWriter<BackfillRequest>) {
///     let backfill = Backfill { missing: 1, skill: 1_500, ..Backfill::default() };
///     requests.write(BackfillRequest { id: 4, mode: ModeId(0), group: 0, backfill });
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct BackfillRequest {
    /// The id of the running match; repeated in the result.
    pub id: u64,
    /// The mode whose queue is searched.
    pub mode: ModeId,
    /// The group that lacks players, 0 or 1; repeated in the result.
    pub group: usize,
    /// The missing players.
    pub backfill: Backfill,
}

/// The parties that join a running match.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::matchmaking::BackfillResult;
///
/// fn join(mut results: MessageReader<BackfillResult>) {
///     for result in results.read() {
///         println!("{} parties join match {}", result.tickets.len(), result.id);
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct BackfillResult {
    /// The id of the running match, from the request.
    pub id: u64,
    /// The group that they join, 0 or 1.
    pub group: usize,
    /// The parties, which are no longer queued; empty when no set of parties has exactly the missing size.
    pub tickets: Vec<Ticket>,
    /// The objects of their players, in the order of the tickets' members; players without one are left out.
    pub objects: Vec<Entity>,
}

/// A party is queued from this tick on.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::matchmaking::TicketQueued;
///
/// fn report(mut queued: MessageReader<TicketQueued>) {
///     for TicketQueued { ticket } in queued.read() {
///         println!("party {:?} waits with {} players", ticket.party, ticket.size);
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct TicketQueued {
    /// The ticket of the party.
    pub ticket: Ticket,
}

/// A request was refused; the queues are unchanged.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::matchmaking::TicketRefused;
///
/// fn report(mut refused: MessageReader<TicketRefused>) {
///     for TicketRefused { party, error } in refused.read() {
///         println!("party {party:?} is not queued: {error}");
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct TicketRefused {
    /// The party of the request.
    pub party: TicketParty,
    /// Why it was refused.
    pub error: TicketError,
}

/// A party was removed from the queue by a request.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng::matchmaking::TicketCancelled;
///
/// fn log(mut cancelled: MessageReader<TicketCancelled>) {
///     for it in cancelled.read() {
///         println!("{:?} no longer waits for mode {}", it.party, it.mode.0);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketCancelled {
    /// The party.
    pub party: TicketParty,
    /// The mode of its queue.
    pub mode: ModeId,
}

/// A party was removed from the queue because it waited too long, or did not respond to a match in time.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::matchmaking::TicketExpired;
///
/// fn report(mut expired: MessageReader<TicketExpired>) {
///     for expired in expired.read() {
///         println!("no match for party {:?}", expired.party);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketExpired {
    /// The party.
    pub party: TicketParty,
    /// The mode of its queue.
    pub mode: ModeId,
}

/// A match was found and its players have to accept it; in a mode with
/// [`accept_timeout_s`](crate::matchmaking::GroupModeSettings::accept_timeout_s).
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::matchmaking::MatchProposed;
///
/// /// Only of modes that ask players whether they accept; they reply with a `MatchResponse`.
/// fn ask(mut proposed: MessageReader<MatchProposed>) {
///     for MatchProposed { match_info, .. } in proposed.read() {
///         println!("match {} is proposed", match_info.id);
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq)]
pub struct MatchProposed {
    /// The groups that would play.
    pub match_info: Match,
    /// The objects of each group's players, in the order of the tickets' members; players without one are left out.
    pub objects: [Vec<Entity>; 2],
}

/// A match of two groups was formed; their parties are no longer queued.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// fn begin(mut formed: MessageReader<MatchFormed>) {
///     for MatchFormed { match_info, objects } in formed.read() {
///         let [one, other] = objects;
///         println!("match {}: {} against {} objects", match_info.id, one.len(), other.len());
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq)]
pub struct MatchFormed {
    /// The groups, and the quality of the match.
    pub match_info: Match,
    /// The objects of each group's players, in the order of the tickets' members; players without one are left out.
    pub objects: [Vec<Entity>; 2],
}
