//! Promise: no input does harm. Mutated scenarios and maps are parsed, validated and, if valid, run for some ticks; nothing may panic.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use throng::map::{self, MapFormat, TileMap};
use throng_scenario::crowd::ATTRIBUTE_NAMES;
use throng_scenario::{
    Action, Behaviours, LoadedScenario, MapSource, Scenario, ScenarioCrowd, ScenarioScene,
};

use crate::harness::{RunConfig, start};

/// Every action, condition, area, behaviour, recipe and expectation, within the first tick.
const EVERYTHING: &str = r#"Scenario(
    name: "everything", seed: 3, tick_hz: 20, heartbeat_ticks: 2, duration_s: 1,
    settings: (view: (scans_per_tick_max: 100), nav: (short_nodes_max: 800, searches_per_tick_max: 50, queue_max: 100),
        session: (players_max: 11, reserved_slots: (0, 1, 0, 2), admitted_per_tick_max: 5, reconnect_grace_s: 0.1, idle_timeout_s: 0.4),
        inbox: (messages_per_tick_max: 100, backlog_max: 200, client_backlog_max: 10), sync: (full_rate_distance_m: 10, enters_per_tick_max: 4),
        matchmaking: (modes: [Groups(name: "spare", group_size: 3)])),
    parameters: {"ten": 10},
    attributes: [Attribute(name: "gold", encoding: Zigzag, audience: [Owner, Guild], cadence: EveryNth(2), range: (-9, 900), start: 100)],
    kinds: [ObjectKind(name: "wolf", class: Npc, visibility: Far(2)), ObjectKind(name: "sign", class: Thing, visibility: Scene)],
    scenes: [
        Scene(name: "a", map: Generate(Town(width_tiles: 90, height_tiles: 90)), tile_m: 0.5, cell_m: 10, margin_m: 1, view_cap: 5,
            npc_cap: 3, thing_cap: 2, view_link_mode: Directed, max_objects: 60),
        Scene(name: "halls", copies: 2, map: Generate(Random(width_tiles: 20, height_tiles: 20, fill: 0.1))),
        Scene(name: "b", map: Generate(Cave(width_tiles: 40, height_tiles: 30, fill: 0.4, smoothing_rounds: 2))),
    ],
    crowds: [
        Crowd(tag: "p", kind: "player", count: 12, scene: "a", at: Rect(min_m: (1, 1), max_m: (40, 40)), team: 1, guild: 2,
            party_size: 3, sends_inputs: true, admission_class: Preferred, behaviour: Wander(radius_m: 10), speed_m_s: 3, attributes_per_s: 5, client_share: 0.5, messages_per_s: 10, churn_per_s: 5, view_range_m: 60),
        Crowd(tag: "n", count: 4, at: Ring(center_m: (20, 20), radius_m: 5, width_m: 3), behaviour: Chase(kind: "player", sight_m: 20)),
        Crowd(tag: "w", kind: "wolf", count: 3, at: Point(center_m: (3, 4)), behaviour: Flee(kind: "player", sight_m: 9)),
        Crowd(tag: "g", count: 2, behaviour: Patrol(points: [(1, 1), (9, 9)])),
        Crowd(tag: "c", count: 2, at: Share((0, 0), (0.5, 1)), behaviour: Commute(between: (Share((0, 0), (0.4, 1)), Share((0.6, 0), (1, 1))))),
    ],
    queues: [Queue(mode: "q", settings: Groups(group_size: 3, expire_after_s: 1), parties: 9, parties_per_s: 20, size_weights: (5, 1, 0, 0, 0),
        skill_mean: 10, skill_deviation: 3, power_per_player: 5, power_deviation: 2, cancels_per_s: 4,
        levels: (1, 9), avoid_share: 0.3, role_weights: (3, 1, 0, 0, 1), regions: 2, crowd_tag: "p", leaves_per_s: 5, requeue_share: 0.5, requeue_delay_s: 0.1,
        match_scene: Scene(name: "battle", map: Generate(Random(width_tiles: 20, height_tiles: 20, fill: 0.1))), match_duration_s: 0.1)],
    script: [
        At(t_s: 0, run: Spawn(tag: "s", kind: "sign", count: 2)),
        At(t_s: 0, run: Teleport(tag: "p", count: 3, to: Share((0, 0), (1, 1)))),
        At(t_s: 0, run: SetTeam(tag: "n", team: 4)),
        At(t_s: 0, run: SetAttribute(tag: "n", attribute: "health", value: 3)),
        At(t_s: 0, run: AddAttribute(tag: "p", count: ten, pick: Random, attribute: "gold", by: -9223372036854775808)),
        Every(t_s: 0.05, times: 2, run: ScaleAttribute(tag: "p", only: [Within(Ring(center_m: (20, 20), radius_m: 15)), Seeing("n")],
            attribute: "gold", by: -1.5)),
        Every(t_s: 0.05, run: Hide(tag: "n", only: [Near(tag: "p", radius_m: 9), InViewOf("p"), Outside(Share((0, 0), (0.1, 0.1)))])),
        Every(t_s: 0.05, run: Announce(tag: "p", only: [OutsideZone(center_m: (9, 9), radius_m: 30, to_center_m: (3, 3), to_radius_m: 1,
            from_s: 0, until_s: 0.1), AtLeast(attribute: "gold", value: 1), Below(attribute: "level", value: ten)], scope: Radius(9))),
        Ramp(from_s: 0, until_s: 0.15, every_s: 0.05, run: Spawn(tag: "r", kind: "npc", scene: "halls", count: 5)),
        When(tag: "p", attribute: "gold", below: 1, times: 3, run: SetSceneAttribute(attribute: "weather", value: 300)),
        WhenCount(tag: "r", at_least: 2, until_s: 1, run: SetTeam(tag: "r", team: 1)),
        At(t_s: 0, run: SetBehaviour(tag: "n", behaviour: Idle)),
        At(t_s: 0, run: Gather(tag: "g", at: Point(center_m: (9, 9)))),
        At(t_s: 0, run: Block(rect_tiles: (1, 2, 3, 4))),
        At(t_s: 0, run: Free(scene: "b", rect_tiles: (1, 2, 3, 4))),
        Every(t_s: 0.05, from_s: 0.05, until_s: 0.5, run: Toggle(rect_tiles: (5, 5, 9, 9))),
        At(t_s: 0, run: Paint(at_tile: (3, 3), rows: [".@.", "@.#"])),
        At(t_s: 0, run: Queue(mode: "q", parties: 3, size: 1)),
        At(t_s: 0, run: Cancel(mode: "q", parties: 2)),
        At(t_s: 0.05, run: Logout(tag: "p", count: 2)),
        At(t_s: 0.05, run: Login(tag: "p", count: 2)),
        At(t_s: 0.05, run: Possess(tag: "p", count: 1, of: "g")),
        At(t_s: 0.05, run: Spectate(tag: "p", count: 2, pick: Random, follow: "n")),
        At(t_s: 0.05, run: Disconnect(tag: "p", count: 2, for_s: 0.05)),
        At(t_s: 0.1, run: DuplicateLogin(tag: "p", count: 1, only: [AtLeast(attribute: "gold", value: -9)])),
        At(t_s: 0.1, run: Release(tag: "p", count: 1)),
        At(t_s: 0.1, run: Kick(tag: "p", count: 1)),
        At(t_s: 0.1, run: Ban(tag: "p", count: 1)),
        At(t_s: 0.1, run: Drain),
        At(t_s: 0.15, run: Reopen),
        At(t_s: 0, run: OpenScene(name: "c", map: Generate(Maze(width_tiles: 30, height_tiles: 30, corridor_tiles: 2)))),
        At(t_s: 0.05, run: ChangeScene(tag: "n", count: 2, to: "c", at: Share((0, 0), (1, 1)))),
        At(t_s: 0.05, run: OpenScene(name: "d", map: Generate(Rooms(width_tiles: 30, height_tiles: 30)))),
        At(t_s: 0.1, run: CloseScene(scene: "c")),
        At(t_s: 0.1, run: Despawn(tag: "w", count: 1)),
    ],
    expect: [ViewsWithinCap, ViewsStable, MirrorsEqual, PathsExact, NoObjectOnBlockedTile, NoUnreachable, MatchesAtLeast(1), WaitUnderS(9),
        TicketsConserved, TickP99UnderMs(50), SetP99UnderMs(View, 5), BytesPerClientUnder(1000)],
)"#;

