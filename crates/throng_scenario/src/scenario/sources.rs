//! The files of a scenario: included files, and their parameters.
//!
//! ```text
//! file ─▶ parameters and old names are replaced ─────────▶ read ─▶ Scenario ┐
//!  └ include ─▶ each file in the same way ────────────────────▶ Scenario ───┴─▶ lists concatenated
//! ```
//! Each file is parsed separately, so that its errors contain its own line; [`Sources`] knows which item of which list came from
//! which file, and which bytes are the value of a parameter.
//!
//! Invariants: no file includes itself, directly or indirectly; all texts together, with the values of parameters in them, are no
//! longer than the maximum size of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::builtin::built_in;
use super::old_names::{OldName, old_names};
use super::plausible::unusual_values;
use super::read::{SCENARIO_BYTES_MAX, read_text};
use super::schema::{Cue, MapSource, Scenario};
use super::text::{
    self, BYTE_ORDER_MARK, ERRORS_MAX, Outline, PathStep, ScenarioError, SourceError, TextSpan,
    TokenKind, ValidationError, ValuePath, closest, list_names, with_comma, without_entry,
};
use super::validate::limits::INCLUDES_MAX;

/// The files of a scenario. The default has none: then everything is in the scenario's own text.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// In the order of their lists; the scenario's own file is the last.
    files: Vec<SourceFile>,
    parameters: Vec<Parameter>,
    /// The duration in the files.
    pub(super) duration_s: f64,
}

/// A parameter of a scenario, with its value in this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in scenarios and `--set`.
    pub name: String,
    /// Its value as it would be written in the file.
    pub value: String,
}

/// A parsed file.
#[derive(Clone, Debug)]
struct SourceFile {
    name: String,
    /// Its path; `None` for a built-in and for standard input.
    path: Option<PathBuf>,
    text: String,
    /// The text with parameters replaced by their values, and old names by the new ones.
    expanded: String,
    replacements: Vec<Replacement>,
    old_names: Vec<OldName>,
    /// The number of its items in each of the [`LISTS`].
    items: [usize; LISTS.len()],
}

/// The span of a parameter's name or an old name in a text, and that of its value or the new name in the parsed text.
#[derive(Clone, Debug)]
struct Replacement {
    name: TextSpan,
    value: TextSpan,
}

/// The lists of a scenario; those of included files come before a file's own.
const LISTS: [&str; 7] = [
    "kinds",
    "attributes",
    "scenes",
    "crowds",
    "queues",
    "script",
    "expect",
];

/// Maximum nesting depth of brackets; real scenarios have about twenty. The limit of the parser itself is lower.
const BRACKETS_DEEP_MAX: usize = 128;

/// Words that cannot be names of parameters, because RON uses them.
const RESERVED: [&str; 5] = ["true", "false", "inf", "nan", "r"];

/// A text and its origin.
pub(super) struct Source {
    /// Its name in errors.
    pub file: String,
    /// The path to which included files are relative.
    pub path: Option<PathBuf>,
    pub text: String,
}

/// Reads a scenario with all included files. `set` has names of parameters, and values that replace those in the file. With a list
/// of errors, entries with an error are skipped and their errors added to the list; an error that ends the parsing is returned
/// instead.
pub(super) fn assemble(
    source: Source,
    set: &[(String, String)],
    errors: &mut Option<Vec<ScenarioError>>,
) -> Result<(Scenario, Sources), ScenarioError> {
    let set: BTreeMap<&str, &str> = set
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    let mut reader = SourceReader {
        set: &set,
        sources: Sources::default(),
        declared: BTreeSet::new(),
        bytes: 0,
        include_stack: Vec::new(),
        errors: errors.take(),
    };
    let read = reader.read(source, &BTreeMap::new());
    let mut sources = reader.sources;
    *errors = reader.errors;
    let (scenario, _) = read?;
    sources.duration_s = scenario.duration_s;
    for name in set.keys() {
        if !sources.parameters.iter().any(|known| known.name == **name) {
            return Err(unknown_parameter(name, &sources.parameters));
        }
    }
    Ok((scenario, sources))
}

fn unknown_parameter(name: &str, known: &[Parameter]) -> ScenarioError {
    let names: Vec<&str> = known.iter().map(|parameter| &*parameter.name).collect();
    let hint = closest(name, names.iter().copied())
        .map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
    ScenarioError::Parameter {
        message: format!("unknown parameter `{name}`{hint}"),
        help: if names.is_empty() {
            "the scenario has no `parameters`".to_owned()
        } else {
            format!("the scenario has {}", list_names(&names))
        },
    }
}

