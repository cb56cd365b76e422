//! The players on each side of a match, and what a side lacks after a player left.

use crate::matchmaking::{Backfill, ModeId, ROLE_COUNT, Ticket, TicketParty, TicketPlayer};
use crate::memory::{MemoryUse, heap_bytes_of_lists};

/// Both sides of a match, as the parties that they are made of.
#[derive(Clone, Debug, PartialEq, Eq, MemoryUse)]
pub struct Lineup {
    mode: ModeId,
    #[memory(with = heap_bytes_of_lists)]
    sides: [Vec<Ticket>; 2],
    /// The profile at the start of the match, for backfill requests when all players have left.
    initial: MatchProfile,
}

/// The values that parties which join a match should be near to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MatchProfile {
    skill: i32,
    level: u16,
    /// The regions that all of the parties allow, or at least some; 0 means anywhere.
    regions: u32,
}

impl MatchProfile {
    /// The profile of some parties; `None` without any.
    fn of(sides: &[Vec<Ticket>; 2]) -> Option<Self> {
        let all = || sides.iter().flatten();
        let count = i64::try_from(all().count())
            .ok()
            .filter(|&count| count > 0)?;
        let skill = all().map(|ticket| i64::from(ticket.skill)).sum::<i64>() / count;
        let level = all().map(|ticket| i64::from(ticket.level)).sum::<i64>() / count;
        let regions = |both: fn(u32, u32) -> u32| {
            let wishes = all().filter_map(|ticket| ticket.preferences.as_deref());
            let wished = wishes.map(|wishes| wishes.regions);
            wished
                .filter(|&wished| wished != 0)
                .reduce(both)
                .unwrap_or(0)
        };
        Some(Self {
            skill: skill as i32,
            level: level as u16,
            regions: match regions(|one, other| one & other) {
                0 => regions(|one, other| one | other),
                common => common,
            },
        })
    }
}

/// The missing players of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vacancy {
    /// The side, 0 or 1.
    pub side: usize,
    /// The number of missing players.
    pub players: u8,
    /// Their power.
    pub power: u64,
    /// The number of them in each role, as far as it is known.
    pub roles: [u8; ROLE_COUNT],
}

impl Lineup {
    /// The lineup at the start of a match.
    #[must_use]
    pub fn new(mode: ModeId, sides: [Vec<Ticket>; 2]) -> Self {
        let nobody = MatchProfile {
            skill: 0,
            level: 0,
            regions: 0,
        };
        let first = MatchProfile::of(&sides).unwrap_or(nobody);
        Self {
            mode,
            sides,
            initial: first,
        }
    }

    /// The mode of the match.
    #[must_use]
    pub const fn mode(&self) -> ModeId {
        self.mode
    }

    /// The parties of both sides; a party that lost players is smaller than its ticket in the queue.
    #[must_use]
    pub const fn sides(&self) -> &[Vec<Ticket>; 2] {
        &self.sides
    }

    /// The party of a player in the lineup. O(players).
    #[must_use]
    pub fn party_of(&self, player: TicketPlayer) -> Option<TicketParty> {
        let mut all = self.sides.iter().flatten();
        let of_player = all.find(|ticket| ticket.members.contains(&player));
        of_player.map(|ticket| ticket.party)
    }

    /// Adds a party to a side, 0 or 1.
    pub fn join(&mut self, side: usize, ticket: Ticket) {
        self.sides[side.min(1)].push(ticket);
    }

    /// Removes a player from its party and returns the vacancy of its side: its share of the party's power, and no
    /// role, since roles are known per party only. `None` when it is not in the lineup. O(players).
    pub fn remove_player(&mut self, player: TicketPlayer) -> Option<Vacancy> {
        let of_player = |ticket: &Ticket| ticket.members.contains(&player);
        let place = |side: usize| self.sides[side].iter().position(of_player);
        let (side, at) = place(0)
            .map(|at| (0, at))
            .or_else(|| place(1).map(|at| (1, at)))?;
        let ticket = &mut self.sides[side][at];
        let power = ticket.power / u32::from(ticket.size.max(1));
        ticket.members.retain(|member| *member != player);
        ticket.size = ticket.members.len() as u8;
        ticket.power -= power;
        if ticket.members.is_empty() {
            self.sides[side].remove(at);
        }
        Some(Vacancy {
            side,
            players: 1,
            power: u64::from(power),
            roles: [0; ROLE_COUNT],
        })
    }

    /// Removes a party and returns it, with the vacancy of its side. `None` when it is not in the lineup.
    /// O(parties).
    pub fn remove_party(&mut self, party: TicketParty) -> Option<(Ticket, Vacancy)> {
        let (side, at) = (0..2).find_map(|side| {
            let of_side = self.sides[side].iter();
            let at = of_side.clone().position(|ticket| ticket.party == party)?;
            Some((side, at))
        })?;
        let ticket = self.sides[side].remove(at);
        let vacancy = Vacancy {
            side,
            players: ticket.size,
            power: u64::from(ticket.power),
            roles: ticket
                .preferences
                .as_ref()
                .map_or([0; ROLE_COUNT], |wishes| wishes.roles),
        };
        Some((ticket, vacancy))
    }

