//! Import rules that need the whole graph: no import cycles, and no re-exported ECS types in algorithms.
//!
//! No cycles: if a file of a package imports another file, that file does not import it, directly or indirectly.
//!
//! Imports are the paths in `use` statements and in other code, resolved to the file that defines the item: re-exports of a `mod.rs` are
//! followed, so that they hide no import. A `mod.rs` (or the `plugin.rs` of `plugin/`) and the files in its folder count as one unit: the
//! parent may call its parts, and these may use what the parent defines.

use std::collections::{BTreeMap, BTreeSet};

use crate::code_rules::{Source, assert_none, is_algorithm, sources};

/// The path of a module from its crate's root, preceded by the package for crates below `crates`: `["aoi", "views"]`.
type Module = Vec<String>;

/// A module, and the imports in its file.
struct ModuleSource {
    path: String,
    /// Imported paths, from the crate's root.
    imports: Vec<Vec<String>>,
    /// Re-exported names, with their origins.
    re_exports: BTreeMap<String, Vec<String>>,
    /// Modules with a glob re-export.
    globs: Vec<Vec<String>>,
}

fn module_of(path: &str) -> Module {
    let name = path.trim_end_matches(".rs").trim_end_matches("/mod");
    let name = name.strip_suffix("/lib").unwrap_or(name);
    let name = if name == "lib" { "" } else { name };
    let parts = name.split('/').filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// The paths of a use tree, each with the name that it introduces; a glob ends in `*`.
fn flatten(tree: &str) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let (head, rest) = tree.split_at(open);
        let head = head
            .split("::")
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let head: Vec<String> = head.map(str::to_owned).collect();
        let inner = &rest[1..rest.rfind('}').unwrap_or(rest.len())];
        let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
        for (at, letter) in inner.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(&inner[start..at]);
                    start = at + 1;
                }
                _ => {}
            }
        }
        parts.push(&inner[start..]);
        let flat = parts.into_iter().filter(|part| !part.trim().is_empty());
        return flat
            .flat_map(flatten)
            .map(|(path, name)| ([head.clone(), path].concat(), name))
            .collect();
    }
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
    let path: Vec<String> = path
        .split("::")
        .map(|part| part.trim().to_owned())
        .collect();
    let last = path.iter().rev().find(|part| *part != "self").cloned();
    let name = match name.trim() {
        "" => last.unwrap_or_default(),
        name => name.to_owned(),
    };
    let path = path
        .into_iter()
        .filter(|part| part != "self" || tree.starts_with("self"));
    vec![(path.collect(), name)]
}

/// A path as written in `module`, from the root of its package; `None` if it leads out of the project's packages.
fn from_root(module: &Module, path: &[String], modules: &BTreeSet<Module>) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    let mut base = module.clone();
    match first.as_str() {
        "crate" => {
            let is_package = |name: &&String| name.starts_with("throng_");
            let package = module.first().filter(is_package).cloned();
            return Some([Vec::from_iter(package), rest.to_vec()].concat());
        }
        "throng" => return Some(rest.to_vec()),
        name if name.starts_with("throng_") => return Some(path.to_vec()),
        "self" => return Some([base, rest.to_vec()].concat()),
        "super" => {
            base.pop()?;
            let up = rest.iter().take_while(|part| *part == "super").count();
            base.truncate(base.len().checked_sub(up)?);
            return Some([base, rest[up..].to_vec()].concat());
        }
        _ => {}
    }
    base.push(first.clone());
    modules
        .contains(&base)
        .then(|| [base, rest.to_vec()].concat())
}

