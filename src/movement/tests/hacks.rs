//! A million inputs of cheating clients: none moves farther than the allowance, or behind a wall.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;

const INPUTS: usize = 1_000_000;
const HACKERS: usize = 50;
const SPEED: f32 = 4.0;
const SIDE: u32 = 120;

/// The first row of a lane without walls.
const LANE: u32 = 100;

/// Scattered walls except on the lane, and one from top to bottom.
fn walled() -> TileMap {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    TileMap::from_fn(SIDE, SIDE, |x, y| {
        x == SIDE / 2 || random.random_range(0..5) == 0 && y < LANE
    })
    .unwrap()
}

/// The state of a cheating client.
struct Hacker {
    entity: Entity,
    from: IVec2,
    /// The distance moved so far, in metres, minus the allowed distance in that time; and its minimum so far.
    ahead_m: f64,
    least_ahead_m: f64,
    most_gained_m: f64,
    /// The messages of this tick that request a move.
    asked: u64,
}

/// Any motion: near, far, invalid, through the wall, in a direction, straight on as far as possible.
fn any_motion(random: &mut Pcg64Mcg, at: Vec2) -> PlayerMotion {
    let mut share = || random.random_range(0.0..1.0_f32);
    let around = |reach: f32, x: f32, y: f32| at + Vec2::new(x - 0.5, y - 0.5) * 2.0 * reach;
    let choice = share();
    let to = match (choice * 16.0) as u32 {
        0 => return PlayerMotion::Turn,
        1 => return PlayerMotion::Stand,
        2..=5 => return PlayerMotion::Towards((share() * 255.0) as u8),
        6 => Vec2::new(f32::NAN, share()),
        7 => Vec2::new(f32::INFINITY, -share()),
        8 => around(1.0e9, share(), share()),
        9 => Vec2::new(share(), share()) * 60.0,
        10 => at + Vec2::new(1.0 / 64.0, 0.0),
        11 => at + Vec2::new(SPEED * TICK_S, 0.0),
        12 => around(SPEED * 1.1, share(), share()),
        13 => around(0.6, share(), share()),
        _ => around(SPEED * TICK_S, share(), share()),
    };
    PlayerMotion::To(to)
}

/// The number of messages of a client in a tick: none for long, or many at once.
fn any_count(random: &mut Pcg64Mcg) -> usize {
    match random.random_range(0..16) {
        0..=7 => 0,
        8..=13 => random.random_range(0..12),
        14 => random.random_range(0..120),
        _ => 400,
    }
}

