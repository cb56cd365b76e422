//! The tokens of operators.

use thiserror::Error;

/// Minimum and maximum length of a token.
const TOKEN_CHARS: std::ops::RangeInclusive<usize> = 16..=128;

/// Who may use the administration API, and with which token: `alice 3f9c…`, one operator per line. Empty lines and lines that begin
/// with `#` are ignored.
///
/// ```
/// use throng_inspect::AdminTokens;
///
/// let tokens: AdminTokens = "alice 0123456789abcdef\nbob fedcba9876543210".parse()?;
/// # Ok::<(), throng_inspect::InvalidAdminTokens>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AdminTokens(Vec<(String, String)>);

/// The text is not a list of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidAdminTokens {
    /// A line is not a name and a token.
    #[error(
        "line {line}: expected a name, a space and a token of 16 to 128 letters and digits, such as `alice 3f9c…`"
    )]
    Line {
        /// Its number, from 1 on.
        line: usize,
    },
    /// Two lines have the same name or the same token.
    #[error("line {line}: the name or the token stands in an earlier line, too")]
    Duplicate {
        /// The number of the second line.
        line: usize,
    },
    /// There is no token.
    #[error("expected at least one line with a name and a token")]
    Empty,
}

impl std::fmt::Debug for AdminTokens {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        to.debug_list().entries(names).finish()
    }
}

impl std::str::FromStr for AdminTokens {
    type Err = InvalidAdminTokens;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (nth, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = nth + 1;
            let is_token = |token: &str| {
                let is_plain = token.bytes().all(|byte| byte.is_ascii_alphanumeric());
                is_plain && TOKEN_CHARS.contains(&token.len())
            };
            let pair = line.split_once(char::is_whitespace);
            let pair = pair.map(|(name, token)| (name.to_owned(), token.trim().to_owned()));
            let pair = pair.filter(|(_, token)| is_token(token));
            let (name, token) = pair.ok_or(InvalidAdminTokens::Line { line: number })?;
            if all
                .iter()
                .any(|(one, other)| *one == name || *other == token)
            {
                return Err(InvalidAdminTokens::Duplicate { line: number });
            }
            all.push((name, token));
        }
        if all.is_empty() {
            return Err(InvalidAdminTokens::Empty);
        }
        Ok(Self(all))
    }
}

impl AdminTokens {
    /// The operator with this token. The time depends on the number of tokens and on lengths only.
    pub(crate) fn operator(&self, given: &str) -> Option<&str> {
        let mut found = None;
        for (name, token) in &self.0 {
            if crate::routes::constant_time_eq(given, token) {
                found = Some(name.as_str());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0123456789abcdef";

    #[test]
    fn tokens_name_their_operators() {
        let text = format!("# operators\n\nalice {ONE}\n bob \t fedcba9876543210 \n");
        let tokens: AdminTokens = text.parse().unwrap();
        assert_eq!(tokens.operator(ONE), Some("alice"));
        assert_eq!(tokens.operator("fedcba9876543210"), Some("bob"));
        for wrong in ["", "0123456789abcde", "0123456789abcdeg", "alice"] {
            assert_eq!(tokens.operator(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{tokens:?}"), r#"["alice", "bob"]"#);
    }

    #[test]
    fn invalid_lists_name_the_line() {
        let parse = |text: &str| text.parse::<AdminTokens>();
        assert_eq!(parse("# none\n"), Err(InvalidAdminTokens::Empty));
        for line in [
            "alice",
            "alice short",
            "alice 0123456789abcde!",
            "alice 0123456789abcdef more",
        ] {
            let text = format!("bob fedcba9876543210\n{line}");
            assert_eq!(
                parse(&text),
                Err(InvalidAdminTokens::Line { line: 2 }),
                "{line}"
            );
        }
        for (name, token) in [("alice", "fedcba9876543210"), ("bob", ONE)] {
            let text = format!("alice {ONE}\n{name} {token}");
            assert_eq!(parse(&text), Err(InvalidAdminTokens::Duplicate { line: 2 }));
        }
    }
}
