//! A party's request for a match, and the reasons for which the queue can refuse it.
//!
//! Tickets hold integers only, so that no power is ever NaN and a replay makes the same matches; [`rounded_power`]
//! converts a power that is a float.

use std::fmt;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use throng_core::ids::{PartyId, PlayerId};
use throng_core::memory::MemoryUse;

/// The largest party: players.
pub const PARTY_SIZE_MAX: u8 = 5;

/// The maximum length of a party's avoid list.
pub const AVOIDED_MAX: usize = 8;

/// The number of roles that a mode can distinguish.
pub const ROLE_COUNT: usize = 4;

/// A mode's index in the list of modes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct ModeId(pub u16);

impl fmt::Display for ModeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A player as tickets identify it.
///
/// The players of a server are [`Real`](Self::Real), whatever their number; no numbers are reserved for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TicketPlayer {
    /// A player of the server, who may have an object and a session.
    Real(PlayerId),
    /// A player of a load test that exists in tickets only: without an object, a session or a [`PlayerId`].
    Synthetic(u64),
}

/// A party as tickets identify it: one of the server's, or one that exists in tickets only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TicketParty {
    /// A party of the server.
    Real(PartyId),
    /// A party of a load test, made of [`TicketPlayer::Synthetic`].
    Synthetic(u32),
}

impl TicketPlayer {
    /// Its id in the world; `None` for a synthetic player.
    #[must_use]
    pub const fn real(self) -> Option<PlayerId> {
        match self {
            Self::Real(player) => Some(player),
            Self::Synthetic(_) => None,
        }
    }

    /// Adds it to a hash.
    pub fn hash_state(self, feed: &mut impl FnMut(u64)) {
        let (kind, number) = match self {
            Self::Real(PlayerId(number)) => (0, number),
            Self::Synthetic(number) => (1, number),
        };
        feed(kind);
        feed(number);
    }
}

impl TicketParty {
    /// Its number among those of its kind.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Real(PartyId(number)) | Self::Synthetic(number) => number,
        }
    }

    /// Its id in the world; `None` for a synthetic party.
    #[must_use]
    pub const fn real(self) -> Option<PartyId> {
        match self {
            Self::Real(party) => Some(party),
            Self::Synthetic(_) => None,
        }
    }

    /// Adds it to a hash.
    pub fn hash_state(self, feed: &mut impl FnMut(u64)) {
        let (kind, number) = match self {
            Self::Real(PartyId(number)) => (0, number),
            Self::Synthetic(number) => (1, number),
        };
        feed(kind << 32 | u64::from(number));
    }
}

impl From<PlayerId> for TicketPlayer {
    fn from(player: PlayerId) -> Self {
        Self::Real(player)
    }
}

impl From<PartyId> for TicketParty {
    fn from(party: PartyId) -> Self {
        Self::Real(party)
    }
}

impl fmt::Display for TicketPlayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real(player) => player.0.fmt(f),
            Self::Synthetic(number) => write!(f, "synthetic {number}"),
        }
    }
}

impl fmt::Display for TicketParty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real(party) => party.0.fmt(f),
            Self::Synthetic(number) => write!(f, "synthetic {number}"),
        }
    }
}

/// Optional requirements of a party.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, MemoryUse)]
pub struct TicketPreferences {
    /// Players that it does not want to meet, on either side; ignored once the limits of the mode are off for it.
    #[memory(skip)]
    pub avoid: ArrayVec<TicketPlayer, AVOIDED_MAX>,
    /// The regions where it can play, one bit each; 0 means anywhere.
    pub regions: u32,
    /// The number of its players for each role; the sum is at most the party's size.
    pub roles: [u8; ROLE_COUNT],
}

/// A party of 1–5 players that requests a match. A party is queued and matched whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, MemoryUse)]
pub struct Ticket {
    /// The party; it has at most one ticket at a time, over all modes.
    pub party: TicketParty,
    /// Players in the party, 1–5; equal to the number of `members`.
    pub size: u8,
    /// The sum of the members' power.
    pub power: u32,
    /// One value for the party, on a scale like Elo's: 400 more means ten times the odds of winning.
    pub skill: i32,
    /// The party's level; the levels of a match are within a band.
    pub level: u16,
    /// The strength of the party's leader, used only by [`RoomMode`](super::RoomMode).
    pub leader_strength: u32,
    /// The mode in which the party wants to play.
    pub mode: ModeId,
    /// The tick since which the party waits. Earlier than now when waiting time is restored.
    pub since_tick: u64,
    /// The players, the leader first.
    #[memory(skip)]
    pub members: ArrayVec<TicketPlayer, { PARTY_SIZE_MAX as usize }>,
    /// Optional requirements.
    pub preferences: Option<Box<TicketPreferences>>,
}

