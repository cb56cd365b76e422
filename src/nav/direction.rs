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
    /// All eight, the straight ones first, as a search looks at them.
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
        match self {
            Direction::North => IVec2::new(0, -1),
            Direction::East => IVec2::new(1, 0),
            Direction::South => IVec2::new(0, 1),
            Direction::West => IVec2::new(-1, 0),
            Direction::NorthEast => IVec2::new(1, -1),
            Direction::SouthEast => IVec2::new(1, 1),
            Direction::SouthWest => IVec2::new(-1, 1),
            Direction::NorthWest => IVec2::new(-1, -1),
        }
    }

    /// The direction whose step is (`dx`, `dy`), each −1, 0 or 1; (0, 0) and anything longer has none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_is_found_again_by_its_step() {
        for direction in Direction::ALL {
            let step = direction.step();
            assert_eq!(Direction::of_step(step.x, step.y), Some(direction));
            assert_eq!(direction.is_diagonal(), step.x != 0 && step.y != 0);
        }
        assert_eq!(Direction::of_step(0, 0), None);
        assert_eq!(Direction::of_step(2, 0), None);
    }
}