/// Replacements for a word or a number.
const WORDS: [&str; 26] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "255",
    "256",
    "65536",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "1e-30",
    "1e30",
    "1e308",
    "-0.0",
    "0.001",
    "NaN",
    "inf",
    "-inf",
    "\"\"",
    "\"a\"",
    "()",
    "[]",
    "None",
    "Idle",
    "\"\\u{0}é\"",
];

/// A change of a text.
#[derive(Clone, Debug)]
enum Change {
    /// Replaces a token by one of the words.
    Replace(Index, Index),
    /// Replaces a token by another token of the text.
    Copy(Index, Index),
    /// Removes a token.
    Remove(Index),
    /// Replaces a byte.
    Byte(Index, u8),
    /// Truncates the text.
    Cut(Index),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let index = any::<Index>;
    let change = prop_oneof![
        8 => (index(), index()).prop_map(|(at, word)| Change::Replace(at, word)),
        4 => (index(), index()).prop_map(|(at, other)| Change::Copy(at, other)),
        1 => index().prop_map(Change::Remove),
        1 => (index(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        1 => index().prop_map(Change::Cut),
    ];
    prop::collection::vec(change, 1..4)
}

/// The tokens of a scenario: words, numbers and strings; every other character is a token of its own.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_text = false;
    let mut glue = false;
    for letter in text.chars() {
        let of_word = letter.is_alphanumeric() || "_.-\"".contains(letter) || in_text;
        match tokens.last_mut() {
            Some(last) if of_word && glue => last.push(letter),
            _ => tokens.push(letter.to_string()),
        }
        glue = of_word;
        in_text ^= letter == '"';
    }
    tokens
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut tokens = tokens(text);
    // Tokens other than white space and punctuation.
    let words: Vec<usize> = (0..tokens.len())
        .filter(|&at| tokens[at].chars().any(char::is_alphanumeric))
        .collect();
    let mut text = None;
    for change in changes {
        match change {
            Change::Replace(at, word) => tokens[*at.get(&words)] = (*word.get(&WORDS)).to_owned(),
            Change::Copy(at, other) => tokens[*at.get(&words)] = tokens[*other.get(&words)].clone(),
            Change::Remove(at) => tokens[at.index(words.len())].clear(),
            Change::Byte(at, byte) => {
                let mut bytes = tokens.concat().into_bytes();
                let at = at.index(bytes.len());
                bytes[at] = *byte;
                text = Some(String::from_utf8_lossy(&bytes).into_owned());
            }
            Change::Cut(at) => {
                let whole = tokens.concat();
                text = Some(whole[..whole.floor_char_boundary(at.index(whole.len()))].to_owned());
            }
        }
    }
    text.unwrap_or_else(|| tokens.concat())
}

/// Whether a scenario is small enough to be run hundreds of times.
fn is_small(scenario: &Scenario) -> bool {
    let scene = |scene: &ScenarioScene| match &scene.map {
        MapSource::File(_) => false,
        MapSource::Generate(recipe) => {
            scene.copies < 10
                && map::generate(recipe, 1).is_ok_and(|map| map.rect().tile_count() < 40_000)
        }
    };
    let crowd = |crowd: &ScenarioCrowd| crowd.count < 300;
    scenario.scenes.iter().all(scene)
        && scenario.crowds.iter().all(crowd)
        && scenario.queues.iter().all(|queue| {
            queue.parties < 1000
                && queue.parties_per_s < 1e4
                && queue.match_scene.as_ref().is_none_or(scene)
        })
        && scenario.script.iter().all(|cue| match cue.action() {
            Action::Spawn(spawned) => crowd(spawned),
            Action::OpenScene(opened) => scene(opened),
            Action::Queue { parties, .. } => *parties < 1000,
            _ => true,
        })
}

/// Parses, validates and runs a text. Returns whether it was run.
fn parses_and_runs(text: &str) -> bool {
    let Ok(loaded) = LoadedScenario::from_text("mutated.ron", text) else {
        return false;
    };
    if loaded
        .check(ATTRIBUTE_NAMES, &Behaviours::default())
        .is_err()
        || !is_small(&loaded.scenario)
        || loaded.check_maps().is_err()
    {
        return false;
    }
    let mut run = start(
        loaded,
        RunConfig {
            ticks: 4,
            threads: 1,
            ..RunConfig::default()
        },
    );
    while run.step().expect("the run writes no output") {}
    true
}

#[test]
fn mutation_base_scenario_is_valid() {
    assert!(parses_and_runs(EVERYTHING));
    assert_eq!(
        tokens("a: -1.5, \"b c\")"),
        ["a", ":", " ", "-1.5", ",", " ", "\"b c\"", ")"]
    );
    assert_eq!(tokens(EVERYTHING).concat(), EVERYTHING);
}

proptest! {
    #![proptest_config(draws!(400))]

    #[test]
    fn mutated_scenarios_never_panic(changes in changes()) {
        parses_and_runs(&changed(EVERYTHING, &changes));
    }
}

/// A change of a file: overwrite, insert, remove, truncate or repeat.
fn mutate(bytes: &mut Vec<u8>, (kind, at, value): (u8, Index, u8)) {
    if bytes.is_empty() {
        return;
    }
    let at = at.index(bytes.len());
    match kind % 5 {
        0 => bytes[at] = value,
        1 => bytes.insert(at, value),
        2 => _ = bytes.remove(at),
        3 => bytes.truncate(at),
        _ => bytes.extend_from_within(..at),
    }
}

proptest! {
    #![proptest_config(draws!(400))]

    #[test]
    fn mutated_maps_never_panic_and_are_valid_if_read(
        (width, height, seed) in (1u32..70, 1u32..20, any::<u64>()),
        mutations in prop::collection::vec((any::<u8>(), any::<Index>(), any::<u8>()), 0..4),
    ) {
        let tile = |x: u32, y: u32| (seed.rotate_left(x * 7 + y * 13) ^ u64::from(x * y)) % 3 == 0;
        let original = TileMap::from_fn(width, height, tile).unwrap();
        for format in MapFormat::ALL {
            let name = format!("m.{width}x{height}.{}", format.extension());
            let mut bytes = map::encode(format, &original).unwrap();
            mutations.iter().for_each(|&mutation| mutate(&mut bytes, mutation));
            match map::decode(format, &name, &bytes) {
                Ok(map) => {
                    let free = (0..map.height() as i32).flat_map(|y| (0..map.width() as i32).map(move |x| (x, y)));
                    let free = free.filter(|&(x, y)| !map.is_blocked((x, y).into())).count() as u64;
                    prop_assert_eq!(free, map.free_count());
                    if mutations.is_empty() {
                        prop_assert!(map == original);
                    }
                }
                Err(error) => {
                    prop_assert!(!mutations.is_empty(), "{}", error);
                    prop_assert!(error.to_string().starts_with(&name), "{}", error);
                }
            }
            // A file whose name and content have different formats is refused as well.
            for other in MapFormat::ALL {
                let _ = map::decode(other, &name, &bytes);
            }
        }
        prop_assert!(MapFormat::of(Path::new("m.bmp")).is_err());
    }
}
