//! The HTML document, and escaping of texts.

use crate::escape::escaped;

/// Escapes a text: no markup and no control characters.
pub(crate) fn text(raw: &str) -> String {
    let mut shown = String::with_capacity(raw.len());
    for letter in escaped(raw).chars() {
        match letter {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            // Characters that XML documents may not contain.
            '\u{fffe}' | '\u{ffff}' => shown.push('\u{fffd}'),
            letter => shown.push(letter),
        }
    }
    shown
}

/// A text, cut to this many characters and escaped.
pub(crate) fn short(raw: &str, most: usize) -> String {
    if raw.chars().count() <= most {
        return text(raw);
    }
    let cut: String = raw.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", text(cut.trim_end()))
}

/// A page. `title` is plain text, `body` is markup.
pub(crate) fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{}</title>\n<style>\n{}</style></head>\n<body>\n{body}\n{}</body></html>\n",
        text(title),
        include_str!("style.css"),
        include_str!("cross.html"),
    )
}

/// A section with a heading and a short explanation.
pub(crate) fn section(id: &str, heading: &str, about: &str, body: &str) -> String {
    format!(
        "<section id=\"{id}\"><h2>{heading}</h2>\n<p class=\"about\">{about}</p>\n{body}</section>\n"
    )
}

/// A table with a header row; all cells are markup. The first column is text, the others are numbers.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let heads: String = heads
        .iter()
        .map(|head| format!("<th>{head}</th>"))
        .collect();
    let row = |cells: &Vec<String>| {
        let cells: String = cells
            .iter()
            .map(|cell| format!("<td>{cell}</td>"))
            .collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"wide\"><table><thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
    )
}

/// Whether a text is well-formed XML, as far as pages need it: tags are closed in order, attributes are quoted, and text contains no
/// unescaped `&` or `<`.
#[cfg(test)]
pub(crate) fn is_well_formed(page: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start])?;
        let end = rest[start..].find('>').ok_or("a tag without an end")? + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if tag.starts_with('!') {
            continue;
        }
        let words = tag.trim_end_matches('/');
        let name = words.split([' ', '\n']).next().unwrap_or_default();
        if let Some(closed) = name.strip_prefix('/') {
            let opened = open.pop();
            if opened != Some(closed) {
                return Err(format!("</{closed}> closes {opened:?}"));
            }
            continue;
        }
        if !words.matches('"').count().is_multiple_of(2) {
            return Err(format!("attributes of <{tag}>"));
        }
        check_text(words)?;
        if !tag.ends_with('/') {
            open.push(name);
        }
        // The content of these elements is no markup.
        if (name == "style" || name == "script") && !tag.ends_with('/') {
            let end = rest.find("</").ok_or("an element without an end")?;
            rest = &rest[end..];
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!("unclosed tags: {open:?}"))
    }
}

#[cfg(test)]
fn check_text(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('&') {
        let entity = text[at..].find(';').map(|end| &text[at + 1..at + end]);
        if !entity.is_some_and(|name| matches!(name, "amp" | "lt" | "gt" | "quot" | "#39")) {
            return Err(format!(
                "unescaped & in {:?}",
                &text[at..text.len().min(at + 20)]
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let hostile = "</title><script>alert('1')</script>\u{202e}\u{1b}[2J&\"\u{ffff}";
        let shown = text(hostile);
        for bad in ['<', '>', '"', '\'', '\u{1b}', '\u{202e}', '\u{ffff}'] {
            assert!(!shown.contains(bad), "{bad:?} in {shown}");
        }
        assert!(shown.contains("&lt;script&gt;") && shown.contains("\\u{202e}"));
        let page = document(
            hostile,
            &section("a", "b", "c", &table(&["x"], &[vec![shown]])),
        );
        assert_eq!(is_well_formed(&page), Ok(()));
        assert_eq!(short("abcdef", 4), "abc…");
    }

    #[test]
    fn malformed_markup_is_found() {
        for bad in [
            "<p>a & b</p>",
            "<p><b></p></b>",
            "<p>",
            "<p class=\"a>x</p>",
            "<a b=\"&x\"/>",
        ] {
            assert!(is_well_formed(bad).is_err(), "{bad}");
        }
        assert_eq!(is_well_formed("<p a=\"b\">&lt;<br/></p>"), Ok(()));
    }
}
