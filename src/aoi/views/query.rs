//! What can be asked of views, and what of them is state.

use glam::Vec2;

use super::events::ViewCounters;
use super::exceptions::ViewException;
use super::object::TrackedObject;
use super::scene_views::{SceneViews, ViewCaps};
use super::shard::{Shared, ViewShard};
use crate::aoi::grid::{GridCell, SceneGrid};
use crate::aoi::links::{LISTS, UNCAPPED};
use crate::aoi::priority::{ViewTraits, class_of};
use crate::world::KindClass;

impl SceneViews {
    /// Whether there is an object of this id.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.object(id).is_some()
    }

    /// The reported cell of an object.
    #[must_use]
    pub fn cell(&self, id: u32) -> Option<GridCell> {
        self.object(id).map(|_| self.shared.grid.cell(id))
    }

    /// The last reported position of an object, in metres.
    #[must_use]
    pub fn position(&self, id: u32) -> Option<Vec2> {
        self.object(id).map(|object| object.position)
    }

    /// What ranks and hides an object.
    #[must_use]
    pub fn traits(&self, id: u32) -> Option<ViewTraits> {
        self.object(id).map(|object| object.traits)
    }

    /// The exceptions that hold for a viewer, by ascending target.
    pub fn exceptions(&self, viewer: u32) -> impl Iterator<Item = (u32, ViewException)> + '_ {
        self.shared.exceptions.of(viewer)
    }

    /// The viewers that have an exception for a target, ascending.
    pub fn excepting(&self, target: u32) -> impl Iterator<Item = u32> + '_ {
        self.shared.exceptions.viewers_of(target)
    }

    /// The caps of a viewer; `None` if it is no viewer.
    #[must_use]
    pub fn caps(&self, id: u32) -> Option<ViewCaps> {
        self.object(id).filter(|object| object.viewer)?;
        let [players, npcs, things] = self.shard(id).viewer_state(id).caps;
        Some(ViewCaps {
            players,
            npcs,
            things,
        })
    }

    /// Those that a viewer sees in one of its lists: (target, class), in place order. The list is that of a
    /// [`KindClass::index`], or [`UNCAPPED`].
    pub fn list(&self, viewer: u32, list: usize) -> impl ExactSizeIterator<Item = (u32, u8)> + '_ {
        let keys = self.shard(viewer).links.keys(viewer, list);
        keys.map(|key| (key.target(), class_of(key.rank())))
    }

    /// Those that a viewer sees: (target, class), list by list, in place order.
    pub fn seen_by(&self, viewer: u32) -> impl Iterator<Item = (u32, u8)> + '_ {
        (0..LISTS).flat_map(move |list| self.list(viewer, list))
    }

    /// Those who see a target: shard by shard the watchers in place order, then partners of mutual pairs.
    pub fn watchers(&self, target: u32) -> impl Iterator<Item = u32> + '_ {
        let one_way = self
            .shards
            .iter()
            .flat_map(move |shard| shard.links.watching(target));
        one_way.chain(self.shard(target).links.partners(target))
    }

    /// How many see a target.
    #[must_use]
    pub fn watchers_len(&self, target: u32) -> usize {
        let one_way = self
            .shards
            .iter()
            .map(|shard| shard.links.watchers_len(target));
        one_way.sum::<usize>() + self.shard(target).links.partners_len(target)
    }

    /// Whether a viewer sees a target. O(the shorter of the viewer's list and the target's watchers, eight at
    /// once), so at most the viewer's cap: with 100 links at each end 20 to 30 ns, or 70 to 105 ns among so many
    /// objects (10,000) that the arrays have to be fetched. Whoever asks for many targets of one viewer should
    /// go through [`seen_by`](Self::seen_by) once.
    #[must_use]
    pub fn visible(&self, viewer: u32, target: u32) -> bool {
        let links = &self.shard(viewer).links;
        self.object(target)
            .is_some_and(|object| links.contains(viewer, object.list(), target))
    }

    /// How many a viewer sees in the list of a class, those outside caps not counted.
    #[must_use]
    pub fn list_len(&self, viewer: u32, class: KindClass) -> usize {
        self.shard(viewer).links.list_len(viewer, class.index())
    }

    /// How many a viewer sees outside caps.
    #[must_use]
    pub fn uncapped_len(&self, viewer: u32) -> usize {
        self.shard(viewer).links.list_len(viewer, UNCAPPED)
    }

    /// How many links there are; "A sees B" is one.
    #[must_use]
    pub fn link_count(&self) -> usize {
        self.shards.iter().map(|shard| shard.links.len()).sum()
    }

    /// All links in a fixed order: (viewer, target, class), by viewer, then list, then place.
    pub fn links(&self) -> impl Iterator<Item = (u32, u32, u8)> + '_ {
        (0..self.shared.objects.len() as u32).flat_map(move |viewer| {
            self.seen_by(viewer)
                .map(move |(target, class)| (viewer, target, class))
        })
    }

    /// The viewers that wait for a look, the first to be served first.
    pub fn queued(&self) -> impl Iterator<Item = u32> + '_ {
        self.queue.iter()
    }

    /// How many viewers wait for a look.
    #[must_use]
    pub const fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// What was counted since the scene opened.
    #[must_use]
    pub fn counters(&self) -> ViewCounters {
        let shards = self.shards.iter().map(|shard| shard.counters);
        shards.fold(self.counters, ViewCounters::plus)
    }

    /// The interest grid.
    #[must_use]
    pub const fn grid(&self) -> &SceneGrid {
        &self.shared.grid
    }

    /// Collects the viewable objects of the chosen classes (one bit for each [`KindClass::index`]) within a
    /// radius by exact distance, sorted by id, hidden ones included. It knows last reported positions and the
    /// cells of the last update: whoever was inserted or teleported since may be missing. `out` is cleared
    /// first.
    pub fn nearby(&self, position: Vec2, radius_m: f32, classes: u8, out: &mut Vec<u32>) {
        out.clear();
        if radius_m.is_nan() || radius_m < 0.0 || position.is_nan() {
            return;
        }
        let Shared { grid, objects, .. } = &self.shared;
        out.extend(grid.targets_near(position, radius_m).filter(|&id| {
            let object = &objects[id as usize];
            classes >> object.traits.class.index() & 1 != 0
                && object.position.distance_squared(position) <= radius_m * radius_m
        }));
        out.sort_unstable();
    }

    /// Feeds all state that later updates depend on to a hash, in a fixed order: cells, caps, what was
    /// refused, links in place order, the queue. Positions and traits belong to the world, which hashes
    /// them itself.
    pub fn digest(&self, fold: &mut impl FnMut(u64)) {
        let pack = |numbers: &[u16]| numbers.iter().fold(0, |bits, &n| bits << 16 | u64::from(n));
        for (id, object) in (0..)
            .zip(&self.shared.objects)
            .filter(|(_, object)| object.alive)
        {
            let ViewShard {
                links,
                viewer_index,
                ..
            } = self.shard(id);
            let cell = self.shared.grid.cell(id);
            let target_place = self.shared.grid.place_of(id);
            let (viewer_place, open_places) = viewer_index.places(id);
            fold(u64::from(id) << 32 | u64::from(cell.x) << 16 | u64::from(cell.y));
            fold(u64::from(target_place));
            // Where sight is directed nobody reads viewers in order, and shards would tell.
            if self.shared.ranking.mutual {
                let places = open_places.into_iter().chain([viewer_place]);
                places.for_each(|place| fold(u64::from(place)));
            }
            if object.viewer {
                let state = self.shard(id).viewer_state(id);
                fold(pack(&state.bound));
                fold(pack(&state.caps));
                for list in 0..LISTS {
                    fold(links.list_len(id, list) as u64);
                    links
                        .keys(id, list)
                        .for_each(|key| fold(u64::from(key.bits())));
                }
            }
        }
        fold(u64::from(self.turn));
        fold(self.queue.len() as u64);
        self.queue.iter().for_each(|id| fold(u64::from(id)));
    }

    /// The bytes held, slack included, the buffers of the update apart.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        // The queue has two numbers for each id.
        self.shared.grid.allocated_bytes()
            + self.shared.exceptions.allocated_bytes()
            + self
                .shards
                .iter()
                .map(ViewShard::allocated_bytes)
                .sum::<usize>()
            + self.shared.objects.capacity() * (size_of::<TrackedObject>() + 2 * size_of::<u32>())
    }
}
