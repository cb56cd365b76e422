//! Runs the script: each cue at its time, in the order of the file.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use glam::Vec2;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::behaviours::Behaviours;
use super::external_actions::ExternalActions;
use super::scenario_world::{self, ScenarioWorld};
use super::schema::{
    Action, BehaviourSpec, Class, CueSpec, Scenario, ScenarioAnnouncementScope, ScenarioArea,
};
use super::script_errors::{ScriptError, ScriptErrors, postcheck, precheck};
use super::selection;
use super::timed_cue::{Ticks, TimedCue};
use crate::crowd::{self, Gather};
use throng::map::{TileEdit, TilePattern, TileRect, edit_map};
use throng::session::{SessionState, Sessions, controlling_client};
use throng::sim::{RandomStreams, SimTick, StateHasher};
use throng::sync::{AnnouncementRequest, AnnouncementScope};
use throng::wire::Channel;
use throng::world::{Object, ObjectRef, PartyId, Position, TeamId, close_scene};

/// The state of the running script.
#[derive(Resource, Debug, Default)]
pub struct ScenarioScript {
    cues: Vec<TimedCue>,
    /// The counts of each cue.
    cue_counts: Vec<CueCounts>,
    /// Errors of cues; they do not stop the run.
    errors: ScriptErrors,
    /// Whether the cues of 0 s have run.
    has_begun: bool,
    pub(super) external: ExternalActions,
}

/// How often a cue ran, and the total number of affected objects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CueCounts {
    pub run_count: u64,
    /// `None` for a cue that does not act on objects.
    pub object_count: Option<u64>,
}

impl ScenarioScript {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let ticks = Ticks(scenario.tick_hz);
        let timed = |cue| TimedCue::new(cue, ticks);
        Self {
            cues: scenario.script.iter().map(timed).collect(),
            cue_counts: vec![CueCounts::default(); scenario.script.len()],
            ..Self::default()
        }
    }

    /// Hashes the next time of each cue.
    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        self.cues.iter().for_each(|cue| cue.hash(hasher));
    }

    /// The first errors, and the number of all errors.
    #[must_use]
    pub fn errors(&self) -> (&[ScriptError], u64) {
        self.errors.all()
    }

    /// How often cues ran.
    #[must_use]
    pub const fn cues_run(&self) -> u64 {
        self.errors.cues_run
    }

    /// The counts of each cue, in the order of the script.
    pub(super) fn cue_counts(&self) -> &[CueCounts] {
        &self.cue_counts
    }

    /// Records an error that belongs to no cue.
    pub(super) fn add_error(&mut self, tick: u64, what: String) {
        self.errors.add(None, tick, what);
    }
}

/// Maximum time that the cues of 0 s wait for logins, in seconds; a full server may never admit the last players.
const FIRST_CUES_WAIT_S_MAX: f64 = 5.0;

/// Runs the cues of 0 s when all crowds have logged in and spawned, since they act on these objects. That is in the first tick, or
/// later if more clients log in than a tick admits. Cues with a condition are not included.
pub(super) fn run_first_cues(world: &mut World) {
    if script_mut(world).has_begun {
        return;
    }
    let tick = world.resource::<SimTick>().0;
    let tick_s = world.resource::<Time<Fixed>>().timestep().as_secs_f64();
    let is_early = tick as f64 * tick_s < FIRST_CUES_WAIT_S_MAX;
    let is_waiting = is_early && (crowd::has_logins_under_way(world) || has_login_queue(world));
    script_mut(world).has_begun = !is_waiting;
    // Ramps do not wait, since their steps have fixed times.
    run_cues(world, tick, |cue| {
        cue.is_first() && (!is_waiting || cue.is_ramp())
    });
}

/// Whether players wait to be admitted. O(sessions).
fn has_login_queue(world: &World) -> bool {
    let mut sessions = world.resource::<Sessions>().iter();
    sessions.any(|(_, session)| session.state == SessionState::Queued)
}

/// Runs the scheduled cues, except those of [`run_first_cues`], and external actions.
pub(super) fn run_script(world: &mut World) {
    let tick = world.resource::<SimTick>().0;
    let has_begun = script_mut(world).has_begun;
    run_cues(world, tick, |cue| has_begun || !cue.is_first());
    loop {
        let next = script_mut(world).external.next();
        let Some((text, action)) = next else {
            return;
        };
        let (_, error) = run_action(world, &action);
        script_mut(world).external.record(text, tick, error);
    }
}

