//! Maps of a scene: a heat map of the crowd, and the tracks of some objects.

use std::fmt::Write as _;

use super::chart::digits;
use super::html::text;
use super::numbers::{count, figure};
use throng_scenario::record::SceneRecord;

/// Number of shades of the heat map, from the palest.
const SHADES: usize = 7;

/// Number of shades of walls.
const WALL_SHADES: u32 = 2;

/// Number of track colours, which are reused in turn.
const TRACK_COLORS: usize = 6;

/// A run of squares: start, end, and value.
type SquareRun = (usize, usize, u32);

/// The figures of a scene: a heat map, and next to it the tracks.
pub(super) fn figures(ground: &SceneRecord, nth: usize) -> String {
    // The walls are written once, and referenced the second time.
    let walls = format!("<g id=\"walls-{nth}\">{}</g>", walls(ground));
    let walls_again = format!("<use href=\"#walls-{nth}\"/>");
    let (heat, legend) = heat(ground);
    let cell = ground.width_m / ground.columns as f32;
    let name = text(&ground.scene);
    let size = format!(
        "{} m × {} m",
        figure(f64::from(ground.width_m)),
        figure(f64::from(ground.height_m))
    );
    let samples = count(ground.samples, "sample");
    let heat = format!(
        "<figure class=\"ground\"><figcaption><b>Crowd density</b> <span class=\"says\">{name}, {size}. The mean number of \
         objects in a square of {} m, over {samples}, one about every half second (every tick if ticks are longer). Walls are grey.</span></figcaption>{}{legend}</figure>",
        figure(f64::from(cell).round().max(0.1)),
        drawing(ground, "Crowd density", &format!("{walls}{heat}")),
    );
    let tracks_drawn = tracks(ground);
    let tracks = format!(
        "<figure class=\"ground\"><figcaption><b>Sample paths</b> <span class=\"says\">Paths of {}, evenly chosen by \
         their ids: NPCs, or players if there are no NPCs. A ring is the first position, a disc the \
         last one.</span></figcaption>{}</figure>",
        count(ground.tracks.len() as u64, "walker"),
        drawing(
            ground,
            "Sample paths",
            &format!("{walls_again}{tracks_drawn}")
        ),
    );
    format!("<div class=\"grounds\">{heat}{tracks}</div>\n")
}

/// A drawing in metres, with a scale bar below it.
fn drawing(ground: &SceneRecord, name: &str, inside: &str) -> String {
    let (width, height) = (ground.width_m, ground.height_m);
    let rule = rule_m(width);
    format!(
        "<div class=\"map\"><svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{name}\">\
         <rect class=\"free\" width=\"{width}\" height=\"{height}\"/>{inside}</svg>\
         <div class=\"rule\"><i style=\"width:{}%\"></i><span>{} m</span></div></div>",
        digits(f64::from(rule / width) * 100.0),
        figure(f64::from(rule)),
    )
}

/// The length of the scale bar: a round number of at most a quarter of the width.
fn rule_m(width: f32) -> f32 {
    let power = 10f32.powf((width / 4.0).log10().floor());
    let steps = [5.0, 2.0, 1.0];
    let step = steps.into_iter().find(|step| step * power <= width / 4.0);
    step.unwrap_or(1.0) * power
}

/// Merges equal squares into rectangles, and returns a path for each value from 1 to `values`, measured in squares. A run that is followed
/// by an equal one in the next row is extended downwards.
fn runs(
    columns: usize,
    rows: usize,
    values: u32,
    value: impl Fn(usize, usize) -> u32,
) -> Vec<String> {
    let mut paths = vec![String::new(); values as usize];
    let mut write = |(start, end, this): SquareRun, from: usize, to: usize| {
        let nth = (this as usize).checked_sub(1);
        if let Some(path) = nth.and_then(|nth| paths.get_mut(nth)) {
            let (wide, high) = (end - start, to - from);
            // Writing to a string does not fail.
            let _ = write!(path, "M{start} {from}h{wide}v{high}h-{wide}z");
        }
    };
    // Runs that may continue in the next row, with the row where they began.
    let mut open: Vec<(SquareRun, usize)> = Vec::new();
    for y in 0..=rows {
        let mut row = Vec::new();
        let mut x = 0;
        while x < columns && y < rows {
            let (this, start) = (value(x, y), x);
            while x < columns && value(x, y) == this {
                x += 1;
            }
            row.push((start, x, this));
        }
        let (continued, done): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|(run, _)| row.contains(run));
        done.into_iter().for_each(|(run, from)| write(run, from, y));
        row.retain(|run| !continued.iter().any(|(continued, _)| continued == run));
        open = continued;
        open.extend(row.into_iter().map(|run| (run, y)));
    }
    paths
}

fn layer(class: &str, paths: &[String]) -> String {
    let shown = paths
        .iter()
        .enumerate()
        .filter(|(_, path)| !path.is_empty());
    shown
        .map(|(nth, path)| format!("<path class=\"{class}{}\" d=\"{path}\"/>", nth + 1))
        .collect()
}

/// Scales markup measured in squares to metres.
fn in_squares(ground: &SceneRecord, columns: usize, rows: usize, inside: &str) -> String {
    let wide = f64::from(ground.width_m) / columns.max(1) as f64;
    let high = f64::from(ground.height_m) / rows.max(1) as f64;
    format!("<g transform=\"scale({wide:.4} {high:.4})\">{inside}</g>")
}

