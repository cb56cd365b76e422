//! The basic checks of validation: ranges, lengths, names.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use glam::Vec2;

use super::limits::{METRES_MAX, NAME_CHARS_MAX};
use crate::scenario::text::{ValidationError, ValuePath};
use crate::scenario::text::{closest, list_names, unit_of};

/// Checks that a number is within its range; NaN is within none.
pub(in crate::scenario) fn check_range<T>(
    place: &ValuePath,
    found: T,
    range: RangeInclusive<T>,
) -> Result<(), ValidationError>
where
    T: PartialOrd + std::fmt::Display,
{
    if range.contains(&found) {
        return Ok(());
    }
    let unit = place.last_field().and_then(unit_of);
    let unit = unit.map_or_else(String::new, |unit| format!(" {unit}"));
    let message = format!(
        "expected {place} from {} to {}{unit}, found {found}",
        range.start(),
        range.end()
    );
    Err(ValidationError::new(place.clone(), message))
}

/// Checks that a position is finite and not far beyond any map.
pub(in crate::scenario) fn check_metres(
    place: &ValuePath,
    found: Vec2,
) -> Result<(), ValidationError> {
    found
        .to_array()
        .into_iter()
        .enumerate()
        .try_for_each(|(axis, value)| {
            check_range(&place.item(axis), value, -METRES_MAX..=METRES_MAX)
        })
}

/// Checks that `max` is not to the left of or above `min`.
pub(in crate::scenario) fn check_ordered(
    place: &ValuePath,
    min: Vec2,
    max: Vec2,
) -> Result<(), ValidationError> {
    if min.cmple(max).all() {
        return Ok(());
    }
    let message = format!(
        "expected a corner to the right of and below ({}, {}), found ({}, {})",
        min.x, min.y, max.x, max.y
    );
    Err(ValidationError::new(place.clone(), message))
}

/// Checks that a list or text is not too long.
pub(in crate::scenario) fn check_at_most(
    place: &ValuePath,
    what: &str,
    found: usize,
    limit: usize,
) -> Result<(), ValidationError> {
    if found <= limit {
        return Ok(());
    }
    Err(ValidationError::new(
        place.clone(),
        format!("expected at most {limit} {what} in {place}, found {found}"),
    ))
}

/// Checks that a name is neither empty nor too long.
pub(in crate::scenario) fn check_name_text(
    place: &ValuePath,
    what: &str,
    found: &str,
) -> Result<(), ValidationError> {
    if found.is_empty() {
        return Err(ValidationError::new(
            place.clone(),
            format!("expected a name for the {what}, found none"),
        ));
    }
    check_at_most(place, "characters", found.chars().count(), NAME_CHARS_MAX)
}

/// Checks that names are distinct; the error is at the second of two equal ones.
pub(in crate::scenario) fn check_distinct<'a>(
    place: &ValuePath,
    what: &str,
    field: &'static str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), ValidationError> {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name) {
            let message =
                format!("expected a different name for each {what}, found `{name}` twice");
            return Err(ValidationError::new(
                place.item(index).field(field),
                message,
            ));
        }
    }
    Ok(())
}

/// Checks that a name is known.
pub(in crate::scenario) fn check_known(
    place: &ValuePath,
    what: &str,
    found: &str,
    known: &BTreeSet<&str>,
) -> Result<(), ValidationError> {
    if known.contains(found) {
        return Ok(());
    }
    Err(match closest(found, known.iter().copied()) {
        Some(name) => ValidationError::new(
            place.clone(),
            format!("unknown {what} `{found}`, did you mean `{name}`?"),
        ),
        None => ValidationError::new(place.clone(), format!("unknown {what} `{found}`")).with_help(
            format!("the known names are {}", list_names(&Vec::from_iter(known))),
        ),
    })
}
