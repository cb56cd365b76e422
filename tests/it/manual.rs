//! The program's own documentation: completions and man pages; and the amount of its output.

use std::fs;

use crate::harness::{TempFolder, root, run_throng};

#[test]
fn completions_have_every_subcommand_and_flag() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = run_throng(&["completions", shell]);
        assert_eq!((output.code, output.err.as_str()), (0, ""), "{shell}");
        for word in [
            "generate",
            "render",
            "bench",
            "check-targets",
            "completions",
        ] {
            assert!(output.out.contains(word), "{word} for {shell}");
        }
    }
    let output = run_throng(&["completions", "cmd"]);
    assert!(
        output.code == 2 && output.err.contains("bash"),
        "{}",
        output.err
    );
}

#[test]
fn every_command_has_a_man_page() {
    let folder = TempFolder::new();
    for (command, word) in [
        (&["man"][..], "throng"),
        (&["man", "bench"], "targets"),
        (&["man", "map", "generate"], "gates"),
    ] {
        let output = run_throng(command);
        assert_eq!((output.code, output.err.as_str()), (0, ""));
        assert!(
            output.out.contains(".TH") && output.out.contains(word),
            "{}",
            output.out
        );
    }
    let output = run_throng(&["man", "map", "genrate"]);
    assert_eq!((output.code, output.out.as_str()), (2, ""));
    assert!(
        output
            .err
            .contains("no subcommand `genrate`, expected `info`"),
        "{}",
        output.err
    );
    let pages = folder.path("man1");
    assert_eq!(run_throng(&["man", "--folder", &pages]).code, 0);
    for page in ["throng.1", "throng-run.1", "throng-map-generate.1"] {
        let page = folder.path(&format!("man1/{page}"));
        assert!(fs::read_to_string(&page).unwrap().contains(".TH"), "{page}");
    }
}

#[test]
fn verbose_names_files_and_quiet_prints_failures_only() {
    let folder = TempFolder::new();
    let village = root()
        .join("assets/maps/village.tmap")
        .display()
        .to_string();
    let copy = folder.path("copy.map");
    let convert =
        |more: &[&str]| run_throng(&[&["map", "convert", &village, &copy], more].concat());
    assert_eq!(convert(&[]).err, "");
    let output = convert(&["-v"]);
    assert_eq!((output.code, output.out.as_str()), (0, ""));
    for word in [
        "map read",
        "village.tmap",
        "map written",
        "copy.map",
        "bytes",
    ] {
        assert!(output.err.contains(word), "{word}: {}", output.err);
    }
    let generate = ["map", "generate", &copy, "--size", "9x9", "-q"];
    let output = run_throng(&generate);
    assert_eq!(
        (output.code, output.out.as_str(), output.err.as_str()),
        (0, "", "")
    );
    assert_eq!(run_throng(&["map", "info", &copy, "-q", "-v"]).code, 2);
}

#[test]
fn quiet_path_comparison_prints_wrong_answers_on_stderr() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", "type octile\nheight 1\nwidth 3\nmap\n...\n");
    let scen = |length: &str| format!("version 1\n0\ta.map\t3\t1\t0\t0\t2\t0\t{length}\n");
    let (right, wrong) = (
        folder.write("r.scen", scen("2")),
        folder.write("w.scen", scen("3")),
    );
    let output = run_throng(&["path", "--map", &map, "--scen", &right, "-q"]);
    assert_eq!(
        (output.code, output.out.as_str(), output.err.as_str()),
        (0, "", "")
    );
    let output = run_throng(&["path", "--map", &map, "--scen", &wrong, "-q"]);
    assert_eq!((output.code, output.out.as_str()), (1, ""));
    assert!(
        output
            .err
            .contains("query 0: expected 3.00000 tiles, found 2.00000"),
        "{}",
        output.err
    );
}