impl Sources {
    /// The parameters, in the order of their first declaration.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The paths of the parsed files; built-in scenarios and standard input have none.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().filter_map(|file| file.path.as_deref())
    }

    /// Converts a validation error to an error with its location in the right file; `None` when no files are known.
    pub(super) fn source_error(&self, problem: &ValidationError) -> Option<SourceError> {
        let (file, place) = self.locate(&problem.path)?;
        let whole = Outline::new(&file.expanded).find(&place);
        let span = problem.span.clone().map_or(whole.clone(), |part| {
            whole.start + part.start..whole.start + part.end
        });
        Some(file.source_error(span, problem.clone()))
    }

    /// The old names of fields and variants in all files, each with the new one. A file that is included twice counts once.
    pub(super) fn old_names(&self) -> Vec<SourceError> {
        let mut found = Vec::new();
        for (nth, file) in self.files.iter().enumerate() {
            let is_duplicate =
                |other: &SourceFile| other.name == file.name && other.text == file.text;
            if !self.files[..nth].iter().any(is_duplicate) {
                let warning = |old: &OldName| {
                    let problem = (old.message.clone(), None);
                    SourceError::new(&file.name, &file.text, old.span.clone(), problem)
                };
                found.extend(file.old_names.iter().map(warning));
            }
        }
        found
    }

    /// The values in all files that are outside the usual range of their field. A file that is included twice counts once.
    pub(super) fn unusual_values(&self) -> Vec<SourceError> {
        let mut found = Vec::new();
        for (nth, file) in self.files.iter().enumerate() {
            let is_again =
                |other: &SourceFile| other.name == file.name && other.expanded == file.expanded;
            if !self.files[..nth].iter().any(is_again) {
                let unusual = unusual_values(&Outline::new(&file.expanded)).into_iter();
                found.extend(
                    unusual.map(|(span, message)| file.source_error(span, (message, None))),
                );
            }
        }
        found
    }

    /// The file of a path, and the path within that file.
    fn locate(&self, place: &ValuePath) -> Option<(&SourceFile, ValuePath)> {
        let own = self.files.last()?;
        let (list, mut item) = match *place.steps() {
            [PathStep::Field(field), PathStep::Item(item), ..] => {
                match LISTS.iter().position(|list| *list == field) {
                    Some(list) => (list, item),
                    None => return Some((own, place.clone())),
                }
            }
            _ => return Some((own, place.clone())),
        };
        for file in &self.files {
            let Some(beyond) = item.checked_sub(file.items[list]) else {
                let mut local = ValuePath::root().field(LISTS[list]).item(item);
                for &step in &place.steps()[2..] {
                    local = match step {
                        PathStep::Field(field) => local.field(field),
                        PathStep::Item(item) => local.item(item),
                    };
                }
                return Some((file, local));
            };
            item = beyond;
        }
        Some((own, place.clone()))
    }
}

impl SourceFile {
    /// Creates an error from a span of the parsed text, located in the original text.
    fn source_error(
        &self,
        span: TextSpan,
        problem: impl Into<(String, Option<String>)>,
    ) -> SourceError {
        SourceError::new(&self.name, &self.text, self.original_span(span), problem)
    }

    /// Maps a span of the parsed text to a span of the original text; the value of a parameter maps to its name.
    fn original_span(&self, span: TextSpan) -> TextSpan {
        let place = |byte: usize, is_end: bool| {
            let before = self
                .replacements
                .partition_point(|replaced| replaced.value.start <= byte);
            let Some(last) = before.checked_sub(1).map(|last| &self.replacements[last]) else {
                return byte;
            };
            if is_end && byte == last.value.start {
                last.name.start
            } else if byte < last.value.end {
                if is_end {
                    last.name.end
                } else {
                    last.name.start
                }
            } else {
                byte - last.value.end + last.name.end
            }
        };
        place(span.start, false)..place(span.end, true)
    }
}

/// The parser of a scenario and all included files.
struct SourceReader<'a> {
    set: &'a BTreeMap<&'a str, &'a str>,
    sources: Sources,
    /// The names of the parameters so far.
    declared: BTreeSet<String>,
    bytes: u64,
    /// The files that are being read, each of which includes the next.
    include_stack: Vec<String>,
    /// The errors so far, if parsing continues after errors.
    errors: Option<Vec<ScenarioError>>,
}

