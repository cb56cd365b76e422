//! A tick of the instances: parties join, instances end and open; then the seats are checked.

use std::sync::Arc;

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use tracing::{debug, warn};

use super::host::{InstanceHost, InstanceModes};
use super::instances::{Instance, InstanceSettings, InstanceStats, Instances, SeatState};
use super::messages::{
    EndInstanceRequest, EndReason, InstanceEnded, InstanceError, InstanceId, InstanceOpened,
    InstancePartyJoined, InstanceRefused, LeaveInstanceRequest, Leaver,
};
use super::seats::{
    InstanceContext, assign_seat, check_seats, instance_mut, instances_mut, real_players,
    remove_leaver, request_backfills, return_player,
};
use crate::instance::lineup::Lineup;
use crate::instance::rules::InstanceRules;
use crate::matchmaking::{
    BackfillResult, Match, MatchFormed, Matchmaker, QueueRequest, Ticket, tick_rate_millihertz,
};
use crate::sim::SimTick;
use crate::world::{PlayerId, SimScene, WorldError, close_scene};

/// The read positions of the messages that instances follow.
#[derive(Default)]
pub(super) struct Cursors {
    formed: MessageCursor<MatchFormed>,
    filled: MessageCursor<BackfillResult>,
    end: MessageCursor<EndInstanceRequest>,
    leave: MessageCursor<LeaveInstanceRequest>,
}

/// Whether there is anything to do: a mode has a host, or an instance still runs.
pub(super) fn is_used(modes: Res<InstanceModes>, instances: Res<Instances>) -> bool {
    !modes.is_empty() || !instances.is_empty()
}

/// Runs all steps of a tick.
///
/// `Instances` stays in the world throughout: hosts and observers of spawned and despawned objects may read it, or end an instance.
pub(super) fn run_instances(world: &mut World, mut cursors: Local<Cursors>) {
    let filled = unread(world, &mut cursors.filled);
    let formed = unread(world, &mut cursors.formed);
    let end = unread(world, &mut cursors.end);
    let leave = unread(world, &mut cursors.leave);
    let tick = world.resource::<SimTick>().0;
    for filled in filled {
        apply_backfill(world, filled, tick);
    }
    end_finished(world, &end, tick);
    queue_matches(world, formed);
    open_pending(world, tick);
    check_seats(world, tick);
    for LeaveInstanceRequest { instance, leaver } in leave {
        remove_leaver(world, instance, leaver, tick);
    }
    request_backfills(world, tick);
    let running = instances_mut(world).running.len();
    let mut stats = world.resource_mut::<InstanceStats>();
    stats.peak = stats.peak.max(running);
}

fn unread<M: Message + Clone>(world: &World, cursor: &mut MessageCursor<M>) -> Vec<M> {
    let messages = world.get_resource::<Messages<M>>();
    messages.map_or_else(Vec::new, |messages| {
        cursor.read(messages).cloned().collect()
    })
}

/// Ends an instance now, like an [`EndInstanceRequest`]; returns whether it ran. O(players of it).
pub fn end_instance(world: &mut World, instance: InstanceId) -> bool {
    if !world.contains_resource::<Instances>() {
        return false;
    }
    let Some(over) = instances_mut(world).running.remove(&instance) else {
        return false;
    };
    close(world, instance, over, EndReason::Requested);
    true
}

/// Removes a player or a party from an instance now, like a [`LeaveInstanceRequest`]; returns whether it was in it. Replacements are
/// requested at once, unless the match waits for a reply already, so that they can be found in the same
/// tick's heartbeat. O(players of it).
pub fn leave_instance(world: &mut World, instance: InstanceId, leaver: Leaver) -> bool {
    if !world.contains_resource::<Instances>() {
        return false;
    }
    let tick = world.resource::<SimTick>().0;
    let left = remove_leaver(world, instance, leaver, tick);
    request_backfills(world, tick);
    left
}

