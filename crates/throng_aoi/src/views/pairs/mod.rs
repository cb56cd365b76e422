//! Mutual mode: pairs that both ends must accept.
//!
//! ```text
//! cells in parallel: targets that are out of range or hidden leave, at both ends separately (cell_pass.rs)
//! then sequentially:
//!   priority   targets that go before unrelated ones ─▶ proposals ─sort by rank, then ids─▶ both accept? evict, evict, link
//!   unrelated  arrivals that see nothing, with viewers that have a free slot; viewers that came, with peers that have one too
//!   bands      viewers whose turn it is, with peers for which both ends would drop a farther member
//!   queue      viewers that had a full list and lost a member scan, first in first out
//! ```
//! Both ends must accept before anything is evicted, and only lower classes are evicted. An eviction frees a slot of another
//! viewer and queues it; its scan may evict again, but only lower classes. So a change among viewers at rest ends after
//! at most two evictions per class.
//!
//! Invariant: of a pair that could be linked and is not, an end that refuses is full of targets that go before the other and
//! has noted that it refused one (or the other is unrelated), or it waits in the queue.
//!
//! | file | holds |
//! |---|---|
//! | here | related and unrelated targets, and the queue |
//! | `proposal` | possible links, in commit order |
//! | `rerank_pairs` | distance bands |

pub mod proposal;
mod rerank_pairs;

use crate::priority::{class_of, rank_of};
use crate::views::choose::eviction::ListedTarget;
use crate::views::choose::fill::CellView;
use crate::views::events::{ViewEvent, ViewLeaveReason};
use crate::views::scene_views::SceneViews;
use crate::views::state::bits::bit;
use crate::views::state::cells::RowState;
use crate::views::state::object::{CellLocation, NONE, UNCAPPED};
use crate::views::state::rows::NEIGHBOURHOOD_CELLS;
use crate::views::update::cell_pass::CellPass;
use proposal::MutualProposal;

/// The maximum number of pairs that are collected before they are committed.
const PROPOSALS_MAX: usize = 1 << 18;

impl SceneViews {
    /// Handles all links that need the consent of both ends.
    pub(super) fn update_pairs(&mut self, sight_tests_max: u32) {
        // Cells that become active later through pairs have no work of their own.
        let count = self.active_cells.len();
        for nth in 0..count {
            let cell = self.active_cells[nth] as usize;
            self.open_freed_lists(cell);
            self.trim_pairs(cell);
        }
        for nth in 0..count {
            let cell = self.active_cells[nth] as usize;
            self.with_pass(cell, |pass| {
                pass.scratch.rows_to_refill.clear();
                pass.mark_refills();
            });
            for nth in 0..self.viewers[cell].scheduled_rows.len() {
                let row = self.viewers[cell].scheduled_rows[nth] as usize;
                self.with_pass(cell, |pass| pass.scan_around(row));
                self.propose_candidates(cell);
            }
            let mut welcomed = (0, 0);
            while self.with_pass(cell, |pass| pass.collect_for_arrivals(&mut welcomed)) {
                self.propose_candidates(cell);
            }
            self.propose_candidates(cell);
        }
        self.commit_proposals();
        for nth in 0..count {
            let cell = self.active_cells[nth] as usize;
            self.with_pass(cell, |pass| pass.admit_arrivals());
            for nth in 0..self.viewers[cell].scheduled_rows.len() {
                let row = self.viewers[cell].scheduled_rows[nth] as usize;
                let state = self.viewers[cell].states[row];
                if state.refill_lists != 0 && !state.has_task(RowState::WAITS_FOR_SCAN) {
                    self.propose_unrelated(cell, row);
                }
                self.viewers[cell].states[row].refill_lists = 0;
            }
        }
        self.commit_unrelated();
        for nth in 0..count {
            let cell = self.active_cells[nth] as usize;
            for nth in 0..self.viewers[cell].rows_to_rerank.len() {
                let row = self.viewers[cell].rows_to_rerank[nth] as usize;
                self.rerank_pairs(cell, row);
            }
        }
        self.process_queue(sight_tests_max);
    }