impl SourceReader<'_> {
    /// Reads a file and all files that it includes. Returns the scenario and the names of the fields that they set. `given` has the
    /// values of parameters in including files.
    fn read(
        &mut self,
        source: Source,
        given: &BTreeMap<String, String>,
    ) -> Result<(Scenario, BTreeSet<String>), ScenarioError> {
        let Source { file, path, text } = source;
        let text = text
            .strip_prefix(BYTE_ORDER_MARK)
            .map_or(text.clone(), str::to_owned);
        let mut values = given.clone();
        let mut this = self.replace_parameters(&file, text, &mut values)?;
        let mut own = self.parse(&mut this)?;
        this.path = path.clone();
        this.items = [
            own.kinds.len(),
            own.attributes.len(),
            own.scenes.len(),
            own.crowds.len(),
            own.queues.len(),
            own.script.len(),
            own.expect.len(),
        ];
        if !self.include_stack.is_empty() {
            resolve_map_paths(&mut own, path.as_deref());
        }
        let mut all_fields: BTreeSet<String> = BTreeSet::new();
        let mut whole: Option<Scenario> = None;
        self.include_stack
            .push(file_identity(path.as_deref(), &file));
        for (nth, name) in std::mem::take(&mut own.include).iter().enumerate() {
            let at = ValuePath::root().field("include").item(nth);
            let included = self.find_included(name, path.as_deref());
            let included = included.map_err(|message| {
                let span = Outline::new(&this.expanded).find(&at);
                ScenarioError::Invalid(Box::new(this.source_error(span, (message, None))))
            })?;
            let (included, fields) = self.read(included, &values)?;
            whole = Some(match whole {
                None => included,
                Some(before) => merge(before, included, &fields),
            });
            all_fields.extend(fields);
        }
        self.include_stack.pop();
        let outline = Outline::new(&this.expanded);
        let keys = outline.parts(&ValuePath::root()).into_iter();
        let keys = keys.filter_map(|(key, _)| key);
        let fields = keys.map(|key| outline.text_at(&key).to_owned()).collect();
        self.sources.files.push(this);
        let whole = match whole {
            None => own,
            Some(before) => merge(before, own, &fields),
        };
        all_fields.extend(fields);
        Ok((whole, all_fields))
    }

    /// Parses a file. When errors are collected, the field or list item with the error is skipped, and the rest is parsed again. A missing
    /// comma is added instead.
    fn parse(&mut self, this: &mut SourceFile) -> Result<Scenario, ScenarioError> {
        let mut left_out: Vec<TextSpan> = Vec::new();
        loop {
            let mistake = match text::parse(&this.name, &this.expanded) {
                Ok(scenario) => return Ok(scenario),
                Err(ScenarioError::Syntax(mistake)) => mistake,
                Err(other) => return Err(other),
            };
            let span = mistake.span.offset()..mistake.span.offset() + mistake.span.len();
            let is_missing = mistake.message.ends_with(" is missing");
            let problem = (mistake.message, mistake.help);
            let error = ScenarioError::Syntax(Box::new(this.source_error(span.clone(), problem)));
            let Some(errors) = self.errors.as_mut().filter(|all| all.len() < ERRORS_MAX) else {
                return Err(error);
            };
            let text = &this.expanded;
            if error
                .source_error()
                .is_some_and(SourceError::is_missing_comma)
            {
                let Some(rest) = with_comma(text, &span) else {
                    return Err(error);
                };
                errors.push(error);
                this.expanded = rest;
                continue;
            }
            // If a bracket is not closed, the ends of fields and items are not known.
            let is_broken = Outline::new(text).has_open_bracket();
            let entry = without_entry(&this.expanded, &span).filter(|_| !is_broken);
            let Some((entry, rest)) = entry else {
                return Err(error);
            };
            // A field that is missing only because it was skipped is not another error.
            let is_within = |part: &TextSpan| entry.start <= part.start && part.end <= entry.end;
            if !is_missing || !left_out.iter().any(is_within) {
                errors.push(error);
            }
            left_out.push(entry);
            this.expanded = rest;
        }
    }

    /// Finds an included file: next to the including file, in the working directory, or a built-in scenario.
    fn find_included(&self, name: &str, path: Option<&Path>) -> Result<Source, String> {
        if self.sources.files.len() + self.include_stack.len() >= INCLUDES_MAX {
            return Err(format!("expected at most {INCLUDES_MAX} files in all"));
        }
        let in_folder = path.and_then(Path::parent).map(|folder| folder.join(name));
        let found = in_folder.filter(|path| path.is_file());
        let found = found.or_else(|| Some(PathBuf::from(name)).filter(|path| path.is_file()));
        let source = match (found, built_in(name)) {
            (Some(path), _) => Source {
                file: path.display().to_string(),
                text: read_text(&path).map_err(|error| error.to_string())?,
                path: Some(path),
            },
            (None, Some(built_in)) => Source {
                file: format!("{}.ron", built_in.name),
                path: None,
                text: built_in.text.to_owned(),
            },
            (None, None) => {
                return Err(format!(
                    "expected a file beside this one, or a built-in scenario, found no `{name}`"
                ));
            }
        };
        if self
            .include_stack
            .contains(&file_identity(source.path.as_deref(), &source.file))
        {
            return Err(format!(
                "`{name}` includes this file, directly or indirectly"
            ));
        }
        Ok(source)
    }

    /// Replaces parameters in a text by their values, and old names by the new ones. `values` has the values of including files;
    /// those of this file are added.
    fn replace_parameters(
        &mut self,
        file: &str,
        text: String,
        values: &mut BTreeMap<String, String>,
    ) -> Result<SourceFile, ScenarioError> {
        let outline = Outline::new(&text);
        let wrong = |span: TextSpan, message: String| {
            let mistake = SourceError::new(file, &text, span, (message, None));
            ScenarioError::Invalid(Box::new(mistake))
        };
        check_depth(file, &text, &outline)?;
        let mut declared: Option<TextSpan> = None;
        for (key, value) in outline.parts(&ValuePath::root().field("parameters")) {
            let key = key.unwrap_or_else(|| value.clone());
            let name = outline.text_at(&key).trim_matches('"').to_owned();
            let first = declared.map_or(key.start, |declared| declared.start);
            declared = Some(first..value.end);
            if !is_name(&name) {
                let message = format!(
                    "expected a name in quotes and lower case, such as \"players\", found `{name}`"
                );
                return Err(wrong(key, message));
            }
            let default = outline.text_at(&value);
            let found = match (self.set.get(&*name), values.get(&name)) {
                (Some(set), _) => to_literal(&name, set, default)
                    .map_err(|(message, help)| ScenarioError::Parameter { message, help })?,
                (None, Some(given)) => given.clone(),
                (None, None) => default.to_owned(),
            };
            self.declare(&name, &found);
            values.insert(name, found);
        }
        let mut this = SourceFile {
            name: file.to_owned(),
            path: None,
            expanded: String::with_capacity(text.len()),
            text: String::new(),
            replacements: Vec::new(),
            old_names: old_names(&outline),
            items: [0; LISTS.len()],
        };
        let mut copied = 0;
        for name in replaced_names(&outline, declared.as_ref(), &this.old_names) {
            let words = outline.text_at(&name);
            let renamed = this.old_names.iter().find(|old| old.span == name);
            let value = renamed.map(|old| old.new_name);
            let Some(value) = value.or_else(|| values.get(words).map(String::as_str)) else {
                if declared.is_none() {
                    // Without parameters, the parser reports the error.
                    continue;
                }
                let known = values.keys().map(String::as_str);
                let hint = closest(words, known)
                    .map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
                return Err(wrong(name, format!("unknown parameter `{words}`{hint}")));
            };
            this.expanded += &text[copied..name.start];
            let start = this.expanded.len();
            this.expanded += value;
            copied = name.end;
            let value = start..this.expanded.len();
            this.replacements.push(Replacement { name, value });
            if this.expanded.len() as u64 > SCENARIO_BYTES_MAX {
                break;
            }
        }
        this.expanded += &text[copied..];
        self.bytes += this.expanded.len() as u64;
        if self.bytes > SCENARIO_BYTES_MAX {
            return Err(ScenarioError::TooLarge {
                path: PathBuf::from(file),
                found_bytes: self.bytes,
                bytes_max: SCENARIO_BYTES_MAX,
            });
        }
        this.text = text;
        Ok(this)
    }

    fn declare(&mut self, name: &str, value: &str) {
        let known = &mut self.sources.parameters;
        if self.declared.insert(name.to_owned()) {
            known.push(Parameter {
                name: name.to_owned(),
                value: value.to_owned(),
            });
        }
    }
}

