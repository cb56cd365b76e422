//! Areas in which individuals spawn and choose goals, and the search for free tiles in them.

use glam::{IVec2, Vec2};
use rand::{Rng, RngExt};

use throng::map::{RegionId, TileMap};
use throng::sim::StateHasher;
use throng::world::StateHashed;

/// Number of random tiles tried before the search for the nearest free tile.
const RANDOM_TRIES: u32 = 32;

/// Maximum distance of the nearest free tile, in tiles.
const NEAREST_TILES_MAX: u32 = 4096;

/// An area of a scene, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CrowdArea {
    /// An axis-aligned rectangle.
    Rect {
        /// The top left corner, in metres.
        min: Vec2,
        /// The bottom right corner, in metres.
        max: Vec2,
    },
    /// A ring: all points whose distance from the centre differs from `radius` by at most `width / 2`.
    Ring {
        /// The centre, in metres.
        center: Vec2,
        /// The radius of the middle of the ring, in metres.
        radius: f32,
        /// Distance from the inner to the outer edge, in metres.
        width: f32,
    },
    /// A single point, in metres.
    Point(Vec2),
}

impl CrowdArea {
    /// A random point of the area. It may be blocked or outside the scene.
    pub fn point(&self, random: &mut impl Rng) -> Vec2 {
        let mut unit = || random.random_range(0.0..=1.0f32);
        match *self {
            Self::Rect { min, max } => min + (max - min) * Vec2::new(unit(), unit()),
            Self::Ring {
                center,
                radius,
                width,
            } => {
                let distance = radius + width * (unit() - 0.5);
                center + random_direction(random) * distance
            }
            Self::Point(point) => point,
        }
    }

    /// The centre of the area, in metres. The centre of a ring can be outside the ring itself.
    #[must_use]
    pub fn centre(&self) -> Vec2 {
        match *self {
            Self::Rect { min, max } => (min + max) / 2.0,
            Self::Ring { center, .. } => center,
            Self::Point(point) => point,
        }
    }

    /// Whether a point lies in the area, extended by `slack_m` metres on each side.
    #[must_use]
    pub fn contains(&self, point: Vec2, slack_m: f32) -> bool {
        match *self {
            Self::Rect { min, max } => {
                let slack = Vec2::splat(slack_m);
                point.cmpge(min - slack).all() && point.cmple(max + slack).all()
            }
            Self::Ring {
                center,
                radius,
                width,
            } => (point.distance(center) - radius).abs() <= width / 2.0 + slack_m,
            Self::Point(own) => own.distance(point) <= slack_m,
        }
    }

    /// Distance of a point from the area, in metres; 0 inside it.
    #[must_use]
    pub fn distance_m(&self, point: Vec2) -> f32 {
        match *self {
            Self::Rect { min, max } => point.distance(point.clamp(min, max)),
            Self::Ring {
                center,
                radius,
                width,
            } => ((point.distance(center) - radius).abs() - width / 2.0).max(0.0),
            Self::Point(own) => own.distance(point),
        }
    }

    /// Whether a point is in the area. A ring includes everything inside its outer edge.
    #[must_use]
    pub fn surrounds(&self, point: Vec2) -> bool {
        match *self {
            Self::Rect { min, max } => point.cmpge(min).all() && point.cmple(max).all(),
            Self::Ring {
                center,
                radius,
                width,
            } => point.distance(center) <= radius + width / 2.0,
            Self::Point(spot) => point == spot,
        }
    }

    /// Returns a random free tile of the area in this region of the map. If 32 random tries find none, returns the free tile of the
    /// region that is nearest to a random point of the area; `None` if that is more than 4096 tiles away.
    pub fn free_tile(
        &self,
        map: &TileMap,
        tile_m: f32,
        region: RegionId,
        random: &mut impl Rng,
    ) -> Option<IVec2> {
        let last = IVec2::new(map.width() as i32 - 1, map.height() as i32 - 1);
        let mut tile = |place: &Self| (place.point(random) / tile_m).floor().as_ivec2();
        for _ in 0..RANDOM_TRIES {
            let tile = tile(self);
            if map.is_in_region(tile, region) {
                return Some(tile);
            }
        }
        map.nearest_in_region(
            tile(self).clamp(IVec2::ZERO, last),
            NEAREST_TILES_MAX,
            region,
        )
    }
}