    /// Marks the objects of a cell that may have a free slot as open; a full object that was freed is queued later.
    fn open_freed_lists(&mut self, cell: usize) {
        for nth in 0..self.viewers[cell].scheduled_rows.len() {
            let id = self.viewers[cell].id(self.viewers[cell].scheduled_rows[nth] as usize);
            if id != NONE {
                self.open_lists(id);
            }
        }
        for nth in 0..self.viewers[cell].freed.len() {
            self.open_lists(self.viewers[cell].freed[nth]);
        }
        self.freed.append(&mut self.viewers[cell].freed);
    }

    /// Runs `work` on one cell with everything that its pass needs.
    pub(super) fn with_pass<R>(&mut self, cell: usize, work: impl FnOnce(&mut CellPass) -> R) -> R {
        self.mark_active(cell as u32);
        let Self {
            shared,
            viewers,
            scratch,
            ..
        } = self;
        work(&mut CellPass::new(
            shared,
            &mut viewers[cell],
            &mut scratch[0],
        ))
    }

    /// Evicts from lists that are above their cap.
    fn trim_pairs(&mut self, cell: usize) {
        for nth in 0..self.viewers[cell].scheduled_rows.len() {
            let row = self.viewers[cell].scheduled_rows[nth] as usize;
            for list in 0..UNCAPPED {
                while {
                    let state = &self.viewers[cell].states[row];
                    state.has_task(RowState::CAPS_CHANGED) && state.count[list] > state.caps[list]
                } {
                    let victim = self.with_pass(cell, |pass| pass.find_lowest(row, list));
                    let Some(victim) = victim else {
                        break;
                    };
                    self.evict_pair(cell, row, list, victim);
                }
            }
        }
    }

    /// Turns the candidates of a cell into proposals.
    fn propose_candidates(&mut self, cell: usize) {
        if self.scratch[0].candidates.is_empty() {
            return;
        }
        let found = self.with_pass(cell, |pass| pass.drain_candidates());
        for (row, rank, target) in found {
            let viewer = self.viewers[cell].id(row);
            self.propose(viewer, target, rank);
        }
        if self.proposals.len() > PROPOSALS_MAX {
            self.commit_proposals();
        }
    }

    fn propose(&mut self, viewer: u32, target: u32, rank: u8) {
        let (a, b) = (self.shared.object(viewer), self.shared.object(target));
        self.proposals.push(if self.shared.ranking.is_pair(a, b) {
            MutualProposal::pair(rank, viewer, target)
        } else {
            MutualProposal::one_way(rank, viewer, target)
        });
    }

    /// Proposes to the nearest unrelated targets that have a free slot too, one per free slot.
    fn propose_unrelated(&mut self, cell: usize, row: usize) {
        let viewer = self.viewers[cell].id(row);
        for list in 0..UNCAPPED {
            let state = &self.viewers[cell].states[row];
            let places = usize::from(state.caps[list].saturating_sub(state.count[list]));
            let is_open = places > 0 && self.shared.has_list(list) && !self.shared.is_ranked(list);
            if viewer == NONE || !is_open {
                continue;
            }
            let mut found = std::mem::take(&mut self.scratch[0].unrelated);
            let mut full = std::mem::take(&mut self.full_objects);
            let view = CellView {
                shared: &self.shared,
                viewers: &self.viewers[cell],
            };
            view.collect_open_targets(
                row,
                list,
                places,
                |target| {
                    let takes = self.may_admit_unrelated(viewer, target);
                    if !takes {
                        full.push(target);
                    }
                    takes
                },
                &mut found,
            );
            let own_list = self.shared.object(viewer).list();
            if found.len() <= places && !self.shared.is_ranked(own_list) {
                // There is a slot for all of them, at both ends.
                for &(direction, slot) in &found {
                    self.link_unrelated(cell, row, direction.into(), slot as usize);
                }
            } else {
                self.propose_nearest(cell, row, list, &mut found);
            }
            found.clear();
            for target in full.drain(..) {
                if !self.shared.is_ranked(own_list) {
                    self.close_list(target, own_list);
                }
            }
            self.scratch[0].unrelated = found;
            self.full_objects = full;
        }
    }

