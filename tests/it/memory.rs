//! The program's memory report: memory by module, and that no memory remains after all players left.

use crate::harness::{TempFolder, run_throng};

const INN: &str = r#"// Players come and go.
Scenario(
    name: "inn", seed: 4, duration_s: 3,
    scenes: [Scene(name: "inn", map: Generate(Rooms(width_tiles: 80, height_tiles: 80)))],
    crowds: [Crowd(tag: "guests", kind: "player", count: 60, client_share: 0.5, churn_per_s: 10, attributes_per_s: 1, behaviour: Wander(radius_m: 10))],
    expect: [ViewsWithinCap],
)"#;

#[test]
fn modules_account_for_the_growth_of_the_process() {
    let folder = TempFolder::new();
    let file = folder.write("inn.ron", INN);
    let output = run_throng(&["run", &file, "--memory", "--no-timing", "--threads", "1"]);
    assert_eq!(output.code, 0, "{}{}", output.out, output.err);
    for row in [
        "memory of",
        "sync ",
        "ecs ",
        "= modules",
        "unattributed",
        "allocator",
        "= growth",
    ] {
        assert!(
            output.out.lines().any(|line| line.starts_with(row)),
            "{row}: {}",
            output.out
        );
    }
    assert!(output.out.lines().all(|line| line.chars().count() <= 80));
    let output = run_throng(&["run", &file, "--json", "--no-timing", "--threads", "1"]);
    let memory = output.json()["memory"].clone();
    let modules = memory["by_module"].as_object().unwrap().values();
    let modules: u64 = modules.map(|bytes| bytes.as_u64().unwrap()).sum();
    let allocated = memory["allocated_bytes"].as_u64().unwrap();
    // In such a small server a large share is Bevy's schedules, which belong to no module.
    assert!(modules > allocated / 4 && modules < allocated, "{memory:#}");
    assert!(
        memory["by_set"]["replicate"].as_u64() > Some(0),
        "{memory:#}"
    );
}

#[test]
fn departed_players_leave_no_memory() {
    let folder = TempFolder::new();
    let output = run_throng(&[
        "run",
        &folder.write("inn.ron", INN),
        "--leaks",
        "--no-timing",
        "--threads",
        "2",
    ]);
    assert_eq!(output.code, 0, "{}{}", output.out, output.err);
    for line in [
        "allocated per player that left: nothing",
        "without Bevy: nothing",
    ] {
        assert!(output.out.contains(line), "{}", output.out);
    }
    assert!(
        output.out.contains("ok      no leaks: nothing is left"),
        "{}",
        output.out
    );
}