/// Adds parties that were found for a running match to it.
fn apply_backfill(world: &mut World, filled: BackfillResult, tick: u64) {
    let BackfillResult {
        id,
        group,
        tickets: joined,
        ..
    } = filled;
    if instances_mut(world).take_orphaned_reply(id) {
        return requeue(world, joined);
    }
    let of_match = |(_, instance): &(InstanceId, &Instance)| instance.match_id == id;
    let Some((id, instance)) = world.resource::<Instances>().iter().find(of_match) else {
        return;
    };
    // The replies come in the order of the requests.
    let questions = instance.vacancies.iter().enumerate();
    let of_side = questions.filter(|(_, vacancy)| vacancy.vacancy.side == group);
    let asked = of_side.filter_map(|(at, vacancy)| Some((vacancy.request_id?, at)));
    // Other code may request backfills, too.
    let Some((_, at)) = asked.min() else {
        return;
    };
    let has_scene = world.get::<SimScene>(instance.scene).is_some();
    let Some(mut instance) = instance_mut(world, id) else {
        return;
    };
    if !has_scene {
        instance.vacancies.remove(at);
        return requeue(world, joined);
    }
    if joined.is_empty() {
        let (tries_max, every) = (
            instance.rules.backfill_attempts_max,
            instance.rules.backfill_interval,
        );
        let vacancy = &mut instance.vacancies[at];
        if vacancy.attempts >= tries_max {
            instance.vacancies.remove(at);
            world.resource_mut::<InstanceStats>().backfills_unfilled += 1;
        } else {
            vacancy.request_id = None;
            vacancy.next_tick = tick.saturating_add(every);
        }
        return;
    }
    let side = instance.vacancies.remove(at).vacancy.side;
    for ticket in joined {
        world.resource_mut::<InstanceStats>().joined += u64::from(ticket.size);
        world.write_message(InstancePartyJoined {
            instance: id,
            side,
            ticket: ticket.clone(),
        });
        let players: Vec<PlayerId> = real_players(&ticket).collect();
        if let Some(mut instance) = instance_mut(world, id) {
            instance.lineup.join(side, ticket);
        }
        for player in players {
            assign_seat(world, id, player, side, tick);
        }
    }
}

/// Queues parties again that were found for a match that has ended; they keep their waiting time.
fn requeue(world: &mut World, joined: Vec<Ticket>) {
    for ticket in joined {
        world.write_message(QueueRequest { ticket });
    }
}

/// Ends instances whose time is over, that are empty or closed, or whose end was requested.
fn end_finished(world: &mut World, asked: &[EndInstanceRequest], tick: u64) {
    let why = |id: InstanceId, instance: &Instance| {
        if world.get::<SimScene>(instance.scene).is_none() {
            Some(EndReason::SceneClosed)
        } else if asked.contains(&EndInstanceRequest { instance: id }) {
            Some(EndReason::Requested)
        } else if instance.ends_tick <= tick {
            Some(EndReason::TimeLimit)
        } else {
            let empty = instance.rules.ends_when_empty && instance.seats.is_empty();
            empty.then_some(EndReason::Empty)
        }
    };
    let due = world.resource::<Instances>().iter();
    let due = due.filter_map(|(id, instance)| Some((id, why(id, instance)?)));
    let due: Vec<(InstanceId, EndReason)> = due.collect();
    for (id, reason) in due {
        // An observer of one that ends may have ended the next.
        let over = instances_mut(world).running.remove(&id);
        if let Some(over) = over {
            close(world, id, over, reason);
        }
    }
}

/// Moves all players of an ended instance home and closes its scene.
fn close(world: &mut World, id: InstanceId, over: Instance, reason: EndReason) {
    let mut instances = instances_mut(world);
    for seat in &over.seats {
        instances.instance_by_player.remove(&seat.player);
    }
    let due = over.vacancies.iter().filter(|one| one.request_id.is_some());
    instances.expect_replies(over.match_id, due.count());
    let stage = InstanceContext::of(id, &over);
    for seat in &over.seats {
        if let SeatState::Inside { entity, home } = seat.state {
            return_player(world, &stage, seat.player, entity, &home);
        }
    }
    // Other code may have closed it before.
    let _ = close_scene(world, over.scene);
    world.resource_mut::<InstanceStats>().ended += 1;
    world.write_message(InstanceEnded {
        instance: id,
        match_id: over.match_id,
        scene: over.scene,
        reason,
    });
}

