//! Memory by module, as registered by the plugins.

use std::collections::BTreeMap;

use bevy_app::{App, Last};
use bevy_ecs::message::MessageId;
use bevy_ecs::prelude::*;
use bevy_ecs::storage::TableId;

use super::{MemoryUse, heap_bytes_of};

/// Registers the memory of a module for [`memory_by_module`]. It costs nothing in a tick, except
/// [`add_counted_message`](Self::add_counted_message), which reads a length.
pub trait MemoryAppExt {
    /// Counts the heap memory of a resource; the resource itself counts as a component.
    fn count_memory<R: Resource + MemoryUse>(&mut self, module: &'static str) -> &mut Self;

    /// Counts the heap memory of a component of all entities.
    fn count_component_memory<C: Component + MemoryUse>(
        &mut self,
        module: &'static str,
    ) -> &mut Self;

    /// Adds a message type and counts its memory. Bevy does not expose the capacity of its buffers: each of the two buffers is
    /// assumed to have grown, by doubling, to the maximum number of messages in an update.
    fn add_counted_message<M: Message>(&mut self, module: &'static str) -> &mut Self;

    /// Counts other memory with a function.
    fn count_memory_by(&mut self, module: &'static str, bytes: fn(&World) -> usize) -> &mut Self;
}

impl MemoryAppExt for App {
    fn count_memory<R: Resource + MemoryUse>(&mut self, module: &'static str) -> &mut Self {
        self.count_memory_by(module, |world| {
            world.get_resource::<R>().map_or(0, MemoryUse::heap_bytes)
        })
    }

    fn count_component_memory<C: Component + MemoryUse>(
        &mut self,
        module: &'static str,
    ) -> &mut Self {
        self.count_memory_by(module, |world| {
            let query = world.try_query::<&C>();
            query.map_or(0, |mut query| heap_bytes_of(query.iter(world)))
        })
    }

    fn add_counted_message<M: Message>(&mut self, module: &'static str) -> &mut Self {
        self.add_message::<M>();
        if !self.world().contains_resource::<MessagePeaks>() {
            self.init_resource::<MessagePeaks>()
                .add_systems(Last, record_message_peaks);
        }
        self.world_mut()
            .resource_mut::<MessagePeaks>()
            .0
            .push(MessagePeak {
                module,
                written: |world| {
                    let messages = world.get_resource::<Messages<M>>();
                    messages.map_or([0; 2], |messages| {
                        let new = messages.iter_current_update_messages().len();
                        [new, messages.len() - new]
                    })
                },
                // A stored message has its id and its location in the source.
                message_bytes: size_of::<(MessageId<M>, M)>(),
                peaks: [0; 2],
            });
        self
    }

    fn count_memory_by(&mut self, module: &'static str, bytes: fn(&World) -> usize) -> &mut Self {
        let mut sources = self.world_mut().get_resource_or_init::<MemorySources>();
        sources.0.push((module, bytes));
        self
    }
}

/// The modules and their counting functions.
#[derive(Resource, Default)]
struct MemorySources(Vec<(&'static str, fn(&World) -> usize)>);

/// The maximum number of messages in each of the two alternating buffers.
#[derive(Resource, Default)]
struct MessagePeaks(Vec<MessagePeak>);

struct MessagePeak {
    module: &'static str,
    /// The lengths of the buffer that is written now, and of the other one.
    written: fn(&World) -> [usize; 2],
    message_bytes: usize,
    /// Of the same two buffers.
    peaks: [usize; 2],
}

#[expect(
    clippy::disallowed_methods,
    reason = "counts messages; runs no command or hook"
)]
fn record_message_peaks(world: &mut World) {
    world.resource_scope(|world, mut all: Mut<MessagePeaks>| {
        for peak in &mut all.0 {
            let [new, old] = (peak.written)(world);
            let [before_new, before_old] = peak.peaks;
            // The buffers were swapped.
            peak.peaks = [new.max(before_old), old.max(before_new)];
        }
    });
}

/// The bytes that each module has on the heap; `nav_maps` for the search data that `nav` prepares of maps, and `ecs` for
/// entities and components themselves. Without the overhead of the allocator. O(entities + what they own): milliseconds for
/// thousands of objects.
#[must_use]
pub fn memory_by_module(world: &World) -> BTreeMap<&'static str, usize> {
    let mut modules = BTreeMap::from([("ecs", entity_bytes(world))]);
    let sources = world.get_resource::<MemorySources>();
    for &(module, bytes) in sources.iter().flat_map(|sources| &sources.0) {
        *modules.entry(module).or_default() += bytes(world);
    }
    let peaks = world.get_resource::<MessagePeaks>();
    for peak in peaks.iter().flat_map(|peaks| &peaks.0) {
        // Buffers that grow by doubling, from four on.
        let room = |&most: &usize| {
            if most == 0 {
                0
            } else {
                most.next_power_of_two().max(4)
            }
        };
        let messages: usize = peak.peaks.iter().map(room).sum();
        *modules.entry(peak.module).or_default() += messages * peak.message_bytes;
    }
    modules
}

/// Memory of tables, sparse sets and the list of entities: capacity times the size of a row, change ticks included.
fn entity_bytes(world: &World) -> usize {
    /// The ticks in which a component was added and changed.
    const TICKS_BYTES: usize = 8;
    /// The location of an entity, and the tick and place of its spawn.
    const LOCATION_BYTES: usize = 32;
    let column_bytes = |id| {
        let info = world.components().get_info(id);
        info.map_or(0, |info| info.layout().size()) + TICKS_BYTES
    };
    let mut rows = BTreeMap::new();
    for archetype in world.archetypes().iter() {
        rows.entry(archetype.table_id().as_usize())
            .or_insert_with(|| {
                archetype
                    .table_components()
                    .map(column_bytes)
                    .sum::<usize>()
            });
    }
    let tables = rows.into_iter().filter_map(|(id, row_bytes)| {
        let table = world.storages().tables.get(TableId::from_usize(id))?;
        Some(table.capacity() * (row_bytes + size_of::<Entity>()))
    });
    let sets = world.storages().sparse_sets.iter();
    let sets = sets.map(|(id, set)| set.len() * (column_bytes(id) + 2 * size_of::<Entity>()));
    let archetypes = world.archetypes().iter();
    let in_archetypes = archetypes.map(|archetype| archetype.len() as usize * 12);
    let entities = world.entities().len() as usize * LOCATION_BYTES;
    tables.chain(sets).chain(in_archetypes).sum::<usize>() + entities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Resource)]
    struct Held(Vec<u64>);

