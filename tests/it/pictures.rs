//! Pictures and maps written by the program, read back pixel by pixel.

use std::fs;

use crate::harness::{TempFolder, run_throng};

/// A picture: width, height, and pixels row by row.
struct Pixels {
    width: usize,
    height: usize,
    colors: Vec<[u8; 3]>,
}

impl Pixels {
    /// The frames of an animation, as they are displayed.
    fn read_animation(file: &str) -> Vec<Self> {
        let file = std::io::BufReader::new(fs::File::open(file).unwrap());
        let mut decoder = png::Decoder::new(file);
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let (width, height) = (reader.info().width as usize, reader.info().height as usize);
        let pictures = reader.info().animation_control.unwrap().num_frames;
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let mut colors = vec![[0; 3]; width * height];
        let next = |_| {
            reader.next_frame(&mut bytes).unwrap();
            let part = reader.info().frame_control.unwrap();
            let (left, top) = (part.x_offset as usize, part.y_offset as usize);
            let pixels = bytes.chunks(4).take((part.width * part.height) as usize);
            for (nth, pixel) in pixels.enumerate().filter(|(_, pixel)| pixel[3] > 0) {
                let (x, y) = (nth % part.width as usize, nth / part.width as usize);
                colors[(top + y) * width + left + x] = [pixel[0], pixel[1], pixel[2]];
            }
            Self {
                width,
                height,
                colors: colors.clone(),
            }
        };
        (0..pictures).map(next).collect()
    }

    fn read(file: &str) -> Self {
        let file = std::io::BufReader::new(fs::File::open(file).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let (width, height) = (reader.info().width as usize, reader.info().height as usize);
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut bytes).unwrap();
        let colors = bytes.chunks(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]);
        Self {
            width,
            height,
            colors: colors.collect(),
        }
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        self.colors[y * self.width + x]
    }

    /// The number of pixels of a colour in these rows.
    fn count(&self, color: [u8; 3], rows: std::ops::Range<usize>) -> usize {
        let pixels = &self.colors[rows.start * self.width..rows.end * self.width];
        pixels.iter().filter(|pixel| **pixel == color).count()
    }
}

const WALL: [u8; 3] = [40, 42, 54];
const FREE: [u8; 3] = [245, 245, 240];
const PATH: [u8; 3] = [213, 94, 0];
const START: [u8; 3] = [0, 158, 115];
const GOAL: [u8; 3] = [204, 121, 167];
const PLAYERS: [u8; 3] = [0, 114, 178];
const NPCS: [u8; 3] = [213, 94, 0];

const MAP: &str = "type octile\nheight 3\nwidth 4\nmap\n..@.\n....\n@@..\n";

#[test]
fn path_picture_has_ringed_ends_and_a_legend() {
    let folder = TempFolder::new();
    let image = folder.path("path.png");
    // On a map of this size a tile has one pixel.
    let large = folder.path("large.tmap");
    let made = run_throng(&[
        "map",
        "generate",
        &large,
        "--recipe",
        "random",
        "--fill",
        "0",
        "--size",
        "1000x1000",
    ]);
    assert_eq!(made.code, 0, "{}", made.err);
    let output = run_throng(&[
        "path", "--map", &large, "--from", "100,200", "--to", "900,200", "--render", &image,
    ]);
    assert_eq!(output.code, 0, "{}", output.err);
    let pixels = Pixels::read(&image);
    assert!(
        pixels.width == 1_000 && pixels.height > 1_040,
        "{}",
        pixels.height
    );
    let across = |x: usize| (150..250).filter(|y| pixels.at(x, *y) == PATH).count();
    assert!((300..700).all(|x| across(x) == 3), "{}", across(500));
    for (x, color) in [(100, START), (900, GOAL)] {
        let ring = |x: usize, y: usize| pixels.at(x, y) == color;
        let beside = (x - 12..x + 12).flat_map(|x| (188..212).map(move |y| (x, y)));
        assert!(
            beside.filter(|&(x, y)| ring(x, y)).count() > 50,
            "{color:?}"
        );
    }
    for color in [PATH, START, GOAL, WALL] {
        assert!(
            pixels.count(color, 1_000..pixels.height) > 20,
            "{color:?} is not in the legend"
        );
    }
}

#[test]
fn small_maps_are_enlarged_in_pictures_of_searches() {
    let folder = TempFolder::new();
    let (map, image) = (folder.write("a.map", MAP), folder.path("a.png"));
    let scen = "version 1\n0\ta.map\t4\t3\t0\t0\t0\t1\t1\n0\ta.map\t4\t3\t0\t0\t3\t1\t3.41421\n";
    let scen = folder.write("a.scen", scen);
    for arguments in [&["--from", "0,0", "--to", "3,0"][..], &["--scen", &scen]] {
        let output =
            run_throng(&[&["path", "--map", &map, "--render", &image], arguments].concat());
        assert_eq!((output.code, output.err.as_str()), (0, ""));
        let pixels = Pixels::read(&image);
        // 64 pixels per tile, and room for the legend.
        assert!(pixels.width == 480 && pixels.height > 192 + 40);
        assert_eq!((pixels.at(140, 10), pixels.at(10, 140)), (WALL, WALL));
        for color in [PATH, START, GOAL] {
            assert!(pixels.count(color, 0..192) > 100, "{color:?}");
        }
        fs::remove_file(&image).unwrap();
    }
}

