//! The running instances: seats and missing players.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use super::host::{InstanceHost, PlayerHome};
use super::messages::InstanceId;
use crate::instance::lineup::{Lineup, Vacancy};
use crate::instance::rules::InstanceTickSettings;
use crate::matchmaking::Match;
use crate::memory::MemoryUse;
use crate::sim::StateHasher;
use crate::world::{PlayerId, SceneId};

/// Limits of instances.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::instance::InstanceSettings;
///
/// // At most 200 matches run at once.
/// app.insert_resource(InstanceSettings { instances_max: 200, ..InstanceSettings::default() });
/// ```
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct InstanceSettings {
    /// The maximum number of instances that run or wait to be opened. Further matches are refused: their players stay where they
    /// are, which is reported and counted.
    pub instances_max: u32,
    /// The number of instances that are opened per tick; the others wait for the next ticks, in the order of their matches.
    #[serde(alias = "opens_per_tick_max")]
    pub opened_per_tick_max: u32,
}

impl Default for InstanceSettings {
    fn default() -> Self {
        Self {
            instances_max: 1024,
            opened_per_tick_max: 64,
        }
    }
}

/// Counters of instances and their players.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InstanceStats {
    /// Instances that were opened.
    pub opened: u64,
    /// Instances that ended.
    pub ended: u64,
    /// Matches of hosted modes that got no scene, for any reason.
    pub refused: u64,
    /// The maximum number of instances at the same time.
    pub peak: usize,
    /// How often a player was moved into its instance.
    pub entered: u64,
    /// How often a player was moved home.
    pub returned: u64,
    /// How often a player was no longer in its instance: its object was gone, or in another scene, or could not be
    /// moved home.
    pub lost: u64,
    /// Players who never entered their match: they could not be moved in, or had a seat in another.
    pub never_entered: u64,
    /// Players who left their match for good before its end, synthetic ones included.
    pub left: u64,
    /// Players who joined a running match, synthetic ones included.
    pub joined: u64,
    /// How often a backfill was requested from matchmaking.
    pub backfills_requested: u64,
    /// Vacancies that stayed open after the last attempt.
    pub backfills_unfilled: u64,
}

/// A running match.
#[derive(MemoryUse)]
pub struct Instance {
    pub(super) match_id: u64,
    pub(super) lineup: Lineup,
    pub(super) scene: Entity,
    pub(super) scene_id: SceneId,
    pub(super) ends_tick: u64,
    pub(super) rules: InstanceTickSettings,
    #[memory(skip)]
    pub(super) host: Arc<dyn InstanceHost>,
    /// The seats of the real players of the lineup, in the order of their arrival.
    pub(super) seats: Vec<Seat>,
    /// In the order in which players left.
    pub(super) vacancies: Vec<PendingVacancy>,
}

/// The seat of a real player in an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seat {
    pub player: PlayerId,
    pub side: usize,
    pub state: SeatState,
}

/// The state of a seat's player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SeatState {
    /// Its object is in the scene of the match.
    Inside {
        /// The object that it plays with.
        entity: Entity,
        home: PlayerHome,
    },
    /// It has no object; at this tick it counts as having left.
    Away {
        reserved_until: u64,
        /// Its home, if it was here before.
        home: Option<PlayerHome>,
    },
}

/// A vacancy of a side, with the state of its backfill requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PendingVacancy {
    pub vacancy: Vacancy,
    /// The number of requests so far.
    pub attempts: u32,
    /// The number of the pending request.
    pub request_id: Option<u64>,
    pub next_tick: u64,
}

impl Instance {
    /// The match of the instance.
    #[must_use]
    pub const fn match_id(&self) -> u64 {
        self.match_id
    }

    /// The players of each side, synthetic players included.
    #[must_use]
    pub const fn lineup(&self) -> &Lineup {
        &self.lineup
    }

    /// Its scene's entity.
    #[must_use]
    pub const fn scene(&self) -> Entity {
        self.scene
    }

    /// The tick in which its time ends.
    #[must_use]
    pub const fn ends_tick(&self) -> u64 {
        self.ends_tick
    }

    /// Adds a vacancy that is requested from this tick on, if the rules allow it.
    pub(super) fn add_vacancy(&mut self, vacancy: Option<Vacancy>, tick: u64) {
        let Some(vacancy) = vacancy.filter(|vacancy| vacancy.players > 0) else {
            return;
        };
        if self.rules.backfill_attempts_max > 0 {
            self.vacancies.push(PendingVacancy {
                vacancy,
                attempts: 0,
                request_id: None,
                next_tick: tick,
            });
        }
    }

