//! `throng scenario`: the built-in scenarios, listed and copied, and a template.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use super::attribute_code::{AttributeLanguage, attribute_code};
use super::{CliError, CliStatus, print};
use throng_scenario::{self as scenario, BUILT_IN, ScenarioError, TEMPLATE};

/// Arguments of `throng scenario`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  throng scenario list\n  throng scenario new my.ron")]
pub(super) struct Scenarios {
    #[command(subcommand)]
    action: ScenarioAction,
}

#[derive(Debug, clap::Subcommand)]
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
    /// Lists, prints or writes.
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
        let said = first_sentence(built_in.text);
        let mut lines = wrapped(&said, WIDTH).into_iter();
        let first = lines.next().unwrap_or_default();
        print(&format!("{:<14}{first}", built_in.name))?;
        lines.try_for_each(|line| print(&format!("{:<14}{line}", "")))?;
    }
    Ok(())
}

/// Characters of a line beside the name.
const WIDTH: usize = 66;

/// The text of a scenario that reads as one.
fn text_of(source: &str) -> Result<String, ScenarioError> {
    scenario::load(source).map(|loaded| loaded.text)
}

/// The first sentence of the comment on top.
fn first_sentence(text: &str) -> String {
    let comment: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//"))
        .map(str::trim)
        .collect();
    let comment = comment.join(" ");
    let end = comment.find(". ").map_or(comment.len(), |end| end + 1);
    comment[..end].to_owned()
}

/// The words of a text in lines of at most so many characters; a longer word has a line of its own.
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
            let said = first_sentence(built_in.text);
            assert!(
                said.ends_with('.') && said.len() > 20,
                "{}: {said}",
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
    fn lines_are_filled_up_to_the_width() {
        assert_eq!(wrapped("ab cd efghijk l", 5), ["ab cd", "efghijk", "l"]);
    }
}
