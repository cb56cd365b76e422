//! Match scenes: the scenes that queues open for their matches, and the behaviour of players in them.
//!
//! ```text
//! [instance]  scene opens ──▶ players of crowds are moved there and chase each other ──▶ home, unchanged
//!             └▶ characters for synthetic players, which also chase and leave at their queue's rate
//! ```
//! Scenes, transfers in both directions, and backfill requests belong to [`instance`](throng::instance); this module adds the
//! scenario's part.
//!
//! Invariants: a moved player keeps its object; only its team and its behaviour change during the match. No player is
//! in two matches, since no player has a seat in two instances.
//!
//! Limits: at most [`MATCH_SCENES_MAX`] matches have a scene at once, and with real players at most as many as
//! [`InstanceSettings`](throng::instance::InstanceSettings) allows. Further matches are counted and run without a scene; the
//! players stay where they are.
//!
//! Cost: O(players of the matches that start or end), and O(parties and players of crowds in matches) in a tick in which one
//! leaves or a match ends.

use std::collections::BTreeMap;

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use glam::Vec2;
use rand::Rng;

use super::scenario_world::{self, ScenarioWorld};
use super::schema::{ScenarioArea, ScenarioMatchMode};
use super::script::ScenarioScript;
use crate::crowd::{
    Behaviour, Chase, CrowdSpec, move_individual, send_home, set_behaviour, spawn_individual,
};
use throng::aoi::ViewCaps;
use throng::instance::{
    InstanceEnded, InstanceError, InstanceHost, InstanceId, InstanceModes, InstanceMoveFailed,
    InstanceOpened, InstancePartyJoined, InstancePlayerEntered, InstancePlayerLeft,
    InstancePlayerReturned, InstanceRefused, InstanceRules, InstanceStats, Instances, Leaver,
    PlayerHome, leave_instance,
};
use throng::matchmaking::{Match, Matchmaker, ModeId, Ticket, TicketParty, TicketPlayer};
use throng::memory::MemoryUse;
use throng::movement::Walker;
use throng::sim::{RandomStreams, SimTick, StateHasher};
use throng::world::{ObjectKinds, PlayerId, StateHashed, TeamId, WorldError, despawn_object};

/// Maximum number of match scenes at once, if no players are moved there; further matches run without a scene.
const MATCH_SCENES_MAX: usize = 64;

/// The perception range of fighters, metres.
const SIGHT_M: f32 = 15.0;

/// The walking speed of characters that exist for the match only, metres per second.
const SPEED_M_S: f32 = 4.0;

/// The scenario's own state of running matches.
#[derive(Resource, Debug, Default, MemoryUse)]
pub struct ScenarioMatches {
    stats: ScenarioMatchStats,
    /// The characters of synthetic players, by match.
    #[memory(each_value)]
    characters: BTreeMap<InstanceId, Vec<(TicketPlayer, Entity)>>,
    /// The state of players of crowds before their match, which is restored after it.
    saved_states: BTreeMap<PlayerId, (Option<TeamId>, Option<Behaviour>)>,
    /// Number of parties that are due to leave, per queue, as a fraction; below 1 after each tick.
    pending_leaves: Vec<f64>,
    /// Matches that run without a scene.
    without_scene: u64,
    cursors: MatchCursors,
}

/// Read positions of the messages of instances.
#[derive(Debug, Default, MemoryUse)]
struct MatchCursors {
    refused: MessageCursor<InstanceRefused>,
    move_failed: MessageCursor<InstanceMoveFailed>,
    returned: MessageCursor<InstancePlayerReturned>,
    left: MessageCursor<InstancePlayerLeft>,
    ended: MessageCursor<InstanceEnded>,
    opened: MessageCursor<InstanceOpened>,
    joined: MessageCursor<InstancePartyJoined>,
    entered: MessageCursor<InstancePlayerEntered>,
}

