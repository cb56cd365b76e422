//! `throng bench inbox`: the time that a tick spends on messages, and the delay of well-behaved clients, compared with simpler policies;
//! and the cost of a message.
//!
//! Ticks and delays are simulated with 5 µs per message, so they do not depend on the machine; the cost of a message is measured.

use glam::Vec2;

use super::CliError;
use super::rows::BenchRow;
use throng::inbox::{InboxLimits, MessageQueue};
use throng::map::{MapRecipe, TownRecipe, generate};
use throng::movement::{Ground, MoveBudget, MoveRules, PlayerStep};
use throng::sim::clock::Stopwatch;
use throng::wire::{ClientId, ClientMessage, quantise};
use throng::world::PlayerMotion;
use throng_net::inbox::reference::{IntakeLoad, IntakePolicy, simulate};

const SYSTEM: &str = "inbox";

/// A thousand well-behaved clients at 10 messages per second.
const POLITE: IntakeLoad = IntakeLoad {
    polite: 1_000,
    flood: 0,
    burst: 0,
    message_ns: 5_000,
    ticks: 400,
};

pub(super) fn measure(quick: bool) -> Result<Vec<BenchRow>, CliError> {
    let flood = IntakeLoad {
        flood: 5_000,
        ..POLITE
    };
    let burst = IntakeLoad {
        burst: 30,
        ..POLITE
    };
    let mut rows = policies(
        "flood",
        flood,
        "while another client sends 100,000 a second",
    );
    rows.extend(policies(
        "burst",
        burst,
        "each of which sends 30 more at once",
    ));
    let rounds = if quick { 9 } else { 31 };
    rows.push(messages(rounds));
    rows.extend(moves(rounds)?);
    Ok(rows)
}

/// One load under all policies: the longest tick, and the longest delay of well-behaved clients.
fn policies(case: &str, load: IntakeLoad, what: &str) -> Vec<BenchRow> {
    let ours = simulate(IntakePolicy::ClientQueues, load);
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut rows = Vec::new();
    for (name, policy) in [
        ("everything", IntakePolicy::Everything),
        ("fixed 20 ms", IntakePolicy::Fixed(20)),
        ("reference", IntakePolicy::Reference),
    ] {
        let other = simulate(policy, load);
        let row = BenchRow::new(
            SYSTEM,
            format!("{case} tick v {name}"),
            ms(ours.worst_tick_ns),
            "ms",
        );
        let about = format!(
            "The longest message work of a tick with 1,000 well-behaved clients at 10 messages a second, {what}; compared with {name}."
        );
        let all = ours.polite_refused == 0;
        let whole = "no message of a well-behaved client is refused";
        rows.push(
            row.with_reference(name, ms(other.worst_tick_ns))
                .about(about)
                .with_comparison(whole, all)
                .with_target_below(30.1, "ms"),
        );
        let lag = ours.worst_polite_lag_ticks as f64;
        let row = BenchRow::new(SYSTEM, format!("{case} lag v {name}"), lag, "ticks");
        let about = format!(
            "The longest delay of their messages under the same load, compared with {name}."
        );
        let row = row
            .with_reference(name, other.worst_polite_lag_ticks as f64)
            .about(about);
        rows.push(if case == "flood" {
            row.with_target_below(1.0, "tick")
        } else {
            row
        });
    }
    rows
}

