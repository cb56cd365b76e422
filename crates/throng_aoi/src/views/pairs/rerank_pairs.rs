//! Bands of distance where sight is mutual: whose turn it is takes who is nearer, if the other end gains by that, too.
//!
//! What is farthest in the list of the one is known from its turn, in the order in which it goes; of the other there is a bound
//! of the lowest rank, by which most of those that would refuse are not asked. Nobody is sorted.

use crate::priority::{class_of, rank_of};
use crate::views::choose::band_words::{BandWord, FarthestFirst, NEAREST};
use crate::views::choose::eviction::ListedTarget;
use crate::views::choose::rerank::ListRerank;
use crate::views::scene_views::SceneViews;
use crate::views::state::bits::ones;
use crate::views::state::cells::RowState;
use crate::views::state::object::{CellLocation, NONE, UNCAPPED};

impl SceneViews {
    /// In its turn a viewer gives places of the farthest of its lowest class to those who are in a nearer band, where the other
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

    /// Those who were found take the places of members that are farther, the nearest first, each that of the farthest.
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

    /// Links a viewer with somebody in a direction instead of with a member, if the other end gains by that, too.
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

    /// Whether the other end of a link of this rank need not agree, has a place, or may have somebody of a lower rank. What it
    /// had in its last turn decides: if it has one only since, it proposes in its next.
    fn would_gain(&self, id: u32, other: u32, rank: u8) -> bool {
        let (a, b) = (self.shared.object(other), self.shared.object(id));
        let (list, CellLocation { cell, row, .. }) = (a.list(), self.shared.location(id));
        if !self.shared.ranking.is_pair(a, b) {
            return true;
        }
        let state = &self.viewers[cell as usize].states[row as usize];
        state.has_room(list) || state.lowest_rank[list] < rank
    }

    /// Whether an end takes a link of this rank, and whom of a lower one it would evict for it. One that refuses remembers it.
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
