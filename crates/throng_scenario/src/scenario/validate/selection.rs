//! Validation of a cue's selection.

use super::areas::check_area;
use super::attributes::check_name;
use super::bounds::{check_at_most, check_known, check_metres, check_range};
use super::limits::{DURATION_S_MAX, METRES_MAX, ONLY_MAX};
use super::names::Names;
use crate::scenario::schema::{ObjectCondition, ObjectSelector, ScenarioArea};
use crate::scenario::text::{ValidationError, ValuePath};

pub(super) fn check_selector(
    place: &ValuePath,
    who: ObjectSelector<'_>,
    names: &Names,
) -> Result<(), ValidationError> {
    check_known(&place.field("tag"), "tag", who.tag, &names.tags)?;
    let place = place.field("only");
    check_at_most(&place, "items", who.only.len(), ONLY_MAX)?;
    for (index, only) in who.only.iter().enumerate() {
        check_condition(&place.item(index), only, names)?;
    }
    Ok(())
}

fn check_condition(
    place: &ValuePath,
    only: &ObjectCondition,
    names: &Names,
) -> Result<(), ValidationError> {
    match only {
        ObjectCondition::Within(area) | ObjectCondition::Outside(area) => {
            if matches!(area, ScenarioArea::Point { .. }) {
                let message =
                    "expected an area with an inside, such as `Ring` or `Rect`, found a point";
                return Err(ValidationError::new(place.item(0), message));
            }
            check_area(&place.item(0), area)
        }
        ObjectCondition::OutsideZone {
            center_m,
            radius_m,
            to_center_m,
            to_radius_m,
            from_s,
            until_s,
        } => {
            check_metres(&place.field("center_m"), *center_m)?;
            check_range(&place.field("radius_m"), *radius_m, 0.0..=METRES_MAX)?;
            if let Some(to_center_m) = to_center_m {
                check_metres(&place.field("to_center_m"), *to_center_m)?;
            }
            check_range(&place.field("to_radius_m"), *to_radius_m, 0.0..=METRES_MAX)?;
            check_range(&place.field("from_s"), *from_s, 0.0..=DURATION_S_MAX)?;
            check_range(&place.field("until_s"), *until_s, *from_s..=DURATION_S_MAX)?;
            if until_s > from_s {
                return Ok(());
            }
            let message = format!("expected a time after `from_s`, found {until_s}");
            Err(ValidationError::new(place.field("until_s"), message))
        }
        ObjectCondition::Near { tag, radius_m } => {
            check_known(&place.field("tag"), "tag", tag, &names.tags)?;
            check_range(&place.field("radius_m"), *radius_m, 0.0..=METRES_MAX)
        }
        ObjectCondition::InViewOf(tag) => {
            check_known(&place.item(0), "tag", tag, &names.tags)?;
            if names.player_tags.contains(tag.as_str()) {
                return Ok(());
            }
            let message =
                format!("expected a tag of players, since only players have views, found `{tag}`");
            Err(ValidationError::new(place.item(0), message))
        }
        ObjectCondition::Seeing(tag) => check_known(&place.item(0), "tag", tag, &names.tags),
        ObjectCondition::Below { attribute, .. } | ObjectCondition::AtLeast { attribute, .. } => {
            check_name(place, attribute, names)
        }
    }
}
