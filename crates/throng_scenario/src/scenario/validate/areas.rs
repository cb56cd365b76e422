//! Validation of areas.

use super::bounds::{check_metres, check_ordered, check_range};
use super::limits::METRES_MAX;
use crate::scenario::schema::ScenarioArea;
use crate::scenario::text::{ValidationError, ValuePath};

/// Checks that the numbers of an area are finite, and its corners in order.
pub(in crate::scenario) fn check_area(
    place: &ValuePath,
    area: &ScenarioArea,
) -> Result<(), ValidationError> {
    match *area {
        ScenarioArea::Rect { min_m, max_m } => {
            check_metres(&place.field("min_m"), min_m)?;
            check_metres(&place.field("max_m"), max_m)?;
            check_ordered(&place.field("max_m"), min_m, max_m)
        }
        ScenarioArea::Ring {
            center_m,
            radius_m,
            width_m,
        } => {
            check_metres(&place.field("center_m"), center_m)?;
            check_range(&place.field("radius_m"), radius_m, 0.0..=METRES_MAX)?;
            check_range(&place.field("width_m"), width_m, 0.0..=METRES_MAX)
        }
        ScenarioArea::Point { center_m } => check_metres(&place.field("center_m"), center_m),
        ScenarioArea::Share(min, max) => {
            for (index, corner) in [min, max].into_iter().enumerate() {
                for (axis, value) in corner.to_array().into_iter().enumerate() {
                    check_range(&place.item(index).item(axis), value, 0.0..=1.0)?;
                }
            }
            check_ordered(&place.item(1), min, max)
        }
    }
}
