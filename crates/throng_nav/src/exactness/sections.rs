//! The prepared data of a map loaded from its file: the same, or refused; forged, never a panic.

use glam::IVec2;
use proptest::prelude::*;

use super::map_and_tiles;
use crate::map::{MapFormat, MapSection, TileEdit, TileMap, TileRect, decode, encode};
use crate::{Algorithm, Diagonal, MultiStartSearch, NavMap, PathQuery, PathSearch, SearchOutcome};

const READING: [Algorithm; 2] = [Algorithm::JpsBitPrune, Algorithm::JpsGraph];

fn built(map: &TileMap, diagonal: Diagonal) -> NavMap {
    let mut nav_map = NavMap::new(diagonal);
    nav_map.prepare(map, Algorithm::JpsGraph);
    nav_map
}

/// A map with the sections of both rules.
fn with_all_sections(map: &TileMap) -> TileMap {
    let parts = Diagonal::ALL.map(|diagonal| built(map, diagonal).to_sections(map));
    map.clone().with_sections(parts.concat())
}

fn is_same(one: &NavMap, other: &NavMap) -> bool {
    one.planes() == other.planes() && one.graph() == other.graph()
}

/// The lengths and waypoints between all consecutive tiles of a list.
fn search_all(
    map: &TileMap,
    nav_map: &NavMap,
    tiles: &[IVec2],
) -> Vec<(SearchOutcome, Vec<IVec2>)> {
    let mut search = PathSearch::new();
    let mut found = Vec::new();
    for algorithm in READING {
        for ends in tiles.windows(2) {
            let (query, mut waypoints) = (PathQuery::new(ends[0], ends[1]), Vec::new());
            let outcome = search.find(map, nav_map, algorithm, query, &mut waypoints);
            found.push((outcome, waypoints));
        }
    }
    found
}

/// Exercises all operations on the prepared data of a map.
fn exercise(mut map: TileMap, mut nav_map: NavMap, tiles: &[IVec2]) {
    for tile in tiles {
        search_all(&map, &nav_map, tiles);
        let mut shared = MultiStartSearch::new();
        let mut outcomes = Vec::new();
        shared.find(&map, &nav_map, *tile, tiles, None, &mut outcomes);
        let mut waypoints = Vec::new();
        (0..tiles.len()).for_each(|nth| shared.write_path(nth, &mut waypoints));
        // Wrong planes are repaired where the edit is, and a graph is built from them.
        let rect = TileRect::new(tile.x as u32, tile.y as u32, 1, 1);
        let changed = map.edit(rect, &TileEdit::Toggle).unwrap();
        nav_map.apply_edit(&map, &changed.into_iter().collect::<Vec<_>>());
        nav_map.prepare(&map, Algorithm::JpsGraph);
    }
    search_all(&map, &nav_map, tiles);
}

/// A change of a section: overwrites one or more bytes.
fn forge(part: &MapSection, (at, length, value): (usize, usize, u8)) -> MapSection {
    let mut bytes = part.bytes().to_vec();
    let at = 24 + at % (bytes.len() - 24);
    let end = (at + length).min(bytes.len());
    for byte in &mut bytes[at..end] {
        *byte = if length == 1 { *byte ^ value } else { value };
    }
    MapSection::new(part.tag(), bytes)
}

fn forgeries() -> impl Strategy<Value = Vec<(usize, usize, u8)>> {
    let length = prop_oneof![4 => Just(1usize), 1 => 2usize..400];
    let value = prop_oneof![Just(0u8), Just(u8::MAX), any::<u8>()];
    prop::collection::vec((any::<usize>(), length, value), 1..6)
}

