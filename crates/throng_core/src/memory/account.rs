//! The heap memory of a structure, from its own capacities.
//!
//! A container counts its own buffer; memory that its elements own is added with [`each`] by types that know about it. Hash
//! tables and vectors are exact up to the allocator's rounding, except for table slots that are unusable after removals. The
//! fill of the nodes of a B-tree is not known; two thirds are assumed.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};

use fixedbitset::FixedBitSet;
use indexmap::{IndexMap, IndexSet};
use smallvec::{Array, SmallVec};

/// Reports its heap memory.
pub trait MemoryUse {
    /// Heap bytes that are freed when it is dropped, whether they are in use or spare; without its own size, which its owner
    /// counts. Often O(elements), so not for every tick.
    fn heap_bytes(&self) -> usize;
}

/// Implements [`MemoryUse`] for a struct or enum: the sum over its fields.
pub use throng_derive::MemoryUse;

/// A field in a derived [`MemoryUse`]: its heap bytes, or 0 if it is `Copy`; does not compile for any other type.
#[doc(hidden)]
pub struct FieldMemory<'a, T>(pub &'a T);

impl<T: MemoryUse> FieldMemory<'_, T> {
    /// Preferred to the method of [`CopiedField`] if the type has both.
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

/// `Copy` types own no heap memory.
#[doc(hidden)]
pub trait CopiedField {
    #[inline]
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl<T: Copy> CopiedField for FieldMemory<'_, T> {}

macro_rules! impl_no_heap {
    ($($plain:ty),*) => {
        $(impl MemoryUse for $plain {
            #[inline]
            fn heap_bytes(&self) -> usize {
                0
            }
        })*
    };
}
impl_no_heap!(
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    isize,
    f32,
    f64,
    bool,
    char,
    (),
    std::time::Duration,
    glam::Vec2,
    glam::IVec2
);

#[cfg(feature = "bevy")]
impl<M: bevy_ecs::message::Message> MemoryUse for bevy_ecs::message::MessageCursor<M> {
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// The heap memory of the value, if there is one.
impl<T: MemoryUse> MemoryUse for Option<T> {
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, MemoryUse::heap_bytes)
    }
}

/// The value, and its heap memory.
impl<T: MemoryUse> MemoryUse for Box<T> {
    fn heap_bytes(&self) -> usize {
        size_of::<T>() + (**self).heap_bytes()
    }
}

/// The heap memory of the elements: there is no separate buffer.
impl<T: MemoryUse, const N: usize> MemoryUse for [T; N] {
    fn heap_bytes(&self) -> usize {
        heap_bytes_of(self)
    }
}

impl<A: MemoryUse, B: MemoryUse> MemoryUse for (A, B) {
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes() + self.1.heap_bytes()
    }
}

/// The total heap memory of some structures.
pub fn heap_bytes_of<'a, T: MemoryUse + 'a>(items: impl IntoIterator<Item = &'a T>) -> usize {
    items.into_iter().map(MemoryUse::heap_bytes).sum()
}

/// The total heap memory of some lists, with their elements.
pub fn heap_bytes_of_lists<T: MemoryUse>(lists: &[Vec<T>]) -> usize {
    heap_bytes_of(lists) + heap_bytes_of(lists.iter().flatten())
}

/// Clears a buffer that is refilled every tick, and shrinks it if the last tick needed less than an eighth of a large capacity:
/// that came from a burst of logins or teleports.
pub fn clear_and_shrink<T>(buffer: &mut Vec<T>) {
    let room = buffer.capacity();
    let is_wide = room * size_of::<T>() > BURST_BYTES && buffer.len() < room / 8;
    buffer.clear();
    if is_wide {
        *buffer = Vec::new();
    }
}

/// Buffers up to this size are not shrunk.
const BURST_BYTES: usize = 1 << 17;

