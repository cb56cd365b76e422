//! Caves: noise, smoothed by a cellular automaton until halls remain (Johnson, Yannakakis and Togelius, "Cellular
//! automata for real-time generation of infinite cave levels", 2010).

use rand_pcg::Pcg64Mcg;

use super::canvas::{Chance, check_range, check_sides, fill_pockets, noise};
use super::recipe::CaveRecipe;
use crate::map::bit_plane::BitPlane;
use crate::map::error::MapError;

pub(super) fn generate(recipe: &CaveRecipe, rng: &mut Pcg64Mcg) -> Result<BitPlane, MapError> {
    let (width, height) = (recipe.width_tiles, recipe.height_tiles);
    check_sides(width, height)?;
    let fill = Chance::new("fill", recipe.fill)?;
    check_range("smoothing_rounds", recipe.smoothing_rounds, 0, 64)?;
    let mut plane = noise(width, height, fill, rng);
    let mut next = plane.clone();
    for _ in 0..recipe.smoothing_rounds {
        for y in 0..height {
            let words = (0..width)
                .step_by(64)
                .map(|x| majority(&plane, x as i32, y as i32));
            next.set_row(y, words);
        }
        std::mem::swap(&mut plane, &mut next);
    }
    Ok(fill_pockets(plane, u64::MAX))
}

/// For 64 tiles from (x, y) on, whether five or more of the nine tiles around each one, itself included, are blocked.
///
/// The nine are counted for all 64 at once: bit `i` of the four counter words together is the count of tile `i`.
fn majority(plane: &BitPlane, x: i32, y: i32) -> u64 {
    let mut counter = [0u64; 4];
    for dy in -1..=1 {
        for dx in -1..=1 {
            let mut carry = plane.word_at(x + dx, y + dy);
            for digit in &mut counter {
                (*digit, carry) = (*digit ^ carry, *digit & carry);
            }
        }
    }
    let [ones, twos, fours, eights] = counter;
    eights | fours & (twos | ones)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::rand_core::SeedableRng;

    #[test]
    fn majority_of_nine_matches_a_count_per_tile() {
        let mut rng = Pcg64Mcg::seed_from_u64(4);
        let plane = noise(150, 20, Chance::percent(50), &mut rng);
        for y in 0..20 {
            for x in 0..150 {
                let around = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (x + dx, y + dy)));
                let count = around.filter(|(x, y)| plane.is_blocked(*x, *y)).count();
                assert_eq!(majority(&plane, x, y) & 1 == 1, count >= 5, "({x}, {y})");
            }
        }
    }
}