    /// The backfill request for a vacancy: as strong as the missing players, near the current players in skill and level (or the
    /// original ones, if all have left), and without players whom any of them avoids. O(players).
    #[must_use]
    pub fn backfill_for(&self, vacancy: &Vacancy) -> Backfill {
        let of = |side: &[Ticket]| -> Vec<TicketPlayer> {
            let members = side.iter().flat_map(|ticket| &ticket.members);
            members.copied().collect()
        };
        let all = || self.sides.iter().flatten();
        let MatchProfile {
            skill,
            level,
            regions,
        } = MatchProfile::of(&self.sides).unwrap_or(self.initial);
        let wishes = all().filter_map(|ticket| ticket.preferences.as_deref());
        let side = vacancy.side.min(1);
        let opponents = of(&self.sides[1 - side]);
        Backfill {
            missing: vacancy.players,
            skill,
            level,
            regions,
            players: [of(&self.sides[side]), opponents.clone()].concat(),
            opponents,
            avoid: wishes.flat_map(|wishes| wishes.avoid.clone()).collect(),
            roles: vacancy.roles,
            power: Some(vacancy.power),
        }
    }

    /// Adds it to a hash. O(players).
    pub fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        feed(u64::from(self.mode.0));
        for side in &self.sides {
            feed(side.len() as u64);
            side.iter().for_each(|ticket| ticket.hash_state(feed));
        }
        // While there are players, the profile follows from parties that were hashed when they came.
        if self.sides.iter().all(Vec::is_empty) {
            feed(u64::from(self.initial.skill as u32) << 32 | u64::from(self.initial.level));
            feed(u64::from(self.initial.regions));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matchmaking::TicketPreferences;
    use crate::world::{PartyId, PlayerId};

    fn ticket(party: u32, players: &[u64], skill: i32) -> Ticket {
        Ticket {
            party: PartyId(party).into(),
            size: players.len() as u8,
            power: 100 * players.len() as u32,
            skill,
            level: 5,
            leader_strength: 0,
            mode: ModeId(0),
            since_tick: 0,
            members: players
                .iter()
                .map(|&player| PlayerId(player).into())
                .collect(),
            preferences: Some(Box::new(TicketPreferences {
                roles: [1, 0, 0, 0],
                ..TicketPreferences::default()
            })),
        }
    }

    fn lineup() -> Lineup {
        Lineup::new(
            ModeId(0),
            [vec![ticket(1, &[1, 2], 100)], vec![ticket(2, &[3, 4], 200)]],
        )
    }

    #[test]
    fn departed_player_leaves_a_vacancy_with_its_power_share() {
        let mut lineup = lineup();
        let vacancy = lineup.remove_player(PlayerId(4).into()).unwrap();
        assert_eq!((vacancy.side, vacancy.players, vacancy.power), (1, 1, 100));
        let wanted = lineup.backfill_for(&vacancy);
        assert_eq!((wanted.missing, wanted.skill, wanted.level), (1, 150, 5));
        assert_eq!(
            wanted.opponents,
            [1, 2].map(|id| TicketPlayer::Real(PlayerId(id)))
        );
        assert_eq!(wanted.players.len(), 3);
        assert_eq!(lineup.remove_player(PlayerId(4).into()), None);
        assert_eq!(lineup.party_of(PlayerId(4).into()), None);
        let party = lineup.party_of(PlayerId(3).into());
        assert_eq!(party, Some(PartyId(2).into()));
        let rest = &lineup.sides()[1][0];
        assert_eq!((rest.size, rest.power), (1, 100));
        let vacancy = lineup.remove_player(PlayerId(3).into()).unwrap();
        assert_eq!((vacancy.players, vacancy.power), (1, 100));
        assert!(lineup.sides()[1].is_empty(), "an empty party is gone");
    }

    #[test]
    fn empty_lineup_requests_players_like_the_initial_ones() {
        let mut lineup = lineup();
        let (_, first) = lineup.remove_party(PartyId(1).into()).unwrap();
        let alone = lineup.backfill_for(&first);
        assert_eq!((alone.skill, alone.level), (200, 5), "like who plays on");
        let (_, last) = lineup.remove_party(PartyId(2).into()).unwrap();
        let wanted = lineup.backfill_for(&last);
        assert_eq!((wanted.skill, wanted.level, wanted.missing), (150, 5, 2));
    }

    #[test]
    fn departed_party_leaves_a_vacancy_with_its_roles() {
        let mut lineup = lineup();
        let (gone, vacancy) = lineup.remove_party(PartyId(1).into()).unwrap();
        assert_eq!((gone.size, vacancy.players, vacancy.power), (2, 2, 200));
        assert_eq!((vacancy.side, vacancy.roles), (0, [1, 0, 0, 0]));
        assert_eq!(lineup.remove_party(PartyId(1).into()), None);
        lineup.join(vacancy.side, gone);
        assert_eq!(lineup, self::lineup());
    }

    #[test]
    fn backfill_wants_the_common_region_or_else_any_of_the_match() {
        let wished = |regions: [u32; 3]| {
            let mut tickets = [(1, &[1, 2][..]), (2, &[3, 4]), (3, &[5])]
                .map(|(party, players)| ticket(party, players, 100));
            for (ticket, regions) in tickets.iter_mut().zip(regions) {
                ticket.preferences.as_mut().unwrap().regions = regions;
            }
            let [one, other, third] = tickets;
            let mut lineup = Lineup::new(ModeId(0), [vec![one, third], vec![other]]);
            let vacancy = lineup.remove_player(PlayerId(4).into()).unwrap();
            lineup.backfill_for(&vacancy).regions
        };
        assert_eq!(wished([0b011, 0b110, 0b111]), 0b010);
        assert_eq!(wished([0b001, 0b110, 0b100]), 0b111);
        assert_eq!(wished([0, 0b110, 0]), 0b110, "0 is any region");
        assert_eq!(wished([0, 0b110, 0b011]), 0b010, "0 is any region");
        assert_eq!(wished([0; 3]), 0);
    }
}
