//! The table of contents of a page: links to its sections, in their order.

/// The links; empty for a page with a single section. `body` is markup whose sections were written by [`section`](super::html::section).
pub(crate) fn contents(body: &str) -> String {
    let links: Vec<String> = sections(body)
        .map(|(id, heading)| format!("<li><a href=\"#{id}\">{heading}</a></li>"))
        .collect();
    if links.len() < 2 {
        return String::new();
    }
    format!(
        "<nav class=\"contents\" aria-label=\"Contents\"><ul>{}</ul></nav>\n",
        links.concat()
    )
}

/// The id and the heading of each section.
fn sections(body: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = body.split("<section id=\"").skip(1);
    parts.filter_map(|part| {
        let (id, rest) = part.split_once("\"><h2>")?;
        let (heading, _) = rest.split_once("</h2>")?;
        Some((id, heading))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::html::{is_well_formed, section, text};

    #[test]
    fn contents_link_to_every_section_in_order() {
        let body = |count: usize| -> String {
            let all = (0..count).map(|nth| {
                section(
                    &format!("part-{nth}"),
                    &text(&format!("<{nth}>")),
                    "about",
                    "<p>x</p>",
                )
            });
            all.collect()
        };
        let found = contents(&body(3));
        assert_eq!(is_well_formed(&found), Ok(()));
        let places = [0, 1, 2].map(|nth| {
            let link = format!("<a href=\"#part-{nth}\">&lt;{nth}&gt;</a>");
            found.find(&link).unwrap()
        });
        assert!(places.is_sorted(), "{found}");
        assert_eq!(contents(&body(1)), "");
    }
}