    /// Proposes to the nearest of the targets that were found, one per free slot.
    fn propose_nearest(
        &mut self,
        cell: usize,
        row: usize,
        list: usize,
        found: &mut Vec<(u8, u32)>,
    ) {
        let viewer = self.viewers[cell].id(row);
        let state = &self.viewers[cell].states[row];
        let places = usize::from(state.caps[list].saturating_sub(state.count[list]));
        for (direction, slot) in found.iter_mut() {
            let near = self.shared.cells[cell].neighbours[usize::from(*direction)];
            let target = self.shared.cells[near as usize].id(*slot as usize);
            (*direction, *slot) = (!self.shared.nearness(viewer, target), target);
        }
        found.sort_unstable();
        if found.len() >= places {
            found.truncate(places);
            // If some of these refuse, the viewer tries the others.
            self.lists_with_more_candidates.push((viewer, list as u8));
        }
        for &(farness, target) in found.iter() {
            let class = self.shared.class(viewer, target);
            self.propose(viewer, target, rank_of(class, !farness));
        }
    }

    /// Links a viewer with a near target; both have a free slot, or the target need not agree.
    fn link_unrelated(&mut self, cell: usize, row: usize, direction: usize, slot: usize) {
        let viewer = self.viewers[cell].id(row);
        let near = self.shared.cells[cell].neighbours[direction] as usize;
        let target = self.shared.cells[near].id(slot);
        let (a, b) = (self.shared.object(viewer), self.shared.object(target));
        let class = self.shared.ranking.class(a, b);
        let (is_pair, lists) = (self.shared.ranking.is_pair(a, b), (b.list(), a.list()));
        self.enter(cell, row, lists.0, (direction, slot), class);
        if is_pair {
            let own_slot = self.viewers[cell].states[row].slot as usize;
            let back = (NEIGHBOURHOOD_CELLS - 1 - direction, own_slot);
            let row = self.shared.location(target).row as usize;
            self.enter(near, row, lists.1, back, class);
        }
    }

    /// A viewer sees the target in a slot of a direction from now on.
    fn enter(
        &mut self,
        cell: usize,
        row: usize,
        list: usize,
        (direction, slot): (usize, usize),
        class: u8,
    ) {
        self.mark_active(cell as u32);
        let at = &self.shared.cells[cell];
        let target = self.shared.cells[at.neighbours[direction] as usize].id(slot);
        let viewers = &mut self.viewers[cell];
        viewers
            .rows
            .insert(row, at.word(direction, slot), bit(slot));
        let state = &mut viewers.states[row];
        state.count[list] += 1;
        state.lowest_class[list] = state.lowest_class[list].min(class);
        // As if it were at the farthest distance: no member has a lower rank.
        state.lowest_rank[list] = state.lowest_rank[list].min(rank_of(class, 0));
        let (counters, count) = (&mut self.scratch[0].counters, state.count[list]);
        counters.longest_list = counters.longest_list.max(usize::from(count));
        counters.enters += 1;
        self.scratch[0].events.push(ViewEvent::Enter {
            viewer: viewers.id(row),
            target,
            priority: class,
            list: list as u8,
        });
    }

    /// Marks a list of a target as closed to proposals until it has a free slot again.
    fn close_list(&mut self, target: u32, list: usize) {
        let CellLocation { cell, slot, .. } = self.shared.location(target);
        let word = &mut self.shared.cells[cell as usize].slots[slot as usize / 64];
        if let Some(mask) = word.open.get_mut(list) {
            *mask &= !bit(slot as usize);
        }
    }