fn walls(ground: &SceneRecord) -> String {
    let rows: Vec<&[u8]> = ground.map.iter().map(|row| row.as_bytes()).collect();
    let columns = rows.first().map_or(0, |row| row.len());
    if columns == 0 {
        return String::new();
    }
    let shade = |x: usize, y: usize| {
        let digit = rows[y]
            .get(x)
            .map_or(0, |byte| u32::from(byte.saturating_sub(b'0')));
        (digit * WALL_SHADES).div_ceil(9).min(WALL_SHADES)
    };
    let paths = runs(columns, rows.len(), WALL_SHADES, shade);
    in_squares(ground, columns, rows.len(), &layer("wall w", &paths))
}

/// The crowd by its density, and the legend of the shades.
fn heat(ground: &SceneRecord) -> (String, String) {
    let samples = ground.samples.max(1) as f64;
    let most = ground.heat.iter().copied().max().unwrap_or(0);
    let cells = u64::from(ground.columns) * u64::from(ground.rows);
    if most == 0 || cells != ground.heat.len() as u64 {
        return (
            String::new(),
            "<p class=\"none\">No object was recorded.</p>".to_owned(),
        );
    }
    // Shades are logarithmic, so that both a gate with a hundred objects and a lane with a few are visible.
    let least = most as f64 / 500.0;
    let span = (f64::from(most) / least).ln();
    let shade = |seen: u32| match seen {
        0 => 0,
        seen => {
            let part = (f64::from(seen) / least).ln() / span;
            1 + (part * SHADES as f64).clamp(0.0, SHADES as f64 - 1.0) as u32
        }
    };
    let (columns, rows) = (ground.columns as usize, ground.rows as usize);
    let at = |x: usize, y: usize| {
        ground
            .heat
            .get(y * columns + x)
            .map_or(0, |seen| shade(*seen))
    };
    let paths = runs(columns, rows, SHADES as u32, at);
    let starts = (0..SHADES).map(|nth| least * (span * nth as f64 / SHADES as f64).exp() / samples);
    let swatches: String = starts
        .enumerate()
        .map(|(nth, from)| format!("<li><i class=\"h{}\"></i>{}</li>", nth + 1, figure(from)))
        .collect();
    let legend = format!(
        "<ul class=\"legend shades\">{swatches}<li><small>or more, up to {}</small></li></ul>",
        figure(f64::from(most) / samples)
    );
    let drawn = in_squares(ground, columns, rows, &layer("heat h", &paths));
    (drawn, legend)
}

fn tracks(ground: &SceneRecord) -> String {
    let mut svg = String::new();
    let radius = ground.width_m.max(ground.height_m) / 140.0;
    for (nth, track) in ground.tracks.iter().enumerate() {
        let color = nth % TRACK_COLORS + 1;
        let mut path = String::new();
        for (place, [x, y]) in track.iter().enumerate() {
            let letter = if place == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{x} {y}");
        }
        let (Some([from_x, from_y]), Some([to_x, to_y])) = (track.first(), track.last()) else {
            continue;
        };
        let _ = write!(
            svg,
            "<path class=\"track t{color}\" d=\"{path}\"/>\
             <circle class=\"ring t{color}\" cx=\"{from_x}\" cy=\"{from_y}\" r=\"{radius}\"/>\
             <circle class=\"disc t{color}\" cx=\"{to_x}\" cy=\"{to_y}\" r=\"{radius}\"/>"
        );
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::super::html::is_well_formed;
    use super::*;

    fn ground() -> SceneRecord {
        SceneRecord {
            scene: "a <keep>".to_owned(),
            width_m: 30.0,
            height_m: 20.0,
            samples: 2,
            columns: 3,
            rows: 2,
            heat: vec![0, 2, 2, 1000, 0, 0],
            map: vec!["009".to_owned(), "901".to_owned()],
            tracks: vec![vec![[1.0, 2.0], [3.5, 4.0]], Vec::new()],
        }
    }

    #[test]
    fn scene_is_drawn_in_metres_and_its_name_is_escaped() {
        let markup = figures(&ground(), 0);
        assert_eq!(is_well_formed(&markup), Ok(()));
        assert!(markup.contains("a &lt;keep&gt;, 30 m × 20 m"));
        // Two neighbouring cells with one object on average become one run; the most crowded cell has the darkest shade.
        assert!(markup.contains("heat h1\" d=\"M1 0h2v1h-2z\""), "{markup}");
        assert!(markup.contains("heat h7\" d=\"M0 1h1v1h-1z\""), "{markup}");
        assert!(markup.contains("up to 500"), "{markup}");
        assert!(markup.contains("M1 2L3.5 4"), "{markup}");
        assert!(
            markup.contains("wall w2\" d=\"M2 0h1v1h-1zM0 1h1v1h-1z\""),
            "{markup}"
        );
    }

    #[test]
    fn empty_scene_and_broken_record_are_drawn() {
        let mut empty = ground();
        empty.heat.truncate(1);
        empty.map = vec!["0".to_owned(), String::new(), "é".to_owned()];
        empty.tracks.clear();
        let markup = figures(&empty, 1);
        assert!(is_well_formed(&markup).is_ok() && markup.contains("No object was recorded"));
        assert_eq!([7.0, 100.0, 500.0].map(rule_m), [1.0, 20.0, 100.0]);
    }
}
