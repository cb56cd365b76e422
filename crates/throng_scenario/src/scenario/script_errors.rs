//! Script errors: cues that could not do their action. They are detected before or after the cue runs, and recorded with the cue's
//! index.
//!
//! A cue always runs as far as possible; this module only records errors, and does not change the simulation.

use bevy_ecs::prelude::*;
use tracing::info;

use super::scenario_world::{self, ScenarioWorld};
use super::schema::{Action, ScenarioAnnouncementScope, ScenarioArea, ScenarioCrowd};
use super::selection::candidates;
use crate::crowd::{self, CrowdArea, SyntheticClients};
use throng::map::SceneMap;
use throng::matchmaking::Matchmaker;
use throng::session::{ControlledBy, Sessions};
use throng::world::{Object, PartyId, Position, SceneIds, SimScene};

/// Maximum number of errors that are recorded with their text.
const SCRIPT_ERRORS_MAX: usize = 20;

/// The recorded errors, and the number of all errors.
#[derive(Debug, Default)]
pub(super) struct ScriptErrors {
    errors: Vec<ScriptError>,
    error_count: u64,
    /// How often cues ran.
    pub cues_run: u64,
}

/// A cue that could not do its action, or an error in a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The index of the cue in the script, from 0; `None` for an error that belongs to no cue.
    pub cue: Option<usize>,
    /// The tick of the first failure.
    pub tick: u64,
    /// The text of the first failure.
    pub message: String,
    /// How often it failed.
    pub count: u64,
}

impl ScriptErrors {
    /// Records an error. Errors of one cue are merged, with the text of the first.
    pub fn add(&mut self, cue: Option<usize>, tick: u64, what: String) {
        info!(cue, tick, error = what, "script action failed");
        self.error_count += 1;
        let known = self.errors.iter_mut().find(|kept| match cue {
            Some(_) => kept.cue == cue,
            None => kept.cue.is_none() && kept.message == what,
        });
        if let Some(known) = known {
            known.count += 1;
        } else if self.errors.len() < SCRIPT_ERRORS_MAX {
            self.errors.push(ScriptError {
                cue,
                tick,
                message: what,
                count: 1,
            });
        }
    }

    /// The first errors, and the number of all errors.
    pub fn all(&self) -> (&[ScriptError], u64) {
        (&self.errors, self.error_count)
    }
}

/// The state before an action.
#[derive(Debug, Default)]
pub(super) struct Precheck {
    /// The error, if a part of the action will fail.
    warning: Option<String>,
    /// The selected objects; for `Spawn`, the objects that had the tag before.
    movers: Vec<Entity>,
    /// The scene of the first object with the tag, which contains the area of a teleport.
    scene: Option<Entity>,
}

