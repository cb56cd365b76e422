//! Walker 0 sees at most eight of 300: members of its team (class 2) evict unrelated walkers (class 1) from its list.
//!
//! `cargo run -p throng_aoi --example walkers`
#![allow(clippy::print_stdout, reason = "an example prints")]

use glam::Vec2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_aoi::{SceneViews, ViewCaps, ViewEvent, ViewProfile, ViewTraits};
use throng_core::kinds::{ObjectCategory, ViewRange};

const SIDE_M: f32 = 100.0;
const WALKERS: u32 = 300;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let mut between =
        |low, high| Vec2::from_array([(); 2].map(|()| random.random_range(low..high)));
    // Cells of 10 m; a walker that strays less than 1 m from its cell stays in it.
    let mut views = SceneViews::with_size((SIDE_M, SIDE_M), 10.0, 1.0, WALKERS)?;
    let mut walkers = Vec::new();
    for id in 0..WALKERS {
        let (position, step) = (between(0.0, SIDE_M), between(-0.7, 0.7));
        let profile = ViewProfile {
            class: ObjectCategory::Player,
            visibility: ViewRange::Near,
            traits: ViewTraits {
                team: id % 10 + 1,
                ..ViewTraits::default()
            },
            viewable: true,
        };
        views.insert(id, position, profile, Some(ViewCaps::all(8)))?;
        walkers.push((position, step));
    }
    let mut events = Vec::new();
    for tick in 1..=60 {
        views.update(WALKERS, &mut events);
        for event in events.drain(..).filter(|event| event.pair().0 == 0) {
            match event {
                ViewEvent::Enter {
                    target, priority, ..
                } => {
                    println!("tick {tick:2}: {target:3} enters, of class {priority}");
                }
                ViewEvent::Leave { target, reason, .. } => {
                    println!("tick {tick:2}: {target:3} leaves: {reason:?}");
                }
            }
        }
        for (id, (position, step)) in (0..).zip(&mut walkers) {
            *position = (*position + *step).rem_euclid(Vec2::splat(SIDE_M));
            views.locate(id, *position);
        }
    }
    println!("in all views: {:?}", views.counters());
    Ok(())
}
