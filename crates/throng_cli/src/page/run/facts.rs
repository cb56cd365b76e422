//! The facts of a run, the command to repeat it, and all figures of `--json`.

use serde_json::Value;

use super::PageRun;
use crate::page::html::{self, text};

/// Maximum depth of a figure in the report; deeper ones are lists.
const DEPTH_MAX: usize = 5;

/// The section with the facts and all figures.
pub(super) fn section(run: &PageRun) -> String {
    let mut rows = Vec::new();
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            rows.push(format!("<dt>{name}</dt><dd>{value}</dd>"));
        }
    };
    let command = run
        .command
        .iter()
        .map(|word| quoted(word))
        .collect::<Vec<_>>()
        .join(" ");
    if !command.is_empty() {
        fact(
            "again",
            format!("<code class=\"command\">{}</code>", text(&command)),
        );
    }
    fact("scenario", text(run.text("scenario")));
    fact(
        "seed",
        run.report
            .get("seed")
            .map(Value::to_string)
            .unwrap_or_default(),
    );
    if let Some(parameters) = run.report["parameters"].as_object() {
        let all = parameters
            .iter()
            .map(|(name, value)| format!("{name} = {}", value.as_str().unwrap_or_default()));
        fact("parameters", text(&all.collect::<Vec<_>>().join(", ")));
    }
    fact(
        "state hash",
        format!("<code>{}</code>", text(run.text("state_hash"))),
    );
    fact("threads", run.number("threads").to_string());
    if let Some(machine) = &run.machine {
        let build = if machine.is_optimised {
            ""
        } else {
            ", not optimised: its times are meaningless"
        };
        fact("build", format!("throng {}{build}", text(&machine.throng)));
        fact(
            "processor",
            format!("{}, {} cores", text(&machine.cpu), machine.cores),
        );
        fact("system", text(&machine.os));
        fact("begun", text(&machine.date));
    }
    let mut figures = Vec::new();
    flatten(&run.report, "", DEPTH_MAX, &mut figures);
    let all: String = figures
        .iter()
        .map(|(name, value)| format!("<tr><td>{}</td><td>{}</td></tr>\n", text(name), text(value)))
        .collect();
    let body = format!(
        "<dl class=\"facts\">{}</dl><details><summary>All {} figures, as <code>--json</code> prints them</summary>\
         <div class=\"wide\"><table class=\"all\"><tbody>{all}</tbody></table></div></details>",
        rows.concat(),
        figures.len(),
    );
    let about = "The same command with the same build repeats this run tick by tick, on any machine and with any number of threads; only its times differ. Exceptions are runs in real time, with a store or from the standard input.";
    html::section("facts", "Repeat this run", about, &body)
}

/// A word of a command line, quoted for a shell if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// All numbers of a report with their paths; list items are named by their `name` field.
pub(crate) fn flatten(value: &Value, name: &str, depth: usize, found: &mut Vec<(String, String)>) {
    let under = |step: &str| match name {
        "" => step.to_owned(),
        _ => format!("{name}.{step}"),
    };
    match value {
        Value::Number(number) => found.push((name.to_owned(), number.to_string())),
        Value::Object(fields) if depth > 0 => {
            for (step, value) in fields {
                flatten(value, &under(step), depth - 1, found);
            }
        }
        Value::Array(items) if depth > 0 => {
            for item in items {
                if let Some(step) = item["name"].as_str() {
                    flatten(item, &under(step), depth - 1, found);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(
            ["--seed", "my file", "it's", ""].map(quoted),
            ["--seed", "'my file'", "'it'\\''s'", "''"]
        );
    }
}
