//! Battles: a scene opens for each match whose queue has one, its players go there, and back when it is over.
//!
//! ```text
//! MatchFormed ──▶ [fight] ──▶ scene opens ──▶ players of crowds change scene, tickets without a body are spawned
//! a player logs out, a party leaves ──▶ BackfillRequest ──▶ MatchFilled ──▶ who joins follows
//! battle_s over ──▶ players of crowds go home, as they were ──▶ scene closes
//! ```
//! Invariants: who is moved is the object that stood at home, with its session, its client and its attributes; only
//! its team and what it does are others while it fights. Nobody is in two battles, since nobody is in two matches.
//!
//! Limits: [`UNSEEN_FROM`] and [`BATTLES_MAX`] battles have a scene at once. Further ones are counted and fought
//! unseen, where everybody is.
//!
//! Cost: O(players of the battles that begin or end), and O(fighters) for a player that logs out.

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use glam::Vec2;
use rand::Rng;

use super::schema::{Area, Queue};
use super::script::ScenarioScript;
use super::stage::{self, Stage};
use crate::aoi::ViewCaps;
use crate::crowd::{
    Behaviour, Chase, CrowdSpec, FIRST_PLAYER, move_individual, send_home, set_behaviour,
    spawn_individual,
};
use crate::matchmaking::ticket::ROLES;
use crate::matchmaking::{
    Backfill, BackfillRequest, Match, MatchFilled, MatchFormed, Matchmaker, ModeId, Ticket,
};
use crate::movement::Walker;
use crate::session::LoggedOut;
use crate::sim::{RandomStreams, SimTick};
use crate::world::{Object, ObjectKinds, PlayerId, Players, TeamId, close_scene, despawn_object};

/// Battles that have a scene at once, when nobody is to be moved there; further ones are fought unseen.
const UNSEEN_FROM: usize = 64;

/// Battles that have a scene at once, whoever fights.
const BATTLES_MAX: usize = 1024;

/// How far fighters look for each other, metres.
const SIGHT_M: f32 = 15.0;

/// How fast those walk who are there for the battle alone, metres a second.
const SPEED_M_S: f32 = 4.0;

/// The battles that are fought.
#[derive(Resource, Debug, Default)]
pub struct Battles {
    running: Vec<Battle>,
    stats: BattlesStats,
    /// Matches and sides for which players were asked, in that order.
    asked: Vec<(u64, usize)>,
    /// Parties that are due to leave, a queue; below 1 after each tick.
    leaving: Vec<f64>,
    formed: MessageCursor<MatchFormed>,
    filled: MessageCursor<MatchFilled>,
    logged_out: MessageCursor<LoggedOut>,
}

/// What became of battles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct BattlesStats {
    /// Battles that had a scene of their own.
    pub opened: u64,
    /// Battles without one, since as many as there may be were being fought.
    pub unseen: u64,
    /// Players of crowds who were moved to a battle.
    pub moved: u64,
    /// Those of them who were moved home after it.
    pub returned: u64,
    /// Those of them who were in it no more when it was over: they had logged out, or a script took them away.
    pub lost: u64,
    /// Players who left their battle.
    pub left: u64,
    /// Players who joined a running battle.
    pub joined: u64,
}

#[derive(Debug)]
struct Battle {
    id: u64,
    mode: ModeId,
    scene: Entity,
    ends: u64,
    groups: [Vec<Ticket>; 2],
    fighters: Vec<Fighter>,
}

#[derive(Debug)]
struct Fighter {
    player: u64,
    entity: Entity,
    /// What it was before; `None` for those who are there for the battle alone.
    before: Option<(Option<TeamId>, Option<Behaviour>)>,
}

impl Battles {
    /// What became of battles so far.
    #[must_use]
    pub const fn stats(&self) -> BattlesStats {
        self.stats
    }

    /// Players of crowds who are in a battle: moved = returned + lost + these. O(fighters).
    #[must_use]
    pub fn fighting(&self) -> u64 {
        let fighters = self.running.iter().flat_map(|battle| &battle.fighters);
        fighters.filter(|fighter| fighter.before.is_some()).count() as u64
    }
}

