//! The View step: brings the links up to date with all that was noted since the last one.
//!
//! ```text
//! rerank   a share of the viewers with a full list measures its members anew (rerank.rs)
//! settle   grid arrays follow the reported cells; changed targets are noted as arrivals
//! part     links of changed objects that cannot be any more end; if a standing changed, the rest is re-ranked
//! trim     lists above a lowered cap lose their lowest
//! meet     viewers that moved sweep the cells that differ; changed targets offer themselves to the others
//! look     the first of the queue sweep their surroundings for whom they refused
//! ```
//! With mutual sight, all that meet are served together (pairs.rs).
//!
//! All leave before anybody enters, so that two who walk together over a border never lose each other for a
//! tick.
//!
//! Each pair is met once: a viewer that sweeps for itself finds every changed target in its range, either in
//! a cell that is new to it or among the arrivals of the others; so changed targets offer themselves only to
//! viewers that do not sweep. All entrants of a list are served together, the higher rank first, then the
//! lower id.
//!
//! Invariant: who can gain is queued. No allocation once warm.

use super::{
    grid::GridCell,
    links::{LISTS, LinkKey, UNCAPPED, WatchedBy},
    object::{FETCH_MAX, News, UNKNOWN, fetch},
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
    offers: Vec<Offer>,
    /// Links of the object in hand that may end.
    ending: Vec<WatchedBy>,
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

    fn mark(&mut self, id: u32) {
        self.marks[id as usize] = self.sweep;
    }

    pub(super) fn is_marked(&self, id: u32) -> bool {
        self.marks[id as usize] == self.sweep
    }
}

/// An object with news, and where it was at the last update.
#[derive(Clone, Copy, Debug)]
struct Change {
    id: u32,
    from: GridCell,
    moved: bool,
}

/// A target that a viewer might let in: the viewer and the key in one number, which sorts twice as fast. Sorted,
/// they are grouped by viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Offer(u64);

impl Offer {
    fn new(viewer: u32, key: LinkKey) -> Self {
        Self(u64::from(viewer) << 32 | u64::from(key.bits()))
    }

    const fn viewer(self) -> u32 {
        (self.0 >> 32) as u32
    }

    const fn key(self) -> LinkKey {
        LinkKey::from_bits(self.0 as u32)
    }
}

