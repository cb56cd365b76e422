//! The eight directions of a step.

use glam::IVec2;

/// One of the eight neighbours of a tile; x grows to the east, y to the south.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Direction {
    /// (0, −1)
    North,
    /// (1, 0)
    East,
    /// (0, 1)
    South,
    /// (−1, 0)
    West,
    /// (1, −1)
    NorthEast,
    /// (1, 1)
    SouthEast,
    /// (−1, 1)
    SouthWest,
    /// (−1, −1)
    NorthWest,
}

impl Direction {
    /// All eight, the straight ones first, in the order in which a search tries them.
    pub const ALL: [Direction; 8] = [
        Direction::North,
        Direction::East,
        Direction::South,
        Direction::West,
        Direction::NorthEast,
        Direction::SouthEast,
        Direction::SouthWest,
        Direction::NorthWest,
    ];

    /// The step to the neighbour.
    #[inline]
    pub const fn step(self) -> IVec2 {
        const STEPS: [IVec2; 8] = [
            IVec2::new(0, -1),
            IVec2::new(1, 0),
            IVec2::new(0, 1),
            IVec2::new(-1, 0),
            IVec2::new(1, -1),
            IVec2::new(1, 1),
            IVec2::new(-1, 1),
            IVec2::new(-1, -1),
        ];
        STEPS[self as usize]
    }

    /// The direction whose step is (`dx`, `dy`), each −1, 0 or 1; none for (0, 0) and longer steps.
    #[inline]
    pub const fn of_step(dx: i32, dy: i32) -> Option<Direction> {
        match (dx, dy) {
            (0, -1) => Some(Direction::North),
            (1, 0) => Some(Direction::East),
            (0, 1) => Some(Direction::South),
            (-1, 0) => Some(Direction::West),
            (1, -1) => Some(Direction::NorthEast),
            (1, 1) => Some(Direction::SouthEast),
            (-1, 1) => Some(Direction::SouthWest),
            (-1, -1) => Some(Direction::NorthWest),
            _ => None,
        }
    }

    /// Whether the step changes both coordinates.
    #[inline]
    pub const fn is_diagonal(self) -> bool {
        self as u8 >= Direction::NorthEast as u8
    }
}

/// A set of directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Directions(u8);

impl Directions {
    /// All eight.
    pub(super) const ALL: Directions = Directions(u8::MAX);

    /// One direction.
    #[inline(always)]
    pub(super) const fn of(direction: Direction) -> Self {
        Self(1 << direction as u8)
    }

    /// The set with these bits, by the number of the direction.
    pub(super) const fn of_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// One bit per direction.
    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    /// The set plus the direction of a step, if it has one.
    #[inline(always)]
    pub(super) const fn with_step(self, dx: i32, dy: i32) -> Self {
        match Direction::of_step(dx, dy) {
            Some(direction) => Self(self.0 | 1 << direction as u8),
            None => self,
        }
    }

    /// Whether the path from one tile to another, first diagonal and then straight, starts in one of the directions.
    #[inline(always)]
    pub(super) fn lead_to(self, from: IVec2, to: IVec2) -> bool {
        let way = (to - from).signum();
        const BITS: [u8; 9] = {
            let mut bits = [0; 9];
            let mut place = 0;
            while place < 9 {
                let (dx, dy) = (place as i32 % 3 - 1, place as i32 / 3 - 1);
                bits[place] = Directions(0).with_step(dx, dy).0;
                place += 1;
            }
            bits
        };
        self.0 & BITS[(way.y * 3 + way.x + 4) as usize] != 0
    }

    /// The directions in the order of [`Direction::ALL`].
    #[inline(always)]
    pub(super) fn iter(self) -> impl Iterator<Item = Direction> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let direction = *Direction::ALL.get(left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(direction)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direction_round_trips_through_its_step() {
        for direction in Direction::ALL {
            let step = direction.step();
            assert_eq!(Direction::of_step(step.x, step.y), Some(direction));
            assert_eq!(direction.is_diagonal(), step.x != 0 && step.y != 0);
        }
        assert_eq!(Direction::of_step(0, 0), None);
        assert_eq!(Direction::of_step(2, 0), None);
    }
}