/// Checks an action before it runs; `selected` are its objects.
pub(super) fn precheck(world: &World, action: &Action, selected: &[Entity]) -> Precheck {
    let mut before = Precheck::default();
    match action {
        Action::Login { tag, count } => {
            let (offline, online) = count_players(world, tag);
            before.warning = too_few(*count, offline, || match offline + online {
                0 => format!("no player with the tag `{tag}`"),
                _ => format!("{offline} logged-out players with the tag `{tag}`"),
            });
        }
        Action::Logout { tag, count } => {
            let (offline, online) = count_players(world, tag);
            before.warning = too_few(*count, online, || match offline + online {
                0 => format!("no player with the tag `{tag}`"),
                _ => format!("{online} logged-in players with the tag `{tag}`"),
            });
        }
        Action::Release { tag, count } => {
            let elsewhere = crowd::count_possessing(world, tag) as u64;
            before.warning = too_few(*count, elsewhere, || {
                format!("{elsewhere} possessing or spectating players with the tag `{tag}`")
            });
        }
        Action::Drain | Action::Reopen => before.warning = already_done(world, action),
        Action::SetBehaviour { tag, .. } | Action::Gather { tag, .. } => {
            // The behaviour applies to later members as well.
            let crowds = world.resource::<crowd::Crowds>();
            let mut tagged = crowds.with_tag(tag).filter_map(|id| crowds.spec(id));
            if !tagged.any(|spec| spec.count > 0) {
                before.warning = Some(format!("tag `{tag}` matches no object"));
            }
        }
        Action::Cancel { mode, parties } => {
            let matchmaker = world.resource::<Matchmaker>();
            let id = matchmaker.mode_by_name(mode);
            let waiting = id.map_or(0, |id| {
                matchmaker.modes()[usize::from(id.0)].queue().len() as u64
            });
            before.warning = too_few(Some(*parties), waiting, || {
                format!("{waiting} parties queued in `{mode}`")
            });
        }
        Action::Spawn(crowd) => {
            before.movers = crowd::members(world, &crowd.tag, None);
            before.warning = no_room(world, crowd);
        }
        _ => {}
    }
    if let Some(who) = action.selector() {
        before.movers = selected.to_vec();
        let first = crowd::members(world, who.tag, Some(1));
        before.scene = first
            .first()
            .and_then(|&first| scenario_world::scene_of(world, first));
        // With conditions, it is not an error if no object matches.
        if who.only.is_empty() {
            let candidate_count = candidates(world, who, who.count).len() as u64;
            let (tag, suffix) = (
                who.tag,
                if who.is_clients_only {
                    " and a client"
                } else {
                    ""
                },
            );
            before.warning = too_few(who.count, candidate_count, || match candidate_count {
                0 => format!("no object with the tag `{tag}`{suffix}"),
                _ => format!("{candidate_count} objects with the tag `{tag}`{suffix}"),
            });
        }
    }
    let of_values =
        || value_out_of_range(action).or_else(|| no_receivers(world, action, &before.movers));
    before.warning = before.warning.or_else(of_values);
    before
}

/// The error of an action after it ran; `None` if it succeeded.
pub(super) fn postcheck(world: &World, action: &Action, before: &Precheck) -> Option<String> {
    if before.warning.is_some() {
        return before.warning.clone();
    }
    let stage = world.resource::<ScenarioWorld>();
    let area = |scene: Entity, area: &ScenarioArea| stage.resolve_area(world, scene, area);
    match action {
        Action::Teleport { to, .. } => {
            let place = area(before.scene?, to);
            let mut scenes: Vec<Entity> = before
                .movers
                .iter()
                .filter_map(|&mover| scenario_world::scene_of(world, mover))
                .collect();
            scenes.dedup();
            scenes
                .into_iter()
                .find_map(|scene| outside_area(world, &before.movers, scene, &place))
        }
        Action::ChangeScene { to, at, .. } => {
            let scene = stage.scene(world, Some(to)).ok()?;
            outside_area(world, &before.movers, scene, &area(scene, at))
        }
        Action::Spawn(crowd) => {
            let scene = stage.scene(world, crowd.scene.as_deref()).ok()?;
            let members = crowd::members(world, &crowd.tag, None);
            let new = members.get(before.movers.len()..)?;
            outside_area(world, new, scene, &area(scene, &crowd.at))
        }
        _ => None,
    }
}

/// Returns an error if fewer objects were found than wanted; without a number, one is wanted.
fn too_few(wanted: Option<u32>, found: u64, describe: impl Fn() -> String) -> Option<String> {
    let wanted = wanted.map_or(1, u64::from);
    (found < wanted).then(|| match wanted {
        1 => describe(),
        _ => format!("expected {wanted}, found {}", describe()),
    })
}

/// Offline and online players of a tag.
fn count_players(world: &World, tag: &str) -> (u64, u64) {
    let synthetics = world.resource::<SyntheticClients>();
    let tagged = world.resource::<crowd::Crowds>().with_tag(tag);
    let counts = tagged.map(|id| synthetics.presence(id));
    counts.fold((0, 0), |sum, (offline, online)| {
        (sum.0 + offline, sum.1 + online)
    })
}

/// Returns an error if the server is already draining, or already open.
fn already_done(world: &World, action: &Action) -> Option<String> {
    let is_draining = world.resource::<Sessions>().is_draining();
    let state = match action {
        Action::Drain if is_draining => "draining",
        Action::Reopen if !is_draining => "open",
        _ => return None,
    };
    Some(format!("the server is already {state}"))
}

