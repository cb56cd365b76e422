//! Invariants of matchmaking with any tickets in any order; used by the fuzzer, and by the test that replays its corpus.
//!
//! The first two bytes choose the mode. The rest is a script with six bytes per step: the action, its party or player, and values of the
//! ticket. Every queued party is waiting, in a proposed match, in a match, or was returned; and never in two of these.

use std::collections::BTreeSet;

use throng_core::ids::{PartyId, PlayerId};
use throng_matchmaking::{
    GroupModeSettings, HeartbeatOutcome, Match, MatchModeSettings, MatchmakingCore, Packing,
    RoomModeSettings, Ticket, TicketPreferences,
};

/// Maximum number of steps of a script; the rest of the input is ignored.
const STEPS_MAX: usize = 120;

const PARTIES: u8 = 24;

fn mode([kind, size]: [u8; 2]) -> MatchModeSettings {
    let accept_timeout_s = if kind & 2 == 0 { 0.0 } else { 2.0 };
    let rematch_cooldown_s = if kind & 4 == 0 { 0.0 } else { 3.0 };
    if kind & 1 == 0 {
        MatchModeSettings::Groups(GroupModeSettings {
            group_size: 1 + size % 6,
            packing: if kind & 8 == 0 {
                Packing::Windows
            } else {
                Packing::Arrival
            },
            accept_timeout_s,
            rematch_cooldown_s,
            limits_off_after_s: 5.0,
            priority_after_s: 8.0,
            expire_after_s: 20.0,
            tickets_max: 16,
            ..GroupModeSettings::default()
        })
    } else {
        MatchModeSettings::Rooms(RoomModeSettings {
            side_size: 1 + size % 3,
            equal_size: kind & 8 == 0,
            accept_timeout_s,
            rematch_cooldown_s,
            limits_off_after_s: 5.0,
            priority_after_s: 8.0,
            expire_after_s: 20.0,
            ..RoomModeSettings::default()
        })
    }
}

/// A ticket with arbitrary values, valid or not.
fn ticket([what, party, size, first, low, high]: [u8; 6], now_tick: u64) -> Ticket {
    let players = (0..size % 7).map(|nth| PlayerId(u64::from(first % 40 + nth * (1 + high % 3))));
    let value = i32::from(i16::from_le_bytes([low, high]));
    let skill = if what & 0x20 == 0 {
        value
    } else {
        value.saturating_mul(70_000)
    };
    let mut ticket = Ticket::new(PartyId(u32::from(party % PARTIES)), players)
        .skill(skill)
        .power(skill.unsigned_abs())
        .level(u16::from(low))
        .leader_strength(u32::from(high) << 24)
        .waiting_since(now_tick);
    if what & 0x40 != 0 {
        ticket.size = size;
    }
    if what & 0x80 != 0 {
        ticket = ticket.preferences(TicketPreferences {
            avoid: (0..low % 4)
                .map(|nth| PlayerId(u64::from(nth * 3)).into())
                .collect(),
            regions: u32::from(high),
            roles: [low & 3, high & 1, 0, 0],
        });
    }
    ticket
}

struct TicketModel {
    core: MatchmakingCore,
    /// Parties that wait or are in a proposed match.
    waiting: BTreeSet<u32>,
    now_tick: u64,
}

impl TicketModel {
    fn remove(&mut self, ticket: &Ticket) {
        let numbers =
            (0..u32::from(PARTIES)).filter(|&party| ticket.party == PartyId(party).into());
        for party in numbers {
            assert!(self.waiting.remove(&party), "party {party} was not waiting");
        }
    }

    fn start(&mut self, found: &Match) {
        let mut players = BTreeSet::new();
        for ticket in found.groups.iter().flatten() {
            self.remove(ticket);
            for player in &ticket.members {
                assert!(
                    players.insert(*player),
                    "player {player} is in the match twice"
                );
            }
        }
        assert!(found.groups.iter().all(|group| !group.is_empty()));
    }

    fn step(&mut self, step: [u8; 6]) {
        let [what, party, size, ..] = step;
        let player = PlayerId(u64::from(size % 40));
        match what % 8 {
            0..=2 => {
                let ticket = ticket(step, self.now_tick);
                if self.core.enqueue(ticket).is_ok() {
                    let is_new = self.waiting.insert(u32::from(party % PARTIES));
                    assert!(is_new, "queued twice");
                }
            }
            3 => {
                if let Ok(ticket) = self.core.cancel(PartyId(u32::from(party % PARTIES))) {
                    self.remove(&ticket);
                }
            }
            4 => {
                if let Some(ticket) = self.core.remove_player(player) {
                    self.remove(&ticket);
                }
            }
            5 => {
                if let Ok(Some(found)) = self.core.accept(player, self.now_tick) {
                    self.start(&found);
                }
            }
            6 => {
                if what & 8 == 0 {
                    // Spectating changes no ticket.
                    let _ = self
                        .core
                        .spectate(PartyId(u32::from(party % PARTIES)), player);
                } else if let Ok(ticket) = self.core.decline(player) {
                    self.remove(&ticket);
                }
            }
            _ => {
                self.now_tick += u64::from(party);
                let mut outcome = HeartbeatOutcome::default();
                self.core.run_heartbeat(self.now_tick, &mut outcome);
                outcome.matches.iter().for_each(|found| self.start(found));
                outcome.expired.iter().for_each(|it| self.remove(it));
            }
        }
        for party in 0..u32::from(PARTIES) {
            let found = self.core.ticket(PartyId(party));
            assert_eq!(found.is_some(), self.waiting.contains(&party), "{party}");
            for player in found.into_iter().flat_map(|ticket| &ticket.members) {
                assert_eq!(self.core.party_of(*player), Some(PartyId(party).into()));
            }
        }
    }
}

pub fn check(input: &[u8]) {
    let Some((&head, script)) = input.split_first_chunk() else {
        return;
    };
    let core = MatchmakingCore::new(&[mode(head)], 20.0).expect("the settings are in range");
    let mut model = TicketModel {
        core,
        waiting: BTreeSet::new(),
        now_tick: 0,
    };
    for step in script.as_chunks().0.iter().take(STEPS_MAX) {
        model.step(*step);
    }
}
