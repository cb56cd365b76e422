//! Distance bands in mutual mode: a viewer whose turn it is links nearer peers if the other end gains by that, too.
//!
//! For the viewer, its turn has sorted its members from the farthest; for the peer, a lower bound of its lowest rank
//! excludes most of those that would refuse. Nothing is sorted here.

use crate::priority::{class_of, rank_of};
use crate::views::choose::band_words::{BandWord, FarthestFirst, NEAREST};
use crate::views::choose::eviction::ListedTarget;
use crate::views::choose::rerank::ListRerank;
use crate::views::scene_views::SceneViews;
use crate::views::state::bits::ones;
use crate::views::state::cells::RowState;
use crate::views::state::object::{CellLocation, NONE, UNCAPPED};

impl SceneViews {
    /// Re-ranks one viewer: gives slots of the farthest members of its lowest class to peers in a nearer band, where the other
    /// end would gain too.
    pub(crate) fn rerank_pairs(&mut self, cell: usize, row: usize) {
        let state = self.viewers[cell].states[row];
        if self.viewers[cell].id(row) == NONE || state.has_task(RowState::WAITS_FOR_SCAN) {
            return;
        }
        for list in 0..UNCAPPED {
            if state.count[list] == 0 || state.has_room(list) {
                continue;
            }
            let contest = self.with_pass(cell, |pass| pass.begin_rerank(row, list));
            if let Some((contest, lowest)) = contest {
                let lowest_rank = rank_of(contest.class, lowest as u8);
                self.viewers[cell].states[row].lowest_rank[list] = lowest_rank;
                if lowest < NEAREST {
                    self.with_pass(cell, |pass| pass.find_nearer(&contest, lowest));
                    self.replace_pairs(cell, &contest);
                }
            }
        }
    }

    /// The found peers replace farther members: the nearest peer first, each for the farthest member.
    fn replace_pairs(&mut self, cell: usize, contest: &ListRerank) {
        let &ListRerank {
            row, list, class, ..
        } = contest;
        let scratch = &mut self.scratch[0];
        let members = std::mem::take(&mut scratch.members);
        let outsiders = std::mem::take(&mut scratch.outsiders);
        let (mut leavers, mut leaver) = (FarthestFirst::default(), None);
        let mut farthest = NEAREST;
        'entrants: for nearness in (1..=NEAREST).rev() {
            for word in &outsiders {
                for place in ones(word.bands[nearness]) {
                    leaver = leaver.or_else(|| leavers.next(&members, NEAREST));
                    let Some((member, leaves, _)) = leaver.filter(|leaver| leaver.2 < nearness)
                    else {
                        self.mark_refused(cell, row, list, class);
                        break 'entrants;
                    };
                    let rank = rank_of(class, nearness as u8);
                    if self.replace_pair(cell, contest, (member, leaves), (word, place), rank) {
                        leaver = None;
                        farthest = nearness;
                    }
                }
            }
        }
        let next = leaver.or_else(|| leavers.next(&members, NEAREST));
        let farthest = next.map_or(farthest, |(.., nearness)| farthest.min(nearness));
        self.viewers[cell].states[row].lowest_rank[list] = rank_of(class, farthest as u8);
        let scratch = &mut self.scratch[0];
        (scratch.members, scratch.outsiders) = (members, outsiders);
    }

    /// Links a viewer with a peer in place of a member, if the other end gains by that, too.
    fn replace_pair(
        &mut self,
        cell: usize,
        &ListRerank {
            row, list, class, ..
        }: &ListRerank,
        (members, leaves): (&BandWord, usize),
        (outsiders, enters): (&BandWord, usize),
        rank: u8,
    ) -> bool {
        let at = &self.shared.cells[cell];
        let (viewer, target) = (
            self.viewers[cell].id(row),
            outsiders.target(&self.shared, at, enters),
        );
        if !self.would_gain(target, viewer, rank) {
            return false;
        }
        let (a, b) = (self.shared.object(viewer), self.shared.object(target));
        let (is_pair, own_list) = (self.shared.ranking.is_pair(a, b), a.list());
        let victim = if is_pair {
            self.try_accept_nearer(target, viewer, rank)
        } else {
            Some(None)
        };
        let Some(victim) = victim else {
            return false;
        };
        let leaver = ListedTarget {
            word: members.word as usize,
            place: leaves,
            target: members.target(&self.shared, &self.shared.cells[cell], leaves),
            class,
        };
        self.evict_pair(cell, row, list, leaver);
        if let Some(victim) = victim {
            let CellLocation { cell, row, .. } = self.shared.location(target);
            self.evict_pair(cell as usize, row as usize, own_list, victim);
        }
        self.link_end(viewer, target, rank);
        if is_pair {
            self.link_end(target, viewer, rank);
        }
        true
    }

    /// Whether the other end of a link of this rank need not agree, has a free slot, or may have a member of a lower rank. This
    /// reads its state at its last turn; if it has such a member only since then, it proposes in its next turn.
    fn would_gain(&self, id: u32, other: u32, rank: u8) -> bool {
        let (a, b) = (self.shared.object(other), self.shared.object(id));
        let (list, CellLocation { cell, row, .. }) = (a.list(), self.shared.location(id));
        if !self.shared.ranking.is_pair(a, b) {
            return true;
        }
        let state = &self.viewers[cell as usize].states[row as usize];
        state.has_room(list) || state.lowest_rank[list] < rank
    }

    /// Whether an end accepts a link of this rank, and which lower member it would evict for it. A refusal is noted.
    fn try_accept_nearer(&mut self, id: u32, other: u32, rank: u8) -> Option<Option<ListedTarget>> {
        let CellLocation { cell, row, .. } = self.shared.location(id);
        let (cell, row) = (cell as usize, row as usize);
        let list = self.shared.object(other).list();
        if self.viewers[cell].states[row].has_room(list) {
            return Some(None);
        }
        let lowest = self.with_pass(cell, |pass| pass.find_lowest_rank(row, list));
        self.viewers[cell].states[row].lowest_rank[list] = lowest.map_or(0, |lowest| lowest.0);
        let victim = lowest.filter(|lowest| lowest.0 < rank);
        if victim.is_none() {
            self.mark_refused(cell, row, list, class_of(rank));
        }
        victim.map(|victim| Some(victim.1))
    }
}
