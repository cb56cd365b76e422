//! The players of an instance: who has a seat, moves in, leaves, comes home, and has to be replaced.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use tracing::debug;

use super::host::{InstanceHost, PlayerHome};
use super::instances::{Instance, InstanceStats, Instances, Seat, SeatState};
use super::messages::{
    DepartureReason, InstanceId, InstanceMoveFailed, InstancePlayerEntered, InstancePlayerLeft,
    InstancePlayerReturned, Leaver, MemberLeft, PlayerAlreadyInInstance,
};
use crate::instance::lineup::Vacancy;
use crate::matchmaking::{BackfillRequest, Ticket, TicketPlayer};
use crate::world::{Object, PlayerId, Players, Position, WorldError, despawn_object};

pub(super) fn instances_mut(world: &mut World) -> Mut<'_, Instances> {
    world.resource_mut::<Instances>()
}

/// A running instance.
pub(super) fn instance_mut(world: &mut World, id: InstanceId) -> Option<Mut<'_, Instance>> {
    instances_mut(world).filter_map_unchanged(|instances| instances.running.get_mut(&id))
}

/// The scene of an instance, and the host that moves players there and home.
pub(super) struct InstanceContext {
    id: InstanceId,
    scene: Entity,
    host: Arc<dyn InstanceHost>,
}

impl InstanceContext {
    pub fn of(id: InstanceId, instance: &Instance) -> Self {
        Self {
            id,
            scene: instance.scene,
            host: instance.host.clone(),
        }
    }
}

/// Moves a player home who is in the scene, or counts it as lost.
pub(super) fn return_player(
    world: &mut World,
    stage: &InstanceContext,
    player: PlayerId,
    entity: Entity,
    home: &PlayerHome,
) {
    let &InstanceContext { id, scene, .. } = stage;
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
            world.write_message(InstancePlayerReturned {
                instance: id,
                player,
                entity,
            });
        }
        Err(error) => {
            world.resource_mut::<InstanceStats>().lost += 1;
            debug!(instance = id.0, player = player.0, %error, "player not returned from instance: object despawned");
            // It has no seat here any more, and the match may continue.
            let _ = despawn_object(world, entity);
            world.write_message(InstanceMoveFailed {
                instance: id,
                player,
                entity,
                is_returning: true,
                error,
            });
        }
    }
}

pub(super) fn real_players(ticket: &Ticket) -> impl Iterator<Item = PlayerId> {
    ticket.members.iter().filter_map(|member| member.real())
}

/// Gives a player a seat, and moves it in if it has an object.
pub(super) fn assign_seat(
    world: &mut World,
    id: InstanceId,
    player: PlayerId,
    side: usize,
    tick: u64,
) {
    let mut instances = instances_mut(world);
    let seated_in = instances.instance_by_player.get(&player).copied();
    let Some(instance) = instances.running.get_mut(&id) else {
        return;
    };
    if let Some(seated_in) = seated_in {
        let vacancy = remove_player(world, id, player.into());
        if let Some(mut instance) = instance_mut(world, id) {
            instance.add_vacancy(vacancy, tick);
        }
        world.resource_mut::<InstanceStats>().never_entered += 1;
        world.write_message(PlayerAlreadyInInstance {
            instance: id,
            player,
            seated_in,
        });
        return;
    }
    let held_until = tick.saturating_add(instance.rules.seat_reserved);
    let home = None;
    let state = SeatState::Away {
        reserved_until: held_until,
        home,
    };
    let seat = Seat {
        player,
        side,
        state,
    };
    instance.seats.push(seat);
    instances.instance_by_player.insert(player, id);
    if let Some(entity) = object_of(world, player) {
        move_in(world, id, seat, entity);
    }
}

/// Sets the state of a player's seat, unless it was removed.
fn set_seat(world: &mut World, id: InstanceId, player: PlayerId, state: SeatState) {
    let Some(mut instance) = instance_mut(world, id) else {
        return;
    };
    if let Some(seat) = instance.seats.iter_mut().find(|seat| seat.player == player) {
        seat.state = state;
    }
}

/// Removes and returns the seat of a player.
fn remove_seat(world: &mut World, id: InstanceId, player: PlayerId) -> Option<Seat> {
    let mut instances = instances_mut(world);
    let seats = &mut instances.running.get_mut(&id)?.seats;
    let at = seats.iter().position(|seat| seat.player == player)?;
    let seat = seats.remove(at);
    instances.instance_by_player.remove(&player);
    Some(seat)
}

/// Moves the object of a seat's player in. If that fails, the player is removed from the match, since it would fail again for
/// the same cause.
fn move_in(world: &mut World, id: InstanceId, seat: Seat, entity: Entity) {
    let Some(instance) = world.resource::<Instances>().get(id) else {
        return;
    };
    let InstanceContext { scene, host, .. } = InstanceContext::of(id, instance);
    let Seat { player, side, .. } = seat;
    let kept = match seat.state {
        SeatState::Away { home, .. } => home,
        SeatState::Inside { home, .. } => Some(home),
    };
    // A player who returns may be spawned in the match's scene, which is not a home.
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
            world.write_message(InstancePlayerEntered {
                instance: id,
                player,
                entity,
                side,
                is_return: again,
            });
            set_seat(world, id, player, SeatState::Inside { entity, home });
        }
        Err(error) => {
            stats.never_entered += 1;
            remove_player(world, id, player.into());
            remove_seat(world, id, player);
            debug!(instance = id.0, player = player.0, %error, "player not moved into instance");
            world.write_message(InstanceMoveFailed {
                instance: id,
                player,
                entity,
                is_returning: false,
                error,
            });
        }
    }
}

