//! Maps through the public API: the files in `assets/maps`, and real maps if they are available.

use std::fs;
use std::path::{Path, PathBuf};

use glam::IVec2;
use throng::map::{self, MapFormat, TileEdit, TileMap, TileRect};

use crate::harness::{TempFolder, root, run_throng};
use crate::program::SMALL;

/// Real maps and their queries, which are not part of the project; empty if they are not available.
fn real_maps() -> Vec<PathBuf> {
    let folder = root().join("../shared/movingai");
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "map"));
    paths.sort();
    paths
}

/// The number after a header keyword, parsed independently of the decoder.
fn header_number(text: &str, key: &str) -> u32 {
    let line = text
        .lines()
        .take(4)
        .find_map(|line| line.strip_prefix(key))
        .unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn real_maps_are_read_tile_by_tile() {
    for path in real_maps() {
        let map = map::load(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let size = (
            header_number(&text, "width"),
            header_number(&text, "height"),
        );
        assert_eq!((map.width(), map.height()), size, "{path:?}");
        for (y, row) in text.lines().skip(4).take(map.height() as usize).enumerate() {
            for (x, letter) in row.chars().enumerate() {
                assert_eq!(
                    map.is_blocked((x as i32, y as i32).into()),
                    !matches!(letter, '.' | 'G' | 'S'),
                    "{path:?} ({x}, {y})"
                );
                assert_eq!(
                    map.columns().is_blocked(y as i32, x as i32),
                    map.is_blocked((x as i32, y as i32).into())
                );
            }
        }
    }
}

#[test]
fn real_maps_survive_every_format() {
    for path in real_maps() {
        let original = map::load(&path).unwrap();
        for format in MapFormat::ALL {
            let name = format!(
                "real.{}x{}.{}",
                original.width(),
                original.height(),
                format.extension()
            );
            let decoded =
                map::decode(format, &name, &map::encode(format, &original).unwrap()).unwrap();
            assert!(decoded == original, "{path:?} as {format:?}");
            assert_eq!(decoded.region_count(), original.region_count());
        }
    }
}

#[test]
fn ends_of_known_paths_on_real_maps_are_connected() {
    for path in real_maps() {
        let map = map::load(&path).unwrap();
        let queries = fs::read_to_string(path.with_extension("map.scen")).unwrap();
        for line in queries
            .lines()
            .skip(1)
            .filter(|line| !line.trim().is_empty())
        {
            // Some files separate their fields with spaces instead of tabs.
            let fields: Vec<&str> = line.split_whitespace().collect();
            let number = |field: usize| fields[field].parse::<i32>().unwrap();
            let (from, to) = (
                IVec2::new(number(4), number(5)),
                IVec2::new(number(6), number(7)),
            );
            assert!(map.are_connected(from, to), "{path:?}: {from} to {to}");
        }
    }
}

#[test]
fn edits_of_real_maps_equal_a_rebuild() {
    for path in real_maps() {
        let mut map = map::load(&path).unwrap();
        let (width, height) = (map.width(), map.height());
        for i in 0..40u32 {
            let rect = TileRect::new(
                i * 7_919 % (width - 60),
                i * 104_729 % (height - 60),
                1 + i * 13 % 60,
                1 + i * 29 % 60,
            );
            let edit = match i % 3 {
                0 => TileEdit::Block,
                1 => TileEdit::Free,
                _ => TileEdit::Toggle,
            };
            map.edit(rect, &edit).unwrap();
        }
        assert!(map.finish_splits(usize::MAX));
        let rebuilt = TileMap::from_fn(width, height, |x, y| {
            map.is_blocked((x as i32, y as i32).into())
        })
        .unwrap();
        assert_eq!(map.region_count(), rebuilt.region_count(), "{path:?}");
        // Ids may differ, but each region of one map must correspond to exactly one region of the other.
        let mut matching_ids = std::collections::BTreeMap::new();
        for y in 0..height as i32 {
            for x in 0..width as i32 {
                let (edited, built) = (
                    map.region(IVec2::new(x, y)),
                    rebuilt.region(IVec2::new(x, y)),
                );
                assert_eq!(
                    *matching_ids.entry(built).or_insert(edited),
                    edited,
                    "{path:?} ({x}, {y})"
                );
            }
        }
    }
}

#[test]
fn maps_in_assets_load() {
    let folder = root().join("assets/maps");
    let mut loaded = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let map = map::load(&path).unwrap();
        let (_, largest) = map.largest_region().unwrap();
        assert!(
            largest * 10 > map.free_count() * 9,
            "{path:?} is not mostly connected"
        );
        loaded += 1;
    }
    assert!(loaded >= 2);
}

#[test]
fn prepared_map_plays_like_its_source() {
    let folder = TempFolder::new();
    let [plain, ready] = ["plain.tmap", "ready.tmap"].map(|name| folder.path(name));
    let generate = ["map", "generate", &plain, "--size", "120x90"];
    assert_eq!(run_throng(&generate).code, 0);
    let output = run_throng(&["map", "prepare", &plain, &ready]);
    assert_eq!(
        (output.code, output.err.as_str()),
        (0, ""),
        "{}",
        output.out
    );
    let output = run_throng(&["map", "info", &ready]);
    assert!(
        output.out.contains("prepared        no-cut: "),
        "{}",
        output.out
    );
    let scenario = folder.write("small.ron", SMALL);
    let [built, loaded] = [&plain, &ready].map(|map| {
        let run = [
            "run",
            &scenario,
            "--map",
            map,
            "--ticks",
            "40",
            "--json",
            "--no-timing",
        ];
        let output = run_throng(&run);
        assert_eq!(output.code, 0, "{}{}", output.out, output.err);
        output.json()
    });
    assert_eq!(built["state_hash"], loaded["state_hash"]);
    assert_eq!(built["builds"]["adopted"], loaded["builds"]["adopted"]);
    assert_eq!(built["builds"]["loaded"], 0);
    assert!(loaded["builds"]["loaded"].as_u64().unwrap() > 0, "{loaded}");

    let mut bytes = fs::read(&ready).unwrap();
    let last = bytes.len() - 9;
    bytes[last] ^= 4;
    fs::write(&ready, bytes).unwrap();
    let output = run_throng(&["run", &scenario, "--map", &ready]);
    assert!(
        output.code == 2 && output.err.contains("checksum"),
        "{}",
        output.err
    );
    let other = folder.path("ready.map");
    let output = run_throng(&["map", "prepare", &plain, &other]);
    assert!(
        output.code == 2 && output.err.contains(".tmap"),
        "{}",
        output.err
    );
    assert!(!Path::new(&other).exists());
}

#[test]
fn scenes_open_at_run_time_without_blocking_a_tick() {
    let scenario = root().join("tests/assets/openings.ron");
    let play = |pace: &[&str]| {
        let scenario = scenario.display().to_string();
        let run = ["run", &scenario, "--set", "side=200", "--ticks", "45"];
        let output = run_throng(&[&run[..], &["--json", "--no-timing", "--strict"], pace].concat());
        assert_eq!(output.code, 0, "{}{}", output.out, output.err);
        output.json()["builds"].clone()
    };
    let paced = play(&["--realtime"]);
    assert_eq!(
        (&paced["waited"], &paced["waited_ms"]),
        (&0.into(), &0.0.into())
    );
    assert!(paced["adopted"].as_u64().unwrap() > 0, "{paced}");
    let fast = play(&[]);
    assert_eq!((&fast["adopted"], &fast["late"]), (&21.into(), &0.into()));
}
