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

use super::events::ViewEvent;
use super::scratch::MutualProposal;
use super::shard::{Shared, ViewShard};
use crate::aoi::grid::{GridCell, TieQuery};
use crate::aoi::links::{LISTS, LinkKey, UNCAPPED};
use crate::aoi::priority::class_of;

/// How many strangers more than it has places for a viewer chooses from where there are that many.
const ASKED_MIN: usize = 32;

/// What must be lower than an entrant in a full list, for it to be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    /// The class: who meets, and who looks.
    Class,
    /// The rank, bands included: whose turn it is to be re-ranked.
    Rank,
}

impl ViewShard {
    /// Links whom both ends accept, from the top.
    pub(super) fn commit_proposals(&mut self, shared: &Shared) {
        self.commit(shared, Consent::Class);
    }

    /// Links whom both ends accept, from the top.
    pub(super) fn commit(&mut self, shared: &Shared, consent: Consent) {
        let mut proposals = std::mem::take(&mut self.scratch.proposals);
        proposals.sort_unstable();
        // Both ends of a pair may have proposed it, and one end may have found the other twice.
        proposals.dedup();
        for proposal in proposals.drain(..) {
            let (a, b) = proposal.ids();
            let rank = proposal.rank();
            let list_of = |id: u32| shared.objects[id as usize].list();
            let ends = [(a, list_of(b)), (b, list_of(a))];
            let is_pair = proposal.is_pair();
            let asked = if is_pair { &ends[..] } else { &ends[..1] };
            if !self.all_accept(asked, rank, consent) {
                continue;
            }
            for &(id, list) in asked {
                self.make_place(shared, id, list);
            }
            if is_pair {
                self.link_pair(shared, ends, rank);
            } else {
                self.link(shared, a, ends[0].1, LinkKey::new(rank, b));
            }
        }
        self.scratch.proposals = proposals;
    }

    /// Whether all ends would take a link of this rank. One that refuses remembers it.
    fn all_accept(&mut self, ends: &[(u32, usize)], rank: u8, consent: Consent) -> bool {
        for &(id, list) in ends {
            let state = &mut self.viewer_states[self.share.place(id)];
            let accepts = match consent {
                Consent::Class => state.admits(list, rank),
                Consent::Rank => state.has_place(list) || self.links.has_lower(id, list, rank),
            };
            if !accepts {
                state.refuse(list, rank);
                self.counters.refused += 1;
                return false;
            }
        }
        true
    }

    fn link_pair(&mut self, shared: &Shared, ends: [(u32, usize); 2], rank: u8) {
        let [(a, _), (b, _)] = ends;
        self.links.add_pair(rank, ends[0], ends[1]);
        for (id, list) in ends {
            let len = self.links.list_len(id, list);
            if len >= self.viewer_state(id).cap(list) {
                self.refresh_gate(shared, id, list);
            }
            self.counters.max_list = self.counters.max_list.max(len);
        }
        self.counters.enters += 2;
        for ((viewer, list), target) in ends.into_iter().zip([b, a]) {
            self.events.push(ViewEvent::Enter {
                viewer,
                target,
                priority: class_of(rank),
                list: list as u8,
            });
        }
    }

    /// Proposes to all that a viewer, which has something to gain, might gain. What its lists refuse is known
    /// exactly afterwards.
    pub(super) fn propose_to_all(&mut self, shared: &Shared, viewer: u32, from: Option<GridCell>) {
        let stranger_class = shared.stranger_class;
        let state = self.viewer_state_mut(viewer);
        let mut only_strangers = true;
        for list in 0..LISTS {
            if state.gains(list) {
                let stranger = stranger_class.get(list);
                only_strangers &=
                    stranger.is_some_and(|&class| state.bound_class(list) <= class.into());
                state.bound[list] = 0;
            }
        }
        // Who refused nobody above strangers sees all of those, but in the cells that are new to it.
        let from = from.filter(|_| only_strangers);
        self.propose(shared, viewer, from, true);
        (0..UNCAPPED).for_each(|list| self.refresh_open(shared, viewer, list));
    }