impl StateHashed for CrowdArea {
    /// Hashes all fields, since different areas may have the same centre.
    fn hash(&self, hasher: &mut StateHasher) {
        let (tag, floats) = match *self {
            Self::Rect { min, max } => (0, [min.x, min.y, max.x, max.y]),
            Self::Ring {
                center,
                radius,
                width,
            } => (1, [center.x, center.y, radius, width]),
            Self::Point(point) => (2, [point.x, point.y, 0.0, 0.0]),
        };
        hasher.write_u64(tag);
        floats.into_iter().for_each(|float| hasher.write_f32(float));
    }
}

/// A random unit vector, drawn without trigonometry so that it is the same on every platform.
pub fn random_direction(random: &mut impl Rng) -> Vec2 {
    loop {
        let point = Vec2::new(
            random.random_range(-1.0..=1.0f32),
            random.random_range(-1.0..=1.0f32),
        );
        let length_squared = point.length_squared();
        if (0.01..=1.0).contains(&length_squared) {
            return point / length_squared.sqrt();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn points_lie_in_their_area() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let ring = CrowdArea::Ring {
            center: Vec2::splat(50.0),
            radius: 20.0,
            width: 4.0,
        };
        let rect = CrowdArea::Rect {
            min: Vec2::new(1.0, 2.0),
            max: Vec2::new(3.0, 8.0),
        };
        for _ in 0..200 {
            let point = ring.point(&mut random);
            let distance = point.distance(Vec2::splat(50.0));
            assert!((17.9..=22.1).contains(&distance), "{distance}");
            assert!(ring.contains(point, 0.1));
            let point = rect.point(&mut random);
            assert!(rect.contains(point, 0.1) && CrowdArea::Point(point).contains(point, 0.1));
            assert!(
                point.cmpge(Vec2::new(1.0, 2.0)).all() && point.cmple(Vec2::new(3.0, 8.0)).all()
            );
        }
    }

    #[test]
    fn points_outside_an_area_are_not_contained() {
        let (center, slack_m) = (Vec2::splat(50.0), 0.5);
        let ring = CrowdArea::Ring {
            center,
            radius: 20.0,
            width: 4.0,
        };
        assert!(!ring.contains(center, slack_m) && !ring.contains(Vec2::new(73.0, 50.0), slack_m));
        let rect = CrowdArea::Rect {
            min: Vec2::ZERO,
            max: Vec2::new(9.0, 3.0),
        };
        assert!(!rect.contains(Vec2::new(5.0, 4.0), slack_m));
        assert!(!CrowdArea::Point(center).contains(Vec2::splat(51.0), slack_m));
        assert_eq!(ring.distance_m(center), 18.0);
        assert_eq!(ring.distance_m(Vec2::new(75.0, 50.0)), 3.0);
        assert_eq!(rect.distance_m(Vec2::new(12.0, 7.0)), 5.0);
        assert_eq!(rect.distance_m(Vec2::new(9.0, 1.0)), 0.0);
        assert_eq!(
            CrowdArea::Point(center).distance_m(Vec2::new(50.0, 53.0)),
            3.0
        );
    }

    #[test]
    fn free_tile_is_in_the_region_even_if_the_area_is_not() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let map = TileMap::from_ascii("..@..\n..@..\n..@.@").unwrap();
        let left = map.region(IVec2::ZERO).unwrap();
        let right_side = CrowdArea::Rect {
            min: Vec2::new(3.0, 0.0),
            max: Vec2::new(5.0, 3.0),
        };
        for _ in 0..20 {
            let tile = right_side.free_tile(&map, 1.0, left, &mut random).unwrap();
            assert_eq!(map.region(tile), Some(left));
        }
        let outside = CrowdArea::Point(Vec2::splat(1e9));
        assert!(outside.free_tile(&map, 1.0, left, &mut random).is_some());
    }
}