#[test]
fn map_is_drawn_at_the_requested_scale() {
    let folder = TempFolder::new();
    let (map, image) = (folder.write("a.map", MAP), folder.path("a.png"));
    for (scale, side) in [(Some("5"), 5), (Some("1"), 1), (None, 64)] {
        let mut arguments = vec!["map", "render", &map, &image];
        arguments.extend(scale.into_iter().flat_map(|scale| ["--scale", scale]));
        assert_eq!(run_throng(&arguments).code, 0);
        let pixels = Pixels::read(&image);
        assert_eq!((pixels.width, pixels.height), (4 * side, 3 * side));
        let middle = side / 2;
        assert_eq!(pixels.at(2 * side + middle, middle), WALL);
        assert_eq!(pixels.at(middle, side + middle), FREE);
    }
    for (scale, part) in [
        ("0", "0 is not in 1..=64"),
        ("65", "65 is not in"),
        ("x", "invalid"),
    ] {
        let output = run_throng(&["map", "render", &map, &image, "--scale", scale]);
        assert_eq!(output.code, 2);
        assert!(output.err.contains(part), "{}", output.err);
    }
    let large = folder.path("large.tmap");
    let made = [
        "map",
        "generate",
        &large,
        "--recipe",
        "random",
        "--size",
        "2000x2000",
    ];
    assert_eq!(run_throng(&made).code, 0);
    let output = run_throng(&["map", "render", &large, &image, "--scale", "64"]);
    assert!(
        output.code == 2 && output.err.contains("128000 × 128000 pixels"),
        "{}",
        output.err
    );
}

#[test]
fn generated_map_is_equal_for_the_seed_in_every_format() {
    let folder = TempFolder::new();
    let made = |name: &str, more: &[&str]| {
        let file = folder.path(name);
        let output = run_throng(&[&["map", "generate", &file, "--size", "90x60"], more].concat());
        assert_eq!((output.code, output.err.as_str()), (0, ""), "{name}");
        assert!(output.out.contains("90 × 60 tiles"), "{}", output.out);
        let plain = folder.path(&format!("{name}.map"));
        assert_eq!(run_throng(&["map", "convert", &file, &plain]).code, 0);
        fs::read(plain).unwrap()
    };
    let first = made("a.tmap", &["--seed", "7"]);
    for name in ["b.map", "c.png", "d.90x60.raw"] {
        assert_eq!(made(name, &["--seed", "7"]), first, "{name}");
    }
    assert_ne!(made("e.tmap", &["--seed", "8"]), first);
    for (recipe, more) in [
        ("town", ["--gates", "1"]),
        ("cave", ["--fill", "0.4"]),
        ("maze", ["--corridor", "2"]),
        ("rooms", ["--door", "1"]),
        ("random", ["--fill", "0.1"]),
    ] {
        let plain = made("f.tmap", &["--recipe", recipe, "--seed", "7"]);
        assert_ne!(
            made(
                "g.tmap",
                &["--recipe", recipe, "--seed", "7", more[0], more[1]]
            ),
            plain,
            "{recipe}"
        );
    }
    let file = folder.path("no.map");
    for (more, part) in [
        (
            vec!["--recipe", "maze", "--gates", "2"],
            "--gates does nothing for a `maze`: it is for `town`",
        ),
        (
            vec!["--gates", "5"],
            "--gates is 5, expected a whole number from 0 to 4",
        ),
        (
            vec!["--recipe", "cave", "--fill", "2"],
            "--fill is 2, expected a share from 0 to 1",
        ),
        (vec!["--size", "0x5"], "the width of --size is 0"),
        (vec!["--size", "5"], "such as 600x400"),
        (vec!["--recipe", "tonw"], "a similar value exists: 'town'"),
    ] {
        let output = run_throng(&[&["map", "generate", file.as_str()], more.as_slice()].concat());
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{more:?}");
        assert!(output.err.contains(part), "{more:?}: {}", output.err);
        assert!(!fs::exists(&file).unwrap(), "{more:?}");
    }
    let output = run_throng(&["map", "generate", "maze"]);
    assert!(
        output.code == 2 && output.err.contains("use --recipe maze"),
        "{}",
        output.err
    );
    let output = run_throng(&["map", "generate", &folder.path("a.bmp")]);
    assert!(
        output.code == 2 && output.err.contains("unknown map format"),
        "{}",
        output.err
    );
}