    /// Proposes to those around whom a viewer might see and who are new to it: all of them, or those in cells
    /// that were not around the cell where it was, and the arrivals of the others. If it refused strangers,
    /// all of those are asked again. Of peers only those are asked that take strangers or may have a tie with
    /// it; others refuse it unasked.
    ///
    /// Of strangers it asks the best that it has places for: who then has a place left looks again.
    pub(super) fn propose(
        &mut self,
        shared: &Shared,
        viewer: u32,
        from: Option<GridCell>,
        again: bool,
    ) {
        let (me, state) = (&shared.objects[viewer as usize], *self.viewer_state(viewer));
        let takes_strangers: [bool; LISTS] =
            std::array::from_fn(|list| shared.takes_strangers(&state, list));
        let (enough, ties) = (self.enough(viewer), TieQuery::of(&me.traits));
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        let cell = shared.grid.cell(viewer);
        for layer in 0..shared.grid.layer_count() {
            let to = shared.grid.coarse(layer, cell);
            let from = from.map(|from| shared.grid.coarse(layer, from));
            let asks_again = again && layer == 0;
            if from == Some(to) && !asks_again && !shared.grid.has_arrivals(layer) {
                continue;
            }
            for cell in shared.grid.around(layer, to) {
                candidates.clear();
                let is_known = from.is_some_and(|from| from.is_near(cell));
                // From its own cell outwards, until there are enough to choose from: they are all of one class, unless
                // a ranking of the scene's own tells strangers apart.
                let is_ranked = shared.ranking.priority.is_some();
                let wants_strangers = (0..UNCAPPED).any(|list| {
                    takes_strangers[list]
                        && shared.grid.has_list(list)
                        && (is_ranked || self.scratch.entrants[list].len() < enough[list])
                });
                if is_known {
                    candidates.extend(shared.grid.arrivals(layer, cell));
                }
                if is_known && !asks_again {
                    self.ask(shared, viewer, &candidates);
                    continue;
                }
                for list in shared.grid.lists(layer) {
                    let targets = shared.grid.targets(layer, list, cell);
                    if list != UNCAPPED && me.is_peer() && !shared.grid.has_sightless(list, cell) {
                        continue;
                    }
                    if takes_strangers[list] && (wants_strangers || list == UNCAPPED) {
                        candidates.extend_from_slice(targets.ids());
                    } else if !is_known {
                        targets.tied_to(&ties, &mut candidates);
                    }
                }
                if layer == 0 && me.is_peer() {
                    if !is_known {
                        let viewers = self.viewer_index.viewers(cell);
                        viewers.tied_to(&ties, &mut candidates);
                    }
                    if wants_strangers {
                        candidates.extend_from_slice(self.viewer_index.open(me.list(), cell));
                    }
                }
                self.ask(shared, viewer, &candidates);
            }
        }
        self.scratch.candidates = candidates;
        (0..UNCAPPED).for_each(|list| self.propose_best(shared, viewer, list));
    }

    /// Proposes to the best of the strangers that were found.
    fn propose_best(&mut self, shared: &Shared, viewer: u32, list: usize) {
        let places = self.places(viewer, list);
        let mut strangers = std::mem::take(&mut self.scratch.entrants[list]);
        strangers.sort_unstable_by(|a, b| b.cmp(a));
        strangers.dedup();
        let state = self.viewer_state_mut(viewer);
        // While it has to evict for them, those above them may come first.
        if state.has_place(list) && strangers.len() > places {
            state.refuse(list, strangers[places].rank());
            self.set_freed(viewer, true);
            strangers.truncate(places);
        }
        let Shared {
            objects, ranking, ..
        } = shared;
        let me = &objects[viewer as usize];
        for key in strangers.drain(..) {
            let (rank, target) = (key.rank(), key.target());
            let proposal = if ranking.is_pair(me, &objects[target as usize]) {
                MutualProposal::pair(rank, viewer, target)
            } else {
                MutualProposal::one_way(rank, viewer, target)
            };
            self.scratch.proposals.push(proposal);
        }
        self.scratch.entrants[list] = strangers;
    }

    /// How many strangers for each list are enough to choose from.
    fn enough(&self, viewer: u32) -> [usize; UNCAPPED] {
        std::array::from_fn(|list| self.places(viewer, list) + ASKED_MIN)
    }

    /// How many more a list may hold.
    fn places(&self, viewer: u32, list: usize) -> usize {
        let cap = self.viewer_state(viewer).cap(list);
        cap.saturating_sub(self.links.list_len(viewer, list))
    }

    /// Proposes to those of the candidates whom both ends might accept, and collects the strangers among
    /// them: all where the scene has a ranking of its own, else far more than there are places for at most. Who refuses
    /// remembers it.
    fn ask(&mut self, shared: &Shared, viewer: u32, candidates: &[u32]) {
        let enough = self.enough(viewer);
        let Shared {
            objects,
            ranking,
            stranger_class,
            ..
        } = shared;
        let (me, mut state) = (&objects[viewer as usize], *self.viewer_state(viewer));
        let Self {
            share,
            viewer_states,
            scratch,
            counters,
            ..
        } = self;
        for &target in candidates {
            let other = &objects[target as usize];
            if scratch.is_marked(target) || !other.viewable || !shared.allows(me, other) {
                continue;
            }
            let (list, rank) = (other.list(), ranking.rank(me, other));
            if !state.admits(list, rank) {
                state.refuse(list, rank);
                counters.refused += 1;
                continue;
            }
            let is_pair = ranking.is_pair(me, other);
            let theirs = &mut viewer_states[share.place(target)];
            if is_pair && !theirs.admits(me.list(), rank) {
                theirs.refuse(me.list(), rank);
                counters.refused += 1;
                continue;
            }
            match stranger_class.get(list) {
                Some(&class) if class_of(rank) <= class => {
                    // Of those whom a ranking of the scene's own tells apart, the best may come last.
                    let is_ranked = ranking.priority.is_some();
                    if is_ranked || scratch.entrants[list].len() < enough[list] {
                        scratch.entrants[list].push(LinkKey::new(rank, target));
                    } else {
                        state.refuse(list, rank);
                    }
                }
                _ if is_pair => scratch
                    .proposals
                    .push(MutualProposal::pair(rank, viewer, target)),
                _ => {
                    let proposal = MutualProposal::one_way(rank, viewer, target);
                    scratch.proposals.push(proposal);
                }
            }
        }
        self.viewer_state_mut(viewer).bound = state.bound;
    }
}
