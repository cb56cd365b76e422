//! Mutual sight: pairs that both ends must accept.
//!
//! ```text
//! sweeps, offers ──▶ proposals ──sort by rank, then ids──▶ commit: both accept? evict, evict, link
//! ```
//! Both ends are asked before anybody is evicted, and only lower ranks are evicted. What is evicted frees
//! another's place, which queues that one; its look may evict again, but only of lower ranks: so a change
//! among viewers at rest ends after at most two evictions a rank.
//!
//! Invariant: of a pair that could be linked and is not, an end that refuses it has it below its `bound`, or
//! waits in the queue.

use super::{
    links::{LISTS, LinkKey, UNCAPPED},
    object::fetch,
    priority::class_of,
    views::{SceneViews, ViewEvent},
};

/// A link that might be made. Sorted, the highest rank comes first, then the lower ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Proposal(u64);

const ID_MASK: u64 = (1 << 24) - 1;
const PAIR: u64 = 1 << 48;

impl Proposal {
    /// A viewer would see a target that sees nobody, or lies outside caps.
    pub(super) fn one_way(rank: u8, viewer: u32, target: u32) -> Self {
        Self(u64::from(!rank) << 49 | u64::from(viewer) << 24 | u64::from(target))
    }

    /// Two would see each other.
    pub(super) fn pair(rank: u8, a: u32, b: u32) -> Self {
        Self(Self::one_way(rank, a.min(b), a.max(b)).0 | PAIR)
    }

    fn rank(self) -> u8 {
        !((self.0 >> 49) as u8)
    }

    fn ids(self) -> (u32, u32) {
        ((self.0 >> 24 & ID_MASK) as u32, (self.0 & ID_MASK) as u32)
    }
}

impl SceneViews {
    /// Links whom both ends accept, from the top.
    pub(super) fn commit_proposals(&mut self, events: &mut Vec<ViewEvent>) {
        let mut proposals = std::mem::take(&mut self.scratch.proposals);
        proposals.sort_unstable();
        // Both ends of a pair may have proposed it.
        proposals.dedup();
        for proposal in proposals.drain(..) {
            let (a, b) = proposal.ids();
            if proposal.0 & PAIR != 0 {
                self.admit_pair(a, b, proposal.rank(), events);
                continue;
            }
            let list = self.objects[b as usize].list();
            if !self.admit(a, list, LinkKey::new(proposal.rank(), b), events) {
                self.objects[a as usize].refuse(list, proposal.rank());
                self.counters.refused += 1;
            }
        }
        self.scratch.proposals = proposals;
    }

    /// Links a pair if both ends have a place for it, or one lower to evict; false if not, and then an end
    /// that refuses remembers it.
    fn admit_pair(&mut self, a: u32, b: u32, rank: u8, events: &mut Vec<ViewEvent>) -> bool {
        let list_of = |id: u32| self.objects[id as usize].list();
        let ends = [(a, list_of(b)), (b, list_of(a))];
        for (id, list) in ends {
            let object = &mut self.objects[id as usize];
            if u16::from(rank) < object.entry(list) {
                object.refuse(list, rank);
                self.counters.refused += 1;
                return false;
            }
        }
        for (id, list) in ends {
            self.make_place(id, list, events);
        }
        let [(_, list_of_b), (_, list_of_a)] = ends;
        self.links.add_pair(rank, (a, list_of_a), (b, list_of_b));
        for (id, list) in ends {
            let len = self.links.list_len(id, list);
            if len >= self.objects[id as usize].cap(list) {
                self.refresh_gate(id, list);
            }
            self.counters.max_list = self.counters.max_list.max(len);
        }
        self.counters.enters += 2;
        for (viewer, target) in [(a, b), (b, a)] {
            events.push(ViewEvent::Enter {
                viewer,
                target,
                priority: class_of(rank),
            });
        }
        true
    }

    /// A look where sight is mutual: everybody in range that both ends might accept, from the top.
    pub(super) fn look_for_pairs(&mut self, viewer: u32, events: &mut Vec<ViewEvent>) {
        self.mark_seen(viewer);
        let cell = self.grid.cell(viewer);
        let Self {
            grid,
            objects,
            scratch,
            counters,
            ranking,
            ..
        } = self;
        let me = objects[viewer as usize];
        let gains: [bool; LISTS] = std::array::from_fn(|list| me.bound[list] > me.gate[list]);
        let mut refused = [0; LISTS];
        let layers = if gains[UNCAPPED] {
            grid.layer_count()
        } else {
            1
        };
        let near = (0..layers).flat_map(|layer| {
            grid.around(layer, grid.coarse(layer, cell))
                .map(move |cell| (layer, cell))
        });
        for (layer, cell) in near {
            fetch(objects, grid.targets(layer, cell));
            for &target in grid.targets(layer, cell) {
                let other = &mut objects[target as usize];
                let list = other.list();
                if !gains[list] || scratch.is_marked(target) || !ranking.allows(&me, other) {
                    continue;
                }
                let rank = ranking.rank(&me, other);
                if u16::from(rank) < me.gate[list] {
                    refused[list] = refused[list].max(u16::from(rank) + 1);
                } else if !ranking.is_pair(&me, other) {
                    scratch
                        .proposals
                        .push(Proposal::one_way(rank, viewer, target));
                } else if u16::from(rank) < other.gate[me.list()] {
                    other.refuse(me.list(), rank);
                    counters.refused += 1;
                } else {
                    scratch.proposals.push(Proposal::pair(rank, viewer, target));
                }
            }
        }
        for list in 0..LISTS {
            if gains[list] {
                objects[viewer as usize].bound[list] = refused[list];
            }
        }
        let enters = self.counters.enters;
        self.commit_proposals(events);
        self.counters.refills += self.counters.enters - enters;
    }
}
