//! An alarm for language that is hard to understand. It knows a short list of words; the standard is a reader who understands each sentence
//! at once.

use std::fs;
use std::path::Path;

use crate::code_rules::{Source, assert_none, sources};
use crate::harness::root;

/// Constructions with a clearer alternative, forbidden in documents, in rustdoc and in printed text.
const RIDDLES: [&str; 12] = [
    "whoever",
    "of whom",
    "is told",
    "are told",
    "is asked for",
    "are asked",
    "bears the",
    "befell",
    "befalls",
    "who waits",
    "is heard",
    "nobody is",
];

/// Verbs that name no operation, forbidden in function names.
const VERBS: [&str; 10] = [
    "hear", "heed", "tell", "told", "stir", "lay", "befall", "embody", "lend", "bear",
];

/// Documents that quote the old wording.
const QUOTES: [&str; 3] = ["CHANGELOG.md", "docs/decisions", "docs/renames.md"];

fn documents(folder: &Path, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root()).unwrap().to_string_lossy();
        let name = name.replace('\\', "/");
        let is_outside = ["target", "node_modules", ".git"]
            .iter()
            .any(|skipped| path.ends_with(skipped));
        if is_outside || QUOTES.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            documents(&path, into);
        } else if name.ends_with(".md") {
            into.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The first forbidden construction of a text, by whole words.
fn riddle(text: &str) -> Option<&'static str> {
    let words: String = text
        .to_lowercase()
        .chars()
        .map(|letter| {
            if letter.is_alphanumeric() {
                letter
            } else {
                ' '
            }
        })
        .collect();
    let words = format!(
        " {} ",
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    let mut riddles = RIDDLES.into_iter();
    riddles.find(|riddle| words.contains(&format!(" {riddle} ")))
}

/// The paragraphs of the doc comments of a text, each with the number of its first line.
fn doc_paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (nth, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let doc = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))
            .filter(|doc| !doc.trim().is_empty());
        match (doc, paragraphs.last_mut()) {
            (Some(doc), Some((_, paragraph))) if is_open => paragraph.push_str(doc),
            (Some(doc), _) => paragraphs.push((nth + 1, doc.to_owned())),
            (None, _) => {}
        }
        is_open = doc.is_some();
    }
    paragraphs
}

/// The string literals of a line of code.
fn literals(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

#[test]
fn documents_use_plain_english() {
    let mut files = Vec::new();
    documents(root(), &mut files);
    assert!(files.len() > 20, "{} documents", files.len());
    let faults = files.iter().flat_map(|(name, text)| {
        // A sentence can span several lines.
        let paragraphs = text.split("\n\n");
        paragraphs.filter_map(move |paragraph| {
            let riddle = riddle(paragraph)?;
            let start = paragraph.lines().next().unwrap_or_default();
            Some(format!("{name}: `{riddle}` in the paragraph `{start}`"))
        })
    });
    assert_none(faults.collect());
}

/// GitHub shows lines that rustdoc hides, and code with such lines does not compile after copying.
#[test]
fn code_in_documents_has_no_hidden_lines() {
    let mut documents = Vec::new();
    self::documents(root(), &mut documents);
    let found = documents.iter().flat_map(|(name, text)| {
        let mut is_rust = false;
        text.lines().enumerate().filter_map(move |(at, line)| {
            if line.starts_with("```") {
                is_rust = line.starts_with("```rust");
            }
            (is_rust && (line == "#" || line.starts_with("# ")))
                .then(|| format!("{name}:{}: {line}", at + 1))
        })
    });
    assert_none(found.collect());
}

#[test]
fn printed_text_uses_plain_english() {
    let sources = sources();
    let is_program = |source: &&Source| !source.path.contains("tests");
    let faults = sources.iter().filter(is_program).flat_map(|source| {
        source.code_without_tests().filter_map(|(line, code)| {
            let riddle = literals(code).find_map(riddle)?;
            Some(format!("{}:{line}: `{riddle}`", source.path))
        })
    });
    assert_none(faults.collect());
}

#[test]
fn rustdoc_uses_plain_english() {
    let sources = sources();
    let paragraphs = sources.iter().flat_map(|source| {
        let paragraphs = doc_paragraphs(&source.text).into_iter();
        paragraphs.map(|(line, paragraph)| (&source.path, line, paragraph))
    });
    let (mut count, mut faults) = (0, Vec::new());
    for (path, line, paragraph) in paragraphs {
        count += 1;
        faults.extend(riddle(&paragraph).map(|riddle| format!("{path}:{line}: `{riddle}`")));
    }
    assert!(count > 5_000, "{count} paragraphs");
    assert_none(faults);
}

#[test]
fn functions_are_named_by_what_they_do() {
    let sources = sources();
    let faults = sources.iter().flat_map(|source| {
        source.code_without_tests().filter_map(|(line, code)| {
            let name = code.split_once("fn ")?.1;
            let name = name
                .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
                .next()?;
            let verb = name.split('_').next()?;
            let is_riddle = VERBS.contains(&verb);
            is_riddle.then(|| format!("{}:{line}: `{name}`", source.path))
        })
    });
    assert_none(faults.collect());
}

#[test]
fn planted_riddles_are_found() {
    assert_eq!(riddle("Whoever logs in\nwaits."), Some("whoever"));
    assert_eq!(
        riddle("two players, of\n/// whom one is away"),
        Some("of whom")
    );
    assert_eq!(riddle("The client is told"), Some("is told"));
    let documented = "//! A page.\n\n    /// Two players, of\n    /// whom one is away.\n    ///\n    /// More.\nfn f() {}";
    let paragraphs = doc_paragraphs(documented);
    let lines: Vec<usize> = paragraphs.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 3, 6]);
    assert_eq!(riddle(&paragraphs[1].1), Some("of whom"));
    assert_eq!(riddle("The server sends the position to the client."), None);
    assert_eq!(
        literals(r#"warn!(%error, "a client is told");"#).find_map(riddle),
        Some("is told")
    );
}
