//! Validation of custom attributes, and of the values that cues assign.

use std::ops::RangeInclusive;

use super::bounds::{check_at_most, check_distinct, check_known, check_name_text, check_range};
use super::names::Names;
use crate::crowd::{
    ATTRIBUTE_NAMES, CUSTOM_ATTRIBUTES_MAX, SCENE_ATTRIBUTE_NAMES, attribute_range,
};
use crate::scenario::schema::{Scenario, ScenarioAttribute};
use crate::scenario::text::{ValidationError, ValuePath};

pub(super) fn check_attributes(scenario: &Scenario) -> Result<(), ValidationError> {
    let place = ValuePath::root().field("attributes");
    let own = &scenario.attributes;
    check_at_most(&place, "items", own.len(), CUSTOM_ATTRIBUTES_MAX)?;
    for (index, attribute) in own.iter().enumerate() {
        check_attribute(&place.item(index), attribute)?;
    }
    let names = own.iter().map(|attribute| attribute.name.as_str());
    check_distinct(&place, "attribute", "name", names)
}

fn check_attribute(
    place: &ValuePath,
    attribute: &ScenarioAttribute,
) -> Result<(), ValidationError> {
    check_name_text(&place.field("name"), "attribute", &attribute.name)?;
    let found = attribute.name.as_str();
    if ATTRIBUTE_NAMES.contains(&found) || SCENE_ATTRIBUTE_NAMES.contains(&found) {
        let message = format!("expected another name for the attribute: `{found}` is built in");
        return Err(ValidationError::new(place.field("name"), message));
    }
    let Some((least, greatest)) = ScenarioAttribute::encoding_range(attribute.encoding) else {
        let message = "expected an encoding of numbers: U8, U16, U32, Varint, Zigzag or F32";
        return Err(ValidationError::new(place.field("encoding"), message));
    };
    if attribute.audience.is_empty() {
        let message =
            "expected at least one audience, such as `[Viewers]` or `[Owner]`, found none";
        return Err(ValidationError::new(place.field("audience"), message));
    }
    if let Some((min, max)) = attribute.range {
        let place = place.field("range");
        check_range(&place.item(0), min, least..=greatest)?;
        check_range(&place.item(1), max, min..=greatest)?;
    }
    let (min, max) = attribute.bounds();
    check_range(&place.field("start"), attribute.start, min..=max)
}

/// Checks that objects have an attribute of this name.
pub(super) fn check_name(
    place: &ValuePath,
    attribute: &str,
    names: &Names,
) -> Result<(), ValidationError> {
    check_known(
        &place.field("attribute"),
        "attribute",
        attribute,
        &names.attributes,
    )
}

/// Checks that an attribute can have this value.
pub(super) fn check_value(
    place: &ValuePath,
    attribute: &str,
    value: i64,
    names: &Names,
) -> Result<(), ValidationError> {
    check_name(place, attribute, names)?;
    let range = names.ranges.get(attribute).copied();
    let Some((min, max)) =
        range.or_else(|| attribute_range(attribute).map(RangeInclusive::into_inner))
    else {
        return Ok(());
    };
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let message = format!("expected a value from {min} to {max} for `{attribute}`, found {value}");
    Err(ValidationError::new(place.field("value"), message))
}
