//! The counters of players' moves, compared with a plain model.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;

const SPEED: f32 = 4.0;
const SIDE: u32 = 40;

/// Accepted, refused and corrected moves.
type MoveCounts = [u64; 3];

/// The unit vector of a direction that is a multiple of an eighth of a turn.
fn eighth(direction: u8) -> (f64, f64) {
    let half = std::f64::consts::FRAC_1_SQRT_2;
    match direction / 32 {
        0 => (1.0, 0.0),
        1 => (half, half),
        2 => (0.0, 1.0),
        3 => (-half, half),
        4 => (-1.0, 0.0),
        5 => (-half, -half),
        6 => (0.0, -1.0),
        _ => (half, -half),
    }
}

/// Where a client without the map expects to be after a step in a direction, in doubles.
fn open_end(from: Vec2, direction: u8) -> Vec2 {
    let step = f64::from(SPEED * TICK_S);
    let side = f64::from(SIDE) * f64::from(TILE_M);
    let end = |from: f32, way: f64| (f64::from(from) + way * step).clamp(0.0, side) as f32;
    let (x, y) = eighth(direction);
    Vec2::new(end(from.x, x), end(from.y, y))
}

/// Judges one move by its ends alone, and adds it to the counts.
fn judge(motion: PlayerMotion, is_refused: bool, from: Vec2, at: Vec2, counts: &mut MoveCounts) {
    match motion {
        PlayerMotion::Stand | PlayerMotion::Turn => {
            assert!(!is_refused && at == from);
        }
        _ if is_refused => {
            counts[1] += 1;
            assert_eq!(at, from, "{motion:?}");
        }
        PlayerMotion::To(to) => {
            counts[0] += 1;
            assert_eq!(at, to, "a move to a position is exact or refused");
        }
        PlayerMotion::Towards(direction) => {
            counts[0] += 1;
            counts[2] += u64::from(at.distance(open_end(from, direction)) > 1e-4);
        }
    }
}

#[test]
fn accepted_refused_and_corrected_moves_match_a_model() {
    let mut app = app();
    let tiles = TileMap::from_fn(SIDE, SIDE, |x, y| x % 5 == 2 && y % 4 != 1).unwrap();
    let scene = scene(&mut app, tiles);
    let players: Vec<Entity> = (0..30)
        .map(|nth| player(&mut app, scene, centre(nth % 2, nth), SPEED))
        .collect();
    let mut random = Pcg64Mcg::seed_from_u64(11);
    let (mut counts, mut at_border) = (MoveCounts::default(), 0);
    for _ in 0..400 {
        let moves: Vec<_> = players
            .iter()
            .map(|&entity| {
                let at = position(&app, entity);
                let motion = match random.random_range(0..12) {
                    0 => PlayerMotion::Stand,
                    1 => PlayerMotion::Turn,
                    2 => PlayerMotion::To(at + Vec2::new(random.random_range(-9.0..9.0), 0.0)),
                    3 => PlayerMotion::To(at + Vec2::new(0.0, random.random_range(-0.3..0.3))),
                    // Straight on, so that all come to walls and to the border.
                    nth => PlayerMotion::Towards(
                        (entity.index_u32() as u8 % 8 * 32).wrapping_add(nth / 10 * 96),
                    ),
                };
                app.world_mut().write_message(MoveInput {
                    entity,
                    motion,
                    heading: 0,
                });
                (entity, motion, at)
            })
            .collect();
        app.update();
        let refused: Vec<_> = written::<MoveRefused>(&app);
        for (entity, motion, from) in moves {
            let at = position(&app, entity);
            let is_refused = refused.iter().any(|refused| refused.entity == entity);
            judge(motion, is_refused, from, at, &mut counts);
            let side = SIDE as f32 * TILE_M;
            let is_step = matches!(motion, PlayerMotion::Towards(_));
            at_border +=
                u64::from(is_step && (at.min_element() == 0.0 || at.max_element() == side));
        }
        let stats = stats(&app);
        let counted = [
            stats.moves_accepted,
            stats.moves_refused,
            stats.moves_corrected,
        ];
        assert_eq!(counted, counts);
    }
    assert!(counts.iter().all(|&count| count > 500), "{counts:?}");
    assert!(at_border > 500, "{at_border}");
}

#[test]
fn counts_of_all_threads_add_up() {
    const COUNT: u64 = 3_000;
    bevy_tasks::ComputeTaskPool::get_or_init(bevy_tasks::TaskPool::default);
    for threads in [1, 3] {
        let mut app = app();
        app.insert_resource(sim::Workers::new(threads));
        let scene = ascii_scene(&mut app, ".@\n..");
        // More than one work item, all in front of the wall.
        let players: Vec<Entity> = (0..COUNT)
            .map(|_| player(&mut app, scene, Vec2::new(0.4, 0.25), SPEED))
            .collect();
        (0..30).for_each(|_| app.update());
        for motion in [
            PlayerMotion::Towards(0),
            PlayerMotion::Towards(128),
            PlayerMotion::To(Vec2::new(0.75, 0.25)),
        ] {
            for &entity in &players {
                app.world_mut().write_message(MoveInput {
                    entity,
                    motion,
                    heading: 0,
                });
            }
            app.update();
        }
        let MovementStats {
            moves_accepted,
            moves_refused,
            moves_corrected,
            ..
        } = stats(&app);
        let counts = [moves_accepted, moves_refused, moves_corrected];
        assert_eq!(counts, [2 * COUNT, COUNT, COUNT], "{threads} threads");
    }
}