/// Fails if brackets are nested too deep. Checked before the text is parsed, because the time to parse grows with the square of the depth.
fn check_depth(file: &str, text: &str, outline: &Outline<'_>) -> Result<(), ScenarioError> {
    let Some(span) = outline.bracket_beyond(BRACKETS_DEEP_MAX) else {
        return Ok(());
    };
    let message = format!("expected brackets at most {BRACKETS_DEEP_MAX} deep, found more here");
    let mistake = SourceError::new(file, text, span, (message, None));
    Err(ScenarioError::Syntax(Box::new(mistake)))
}

/// The words of a text in the place of a value that can be names of parameters, without those in `parameters` itself.
fn parameter_names(outline: &Outline<'_>, declared: Option<&TextSpan>) -> Vec<TextSpan> {
    let mut names = Vec::new();
    let mut nth = 0;
    while let Some(token) = outline.token(nth) {
        nth += 1;
        let next = outline.token(nth).map(|next| next.kind);
        let is_value = token.kind == TokenKind::Word
            && !matches!(next, Some(TokenKind::Mark(b':' | b'(')))
            && is_name(outline.text_at(&token.span));
        let is_declared = declared
            .is_some_and(|declared| (declared.start..declared.end).contains(&token.span.start));
        if is_value && !is_declared {
            names.push(token.span.clone());
        }
    }
    names
}