/// Checks all seats: players whose object is gone, was moved away or is back, and reservations that end.
pub(super) fn check_seats(world: &mut World, tick: u64) {
    let mut changed: Vec<(InstanceId, PlayerId)> = Vec::new();
    for (id, instance) in world.resource::<Instances>().iter() {
        for seat in &instance.seats {
            let same = match seat.state {
                SeatState::Inside { entity, .. } => is_in(world, entity, instance.scene),
                SeatState::Away {
                    reserved_until: held_until,
                    ..
                } => held_until > tick && object_of(world, seat.player).is_none(),
            };
            if !same {
                changed.push((id, seat.player));
            }
        }
    }
    for (id, player) in changed.into_iter().rev() {
        update_seat(world, id, player, tick);
    }
}

/// Updates the seat of a player who is not where it was.
fn update_seat(world: &mut World, id: InstanceId, player: PlayerId, tick: u64) {
    let Some(instance) = world.resource::<Instances>().get(id) else {
        return;
    };
    let Some(&seat) = instance.seats.iter().find(|seat| seat.player == player) else {
        return;
    };
    let held_until_tick = tick.saturating_add(instance.rules.seat_reserved);
    match seat.state {
        SeatState::Inside { entity, home } => {
            world.resource_mut::<InstanceStats>().lost += 1;
            let moved = world.get::<Object>(entity).is_some();
            let reason = if moved {
                DepartureReason::Moved
            } else {
                DepartureReason::Gone {
                    reserved_until_tick: held_until_tick,
                }
            };
            world.write_message(InstancePlayerLeft {
                instance: id,
                player,
                entity,
                side: seat.side,
                reason,
            });
            if moved || held_until_tick <= tick {
                return release_seat(world, id, player, tick);
            }
            let state = SeatState::Away {
                reserved_until: held_until_tick,
                home: Some(home),
            };
            set_seat(world, id, player, state);
        }
        SeatState::Away { .. } => match object_of(world, player) {
            Some(entity) => move_in(world, id, seat, entity),
            None => release_seat(world, id, player, tick),
        },
    }
}

/// Handles a player who has left the match for good.
fn release_seat(world: &mut World, id: InstanceId, player: PlayerId, tick: u64) {
    let vacancy = remove_player(world, id, player.into());
    record_vacancy(world, id, vacancy, tick);
    remove_seat(world, id, player);
}

/// Removes a player from the lineup, and reports it; returns the vacancy, if it was in the lineup.
fn remove_player(world: &mut World, id: InstanceId, player: TicketPlayer) -> Option<Vacancy> {
    let instance = world.resource::<Instances>().get(id)?;
    let party = instance.lineup.party_of(player)?;
    let match_id = instance.match_id;
    world.write_message(MemberLeft {
        match_id,
        party,
        player,
    });
    instance_mut(world, id)?.lineup.remove_player(player)
}

/// Counts a player who left, and records the vacancy.
fn record_vacancy(world: &mut World, id: InstanceId, vacancy: Option<Vacancy>, tick: u64) {
    let Some(vacancy) = vacancy else {
        return;
    };
    world.resource_mut::<InstanceStats>().left += u64::from(vacancy.players);
    if let Some(mut instance) = instance_mut(world, id) {
        instance.add_vacancy(Some(vacancy), tick);
    }
}

/// Removes a player or a party from an instance; returns whether it was in it.
pub(super) fn remove_leaver(world: &mut World, id: InstanceId, leaver: Leaver, tick: u64) -> bool {
    let Some(mut instance) = instance_mut(world, id) else {
        return false;
    };
    let stage = InstanceContext::of(id, &instance);
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
    record_vacancy(world, id, vacancy, tick);
    for player in players {
        let Some(seat) = remove_seat(world, id, player) else {
            continue;
        };
        if let SeatState::Inside { entity, home } = seat.state {
            world.write_message(InstancePlayerLeft {
                instance: id,
                player,
                entity,
                side: seat.side,
                reason: DepartureReason::Requested,
            });
            return_player(world, &stage, player, entity, &home);
        }
    }
    was_in
}

/// Requests backfills for the vacancies that are due: one at a time per match, so that the next choice takes the
/// players who joined before into account.
pub(super) fn request_backfills(world: &mut World, tick: u64) {
    let mut requests = Vec::new();
    let Instances {
        running,
        requests: questions,
        ..
    } = &mut *instances_mut(world);
    for instance in running.values_mut() {
        if instance
            .vacancies
            .iter()
            .any(|one| one.request_id.is_some())
        {
            continue;
        }
        let due = instance.vacancies.iter_mut();
        let due = due.filter(|one| one.next_tick <= tick);
        // Among equals the first one, which is the oldest.
        let Some(asked) = due.min_by_key(|one| one.attempts) else {
            continue;
        };
        *questions += 1;
        (asked.request_id, asked.attempts) = (Some(*questions), asked.attempts + 1);
        requests.push(BackfillRequest {
            id: instance.match_id,
            mode: instance.lineup.mode(),
            group: asked.vacancy.side,
            backfill: instance.lineup.backfill_for(&asked.vacancy),
        });
    }
    world.resource_mut::<InstanceStats>().backfills_requested += requests.len() as u64;
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
