//! The objects that a client knows.
//!
//! A client's links are more memory than a tick can wait for, and of most of them nothing is new. What says of which there may be
//! is a *key* a link, 4 bytes side by side: all keys are looked through in every tick, a link only where its object has news for
//! it. So that a key is enough, an object's news say for which tiers it is the turn to be told of its motion ([`LinkNews::turn`]).

use prefetch_index::prefetch_index;

use crate::memory::MemoryUse;
use crate::sync::motion::Tier;
use crate::sync::records::{LinkNews, SceneRecords, Variant};

/// An object that a client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub id: u32,
    /// Its generation.
    pub generation: u32,
    /// The number of the motion news that were sent.
    pub(super) motion: u16,
    /// When they were, modulo 65,536 ticks.
    pub(super) sent: u16,
    /// What of it is told.
    pub variant: Variant,
    /// How much it matters, in the order of the view list's classes.
    pub(super) class: u8,
}

/// The number of a link's object, below 2²⁴, and behind it the tier in which the client is told of its motion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LinkKey(u32);

impl LinkKey {
    const ID: u32 = (1 << 24) - 1;

    fn new(id: u32, tier: Tier) -> Self {
        debug_assert!(id <= Self::ID, "a scene has fewer objects than {id}");
        Self(id | u32::from(tier.number()) << 24)
    }

    #[inline]
    const fn id(self) -> u32 {
        self.0 & Self::ID
    }

    #[inline]
    const fn tier(self) -> Tier {
        Tier::numbered((self.0 >> 24) as u8)
    }
}

/// What a client knows, in no order but that its own object is the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    keys: Vec<LinkKey>,
    links: Vec<Link>,
}

const CACHE_LINE_BYTES: usize = 64;

impl Links {
    /// How many there are.
    pub const fn len(&self) -> usize {
        self.links.len()
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Link> {
        self.links.iter()
    }

    /// All of them, to be changed but for whose they are.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Link> {
        self.links.iter_mut()
    }

    /// The one at a place.
    pub fn get(&self, place: usize) -> Option<&Link> {
        self.links.get(place)
    }

    /// The one at a place, to be changed but for whose it is.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut Link> {
        self.links.get_mut(place)
    }

    /// Where an object's link is. O(links).
    pub fn position(&self, id: u32) -> Option<usize> {
        self.keys.iter().position(|key| key.id() == id)
    }

    /// Adds one, of which motions are told in every tick.
    pub fn push(&mut self, link: Link) {
        self.keys.push(LinkKey::new(link.id, Tier::default()));
        self.links.push(link);
    }

    /// Removes one; the last one takes its place.
    pub fn swap_remove(&mut self, place: usize) {
        self.keys.swap_remove(place);
        self.links.swap_remove(place);
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.links.clear();
    }

    /// The tier of the one at a place.
    pub fn tier(&self, place: usize) -> Tier {
        self.keys[place].tier()
    }

    /// Its motion is told in another tier from now on.
    pub fn set_tier(&mut self, place: usize, tier: Tier) {
        self.keys[place] = LinkKey::new(self.keys[place].id(), tier);
    }

    /// Fills in the places of those among the first `known` of which there may be something to tell, ascending, and gives their
    /// number: of `all`, or of those whose objects have news for them.
    pub fn find_news(
        &self,
        known: usize,
        scene: &SceneRecords,
        all: bool,
        places: &mut Vec<u32>,
    ) -> usize {
        places.resize(places.len().max(known), 0);
        let mut count = 0;
        for (place, key) in (0..).zip(&self.keys[..known]) {
            // Written always and counted if there is: whether there is no branch could foresee.
            places[count] = place;
            let news = scene.news(key.id()).besides;
            let asked = LinkNews::OF_SEEN | LinkNews::turn(key.tier());
            count += usize::from(all | (news & asked != 0));
        }
        for &place in &places[..count] {
            prefetch_index(&self.links, place as usize);
        }
        count
    }

    /// Whether these places have all of the first `known` of which a motion is to be told in this tick, found out link by link.
    pub fn are_behind_among(
        &self,
        places: &[u32],
        known: usize,
        scene: &SceneRecords,
        tick: u64,
    ) -> bool {
        let links = (0..).zip(&self.links[..known]).zip(&self.keys);
        let mut behind = links.filter(|((_, link), key)| {
            scene.news(link.id).motion != link.motion && key.tier().is_due(tick, link.id)
        });
        behind.all(|((place, _), _)| places.binary_search(&place).is_ok())
    }

    /// Asks for the memory that [`find_news`](Self::find_news) looks through.
    pub fn prefetch(&self) {
        let keys_a_line = CACHE_LINE_BYTES / size_of::<LinkKey>();
        for nth in (0..self.keys.len()).step_by(keys_a_line) {
            prefetch_index(&self.keys, nth);
        }
    }
}

impl MemoryUse for Links {
    fn heap_bytes(&self) -> usize {
        self.keys.heap_bytes() + self.links.heap_bytes()
    }
}
