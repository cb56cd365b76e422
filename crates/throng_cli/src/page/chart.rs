//! Plots: the drawing stretches with the page, while the labels of its axes are text next to it.
//!
//! A drawing is always 1,000 wide and 100 high in its own units; lines keep their width when it is stretched.

use std::fmt::Write as _;

use super::scale::Axis;

/// The width of a drawing in its own units.
const WIDTH: f64 = 1_000.0;

/// The height of a drawing.
const HEIGHT: f64 = 100.0;

/// A plot: the drawing, its axes, and its texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plot {
    /// The title.
    pub title: String,
    /// The unit of its vertical axis.
    pub unit: String,
    /// The explanation, as markup.
    pub caption: String,
    pub height_px: u32,
    /// Axis marks: position and label.
    pub x_marks: Vec<(f64, String)>,
    pub y_marks: Vec<(f64, String)>,
    /// The unit of the horizontal axis.
    pub x_unit: String,
    /// The drawing.
    pub svg: String,
    /// The legend: a class, a name, and a note.
    pub legend: Vec<(String, String, String)>,
}

impl Plot {
    /// The plot as markup.
    pub fn markup(&self) -> String {
        let mut grid = String::new();
        let mut words = String::new();
        for (place, word) in &self.y_marks {
            // Writing to a string does not fail.
            let _ = write!(grid, "M0 {}H{WIDTH}", digits((1.0 - place) * HEIGHT));
            let _ = write!(
                words,
                "<span style=\"bottom:{}%\">{word}</span>",
                digits(place * 100.0)
            );
        }
        let mut below = String::new();
        let many = self.x_marks.len() > 5;
        for (nth, (place, word)) in self.x_marks.iter().enumerate() {
            let _ = write!(grid, "M{} 0V{HEIGHT}", digits(place * WIDTH));
            let class = if many && nth % 2 == 1 {
                " class=\"odd\""
            } else {
                ""
            };
            let _ = write!(
                below,
                "<span{class} style=\"left:{}%\">{word}</span>",
                digits(place * 100.0)
            );
        }
        let legend: String = self
            .legend
            .iter()
            .map(|(class, name, more)| {
                format!("<li><i class=\"{class}\"></i>{name} <small>{more}</small></li>")
            })
            .collect();
        let legend = if legend.is_empty() {
            legend
        } else {
            format!("<ul class=\"legend\">{legend}</ul>")
        };
        format!(
            "<figure class=\"plot\"><figcaption><b>{}</b> <span class=\"unit\">{}</span> <span class=\"says\">{}</span></figcaption>\n\
             <div class=\"frame\" style=\"--height:{}px\"><div class=\"up\">{words}</div>\
             <div class=\"canvas\"><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">\
             <path class=\"grid\" d=\"{grid}\"/>{}</svg></div>\
             <div class=\"along\">{below}<em>{}</em></div></div>{legend}</figure>\n",
            self.title, self.unit, self.caption, self.height_px, self.title, self.svg, self.x_unit,
        )
    }
}

/// The marks of an axis with their labels.
pub(crate) fn marks(axis: &Axis, word: impl Fn(f64) -> String) -> Vec<(f64, String)> {
    let mark = |value: &f64| (axis.position(*value), word(*value));
    axis.marks.iter().map(mark).collect()
}