impl Battle {
    /// What a side lacks now that these are gone from it.
    fn backfill(&self, side: usize, missing: u8, power: u64, roles: [u8; ROLES]) -> Backfill {
        let of = |group: &[Ticket]| -> Vec<u64> {
            let members = group.iter().flat_map(|ticket| &ticket.members);
            members.copied().collect()
        };
        let all = || self.groups.iter().flatten();
        let count = all().count().max(1) as i64;
        let skill = all().map(|ticket| i64::from(ticket.skill)).sum::<i64>() / count;
        let level = all().map(|ticket| i64::from(ticket.level)).sum::<i64>() / count;
        let wishes = || all().filter_map(|ticket| ticket.wishes.as_deref());
        let places = wishes().filter(|wishes| wishes.regions != 0);
        let opponents = of(&self.groups[1 - side]);
        Backfill {
            missing,
            skill: skill as i32,
            level: level as u16,
            regions: places
                .map(|wishes| wishes.regions)
                .reduce(|one, other| one & other)
                .unwrap_or(0),
            players: [of(&self.groups[side]), opponents.clone()].concat(),
            opponents,
            avoid: wishes().flat_map(|wishes| wishes.avoid.clone()).collect(),
            roles,
            power: Some(power),
        }
    }
}

/// Battles begin and end, and whoever leaves one is replaced.
pub(super) fn fight(world: &mut World) {
    world.resource_scope(|world, mut battles: Mut<Battles>| {
        let tick = world.resource::<SimTick>().0;
        let mut faults = fill(world, &mut battles);
        faults.extend(end(world, &mut battles, tick));
        faults.extend(begin(world, &mut battles, tick));
        log_out(world, &mut battles);
        leave(world, &mut battles);
        if let Some(mut script) = world.get_resource_mut::<ScenarioScript>() {
            let told = faults.into_iter();
            told.for_each(|what| script.fault(format!("tick {tick}: {what}")));
        }
    });
}

/// Whoever joined a running match follows the others.
fn fill(world: &mut World, battles: &mut Battles) -> Vec<String> {
    let filled = battles
        .filled
        .read(world.resource::<Messages<MatchFilled>>());
    let filled: Vec<MatchFilled> = filled.cloned().collect();
    let mut faults = Vec::new();
    for MatchFilled { id, joined } in filled {
        // Others may ask for players, too.
        let Some(asked) = battles.asked.iter().position(|asked| asked.0 == id) else {
            continue;
        };
        let (_, side) = battles.asked.remove(asked);
        let Some(battle) = battles.running.iter_mut().find(|battle| battle.id == id) else {
            continue;
        };
        for ticket in joined {
            let moved = enter(world, battle, side, &ticket);
            battles.stats.joined += u64::from(ticket.size);
            battles.stats.moved += moved.0;
            faults.extend(moved.1);
            battle.groups[side].push(ticket);
        }
    }
    faults
}

/// Battles whose time is over end: players of crowds go home, the scene closes with the others.
fn end(world: &mut World, battles: &mut Battles, tick: u64) -> Vec<String> {
    let over = battles
        .running
        .extract_if(.., |battle| battle.ends <= tick)
        .collect::<Vec<_>>();
    let mut faults = Vec::new();
    for battle in over {
        for fighter in battle.fighters {
            let Some((team, behaviour)) = fighter.before else {
                continue;
            };
            let here = world.get::<Object>(fighter.entity);
            if here.is_none_or(|object| object.scene_entity() != battle.scene) {
                battles.stats.lost += 1;
                continue;
            }
            match send_home(world, fighter.entity) {
                Ok(home) => stage::give_caps(world, home, &[fighter.entity]),
                Err(error) => {
                    faults.push(format!("player {} is not home: {error}", fighter.player));
                    battles.stats.lost += 1;
                    continue;
                }
            }
            battles.stats.returned += 1;
            if let Some(behaviour) = behaviour {
                set_behaviour(world, fighter.entity, &behaviour, tick + 1);
            }
            set_team(world, fighter.entity, team);
        }
        // A script may have closed it before.
        let _ = close_scene(world, battle.scene);
    }
    faults
}