/// Match statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ScenarioMatchStats {
    /// Matches with a scene of their own.
    pub opened: u64,
    /// Matches without a scene, because of the limit.
    pub without_scene: u64,
    /// Players of crowds moved to a match.
    pub moved: u64,
    /// Players of crowds moved home after it.
    pub returned: u64,
    /// Players of crowds no longer in their match at its end: logged out, or removed by a script.
    pub missing: u64,
    /// Players who left their match.
    pub left: u64,
    /// Players who joined a running match.
    pub joined: u64,
}

impl ScenarioMatches {
    /// The statistics so far.
    #[must_use]
    pub const fn stats(&self) -> ScenarioMatchStats {
        self.stats
    }

    /// Adds the stored state of fighters to the state hash.
    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.saved_states.len() as u64);
        for (player, (team, behaviour)) in &self.saved_states {
            hasher.write_u64(player.0);
            hasher.write_u64(team.map_or(u64::MAX, |team| u64::from(team.0)));
            hasher.write_u64(u64::from(behaviour.is_some()));
            if let Some(behaviour) = behaviour {
                behaviour.hash(hasher);
            }
        }
        for (instance, bodies) in &self.characters {
            hasher.write_u64(instance.0);
            hasher.write_u64(bodies.len() as u64);
            for (player, _) in bodies {
                player.hash_state(&mut |word| hasher.write_u64(word));
            }
        }
        self.pending_leaves
            .iter()
            .for_each(|due| hasher.write_u64(due.to_bits()));
    }
}

/// Opens the scene of a queue's matches, and moves players of crowds there and back.
struct MatchHost {
    queue: ScenarioMatchMode,
}

impl InstanceHost for MatchHost {
    fn open(
        &self,
        world: &mut World,
        found: &Match,
        running: usize,
    ) -> Result<Entity, InstanceError> {
        let mut players = found.groups.iter().flatten().flat_map(|t| &t.members);
        let nobody_is_moved = players.all(|player| player.real().is_none());
        if nobody_is_moved && running >= MATCH_SCENES_MAX {
            return Err(InstanceError::Declined);
        }
        let scene = self.queue.match_scene.as_ref();
        let scene = scene.ok_or(InstanceError::Declined)?;
        scenario_world::open_single(world, scene, Vec2::ONE)
            .map_err(|error| InstanceError::Host(error.to_string()))
    }

    fn admit(
        &self,
        world: &mut World,
        scene: Entity,
        _: usize,
        player: Entity,
    ) -> Result<(), WorldError> {
        let at =
            world
                .resource::<ScenarioWorld>()
                .resolve_area(world, scene, &ScenarioArea::default());
        move_individual(world, player, scene, &at)
    }

    fn send_home(
        &self,
        world: &mut World,
        player: Entity,
        _: &PlayerHome,
    ) -> Result<(), WorldError> {
        send_home(world, player).map(drop)
    }
}

/// Registers a host for the matches of each queue that has a match scene.
pub(super) fn host_matches(world: &mut World) {
    let queues = world.resource::<ScenarioWorld>().scenario.queues.clone();
    for queue in queues {
        if queue.match_scene.is_none() {
            continue;
        }
        let rules = InstanceRules {
            duration_s: f64::from(queue.match_duration_s),
            seat_reserved_s: 0.0,
            backfill_attempts_max: 1,
            ends_when_empty: false,
            ..InstanceRules::default()
        };
        let mut modes = world.resource_mut::<InstanceModes>();
        modes.host(&queue.mode.clone(), rules, MatchHost { queue });
    }
}

/// Starts and ends matches, and replaces players who leave.
pub(super) fn run_matches(world: &mut World) {
    // Spawning and despawning runs observers, which may read the statistics, so a copy of these stays in the world.
    let mut resource = world.resource_mut::<ScenarioMatches>();
    let stats = resource.stats;
    let mut matches = std::mem::replace(
        &mut *resource,
        ScenarioMatches {
            stats,
            ..ScenarioMatches::default()
        },
    );
    let tick = world.resource::<SimTick>().0;
    let mut faults = collect_refusals(world, &mut matches);
    restore_returned_players(world, &mut matches, tick);
    faults.extend(start_fighting(world, &mut matches, tick));
    leave_matches(world, &mut matches);
    let InstanceStats {
        opened,
        entered,
        returned,
        lost,
        left,
        joined,
        ..
    } = *world.resource::<InstanceStats>();
    matches.stats = ScenarioMatchStats {
        opened,
        without_scene: matches.without_scene,
        moved: entered,
        returned,
        missing: lost,
        left,
        joined,
    };
    *world.resource_mut::<ScenarioMatches>() = matches;
    if let Some(mut script) = world.get_resource_mut::<ScenarioScript>() {
        let faults = faults.into_iter();
        faults.for_each(|what| script.add_error(tick, what));
    }
}

