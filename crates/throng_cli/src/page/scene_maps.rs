//! Maps: the heat map of the crowd, and the tracks of some objects.

use std::fmt::Write as _;

use super::chart::digits;
use super::html::text;
use super::numbers::{count, figure};
use throng_scenario::record::SceneRecord;

/// Shades of the heat map, the palest first.
const SHADES: usize = 7;

/// Shades of walls.
const WALL_SHADES: u32 = 2;

/// Colours of tracks; they come round again.
const TRACK_COLORS: usize = 6;

/// Where a run of squares begins, where it ends, and its value.
type SquareRun = (usize, usize, u32);

/// A scene: a heat map, and beside it tracks.
pub(super) fn figures(ground: &SceneRecord, nth: usize) -> String {
    // Drawn once, and used again.
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
    let looks = count(ground.samples, "look");
    let heat = format!(
        "<figure class=\"ground\"><figcaption><b>Where the crowd stood</b> <span class=\"says\">{name}, {size}. How many \
         objects were in a square of {} m at a time, on average over {looks}, one about every half second, or every tick where that is longer. Walls are grey.</span></figcaption>{}{legend}</figure>",
        figure(f64::from(cell).round().max(0.1)),
        drawing(ground, "Where the crowd stood", &format!("{walls}{heat}")),
    );
    let tracks_drawn = tracks(ground);
    let tracks = format!(
        "<figure class=\"ground\"><figcaption><b>Sample paths</b> <span class=\"says\">Where {} went, evenly chosen by \
         their numbers: NPCs, or players where there are none. A ring is where one was first seen, a disc where it was \
         last.</span></figcaption>{}</figure>",
        count(ground.tracks.len() as u64, "walker"),
        drawing(
            ground,
            "Sample paths",
            &format!("{walls_again}{tracks_drawn}")
        ),
    );
    format!("<div class=\"grounds\">{heat}{tracks}</div>\n")
}

/// A drawing in metres, with a rule below it.
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

/// A round length of about a fifth of the width.
fn rule_m(width: f32) -> f32 {
    let power = 10f32.powf((width / 4.0).log10().floor());
    let steps = [5.0, 2.0, 1.0];
    let step = steps.into_iter().find(|step| step * power <= width / 4.0);
    step.unwrap_or(1.0) * power
}

/// Runs of equal squares in rows, a path for each value above 0 up to `values`, measured in squares. A run below one that is as
/// wide makes it higher.
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
            // Writing into a string does not fail.
            let _ = write!(path, "M{start} {from}h{wide}v{high}h-{wide}z");
        }
    };
    // Runs that may go on below, and the rows where they began.
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
        let (kept, done): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|(run, _)| row.contains(run));
        done.into_iter().for_each(|(run, from)| write(run, from, y));
        row.retain(|run| !kept.iter().any(|(kept, _)| kept == run));
        open = kept;
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

/// What is measured in squares, measured in metres.
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

/// The crowd by its density, and what the shades say.
fn heat(ground: &SceneRecord) -> (String, String) {
    let looks = ground.samples.max(1) as f64;
    let most = ground.heat.iter().copied().max().unwrap_or(0);
    let cells = u64::from(ground.columns) * u64::from(ground.rows);
    if most == 0 || cells != ground.heat.len() as u64 {
        return (
            String::new(),
            "<p class=\"none\">Nobody was seen there.</p>".to_owned(),
        );
    }
    // Shades by the logarithm: a gate at which a hundred stand and a lane that one walks are both seen.
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
    let starts = (0..SHADES).map(|nth| least * (span * nth as f64 / SHADES as f64).exp() / looks);
    let swatches: String = starts
        .enumerate()
        .map(|(nth, from)| format!("<li><i class=\"h{}\"></i>{}</li>", nth + 1, figure(from)))
        .collect();
    let legend = format!(
        "<ul class=\"legend shades\">{swatches}<li><small>and more, up to {}</small></li></ul>",
        figure(f64::from(most) / looks)
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
        // Two cells of one object at a time each make one run; the most crowded one is in the darkest shade.
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
        assert!(is_well_formed(&markup).is_ok() && markup.contains("Nobody was seen"));
        assert_eq!([7.0, 100.0, 500.0].map(rule_m), [1.0, 20.0, 100.0]);
    }
}
