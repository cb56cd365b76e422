//! With a large queue the skills of a match are close together; parties that have waited long accept wider matches.
//!
//! `cargo run -p throng_matchmaking --example queue`
#![allow(clippy::print_stdout, reason = "an example prints")]

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_core::ids::{PartyId, PlayerId};
use throng_matchmaking::{
    GroupModeSettings, HeartbeatOutcome, Match, MatchModeSettings, MatchmakingCore, Ticket,
};

const TICK_HZ: u64 = 20;
const HEARTBEAT_TICKS: u64 = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mode = GroupModeSettings {
        name: "arena".to_owned(),
        group_size: 3,
        ..GroupModeSettings::default()
    };
    let mut matcher = MatchmakingCore::new(&[MatchModeSettings::Groups(mode)], TICK_HZ as f64)?;
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let (mut next_party, mut next_player) = (0, 0);
    let mut outcome = HeartbeatOutcome::default();
    for now_tick in (0..60 * TICK_HZ).step_by(HEARTBEAT_TICKS as usize) {
        // Two parties of one to three players arrive every half second.
        for _ in 0..2 {
            let size = random.random_range(1..=3);
            let players = (next_player..next_player + size).map(PlayerId);
            let skill = random.random_range(1_200..1_800);
            let ticket = Ticket::new(PartyId(next_party), players)
                .skill(skill)
                .power(size as u32 * skill as u32)
                .waiting_since(now_tick);
            matcher.enqueue(ticket)?;
            next_party += 1;
            next_player += size;
        }
        matcher.run_heartbeat(now_tick, &mut outcome);
        outcome.matches.drain(..).for_each(|found| show(&found));
    }
    let (parties, players) = (matcher.waiting_parties(), matcher.waiting_players());
    println!("{parties} parties of {players} players still wait");
    Ok(())
}

fn show(found: &Match) {
    let [one, other] = found.groups.each_ref().map(|group| {
        let parties = group.iter();
        let parties = parties.map(|ticket| format!("{} ({}×)", ticket.skill, ticket.size));
        parties.collect::<Vec<_>>().join(", ")
    });
    let waited_s = found.quality.waited_ticks_max as f64 / TICK_HZ as f64;
    let (spread, chance) = (found.quality.spread, 100.0 * found.quality.win_chance);
    println!(
        "#{:<3} {one:>32} : {other:<32} spread {spread:>3}, {chance:>2.0} % to win, waited {waited_s} s",
        found.id
    );
}