/// Collects the `use` and `pub use` statements, and the paths in other code that begin with `super::`, `crate::` or the name of a child
/// module.
fn module_source(source: &Source, modules: &BTreeSet<Module>) -> ModuleSource {
    let module = module_of(&source.path);
    let code: Vec<&str> = source.code_without_tests().map(|(_, line)| line).collect();
    let code = code.join("\n");
    let mut parsed = ModuleSource {
        path: source.path.clone(),
        imports: Vec::new(),
        re_exports: BTreeMap::new(),
        globs: Vec::new(),
    };
    let mut rest = code.as_str();
    let mut other = String::new();
    while let Some(at) = rest.find("use ") {
        let line_start = rest[..at].rfind('\n').map_or(0, |at| at + 1);
        let head = rest[line_start..at].trim();
        let is_use = head.is_empty() || head.starts_with("pub");
        other.push_str(&rest[..at]);
        rest = &rest[at + 4..];
        if !is_use {
            continue;
        }
        let end = rest.find(';').unwrap_or(rest.len());
        for (path, name) in flatten(&rest[..end]) {
            let Some(path) = from_root(&module, &path, modules) else {
                continue;
            };
            // An import of a re-exported name counts for its origin; the re-export itself is not a use.
            if path.last().is_some_and(|last| last == "*") {
                parsed.globs.push(path[..path.len() - 1].to_vec());
            } else {
                parsed.re_exports.insert(name, path.clone());
            }
            if !head.starts_with("pub") {
                parsed.imports.push(path);
            }
        }
        rest = &rest[end..];
    }
    other.push_str(rest);
    for (at, _) in other.match_indices("::") {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let first = other[..at]
            .rsplit(|c| !is_part(c))
            .next()
            .unwrap_or_default();
        let before = &other[..at - first.len()];
        if first.is_empty() || before.ends_with("::") {
            continue;
        }
        let tail = other[at..].chars().take_while(|&c| is_part(c) || c == ':');
        let path = format!("{first}{}", tail.collect::<String>());
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        if let Some(path) = from_root(&module, &path, modules) {
            parsed.imports.push(path);
        }
    }
    parsed
}

/// The module whose file defines the item of a path.
fn defined_in(
    path: &[String],
    parsed_modules: &BTreeMap<Module, ModuleSource>,
    depth: u32,
) -> Option<Module> {
    let longest = (0..=path.len())
        .rev()
        .find(|&length| parsed_modules.contains_key(&path[..length]))?;
    let module = path[..longest].to_vec();
    let Some(name) = path.get(longest) else {
        return Some(module);
    };
    let parsed = &parsed_modules[&module];
    let from = parsed
        .re_exports
        .get(name)
        .filter(|from| from.as_slice() != path && depth > 0);
    if let Some(from) = from {
        return defined_in(from, parsed_modules, depth - 1);
    }
    Some(module)
}

/// Whether one module contains the other: `views` and `views::update`, or `plugin` and `plugin::answer`.
fn is_parent_and_part(one: &Module, other: &Module) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// All modules that can be reached from one, including itself if it is on a cycle.
fn reached<'m>(
    from: &'m Module,
    edges: &'m BTreeMap<Module, BTreeSet<Module>>,
) -> BTreeSet<&'m Module> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let next = edges.get(module).into_iter().flatten();
        open.extend(next.filter(|&next| found.insert(next)));
    }
    found
}

/// Describes each module on a cycle.
fn import_cycles(sources: &[Source]) -> Vec<String> {
    let modules: BTreeSet<Module> = sources
        .iter()
        .map(|source| module_of(&source.path))
        .collect();
    let parsed_modules: BTreeMap<Module, ModuleSource> = sources
        .iter()
        .map(|source| (module_of(&source.path), module_source(source, &modules)))
        .collect();
    let edges_of = |module: &Module, parsed: &ModuleSource| -> BTreeSet<Module> {
        let targets = parsed
            .imports
            .iter()
            .filter_map(|path| defined_in(path, &parsed_modules, 8));
        targets
            .filter(|target| {
                target.first() == module.first() && !is_parent_and_part(module, target)
            })
            .collect()
    };
    let edges: BTreeMap<Module, BTreeSet<Module>> = parsed_modules
        .iter()
        .map(|(module, parsed)| (module.clone(), edges_of(module, parsed)))
        .collect();
    let mut found = BTreeSet::new();
    for module in edges.keys() {
        let mutual: Vec<&str> = reached(module, &edges)
            .into_iter()
            .filter(|&other| reached(other, &edges).contains(module))
            .map(|other| parsed_modules[other].path.as_str())
            .collect();
        if mutual.len() > 1 {
            let inside = |path: &&Module| mutual.contains(&parsed_modules[*path].path.as_str());
            let arrows = edges[module].iter().filter(inside).map(|to| to.join("::"));
            found.insert(format!(
                "{}, in a cycle of {} modules: it imports {}",
                parsed_modules[module].path,
                mutual.len(),
                arrows.collect::<Vec<_>>().join(", ")
            ));
        }
    }
    found.into_iter().collect()
}