fn run_cues(world: &mut World, tick: u64, is_included: impl Fn(&TimedCue) -> bool) {
    // Actions run hooks and cues of the game, which may read `ScenarioScript`, so only the list of cues is moved out of it.
    let mut cues = std::mem::take(&mut script_mut(world).cues);
    let included = cues
        .iter_mut()
        .enumerate()
        .filter(|(_, cue)| is_included(cue));
    for (nth, cue) in included {
        let Some(action) = cue.poll(world, tick) else {
            continue;
        };
        let (affected, error) = run_action(world, &action);
        let mut script = script_mut(world);
        let counts = &mut script.cue_counts[nth];
        counts.run_count += 1;
        if let Some(affected) = affected {
            *counts.object_count.get_or_insert(0) += affected;
        }
        script.errors.cues_run += 1;
        if let Some(what) = error {
            script.errors.add(Some(nth), tick, what);
        }
    }
    script_mut(world).cues = cues;
}

fn script_mut(world: &mut World) -> Mut<'_, ScenarioScript> {
    world.resource_mut::<ScenarioScript>()
}

/// Runs an action; returns the number of selected objects, if it selects any, and the error.
fn run_action(world: &mut World, action: &Action) -> (Option<u64>, Option<String>) {
    let chosen = action
        .selector()
        .map(|who| selection::select_objects(world, who));
    let count = chosen.as_ref().map(|chosen| chosen.len() as u64);
    let affected = chosen.unwrap_or_default();
    let before = precheck(world, action, &affected);
    let done = apply_action(world, action, &affected);
    let error = done.err().or_else(|| postcheck(world, action, &before));
    (count, error)
}

fn apply_action(world: &mut World, action: &Action, affected: &[Entity]) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    match action {
        Action::Spawn(crowd) => scenario_world::spawn_crowd(world, crowd).map_err(|e| text(&e))?,
        Action::SetSceneAttribute {
            scene,
            attribute,
            value,
        } => {
            for scene in scene_copies(world, scene.as_deref())? {
                if !crowd::set_scene_attribute(&mut world.entity_mut(scene), attribute, *value) {
                    return Err(format!("scenes have no attribute `{attribute}`"));
                }
            }
        }
        Action::SetBehaviour { tag, behaviour } => set_behaviour(world, tag, behaviour)?,
        Action::Gather { tag, at } => {
            if let Some(scene) = home_of(world, tag) {
                let at = world
                    .resource::<ScenarioWorld>()
                    .resolve_area(world, scene, at);
                crowd::set_behaviour_of(world, tag, &Gather { at }.into());
            }
        }
        Action::Block { .. }
        | Action::Free { .. }
        | Action::Toggle { .. }
        | Action::Paint { .. } => edit_tiles(world, action)?,
        Action::Queue {
            mode,
            parties,
            size,
        } => {
            crowd::queue_parties(world, mode, *parties, *size).map_err(|e| text(&e))?;
        }
        Action::Cancel { mode, parties } => {
            crowd::cancel_oldest(world, mode, *parties).map_err(|e| text(&e))?;
        }
        Action::Login { tag, count } => crowd::login_some(world, tag, *count),
        Action::Logout { tag, count } => crowd::logout_some(world, tag, *count),
        Action::OpenScene(scene) => {
            scenario_world::open_copies(world, scene, Vec2::ONE).map_err(|e| text(&e))?;
        }
        Action::SetNetwork(network) => world.insert_resource(*network),
        Action::Drain => world.resource_mut::<Sessions>().drain(),
        Action::Reopen => world.resource_mut::<Sessions>().reopen(),
        Action::Release { tag, count } => {
            let count = count.unwrap_or(u32::MAX);
            crowd::release(world, tag, count).map_err(|e| text(&e))?;
        }
        Action::CloseScene { scene } => {
            for scene in scene_copies(world, Some(scene))? {
                close_scene(world, scene).map_err(|e| text(&e))?;
            }
        }
        Action::Game(cue) => run_game_cue(world, cue)?,
        Action::Despawn { .. }
        | Action::Teleport { .. }
        | Action::SetTeam { .. }
        | Action::SetAttribute { .. }
        | Action::AddAttribute { .. }
        | Action::ScaleAttribute { .. }
        | Action::Hide { .. }
        | Action::Announce { .. }
        | Action::ChangeScene { .. } => apply_to_objects(world, action, affected)?,
        Action::Disconnect { .. }
        | Action::DuplicateLogin { .. }
        | Action::Kick { .. }
        | Action::Ban { .. }
        | Action::Possess { .. }
        | Action::Spectate { .. } => apply_to_players(world, action, affected)?,
    }
    Ok(())
}