fn unread<M: Message + Clone>(world: &World, cursor: &mut MessageCursor<M>) -> Vec<M> {
    let messages = world.resource::<Messages<M>>();
    cursor.read(messages).cloned().collect()
}

/// Counts matches without a scene, and returns the errors of the others.
fn collect_refusals(world: &World, matches: &mut ScenarioMatches) -> Vec<String> {
    let mut faults = Vec::new();
    for refused in unread(world, &mut matches.cursors.refused) {
        match refused.error {
            InstanceError::TooMany { .. } | InstanceError::Declined => matches.without_scene += 1,
            error => faults.push(format!("match {}: {error}", refused.match_id)),
        }
    }
    for fault in unread(world, &mut matches.cursors.move_failed) {
        let (player, what) = (fault.player.0, fault.error);
        faults.push(match fault.is_returning {
            true => format!("player {player} was not moved back: {what}"),
            false => format!("player {player} was not moved in: {what}"),
        });
    }
    faults
}

/// Restores players who are home again, and drops the saved state of players that left.
fn restore_returned_players(world: &mut World, matches: &mut ScenarioMatches, tick: u64) {
    let left = unread(world, &mut matches.cursors.left);
    let ended = unread(world, &mut matches.cursors.ended);
    for InstancePlayerReturned { player, entity, .. } in
        unread(world, &mut matches.cursors.returned)
    {
        if let Some(scene) = scenario_world::scene_of(world, entity) {
            scenario_world::set_view_caps(world, scene, &[entity]);
        }
        let Some((team, behaviour)) = matches.saved_states.remove(&player) else {
            continue;
        };
        if let Some(behaviour) = behaviour {
            set_behaviour(world, entity, &behaviour, tick + 1);
        }
        set_team(world, entity, team);
    }
    for ended in &ended {
        // Their objects were despawned with the scene.
        matches.characters.remove(&ended.instance);
    }
    if !(left.is_empty() && ended.is_empty()) {
        // Not every player that left has a message: a player that loses its object in the tick in which its match ends is only
        // counted, and a player that could not be moved home is only in an error.
        let seats = world.resource::<Instances>();
        matches
            .saved_states
            .retain(|&player, _| seats.instance_of(player).is_some());
    }
}

/// Lets players who entered a match fight: players of crowds with their own object, synthetic players with a character that is
/// spawned for the match.
fn start_fighting(world: &mut World, matches: &mut ScenarioMatches, tick: u64) -> Vec<String> {
    let mut faults = Vec::new();
    for InstanceOpened { instance, .. } in unread(world, &mut matches.cursors.opened) {
        let running = world.resource::<Instances>().get(instance);
        let sides = running.map(|running| running.lineup().sides().clone());
        for (side, tickets) in sides.into_iter().flatten().enumerate() {
            for ticket in &tickets {
                faults.extend(spawn_characters(world, matches, instance, side, ticket));
            }
        }
    }
    for joined in unread(world, &mut matches.cursors.joined) {
        let InstancePartyJoined {
            instance,
            side,
            ticket,
        } = joined;
        faults.extend(spawn_characters(world, matches, instance, side, &ticket));
    }
    for entered in unread(world, &mut matches.cursors.entered) {
        let InstancePlayerEntered {
            player,
            entity,
            side,
            ..
        } = entered;
        let before = (
            world.get::<TeamId>(entity).copied(),
            world.get::<Behaviour>(entity).cloned(),
        );
        matches.saved_states.insert(player, before);
        if let Some(scene) = scenario_world::scene_of(world, entity) {
            scenario_world::set_view_caps(world, scene, &[entity]);
        }
        set_behaviour(world, entity, &chase_behaviour(world), tick + 1);
        set_team(world, entity, Some(team_of(side)));
    }
    faults
}

