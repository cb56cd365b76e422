//! The View step: brings the links up to date with all that was noted since the last one.
//!
//! ```text
//! settle   grid arrays follow the reported cells; changed targets are noted as arrivals
//! part     links of changed objects that cannot be any more end; if a standing changed, the rest is re-ranked
//! trim     lists above a lowered cap lose their lowest
//! meet     viewers that moved sweep the cells that differ; changed targets offer themselves to the others
//!          (meet.rs)
//! rerank   a share of the viewers with a full list measures distances anew (rerank.rs)
//! look     the first of the queue sweep their surroundings for whom they refused (look.rs)
//! ```
//! With mutual sight, all that meet are served together (pairs.rs).
//!
//! All leave before anybody enters, so that two who walk together over a border never lose each other for a
//! tick.
//!
//! Each pair is met once: a viewer that sweeps for itself finds every changed target in its range, either in
//! a cell that is new to it or among the arrivals of the others; so changed targets offer themselves only to
//! viewers that do not sweep. All entrants that a sweep finds are served together, the higher rank first, then
//! the lower id.
//!
//! Invariant: who can gain is queued. No allocation once warm.

use super::{
    grid::GridCell,
    links::{LISTS, LinkKey, UNCAPPED, WatchedBy},
    meet::Offer,
    object::{News, UNKNOWN},
    pairs::Proposal,
    priority::class_of,
    views::{LeaveReason, SceneViews, ViewEvent},
};

/// Buffers of the update, kept between updates.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// The last sweep in which each id was marked.
    marks: Vec<u32>,
    sweep: u32,
    /// Entrants of the viewer in hand, by list.
    pub(super) entrants: [Vec<LinkKey>; LISTS],
    pub(super) offers: Vec<Offer>,
    /// Members of the cell in hand that are looked at.
    pub(super) candidates: Vec<u32>,
    /// Places of links of the object in hand that may end.
    ending: Vec<u32>,
    /// Members of the list in hand, with their places.
    pub(super) members: Vec<(LinkKey, u32)>,
    pub(super) proposals: Vec<Proposal>,
    changes: Vec<Change>,
}

impl Scratch {
    pub(super) fn grow(&mut self, ids: usize) {
        self.marks.resize(ids.max(self.marks.len()), 0);
    }

    /// Begins a sweep in which nobody is marked yet.
    pub(super) fn begin(&mut self) {
        if self.sweep == u32::MAX {
            self.marks.fill(0);
            self.sweep = 0;
        }
        self.sweep += 1;
    }

    pub(super) fn mark(&mut self, id: u32) {
        self.marks[id as usize] = self.sweep;
    }

    /// Copies those that are not marked to the front of the candidates, without a branch that depends on them;
    /// says how many they are.
    pub(super) fn choose_unmarked(&mut self, ids: &[u32]) -> usize {
        if self.candidates.len() < ids.len() {
            self.candidates.resize(ids.len(), 0);
        }
        let mut count = 0;
        for &id in ids {
            self.candidates[count] = id;
            count += usize::from(self.marks[id as usize] != self.sweep);
        }
        count
    }

    pub(super) fn is_marked(&self, id: u32) -> bool {
        self.marks[id as usize] == self.sweep
    }
}

/// An object with news, and where it was at the last update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) id: u32,
    pub(super) from: GridCell,
    pub(super) moved: bool,
}

impl SceneViews {
    /// The View step. Appends to `events` all that changed, leaves first, in an order that follows from the
    /// ids; serves at most `looks_max` viewers of the queue. (Those in it that turn out to have nothing to
    /// gain are let go for free; those that moved sweep at once, uncounted.)
    pub fn update(&mut self, looks_max: u32, events: &mut Vec<ViewEvent>) {
        self.tell_parted(events);
        let mut changes = std::mem::take(&mut self.scratch.changes);
        self.settle(&mut changes);
        for change in &changes {
            self.part(change, events);
        }
        for change in &changes {
            self.trim(change.id, events);
        }
        self.meet(&changes, events);
        self.rerank(events);
        self.look(looks_max, events);
        self.forget_news(&changes);
        self.scratch.changes = changes;
    }

    /// Tells the leaves of removed objects, by pair.
    fn tell_parted(&mut self, events: &mut Vec<ViewEvent>) {
        self.parted.sort_unstable_by_key(|event| match *event {
            ViewEvent::Enter { viewer, target, .. } | ViewEvent::Leave { viewer, target, .. } => {
                (viewer, target)
            }
        });
        self.counters.leaves += self.parted.len() as u64;
        events.append(&mut self.parted);
    }