/// Matches whose queue has a battle scene begin.
fn begin(world: &mut World, battles: &mut Battles, tick: u64) -> Vec<String> {
    let formed = battles
        .formed
        .read(world.resource::<Messages<MatchFormed>>());
    let formed: Vec<Match> = formed.map(|message| message.found.clone()).collect();
    let mut faults = Vec::new();
    for found in formed {
        let Some(queue) = queue_of(world, found.mode) else {
            continue;
        };
        if queue.battle_scene.is_none() {
            continue;
        }
        let mut players = found.groups.iter().flatten().flat_map(|t| &t.members);
        let limit = match players.any(|&player| player < FIRST_PLAYER) {
            true => BATTLES_MAX,
            false => UNSEEN_FROM,
        };
        if battles.running.len() >= limit {
            battles.stats.unseen += 1;
            continue;
        }
        let id = found.id;
        if let Err(what) = open(world, battles, &queue, found, tick) {
            faults.push(format!("battle {id}: {what}"));
        }
    }
    faults
}

/// Opens a battle's scene, and lets every player of both groups in.
fn open(
    world: &mut World,
    battles: &mut Battles,
    queue: &Queue,
    found: Match,
    tick: u64,
) -> Result<(), String> {
    let Some(spec) = &queue.battle_scene else {
        return Ok(());
    };
    let scene = stage::open(world, spec, Vec2::ONE).map_err(|error| error.to_string())?;
    let hz = world.resource::<Stage>().scenario.tick_hz;
    let mut battle = Battle {
        id: found.id,
        mode: found.mode,
        scene,
        ends: tick + (f64::from(queue.battle_s) * hz) as u64,
        groups: found.groups.clone(),
        fighters: Vec::new(),
    };
    let mut fault = None;
    for (side, group) in found.groups.iter().enumerate() {
        for ticket in group {
            let (moved, what) = enter(world, &mut battle, side, ticket);
            battles.stats.moved += moved;
            fault = fault.or(what);
        }
    }
    battles.stats.opened += 1;
    // Whoever could not be let in is missed in the battle, but those who are there fight, and go home after it.
    battles.running.push(battle);
    fault.map_or(Ok(()), Err)
}

/// Lets the players of a ticket into the scene of their battle. How many were moved there, and the first who could
/// not be.
fn enter(
    world: &mut World,
    battle: &mut Battle,
    side: usize,
    ticket: &Ticket,
) -> (u64, Option<String>) {
    let kind = world.resource::<ObjectKinds>().find("player");
    let kind = kind.unwrap_or_default();
    let (stage, scene) = (world.resource::<Stage>(), battle.scene);
    let at = stage.place(world, scene, &Area::default());
    let chase = Behaviour::from(Chase {
        kind,
        sight_m: SIGHT_M,
    });
    let team = Some(TeamId(side as u32 + 1));
    let body = CrowdSpec {
        team,
        behaviour: chase.clone(),
        speed_m_s: SPEED_M_S,
        caps: stage.caps(scene).unwrap_or(ViewCaps {
            players: 0,
            npcs: 0,
            things: 0,
        }),
        ..CrowdSpec::new("", kind, 1, scene, at)
    };
    let tick = world.resource::<SimTick>().0;
    let (mut moved, mut fault) = (0, None);
    for &player in &ticket.members {
        let entered = if player >= FIRST_PLAYER {
            spawn_individual(world, &body, player, (Walker, PlayerId(player)))
                .map(|entity| (entity, None))
        } else {
            // Who has logged out since the match was made is missing; the log-out is seen to below.
            let Some(entity) = world.resource::<Players>().entity(PlayerId(player)) else {
                continue;
            };
            let before = (
                world.get::<TeamId>(entity).copied(),
                world.get::<Behaviour>(entity).cloned(),
            );
            move_individual(world, entity, scene, &at).map(|()| {
                stage::give_caps(world, scene, &[entity]);
                set_behaviour(world, entity, &chase, tick + 1);
                set_team(world, entity, team);
                moved += 1;
                (entity, Some(before))
            })
        };
        match entered {
            Ok((entity, before)) => battle.fighters.push(Fighter {
                player,
                entity,
                before,
            }),
            Err(error) => {
                fault.get_or_insert_with(|| format!("player {player} stays out: {error}"));
            }
        }
    }
    (moved, fault)
}