    /// The real players whose objects are in the scene, in the order of their arrival.
    pub fn players_inside(&self) -> impl Iterator<Item = (PlayerId, Entity)> {
        self.seats.iter().filter_map(|seat| match seat.state {
            SeatState::Inside { entity, .. } => Some((seat.player, entity)),
            SeatState::Away { .. } => None,
        })
    }
}

/// All running instances, by id, and the matches that wait to be opened.
#[derive(Resource, Default, MemoryUse)]
pub struct Instances {
    pub(super) next_id: u64,
    #[memory(each_value)]
    pub(super) running: BTreeMap<InstanceId, Instance>,
    #[memory(each)]
    pub(super) pending: VecDeque<Match>,
    /// The instance in which a player has a seat.
    pub(super) instance_by_player: BTreeMap<PlayerId, InstanceId>,
    /// The number of requests to matchmaking so far.
    pub(super) requests: u64,
    /// Pending replies for matches that have ended. A reply comes within the heartbeat of its request, so there are at most
    /// as many as instances end in one heartbeat.
    pub(super) orphaned_replies: BTreeMap<u64, usize>,
}

impl Instances {
    /// A running instance. O(log instances).
    #[must_use]
    pub fn get(&self, instance: InstanceId) -> Option<&Instance> {
        self.running.get(&instance)
    }

    /// The instance in which a player has a seat, whether or not it is there now. O(log players).
    #[must_use]
    pub fn instance_of(&self, player: PlayerId) -> Option<InstanceId> {
        self.instance_by_player.get(&player).copied()
    }

    /// All running instances, by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (InstanceId, &Instance)> {
        self.running.iter().map(|(&id, instance)| (id, instance))
    }

    /// The number of running instances.
    #[must_use]
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Notes pending replies for a match that has ended.
    pub(super) fn expect_replies(&mut self, match_id: u64, due: usize) {
        if due > 0 {
            self.orphaned_replies.insert(match_id, due);
        }
    }

    /// Whether this reply is for a match that has ended; removes it.
    pub(super) fn take_orphaned_reply(&mut self, match_id: u64) -> bool {
        let Some(due) = self.orphaned_replies.get_mut(&match_id) else {
            return false;
        };
        *due -= 1;
        if *due == 0 {
            self.orphaned_replies.remove(&match_id);
        }
        true
    }

    /// Whether no instance runs or waits to be opened, and no reply is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.pending.is_empty() && self.orphaned_replies.is_empty()
    }

    /// The number of real players whose objects are in instances: entered = returned + lost + these. O(players).
    #[must_use]
    pub fn inside_count(&self) -> u64 {
        let inside = self.running.values().flat_map(Instance::players_inside);
        inside.count() as u64
    }

    /// Adds all of it to the state hash.
    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.next_id);
        hasher.write_u64(self.requests);
        hasher.write_u64(self.orphaned_replies.len() as u64);
        for (&match_id, &due) in &self.orphaned_replies {
            hasher.write_u64(match_id);
            hasher.write_u64(due as u64);
        }
        hasher.write_u64(self.pending.len() as u64);
        for found in &self.pending {
            hasher.write_u64(found.id);
            let tickets = found.groups.iter().flatten();
            tickets.for_each(|ticket| ticket.hash_state(&mut |word| hasher.write_u64(word)));
        }
        for (id, instance) in &self.running {
            hasher.write_u64(id.0);
            hasher.write_u64(instance.match_id);
            hasher.write_u64(u64::from(instance.scene_id.0));
            hasher.write_u64(instance.ends_tick);
            instance
                .lineup
                .hash_state(&mut |word| hasher.write_u64(word));
            instance
                .rules
                .hash_state(&mut |word| hasher.write_u64(word));
            hasher.write_u64(instance.seats.len() as u64);
            hasher.write_u64(instance.vacancies.len() as u64);
            for seat in &instance.seats {
                hasher.write_u64(seat.player.0);
                hasher.write_u64(seat.side as u64);
                match seat.state {
                    SeatState::Inside { home, .. } => home.hash(hasher),
                    SeatState::Away {
                        reserved_until: held_until,
                        home,
                    } => {
                        hasher.write_u64(u64::MAX - u64::from(home.is_some()));
                        hasher.write_u64(held_until);
                        home.iter().for_each(|home| home.hash(hasher));
                    }
                }
            }
            for asked in &instance.vacancies {
                let Vacancy {
                    side,
                    players,
                    power,
                    roles,
                } = asked.vacancy;
                hasher.write_u64((side as u64) << 8 | u64::from(players));
                hasher.write_u64(power);
                hasher.write_u64(u64::from(u32::from_le_bytes(roles)));
                hasher.write_u64(
                    u64::from(asked.attempts) << 1 | u64::from(asked.request_id.is_some()),
                );
                hasher.write_u64(asked.request_id.unwrap_or(0));
                hasher.write_u64(asked.next_tick);
            }
        }
    }
}