impl<T> MemoryUse for Vec<T> {
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

impl<T> MemoryUse for VecDeque<T> {
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

impl<T> MemoryUse for BinaryHeap<T> {
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

impl<T> MemoryUse for Box<[T]> {
    fn heap_bytes(&self) -> usize {
        size_of_val(&**self)
    }
}

impl MemoryUse for String {
    fn heap_bytes(&self) -> usize {
        self.capacity()
    }
}

impl<A: Array> MemoryUse for SmallVec<A> {
    fn heap_bytes(&self) -> usize {
        if self.spilled() {
            self.capacity() * size_of::<A::Item>()
        } else {
            0
        }
    }
}

impl MemoryUse for FixedBitSet {
    fn heap_bytes(&self) -> usize {
        size_of_val(self.as_slice())
    }
}

impl<K, V, S> MemoryUse for HashMap<K, V, S> {
    fn heap_bytes(&self) -> usize {
        hash_table_bytes(self.capacity(), size_of::<(K, V)>())
    }
}

impl<K, S> MemoryUse for HashSet<K, S> {
    fn heap_bytes(&self) -> usize {
        hash_table_bytes(self.capacity(), size_of::<K>())
    }
}

impl<K, V, S> MemoryUse for IndexMap<K, V, S> {
    fn heap_bytes(&self) -> usize {
        let entries = self.capacity() * size_of::<(u64, K, V)>();
        entries + hash_table_bytes(self.capacity(), size_of::<usize>())
    }
}

impl<T, S> MemoryUse for IndexSet<T, S> {
    fn heap_bytes(&self) -> usize {
        let entries = self.capacity() * size_of::<(u64, T)>();
        entries + hash_table_bytes(self.capacity(), size_of::<usize>())
    }
}

impl<K, V> MemoryUse for BTreeMap<K, V> {
    fn heap_bytes(&self) -> usize {
        tree_bytes(self.len(), size_of::<K>() + size_of::<V>())
    }
}

impl<K> MemoryUse for BTreeSet<K> {
    fn heap_bytes(&self) -> usize {
        tree_bytes(self.len(), size_of::<K>())
    }
}

/// Bytes of a hash table with this capacity. The number of slots is a power of two, and an eighth of them stay free. Each slot has one byte
/// for the hash.
fn hash_table_bytes(capacity: usize, entry_bytes: usize) -> usize {
    if capacity == 0 {
        return 0;
    }
    let places = if capacity < 8 {
        (capacity + 1).next_power_of_two()
    } else {
        (capacity * 8 / 7).next_power_of_two()
    };
    places * (entry_bytes + 1) + 16
}

/// Bytes of a B-tree. A node has room for eleven entries; seven are assumed to be in use. About one node in twelve is an inner node.
fn tree_bytes(entries: usize, entry_bytes: usize) -> usize {
    const NODE: usize = 11;
    const IN_USE: usize = 7;
    let leaves = entries.div_ceil(IN_USE);
    let inner = if leaves > 1 {
        leaves.div_ceil(IN_USE)
    } else {
        0
    };
    let leaf_bytes = NODE * entry_bytes + 16;
    leaves * leaf_bytes + inner * (leaf_bytes + (NODE + 1) * size_of::<usize>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(MemoryUse)]
    enum Bag {
        Empty,
        Coins(Vec<u64>),
        Named {
            name: String,
            #[memory(skip)]
            kind: std::net::IpAddr,
        },
    }

    #[derive(Clone, Copy)]
    struct Level;

    #[derive(MemoryUse)]
    struct Owner<T> {
        id: u32,
        level: Level,
        #[memory(each)]
        bags: Vec<Bag>,
        #[memory(each_value)]
        by_name: BTreeMap<u8, Vec<u8>>,
        #[memory(with = double)]
        extra: Vec<u8>,
        rest: T,
    }

    fn double(bytes: &Vec<u8>) -> usize {
        2 * bytes.capacity()
    }

    #[test]
    fn derived_memory_is_the_sum_of_the_fields() {
        let coins = Vec::with_capacity(4);
        let owner = Owner {
            id: 1,
            level: Level,
            bags: vec![Bag::Empty, Bag::Coins(coins)],
            by_name: BTreeMap::from([(1, Vec::with_capacity(10))]),
            extra: Vec::with_capacity(3),
            rest: Some(Box::new(5_u16)),
        };
        let bags = owner.bags.heap_bytes() + 4 * 8;
        let by_name = owner.by_name.heap_bytes() + 10;
        assert_eq!(owner.heap_bytes(), bags + by_name + 6 + 2);
        let named = Bag::Named {
            name: String::with_capacity(5),
            kind: std::net::Ipv4Addr::LOCALHOST.into(),
        };
        assert_eq!(named.heap_bytes(), 5);
    }

    #[test]
    fn only_oversized_buffers_are_shrunk() {
        let room_after = |room: usize, used: usize| {
            let mut buffer: Vec<u8> = Vec::with_capacity(room);
            buffer.resize(used, 1);
            clear_and_shrink(&mut buffer);
            assert!(buffer.is_empty());
            buffer.capacity()
        };
        // A large one that is in use, one that is hardly used, and small ones.
        assert_eq!(room_after(8 * BURST_BYTES, BURST_BYTES), 8 * BURST_BYTES);
        assert_eq!(room_after(8 * BURST_BYTES, BURST_BYTES - 1), 0);
        assert_eq!(room_after(BURST_BYTES, 0), BURST_BYTES);
        assert_eq!(room_after(0, 0), 0);
    }

    #[test]
    fn lists_count_with_what_their_elements_own() {
        let lists = [
            vec![String::with_capacity(3), String::with_capacity(4)],
            Vec::with_capacity(2),
        ];
        let slots = (lists[0].capacity() + lists[1].capacity()) * size_of::<String>();
        assert_eq!(heap_bytes_of_lists(&lists), slots + 3 + 4);
    }

    #[test]
    fn inline_elements_of_a_small_vector_take_no_heap() {
        let mut few: SmallVec<[u64; 2]> = SmallVec::from_slice(&[1, 2]);
        assert_eq!(few.heap_bytes(), 0);
        few.push(3);
        assert_eq!(few.heap_bytes(), few.capacity() * 8);
    }

    #[derive(MemoryUse)]
    struct Two(Vec<u8>, Vec<u8>);

    #[test]
    fn every_field_counts() {
        let two = Two(Vec::with_capacity(3), Vec::with_capacity(40));
        assert_eq!(two.heap_bytes(), 43);
    }
}
