//! The script in the tick: cues run when their time has come, in the order of the file.

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use glam::Vec2;
use tracing::warn;

use super::schema::{Action, Behaviour, Cue, Queue, Scenario};
use super::stage::{self, Stage};
use crate::crowd::{self, CrowdSpec, spawn_individual};
use crate::map::{TileEdit, TilePattern, TileRect, edit_map};
use crate::matchmaking::{MatchFormed, Matchmaker};
use crate::movement::Walker;
use crate::sim::SimTick;
use crate::world::{Object, ObjectKinds, TeamId, close_scene};

/// Battles that have a scene of their own at once; further ones are fought unseen.
const BATTLES_MAX: usize = 64;

/// When each cue runs next, and the battles that are fought.
#[derive(Resource, Debug, Default)]
pub struct ScenarioScript {
    cues: Vec<Timed>,
    battles: Vec<Battle>,
    /// Battles that were fought without a scene, since as many as there may be had one.
    battles_unseen: u64,
    /// What could not be done, and why; the run goes on.
    faults: Vec<String>,
    fault_count: u64,
    seen: MessageCursor<MatchFormed>,
}

#[derive(Debug)]
struct Timed {
    next: Option<u64>,
    /// 0 for once.
    every: u64,
    until: u64,
    action: Action,
}

#[derive(Debug)]
struct Battle {
    scene: Entity,
    ends: u64,
}

/// Faults that are kept word for word.
const FAULTS_MAX: usize = 20;