#[test]
fn input_flood_gains_no_more_than_the_stated_allowance() {
    let mut app = app();
    let tiles = walled();
    let map = tiles.clone();
    let scene = scene(&mut app, tiles);
    let mut random = Pcg64Mcg::seed_from_u64(17);
    let mut hackers: Vec<Hacker> = (0..HACKERS)
        .map(|nth| {
            let from = map
                .nearest_free(IVec2::new(nth as i32 % 5 * 14, 110 - nth as i32 * 2), 9)
                .unwrap();
            Hacker {
                entity: player(&mut app, scene, centre(from.x, from.y), SPEED),
                from,
                ahead_m: 0.0,
                least_ahead_m: 0.0,
                most_gained_m: 0.0,
                asked: 0,
            }
        })
        .collect();
    let rules = MovementSettings::default().move_limits();
    let a_tick_m = f64::from(rules.allowance_m(SPEED, TICK_S) - rules.allowance_m(SPEED, 0.0));
    // The maximum burst, whatever was sent before.
    let burst_m = f64::from(rules.allowance_m(SPEED, 0.0));
    let (mut sent, mut asked) = (0, 0);
    while sent < INPUTS {
        for (nth, hacker) in hackers.iter_mut().enumerate() {
            let at = position(&app, hacker.entity);
            let count = any_count(&mut random);
            // The first five go up and down the lane as far as possible, by directions alone.
            let straight = if at.x < 15.0 { 0 } else { 128 };
            for _ in 0..count {
                let motion = if nth < 5 {
                    PlayerMotion::Towards(straight)
                } else {
                    any_motion(&mut random, at)
                };
                let is_move = !matches!(motion, PlayerMotion::Turn | PlayerMotion::Stand);
                hacker.asked += u64::from(is_move);
                let (entity, heading) = (hacker.entity, sent as u8);
                app.world_mut().write_message(MoveInput {
                    entity,
                    motion,
                    heading,
                });
            }
            sent += count;
        }
        let before: Vec<Vec2> = hackers.iter().map(|it| position(&app, it.entity)).collect();
        app.update();
        for (hacker, before) in hackers.iter_mut().zip(before) {
            let at = position(&app, hacker.entity);
            asked += std::mem::take(&mut hacker.asked);
            let ground = Ground {
                tiles: &map,
                tile_m: TILE_M,
            };
            assert!(ground.is_free_at(at) && map.are_connected(hacker.from, ground.tile_at(at)));
            hacker.ahead_m += f64::from(before.distance(at)) - a_tick_m;
            let gained_m = hacker.ahead_m - hacker.least_ahead_m;
            assert!(gained_m <= burst_m + 1e-3, "{gained_m} of {burst_m}");
            hacker.most_gained_m = hacker.most_gained_m.max(gained_m);
            hacker.least_ahead_m = hacker.least_ahead_m.min(hacker.ahead_m);
        }
    }
    let stats = stats(&app);
    assert_eq!(stats.moves_accepted + stats.moves_refused, asked);
    assert!(stats.moves_refused > asked / 4, "{stats:?}");
    assert!(stats.moves_accepted > asked / 32, "{stats:?}");
    // The allowance can be reached, and not exceeded by much.
    let most_m = hackers.iter().map(|it| it.most_gained_m);
    let most_m = most_m.fold(0.0, f64::max);
    assert!(most_m > burst_m * 0.9, "{most_m} of {burst_m}");
}

#[test]
fn direction_burst_spends_the_saved_second_then_one_step_a_tick() {
    let mut app = app();
    let scene = scene(&mut app, TileMap::new(400, 4, false).unwrap());
    let someone = player(&mut app, scene, centre(0, 0), SPEED);
    (0..60).for_each(|_| app.update());
    let burst = |app: &mut App| {
        let from = position(app, someone).x;
        for _ in 0..100 {
            app.world_mut().write_message(MoveInput {
                entity: someone,
                motion: PlayerMotion::Towards(0),
                heading: 0,
            });
        }
        app.update();
        ((position(app, someone).x - from) / (SPEED * TICK_S)).round()
    };
    // A second at 20 Hz and the tolerance are 22 steps; then every tick gives one, and a tenth of the next.
    assert_eq!(burst(&mut app), 22.0);
    let later: f32 = (0..20).map(|_| burst(&mut app)).sum();
    assert!((21.0..=23.0).contains(&later), "{later}");
    assert!(velocity(&app, someone).x <= SPEED * 1.1 + 1e-3);
}

#[test]
fn directed_step_sets_velocity_and_stand_clears_it_at_once() {
    let mut app = app();
    let scene = ascii_scene(&mut app, "....\n..@@");
    let someone = player(&mut app, scene, centre(0, 0), 2.0);
    (0..30).for_each(|_| app.update());
    let mut act = |motion| {
        app.world_mut().write_message(MoveInput {
            entity: someone,
            motion,
            heading: 3,
        });
        app.update();
        (position(&app, someone), velocity(&app, someone))
    };
    let (at, pace) = act(PlayerMotion::Towards(0));
    assert!((at - centre(0, 0) - Vec2::new(0.1, 0.0)).length() < 1e-6);
    assert!((pace - Vec2::new(2.0, 0.0)).length() < 1e-4);
    assert_eq!(act(PlayerMotion::Turn), (at, pace));
    assert_eq!(act(PlayerMotion::Stand), (at, Vec2::ZERO));
}