    #[derive(Component)]
    struct Carried(Vec<u8>);

    #[derive(Message)]
    struct Told(#[expect(dead_code, reason = "its size counts")] [u64; 4]);

    impl MemoryUse for Held {
        fn heap_bytes(&self) -> usize {
            self.0.heap_bytes()
        }
    }

    impl MemoryUse for Carried {
        fn heap_bytes(&self) -> usize {
            self.0.heap_bytes()
        }
    }

    #[test]
    fn module_memory_is_the_sum_of_its_sources() {
        let mut app = App::new();
        app.count_memory::<Held>("pure")
            .count_component_memory::<Carried>("carriers")
            .add_counted_message::<Told>("told")
            .count_memory_by("pure", |_| 7);
        // A resource that does not exist yet has no memory.
        assert_eq!(memory_by_module(app.world())["pure"], 7);
        app.insert_resource(Held(Vec::with_capacity(100)));
        for bytes in [10, 20] {
            app.world_mut().spawn(Carried(Vec::with_capacity(bytes)));
        }
        let write = |app: &mut App, count| {
            for _ in 0..count {
                app.world_mut().write_message(Told([0; 4]));
            }
            app.update();
        };
        [50, 30, 0, 0]
            .into_iter()
            .for_each(|count| write(&mut app, count));
        let modules = memory_by_module(app.world());
        assert_eq!((modules["pure"], modules["carriers"]), (807, 30));
        // 50 and 30 of them, with at least 32 bytes each.
        assert!(
            modules["told"] >= (64 + 32) * size_of::<Told>(),
            "{modules:?}"
        );
    }

    #[test]
    fn entity_memory_follows_component_sizes() {
        let mut world = World::new();
        let before = memory_by_module(&world)["ecs"];
        for _ in 0..1_000 {
            world.spawn(Carried(Vec::new()));
        }
        let after = memory_by_module(&world)["ecs"] - before;
        let least = 1_000 * (size_of::<Carried>() + 8 + 8 + 32);
        assert!((least..2 * least).contains(&after), "{after} of {least}");
    }
}