/// A number with at most two decimals, enough for a drawing.
pub(crate) fn digits(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Positions of buckets along an axis, from 0 to 1; the last bucket may be narrower than the others.
pub(crate) struct BucketLayout {
    pub count: usize,
    /// The length of the axis, in buckets of full width.
    pub length: f64,
}

impl BucketLayout {
    /// The start of a bucket.
    pub fn start(&self, nth: usize) -> f64 {
        (nth as f64 / self.length).min(1.0)
    }

    fn middle(&self, nth: usize) -> f64 {
        f64::midpoint(self.start(nth), self.start(nth + 1))
    }

    /// A path through values, from left to right; values are shares of the height.
    pub fn line(&self, values: &[f64]) -> String {
        let mut path = String::new();
        for (nth, (x, y)) in self.points(values).into_iter().enumerate() {
            let letter = if nth == 0 { 'M' } else { 'L' };
            // Writing to a string does not fail.
            let _ = write!(path, "{letter}{} {}", digits(x), digits(y));
        }
        path
    }

    /// The area between two lines.
    pub fn area(&self, lower: &[f64], upper: &[f64]) -> String {
        let mut path = self.line(upper);
        for (x, y) in self.points(lower).into_iter().rev() {
            let _ = write!(path, "L{} {}", digits(x), digits(y));
        }
        path.push('Z');
        path
    }

    /// The middle of each bucket, and both ends of the axis at the height of the nearest bucket.
    fn points(&self, values: &[f64]) -> Vec<(f64, f64)> {
        let values = &values[..values.len().min(self.count)];
        let height = |value: f64| (1.0 - value.clamp(0.0, 1.0)) * HEIGHT;
        let (Some(first), Some(last)) = (values.first(), values.last()) else {
            return Vec::new();
        };
        let middles = values.iter().enumerate();
        let middles = middles.map(|(nth, value)| (self.middle(nth) * WIDTH, height(*value)));
        std::iter::once((0.0, height(*first)))
            .chain(middles)
            .chain([(WIDTH, height(*last))])
            .collect()
    }
}

/// Stacked areas: each has a class, and its values as shares of the height.
pub(crate) fn stacked(places: &BucketLayout, series: &[(String, Vec<f64>)]) -> String {
    let mut lower = vec![0.0; places.count];
    let mut svg = String::new();
    for (class, values) in series {
        let upper: Vec<f64> = lower
            .iter()
            .zip(values)
            .map(|(low, value)| low + value)
            .collect();
        if values.iter().any(|value| *value > 0.0) {
            let _ = write!(
                svg,
                "<path class=\"area {class}\" d=\"{}\"/>",
                places.area(&lower, &upper)
            );
        }
        lower = upper;
    }
    svg
}

/// A line with a class.
pub(crate) fn line(places: &BucketLayout, class: &str, values: &[f64]) -> String {
    format!(
        "<path class=\"line {class}\" d=\"{}\"/>",
        places.line(values)
    )
}

/// Vertical lines at these positions.
pub(crate) fn vertical_lines(class: &str, places: impl IntoIterator<Item = f64>) -> String {
    let mut path = String::new();
    for place in places {
        let _ = write!(path, "M{} 0V{HEIGHT}", digits(place * WIDTH));
    }
    if path.is_empty() {
        return path;
    }
    format!("<path class=\"upright {class}\" d=\"{path}\"/>")
}

/// A vertical band.
pub(crate) fn band(class: &str, from: f64, to: f64) -> String {
    let (x, width) = (digits(from * WIDTH), digits((to - from).max(0.0) * WIDTH));
    format!("<rect class=\"{class}\" x=\"{x}\" y=\"0\" width=\"{width}\" height=\"{HEIGHT}\"/>")
}

/// Bars side by side, each with a start, an end and a height.
pub(crate) fn bars(class: &str, all: impl IntoIterator<Item = (f64, f64, f64)>) -> String {
    let mut path = String::new();
    for (from, to, height) in all.into_iter().filter(|bar| bar.2 > 0.0) {
        // A value above zero stays visible, however small it is.
        let top = HEIGHT - (height.clamp(0.0, 1.0) * HEIGHT).max(0.8);
        let (from, to) = (digits(from * WIDTH), digits(to * WIDTH));
        let _ = write!(path, "M{from} {HEIGHT}V{}H{to}V{HEIGHT}Z", digits(top));
    }
    format!("<path class=\"{class}\" d=\"{path}\"/>")
}

/// A bar in a table: its share of the width, and a mark at the limit, if there is one.
pub(crate) fn cell_bar(class: &str, share: f64, limit: Option<f64>) -> String {
    let mark = limit.map_or_else(String::new, |at| {
        format!(
            "<u style=\"left:{}%\"></u>",
            digits(at.clamp(0.0, 1.0) * 100.0)
        )
    });
    let width = digits(share.clamp(0.0, 1.0) * 100.0);
    format!("<span class=\"bar\"><b class=\"{class}\" style=\"width:{width}%\"></b>{mark}</span>")
}

#[cfg(test)]
mod tests {
    use super::super::html::is_well_formed;
    use super::*;

    #[test]
    fn areas_touch_and_lines_reach_both_ends() {
        let places = BucketLayout {
            count: 2,
            length: 2.0,
        };
        assert_eq!(places.line(&[0.5, 1.0]), "M0 50L250 50L750 0L1000 0");
        let svg = stacked(
            &places,
            &[("a".into(), vec![0.5, 0.5]), ("b".into(), vec![0.25, 0.5])],
        );
        let paths: Vec<&str> = svg
            .split("d=\"")
            .skip(1)
            .map(|part| part.split('"').next().unwrap())
            .collect();
        assert_eq!(
            paths[0],
            "M0 50L250 50L750 50L1000 50L1000 100L750 100L250 100L0 100Z"
        );
        assert!(
            paths[1].ends_with("L1000 50L750 50L250 50L0 50Z"),
            "{}",
            paths[1]
        );
        // The last bucket is partly filled, and narrower accordingly.
        let places = BucketLayout {
            count: 2,
            length: 1.5,
        };
        assert_eq!(
            places.line(&[0.0, 0.0]),
            "M0 100L333.33 100L833.33 100L1000 100"
        );
        assert_eq!(places.line(&[]), "");
    }

    #[test]
    fn plot_is_well_formed() {
        let plot = Plot {
            title: "a".to_owned(),
            svg: bars("b", [(0.0, 0.5, 0.001), (0.5, 1.0, 2.0)])
                + &vertical_lines("c", [0.5])
                + &band("d", 0.2, 0.1),
            x_marks: marks(&Axis::up_to(5.0, 6), digits),
            y_marks: vec![(0.5, "1".to_owned())],
            legend: vec![("e".to_owned(), "f".to_owned(), "g".to_owned())],
            ..Plot::default()
        };
        let markup = plot.markup() + &cell_bar("h", 3.0, Some(0.5));
        assert_eq!(is_well_formed(&markup), Ok(()));
        assert!(
            markup.contains("V99.2H500V100Z") && markup.contains("width:100%"),
            "{markup}"
        );
    }
}