#[test]
fn files_of_a_folder_have_no_import_cycles() {
    assert_none(import_cycles(&sources()));
}

#[test]
fn import_cycle_is_found_through_re_exports_and_paths() {
    let source = |path: &str, text: &str| Source::new(path, text);
    let listing = source(
        "a/mod.rs",
        "mod one;\nmod two;\npub use one::One;\npub use two::{Two, make};",
    );
    let one = |text: &str| source("a/one.rs", text);
    let two = |text: &str| source("a/two.rs", text);
    let seen = |one_text: &str, two_text: &str| {
        import_cycles(&[listing.clone(), one(one_text), two(two_text)]).len()
    };
    assert_eq!(
        seen("use super::Two;\npub struct One;", "pub struct Two;"),
        0
    );
    assert_eq!(
        seen(
            "use super::Two;\npub struct One;",
            "use crate::a::{One};\npub struct Two;"
        ),
        2
    );
    assert_eq!(
        seen("use super::two::Two as T;", "fn f() { super::one::g() }"),
        2
    );
    assert_eq!(seen("use super::{two::{self, Two}};", "use super::One;"), 2);
    // Imports in tests do not count.
    assert_eq!(
        seen(
            "use super::Two;",
            "#[cfg(test)]\nmod tests {\n    use crate::a::One;\n}"
        ),
        0
    );
}

/// Derives that make a type an ECS type.
const DERIVED: [&str; 7] = [
    "Bundle",
    "Component",
    "Event",
    "Message",
    "Resource",
    "SystemParam",
    "SystemSet",
];

/// The ECS types that a file defines.
fn ecs_uses(source: &Source) -> Vec<String> {
    let mut derives = false;
    let mut found = Vec::new();
    let mut is_open = false;
    for (_, line) in source.code_without_tests() {
        let line = line.trim();
        if is_open || line.starts_with("#[derive(") {
            let list = line.trim_start_matches("#[derive(").trim_end_matches(")]");
            derives |= list.split(',').any(|name| DERIVED.contains(&name.trim()));
            is_open = !line.ends_with(")]");
        } else if !line.starts_with('#') && derives {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let name = words
                .skip_while(|word| !["struct", "enum"].contains(word))
                .nth(1);
            // A macro's `$name` is not a name.
            let name = name.filter(|name| !name.is_empty());
            found.extend(name.map(str::to_owned));
            derives = false;
        }
    }
    found
}

/// Settings and ids are plain values for the code that reads them; they are resources or components only where they are set.
fn is_plain(name: &str) -> bool {
    name.ends_with("Settings") || name.ends_with("Id")
}

fn renamed_resources(sources: &[Source]) -> Vec<String> {
    let modules: BTreeSet<Module> = sources
        .iter()
        .map(|source| module_of(&source.path))
        .collect();
    let types: BTreeSet<String> = sources.iter().flat_map(ecs_uses).collect();
    let is_ecs = |name: &String| types.contains(name) && !is_plain(name);
    let of_crate = |source: &Source| {
        let imports = module_source(source, &modules).imports.into_iter();
        let named = imports.filter_map(|path| path.into_iter().find(is_ecs));
        let path = source.path.clone();
        named
            .map(move |name| format!("{path} imports {name}"))
            .collect::<Vec<_>>()
    };
    let algorithms = sources.iter().filter(|source| is_algorithm(source));
    algorithms.flat_map(of_crate).collect()
}

#[test]
fn algorithms_import_no_ecs_type() {
    assert_none(renamed_resources(&sources()));
}

#[test]
fn renamed_resource_is_found() {
    let workers = Source::new(
        "sim/workers.rs",
        "#[derive(Resource, Clone)]\npub struct Workers(usize);",
    );
    let handed = Source::new("sim/mod.rs", "mod workers;\npub use workers::Workers;");
    let file = |path: &str| Source::new(path, "use crate::sim::Workers;\nfn f(w: Workers) {}");
    let found =
        |path: &str| renamed_resources(&[workers.clone(), handed.clone(), file(path)]).len();
    assert_eq!(found("aoi/update.rs"), 1);
    assert_eq!(found("aoi/plugin.rs"), 0);
    let broken = "#[derive(\n    Clone, Resource,\n)]\npub struct Workers(usize);";
    assert_eq!(
        ecs_uses(&Source::new("sim/workers.rs", broken)),
        ["Workers"]
    );
}