    /// Opens the lists of an object to proposals again.
    fn open_lists(&mut self, id: u32) {
        let CellLocation { cell, slot, .. } = self.shared.location(id);
        if slot != NONE {
            let word = &mut self.shared.cells[cell as usize].slots[slot as usize / 64];
            word.set_open(slot as usize);
        }
    }

    /// Whether a target may accept an unrelated viewer, or need not: it has a free slot, or may have a member of a lower class.
    fn may_admit_unrelated(&self, viewer: u32, target: u32) -> bool {
        let (a, b) = (self.shared.object(viewer), self.shared.object(target));
        let CellLocation { cell, row, .. } = self.shared.location(target);
        if !self.shared.ranking.is_pair(a, b) {
            return true;
        }
        let state = &self.viewers[cell as usize].states[row as usize];
        let list = a.list();
        state.has_room(list)
            || self.shared.is_ranked(list)
                && state.lowest_class[list] < self.shared.class(viewer, target)
    }

    fn commit_unrelated(&mut self) {
        self.commit_proposals();
        let mut unsated = std::mem::take(&mut self.lists_with_more_candidates);
        for (viewer, list) in unsated.drain(..) {
            let CellLocation { cell, row, .. } = self.shared.location(viewer);
            let state = &self.viewers[cell as usize].states[row as usize];
            if state.has_room(usize::from(list)) {
                self.freed.push(viewer);
            }
        }
        self.lists_with_more_candidates = unsated;
    }

    /// Links the proposals that both ends accept, from the highest rank.
    fn commit_proposals(&mut self) {
        let mut proposals = std::mem::take(&mut self.proposals);
        proposals.sort_unstable();
        // Both ends of a pair may have proposed it.
        proposals.dedup();
        for proposal in proposals.drain(..) {
            let ((a, b), rank) = (proposal.ids(), proposal.rank());
            let ends = [(a, b), (b, a)];
            let asked = if proposal.is_pair() {
                &ends[..]
            } else {
                &ends[..1]
            };
            if self.visible(a, b) {
                continue;
            }
            let mut victims = [None; 2];
            let accepted = asked
                .iter()
                .zip(&mut victims)
                .all(|(&(id, other), victim)| {
                    let accepted = self.try_accept(id, other, class_of(rank));
                    *victim = accepted.flatten();
                    accepted.is_some()
                });
            if !accepted {
                continue;
            }
            for (&(id, other), victim) in asked.iter().zip(victims) {
                let CellLocation { cell, row, .. } = self.shared.location(id);
                let list = self.shared.object(other).list();
                if let Some(victim) = victim {
                    self.evict_pair(cell as usize, row as usize, list, victim);
                }
            }
            for &(id, other) in asked {
                self.link_end(id, other, rank);
            }
        }
        self.proposals = proposals;
    }

    /// Whether an end accepts a link of this class, and which lower member it would evict for it. A refusal is noted.
    fn try_accept(&mut self, id: u32, other: u32, class: u8) -> Option<Option<ListedTarget>> {
        let CellLocation { cell, row, .. } = self.shared.location(id);
        let (cell, row) = (cell as usize, row as usize);
        let list = self.shared.object(other).list();
        let state = self.viewers[cell].states[row];
        if state.has_room(list) {
            return Some(None);
        }
        let lowest = if class <= state.lowest_class[list] {
            None
        } else {
            self.with_pass(cell, |pass| pass.find_lowest(row, list))
        };
        let victim = lowest.filter(|lowest| lowest.class < class);
        if victim.is_none() {
            self.mark_refused(cell, row, list, class);
        }
        victim.map(Some)
    }

    /// Notes that a full list refused a target of this class.
    pub(super) fn mark_refused(&mut self, cell: usize, row: usize, list: usize, class: u8) {
        let goes_first = self.shared.outranks_unrelated(list, class);
        self.viewers[cell].states[row].refused_lists |= u8::from(goes_first) << list;
        self.counters.full_list_attempts += 1;
    }

