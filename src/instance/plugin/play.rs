//! A tick of the instances: players join, instances end and open, players leave and return, backfill is requested.

use std::sync::Arc;

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use tracing::{debug, warn};

use super::host::{InstanceHost, InstanceModes, PlayerHome};
use super::instances::{Instance, InstanceSettings, InstanceStats, Instances, Seat, SeatState};
use super::messages::{
    DepartureReason, EndReason, EndRequest, InstanceEnded, InstanceError, InstanceFault,
    InstanceId, InstanceOpened, InstanceRefused, LeaveRequest, Leaver, MemberLeft, PartyJoined,
    PlayerEntered, PlayerLeft, PlayerReturned, PlayerSeatedElsewhere,
};
use crate::instance::lineup::{Lineup, Vacancy};
use crate::instance::rules::InstanceRules;
use crate::matchmaking::{
    BackfillRequest, Match, MatchFilled, MatchFormed, Matchmaker, QueueRequest, Ticket,
    TicketPlayer, tick_mhz,
};
use crate::sim::SimTick;
use crate::world::{
    Object, PlayerId, Players, Position, Scene, WorldError, close_scene, despawn_object,
};

/// What was read of the messages that instances follow.
#[derive(Default)]
pub(super) struct Cursors {
    formed: MessageCursor<MatchFormed>,
    filled: MessageCursor<MatchFilled>,
    end: MessageCursor<EndRequest>,
    leave: MessageCursor<LeaveRequest>,
}

/// Whether there is anything to do: a mode is hosted, or an instance of one that was is not over.
pub(super) fn is_used(modes: Res<InstanceModes>, instances: Res<Instances>) -> bool {
    !modes.is_empty() || !instances.is_empty()
}

/// All that instances do in a tick.
///
/// `Instances` stays in the world throughout: hosts and the observers of objects that come and go may read it, or end an instance.
pub(super) fn run_instances(world: &mut World, mut cursors: Local<Cursors>) {
    let filled = unread(world, &mut cursors.filled);
    let formed = unread(world, &mut cursors.formed);
    let end = unread(world, &mut cursors.end);
    let leave = unread(world, &mut cursors.leave);
    let tick = world.resource::<SimTick>().0;
    for filled in filled {
        join(world, filled, tick);
    }
    end_due(world, &end, tick);
    await_scenes(world, formed);
    open_pending(world, tick);
    watch_seats(world, tick);
    for LeaveRequest { instance, leaver } in leave {
        take_out(world, instance, leaver, tick);
    }
    ask_for_players(world, tick);
    let running = instances(world).running.len();
    let mut stats = world.resource_mut::<InstanceStats>();
    stats.peak = stats.peak.max(running);
}

fn instances(world: &mut World) -> Mut<'_, Instances> {
    world.resource_mut::<Instances>()
}

/// An instance that runs.
fn running(world: &mut World, id: InstanceId) -> Option<Mut<'_, Instance>> {
    instances(world).filter_map_unchanged(|instances| instances.running.get_mut(&id))
}

fn unread<M: Message + Clone>(world: &World, cursor: &mut MessageCursor<M>) -> Vec<M> {
    let messages = world.get_resource::<Messages<M>>();
    messages.map_or_else(Vec::new, |messages| {
        cursor.read(messages).cloned().collect()
    })
}

/// Ends an instance now, as an [`EndRequest`] does; whether it ran. O(players of it).
pub fn end_instance(world: &mut World, instance: InstanceId) -> bool {
    if !world.contains_resource::<Instances>() {
        return false;
    }
    let Some(over) = instances(world).running.remove(&instance) else {
        return false;
    };
    close(world, instance, over, EndReason::Requested);
    true
}

/// Takes a player or a party out of an instance now, as a [`LeaveRequest`] does; whether it was in it. Others are
/// asked to join in its place at once, unless the match waits for an answer already, so that they can be found in the same
/// tick's heartbeat. O(players of it).
pub fn leave_instance(world: &mut World, instance: InstanceId, leaver: Leaver) -> bool {
    if !world.contains_resource::<Instances>() {
        return false;
    }
    let tick = world.resource::<SimTick>().0;
    let left = take_out(world, instance, leaver, tick);
    ask_for_players(world, tick);
    left
}