/// Rounds a power given as a float to a whole number.
///
/// # Errors
/// [`TicketError::Power`] when it is not a number, negative, or above [`u32::MAX`].
pub fn rounded_power(party: impl Into<TicketParty>, power: f64) -> Result<u32, TicketError> {
    let rounded = power.round();
    if (0.0..=f64::from(u32::MAX)).contains(&rounded) && power >= 0.0 {
        Ok(rounded as u32)
    } else {
        let (party, power) = (party.into(), power.to_string());
        Err(TicketError::Power { party, power })
    }
}

impl Ticket {
    /// Creates a ticket for these players, the leader first, in the first mode: with power, skill, level and leader's
    /// strength 0, without preferences, and waiting from the moment that a request queues it; the methods below change
    /// these. A ticket with more than five players is refused by the queue.
    ///
    /// ```
    /// use throng_core::ids::{PartyId, PlayerId};
    /// use throng_matchmaking::Ticket;
    ///
    /// let leader = PlayerId(7);
    /// let ticket = Ticket::new(PartyId(3), [leader, PlayerId(8)]).power(400).skill(1500);
    /// assert_eq!((ticket.size, ticket.members[0]), (2, leader.into()));
    /// ```
    #[must_use]
    pub fn new<P: Into<TicketPlayer>>(
        party: impl Into<TicketParty>,
        players: impl IntoIterator<Item = P>,
    ) -> Self {
        let (mut members, mut size) = (ArrayVec::new(), 0_u8);
        for player in players {
            // Surplus players show in the size, and the ticket is refused.
            let _ = members.try_push(player.into());
            size = size.saturating_add(1);
        }
        Self {
            party: party.into(),
            size,
            power: 0,
            skill: 0,
            level: 0,
            leader_strength: 0,
            mode: ModeId(0),
            since_tick: u64::MAX,
            members,
            preferences: None,
        }
    }

    /// The same for another mode.
    #[must_use]
    pub fn in_mode(self, mode: ModeId) -> Self {
        Self { mode, ..self }
    }

    /// The same with this sum of the members' power; [`rounded_power`] converts a float.
    #[must_use]
    pub fn power(self, power: u32) -> Self {
        Self { power, ..self }
    }

    /// The same with this skill.
    #[must_use]
    pub fn skill(self, skill: i32) -> Self {
        Self { skill, ..self }
    }

    /// The same with this level.
    #[must_use]
    pub fn level(self, level: u16) -> Self {
        Self { level, ..self }
    }

    /// The same with a leader of this strength.
    #[must_use]
    pub fn leader_strength(self, leader_strength: u32) -> Self {
        Self {
            leader_strength,
            ..self
        }
    }

    /// The same, waiting since this tick. Code that queues without a request
    /// ([`MatchmakingCore::enqueue`](super::MatchmakingCore::enqueue)) has to call this: without it, the ticket never waits long
    /// enough for its limits to widen.
    #[must_use]
    pub fn waiting_since(self, since_tick: u64) -> Self {
        Self { since_tick, ..self }
    }

    /// The same with optional requirements.
    #[must_use]
    pub fn preferences(self, wishes: TicketPreferences) -> Self {
        Self {
            preferences: Some(Box::new(wishes)),
            ..self
        }
    }

    /// Checks everything that does not depend on the queue: the size, the members, and that it fits if at most
    /// `group_size` players may play together. O(size²).
    ///
    /// # Errors
    /// [`TicketError::Size`], [`TicketError::LargerThanGroup`], [`TicketError::MembersMismatch`],
    /// [`TicketError::DuplicateMember`], [`TicketError::Roles`].
    pub fn check(&self, group_size: u8) -> Result<(), TicketError> {
        if self.size == 0 || self.size > PARTY_SIZE_MAX {
            return Err(TicketError::Size {
                party: self.party,
                size: self.size,
            });
        }
        if self.size > group_size {
            return Err(TicketError::LargerThanGroup {
                party: self.party,
                size: self.size,
                group_size,
            });
        }
        if self.members.len() != usize::from(self.size) {
            let members = self.members.len();
            return Err(TicketError::MembersMismatch {
                party: self.party,
                size: self.size,
                members,
            });
        }
        for (at, &player) in self.members.iter().enumerate() {
            if self.members[..at].contains(&player) {
                return Err(TicketError::DuplicateMember {
                    party: self.party,
                    player,
                });
            }
        }
        let plays = self
            .preferences
            .as_ref()
            .map_or([0; ROLE_COUNT], |wishes| wishes.roles);
        let roles = plays.iter().copied().map(u32::from).sum();
        if roles > u32::from(self.size) {
            return Err(TicketError::Roles {
                party: self.party,
                size: self.size,
                roles,
            });
        }
        Ok(())
    }

