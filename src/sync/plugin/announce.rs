//! Announcements in the tick.

use bevy_ecs::prelude::*;
use glam::Vec2;

use super::{Replicator, SyncStats};
use crate::outbox::Outbox;
use crate::session::Sessions;
use crate::sim::SimTick;
use crate::sync::announce;
use crate::sync::records::News;
use crate::wire::{ANNOUNCE_BYTES_MAX, Channel, ClientId, write_announce};
use crate::world::{Object, ObjectRef, PartyId, SceneId};

/// Tells clients of something that happens once: damage, chat, a spell that is cast.
///
/// Encoded once, whoever gets it. It is told in the tick in which it is written, if that is before `Replicate`.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct Announce {
    /// Whom it is about. A client that comes to know that object now is told of it first.
    pub from: Option<ObjectRef>,
    /// Who is told.
    pub scope: AnnounceScope,
    /// Whether it may be lost.
    pub class: Channel,
    /// For how many ticks it is of use to a client that is to be told of the object first.
    pub ttl_ticks: u32,
    /// What it says, as the game defines it; at most [`ANNOUNCE_BYTES_MAX`].
    pub bytes: Vec<u8>,
}

/// An announcement was encoded; written at the end of `Replicate`.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct Announced {
    /// Whom it is about.
    pub from: Option<ObjectRef>,
    /// Who was to be told.
    pub scope: AnnounceScope,
    /// Clients that were told, or will be as soon as they know the object.
    pub receivers: u32,
}

/// Who is told of an announcement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnnounceScope {
    /// All who see an object, and the client that controls it.
    Viewers(ObjectRef),
    /// All whose own object is near a place.
    Radius {
        /// Where.
        scene: SceneId,
        /// Around what, in metres.
        at: Vec2,
        /// How far, in metres.
        radius_m: f32,
    },
    /// The members of a party, wherever they are.
    Party(PartyId),
    /// All in a scene.
    Scene(SceneId),
    /// One client.
    Client(ClientId),
}

/// Encodes what is announced, and finds out whom it concerns.
pub(super) fn gather(
    mut announces: MessageReader<Announce>,
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    mut stats: ResMut<SyncStats>,
    sessions: Res<Sessions>,
    tick: Res<SimTick>,
    objects: Query<(&Object, Option<&PartyId>)>,
) {
    let Replicator {
        scenes,
        clients,
        announcing,
        ..
    } = &mut *replicator;
    announcing.clear();
    // Of a client without an object nobody takes them, and they hold for this tick only.
    clients.iter_mut().for_each(|state| state.announced.clear());
    for announce in announces.read() {
        if announce.bytes.len() > ANNOUNCE_BYTES_MAX {
            stats.announces_refused += 1;
            continue;
        }
        let from = announce.from.map(|from| (from.id.0, from.generation.0));
        let span = outbox
            .batch_mut()
            .share(|bytes| write_announce(bytes, from, &announce.bytes));
        let announced = announce::Announced {
            span,
            from,
            reliable: announce.class == Channel::Reliable,
            expires: tick.0 + u64::from(announce.ttl_ticks),
            nth: announcing.len() as u32,
        };
        announcing.push(Announced {
            from: announce.from,
            scope: announce.scope,
            receivers: 0,
        });
        match announce.scope {
            AnnounceScope::Viewers(of) => {
                // Of an id that has another bearer by now, nobody is told.
                let records = scenes.get_mut(&of.scene);
                if let Some(records) = records
                    && records
                        .bases
                        .get(of.id.0 as usize)
                        .is_some_and(|base| base.generation == of.generation.0)
                {
                    records.announcements.add_to_viewers(of.id.0, announced);
                    records.tell(of.id.0, News::ANNOUNCED);
                }
            }
            AnnounceScope::Radius {
                scene,
                at,
                radius_m,
            } => {
                if let Some(records) = scenes.get_mut(&scene) {
                    records.announcements.add_near(at, radius_m, announced);
                }
            }
            AnnounceScope::Scene(scene) => {
                if let Some(records) = scenes.get_mut(&scene) {
                    records.announcements.add_to_all(announced);
                }
            }
            AnnounceScope::Client(client) => {
                if let Ok(place) = clients.binary_search_by_key(&client, |state| state.client) {
                    clients[place].announced.push(announced);
                }
            }
            AnnounceScope::Party(party) => {
                for state in &mut *clients {
                    let own = sessions
                        .get(state.client)
                        .and_then(|session| objects.get(session.controls?).ok());
                    let Some((own, Some(&of))) = own else {
                        continue;
                    };
                    if of != party {
                        continue;
                    }
                    // Elsewhere the number is another object's.
                    let here = announce.from.filter(|from| from.scene == own.scene());
                    state.announced.push(announce::Announced {
                        from: here.and(from),
                        ..announced
                    });
                }
            }
        }
    }
    scenes
        .values_mut()
        .for_each(|records| records.announcements.sort());
}

/// Says how many each announcement reached.
pub(super) fn report(mut replicator: ResMut<Replicator>, mut told: MessageWriter<Announced>) {
    let Replicator {
        announcing,
        workers,
        ..
    } = &mut *replicator;
    for worker in workers {
        let receivers = worker.scratch.receivers.drain(..);
        for (announced, receivers) in announcing.iter_mut().zip(receivers) {
            announced.receivers += receivers;
        }
    }
    told.write_batch(announcing.drain(..));
}