/// Queues matches of hosted modes for their scene, up to the limit of instances.
fn queue_matches(world: &mut World, formed: Vec<MatchFormed>) {
    let max = world.resource::<InstanceSettings>().instances_max;
    for MatchFormed {
        match_info: found, ..
    } in formed
    {
        if host_of(world, &found).is_none() {
            continue;
        }
        let mut instances = instances_mut(world);
        if instances.running.len() + instances.pending.len() >= max as usize {
            refuse(world, &found, InstanceError::TooMany { max });
        } else {
            instances.pending.push_back(found);
        }
    }
}

/// Warns about hosts of modes that are not open when the app has started: they never get a match. Usually a typing error.
pub(super) fn warn_unknown_modes(hosts: Res<InstanceModes>, matchmaker: Res<Matchmaker>) {
    let open = matchmaker.names();
    for mode in hosts.names() {
        if !open.iter().any(|open| open == mode) {
            warn!(
                mode,
                modes = ?open,
                "instance mode unknown to matchmaking: check its spelling in `InstanceModes`"
            );
        }
    }
}

/// The rules and the host of a match, if its mode has a host.
fn host_of(world: &World, found: &Match) -> Option<(InstanceRules, Arc<dyn InstanceHost>)> {
    let names = world.get_resource::<Matchmaker>()?.names();
    let name = names.get(usize::from(found.mode.0))?;
    world.resource::<InstanceModes>().get(name)
}

fn refuse(world: &mut World, found: &Match, error: InstanceError) {
    debug!(match_id = found.id, %error, "instance not opened: match refused");
    world.resource_mut::<InstanceStats>().refused += 1;
    world.write_message(InstanceRefused {
        match_id: found.id,
        mode: found.mode,
        error,
    });
}

/// Opens the scenes of as many matches as allowed per tick, and moves their players in.
fn open_pending(world: &mut World, tick: u64) {
    for _ in 0..world.resource::<InstanceSettings>().opened_per_tick_max {
        let Some(found) = instances_mut(world).pending.pop_front() else {
            break;
        };
        let Some((rules, host)) = host_of(world, &found) else {
            refuse(world, &found, InstanceError::Declined);
            continue;
        };
        let running = world.resource::<Instances>().len();
        let opened = host.open(world, &found, running);
        let scene = opened.and_then(|scene| {
            let opened = world.get::<SimScene>(scene).map(SimScene::id);
            Ok((scene, opened.ok_or(WorldError::NoSuchScene { scene })?))
        });
        let (scene, scene_id) = match scene {
            Ok(scene) => scene,
            Err(error) => {
                refuse(world, &found, error);
                continue;
            }
        };
        let tick_mhz = world
            .get_resource::<Time<Fixed>>()
            .map_or(1, tick_rate_millihertz);
        let rules = rules.in_ticks(tick_mhz);
        let instance = Instance {
            match_id: found.id,
            lineup: Lineup::new(found.mode, found.groups.clone()),
            scene,
            scene_id,
            ends_tick: tick.saturating_add(rules.duration),
            rules,
            host,
            seats: Vec::new(),
            vacancies: Vec::new(),
        };
        let mut instances = instances_mut(world);
        let id = InstanceId(instances.next_id);
        instances.next_id += 1;
        instances.running.insert(id, instance);
        world.resource_mut::<InstanceStats>().opened += 1;
        world.write_message(InstanceOpened {
            instance: id,
            match_id: found.id,
            mode: found.mode,
            scene,
        });
        for (side, group) in found.groups.iter().enumerate() {
            for player in group.iter().flat_map(real_players) {
                assign_seat(world, id, player, side, tick);
            }
        }
    }
}
