//! Jump Point Search: which successors a node has, and what all the variants share.
//!
//! Of all equally short paths only those are followed that go diagonally first and straight after, and a walk turns
//! only where `rule` says that it may have to. So a node's successors are the tiles where walks out of it may turn:
//!
//! - A straight walk ends at the first such tile, a *jump point*, or before a wall.
//! - A diagonal walk stops where one of its two straight parts would meet a jump point, or where it may have to turn
//!   itself. Without `PRUNE` that tile is opened and looks along its straight parts again when it is expanded. With
//!   `PRUNE` what the straight parts meet becomes a successor of the node being expanded, and the walk goes on to the
//!   wall; the bend is put back when the path is written. Where the walk itself may have to turn, the tile is opened.
//! - No walk looks out for the goal. A node from which the way to it is clear, first diagonally and then straight, ends
//!   the search when it is taken off the open list: that way is as long as the estimate, so none is shorter. The last
//!   node of a shortest path is such a node, and the way sets out in one of the directions in which it would go on.
//!
//! The variants differ in who tells them where walks end ([`Walks`]): `tiles` looks at one tile after the other, `bits`
//! at 64, `planes` knows which straight parts are worth a look, `table` knows all distances.

use glam::IVec2;

use super::cost::octile;
use super::direction::{Direction, Directions};
use super::rule::{diagonal_turns, directions_on, is_step_free};
use super::search::SearchRun;
use crate::map::BitPlane;

/// Where a straight walk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// Free tiles walked, the jump point included.
    pub(super) steps: u32,
    /// Whether the walk ends at a jump point rather than before a wall.
    pub(super) is_jump_point: bool,
}

impl Reach {
    /// The steps to the jump point; 0 where there is none.
    #[inline(always)]
    pub(super) fn to_jump_point(self) -> u32 {
        if self.is_jump_point { self.steps } else { 0 }
    }
}

/// Where a diagonal walk stops next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// Free tiles walked, the stop included.
    pub(super) steps: u32,
    /// From the stop, the steps east or west to a jump point; 0 where there is none.
    pub(super) across: u32,
    /// The same to the north or south.
    pub(super) along: u32,
    /// Whether the walk may have to turn here itself.
    pub(super) turns: bool,
}

impl Stop {
    /// The end of a diagonal walk before a wall.
    #[inline(always)]
    pub(super) const fn before_wall(steps: u32) -> Self {
        Self {
            steps,
            across: 0,
            along: 0,
            turns: false,
        }
    }

    /// Whether the walk ends here.
    #[inline(always)]
    pub(super) const fn is_before_wall(self) -> bool {
        self.across == 0 && self.along == 0 && !self.turns
    }
}

/// Tells where walks over a map end, under the rule that `CUT` stands for. Walks start on free tiles.
pub(super) trait Walks<const CUT: bool> {
    /// The map.
    fn rows(&self) -> &BitPlane;

    /// Where the straight walk from a tile ends.
    fn straight<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> Reach;

    /// Whether the way from one tile to another is clear, first diagonally and then straight, as far as both go.
    #[inline]
    fn is_clear(&self, from: IVec2, to: IVec2) -> bool {
        let mut tile = from;
        while tile != to {
            let step = (to - tile).signum();
            if !is_step_free::<CUT>(self.rows(), tile.x, tile.y, step.x, step.y) {
                return false;
            }
            tile += step;
        }
        true
    }

    /// Where the diagonal walk from a tile stops next.
    #[inline]
    fn diagonal<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> Stop {
        let (mut x, mut y) = (x, y);
        let mut steps = 0;
        while is_step_free::<CUT>(self.rows(), x, y, DX, DY) {
            (x, y, steps) = (x + DX, y + DY, steps + 1);
            let (aside, back) = diagonal_turns::<CUT>(self.rows(), x, y, (DX, DY));
            let stop = Stop {
                steps,
                across: self.straight::<DX, 0>(x, y).to_jump_point(),
                along: self.straight::<0, DY>(x, y).to_jump_point(),
                turns: aside || back,
            };
            if !stop.is_before_wall() {
                return stop;
            }
        }
        Stop::before_wall(steps)
    }
}

/// Expands nodes until the goal is settled, the limit is hit or nothing is left.
pub(super) fn expand_all<W, const CUT: bool, const PRUNE: bool>(run: &mut SearchRun, walks: &W)
where
    W: Walks<CUT>,
{
    while let Some(current) = run.next() {
        let (tile, goal) = (current.key.tile(), run.goal);
        let directions = directions_on::<CUT>(walks.rows(), tile, current.direction);
        if directions.lead_to(tile, goal) && walks.is_clear(tile, goal) {
            run.reach_goal(current.node, current.g + octile(tile, goal));
            return;
        }
        for_each_successor::<W, CUT, PRUNE>(walks, tile, directions, |successor, direction| {
            let g = current.g + octile(tile, successor);
            run.reach(current.node, successor, g, Some(direction));
        });
    }
}

/// Calls `offer` with the tiles where walks from a tile may turn, and the direction in which each is reached.
#[inline]
pub(super) fn for_each_successor<W, const CUT: bool, const PRUNE: bool>(
    walks: &W,
    from: IVec2,
    directions: Directions,
    mut offer: impl FnMut(IVec2, Direction),
) where
    W: Walks<CUT>,
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

/// Walks straight, and offers the jump point met.
#[inline(always)]
fn straight<W: Walks<CUT>, const CUT: bool, const DX: i32, const DY: i32>(
    walks: &W,
    from: IVec2,
    offer: &mut impl FnMut(IVec2, Direction),
) {
    let steps = walks.straight::<DX, DY>(from.x, from.y).to_jump_point();
    offer_ahead::<DX, DY>(from, steps, offer);
}

/// Walks diagonally, and offers the stops, or with `PRUNE` what their straight parts meet.
#[inline(always)]
fn diagonal<W, const CUT: bool, const PRUNE: bool, const DX: i32, const DY: i32>(
    walks: &W,
    from: IVec2,
    offer: &mut impl FnMut(IVec2, Direction),
) where
    W: Walks<CUT>,
{
    let mut at = from;
    loop {
        let stop = walks.diagonal::<DX, DY>(at.x, at.y);
        if stop.is_before_wall() {
            return;
        }
        if !PRUNE || (CUT && stop.turns) {
            offer_ahead::<DX, DY>(at, stop.steps, offer);
            return;
        }
        at += IVec2::new(DX, DY) * stop.steps as i32;
        offer_ahead::<DX, 0>(at, stop.across, offer);
        offer_ahead::<0, DY>(at, stop.along, offer);
    }
}

/// Offers the tile some steps ahead, unless there are none.
#[inline(always)]
fn offer_ahead<const DX: i32, const DY: i32>(
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