/// Parties that were found for a running match join it.
fn join(world: &mut World, filled: MatchFilled, tick: u64) {
    let MatchFilled {
        id, group, joined, ..
    } = filled;
    if instances(world).answer_of_ended(id) {
        return queue_again(world, joined);
    }
    let of_match = |(_, instance): &(InstanceId, &Instance)| instance.match_id == id;
    let Some((id, instance)) = world.resource::<Instances>().iter().find(of_match) else {
        return;
    };
    // The answers come in the order of the questions.
    let questions = instance.vacancies.iter().enumerate();
    let of_side = questions.filter(|(_, vacancy)| vacancy.vacancy.side == group);
    let asked = of_side.filter_map(|(at, vacancy)| Some((vacancy.asked?, at)));
    // Others may ask for players, too.
    let Some((_, at)) = asked.min() else {
        return;
    };
    let has_scene = world.get::<Scene>(instance.scene).is_some();
    let Some(mut instance) = running(world, id) else {
        return;
    };
    if !has_scene {
        instance.vacancies.remove(at);
        return queue_again(world, joined);
    }
    if joined.is_empty() {
        let (tries_max, every) = (
            instance.rules.backfill_tries_max,
            instance.rules.backfill_every,
        );
        let vacancy = &mut instance.vacancies[at];
        if vacancy.tries >= tries_max {
            instance.vacancies.remove(at);
            world.resource_mut::<InstanceStats>().backfills_unfilled += 1;
        } else {
            vacancy.asked = None;
            vacancy.next_tick = tick.saturating_add(every);
        }
        return;
    }
    let side = instance.vacancies.remove(at).vacancy.side;
    for ticket in joined {
        world.resource_mut::<InstanceStats>().joined += u64::from(ticket.size);
        world.write_message(PartyJoined {
            instance: id,
            side,
            ticket: ticket.clone(),
        });
        let players: Vec<PlayerId> = real_players(&ticket).collect();
        if let Some(mut instance) = running(world, id) {
            instance.lineup.join(side, ticket);
        }
        for player in players {
            take_seat(world, id, player, side, tick);
        }
    }
}

/// Parties that were found for a match that ended meanwhile wait on, as long as they have waited.
fn queue_again(world: &mut World, joined: Vec<Ticket>) {
    for ticket in joined {
        world.write_message(QueueRequest { ticket });
    }
}

