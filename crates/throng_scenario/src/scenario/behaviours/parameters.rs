//! The parameters of behaviours in scenarios, and the context of their checks.

use std::fmt::Display;
use std::ops::RangeInclusive;

use glam::Vec2;
use serde::de::DeserializeOwned;

use crate::crowd::{BehaviourRule, CrowdArea};
use crate::scenario::schema::ScenarioArea;
use crate::scenario::text::{ValidationError, ValuePath, closest, list_names};
use crate::scenario::validate::limits::METRES_MAX;
use crate::scenario::validate::{check_area, check_metres, check_range};
use throng::world::{KindId, ObjectKinds};

/// The parameters of a behaviour as scenarios write them: `Guard(radius_m: 5, intruders: "player")`. The name in front is
/// [`BehaviourRule::NAME`]; fields are read by serde, and unknown ones should be refused (`deny_unknown_fields`).
///
/// ```
/// use rand_pcg::Pcg64Mcg;
/// use serde::Deserialize;
/// use throng_scenario::crowd::{BehaviourRule, CrowdArea, Perception};
/// use throng_scenario::{BehaviourParameters, BehaviourSite, ValidationError};
/// use throng::world::StateHashed;
///
/// /// Walks along the sides of a square.
/// #[derive(Debug, PartialEq, StateHashed, Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Square { side_m: f32 }
///
/// impl BehaviourRule for Square {
///     const NAME: &'static str = "Square";
///     fn next_goal(&self, senses: &Perception<'_>, _: &mut Pcg64Mcg) -> Option<CrowdArea> {
///         let corner = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)][senses.goal_count as usize % 4];
///         Some(CrowdArea::Point(senses.home + self.side_m * glam::Vec2::from(corner)))
///     }
/// }
///
/// impl BehaviourParameters for Square {
///     type Behaviour = Self;
///     fn resolve(self, site: &BehaviourSite<'_>) -> Result<Self, ValidationError> {
///         site.check_range("side_m", self.side_m, 0.0..=100.0)?;
///         Ok(self)
///     }
/// }
/// ```
pub trait BehaviourParameters: DeserializeOwned {
    /// The resulting behaviour.
    type Behaviour: BehaviourRule;

    /// Checks the parameters and creates the behaviour: names become ids, positions become metres of the scene. It is called
    /// during validation, with the whole map as one metre, and again for each crowd, so the result must depend only on the
    /// arguments.
    ///
    /// # Errors
    /// A [`ValidationError`] at the wrong field, with the expected and the found value.
    fn resolve(self, site: &BehaviourSite<'_>) -> Result<Self::Behaviour, ValidationError>;
}

/// The location of a behaviour in a scenario, and its scene. Errors of its checks point at the field.
#[derive(Clone, Debug)]
pub struct BehaviourSite<'a> {
    pub(in crate::scenario) path: ValuePath,
    pub(in crate::scenario) kinds: &'a ObjectKinds,
    /// The factor for areas in metres, if another map replaces the scene's own.
    pub(in crate::scenario) scale: Vec2,
    pub(in crate::scenario) size_m: Vec2,
}

impl BehaviourSite<'_> {
    /// The location of the behaviour in the scenario.
    #[must_use]
    pub const fn place(&self) -> &ValuePath {
        &self.path
    }

    /// An error at a field of the behaviour.
    #[must_use]
    pub fn problem(&self, field: &'static str, message: impl Into<String>) -> ValidationError {
        ValidationError::new(self.path.field(field), message)
    }

    /// Checks that a field is within a range; NaN is within none.
    ///
    /// # Errors
    /// A [`ValidationError`] that names the range.
    pub fn check_range<T: PartialOrd + Display>(
        &self,
        field: &'static str,
        found: T,
        range: RangeInclusive<T>,
    ) -> Result<(), ValidationError> {
        check_range(&self.path.field(field), found, range)
    }

    /// Checks that a field is a length in metres: not negative, and not far beyond any map.
    ///
    /// # Errors
    /// A [`ValidationError`] that names the range.
    pub fn length_m(&self, field: &'static str, found: f32) -> Result<f32, ValidationError> {
        self.check_range(field, found, 0.0..=METRES_MAX)?;
        Ok(found)
    }

    /// The kind of objects named by a field.
    ///
    /// # Errors
    /// A [`ValidationError`] with the closest known name, or all known names.
    pub fn kind(&self, field: &'static str, name: &str) -> Result<KindId, ValidationError> {
        self.kinds.find(name).ok_or_else(|| {
            let known: Vec<&str> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
            unknown_name(self.path.field(field), "kind", name, &known)
        })
    }

    /// The position written at this path of the scenario, in metres of the current map.
    ///
    /// # Errors
    /// A [`ValidationError`] at the coordinate that is not a number, or far beyond any map.
    pub fn point(&self, place: &ValuePath, found: Vec2) -> Result<Vec2, ValidationError> {
        check_metres(place, found)?;
        Ok(found * self.scale)
    }

    /// The area written at this path of the scenario, in metres of the current map.
    ///
    /// # Errors
    /// A [`ValidationError`] at the invalid part of the area.
    pub fn area(
        &self,
        place: &ValuePath,
        found: &ScenarioArea,
    ) -> Result<CrowdArea, ValidationError> {
        check_area(place, found)?;
        Ok(area_in_metres(found, self.scale, self.size_m))
    }
}

/// An unknown name, with the closest known name, or all known names.
pub(super) fn unknown_name(
    place: ValuePath,
    what: &str,
    found: &str,
    known: &[&str],
) -> ValidationError {
    match closest(found, known.iter().copied()) {
        Some(name) => ValidationError::new(
            place,
            format!("unknown {what} `{found}`, did you mean `{name}`?"),
        ),
        None => {
            let mut names = known.to_vec();
            names.sort_unstable();
            ValidationError::new(place, format!("unknown {what} `{found}`"))
                .with_help(format!("the known names are {}", list_names(&names)))
        }
    }
}

/// The area of a crowd. `scale` is the factor for metres, `size_m` the size of the scene.
pub(in crate::scenario) fn area_in_metres(
    area: &ScenarioArea,
    scale: Vec2,
    size_m: Vec2,
) -> CrowdArea {
    match *area {
        ScenarioArea::Rect { min_m, max_m } => CrowdArea::Rect {
            min: min_m * scale,
            max: max_m * scale,
        },
        ScenarioArea::Ring {
            center_m,
            radius_m,
            width_m,
        } => {
            let mean = (scale.x + scale.y) / 2.0;
            CrowdArea::Ring {
                center: center_m * scale,
                radius: radius_m * mean,
                width: width_m * mean,
            }
        }
        ScenarioArea::Point { center_m } => CrowdArea::Point(center_m * scale),
        ScenarioArea::Share(min, max) => CrowdArea::Rect {
            min: min * size_m,
            max: max * size_m,
        },
    }
}