/// The old names, and the possible names of parameters, in the order of the text.
fn replaced_names(
    outline: &Outline<'_>,
    declared: Option<&TextSpan>,
    old_names: &[OldName],
) -> Vec<TextSpan> {
    let mut names = parameter_names(outline, declared);
    names.extend(old_names.iter().map(|old| old.span.clone()));
    names.sort_unstable_by_key(|span| span.start);
    names.dedup();
    names
}

/// Whether a word can be the name of a parameter: it is in lower case, unlike variants of RON.
fn is_name(words: &str) -> bool {
    words.starts_with(|first: char| first.is_ascii_lowercase())
        && words
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && !RESERVED.contains(&words)
}

/// Converts a value from the command line to RON, with the type of `default`, the value in the file. An error consists of a message
/// and a help text.
fn to_literal(name: &str, set: &str, default: &str) -> Result<String, (String, String)> {
    let is_flag = |words: &str| matches!(words, "true" | "false");
    let (expected, fits) = if default.starts_with('"') {
        return Ok(format!("{set:?}"));
    } else if is_flag(default) {
        ("`true` or `false`", is_flag(set))
    } else {
        let digits = set.trim_start_matches(['-', '+']);
        let is_number = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
        ("a number", is_number && set.parse::<f64>().is_ok())
    };
    if fits {
        return Ok(set.to_owned());
    }
    Err((
        format!("expected {expected} for the parameter `{name}`, found `{set}`"),
        format!("the file has `{name}` as {default}"),
    ))
}

/// The identity of a file, which does not depend on how its path is written: the canonical path, or its name if it has no path.
fn file_identity(path: Option<&Path>, file: &str) -> String {
    let canonical = path.and_then(|path| path.canonicalize().ok());
    canonical.map_or_else(|| file.to_owned(), |path| path.display().to_string())
}

/// Resolves the map files next to an included file.
fn resolve_map_paths(scenario: &mut Scenario, path: Option<&Path>) {
    let Some(folder) = path.and_then(Path::parent) else {
        return;
    };
    let match_scenes = scenario.queues.iter_mut();
    let match_scenes = match_scenes.filter_map(|queue| queue.match_scene.as_mut());
    let opened = scenario.script.iter_mut().filter_map(Cue::opened_scene_mut);
    for scene in scenario.scenes.iter_mut().chain(match_scenes).chain(opened) {
        if let MapSource::File(named) = &mut scene.map {
            let in_folder = folder.join(&*named);
            if in_folder.is_file() {
                *named = in_folder;
            }
        }
    }
}

/// Merges two scenarios: the lists of the second are appended to those of the first, and other fields of the second replace those
/// of the first if it sets them.
fn merge(first: Scenario, second: Scenario, fields: &BTreeSet<String>) -> Scenario {
    fn append<T>(mut first: Vec<T>, second: Vec<T>) -> Vec<T> {
        first.extend(second);
        first
    }
    macro_rules! last_given {
        ($field:ident) => {
            if fields.contains(stringify!($field)) {
                second.$field
            } else {
                first.$field
            }
        };
    }
    Scenario {
        name: last_given!(name),
        seed: last_given!(seed),
        include: Vec::new(),
        parameters: second.parameters,
        tick_hz: last_given!(tick_hz),
        heartbeat_ticks: last_given!(heartbeat_ticks),
        duration_s: last_given!(duration_s),
        settings: last_given!(settings),
        kinds: append(first.kinds, second.kinds),
        attributes: append(first.attributes, second.attributes),
        scenes: append(first.scenes, second.scenes),
        crowds: append(first.crowds, second.crowds),
        queues: append(first.queues, second.queues),
        network: last_given!(network),
        script: append(first.script, second.script),
        expect: append(first.expect, second.expect),
    }
}
