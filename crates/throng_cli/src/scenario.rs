//! `throng scenario`: lists and prints the built-in scenarios, writes a template, and explains the scenario language.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use super::attribute_code::{AttributeLanguage, attribute_code};
use super::escape::escaped;
use super::{CliError, CliStatus, print};
use throng_scenario::{
    self as scenario, BUILT_IN, HelpEntry, HelpGroup, ScenarioError, TEMPLATE, closest,
    help_entries,
};

/// Arguments of `throng scenario`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  throng scenario list\n  throng scenario new my.ron")]
pub(super) struct Scenarios {
    #[command(subcommand)]
    action: ScenarioAction,
}

#[derive(Debug, clap::Subcommand)]
#[command(disable_help_subcommand = true)]
enum ScenarioAction {
    /// List the built-in scenarios
    #[command(after_help = "Example: throng scenario list")]
    List,
    /// Print the text of a scenario
    #[command(after_help = "Example: throng scenario show siege > my-siege.ron")]
    Show {
        /// A built-in's name, or a file
        scenario: String,
    },
    /// Create a small scenario with comments, to start from
    #[command(after_help = "Example: throng scenario new my.ron && throng run my.ron")]
    New {
        /// File to write [default: the standard output]
        file: Option<PathBuf>,
    },
    /// Explain a cue, action, area, behaviour or expectation, with an example; without a name, list all
    #[command(after_help = "Examples:\n  throng scenario help\n  throng scenario help Chase")]
    Help {
        /// What to explain, as it is written in a scenario
        name: Option<String>,
    },
    /// Print the numbers of attributes in packets, as a table or as code for clients
    #[command(after_help = "Example: throng scenario attributes my.ron --ts > attributes.ts")]
    Attributes {
        /// A built-in's name, or a file; without it only the attributes that every scenario has
        scenario: Option<String>,
        #[command(flatten)]
        language: AttributeLanguage,
    },
    /// Print the JSON Schema of scenarios, for editors and generators
    #[command(after_help = "Example: throng scenario schema > scenario.schema.json")]
    Schema,
}

impl Scenarios {
    /// Runs the subcommand.
    pub(super) fn run(self) -> Result<CliStatus, CliError> {
        match self.action {
            ScenarioAction::List => list()?,
            ScenarioAction::Show { scenario } => print(text_of(&scenario)?.trim_end())?,
            ScenarioAction::New { file: None } => print(TEMPLATE.trim_end())?,
            ScenarioAction::New { file: Some(file) } => {
                let created = File::create_new(&file);
                let written = created.and_then(|mut file| file.write_all(TEMPLATE.as_bytes()));
                written.map_err(|error| CliError::not_written(&file, &error))?;
            }
            ScenarioAction::Help { name } => print(&help(name.as_deref())?)?,
            ScenarioAction::Attributes { scenario, language } => {
                let loaded = scenario.as_deref().map(scenario::load).transpose()?;
                print(attribute_code(loaded.as_ref(), language).trim_end())?;
            }
            ScenarioAction::Schema => {
                let text = serde_json::to_string_pretty(&scenario::json_schema());
                print(&text.map_err(|error| CliError::new(error.to_string()))?)?;
            }
        }
        Ok(CliStatus::Done)
    }
}

fn list() -> Result<(), CliError> {
    for built_in in BUILT_IN {
        let description = first_sentence(built_in.text);
        let mut lines = wrapped(&description, WIDTH).into_iter();
        let first = lines.next().unwrap_or_default();
        print(&format!("{:<14}{first}", built_in.name))?;
        lines.try_for_each(|line| print(&format!("{:<14}{line}", "")))?;
    }
    Ok(())
}

/// All names with the first sentence of each, or the full help of one.
fn help(name: Option<&str>) -> Result<String, CliError> {
    let entries = help_entries();
    let Some(name) = name else {
        let mut lines = Vec::new();
        for group in HelpGroup::ALL {
            lines.push(format!("{}:", group.names()[1]));
            for entry in entries.iter().filter(|entry| entry.group == group) {
                lines.extend(beside(&entry.name, &sentence(&entry.description)));
            }
            lines.push(String::new());
        }
        lines.push("`throng scenario help NAME` explains one of them, with an example.".to_owned());
        return Ok(lines.join("\n"));
    };
    let named: Vec<&HelpEntry> = entries
        .iter()
        .filter(|entry| entry.name.eq_ignore_ascii_case(name))
        .collect();
    if named.is_empty() {
        let names = entries.iter().map(|entry| entry.name.as_str());
        let hint = closest(name, names)
            .map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
        return Err(CliError::new(format!(
            "scenarios have no `{}`{hint} (`throng scenario help` lists all names)",
            escaped(name)
        )));
    }
    let texts: Vec<String> = named.into_iter().map(explain).collect();
    Ok(texts.join("\n\n"))
}