/// Returns an error if the scene of a crowd has too little room for it.
fn no_room(world: &World, crowd: &ScenarioCrowd) -> Option<String> {
    let stage = world.resource::<ScenarioWorld>();
    let scene = stage.scene(world, crowd.scene.as_deref()).ok()?;
    let objects = world.get::<SceneIds>(scene)?;
    let (max, existing) = (objects.max_objects(), objects.len());
    let room = max.saturating_sub(existing);
    (crowd.count > room).then(|| {
        let id = world.get::<SimScene>(scene).map_or(0, |scene| scene.id().0);
        format!(
            "scene {id} is full: at most {max} objects, {existing} exist, {} requested",
            crowd.count
        )
    })
}

/// Returns an error if the value of a scene attribute is out of range and therefore clamped. Values of object attributes are
/// validated before the run.
fn value_out_of_range(action: &Action) -> Option<String> {
    let Action::SetSceneAttribute {
        attribute, value, ..
    } = action
    else {
        return None;
    };
    let range = crowd::scene_attribute_range(attribute)?;
    (!range.contains(value)).then(|| {
        format!(
            "expected `{attribute}` from {} to {}, found {value}",
            range.start(),
            range.end()
        )
    })
}

/// Returns an error if some of the announcing objects have no recipient.
fn no_receivers(world: &World, action: &Action, speakers: &[Entity]) -> Option<String> {
    let Action::Announce { tag, scope, .. } = action else {
        return None;
    };
    let (has_recipient, what): (fn(&World, Entity) -> bool, _) = match scope {
        ScenarioAnnouncementScope::Party => {
            (|world, who| world.get::<PartyId>(who).is_some(), "a party")
        }
        ScenarioAnnouncementScope::Client => (
            |world, who| world.get::<ControlledBy>(who).is_some(),
            "a client",
        ),
        ScenarioAnnouncementScope::Viewers
        | ScenarioAnnouncementScope::Radius(_)
        | ScenarioAnnouncementScope::Scene => return None,
    };
    let without = speakers.iter().filter(|&&who| !has_recipient(world, who));
    let (without, all) = (without.count(), speakers.len());
    (without > 0).then(|| {
        format!(
            "{without} of {all} objects with the tag `{tag}` have no {}",
            &what[2..]
        )
    })
}

/// Returns an error if objects are not in the requested area because it has no free tile.
fn outside_area(
    world: &World,
    objects: &[Entity],
    scene: Entity,
    area: &CrowdArea,
) -> Option<String> {
    let rounding_tolerance_m = world.get::<SceneMap>(scene)?.tile_m();
    let is_outside = |&&entity: &&Entity| {
        let is_here = world
            .get::<Object>(entity)
            .is_some_and(|object| object.scene_entity() == scene);
        let position = world.get::<Position>(entity);
        is_here && position.is_some_and(|position| !area.contains(position.0, rounding_tolerance_m))
    };
    let outside = objects.iter().filter(is_outside).count();
    let all = objects.len();
    (outside > 0)
        .then(|| format!("{outside} of {all} objects placed outside the area: no free tile in it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_one_cue_are_merged_and_counted() {
        let mut errors = ScriptErrors::default();
        (1..=50).for_each(|tick| errors.add(Some(3), tick, format!("no {tick}")));
        (0..40).for_each(|cue| errors.add(Some(10 + cue), 7, "no".to_owned()));
        errors.add(Some(3), 60, "later".to_owned());
        let (kept, count) = errors.all();
        assert_eq!((kept.len(), count), (SCRIPT_ERRORS_MAX, 91));
        assert_eq!(
            kept[0],
            ScriptError {
                cue: Some(3),
                tick: 1,
                message: "no 1".to_owned(),
                count: 51
            }
        );
    }

    #[test]
    fn fewer_objects_than_requested_are_an_error() {
        let describe = || "found".to_owned();
        assert_eq!(too_few(None, 1, describe), None);
        assert_eq!(too_few(Some(5), 5, describe), None);
        assert_eq!(too_few(Some(0), 0, describe), None);
        assert_eq!(too_few(None, 0, describe), Some("found".to_owned()));
        let message = "expected 5, found found".to_owned();
        assert_eq!(too_few(Some(5), 4, describe), Some(message));
    }
}
