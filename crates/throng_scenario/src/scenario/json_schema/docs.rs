//! The doc comments of types, fields and variants, read from their sources.

use std::collections::BTreeMap;

/// The docs of types and their parts.
#[derive(Debug, Default)]
pub(super) struct Docs {
    types: BTreeMap<String, String>,
    /// By owner and name. The owner of a field is its struct or `Enum::Variant`, that of a variant its enum.
    members: BTreeMap<(String, String), String>,
}

impl Docs {
    /// Parses sources formatted by rustfmt: a field or variant per line, with its comment above it.
    pub fn parse(sources: &[&str]) -> Self {
        let mut docs = Self::default();
        for source in sources {
            docs.read(source);
        }
        docs
    }

    /// The docs of a type.
    pub fn type_doc(&self, name: &str) -> Option<&str> {
        self.types.get(name).map(String::as_str)
    }

    /// The docs of a field or a variant.
    pub fn member_doc(&self, owner: &str, name: &str) -> Option<&str> {
        let part = (owner.to_owned(), name.to_owned());
        self.members.get(&part).map(String::as_str)
    }

    fn read(&mut self, source: &str) {
        let mut comments: Vec<&str> = Vec::new();
        let mut renamed: Option<&str> = None;
        // The type and the variant whose members follow.
        let (mut owner, mut variant): (Option<String>, Option<String>) = (None, None);
        for line in source.lines() {
            let indent = line.len() - line.trim_start().len();
            let line = line.trim();
            if let Some(comment) = line.strip_prefix("///") {
                comments.push(comment.trim());
                continue;
            }
            if line.starts_with("#[") {
                let name = line.split_once("rename = \"").map(|(_, rest)| rest);
                renamed = name.and_then(|rest| rest.split('"').next()).or(renamed);
                continue;
            }
            let text = plain_text(&comments);
            comments.clear();
            let declared = line
                .split_once("pub(super) ")
                .map_or(line, |(_, rest)| rest);
            let declared = declared.strip_prefix("pub ").unwrap_or(declared);
            let is_public = line.starts_with("pub");
            let declared = declared
                .strip_prefix("struct ")
                .or_else(|| declared.strip_prefix("enum "))
                .filter(|_| is_public);
            if let Some(rest) = declared.filter(|_| indent == 0) {
                let name = renamed.take().unwrap_or_else(|| first_word(rest));
                self.types.insert(name.to_owned(), text);
                owner = line.ends_with('{').then(|| name.to_owned());
                variant = None;
                continue;
            }
            renamed = None;
            let Some(of_type) = &owner else { continue };
            let name = first_word(line.strip_prefix("pub ").unwrap_or(line));
            match (indent, &variant) {
                (0, _) => owner = None,
                _ if name.is_empty() => {}
                (4, _) => {
                    self.members
                        .insert((of_type.clone(), name.to_owned()), text);
                    variant = line.ends_with('{').then(|| format!("{of_type}::{name}"));
                }
                (8, Some(variant)) => {
                    self.members
                        .insert((variant.clone(), name.to_owned()), text);
                }
                _ => {}
            }
        }
    }
}

fn first_word(text: &str) -> &str {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.split(|letter| !is_part(letter))
        .next()
        .unwrap_or_default()
}

/// Joins the lines of a comment, and removes the targets of links.
fn plain_text(lines: &[&str]) -> String {
    let mut rest = lines.join(" ");
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once("](") {
        let (before, after) = match (before.rsplit_once('['), after.split_once(')')) {
            (Some((before, name)), Some((_, after))) => (format!("{before}{name}"), after),
            _ => (before.to_owned(), after),
        };
        text += &before;
        rest = after.to_owned();
    }
    text + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_variants_are_found_with_their_comments() {
        let source = "/// A thing.\n#[serde(rename = \"Thing\")]\npub struct Other {\n    /// Its [size](throng::Size),\n    /// in metres.\n    pub size_m: f32,\n}\n\npub enum Way {\n    /// Up.\n    Up,\n    /// Far.\n    Far {\n        /// How far.\n        #[serde(default)]\n        by_m: f32,\n    },\n}\n";
        let docs = Docs::parse(&[source]);
        assert_eq!(docs.type_doc("Thing"), Some("A thing."));
        assert_eq!(
            docs.member_doc("Thing", "size_m"),
            Some("Its size, in metres.")
        );
        assert_eq!(docs.member_doc("Way", "Up"), Some("Up."));
        assert_eq!(docs.member_doc("Way", "Far"), Some("Far."));
        assert_eq!(docs.member_doc("Way::Far", "by_m"), Some("How far."));
        assert_eq!(docs.member_doc("Way", "by_m"), None);
    }
}
