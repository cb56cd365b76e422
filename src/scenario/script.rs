//! The script in the tick: cues run when their time has come, in the order of the file.

use bevy_ecs::prelude::*;
use glam::Vec2;

use super::faults::{ScriptFault, ScriptFaults, foresee, hindsight};
use super::schema::{Action, Area, BehaviourSpec, Class, Cue, Scenario, Scope};
use super::stage::{self, Stage};
use crate::crowd::{self, Gather};
use crate::map::{TileEdit, TilePattern, TileRect, edit_map};
use crate::session::ControlledBy;
use crate::sim::{SimTick, StateHasher};
use crate::sync::{Announce, AnnounceScope};
use crate::wire::Channel;
use crate::world::{Object, ObjectRef, PartyId, Position, TeamId, close_scene};

/// When each cue runs next.
#[derive(Resource, Debug, Default)]
pub struct ScenarioScript {
    cues: Vec<TimedCue>,
    /// What could not be done, and why; the run goes on.
    faults: ScriptFaults,
}

#[derive(Debug)]
struct TimedCue {
    next: Option<u64>,
    /// 0 for once.
    every: u64,
    until: u64,
    action: Action,
}

impl ScenarioScript {
    pub(super) fn new(scenario: &Scenario) -> Self {
        // The tick that ends at time t is number t × hz; what is to happen at t happens in the one after.
        let tick = |t_s: f64| (t_s * scenario.tick_hz).floor() as u64 + 1;
        let timed = |cue: &Cue| match cue {
            Cue::At { t_s, run } => TimedCue {
                next: Some(tick(*t_s)),
                every: 0,
                until: u64::MAX,
                action: run.clone(),
            },
            Cue::Every {
                t_s,
                from_s,
                until_s,
                run,
            } => {
                let first = if *from_s > 0.0 { *from_s } else { *t_s };
                let every = ((t_s * scenario.tick_hz).round() as u64).max(1);
                let until = until_s.map_or(u64::MAX, tick);
                TimedCue {
                    next: Some(tick(first)).filter(|&first| first <= until),
                    every,
                    until,
                    action: run.clone(),
                }
            }
        };
        Self {
            cues: scenario.script.iter().map(timed).collect(),
            ..Self::default()
        }
    }

    /// Puts into the state hash when each cue runs next.
    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        for cue in &self.cues {
            hasher.write_u64(cue.next.unwrap_or(u64::MAX));
        }
    }

    /// What could not be done: the first few faults, and how many there were in all.
    #[must_use]
    pub fn faults(&self) -> (&[ScriptFault], u64) {
        self.faults.all()
    }

    /// How often cues ran.
    #[must_use]
    pub const fn cues_run(&self) -> u64 {
        self.faults.cues_run
    }

    /// Takes note of something that no cue did.
    pub(super) fn fault(&mut self, tick: u64, what: String) {
        self.faults.add(None, tick, what);
    }
}

/// Runs the cues that are due.
pub(super) fn run_script(world: &mut World) {
    let tick = world.resource::<SimTick>().0;
    world.resource_scope(|world, mut script: Mut<ScenarioScript>| {
        for nth in 0..script.cues.len() {
            let cue = &mut script.cues[nth];
            if cue.next != Some(tick) {
                continue;
            }
            cue.next = (cue.every > 0)
                .then_some(tick + cue.every)
                .filter(|&next| next <= cue.until);
            let action = cue.action.clone();
            let foresight = foresee(world, &action);
            let done = perform(world, &action);
            script.faults.cues_run += 1;
            if let Some(what) = done.err().or_else(|| hindsight(world, &action, &foresight)) {
                script.faults.add(Some(nth), tick, what);
            }
        }
    });
}

