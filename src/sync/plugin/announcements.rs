//! Collects announcements and reports the number of clients that they reached.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;

use super::announce::{AnnouncementRequest, AnnouncementScope, AnnouncementSent};
use super::replicator::{Replicator, controlled_ref};
use super::settings::SyncSettings;
use super::stats::SyncStats;
use super::unseen::party_number;
use crate::outbox::{MessageSpan, Outbox};
use crate::sim::SimTick;
use crate::sync::announce::ResolvedAnnouncement;
use crate::sync::client::ClientState;
use crate::sync::scene_messages::{ObjectChanges, SceneMessages};
use crate::sync::unseen::PartyObjects;
use crate::wire::{ANNOUNCE_BYTES_MAX, Channel, write_announce};
use crate::world::{ObjectRef, SceneId};

/// The maximum number of announced bytes per tick, whatever the settings: the messages of a tick are addressed with 31 bits.
const ANNOUNCED_BYTES_MAX: usize = 1 << 28;

/// Encodes the announcements, and finds their receivers.
pub(super) fn encode_announcements(
    mut announces: MessageReader<AnnouncementRequest>,
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    mut stats: ResMut<SyncStats>,
    settings: Res<SyncSettings>,
    tick: Res<SimTick>,
) {
    let mut left = (settings.announce_bytes_per_tick as usize).min(ANNOUNCED_BYTES_MAX);
    let Replicator {
        scenes,
        clients,
        parties,
        announcements: announcing,
        ..
    } = &mut *replicator;
    announcing.clear();
    let mut receivers = Receivers {
        scenes,
        clients,
        parties,
        by_controlled: None,
    };
    for announce in announces.read() {
        let length = announce.bytes.len();
        if length > ANNOUNCE_BYTES_MAX || length > left {
            stats.announcements_refused += 1;
            continue;
        }
        left -= length;
        // In another scene the object's id means another object.
        let scene = match announce.scope {
            AnnouncementScope::Viewers(of) => Some(of.scene),
            AnnouncementScope::Radius { scene, .. } | AnnouncementScope::Scene(scene) => {
                Some(scene)
            }
            AnnouncementScope::Client(_) | AnnouncementScope::Party(_) => None,
        };
        let from = announce.about;
        let from = from.filter(|from| scene.is_none_or(|scene| from.scene == scene));
        let from = from.map(|from| (from.id.0, from.generation.0));
        let mut share = |from| {
            let batch = outbox.batch_mut();
            batch.push_shared(|bytes| write_announce(bytes, from, &announce.bytes))
        };
        let announced = ResolvedAnnouncement {
            span: share(from),
            about: from,
            reliable: announce.channel == Channel::Reliable,
            expires_tick: tick.0 + u64::from(announce.ttl_ticks),
            index: announcing.len() as u32,
        };
        announcing.push(AnnouncementSent {
            about: announce.about,
            scope: announce.scope,
            receivers: 0,
        });
        receivers.route(announce, announced, share);
    }
    for records in scenes.values_mut() {
        records.announcements.sort();
    }
}

/// The possible receivers.
struct Receivers<'a> {
    scenes: &'a mut BTreeMap<SceneId, SceneMessages>,
    clients: &'a mut [ClientState],
    parties: &'a PartyObjects,
    /// The clients by the objects that they know to control; built for the first announcement to a party.
    by_controlled: Option<Vec<(ObjectRef, usize)>>,
}

impl Receivers<'_> {
    /// Adds an announcement to the lists of its receivers.
    fn route(
        &mut self,
        announce: &AnnouncementRequest,
        announced: ResolvedAnnouncement,
        mut share: impl FnMut(Option<(u32, u32)>) -> MessageSpan,
    ) {
        let Self {
            scenes,
            clients,
            parties,
            by_controlled: by_own,
        } = self;
        let mut anonymous = None;
        let mut for_who_is_in = |scene: SceneId| {
            if announce.about.is_none_or(|from| from.scene == scene) {
                return announced;
            }
            let span = *anonymous.get_or_insert_with(|| share(None));
            ResolvedAnnouncement {
                span,
                about: None,
                ..announced
            }
        };
        match announce.scope {
            AnnouncementScope::Viewers(of) => {
                // If the id belongs to another object by now, there are no receivers.
                let records = scenes.get_mut(&of.scene);
                if let Some(records) = records
                    && records
                        .bases
                        .get(of.id.0 as usize)
                        .is_some_and(|base| base.generation == of.generation.0)
                {
                    records.announcements.add_to_viewers(of.id.0, announced);
                    records.mark_changed(of.id.0, ObjectChanges::ANNOUNCED);
                }
            }
            AnnouncementScope::Radius {
                scene,
                at,
                radius_m,
            } => {
                if let Some(records) = scenes.get_mut(&scene) {
                    records.announcements.add_near(at, radius_m, announced);
                }
            }
            AnnouncementScope::Scene(scene) => {
                if let Some(records) = scenes.get_mut(&scene) {
                    records.announcements.add_to_all(announced);
                }
            }
            AnnouncementScope::Client(client) => {
                if let Ok(place) = clients.binary_search_by_key(&client, |state| state.client)
                    && let Some(own) = controlled_ref(&clients[place])
                {
                    clients[place].announcements.push(for_who_is_in(own.scene));
                }
            }
            AnnouncementScope::Party(party) => {
                let by_own = by_own.get_or_insert_with(|| clients_by_controlled(clients));
                for &member in parties.members_of(party_number(party)) {
                    if let Ok(nth) = by_own.binary_search_by_key(&member, |&(own, _)| own) {
                        let (own, place) = by_own[nth];
                        clients[place].announcements.push(for_who_is_in(own.scene));
                    }
                }
            }
        }
    }
}

/// The objects that clients know to control, ascending, with the clients' indices.
fn clients_by_controlled(clients: &[ClientState]) -> Vec<(ObjectRef, usize)> {
    let own = clients.iter().zip(0..);
    let own = own.filter_map(|(state, place)| Some((controlled_ref(state)?, place)));
    let mut by_own: Vec<_> = own.collect();
    by_own.sort_unstable();
    by_own
}

/// Writes the number of receivers of each announcement.
pub(super) fn report_announcements(
    mut replicator: ResMut<Replicator>,
    mut reports: MessageWriter<AnnouncementSent>,
) {
    let Replicator {
        announcements: announcing,
        workers,
        ..
    } = &mut *replicator;
    for worker in workers {
        let receivers = worker.scratch.receivers.drain(..);
        for (announced, receivers) in announcing.iter_mut().zip(receivers) {
            announced.receivers += receivers;
        }
    }
    reports.write_batch(announcing.drain(..));
}