    /// Adds all of it to a hash. O(size).
    pub fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        self.party.hash_state(feed);
        feed(u64::from(self.power));
        feed(u64::from(self.skill as u32) << 32 | u64::from(self.leader_strength));
        feed(u64::from(self.mode.0) << 32 | u64::from(self.level) << 8 | u64::from(self.size));
        feed(self.since_tick);
        self.members
            .iter()
            .for_each(|player| player.hash_state(feed));
        if let Some(wishes) = &self.preferences {
            wishes
                .avoid
                .iter()
                .for_each(|player| player.hash_state(feed));
            feed(u64::from(wishes.regions) << 32 | u64::from(u32::from_le_bytes(wishes.roles)));
        }
    }

    /// Ticks waited at `now_tick`; zero for a ticket from the future. O(1).
    #[must_use]
    pub const fn waited_ticks(&self, now_tick: u64) -> u64 {
        now_tick.saturating_sub(self.since_tick)
    }
}

/// Adds the players of each role of one more party.
pub(super) fn add_roles(filled: [u32; ROLE_COUNT], plays: &[u8; ROLE_COUNT]) -> [u32; ROLE_COUNT] {
    std::array::from_fn(|role| filled[role].saturating_add(u32::from(plays[role])))
}

/// The regions where a party can play.
pub(super) fn regions(ticket: &Ticket) -> u32 {
    let wished = ticket
        .preferences
        .as_ref()
        .map_or(0, |wishes| wishes.regions);
    if wished == 0 { u32::MAX } else { wished }
}

/// How many of a party's players play each role.
pub(super) fn roles(ticket: &Ticket) -> [u8; ROLE_COUNT] {
    ticket
        .preferences
        .as_ref()
        .map_or([0; ROLE_COUNT], |wishes| wishes.roles)
}

