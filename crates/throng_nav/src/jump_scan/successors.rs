//! The successors of a node of Jump Point Search, for any scanner.
//!
//! Of all equally short paths only those are followed that go diagonally first and then straight, and a path turns
//! only where `rule` says that it may have to. So a node's successors are the tiles where paths from it may turn:
//!
//! - A straight scan ends at the first such tile, a *jump point*, or before a wall.
//! - A diagonal scan stops where one of its two straight parts would meet a jump point, or where the path may have to turn
//!   itself. Without `PRUNE` that tile is opened and scans its straight parts again when it is expanded. With
//!   `PRUNE` the jump points of the straight parts become successors of the node being expanded, and the scan continues to
//!   the wall; the bend is restored when the path is written. Where the path itself may have to turn, the tile is opened.

use glam::IVec2;

use super::walk::JumpScanner;
use crate::direction::{Direction, Directions};

/// Calls `offer` with the tiles where paths from a tile may turn, and the direction in which each is reached.
#[inline]
pub(crate) fn for_each_successor<W, const CUT: bool, const PRUNE: bool>(
    walks: &W,
    from: IVec2,
    directions: Directions,
    mut offer: impl FnMut(IVec2, Direction),
) where
    W: JumpScanner<CUT>,
{
    for direction in directions.iter() {
        let offer = &mut offer;
        match direction {
            Direction::North => straight::<W, CUT, 0, -1>(walks, from, offer),
            Direction::East => straight::<W, CUT, 1, 0>(walks, from, offer),
            Direction::South => straight::<W, CUT, 0, 1>(walks, from, offer),
            Direction::West => straight::<W, CUT, -1, 0>(walks, from, offer),
            Direction::NorthEast => diagonal::<W, CUT, PRUNE, 1, -1>(walks, from, offer),
            Direction::SouthEast => diagonal::<W, CUT, PRUNE, 1, 1>(walks, from, offer),
            Direction::SouthWest => diagonal::<W, CUT, PRUNE, -1, 1>(walks, from, offer),
            Direction::NorthWest => diagonal::<W, CUT, PRUNE, -1, -1>(walks, from, offer),
        }
    }
}

/// Scans straight, and offers the jump point found.
#[inline(always)]
fn straight<W: JumpScanner<CUT>, const CUT: bool, const DX: i32, const DY: i32>(
    walks: &W,
    from: IVec2,
    offer: &mut impl FnMut(IVec2, Direction),
) {
    let steps = walks
        .scan_straight::<DX, DY>(from.x, from.y)
        .to_jump_point();
    emit_ahead::<DX, DY>(from, steps, offer);
}

/// Scans diagonally, and offers the stops, or with `PRUNE` the jump points of their straight parts.
#[inline(always)]
fn diagonal<W, const CUT: bool, const PRUNE: bool, const DX: i32, const DY: i32>(
    walks: &W,
    from: IVec2,
    offer: &mut impl FnMut(IVec2, Direction),
) where
    W: JumpScanner<CUT>,
{
    let mut at = from;
    loop {
        let stop = walks.scan_diagonal::<DX, DY>(at.x, at.y);
        if stop.is_before_wall() {
            return;
        }
        if !PRUNE || (CUT && stop.turns) {
            emit_ahead::<DX, DY>(at, stop.steps, offer);
            return;
        }
        at += IVec2::new(DX, DY) * stop.steps as i32;
        emit_ahead::<DX, 0>(at, stop.across, offer);
        emit_ahead::<0, DY>(at, stop.along, offer);
    }
}

/// Offers the tile at a number of steps ahead, unless the number is 0.
#[inline(always)]
fn emit_ahead<const DX: i32, const DY: i32>(
    from: IVec2,
    steps: u32,
    offer: &mut impl FnMut(IVec2, Direction),
) {
    if steps > 0
        && let Some(direction) = Direction::of_step(DX, DY)
    {
        offer(from + IVec2::new(DX, DY) * steps as i32, direction);
    }
}