/// Runs an action on selected objects; ignores other actions.
fn apply_to_objects(world: &mut World, action: &Action, all: &[Entity]) -> Result<(), String> {
    let Some(tag) = action.tag() else {
        return Ok(());
    };
    match action {
        Action::Despawn { .. } => crowd::despawn_some(world, all),
        Action::Teleport { to, .. } => teleport(world, tag, all, to)?,
        Action::SetTeam { team, .. } => crowd::set_team_of(world, all, team.map(TeamId)),
        Action::SetAttribute {
            attribute, value, ..
        } => change_attribute(world, tag, all, attribute, |_| *value)?,
        Action::AddAttribute { attribute, by, .. } => {
            let add = |value: i64| value.saturating_add(*by);
            change_attribute(world, tag, all, attribute, add)?;
        }
        Action::ScaleAttribute { attribute, by, .. } => {
            // The cast saturates; the setter clamps the value to the range.
            let scale = |value: i64| (value as f64 * by).round() as i64;
            change_attribute(world, tag, all, attribute, scale)?;
        }
        Action::Hide { hidden, .. } => crowd::hide_some(world, all, *hidden),
        Action::Announce { .. } => announce(world, action, all),
        Action::ChangeScene { to, at, .. } => change_scene(world, all, to, at)?,
        _ => {}
    }
    Ok(())
}

/// Runs an action on players and their clients; ignores other actions.
fn apply_to_players(world: &mut World, action: &Action, all: &[Entity]) -> Result<(), String> {
    let done = match action {
        Action::Disconnect { for_s, .. } => {
            let tick_s = world.resource::<Time<Fixed>>().timestep().as_secs_f64();
            crowd::disconnect_some(world, all, (for_s / tick_s).round() as u64)
        }
        Action::DuplicateLogin { .. } => crowd::duplicate_login_some(world, all),
        Action::Kick { .. } => crowd::kick_some(world, all),
        Action::Ban { .. } => crowd::ban_some(world, all),
        Action::Possess { of, .. } => {
            let done = crowd::possess(world, all, of);
            done.map_err(|error| format!("`{of}`: {error}"))?
        }
        Action::Spectate { follow, .. } => {
            let done = crowd::spectate(world, all, follow);
            done.map_err(|error| format!("`{follow}`: {error}"))?
        }
        _ => return Ok(()),
    };
    if done == all.len() {
        return Ok(());
    }
    Err(format!(
        "expected to affect {} players, affected {done}",
        all.len()
    ))
}

/// Teleports objects within their scenes. The area is resolved in the scene of the first object with the tag.
fn teleport(
    world: &mut World,
    tag: &str,
    movers: &[Entity],
    to: &ScenarioArea,
) -> Result<(), String> {
    let Some(scene) = scene_of(world, tag) else {
        return Ok(());
    };
    let place = world
        .resource::<ScenarioWorld>()
        .resolve_area(world, scene, to);
    crowd::teleport_some(world, movers, &place).map_err(|error| error.to_string())
}

/// Changes an attribute of selected objects with a tag.
fn change_attribute(
    world: &mut World,
    tag: &str,
    all: &[Entity],
    attribute: &str,
    to: impl Fn(i64) -> i64,
) -> Result<(), String> {
    if crowd::set_attribute_of(world, all, attribute, to) {
        return Ok(());
    }
    Err(format!("some of `{tag}` have no attribute `{attribute}`"))
}

/// Runs a cue that the game registered.
fn run_game_cue(world: &mut World, cue: &CueSpec) -> Result<(), String> {
    let draw = world
        .resource_mut::<RandomStreams>()
        .stream(selection::SCRIPT_STREAM)
        .next_u64();
    let mut random = Pcg64Mcg::seed_from_u64(draw);
    let behaviours = world.resource::<Behaviours>().clone();
    behaviours.run_cue(cue, world, &mut random)
}

/// Moves members of a crowd to another scene, where they get its view caps.
fn change_scene(
    world: &mut World,
    movers: &[Entity],
    to: &str,
    at: &ScenarioArea,
) -> Result<(), String> {
    let entity = scene_by_name(world, Some(to))?;
    let place = world
        .resource::<ScenarioWorld>()
        .resolve_area(world, entity, at);
    let moved = crowd::change_scene_of(world, movers, entity, &place);
    // Also after an error, since some of them may have moved.
    scenario_world::set_view_caps(world, entity, movers);
    moved.map_err(|error| error.to_string())
}

