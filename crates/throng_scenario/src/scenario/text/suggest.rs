//! "Did you mean": the known name that is closest to an unknown one.
//!
//! The distance is that of Damerau and Levenshtein with each pair swapped at most once (optimal string alignment):
//! Damerau, "A technique for computer detection and correction of spelling errors", CACM 7(3), 1964.

/// Returns the known name closest to `found`, if at most a third of its letters (rounded up) differ. Case is ignored; of equally
/// close names, the first is returned. If none is close, returns the shortest name that begins with `found` and an underscore:
/// `speed_m_s` for `speed`. O(names × length²); names of a very different length are skipped.
pub fn closest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found: Vec<char> = found
        .chars()
        .take(LENGTH_MAX + 1)
        .flat_map(char::to_lowercase)
        .collect();
    if found.is_empty() || found.len() > LENGTH_MAX {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    let mut longer: Option<&str> = None;
    for name in known {
        let letters: Vec<char> = name
            .chars()
            .take(LENGTH_MAX + 1)
            .flat_map(char::to_lowercase)
            .collect();
        if found.len() >= PREFIX_MIN
            && letters.starts_with(&found)
            && letters.get(found.len()) == Some(&'_')
            && longer.is_none_or(|other| name.len() < other.len())
        {
            longer = Some(name);
        }
        let limit = letters.len().div_ceil(3);
        if letters.len() > LENGTH_MAX || letters.len().abs_diff(found.len()) > limit {
            continue;
        }
        let distance = distance(&found, &letters);
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name).or(longer)
}

/// Minimum length of a beginning that is completed.
const PREFIX_MIN: usize = 3;

/// Maximum length of names that are suggested or corrected.
const LENGTH_MAX: usize = 64;

/// Lists names as "`a`, `b` or `c`", the first twenty of them.
#[must_use]
pub fn list_names<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN_MAX: usize = 20;
    let quoted: Vec<String> = names
        .iter()
        .take(SHOWN_MAX)
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    match quoted.as_slice() {
        [] => "none".to_owned(),
        [only] => only.clone(),
        _ if names.len() > SHOWN_MAX => {
            format!("{} and {} more", quoted.join(", "), names.len() - SHOWN_MAX)
        }
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// The number of insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let mut least = (last[j] + usize::from(a[i] != b[j]))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(a: &str, b: &str) -> usize {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        distance(&letters(a), &letters(b))
    }

    #[test]
    fn distance_counts_single_corrections() {
        assert_eq!(steps("", "abc"), 3);
        assert_eq!(steps("abc", "abc"), 0);
        assert_eq!(steps("abc", "acb"), 1);
        assert_eq!(steps("ca", "abc"), 3);
        assert_eq!(steps("kitten", "sitting"), 3);
        assert_eq!(steps("viewcap", "view_cap"), 1);
    }

    #[test]
    fn typo_gets_a_suggestion_and_another_word_does_not() {
        let known = ["view_cap", "npc_cap", "name"];
        assert_eq!(closest("view_capp", known), Some("view_cap"));
        assert_eq!(closest("nmae", known), Some("name"));
        assert_eq!(closest("View_Cap", known), Some("view_cap"));
        assert_eq!(closest("colour", known), None);
        assert_eq!(closest("", known), None);
        let fields = ["speed_m_s", "messages_per_s", "attributes_per_s", "speed"];
        assert_eq!(closest("speed", fields), Some("speed"));
        assert_eq!(
            closest("speed", fields[..3].iter().copied()),
            closest("speed_m_s", fields)
        );
        assert_eq!(closest("attributes", fields), Some("attributes_per_s"));
        assert_eq!(closest("messag", fields), None, "half a word");
        assert_eq!(closest("sp", fields), None);
        assert_eq!(closest(&"x".repeat(1 << 20), known), None);
    }

    #[test]
    fn names_are_listed_with_or() {
        assert_eq!(list_names::<&str>(&[]), "none");
        assert_eq!(list_names(&["a"]), "`a`");
        assert_eq!(list_names(&["a", "b", "c"]), "`a`, `b` or `c`");
        assert!(list_names(&["x"; 30]).ends_with("`x` and 10 more"));
    }
}