    fn settle(&mut self, changes: &mut Vec<Change>) {
        changes.clear();
        self.changed.sort_unstable();
        self.changed.dedup();
        let mut changed = std::mem::take(&mut self.changed);
        for &id in &changed {
            let object = &mut self.objects[id as usize];
            if !object.alive || !object.news.listed {
                continue;
            }
            let layer = usize::from(object.layer);
            let change = Change {
                id,
                from: self.grid.home(id),
                moved: self.grid.home(id) != self.grid.cell(id),
            };
            let standing = object.standing;
            self.grid.settle(id, &standing);
            if object.news.standing {
                self.grid.write_ties(id, &standing);
            }
            if object.news.target {
                self.grid.add_target(id, layer, object.list(), &standing);
            }
            if object.news.viewer {
                self.grid.add_viewer(id, &standing);
            }
            object.news.sweeps = object.viewer && (object.news.viewer || change.moved);
            if object.viewable && (object.news.target || object.news.standing || change.moved) {
                self.grid.note_arrival(id, layer);
            }
            let (list, class, news) =
                (object.list(), Self::class_to_strangers(object), object.news);
            if news.target || news.standing {
                self.raise_stranger_class(list, class);
            }
            if news.viewer {
                (0..UNCAPPED).for_each(|list| self.refresh_open(id, list));
            }
            changes.push(change);
        }
        changed.clear();
        self.changed = changed;
    }

    /// Ends or re-ranks the links of an object that moved or whose standing changed, at both ends.
    fn part(&mut self, change: &Change, events: &mut Vec<ViewEvent>) {
        let Change { id, moved, .. } = *change;
        let object = self.objects[id as usize];
        let news = object.news;
        if !moved && !news.standing {
            return;
        }
        let cell = self.grid.cell(id);
        let mut ending = std::mem::take(&mut self.scratch.ending);
        if object.viewer && !news.viewer {
            for list in 0..LISTS {
                // Targets of a capped list are all in the finest layer.
                let is_revised = news.standing || list == UNCAPPED;
                let cells = self.grid.cells();
                let count = self.links.choose_seen(id, list, &mut ending, |key| {
                    is_revised || !cell.is_near(cells[key.target() as usize])
                });
                if count == 0 {
                    continue;
                }
                self.links.fetch_seen(id, list, &ending[..count]);
                for &place in ending[..count].iter().rev() {
                    let place = place as usize;
                    if is_revised {
                        self.revise(id, list, place, news.standing, events);
                    } else {
                        self.unlink(id, list, place, LeaveReason::Range, events);
                    }
                }
                self.refresh_gate(id, list);
            }
            if news.standing {
                self.objects[id as usize].bound = [UNKNOWN; LISTS];
            }
            self.freed.insert(id as usize);
        }
        if object.viewable && !news.target {
            let layer = usize::from(object.layer);
            let cells = self.grid.cells();
            let count = if layer == 0 && !news.standing {
                self.links.choose_watchers(id, &mut ending, |viewer| {
                    !cell.is_near(cells[viewer as usize])
                })
            } else {
                self.links.choose_watchers(id, &mut ending, |viewer| {
                    news.standing || !self.grid.in_range(layer, cells[viewer as usize], cell)
                })
            };
            self.links.fetch_watchers(id, &ending[..count]);
            for &place in ending[..count].iter().rev() {
                let place = place as usize;
                let (viewer, list) = if news.standing {
                    let Some(WatchedBy {
                        viewer,
                        list,
                        place,
                    }) = self.links.watcher_at(id, place)
                    else {
                        continue;
                    };
                    if !self.revise(viewer, list, place, true, events) {
                        continue;
                    }
                    (viewer, list)
                } else {
                    let Some((viewer, list)) = self.links.remove_watcher(id, place) else {
                        continue;
                    };
                    self.tell_left(viewer, id, LeaveReason::Range, events);
                    (viewer, list)
                };
                self.refresh_gate(viewer, list);
                self.freed.insert(viewer as usize);
            }
        }
        self.scratch.ending = ending;
    }