/// Players who logged out are missing where they fought.
fn log_out(world: &mut World, battles: &mut Battles) {
    let gone = battles
        .logged_out
        .read(world.resource::<Messages<LoggedOut>>());
    let gone: Vec<u64> = gone.map(|logged_out| logged_out.player.0).collect();
    for player in gone {
        let of_player = |ticket: &Ticket| ticket.members.contains(&player);
        let found = battles.running.iter_mut().find_map(|battle| {
            let in_group = |side: usize| battle.groups[side].iter().position(of_player);
            let (side, nth) =
                in_group(0).map_or_else(|| in_group(1).map(|at| (1, at)), |at| Some((0, at)))?;
            Some((battle, side, nth))
        });
        let Some((battle, side, nth)) = found else {
            continue;
        };
        let gone = |fighter: &mut Fighter| fighter.player == player;
        battles.stats.lost += battle.fighters.extract_if(.., gone).count() as u64;
        let ticket = &mut battle.groups[side][nth];
        let power = ticket.power / u32::from(ticket.size.max(1));
        ticket.members.retain(|&mut member| member != player);
        ticket.size = ticket.members.len() as u8;
        ticket.power -= power;
        if ticket.members.is_empty() {
            battle.groups[side].remove(nth);
        }
        battles.stats.left += 1;
        // Which role it played is known of its party only.
        let wanted = battle.backfill(side, 1, u64::from(power), [0; ROLES]);
        let (id, mode) = (battle.id, battle.mode);
        battles.asked.push((id, side));
        world.write_message(BackfillRequest { id, mode, wanted });
    }
}

/// Parties without a home leave their battles at each queue's rate.
fn leave(world: &mut World, battles: &mut Battles) {
    let scenario = &world.resource::<Stage>().scenario;
    let hz = scenario.tick_hz;
    let rates: Vec<(String, f64)> = scenario
        .queues
        .iter()
        .map(|queue| (queue.mode.clone(), f64::from(queue.leaves_per_s)))
        .collect();
    battles.leaving.resize(rates.len(), 0.0);
    for (nth, (mode, per_s)) in rates.into_iter().enumerate() {
        battles.leaving[nth] += per_s / hz;
        let Some(mode) = world.resource::<Matchmaker>().mode_named(&mode) else {
            continue;
        };
        while battles.leaving[nth] >= 1.0 {
            battles.leaving[nth] -= 1.0;
            if !leave_one(world, battles, mode) {
                battles.leaving[nth] %= 1.0;
            }
        }
    }
}

/// A random party of a mode that has no home leaves its battle; whether there is one.
fn leave_one(world: &mut World, battles: &mut Battles, mode: ModeId) -> bool {
    let draw = world
        .resource_mut::<RandomStreams>()
        .stream("battles")
        .next_u64();
    let mut of_mode: Vec<(usize, usize, usize)> = Vec::new();
    for (at, battle) in battles.running.iter().enumerate() {
        for (side, group) in battle.groups.iter().enumerate() {
            let is_free = |ticket: &Ticket| ticket.members.iter().all(|&p| p >= FIRST_PLAYER);
            let free = (0..group.len()).filter(|&nth| is_free(&group[nth]));
            of_mode.extend(
                free.filter(|_| battle.mode == mode)
                    .map(|nth| (at, side, nth)),
            );
        }
    }
    if of_mode.is_empty() {
        return false;
    }
    let (at, side, nth) = of_mode[(draw % of_mode.len() as u64) as usize];
    let battle = &mut battles.running[at];
    let ticket = battle.groups[side].remove(nth);
    let gone = |fighter: &mut Fighter| ticket.members.contains(&fighter.player);
    for fighter in battle.fighters.extract_if(.., gone) {
        // It is gone when a script has closed its scene.
        let _ = despawn_object(world, fighter.entity);
    }
    battles.stats.left += u64::from(ticket.size);
    let roles = ticket
        .wishes
        .as_ref()
        .map_or([0; ROLES], |wishes| wishes.roles);
    let wanted = battle.backfill(side, ticket.size, u64::from(ticket.power), roles);
    let id = battle.id;
    battles.asked.push((id, side));
    world.write_message(BackfillRequest { id, mode, wanted });
    true
}

fn set_team(world: &mut World, entity: Entity, team: Option<TeamId>) {
    match team {
        Some(team) => world.entity_mut(entity).insert(team),
        None => world.entity_mut(entity).remove::<TeamId>(),
    };
}

/// The queue of a mode; those of the settings have none.
fn queue_of(world: &World, mode: ModeId) -> Option<Queue> {
    let names = world.resource::<Matchmaker>().names();
    let name = names.get(usize::from(mode.0))?;
    let queues = &world.resource::<Stage>().scenario.queues;
    queues.iter().find(|queue| queue.mode == *name).cloned()
}