    /// One end sees the other from now on.
    pub(super) fn link_end(&mut self, id: u32, other: u32, rank: u8) {
        let CellLocation { cell, row, .. } = self.shared.location(id);
        let list = self.shared.object(other).list();
        let at = &self.shared.cells[cell as usize];
        if let Some((word, place)) = self.shared.bit_of(at, other) {
            let lowest = &mut self.viewers[cell as usize].states[row as usize].lowest_rank[list];
            *lowest = rank.min(*lowest);
            let entrant = ListedTarget {
                word,
                place,
                target: other,
                class: class_of(rank),
            };
            self.with_pass(cell as usize, |pass| pass.link(row as usize, list, entrant));
        }
    }

    /// Evicts a member; a partner also loses the viewer, and then has a free slot.
    pub(super) fn evict_pair(
        &mut self,
        cell: usize,
        row: usize,
        list: usize,
        victim: ListedTarget,
    ) {
        let viewer = self.viewers[cell].id(row);
        self.with_pass(cell, |pass| pass.evict(row, list, victim));
        let target = victim.target;
        let (a, b) = (self.shared.object(viewer), self.shared.object(target));
        if !self.shared.ranking.is_pair(a, b) {
            return;
        }
        let list = a.list();
        let CellLocation { cell, row, .. } = self.shared.location(target);
        let at = &self.shared.cells[cell as usize];
        let Some((word, place)) = self.shared.bit_of(at, viewer) else {
            return;
        };
        self.mark_active(cell);
        let viewers = &mut self.viewers[cell as usize];
        viewers.rows.remove(row as usize, word, bit(place));
        let state = &mut viewers.states[row as usize];
        let was_full = !state.has_room(list);
        state.count[list] -= 1;
        self.scratch[0].events.push(ViewEvent::Leave {
            viewer: target,
            target: viewer,
            reason: ViewLeaveReason::Evicted,
            list: list as u8,
        });
        self.counters.leaves += 1;
        if was_full {
            self.freed.push(target);
            self.open_lists(target);
        }
    }

    /// Queues viewers that can gain a target, and serves the queue from its head.
    fn process_queue(&mut self, sight_tests_max: u32) {
        let mut looks = 0;
        loop {
            // A scan may free slots of others.
            self.enqueue_freed();
            let Some(viewer) = self.queue.first() else {
                break;
            };
            let CellLocation { cell, row, .. } = self.shared.location(viewer);
            let state = self.viewers[cell as usize].states[row as usize];
            let can_gain = state.has_task(RowState::WAITS_FOR_SCAN)
                || state.refused_lists != 0
                || (0..UNCAPPED).any(|list| state.has_room(list) && self.shared.has_list(list));
            if can_gain && looks == sight_tests_max {
                break;
            }
            self.queue.pop();
            if can_gain {
                looks += 1;
                self.scan_viewer(cell as usize, row as usize);
            }
        }
        self.counters.scans += u64::from(looks);
    }

    /// Scans for one queued viewer. It can take a slot that another viewer needs, so scans are committed one by one.
    fn scan_viewer(&mut self, cell: usize, row: usize) {
        let enters = self.scratch[0].counters.enters;
        self.mark_active(cell as u32);
        let viewers = &mut self.viewers[cell];
        let waited = viewers.states[row].has_task(RowState::WAITS_FOR_SCAN);
        viewers.states[row].tasks &= !RowState::WAITS_FOR_SCAN;
        if waited {
            viewers.schedule(row as u32, RowState::SCANS);
        }
        let is_ranked = (0..UNCAPPED).any(|list| self.shared.is_ranked(list));
        if waited || is_ranked || self.viewers[cell].states[row].refused_lists != 0 {
            self.with_pass(cell, |pass| {
                pass.scratch.candidates.clear();
                pass.collect_candidates(row, 0b111);
                if waited {
                    pass.enter_far(row);
                }
            });
            self.propose_candidates(cell);
            self.commit_proposals();
        }
        self.propose_unrelated(cell, row);
        self.commit_unrelated();
        let counters = &mut self.scratch[0].counters;
        counters.refills += counters.enters - enters;
    }
}
