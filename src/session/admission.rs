//! The login queue: authenticated players wait here for a free slot. Some slots are reserved for certain classes.
//!
//! Invariants:
//! - Higher classes are admitted first; within a class, in order of arrival.
//! - Never more than `players_max` players are admitted, and no slot that is reserved for a higher class is given to a lower
//!   one.
//! - The first player of the queue is admitted as soon as any player of its class could be.
//! - A player whose connection is lost in the queue and who returns in time continues at its place. Until then others are not held up.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::authentication::AdmissionClass;
use crate::memory::MemoryUse;
use crate::wire::ClientId;
use crate::world::PlayerId;

/// The position of a client in the login queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueKey {
    class: Reverse<AdmissionClass>,
    nth: u64,
}

/// The login queue.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(super) struct LoginQueue {
    waiting: BTreeMap<QueueKey, ClientId>,
    /// Places of players whose connection was lost, and the ticks until which they are kept.
    kept: BTreeMap<PlayerId, (QueueKey, u64)>,
    /// The same by tick.
    kept_until: BTreeSet<(u64, PlayerId)>,
    arrivals: u64,
    /// Admitted players, by class.
    inside: [u32; AdmissionClass::COUNT],
}

impl LoginQueue {
    /// Adds a client at the end of its class, or at the place that it had before, in the higher of its classes.
    pub fn push(
        &mut self,
        client: ClientId,
        class: AdmissionClass,
        before: Option<QueueKey>,
    ) -> QueueKey {
        let nth = before.map_or_else(
            || {
                self.arrivals += 1;
                self.arrivals
            },
            |before| before.nth,
        );
        let class = before.map_or(class, |before| before.class.0.max(class));
        let key = QueueKey {
            class: Reverse(class),
            nth,
        };
        let other = self.waiting.insert(key, client);
        debug_assert!(other.is_none(), "a place has one client");
        key
    }

    /// Keeps the place of a player whose connection was lost until a tick.
    pub fn keep(&mut self, player: PlayerId, place: QueueKey, until: u64) {
        self.take_kept(player);
        self.kept.insert(player, (place, until));
        self.kept_until.insert((until, player));
    }

    /// Takes the kept place of a player that returns.
    pub fn take_kept(&mut self, player: PlayerId) -> Option<QueueKey> {
        let (place, until) = self.kept.remove(&player)?;
        self.kept_until.remove(&(until, player));
        Some(place)
    }

    /// Forgets the places that were kept until this tick.
    pub fn expire_kept(&mut self, now: u64) {
        while let Some(&(until, player)) = self.kept_until.first()
            && until <= now
        {
            self.take_kept(player);
        }
    }

    /// The kept places: player, number of arrival, and tick until which they are kept.
    pub fn kept(&self) -> impl Iterator<Item = (PlayerId, u64, u64)> {
        let all = self.kept.iter();
        all.map(|(&player, &(place, until))| (player, place.nth, until))
    }

    /// The number of queued clients and of kept places.
    pub fn len_with_kept(&self) -> usize {
        self.waiting.len() + self.kept.len()
    }

    /// Removes a client from the queue, if it is there.
    pub fn remove(&mut self, key: QueueKey) {
        self.waiting.remove(&key);
    }

    /// The next client to admit, if any; it is removed from the queue and not counted as admitted yet.
    pub fn next_admissible(
        &self,
        players_max: u32,
        kept: [u32; AdmissionClass::COUNT],
    ) -> Option<(QueueKey, ClientId)> {
        let (&key, &client) = self.waiting.first_key_value()?;
        // There is even less room for a lower class.
        self.has_room(key.class.0, players_max, kept)
            .then_some((key, client))
    }

    /// Whether one more player of a class may be admitted.
    pub fn has_room(
        &self,
        class: AdmissionClass,
        players_max: u32,
        kept: [u32; AdmissionClass::COUNT],
    ) -> bool {
        let above = class as usize + 1..AdmissionClass::COUNT;
        let free_of_others: u64 = above
            .map(|other| u64::from(kept[other].saturating_sub(self.inside[other])))
            .sum();
        let inside: u64 = self.inside.iter().map(|&inside| u64::from(inside)).sum();
        inside + free_of_others < u64::from(players_max)
    }

    /// Counts an admitted player.
    pub const fn enter(&mut self, class: AdmissionClass) {
        self.inside[class as usize] += 1;
    }

    /// Counts a player that left.
    pub const fn leave(&mut self, class: AdmissionClass) {
        self.inside[class as usize] -= 1;
    }

    /// The number of admitted players.
    #[cfg(test)]
    pub fn inside(&self) -> u32 {
        self.inside.iter().sum()
    }

    /// The number of queued clients.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The queue, from its head.
    pub fn iter(&self) -> impl Iterator<Item = ClientId> {
        self.waiting.values().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AdmissionClass::{Party, Preferred, Staff, Standard};
    use proptest::prelude::*;

    const KEPT: [u32; AdmissionClass::COUNT] = [0, 1, 0, 2];

    #[test]
    fn reserved_slots_are_filled_only_by_their_class() {
        let mut queue = LoginQueue::default();
        // Ten slots: one is reserved for parties and two for staff.
        for _ in 0..7 {
            assert!(queue.has_room(Standard, 10, KEPT));
            queue.enter(Standard);
        }
        assert!(!queue.has_room(Standard, 10, KEPT) && queue.has_room(Party, 10, KEPT));
        queue.enter(Party);
        assert!(!queue.has_room(Party, 10, KEPT) && !queue.has_room(Preferred, 10, KEPT));
        queue.enter(Staff);
        queue.enter(Staff);
        assert!(!queue.has_room(Staff, 10, KEPT));
        queue.leave(Standard);
        assert!(
            queue.has_room(Standard, 10, KEPT),
            "all that was kept is taken"
        );
    }

    #[test]
    fn higher_class_is_admitted_first_then_first_come() {
        let mut queue = LoginQueue::default();
        for (nth, class) in [Standard, Staff, Standard, Party, Staff]
            .into_iter()
            .enumerate()
        {
            queue.push(ClientId(nth as u32), class, None);
        }
        let order: Vec<u32> = queue.iter().map(|client| client.0).collect();
        assert_eq!(order, [1, 4, 3, 0, 2]);
        let (key, first) = queue.next_admissible(10, KEPT).unwrap();
        assert_eq!(first, ClientId(1));
        queue.remove(key);
        assert_eq!(queue.next_admissible(10, KEPT).unwrap().1, ClientId(4));
        assert!(queue.next_admissible(0, KEPT).is_none());
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn admitted_players_respect_the_limit_and_reserved_slots(
            steps in prop::collection::vec((0..4_usize, any::<bool>()), 0..200),
            players_max in 0..12_u32,
            kept in prop::array::uniform4(0..4_u32),
        ) {
            let classes = [Standard, Party, Preferred, Staff];
            let mut queue = LoginQueue::default();
            let mut inside = [0_u32; 4];
            for (class, comes) in steps {
                if comes {
                    if queue.has_room(classes[class], players_max, kept) {
                        queue.enter(classes[class]);
                        inside[class] += 1;
                        // A higher class could still take its reserved slots, unless other higher classes took more.
                        let free = players_max - inside.iter().sum::<u32>();
                        let owed: u32 = (class + 1..4).map(|above| kept[above].saturating_sub(inside[above])).sum();
                        prop_assert!(owed <= free);
                    }
                } else if inside[class] > 0 {
                    queue.leave(classes[class]);
                    inside[class] -= 1;
                }
                prop_assert!(queue.inside() <= players_max);
            }
        }
    }
}