    /// Ends a link that cannot be any more, or ranks it anew if a standing changed; true if anything changed.
    fn revise(
        &mut self,
        viewer: u32,
        list: usize,
        place: usize,
        standing: bool,
        events: &mut Vec<ViewEvent>,
    ) -> bool {
        let Some(key) = self.links.key_at(viewer, list, place) else {
            return false;
        };
        let target = key.target();
        let (a, b) = (
            &self.objects[viewer as usize],
            &self.objects[target as usize],
        );
        let reason = if !self.grid.in_range(
            usize::from(b.layer),
            self.grid.cell(viewer),
            self.grid.cell(target),
        ) {
            LeaveReason::Range
        } else if standing && !self.ranking.allows(a, b) {
            LeaveReason::Hidden
        } else {
            let rank = if standing {
                self.ranking.rank_in_band(key.rank(), a, b)
            } else {
                key.rank()
            };
            return self.set_rank(viewer, list, place, rank);
        };
        self.unlink(viewer, list, place, reason, events);
        true
    }

    /// Ranks a link anew; true if that changes it. The viewer's gate is the caller's to refresh.
    pub(super) fn set_rank(&mut self, viewer: u32, list: usize, place: usize, rank: u8) -> bool {
        match self.links.key_at(viewer, list, place) {
            Some(key) if key.rank() != rank => {
                self.links.set_rank(viewer, list, place, rank);
                if let Some((theirs, _)) = self.links.partner_at(viewer, list, place) {
                    self.refresh_gate(key.target(), theirs);
                    self.freed.insert(key.target() as usize);
                }
                true
            }
            _ => false,
        }
    }

    /// Evicts the lowest of a viewer's lists until no list is over its cap, if the caps changed.
    fn trim(&mut self, viewer: u32, events: &mut Vec<ViewEvent>) {
        let object = self.objects[viewer as usize];
        if !object.viewer || !object.news.caps {
            return;
        }
        for list in 0..UNCAPPED {
            let len = self.links.list_len(viewer, list);
            let excess = len.saturating_sub(object.cap(list));
            if excess > 0 {
                let lowest = &mut self.scratch.entrants[list];
                lowest.clear();
                lowest.extend(self.links.keys(viewer, list));
                let (_, &mut last, _) = lowest.select_nth_unstable(excess - 1);
                lowest.clear();
                for place in (0..len).rev() {
                    if let Some(key) = self
                        .links
                        .key_at(viewer, list, place)
                        .filter(|&key| key <= last)
                    {
                        self.evict(viewer, list, place, key, events);
                    }
                }
            }
            self.refresh_gate(viewer, list);
        }
        self.freed.insert(viewer as usize);
    }

    fn forget_news(&mut self, changes: &[Change]) {
        for change in changes {
            let object = &mut self.objects[change.id as usize];
            object.news = News::default();
            if object.viewable {
                self.grid
                    .forget_arrival(change.id, usize::from(object.layer));
            }
        }
    }

    /// Marks a viewer and all that it sees.
    pub(super) fn mark_seen(&mut self, viewer: u32) {
        let Self { links, scratch, .. } = self;
        scratch.begin();
        scratch.mark(viewer);
        for list in 0..LISTS {
            for key in links.keys(viewer, list) {
                scratch.mark(key.target());
            }
        }
    }

    pub(super) fn link(
        &mut self,
        viewer: u32,
        list: usize,
        key: LinkKey,
        events: &mut Vec<ViewEvent>,
    ) {
        let len = self.links.add(viewer, list, key);
        if len >= self.objects[viewer as usize].cap(list) {
            self.refresh_gate(viewer, list);
        }
        self.counters.enters += 1;
        self.counters.max_list = self.counters.max_list.max(len);
        events.push(ViewEvent::Enter {
            viewer,
            target: key.target(),
            priority: class_of(key.rank()),
        });
    }

    pub(super) fn evict(
        &mut self,
        viewer: u32,
        list: usize,
        place: usize,
        key: LinkKey,
        events: &mut Vec<ViewEvent>,
    ) {
        self.unlink(viewer, list, place, LeaveReason::Evicted, events);
        self.objects[viewer as usize].refuse(list, key.rank());
        self.counters.evictions += 1;
    }

    fn unlink(
        &mut self,
        viewer: u32,
        list: usize,
        place: usize,
        reason: LeaveReason,
        events: &mut Vec<ViewEvent>,
    ) {
        let Some((key, mutual)) = self.links.remove(viewer, list, place) else {
            return;
        };
        let target = key.target();
        self.tell_left(viewer, target, reason, events);
        if mutual {
            self.tell_left(target, viewer, reason, events);
            self.refresh_gate(target, self.objects[viewer as usize].list());
            self.freed.insert(target as usize);
        }
    }

    fn tell_left(
        &mut self,
        viewer: u32,
        target: u32,
        reason: LeaveReason,
        events: &mut Vec<ViewEvent>,
    ) {
        self.counters.leaves += 1;
        events.push(ViewEvent::Leave {
            viewer,
            target,
            reason,
        });
    }
}