impl ScenarioScript {
    pub(super) fn new(scenario: &Scenario) -> Self {
        // The tick that ends at time t is number t × hz; what is to happen at t happens in the one after.
        let tick = |t_s: f64| (t_s * scenario.tick_hz).floor() as u64 + 1;
        let timed = |cue: &Cue| match cue {
            Cue::At { t_s, run } => Timed {
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
                Timed {
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

    /// What could not be done: the first few in words, and how many in all.
    #[must_use]
    pub fn faults(&self) -> (&[String], u64) {
        (&self.faults, self.fault_count)
    }

    /// How many battles had no scene of their own, since as many as there may be were being fought.
    #[must_use]
    pub const fn battles_unseen(&self) -> u64 {
        self.battles_unseen
    }

    fn fault(&mut self, what: String) {
        warn!(what, "the script could not do this");
        self.fault_count += 1;
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(what);
        }
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
            if let Err(what) = perform(world, &action) {
                script.fault(format!("tick {tick}: {what}"));
            }
        }
        fight(world, &mut script, tick);
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
        Action::SetBehaviour { tag, behaviour } => set_behaviour(world, tag, behaviour),
        Action::Gather { tag, at } => set_behaviour(world, tag, &Behaviour::Gather { at: *at }),
        Action::Block { scene, rect_tiles } => {
            edit(world, scene.as_deref(), *rect_tiles, &TileEdit::Block)?
        }
        Action::Free { scene, rect_tiles } => {
            edit(world, scene.as_deref(), *rect_tiles, &TileEdit::Free)?
        }
        Action::Toggle { scene, rect_tiles } => {
            edit(world, scene.as_deref(), *rect_tiles, &TileEdit::Toggle)?
        }
        Action::Paint {
            scene,
            at_tile: (x, y),
            rows,
        } => {
            let pattern = TilePattern::from_ascii(&rows.join("\n")).map_err(|e| text(&e))?;
            let rect = TileRect::new(*x, *y, pattern.width(), pattern.height());
            edit(world, scene.as_deref(), rect, &TileEdit::Write(pattern))?;
        }
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
        Action::CloseScene { scene } => {
            let entity = named(world, Some(scene))?;
            close_scene(world, entity).map_err(|e| text(&e))?;
        }
        Action::ChangeScene { tag, count, to, at } => {
            let entity = named(world, Some(to))?;
            let place = world.resource::<Stage>().place(world, entity, at);
            let movers = crowd::members(world, tag, *count);
            let moved = crowd::change_scene_of(world, tag, *count, entity, &place);
            // Also when not all of them found room there.
            stage::give_caps(world, entity, &movers);
            moved.map_err(|e| text(&e))?;
        }
    }
    Ok(())
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

fn set_behaviour(world: &mut World, tag: &str, behaviour: &Behaviour) {
    let Some(scene) =
        scene_of(world, tag).or_else(|| world.resource::<Stage>().scene(world, None).ok())
    else {
        return;
    };
    let behaviour = world.resource::<Stage>().behaviour(world, scene, behaviour);
    crowd::set_behaviour_of(world, tag, &behaviour);
}

fn edit(
    world: &mut World,
    scene: Option<&str>,
    rect: TileRect,
    edit: &TileEdit,
) -> Result<(), String> {
    let scene = named(world, scene)?;
    edit_map(world, scene, rect, edit)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Matches whose queue has a battle scene are fought there for a while.
fn fight(world: &mut World, script: &mut ScenarioScript, tick: u64) {
    let over: Vec<Entity> = script
        .battles
        .extract_if(.., |battle| battle.ends <= tick)
        .map(|battle| battle.scene)
        .collect();
    for scene in over {
        // A script may have closed it before.
        let _ = close_scene(world, scene);
    }
    let formed = script.seen.read(world.resource::<Messages<MatchFormed>>());
    let formed: Vec<_> = formed.map(|message| message.found.clone()).collect();
    for found in formed {
        let names = world.resource::<Matchmaker>().names();
        let Some(mode) = names.get(usize::from(found.mode.0)).cloned() else {
            continue;
        };
        let stage = world.resource::<Stage>();
        let Some(queue) = stage
            .scenario
            .queues
            .iter()
            .find(|queue| queue.mode == mode)
            .cloned()
        else {
            continue;
        };
        if script.battles.len() >= BATTLES_MAX {
            script.battles_unseen += 1;
            continue;
        }
        match open_battle(world, &queue, &found) {
            Ok(Some(scene)) => {
                let hz = world.resource::<Stage>().scenario.tick_hz;
                script.battles.push(Battle {
                    scene,
                    ends: tick + (f64::from(queue.battle_s) * hz) as u64,
                });
            }
            Ok(None) => {}
            Err(what) => script.fault(format!("tick {tick}: battle {}: {what}", found.id)),
        }
    }
}

/// Opens the battle's scene, with every player of both groups in it.
fn open_battle(
    world: &mut World,
    queue: &Queue,
    found: &crate::matchmaking::Match,
) -> Result<Option<Entity>, String> {
    let Some(spec) = &queue.battle_scene else {
        return Ok(None);
    };
    let scene = stage::open(world, spec, Vec2::ONE).map_err(|error| error.to_string())?;
    if let Err(what) = place_fighters(world, scene, found) {
        // An arena without its fighters is of no use to anybody.
        let _ = close_scene(world, scene);
        return Err(what);
    }
    Ok(Some(scene))
}

fn place_fighters(
    world: &mut World,
    scene: Entity,
    found: &crate::matchmaking::Match,
) -> Result<(), String> {
    let kind = world
        .resource::<ObjectKinds>()
        .find("player")
        .unwrap_or_default();
    let stage = world.resource::<Stage>();
    let at = stage.place(world, scene, &super::schema::Area::default());
    let caps = stage.caps(scene);
    for (side, group) in (1..).zip(&found.groups) {
        let fighter = CrowdSpec {
            team: Some(TeamId(side)),
            behaviour: crowd::Behaviour::Chase {
                kind,
                sight_m: 15.0,
            },
            speed_m_s: 4.0,
            ..CrowdSpec::new("", kind, 1, scene, at)
        };
        let fighter = CrowdSpec {
            caps: caps.unwrap_or(fighter.caps),
            ..fighter
        };
        for player in group.iter().flat_map(|ticket| &ticket.members) {
            let player_id = crate::world::PlayerId(*player);
            spawn_individual(world, &fighter, *player, (Walker, player_id))
                .map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