/// Why the matchmaker refused a request. The queue is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TicketError {
    /// The size is not 1–5.
    #[error("party {party}: expected 1 to 5 players, found {size}")]
    Size {
        /// The refused party.
        party: TicketParty,
        /// The size that the ticket states.
        size: u8,
    },
    /// The party does not fit into a group of its mode.
    #[error("party {party}: expected at most {group_size} players in this mode, found {size}")]
    LargerThanGroup {
        /// The refused party.
        party: TicketParty,
        /// Its number of players.
        size: u8,
        /// Players in a group of the mode.
        group_size: u8,
    },
    /// The power is not a number in the range.
    #[error("party {party}: expected a power of 0 to 4294967295, found {power}")]
    Power {
        /// The refused party.
        party: TicketParty,
        /// The given value.
        power: String,
    },
    /// The list of members is shorter or longer than the size.
    #[error("party {party}: expected {size} members, found {members}")]
    MembersMismatch {
        /// The refused party.
        party: TicketParty,
        /// The size that the ticket states.
        size: u8,
        /// The number of members that the ticket lists.
        members: usize,
    },
    /// More players have a role than there are.
    #[error("party {party}: expected roles for at most {size} players, found {roles}")]
    Roles {
        /// The refused party.
        party: TicketParty,
        /// Its number of players.
        size: u8,
        /// The sum of the roles.
        roles: u32,
    },
    /// A player is listed twice in one party.
    #[error("party {party}: player {player} is listed twice")]
    DuplicateMember {
        /// The refused party.
        party: TicketParty,
        /// The player who is listed twice.
        player: TicketPlayer,
    },
    /// The mode does not exist.
    #[error("party {party}: expected a mode below {modes}, found {mode}")]
    UnknownMode {
        /// The refused party.
        party: TicketParty,
        /// The requested mode.
        mode: ModeId,
        /// The number of modes.
        modes: usize,
    },
    /// A player is already queued, in any mode.
    #[error("party {party}: player {player} is already queued in party {queued_in}")]
    PlayerAlreadyQueued {
        /// The refused party.
        party: TicketParty,
        /// The player that is already queued.
        player: TicketPlayer,
        /// The queued party of the player.
        queued_in: TicketParty,
    },
    /// The party is already queued, in any mode.
    #[error("party {party} is already queued")]
    PartyAlreadyQueued {
        /// The refused party.
        party: TicketParty,
    },
    /// A player let a proposed match fail recently.
    #[error("party {party}: player {player} has a decline penalty until tick {until_tick}")]
    DeclinePenalty {
        /// The refused party.
        party: TicketParty,
        /// Its member who may not queue yet.
        player: TicketPlayer,
        /// The tick from which the player may queue again.
        until_tick: u64,
    },
    /// The mode's queue is at its limit.
    #[error("party {party}: queue full ({tickets_max} tickets)")]
    QueueFull {
        /// The refused party.
        party: TicketParty,
        /// The maximum number of tickets in the mode, those in proposed matches included.
        tickets_max: u32,
    },
    /// The party to cancel is not queued.
    #[error("party {party} is not queued")]
    NotQueued {
        /// The requested party.
        party: TicketParty,
    },
    /// A player cannot watch: the party has no room, or all seats are taken.
    #[error("party {party}: no room with a free spectator seat")]
    NoSpectatorSeat {
        /// The party of the room.
        party: TicketParty,
    },
    /// A player without a proposed match replied.
    #[error("player {player}: no proposed match to accept or decline")]
    NoProposedMatch {
        /// The player who replied.
        player: TicketPlayer,
    },
    /// A player who is not a member requested a cancellation.
    #[error("party {party}: player {player} is not a member and cannot cancel it")]
    NotAMember {
        /// The party to be cancelled.
        party: TicketParty,
        /// The player who requested it.
        player: TicketPlayer,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(size: u8, members: &[u64]) -> Ticket {
        let ticket = Ticket::new(PartyId(1), members.iter().copied().map(PlayerId));
        let ticket = ticket.power(10).level(1).waiting_since(5);
        Ticket { size, ..ticket }
    }

    #[test]
    fn party_of_more_players_than_fit_is_refused() {
        let six = Ticket::new(PartyId(1), [1, 2, 3, 4, 5, 6].map(PlayerId));
        let error = six.check(10).unwrap_err();
        let party = 1.into();
        assert_eq!(error, TicketError::Size { party, size: 6 });
        assert_eq!(
            Ticket::new(PartyId(1), [1, 2].map(PlayerId)).check(5),
            Ok(())
        );
    }

    #[test]
    fn sizes_outside_one_to_five_are_refused() {
        assert_eq!(
            ticket(0, &[]).check(5),
            Err(TicketError::Size {
                party: 1.into(),
                size: 0
            })
        );
        assert_eq!(
            ticket(6, &[1, 2, 3, 4, 5]).check(50),
            Err(TicketError::Size {
                party: 1.into(),
                size: 6
            })
        );
        assert_eq!(ticket(5, &[1, 2, 3, 4, 5]).check(5), Ok(()));
    }

    #[test]
    fn a_party_larger_than_a_group_is_refused() {
        let error = ticket(3, &[1, 2, 3]).check(2).unwrap_err();
        assert_eq!(
            error,
            TicketError::LargerThanGroup {
                party: 1.into(),
                size: 3,
                group_size: 2
            }
        );
        assert_eq!(
            error.to_string(),
            "party 1: expected at most 2 players in this mode, found 3"
        );
    }

    #[test]
    fn members_must_be_distinct_and_match_the_size() {
        let short = ticket(3, &[1, 2]).check(5);
        assert_eq!(
            short,
            Err(TicketError::MembersMismatch {
                party: 1.into(),
                size: 3,
                members: 2
            })
        );
        assert_eq!(
            ticket(2, &[7, 7]).check(5),
            Err(TicketError::DuplicateMember {
                party: 1.into(),
                player: 7.into()
            })
        );
    }

    #[test]
    fn out_of_range_powers_are_refused() {
        for power in [f64::NAN, -1.0, -0.001, f64::INFINITY, 5e9] {
            assert!(rounded_power(1, power).is_err(), "{power}");
        }
        assert_eq!(rounded_power(1, 12.6), Ok(13));
        assert_eq!(
            rounded_power(7, -2.0).unwrap_err().to_string(),
            "party 7: expected a power of 0 to 4294967295, found -2"
        );
    }

    #[test]
    fn ticket_from_the_future_has_waited_zero_ticks() {
        assert_eq!(ticket(1, &[1]).waited_ticks(3), 0);
        assert_eq!(ticket(1, &[1]).waited_ticks(9), 4);
    }
}