const fn team_of(side: usize) -> TeamId {
    TeamId(side as u32 + 1)
}

fn chase_behaviour(world: &World) -> Behaviour {
    let kind = world.resource::<ObjectKinds>().find("player");
    Behaviour::from(Chase {
        kind: kind.unwrap_or_default(),
        sight_m: SIGHT_M,
    })
}

/// Spawns characters for the synthetic players of a ticket in the scene of their match. Returns the first error, if any.
fn spawn_characters(
    world: &mut World,
    matches: &mut ScenarioMatches,
    instance: InstanceId,
    side: usize,
    ticket: &Ticket,
) -> Option<String> {
    let scene = world.resource::<Instances>().get(instance)?.scene();
    let (stage, behaviour) = (world.resource::<ScenarioWorld>(), chase_behaviour(world));
    let kind = world.resource::<ObjectKinds>().find("player");
    let at = stage.resolve_area(world, scene, &ScenarioArea::default());
    let body = CrowdSpec {
        team: Some(team_of(side)),
        behaviour,
        speed_m_s: SPEED_M_S,
        caps: stage.caps(scene).unwrap_or(ViewCaps {
            players: 0,
            npcs: 0,
            things: 0,
        }),
        ..CrowdSpec::new("", kind.unwrap_or_default(), 1, scene, at)
    };
    let mut fault = None;
    for &player in &ticket.members {
        let TicketPlayer::Synthetic(number) = player else {
            continue;
        };
        match spawn_individual(world, &body, number, Walker) {
            Ok(entity) => matches
                .characters
                .entry(instance)
                .or_default()
                .push((player, entity)),
            Err(error) => {
                fault.get_or_insert_with(|| format!("player {player} was not moved in: {error}"));
            }
        }
    }
    fault
}

/// Lets synthetic parties leave their matches, at the rate of each queue.
fn leave_matches(world: &mut World, matches: &mut ScenarioMatches) {
    let scenario = &world.resource::<ScenarioWorld>().scenario;
    let hz = scenario.tick_hz;
    let rates: Vec<(String, f64)> = scenario
        .queues
        .iter()
        .map(|queue| (queue.mode.clone(), f64::from(queue.leaves_per_s)))
        .collect();
    matches.pending_leaves.resize(rates.len(), 0.0);
    for (nth, (mode, per_s)) in rates.into_iter().enumerate() {
        matches.pending_leaves[nth] += per_s / hz;
        let Some(mode) = world.resource::<Matchmaker>().mode_by_name(&mode) else {
            continue;
        };
        while matches.pending_leaves[nth] >= 1.0 {
            matches.pending_leaves[nth] -= 1.0;
            if !leave_one_match(world, matches, mode) {
                matches.pending_leaves[nth] %= 1.0;
            }
        }
    }
}

/// Lets a random synthetic party of a mode leave its match; returns whether there was one.
fn leave_one_match(world: &mut World, matches: &mut ScenarioMatches, mode: ModeId) -> bool {
    let draw = world
        .resource_mut::<RandomStreams>()
        .stream("battles")
        .next_u64();
    let mut of_mode: Vec<(InstanceId, TicketParty)> = Vec::new();
    for (id, instance) in world.resource::<Instances>().iter() {
        if instance.lineup().mode() == mode {
            let parties = instance.lineup().sides().iter().flatten();
            let free = parties.filter(|ticket| ticket.party.real().is_none());
            of_mode.extend(free.map(|ticket| (id, ticket.party)));
        }
    }
    if of_mode.is_empty() {
        return false;
    }
    let (id, party) = of_mode[(draw % of_mode.len() as u64) as usize];
    let lineup = world.resource::<Instances>().get(id).map(|of| of.lineup());
    let parties = lineup
        .into_iter()
        .flat_map(|lineup| lineup.sides())
        .flatten();
    let leaving: Vec<TicketPlayer> = parties
        .filter(|ticket| ticket.party == party)
        .flat_map(|ticket| ticket.members.clone())
        .collect();
    if let Some(bodies) = matches.characters.get_mut(&id) {
        for (_, body) in bodies.extract_if(.., |(player, _)| leaving.contains(player)) {
            // An error means that a script has closed the scene, and so despawned the character.
            let _ = despawn_object(world, body);
        }
    }
    leave_instance(world, id, Leaver::Party(party))
}

