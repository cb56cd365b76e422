//! Scenario parameters of the built-in behaviours.

use glam::Vec2;
use serde::Deserialize;

use super::parameters::{BehaviourParameters, BehaviourSite};
use crate::crowd::{Chase, Commute, Flee, Gather, Idle, Patrol, Wander};
use crate::scenario::schema::ScenarioArea;
use crate::scenario::text::ValidationError;
use crate::scenario::validate::check_at_most;
use crate::scenario::validate::limits::POINTS_MAX;

/// They stand still.
#[derive(Deserialize)]
#[serde(rename = "Idle", deny_unknown_fields)]
pub(super) struct IdleParameters {}

impl BehaviourParameters for IdleParameters {
    type Behaviour = Idle;

    fn resolve(self, _: &BehaviourSite<'_>) -> Result<Idle, ValidationError> {
        Ok(Idle)
    }
}

/// They walk to random free tiles around the position where they spawned.
#[derive(Deserialize)]
#[serde(rename = "Wander", deny_unknown_fields)]
pub(super) struct WanderParameters {
    /// Maximum distance from that position, metres.
    radius_m: f32,
}

impl BehaviourParameters for WanderParameters {
    type Behaviour = Wander;

    fn resolve(self, site: &BehaviourSite<'_>) -> Result<Wander, ValidationError> {
        let radius_m = site.length_m("radius_m", self.radius_m)?;
        Ok(Wander { radius_m })
    }
}

/// They walk from point to point, and from the last back to the first.
#[derive(Deserialize)]
#[serde(rename = "Patrol", deny_unknown_fields)]
pub(super) struct PatrolParameters {
    /// The points, metres.
    points: Vec<Vec2>,
}

impl BehaviourParameters for PatrolParameters {
    type Behaviour = Patrol;

    fn resolve(self, site: &BehaviourSite<'_>) -> Result<Patrol, ValidationError> {
        if self.points.is_empty() {
            return Err(site.problem(
                "points",
                "expected at least one point to patrol, found none",
            ));
        }
        let place = site.place().field("points");
        check_at_most(&place, "items", self.points.len(), POINTS_MAX)?;
        let points = self.points.into_iter().enumerate();
        let points = points.map(|(nth, point)| site.point(&place.item(nth), point));
        Ok(Patrol {
            points: points.collect::<Result<_, _>>()?,
        })
    }
}

/// They run after the nearest object of a kind in sight.
#[derive(Deserialize)]
#[serde(rename = "Chase", deny_unknown_fields)]
pub(super) struct ChaseParameters {
    /// The name of the kind.
    kind: String,
    /// Their sight range, metres.
    sight_m: f32,
}

impl BehaviourParameters for ChaseParameters {
    type Behaviour = Chase;

    fn resolve(self, site: &BehaviourSite<'_>) -> Result<Chase, ValidationError> {
        Ok(Chase {
            kind: site.kind("kind", &self.kind)?,
            sight_m: site.length_m("sight_m", self.sight_m)?,
        })
    }
}

/// They run away from the nearest object of a kind in sight.
#[derive(Deserialize)]
#[serde(rename = "Flee", deny_unknown_fields)]
pub(super) struct FleeParameters {
    /// The name of the kind.
    kind: String,
    /// Their sight range, metres.
    sight_m: f32,
}

impl BehaviourParameters for FleeParameters {
    type Behaviour = Flee;

    fn resolve(self, site: &BehaviourSite<'_>) -> Result<Flee, ValidationError> {
        Ok(Flee {
            kind: site.kind("kind", &self.kind)?,
            sight_m: site.length_m("sight_m", self.sight_m)?,
        })
    }
}

/// They walk from one area to the other and back.
#[derive(Deserialize)]
#[serde(rename = "Commute", deny_unknown_fields)]
pub(super) struct CommuteParameters {
    /// The two areas.
    between: (ScenarioArea, ScenarioArea),
}

impl BehaviourParameters for CommuteParameters {
    type Behaviour = Commute;

    fn resolve(self, site: &BehaviourSite<'_>) -> Result<Commute, ValidationError> {
        let (place, (from, to)) = (site.place().field("between"), self.between);
        Ok(Commute {
            between: [
                site.area(&place.item(0), &from)?,
                site.area(&place.item(1), &to)?,
            ],
        })
    }
}

/// They walk to an area and move between random tiles of it.
#[derive(Deserialize)]
#[serde(rename = "Gather", deny_unknown_fields)]
pub(super) struct GatherParameters {
    /// The area of their scene where they gather.
    at: ScenarioArea,
}

impl BehaviourParameters for GatherParameters {
    type Behaviour = Gather;

    fn resolve(self, site: &BehaviourSite<'_>) -> Result<Gather, ValidationError> {
        let at = site.area(&site.place().field("at"), &self.at)?;
        Ok(Gather { at })
    }
}