proptest! {
    #![proptest_config(draws!(100))]

    #[test]
    fn prepared_sections_round_trip_through_a_file(
        (map, tiles) in map_and_tiles(150, 8),
    ) {
        let bytes = encode(MapFormat::Tmap, &with_all_sections(&map)).unwrap();
        let mut loaded_map = decode(MapFormat::Tmap, "a.tmap", &bytes).unwrap();
        prop_assert_eq!(&loaded_map, &map);
        for diagonal in Diagonal::ALL {
            let mut built = built(&map, diagonal);
            let (mut loaded, refused) = NavMap::from_sections(diagonal, &loaded_map);
            prop_assert_eq!(refused, []);
            prop_assert!(is_same(&built, &loaded) && loaded.is_ready(&map, Algorithm::JpsGraph));
            prop_assert_eq!(loaded.to_sections(&map), built.to_sections(&map));
            prop_assert_eq!(search_all(&map, &built, &tiles), search_all(&loaded_map, &loaded, &tiles));
            if diagonal == Diagonal::Cut {
                let rect = TileRect::new(0, 0, map.width().min(3), map.height().min(2));
                let changed = loaded_map.edit(rect, &TileEdit::Toggle).unwrap();
                let changed: Vec<TileRect> = changed.into_iter().collect();
                for nav_map in [&mut built, &mut loaded] {
                    nav_map.apply_edit(&loaded_map, &changed);
                    nav_map.prepare(&loaded_map, Algorithm::JpsGraph);
                }
                prop_assert!(is_same(&built, &loaded) && loaded.matches_tiles(&loaded_map));
                let (none, refused) = NavMap::from_sections(diagonal, &loaded_map);
                prop_assert!(none.planes().is_none() && refused.is_empty(), "an edit drops parts");
            }
        }
    }

    #[test]
    fn forged_sections_never_panic(
        (map, tiles) in map_and_tiles(100, 6),
        forgeries in forgeries(),
    ) {
        let tiles: Vec<IVec2> = tiles.into_iter().take(6).collect();
        for diagonal in Diagonal::ALL {
            let mut parts = built(&map, diagonal).to_sections(&map);
            for (nth, forgery) in forgeries.iter().enumerate() {
                let part = &mut parts[nth % 2];
                *part = forge(part, *forgery);
            }
            for chosen in [&parts[..1], &parts[1..], &parts[..]] {
                let forged = map.clone().with_sections(chosen.to_vec());
                let (mut nav_map, _) = NavMap::from_sections(diagonal, &forged);
                nav_map.prepare(&forged, Algorithm::JpsGraph);
                exercise(forged, nav_map, &tiles);
            }
        }
    }

    #[test]
    fn truncated_or_overlong_section_is_refused(
        (map, _) in map_and_tiles(100, 0),
        at in any::<usize>(),
    ) {
        for diagonal in Diagonal::ALL {
            for part in built(&map, diagonal).to_sections(&map) {
                let length = at % part.bytes().len();
                let longer = [part.bytes(), &[0]].concat();
                for bytes in [part.bytes()[..length].to_vec(), longer] {
                    let part = MapSection::new(part.tag(), bytes);
                    let (nav_map, refused) =
                        NavMap::from_sections(diagonal, &map.clone().with_sections(vec![part]));
                    prop_assert!(nav_map.planes().is_none() && nav_map.graph().is_none());
                    prop_assert_eq!(refused.len(), 1);
                }
            }
        }
    }
}

#[test]
fn foreign_sections_are_refused_and_other_rules_skipped() {
    let map = TileMap::from_ascii("..@..\n.....\n.@@@.").unwrap();
    let other = TileMap::from_ascii("..@..\n.....\n.@@..").unwrap();
    let parts = built(&map, Diagonal::Cut).to_sections(&map);
    let of = |map: &TileMap, diagonal| {
        let map = map.clone().with_sections(parts.clone());
        let (nav_map, refused) = NavMap::from_sections(diagonal, &map);
        let refusals = refused.iter().map(ToString::to_string).collect::<Vec<_>>();
        (
            nav_map.planes().is_some() && nav_map.graph().is_some(),
            refusals,
        )
    };
    assert_eq!(of(&map, Diagonal::Cut), (true, vec![]));
    assert_eq!(of(&map, Diagonal::NoCut), (false, vec![]));
    let (is_used, refusals) = of(&other, Diagonal::Cut);
    assert!(!is_used && refusals.len() == 2, "{refusals:?}");
    assert!(refusals[0].starts_with("map section `SIGN`: the fingerprint of the tiles is "));
    for (byte, value, field) in [(0, 1, "the layout is 1"), (4, 2, "the movement rule is 2")] {
        let mut bytes = parts[1].bytes().to_vec();
        bytes[byte] = value;
        let map = map
            .clone()
            .with_sections(vec![MapSection::new(*b"JUMP", bytes)]);
        let (_, refused) = NavMap::from_sections(Diagonal::Cut, &map);
        assert!(refused[0].to_string().contains(field), "{refused:?}");
    }
}

#[test]
fn loaded_graph_respects_the_memory_limit() {
    let map = TileMap::from_ascii("..@..\n.....\n.@@@.").unwrap();
    let map = with_all_sections(&map);
    let (mut nav_map, _) = NavMap::from_sections(Diagonal::NoCut, &map);
    nav_map.prepare_with_limit(&map, Algorithm::JpsGraph, 10);
    assert!(nav_map.graph().is_none() && nav_map.is_prepared(&map, Algorithm::JpsGraph));
}

#[test]
fn edit_gives_a_graph_that_was_too_large_another_try() {
    let mut map = TileMap::from_ascii("..@..\n.....\n.@@@.").unwrap();
    let mut nav_map = NavMap::new(Diagonal::NoCut);
    nav_map.prepare_with_limit(&map, Algorithm::JpsGraph, 10);
    assert!(nav_map.graph().is_none() && nav_map.is_prepared(&map, Algorithm::JpsGraph));
    assert!(map.set_blocked((0, 0).into(), true).unwrap());
    nav_map.apply_edit(&map, &[TileRect::new(0, 0, 1, 1)]);
    assert!(!nav_map.is_prepared(&map, Algorithm::JpsGraph));
    nav_map.prepare(&map, Algorithm::JpsGraph);
    assert!(nav_map.is_ready(&map, Algorithm::JpsGraph));
}