/// The full help of an entry, in 80 columns.
fn explain(entry: &HelpEntry) -> String {
    let mut lines = vec![format!("{}: {}", entry.name, entry.group.names()[0])];
    lines.extend(
        wrapped(&entry.description, WIDTH + 12)
            .into_iter()
            .map(|line| format!("  {line}")),
    );
    let (required, optional): (Vec<_>, Vec<_>) =
        entry.fields.iter().partition(|field| field.is_required);
    for (title, fields) in [("Required:", required), ("Optional:", optional)] {
        if !fields.is_empty() {
            lines.extend([String::new(), format!("  {title}")]);
        }
        for field in fields {
            let value = match field.name.as_str() {
                "" => field.value.clone(),
                name => format!("{name}: {}", field.value),
            };
            let value = wrapped(&value, WIDTH + 8).into_iter();
            lines.extend(value.map(|line| format!("    {line}")));
            let description = wrapped(&field.description, WIDTH + 6);
            lines.extend(
                description
                    .into_iter()
                    .map(|line| format!("        {line}")),
            );
        }
    }
    lines.extend([String::new(), "  Example:".to_owned()]);
    lines.push(format!("    {}", entry.example));
    lines.join("\n")
}

/// A name with a text next to it, as lines.
fn beside(name: &str, text: &str) -> Vec<String> {
    let (indent, width) = (24, WIDTH - 10);
    let name = format!("  {name}");
    let lines = wrapped(text, width).into_iter().enumerate();
    lines
        .map(|(nth, line)| match nth {
            0 => format!("{name:<indent$}{line}"),
            _ => format!("{:<indent$}{line}", ""),
        })
        .collect()
}

/// The first sentence of a text.
fn sentence(text: &str) -> String {
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    text[..end].to_owned()
}

/// Width of the text next to a name, in characters.
const WIDTH: usize = 66;

/// The text of a scenario, which must be valid.
fn text_of(source: &str) -> Result<String, ScenarioError> {
    scenario::load(source).map(|loaded| loaded.text)
}

/// The first sentence of the comment at the top.
fn first_sentence(text: &str) -> String {
    let comment: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//"))
        .map(str::trim)
        .collect();
    sentence(&comment.join(" "))
}

/// Splits a text into lines of at most this many characters; a longer word gets a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_scenario::crowd::ATTRIBUTE_NAMES;
    use throng_scenario::{Behaviours, LoadedScenario};

    #[test]
    fn every_built_in_scenario_starts_with_a_sentence() {
        for built_in in BUILT_IN {
            let description = first_sentence(built_in.text);
            assert!(
                description.ends_with('.') && description.len() > 20,
                "{}: {description}",
                built_in.name
            );
        }
    }

    #[test]
    fn template_scenario_is_valid() {
        let loaded = LoadedScenario::from_text("template.ron", TEMPLATE).unwrap();
        loaded
            .check(ATTRIBUTE_NAMES, &Behaviours::default())
            .unwrap();
        loaded.check_maps().unwrap();
    }

    #[test]
    fn help_fits_the_width_and_typos_get_a_hint() {
        let list = help(None).unwrap();
        for entry in help_entries() {
            assert!(
                list.contains(&format!("  {} ", entry.name)),
                "{}",
                entry.name
            );
            let text = help(Some(&entry.name)).unwrap();
            assert!(
                text.contains(&entry.example) && text.contains("Example:"),
                "{text}"
            );
            let described = text.lines().filter(|line| !line.contains(&entry.example));
            for line in described.chain(list.lines()) {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
        let error = format!("{:?}", help(Some("Chas")).unwrap_err());
        assert!(error.contains("did you mean `Chase`?"), "{error}");
        let both = help(Some("gather")).unwrap();
        assert!(both.contains("Gather: action") && both.contains("Gather: behaviour"));
    }

    #[test]
    fn lines_are_filled_up_to_the_width() {
        assert_eq!(wrapped("ab cd efghijk l", 5), ["ab cd", "efghijk", "l"]);
    }
}