/// Runs an announcement; ignores other actions.
fn announce(world: &mut World, action: &Action, speakers: &[Entity]) {
    let Action::Announce {
        scope,
        class,
        ttl_ticks,
        text,
        ..
    } = action
    else {
        return;
    };
    for &entity in speakers {
        let Some((from, scope)) = announcement_scope(world, entity, *scope) else {
            continue;
        };
        world.write_message(AnnouncementRequest {
            about: Some(from),
            scope,
            channel: match class {
                Class::Reliable => Channel::Reliable,
                Class::Unreliable => Channel::Unreliable,
            },
            ttl_ticks: *ttl_ticks,
            bytes: text.clone().into_bytes(),
        });
    }
}

/// The sender and the recipients; `None` when there are none.
fn announcement_scope(
    world: &World,
    entity: Entity,
    scope: ScenarioAnnouncementScope,
) -> Option<(ObjectRef, AnnouncementScope)> {
    let from = world.get::<Object>(entity)?.reference();
    let scope = match scope {
        ScenarioAnnouncementScope::Viewers => AnnouncementScope::Viewers(from),
        ScenarioAnnouncementScope::Radius(radius_m) => AnnouncementScope::Radius {
            scene: from.scene,
            at: world.get::<Position>(entity)?.0,
            radius_m,
        },
        ScenarioAnnouncementScope::Party => {
            AnnouncementScope::Party(*world.get::<PartyId>(entity)?)
        }
        ScenarioAnnouncementScope::Scene => AnnouncementScope::Scene(from.scene),
        ScenarioAnnouncementScope::Client => {
            AnnouncementScope::Client(controlling_client(world, entity)?)
        }
    };
    Some((from, scope))
}

fn scene_by_name(world: &World, name: Option<&str>) -> Result<Entity, String> {
    let found = world.resource::<ScenarioWorld>().scene(world, name);
    found.map_err(|error| error.to_string())
}

/// The copies of a scene.
fn scene_copies(world: &World, name: Option<&str>) -> Result<Vec<Entity>, String> {
    let found = world.resource::<ScenarioWorld>().copies(world, name);
    found.map_err(|error| error.to_string())
}

/// The scene of the first object with a tag.
fn scene_of(world: &World, tag: &str) -> Option<Entity> {
    let first = crowd::members(world, tag, Some(1)).first().copied()?;
    world.get::<Object>(first).map(Object::scene_entity)
}

/// The scene of the first object with a tag; the scenario's first scene if there is no object.
fn home_of(world: &World, tag: &str) -> Option<Entity> {
    scene_of(world, tag).or_else(|| world.resource::<ScenarioWorld>().scene(world, None).ok())
}

fn set_behaviour(world: &mut World, tag: &str, behaviour: &BehaviourSpec) -> Result<(), String> {
    let Some(scene) = home_of(world, tag) else {
        return Ok(());
    };
    let stage = world.resource::<ScenarioWorld>();
    let resolved = stage.resolve_behaviour(world, scene, behaviour);
    let behaviour = resolved.map_err(|error| error.to_string())?;
    crowd::set_behaviour_of(world, tag, &behaviour);
    Ok(())
}

/// Runs an edit of tiles; ignores other actions.
fn edit_tiles(world: &mut World, action: &Action) -> Result<(), String> {
    let (scene, rect, edit) = match action {
        Action::Block { scene, rect_tiles } => (scene, *rect_tiles, TileEdit::Block),
        Action::Free { scene, rect_tiles } => (scene, *rect_tiles, TileEdit::Free),
        Action::Toggle { scene, rect_tiles } => (scene, *rect_tiles, TileEdit::Toggle),
        Action::Paint {
            scene,
            at_tile: (x, y),
            rows,
        } => {
            let pattern = TilePattern::from_ascii(&rows.join("\n"));
            let pattern = pattern.map_err(|error| error.to_string())?;
            let rect = TileRect::new(*x, *y, pattern.width(), pattern.height());
            (scene, rect, TileEdit::Write(pattern))
        }
        _ => return Ok(()),
    };
    for scene in scene_copies(world, scene.as_deref())? {
        edit_map(world, scene, rect, &edit).map_err(|error| error.to_string())?;
    }
    Ok(())
}