impl SceneViews {
    /// The View step. Appends to `events` all that changed, leaves first, in an order that follows from the
    /// ids; serves at most `looks_max` viewers of the queue. (Those in it that turn out to have nothing to
    /// gain are let go for free.)
    pub fn update(&mut self, looks_max: u32, events: &mut Vec<ViewEvent>) {
        self.tell_parted(events);
        let mut changes = std::mem::take(&mut self.scratch.changes);
        self.rerank();
        self.settle(&mut changes);
        for change in &changes {
            self.part(change, events);
        }
        for change in &changes {
            self.trim(change.id, events);
        }
        self.meet(&changes, events);
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
        for &id in &self.changed {
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
            self.grid.settle(id, layer);
            if object.news.target {
                self.grid.add_target(id, layer);
            }
            if object.news.viewer {
                self.grid.add_viewer(id);
            }
            object.news.sweeps = object.viewer && (object.news.viewer || change.moved);
            if object.viewable && (object.news.target || object.news.standing || change.moved) {
                self.grid.note_arrival(id, layer);
            }
            changes.push(change);
        }
        self.changed.clear();
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
                let stays = |key: LinkKey| {
                    !news.standing && list != UNCAPPED && cell.is_near(self.grid.cell(key.target()))
                };
                let keys = self.links.keys(id, list).enumerate();
                ending.extend(
                    keys.rev()
                        .filter(|&(_, key)| !stays(key))
                        .map(|(place, _)| WatchedBy {
                            viewer: id,
                            list,
                            place,
                        }),
                );
                self.links.fetch(&ending);
                if ending.is_empty() {
                    continue;
                }
                for WatchedBy { place, .. } in ending.drain(..) {
                    if news.standing || list == UNCAPPED {
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
            let stays = |watcher: &WatchedBy| {
                !news.standing
                    && self
                        .grid
                        .in_range(layer, self.grid.cell(watcher.viewer), cell)
            };
            ending.extend(
                self.links
                    .watchers(id)
                    .rev()
                    .filter(|watcher| !stays(watcher)),
            );
            self.links.fetch(&ending);
            for link in ending.drain(..) {
                let WatchedBy {
                    viewer,
                    list,
                    place,
                } = link;
                if news.standing {
                    if !self.revise(viewer, list, place, true, events) {
                        continue;
                    }
                } else {
                    self.unlink(viewer, list, place, LeaveReason::Range, events);
                }
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

    /// Links those who can see each other from now on.
    fn meet(&mut self, changes: &[Change], events: &mut Vec<ViewEvent>) {
        for change in changes {
            if self.objects[change.id as usize].news.sweeps {
                self.sweep(change, events);
            }
        }
        for change in changes {
            self.offer(change);
        }
        if self.ranking.mutual {
            self.commit_proposals(events);
            return;
        }
        let mut offers = std::mem::take(&mut self.scratch.offers);
        // Within a viewer the order does not matter: its entrants are sorted when served.
        offers.sort_unstable();
        for of_viewer in offers.chunk_by(|a, b| a.viewer() == b.viewer()) {
            for offer in of_viewer {
                let list = self.objects[offer.key().target() as usize].list();
                self.scratch.entrants[list].push(offer.key());
            }
            for list in 0..LISTS {
                self.serve(of_viewer[0].viewer(), list, events);
            }
        }
        offers.clear();
        self.scratch.offers = offers;
    }

    /// A viewer that moved looks into the cells that are new to it, and among the arrivals of the others. One
    /// that is new, or whose standing changed, looks everywhere.
    fn sweep(&mut self, change: &Change, events: &mut Vec<ViewEvent>) {
        let viewer = change.id;
        let everywhere = {
            let object = &mut self.objects[viewer as usize];
            let everywhere = object.news.viewer || object.bound.contains(&UNKNOWN);
            if everywhere {
                object.bound = [0; LISTS];
            }
            everywhere
        };
        self.mark_seen(viewer);
        let cell = self.grid.cell(viewer);
        for layer in 0..self.grid.layer_count() {
            let to = self.grid.coarse(layer, cell);
            let from = (!everywhere).then(|| self.grid.coarse(layer, change.from));
            if from == Some(to) && !self.grid.has_arrivals(layer) {
                continue;
            }
            for cell in self.grid.around(layer, to) {
                let Self {
                    grid,
                    objects,
                    scratch,
                    counters,
                    ranking,
                    ..
                } = self;
                let mut me = objects[viewer as usize];
                let is_known = from.is_some_and(|from| from.is_near(cell));
                let targets = grid.targets(layer, cell);
                if !is_known {
                    fetch(objects, targets);
                }
                let consider = |target: u32| {
                    let other = &mut objects[target as usize];
                    if scratch.is_marked(target) || !ranking.allows(&me, other) {
                        return;
                    }
                    let (list, rank) = (other.list(), ranking.rank(&me, other));
                    if u16::from(rank) < me.entry(list) {
                        me.refuse(list, rank);
                        counters.refused += 1;
                    } else if !ranking.mutual {
                        scratch.entrants[list].push(LinkKey::new(rank, target));
                    } else if !ranking.is_pair(&me, other) {
                        let proposal = Proposal::one_way(rank, viewer, target);
                        scratch.proposals.push(proposal);
                    } else if u16::from(rank) < other.entry(me.list()) {
                        other.refuse(me.list(), rank);
                        counters.refused += 1;
                    } else {
                        let proposal = Proposal::pair(rank, viewer, target);
                        scratch.proposals.push(proposal);
                    }
                };
                if is_known {
                    grid.arrivals(layer, cell).for_each(consider);
                } else {
                    targets.iter().copied().for_each(consider);
                }
                objects[viewer as usize].bound = me.bound;
            }
        }
        if !self.ranking.mutual {
            for list in 0..LISTS {
                self.serve(viewer, list, events);
            }
        }
    }

    /// A target that changed offers itself to the viewers to which it is new and that do not sweep for
    /// themselves.
    fn offer(&mut self, change: &Change) {
        let target = change.id;
        let object = self.objects[target as usize];
        let everywhere = object.news.target || object.news.standing;
        if !object.viewable || object.standing.hidden || !(everywhere || change.moved) {
            return;
        }
        let layer = usize::from(object.layer);
        let to = self.grid.coarse(layer, self.grid.cell(target));
        let from = (!everywhere).then(|| self.grid.coarse(layer, change.from));
        if from == Some(to) {
            return;
        }
        let Self {
            grid,
            objects,
            scratch,
            counters,
            ranking,
            links,
            ..
        } = self;
        scratch.begin();
        scratch.mark(target);
        if everywhere {
            links
                .watchers(target)
                .for_each(|watcher| scratch.mark(watcher.viewer));
        }
        let list = object.list();
        for cell in grid.around_fine(layer, to) {
            if from.is_some_and(|from| from.is_near(grid.coarse(layer, cell))) {
                continue;
            }
            fetch(objects, grid.viewers(cell));
            for &viewer in grid.viewers(cell) {
                let me = &mut objects[viewer as usize];
                // A peer that changed sweeps or looks for itself.
                if me.news.sweeps
                    || scratch.is_marked(viewer)
                    || ranking.is_pair(me, &object)
                    || !ranking.allows(me, &object)
                {
                    continue;
                }
                let rank = ranking.rank(me, &object);
                if u16::from(rank) < me.entry(list) {
                    me.refuse(list, rank);
                    counters.refused += 1;
                } else if ranking.mutual {
                    let proposal = Proposal::one_way(rank, viewer, target);
                    scratch.proposals.push(proposal);
                } else {
                    let key = LinkKey::new(rank, target);
                    scratch.offers.push(Offer::new(viewer, key));
                }
            }
        }
    }

    /// Lets the collected entrants into a list, from the top, and refuses the rest.
    pub(super) fn serve(&mut self, viewer: u32, list: usize, events: &mut Vec<ViewEvent>) -> usize {
        if self.scratch.entrants[list].is_empty() {
            return 0;
        }
        let mut entrants = std::mem::take(&mut self.scratch.entrants[list]);
        let free = self.objects[viewer as usize]
            .cap(list)
            .saturating_sub(self.links.list_len(viewer, list));
        // The best take the free places; of a crowd that is often all that need sorting.
        let split = free.min(entrants.len());
        if split > 0 && split < entrants.len() {
            entrants.select_nth_unstable_by(split - 1, |a, b| b.cmp(a));
        }
        let mut entered = 0;
        let mut start = 0;
        for end in [split, entrants.len()] {
            // What cannot enter even before the sorted ones did needs no sorting either.
            let part = &mut entrants[start..end];
            let entry = self.objects[viewer as usize].entry(list);
            let open = partition(part, |key| u16::from(key.rank()) >= entry);
            part[..open].sort_unstable_by(|a, b| b.cmp(a));
            let mut served = 0;
            while served < open && self.admit(viewer, list, part[served], events) {
                served += 1;
            }
            let refused = &part[served..];
            if let Some(highest) = refused.iter().map(|key| key.rank()).max() {
                self.objects[viewer as usize].refuse(list, highest);
                self.counters.refused += refused.len() as u64;
            }
            entered += served;
            start = end;
        }
        entrants.clear();
        self.scratch.entrants[list] = entrants;
        entered
    }

    /// Links an entrant if there is a place for it, or one lower to evict; false if not.
    pub(super) fn admit(
        &mut self,
        viewer: u32,
        list: usize,
        key: LinkKey,
        events: &mut Vec<ViewEvent>,
    ) -> bool {
        if u16::from(key.rank()) < self.objects[viewer as usize].entry(list) {
            return false;
        }
        self.make_place(viewer, list, events);
        self.link(viewer, list, key, events);
        true
    }

    /// Evicts the lowest of a full list.
    pub(super) fn make_place(&mut self, viewer: u32, list: usize, events: &mut Vec<ViewEvent>) {
        if self.links.list_len(viewer, list) >= self.objects[viewer as usize].cap(list)
            && let Some((place, lowest)) = self.links.lowest(viewer, list)
        {
            self.evict(viewer, list, place, lowest, events);
        }
    }

    /// Queues the viewers that began to have something to gain, by id.
    fn enqueue_freed(&mut self) {
        for viewer in self.freed.ones() {
            if self.objects[viewer].can_gain() {
                self.queue.push(viewer as u32);
            }
        }
        self.freed.clear();
    }

    /// Queues who can gain, and serves the queue from its head. Looks may free others only where sight is
    /// mutual.
    fn look(&mut self, looks_max: u32, events: &mut Vec<ViewEvent>) {
        let mut looks = 0;
        loop {
            self.enqueue_freed();
            while let Some(viewer) = self.queue.first() {
                if self.objects[viewer as usize].can_gain() {
                    if looks == looks_max {
                        break;
                    }
                    looks += 1;
                    self.look_around(viewer, events);
                }
                self.queue.pop();
            }
            if self.freed.is_clear() {
                break;
            }
        }
        self.counters.looks += u64::from(looks);
    }

    /// Sweeps the surroundings of a viewer, from its own cell outwards, until it has nothing to gain.
    ///
    /// A candidate of the highest rank that may have been refused takes a free place as soon as it is found:
    /// nobody better can follow. So in a crowd of equals a look ends after a few steps.
    pub(super) fn look_around(&mut self, viewer: u32, events: &mut Vec<ViewEvent>) {
        if self.ranking.mutual {
            self.look_for_pairs(viewer, events);
            return;
        }
        self.mark_seen(viewer);
        let cell = self.grid.cell(viewer);
        let mut refused = [0; LISTS];
        let mut gains: [bool; LISTS] = std::array::from_fn(|list| {
            let object = &self.objects[viewer as usize];
            object.bound[list] > object.gate[list]
        });
        // Only targets outside caps live in the coarser layers.
        let layers = if gains[UNCAPPED] {
            self.grid.layer_count()
        } else {
            1
        };
        'sweep: for layer in 0..layers {
            for cell in self.grid.around(layer, self.grid.coarse(layer, cell)) {
                for place in 0..self.grid.targets(layer, cell).len() {
                    let targets = self.grid.targets(layer, cell);
                    if place % FETCH_MAX == 0 {
                        let end = targets.len().min(place + FETCH_MAX);
                        fetch(&self.objects, &targets[place..end]);
                    }
                    let target = targets[place];
                    let other = &self.objects[target as usize];
                    let me = &self.objects[viewer as usize];
                    let list = other.list();
                    if !gains[list]
                        || self.scratch.is_marked(target)
                        || !self.ranking.allows(me, other)
                    {
                        continue;
                    }
                    let rank = self.ranking.rank(me, other);
                    let (entrant, gate) = (u16::from(rank), me.gate[list]);
                    if gate == 0 && entrant + 1 >= me.bound[list] {
                        self.link(viewer, list, LinkKey::new(rank, target), events);
                        self.counters.refills += 1;
                        let me = &self.objects[viewer as usize];
                        gains[list] = me.bound[list] > me.gate[list];
                        if gains == [false; LISTS] {
                            break 'sweep;
                        }
                    } else if entrant >= gate {
                        self.scratch.entrants[list].push(LinkKey::new(rank, target));
                    } else {
                        refused[list] = refused[list].max(entrant + 1);
                    }
                }
            }
        }
        for list in 0..LISTS {
            if gains[list] {
                // Everybody in range was seen, so what was refused is known exactly.
                self.objects[viewer as usize].bound[list] = refused[list];
                self.counters.refills += self.serve(viewer, list, events) as u64;
            } else {
                self.scratch.entrants[list].clear();
            }
        }
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
        (0..LISTS)
            .flat_map(|list| links.keys(viewer, list))
            .for_each(|key| scratch.mark(key.target()));
    }

    pub(super) fn link(
        &mut self,
        viewer: u32,
        list: usize,
        key: LinkKey,
        events: &mut Vec<ViewEvent>,
    ) {
        self.links.add(viewer, list, key);
        let len = self.links.list_len(viewer, list);
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

    fn evict(
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
        self.counters.leaves += 1;
        events.push(ViewEvent::Leave {
            viewer,
            target,
            reason,
        });
        if mutual {
            self.counters.leaves += 1;
            events.push(ViewEvent::Leave {
                viewer: target,
                target: viewer,
                reason,
            });
            self.refresh_gate(target, self.objects[viewer as usize].list());
            self.freed.insert(target as usize);
        }
    }
}

/// Moves the keys that hold to the front and returns how many they are.
fn partition(keys: &mut [LinkKey], holds: impl Fn(LinkKey) -> bool) -> usize {
    let mut count = 0;
    for place in 0..keys.len() {
        if holds(keys[place]) {
            keys.swap(place, count);
            count += 1;
        }
    }
    count
}