/// Queueing, taking and decoding messages.
fn messages(rounds: usize) -> BenchRow {
    const CLIENTS: u32 = 1_000;
    const EACH: u32 = 20;
    let limits = InboxLimits::default();
    let mut queue = MessageQueue::new(limits);
    for client in (0..CLIENTS).map(ClientId) {
        queue.open(client);
        queue.promote(client);
    }
    let bytes = ClientMessage::Move {
        to: quantise(Vec2::new(123.4, 567.8)),
        heading: 9,
    }
    .to_bytes();
    let (mut times, mut decoded) = (Vec::new(), 0_u64);
    for round in 0..rounds as u64 + 3 {
        queue.begin_tick(round, limits);
        for client in (0..CLIENTS).map(ClientId) {
            for _ in 0..EACH {
                let _ = queue.push(client, &bytes);
            }
        }
        let watch = Stopwatch::start();
        while let Some(message) = queue.pop(round + 1) {
            let is_move = matches!(
                ClientMessage::decode(std::hint::black_box(&message.bytes)),
                Ok(ClientMessage::Move { .. })
            );
            decoded += u64::from(is_move);
        }
        if round >= 3 {
            times.push(watch.elapsed().as_secs_f64() * 1e9 / f64::from(CLIENTS * EACH));
        }
    }
    let all = u64::from(CLIENTS * EACH) * (rounds as u64 + 3);
    BenchRow::repeated(SYSTEM, "take and decode", &times, "ns/msg")
        .about("Taking a message from the queue of each of 1,000 clients in turn, and decoding it.")
        .with_comparison("every message is decoded", decoded == all)
        .with_target_below(100.0, "ns")
}

/// Player moves on a map: validated moves to positions, and steps in a direction.
fn moves(rounds: usize) -> Result<Vec<BenchRow>, CliError> {
    const MOVES: usize = 20_000;
    let recipe = TownRecipe {
        width_tiles: 1_000,
        height_tiles: 1_000,
        ..TownRecipe::default()
    };
    let tiles =
        generate(&MapRecipe::Town(recipe), 1).map_err(|error| CliError::new(error.to_string()))?;
    let ground = Ground {
        tiles: &tiles,
        tile_m: 0.5,
    };
    let rules = MoveRules {
        tolerance: 0.1,
        burst_s_max: 1.0,
        rounding_tolerance_m: 1.0 / 64.0,
    };
    let mut state = 7_u64;
    let mut random = |below: f32| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f32 / (1 << 24) as f32 * below
    };
    let pairs: Vec<(Vec2, Vec2)> = std::iter::repeat_with(|| {
        let from = Vec2::new(random(500.0), random(500.0));
        (from, from + Vec2::new(random(0.4) - 0.2, random(0.4) - 0.2))
    })
    .filter(|(from, _)| ground.is_free_at(*from))
    .take(MOVES)
    .collect();
    let on = PlayerStep {
        ground: Some(ground),
        size_m: Vec2::splat(500.0),
        step_m: 0.2,
    };
    let places = |nth: usize| PlayerMotion::To(pairs[nth].1);
    let directions = |nth: usize| PlayerMotion::Towards(nth as u8);
    let mut rows = Vec::new();
    for (case, about, motions) in [
        (
            "checked move",
            "Validating a player's move of up to 0.3 m against its speed limit and a town's walls.",
            &places as &dyn Fn(usize) -> PlayerMotion,
        ),
        (
            "direction step",
            "Moving a player by a step of 0.2 m in a direction, along a town's walls.",
            &directions,
        ),
    ] {
        let motions: Vec<_> = (0..pairs.len())
            .map(|nth| (pairs[nth].0, motions(nth)))
            .collect();
        let (mut times, mut accepted) = (Vec::new(), 0);
        for round in 0..rounds + 3 {
            accepted = 0;
            let watch = Stopwatch::start();
            for &(from, motion) in &motions {
                let moved = on.walk(from, motion, MoveBudget(0.3), &rules);
                accepted += usize::from(std::hint::black_box(moved).is_ok());
            }
            if round >= 3 {
                times.push(watch.elapsed().as_secs_f64() * 1e9 / MOVES as f64);
            }
        }
        rows.push(
            BenchRow::repeated(SYSTEM, case, &times, "ns/move")
                .about(about)
                .with_comparison("most moves are accepted", accepted > MOVES / 2)
                .with_target_below(150.0, "ns"),
        );
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inbox_rows_are_complete() {
        let flood = IntakeLoad {
            flood: 5_000,
            ticks: 60,
            ..POLITE
        };
        assert!(
            policies("flood", flood, "and one more")
                .iter()
                .all(|row| !row.has_failed())
        );
        assert_eq!(messages(2).results_agree, Some(true));
        let rows = moves(2).unwrap();
        assert!(rows.iter().all(|row| row.results_agree == Some(true)));
    }
}