const CROWD: &str = r#"Scenario(
    name: "fair", seed: 3, duration_s: 1,
    scenes: [Scene(name: "yard", map: Generate(Rooms(width_tiles: 100, height_tiles: 100)))],
    crowds: [Crowd(tag: "people", kind: "player", count: 40), Crowd(tag: "rats", kind: "npc", count: 20)],
)"#;

#[test]
fn crowd_picture_shows_kinds_and_teams() {
    let folder = TempFolder::new();
    let image = folder.path("fair.png");
    let plain = folder.write("fair.ron", CROWD);
    // Rats and people are in different teams: colours are those of teams, in the order of the teams.
    let sides = CROWD
        .replace("count: 40", "count: 40, team: 2")
        .replace("count: 20", "count: 20, team: 1");
    let sides = folder.write("sides.ron", sides);
    for (scenario, people, rats) in [(&plain, PLAYERS, NPCS), (&sides, NPCS, PLAYERS)] {
        let output = run_throng(&["run", scenario, "--picture", &image, "--no-timing"]);
        assert_eq!(
            (output.code, output.err.as_str()),
            (0, ""),
            "{}",
            output.out
        );
        let pixels = Pixels::read(&image);
        assert_eq!(pixels.width, 1_000);
        // Dots of 40 people and of 20 rats, some of which are covered by others.
        let (people, rats) = (pixels.count(people, 0..1_000), pixels.count(rats, 0..1_000));
        assert!((40 * 8..40 * 25).contains(&people), "{people}");
        assert!((20 * 6..20 * 25).contains(&rats), "{rats}");
        assert!(
            pixels.count(PLAYERS, 1_000..pixels.height) > 20,
            "no legend"
        );
        fs::remove_file(&image).unwrap();
    }
}

#[test]
fn animation_has_regular_frames_with_a_moving_crowd() {
    let folder = TempFolder::new();
    let image = folder.path("fair.png");
    let still = CROWD.replace("count: 20", "count: 20, behaviour: Idle");
    let walking = still.replace("count: 40", "count: 40, behaviour: Wander(radius_m: 20)");
    let scenario = folder.write("fair.ron", walking);
    let run = |ticks: u32, more: &[&str]| {
        let ticks = ticks.to_string();
        let arguments = ["run", &scenario, "--json", "--no-timing", "--ticks", &ticks];
        let output = run_throng(&[&arguments[..], more].concat());
        assert_eq!(output.code, 0, "{}", output.err);
        output.json()["state_hash"].clone()
    };
    // 20 ticks per second: a frame every second tick, or one for every 120th of the run.
    for (ticks, pictures) in [(0, 1), (40, 21), (238, 120), (240, 81)] {
        let drawn = run(ticks, &["--animation", &image]);
        let film = Pixels::read_animation(&image);
        assert_eq!(film.len(), pictures, "{ticks} ticks");
        assert!(film[0].width == 600 && film[0].height > 640);
        if ticks == 40 {
            assert_eq!(drawn, run(ticks, &[]), "pictures change nothing");
        }
    }
    let film = Pixels::read_animation(&image);
    let dots = |picture: &Pixels, color| {
        let places = (0..600 * 600).filter(|&place| picture.colors[place] == color);
        places.collect::<Vec<_>>()
    };
    let players: Vec<_> = film.iter().map(|picture| dots(picture, PLAYERS)).collect();
    // Players log in after the first frame.
    for dots in &players[1..] {
        assert!((40 * 4..40 * 22).contains(&dots.len()), "{}", dots.len());
    }
    let moved = players.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(moved > 60, "only {moved} of 80 frames show a moved object");
    let clear = film.iter().map(|picture| dots(picture, NPCS).len()).min();
    assert!(
        clear > Some(20),
        "an object that stands still disappeared: {clear:?}"
    );
    // The legend shows the time.
    let words = |picture: &Pixels| picture.colors[620 * 600..].to_vec();
    assert_ne!(words(&film[0]), words(&film[80]));
}

#[test]
fn invalid_or_duplicate_picture_path_is_refused_before_the_run() {
    let folder = TempFolder::new();
    let scenario = folder.write("fair.ron", CROWD);
    let (image, lost) = (folder.path("fair.png"), folder.path("absent/fair.png"));
    for (arguments, part) in [
        (
            vec!["--picture", "fair.jpg"],
            "expected an image file OUT.png, found fair.jpg",
        ),
        (vec!["--picture", &image, "--hashes", &image], "as well"),
        (vec!["--animation", &image, "--picture", &image], "as well"),
        (
            vec!["--animation", &scenario],
            "expected an image file OUT.png",
        ),
        (vec!["--animation", &lost], "could not create"),
    ] {
        let output = run_throng(&[&["run", scenario.as_str()], arguments.as_slice()].concat());
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{arguments:?}");
        assert!(output.err.contains(part), "{}", output.err);
    }
}