fn set_team(world: &mut World, entity: Entity, team: Option<TeamId>) {
    let Ok(mut entity) = world.get_entity_mut(entity) else {
        return;
    };
    match team {
        Some(team) => entity.insert(team),
        None => entity.remove::<TeamId>(),
    };
}

#[cfg(test)]
mod tests {
    use super::super::load::LoadedScenario;
    use super::super::runner::{RunOptions, ScenarioRun};
    use super::*;

    /// In every tick, two players log out and two log in, so that some log out in the tick in which their match ends.
    const CHURN: &str = r#"Scenario(name: "churn", seed: 3,
        scenes: [Scene(name: "lobby", map: Generate(Rooms(width_tiles: 60, height_tiles: 60)))],
        crowds: [Crowd(tag: "guests", kind: "player", count: 24, behaviour: Wander(radius_m: 9))],
        queues: [Queue(mode: "duel", settings: Groups(group_size: 1), crowd_tag: "guests", match_duration_s: 0.2, requeue_delay_s: 0,
            match_scene: Scene(name: "arena", map: Generate(Rooms(width_tiles: 60, height_tiles: 60))))],
        script: [Every(t_s: 0.05, from_s: 1, run: Logout(tag: "guests", count: 2)),
            Every(t_s: 0.05, from_s: 1, run: Login(tag: "guests", count: 2))],
    )"#;

    #[test]
    fn saved_states_are_removed_after_the_match() {
        let loaded = LoadedScenario::from_text("churn.ron", CHURN).unwrap();
        let options = RunOptions {
            ticks: Some(200),
            ..RunOptions::default()
        };
        let mut run = ScenarioRun::new(loaded, options).unwrap();
        let mut remembered = 0;
        for _ in 0..199 {
            assert!(run.step().unwrap());
            let world = run.server().world();
            let seats = world.resource::<Instances>();
            let before = &world.resource::<ScenarioMatches>().saved_states;
            remembered += before.len();
            for player in before.keys() {
                assert!(
                    seats.instance_of(*player).is_some(),
                    "{player:?} has no seat"
                );
            }
        }
        let stats = *run.server().world().resource::<InstanceStats>();
        assert!(remembered > 0);
        assert!(stats.lost > 0 && stats.returned > 0, "{stats:?}");
    }

    #[test]
    fn match_states_are_in_the_state_hash() {
        let hash = |matches: &ScenarioMatches| {
            let mut hasher = StateHasher::default();
            matches.hash(&mut hasher);
            hasher.finish()
        };
        let fighters = [
            (None, None),
            (Some(TeamId(1)), None),
            (None, Some(crate::crowd::Idle.into())),
        ];
        let fighters = fighters.map(|fighter| ScenarioMatches {
            saved_states: BTreeMap::from([(PlayerId(1), fighter)]),
            ..ScenarioMatches::default()
        });
        let entity = Entity::PLACEHOLDER;
        let bodies = [1, 2].map(|player| ScenarioMatches {
            characters: BTreeMap::from([(
                InstanceId(1),
                vec![(TicketPlayer::Real(PlayerId(player)), entity)],
            )]),
            ..ScenarioMatches::default()
        });
        let due = ScenarioMatches {
            pending_leaves: vec![0.5],
            ..ScenarioMatches::default()
        };
        let nothing = ScenarioMatches::default();
        let all = fighters.iter().chain(&bodies).chain([&due, &nothing]);
        let hashes: std::collections::BTreeSet<_> = all.map(hash).collect();
        assert_eq!(hashes.len(), 7);
    }
}