fn perform(world: &mut World, action: &Action) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    match action {
        Action::Spawn(crowd) => stage::spawn(world, crowd).map_err(|e| text(&e))?,
        Action::Despawn { tag, count } => crowd::despawn_some(world, tag, *count),
        Action::Teleport { tag, count, to } => {
            let Some(scene) = scene_of(world, tag) else {
                return Ok(());
            };
            let place = world.resource::<Stage>().place(world, scene, to);
            crowd::teleport_some(world, tag, *count, &place).map_err(|e| text(&e))?;
        }
        Action::SetTeam { tag, count, team } => {
            crowd::set_team_of(world, tag, *count, team.map(TeamId))
        }
        Action::SetAttribute {
            tag,
            count,
            attribute,
            value,
        } => {
            if !crowd::set_attribute_of(world, tag, *count, attribute, *value) {
                return Err(format!("some of `{tag}` have no attribute `{attribute}`"));
            }
        }
        Action::SetSceneAttribute {
            scene,
            attribute,
            value,
        } => {
            let scene = named(world, scene.as_deref())?;
            if !crowd::set_scene_attribute(&mut world.entity_mut(scene), attribute, *value) {
                return Err(format!("scenes have no attribute `{attribute}`"));
            }
        }
        Action::Announce { .. } => announce(world, action),
        Action::SetBehaviour { tag, behaviour } => set_behaviour(world, tag, behaviour)?,
        Action::Gather { tag, at } => {
            if let Some(scene) = home_of(world, tag) {
                let at = world.resource::<Stage>().place(world, scene, at);
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
            stage::open(world, scene, Vec2::ONE).map_err(|e| text(&e))?;
        }
        Action::SetLine(line) => world.insert_resource(*line),
        Action::CloseScene { scene } => {
            let entity = named(world, Some(scene))?;
            close_scene(world, entity).map_err(|e| text(&e))?;
        }
        Action::ChangeScene { tag, count, to, at } => {
            change_scene(world, tag, *count, to, at)?;
        }
    }
    Ok(())
}

/// Members of a crowd go to another scene, and see as many as its viewers do.
fn change_scene(
    world: &mut World,
    tag: &str,
    count: Option<u32>,
    to: &str,
    at: &Area,
) -> Result<(), String> {
    let entity = named(world, Some(to))?;
    let place = world.resource::<Stage>().place(world, entity, at);
    let movers = crowd::members(world, tag, count);
    let moved = crowd::change_scene_of(world, tag, count, entity, &place);
    // Also when not all of them found room there.
    stage::give_caps(world, entity, &movers);
    moved.map_err(|error| error.to_string())
}

/// Does an action that announces; any other does nothing.
fn announce(world: &mut World, action: &Action) {
    let Action::Announce {
        tag,
        count,
        scope,
        class,
        ttl_ticks,
        text,
    } = action
    else {
        return;
    };
    for entity in crowd::members(world, tag, *count) {
        let Some((from, scope)) = speaker(world, entity, *scope) else {
            continue;
        };
        world.write_message(Announce {
            from: Some(from),
            scope,
            class: match class {
                Class::Reliable => Channel::Reliable,
                Class::Unreliable => Channel::Unreliable,
            },
            ttl_ticks: *ttl_ticks,
            bytes: text.clone().into_bytes(),
        });
    }
}

/// Who speaks, and who is to hear it; `None` when nobody is.
fn speaker(world: &World, entity: Entity, scope: Scope) -> Option<(ObjectRef, AnnounceScope)> {
    let from = world.get::<Object>(entity)?.reference();
    let scope = match scope {
        Scope::Viewers => AnnounceScope::Viewers(from),
        Scope::Radius(radius_m) => AnnounceScope::Radius {
            scene: from.scene,
            at: world.get::<Position>(entity)?.0,
            radius_m,
        },
        Scope::Party => AnnounceScope::Party(*world.get::<PartyId>(entity)?),
        Scope::Scene => AnnounceScope::Scene(from.scene),
        Scope::Client => AnnounceScope::Client(world.get::<ControlledBy>(entity)?.client()),
    };
    Some((from, scope))
}

fn named(world: &World, name: Option<&str>) -> Result<Entity, String> {
    let found = world.resource::<Stage>().scene(world, name);
    found.map_err(|error| error.to_string())
}

/// The scene in which the first of a tag is.
fn scene_of(world: &World, tag: &str) -> Option<Entity> {
    let first = crowd::members(world, tag, Some(1)).first().copied()?;
    world.get::<Object>(first).map(Object::scene_entity)
}

/// The scene in which the first of a tag is; the scenario's first where nobody is.
fn home_of(world: &World, tag: &str) -> Option<Entity> {
    scene_of(world, tag).or_else(|| world.resource::<Stage>().scene(world, None).ok())
}

fn set_behaviour(world: &mut World, tag: &str, behaviour: &BehaviourSpec) -> Result<(), String> {
    let Some(scene) = home_of(world, tag) else {
        return Ok(());
    };
    let stage = world.resource::<Stage>();
    let resolved = stage.behaviour(world, scene, behaviour);
    let behaviour = resolved.map_err(|error| error.to_string())?;
    crowd::set_behaviour_of(world, tag, &behaviour);
    Ok(())
}

/// Does an action that edits tiles; any other does nothing.
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
    let scene = named(world, scene.as_deref())?;
    edit_map(world, scene, rect, &edit)
        .map(drop)
        .map_err(|error| error.to_string())
}