/// Instances whose time is over, that are empty, closed, or asked to end.
fn end_due(world: &mut World, asked: &[EndRequest], tick: u64) {
    let why = |id: InstanceId, instance: &Instance| {
        if world.get::<Scene>(instance.scene).is_none() {
            Some(EndReason::SceneClosed)
        } else if asked.contains(&EndRequest { instance: id }) {
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
        let over = instances(world).running.remove(&id);
        if let Some(over) = over {
            close(world, id, over, reason);
        }
    }
}

/// Moves everybody of an instance that runs no more home and closes its scene.
fn close(world: &mut World, id: InstanceId, over: Instance, reason: EndReason) {
    let mut instances = instances(world);
    for seat in &over.seats {
        instances.seated.remove(&seat.player);
    }
    let due = over.vacancies.iter().filter(|one| one.asked.is_some());
    instances.await_answers(over.match_id, due.count());
    let stage = InstanceStage::of(id, &over);
    for seat in &over.seats {
        if let SeatState::Inside { entity, home } = seat.state {
            go_home(world, &stage, seat.player, entity, &home);
        }
    }
    // Somebody else may have closed it before.
    let _ = close_scene(world, over.scene);
    world.resource_mut::<InstanceStats>().ended += 1;
    world.write_message(InstanceEnded {
        instance: id,
        match_id: over.match_id,
        scene: over.scene,
        reason,
    });
}

/// Where an instance is played, and who moves players there and home.
struct InstanceStage {
    id: InstanceId,
    scene: Entity,
    host: Arc<dyn InstanceHost>,
}

impl InstanceStage {
    fn of(id: InstanceId, instance: &Instance) -> Self {
        Self {
            id,
            scene: instance.scene,
            host: instance.host.clone(),
        }
    }
}

/// Moves a player home who is in the scene, or counts it as lost.
fn go_home(
    world: &mut World,
    stage: &InstanceStage,
    player: PlayerId,
    entity: Entity,
    home: &PlayerHome,
) {
    let &InstanceStage { id, scene, .. } = stage;
    if !is_in(world, entity, scene) {
        world.resource_mut::<InstanceStats>().lost += 1;
        return;
    }
    let sent = stage.host.send_home(world, entity, home);
    let sent = sent.and_then(|()| match is_in(world, entity, scene) {
        true => Err(WorldError::NotMoved {
            entity,
            scene: home.scene,
        }),
        false => Ok(()),
    });
    match sent {
        Ok(()) => {
            world.resource_mut::<InstanceStats>().returned += 1;
            world.write_message(PlayerReturned {
                instance: id,
                player,
                entity,
            });
        }
        Err(error) => {
            world.resource_mut::<InstanceStats>().lost += 1;
            debug!(instance = id.0, player = player.0, %error, "player not returned from instance: object despawned");
            // It has no seat here any more, and the match may go on.
            let _ = despawn_object(world, entity);
            world.write_message(InstanceFault {
                instance: id,
                player,
                entity,
                homewards: true,
                error,
            });
        }
    }
}

/// Matches of hosted modes wait for their scene, unless there are as many instances as may be.
fn await_scenes(world: &mut World, formed: Vec<MatchFormed>) {
    let max = world.resource::<InstanceSettings>().instances_max;
    for MatchFormed { found, .. } in formed {
        if hosted(world, &found).is_none() {
            continue;
        }
        let mut instances = instances(world);
        if instances.running.len() + instances.pending.len() >= max as usize {
            refuse(world, &found, InstanceError::TooMany { max });
        } else {
            instances.pending.push_back(found);
        }
    }
}

/// A host of a mode that is not open when the app has started never gets a match: a slip in the name, most likely.
pub(super) fn tell_unknown_modes(hosts: Res<InstanceModes>, matchmaker: Res<Matchmaker>) {
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

/// The rules and the host of a match, if its mode has them.
fn hosted(world: &World, found: &Match) -> Option<(InstanceRules, Arc<dyn InstanceHost>)> {
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

/// Opens the scenes of as many matches as a tick may, and lets their players in.
fn open_pending(world: &mut World, tick: u64) {
    for _ in 0..world.resource::<InstanceSettings>().opens_per_tick_max {
        let Some(found) = instances(world).pending.pop_front() else {
            break;
        };
        let Some((rules, host)) = hosted(world, &found) else {
            refuse(world, &found, InstanceError::Declined);
            continue;
        };
        let running = world.resource::<Instances>().len();
        let opened = host.open(world, &found, running);
        let scene = opened.and_then(|scene| {
            let opened = world.get::<Scene>(scene).map(Scene::id);
            Ok((scene, opened.ok_or(WorldError::NoSuchScene { scene })?))
        });
        let (scene, scene_id) = match scene {
            Ok(scene) => scene,
            Err(error) => {
                refuse(world, &found, error);
                continue;
            }
        };
        let tick_mhz = world.get_resource::<Time<Fixed>>().map_or(1, tick_mhz);
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
        let mut instances = instances(world);
        let id = InstanceId(instances.next);
        instances.next += 1;
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
                take_seat(world, id, player, side, tick);
            }
        }
    }
}

fn real_players(ticket: &Ticket) -> impl Iterator<Item = PlayerId> {
    ticket.members.iter().filter_map(|member| member.real())
}

/// A player gets a seat, and is moved in if it has an object.
fn take_seat(world: &mut World, id: InstanceId, player: PlayerId, side: usize, tick: u64) {
    let mut instances = instances(world);
    let seated_in = instances.seated.get(&player).copied();
    let Some(instance) = instances.running.get_mut(&id) else {
        return;
    };
    if let Some(seated_in) = seated_in {
        let vacancy = remove_player(world, id, player.into());
        if let Some(mut instance) = running(world, id) {
            instance.await_players(vacancy, tick);
        }
        world.resource_mut::<InstanceStats>().stayed_out += 1;
        world.write_message(PlayerSeatedElsewhere {
            instance: id,
            player,
            seated_in,
        });
        return;
    }
    let held_until = tick.saturating_add(instance.rules.seat_held);
    let home = None;
    let state = SeatState::Away { held_until, home };
    let seat = Seat {
        player,
        side,
        state,
    };
    instance.seats.push(seat);
    instances.seated.insert(player, id);
    if let Some(entity) = object_of(world, player) {
        move_in(world, id, seat, entity);
    }
}

/// Writes the state of a player's seat, unless it has none any more.
fn set_seat(world: &mut World, id: InstanceId, player: PlayerId, state: SeatState) {
    let Some(mut instance) = running(world, id) else {
        return;
    };
    if let Some(seat) = instance.seats.iter_mut().find(|seat| seat.player == player) {
        seat.state = state;
    }
}

/// Takes the seat of a player, which it gives if there was one.
fn remove_seat(world: &mut World, id: InstanceId, player: PlayerId) -> Option<Seat> {
    let mut instances = instances(world);
    let seats = &mut instances.running.get_mut(&id)?.seats;
    let at = seats.iter().position(|seat| seat.player == player)?;
    let seat = seats.remove(at);
    instances.seated.remove(&player);
    Some(seat)
}

/// Moves the object of a seat's player in. When it cannot be, the player is out of the match: others would be kept out by the
/// same.
fn move_in(world: &mut World, id: InstanceId, seat: Seat, entity: Entity) {
    let Some(instance) = world.resource::<Instances>().get(id) else {
        return;
    };
    let InstanceStage { scene, host, .. } = InstanceStage::of(id, instance);
    let Seat { player, side, .. } = seat;
    let kept = match seat.state {
        SeatState::Away { home, .. } => home,
        SeatState::Inside { home, .. } => Some(home),
    };
    // A player who comes back may be spawned in the match's scene, which is nobody's home.
    let home = home_of(world, entity).map(|now| match kept {
        Some(kept) if now.scene == scene => kept,
        _ => now,
    });
    let admitted = home
        .ok_or(WorldError::NoSuchObject { entity })
        .and_then(|home| {
            host.admit(world, scene, side, entity)?;
            Ok(home)
        });
    let mut stats = world.resource_mut::<InstanceStats>();
    match admitted {
        Ok(home) => {
            stats.entered += 1;
            let again = kept.is_some();
            world.write_message(PlayerEntered {
                instance: id,
                player,
                entity,
                side,
                again,
            });
            set_seat(world, id, player, SeatState::Inside { entity, home });
        }
        Err(error) => {
            stats.stayed_out += 1;
            remove_player(world, id, player.into());
            remove_seat(world, id, player);
            debug!(instance = id.0, player = player.0, %error, "player not moved into instance");
            world.write_message(InstanceFault {
                instance: id,
                player,
                entity,
                homewards: false,
                error,
            });
        }
    }
}

/// Seats whose player's object is gone, was moved away or is there again, and those that are held no longer.
fn watch_seats(world: &mut World, tick: u64) {
    let mut changed: Vec<(InstanceId, PlayerId)> = Vec::new();
    for (id, instance) in world.resource::<Instances>().iter() {
        for seat in &instance.seats {
            let same = match seat.state {
                SeatState::Inside { entity, .. } => is_in(world, entity, instance.scene),
                SeatState::Away { held_until, .. } => {
                    held_until > tick && object_of(world, seat.player).is_none()
                }
            };
            if !same {
                changed.push((id, seat.player));
            }
        }
    }
    for (id, player) in changed.into_iter().rev() {
        change_seat(world, id, player, tick);
    }
}

/// What becomes of a seat whose player is not where it was.
fn change_seat(world: &mut World, id: InstanceId, player: PlayerId, tick: u64) {
    let Some(instance) = world.resource::<Instances>().get(id) else {
        return;
    };
    let Some(&seat) = instance.seats.iter().find(|seat| seat.player == player) else {
        return;
    };
    let held_until_tick = tick.saturating_add(instance.rules.seat_held);
    match seat.state {
        SeatState::Inside { entity, home } => {
            world.resource_mut::<InstanceStats>().lost += 1;
            let moved = world.get::<Object>(entity).is_some();
            let reason = if moved {
                DepartureReason::Moved
            } else {
                DepartureReason::Gone { held_until_tick }
            };
            world.write_message(PlayerLeft {
                instance: id,
                player,
                entity,
                side: seat.side,
                reason,
            });
            if moved || held_until_tick <= tick {
                return give_up_seat(world, id, player, tick);
            }
            let state = SeatState::Away {
                held_until: held_until_tick,
                home: Some(home),
            };
            set_seat(world, id, player, state);
        }
        SeatState::Away { .. } => match object_of(world, player) {
            Some(entity) => move_in(world, id, seat, entity),
            None => give_up_seat(world, id, player, tick),
        },
    }
}

/// A player has left the match for good.
fn give_up_seat(world: &mut World, id: InstanceId, player: PlayerId, tick: u64) {
    let vacancy = remove_player(world, id, player.into());
    vacate(world, id, vacancy, tick);
    remove_seat(world, id, player);
}

/// Takes a player out of the lineup, and tells so; what its side lacks by that, if it was in it.
fn remove_player(world: &mut World, id: InstanceId, player: TicketPlayer) -> Option<Vacancy> {
    let instance = world.resource::<Instances>().get(id)?;
    let party = instance.lineup.party_of(player)?;
    let match_id = instance.match_id;
    world.write_message(MemberLeft {
        match_id,
        party,
        player,
    });
    running(world, id)?.lineup.remove_player(player)
}

/// Counts who left, and notes what is missing by it.
fn vacate(world: &mut World, id: InstanceId, vacancy: Option<Vacancy>, tick: u64) {
    let Some(vacancy) = vacancy else {
        return;
    };
    world.resource_mut::<InstanceStats>().left += u64::from(vacancy.players);
    if let Some(mut instance) = running(world, id) {
        instance.await_players(Some(vacancy), tick);
    }
}

/// Takes a player or a party out of an instance; whether it was in it.
fn take_out(world: &mut World, id: InstanceId, leaver: Leaver, tick: u64) -> bool {
    let Some(mut instance) = running(world, id) else {
        return false;
    };
    let stage = InstanceStage::of(id, &instance);
    let (players, vacancy) = match leaver {
        Leaver::Player(player) => {
            let vacancy = remove_player(world, id, player);
            (player.real().into_iter().collect::<Vec<_>>(), vacancy)
        }
        Leaver::Party(party) => match instance.lineup.remove_party(party) {
            Some((ticket, vacancy)) => {
                let match_id = instance.match_id;
                let left = ticket.members.iter().map(|&player| MemberLeft {
                    match_id,
                    party,
                    player,
                });
                world.write_message_batch(left);
                (real_players(&ticket).collect(), Some(vacancy))
            }
            None => return false,
        },
    };
    let was_in = vacancy.is_some();
    vacate(world, id, vacancy, tick);
    for player in players {
        let Some(seat) = remove_seat(world, id, player) else {
            continue;
        };
        if let SeatState::Inside { entity, home } = seat.state {
            world.write_message(PlayerLeft {
                instance: id,
                player,
                entity,
                side: seat.side,
                reason: DepartureReason::Requested,
            });
            go_home(world, &stage, player, entity, &home);
        }
    }
    was_in
}

/// Asks matchmaking about the vacancies whose time has come: of each match about one at a time, so that whoever joins next is
/// chosen with regard to who joined before.
fn ask_for_players(world: &mut World, tick: u64) {
    let mut requests = Vec::new();
    let Instances {
        running, questions, ..
    } = &mut *instances(world);
    for instance in running.values_mut() {
        if instance.vacancies.iter().any(|one| one.asked.is_some()) {
            continue;
        }
        let due = instance.vacancies.iter_mut();
        let due = due.filter(|one| one.next_tick <= tick);
        // Of equals the first, who left first.
        let Some(asked) = due.min_by_key(|one| one.tries) else {
            continue;
        };
        *questions += 1;
        (asked.asked, asked.tries) = (Some(*questions), asked.tries + 1);
        requests.push(BackfillRequest {
            id: instance.match_id,
            mode: instance.lineup.mode(),
            group: asked.vacancy.side,
            wanted: instance.lineup.wanted(&asked.vacancy),
        });
    }
    world.resource_mut::<InstanceStats>().backfills_asked += requests.len() as u64;
    world.write_message_batch(requests);
}

fn object_of(world: &World, player: PlayerId) -> Option<Entity> {
    world.get_resource::<Players>()?.entity(player)
}

fn is_in(world: &World, entity: Entity, scene: Entity) -> bool {
    let object = world.get::<Object>(entity);
    object.is_some_and(|object| object.scene_entity() == scene)
}

fn home_of(world: &World, entity: Entity) -> Option<PlayerHome> {
    let object = world.get::<Object>(entity)?;
    Some(PlayerHome {
        scene_id: object.scene(),
        scene: object.scene_entity(),
        position: world.get::<Position>(entity)?.0,
    })
}
